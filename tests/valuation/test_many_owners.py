"""Samples of coalitions: from two owners to a hundred, and two errors in every interval."""

from dataclasses import replace

import numpy as np
import pytest

import closed_form
import dupre
import owners_and_games
from dupre import estimators
from dupre.game import coalitions
from dupre.game.coalitions import to_names
from dupre.game.estimators import Sample, permutation, regression, stratified_svarm, svarm
from dupre.predictor.calibration import SCALE, PredictorCheck
from dupre.valuation.stopping import within
from dupre.valuation.strategies import Active, Drawn
from owners_and_games import LoggedGame, evaluate, least_share, make_owners, record, value

SIX, MANY = make_owners(6), make_owners(21)
SAMPLE = Sample(regression, 300)


class Groups(LoggedGame):
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


def new(utility, **options):
    """A valuer that knows nothing, by default of a sample of 300 coalitions."""
    options = {"empty": utility.empty, "estimator": SAMPLE} | options
    return dupre.Valuer(utility.owners, **options)


def weights_of(ours):
    return ours.question.merged.by_name


def by_hand(ours, utility):
    """W u, once everything is evaluated."""
    weights = weights_of(ours)
    return weights.W @ utility.game(weights.members) + weights.empty * utility.empty


def others(ours, count):
    """Coalitions, by name, that were not sampled."""
    rng = np.random.default_rng([count, 1])
    sampled = {to_names(row, MANY.names) for row in weights_of(ours).members}
    rows = rng.random((2 * count, MANY.n)) < rng.uniform(0.2, 0.8, size=(2 * count, 1))
    fresh = [to_names(row, MANY.names) for row in rows if row.any()]
    return [members for members in fresh if members not in sampled][:count]


# Which coalitions are evaluated, which predicted.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "budget"), [(permutation, 60), (regression, 9), (regression, 60), (svarm, 43)]
)
def test_drawn_coalitions_are_evaluated_in_the_order_of_the_estimator(estimator, budget):
    utility = Groups(MANY)
    options = {"seed": 3, "estimator": Sample(estimator, 200), "strategy": Drawn()}
    ours = new(utility, **options)
    valuation = value(MANY, utility, budget=budget, **options)
    members = weights_of(ours).members[:budget]
    assert utility.asked == [to_names(row, MANY.names) for row in members]
    assert valuation.facts.evaluated == budget
    assert valuation.facts.counting == ours.question.counting > budget
    assert valuation.facts.diagnostics is not None


ALL = [(permutation, Drawn()), (permutation, Active()), (regression, Active())]
ALL += [(stratified_svarm, Drawn()), (svarm, Active())]


@pytest.mark.parametrize(("estimator", "strategy"), ALL)
def test_nothing_is_predicted_once_all_sampled_coalitions_are_evaluated(estimator, strategy):
    game = closed_form.unanimity_sum(6, 9, np.random.default_rng(1))
    utility = LoggedGame(SIX, game.utility, 0.5)
    options = {"estimator": Sample(estimator, 57), "strategy": strategy}
    valuation, ours = value(SIX, utility, budget=57, **options), new(utility, **options)
    np.testing.assert_allclose(valuation.mean, by_hand(ours, utility), atol=1e-12)
    assert valuation.facts.diagnostics is None
    assert not valuation.uncertainty.std("prediction").any()
    assert (
        len(utility.asked)
        == len(set(utility.asked))
        == valuation.facts.counting
        == ours.question.counting
    )
    weights = weights_of(ours)
    sampling = weights.sampling_covariance(utility.game(weights.members), utility.empty)
    assert sampling.any()
    np.testing.assert_allclose(valuation.uncertainty.sampling, sampling, atol=1e-12)
    np.testing.assert_allclose(valuation.uncertainty.total, sampling, atol=1e-12)
    assert not valuation.exact
    assert "all of them evaluated" in valuation.explain()


def test_draws_that_agree_are_no_proof_and_a_sample_of_everything_is():
    drawn = value(SIX, len, budget=63, estimator=Sample(estimators.permutation, 60))
    assert drawn.uncertainty.std("sampling").max() < 1e-12
    assert not drawn.complete
    assert "All draws agree" in drawn.explain()
    every = value(SIX, len, budget=63, estimator=Sample(estimators.regression, 1000))
    assert every.uncertainty.sampling is None
    assert every.complete


def test_the_exact_estimator_is_what_few_owners_are_valued_with():
    plain = value(SIX, Groups(SIX), budget=20)
    owners_and_games.assert_same(
        value(SIX, Groups(SIX), budget=20, estimator=estimators.exact), plain
    )
    assert plain.uncertainty.sampling is None
    assert not plain.uncertainty.std("sampling").any()
    np.testing.assert_array_equal(plain.uncertainty.std("prediction"), plain.std)
    assert "sampled coalitions" not in plain.explain()


# Total uncertainty.


@pytest.fixture(scope="module")
def seeds():
    """Valuations of one game, each by its own sample of coalitions, partly evaluated."""
    utility = Groups(MANY, seed=1)
    valuers = [new(utility, seed=seed) for seed in range(10)]
    return utility, [(ours, evaluate(ours, utility, 43)) for ours in valuers]


def test_the_variance_is_the_bound_of_remark_1(seeds):
    for _, valuation in seeds[1]:
        predicted, sampled = (
            valuation.uncertainty.std("prediction"),
            valuation.uncertainty.std("sampling"),
        )
        assert predicted.min() > 0
        assert sampled.min() > 0
        bound = predicted**2 + sampled**2 + 2 * predicted * sampled
        np.testing.assert_allclose(np.diag(valuation.uncertainty.total), bound, rtol=1e-12)
        np.testing.assert_allclose(valuation.std, predicted + sampled, rtol=1e-12)
        np.testing.assert_allclose(sampled**2, np.diag(valuation.uncertainty.sampling), rtol=1e-12)
        for matrix in (valuation.uncertainty.total, valuation.uncertainty.sampling):
            np.testing.assert_allclose(matrix, matrix.T, atol=0, rtol=1e-12)
            eigenvalues = np.linalg.eigvalsh(matrix)
            assert eigenvalues[0] > -1e-10 * eigenvalues[-1]

    ours, valuation = seeds[1][0]
    known = ours.state
    posterior = known.beliefs.averaged
    assert known.beliefs.predictor.outlier_variance == 0
    own = np.diag(posterior.functional_covariance()) * SCALE**2
    np.testing.assert_allclose(valuation.uncertainty.std("prediction") ** 2, own, rtol=1e-9)
    utilities = known.utilities.copy()
    utilities[known.unknown] = posterior.mean
    sampling = weights_of(ours).sampling_covariance(utilities, ours.empty)
    np.testing.assert_allclose(valuation.uncertainty.sampling, sampling, rtol=1e-9)

    frame, text = valuation.to_frame(), valuation.explain()
    np.testing.assert_allclose(frame["std"], frame["prediction_std"] + frame["sampling_std"])
    assert f"sums over {ours.question.counting} sampled coalitions:" in text
    assert f"up to {valuation.uncertainty.std('sampling').max():.2g} is due to their choice" in text
    assert f"up to {valuation.uncertainty.std('prediction').max():.2g} to predictions" in text
    assert "43 of 2,097,151 possible coalitions evaluated" in text


def test_intervals_hold_the_truth_where_coalitions_are_sampled_and_predicted(seeds):
    utility, found = seeds
    errors = np.array([valuation.mean - utility.values() for _, valuation in found])
    stds = np.array([valuation.std for _, valuation in found])
    assert np.mean(np.abs(errors) <= 1.96 * stds) >= least_share(len(found))
    # Not by being absurdly wide.
    assert np.sqrt(np.mean(stds**2)) < 5 * np.sqrt(np.mean(errors**2))


GROUPS = Groups(MANY, empty=0.0)
GAMES = {
    "airport": closed_form.airport(np.linspace(1, 3, 21)),
    "groups": closed_form.Game(21, GROUPS.game, GROUPS.values()),
    "unanimity sum": closed_form.unanimity_sum(21, 8, np.random.default_rng(2)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "name"), [(permutation, "groups"), *((regression, name) for name in GAMES)]
)
def test_intervals_hold_the_truth_where_all_that_was_sampled_is_evaluated(estimator, name):
    game = GAMES[name]
    inside = []
    for seed in range(25):
        ours = new(GROUPS, seed=seed, estimator=Sample(estimator, 240))
        members = weights_of(ours).members
        for row, number in zip(members, game.utility(members), strict=True):
            ours.record(to_names(row, MANY.names), float(number))
        valuation = ours.interim_values()
        inside.append(np.abs(valuation.mean - game.shapley) <= 1.96 * valuation.std + 1e-12)
    assert np.mean(inside) >= least_share(25)


# From two owners to a hundred.


@pytest.mark.usefixtures("all_forms")  # one form alone is too sure of pairs and threes
@pytest.mark.parametrize("n", [2, 3, 17, 70])
def test_the_same_call_values_any_number_of_owners(n):
    owners = make_owners(n)
    utility = Groups(owners)
    budget = 2 * n + 5  # four more than the first design, without which values are a first guess
    estimator = Sample(regression, 650) if n > 16 else None
    valuation = value(owners, utility, budget=budget, estimator=estimator)
    assert len(utility.asked) == len(set(utility.asked)) == min(budget, 2**n - 1)
    assert np.all(np.abs(valuation.mean - utility.values()) <= 5 * valuation.std + 1e-12)
    assert valuation.exact == (n < 4)
    assert np.all(valuation.std < np.ptp(utility.values())) or n == 2
    assert len(valuation.to_frame()) == n
    assert owners.names[-1] in valuation.explain()
    assert not valuation.facts.grand_predicted


def test_all_coalitions_count_up_to_16_owners_and_above_they_are_never_listed(monkeypatch):
    at_most, above = (dupre.Valuer(make_owners(n), empty=0.0) for n in (16, 17))
    assert at_most.question.counting == 2**16 - 1
    assert at_most.question.estimator is None
    assert above.question.estimator is regression
    assert 3500 < above.question.counting <= 4096

    def refuse(owners):
        raise MemoryError(f"2^{owners} rows")

    utility = Groups(make_owners(17))
    monkeypatch.setattr(coalitions, "all_coalitions", refuse)
    monkeypatch.setattr(estimators, "all_coalitions", refuse)
    assert evaluate(new(utility), utility, 37).facts.evaluated == 37


OTHERS = [(20, dupre.banzhaf), (70, dupre.beta_shapley(4, 1)), (70, dupre.leave_one_out)]


@pytest.mark.parametrize(("n", "semivalue"), OTHERS)
def test_other_semivalues_of_many_owners(n, semivalue):
    utility = Groups(make_owners(n))
    ours = new(utility, semivalue=semivalue, estimator=Sample(regression, 600))
    valuation, truth = evaluate(ours, utility, 2 * n + 1), utility.values(semivalue)
    assert np.all(np.abs(valuation.mean - truth) <= 5 * valuation.std + 1e-9)
    assert np.all(valuation.std < 3 * np.ptp(truth))
    if semivalue is dupre.leave_one_out:
        assert valuation.exact
        assert valuation.facts.evaluated == valuation.facts.counting == n + 1
        sample = Sample(permutation, 1_000)  # of which some owners were never drawn
        ours = new(utility, semivalue=semivalue, estimator=sample)
        assert ours.question.counting == ours.left
        assert evaluate(ours, utility, 1_000).std.min() > 0


# Coalitions that do not enter the values.


@pytest.fixture(scope="module")
def known():
    """Utilities of 43 coalitions that were suggested, and the values that follow."""
    utility = Groups(MANY)
    ours = new(utility)
    return utility, evaluate(ours, utility, 43), ours.evaluations


def test_coalitions_that_were_not_sampled_are_learned_from_and_listed_or_failed(known):
    utility, without, numbers = known
    ours = record(new(utility), numbers)
    besides = {members: utility.of(members) for members in others(ours, 30)}
    valuation = record(ours, besides).interim_values()
    assert besides.items() <= ours.evaluations.items()
    assert valuation.facts.evaluated == ours.evaluated == 73
    assert ours.left == ours.question.counting - 43
    assert (
        valuation.uncertainty.std("prediction").mean()
        < 0.9 * without.uncertainty.std("prediction").mean()
    )
    assert not set(ours.suggest(20)) & set(besides)
    ours, failed = record(new(utility), numbers), next(iter(besides))
    ours.record_failure(failed, "no")  # it is listed and changes no value
    assert ours.failures == {failed: "no"}
    owners_and_games.assert_same(ours.interim_values(), without)
    assert ours.evaluated == 44


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_order_in_which_they_are_recorded_does_not_matter(known, repeats):
    utility, _, numbers = known
    found = []
    for step in (1, -1):
        ours = new(utility)
        besides = others(ours, 12)[::step]
        for members in [*besides, *numbers] if step == 1 else [*reversed(numbers), *besides]:
            spread = np.random.default_rng(len(members)).normal(size=repeats)
            ours.record(members, utility.of(members) + 1e-3 * spread)
        found.append(ours)
    one, two = (ours.interim_values() for ours in found)
    assert found[0].suggest(6) == found[1].suggest(6)
    # With repeats their spread is summed in the order of recording: equal up to rounding.
    tolerance = 0 if repeats == 1 else 1e-9
    np.testing.assert_allclose(one.mean, two.mean, rtol=tolerance, atol=tolerance)
    close = {"rtol": tolerance, "atol": 1e-6 * tolerance}
    np.testing.assert_allclose(one.uncertainty.total, two.uncertainty.total, **close)


def test_one_coalition_that_was_not_sampled_is_enough_for_a_first_guess():
    ours = new(Groups(MANY))
    ours.record(others(ours, 1)[0], 0.5)
    valuation = ours.interim_values()
    assert np.isfinite(valuation.mean).all()
    assert valuation.facts.grand_predicted
    assert valuation.facts.evaluated == 1
    assert valuation.std.min() > 0


# The loop.


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [Active(), Drawn()])
def test_a_stop_rule_looks_at_both_parts_of_the_uncertainty(strategy):
    utility, sample = Groups(MANY), Sample(regression, 130)
    everything = value(MANY, utility, budget=10**9, estimator=sample)
    limit = 1.959964 * everything.uncertainty.std("sampling").max()
    # A budget beyond the sample ends where the sample ends.
    assert everything.facts.evaluated == everything.facts.counting == len(utility.asked) <= 130
    assert everything.facts.stopped == "all sampled coalitions are evaluated"
    options = {"estimator": sample, "strategy": strategy}
    valuation = value(MANY, utility, stop=within(3 * limit), **options)
    assert valuation.uncertainty.spread().half_width().max() <= 3 * limit
    assert 43 <= valuation.facts.evaluated < valuation.facts.counting
    assert "within" in valuation.facts.stopped
    # A rule that sampling forbids is never met.
    options["strategy"] = type(strategy)(batch=130)
    valuation = value(MANY, utility, stop=within(limit / 2), **options)
    assert valuation.facts.stopped == "all sampled coalitions are evaluated"


@pytest.mark.parametrize("kind", [Active, Drawn])
def test_a_check_of_sampled_coalitions_tests_the_predictor(kind):
    utility = Groups(MANY)
    valuation = value(MANY, utility, budget=70, estimator=SAMPLE, strategy=kind(check=8))
    assert valuation.facts.check.held_out == 8
    assert valuation.facts.check.error < valuation.facts.check.by_size
    assert not valuation.facts.sampled
    assert np.all(np.abs(valuation.mean - utility.values()) <= 5 * valuation.std)


@pytest.mark.parametrize("kind", [Active, Drawn])
def test_values_of_many_owners_do_not_rely_on_a_predictor_that_failed(monkeypatch, kind):
    def game(C):
        return np.array([np.random.default_rng([0, *row.astype(int)]).normal() for row in C])

    monkeypatch.setattr(PredictorCheck, "failed", True)
    utility = LoggedGame(MANY, game)
    ours = new(utility, estimator=Sample(regression, 210), strategy=kind(check=10))
    first, second, last = (evaluate(ours, utility, budget) for budget in (60, 150, 10**6))
    truth = by_hand(ours, utility)
    for valuation in (first, second):
        assert valuation.facts.sampled
        assert np.all(np.abs(valuation.mean - truth) <= 5 * valuation.uncertainty.std("prediction"))
    assert (
        second.uncertainty.std("prediction").mean()
        < 0.9 * first.uncertainty.std("prediction").mean()
    )
    np.testing.assert_allclose(last.mean, truth, atol=1e-12)


@pytest.mark.parametrize("focus", ["owner03", ("owner03", "owner11")])
def test_focus_on_an_owner_of_many_narrows_what_it_serves(focus):
    utility, combination, variance = Groups(MANY), np.zeros(21), {}
    combination[3] = 1
    combination[11] = -1 if isinstance(focus, tuple) else 0
    for served in (None, focus):
        valuation = evaluate(new(utility, strategy=Active(focus=served)), utility, 64)
        assert np.isfinite(valuation.mean).all()
        variance[served] = combination @ valuation.uncertainty.prediction @ combination
    assert variance[focus] < variance[None]


def test_repeats_of_sampled_coalitions_show_the_noise_of_trainings():
    utility, rng = Groups(MANY), np.random.default_rng(0)

    def noisy(members):
        return utility(members) + (0.05 * rng.normal() if members else 0.0)

    valuation = value(MANY, noisy, budget=400, repeats=2, estimator=Sample(regression, 130))
    assert valuation.facts.diagnostics is None
    assert valuation.uncertainty.noise.any()
    variance, expected = (
        valuation.uncertainty.std("prediction") ** 2,
        np.diag(valuation.uncertainty.noise),
    )
    np.testing.assert_allclose(variance, expected, rtol=1e-9, atol=1e-15)
    assert len(utility.asked) == 2 * valuation.facts.counting


@pytest.mark.parametrize(("strategy", "evaluated"), [(Active(), 30), (Active(), 60), (Drawn(), 60)])
def test_a_forecast_of_sampled_values_never_falls_below_the_error_of_sampling(strategy, evaluated):
    utility = Groups(MANY)
    ours = new(utility, strategy=strategy)
    valuation = evaluate(ours, utility, evaluated)
    frame = ours.forecast(25)
    assert list(frame.index) == list(range(evaluated, evaluated + 26))
    np.testing.assert_allclose(frame.iloc[0, 1:], valuation.uncertainty.spread().half_width())
    assert frame["widest"].iloc[-1] < frame["widest"].iloc[0]
    assert np.all(frame.iloc[-1, 1:] >= 1.959964 * valuation.uncertainty.std("sampling"))


def test_a_forecast_to_the_end_is_what_sampling_leaves():
    utility = Groups(MANY)
    ours = new(utility, estimator=Sample(regression, 130))
    valuation, frame = evaluate(ours, utility, 100), ours.forecast(10**4)
    assert len(frame) == ours.left + 1
    left = 1.959964 * valuation.uncertainty.std("sampling")
    np.testing.assert_allclose(frame.iloc[-1, 1:], left, rtol=1e-3, atol=1e-6)


def test_expected_values_of_very_many_owners_are_summed_over_the_sample_itself(monkeypatch):
    def asked(n, estimator=None):
        return dupre.Valuer(make_owners(n), empty=0.0, estimator=estimator).question

    assert replace(asked(18), samples=16_400).larger is None  # as of 410 owners
    assert asked(20, SAMPLE).larger is None
    # The same with fewer owners: the larger sample would be too small for a regression.
    monkeypatch.setattr("dupre.valuation.question.SAMPLES", 400)
    monkeypatch.setattr("dupre.valuation.question.SAMPLES_OF_MEANS", 100)
    owners = make_owners(18)
    found = value(owners, LoggedGame(owners, lambda C: np.sqrt(C.sum(axis=1))), budget=40)
    assert found.facts.counting > 400
    monkeypatch.setattr("dupre.valuation.question.SAMPLES_OF_MEANS", 1_000)
    assert len(asked(18).larger.weights.members) > asked(18).samples


@pytest.mark.slow
def test_expected_values_are_summed_over_more_samples_than_variances(monkeypatch):
    monkeypatch.setattr("dupre.valuation.question.SAMPLES", 1_024)
    monkeypatch.setattr("dupre.valuation.question.SAMPLES_OF_MEANS", 4_096)
    owners = make_owners(18)
    utility = LoggedGame(owners, lambda members: np.sqrt(members @ np.arange(1.0, 19.0)))
    found, fewer = (
        value(owners, utility, budget=45, estimator=e) for e in (None, Sample(regression, 1_024))
    )
    assert found.facts.counting > 3 * fewer.facts.counting
    # Four times the samples halve the error of sampling; predictions stay what they are.
    ratio = np.median(found.uncertainty.std("sampling") / fewer.uncertainty.std("sampling"))
    assert 0.3 < ratio < 0.7
    np.testing.assert_allclose(
        found.uncertainty.std("prediction"), fewer.uncertainty.std("prediction")
    )
    assert found.values.sum() == pytest.approx(found.facts.grand - found.facts.empty)
