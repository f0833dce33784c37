from math import comb

import numpy as np
import pytest

from dupre import Semivalue, banzhaf, beta_shapley, leave_one_out, shapley
from dupre.game.coalitions import all_coalitions, keys
from dupre.game.estimators import exact
from dupre.valuation.first_design import FEW_OWNERS, SINGLES_COUNT, add_sizes_between, first_design

SEMIVALUES = [shapley, banzhaf, leave_one_out, beta_shapley(16, 1), beta_shapley(1, 16)]


def design_for(semivalue, n, count, seed=0, rows=None):
    rows = np.full(n, 10) if rows is None else rows
    return first_design(semivalue, rows, count, np.random.default_rng(seed))


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=lambda s: s.name)
def test_design_is_distinct_and_as_long_as_asked_and_starts_with_all_owners(semivalue):
    for n, count in ((2, 1), (2, 10), (3, 3), (3, 81), (40, 1), (40, 81), (40, 200)):
        design = design_for(semivalue, n, count)
        worth_taking = n + 1 if semivalue is leave_one_out else 2**n - 1
        assert design.shape == (min(count, worth_taking), n)
        assert design.dtype == bool
        assert design[0].all()
        assert design.any(axis=1).all()
        assert semivalue is not leave_one_out or design.sum(axis=1).min() == n - (count > 1)
        assert len(set(keys(design))) == len(design)


@pytest.mark.parametrize("n", [3, 6, 40])
def test_shapley_takes_all_owners_then_the_largest_alone_then_all_but_the_largest(n):
    rows = np.random.default_rng(n).permutation(np.arange(1, n + 1))
    one = np.eye(n, dtype=bool)[np.argsort(-rows)]
    expected = np.concatenate([np.ones((1, n), dtype=bool), one, ~one])
    for count in (1, 3, n + 1, n + 3, 2 * n + 1):
        np.testing.assert_array_equal(design_for(shapley, n, count, rows=rows), expected[:count])
    if n < 40:  # in the end all coalitions
        assert set(keys(design_for(shapley, n, 2**n + 5))) == set(keys(all_coalitions(n)))
    singles = design_for(shapley, 5, 6, rows=np.array([7, 9, 7, 9, 8]))[1:]
    assert [int(row.argmax()) for row in singles] == [1, 3, 4, 0, 2]  # of as many rows: their order


@pytest.mark.parametrize("semivalue", [leave_one_out, beta_shapley(1, 16)], ids=lambda s: s.name)
def test_where_all_but_one_weigh_most_those_without_the_largest_owners_come_first(semivalue):
    rows = np.random.default_rng(0).permutation(np.arange(1, 31))
    all_but_one = ~np.eye(30, dtype=bool)[np.argsort(-rows)]
    for count in (2, 10, 31):
        design = design_for(semivalue, 30, count, rows=rows)
        np.testing.assert_array_equal(design[1:], all_but_one[: count - 1])


def sizes_added(members, weight, design):
    found = add_sizes_between(list(design), members, weight, np.random.default_rng(0))
    assert len(set(found)) == len(found)
    assert weight[found].all()
    return members[found].sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("n", "between"),
    [
        (13, [2, 11, 4, 9, 6, 7, *[2, 4, 6] * 2]),
        (20, [2, 18, 4, 16, 8, 12, 10, *[2, 4, 8, 10] * 2]),
    ],
)
def test_many_owners_are_evaluated_in_groups_of_further_sizes(n, between):
    ends = design_for(shapley, n, 2 * n + 1)
    some = np.random.default_rng(1).random((4_000, n)) < np.linspace(0.05, 0.95, 4_000)[:, None]
    members = np.concatenate([ends, some[some.any(axis=1)]])
    everything = np.ones(len(members))
    found = sizes_added(members, everything, range(len(ends)))
    assert found == [n, *[1] * n, *between, *[n - 1] * n]
    few = 1.0 * (
        members.sum(axis=1) != between[0]
    )  # a size of which no coalition counts is left out
    assert sizes_added(members, few, range(len(ends)))[n + 1] == between[1]


def test_few_owners_and_designs_of_middle_sizes_need_no_further_sizes():
    members = all_coalitions(FEW_OWNERS)
    sizes, weight = members.sum(axis=1), np.ones(len(members))
    design = np.flatnonzero(np.isin(sizes, [1, FEW_OWNERS - 1, FEW_OWNERS]))[::-1]
    assert sizes_added(members, weight, design) == sizes[design].tolist()
    middle = [len(sizes) - 1, *np.flatnonzero(sizes == 6)[:9].tolist()]
    assert sizes_added(members, weight, middle) == sizes[middle].tolist()


@pytest.mark.parametrize(("b", "further"), [(4, [2, 3, 4, 5] * 2), (16, [4, 5] * 2)])
def test_where_single_owners_do_not_count_smaller_coalitions_are_evaluated_too(b, further):
    weights = exact(beta_shapley(1, b), 8)
    design = design_for(beta_shapley(1, b), 8, 17)
    assert design.sum(axis=1).min() == 6
    at = [int(np.flatnonzero((weights.members == row).all(axis=1))[0]) for row in design]
    found = sizes_added(weights.members, np.linalg.norm(weights.W, axis=0), at)
    assert found == [8, *further, *design.sum(axis=1).tolist()[1:]]
    alone = exact(leave_one_out, 8)  # nothing but all and all but one counts
    ends = np.flatnonzero(alone.members.sum(axis=1) >= 7)[::-1]
    assert len(sizes_added(alone.members, np.linalg.norm(alone.W, axis=0), ends)) == 9


@pytest.mark.parametrize(("n", "taken"), [(3, True), (10, True), (11, False), (12, False)])
def test_banzhaf_takes_single_owners_first_while_they_count(n, taken):
    # They are n of 2^n - 1 coalitions of equal weight: 0.98 % with 10 owners, 0.54 % with 11.
    assert (n / (2**n - 1) >= SINGLES_COUNT) == taken
    rows = np.arange(n) + 1
    design = design_for(banzhaf, n, n + 1, rows=rows)
    largest_first = np.eye(n, dtype=bool)[::-1]
    assert np.array_equal(design[1:], largest_first) == taken
    assert design[0].all()


@pytest.mark.parametrize(("n", "count"), [(4, 11), (6, 13), (6, 31), (40, 121)])
def test_equal_weights_are_taken_in_complement_pairs(n, count):
    design = design_for(shapley, n, count)[1:]
    assert set(keys(design)) == set(keys(~design))


@pytest.mark.parametrize(("n", "singles", "count"), [(4, 4, 12), (6, 6, 32), (40, 0, 121)])
def test_banzhaf_takes_complement_pairs_after_the_single_owners(n, singles, count):
    drawn = design_for(banzhaf, n, count)[1 + singles :]
    if singles:  # those without one owner were drawn for owners who came before
        drawn = drawn[drawn.sum(axis=1) < n - 1]
    assert len(drawn) > 3
    # The count may cut the last pair in two.
    assert len(set(keys(drawn)) - set(keys(~drawn))) <= 1


@pytest.mark.parametrize("n", [3, 6, 40])
def test_beta_shapley_takes_the_sizes_it_weighs_most_first(n):
    small_first = design_for(beta_shapley(16, 1), n, 2**n - 1 if n < 40 else 100).sum(axis=1)
    assert np.all(small_first[1 : n + 1] == 1)
    large_first = design_for(beta_shapley(1, 16), n, 1 + 2 * n).sum(axis=1)[1:]
    # Of three owners, single ones still carry 5 % of the weight: they come before.
    assert np.all(large_first[:n] == (1 if n == 3 else n - 1))
    assert n > 3 or np.all(large_first[n:] == n - 1)


def test_sizes_of_tiny_but_different_weight_are_not_paired_and_the_design_follows_its_generator():
    def log_weight(c, n):
        return c * np.log(0.4) + (n - 1 - c) * np.log(0.6)

    design = design_for(Semivalue("binomial(0.4)", log_weight), 40, 41)
    np.testing.assert_array_equal(design[1:].sum(axis=1), 1)
    first, again, other = (design_for(shapley, 10, 40, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert set(keys(first)) != set(keys(other))


@pytest.mark.parametrize(("n", "smallest"), [(8, 2), (12, 1)])
def test_banzhaf_draws_every_coalition_alike_rather_than_the_small_ones_first(n, smallest):
    # Up to 10 owners all single ones come before: what is drawn are the others.
    before = 1 if smallest == 1 else 1 + n
    designs = (design_for(banzhaf, n, before + n, seed)[before:] for seed in range(40))
    sizes = np.concatenate([drawn.sum(axis=1) for drawn in designs])
    shares = np.bincount(sizes, minlength=n + 1)[smallest:n] / len(sizes)
    totals = np.array([comb(n, size) for size in range(smallest, n)])
    expected = totals / totals.sum()
    # Each share is within four binomial standard deviations of a uniform draw's.
    spread = np.sqrt(expected * (1 - expected) / len(sizes))
    assert np.all(np.abs(shares - expected) < 4 * spread + 1e-12)
