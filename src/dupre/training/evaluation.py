"""One training of a coalition, and its evaluation: the result and what it cost.

An `Evaluation` is what workers return and the store keeps. A failed training is an evaluation too:
it has a failure in place of a utility, never a number that replaces it.
"""

from __future__ import annotations

import os
import socket
import textwrap
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dupre._types import Floats, Names
from dupre.checks import as_utility
from dupre.training.threads import limit_threads
from dupre.utility.protocol import Utility, train, training_seed
from dupre.utility.score import Score, before_floor, known_resamples

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
    """

    members: tuple[str, ...]
    repeat: int = 0
    attempt: int = 1


@dataclass(frozen=True)
class Evaluation:
    """The result of a training.

    Attributes:
        training: which one.
        utility: a finite number, or None if the training failed.
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
    number, resampled, seed, failure, trace = None, None, None, "", ""
    cause: BaseException | None = None
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, limit_threads(threads):
        warnings.simplefilter("always")
        try:
            seed = training_seed(utility, training.members, training.repeat)
            # The store keeps scores as they were before a floor: another floor may come.
            raw = before_floor(train(utility, training.members, training.repeat))
            number, resampled = as_utility(raw), known_resamples(raw)
        except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001  # the user's code
            cause, trace = error, traceback.format_exc()
            failure = f"{type(error).__name__}: {_first_line(error)}"
            if isinstance(error, MemoryError):
                failure = f"{OUT_OF_MEMORY}: {failure}"
    return Evaluation(
        training=training,
        utility=number,
        failure=failure,
        traceback=trace,
        warnings=tuple(dict.fromkeys(_warning_text(warning) for warning in caught)),
        seconds=time.perf_counter() - start,
        seed=seed,
        cause=cause,
        resampled=resampled if number is not None else None,
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
