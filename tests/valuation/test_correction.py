from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import binom

import closed_form
import dupre
from asking import Asked, make_owners
from dupre import InputError
from dupre.game.coalitions import all_coalitions, from_names, to_names
from dupre.game.draws import Draws, distinct_draws
from dupre.game.estimators import Sample, exact, permutation, regression
from dupre.predictor import form
from dupre.predictor.form import Form, Predictor
from dupre.predictor.gp import condition
from dupre.predictor.training_noise import widening
from dupre.predictor.warp import straight_warp
from dupre.result.valuation import half_widths
from dupre.training.engines import Local
from dupre.valuation import knowledge
from dupre.valuation.inference import LEAST_CORRECTION
from dupre.valuation.knowledge import BLOCKS
from dupre.valuation.strategies import Active, Corrected

FIVE, EIGHT, TEN, MANY = map(make_owners, (5, 8, 10, 21))


def white(owners, seed=0):
    """Utilities without any pattern: nothing can be learned of one from others."""
    table = np.random.default_rng(seed).normal(size=2**owners.n)
    return Asked(owners, lambda C: table[C @ (1 << np.arange(owners.n))], empty=table[0])


def smooth(owners):
    """Diminishing returns."""
    worth = np.random.default_rng(0).uniform(0.1, 1, owners.n)
    return Asked(owners, lambda C: 1 - np.exp(-(C @ worth)))


def deceptive(owners):
    """Additive but for coalitions of middling size, where two owners are worth far more."""
    n = owners.n

    def game(C):
        size = C.sum(axis=1)
        middling = (size >= 4) & (size <= max(4, n - 5))
        return size / n + np.where(middling, 0.5 * C[:, :2].sum(axis=1), 0.0)

    return Asked(owners, game)


def run(ours, utility, budget):
    """The first design, then all the rest at once, or in batches if they are active."""
    while (left := budget - ours.evaluated) > 0 and ours.left:
        for members in ours.suggest(left if ours.question.corrected else min(left, ours.owners.n)):
            ours.record(members, utility(members))
    return ours.values()


def corrected(owners, utility, budget, **options):
    return run(
        dupre.Valuer(owners, empty=utility.empty, strategy=Corrected(), **options),
        utility,
        budget,
    )


def assert_same(first, second):
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.covariance, second.covariance)


@pytest.fixture
def unlearned(monkeypatch):
    """A predictor that does not learn its hyper-parameters: poor, but in no time.

    The correction must be right whatever the predictor is.
    """

    def learn(inputs, utilities, *, measured, empty, choose_p, rng):
        kernel = Form().kernel()
        kernel = kernel.at_median(kernel.distances(inputs, inputs))
        warp = straight_warp(utilities, empty=empty)
        gp = condition(kernel, inputs, utilities, noise=0.1, measured=measured, warp=warp)
        return Predictor(Form(), gp, (gp,), utilities, np.empty(0, dtype=np.int64), np.empty(0))

    monkeypatch.setattr(knowledge.form, "learn", learn)


class Additive:
    """A predictor by least squares on who is in: quick enough for many runs."""

    def __init__(self, inputs, utilities, **_):
        self.gp = self
        self.worth = np.linalg.lstsq(self.basis(inputs), utilities, rcond=None)[0]

    def basis(self, inputs):
        return np.append(inputs.members, np.ones((len(inputs.members), 1)), axis=1)

    def predict(self, inputs):
        return self.basis(inputs) @ self.worth, None


@pytest.fixture
def one_form(monkeypatch):
    """One form of the predictor instead of a search among several."""
    monkeypatch.setattr(form, "CHOICES", {})


def runs(owners, utility, draws, seeds, semivalue=dupre.shapley):
    """Errors and standard deviations, (seeds, n) each, after as many distinct draws."""
    weights = exact(semivalue, owners.n)
    u = utility.game(weights.members)
    ours = dupre.Valuer(owners, empty=0.0, semivalue=semivalue)._knowledge
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knowledge.form, "learn", Additive)
        for seed in range(seeds):
            ours.draws = Draws(weights.W, ours.heaviest, 0, np.random.default_rng(seed))
            evaluated = np.append(ours.heaviest, distinct_draws(ours.draws.sequence)[:draws])
            ours.observations.utilities[:] = np.nan
            ours.observations.utilities[evaluated] = u[evaluated]
            found.append(ours.corrected_values())
    errors = np.array([one.mean for one in found]) - weights.W @ u
    return errors, np.array([np.sqrt(np.diag(one.covariance)) for one in found])


def least_covered(trials):
    """Share of intervals that hold the truth, at least: 95 % but for bad luck of 1 in 10,000."""
    return binom.ppf(1e-4, trials, 0.95) / trials


# Right in the end, whatever the predictor makes of it.


@pytest.mark.parametrize(
    ("make", "draws"), [(white, 16), (white, 120), (smooth, 16), (smooth, 120), (deceptive, 40)]
)
def test_corrected_values_are_unbiased(make, draws):
    errors, _ = runs(EIGHT, make(EIGHT), draws, 400)
    standard_error = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    assert np.all(np.abs(errors.mean(axis=0)) < 4 * standard_error)


@pytest.mark.parametrize(
    "semivalue", [dupre.banzhaf, dupre.beta_shapley(4, 1)], ids=lambda s: s.name
)
def test_other_semivalues_are_corrected_too(semivalue):
    errors, _ = runs(EIGHT, white(EIGHT), 40, 200, semivalue)
    standard_error = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    assert np.all(np.abs(errors.mean(axis=0)) < 4 * standard_error)


def test_the_error_falls_with_the_root_of_the_draws():
    sizes = []
    for draws in (20, 80):
        errors, stds = runs(TEN, white(TEN), draws, 150)
        sizes.append((np.sqrt(np.mean(errors**2)), np.sqrt(np.mean(stds**2))))
    ratios = np.array(sizes[0]) / sizes[1]
    # The root of a mean square over 150 runs is known to 1 / sqrt(300) at worst, a ratio of two to
    # 8 %; repeated coalitions and Student's factor make it a little more than 2.
    assert np.all((ratios > 2 * 0.8) & (ratios < 2 * 1.35))


@pytest.mark.parametrize("make", [white, deceptive])
@pytest.mark.parametrize("draws", [20, 60])
def test_intervals_of_corrected_values_hold_the_truth(make, draws):
    errors, stds = runs(TEN, make(TEN), draws, 120)
    assert np.mean(np.abs(errors) <= 1.96 * stds) >= least_covered(120)
    assert np.sqrt(np.mean(stds**2)) < 1.5 * np.sqrt(np.mean(errors**2))


@pytest.mark.parametrize("draws", [100, 180, 230])
def test_intervals_hold_the_truth_where_most_of_the_coalitions_are_drawn(draws):
    errors, stds = runs(EIGHT, white(EIGHT), draws, 200)
    # Blocks that had seen later ones had errors a third larger than reported.
    assert np.sqrt(np.mean(errors**2)) < 1.2 * np.sqrt(np.mean(stds**2))
    assert np.mean(np.abs(errors) <= 1.96 * stds) >= least_covered(200)


@pytest.mark.usefixtures("one_form")
def test_a_game_that_deceives_the_predictor_does_not_deceive_corrected_values():
    utility = deceptive(TEN)
    covered = {}
    for strategy in (Active(), Corrected()):
        valuers = [dupre.Valuer(TEN, empty=0.0, seed=s, strategy=strategy) for s in range(4)]
        found = [run(valuer, utility, 41) for valuer in valuers]
        score = np.array([np.abs(one.mean - utility.values()) / one.std for one in found])
        covered[strategy] = np.mean(score[:, :2] <= 1.96)  # the owners it deceives about
    assert covered[Corrected()] > 0.75 > 0.5 > covered[Active()]


@pytest.mark.usefixtures("one_form")
def test_no_number_of_seeds_takes_the_error_out_of_uncorrected_values():
    utility = deceptive(TEN)
    found = [run(dupre.Valuer(TEN, empty=0.0, seed=seed), utility, 37).mean for seed in range(4)]
    errors = np.array(found) - utility.values()
    standard_error = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    assert np.max(np.abs(errors.mean(axis=0)) / standard_error) > 10


@pytest.mark.usefixtures("one_form")
def test_on_a_smooth_game_the_correction_costs_little():
    utility = smooth(EIGHT)
    ours = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    valuation = run(ours, utility, 60)
    without = run(dupre.Valuer(EIGHT, empty=0.0), utility, 60)
    draws_alone = np.sqrt(np.diag(ours._knowledge.sampled().covariance))
    assert valuation.std.mean() < 4 * without.std.mean()
    assert valuation.std.mean() < draws_alone.mean() / 3
    assert np.all(np.abs(valuation.mean - utility.values()) <= 5 * valuation.std)


@pytest.mark.usefixtures("unlearned")
def test_corrected_shapley_values_add_up():
    utility = white(EIGHT)
    valuation = corrected(EIGHT, utility, 50)
    assert valuation.efficiency_gap == pytest.approx(0, abs=1e-9)
    assert np.abs(valuation.covariance.sum()) < 1e-9 * np.trace(valuation.covariance)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_corrected_values_are_exact_once_everything_is_evaluated(n):
    owners = make_owners(n)
    utility = white(owners)
    valuation = dupre.value(owners, utility, budget=2**n - 1, progress=False, strategy=Corrected())
    np.testing.assert_allclose(valuation.mean, utility.values(), atol=1e-12)
    assert valuation.exact
    assert not valuation.corrected
    assert not valuation.std.any()


# Which coalitions are evaluated.


@pytest.mark.usefixtures("unlearned")
def test_after_the_first_design_coalitions_are_drawn_by_their_weight():
    ours = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    plain = dupre.Valuer(EIGHT, empty=0.0)
    first = ours.suggest(17)
    assert first == plain.suggest(17)
    for members in first:
        ours.record(members, 0.5)
    sequence = [
        to_names(row, EIGHT.names) for row in all_coalitions(8)[ours._knowledge.draws.sequence]
    ]
    assert ours.suggest(40) == list(dict.fromkeys(sequence))[:40]


def test_random_coalitions_follow_a_first_design_that_is_under_way():
    ours = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    first = ours.suggest(17)
    sequence = [
        to_names(row, EIGHT.names) for row in all_coalitions(8)[ours._knowledge.draws.sequence]
    ]
    assert ours.suggest(20, pending=first) == list(dict.fromkeys(sequence))[:20]


@pytest.mark.usefixtures("unlearned")
def test_the_order_in_which_draws_are_recorded_does_not_matter():
    utility, found = white(EIGHT), []
    for step in (1, -1):
        ours = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
        for k in (17, 30):
            for members in ours.suggest(k)[::step]:
                ours.record(members, utility(members))
        found.append(ours)
    assert_same(found[0].values(), found[1].values())
    assert found[0].suggest(9) == found[1].suggest(9)


@pytest.mark.usefixtures("unlearned")
def test_values_are_corrected_from_the_first_16_draws_on():
    utility = white(EIGHT)
    ours = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    assert LEAST_CORRECTION == 4 * BLOCKS == 16
    assert not run(ours, utility, 17).corrected
    before = len(ours._knowledge.drawn)
    while len(ours._knowledge.drawn) < LEAST_CORRECTION:
        assert not ours.values().corrected
        run(ours, utility, ours.evaluated + 1)
    assert before < LEAST_CORRECTION
    assert ours.values().corrected
    assert "was estimated from random coalitions and added" in str(ours.values())


@pytest.mark.usefixtures("unlearned")
def test_an_unevaluated_coalition_of_the_first_design_widens_the_intervals():
    utility = Asked(EIGHT, lambda C: C.mean(axis=1) + 100.0 * C.all(axis=1))
    ours = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    first = ours.suggest(17)
    for members in first[1:]:
        ours.record(members, utility(members))
    for members in ours.suggest(40, pending=first[:1]):
        ours.record(members, utility(members))
    valuation = ours.values()
    assert valuation.corrected
    assert valuation.first_left == 1  # all owners: 1/8 of its utility is in every value
    failed = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    for members, number in ours.evaluations.items():
        failed.record(members, number)
    failed.record_failure(first[0], "no")
    np.testing.assert_allclose(valuation.std, failed.values().std, rtol=1e-9)


# Corrected values of samples.


@pytest.mark.usefixtures("unlearned")
def test_corrected_values_of_many_owners_hold_what_the_sample_would_have_given():
    rng = np.random.default_rng(0)
    noise = {}

    def game(C):
        return np.array([noise.setdefault(row.tobytes(), rng.normal()) for row in C])

    utility, inside = Asked(MANY, game), []
    for seed in range(12):
        ours = dupre.Valuer(
            MANY,
            empty=0.0,
            seed=seed,
            estimator=Sample(regression, 400),
            strategy=Corrected(),
        )
        valuation = run(ours, utility, 90)
        assert valuation.corrected
        assert valuation.sampling_std.min() > 0
        np.testing.assert_allclose(
            valuation.std, valuation.prediction_std + valuation.sampling_std, rtol=1e-12
        )
        weights = ours._knowledge.weights
        truth = weights.W @ utility.game(weights.members)
        inside.append(np.abs(valuation.mean - truth) <= 1.96 * valuation.prediction_std)
    assert np.mean(inside) >= least_covered(12)


@pytest.mark.usefixtures("unlearned")
def test_no_owner_is_known_for_sure_because_none_of_its_coalitions_was_drawn():
    utility = Asked(MANY, lambda C: (C.sum(axis=1) % 2).astype(float))
    ours = dupre.Valuer(
        MANY,
        empty=0.0,
        estimator=Sample(permutation, 420),
        strategy=Corrected(),
    )
    valuation = run(ours, utility, 43 + LEAST_CORRECTION)
    assert valuation.corrected
    assert valuation.prediction_std.min() > 1e-6


# The loop.


@pytest.mark.usefixtures("one_form")
def test_a_resumed_run_gives_the_same_corrected_values(tmp_path):
    game = closed_form.unanimity_sum(6, 12, np.random.default_rng(0)).utility
    owners = make_owners(6)
    table = dict(
        zip(
            (to_names(row, owners.names) for row in all_coalitions(6)),
            game(all_coalitions(6)).tolist(),
            strict=True,
        )
    )
    call = {"budget": 34, "empty": 0.0, "strategy": Corrected()}
    at_once = dupre.value(owners, table.__getitem__, progress=False, **call)
    assert at_once.corrected

    def stop_at_25(shown):
        if shown.evaluated == 25:
            raise KeyboardInterrupt

    class Table:
        def __call__(self, members):
            return table[members]

    call["store"] = tmp_path / "run.sqlite"
    with pytest.raises(dupre.Interrupted):
        dupre.value(owners, Table(), progress=stop_at_25, **call)
    resumed = dupre.value(owners, Table(), progress=False, **call)
    assert resumed.found == 25
    assert_same(resumed, at_once)


@pytest.mark.usefixtures("unlearned")
def test_ask_and_tell_equals_the_one_call():
    utility = white(EIGHT)
    valuation = dupre.value(EIGHT, utility, budget=45, progress=False, strategy=Corrected())
    assert valuation.corrected
    assert_same(valuation, corrected(EIGHT, utility, 45))
    assert len(set(utility.asked)) == 45


@pytest.mark.parametrize("budget", [1, 17, 30])
def test_a_budget_too_small_for_a_correction_is_refused(budget):
    utility = white(EIGHT)
    with pytest.raises(InputError, match=r"Corrected\(\) needs 16 random coalitions"):
        dupre.value(EIGHT, utility, budget=budget, strategy=Corrected())
    assert not utility.asked


@pytest.mark.usefixtures("unlearned")
def test_the_least_budget_that_is_named_is_enough():
    with pytest.raises(InputError, match="a budget of at least") as refused:
        dupre.value(EIGHT, white(EIGHT), budget=17, strategy=Corrected())
    least = int(re.search(r"at least (\d+)", str(refused.value)).group(1))
    assert least == 17 + LEAST_CORRECTION
    assert dupre.value(
        EIGHT, white(EIGHT), budget=least, progress=False, strategy=Corrected()
    ).corrected


def test_a_budget_for_everything_is_enough_however_few_coalitions_there_are():
    owners = make_owners(4)
    utility = white(owners)
    with pytest.raises(InputError, match=r"Corrected\(\) needs"):
        dupre.value(owners, utility, budget=14, strategy=Corrected())
    assert not utility.asked
    assert dupre.value(owners, utility, budget=15, progress=False, strategy=Corrected()).exact


@pytest.mark.parametrize("holdout", [4, 8])
def test_a_correction_and_a_holdout_are_refused_together(holdout):
    utility = white(EIGHT)
    with pytest.raises(InputError, match="leave out holdout="):
        dupre.value(EIGHT, utility, budget=60, strategy=Corrected(check=holdout))
    with pytest.raises(InputError, match="leave out holdout="):
        dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected(check=holdout))
    assert not utility.asked


@pytest.mark.usefixtures("unlearned")
@pytest.mark.parametrize("why", ["known", "failed"])
def test_a_correction_that_was_asked_for_and_not_made_is_mentioned(why):
    utility = white(EIGHT)
    rng = np.random.default_rng(1)
    some = [tuple(sorted(rng.choice(EIGHT.names, 4, replace=False))) for _ in range(12)]

    def failing(members):
        if why == "failed" and len(members) in (3, 4, 5):
            raise ValueError("no")
        return utility(members)

    known = {members: utility(members) for members in some} if why == "known" else None
    call = {
        "budget": 33,
        "known": known,
        "strategy": Corrected(),
        "engine": Local(on_error="skip"),
    }
    valuation = dupre.value(EIGHT, failing, empty=0.0, progress=False, **call)
    assert valuation.corrected or "correct" in str(valuation)


@pytest.mark.usefixtures("unlearned")
def test_failed_draws_are_left_out_and_widen_the_intervals():
    utility, plain = white(EIGHT), dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    run(plain, utility, 80)
    failing = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    lost = list(plain.evaluations)[40:46]
    for members, number in plain.evaluations.items():
        if members in lost:
            failing.record_failure(members, "no")
        else:
            failing.record(members, number)
    valuation = failing.values()
    assert valuation.corrected
    assert len(valuation.failures) == 6
    assert np.all(np.abs(valuation.mean - utility.values()) <= 5 * valuation.std)
    assert valuation.std.mean() > plain.values().std.mean()


@pytest.mark.usefixtures("unlearned")
def test_noise_of_repeated_trainings_is_part_of_the_intervals_of_corrected_values():
    utility, rng = smooth(EIGHT), np.random.default_rng(0)
    ours = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    for k in (17, 30):
        for members in ours.suggest(k):
            ours.record(members, utility(members) + 0.2 * rng.normal(size=2))
    valuation = ours.values()
    assert valuation.corrected
    first = [
        from_names(members, EIGHT.names) for members in dupre.Valuer(EIGHT, empty=0.0).suggest(17)
    ]
    place = [int(row @ (1 << np.arange(8))) - 1 for row in first]
    measured = ours._knowledge.training_variances()[place]
    W = exact(dupre.shapley, 8).W[:, place]
    np.testing.assert_allclose(
        valuation.noise, widening(47) * (W * measured) @ W.T, rtol=1e-9, atol=1e-15
    )
    assert np.all(valuation.std**2 >= np.diag(valuation.noise))


@pytest.mark.usefixtures("unlearned")
def test_a_forecast_of_corrected_values_begins_with_the_present_and_narrows_as_draws_do():
    utility = white(EIGHT)
    ours = dupre.Valuer(EIGHT, empty=0.0, strategy=Corrected())
    valuation = run(ours, utility, 60)
    frame, m = ours.forecast(30), len(ours._knowledge.drawn)
    np.testing.assert_allclose(frame.iloc[0, 1:], half_widths(valuation.covariance))
    ratio = frame["widest"].iloc[-1] / frame["widest"].iloc[0]
    assert ratio == pytest.approx(np.sqrt(m / (m + 30)), rel=1e-9)
