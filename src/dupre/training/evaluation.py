"""One evaluation of a utility: what was asked, what came of it, what it cost.

An `Evaluation` is what workers return and the store keeps. A training that went wrong is an
evaluation too: it has a failure in place of a utility, never a number made up for it.
"""

from __future__ import annotations

import os
import socket
import textwrap
import time
import traceback
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from dupre.checks import finite

if TYPE_CHECKING:
    from dupre.utility.model import Utility


def now() -> str:
    """This moment, UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def this_worker() -> str:
    """Host and process."""
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
    """What came of a training.

    Attributes:
        training: what was asked for.
        utility: a finite number, or None if the training failed.
        failure: the reason in one line; empty if it did not fail.
        traceback: where it failed, for those who mend it.
        warnings: distinct warnings raised on the way.
        seconds: it took.
        seed: of the training, if the utility has one.
        finished: when, UTC.
        worker: host and process that did it.
        cause: the exception itself if the training ran in this process.
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
    cause: BaseException | None = field(default=None, compare=False)


def evaluate(utility: Utility, training: Training, *, inner_threads: int) -> Evaluation:
    """Ask the utility, and put into the record whatever happens.

    A utility with a method `training_seed(members, repeat) -> int` is called with `repeat` and
    answers for its own randomness; any other is simply called again.

    The threads of BLAS and OpenMP are the same wherever a training runs: their number decides in
    which order numbers are added, and with it the last digit.
    """
    seeded: Any = utility if hasattr(utility, "training_seed") else None
    number, seed, failure, trace = None, None, "", ""
    cause: BaseException | None = None
    start = time.perf_counter()
    with (
        warnings.catch_warnings(record=True) as caught,
        threadpool_limits(limits=inner_threads),
    ):
        warnings.simplefilter("always")
        try:
            if seeded is None:
                raw = utility(training.members)
            else:
                seed = int(seeded.training_seed(training.members, training.repeat))
                raw = seeded(training.members, repeat=training.repeat)
            number = finite(raw, "the utility")
        except (Exception, SystemExit) as error:
            cause, trace = error, traceback.format_exc()
            failure = f"{type(error).__name__}: {_first_line(error)}"
    return Evaluation(
        training=training,
        utility=number,
        failure=failure,
        traceback=trace,
        warnings=tuple(dict.fromkeys(_warning_text(warning) for warning in caught)),
        seconds=time.perf_counter() - start,
        seed=seed,
        cause=cause,
    )


def _first_line(error: object) -> str:
    try:
        lines = str(error).strip().splitlines() or [""]
    except Exception:
        lines = ["(its message cannot be read)"]
    return textwrap.shorten(lines[0], 200, placeholder="…")


def _warning_text(warning: warnings.WarningMessage) -> str:
    text = textwrap.shorten(_first_line(warning.message), 100)
    return f"{warning.category.__name__}: {text}"
