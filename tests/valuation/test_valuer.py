from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import closed_form
import dupre
from asking import FIVE, Logged, smooth, told
from dupre import EvaluationError, InputError, Interrupted
from dupre.game.coalitions import all_coalitions, from_names, to_names
from dupre.game.estimators import exact
from dupre.predictor.training_noise import variance_of_means, widening
from dupre.result.valuation import half_widths
from dupre.valuation import knowledge, next_batch
from dupre.valuation.strategies import Active


def make_owners(n, rows=8):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n * rows, 2)) + np.repeat(rng.normal(size=(n, 2)), rows, axis=0)
    names = np.repeat([f"owner{i:02d}" for i in range(n)], rows)
    return dupre.Owners.from_arrays(X, X @ [1.0, -1.0] + rng.normal(size=len(X)), names)


SIX = make_owners(6)


def wild(owners, seed=0):
    """No structure at all, with heavy tails."""
    rng = np.random.default_rng(seed)
    return Logged(owners, rng.standard_t(2, size=2**owners.n - 1), empty=rng.normal())


def started(owners=FIVE, budget=13, **options):
    """A valuer past its first design of 2n + 1 coalitions, and its utility."""
    utility = smooth(owners)
    ours = dupre.Valuer(owners, empty=utility.empty, **options)
    run(ours, utility, budget)
    return ours, utility


def run(ours, utility, budget):
    """What dupre.value does: batches of n until the budget is reached."""
    while (left := budget - ours.evaluated) > 0 and ours.left:
        for members in ours.suggest(left if left >= ours.left else min(ours.owners.n, left)):
            ours.record(members, utility(members))
    return ours.values()


def assert_same(first, second):
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.covariance, second.covariance)


@pytest.mark.parametrize(
    ("semivalue", "budget"),
    [
        (dupre.shapley, 13),
        (dupre.banzhaf, 13),
        # Its first 13 are all owners, each alone and some pairs: what larger coalitions are like
        # is told by the active picks after them.
        (dupre.beta_shapley(4, 1), 16),
    ],
    ids=["Shapley", "Banzhaf", "Beta(4, 1)-Shapley"],
)
def test_additive_game_is_recovered_from_a_quarter_of_the_coalitions(semivalue, budget):
    worth = np.array([0.5, -0.2, 1.0, 0.0, 0.3, 0.7])
    utility = Logged(SIX, closed_form.additive(worth).utility(all_coalitions(6)))
    valuation = dupre.value(SIX, utility, budget=budget, semivalue=semivalue)
    np.testing.assert_allclose(valuation.values, worth, atol=0.005 * np.ptp(worth))
    assert np.all(np.abs(valuation.values - worth) < 4 * valuation.std)


@pytest.mark.parametrize(
    "game",
    [closed_form.airport([1.0, 4.0, 2.0, 4.0, 3.0]), closed_form.glove(4)],
    ids=["airport", "glove"],
)
def test_all_coalitions_evaluated_give_the_exact_values(game):
    utility = Logged(FIVE, game.utility(all_coalitions(5)))
    valuation = dupre.value(FIVE, utility, budget=31)
    np.testing.assert_allclose(valuation.values, game.shapley, atol=1e-12)
    assert valuation.exact
    assert np.all(valuation.std == 0)


@pytest.mark.parametrize("n", [2, 6])
def test_leave_one_out_is_exact_after_n_plus_one_evaluations(n):
    utility = wild(make_owners(n))
    valuation = dupre.value(utility.owners, utility, budget=1000, semivalue=dupre.leave_one_out)
    everyone = utility.owners.names
    without = [tuple(x for x in everyone if x != name) for name in everyone]
    expected = [utility.table[everyone] - utility.table[rest] for rest in without]
    np.testing.assert_allclose(valuation.values, expected, atol=1e-12)
    assert valuation.exact
    assert len(utility.asked) == n + 1


@pytest.mark.parametrize("game", [smooth, wild])
@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("budget", ["1", "2", "n", "n + 1", "2**n - 1", "2**n + 9"])
def test_no_more_than_the_budget_and_nothing_twice(game, n, budget):
    number = {"1": 1, "2": 2, "n": n, "n + 1": n + 1, "2**n - 1": 2**n - 1, "2**n + 9": 2**n + 9}
    utility = game(make_owners(n))
    valuation = dupre.value(utility.owners, utility, budget=number[budget])
    expected = min(number[budget], 2**n - 1)
    assert len(utility.asked) == len(set(utility.asked)) == valuation.evaluated == expected
    assert np.all(np.isfinite(valuation.mean))
    assert np.all(np.isfinite(valuation.covariance))
    assert valuation.exact == (expected == 2**n - 1)
    assert np.all(valuation.std > 0) or valuation.exact
    assert str(valuation)


@pytest.mark.parametrize("budget", [1, 5, 11, 17, 24])
@pytest.mark.parametrize("game", [smooth, wild])
def test_shapley_values_add_up_whatever_is_predicted(game, budget):
    utility = game(FIVE)
    valuation = dupre.value(FIVE, utility, budget=budget)
    assert utility.asked[0] == FIVE.names
    added = utility.table[FIVE.names] - utility.empty
    assert valuation.mean.sum() == pytest.approx(added, abs=1e-8)
    assert valuation.efficiency_gap == pytest.approx(0, abs=1e-8)


def test_observed_utilities_enter_as_they_are():
    ours, utility = started(budget=17)
    assert ours.evaluations == {members: utility.table[members] for members in utility.asked}
    assert ours.values().grand == utility.table[FIVE.names]


@pytest.mark.parametrize("singles", [2, 3], ids=["predicted", "exact"])
def test_the_grand_coalition_is_predicted_even_where_it_has_no_weight(singles):
    owners = make_owners(3)
    alone = dupre.Semivalue("alone", lambda c, n: np.where(c == 0, 0.0, -np.inf))
    ours = dupre.Valuer(owners, empty=0.0, semivalue=alone)
    for name in owners.names[:singles]:
        ours.record((name,), 0.2)
    ours.record(owners.names[:2], 0.8)
    ours.record(owners.names[1:], 0.8)
    assert ours.values().grand > 0.5


@pytest.mark.parametrize("n", [5, 6])
def test_owners_of_exactly_equal_worth_share_their_ranks(n):
    owners = make_owners(n)
    utility = Logged(owners, closed_form.majority(n).utility(all_coalitions(n)))
    ranks = dupre.value(owners, utility, budget=2**n).rank_range()
    assert np.all(ranks["best"] == 1)
    assert np.all(ranks["worst"] == n)


# The loop.


@pytest.mark.parametrize("budget", [3, 11, 14, 20])
def test_asking_again_without_recording_gives_the_same_answer(budget):
    ours, _ = started(budget=budget)
    first = ours.suggest(4)
    assert len(set(first)) == 4
    assert not set(first) & set(ours.evaluations)
    ours.values()
    assert ours.suggest(4) == first
    assert ours.suggest(2) == first[:2]


def test_looking_at_values_does_not_change_what_follows():
    looked, utility = started()
    unlooked, _ = started()
    for _ in range(3):
        looked.values()
        for ours in (looked, unlooked):
            for members in ours.suggest(3):
                ours.record(members, utility.table[members])
    assert looked.evaluations == unlooked.evaluations
    assert_same(looked.values(), unlooked.values())


def test_the_order_in_which_a_batch_is_recorded_does_not_matter():
    forward, utility = started()
    backward, _ = started()
    for _ in range(2):
        for ours, step in ((forward, 1), (backward, -1)):
            for members in ours.suggest(4)[::step]:
                ours.record(members[::step], utility.table[members])
    assert forward.suggest(5) == backward.suggest(5)
    assert_same(forward.values(), backward.values())


def test_values_depend_on_what_was_recorded_and_not_on_what_was_asked_on_the_way():
    for game_seed in range(4):
        utility = smooth(FIVE, game_seed)
        asked, told = (dupre.Valuer(FIVE, empty=utility.empty) for _ in range(2))
        run(asked, utility, 17)
        for members, number in asked.evaluations.items():
            told.record(members, number)
        step = np.abs(asked.values().mean - told.values().mean)
        assert np.all(step < 1e-3 * told.values().std)


def test_ask_and_tell_equals_the_one_call():
    utility = smooth(FIVE)
    at_once = dupre.value(FIVE, utility, budget=24, seed=3, semivalue=dupre.banzhaf)
    ours = dupre.Valuer(FIVE, empty=utility(()), seed=3, semivalue=dupre.banzhaf)
    while left := 24 - len(ours.evaluations):
        for members in ours.suggest(min(5, left)):
            ours.record(members, utility(members))
    assert_same(ours.values(), at_once)


def test_the_same_seed_gives_the_same_result():
    first, second = (dupre.value(FIVE, wild(FIVE), budget=16, seed=7) for _ in range(2))
    assert_same(first, second)
    assert str(first) == str(second)


def test_evaluations_made_elsewhere_count_and_are_not_repeated():
    utility = smooth(FIVE)
    ours = dupre.Valuer(FIVE, empty=utility.empty)
    known = [FIVE.names[:2], FIVE.names[1:4], FIVE.names]
    for members in known:
        ours.record(members, utility.table[members])
    assert run(ours, utility, 9).evaluated == 9
    assert len(utility.asked) == 6
    assert not set(utility.asked) & set(known)
    assert run(ours, utility, 4).evaluated == 9


def test_nothing_is_suggested_when_nothing_is_left():
    ours, _ = started(make_owners(4), budget=15)
    assert ours.suggest(4) == []
    assert ours.left == 0


def test_nothing_is_suggested_after_a_first_design_of_everything():
    ours, _ = started(make_owners(3), budget=7)
    assert ours.suggest(4) == []


@pytest.mark.parametrize("budget", [None, 63, 1000])
def test_a_stop_rule_is_heeded_though_the_budget_would_do_for_everything(budget):
    utility = smooth(SIX)
    valuation = dupre.value(SIX, utility, budget=budget, stop=dupre.stopping.evaluated(20))
    assert valuation.evaluated == len(utility.asked) < 30


@pytest.mark.parametrize("holdout", [0, 5])
def test_the_first_design_is_complete_when_its_last_coalition_is_tried(holdout):
    ours = dupre.Valuer(FIVE, empty=0.0, strategy=Active(check=holdout))
    assert ours.left == 31
    assert ours.evaluated == 0
    design = ours.suggest(11 + holdout)
    for number, members in enumerate(reversed(design), start=1):
        assert not ours.designed
        if number % 4:
            ours.record(members, float(number))
        else:
            ours.record_failure(members, "no")
        assert ours.left == 31 - number
        assert ours.evaluated == number
    assert ours.designed


def test_only_coalitions_with_a_weight_are_left():
    ours = dupre.Valuer(FIVE, empty=0.0, semivalue=dupre.leave_one_out, strategy=Active(first=3))
    assert ours.left == 6
    ours.record(FIVE.names[:1], 0.5)
    assert ours.left == 6
    assert ours.evaluated == 1


# Coalitions under way.


@pytest.mark.parametrize("budget", [2, 11, 14], ids=["design", "first active", "active"])
def test_pending_coalitions_are_followed_by_what_would_have_followed_them(budget):
    ours, _ = started(budget=budget)
    batch = ours.suggest(6)
    for k in (1, 3, 5):
        under_way = [members[::-1] for members in reversed(batch[:k])]
        assert ours.suggest(6 - k, pending=under_way) == batch[k:]
    assert ours.suggest(6) == batch


def test_what_pending_coalitions_will_tell_is_taken_into_account_after_the_first_design():
    ours, _ = started(budget=9)
    rest = ours.suggest(6)
    assert len(rest) == 2  # of the first design
    further = ours.suggest(6, pending=rest)
    assert len(set(further)) == 6
    assert not set(further) & {*rest, *ours.evaluations}


def test_pending_coalitions_are_not_suggested_even_if_nothing_else_is_left():
    ours, _ = started(budget=24)
    still_open = ours.suggest(7)
    assert ours.suggest(7, pending=still_open) == []
    assert ours.suggest(7, pending=still_open[1:]) == still_open[:1]


def test_pending_coalitions_that_have_been_recorded_or_failed_meanwhile_change_nothing():
    ours, _ = started(budget=13)
    failed = ours.suggest(1)[0]
    ours.record_failure(failed, "no")
    assert ours.suggest(3, pending=[*ours.evaluations, failed, failed]) == ours.suggest(3)


@pytest.mark.parametrize("pending", [[("nobody",)], [()], ["owner00"]])
def test_a_pending_coalition_that_names_no_owners_is_refused(pending):
    with pytest.raises(InputError, match=r"unknown owner|empty coalition|tuple of owner names"):
        dupre.Valuer(FIVE, empty=0.0).suggest(2, pending=pending)


def test_more_workers_than_the_first_design_can_be_kept_busy():
    ours = dupre.Valuer(FIVE, empty=0.0)
    first = ours.suggest(11)
    further = ours.suggest(3, pending=first)
    assert len(set(further)) == 3
    assert not set(further) & set(first)


def test_a_first_design_that_failed_as_a_whole_does_not_stop_suggestions():
    ours = dupre.Valuer(FIVE, empty=0.0)
    first = ours.suggest(11)
    for members in first:
        ours.record_failure(members, "no")
    further = ours.suggest(3)
    assert len(set(further)) == 3
    assert not set(further) & set(first)


# What further evaluations are expected to gain.


def widths_of(ours):
    return half_widths(ours.values().covariance)


@pytest.mark.parametrize("budget", [3, 9, 14], ids=["design", "both", "active"])
@pytest.mark.parametrize("repeats", [1, 3])
def test_a_forecast_begins_with_the_present_and_never_widens(budget, repeats):
    ours = dupre.Valuer(FIVE, empty=0.1)
    run(ours, repeated(smooth(FIVE), repeats, spread=0.02), budget)
    following = ours.suggest(3)
    frame = ours.forecast(6)
    assert frame.columns.tolist() == ["widest", *FIVE.names]
    assert frame.index.tolist() == list(range(budget, budget + 7))
    widths = frame[list(FIVE.names)].to_numpy()
    np.testing.assert_allclose(widths[0], widths_of(ours), rtol=1e-9)
    np.testing.assert_array_equal(frame["widest"], widths.max(axis=1))
    assert np.all(np.diff(widths, axis=0) <= 1e-9 * widths[0])
    assert np.all(widths[-1] < widths[0])
    assert np.all(widths >= half_widths(ours.values().noise) - 1e-12)
    assert ours.suggest(3) == following


def test_a_forecast_ends_where_everything_is_evaluated():
    ours, utility = started(budget=22)
    frame = ours.forecast(100)
    assert frame.index.tolist() == list(range(22, 32))
    assert frame["widest"].iloc[-2] > 0
    assert frame["widest"].iloc[-1] < 1e-3 * frame["widest"].iloc[-2]
    run(ours, utility, 31)
    frame = ours.forecast(5)
    assert frame.index.tolist() == [31]
    assert np.all(frame == 0)


def test_a_forecast_expects_no_strays_among_what_will_have_been_evaluated():
    utility = smooth(FIVE)
    utility.table[FIVE.names[:1]] = -10.0
    ours = dupre.Valuer(FIVE, empty=utility.empty)
    assert run(ours, utility, 24).diagnostics.strays == 1
    frame = ours.forecast(7)
    assert frame["widest"].iloc[-1] < 1e-3 * frame["widest"].iloc[-2]


def test_a_forecast_does_not_expect_evaluations_to_reduce_the_noise_of_earlier_ones():
    ours = dupre.Valuer(FIVE, empty=0.1)
    noise = run(ours, repeated(smooth(FIVE), 3, spread=0.1), 26).noise
    last = ours.forecast(5).iloc[-1]
    assert np.all(last[list(FIVE.names)] > half_widths(noise))


def test_a_forecast_expects_nothing_of_coalitions_that_failed():
    ours, _ = started(budget=22)
    ours.record_failure(ours.suggest(1)[0], "no")
    frame = ours.forecast(100)
    assert frame.index.tolist() == list(range(23, 32))
    assert np.all(frame.iloc[-1] > 1e-3 * frame.iloc[0])


def test_a_forecast_is_about_what_then_happens():
    ratios = []
    for seed in range(4):
        utility = smooth(FIVE, seed)
        ours = dupre.Valuer(FIVE, empty=utility.empty)
        run(ours, utility, 13)
        expected = ours.forecast(5).iloc[-1][list(FIVE.names)]
        run(ours, utility, 18)
        ratios.append(widths_of(ours) / expected)
    assert 1 / 3 < np.exp(np.mean(np.log(ratios))) < 3


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_a_forecast_of_no_evaluations_is_refused(k):
    with pytest.raises(InputError, match="further evaluations must be a whole number"):
        dupre.Valuer(FIVE, empty=0.0).forecast(k)


def test_a_forecast_needs_at_least_one_utility():
    with pytest.raises(InputError, match="suggest"):
        dupre.Valuer(FIVE, empty=0.0).forecast(3)


# Repeated trainings.


def repeated(utility, repeats, spread, seed=0):
    """The utility as several numbers around it."""
    rng = np.random.default_rng(seed)
    return lambda members: utility(members) + spread * rng.normal(size=repeats)


@pytest.mark.parametrize("make", [list, tuple, np.array])
def test_the_mean_of_repeated_trainings_counts(make):
    ours = dupre.Valuer(FIVE, empty=0.0)
    ours.record(("owner01", "owner00"), make([0.5, 1, 0.75]))
    ours.record(("owner02",), 0.5)
    assert ours.evaluations == {("owner00", "owner01"): 0.75, ("owner02",): 0.5}
    assert ours.trainings == {("owner00", "owner01"): (0.5, 1.0, 0.75), ("owner02",): (0.5,)}
    assert ours.evaluated == 2


def test_further_repeats_extend_those_recorded_and_contradictions_are_refused():
    ours = dupre.Valuer(FIVE, empty=0.0)
    for utilities in (0.5, [0.5], [0.5, 0.7], [0.5, 0.7, 0.6]):
        ours.record(("owner00",), utilities)
        ours.record(("owner00",), utilities)
    for utilities in (0.5, [0.5, 0.7]):
        ours.record(("owner00",), utilities)
    for utilities in (0.6, [0.5, 0.6, 0.7], [0.7, 0.5, 0.6, 0.5]):
        with pytest.raises(InputError, match=r"already has the utility \[0.5, 0.7, 0.6\], got"):
            ours.record(("owner00",), utilities)
    with pytest.raises(InputError, match="finite"):
        ours.record(("owner00",), [0.5, 0.7, 0.6, float("inf")])
    assert ours.trainings == {("owner00",): (0.5, 0.7, 0.6)}
    assert ours.evaluations == {("owner00",): pytest.approx(0.6)}


def test_a_number_that_is_an_array_of_no_dimension_can_be_recorded():
    ours = dupre.Valuer(FIVE, empty=0.0)
    ours.record(("owner00",), np.array(0.5))
    assert ours.evaluations == {("owner00",): 0.5}


@pytest.mark.parametrize("semivalue", [dupre.shapley, dupre.banzhaf], ids=lambda s: s.name)
def test_all_that_is_uncertain_of_exact_values_is_the_noise_of_trainings(semivalue):
    utility = smooth(FIVE)
    ours = dupre.Valuer(FIVE, semivalue=semivalue, empty=utility.empty)
    valuation = run(ours, repeated(utility, 3, spread=0.1), 31)
    weights = exact(semivalue, 5)
    rows = [ours.trainings[to_names(row, FIVE.names)] for row in weights.members]
    W, means = weights.W, np.mean(rows, axis=1)
    np.testing.assert_allclose(valuation.mean, W @ means + weights.empty * utility.empty)
    np.testing.assert_array_equal(valuation.covariance, valuation.noise)
    expected = widening(62) * W @ np.diag(variance_of_means(rows)) @ W.T
    np.testing.assert_allclose(valuation.noise, expected, rtol=1e-9)
    # 62 degrees of freedom tell a variance to within about 20 %.
    assert np.trace(valuation.noise) == pytest.approx(0.1**2 / 3 * np.sum(W**2), rel=0.6)
    assert valuation.complete
    assert not valuation.exact
    assert "100 % is noise of trainings" in str(valuation)


def test_noise_is_a_part_of_the_covariance_that_more_repeats_reduce():
    noise = []
    for repeats in (2, 16):
        ours = dupre.Valuer(FIVE, empty=0.1)
        valuation = run(ours, repeated(smooth(FIVE), repeats, spread=0.05), 14)
        assert np.linalg.eigvalsh(valuation.noise).min() > -1e-15
        assert np.linalg.eigvalsh(valuation.covariance - valuation.noise).min() > -1e-15
        noise.append(np.trace(valuation.noise))
    assert noise[1] < noise[0] / 3


def test_repeats_that_agree_are_one_training():
    once, utility = started(budget=13)
    thrice = dupre.Valuer(FIVE, empty=utility.empty)
    for members, number in once.evaluations.items():
        thrice.record(members, [number] * 4)  # the mean of 4 equal numbers is that number
    assert_same(once.values(), thrice.values())
    assert not thrice.values().noise.any()


def test_the_way_in_which_repeats_were_recorded_does_not_matter():
    at_once, bit_by_bit = (dupre.Valuer(FIVE, empty=0.1) for _ in range(2))
    noisy = repeated(smooth(FIVE), 3, spread=0.05)
    for members in at_once.suggest(11):
        numbers = noisy(members).tolist()
        at_once.record(members, numbers)
        bit_by_bit.record(members, numbers[0])
    bit_by_bit.values()
    for members, numbers in at_once.trainings.items():
        bit_by_bit.record(members, numbers)
    assert_same(at_once.values(), bit_by_bit.values())
    assert at_once.suggest(3) == bit_by_bit.suggest(3)


# Coalitions that could not be evaluated.


def test_a_failed_coalition_is_predicted_as_if_it_had_never_been_asked_for():
    ours, _ = started(budget=13)
    before, members = ours.values(), ours.suggest(1)[0]
    ours.record_failure(members[::-1], "MemoryError: too large")
    after = ours.values()
    assert_same(before, after)
    assert ours.failures == after.failures == {members: "MemoryError: too large"}
    assert ours.evaluated == after.evaluated == before.evaluated + 1
    assert members not in ours.evaluations
    assert "Failed: 1 of 14 evaluations" in str(after)
    assert "MemoryError: too large" in str(after)


@pytest.mark.parametrize("at", [0, 3, 14], ids=["all owners", "design", "active"])
def test_a_failed_coalition_is_never_suggested_again_and_keeps_values_from_being_exact(at):
    utility = smooth(FIVE)
    ours = dupre.Valuer(FIVE, empty=utility.empty)
    asked = []
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
    assert valuation.failures == {asked[at]: "no"}
    assert not valuation.exact
    assert np.all(valuation.std[list(asked[at])] > 0)
    assert valuation.efficiency_gap == pytest.approx(0, abs=1e-9)


def test_a_failed_coalition_that_is_evaluated_after_all_counts_like_any_other():
    mended, utility = started(budget=13)
    whole, _ = started(budget=13)
    members = whole.suggest(1)[0]
    mended.record_failure(members, "no")
    mended.record_failure(members, "not again")
    assert mended.failures == {members: "not again"}
    assert mended.evaluated == 14
    for ours in (mended, whole):
        ours.record(members, utility(members))
    assert mended.failures == {}
    assert mended.evaluated == 14
    assert mended.evaluations == whole.evaluations
    assert_same(mended.values(), whole.values())


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (FIVE.names, "has a utility already"),
        (("nobody",), "unknown owner 'nobody'"),
        ((), "empty"),
        ("owner00", "tuple of owner names"),
    ],
)
def test_a_failure_that_cannot_be_is_refused_and_changes_nothing(members, message):
    ours = dupre.Valuer(FIVE, empty=0.0)
    ours.record(FIVE.names, 0.9)
    with pytest.raises(InputError, match=message):
        ours.record_failure(members, "no")
    assert ours.failures == {}
    assert ours.evaluated == 1


def test_values_need_a_utility_and_not_only_failures():
    ours = dupre.Valuer(FIVE, empty=0.0)
    ours.record_failure(FIVE.names, "no")
    with pytest.raises(InputError, match="suggest"):
        ours.values()


# Coalitions held out.


def held_by(ours):
    """The coalitions held out follow the first design; asked before anything is recorded."""
    asked = ours.question
    return ours.suggest(asked.first + asked.check)[asked.first :]


def weight_of(members):
    weights = exact(dupre.shapley, 5)
    index = np.flatnonzero((weights.members == from_names(members, FIVE.names)).all(axis=1))
    return weights.W[:, index[0]]


@pytest.mark.parametrize("seed", range(3))
def test_coalitions_held_out_are_drawn_by_the_seed_outside_the_first_design(seed):
    held, again, other = (
        held_by(dupre.Valuer(FIVE, empty=0.0, seed=s, strategy=Active(check=6)))
        for s in (seed, seed, 9)
    )
    assert held == again != other
    assert len(set(held)) == 6
    assert not set(held) & set(dupre.Valuer(FIVE, empty=0.0, seed=seed).suggest(11))


def test_held_out_utilities_count_in_the_values_and_are_never_shown_to_the_predictor():
    utility, options = smooth(FIVE), {"empty": 0.1, "strategy": Active(check=5)}
    ours = dupre.Valuer(FIVE, **options)
    held = held_by(ours)
    before = run(ours, utility, 18)
    assert set(held) < set(ours.evaluations)
    for members, is_held in ((held[0], True), (held[4], True), (FIVE.names[:1], False)):
        changed = told(ours.evaluations | {members: utility.table[members] + 0.01}, **options)
        after = changed.values()
        assert not after.sampled
        step = after.mean - before.mean - 0.01 * weight_of(members)
        unmoved = np.allclose(step, 0, rtol=0, atol=1e-12)
        assert unmoved == is_held
        assert np.array_equal(after.covariance, before.covariance) == is_held
        assert not is_held or changed.suggest(4) == ours.suggest(4)


def test_the_spread_of_held_out_trainings_is_not_shown_to_the_predictor_either():
    utility, options = smooth(FIVE), {"empty": 0.1, "strategy": Active(check=5)}
    held = held_by(dupre.Valuer(FIVE, **options))[0]
    asked = dupre.Valuer(FIVE, **options).suggest(16)
    means = []
    for spread in (0.02, 0.5):
        around = {m: np.array([-1, 1]) * (spread if m == held else 0.02) for m in asked}
        ours = told({m: utility.table[m] + around[m] for m in asked}, **options)
        means.append(ours.values().mean)
    np.testing.assert_allclose(means[0], means[1], rtol=0, atol=1e-9)


def test_validation_is_the_error_of_what_the_values_were_made_of():
    utility, options = smooth(FIVE), {"empty": 0.1, "strategy": Active(check=5)}
    held = held_by(dupre.Valuer(FIVE, **options))
    shown = {m: u for i, (m, u) in enumerate(utility.table.items()) if i % 2 and m not in held}
    before = told(shown, **options).values().mean
    predicted = []
    for members in held:
        after = told(shown | {members: utility.table[members]}, **options).values().mean
        weight = weight_of(members)  # before - after = weight * (predicted - utility)
        difference = weight @ (before - after) / (weight @ weight)
        predicted.append(utility.table[members] + difference)
    truth = np.array([utility.table[members] for members in held])
    found = told(shown | dict(zip(held, truth, strict=True)), **options).check()
    assert found.held_out == 5
    assert found.error == pytest.approx(np.sqrt(np.mean((predicted - truth) ** 2)), rel=1e-6)
    assert found.r2 == pytest.approx(1 - found.error**2 / found.by_size**2, rel=1e-9)
    assert found.coverage in np.arange(6) / 5


@pytest.mark.parametrize(("holdout", "failed", "checked"), [(5, 0, 5), (5, 1, 4), (4, 1, None)])
def test_the_predictor_is_checked_once_all_that_is_held_out_has_been_tried(
    holdout, failed, checked
):
    utility = smooth(FIVE)
    ours = dupre.Valuer(FIVE, empty=0.1, strategy=Active(check=holdout))
    held = held_by(ours)
    for members in [*ours.suggest(11), *held]:
        assert ours.check() is None
        if members in held[:failed]:
            ours.record_failure(members, "no")
        else:
            ours.record(members, utility(members))
    validation = ours.check()
    assert (validation and validation.held_out) == checked
    assert ours.values().check == validation
    assert ("check coalitions" in str(ours.values())) == (checked is not None)


def test_nothing_is_validated_without_a_holdout():
    ours, _ = started()
    assert ours.check() is None
    assert ours.values().check is None


@pytest.mark.parametrize("holdout", [4, 10])
def test_as_many_as_asked_are_held_out(holdout):
    ours = dupre.Valuer(FIVE, empty=0.1, strategy=Active(check=holdout))
    valuation = run(ours, smooth(FIVE), 11 + holdout)
    assert valuation.check.held_out == holdout
    assert not valuation.sampled
    assert valuation.check.r2 > 0.5


@pytest.mark.parametrize("holdout", [1, 3, 11, 31, -1, 4.0, None, "4"])
def test_a_holdout_that_is_too_small_too_large_or_no_number_is_refused(holdout):
    expected = "from 4 to 10, half of the 20 coalitions outside the first design; got|whole number"
    with pytest.raises(InputError, match=f"check must be .*({expected})"):
        dupre.Valuer(FIVE, empty=0.0, strategy=Active(check=holdout))


def test_ask_and_tell_with_a_holdout_equals_the_one_call():
    utility = smooth(FIVE)
    at_once = dupre.value(FIVE, utility, budget=22, seed=2, strategy=Active(check=6))
    ours = dupre.Valuer(FIVE, empty=utility.empty, seed=2, strategy=Active(check=6))
    assert_same(run(ours, utility, 22), at_once)
    assert at_once.check == ours.check()
    assert at_once.rounds["evaluated"].tolist() == [17, 22]
    last = at_once.rounds.iloc[-1]
    check = at_once.check
    assert (last["error"], last["by_size"]) == (check.error, check.by_size)


# A predictor that fails.


def white(owners, seed):
    """Noise: nothing to be predicted."""
    rng = np.random.default_rng(seed)
    return Logged(owners, rng.normal(size=2**owners.n - 1), empty=rng.normal())


def test_values_do_not_rely_on_a_predictor_that_fails_on_what_was_held_out():
    covered = []
    for seed in (0, 1, 4, 5, 6, 11):
        utility = white(FIVE, seed)
        ours = dupre.Valuer(FIVE, empty=utility.empty, seed=seed, strategy=Active(check=6))
        valuation = run(ours, utility, 20)
        assert valuation.check.failed
        assert valuation.sampled
        assert not valuation.exact
        assert valuation.efficiency_gap == pytest.approx(0, abs=1e-9)
        added = utility.table[FIVE.names] - utility.empty
        assert valuation.mean.sum() == pytest.approx(added, abs=1e-9)
        assert "do not use it" in str(valuation)
        truth = run(ours, utility, 31)
        assert truth.exact
        assert not truth.sampled
        bounds = valuation.interval()
        covered += list((bounds["low"] <= truth.mean) & (truth.mean <= bounds["high"]))
    assert np.mean(covered) > 0.75


def test_after_the_predictor_failed_coalitions_are_drawn_at_random():
    def followed(game, seed):
        utility = white(FIVE, game)
        ours = dupre.Valuer(FIVE, empty=utility.empty, seed=seed, strategy=Active(check=6))
        run(ours, utility, 17)
        assert ours.values().sampled
        first = ours.suggest(4)
        assert ours.suggest(2, pending=first[:2]) == first[2:]
        run(ours, utility, 22)
        return list(ours.evaluations), first

    (evaluated, first), again, other = followed(1, 0), followed(5, 0), followed(1, 2)
    assert again == (evaluated, first)  # whatever the utilities are
    assert other[1] != first
    assert len(evaluated) == 22


def test_the_lightest_coalitions_are_suggested_at_last_though_the_predictor_failed():
    utility, semivalue = white(SIX, 1), dupre.beta_shapley(16, 1)
    ours = dupre.Valuer(SIX, semivalue=semivalue, empty=utility.empty, strategy=Active(check=6))
    pool = ours._knowledge
    members = all_coalitions(6)[np.unique(np.append(pool.draws.sequence, pool.heaviest))]
    for names in (to_names(row, SIX.names) for row in members):
        ours.record(names, utility(names))
    assert ours.values().sampled
    assert 1 < ours.left < 10  # one is no choice: it is suggested
    assert len(ours.suggest(1)) == 1


@pytest.mark.parametrize("budget", [8, 11, 15])
def test_a_small_budget_leaves_room_for_the_coalitions_held_out(budget):
    utility = smooth(FIVE)
    valuation = dupre.value(
        FIVE,
        utility,
        budget=budget,
        empty=0.1,
        progress=False,
        strategy=Active(check=4),
    )
    assert valuation.evaluated == budget
    assert valuation.check.held_out == 4


def test_a_holdout_of_no_help_to_a_good_predictor_is_no_harm_to_its_values():
    utility = smooth(FIVE)
    values = [
        run(
            dupre.Valuer(FIVE, empty=0.1, strategy=Active(check=holdout)),
            utility,
            20,
        ).mean
        for holdout in (0, 5)
    ]
    truth = run(dupre.Valuer(FIVE, empty=0.1), utility, 31).mean
    for mean in values:
        assert np.abs(mean - truth).max() < 0.1 * np.ptp(truth)


def sampled_with(failed=(), shift=0.0, repeats=1, seed=1):
    """A valuer whose predictor failed, on utilities of which some failed and all are shifted."""
    utility = white(FIVE, seed)
    ours = dupre.Valuer(FIVE, empty=utility.empty + shift, seed=seed, strategy=Active(check=6))
    for members in failed:
        ours.record_failure(members, "no")
    noisy = repeated(utility, repeats, spread=5.0 if repeats > 1 else 0.0, seed=seed)
    run(ours, lambda members: noisy(members) + shift, 20)
    assert ours.values().sampled
    return ours


one_failed = pytest.mark.parametrize(
    "failed", [FIVE.names[:1], FIVE.names[1:], FIVE.names, FIVE.names[:2]], ids=len
)


@one_failed
def test_sampled_values_do_not_take_a_failed_coalition_for_one_of_utility_zero(failed):
    values = [sampled_with([failed], shift).values() for shift in (0.0, 50.0)]
    np.testing.assert_allclose(values[0].mean, values[1].mean, atol=1e-9)


@one_failed
def test_sampled_values_add_up_though_a_coalition_failed(failed):
    gap = sampled_with([failed]).values().efficiency_gap
    assert gap == pytest.approx(0, abs=1e-9)


def test_intervals_of_sampled_values_are_wide_enough_for_a_failed_coalition():
    covered = []
    for seed in range(12):
        utility, failed = white(FIVE, seed), FIVE.names[:1]
        ours = dupre.Valuer(FIVE, empty=utility.empty, seed=seed, strategy=Active(check=6))
        ours.record_failure(failed, "no")
        valuation = run(ours, utility, 31)
        truth = told(ours.evaluations | {failed: utility(failed)}, empty=utility.empty).values()
        assert truth.exact
        if valuation.sampled:
            bounds = valuation.interval()
            covered += list((bounds["low"] <= truth.mean) & (truth.mean <= bounds["high"]))
    assert len(covered) >= 20
    assert np.mean(covered) > 0.75


def test_noise_is_a_part_of_the_covariance_of_sampled_values_too():
    valuation = sampled_with(repeats=3, seed=4).values()
    assert np.all(np.diag(valuation.noise) <= np.diag(valuation.covariance))


def test_a_forecast_without_the_predictor_ends_where_everything_is_evaluated():
    ours = sampled_with()
    assert len(ours.forecast(100)) == ours.left + 1


def test_a_forecast_without_the_predictor_begins_with_the_present_and_narrows():
    ours = sampled_with()
    frame = ours.forecast(5)
    assert len(frame) == 6
    np.testing.assert_allclose(frame.iloc[0][list(FIVE.names)], widths_of(ours), rtol=1e-9)
    assert np.all(np.diff(frame["widest"]) < 0)


# Focus.


@pytest.mark.parametrize(
    ("focus", "combination"),
    [
        (None, np.eye(5)),
        ("owner03", [[0, 0, 0, 1, 0]]),
        (("owner03",), [[0, 0, 0, 1, 0]]),
        (("owner01", "owner04"), [[0, 1, 0, 0, -1]]),
    ],
    ids=["all", "one", "tuple of one", "pair"],
)
def test_active_batches_reduce_the_variance_of_what_is_in_focus(monkeypatch, focus, combination):
    ours, _ = started(budget=11, strategy=Active(focus=focus))
    served = []

    def spy(posterior, *others):
        served.append(posterior)
        return original(posterior, *others)

    original = next_batch.active_batch
    monkeypatch.setattr(next_batch, "active_batch", spy)
    pick = from_names(ours.suggest(1)[0], FIVE.names)

    weights, (posterior,) = exact(dupre.shapley, 5), served
    is_open = [to_names(row, FIVE.names) not in ours.evaluations for row in weights.members]
    np.testing.assert_allclose(posterior.W, np.asarray(combination) @ weights.W[:, is_open])
    cross = posterior.cross(np.arange(len(posterior.inputs)))
    reduction = np.sum(cross**2, axis=1) / (posterior.variance + posterior.gp.noise)
    np.testing.assert_array_equal(pick, posterior.inputs.members[np.argmax(reduction)])


def test_focus_serves_its_owner_or_pair_better_than_no_focus():
    i, j = 3, 4

    def variances(focus):
        """Of owner i and of the difference of i and j, summed over two games."""
        covariance = 0
        for game_seed in range(2):
            utility = smooth(FIVE, game_seed)
            ours = dupre.Valuer(FIVE, empty=utility.empty, strategy=Active(focus=focus))
            covariance = covariance + run(ours, utility, 18).covariance
        pair = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        return covariance[i, i], pair

    alone, pair = variances(None)
    assert variances(FIVE.names[i])[0] < alone
    assert variances((FIVE.names[i], FIVE.names[j]))[1] < pair


@pytest.mark.parametrize(
    "focus",
    [
        "nobody",
        (),
        ("owner00", "owner00"),
        ("owner00", "owner01", "owner02"),
        ("owner00", "nobody"),
        ("owner00", 3),
        3,
    ],
)
def test_focus_on_anything_but_one_or_two_owners_is_refused(focus):
    with pytest.raises(InputError, match="focus must be one owner or a pair"):
        dupre.Valuer(FIVE, empty=0.0, strategy=Active(focus=focus))


# Arguments.


@pytest.mark.parametrize(
    ("members", "utility", "message"),
    [
        (("nobody",), 0.5, "unknown owner 'nobody'"),
        (("owner00", "owner00"), 0.5, "twice"),
        ((), 0.5, "empty"),
        ("owner00", 0.5, "tuple of owner names"),
        (("owner00",), float("nan"), "finite number"),
        (("owner00",), float("-inf"), "finite number"),
        (("owner00",), None, "finite number"),
        (("owner00",), "high", "finite number, got 'high'"),
        (("owner00",), "0.7", "finite number, got '0.7'"),
        (("owner00",), [], r"number or several, got \[\]"),
        (("owner00",), [0.5, float("nan")], "finite number, got nan"),
        (("owner00",), [0.5, None], "finite number, got None"),
        (("owner00",), ["0.5"], "finite number, got '0.5'"),
        (("owner00",), [[0.5]], r"finite number, got \[0.5\]"),
        (("owner00",), 10**400, "finite number"),
    ],
    ids=lambda x: repr(x)[:20],
)
def test_what_cannot_be_recorded_is_refused_and_changes_nothing(members, utility, message):
    ours = dupre.Valuer(FIVE, empty=0.0)
    ours.record(FIVE.names, 0.9)
    with pytest.raises(InputError, match=message):
        ours.record(members, utility)
    assert ours.evaluations == {FIVE.names: 0.9}


def test_a_coalition_has_one_utility():
    ours = dupre.Valuer(FIVE, empty=0.0)
    ours.record(("owner01", "owner00"), 0.5)
    ours.record(("owner00", "owner01"), np.float64(0.5))
    with pytest.raises(InputError, match=r"already has the utility .*0\.5.*0\.6"):
        ours.record(("owner00", "owner01"), 0.6)
    assert ours.evaluations == {("owner00", "owner01"): 0.5}


def test_a_second_utility_is_refused_with_the_first_as_a_plain_number():
    ours = dupre.Valuer(FIVE, empty=0.0)
    ours.record(("owner00",), 0.5)
    with pytest.raises(InputError) as caught:
        ours.record(("owner00",), 0.6)
    assert "already has the utility 0.5, got 0.6" in str(caught.value)


def test_the_first_design_is_as_long_as_asked(monkeypatch):
    monkeypatch.setattr(next_batch, "active_batch", lambda *_: pytest.fail("too early"))
    for first, length in ((3, 3), (7, 7), (None, 11)):
        ours = dupre.Valuer(FIVE, empty=0.0, strategy=Active(first=first))
        for k in range(length):
            (members,) = ours.suggest(1)
            ours.record(members, float(k))
        with pytest.raises(pytest.fail.Exception, match="too early"):
            ours.suggest(1)


def test_values_need_at_least_one_utility():
    with pytest.raises(InputError, match="suggest"):
        dupre.Valuer(FIVE, empty=0.0).values()


@pytest.mark.parametrize("k", [0, -1])
def test_suggest_refuses_to_suggest_nothing(k):
    with pytest.raises(InputError, match="at least 1"):
        dupre.Valuer(FIVE, empty=0.0).suggest(k)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be a whole number"),
        ({"budget": -3}, "budget must be a whole number"),
        ({"budget": 1.5}, "budget must be a whole number"),
        ({"budget": "9"}, "budget must be a whole number"),
        ({"budget": None}, r"state budget=, .* or a stop= rule"),
        ({"semivalue": "shaply"}, "did you mean 'shapley'"),
        ({"semivalue": dupre.beta_shapley}, "unknown semivalue"),
        ({"semivalue": dupre.Semivalue("mine", lambda c, n: 0 * c)}, "'mine'.*sum to"),
        ({"strategy": Active(focus="nobody")}, "focus names 'nobody'"),
        ({"seed": None}, "seed"),
        ({"strategy": Active(check=3)}, "check must be 0 or a number from 4"),
        (
            {"budget": 11, "strategy": Active(check=6)},
            "check is 6: at most half of the budget of 11",
        ),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0],
)
def test_bad_arguments_are_refused_before_anything_is_evaluated(options, message):
    utility = smooth(FIVE)
    with pytest.raises(InputError, match=message):
        dupre.value(FIVE, utility, **({"budget": 11} | options))
    assert utility.asked == []


@pytest.mark.parametrize(
    "entry",
    [
        dupre.Valuer,
        lambda owners: dupre.value(owners, len, budget=3),
    ],
    ids=["Valuer", "value"],
)
def test_what_is_no_owners_is_refused(entry):
    with pytest.raises(InputError, match=r"dupre\.Owners"):
        entry({"a": [1]})


def test_what_is_no_utility_is_refused():
    with pytest.raises(InputError, match="callable"):
        dupre.value(FIVE, 0.5, budget=3)
    with pytest.raises(InputError, match="empty coalition must be a finite number"):
        dupre.Valuer(FIVE, empty=float("nan"))


# Failures of the utility.


def failing(utility, at, how):
    """The utility, but `how()` in place of its answer number `at`."""

    def asked(members):
        if members and len(utility.asked) == at:
            return how()
        return utility(members)

    return asked


def raise_(error):
    raise error


FAILURES = {
    "raises": (lambda: raise_(KeyError("missing column")), KeyError, "missing column"),
    "nan": (lambda: float("nan"), InputError, "nan"),
    "None": (lambda: None, InputError, "None"),
    "inf": (lambda: float("inf"), InputError, "inf"),
    "text": (lambda: "good", InputError, "good"),
}


@pytest.mark.parametrize("at", [0, 7, 13], ids=["first", "design", "active"])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_evaluation_is_named_and_all_earlier_ones_are_kept(name, at):
    how, cause, shown = FAILURES[name]
    utility = smooth(FIVE)
    with pytest.raises(EvaluationError, match=shown) as caught:
        dupre.value(FIVE, failing(utility, at, how), budget=16)
    error = caught.value
    assert isinstance(error.__cause__, cause)
    assert "{" + ", ".join(error.members) + "}" in str(error)
    assert error.members not in utility.asked
    assert error.valuer.evaluations == {m: utility.table[m] for m in utility.asked}
    assert len(utility.asked) == at

    valuation = dupre.value(FIVE, utility, budget=16, known=error.valuer.trainings)
    assert valuation.evaluated == 16
    assert len(utility.asked) == len(set(utility.asked)) == 16


def test_ctrl_c_keeps_everything_evaluated():
    utility = smooth(FIVE)
    with pytest.raises(Interrupted) as caught:
        dupre.value(FIVE, failing(utility, 8, lambda: raise_(KeyboardInterrupt)), budget=16)
    assert isinstance(caught.value, KeyboardInterrupt)
    assert set(caught.value.valuer.evaluations) == set(utility.asked)
    assert len(utility.asked) == 8
    known = caught.value.valuer.trainings
    assert dupre.value(FIVE, utility, budget=16, known=known).evaluated == 16
    assert len(utility.asked) == len(set(utility.asked)) == 16


def test_ctrl_c_between_evaluations_keeps_everything_evaluated(monkeypatch):
    utility = smooth(FIVE)
    monkeypatch.setattr(knowledge.form, "learn", lambda *_, **__: raise_(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt) as caught:
        dupre.value(FIVE, utility, budget=16)
    assert isinstance(caught.value, Interrupted)
    assert set(caught.value.valuer.evaluations) == set(utility.asked) != set()


@pytest.mark.parametrize("name", FAILURES)
def test_failing_without_data_is_named_before_anything_is_evaluated(name):
    how, cause, shown = FAILURES[name]
    utility = smooth(FIVE)
    with pytest.raises(EvaluationError, match=rf"utility\(\(\)\).*{shown}") as caught:
        dupre.value(FIVE, lambda members: utility(members) if members else how(), budget=3)
    assert isinstance(caught.value.__cause__, cause)
    assert caught.value.members == ()
    assert utility.asked == []


def test_warnings_are_counted_once_per_evaluation_and_none_escapes():
    utility = smooth(FIVE)

    def noisy(members):
        for _ in range(3):
            warnings.warn("did not converge\nsee the manual", RuntimeWarning, stacklevel=1)
        if len(members) == 1:
            warnings.warn("too few rows", UserWarning, stacklevel=1)
        return utility(members)

    with warnings.catch_warnings(record=True) as escaped:
        warnings.simplefilter("always")
        valuation = dupre.value(FIVE, noisy, budget=12)
    assert escaped == []
    assert {message: sorted(found) for message, found in valuation.warnings.items()} == {
        "RuntimeWarning: did not converge": sorted(utility.asked),
        "UserWarning: too few rows": sorted(m for m in utility.asked if len(m) == 1),
    }
    (line,) = [line for line in str(valuation).split("\n") if "did not converge" in line]
    assert line.startswith("Warning in 12 of 12 evaluations ({")
    assert line.endswith("} and 9 more): RuntimeWarning: did not converge")


# A real game.


@pytest.fixture(scope="module")
def digits():
    """Every coalition of five owners of digits trained once; d's labels are wrong."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, validation = order[:200], order[200:700]
    owner = np.array(list("abcdeee"))[np.minimum(np.arange(200) // 30, 6)]
    target = y[train].copy()
    target[owner == "d"] = 9 - target[owner == "d"]
    owners = dupre.Owners.from_arrays(X[train] / 16, target, owner)
    model = GaussianNB(var_smoothing=0.02)
    utility = dupre.ModelUtility(model, owners, validation=(X[validation] / 16, y[validation]))
    table = [utility(to_names(row, owners.names)) for row in all_coalitions(5)]
    return Logged(owners, table, empty=utility(()))


def test_half_the_trainings_of_a_real_game_are_close_to_all_of_them(digits):
    covered = []
    for semivalue in (dupre.shapley, dupre.banzhaf):
        truth = dupre.value(digits.owners, digits, budget=31, semivalue=semivalue)
        assert truth.exact
        for seed in range(3):
            ours = dupre.value(digits.owners, digits, budget=15, semivalue=semivalue, seed=seed)
            assert np.abs(ours.mean - truth.mean).max() < 0.15 * np.ptp(truth.mean)
            bounds = ours.interval(0.95)
            covered += list((bounds["low"] <= truth.mean) & (truth.mean <= bounds["high"]))
    assert np.mean(covered) >= 0.75


def test_the_wrongly_labelled_owner_of_a_real_game_comes_last(digits):
    valuation = dupre.value(digits.owners, digits, budget=15)
    assert valuation.values.idxmin() == "d"
    assert valuation.rank_range().loc["d"].tolist() == [5, 5]


def test_a_valuer_and_its_errors_survive_pickling():
    asking = dupre.Valuer(FIVE, empty=0.0)
    run(asking, smooth(FIVE), 14)
    again = pickle.loads(pickle.dumps(asking))
    np.testing.assert_array_equal(again.values().mean, asking.values().mean)
    error = pickle.loads(pickle.dumps(EvaluationError("why", members=("a",), valuer=asking)))
    assert (str(error), error.members) == ("why", ("a",))
    assert error.valuer.evaluations == asking.evaluations
    assert again.suggest(3) == asking.suggest(3)


def test_ctrl_c_is_not_swallowed_by_except_exception():
    assert not issubclass(Interrupted, Exception)


def test_recording_what_another_valuer_knows_gives_the_same_values():
    first = dupre.Valuer(FIVE, empty=0.25)
    expected = run(first, smooth(FIVE), 16)
    replay = dupre.Valuer(FIVE, empty=0.25)
    for members, utility in reversed(first.evaluations.items()):
        replay.record(members, utility)
    np.testing.assert_array_equal(replay.values().mean, expected.mean)
    np.testing.assert_array_equal(replay.values().covariance, expected.covariance)


def test_integer_owner_labels_may_be_used_where_names_are():
    owners = dupre.Owners.from_arrays(np.eye(8), [0, 1] * 4, np.repeat([10, 20, 30, 40], 2))
    asking = dupre.Valuer(owners, empty=0.0, strategy=Active(focus=(10, 20)))
    asking.record((20, 10), 0.5)
    asking.record_failure((30,), "no")
    assert asking.evaluations == {("10", "20"): 0.5}
    assert asking.failures == {("30",): "no"}


def test_a_utility_built_on_other_owners_is_refused_before_anything_is_trained():
    X, y = load_digits(return_X_y=True)
    owners, fewer = (
        dupre.Owners.from_arrays(X[:rows], y[:rows], np.arange(rows) % 3) for rows in (300, 200)
    )
    utility = dupre.ModelUtility(LogisticRegression(), fewer, validation=(X[400:], y[400:]))
    with pytest.raises(InputError, match="built on other owners"):
        dupre.value(owners, utility, budget=3)


def test_data_that_hurt_are_pointed_out():
    shown = str(dupre.value(FIVE, lambda members: -float(len(members)), budget=31))
    assert "score worse than none" in shown


def test_intervals_of_a_flat_game_shrink_to_a_fraction_of_its_level():
    half = [
        dupre.value(SIX, lambda members: 0.5, budget=budget).std.max() for budget in (7, 20, 40)
    ]
    assert half[0] > half[1] > half[2]
    assert half[2] < 0.01 * 0.5
