"""Batch after batch: stores and resumed runs, repeats, any order of completion, when it stops."""

import json
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import dupre
import owners_and_games
from dupre import StoreError
from dupre.game.estimators import Sample, exact, permutation, regression
from dupre.training.engines import Local
from dupre.valuation import loop, strategies
from dupre.valuation.stopping import evaluated, ranking_settled, settled, wall_time, within
from dupre.valuation.strategies import Active, Corrected, Drawn, Uniform
from owners_and_games import LoggedGame, Noisy, Shuffled, additive, holds, smooth, value, white
from owners_and_games import assert_same as assert_same_values

pytestmark = pytest.mark.filterwarnings("ignore:on check coalitions:UserWarning")
THREE, FOUR, FIVE, SIX, MANY = map(owners_and_games.make_owners, (3, 4, 5, 6, 17))
SKIP = Local(on_error="skip")


def assert_same(first, second):
    """The same result: values, what is told besides them, and their text."""
    assert_same_values(first, second)
    pd.testing.assert_frame_equal(first.facts.forecast, second.facts.forecast, check_exact=True)
    pd.testing.assert_frame_equal(first.facts.rounds, second.facts.rounds, check_exact=True)
    assert (first.facts.evaluated, first.facts.failures) == (
        second.facts.evaluated,
        second.facts.failures,
    )
    assert str(first) == str(second)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "run.sqlite"


# However it is run.


WAYS = {
    "active": (SIX, 24, {}),
    "Banzhaf": (SIX, 24, {"semivalue": "banzhaf", "seed": 3}),
    "focus": (SIX, 20, {"strategy": Active(focus="owner02")}),
    "check": (SIX, 24, {"strategy": Active(check=5)}),
    "paper": (SIX, 24, {"strategy": Uniform(), "kernel": dupre.kernels.paper()}),
    "corrected": (SIX, 36, {"strategy": Corrected()}),
    "least core": (SIX, 20, {"semivalue": dupre.LeastCore(draws=8)}),
    "sample": (MANY, 48, {"estimator": Sample(regression, 120)}),
    "drawn": (MANY, 48, {"estimator": Sample(permutation, 120), "strategy": Drawn()}),
}
"""Owners, a budget, and what is asked."""

EVERY_WAY = [pytest.param(way, marks=[pytest.mark.slow] * (WAYS[way][0] is MANY)) for way in WAYS]


def test_a_batch_begins_with_the_largest_coalition_unless_the_strategy_has_an_order():
    sizes, first = [], 2 * MANY.n + 1
    for strategy in (Active(batch=6), Drawn(batch=6)):
        utility = smooth(MANY)
        how = {"estimator": Sample(permutation, 120), "strategy": strategy}
        value(MANY, utility, budget=first + 12, **how)
        sizes.append([len(names) for names in utility.asked])
    active, drawn = sizes
    assert active[:2] == [MANY.n, 1]  # the first design has its own order
    for batch in (slice(first, first + 6), slice(first + 6, None)):
        assert active[batch] == sorted(active[batch], reverse=True)
        assert drawn[batch] != sorted(drawn[batch], reverse=True)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_an_interrupted_run_that_is_resumed_gives_the_same_result(store, way):
    owners, budget, options = WAYS[way]

    def interrupt(shown):
        if shown.evaluated == budget - 3:
            raise KeyboardInterrupt

    utility, call = smooth(owners), {"budget": budget, "store": store} | options
    with pytest.raises(dupre.Interrupted, match=r"run\.sqlite': make the same call again"):
        value(owners, utility, progress=interrupt, **call)
    assert len(dupre.read_evaluations(store)) == budget - 3
    resumed = value(owners, utility, **call)
    assert resumed.facts.found == budget - 3
    assert len(utility.asked) == len(set(utility.asked)) == budget
    assert_same(resumed, value(owners, smooth(owners), budget=budget, **options))


def test_so_does_a_run_that_chooses_among_a_sample(store, monkeypatch):
    monkeypatch.setattr(strategies, "EXACT_UP_TO", 20)
    monkeypatch.setattr(strategies, "MAX_CANDIDATES", 24)
    test_an_interrupted_run_that_is_resumed_gives_the_same_result(store, "active")


@pytest.mark.parametrize("way", EVERY_WAY)
def test_ask_and_tell_in_any_order_with_looks_in_between_equals_the_one_call(way):
    owners, budget, options = WAYS[way]
    utility, new = smooth(owners), partial(dupre.Valuer, owners, empty=0.1, **options)
    at_once, ours = value(owners, utility, budget=budget, **options), new()
    while left := budget - ours.evaluated:
        batch = ours.suggest(min(ours.first_left or owners.n, left))
        if ours.designed:
            assert_same_values(ours.values(), ours.values())
        assert ours.suggest(len(batch)) == batch, "asking again"
        assert not set(batch) & set(ours.evaluations)
        for members in reversed(batch):
            ours.record(members[::-1], utility.of(members))
    assert_same_values(ours.values(), at_once)
    assert ours.check() == at_once.facts.check
    other = owners_and_games.record(new(), dict(reversed(ours.evaluations.items())))
    assert_same_values(other.values(), at_once)
    batch = ours.suggest(6)
    assert other.suggest(6) == batch
    assert ours.suggest(4, pending=batch[1::-1]) == batch[2:], "what would have followed"


# The store.


@pytest.mark.parametrize("budgets", [(3, 9, 31), (12, 20)])
def test_a_larger_budget_evaluates_only_what_is_missing_and_a_smaller_one_nothing(store, budgets):
    utility = smooth(FIVE)
    for budget in budgets:
        valuation = value(FIVE, utility, budget=budget, store=store)
        assert valuation.facts.evaluated == budget
        assert len(utility.asked) == len(set(utility.asked)) == budget
    fewer = value(FIVE, utility, budget=4, store=store)
    assert len(utility.asked) == fewer.facts.evaluated == budgets[-1]
    np.testing.assert_array_equal(valuation.mean, fewer.mean)


OTHERS = [{"semivalue": dupre.banzhaf}, {"seed": 5}, {"strategy": Active(check=5)}]
OTHERS += [{"strategy": Active(uniform=True), "kernel": dupre.kernels.paper()}]


@pytest.mark.parametrize("other", OTHERS, ids=["semivalue", "seed", "check", "paper"])
def test_the_store_of_another_run_is_knowledge(store, other):
    first, second = smooth(FIVE), smooth(FIVE)
    value(FIVE, first, budget=13, store=store)
    valuation = value(FIVE, second, budget=22, store=store, **other)
    assert not set(first.asked) & set(second.asked)
    assert len(second.asked) == 9
    assert valuation.facts.evaluated == 22
    known = {members: first.of(members) for members in first.asked}
    assert_same(valuation, value(FIVE, smooth(FIVE), budget=22, known=known, **other))


def test_two_runs_in_turn_on_one_store_do_not_disturb_each_other(store):
    utility = smooth(FIVE)
    for budget in (12, 18):
        for seed in (0, 1):
            assert (
                value(FIVE, utility, budget=budget, seed=seed, store=store).facts.evaluated
                == budget
            )
            assert len(utility.asked) == budget


def test_when_an_owner_changes_only_its_coalitions_are_evaluated_again(store):
    X = FOUR.X + (FOUR.owner == 2)[:, None]
    later = dupre.Owners.from_arrays(X, FOUR.y, np.array(FOUR.names)[FOUR.owner])
    old, new = white(FOUR, 0), white(later, 1)
    options = {"budget": 15, "empty": 0.0, "store": store}
    before, after = value(FOUR, old, **options), value(later, new, **options)
    assert sorted(new.asked) == sorted(m for m in new.table if "owner02" in m)
    mixed = [new.of(m) if "owner02" in m else old.of(m) for m in old.table]
    np.testing.assert_allclose(after.mean, exact(dupre.shapley, 4).W @ mixed, atol=1e-12)
    # Both are still there.
    assert_same_values(before, value(FOUR, old, **options))
    assert_same(after, value(later, new, **options))
    assert (len(old.asked), len(new.asked)) == (15, 8)


def test_a_utility_that_looks_at_its_owners_is_the_same_and_a_subclass_has_its_own_store(tmp_path):
    def utility(members):
        return float(len(FIVE.data_of(np.isin(FIVE.names, members))[1])) ** 0.5

    assert_same(*(value(FIVE, utility, budget=8, store=tmp_path / "a.sqlite") for _ in range(2)))

    class Hundredfold(dupre.ModelUtility):
        def __call__(self, members, *, repeat=0):
            return 100 * super().__call__(members, repeat=repeat)

    plain, other = (
        kind(LinearRegression(), FIVE, validation=(FIVE.X, FIVE.y))
        for kind in (dupre.ModelUtility, Hundredfold)
    )
    value(FIVE, plain, budget=5, store=tmp_path / "b.sqlite")
    with pytest.raises(StoreError, match=r"utility ModelUtility, now .*Hundredfold"):
        value(FIVE, other, budget=5, store=tmp_path / "b.sqlite")


# Repeated trainings.


@pytest.mark.parametrize("repeats", [1, 3])
def test_every_coalition_is_trained_as_often_as_asked_each_time_with_another_seed(repeats):
    utility = Noisy(additive(FOUR), 0.1)
    valuation = value(FOUR, utility, budget=9, repeats=repeats)
    assert len(utility.asked) == len(set(utility.asked)) == 9 * repeats
    assert valuation.facts.evaluated == 9
    frame = valuation.evaluations
    assert frame.groupby("coalition")["repeat"].apply(sorted).tolist() == [list(range(repeats))] * 9
    assert frame["seed"].nunique() == 9 * repeats
    for row in frame.itertuples():
        assert row.seed == utility.training_seed(json.loads(row.coalition), row.repeat)


def test_intervals_of_noisy_and_partly_evaluated_games_hold_the_truth():
    inside = []
    for seed in range(8):
        utility = Noisy(additive(FIVE, seed), 0.3, seed)
        valuation = value(FIVE, utility, budget=15, repeats=2)
        inside.append(holds(valuation, utility.game.values()))
        # Noise and what is not evaluated are told apart.
        assert (
            np.linalg.eigvalsh(valuation.uncertainty.total - valuation.uncertainty.noise).min()
            > -1e-10
        )
        assert np.all(np.diag(valuation.uncertainty.noise) > 0)
        part = 100 * np.trace(valuation.uncertainty.noise) / np.trace(valuation.uncertainty.total)
        assert f"{part:.0f} % is noise of trainings" in valuation.explain()
    assert np.mean(inside) >= owners_and_games.least_share(8)


def test_raised_repeats_reuse_the_trainings_there_are_and_have_rounds_of_their_own(tmp_path):
    def utility(owners):
        return Noisy(additive(owners), 0.3)

    ours, store = utility(FOUR), tmp_path / "four.sqlite"
    for repeats, trained in ((1, 15), (3, 45), (2, 45)):
        found = value(FOUR, ours, budget=15, repeats=repeats, store=store)
        assert len(ours.asked) == len(set(ours.asked)) == trained
        assert_same_values(found, value(FOUR, utility(FOUR), budget=15, repeats=repeats))
    ours, store = utility(FIVE), tmp_path / "five.sqlite"
    for repeats in (1, 2, 4):
        found = value(FIVE, ours, budget=14, repeats=repeats, store=store)
        assert found.facts.evaluated == 14
        assert (
            found.facts.rounds["widest"].iloc[-1] == found.uncertainty.spread().half_width().max()
        )
    assert len(ours.asked) == len(set(ours.asked))


# Any order of completion.


@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_the_order_in_which_trainings_finish_does_not_matter(data):
    owners = data.draw(st.sampled_from([THREE, FOUR]), label="owners")
    number, size = st.floats(-1, 1, allow_subnormal=False), 2**owners.n
    table = data.draw(st.lists(number, min_size=size, max_size=size), label="utilities")
    empty, *table = [float(f"{number:.6g}") for number in table]
    options = {
        "budget": data.draw(st.integers(1, size), label="budget"),
        "repeats": data.draw(st.integers(1, 2), label="repeats"),
    }
    engine = Shuffled(data.draw(st.integers(0, 99), label="order"))
    assert_same(
        value(owners, LoggedGame(owners, table, empty), **options),
        value(owners, LoggedGame(owners, table, empty), engine=engine, **options),
    )


@pytest.mark.parametrize("size", [4e-320, 4e-172, 4e-100, 4e100])
@pytest.mark.parametrize("budget", [1, 3, 7])
def test_utilities_of_any_size_are_valued(size, budget):
    found = value(THREE, lambda members: size * (len(members) == 3), budget=budget, repeats=1)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.std).all()
    assert found.values.sum() == pytest.approx(size, rel=1e-6, abs=1e-100)


def test_failures_and_warnings_finish_in_any_order_too():
    def utility(members):
        warnings.warn("one" if len(members) % 2 else "another", UserWarning, stacklevel=1)
        return float("nan") if len(members) == 2 else len(members) ** 0.5

    in_order = value(FOUR, utility, budget=13, engine=SKIP)
    assert in_order.facts.failures
    for seed in range(2):
        found = value(FOUR, utility, budget=13, engine=Shuffled(seed, "skip"))
        assert_same(in_order, found)
        assert found.facts.warnings == in_order.facts.warnings
        assert found.evaluations["coalition"].tolist() == in_order.evaluations["coalition"].tolist()
    engine = Shuffled(0)  # a larger batch keeps more workers busy
    value(FIVE, smooth(FIVE), budget=27, strategy=Active(batch=8), engine=engine)
    assert engine.sizes == [1, 11, 8, 8]  # the first is of no data


# What a batch trains.


FIRST = 13  # of six owners: all, single ones, all but one


@pytest.mark.parametrize("at", [FIRST + 5, FIRST + 9, FIRST + 16])
def test_what_is_known_besides_the_store_is_counted_once(tmp_path, at):
    call = {"budget": FIRST + 20, "store": tmp_path / "run.sqlite", "engine": Shuffled(at)}
    looks = []

    def look(progress):
        looks.append(progress.evaluated)
        if progress.evaluated == at and len(looks) < 100:
            looks.extend([0] * 100)
            raise KeyboardInterrupt

    with pytest.raises(dupre.Interrupted) as stopped:
        value(SIX, smooth(SIX), progress=look, **call)
    looks.clear()
    utility = smooth(SIX)
    known = stopped.value.valuer.trainings
    found = value(SIX, utility, known=known, progress=lambda p: looks.append(p.evaluated), **call)
    assert found.facts.found == looks[0] == len(known) == at
    assert looks == sorted(looks)
    assert looks[-1] == found.facts.evaluated == FIRST + 20
    assert len(utility.asked) == FIRST + 20 - at


@pytest.mark.parametrize("budget", range(FIRST, FIRST + 14, 3))
def test_every_budget_is_spent_to_the_last_training_and_not_exceeded(budget):
    utility = smooth(SIX)
    valuation = value(SIX, utility, budget=budget)
    assert valuation.facts.evaluated == len(set(utility.asked)) == len(utility.asked) == budget
    assert valuation.facts.rounds["evaluated"].iloc[-1] == budget
    assert_same(valuation, value(SIX, smooth(SIX), budget=budget, engine=Shuffled(budget)))


def test_second_trainings_follow_the_first_design_and_then_every_batch():
    utility, first = Noisy(smooth(owners_and_games.make_owners(9)), 0.05), 19
    valuation = value(utility.owners, utility, budget=80)
    again = [i for i, (_, repeat) in enumerate(utility.asked) if repeat]
    assert again[:6] == list(range(first, first + 6))  # before anything is predicted
    assert 6 + 56 <= again[6] < len(utility.asked) - 10  # after 56 coalitions, and not at the end
    assert valuation.facts.training_noise.further == len(again) == 80 // 8


# Stop rules.


RULES = {
    "within": (within(0.08), 30, lambda v: np.all(v.uncertainty.spread().half_width() <= 0.08)),
    "loosely within": (within(0.1, level=0.6), None, lambda v: True),
    "settled": (
        settled("owner00", "owner04"),
        40,
        lambda v: abs(v.probability_greater().loc["owner00", "owner04"] - 0.5) >= 0.45,
    ),
    "ranking": (ranking_settled(level=0.6), 31, lambda v: True),
    "evaluated": (evaluated(13), None, lambda v: v.facts.evaluated >= 13),
}
"""A rule, a budget, and what holds when the rule has stopped the run."""


@pytest.mark.parametrize("name", RULES)
def test_a_rule_stops_the_run_and_the_result_says_which(name):
    rule, budget, holds = RULES[name]
    utility = smooth(FIVE)
    valuation = value(FIVE, utility, budget=budget, stop=rule)
    assert valuation.facts.stopped == rule.text
    assert f"Stopped: {rule.text}." in valuation.explain()
    assert holds(valuation)
    assert 11 <= valuation.facts.evaluated == len(utility.asked) < 30


@pytest.mark.parametrize("check", [0, 5])
def test_rules_about_values_wait_for_the_first_design(check):
    options = {"stop": within(1e6), "strategy": Active(check=check)}
    found = value(FIVE, smooth(FIVE), budget=30, **options)
    assert (
        found.facts.evaluated == 11 + check + 5
    )  # single owners and all but one show nothing between


def test_rules_are_combined_and_hold_for_what_is_stored(store):
    loose, never, many = within(10), within(1e-12) | wall_time(1e6), evaluated(18)
    spent = "the budget of 20 evaluations is spent"
    for rule, reason in (
        (never, spent),
        (never & many, spent),
        (never | loose, loose.text),
        (loose & many, f"{loose.text} and {many.text}"),
    ):
        valuation = value(FIVE, smooth(FIVE), budget=20, stop=rule)
        assert valuation.facts.stopped == reason
        assert (
            valuation.facts.evaluated == 16
            if reason == loose.text
            else valuation.facts.evaluated >= 18
        )
    utility = smooth(FIVE)
    value(FIVE, utility, budget=16, store=store)
    for rule in (wall_time(1e-9), evaluated(16), within(10)):
        valuation = value(FIVE, utility, budget=30, stop=rule, store=store)
        assert (valuation.facts.stopped, valuation.facts.evaluated) == (rule.text, 16)
    assert len(utility.asked) == 16
    valuation = value(FIVE, smooth(FIVE), budget=30, stop=wall_time(1e-9))
    assert valuation.facts.stopped == "1e-09 seconds have passed"
    assert valuation.facts.evaluated == 1  # what has begun is finished
    assert "first guess" in valuation.explain()
    for rule in (evaluated(3), evaluated(3) & wall_time(1e-9)):
        whole = value(FIVE, smooth(FIVE), budget=30, stop=rule)
        assert whole.facts.evaluated == 11  # a number of evaluations never ends a batch
        assert whole.facts.stopped.startswith("at least 3 coalitions are evaluated")
    either = value(FIVE, smooth(FIVE), budget=30, stop=wall_time(1e-9) | within(1e-9))
    both = value(FIVE, smooth(FIVE), budget=30, stop=wall_time(1e-9) & wall_time(2e-9))
    assert (either.facts.evaluated, both.facts.evaluated) == (1, 1)
    with pytest.raises(dupre.InputError, match="seconds must be positive"):
        replace(evaluated(3), seconds=-1.0)


def test_the_run_ends_where_nothing_is_left_to_gain_for_the_focus():
    pair, utility = ("owner01", "owner03"), white(FIVE)
    valuation = value(FIVE, utility, budget=30, strategy=Active(focus=pair))
    assert valuation.facts.stopped == "nothing is left to gain"
    skipped = set(utility.table) - set(utility.asked)
    assert skipped
    assert all(len(set(pair) & set(members)) != 1 for members in skipped)
    i, j = map(FIVE.names.index, pair)
    C, truth = valuation.uncertainty.total, utility.values()
    assert C[i, i] + C[j, j] - 2 * C[i, j] == pytest.approx(0, abs=1e-9)
    difference = valuation.mean[i] - valuation.mean[j]
    assert difference == pytest.approx(truth[i] - truth[j], abs=1e-9)


# Rounds and forecast.


def test_rounds_say_what_was_known_after_each_batch_and_how_a_check_went(store):
    valuation = value(FIVE, smooth(FIVE), budget=24)
    rounds = valuation.facts.rounds
    assert list(rounds.columns) == ["evaluated", "widest"]
    assert (
        "widest" in value(FIVE, smooth(FIVE), budget=1).facts.rounds.columns
    )  # though there are none
    assert rounds["evaluated"].tolist() == [11, 16, 21, 24]
    assert np.all(rounds["widest"] > 0)
    assert rounds["widest"].iloc[-1] == valuation.uncertainty.spread().half_width().max()
    for count, widest in rounds[1:-1].itertuples(index=False):
        stopped = value(FIVE, smooth(FIVE), budget=24, stop=evaluated(count))
        assert stopped.uncertainty.spread().half_width().max() == widest
    options = {"budget": 22, "store": store, "strategy": Active(check=5)}
    valuation, again = (value(FIVE, smooth(FIVE), **options) for _ in range(2))
    columns = ["evaluated", "widest", "error", "by_size", "coverage"]
    assert list(valuation.facts.rounds.columns) == columns
    last, check = valuation.facts.rounds.iloc[-1], valuation.facts.check
    assert last.tolist()[2:] == [check.error, check.by_size, check.coverage]
    assert check.held_out == 5
    assert valuation.facts.rounds["coverage"].between(0, 1).all()
    pd.testing.assert_frame_equal(valuation.facts.rounds, again.facts.rounds, check_exact=True)


def test_a_run_killed_while_it_saves_a_round_saves_it_when_it_goes_on(store, monkeypatch):
    expected = value(FIVE, smooth(FIVE), budget=21).facts.rounds
    save, saved = loop.Loop._save_round, []

    def die(self, **how):
        saved.append(self.valuer.evaluated)
        if saved[-1] == 16:
            raise KeyboardInterrupt
        save(self, **how)

    options = {"budget": 21, "store": store}
    with monkeypatch.context() as patch:
        patch.setattr(loop.Loop, "_save_round", die)
        with pytest.raises(KeyboardInterrupt):
            value(FIVE, smooth(FIVE), **options)
    assert saved[-1] == 16
    rounds = value(FIVE, smooth(FIVE), **options).facts.rounds
    pd.testing.assert_frame_equal(rounds, expected, check_exact=True)


def test_the_result_looks_ahead_and_a_guess_says_that_it_is_one():
    valuation = value(FIVE, smooth(FIVE), budget=16)
    assert valuation.facts.forecast.index.tolist() == list(range(16, 27))
    (note,) = [line for line in valuation.explain().splitlines() if "10 more" in line]
    assert f"± {valuation.facts.forecast['widest'].iloc[-1]:.2g}" in note
    assert valuation.facts.first_left == 0
    assert "first guess" not in valuation.explain()
    few = value(FIVE, smooth(FIVE), budget=6)
    assert 5 <= few.facts.first_left <= 10
    line = f"{few.facts.first_left} of the 11 most important coalitions are not evaluated"
    assert line in few.explain()


def test_a_predictable_game_passes_its_check_and_another_is_valued_without_the_predictor():
    for seed in range(2):
        valuation = value(SIX, additive(SIX, seed), budget=36, strategy=Active(check=8))
        assert valuation.facts.check.held_out == 8
        assert valuation.facts.check.r2 > 0.9
        assert not valuation.facts.check.failed
        assert not valuation.facts.sampled
        assert "Predictor on 8 check coalitions" in valuation.explain()
        assert "Beware" not in valuation.explain() or "score worse" in valuation.explain()

    failed = 0
    for seed in range(6):
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            options = {"budget": 33, "seed": seed, "strategy": Active(check=12)}
            valuation = value(SIX, white(SIX, seed), **options)
        assert valuation.facts.sampled == valuation.facts.check.failed == bool(raised)
        beware = (
            "Beware: on check coalitions the predictor is not clearly better" in valuation.explain()
        )
        assert beware == valuation.facts.sampled
        failed += valuation.facts.sampled
    assert failed >= 3


# Progress.


def watch(owners, utility, **options):
    seen = []
    return dupre.value(owners, utility, progress=seen.append, **options), seen


def test_a_callback_sees_every_evaluation_what_was_stored_and_failures(store):
    valuation, seen = watch(FIVE, smooth(FIVE), budget=18)
    done = [progress.evaluated for progress in seen]
    assert done == sorted(done)
    assert set(range(1, 19)) <= set(done)
    assert {progress.budget for progress in seen} == {18}
    assert {progress.failed for progress in seen} == {0}
    seconds = [progress.seconds for progress in seen]
    assert seconds == sorted(seconds)
    for progress in seen:
        assert (progress.remaining is None) == (progress.evaluated == 0)
        # The first design is 2n + 1; nothing is predicted before.
        assert progress.widest is None or progress.evaluated >= 11
        assert progress.widest is not None or progress.evaluated <= 11
    assert (seen[-1].evaluated, seen[-1].remaining) == (18, 0)
    assert seen[-1].widest == valuation.uncertainty.spread().half_width().max()
    # Watching does not change the result.
    assert_same(valuation, value(FIVE, smooth(FIVE), budget=18))

    def utility(members):
        return float("nan") if len(members) == 1 else float(len(members))

    _, seen = watch(FIVE, utility, budget=12, store=store, engine=SKIP)
    assert [p.failed for p in seen] == sorted(p.failed for p in seen)
    assert seen[-1].failed == 5
    _, again = watch(FIVE, utility, budget=15, store=store, engine=SKIP)
    assert (again[0].evaluated, again[0].remaining) == (12, None)
    assert again[-1].evaluated == 15


@pytest.mark.parametrize("semivalue", ["shapley", "loo"])
def test_at_the_end_nothing_is_left_to_do_however_large_the_budget(semivalue):
    _, seen = watch(FOUR, smooth(FOUR), budget=1000, semivalue=semivalue, repeats=3)
    assert seen[-1].remaining == 0
    assert seen[-1].evaluated == seen[-1].budget
    trained = [progress for progress in seen if progress.remaining is not None]
    assert len(trained) >= 3 * seen[-1].evaluated  # repeats show as time left


def test_stored_coalitions_that_lack_repeats_are_told(store):
    utility = smooth(FIVE)
    value(FIVE, utility, budget=20, store=store)
    found = value(FIVE, utility, budget=12, repeats=2, store=store)
    assert found.facts.evaluated == 12
    assert "Beware: not used: 8 stored coalitions with fewer than 2 trainings" in found.explain()
    assert "not used" not in value(FIVE, utility, budget=31, repeats=2, store=store).explain()
