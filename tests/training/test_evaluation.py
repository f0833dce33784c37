import os
import sys
import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info

from dupre import InputError, ModelUtility, Owners
from dupre.training import threads as limits
from dupre.training.evaluation import Evaluation, Training, evaluate, now, this_worker

AB = Training(("a", "b"))


def train(utility, training=AB, threads=1):
    return evaluate(utility, training, threads=threads)


def model_utility(estimator, seed=0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, 3))
    y = (X[:, 0] + rng.normal(size=64) > 0).astype(int)
    owners = Owners.from_arrays(X[:32], y[:32], np.repeat(list("abcd"), 8))
    return ModelUtility(estimator, owners, validation=(X[32:], y[32:]), seed=seed)


def warner(*messages, number=0.5):
    def utility(members):
        for message in messages:
            warnings.warn(message, RuntimeWarning, stacklevel=1)
        return number

    return utility


def raiser(error):
    def utility(members):
        raise error

    return utility


class Seeded:
    """A utility that answers for its own randomness."""

    def __init__(self, seed=7):
        self.seed = seed

    def training_seed(self, _members, _repeat=0):
        return self.seed

    def __call__(self, _members, *, repeat=0):
        return float(repeat)


# --- what is recorded


def test_success_is_the_number_and_its_time_in_milliseconds():
    earliest = datetime.now(UTC) - timedelta(milliseconds=1)  # `finished` is cut to milliseconds
    found = train(lambda members: 0.1 * len(members))
    assert found.training is AB
    assert found.utility == 0.1 * 2
    assert (found.failure, found.traceback, found.warnings, found.cause) == ("", "", (), None)
    assert found.seed is None
    assert found.seconds >= 0
    assert earliest <= datetime.fromisoformat(found.finished) <= datetime.now(UTC)
    assert found.worker == this_worker()
    assert found.worker.endswith(f":{os.getpid()}")
    moment = datetime.fromisoformat(now())
    assert moment.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=1)
    assert moment.microsecond % 1000 == 0


def test_a_plain_callable_gets_the_members_as_they_stand_and_no_seed():
    asked = []

    def utility(members):
        asked.append(members)
        return float(len(asked))

    trainings = (Training(("b", "a")), Training(("a",), 1), Training(("a",), 2), Training(()))
    found = [train(utility, training) for training in trainings]
    assert asked == [("b", "a"), ("a",), ("a",), ()]
    assert [f.utility for f in found] == [1.0, 2.0, 3.0, 4.0]
    assert [f.seed for f in found] == [None] * 4


NUMBERS = [
    *((1, 1.0), (True, 1.0), (np.float32(0.1), float(np.float32(0.1))), (np.int64(-3), -3.0)),
    *((np.array(0.25), 0.25), (Decimal("0.25"), 0.25), (-0.0, -0.0), (5e-324, 5e-324)),
]


@pytest.mark.parametrize(("returned", "expected"), NUMBERS, ids=repr)
def test_any_number_becomes_a_plain_float(returned, expected):
    found = train(lambda members: returned)
    assert type(found.utility) is float
    assert str(found.utility) == str(expected)
    assert found.failure == ""


NO_NUMBERS = [np.nan, np.inf, -np.inf, np.float32("nan"), None, "0.5", "", np.str_("0.5"), [0.5]]
NO_NUMBERS += [0.5j, np.complex64(1), np.array(0.5 + 1j), 10**400, pd.NA, b"0.5", bytearray(b"1")]
NO_NUMBERS += [np.array([0.5, 0.6]), pd.Series([0.5, 0.6])]


@pytest.mark.parametrize("returned", NO_NUMBERS, ids=lambda value: repr(value)[:20])
def test_what_is_no_finite_number_is_a_failure_that_says_so(returned):
    found = train(lambda members: returned)
    assert found.utility is None
    assert found.failure.startswith("InputError: the utility must be a finite number, got")
    assert isinstance(found.cause, InputError)
    assert "InputError" in found.traceback


def test_exception_is_recorded_with_its_first_line_place_and_cause():
    error = ValueError("no rows left")
    found = train(raiser(error))
    assert found.utility is None
    assert found.failure == "ValueError: no rows left"
    assert "in utility" in found.traceback
    assert __file__ in found.traceback
    assert found.traceback.rstrip().endswith("ValueError: no rows left")
    assert found.cause is error
    assert found.seconds >= 0
    first = Evaluation(AB, None, failure="x", finished="then", worker="here", cause=ValueError())
    assert first == Evaluation(AB, None, failure="x", finished="then", worker="here")

    for message, expected in (
        ("first\nsecond\nthird", "first"),
        ("\n\n  first  \nsecond", "first"),
        ("", ""),
        ("   ", ""),
        ("zürich 数据 🎲", "zürich 数据 🎲"),
    ):
        assert train(raiser(RuntimeError(message))).failure == f"RuntimeError: {expected}"
    message = "word " * 1000
    found = train(raiser(RuntimeError(message)))
    assert len(found.failure) < 250
    assert "\n" not in found.failure
    assert message in found.traceback

    for ending in (SystemExit(7), GeneratorExit(7)):  # no subclasses of Exception
        assert train(raiser(ending)).failure == f"{type(ending).__name__}: 7"

    class Broken(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    found = train(raiser(Broken()))
    assert found.utility is None
    assert "Broken" in found.failure


def test_keyboard_interrupt_passes_through_and_leaves_nothing_changed():
    filters, threads = list(warnings.filters), blas_threads()
    with pytest.raises(KeyboardInterrupt):
        train(raiser(KeyboardInterrupt()), threads=2)
    assert warnings.filters == filters
    assert blas_threads() == threads


# --- warnings


def test_warnings_are_recorded_once_each_and_filters_do_not_outlive_a_training():
    with warnings.catch_warnings(record=True) as escaped:
        warnings.simplefilter("always")
        found = train(warner("late", "early", "late", "late"))
    assert found.warnings == ("RuntimeWarning: late", "RuntimeWarning: early")
    assert found.utility == 0.5
    assert escaped == []
    found = train(warner("careful", number=None))
    assert found.utility is None
    assert found.warnings == ("RuntimeWarning: careful",)
    (found,) = train(warner("first line\nsecond line")).warnings
    assert found == "RuntimeWarning: first line"
    (found,) = train(warner("word " * 1000)).warnings
    assert len(found) < 150

    def utility(members):
        warnings.simplefilter("error")
        warnings.warn("strict", UserWarning, stacklevel=1)

    before = list(warnings.filters)
    assert train(utility).failure == "UserWarning: strict"
    assert warnings.filters == before


@pytest.mark.parametrize("action", ["error", "ignore", "once"])
def test_warnings_are_recorded_whatever_the_filters_outside(action):
    utility = warner("careful")
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        found = [train(utility) for _ in range(3)]
    assert [f.warnings for f in found] == [("RuntimeWarning: careful",)] * 3
    assert [f.utility for f in found] == [0.5] * 3


# --- seeds and repeats


def test_seeds_are_those_of_coalition_and_repeat_whether_a_training_fails_or_not():
    utility = model_utility(DecisionTreeClassifier(max_features=1), seed=3)
    found = [train(utility, Training(("a", "b", "c"), repeat)) for repeat in range(6)]
    seeds = [f.seed for f in found]
    assert seeds == [utility.training_seed(("c", "b", "a"), repeat) for repeat in range(6)]
    assert len(set(seeds)) == 6
    assert [f.utility for f in found] == [utility(("a", "b", "c"), repeat=r) for r in range(6)]
    assert len({f.utility for f in found}) > 1, "the tree is random: repeats must differ"
    utility = model_utility(DecisionTreeClassifier(max_features=1))
    first, second = (train(utility, Training(("a", "b"), 1, attempt)) for attempt in (1, 2))
    assert (first.seed, first.utility) == (second.seed, second.utility)

    class Failing(Seeded):
        def __call__(self, _members, *, repeat=0):
            raise ValueError(repeat)

    assert train(Failing()).seed == 7

    class Unsure(Seeded):
        def training_seed(self, members, _repeat=0):
            raise KeyError(members)

    found = train(Unsure())
    assert found.utility is None
    assert found.failure.startswith("KeyError")


class Table(Seeded, dict):
    """A container of nothing yet: bool() of it is False."""


@pytest.mark.parametrize("utility", [Seeded(np.uint32(7)), Table(np.int64(7))])
def test_callable_with_training_seed_is_given_the_repeat_and_its_seed_is_a_plain_int(utility):
    found = train(utility, Training(("a",), repeat=4))
    assert (found.utility, found.seed) == (4.0, 7)
    assert type(found.seed) is int


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("fails", [False, True])
def test_blas_has_its_threads_inside_and_the_old_ones_after(threads, fails):
    before, inside = blas_threads(), []
    assert before, "numpy without a BLAS that threadpoolctl knows"

    def utility(members):
        inside.extend(blas_threads())
        return None if fails else 0.5

    found = train(utility, threads=threads)
    assert (found.utility is None) == fails
    assert inside == [threads] * len(before)
    assert blas_threads() == before


def test_libraries_are_looked_for_again_after_an_import_only(monkeypatch):
    looked, find = [], limits.ThreadpoolController
    monkeypatch.setattr(limits, "ThreadpoolController", lambda: looked.append(1) or find())
    for count in (1, 2):
        monkeypatch.setitem(sys.modules, f"new module {count}", sys)
        train(lambda members: 0.5)
        train(lambda members: 0.5)
        assert len(looked) == count
