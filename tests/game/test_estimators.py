import inspect
import re
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kurtosis, norm, skew

import closed_form
from closed_form import table_of
from dupre import InputError, Semivalue, banzhaf, beta_shapley, estimators, leave_one_out, shapley
from dupre.game import weights as module
from dupre.game.coalitions import all_coalitions
from dupre.game.estimators import (
    antithetic,
    exact,
    group_testing,
    maximum_sample_reuse,
    one_for_all,
    permutation,
    regression,
    stratified,
    stratified_svarm,
    structured,
    svarm,
)
from owners_and_games import Normal, by_code, no_hidden_variance, weighted_banzhaf

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
def test_exact_weights_equal_the_definition(semivalue):
    for n in (2, 3, 6):
        table = np.random.default_rng(n).normal(size=2**n)
        expected = by_definition(semivalue, table)
        np.testing.assert_allclose(values(semivalue, table), expected, atol=1e-12)
    worth = np.array([1.0, -2.0, 0.0, 3.5])  # which is its value in an additive game
    table = np.append(0.0, all_coalitions(4) @ worth)
    np.testing.assert_allclose(values(semivalue, table), worth, atol=1e-12)


KNOWN = {
    "additive": closed_form.additive([1.0, -2.0, 0.0, 3.5]),
    "unanimity": closed_form.unanimity(5, [0, 3]),
    "airport": closed_form.airport([4.0, 1.0, 9.0, 4.0, 2.0]),
    "glove": closed_form.glove(3),
    "majority": closed_form.majority(5),
    "unanimity_sum": closed_form.unanimity_sum(7, 12, np.random.default_rng(0)),
    "unanimity of one": closed_form.unanimity(3, [2]),
    "unanimity of all": closed_form.unanimity(4, range(4)),
    "airport, equal costs": closed_form.airport([2.0, 2.0, 0.0, 5.0]),
    "glove, one right": closed_form.glove(1),
    "majority of an even number": closed_form.majority(4),
    "sum of no unanimities": closed_form.unanimity_sum(3, 0, np.random.default_rng(0)),
}


@pytest.mark.parametrize("game", KNOWN.values(), ids=KNOWN)
def test_shapley_values_of_known_games(game):
    assert game.utility(np.zeros((1, game.n), dtype=bool)).tolist() == [0.0]
    weights = exact(shapley, game.n)
    np.testing.assert_allclose(weights.W @ game.utility(weights.members), game.shapley, atol=1e-12)


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


SAMPLED = [
    *(permutation, antithetic, stratified, structured, svarm, stratified_svarm, one_for_all),
    *(group_testing, maximum_sample_reuse, regression),
]
ASKED = [shapley, banzhaf, beta_shapley(4, 1), beta_shapley(1, 4), leave_one_out, weighted_banzhaf]
ONLY = {group_testing: [shapley], maximum_sample_reuse: [banzhaf, weighted_banzhaf]}
PAIRS = [(estimator, v) for estimator in SAMPLED for v in ONLY.get(estimator, ASKED)]
REFUSED = [(estimator, v) for estimator in ONLY for v in ASKED if v not in ONLY[estimator]]


def named(value):
    return getattr(value, "__name__", getattr(value, "name", str(value)))


def of(pairs):
    return pytest.mark.parametrize(("estimator", "semivalue"), pairs, ids=named)


def first(estimator):
    """A semivalue that the estimator can estimate."""
    return ONLY.get(estimator, ASKED)[0]


every_estimator = pytest.mark.parametrize("estimator", SAMPLED, ids=named)


@cache
def least(estimator, semivalue, n):
    """The fewest samples it takes, as its error says."""
    with pytest.raises(InputError) as error:
        estimator(semivalue, n, 1, np.random.default_rng(0))
    return int(re.search(r"at least ([\d,]+) samples", str(error.value))[1].replace(",", ""))


def draw(estimator, semivalue, n, samples, seed=0):
    return estimator(semivalue, n, samples, np.random.default_rng(seed))


def utilities_of(found, table):
    """Of the members, and of nobody last, as entries number them."""
    return np.append(table[found.members @ 2 ** np.arange(len(found.W))], table[0])


def covariance_of(found, table):
    u = utilities_of(found, table)
    return found.sampling_covariance(u[:-1], u[-1])


def rows_of(found):
    """Members and nobody as tuples of owners."""
    return [*(tuple(np.flatnonzero(row).tolist()) for row in found.members), ()]


# What any estimator keeps.


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(PAIRS), st.integers(2, 8), st.integers(0, 150), st.integers(0, 10**6))
def test_coalitions_are_distinct_never_empty_and_no_more_than_the_samples(pair, n, extra, seed):
    estimator, semivalue = pair
    spare = 60 if estimator is maximum_sample_reuse else 0  # with few an owner may be in none
    samples = least(estimator, semivalue, n) + spare + extra
    found = draw(estimator, semivalue, n, samples, seed)
    assert found.members.dtype == bool
    assert 0 < len(found.members) <= samples
    assert found.members.any(axis=1).all()
    assert len(np.unique(found.members, axis=0)) == len(found.members)
    assert found.W.shape == (n, len(found.members))
    table = np.random.default_rng(seed).normal(size=2**n)
    for numbers in (found.W, found.empty, covariance_of(found, table)):
        assert np.isfinite(numbers).all()
    # A constant added to all utilities is no merit of anyone; groups see that on average only.
    if estimator is not group_testing:
        np.testing.assert_allclose(by_code(found).sum(axis=1), 0, atol=1e-9)


@every_estimator
def test_the_same_seed_gives_the_same_weights_and_another_one_others(estimator):
    for semivalue in ONLY.get(estimator, [shapley, leave_one_out]):
        samples = least(estimator, semivalue, 7) + 20
        one, again, other = (draw(estimator, semivalue, 7, samples, seed) for seed in (3, 3, 4))
        np.testing.assert_array_equal(one.members, again.members)
        np.testing.assert_array_equal(one.W, again.W)
        certain = not len(one.entries)
        assert np.array_equal(by_code(one), by_code(other)) == certain


def test_every_estimator_that_is_offered_is_tested_here():
    offered = {name for name in estimators.__all__ if inspect.isfunction(getattr(estimators, name))}
    assert offered - {"exact", "collect_weights"} == {each.__name__ for each in SAMPLED}


@pytest.mark.parametrize("estimator", [permutation, antithetic], ids=named)
def test_more_samples_begin_with_the_fewer(estimator):
    few, many = (draw(estimator, beta_shapley(4, 1), 6, samples, 5) for samples in (60, 240))
    np.testing.assert_array_equal(many.members[: len(few.members)], few.members)
    assert len(many.members) > len(few.members)


@every_estimator
def test_many_owners_need_no_enumeration(estimator):
    quadratic = stratified, structured, stratified_svarm, one_for_all  # in the samples they need
    n, semivalue = 64 if estimator in quadratic else 300, first(estimator)
    samples = least(estimator, semivalue, n) + n
    found = draw(estimator, semivalue, n, samples)
    assert n < len(found.members) <= samples
    worth = np.linspace(1, 2, n)
    utilities = found.members @ worth
    covariance = found.sampling_covariance(utilities, 0.0)
    assert np.isfinite(found.W).all()
    assert np.isfinite(covariance).all()
    if estimator in (permutation, antithetic, stratified, structured):
        np.testing.assert_allclose(found.W @ utilities, worth, rtol=1e-9)
        np.testing.assert_allclose(covariance, 0, atol=1e-18)


# Bad input.


@of(REFUSED)
def test_a_semivalue_that_cannot_be_estimated_is_refused_with_one_that_can(estimator, semivalue):
    with pytest.raises(InputError, match=r"one_for_all or regression") as error:
        draw(estimator, semivalue, 6, 500)
    assert semivalue.name in str(error.value)
    possible = {group_testing: "Shapley", maximum_sample_reuse: "Banzhaf"}[estimator]
    assert possible in str(error.value)
    for other in (one_for_all, regression):
        assert len(draw(other, semivalue, 6, 500).members) > 0


def test_a_semivalue_is_known_by_its_weights_and_samples_must_hold_every_owner():
    for found in (draw(group_testing, banzhaf, 2, 60), draw(maximum_sample_reuse, shapley, 2, 60)):
        assert found.W.shape == (2, 3)
    for n in (5, 100):
        one, other = (draw(group_testing, v, n, 400) for v in (shapley, beta_shapley(1, 1)))
        np.testing.assert_array_equal(one.W, other.W)
    rounded = Semivalue("rounded", lambda c, n: shapley.log_weights(n) + 5e-7)
    rounded.log_weights(5)  # seven digits are enough
    draw(svarm, rounded, 5, 50)
    # Twelve coalitions of each of six owners with a chance of 0.02: some are in none.
    rare = Semivalue("rare", lambda c, n: c * np.log(0.02) + (n - 1 - c) * np.log(0.98))
    with pytest.raises(InputError, match=r"needs at least .* samples for 6 owners, got 12"):
        draw(maximum_sample_reuse, rare, 6, 12)


@every_estimator
def test_the_number_needed_is_enough_and_less_is_refused_with_it(estimator):
    for semivalue in ONLY.get(estimator, ASKED):
        needed = least(estimator, semivalue, 6)
        for samples in (-5, 0, 5, needed - 1):
            message = rf"{estimator.__name__} needs at least {needed:,} .* got {samples}"
            with pytest.raises(InputError, match=message):
                draw(estimator, semivalue, 6, samples)
        if estimator is not maximum_sample_reuse:  # by chance an owner may be in too few
            assert len(draw(estimator, semivalue, 6, needed).members) > 0


# Axioms of sampled values.


@pytest.mark.parametrize("estimator", [permutation, antithetic, group_testing, regression])
@settings(deadline=None, max_examples=20)
@given(n=st.integers(2, 9), extra=st.integers(0, 100), seed=st.integers(0, 10**6))
def test_sampled_shapley_values_add_up(estimator, n, extra, seed):
    found = draw(estimator, shapley, n, least(estimator, shapley, n) + extra, seed)
    everyone = found.members.all(axis=1).astype(float)
    assert everyone.sum() == 1
    np.testing.assert_allclose(found.W.sum(axis=0), everyone, atol=1e-9)
    assert found.empty.sum() == pytest.approx(-1)
    table = np.random.default_rng(seed).normal(size=2**n)
    with no_hidden_variance():
        covariance = covariance_of(found, table)
    np.testing.assert_allclose(covariance.sum(axis=0), 0, atol=1e-9 * (1 + np.trace(covariance)))


MARGINAL = [pair for pair in PAIRS if pair[0] in (permutation, antithetic, stratified, structured)]
"""Sums of marginal contributions."""
EVEN = [pair for pair in MARGINAL if pair[0] in (stratified, structured) or pair[1] is shapley]
"""Whose weights of an owner's contributions add up to 1."""


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(MARGINAL), tables, st.integers(0, N - 1), st.integers(0, 10**6))
def test_an_owner_who_adds_nothing_has_no_sampled_value_either(pair, table, null, seed):
    found = draw(*pair, N, least(*pair, N), seed)
    table = table[np.arange(2**N) & ~(1 << null)]
    assert (by_code(found) @ table)[null] == pytest.approx(0, abs=1e-9)
    if found.W[null].any():  # otherwise nothing was drawn of it
        with no_hidden_variance():
            assert covariance_of(found, table)[null, null] == pytest.approx(0, abs=1e-15)


@of(EVEN)
def test_marginal_contributions_in_an_additive_game_have_no_error(estimator, semivalue):
    worth = np.array([1.0, -2.0, 0.0, 3.5, 7.0])
    table = np.append(0.0, all_coalitions(5) @ worth) + 4.0
    for seed in range(3):
        found = draw(estimator, semivalue, 5, least(estimator, semivalue, 5), seed)
        np.testing.assert_allclose(by_code(found) @ table, worth, atol=1e-9)
        np.testing.assert_allclose(covariance_of(found, table), 0, atol=1e-18)


@pytest.mark.parametrize("estimator", SAMPLED[2:7], ids=named)
def test_leave_one_out_has_no_error(estimator):
    for n in (2, 3, 6):
        table = np.random.default_rng(n).normal(size=2**n)
        found = draw(estimator, leave_one_out, n, least(estimator, leave_one_out, n))
        np.testing.assert_allclose(by_code(found) @ table, values(leave_one_out, table), atol=1e-12)
        np.testing.assert_allclose(covariance_of(found, table), 0, atol=1e-24)


CERTAIN = [(e, n) for e in (stratified, stratified_svarm, one_for_all) for n in (2, 3)]


@pytest.mark.parametrize(("estimator", "n"), [*CERTAIN, (structured, 2)], ids=named)
def test_two_or_three_owners_leave_nothing_to_chance(estimator, n):
    table = np.random.default_rng(n).normal(size=2**n)
    for semivalue in ASKED:
        found = draw(estimator, semivalue, n, 100)
        np.testing.assert_allclose(by_code(found), by_code(exact(semivalue, n)), atol=1e-12)
        np.testing.assert_array_equal(covariance_of(found, table), np.zeros((n, n)))


# Unbiased, and as uncertain as they say.

GAMES = {
    "random": np.random.default_rng(0).normal(size=32),
    "airport": table_of(closed_form.airport([4.0, 1.0, 9.0, 4.0, 2.0])),
    "glove": table_of(closed_form.glove(4)),
    "unanimity_sum": table_of(closed_form.unanimity_sum(5, 12, np.random.default_rng(0))),
}
TRIED = [pair for pair in PAIRS if pair[1] in (first(pair[0]), ASKED[2], weighted_banzhaf)]
CHANCY = [pair for pair in TRIED if pair[0] is not regression]
CHANCY += [(permutation, leave_one_out), (antithetic, leave_one_out)]
"""Regression draws nothing at random among five owners: it has tests of its own."""
FALSE_ALARM = 1e-3
"""The chance that any of the bounds of one kind would be missed by estimators without a fault."""


def quantile(comparisons):
    """Bound on the largest of standard normal deviates, for all pairs together."""
    return norm.isf(FALSE_ALARM / 2 / comparisons / len(CHANCY))


@cache
def repeated(estimator, semivalue, runs=180, samples=100, n=5):
    """Weights of all coalitions, (runs, n, 2^n), and the draws."""
    found = [draw(estimator, semivalue, n, samples, seed) for seed in range(runs)]
    return np.array([by_code(each) for each in found]), found


def assert_unbiased(errors, comparisons):
    """The mean over runs, the first axis, is zero but for chance."""
    standard_error = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    assert np.all(np.abs(errors.mean(axis=0)) < quantile(comparisons) * standard_error + 1e-12)


@pytest.mark.slow
@of(CHANCY)
def test_the_means_of_weights_and_values_are_exact(estimator, semivalue):
    dense, _ = repeated(estimator, semivalue)
    assert_unbiased(dense - by_code(exact(semivalue, 5)), dense[0].size)
    for table in GAMES.values():
        assert_unbiased(dense @ table - values(semivalue, table), 5 * len(GAMES))
    found = dense @ GAMES["glove"]  # where owners 1 to 4 are alike
    assert_unbiased(found[:, 1:, None] - found[:, None, 1:], 6)


@pytest.mark.slow
@of(CHANCY)
def test_the_mean_covariance_is_that_of_the_values(estimator, semivalue, monkeypatch):
    monkeypatch.setattr(module, "student", Normal)
    dense, found = repeated(estimator, semivalue)
    for name in ("random", "unanimity_sum"):
        error = dense @ GAMES[name] - values(semivalue, GAMES[name])
        squares = np.einsum("ri,rj->rij", error, error)
        with no_hidden_variance():
            reported = np.array([covariance_of(each, GAMES[name]) for each in found])
        assert_unbiased(squares - reported, 2 * 15)


@pytest.mark.parametrize("estimator", [stratified_svarm, one_for_all])
def test_the_fewest_samples_report_the_variance_of_the_values_too(estimator, monkeypatch):
    monkeypatch.setattr(module, "student", Normal)
    n, table = 7, table_of(closed_form.airport(np.arange(1.0, 8)))
    found = [draw(estimator, shapley, n, 43, seed) for seed in range(400)]
    squares = [np.sum((by_code(each) @ table - values(shapley, table)) ** 2) for each in found]
    short = np.array(squares) - [np.trace(covariance_of(each, table)) for each in found]
    assert short.mean() < 3 * short.std() / np.sqrt(len(short))


# Few draws of each owner and size: there the skew of each counts, not that of their sum.
SKEWED = [e for e in SAMPLED if e not in (stratified, structured)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "game"),
    [*((e, "random") for e in SAMPLED), *((e, "airport") for e in SKEWED)],
    ids=named,
)
def test_intervals_hold_the_truth_as_often_as_they_say(estimator, game):
    n, runs, semivalue = 6, 200, first(estimator)
    if game == "random":
        table = np.random.default_rng(0).normal(size=2**n)
    else:
        table = table_of(closed_form.airport([4.0, 1.0, 9.0, 4.0, 2.0, 6.0]))
    samples = 50 if estimator is regression else 500
    _, found = repeated(estimator, semivalue, runs, samples, n)
    error = np.array([by_code(each) @ table for each in found]) - values(semivalue, table)
    sd = np.sqrt([np.diag(covariance_of(each, table)) for each in found])
    inside = (np.abs(error) <= norm.ppf(0.975) * sd).mean(axis=1)
    # Two-sided intervals of Student miss by this much for a mean with skewness and excess
    # kurtosis (Hall 1992, section 2.6, q2), taken from the errors.
    z = norm.ppf(0.975)
    skewed = np.mean(skew(error) ** 2) * (z**4 + 2 * z**2 - 3) / 18
    heavy = np.mean(np.abs(kurtosis(error))) * abs(z**2 - 3) / 12
    allowance = 2 * z * norm.pdf(z) * (skewed + heavy)
    # Owners of one run depend on each other: as if all of them together were one.
    binomial = norm.isf(FALSE_ALARM / 2 / len(SAMPLED) / 2) * np.sqrt(0.95 * 0.05 / runs)
    assert abs(inside.mean() - 0.95) < binomial + allowance
    assert allowance < 0.03  # or nothing is shown


LARGER = {
    "airport": closed_form.airport(np.linspace(1, 5, 12)),
    "glove": closed_form.glove(3),
    "majority": closed_form.majority(12),
    "unanimity": closed_form.unanimity(12, [2, 7]),
    "unanimity_sum": closed_form.unanimity_sum(12, 30, np.random.default_rng(1)),
}


@pytest.mark.parametrize("game", LARGER.values(), ids=LARGER)
def test_known_games_are_valued_within_the_reported_error(game):
    for estimator in SAMPLED:
        if estimator is maximum_sample_reuse:
            continue
        found = draw(estimator, shapley, game.n, 3000, seed=1)
        utilities = game.utility(found.members)
        sd = np.sqrt(np.diag(found.sampling_covariance(utilities, 0.0)))
        error = np.abs(found.W @ utilities - game.shapley)
        assert np.all(error <= norm.isf(FALSE_ALARM / 2 / game.n / 45) * sd + 1e-9), estimator


# Literal versions.


def listed(entries):
    """Owner, coalition, weight and unit of every entry."""
    return zip(entries.owner.tolist(), entries.coalition, entries.weight, entries.unit, strict=True)


@pytest.mark.parametrize("n", [2, 6])
def test_permutation_is_what_the_paper_prints(n):
    found = draw(permutation, shapley, n, 7 * n + 1, seed=n)
    rows, entries = rows_of(found), found.entries
    orders = defaultdict(lambda: [None] * n)
    for owner, coalition, weight, unit in listed(entries):
        if weight > 0:  # the coalition it has just joined tells its place
            orders[unit][len(rows[coalition]) - 1] = owner
    assert len(orders) == 7
    table = np.random.default_rng(n).normal(size=2**n)
    table[0] = 0.0
    C, phi = [], np.zeros(n)
    for _, pi in sorted(orders.items()):
        assert sorted(pi) == list(range(n))
        S, prev = set(), 0.0
        for i in pi:
            S = S | {i}
            if tuple(sorted(S)) not in C:
                C.append(tuple(sorted(S)))  # Alg. 3 l. 9
            curr = table[code(S)]
            phi[i] += (curr - prev) / len(orders)  # Alg. 4 l. 13
            prev = curr
    assert rows[:-1] == C
    np.testing.assert_allclose(by_code(found) @ table, phi, atol=1e-12)


def contributions(found):
    """Of every unit: (owner, coalition without it, with it, weight)."""
    rows, entries, units = rows_of(found), found.entries, defaultdict(list)
    ends = defaultdict(lambda: ([], []))
    for owner, coalition, weight, unit in listed(entries):
        ends[unit, owner][int(weight > 0)].append((rows[coalition], abs(weight)))
    for (unit, owner), (without, joined) in ends.items():
        remaining = dict(without)
        assert len(remaining) == len(without) == len(joined)
        for C, weight in joined:
            before = tuple(i for i in C if i != owner)
            assert len(before) == len(C) - 1
            assert remaining.pop(before) == weight
            units[unit].append((owner, before, C, weight))
    return units


@pytest.mark.parametrize("n", [3, 4, 7])
def test_antithetic_goes_through_every_order_backwards_as_well(n):
    found = draw(antithetic, shapley, n, 10 * n, seed=n)
    units = contributions(found)
    assert len(units) == 5
    for marginals in units.values():
        before = defaultdict(list)
        for owner, without, _, weight in marginals:
            assert weight == pytest.approx(1 / 10)
            before[owner].append(without)
        for owner, (one, other) in before.items():
            assert sorted([*one, *other, owner]) == list(range(n))


@pytest.mark.parametrize("semivalue", ASKED, ids=named)
def test_stratified_draws_every_owner_and_size_equally_often(semivalue):
    n, m = 6, 7
    p = semivalue.chances(n)
    sizes = np.flatnonzero(p)
    found = draw(stratified, semivalue, n, 2 * n * len(sizes) * m, seed=1)
    table = np.random.default_rng(0).normal(size=2**n)
    marginals = defaultdict(list)
    for ((owner, without, joined, weight),) in contributions(found).values():
        assert weight == pytest.approx(p[len(without)] / m)
        marginals[owner, len(without)].append(table[code(joined)] - table[code(without)])
    expected = np.zeros(n)
    for i in range(n):
        for c in sizes.tolist():
            others = [j for j in range(n) if j != i]
            if comb(n - 1, c) <= m:  # gone through completely
                assert (i, c) not in marginals
                both = ((code((*C, i)), code(C)) for C in combinations(others, c))
                marginals[i, c] = [table[joined] - table[without] for joined, without in both]
            else:
                assert len(marginals[i, c]) == m
            expected[i] += p[c] * np.mean(marginals[i, c])
    np.testing.assert_allclose(by_code(found) @ table, expected, atol=1e-12)


@pytest.mark.parametrize("semivalue", ASKED, ids=named)
def test_structured_exchanges_every_owner_for_who_stands_in_the_place(semivalue):
    n, m = 6, 4
    p = semivalue.chances(n)
    places = np.flatnonzero(p).tolist()
    found = draw(structured, semivalue, n, (n + 1) * len(places) * m, seed=1)
    table = np.random.default_rng(0).normal(size=2**n)
    everyone, expected, served = set(range(n)), np.zeros(n), Counter()
    for marginals in contributions(found).values():
        first_members = {owner: set(without) for owner, without, _, _ in marginals}
        c = len(marginals[0][1])
        served[c] += 1
        assert len({code(row) for _, *both, _ in marginals for row in both}) == n + 1
        # Who is not before the place meets those who are; at least one of them stands there.
        (before,) = (
            set(rows)
            for rows, times in Counter(map(frozenset, first_members.values())).items()
            if all(first_members[i] == rows for i in everyone - rows)
        )
        assert len(before) == c
        stands = {next(iter(first_members[i] - before)) for i in before}
        assert len(stands) == 1
        (o,) = stands
        for i in range(n):
            without = before if i not in before else before - {i} | {o}
            assert first_members[i] == without
            expected[i] += p[c] / m * (table[code({*without, i})] - table[code(without)])
    assert served == {c: m for c in places if 0 < c < n - 1}
    for i in range(n):  # first and last, without chance
        alone, last = table[code([i])] - table[0], table[-1] - table[code(everyone - {i})]
        expected[i] += p[0] * alone + p[-1] * last
    np.testing.assert_allclose(by_code(found) @ table, expected, atol=1e-12)


def drawn_by_stratum(found):
    """Coalitions of every (owner, stratum), with duplicates."""
    rows, entries, cells = rows_of(found), found.entries, defaultdict(list)
    for stratum, (owner, coalition, _, _) in zip(entries.stratum, listed(entries), strict=True):
        cells[owner, int(stratum)].append(rows[coalition])
    return cells


def mean_of(table, coalitions):
    return np.mean([table[code(C)] for C in coalitions])


def drawn_once(found):
    """The coalition of every unit."""
    rows, entries = rows_of(found), found.entries
    return [rows[c] for _, c in sorted(set(zip(entries.unit, entries.coalition, strict=True)))]


@pytest.mark.parametrize("semivalue", ASKED, ids=named)
def test_svarm_is_a_mean_with_minus_a_mean_without(semivalue):
    n, samples = 5, 90
    found = draw(svarm, semivalue, n, samples, seed=2)
    table = np.random.default_rng(0).normal(size=2**n)
    cells = drawn_by_stratum(found)
    expected = np.zeros(n)
    for i in range(n):
        assert all(i in C for C in cells[i, 1])
        assert not any(i in C for C in cells[i, 0])
        expected[i] = mean_of(table, cells[i, 1]) - mean_of(table, cells[i, 0])
    np.testing.assert_allclose(by_code(found) @ table, expected, atol=1e-12)
    # Of each kind one for every owner to begin with, and half of the rest for all they serve.
    kinds = np.unique(np.stack([found.entries.unit, found.entries.stratum]), axis=1)[1]
    assert np.bincount(kinds).tolist() == [samples / 2] * 2
    assert len(drawn_once(found)) == samples


@of([pair for pair in PAIRS if pair[0] in (stratified_svarm, one_for_all)])
@pytest.mark.parametrize("n", [4, 7])
def test_sizes_are_valued_one_by_one(estimator, semivalue, n):
    found = draw(estimator, semivalue, n, least(estimator, semivalue, n) + 40, seed=n)
    size = found.members.sum(axis=1)
    for complete in (1, n - 1, n):
        assert np.sum(size == complete) == comb(n, complete)
    table = np.random.default_rng(n).normal(size=2**n)
    p = semivalue.chances(n)
    coalitions = [C for s in (1, n - 1, n) for C in combinations(range(n), s)]
    if semivalue is not leave_one_out:
        coalitions += drawn_once(found)
    expected = np.full(n, -p[0] * table[0])
    for i in range(n):
        for s in range(1, n + 1):
            with_i = [C for C in coalitions if len(C) == s and i in C]
            without = [C for C in coalitions if len(C) == s and i not in C]
            if p[s - 1]:
                expected[i] += p[s - 1] * mean_of(table, with_i)
            if s < n and p[s]:
                expected[i] -= p[s] * mean_of(table, without)
    np.testing.assert_allclose(by_code(found) @ table, expected, atol=1e-12)


@pytest.mark.parametrize("estimator", [stratified_svarm, one_for_all])
def test_sizes_between_are_drawn_by_their_chances(estimator):
    n, runs, extra = 9, 40, 300
    s = np.arange(2, n - 1)
    weight = 1 / np.minimum(s, n - s) if estimator is stratified_svarm else (s * (n - s)) ** -0.5
    needed = least(estimator, shapley, n)
    seen = np.zeros(n + 1)
    for seed in range(runs):
        found = draw(estimator, shapley, n, needed + extra, seed)
        seen += np.bincount([len(C) for C in drawn_once(found)], minlength=n + 1)
    covers = runs * 2 * np.ceil(n / np.minimum(s, n - s))
    expected = runs * extra * weight / weight.sum()
    z = (seen[2:-2] - covers - expected) / np.sqrt(expected * (1 - weight / weight.sum()))
    assert np.abs(z).max() < norm.isf(1e-4 / 2 / len(s))


def test_one_sample_fits_all_semivalues():
    full_support = [v for v in ASKED if v is not leave_one_out]
    found = [draw(one_for_all, v, 7, 150, seed=3) for v in [*full_support, leave_one_out]]
    for other in found[1:]:
        np.testing.assert_array_equal(other.members, found[0].members)
    assert not np.array_equal(found[0].W, found[1].W)


@of([(maximum_sample_reuse, v) for v in ONLY[maximum_sample_reuse]])
def test_reuse_is_a_mean_with_minus_a_mean_without(estimator, semivalue):
    n, samples = 5, 60
    found = draw(estimator, semivalue, n, samples, seed=1)
    table = np.random.default_rng(0).normal(size=2**n)
    coalitions = drawn_once(found)
    assert len(coalitions) == samples

    def mean_where(i, inside):
        return mean_of(table, [C for C in coalitions if (i in C) == inside])

    expected = [mean_where(i, True) - mean_where(i, False) for i in range(n)]
    np.testing.assert_allclose(by_code(found) @ table, expected, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_group_testing_solves_for_the_differences_between_owners(n):
    T = 79
    found = draw(group_testing, shapley, n, T + 1, seed=n)
    table = np.random.default_rng(n).normal(size=2**n)
    groups = drawn_once(found)
    assert len(groups) == T
    beta = np.array([[i in C for i in range(n)] for C in groups])
    u = np.array([table[code(C)] for C in groups])
    Z = 2 * sum(1 / k for k in range(1, n))
    apart = beta[:, :, None] * 1.0 - beta[:, None, :]
    differences = Z / T * np.einsum("t,tij->ij", u, apart)
    # Least squares: s_i - s_j = differences, and the sum of all is what all are worth.
    pairs = [(i, j) for i in range(n) for j in range(n)]
    A = np.array([[(k == i) * 1.0 - (k == j) for k in range(n)] for i, j in pairs])
    A = np.append(A, 1e6 * np.ones((1, n)), axis=0)
    b = np.append([differences[i, j] for i, j in pairs], 1e6 * (table[-1] - table[0]))
    solved = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(by_code(found) @ table, solved, atol=1e-8)


@pytest.mark.parametrize("estimator", [*SAMPLED[2:7], regression], ids=named)
def test_the_first_coalitions_are_not_all_of_one_kind(estimator):
    # Whoever evaluates the first ones only, as drawn, must meet all sizes and all owners.
    n = 10
    found = draw(estimator, shapley, n, 1200)
    sizes = found.members.sum(axis=1)
    first = len(sizes) // 4
    assert set(range(2, n - 1)) <= set(sizes[:first].tolist())
    share = found.members[:first].mean(axis=0)
    assert np.all(np.abs(share - 0.5) < 5 * 0.5 / np.sqrt(first))
