"""Batches that begin while the last ones of the batch before are still trained."""

from contextlib import closing, suppress

import pytest

import dupre
from dupre.store.fingerprints import Origin
from dupre.store.store import Store
from dupre.training.evaluation import Evaluation, Training
from dupre.valuation.batches import Batches
from dupre.valuation.outcomes import Outcomes
from dupre.valuation.stopping import evaluated
from owners_and_games import Noisy, Shuffled, assert_same, make_owners, smooth, value
from workers import wait_for

SIX = make_owners(6)
FIRST = 13  # of six owners: all, single ones, all but one


def asked_by(budget, changed=(), **options):
    """The coalitions trained, in order; the utilities of some are changed."""
    utility = smooth(SIX)
    if changed:
        game = dict(changed)
        inner = utility.of
        utility.of = lambda members: inner(members) + game.get(members, 0.0)
    value(SIX, utility, budget=budget, **options)
    return utility.asked[-budget:]


def test_the_next_batch_is_chosen_without_what_is_late_and_the_one_after_it_with_it():
    asked = asked_by(FIRST + 18)
    batch, following, third = (asked[FIRST + start :][:6] for start in (0, 6, 12))
    late = batch[-2:]
    changed = asked_by(FIRST + 18, dict.fromkeys(late, -0.4))
    assert changed[: FIRST + 12] == asked[: FIRST + 12]
    assert set(changed[FIRST + 12 :]) != set(third)
    others = asked_by(FIRST + 12, dict.fromkeys(batch[:4], -0.4))
    assert others[:FIRST] == asked[:FIRST]
    assert set(others[FIRST + 6 :]) != set(following)


def test_a_choice_is_that_of_a_valuer_which_is_told_what_is_under_way():
    asked = asked_by(FIRST + 12)
    utility, valuer = smooth(SIX), dupre.Valuer(SIX, empty=0.1)
    for members in asked[: FIRST + 4]:
        valuer.record(members, utility.of(members))
    late = asked[FIRST + 4 : FIRST + 6]
    assert set(valuer.suggest(6, pending=late)) == set(asked[FIRST + 6 :])


def test_a_rule_that_may_end_the_run_sees_every_batch_as_a_whole():
    seen = []

    def look(state):
        seen.append(state.evaluated)
        return ()

    value(SIX, smooth(SIX), budget=FIRST + 12, stop=dupre.stopping.Rule("never", look))
    assert seen[-3:] == [FIRST, FIRST + 6, FIRST + 12]
    whole = value(SIX, smooth(SIX), budget=FIRST + 12, stop=evaluated(FIRST + 6))
    assert whole.evaluated == FIRST + 6


def test_workers_train_the_next_batch_while_a_training_of_the_last_one_goes_on(tmp_path):
    asked = asked_by(FIRST + 12)
    slow, batch = asked[FIRST + 5], set(asked[: FIRST + 6])
    worth = smooth(SIX).of

    def utility(members):
        if members and members not in batch:
            (tmp_path / "next").touch()
        if members == slow:  # it would never end if the next batch waited for it
            wait_for((tmp_path / "next").exists, seconds=60)
        return worth(members)

    there = dupre.value(SIX, utility, empty=0.1, budget=FIRST + 12, n_jobs=2, progress=False)
    assert_same(there, value(SIX, smooth(SIX), budget=FIRST + 12))


@pytest.mark.parametrize("stopped_after", [3, 8, 12, 16, 24])
def test_a_process_that_was_slow_to_choose_follows_another_one(tmp_path, stopped_after):
    """While it looks at an evaluation, the same call elsewhere goes on by some batches."""
    budget, store, theirs, looks = FIRST + 24, tmp_path / "run.sqlite", smooth(SIX), []

    class Interrupted:
        fingerprint = theirs.fingerprint

        def __call__(self, members):
            if members and len(theirs.asked) == stopped_after:
                raise KeyboardInterrupt
            return theirs(members)

    def look(progress):
        looks.append(progress.evaluated)
        if len(looks) == FIRST + 4:
            with suppress(dupre.Interrupted):
                value(SIX, Interrupted(), budget=budget, store=store)

    ours = smooth(SIX)
    found = value(SIX, ours, budget=budget, store=store, progress=look)
    assert len(looks) > FIRST + 4
    assert looks == sorted(looks)
    trained = [*ours.asked, *theirs.asked]
    assert len(trained) == len(set(trained)) == found.evaluated == budget
    assert_same(found, value(SIX, smooth(SIX), budget=budget))


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
    assert found.found == looks[0] == len(known) == at
    assert looks == sorted(looks)
    assert looks[-1] == found.evaluated == FIRST + 20
    assert len(utility.asked) == FIRST + 20 - at


def test_a_failure_says_how_much_is_kept_though_some_of_it_is_late():
    class Failing:
        asked, worth = [], staticmethod(smooth(SIX).of)

        def __call__(self, members):
            if not members:
                return 0.1
            if len(self.asked) == FIRST + 5:
                raise ValueError("no luck")
            self.asked.append(members)
            return self.worth(members)

    for seed in range(3):
        Failing.asked = []
        with pytest.raises(dupre.EvaluationError, match=f"^.*{FIRST + 5} evaluations") as failed:
            value(SIX, Failing(), budget=FIRST + 12, engine=Shuffled(seed))
        assert len(failed.value.valuer.evaluations) == FIRST + 5


@pytest.mark.parametrize("budget", range(FIRST, FIRST + 14))
def test_every_budget_is_spent_to_the_last_training_and_not_exceeded(budget):
    utility = smooth(SIX)
    valuation = value(SIX, utility, budget=budget)
    assert valuation.evaluated == len(set(utility.asked)) == len(utility.asked) == budget
    assert valuation.rounds["evaluated"].iloc[-1] == budget
    assert_same(valuation, value(SIX, smooth(SIX), budget=budget, engine=Shuffled(budget)))


def test_second_trainings_are_part_of_the_next_batch():
    utility, first = Noisy(smooth(make_owners(9)), 0.05), 19
    valuation = value(utility.owners, utility, budget=80)
    again = [i for i, (_, repeat) in enumerate(utility.asked) if repeat]
    assert again[:6] == list(range(first, first + 6))  # before anything is predicted
    assert 6 + 56 <= again[6] < len(utility.asked) - 10  # after 56 coalitions, and not at the end
    assert valuation.training_noise.further == len(again) == 80 // 8


def test_a_batch_begins_with_what_was_late_and_the_next_choice_waits_for_it():
    owners = make_owners(7)
    a, b, c, d, e, f, g = [(name,) for name in owners.names]
    valuer = dupre.Valuer(owners, empty=0.0)
    with closing(Store(Origin({}, dict.fromkeys(owners.names, "")))) as store:
        outcomes = Outcomes(valuer, store, repeats=1, skip=False)
        ours, other = (Batches(store, "run", outcomes, None, ahead=True) for _ in range(2))
        ours.read()
        assert (ours.number, ours.coalitions, ours.late) == (0, [], [])
        assert [training.members for training in ours.begin([a, b, c])] == [a, b, c]
        assert ours.late == []  # the first design is known as a whole
        ours.begin([a, b, c])
        assert ours.late == [c]
        assert ours.hold_back(c)
        assert not ours.hold_back(a)
        for members in (a, b):
            assert not ours.is_ready()
            store.save(Evaluation(Training(members), 1.0))
        assert ours.is_ready()
        other.read()
        assert [training.members for training in ours.begin([d, e, f, g])] == [d, e, f, g]
        assert ours.coalitions == [c, d, e, f, g]
        assert ours.late == [g]
        assert not other.is_latest()
        assert other.begin([a]) == []  # the other process was first: its batch counts
        assert (other.number, other.coalitions) == (3, ours.coalitions)
        for members in (d, e, f):
            store.save(Evaluation(Training(members), 1.0))
        assert not ours.is_ready()
        store.save(Evaluation(Training(c), 1.0))
        assert ours.is_ready()
        whole = Batches(store, "run", outcomes, None, ahead=False)
        whole.read()
        assert whole.late == []
        assert [training.members for training in whole.missing(3)] == [g]
        assert whole.missing(0) == []
