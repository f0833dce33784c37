import numpy as np
import pytest

from dupre.game import column_entries
from dupre.game.coalitions import all_coalitions
from dupre.game.column_entries import additive_utilities
from dupre.game.weight_matrix import CERTAIN, collect_columns, collect_weights
from entries import list_entries


@pytest.fixture(params=[3, 2_048], autouse=True)
def few_at_a_time(request, monkeypatch):
    monkeypatch.setattr(column_entries, "BLOCK", request.param)


def test_utilities_of_a_game_of_worths_and_levels():
    members = all_coalitions(4)
    worth, level = np.random.default_rng(0).normal(size=(2, 5))
    expected = members @ worth[:4] + level[members.sum(axis=1)]
    found = additive_utilities(members, np.append(worth[:4], level))
    np.testing.assert_allclose(found, np.append(expected, level[0]))


def both(seed, *, silent=False):
    """Weights of the same draws, by columns and by a list of entries.

    Some draws are certain, some empty, some the same, and a unit has one to three of them. If
    asked for, draws have no weight for members, and nobody is ever left out but the first owner.
    """
    rng = np.random.default_rng(seed)
    d, n = 60, 5
    drawn = rng.random((d, n)) < 0.5
    if silent:
        drawn[:, 1:] = True
    unit = np.where(rng.random(d) < 0.2, CERTAIN, rng.integers(0, 25, d) * 7)
    unit[~drawn.any(axis=1)] = CERTAIN
    inside, outside = rng.normal(size=(2, d)) * [[0.0 if silent else 1.0], [1.0]]
    weight = np.where(drawn.T, inside, outside)
    every, zero = np.ones_like(weight, dtype=bool), np.zeros(d, dtype=np.int64)
    return (
        collect_columns(drawn, (inside, outside), unit),
        collect_weights(drawn, weight, unit, zero, counts=every),
    )


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_the_entries_that_a_list_of_them_holds(seed):
    (found, column), listed = both(seed)
    np.testing.assert_array_equal(found.members, listed.members)
    np.testing.assert_array_equal(found.W, listed.W)
    np.testing.assert_array_equal(found.empty, listed.empty)
    entries = list_entries(found.entries)
    assert len(found.entries) == len(listed.entries) == len(entries)
    for part in ("owner", "coalition", "weight", "unit", "stratum", "means"):
        np.testing.assert_array_equal(getattr(entries, part), getattr(listed.entries, part))
    assert column.max() <= len(found.members)


@pytest.mark.parametrize("silent", [False, True])
def test_errors_of_columns_are_those_of_a_list_of_entries(silent):
    for seed in range(5):
        (found, _), listed = both(seed, silent=silent)
        rng = np.random.default_rng(seed)
        u, rough = rng.normal(size=len(found.members)), rng.random(len(found.members))
        for how in ((u, 0.3), (u, 0.3, rough)):
            np.testing.assert_allclose(
                found.sampling_covariance(*how), listed.sampling_covariance(*how), rtol=1e-10
            )
        np.testing.assert_array_equal(found.entries.seen(5), listed.entries.seen(5))
        assert found.entries.seen(5).tolist() == [True] + [not silent] * 4


def test_draws_that_are_all_certain_have_no_error():
    drawn = all_coalitions(3)
    ones = np.ones(len(drawn))
    found, _ = collect_columns(drawn, (ones, -ones), np.full(len(drawn), CERTAIN))
    assert not len(found.entries)
    np.testing.assert_array_equal(found.sampling_covariance(ones, 0.0), np.zeros((3, 3)))
