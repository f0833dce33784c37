"""Trainings that fail, warn, or are interrupted: nothing paid for is lost, all of it is said."""

import os
import pickle
import re
import warnings

import numpy as np
import pytest

import dupre
from dupre import EvaluationError, InputError, Interrupted, StoreError
from dupre.training.engines import Local
from dupre.training.evaluation import evaluate
from dupre.valuation import state, stopping
from owners_and_games import LoggedGame, Noisy, additive, assert_same, make_owners, smooth, value

THREE, FOUR, FIVE = map(make_owners, (3, 4, 5))
SKIP = Local(on_error="skip")


def raise_(error):
    raise error


class FailingOnce(LoggedGame):
    """The smooth game, but `how()` in place of its answer number `at`; only the first time."""

    def __init__(self, at, how):
        plain = smooth(FIVE)
        super().__init__(FIVE, plain.game, plain.empty)
        self.at, self.how = at, how

    def __call__(self, members):
        if members and len(self.asked) == self.at:
            self.at = None
            return self.how()
        return super().__call__(members)


def interrupt():
    raise KeyboardInterrupt


def hopeless(members):
    return raise_(ValueError("no model")) if members else 0.0


FAILURES = {
    "raises": (lambda: raise_(KeyError("missing column")), KeyError, "missing column"),
    "nan": (lambda: float("nan"), InputError, "nan"),
    "inf": (lambda: float("inf"), InputError, "inf"),
    "None": (lambda: None, InputError, "None"),
    "text": (lambda: "0.5", InputError, "'0.5'"),
}


@pytest.mark.parametrize(
    ("name", "at"), [*((name, 7) for name in FAILURES), ("nan", 0), ("nan", 13)]
)
def test_a_failed_evaluation_is_named_and_the_others_are_kept(name, at):
    how, cause, shown = FAILURES[name]
    utility = FailingOnce(at, how)
    with pytest.raises(EvaluationError, match=shown) as caught:
        value(FIVE, utility, budget=16)
    error = caught.value
    assert isinstance(error.__cause__, cause)
    assert f"evaluating {{{', '.join(error.members)}}} failed" in str(error)
    assert "remove the cause" in str(error)
    assert "known=error.valuer.trainings" in str(error)
    assert error.members not in utility.asked
    assert len(utility.asked) == at
    assert error.valuer.evaluations == {m: utility.of(m) for m in utility.asked}
    assert value(FIVE, utility, budget=16, known=error.valuer.trainings).facts.evaluated == 16
    assert len(utility.asked) == len(set(utility.asked)) == 16


@pytest.mark.parametrize("broken", [FOUR.names[:2], FOUR.names], ids=len)
def test_with_everything_else_known_a_skipped_coalition_ends_the_run(broken):
    utility = smooth(FOUR)

    def failing(members):
        return float("nan") if members == broken else utility(members)

    valuation = value(FOUR, failing, budget=100, engine=SKIP)
    assert valuation.facts.stopped == "nothing is left to evaluate"
    assert (valuation.facts.evaluated, list(valuation.facts.failures)) == (15, [broken])
    assert np.all(valuation.std > 0)
    assert np.all(np.abs(valuation.mean - utility.values()) < 3 * valuation.std)
    # A predicted utility of all owners is marked.
    assert valuation.facts.grand_predicted == (broken == FOUR.names)
    assert ("u(all owners) ≈" in valuation.explain()) == valuation.facts.grand_predicted
    assert valuation.mean.sum() == pytest.approx(
        valuation.facts.grand - valuation.facts.empty, abs=1e-9
    )


def test_a_failed_repeat_fails_its_coalition_and_all_failures_the_run(tmp_path):
    class Broken(Noisy):
        def __call__(self, members, *, repeat=0):
            if members == FOUR.names[:2] and repeat == 1:
                raise ValueError("diverged")
            return super().__call__(members, repeat=repeat)

    utility = Broken(additive(FOUR), 0.1)
    valuation = value(FOUR, utility, budget=15, repeats=3, engine=SKIP)
    assert valuation.facts.failures == {FOUR.names[:2]: "ValueError: diverged"}
    assert valuation.facts.evaluated == 15
    with pytest.raises(EvaluationError, match=r"\{owner00, owner01\} failed: .*diverged") as caught:
        value(FOUR, utility, budget=15, repeats=3)
    assert FOUR.names[:2] not in caught.value.valuer.evaluations
    for store in (None, *[tmp_path / "run.sqlite"] * 3):  # the same call again says so again
        with pytest.raises(EvaluationError, match=r"no model; all \d+ evaluations so far failed"):
            value(THREE, hopeless, budget=5, store=store, engine=SKIP)


@pytest.mark.parametrize("name", FAILURES)
def test_failing_without_data_is_named_before_anything_is_evaluated(name):
    how, cause, shown = FAILURES[name]
    utility = smooth(FIVE)
    with pytest.raises(EvaluationError, match=rf"utility\(\(\)\).*{shown}.*empty=") as caught:
        value(FIVE, lambda members: utility(members) if members else how(), budget=3)
    assert isinstance(caught.value.__cause__, cause)
    assert caught.value.members == ()
    assert utility.asked == []


def test_interrupted_without_a_store_nothing_is_lost_and_the_first_design_is_the_same(monkeypatch):
    assert not issubclass(Interrupted, Exception)  # or a user's handler would swallow it
    for at, stop in ((0, None), (5, None), (11, None), (14, None), (16, stopping.evaluated(22))):
        call = {"budget": 22, "stop": stop}
        utility = FailingOnce(at, interrupt)
        with pytest.raises(Interrupted, match=r"known=error\.valuer\.trainings") as caught:
            value(FIVE, utility, **call)
        assert f"{at} evaluations so far" in str(caught.value)
        assert set(caught.value.valuer.evaluations) == set(utility.asked)
        again = value(FIVE, utility, known=caught.value.valuer.trainings, **call)
        assert len(utility.asked) == len(set(utility.asked)) == 22
        if at != 14:  # what a batch was chosen from is known, as if it had not been interrupted
            expected = value(FIVE, smooth(FIVE), **call)
            assert_same(expected, again)
            assert str(expected) == str(again)
    utility = smooth(FIVE)
    monkeypatch.setattr(state.form, "learn", lambda *_, **__: interrupt())
    with pytest.raises(Interrupted) as caught:
        value(FIVE, utility, budget=16)
    assert set(caught.value.valuer.evaluations) == set(utility.asked) != set()


def test_a_callback_that_breaks_loses_nothing_that_is_stored(tmp_path):
    def breaking(progress):
        if progress.evaluated == 7:
            raise ZeroDivisionError

    utility, store = smooth(FIVE), tmp_path / "run.sqlite"
    with pytest.raises(ZeroDivisionError):
        dupre.value(FIVE, utility, budget=16, store=store, progress=breaking)
    assert len(utility.asked) == 7
    again = value(FIVE, utility, budget=16, store=store)
    assert len(utility.asked) == len(set(utility.asked)) == 16
    assert_same(again, value(FIVE, smooth(FIVE), budget=16))


class FourThenInterrupt:
    """An engine, and its workers: Ctrl-C when four trainings are done and one is handed over."""

    on_error = "raise"

    def start(self, utility):
        self.utility, self.done = utility, []
        return self

    def run(self, trainings):
        some = [training for _, training in zip(range(4), trainings, strict=False)]
        self.done = [evaluate(self.utility, training, threads=1) for training in some]
        yield self.done.pop()
        raise KeyboardInterrupt

    def finished_evaluations(self):
        return self.done

    def close(self):
        pass


def test_trainings_that_finish_while_a_run_is_interrupted_are_kept(tmp_path):
    utility, store = smooth(FIVE), tmp_path / "run.sqlite"
    with pytest.raises(Interrupted, match="4 evaluations so far") as caught:
        value(FIVE, utility, budget=16, empty=0.1, store=store, engine=FourThenInterrupt())
    assert caught.value.valuer.evaluations == {m: utility.of(m) for m in utility.asked}
    assert len(dupre.read_evaluations(store)) == 4


@pytest.mark.skipif(os.name != "posix", reason="open files cannot be deleted there")
def test_a_store_that_is_deleted_during_a_run_is_noticed(tmp_path):
    store, utility = tmp_path / "run.sqlite", smooth(FIVE)

    def deleting(members):
        if len(utility.asked) == 4:
            store.unlink()
        return utility(members)

    deleting.fingerprint = "deleting"
    with pytest.raises(StoreError, match="moved or deleted") as caught:
        value(FIVE, deleting, budget=12, store=store)
    assert len(caught.value.valuer.trainings) == 5


def test_errors_survive_pickling():
    with pytest.raises(EvaluationError) as caught:
        value(FIVE, hopeless, budget=3, known={FIVE.names: 1.0})
    failed = caught.value
    stored = StoreError("full", valuer=failed.valuer)
    interrupted = Interrupted("stopped", valuer=failed.valuer)
    for error in (failed, interrupted, stored, StoreError("full"), InputError("no")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert getattr(again, "members", None) == getattr(error, "members", None)
        if valuer := getattr(error, "valuer", None):
            assert again.valuer.trainings == valuer.trainings == {FIVE.names: (1.0,)}
            assert_same(again.valuer.values(), valuer.values())


def test_warnings_are_summarised_with_their_coalitions_failed_ones_too_and_none_escapes(tmp_path):
    utility, store = smooth(FIVE), tmp_path / "run.sqlite"

    def warning(members):
        for _ in range(3):
            warnings.warn("did not converge\nsee the manual", RuntimeWarning, stacklevel=1)
        if len(members) == 1:
            warnings.warn("too few rows", UserWarning, stacklevel=1)
        return utility(members)

    warning.fingerprint = "warns"
    with warnings.catch_warnings(record=True) as escaped:
        warnings.simplefilter("always")
        first, again = (value(FIVE, warning, budget=12, store=store) for _ in range(2))
        repeated = value(FIVE, warning, budget=4, repeats=2, store=store)
    assert escaped == []
    named = sorted(set(utility.asked))
    assert len(named) == 12
    for valuation in (first, again):
        found = {message: sorted(where) for message, where in valuation.facts.warnings.items()}
        assert found == {
            "RuntimeWarning: did not converge": named,
            "UserWarning: too few rows": [members for members in named if len(members) == 1],
        }
        assert next(iter(found)).startswith("RuntimeWarning"), "the most frequent first"
        words = r"Warning in 12 of 12 evaluations \(\{.*\} and 9 more\): RuntimeWarning: did not co"
        assert re.search(words, valuation.explain())
    assert max(map(len, repeated.facts.warnings.values())) <= repeated.facts.evaluated

    def utility(members):
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        return float("nan") if len(members) == 1 else float(len(members))

    valuation = value(FOUR, utility, budget=15, engine=SKIP)
    assert len(valuation.facts.failures) == 4
    assert len(valuation.facts.warnings["RuntimeWarning: overflow"]) == 15
