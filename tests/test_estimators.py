from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dupre import banzhaf, beta_shapley, games, leave_one_out, shapley
from dupre.coalitions import all_coalitions
from dupre.estimators import exact

quick = settings(deadline=None, max_examples=25)
SEMIVALUES = [shapley, banzhaf, leave_one_out, beta_shapley(16, 1), beta_shapley(1, 4)]
every_semivalue = pytest.mark.parametrize("semivalue", SEMIVALUES, ids=lambda s: s.name)
N = 4
tables = arrays(np.float64, 2**N, elements=st.floats(-10, 10))
"""Utilities by code, the binary digits of which say who is in; entry 0 is the empty coalition."""


def values(semivalue, table):
    """Of a table of 2^n utilities, the empty coalition first."""
    weights = exact(semivalue, len(table).bit_length() - 1)
    return weights.W @ table[1:] + weights.empty * table[0]


def code(coalition):
    return sum(1 << i for i in coalition)


def by_definition(semivalue, table):
    """Sum over all C without i of omega_|C| (u(C + i) - u(C)), DUPRE Eq. 2."""
    n = len(table).bit_length() - 1
    omega = np.exp(semivalue.log_weights(n))
    result = np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            for C in combinations(others, size):
                result[i] += omega[size] * (table[code((*C, i))] - table[code(C)])
    return result


@pytest.mark.parametrize("n", [2, 3, 5])
def test_shapley_equals_the_mean_over_all_orders_of_arrival(n):
    table = np.random.default_rng(n).normal(size=2**n)
    orders = list(permutations(range(n)))
    total = np.zeros(n)
    for order in orders:
        for position, i in enumerate(order):
            before = order[:position]
            total[i] += table[code((*before, i))] - table[code(before)]
    np.testing.assert_allclose(values(shapley, table), total / len(orders), atol=1e-12)


@every_semivalue
@pytest.mark.parametrize("n", [2, 3, 6])
def test_exact_weights_equal_the_definition(semivalue, n):
    table = np.random.default_rng(n).normal(size=2**n)
    np.testing.assert_allclose(
        values(semivalue, table), by_definition(semivalue, table), atol=1e-12
    )


def test_banzhaf_is_the_mean_marginal_and_leave_one_out_the_last():
    table = np.random.default_rng(0).normal(size=2**N)
    codes = np.arange(2**N)
    for i in range(N):
        without = codes[codes & (1 << i) == 0]
        marginal = table[without | (1 << i)] - table[without]
        assert values(banzhaf, table)[i] == pytest.approx(marginal.mean())
        assert values(leave_one_out, table)[i] == pytest.approx(marginal[-1])


@pytest.mark.parametrize(
    "game",
    [
        games.additive([1.0, -2.0, 0.0, 3.5]),
        games.unanimity(5, [0, 3]),
        games.airport([4.0, 1.0, 9.0, 4.0, 2.0]),
        games.glove(3),
        games.majority(5),
        games.unanimity_sum(7, 12, np.random.default_rng(0)),
    ],
    ids=["additive", "unanimity", "airport", "glove", "majority", "unanimity_sum"],
)
def test_shapley_values_of_known_games(game):
    weights = exact(shapley, game.n)
    np.testing.assert_allclose(weights.W @ game.utility(weights.members), game.shapley, atol=1e-12)


@every_semivalue
def test_any_semivalue_of_an_additive_game_is_each_owners_worth(semivalue):
    worth = np.array([1.0, -2.0, 0.0, 3.5])
    table = np.append(0.0, all_coalitions(4) @ worth)
    np.testing.assert_allclose(values(semivalue, table), worth, atol=1e-12)


@quick
@given(tables)
def test_efficiency_of_shapley(table):
    assert values(shapley, table).sum() == pytest.approx(table[-1] - table[0], abs=1e-9)


@every_semivalue
@quick
@given(table=tables, pair=st.sampled_from(list(combinations(range(N), 2))))
def test_symmetric_owners_have_equal_values(semivalue, table, pair):
    i, j = pair
    codes = np.arange(2**N)
    differ = ((codes >> i) ^ (codes >> j)) & 1
    swapped = codes ^ (differ * ((1 << i) | (1 << j)))
    result = values(semivalue, table + table[swapped])
    assert result[i] == pytest.approx(result[j], abs=1e-9)


@every_semivalue
@quick
@given(table=tables, null=st.integers(0, N - 1))
def test_an_owner_who_adds_nothing_has_no_value(semivalue, table, null):
    without = np.arange(2**N) & ~(1 << null)
    assert values(semivalue, table[without])[null] == pytest.approx(0, abs=1e-9)


@every_semivalue
@quick
@given(first=tables, second=tables, factor=st.floats(-5, 5))
def test_values_are_linear_in_the_game(semivalue, first, second, factor):
    together = values(semivalue, factor * first + second)
    apart = factor * values(semivalue, first) + values(semivalue, second)
    np.testing.assert_allclose(together, apart, atol=1e-8)
