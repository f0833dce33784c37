"""Ask / tell: what is suggested, what is recorded, and what is known from it."""

import pickle
from functools import partial

import numpy as np
import pytest

import dupre
import owners_and_games
from dupre import InputError, Valuer, kernels
from dupre.game.coalitions import from_names, to_names
from dupre.game.estimators import exact
from dupre.game.weights import student_factor
from dupre.predictor.calibration import variance_of_means
from dupre.valuation import strategies
from dupre.valuation.strategies import Active
from owners_and_games import assert_same, evaluate, holds, make_owners, record, smooth, value, white

FIVE = make_owners(5)
CHECK_6 = Active(check=6)


def new(empty=0.1, **options):
    """A valuer of five owners that knows nothing."""
    return dupre.Valuer(FIVE, empty=empty, **options)


def past_design(budget=13, owners=FIVE, **options):
    """A valuer past its first design of 2n + 1 coalitions, and its utility."""
    utility = smooth(owners)
    ours = dupre.Valuer(owners, empty=utility.empty, **options)
    evaluate(ours, utility, budget)
    return ours, utility


def repeat(utility, repeats, spread, seed=0):
    """The utility as several numbers around it."""
    rng = np.random.default_rng(seed)
    return lambda members: utility(members) + spread * rng.normal(size=repeats)


@pytest.mark.parametrize("singles", [2, 3], ids=["predicted", "exact"])
def test_the_grand_coalition_is_predicted_even_where_it_has_no_weight(singles):
    owners = make_owners(3)
    alone = dupre.Semivalue("alone", lambda c, n: np.where(c == 0, 0.0, -np.inf))
    ours = dupre.Valuer(owners, empty=0.0, semivalue=alone)
    record(ours, {(name,): 0.2 for name in owners.names[:singles]})
    record(ours, {owners.names[:2]: 0.8, owners.names[1:]: 0.8})
    assert ours.values().facts.grand > 0.5


@pytest.mark.parametrize("check", [0, 5])
def test_the_first_design_is_complete_when_its_last_coalition_is_tried(check):
    ours = new(strategy=Active(check=check))
    assert (ours.left, ours.evaluated) == (31, 0)
    assert new(semivalue=dupre.leave_one_out).left == 6  # those with a weight
    for number, members in enumerate(reversed(ours.suggest(11 + check)), start=1):
        assert not ours.designed
        if number % 4:
            ours.record(members, float(number))
        else:
            ours.record_failure(members, "no")
        assert (ours.left, ours.evaluated) == (31 - number, number)
    assert ours.designed


def test_the_first_design_is_as_long_as_asked(monkeypatch):
    monkeypatch.setattr(strategies, "active_batch", lambda *_: pytest.fail("too early"))
    for first, length in ((3, 3), (7, 7), (None, 11)):
        ours = new(strategy=Active(first=first))
        for k in range(length):
            (members,) = ours.suggest(1)
            ours.record(members, float(k))
        with pytest.raises(pytest.fail.Exception, match="too early"):
            ours.suggest(1)


# Coalitions under way.


@pytest.mark.parametrize("budget", [2, 11, 14], ids=["design", "first active", "active"])
def test_pending_coalitions_are_followed_by_what_would_have_followed_them(budget):
    ours, _ = past_design(budget)
    batch = ours.suggest(6)
    for k in (1, 3, 5):
        under_way = [members[::-1] for members in reversed(batch[:k])]
        assert ours.suggest(6 - k, pending=under_way) == batch[k:]
    assert ours.suggest(6) == batch


def test_pending_coalitions_are_not_suggested_whatever_else_is_left_and_known_ones_are_no_news():
    ours, _ = past_design(23)
    failed, *still_open = ours.suggest(8)
    ours.record_failure(failed, "no")
    assert ours.suggest(7, pending=still_open) == []
    assert ours.suggest(7, pending=still_open[1:]) == still_open[:1]
    assert ours.suggest(3, pending=[*ours.evaluations, failed, failed]) == ours.suggest(3)


@pytest.mark.parametrize("how", ["pending", "partly pending", "failed"])
def test_a_first_design_that_is_under_way_or_failed_does_not_stop_suggestions(how):
    ours = past_design(9)[0] if how == "partly pending" else new()
    first = ours.suggest(11)
    assert len(first) == (2 if how == "partly pending" else 11)
    if how == "failed":
        for members in first:
            ours.record_failure(members, "no")
    further = ours.suggest(3, pending=() if how == "failed" else first)
    assert len(set(further)) == 3
    assert not set(further) & {*first, *ours.evaluations}


# What further evaluations are expected to gain.


def widths_of(ours):
    return ours.values().uncertainty.spread().half_width()


@pytest.mark.parametrize(("budget", "repeats"), [(3, 1), (9, 1), (14, 1), (14, 3)])
def test_a_forecast_begins_with_the_present_and_never_widens(budget, repeats):
    ours = new()
    evaluate(ours, repeat(smooth(FIVE), repeats, spread=0.02), budget)
    following = ours.suggest(3)
    frame = ours.forecast(6)
    assert frame.columns.tolist() == ["widest", *FIVE.names]
    assert frame.index.tolist() == list(range(budget, budget + 7))
    widths = frame[list(FIVE.names)].to_numpy()
    np.testing.assert_allclose(widths[0], widths_of(ours), rtol=1e-9)
    np.testing.assert_array_equal(frame["widest"], widths.max(axis=1))
    assert np.all(np.diff(widths, axis=0) <= 1e-9 * widths[0])
    assert np.all(widths[-1] < widths[0])
    assert np.all(widths >= 1.959964 * ours.values().uncertainty.std("noise") - 1e-12)
    assert ours.suggest(3) == following


def test_a_forecast_ends_where_everything_is_evaluated_or_failed():
    ours, utility = past_design(22)
    frame = ours.forecast(100)
    assert frame.index.tolist() == list(range(22, 32))
    assert frame["widest"].iloc[-2] > 0
    assert frame["widest"].iloc[-1] < 1e-3 * frame["widest"].iloc[-2]
    evaluate(ours, utility, 31)
    frame = ours.forecast(5)
    assert frame.index.tolist() == [31]
    assert np.all(frame == 0)
    ours, _ = past_design(22)
    ours.record_failure(ours.suggest(1)[0], "no")  # nothing is expected of it
    frame = ours.forecast(100)
    assert frame.index.tolist() == list(range(23, 32))
    assert np.all(frame.iloc[-1] > 1e-3 * frame.iloc[0])


def test_a_forecast_is_about_what_then_happens_and_expects_no_outliers():
    game = smooth(FIVE).game
    first_alone = from_names(FIVE.names[:1], FIVE.names)
    utility = owners_and_games.LoggedGame(
        FIVE, lambda C: np.where((first_alone == C).all(axis=1), -10.0, game(C))
    )
    ours = new()
    assert evaluate(ours, utility, 24).facts.diagnostics.strays == 1
    frame = ours.forecast(7)
    assert frame["widest"].iloc[-1] < 1e-3 * frame["widest"].iloc[-2]

    ratios = []
    for seed in range(4):
        ours, utility = new(), smooth(FIVE, seed)
        evaluate(ours, utility, 13)
        expected = ours.forecast(5).iloc[-1][list(FIVE.names)]
        evaluate(ours, utility, 18)
        ratios.append(widths_of(ours) / expected)
    assert 1 / 3 < np.exp(np.mean(np.log(ratios))) < 3


# Repeated trainings.


def test_the_mean_of_repeats_counts_further_ones_extend_it_and_contradictions_are_refused():
    for make in (list, tuple, np.array):
        ours = new()
        ours.record(("owner01", "owner00"), make([0.5, 1, 0.75]))
        ours.record(("owner02",), np.array(0.5))
        assert ours.evaluations == {("owner00", "owner01"): 0.75, ("owner02",): 0.5}
        assert ours.trainings == {("owner00", "owner01"): (0.5, 1.0, 0.75), ("owner02",): (0.5,)}
        assert ours.evaluated == 2
    ours = new()
    for utilities in (0.5, 0.5, [0.5], [0.5, 0.7], [0.5, 0.7, 0.6], [0.5, 0.7], 0.5):
        ours.record(("owner00",), utilities)
    for utilities in (0.6, [0.5, 0.6, 0.7], [0.7, 0.5, 0.6, 0.5]):
        with pytest.raises(InputError, match=r"already has the utility \[0.5, 0.7, 0.6\], got"):
            ours.record(("owner00",), utilities)
    with pytest.raises(InputError, match="finite"):
        ours.record(("owner00",), [0.5, 0.7, 0.6, float("inf")])
    assert ours.trainings == {("owner00",): (0.5, 0.7, 0.6)}
    assert ours.evaluations == {("owner00",): pytest.approx(0.6)}


@pytest.mark.parametrize("semivalue", [dupre.shapley, dupre.banzhaf], ids=lambda s: s.name)
def test_all_that_is_uncertain_of_exact_values_is_the_noise_of_trainings(semivalue):
    utility = smooth(FIVE)
    ours = new(semivalue=semivalue)
    valuation = evaluate(ours, repeat(utility, 3, spread=0.1), 31)
    weights = exact(semivalue, 5)
    rows = [ours.trainings[to_names(row, FIVE.names)] for row in weights.members]
    W, means = weights.W, np.mean(rows, axis=1)
    np.testing.assert_allclose(valuation.mean, W @ means + weights.empty * utility.empty)
    np.testing.assert_array_equal(valuation.uncertainty.total, valuation.uncertainty.noise)
    expected = student_factor(62) ** 2 * W @ np.diag(variance_of_means(rows)) @ W.T
    np.testing.assert_allclose(valuation.uncertainty.noise, expected, rtol=1e-9)
    # 62 degrees of freedom tell a variance to within about 20 %.
    assert np.trace(valuation.uncertainty.noise) == pytest.approx(
        0.1**2 / 3 * np.sum(W**2), rel=0.6
    )
    assert valuation.complete
    assert not valuation.exact
    assert "100 % is noise of trainings" in valuation.explain()


def test_repeats_that_agree_are_one_training_however_they_are_recorded():
    once, _ = past_design(13)
    # The mean of 4 equal numbers is that number.
    again = record(new(), {members: [u] * 4 for members, u in once.evaluations.items()})
    assert_same(once.values(), again.values())
    assert not again.values().uncertainty.noise.any()

    at_once, bit_by_bit = new(), new()
    noisy = repeat(smooth(FIVE), 3, spread=0.05)
    for members in at_once.suggest(11):
        numbers = noisy(members).tolist()
        at_once.record(members, numbers)
        bit_by_bit.record(members, numbers[0])
    bit_by_bit.values()
    record(bit_by_bit, at_once.trainings)
    assert_same(at_once.values(), bit_by_bit.values())
    assert at_once.suggest(3) == bit_by_bit.suggest(3)


# Coalitions that could not be evaluated.


def test_a_failed_coalition_is_predicted_as_if_it_had_never_been_asked_for():
    ours, utility = past_design(13)
    before, members = ours.values(), ours.suggest(1)[0]
    ours.record_failure(members, "no")
    ours.record_failure(members[::-1], "MemoryError: too large")
    after = ours.values()
    assert_same(before, after)
    assert ours.failures == after.facts.failures == {members: "MemoryError: too large"}
    assert ours.evaluated == after.facts.evaluated == before.facts.evaluated + 1
    assert members not in ours.evaluations
    assert "Beware: 1 of 14 evaluations failed" in after.explain()
    assert "MemoryError: too large" in after.explain()
    # Evaluated after all it counts like any other.
    ours.record(members, utility(members))
    assert ours.failures == {}
    assert ours.evaluated == 14
    assert_same(ours.values(), record(new(), ours.evaluations).values())


@pytest.mark.parametrize("at", [0, 3, 14], ids=["all owners", "design", "active"])
def test_a_failed_coalition_is_never_suggested_again_and_keeps_values_from_being_exact(at):
    utility, ours, asked = smooth(FIVE), new(), []
    while batch := ours.suggest(5):
        for members in batch:
            if len(asked) == at:
                ours.record_failure(members, "no")
            else:
                ours.record(members, utility(members))
            asked.append(members)
    assert len(asked) == len(set(asked)) == ours.evaluated == 31
    assert ours.left == 0
    assert ours.designed
    valuation = ours.values()
    assert valuation.facts.failures == {asked[at]: "no"}
    assert not valuation.exact
    assert np.all(valuation.std[list(asked[at])] > 0)
    assert valuation.efficiency_gap == pytest.approx(0, abs=1e-9)


def test_values_and_forecasts_need_a_utility_and_not_only_failures_and_nothing_is_refused():
    ours = new()
    for _ in range(2):
        for ask in (ours.values, lambda: ours.forecast(3)):
            with pytest.raises(InputError, match="suggest"):
                ask()
        ours.record_failure(FIVE.names, "no")
    for k in (0, -1, 2.5):
        with pytest.raises(InputError, match="further evaluations must be a whole number"):
            ours.forecast(k)
        with pytest.raises(InputError, match="at least 1"):
            ours.suggest(k)


# Coalitions kept for a check.


def kept_by(ours):
    """The check coalitions follow the first design; asked before anything is recorded."""
    asked = ours.question
    return ours.suggest(len(asked.first))[len(asked.heaviest) :]


def weight_of(members):
    weights = exact(dupre.shapley, 5)
    index = np.flatnonzero((weights.members == from_names(members, FIVE.names)).all(axis=1))
    return weights.W[:, index[0]]


def test_check_coalitions_are_drawn_by_the_seed_and_not_shown_to_the_predictor():
    for seed in range(3):
        kept, again, other = (kept_by(new(seed=s, strategy=CHECK_6)) for s in (seed, seed, 9))
        assert kept == again != other
        assert len(set(kept)) == 6
        assert not set(kept) & set(new(seed=seed).suggest(11))

    utility, ours = smooth(FIVE), new(strategy=CHECK_6)
    kept = kept_by(ours)
    before = evaluate(ours, utility, 18)
    assert set(kept) < set(ours.evaluations)
    for members, is_kept in ((kept[0], True), (kept[4], True), (FIVE.names[:1], False)):
        changed = ours.evaluations | {members: utility.of(members) + 0.01}
        other = record(new(strategy=CHECK_6), changed)
        after = other.values()
        assert not after.facts.sampled
        step = after.mean - before.mean - 0.01 * weight_of(members)
        assert np.allclose(step, 0, rtol=0, atol=1e-12) == is_kept
        assert np.array_equal(after.uncertainty.total, before.uncertainty.total) == is_kept
        assert not is_kept or other.suggest(4) == ours.suggest(4)

    utility, asked = smooth(FIVE), new(strategy=CHECK_6).suggest(17)
    kept, means = asked[11], []
    for spread in (0.02, 0.5):
        around = {m: np.array([-1, 1]) * (spread if m == kept else 0.02) for m in asked}
        ours = record(new(strategy=CHECK_6), {m: utility.of(m) + around[m] for m in asked})
        means.append(ours.values().mean)
    np.testing.assert_allclose(means[0], means[1], rtol=0, atol=1e-9)


def test_validation_is_the_error_of_what_the_values_were_made_of():
    utility = smooth(FIVE)
    kept = kept_by(new(strategy=CHECK_6))
    shown = {m: u for i, (m, u) in enumerate(utility.table.items()) if i % 2 and m not in kept}

    def with_these(more):
        return record(new(strategy=CHECK_6), shown | {m: utility.of(m) for m in more})

    before, predicted = with_these([]).values().mean, []
    for members in kept:
        after = with_these([members]).values().mean
        weight = weight_of(members)  # before - after = weight * (predicted - utility)
        difference = weight @ (before - after) / (weight @ weight)
        predicted.append(utility.of(members) + difference)
    truth = np.array([utility.of(members) for members in kept])
    found = with_these(kept).check()
    assert found.held_out == 6
    assert found.error == pytest.approx(np.sqrt(np.mean((predicted - truth) ** 2)), rel=1e-6)
    assert found.r2 == pytest.approx(1 - found.error**2 / found.by_size**2, rel=1e-9)
    assert found.coverage in np.arange(7) / 6


@pytest.mark.parametrize(
    ("check", "failed", "checked"), [(0, 0, None), (5, 0, 5), (5, 1, 4), (4, 1, None), (10, 0, 10)]
)
def test_the_predictor_is_checked_once_all_kept_for_it_has_been_tried(check, failed, checked):
    utility, ours = smooth(FIVE), new(strategy=Active(check=check))
    kept = kept_by(ours)
    for members in [*ours.suggest(11), *kept]:
        assert ours.check() is None
        if members in kept[:failed]:
            ours.record_failure(members, "no")
        else:
            ours.record(members, utility(members))
    validation, valuation = ours.check(), ours.values()
    assert (validation and validation.held_out) == checked
    assert valuation.facts.check == validation
    assert not valuation.facts.sampled
    assert validation is None or validation.r2 > 0.5
    assert ("Predictor on " in valuation.explain()) == (checked is not None)


def test_a_check_is_neither_too_small_nor_too_large_and_a_small_budget_leaves_room_for_it():
    expected = "from 4 to 10, half of the 20 coalitions outside the first design; got"
    for check in (1, 3, 11, 31):
        with pytest.raises(InputError, match=f"check must be .*{expected}"):
            new(strategy=Active(check=check))
    for budget in (8, 11, 15):
        valuation = value(FIVE, smooth(FIVE), budget=budget, strategy=Active(check=4))
        assert valuation.facts.evaluated == budget
        assert valuation.facts.check.held_out == 4


# A predictor that fails.


def valuer_without_predictor(seed, budget=20, failed=(), shift=0.0, repeats=1):
    """A valuer whose predictor failed, on utilities of which some failed and all are shifted."""
    utility = white(FIVE, seed)
    ours = new(utility.empty + shift, seed=seed, strategy=CHECK_6)
    for members in failed:
        ours.record_failure(members, "no")
    noisy = repeat(utility, repeats, spread=5.0 if repeats > 1 else 0.0, seed=seed)
    evaluate(ours, lambda members: noisy(members) + shift, budget)
    assert ours.values().facts.sampled
    return ours


def test_values_do_not_rely_on_a_predictor_that_fails_its_check():
    covered = []
    for seed in (0, 1, 4, 5, 6, 11):
        utility, ours = white(FIVE, seed), valuer_without_predictor(seed)
        valuation = ours.values()
        assert valuation.facts.check.failed
        assert not valuation.exact
        assert valuation.efficiency_gap == pytest.approx(0, abs=1e-9)
        added = utility.of(FIVE.names) - utility.empty
        assert valuation.mean.sum() == pytest.approx(added, abs=1e-9)
        assert "the values do not use it" in valuation.explain()
        covered.append(holds(valuation, utility.values()))
    assert np.mean(covered) > 0.75
    noisy = valuer_without_predictor(4, repeats=3).values()
    assert np.all(np.diag(noisy.uncertainty.noise) <= np.diag(noisy.uncertainty.total))
    truth = evaluate(ours, utility, 31)
    assert truth.exact
    assert not truth.facts.sampled
    np.testing.assert_allclose(truth.mean, utility.values(), atol=1e-12)


def test_after_the_predictor_failed_coalitions_are_drawn_at_random():
    def follow(game, seed):
        utility = white(FIVE, game)
        ours = new(utility.empty, seed=seed, strategy=CHECK_6)
        evaluate(ours, utility, 17)
        assert ours.values().facts.sampled
        first = ours.suggest(4)
        assert ours.suggest(2, pending=first[:2]) == first[2:]
        evaluate(ours, utility, 22)
        return list(ours.evaluations), first

    (evaluated, first), again, other = follow(1, 0), follow(5, 0), follow(1, 2)
    assert again == (evaluated, first)  # whatever the utilities are
    assert other[1] != first
    assert len(evaluated) == 22


def test_the_lightest_coalitions_are_suggested_at_last_though_the_predictor_failed():
    owners = make_owners(6)
    utility, semivalue = white(owners, 1), dupre.beta_shapley(16, 1)
    ours = dupre.Valuer(owners, semivalue=semivalue, empty=utility.empty, strategy=CHECK_6)
    record(ours, {members: utility.of(members) for members in ours.suggest(19)})
    while (left := ours.left) > 1:
        assert ours.values().facts.sampled
        picks = ours.suggest(min(7, left - 1))
        assert len(picks) == len(set(picks)) == min(7, left - 1)
        record(ours, {members: utility.of(members) for members in picks})
    assert len(ours.suggest(1)) == 1


@pytest.mark.parametrize("failed", [FIVE.names[:1], FIVE.names[1:], FIVE.names, FIVE.names[:2]])
def test_sampled_values_do_not_take_a_failed_coalition_for_one_of_utility_zero(failed):
    without = partial(valuer_without_predictor, 1, failed=[failed])
    plain, shifted = without().values(), without(shift=50.0).values()
    np.testing.assert_allclose(plain.mean, shifted.mean, atol=1e-9)
    assert plain.efficiency_gap == pytest.approx(0, abs=1e-9)


def test_intervals_of_sampled_values_are_wide_enough_for_a_failed_coalition():
    covered = []
    for seed in range(12):
        utility = white(FIVE, seed)
        ours = new(utility.empty, seed=seed, strategy=CHECK_6)
        ours.record_failure(FIVE.names[:1], "no")
        others = {m: u for m, u in utility.table.items() if m != FIVE.names[:1]}
        valuation = record(ours, others).values()
        if valuation.facts.sampled:
            covered.append(holds(valuation, utility.values()))
    assert len(covered) >= 4
    assert np.mean(covered) > 0.75


def test_a_forecast_without_the_predictor_begins_with_the_present_narrows_and_ends():
    ours = valuer_without_predictor(1)
    frame = ours.forecast(5)
    assert len(frame) == 6
    np.testing.assert_allclose(frame.iloc[0][list(FIVE.names)], widths_of(ours), rtol=1e-9)
    assert np.all(np.diff(frame["widest"]) < 0)
    assert len(ours.forecast(100)) == ours.left + 1


COMBINATIONS = {
    None: np.eye(5),
    "owner03": [[0, 0, 0, 1, 0]],
    ("owner03",): [[0, 0, 0, 1, 0]],
    ("owner01", "owner04"): [[0, 1, 0, 0, -1]],
}


@pytest.mark.parametrize(("focus", "combination"), COMBINATIONS.items())
def test_active_batches_reduce_the_variance_of_what_is_in_focus(monkeypatch, focus, combination):
    ours, _ = past_design(11, strategy=Active(focus=focus))
    served, original = [], strategies.active_batch

    def spy(posterior, *others):
        served.append(posterior)
        return original(posterior, *others)

    monkeypatch.setattr(strategies, "active_batch", spy)
    pick = from_names(ours.suggest(1)[0], FIVE.names)

    weights, (posterior,) = exact(dupre.shapley, 5), served
    is_open = [to_names(row, FIVE.names) not in ours.evaluations for row in weights.members]
    np.testing.assert_allclose(posterior.W, np.asarray(combination) @ weights.W[:, is_open])
    cross = posterior.cross(np.arange(len(posterior.inputs)))
    reduction = np.sum(cross**2, axis=1) / (posterior.variance + posterior.gp.noise)
    np.testing.assert_array_equal(pick, posterior.inputs.members[np.argmax(reduction)])


# What is recorded.


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (("nobody",), "unknown owner 'nobody'"),
        (("owner00", "owner00"), "twice"),
        ((), "empty"),
        ("owner00", "tuple of owner names"),
    ],
)
def test_coalitions_that_cannot_be_are_refused_and_change_nothing(members, message):
    ours = record(new(), {FIVE.names: 0.9})
    for act in (
        lambda: ours.record(members, 0.5),
        lambda: ours.record_failure(members, "no"),
        lambda: ours.suggest(2, pending=[members]),
    ):
        with pytest.raises(InputError, match=message):
            act()
    assert ours.evaluations == {FIVE.names: 0.9}
    assert ours.failures == {}


NO_UTILITIES = [
    (float("nan"), "finite number"),
    ("0.7", "finite number, got '0.7'"),
    ([], r"number or several, got \[\]"),
    ([0.5, None], "finite number, got None"),
    ([[0.5]], r"finite number, got \[0.5\]"),
    (0.6, "already has the utility 0.9, got 0.6"),
]


@pytest.mark.parametrize(("utility", "message"), NO_UTILITIES)
def test_utilities_that_cannot_be_are_refused_and_change_nothing(utility, message):
    ours = record(new(), {FIVE.names: 0.9})
    ours.record(FIVE.names[::-1], np.float64(0.9))  # is no news
    with pytest.raises(InputError, match=message):
        ours.record(FIVE.names[::-1], utility)
    with pytest.raises(InputError, match="has a utility already"):
        ours.record_failure(FIVE.names, "no")
    assert ours.evaluations == {FIVE.names: 0.9}


def test_integer_owner_labels_may_be_used_where_names_are():
    owners = dupre.Owners.from_arrays(np.eye(8), [0, 1] * 4, np.repeat([10, 20, 30, 40], 2))
    ours = dupre.Valuer(owners, empty=0.0, strategy=Active(focus=(10, 20)))
    ours.record((20, 10), 0.5)
    ours.record_failure((30,), "no")
    assert ours.evaluations == {("10", "20"): 0.5}
    assert ours.failures == {("30",): "no"}


def test_a_valuer_survives_pickling_and_refuses_what_is_no_owners_and_no_utility_of_no_data():
    ours, _ = past_design(14)
    again = pickle.loads(pickle.dumps(ours))
    assert_same(again.values(), ours.values())
    assert again.suggest(3) == ours.suggest(3)
    with pytest.raises(InputError, match=r"dupre\.Owners"):
        dupre.Valuer({"a": [1]}, empty=0.0)
    with pytest.raises(InputError, match="empty coalition must be a finite number"):
        new(float("nan"))
    with pytest.raises(TypeError, match="empty"):
        dupre.Valuer(FIVE)


def test_owners_without_rows_to_compare_need_a_kernel_that_compares_none():
    owners = make_owners(4).without_points()
    for kernel in (None, kernels.paper(), 1.0 * kernels.SlicedWasserstein() + kernels.Size()):
        with pytest.raises(InputError, match="owners came without rows to compare; take Members"):
            Valuer(owners, empty=0.0, kernel=kernel)
    valuer = Valuer(owners, empty=0.0, kernel=1.0 * kernels.Membership() + kernels.Size())
    for members in valuer.suggest(9):
        valuer.record(members, float(len(members)))
    np.testing.assert_allclose(valuer.values().mean, 1.0, atol=0.05)
