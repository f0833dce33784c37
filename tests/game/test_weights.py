from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import t as student

from dupre import InputError, banzhaf, beta_shapley, leave_one_out, shapley
from dupre.game import weights as module
from dupre.game.coalitions import all_coalitions
from dupre.game.weights import (
    CERTAIN,
    Entries,
    Weights,
    additive_utilities,
    collect_columns,
    collect_weights,
    distinct_coalitions,
)
from entries import list_entries
from owners_and_games import no_hidden_variance

quick = settings(deadline=None, max_examples=40)
SEMIVALUES = [shapley, banzhaf, leave_one_out, beta_shapley(4, 1), beta_shapley(1, 4)]
every_semivalue = pytest.mark.parametrize("semivalue", SEMIVALUES, ids=lambda s: s.name)
drawn_rows = st.tuples(st.integers(1, 25), st.sampled_from([1, 2, 3, 8, 9, 70])).flatmap(
    lambda shape: arrays(np.bool_, shape, elements=st.booleans())
)
seeds = st.integers(0, 10**6)


def wider(degrees):
    return student.ppf(0.975, degrees) / student.ppf(0.975, 1e12)


@quick
@given(drawn_rows)
def test_distinct_coalitions_come_in_order_of_appearance_and_never_empty(drawn):
    members, which = distinct_coalitions(drawn)
    seen = list(dict.fromkeys(tuple(row) for row in drawn.tolist() if any(row)))
    assert [tuple(row) for row in members.tolist()] == seen
    with_nobody = np.append(members, np.zeros((1, drawn.shape[1]), dtype=bool), axis=0)
    np.testing.assert_array_equal(with_nobody[which], drawn)


def test_distinct_coalitions_differ_in_the_last_of_many_owners_and_none_weigh_nothing():
    drawn = np.zeros((3, 300), dtype=bool)
    drawn[:, 0], drawn[1, 299] = True, True
    members, which = distinct_coalitions(drawn)
    assert len(members) == 2
    assert which.tolist() == [0, 1, 0]
    none = np.empty((0, 4), dtype=bool)
    assert module.coalition_weights(shapley, none).shape == (4, 0)


def a_draw(seed, n=4, draws=30):
    """Coalitions with duplicates and empty ones, their weights, units and strata."""
    rng = np.random.default_rng(seed)
    drawn = rng.random((draws, n)) < 0.5
    drawn[::7] = False
    weight = rng.normal(size=(n, draws)) * (rng.random((n, draws)) < 0.6)
    unit = rng.integers(CERTAIN, 8, size=draws)
    return drawn, weight, unit, rng.integers(0, 3, size=draws)


@quick
@given(seeds)
def test_collecting_keeps_values_adds_up_duplicates_and_tells_what_is_not_certain(seed):
    drawn, weight, unit, stratum = a_draw(seed)
    weights = collect_weights(drawn, weight, unit, stratum)
    table = np.random.default_rng(seed).normal(size=16)
    as_drawn = weight @ table[drawn @ 2 ** np.arange(4)]
    of_members = table[weights.members @ 2 ** np.arange(4)]
    found = weights.W @ of_members + weights.empty * table[0]
    np.testing.assert_allclose(found, as_drawn, atol=1e-12)

    assert len({tuple(row) for row in weights.members.tolist()}) == len(weights.members)
    for row, column in zip(weights.members, weights.W.T, strict=True):
        same = (drawn == row).all(axis=1)
        assert same.any()
        np.testing.assert_allclose(column, weight[:, same].sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(weights.empty, weight[:, ~drawn.any(axis=1)].sum(axis=1), atol=1e-12)

    certain = collect_weights(drawn, weight * (unit == CERTAIN), unit, stratum)
    entries = weights.entries
    W = np.append(weights.W, weights.empty[:, None], axis=1)
    np.subtract.at(W, (entries.owner, entries.coalition), entries.weight)
    np.testing.assert_allclose(W[:, :-1], certain.W, atol=1e-12)
    np.testing.assert_allclose(W[:, -1], certain.empty, atol=1e-12)
    assert np.all(entries.unit != CERTAIN)
    assert len(entries.unit) == np.count_nonzero(weight[:, unit != CERTAIN])


def test_a_weight_of_zero_is_an_entry_where_it_counts():
    drawn = np.array([[True, False], [True, True]])
    weight = np.array([[0.0, 1.0], [0.0, 0.0]])
    unit, stratum = np.arange(2), np.zeros(2, dtype=np.int64)
    assert len(collect_weights(drawn, weight, unit, stratum).entries.unit) == 1
    counts = np.array([[True, True], [False, True]])
    collected = collect_weights(drawn, weight, unit, stratum, counts=counts)
    entries = collected.entries
    found = sorted(zip(entries.owner.tolist(), entries.unit.tolist(), strict=True))
    assert found == [(0, 0), (0, 1), (1, 1)]
    # Terms 0 and 1 of owner 0: their sum has twice the variance of one.
    covariance = collected.sampling_covariance(np.array([5.0, 3.0]), 0.0)
    assert covariance[0, 0] == pytest.approx(2 * np.var([0, 3], ddof=1) * wider(1) ** 2)


@every_semivalue
def test_a_coalition_weighs_omega_of_the_others_for_members_and_minus_omega_for_the_rest(semivalue):
    n, members = 5, all_coalitions(5)
    omega = np.exp(semivalue.log_weights(n))
    W = module.coalition_weights(semivalue, members)
    assert W.shape == (n, len(members))
    for i, (c, row) in product(range(n), enumerate(members)):
        expected = omega[row.sum() - 1] if row[i] else -omega[row.sum()]
        assert W[i, c] == expected


def additive_basis(members):
    """Who is in and how many are in, (b + 1, 2n + 1); the last row is the empty coalition."""
    rows = np.append(members, np.zeros((1, members.shape[1]), dtype=bool), axis=0)
    sizes = rows.sum(axis=1)[:, None] == np.arange(members.shape[1] + 1)
    return np.append(rows, sizes, axis=1).astype(float)


def literal_covariance(entries, u, n, learned=0):
    """One term at a time, as the docstrings say; with Student's factor of each owner."""
    terms = {}
    for owner, coalition, weight, unit, stratum in zip(
        entries.owner, entries.coalition, entries.weight, entries.unit, entries.stratum, strict=True
    ):
        key = (owner, stratum, unit)
        terms[key] = terms.get(key, 0.0) + weight * u[coalition]
    cells = {}
    for (owner, stratum, unit), term in terms.items():
        cells.setdefault((owner, stratum), {})[unit] = term
    deviation, variances = {}, {}
    for (owner, stratum), cell in cells.items():
        m = len(cell)
        if m == 1:
            continue
        freedom = max(m - 1 - learned, 1)
        mean = sum(cell.values()) / m
        for unit, term in cell.items():
            deviation[owner, stratum, unit] = (term - mean) * np.sqrt(m / freedom)
        variance = m * sum((term - mean) ** 2 for term in cell.values()) / freedom
        variances[owner, stratum] = variance, freedom
    for (owner, stratum), cell in cells.items():
        if len(cell) == 1:
            deviation[owner, stratum, next(iter(cell))] = 0.0
    influence = np.zeros((n, int(entries.unit.max()) + 1))
    for (owner, _, unit), value in deviation.items():
        influence[owner, unit] += value
    factor = np.ones(n)
    for i in range(n):
        own = [vf for (o, _), vf in variances.items() if o == i]
        total, below = sum(v for v, _ in own), sum(v**2 / f for v, f in own)
        if below:
            factor[i] = wider(max(total**2 / below, 1.0))
        else:
            factor[i] = wider(1.0)
    return influence @ influence.T * np.outer(factor, factor)


@quick
@given(seed=seeds, n=st.integers(1, 4), units=st.integers(1, 9), strata=st.integers(1, 3))
def test_the_covariance_equals_a_literal_one(seed, n, units, strata):
    rng = np.random.default_rng(seed)
    t, b = int(rng.integers(1, 60)), 6
    entries = Entries(
        rng.integers(0, n, t),
        rng.integers(0, b + 1, t),
        rng.normal(size=t),
        3 * rng.integers(0, units, t),  # units need not be numbered without gaps
        rng.integers(0, strata, t),
    )
    members = np.arange(1, b + 1)[:, None] >> np.arange(4) & 1 == 1
    weights = Weights(members, np.zeros((n, b)), np.zeros(n), entries)
    u = rng.normal(size=b + 1)
    expected = literal_covariance(entries, u, n)
    with no_hidden_variance():
        found = weights.sampling_covariance(u[:b], u[b])
    seen = np.isin(np.arange(n), entries.owner)
    both = (matrix[np.ix_(seen, seen)] for matrix in (found, expected))
    np.testing.assert_allclose(*both, rtol=1e-7, atol=1e-12)


def test_terms_that_happen_to_be_alike_are_as_uncertain_as_those_of_others():
    # Three owners, two strata of two draws: owner 0 has equal terms in stratum 0.
    owner, draw, stratum = (axis.ravel() for axis in np.meshgrid(range(3), range(2), range(2)))
    table = np.array([[[5.0, 5.0], [1.0, 2.0]], [[1.0, 4.0], [2.0, 6.0]], [[0.0, 1.0], [3.0, 3.5]]])
    u = table[owner, stratum, draw]
    entries = Entries(owner, np.arange(12), np.ones(12), stratum * 2 + draw, stratum)
    weights = Weights(np.eye(12, dtype=bool), np.zeros((3, 12)), np.zeros(3), entries)
    found = weights.sampling_covariance(u, 0.0)
    with no_hidden_variance():
        plain = weights.sampling_covariance(u, 0.0)
    usual = (0 + 3.0**2 + 1.0**2) / 3  # m s² of each owner in stratum 0, m = 2
    freedom = (1.0**2 + 0) ** 2 / 1.0**4
    more = np.diag([usual / 2 * wider(freedom) ** 2, 0, 0])
    np.testing.assert_allclose(found, plain + more, rtol=1e-9)


def test_roughness_adds_the_squares_of_the_weights():
    weights, utilities, _ = iid(10)
    rough = np.linspace(0.1, 1, len(utilities))
    plain = weights.sampling_covariance(utilities, 0.0)
    more = weights.sampling_covariance(utilities, 0.0, rough) - plain
    entries = weights.entries
    for i in range(3):
        mine = entries.owner == i
        expected = np.sum(entries.weight[mine] ** 2 * rough[entries.coalition[mine]])
        assert more[i, i] == pytest.approx(expected)
    np.testing.assert_allclose(more - np.diag(np.diag(more)), 0, atol=1e-12)


def iid(m, n=3, seed=0):
    """Means of m independent draws of a coalition: each draw weighs 1 / m for every owner."""
    rng = np.random.default_rng(seed)
    drawn = rng.random((m, 6)) < 0.5
    drawn[:, 0] = True
    weight = np.repeat(rng.normal(size=(n, 1)), m, axis=1) / m
    unit = np.arange(m)
    table = rng.normal(size=64)
    members, column = distinct_coalitions(drawn)
    owner, stratum = np.repeat(np.arange(n), m), np.zeros(n * m, dtype=np.int64)
    entries = Entries(owner, np.tile(column, n), weight.ravel(), np.tile(unit, n), stratum)
    utilities = table[members @ 2 ** np.arange(6)]
    weights = Weights(members, np.zeros((n, len(members))), np.zeros(n), entries)
    return weights, utilities, weight * m * utilities[column]


@pytest.mark.parametrize("m", [2, 3, 10, 400])
def test_intervals_of_a_mean_are_those_of_student(m):
    weights, utilities, terms = iid(m)
    covariance = weights.sampling_covariance(utilities, 0.0)
    expected = np.cov(terms) / m * wider(m - 1) ** 2
    np.testing.assert_allclose(covariance, expected, rtol=1e-9)
    half_width = student.ppf(0.975, m - 1) * terms.std(axis=1, ddof=1) / np.sqrt(m)
    np.testing.assert_allclose(1.959963985 * np.sqrt(np.diag(covariance)), half_width, rtol=1e-8)


def test_strata_have_the_degrees_of_freedom_of_welch_and_one_draw_is_as_the_worst():
    rng = np.random.default_rng(1)
    one, two = rng.normal(size=5), 3 * rng.normal(size=9)
    members, each = np.eye(14, dtype=bool), np.arange(14)
    weight, stratum = np.repeat([1 / 5, -1 / 9], [5, 9]), np.repeat([0, 1], [5, 9])
    entries = Entries(0 * each, each, weight, each, stratum)
    weights = Weights(members, np.zeros((1, 14)), np.zeros(1), entries)
    parts = np.array([one.var(ddof=1) / 5, two.var(ddof=1) / 9])
    welch = parts.sum() ** 2 / (parts[0] ** 2 / 4 + parts[1] ** 2 / 8)
    expected = parts.sum() * wider(welch) ** 2
    found = weights.sampling_covariance(np.append(one, two), 0.0)
    assert found[0, 0] == pytest.approx(expected, rel=1e-9)

    weights, utilities, _ = iid(6, n=1)
    entries = weights.entries
    old = (entries.owner, entries.coalition, entries.weight, entries.unit, entries.stratum)
    more = Entries(*map(np.append, old, (0, 0, 1.0, 6, 1)))
    alone = Weights(weights.members, weights.W, weights.empty, more)
    before = weights.sampling_covariance(utilities, 0.0)
    np.testing.assert_allclose(alone.sampling_covariance(utilities, 0.0), 2 * before, rtol=1e-12)


def test_weights_that_are_not_random_have_no_error_and_a_game_upside_down_the_same():
    members = all_coalitions(3)
    W = module.coalition_weights(shapley, members)
    exact = Weights(members, W, np.full(3, -1 / 3))
    drawn = np.append(members, np.zeros((1, 3), dtype=bool), axis=0)
    weight = np.append(exact.W, exact.empty[:, None], axis=1)
    certain = collect_weights(drawn, weight, np.full(8, CERTAIN), np.zeros(8, dtype=np.int64))
    for weights in (exact, certain):
        covariance = weights.sampling_covariance(np.arange(7.0), 0.0)
        np.testing.assert_array_equal(covariance, np.zeros((3, 3)))
    # Three draws in stratum 0, the first of which is also the only one in stratum 1.
    unit, nobody = np.array([0, 1, 2, 0]), np.zeros(4, dtype=np.int64)
    entries = Entries(nobody, unit, np.ones(4), unit, np.array([0, 0, 0, 1]))

    weights = Weights(np.eye(3, dtype=bool), np.zeros((1, 3)), np.zeros(1), entries)
    u = np.array([4.0, 1.0, 0.0])
    found, expected = (weights.sampling_covariance(sign * u, 0.0) for sign in (-1, 1))
    np.testing.assert_allclose(found, expected)


@quick
@given(seed=seeds, factor=st.floats(0, 9))
def test_covariances_are_symmetric_positive_and_quadratic_in_the_utilities(seed, factor):
    weights = collect_weights(*a_draw(seed))
    u = np.random.default_rng(seed).normal(size=len(weights.members) + 1)
    once = weights.sampling_covariance(u[:-1], u[-1])
    np.testing.assert_allclose(once, once.T, atol=1e-12)
    assert np.linalg.eigvalsh(once).min() > -1e-9 * max(np.abs(once).max(), 1)
    scaled = weights.sampling_covariance(factor * u[:-1], factor * u[-1])
    np.testing.assert_allclose(scaled, factor**2 * once, rtol=1e-6, atol=1e-9)


@quick
@given(seeds)
def test_neither_the_numbers_of_units_nor_the_order_of_entries_matters(seed):
    rng = np.random.default_rng(seed)
    weights = collect_weights(*a_draw(seed))
    e, order = weights.entries, rng.permutation(len(weights.entries.unit))
    columns = (e.owner, e.coalition, e.weight, rng.permutation(100)[e.unit], e.stratum)
    shuffled = Entries(*(column[order] for column in columns))
    other = Weights(weights.members, weights.W, weights.empty, shuffled)
    u = rng.normal(size=len(weights.members))
    found, expected = (each.sampling_covariance(u, 0.5) for each in (other, weights))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def with_control():
    """A mean of 40 draws of 3 owners, and a least squares fit of an additive game to them."""
    rng = np.random.default_rng(0)
    drawn = rng.random((40, 3)) < 0.5
    weight, stratum = rng.normal(size=(3, 40)), np.zeros(40, dtype=np.int64)
    plain = collect_weights(drawn, weight, np.arange(40), stratum)
    basis = additive_basis(plain.members)
    basis[:, 3:] = 0.0
    control = np.linalg.pinv(basis)
    return Weights(plain.members, plain.W, plain.empty, plain.entries, control, 2), plain, rng


def test_the_control_leaves_no_error_of_what_it_learns_and_fewer_degrees_of_freedom():
    weights, plain, rng = with_control()
    u = weights.members @ rng.normal(size=3)
    np.testing.assert_allclose(weights.sampling_covariance(u, 0.0), 0, atol=1e-24)
    assert np.diag(plain.sampling_covariance(u, 0.0)).min() > 1e-3
    weights, _, rng = with_control()
    u = rng.normal(size=len(weights.members) + 1)
    basis = additive_basis(weights.members)
    left = u - basis @ (weights.control @ u)
    found = weights.sampling_covariance(u[:-1], u[-1])
    # Three worths, of which the sum is no choice, and no levels.
    expected = literal_covariance(weights.entries, left, 3, learned=2)
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_too_few_samples_are_refused_with_the_number_needed_and_other_advice():
    check_samples = module.check_samples
    assert check_samples("svarm", 40, 40, 10) == 40
    with pytest.raises(InputError, match="svarm needs at least 4,000 samples for 1000 owners") as e:
        check_samples("svarm", 3_999, 4_000, 1000)
    assert "got 3,999" in str(e.value)
    assert "regression" in str(e.value)
    with pytest.raises(InputError) as error:
        check_samples("regression", 3, 62, 10)
    assert "regression" not in str(error.value).removeprefix("the estimator regression needs")


def usable():
    """Weights as an estimator of three owners may return them."""
    drawn = np.eye(3, dtype=bool)
    return collect_weights(drawn, np.eye(3), np.arange(3), np.zeros(3, dtype=np.int64))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entries": None}, "with their random entries"),
        ({"W": np.ones((3, 4))}, "W \\(3, b\\)"),
        ({"W": np.full((3, 3), np.nan)}, "finite weights"),
        ({"members": np.ones((3, 3), dtype=bool)}, "distinct, non-empty"),
        ({"members": np.zeros((3, 3), dtype=bool)}, "distinct, non-empty"),
        ({"members": np.eye(3, dtype=int)}, "boolean members"),
        ({"empty": np.float64(1)}, "empty \\(3,\\)"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(change, message):
    check, weights = module.check_weights, usable()
    assert check(weights, 3) is weights
    with pytest.raises(InputError, match=message):
        check(replace(weights, **change), 3)
    for returned in (None, np.eye(3)):
        with pytest.raises(InputError, match=r"must return dupre\.estimators\.Weights"):
            check(returned, 3)


# Columns: draws that enter the values of all owners


@pytest.fixture(params=[3, 2_048])
def few_at_a_time(request, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", request.param)


@pytest.mark.usefixtures("few_at_a_time")
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


@pytest.mark.usefixtures("few_at_a_time")
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


@pytest.mark.usefixtures("few_at_a_time")
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


@pytest.mark.usefixtures("few_at_a_time")
def test_draws_that_are_all_certain_have_no_error():
    drawn = all_coalitions(3)
    ones = np.ones(len(drawn))
    found, _ = collect_columns(drawn, (ones, -ones), np.full(len(drawn), CERTAIN))
    assert not len(found.entries)
    np.testing.assert_array_equal(found.sampling_covariance(ones, 0.0), np.zeros((3, 3)))
