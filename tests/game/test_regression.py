from math import comb

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import closed_form
from closed_form import table_of
from dupre import Semivalue, banzhaf, beta_shapley, leave_one_out, shapley
from dupre.game import weights as module
from dupre.game.coalitions import all_coalitions
from dupre.game.estimators import exact
from dupre.game.regression import DRAWS_PER_LEVEL, LEVELS_FROM, _levels, regression
from dupre.game.semivalues import log_binomial
from dupre.game.weights import additive_utilities
from entries import list_entries
from owners_and_games import Normal, by_code, weighted_banzhaf

RANDOM = [shapley, banzhaf, beta_shapley(4, 1), beta_shapley(1, 4), weighted_banzhaf]
SEMIVALUES = [*RANDOM, leave_one_out]
every_semivalue = pytest.mark.parametrize("semivalue", SEMIVALUES, ids=lambda s: s.name)
every_random = pytest.mark.parametrize("semivalue", RANDOM, ids=lambda s: s.name)


def joins_exactly(k):
    """All the chance is on joining k others: most weights are zero."""
    return Semivalue(f"after {k}", lambda c, n: np.where(c == k, -log_binomial(n - 1, c), -np.inf))


def drawn(semivalue, n, samples, seed=0):
    return regression(semivalue, n, samples, np.random.default_rng(seed))


def pairs(found):
    """How many complement pairs were drawn."""
    return found.entries.units


def values(found, table):
    utilities = table[found.members @ 2 ** np.arange(len(found.W))]
    return found.W @ utilities + found.empty * table[0]


@every_semivalue
def test_samples_that_cover_everything_give_the_exact_weights(semivalue):
    for n in (2, 3, 5, 8):
        found = drawn(semivalue, n, max(2**n - 1, 6 * n + 2))
        np.testing.assert_allclose(by_code(found), by_code(exact(semivalue, n)), atol=1e-12)
        utilities = np.random.default_rng(n).normal(size=len(found.members))
        np.testing.assert_array_equal(found.sampling_covariance(utilities, 0.0), np.zeros((n, n)))


def test_sizes_that_their_share_covers_are_complete_and_leave_one_out_needs_no_draw():
    found = drawn(leave_one_out, 100, 602)
    assert sorted(found.members.sum(axis=1).tolist()) == [99] * 100 + [100]
    utilities = np.exp(found.members @ np.random.default_rng(0).normal(size=100) / 9)
    everyone = utilities[found.members.all(axis=1)]
    owner, row = np.nonzero(~found.members.T)
    assert owner.tolist() == list(range(100))
    np.testing.assert_allclose(found.W @ utilities, everyone - utilities[row])

    n, samples = 10, 300
    s = np.arange(1, n)
    left, share = samples - 1, 1 / (s * (n - s))
    sizes = drawn(shapley, n, samples).members.sum(axis=1)
    for outer in range(1, 5):
        wanted = left * 2 * share[outer - 1] / share[outer - 1 : n - outer].sum()
        fits = 2 * comb(n, outer) <= wanted
        assert fits == (outer <= 2)
        complete = [np.sum(sizes == size) == comb(n, size) for size in (outer, n - outer)]
        assert complete == [fits, fits]
        left -= 2 * comb(n, outer)


@every_random
def test_coalitions_are_drawn_together_with_their_complements(semivalue):
    found = drawn(semivalue, 9, 120, seed=1)
    rows = {tuple(row) for row in found.members.tolist()}
    middle = [row for row in rows if not all(row)]
    assert all(tuple(not inside for inside in row) in rows for row in middle)


@every_random
def test_additive_games_are_exact_after_any_draws(semivalue):
    n, empty = 9, 2.0
    worth = np.random.default_rng(n).normal(size=n)
    for seed in range(8):
        found = drawn(semivalue, n, 6 * n + 2, seed)
        assert pairs(found) > 0
        utilities = found.members @ worth + empty
        np.testing.assert_allclose(found.W @ utilities + found.empty * empty, worth, atol=1e-9)
        np.testing.assert_allclose(found.sampling_covariance(utilities, empty), 0, atol=1e-18)
    for n in (30, 64, 100):
        worth = np.random.default_rng(n).normal(size=n)
        for seed, samples in enumerate((6 * n + 2, 20 * n)):
            found = drawn(semivalue, n, samples, seed)
            np.testing.assert_allclose(found.W @ (found.members @ worth), worth, atol=1e-8)


def test_games_of_the_size_alone_are_exact_with_many_draws_of_each():
    n, rng, semivalue = 10, np.random.default_rng(0), shapley
    level, worth = rng.normal(size=n + 1), rng.normal(size=n)
    expected = semivalue.chances(n) @ np.diff(level) + worth
    for seed in range(5):
        found = drawn(semivalue, n, 400, seed)
        sizes = found.members.sum(axis=1)
        mine = found.entries.column  # every draw is an entry of every owner
        assert np.bincount(sizes[mine])[3:8].min() >= DRAWS_PER_LEVEL  # the others are complete
        utilities = level[sizes] + found.members @ worth
        got = found.W @ utilities + found.empty * level[0]
        np.testing.assert_allclose(got, expected, atol=1e-9)
        covariance = found.sampling_covariance(utilities, level[0])
        np.testing.assert_allclose(covariance, 0, atol=1e-18)


@every_random
def test_a_curve_of_sizes_is_hardly_left_to_chance(semivalue):
    # With lines between knots, also for sizes that were never drawn.
    n, sizes = 40, np.arange(41)
    level = sizes / (5 + sizes)
    expected = semivalue.chances(n) @ np.diff(level)
    for seed in range(3):
        found = drawn(semivalue, n, 1000, seed)
        got = found.W @ level[found.members.sum(axis=1)]
        np.testing.assert_allclose(got, expected, rtol=0.05)


@every_random
def test_few_draws_fit_no_levels_of_sizes(semivalue):
    found = drawn(semivalue, 10, 78)
    assert 0 < pairs(found) < LEVELS_FROM * 10
    control = np.array([found.control @ u for u in np.eye(len(found.members) + 1)]).T
    np.testing.assert_array_equal(control[10:, :-1], 0)
    curve = np.sqrt(found.members.sum(axis=1))
    assert np.diag(found.sampling_covariance(curve, 0.0)).min() > 1e-4


def weighted_least_squares(found, u):
    """Worths and levels by a solver of least squares, for all owners and none as they are."""
    fit = found.control
    n, (every, empty) = len(found.W), (u[fit.everyone], u[-1])
    share = found.members.mean(axis=1)
    basis = np.append(found.members - share[:, None], fit.levels[found.members.sum(axis=1)], axis=1)
    left, root = u[:-1] - share * every - (1 - share) * empty, np.sqrt(fit.weight)
    solved = np.linalg.lstsq(root[:, None] * basis, root * left, rcond=1e-5)[0]
    return np.append(solved[:n] + (every - empty) / n, fit.levels @ solved[n:] + empty)


@every_random
@pytest.mark.parametrize("block", [7, 2_048])
def test_the_control_is_a_fit_by_least_squares(semivalue, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    for samples in (78, 300):
        found = drawn(semivalue, 10, samples)
        u = np.random.default_rng(1).normal(size=len(found.members) + 1)
        np.testing.assert_allclose(
            found.control @ u, weighted_least_squares(found, u), rtol=1e-9, atol=1e-9
        )


@every_random
def test_blocks_of_coalitions_change_nothing(semivalue, monkeypatch):
    at_once = drawn(semivalue, 10, 300)
    monkeypatch.setattr(module, "BLOCK", 7)
    in_blocks = drawn(semivalue, 10, 300)
    np.testing.assert_array_equal(in_blocks.members, at_once.members)
    np.testing.assert_allclose(in_blocks.W, at_once.W, atol=1e-12)
    np.testing.assert_allclose(in_blocks.empty, at_once.empty, atol=1e-12)


def kernel_shap(found, table):
    """Constrained weighted least squares by its normal equations (Covert & Lee 2021, Eq. 7).

    Sizes that are complete weigh as the Shapley kernel does. What was drawn shares the rest of the
    kernel equally, as often as it was drawn.
    """
    n = len(found.W)
    sizes = found.members.sum(axis=1)
    kernel = np.array([(n - 1) / (comb(n, s) * s * (n - s)) if s < n else 0.0 for s in sizes])
    times = np.bincount(found.entries.column, minlength=len(sizes))
    assert np.all(times[kernel > 0].astype(bool) | np.isin(sizes, [1, n - 1])[kernel > 0])
    random_sizes = np.unique(sizes[times > 0])
    mass = sum((n - 1) / (s * (n - s)) for s in random_sizes)
    kernel = np.where(times > 0, mass * times / times.sum(), kernel)
    Z = found.members.astype(float)
    u = table[found.members @ 2 ** np.arange(n)] - table[0]
    A = np.block([[Z.T @ (kernel[:, None] * Z), np.ones((n, 1))], [np.ones((1, n)), 0.0]])
    return np.linalg.solve(A, np.append(Z.T @ (kernel * u), table[-1] - table[0]))[:n]


@pytest.mark.parametrize(("n", "samples"), [(6, 38), (8, 70), (10, 90)])
def test_few_draws_for_shapley_are_kernel_shap(n, samples):
    for seed in range(5):
        table = np.random.default_rng(seed).normal(size=2**n)
        found = drawn(shapley, n, samples, seed)
        assert 0 < pairs(found) < LEVELS_FROM * n
        np.testing.assert_allclose(values(found, table), kernel_shap(found, table), atol=1e-9)


@pytest.mark.slow
@every_random
def test_what_is_added_to_the_fit_is_unbiased(semivalue):
    n, runs = 7, 300
    dense = np.zeros((runs, n, 2**n))
    for run in range(runs):
        found = drawn(semivalue, n, 60, run)
        code = found.members @ 2 ** np.arange(n)
        entries = list_entries(found.entries)
        np.add.at(dense[run], (entries.owner, code[entries.coalition]), entries.weight)
    seen = np.flatnonzero(dense.any(axis=(0, 1)))
    size = all_coalitions(n).sum(axis=1)[seen - 1]
    assert len(seen) == sum(comb(n, s) for s in np.unique(size))  # the others are complete
    error = dense[:, :, seen] - by_code(exact(semivalue, n))[:, seen]
    z = error.mean(axis=0) / (error.std(axis=0, ddof=1) / np.sqrt(runs))
    assert np.abs(z).max() < norm.isf(1e-4 / 2 / z.size)


def literal_covariance(found, u):
    """Sum over pairs of the squared deviations of what each leaves over, zero or not."""
    n, m = len(found.W), pairs(found)
    left = u - additive_utilities(found.members, found.control @ u)
    terms = np.zeros((m, n))
    entries = list_entries(found.entries)
    np.add.at(terms, (entries.unit, entries.owner), entries.weight * left[entries.coalition])
    freedom = m - 1 - found.learned
    wider = student.ppf(0.975, freedom) / norm.ppf(0.975)
    return m / freedom * (m - 1) * np.cov(terms.T) * wider**2


@pytest.mark.parametrize("semivalue", [*RANDOM, joins_exactly(4)], ids=lambda s: s.name)
def test_the_covariance_is_that_of_what_pairs_leave_over(semivalue):
    found = drawn(semivalue, 10, 120, seed=2)
    assert pairs(found) >= LEVELS_FROM * 10
    assert found.learned > 10 - 1  # levels of sizes cost a degree of freedom each
    u = np.random.default_rng(0).normal(size=len(found.members) + 1)
    found, expected = found.sampling_covariance(u[:-1], u[-1]), literal_covariance(found, u)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def repeated(semivalue, n, samples, runs, seed=0):
    """Errors, (runs, n, games), covariances with and without Student's factor, (.., n, n)."""
    rng = np.random.default_rng(seed)
    tables = [
        table_of(closed_form.airport(np.arange(1.0, n + 1))),
        np.append(0.0, np.sqrt(all_coalitions(n).sum(axis=1))) + 0.2 * rng.normal(size=2**n),
    ]
    truth = np.array([values(exact(semivalue, n), table) for table in tables]).T
    errors, reported, plain = [], [], []
    for run in range(runs):
        found = drawn(semivalue, n, samples, run)
        code = found.members @ 2 ** np.arange(n)
        errors.append(np.array([values(found, table) for table in tables]).T - truth)
        reported.append([found.sampling_covariance(t[code], t[0]) for t in tables])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "student", Normal)
            plain.append([found.sampling_covariance(t[code], t[0]) for t in tables])
    return np.array(errors), np.array(reported), np.array(plain)


@pytest.mark.slow
def test_the_bias_falls_with_the_number_of_draws():
    game, direction = closed_form.airport(np.arange(1.0, 12)), np.arange(11) - 5
    # Along a direction in which it is large: b / m, so that m times the bias stays the same.
    found = []
    for samples in (68, 108):
        weights = [drawn(shapley, 11, samples, seed) for seed in range(700)]
        m = pairs(weights[0])
        values = np.array([one.W @ game.utility(one.members) for one in weights])
        errors = m * (values - game.shapley) @ direction
        found.append((errors.mean(), errors.std() / np.sqrt(len(errors)), m))
    (few, few_se, m_few), (many, many_se, m_many) = found
    assert 1.8 * m_few < m_many < LEVELS_FROM * 11
    both = np.hypot(few_se, many_se)
    assert abs(few) > 5 * few_se  # there is a bias to fall
    assert abs(many - few) < 4 * both


@pytest.mark.slow
@pytest.mark.parametrize("semivalue", RANDOM[:3], ids=lambda s: s.name)
def test_estimates_spread_as_reported_and_intervals_hold_the_truth(semivalue):
    errors, reported, plain = repeated(semivalue, 9, 300, 250)
    centred = errors - errors.mean(axis=0)
    squares = np.einsum("rig,rjg->rgij", centred, centred) * len(errors) / (len(errors) - 1)
    difference = squares - plain
    z = difference.mean(axis=0) / (difference.std(axis=0) / np.sqrt(len(errors)))
    assert np.abs(z).max() < norm.isf(1e-4 / 2 / z.size)
    sd = np.sqrt(np.einsum("rgii->rig", reported))
    inside = (np.abs(errors) <= 1.959964 * sd).mean(axis=1)  # of the owners in each run
    se = np.sqrt(0.95 * 0.05 / len(inside))  # as if owners were no more than one
    assert np.all(np.abs(inside.mean(axis=0) - 0.95) < 3 * se)


def test_levels_are_lines_between_knots_zero_at_the_ends_and_go_on_beyond_what_was_drawn():
    drawn_of_size = np.array([0, 0, 20, 0, 5, 30, 0, 0, 20, 0, 0])
    found = _levels(drawn_of_size, whole=np.array([1, 9]))
    knots = [1, 2, (4 * 5 + 5 * 30) / 35, 8, 9]
    np.testing.assert_array_equal(found[[0, 10]], 0)
    for heights in np.eye(len(knots)):
        inner = np.arange(1, 10)
        expected = np.interp(inner, knots, heights)
        np.testing.assert_allclose(found[inner] @ heights, expected, atol=1e-12)
    found = _levels(np.array([0, 0, 0, 16, 16, 0, 0, 0]), whole=np.empty(0, dtype=np.int64))
    np.testing.assert_allclose(found[1:7] @ [3.0, 5.0], [-1, 1, 3, 5, 7, 9])
