from math import comb

import numpy as np
import pytest

from dupre import Semivalue, banzhaf, beta_shapley, leave_one_out, shapley
from dupre.game.coalitions import all_coalitions, keys
from dupre.game.estimators import exact
from dupre.predictor import gp
from dupre.predictor.features import Features
from dupre.predictor.kernels import Linear, Membership, Size
from dupre.predictor.warp import Warp
from dupre.valuation import next_batch
from dupre.valuation.next_batch import FEW_OWNERS, active_batch, add_sizes_between, forecast

SEMIVALUES = [shapley, banzhaf, leave_one_out, beta_shapley(16, 1), beta_shapley(1, 16)]


def design_for(semivalue, n, count, seed=0, rows=None):
    rows = np.full(n, 10) if rows is None else rows
    return next_batch.first_design(semivalue, rows, count, np.random.default_rng(seed))


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


def sizes_added(members, weight, design):
    found = add_sizes_between(list(design), members, weight, np.random.default_rng(0))
    assert len(set(found)) == len(found)
    assert weight[found].all()
    return members[found].sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("n", "between"), [(13, [2, 11, 4, 9, 6, 7]), (20, [2, 18, 4, 16, 8, 12, 10])]
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


@pytest.mark.parametrize(("b", "further"), [(4, [2, 2, 3, 3, 4, 4, 5, 5]), (16, [4, 4, 5, 5])])
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
    assert (n / (2**n - 1) >= next_batch.SINGLES_COUNT) == taken
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


KERNEL = 0.8 * Membership(0.3) + 0.5 * Size(0.7) + 0.3 * Linear()
N = 7
NOISE = 0.02


def problem(seed, functionals, warp=None, measured=None):
    """A process on 6 evaluated coalitions, the other 121, and functionals of these."""
    rng = np.random.default_rng(seed)
    every = Features(all_coalitions(N), rng.integers(3, 100, N))
    order = rng.permutation(len(every))
    a, b = every[order[:6]], every[order[6:]]
    u = rng.normal(size=6)
    process = gp.condition(KERNEL, a, u, noise=NOISE, measured=measured, warp=warp)
    return process, b, rng.normal(size=(functionals, len(b)))


def literal_algorithm_2(a, b, W, candidates, count):
    """DUPRE Alg. 2 as printed, with the inverse computed anew; summed over functionals."""
    joint = Features(np.concatenate([a.members, b.members]), a.rows)
    K = KERNEL(joint, joint)
    evaluated, B = list(range(len(a))), np.arange(len(a), len(joint))
    picked = []
    for _ in range(count):
        max_VR, best = 0.0, None
        for G in candidates:
            if G in picked:
                continue
            AC = [*evaluated, *B[picked], B[G]]
            inverse = np.linalg.inv(K[np.ix_(AC, AC)] + NOISE * np.eye(len(AC)))
            K_B_AC = K[np.ix_(B, AC)]
            VR = sum(w @ K_B_AC @ inverse @ K_B_AC.T @ w for w in W)
            if max_VR <= VR:
                max_VR, best = VR, G
        picked.append(best)
    return picked


@pytest.mark.parametrize(
    ("seed", "functionals", "count"), [(0, 1, 3), (1, 1, 7), (2, 4, 3), (3, 7, 5)]
)
def test_active_batch_picks_what_the_literal_algorithm_picks(seed, functionals, count):
    process, b, W = problem(seed, functionals)
    every = np.arange(len(b))
    picks = active_batch(process.posterior(b, W), every, count)
    assert picks.tolist() == literal_algorithm_2(process.inputs, b, W, every, count)
    candidates = np.array([20, 3, 11, 7, 8])
    picks = active_batch(process.posterior(b, W), candidates, 3)
    assert picks.tolist() == literal_algorithm_2(process.inputs, b, W, candidates, 3)


def test_active_batch_weighs_by_the_slope_of_a_curved_warp():
    process, b, W = problem(3, 2, Warp(curved=True, width=0.3))
    posterior = process.posterior(b, W)
    every = np.arange(len(b))
    picks = active_batch(posterior, every, 5)
    expected = literal_algorithm_2(process.inputs, b, W * posterior.slope, every, 5)
    assert picks.tolist() == expected


def condition_also_on(process, b, picks):
    """The process after evaluating some of b; the variance does not depend on what comes out."""
    members = np.concatenate([process.inputs.members, b.members[picks]])
    u = np.append(process.utilities, np.random.default_rng(8).normal(size=len(picks)))
    measured = np.append(process.measured, np.full(len(picks), np.mean(process.measured)))
    return gp.condition(KERNEL, Features(members, b.rows), u, noise=NOISE, measured=measured)


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_equals_single_picks_after_conditioning_anew(seed):
    process, b, W = problem(seed, 3)
    every = np.arange(len(b))
    batch = active_batch(process.posterior(b, W), every, 6).tolist()
    for k, pick in enumerate(batch):
        anew = condition_also_on(process, b, batch[:k])
        left = np.setdiff1d(every, batch[:k])
        assert active_batch(anew.posterior(b, W), left, 1).tolist() == [pick]


def test_evaluating_a_coalition_removes_exactly_the_rank_one_term():
    process, b, W = problem(0, 3)
    before = process.posterior(b, W)
    for g in range(len(b)):
        after = condition_also_on(process, b, [g]).posterior(b, W)
        cross = before.cross(np.array([g]))[0]
        expected = np.outer(cross, cross) / (before.variance[g] + NOISE)
        removed = before.functional_covariance() - after.functional_covariance()
        np.testing.assert_allclose(removed, expected, atol=1e-9)


MEASURED = np.array([0.0, 0.3, 0.05, 0.2, 0.0, 0.5])
either_noise = pytest.mark.parametrize("measured", [None, MEASURED], ids=["exact", "measured"])


@either_noise
@pytest.mark.parametrize("pending", [[17], [40, 3, 99, 4], list(range(0, 120, 5))], ids=len)
def test_pending_coalitions_count_as_if_they_had_been_evaluated(pending, measured):
    process, b, W = problem(len(pending), 3, measured=measured)
    every = np.arange(len(b))
    picks = active_batch(process.posterior(b, W), every, 5, np.array(pending))
    anew = condition_also_on(process, b, pending)
    left = np.setdiff1d(every, pending)
    assert picks.tolist() == active_batch(anew.posterior(b, W), left, 5).tolist()
    without = active_batch(process.posterior(b, W), left, 5)
    assert len(pending) == 1 or picks.tolist() != without.tolist()  # they do matter


@pytest.mark.parametrize("count", [3, 121, 200])
def test_pending_coalitions_are_never_picked_whether_candidates_or_not(count):
    process, b, W = problem(2, 2)
    posterior, every = process.posterior(b, W), np.arange(len(b))
    best = active_batch(posterior, every, 10)
    for candidates in (every, np.setdiff1d(every, best)):
        picks = active_batch(posterior, candidates, count, best)
        assert len(picks) == len(set(picks)) == min(count, 111)
        assert not set(picks) & set(best)
    assert active_batch(posterior, best, count, best).tolist() == []


# What further evaluations are expected to gain.


@either_noise
@pytest.mark.parametrize("warp", [None, Warp(curved=True, width=0.3)], ids=["straight", "curved"])
@pytest.mark.parametrize("picks", [[5], [60, 2, 31, 119, 0], list(range(120, -1, -1))], ids=len)
def test_forecast_equals_dense_gaussian_conditioning(picks, warp, measured):
    process, b, W = problem(4, 3, warp, measured)
    posterior = process.posterior(b, W)
    found = forecast(posterior, np.array(picks))

    # y, everything that was or will be seen: z around the process, and the noise of repeats.
    a = len(process.inputs)
    joint = Features(np.concatenate([process.inputs.members, b.members]), b.rows)
    of_z = KERNEL(joint, joint) + NOISE * np.eye(len(joint))
    repeats = np.append(process.measured, np.full(len(b), np.mean(process.measured)))
    J = W * posterior.slope
    assert found.shape == (len(picks), 3, 3)
    for k in {1, (len(picks) + 1) // 2, len(picks)}:
        seen = [*range(a), *(a + np.array(picks[:k]))]
        V = of_z[np.ix_(seen, seen)] + np.diag(repeats[seen])
        C = of_z[a:][:, seen]
        left = of_z[a:, a:] - C @ np.linalg.solve(V, C.T)
        np.testing.assert_allclose(found[k - 1], J @ left @ J.T, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_forecast_equals_what_is_left_after_really_evaluating(seed):
    process, b, W = problem(seed, 3)
    picks = active_batch(process.posterior(b, W), np.arange(len(b)), 6)
    found = forecast(process.posterior(b, W), picks)
    for k in range(1, 7):
        left = np.setdiff1d(np.arange(len(b)), picks[:k])
        after = condition_also_on(process, b, picks[:k]).posterior(b[left], W[:, left])
        np.testing.assert_allclose(found[k - 1], after.functional_covariance(), atol=1e-8)


@either_noise
def test_the_forecast_of_everything_leaves_the_noise_of_repeats_alone(measured):
    process, b, W = problem(0, 2, measured=measured)
    posterior = process.posterior(b, W)
    last = forecast(posterior, np.arange(len(b)))[-1]
    repeats = 0.0 if measured is None else np.mean(measured)
    largest = repeats * W @ W.T  # what it would be if the kernel did not smooth it
    assert np.all(np.diag(last) <= np.diag(largest) + 1e-9)
    assert np.all(np.diag(last) >= -1e-9)
    assert (np.trace(last) > 0.01) == (measured is not None)


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
