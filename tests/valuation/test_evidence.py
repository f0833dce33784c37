import threading

import numpy as np
import ot
import pandas as pd
import pytest
from scipy import sparse

import dupre
from dupre.game.coalitions import from_names
from dupre.valuation.explain import MOST_PREDICTED
from dupre.valuation.sameness import shared_rows
from dupre.valuation.strategies import Active
from owners_and_games import LoggedGame, make_owners, record, value


def saturating(members):
    """The more the better, ever less."""
    return np.sqrt(np.asarray(members, dtype=float) @ np.arange(1, members.shape[1] + 1))


def value_saturating(n=6, budget=20, **how):
    owners = make_owners(n)
    game = LoggedGame(owners, saturating)
    return owners, game, value(owners, game, budget=budget, **how)


@pytest.fixture(scope="module")
def six():
    """Owners, their game, and its valuation."""
    return value_saturating()


def test_every_evaluated_coalition_is_there_with_what_was_predicted_of_it(six):
    owners, game, v = six
    observed = v.facts.evidence.coalitions.dropna(subset="utility")
    assert sorted(observed["members"]) == sorted(set(game.asked))
    assert observed["utility"].tolist() == [game.of(members) for members in observed["members"]]
    errors = observed["utility"] - observed["predicted"]  # those the diagnostics speak of
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(v.facts.diagnostics.error, rel=1e-9)
    found = v.facts.evidence.coalitions
    rows = np.array([from_names(members, owners.names) for members in found.members])
    assert (found["size"] == rows.sum(axis=1)).all()
    assert (found["rows"] == rows @ owners.rows).all()

    _, _, v = value_saturating(budget=30, strategy=Active(check=6))
    observed = v.facts.evidence.coalitions.dropna(subset="utility")
    squares = (observed["utility"] - observed["predicted"]) ** 2
    shown = len(observed) - v.facts.check.held_out
    expected = shown * v.facts.diagnostics.error**2 + 6 * v.facts.check.error**2
    assert (len(observed), v.facts.check.held_out) == (30, 6)
    assert squares.sum() == pytest.approx(expected, rel=1e-9)


def test_of_many_coalitions_some_of_every_size_are_shown_and_of_an_exact_valuation_none():
    _, _, v = value_saturating(n=3, budget=7)
    assert len(v.facts.evidence.coalitions) == 7
    assert v.facts.evidence.coalitions[["predicted", "std"]].isna().all(axis=None)
    _, _, v = value_saturating(n=11, budget=30)
    others = v.facts.evidence.coalitions[v.facts.evidence.coalitions["utility"].isna()]
    assert len(others) == MOST_PREDICTED
    assert not others["members"].duplicated().any()
    sizes = others["size"].value_counts()
    assert set(range(2, 10)) <= set(sizes.index)
    assert sizes[5] <= 2 * sizes[4]


def test_distances_are_sliced_wasserstein_distances():
    owners = make_owners(4, rows=50)
    v = value(owners, LoggedGame(owners, saturating), budget=8)
    d = v.facts.evidence.distances
    assert np.allclose(d, d.T)
    assert not np.diag(d).any()
    # Both blocks are scaled to unit total variance and weigh alike, as in the sketch.
    X = owners.points.values[owners.points.index] / np.sqrt(owners.points.variance)
    rows = np.column_stack([X, (owners.y - owners.y.mean()) / owners.y.std()]) / 2
    for i, j in [(0, 1), (2, 3)]:
        pair = rows[owners.owner == i], rows[owners.owner == j]
        expected = ot.sliced_wasserstein_distance(*pair, n_projections=2000, p=1, seed=0)
        assert d[i, j] == pytest.approx(expected, rel=0.25)  # other directions


def test_rows_are_shared_with_their_targets_and_not_by_how_they_are_encoded():
    X = np.arange(12.0).reshape(6, 2)
    data = {
        "A": (X[:4], [0, 1, 0, 1]),
        "copy": (X[:4], [0, 1, 0, 1]),
        "half": (X[2:6], [0, 1, 0, 1]),
        "relabelled": (X[:4], [1, 0, 1, 0]),
        "twice": (np.repeat(X[:1], 3, axis=0), [0, 0, 0]),
    }
    shared = shared_rows(dupre.Owners.from_mapping(data))
    assert np.allclose(np.diag(shared), 1)
    assert shared[0].tolist() == [1, 1, 0.5, 0, 0.25]
    assert shared[4].tolist() == [1, 1, 0, 0, 1]
    levels = [f"common {i % 50}" for i in range(100)] + [f"rare {i}" for i in range(40)]
    who = ["A"] * 50 + ["B"] * 50 + ["C"] * 20 + ["D"] * 20
    gap = [1.0] * 100 + [np.nan] * 20 + [4.0] * 20
    frame = pd.DataFrame({"code": levels, "who": who, "gap": gap, "y": [1] + [0] * 139})

    def embed(X):
        return X[["gap"]].fillna(4.0).to_numpy()

    owners = dupre.Owners.from_frame(frame, owner="who", target="y", embed=embed)

    shared = shared_rows(owners)
    assert shared[2].tolist() == [0, 0, 1, 0]
    assert shared[0, 1] == 49 / 50


def test_predict_tells_what_was_observed_and_covers_what_is_expected(six):
    owners, game, _ = six
    valuer = dupre.Valuer(owners, empty=0.0)
    with pytest.raises(dupre.InputError, match="no utility to learn from"):
        valuer.predict([("owner00",)])
    record(valuer, {members: game.of(members) for members in valuer.suggest(13)})
    known, new = owners.names[:1], owners.names[1:4]
    found = valuer.predict([known, new[::-1]])
    assert found["members"].tolist() == [known, new]
    assert found["evaluated"].tolist() == [True, False]
    assert found["utility"][0] == found["low"][0] == found["high"][0] == game.of(known)
    assert found["low"][1] < game.of(new) < found["high"][1]
    with pytest.raises(dupre.InputError, match="unknown owner 'nobody'"):
        valuer.predict([("nobody",)])

    owners = make_owners(7)
    game, valuer = LoggedGame(owners, saturating), dupre.Valuer(owners, empty=0.0)
    record(valuer, {members: game.of(members) for members in valuer.suggest(15)})
    found, truth = valuer.predict(game.table), np.array(list(game.table.values()))
    assert np.mean((found["low"] <= truth) & (truth <= found["high"])) >= 0.9


IMAGES = np.arange(24.0).reshape(6, 2, 2) % 8
TEXTS = ["a", "b", "a", "c", "b", "d"]


ROWS = {
    "images": (IMAGES, 1.0),
    "sparse": (sparse.csr_array(IMAGES.reshape(6, 4)), 1.0),
    "texts": (TEXTS, 0.5),
    "sets": ([{text} for text in TEXTS], 0.5),
    "locks": ([threading.Lock()] * 6, 0.0),
}


@pytest.mark.parametrize(("X", "expected"), ROWS.values(), ids=ROWS)
def test_rows_of_any_kind_are_compared_or_taken_to_differ(X, expected):
    def embed(X):
        return np.arange(6.0)[:, None]

    owners = dupre.Owners.from_arrays(X, [0, 1] * 3, list("AABBCC"), embed=embed)
    assert shared_rows(owners)[0, 1] == expected
