"""The references of benchmarks/references.py where their answers are known."""

import sys
from pathlib import Path

import numpy as np
import pytest

import dupre
from dupre.benchmark import CountedGame, Game
from dupre.game.semivalues import banzhaf, shapley
from owners_and_games import make_owners, white

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from references import MEMBERSHIP, by_leverage, by_schedule, du_shapley, fixed, kernel_banzhaf


def counted(game, semivalue, budget):
    return CountedGame(game, semivalue, budget)


def of_size(owners):
    """A game of nothing but the number of owners, concave."""
    return Game("size", owners, lambda rows: np.sqrt(rows.sum(axis=1)), 0.0)


def any_game(owners):
    found = white(owners)
    return Game("white", owners, found.game, found.empty)


@pytest.mark.parametrize("budget", [6, 11, 20, 30])
def test_schedules_are_as_long_as_the_budget_and_repeat_nothing(budget):
    for schedule in (fixed, by_leverage):
        rows = schedule(5, budget, np.random.default_rng(0))
        assert len(rows) == len(np.unique(rows, axis=0)) == budget
        assert rows.any(axis=1).all()
        assert rows[0].all()


def test_the_fixed_schedule_is_in_its_order():
    rows = fixed(6, 33, np.random.default_rng(0))
    sizes = rows.sum(axis=1)
    assert sizes.tolist() == [6] + [1] * 6 + [5] * 6 + [3] * 20
    pairs = rows[13:].reshape(-1, 2, 6)
    assert (pairs[:, 0] == ~pairs[:, 1]).all()


def test_by_leverage_every_size_is_as_frequent():
    rows = by_leverage(12, 400, np.random.default_rng(0))
    count = np.bincount(rows.sum(axis=1), minlength=13)[3:10]  # of 1 and 2 there are few
    assert count.min() > 0.6 * count.max()


def test_kernel_banzhaf_of_all_coalitions_is_exact_and_of_few_keeps_an_additive_game():
    game = any_game(make_owners(5))
    found = kernel_banzhaf(counted(game, banzhaf, 31), 31, 0)
    assert found == pytest.approx(game.values(banzhaf))
    worth = np.arange(1.0, 6.0)
    additive = Game("sum", game.owners, lambda rows: rows @ worth, 0.0)
    assert kernel_banzhaf(counted(additive, banzhaf, 16), 16, 0) == pytest.approx(worth)
    assert kernel_banzhaf(counted(additive, shapley, 16), 16, 0) is None


def test_du_shapley_is_exact_where_owners_are_equal_and_only_their_number_counts():
    game = of_size(make_owners(6))
    found = du_shapley(counted(game, shapley, 7), 7, 0)
    assert found == pytest.approx(game.values(shapley))
    assert du_shapley(counted(game, banzhaf, 7), 7, 0) is None
    # Of unequal owners w is linear, so that values are shares of rows.
    owners = dupre.Owners.from_arrays(np.arange(6.0)[:, None], np.arange(6.0), list("abbccc"))
    linear = Game("linear", owners, lambda members: members @ np.array([1.0, 2.0, 3.0]), 0.0)
    assert du_shapley(counted(linear, shapley, 6), 6, 0) == pytest.approx([1.0, 2.0, 3.0])


def test_a_process_on_a_schedule_asks_for_nothing_else_and_knows_how_sure_it_is():
    game = counted(of_size(make_owners(6)), shapley, 13)
    found = by_schedule(game, 13, 0, schedule=fixed, kernel=MEMBERSHIP)
    assert game.asked == 13
    low, high = found.distribution.interval(0.95)
    assert found.values == pytest.approx(np.full(6, np.sqrt(6) / 6), abs=0.02)
    assert (low < high).all()
