from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import closed_form
import dupre
from asking import Asked, make_owners
from dupre import InputError, estimators
from dupre.game import coalitions
from dupre.game.coalitions import to_names
from dupre.game.estimators import Sample, permutation, regression, stratified_svarm, svarm
from dupre.predictor import form
from dupre.result.records import Z95, PredictorCheck
from dupre.result.valuation import half_widths
from dupre.training.engines import Local
from dupre.valuation.strategies import Active, Drawn

SIX = make_owners(6)
MANY = make_owners(21)


@pytest.fixture(scope="module", autouse=True)
def one_form():
    """One form of the predictor instead of a search among several: it is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(form, "CHOICES", {})
        yield


class Groups(Asked):
    """Worths of owners, of pairs and of threes: all semivalues are known in closed form.

    u(C) = sum of w_i + 2 v_i v_j over pairs + 6 v_i v_j v_k over threes. An owner who joins c of
    n - 1 others, drawn uniformly, meets each of them with the chance c / (n - 1), each two with
    c (c - 1) / ((n - 1) (n - 2)).
    """

    def __init__(self, owners, seed=0, empty=0.25):
        rng = np.random.default_rng([owners.n, seed])
        self.w = rng.uniform(0, 1 / owners.n, owners.n)
        self.v = rng.normal(0.7, 1, owners.n) / owners.n
        super().__init__(owners, self._utility, empty)

    def _utility(self, C):
        first, second, third = (C @ self.v**k for k in (1, 2, 3))
        pairs = first**2 - second
        return self.empty + C @ self.w + pairs + first**3 - 3 * first * second + 2 * third

    def values(self, semivalue=dupre.shapley):
        n, v = self.owners.n, self.v
        p, c = semivalue.chances(n), np.arange(n)
        one, two = p @ c / (n - 1), p @ (c * (c - 1)) / max((n - 1) * (n - 2), 1)
        rest, squares = v.sum() - v, np.sum(v**2) - v**2
        return self.w + 2 * v * rest * one + 3 * v * (rest**2 - squares) * two


class Table:
    """Utilities by coalition: unlike a game that keeps a log, the same before and after a run."""

    def __init__(self, table):
        self.table = table

    def __call__(self, members):
        return self.table[members]


def run(ours, utility, budget):
    """What dupre.value does: batches of n until the budget is reached."""
    while (left := budget - ours.evaluated) > 0 and ours.left:
        for members in ours.suggest(left if left >= ours.left else min(ours.owners.n, left)):
            ours.record(members, utility(members))
    return ours.values()


def weights_of(ours):
    return ours._knowledge.weights


def by_hand(ours, utility):
    """W u, once everything is evaluated."""
    weights = weights_of(ours)
    return weights.W @ utility.game(weights.members) + weights.empty * utility.empty


def assert_same(first, second):
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.covariance, second.covariance)


def least_covered(trials):
    """Share of intervals that hold the truth, at least: 95 % but for bad luck of 1 in 10,000."""
    return binom.ppf(1e-4, trials, 0.95) / trials


# Which coalitions are evaluated, which predicted.


@pytest.mark.parametrize("estimator", [permutation, regression, svarm], ids=lambda e: e.__name__)
@pytest.mark.parametrize("budget", [9, 43, 60])
def test_drawn_coalitions_are_evaluated_in_the_order_of_the_estimator(estimator, budget):
    utility = Groups(MANY)
    ours = dupre.Valuer(
        MANY,
        empty=0.0,
        seed=3,
        estimator=Sample(estimator, 200),
        strategy=Drawn(),
    )
    valuation = dupre.value(
        MANY,
        utility,
        budget=budget,
        seed=3,
        estimator=Sample(estimator, 200),
        strategy=Drawn(),
    )
    expected = [to_names(row, MANY.names) for row in weights_of(ours).members[:budget]]
    assert utility.asked == expected
    assert valuation.evaluated == budget
    assert valuation.counting == ours.counting > budget
    assert valuation.diagnostics is not None


@pytest.mark.parametrize("choose", [Drawn, Active])
@pytest.mark.parametrize(
    "estimator",
    [permutation, regression, stratified_svarm, svarm, None],
    ids=["permutation", "regression", "stratified_svarm", "svarm", "default"],
)
def test_nothing_is_predicted_once_all_sampled_coalitions_are_evaluated(estimator, choose):
    owners = make_owners(6)
    utility = Asked(owners, closed_form.unanimity_sum(6, 9, np.random.default_rng(1)).utility, 0.5)
    options = {
        "estimator": Sample(estimator, 57),
        "strategy": choose(),
    }
    valuation = dupre.value(owners, utility, budget=57, **options)
    ours = dupre.Valuer(owners, empty=0.0, **options)
    np.testing.assert_allclose(valuation.mean, by_hand(ours, utility), atol=1e-12)
    assert valuation.diagnostics is None
    assert not valuation.prediction_std.any()
    assert len(utility.asked) == len(set(utility.asked)) == valuation.counting == ours.counting
    weights = weights_of(ours)
    sampling = weights.sampling_covariance(utility.game(weights.members), utility.empty)
    assert sampling.any()
    np.testing.assert_allclose(valuation.sampling, sampling, atol=1e-12)
    np.testing.assert_allclose(valuation.covariance, sampling, atol=1e-12)
    assert not valuation.exact
    assert "all of them evaluated" in str(valuation)


def test_a_coalition_drawn_again_is_evaluated_once_and_counts_as_often(monkeypatch):
    owners = make_owners(4)
    orders = np.array([[0, 1, 2, 3], [0, 1, 3, 2], [0, 1, 2, 3], [2, 0, 1, 3], [3, 2, 1, 0]])
    monkeypatch.setattr(estimators, "_orders", lambda *_: orders)
    utility = Asked(owners, closed_form.airport([3.0, 1.0, 4.0, 2.0]).utility, empty=0.125)
    valuation = dupre.value(owners, utility, budget=50, estimator=Sample(permutation, 20))
    expected = np.zeros(4)
    for order in orders:
        before = utility.empty
        for place, owner in enumerate(order):
            after = utility.of(tuple(owners.names[i] for i in order[: place + 1]))
            expected[owner] += (after - before) / len(orders)
            before = after
    np.testing.assert_allclose(valuation.mean, expected, atol=1e-12)
    assert len(utility.asked) == len(set(utility.asked)) == 10  # of 20 prefixes


def test_a_larger_sample_begins_with_the_smaller_one():
    small, large = (
        dupre.Valuer(
            MANY,
            empty=0.0,
            seed=5,
            estimator=Sample(permutation, k * 21),
            strategy=Drawn(),
        )
        for k in (4, 12)
    )
    np.testing.assert_array_equal(
        weights_of(large).members[: small.counting], weights_of(small).members
    )


def test_evaluating_a_sample_and_predicting_more_is_evaluating_a_part_of_more():
    utility, options = (
        Groups(MANY),
        {"estimator": permutation, "seed": 5, "strategy": Drawn()},
    )
    small = dupre.Valuer(
        MANY,
        empty=utility.empty,
        estimator=Sample(regression, 4 * 21),
        **options,
    )
    run(small, utility, 10**6)
    assert small.left == 0
    more = dupre.Valuer(
        MANY,
        empty=utility.empty,
        estimator=Sample(regression, 12 * 21),
        **options,
    )
    part = dupre.Valuer(
        MANY,
        empty=utility.empty,
        estimator=Sample(regression, 12 * 21),
        **options,
    )
    for members, number in small.evaluations.items():
        more.record(members, number)
    run(part, utility, small.counting)
    assert more.evaluations == part.evaluations
    assert_same(more.values(), part.values())
    assert more.suggest(5) == part.suggest(5)
    assert more.values().prediction_std.min() > 0
    assert not small.values().prediction_std.any()
    assert more.values().sampling_std.mean() < small.values().sampling_std.mean()


def test_active_batches_evaluate_a_part_of_what_was_sampled():
    utility = Groups(MANY)
    ours = dupre.Valuer(
        MANY,
        empty=utility.empty,
        estimator=Sample(regression, 300),
    )
    run(ours, utility, 90)
    sampled = {to_names(row, MANY.names) for row in weights_of(ours).members}
    assert set(utility.asked) < sampled
    assert len(utility.asked) == len(set(utility.asked)) == 90
    assert ours.left == ours.counting - 90


def test_active_batches_of_a_sample_are_expected_to_tell_more_than_its_own_order():
    utility, expected = Groups(MANY), {}
    ours = dupre.Valuer(MANY, empty=0.0, estimator=Sample(permutation, 300))
    run(ours, utility, 43)
    for choose in (Active, Drawn):
        same = dupre.Valuer(
            MANY,
            empty=0.0,
            estimator=Sample(permutation, 300),
            strategy=choose(),
        )
        for members, number in ours.evaluations.items():
            same.record(members, number)
        # Choosing well reduces the error of predictions; that of sampling is there for both.
        total = same.forecast(15).iloc[-1, 1:].to_numpy() / Z95
        expected[choose] = np.sum((total - same.values().sampling_std) ** 2)
    assert expected["active"] < 0.9 * expected["drawn"]


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("choose", [Active, Drawn])
def test_a_sample_with_room_for_everything_is_exact(n, choose):
    owners = make_owners(n)
    game = closed_form.unanimity_sum(n, 6, np.random.default_rng(n))
    valuation = dupre.value(
        owners,
        Asked(owners, game.utility),
        budget=200,
        estimator=Sample(regression, 200),
        strategy=choose(),
    )
    np.testing.assert_allclose(valuation.values, game.shapley, atol=1e-12)
    assert valuation.exact
    assert not valuation.std.any()


def test_the_exact_estimator_is_what_few_owners_are_valued_with():
    utility = Groups(SIX)
    assert_same(
        dupre.value(SIX, utility, budget=20, estimator=estimators.exact),
        dupre.value(SIX, utility, budget=20),
    )


def test_any_function_that_draws_weights_is_an_estimator():
    def twice(semivalue, n, samples, rng):
        return permutation(semivalue, n, 2 * samples, rng)

    utility = Groups(SIX)
    valuation = dupre.value(SIX, utility, budget=63, estimator=Sample(twice, 12))
    same = dupre.value(SIX, utility, budget=63, estimator=Sample(permutation, 24))
    assert_same(valuation, same)


# Total uncertainty.


@pytest.fixture(scope="module")
def seeds():
    """Valuations of one game, each by its own sample of coalitions, partly evaluated."""
    utility, found = Groups(MANY, seed=1), []
    for seed in range(10):
        ours = dupre.Valuer(
            MANY,
            empty=utility.empty,
            seed=seed,
            estimator=Sample(regression, 300),
        )
        found.append((ours, run(ours, utility, 43)))
    return utility, found


def test_the_variance_is_the_bound_of_remark_1(seeds):
    for _, valuation in seeds[1]:
        predicted, sampled = valuation.prediction_std, valuation.sampling_std
        assert predicted.min() > 0
        assert sampled.min() > 0
        bound = predicted**2 + sampled**2 + 2 * predicted * sampled
        np.testing.assert_allclose(np.diag(valuation.covariance), bound, rtol=1e-12)
        np.testing.assert_allclose(valuation.std, predicted + sampled, rtol=1e-12)
        np.testing.assert_allclose(sampled**2, np.diag(valuation.sampling), rtol=1e-12)


def test_the_two_parts_are_those_of_the_posterior_and_of_the_weights(seeds):
    ours, valuation = seeds[1][0]
    posterior = ours._knowledge.averaged_posterior()
    assert ours._knowledge.predictor().outlier_variance == 0
    own = np.diag(posterior.functional_covariance()) * valuation.diagnostics.widening**2
    np.testing.assert_allclose(valuation.prediction_std**2, own, rtol=1e-9)
    utilities = ours._knowledge.utilities.copy()
    utilities[ours._knowledge.unknown] = posterior.mean
    sampling = weights_of(ours).sampling_covariance(utilities, ours.empty)
    np.testing.assert_allclose(valuation.sampling, sampling, rtol=1e-9)


def test_covariances_are_positive_semidefinite(seeds):
    for _, valuation in seeds[1]:
        for matrix in (valuation.covariance, valuation.sampling):
            np.testing.assert_allclose(matrix, matrix.T, atol=0, rtol=1e-12)
            eigenvalues = np.linalg.eigvalsh(matrix)
            assert eigenvalues[0] > -1e-10 * eigenvalues[-1]


def test_intervals_hold_the_truth_where_coalitions_are_sampled_and_predicted(seeds):
    utility, found = seeds
    errors = np.array([valuation.mean - utility.values() for _, valuation in found])
    stds = np.array([valuation.std for _, valuation in found])
    assert np.mean(np.abs(errors) <= 1.96 * stds) >= least_covered(len(found))
    # Not by being absurdly wide.
    assert np.sqrt(np.mean(stds**2)) < 5 * np.sqrt(np.mean(errors**2))


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (permutation, "groups"),
        (regression, "groups"),
        (regression, "airport"),
        (regression, "unanimity sum"),
    ],
    ids=lambda x: x if isinstance(x, str) else x.__name__,
)
def test_intervals_hold_the_truth_where_all_that_was_sampled_is_evaluated(estimator, name):
    groups = Groups(MANY, empty=0.0)
    unanimities = closed_form.unanimity_sum(21, 8, np.random.default_rng(2))
    game = {
        "airport": closed_form.airport(np.linspace(1, 3, 21)),
        "groups": closed_form.Game(21, groups.game, groups.values()),
        "unanimity sum": unanimities,
    }[name]
    inside = []
    for seed in range(40):
        ours = dupre.Valuer(MANY, empty=0.0, seed=seed, estimator=Sample(estimator, 240))
        members = weights_of(ours).members
        for row, number in zip(members, game.utility(members), strict=True):
            ours.record(to_names(row, MANY.names), float(number))
        valuation = ours.values()
        inside.append(np.abs(valuation.mean - game.shapley) <= 1.96 * valuation.std + 1e-12)
    assert np.mean(inside) >= least_covered(40)


def test_sampling_adds_nothing_where_all_coalitions_count():
    valuation = dupre.value(SIX, Groups(SIX), budget=20)
    assert valuation.sampling is None
    assert not valuation.sampling_std.any()
    np.testing.assert_array_equal(valuation.prediction_std, valuation.std)
    assert "sampled coalitions" not in str(valuation)


def test_additive_games_are_valued_without_an_error_of_sampling():
    worth = np.random.default_rng(0).normal(size=21)
    utility = Asked(MANY, closed_form.additive(worth).utility)
    valuation = dupre.value(
        MANY,
        utility,
        budget=400,
        estimator=Sample(regression, 200),
    )
    np.testing.assert_allclose(valuation.values, worth, atol=1e-9)
    assert valuation.std.max() < 1e-9


def test_a_frame_has_both_parts_and_the_table_says_what_was_sampled(seeds):
    ours, valuation = seeds[1][0]
    frame = valuation.to_frame()
    np.testing.assert_allclose(frame["std"], frame["prediction_std"] + frame["sampling_std"])
    text = str(valuation)
    assert f"sums over {ours.counting} sampled coalitions:" in text
    assert f"up to {valuation.sampling_std.max():.2g} is due to their choice" in text
    assert f"up to {valuation.prediction_std.max():.2g} to predictions" in text
    assert "43 of 2,097,151 possible coalitions evaluated" in text


# From two owners to a hundred.


@pytest.mark.parametrize("n", [2, 3, 17, 64, 65, 100])
def test_the_same_call_values_any_number_of_owners(n):
    owners = make_owners(n)
    utility = Groups(owners)
    budget = 2 * n + 5  # four more than the first design, without which values are a first guess
    valuation = dupre.value(
        owners,
        utility,
        budget=budget,
        estimator=Sample(regression, None if n < 9 else 650),
    )
    assert len(utility.asked) == len(set(utility.asked)) == min(budget, 2**n - 1)
    assert np.all(np.abs(valuation.mean - utility.values()) <= 5 * valuation.std + 1e-12)
    assert valuation.exact == (n < 4)
    assert np.all(valuation.std < np.ptp(utility.values())) or n == 2
    assert len(valuation.to_frame()) == n
    assert owners.names[-1] in str(valuation)


def test_all_coalitions_count_up_to_16_owners_and_a_sample_above():
    assert dupre.Valuer(make_owners(12), empty=0.0).counting == 4095
    at_most = dupre.Valuer(make_owners(16), empty=0.0)
    assert at_most.counting == 2**16 - 1
    assert at_most.estimator is None
    above = dupre.Valuer(make_owners(17), empty=0.0)
    assert above.estimator is regression
    assert 3500 < above.counting <= 4096


@pytest.mark.parametrize(
    "n",
    [17, 20, 21, 40],
)
def test_coalitions_of_many_owners_are_never_all_listed(monkeypatch, n):
    def refuse(owners):
        raise MemoryError(f"2^{owners} rows")

    owners = make_owners(n)
    monkeypatch.setattr(coalitions, "all_coalitions", refuse)
    monkeypatch.setattr(estimators, "all_coalitions", refuse)
    ours = dupre.Valuer(owners, empty=0.0, estimator=Sample(regression, 300))
    assert run(ours, Groups(owners), 2 * n + 3).evaluated == 2 * n + 3


def test_owners_beyond_the_63rd_are_told_apart():
    owners = make_owners(70)
    ours = dupre.Valuer(owners, empty=0.0, estimator=Sample(regression, 500))
    for i in range(62, 70):
        ours.record([owners.names[i]], float(i))
    assert [ours.evaluations[owners.names[i],] for i in range(62, 70)] == list(range(62, 70))
    worth = np.where(np.arange(70) == 69, 5.0, 0.0)
    utility = Asked(owners, closed_form.additive(worth).utility)
    valuation = dupre.value(
        owners,
        utility,
        budget=143,
        estimator=Sample(regression, 500),
    )
    assert np.all(np.abs(valuation.mean - worth) <= 5 * valuation.std)
    assert valuation.rank_range().loc[owners.names[69], "worst"] == 1


@pytest.mark.parametrize("n", [20, 70])
@pytest.mark.parametrize(
    "semivalue",
    [dupre.banzhaf, dupre.beta_shapley(4, 1), dupre.leave_one_out],
    ids=lambda s: s.name,
)
def test_other_semivalues_of_many_owners(n, semivalue):
    owners = make_owners(n)
    utility = Groups(owners)
    ours = dupre.Valuer(
        owners,
        semivalue=semivalue,
        empty=utility.empty,
        estimator=Sample(regression, 600),
    )
    valuation = run(ours, utility, 2 * n + 1)
    truth = utility.values(semivalue)
    assert np.all(np.abs(valuation.mean - truth) <= 5 * valuation.std + 1e-9)
    assert np.all(valuation.std < 3 * np.ptp(truth))
    if semivalue is dupre.leave_one_out:
        assert valuation.exact
        assert valuation.evaluated == valuation.counting == n + 1


def test_only_coalitions_with_a_weight_are_said_to_count():
    ours = dupre.Valuer(
        MANY, empty=0.0, semivalue=dupre.leave_one_out, estimator=Sample(permutation, 600)
    )
    assert ours.counting == ours.left


def test_no_owner_of_a_sample_is_known_for_sure_because_it_was_never_drawn():
    utility = Groups(MANY)
    ours = dupre.Valuer(
        MANY, empty=0.0, semivalue=dupre.leave_one_out, estimator=Sample(permutation, 480)
    )
    valuation = run(ours, utility, 480)
    assert valuation.std.min() > 0


# Coalitions that do not enter the values.


def others(ours, count):
    """Coalitions, by name, that were not sampled."""
    rng = np.random.default_rng([count, 1])
    sampled = {to_names(row, MANY.names) for row in weights_of(ours).members}
    rows = rng.random((2 * count, MANY.n)) < rng.uniform(0.2, 0.8, size=(2 * count, 1))
    fresh = [to_names(row, MANY.names) for row in rows if row.any()]
    return [members for members in fresh if members not in sampled][:count]


def test_coalitions_that_were_not_sampled_are_learned_from_and_listed():
    utility = Groups(MANY)
    ours = dupre.Valuer(
        MANY,
        empty=utility.empty,
        estimator=Sample(regression, 300),
    )
    without = run(ours, utility, 43)
    besides = others(ours, 30)
    for members in besides:
        ours.record(members, utility(members))
    valuation = ours.values()
    assert {members: utility.of(members) for members in besides}.items() <= ours.evaluations.items()
    assert valuation.evaluated == ours.evaluated == 73
    assert ours.left == ours.counting - 43
    assert valuation.prediction_std.mean() < 0.9 * without.prediction_std.mean()
    assert not set(ours.suggest(20)) & set(besides)


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_order_in_which_they_are_recorded_does_not_matter(repeats):
    utility, found = Groups(MANY), []
    for step in (1, -1):
        ours = dupre.Valuer(
            MANY,
            empty=utility.empty,
            estimator=Sample(regression, 300),
        )
        besides = others(ours, 12)[::step]
        first = ours.suggest(43)[::step]
        for members in [*besides, *first] if step == 1 else [*first, *besides]:
            spread = np.random.default_rng(len(members)).normal(size=repeats)
            ours.record(members, utility(members) + 1e-3 * spread)
        found.append(ours)
    one, two = (ours.values() for ours in found)
    assert found[0].suggest(6) == found[1].suggest(6)
    # With repeats their spread is summed in the order of recording: equal up to rounding.
    tolerance = 0 if repeats == 1 else 1e-9
    np.testing.assert_allclose(one.mean, two.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(
        one.covariance, two.covariance, rtol=tolerance, atol=1e-6 * tolerance
    )


def test_one_coalition_that_was_not_sampled_is_enough_for_a_first_guess():
    ours = dupre.Valuer(MANY, empty=0.0, estimator=Sample(regression, 300))
    ours.record(others(ours, 1)[0], 0.5)
    valuation = ours.values()
    assert np.isfinite(valuation.mean).all()
    assert valuation.grand_predicted
    assert valuation.evaluated == 1
    assert valuation.std.min() > 0


def test_a_failure_of_a_coalition_that_was_not_sampled_is_listed_and_changes_no_value():
    utility = Groups(MANY)
    ours = dupre.Valuer(
        MANY,
        empty=utility.empty,
        estimator=Sample(regression, 300),
    )
    before = run(ours, utility, 43)
    members = others(ours, 1)[0]
    ours.record_failure(members, "no")
    assert ours.failures == {members: "no"}
    assert_same(ours.values(), before)
    assert ours.evaluated == 44


@pytest.mark.parametrize("evaluated", [0, 10, 60])
def test_suggestions_are_a_function_of_what_is_recorded(evaluated):
    utility = Groups(MANY)
    ours = dupre.Valuer(MANY, empty=0.0, estimator=Sample(regression, 300))
    if evaluated:
        run(ours, utility, evaluated)
    suggested = ours.suggest(7)
    assert len(set(suggested)) == 7
    ours.suggest(3, pending=others(ours, 5))
    if evaluated:
        ours.values()
    assert ours.suggest(7) == suggested
    assert ours.suggest(4) == suggested[:4]
    told = dupre.Valuer(MANY, empty=0.0, estimator=Sample(regression, 300))
    for members, number in reversed(ours.evaluations.items()):
        told.record(members, number)
    assert told.suggest(7) == suggested


def test_pending_coalitions_are_followed_by_what_would_have_followed_them():
    ours = dupre.Valuer(MANY, empty=0.0, estimator=Sample(regression, 300))
    run(ours, Groups(MANY), 60)
    batch = ours.suggest(6)
    assert ours.suggest(4, pending=batch[:2]) == batch[2:]
    assert not set(ours.suggest(9, pending=[*batch, *others(ours, 3)])) & set(batch)


# The loop.


def test_a_run_of_20_owners_is_resumed_where_it_stopped(tmp_path):
    owners = make_owners(20)
    utility = Groups(owners)
    call = {
        "empty": utility.empty,
        "progress": False,
        "estimator": Sample(regression, 130),
    }
    at_once = dupre.value(owners, utility, budget=47, **call)
    asked = utility.asked

    def stop_at_50(shown):
        if shown.evaluated == 44:
            raise KeyboardInterrupt

    utility = Table({members: utility.of(members) for members in asked})
    call["store"] = tmp_path / "run.sqlite"
    with pytest.raises(dupre.Interrupted):
        dupre.value(owners, utility, budget=47, **(call | {"progress": stop_at_50}))
    valuation = dupre.value(owners, utility, budget=47, **call)
    assert valuation.found == 44
    assert len(valuation.evaluations) == 47
    assert_same(valuation, at_once)


def test_another_sample_learns_from_what_the_store_holds(tmp_path):
    owners = make_owners(21)
    store = tmp_path / "run.sqlite"
    utility = Groups(owners)
    call = {"empty": utility.empty, "store": store}
    dupre.value(
        owners,
        utility.of,
        budget=43,
        estimator=Sample(regression, 300),
        **call,
    )
    valuation = dupre.value(
        owners,
        utility.of,
        budget=50,
        seed=1,
        estimator=Sample(regression, 400),
        **call,
    )
    assert valuation.found == 43
    assert valuation.evaluated == 50
    assert len(valuation.evaluations) == 50


@pytest.mark.parametrize("choose", [Active, Drawn])
def test_a_stop_rule_looks_at_both_parts_of_the_uncertainty(choose):
    utility = Groups(MANY)
    call = {
        "empty": utility.empty,
        "progress": False,
        "estimator": Sample(regression, 150),
        "strategy": choose(),
    }
    everything = dupre.value(MANY, utility, budget=150, **call)
    limit = 3 * half_widths(everything.sampling).max()
    valuation = dupre.value(MANY, utility, stop=dupre.stopping.within(limit), **call)
    assert half_widths(valuation.covariance).max() <= limit
    assert 43 <= valuation.evaluated < valuation.counting
    assert "within" in valuation.stopped


def test_a_rule_that_sampling_forbids_is_never_met():
    utility = Groups(MANY)
    call = {
        "empty": utility.empty,
        "progress": False,
        "estimator": Sample(regression, 150),
        "strategy": Active(batch=150),
    }
    everything = dupre.value(MANY, utility, budget=150, **call)
    limit = half_widths(everything.sampling).max() / 2
    valuation = dupre.value(MANY, utility, stop=dupre.stopping.within(limit), **call)
    assert valuation.evaluated == valuation.counting
    assert valuation.stopped == "all sampled coalitions are evaluated"


def test_a_budget_beyond_the_sample_ends_where_the_sample_ends():
    utility = Groups(MANY)
    valuation = dupre.value(
        MANY,
        utility,
        budget=10**9,
        estimator=Sample(regression, 200),
    )
    assert valuation.evaluated == valuation.counting == len(utility.asked) <= 200


@pytest.mark.parametrize("choose", [Active, Drawn])
def test_a_holdout_of_sampled_coalitions_checks_the_predictor(choose):
    utility = Groups(MANY)
    valuation = dupre.value(
        MANY,
        utility,
        budget=70,
        empty=utility.empty,
        estimator=Sample(regression, 300),
        strategy=choose(check=8),
    )
    assert valuation.check.held_out == 8
    assert valuation.check.error < valuation.check.by_size
    assert not valuation.sampled
    assert np.all(np.abs(valuation.mean - utility.values()) <= 5 * valuation.std)


def white(owners, seed):
    """Utilities without any pattern."""

    def game(C):
        return np.array([np.random.default_rng([seed, *row.astype(int)]).normal() for row in C])

    return Asked(owners, game)


def after_failed_validation(monkeypatch, choose, budgets):
    """Values after some budgets, with a predictor that fails on what is held out."""
    monkeypatch.setattr(PredictorCheck, "failed", True)
    ours = dupre.Valuer(
        MANY,
        empty=0.0,
        estimator=Sample(regression, 210),
        strategy=choose(check=10),
    )
    utility = white(MANY, 0)
    return [run(ours, utility, budget) for budget in budgets], by_hand(ours, utility)


def test_values_of_many_owners_do_not_rely_on_a_predictor_that_failed(monkeypatch):
    found, truth = after_failed_validation(monkeypatch, "active", (70, 120, 10**6))
    for valuation in found[:2]:
        assert valuation.sampled
        assert np.all(np.abs(valuation.mean - truth) <= 5 * valuation.prediction_std)
    assert found[1].prediction_std.mean() < found[0].prediction_std.mean()
    np.testing.assert_allclose(found[2].mean, truth, atol=1e-12)


def test_evaluations_in_the_order_of_the_estimator_count_though_the_predictor_failed(monkeypatch):
    (first, second), _ = after_failed_validation(monkeypatch, "drawn", (60, 150))
    assert second.prediction_std.mean() < 0.9 * first.prediction_std.mean()


@pytest.mark.parametrize("focus", ["owner003", ("owner003", "owner011")])
def test_focus_on_an_owner_of_many_narrows_what_it_serves(focus):
    utility = Groups(MANY)
    combination = np.zeros(21)
    combination[3] = 1
    combination[11] = -1 if isinstance(focus, tuple) else 0
    variance = {}
    for served in (None, focus):
        ours = dupre.Valuer(
            MANY,
            empty=0.0,
            estimator=Sample(regression, 300),
            strategy=Active(focus=served),
        )
        own = run(ours, utility, 64)
        weights = weights_of(ours).W
        covariance = ours._knowledge.posterior(weights).functional_covariance()
        variance[served] = combination @ covariance @ combination
        assert np.isfinite(own.mean).all()
    assert variance[focus] < variance[None]


def test_repeats_of_sampled_coalitions_show_the_noise_of_trainings():
    utility, rng = Groups(MANY), np.random.default_rng(0)

    def noisy(members):
        return utility(members) + (0.05 * rng.normal() if members else 0.0)

    valuation = dupre.value(
        MANY,
        noisy,
        budget=400,
        repeats=2,
        estimator=Sample(regression, 130),
    )
    assert valuation.diagnostics is None
    assert valuation.noise.any()
    np.testing.assert_allclose(
        valuation.prediction_std**2, np.diag(valuation.noise), rtol=1e-9, atol=1e-15
    )
    assert len(utility.asked) == 2 * valuation.counting


def test_what_is_known_counts_in_the_budget_whether_it_was_sampled_or_not():
    utility = Groups(MANY)
    ours = dupre.Valuer(MANY, empty=0.0, estimator=Sample(regression, 300))
    known = {members: utility.of(members) for members in [*ours.suggest(20), *others(ours, 10)]}
    valuation = dupre.value(
        MANY,
        utility,
        budget=60,
        known=known,
        estimator=Sample(regression, 300),
    )
    assert valuation.evaluated == 60
    assert len(utility.asked) == 30
    assert not set(utility.asked) & set(known)


def test_a_failed_coalition_of_a_sample_is_predicted():
    utility = Groups(MANY)

    def failing(members):
        if len(members) == 20:
            raise ValueError("no")
        return utility(members)

    failing.empty = 0.0
    valuation = dupre.value(
        MANY,
        failing,
        budget=400,
        estimator=Sample(regression, 200),
        engine=Local(on_error="skip"),
    )
    assert valuation.failures
    assert all(len(members) == 20 for members in valuation.failures)
    assert valuation.evaluated == valuation.counting
    assert valuation.diagnostics is not None
    assert np.all(np.abs(valuation.mean - utility.values()) <= 5 * valuation.std)


@pytest.mark.parametrize("choose", [Active, Drawn])
@pytest.mark.parametrize("evaluated", [30, 60])
def test_a_forecast_of_sampled_values_never_falls_below_the_error_of_sampling(choose, evaluated):
    utility = Groups(MANY)
    ours = dupre.Valuer(
        MANY,
        empty=utility.empty,
        estimator=Sample(regression, 300),
        strategy=choose(),
    )
    valuation = run(ours, utility, evaluated)
    frame = ours.forecast(25)
    assert list(frame.index) == list(range(evaluated, evaluated + 26))
    np.testing.assert_allclose(frame.iloc[0, 1:], half_widths(valuation.covariance))
    assert frame["widest"].iloc[-1] < frame["widest"].iloc[0]
    assert np.all(frame.iloc[-1, 1:] >= half_widths(valuation.sampling))


def test_a_forecast_to_the_end_is_what_sampling_leaves():
    utility = Groups(MANY)
    ours = dupre.Valuer(
        MANY,
        empty=utility.empty,
        estimator=Sample(regression, 130),
    )
    valuation = run(ours, utility, 100)
    frame = ours.forecast(10**4)
    assert len(frame) == ours.left + 1
    np.testing.assert_allclose(
        frame.iloc[-1, 1:], half_widths(valuation.sampling), rtol=1e-3, atol=1e-6
    )


def test_the_utility_of_all_owners_is_predicted_until_it_is_evaluated():
    utility = Groups(MANY)
    ours = dupre.Valuer(
        MANY,
        empty=utility.empty,
        estimator=Sample(regression, 300),
    )
    for members in ours.suggest(80)[1:]:
        ours.record(members, utility(members))
    assert MANY.names not in ours.evaluations
    valuation = ours.values()
    assert valuation.grand_predicted
    assert "(predicted)" in str(valuation)
    assert valuation.grand == ours.predict([MANY.names])["utility"].iloc[0]
    ours.record(MANY.names, utility(MANY.names))
    assert not ours.values().grand_predicted
    assert ours.values().grand == utility.of(MANY.names)


# What is refused.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "active"}, "strategy must be Active"),
        ({"strategy": Drawn()}, "give estimator="),
        ({"estimator": estimators.exact, "strategy": Drawn()}, "give estimator="),
        (
            {"estimator": Sample(regression, 37)},
            "regression needs at least 38 samples for 6 owners, got 37",
        ),
        (
            {"estimator": Sample(permutation, 11)},
            "permutation needs at least 12 samples",
        ),
        ({"estimator": "permutation"}, "estimator must be a function"),
        ({"estimator": 3}, "estimator must be a function"),
        (
            {"estimator": estimators.group_testing, "semivalue": dupre.banzhaf},
            "known for Shapley only",
        ),
        ({"estimator": estimators.maximum_sample_reuse}, "join independently"),
        (
            {"estimator": Sample(regression, 40), "strategy": Active(check=30)},
            "check must be 0 or a number",
        ),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_evaluated(options, message):
    utility = Groups(SIX)
    with pytest.raises(InputError, match=message):
        dupre.value(SIX, utility, budget=70, **options)
    assert not utility.asked
    with pytest.raises(InputError, match=message):
        dupre.Valuer(SIX, empty=0.0, **options)


def test_all_coalitions_of_many_owners_are_refused():
    utility = Groups(MANY)
    with pytest.raises(InputError, match="2,097,151 coalitions, for at most 16 owners"):
        dupre.value(MANY, utility, budget=70, estimator=estimators.exact)
    assert not utility.asked


def test_expected_values_are_summed_over_more_samples_than_variances():
    owners = make_owners(18)
    utility = Asked(owners, lambda members: np.sqrt(members @ np.arange(1.0, 19.0)))
    found, fewer = (
        dupre.value(owners, utility, budget=60, progress=False, **options)
        for options in (
            {},
            {"estimator": Sample(regression, 4_096)},
        )
    )
    assert found.counting > 3 * fewer.counting
    # Four times the samples halve the error of sampling; predictions stay what they are.
    ratio = (found.sampling_std / fewer.sampling_std).median()
    assert 0.3 < ratio < 0.7
    np.testing.assert_allclose(found.prediction_std, fewer.prediction_std)
    assert found.values.sum() == pytest.approx(found.grand - found.empty)
