"""One training of a coalition, and its evaluation: the result and what it cost.

An `Evaluation` is what workers return and the store keeps. A failed training is an evaluation too:
it has a failure in place of a utility, never a number that replaces it.

A coalition that is scored on folds takes a training for each. Every one of them is a `Training` of
its own, so that workers share them and none that is finished is lost; `pool` makes the utility of
all of them.
"""

from __future__ import annotations

import os
import socket
import textwrap
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from dupre._types import Floats, Names
from dupre.checks import as_utility
from dupre.training.threads import limit_threads
from dupre.utility.protocol import Utility, train, train_fold, training_seed
from dupre.utility.score import Score, before_floor, known_resamples

if TYPE_CHECKING:
    from dupre.utility.describe import Traits

OUT_OF_MEMORY = "out of memory"
"""How the failure of a training begins that had too little memory."""


def now() -> str:
    """The time now, UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def this_worker() -> str:
    """The host and the process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True)
class Training:
    """One training to be done: a coalition, and which of its repeated trainings.

    Attributes:
        members: owner names.
        repeat: 0 for the first training of the coalition, 1 for the next, ...
        attempt: 1 unless earlier attempts failed.
        fold: that is left out and scored; None for a training whose result is the utility.
    """

    members: tuple[str, ...]
    repeat: int = 0
    attempt: int = 1
    fold: int | None = None


@dataclass(frozen=True)
class Evaluation:
    """The result of a training.

    Attributes:
        training: which one.
        utility: a finite number; None if the training failed, or is of one fold.
        part: what the training for one fold gave, an array of numbers; None for other trainings.
        resampled: the utility on resamples of the validation rows, (B,); None if it is not known.
        failure: the reason in one line; empty if it did not fail.
        timed_out: whether it failed because it took too long; a store does not keep this.
        traceback: where it failed.
        warnings: the distinct warnings of the training.
        seconds: how long it took.
        seed: of the training, if the utility has one.
        finished: when it finished, UTC.
        worker: host and process where it ran.
        cause: the exception itself, if the training ran in this process.
    """

    training: Training
    utility: float | None
    failure: str = ""
    traceback: str = ""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    seed: int | None = None
    finished: str = field(default_factory=now)
    worker: str = field(default_factory=this_worker)
    timed_out: bool = field(default=False, compare=False)
    cause: BaseException | None = field(default=None, compare=False)
    resampled: Floats | None = field(default=None, compare=False, repr=False)
    part: Floats | None = field(default=None, compare=False, repr=False)

    @property
    def failed(self) -> bool:
        """Whether there is a failure in place of a result."""
        return bool(self.failure)

    @property
    def score(self) -> Score:
        """The utility with what it is on resamples; it must not have failed."""
        return Score(self.utility, self.resampled)


def known_evaluations(members: Names, utilities: Mapping[int, float]) -> list[Evaluation]:
    """Evaluations of a coalition that was trained elsewhere, from its utilities by repeat."""
    return [
        Evaluation(
            Training(members, repeat),
            float(utility),
            worker="known",
            resampled=known_resamples(utility),
        )
        for repeat, utility in sorted(utilities.items())
    ]


def evaluate(utility: Utility, training: Training, *, threads: int = 1) -> Evaluation:
    """Do one training. An exception becomes the failure of the record; only Ctrl-C is raised.

    A utility with a method `training_seed(members, repeat) -> int` is called with `repeat`, and
    derives its random numbers from that seed. Any other utility is just called again. Do not call
    it in several threads at once: Python catches warnings for the whole process.

    Args:
        utility: what to call.
        training: which coalition, and which of its repeated trainings.
        threads: threads of BLAS and OpenMP. Their number decides in which order numbers are added,
            and so the last digit.
    """
    members, repeat, fold = training.members, training.repeat, training.fold

    def do() -> dict[str, Any]:
        if fold is not None:
            return {"part": train_fold(utility, members, repeat, fold)}
        return _as_result(train(utility, members, repeat))

    return _record(training, do, partial(training_seed, utility, members, repeat), threads)


def pool(traits: Traits, training: Training, folds: Sequence[Evaluation]) -> Evaluation:
    """The evaluation of a coalition from those of its folds, in their order."""
    seed = folds[0].seed

    def do() -> dict[str, Any]:
        return _as_result(traits.pool([_part(one) for one in folds], training.repeat))

    found = _record(training, do, lambda: seed, threads=1)
    every = [message for one in (*folds, found) for message in one.warnings]
    seconds = sum(one.seconds for one in (*folds, found))
    last = max(folds, key=lambda one: one.finished)
    return replace(
        found,
        warnings=tuple(dict.fromkeys(every)),
        seconds=seconds,
        finished=last.finished,
        worker=last.worker,
    )


def _part(evaluation: Evaluation) -> Floats:
    assert evaluation.part is not None
    return evaluation.part


def _as_result(score: Any) -> dict[str, Any]:
    # The store keeps scores as they were before a floor: another floor may come.
    raw = before_floor(score)
    return {"utility": as_utility(raw), "resampled": known_resamples(raw)}


def _record(
    training: Training,
    do: Callable[[], dict[str, Any]],
    find_seed: Callable[[], int | None],
    threads: int,
) -> Evaluation:
    """What comes of a training: its result, or the exception in place of it."""
    seed, failure, trace = None, "", ""
    result: dict[str, Any] = {"utility": None}
    cause: BaseException | None = None
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, limit_threads(threads):
        warnings.simplefilter("always")
        try:
            seed = find_seed()
            result |= do()
        except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001  # the user's code
            cause, trace = error, traceback.format_exc()
            failure = f"{type(error).__name__}: {_first_line(error)}"
            if isinstance(error, MemoryError):
                failure = f"{OUT_OF_MEMORY}: {failure}"
    return Evaluation(
        training=training,
        failure=failure,
        traceback=trace,
        warnings=tuple(dict.fromkeys(_warning_text(warning) for warning in caught)),
        seconds=time.perf_counter() - start,
        seed=seed,
        cause=cause,
        **result,
    )


def _first_line(error: object) -> str:
    try:
        lines = str(error).strip().splitlines() or [""]
    except Exception:  # noqa: BLE001  # the user's exceptions have a __str__ of their own
        lines = ["(its message cannot be read)"]
    return textwrap.shorten(lines[0], 200, placeholder="…")


def _warning_text(warning: warnings.WarningMessage) -> str:
    text = textwrap.shorten(_first_line(warning.message), 100)
    return f"{warning.category.__name__}: {text}"
