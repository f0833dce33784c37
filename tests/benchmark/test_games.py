"""Values of closed forms against sums over all coalitions; computed models against trained ones."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestCentroid

import dupre
from dupre.benchmark import NAMES, Game, computed, load, trained
from dupre.game.coalitions import all_coalitions
from dupre.game.estimators import exact
from owners_and_games import make_owners

SEMIVALUES = (dupre.shapley, dupre.banzhaf, dupre.beta_shapley(1, 4), dupre.leave_one_out)


def summed(game, n, semivalue):
    """The values of a callable of coalitions by their definition."""
    weights = exact(semivalue, n)
    return weights.W @ game(weights.members) + weights.empty * game(np.zeros((1, n), bool))[0]


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)
def test_closed_forms_are_the_sums_over_all_coalitions(semivalue):
    rng = np.random.default_rng(0)
    amounts = rng.integers(1, 8, 7)
    gains = np.triu(rng.normal(size=(7, 7)), 1)
    games = [
        computed.OfTotal(amounts, lambda total: np.sqrt(total + 3.0)),
        computed.OfTotal(amounts, lambda total: (total > amounts.sum() / 2).astype(float)),
        computed.Largest(np.append(rng.random(6), 0.5)),
        computed.Largest(np.array([0.5, 0.2, 0.5, 0.2, 0.0, 1.0, 0.5])),  # ties
        computed.Pairs(rng.normal(size=7), gains + gains.T),
    ]
    for game in games:
        assert game.values(semivalue) == pytest.approx(summed(game, 7, semivalue), abs=1e-12)


def test_every_game_loads_and_shapley_values_share_what_all_gain():
    for name in NAMES:
        game = load(name)
        everyone = np.ones((1, game.owners.n), dtype=bool)
        gain = game.utilities_of(everyone)[0] - game.empty
        assert game.name == name
        assert name.endswith(f"-{game.owners.n}")
        assert game.values(dupre.shapley).sum() == pytest.approx(gain, abs=1e-9)
        assert game.values(dupre.shapley).std() > 0
        assert game.utility(game.owners.names) == game.empty + gain
        assert game.utility(()) == game.empty


def test_ridge_and_centroids_by_sums_are_the_trained_models():
    rng = np.random.default_rng(0)
    X, owner = rng.integers(-50, 50, (60, 4)), np.arange(60) % 4
    X_val = rng.integers(-50, 50, (40, 4))
    y, y_val = (rows @ [1.0, -2.0, 0.5, 0.0] for rows in (X, X_val))
    y += rng.normal(size=60)
    classes, of_val = (np.digitize(t, [-30, 30]) for t in (y, y_val))
    classes[owner == 0] = 1  # one owner has a single class
    r2 = computed.ridge_r2((X, y, owner), (X_val, y_val), alpha=3.0)
    accuracy = computed.centroid_accuracy((X, classes, owner), (X_val, of_val), 3)
    for code, row in enumerate(all_coalitions(4)):
        held = row[owner]
        model = Ridge(alpha=3.0).fit(X[held], y[held])
        assert r2[code] == pytest.approx(model.score(X_val, y_val), abs=1e-9)
        if len(set(classes[held])) > 1:
            near = NearestCentroid().fit(X[held], classes[held])
            assert accuracy[code] == near.score(X_val, of_val)
        else:
            assert accuracy[code] == np.mean(of_val == classes[held][0])


@pytest.mark.parametrize("name", ["digits-paper-6", "diabetes-random-8"])
def test_tables_are_what_training_gives(name, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    monkeypatch.delitem(sys.modules, "games", raising=False)
    from games import quietly, utility_of

    game, utility = load(name), utility_of(name)
    assert utility.empty == game.empty
    for coalition in (game.owners.names[:1], game.owners.names[2:4], game.owners.names):
        # Solvers may stop elsewhere on another CPU: one validation row of 899 more or less.
        assert quietly(utility, coalition) == pytest.approx(game.utility(coalition), abs=2 / 899)


def test_games_of_the_tables_have_the_owners_that_were_trained():
    assert load("digits-paper-6").owners.rows.tolist() == [449, 89, 90, 90, 89, 91]
    digits = trained.owners_of("digits-by-label-10")
    assert (digits.owner == digits.y).all()


def test_a_game_that_does_not_fit_its_owners_is_refused():
    with pytest.raises(
        dupre.InputError, match=r"expected 2\^3 - 1 = 7 utilities, got shape \(8,\)"
    ):
        Game("wrong", make_owners(3), np.zeros(8), 0.0)
    with pytest.raises(dupre.InputError, match="state closed="):
        Game("large", make_owners(21, rows=1), lambda members: members.sum(axis=1), 0.0)
    with pytest.raises(dupre.InputError, match="did you mean 'quota-15'"):
        load("quota-16")
