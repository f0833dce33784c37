"""How far a run is: a bar in a terminal, a line now and then elsewhere, or a callback."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from dupre.errors import InputError

FIRST_LINE = 5.0
LINE_EVERY = 30.0
"""Seconds until the first line, and between lines, where there is no terminal."""

FIRST_FEW = 3
"""Evaluations after which their number times their time is an estimate."""


@dataclass(frozen=True)
class Progress:
    """Where a run stands; what a callback is given after every evaluation and batch.

    Attributes:
        evaluated: coalitions evaluated, those found in the store included.
        budget: of coalitions; None if only stop rules end the run.
        failed: how many of them failed.
        seconds: since the call.
        remaining: seconds to the end of the budget, estimated; None if that cannot be told.
        widest: half the width of the widest 95 % interval of a value; None until it is known.
    """

    evaluated: int
    budget: int | None
    failed: int
    seconds: float
    remaining: float | None
    widest: float | None

    @property
    def outlook(self) -> str:
        """What is left to do and how much is known already."""
        parts = []
        if self.remaining is not None:
            parts.append(f"about {_clock(self.remaining)} left")
        if self.widest is not None:
            parts.append(f"widest interval ± {self.widest:.2g}")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return ", ".join(parts)

    def __str__(self) -> str:
        of = "" if self.budget is None else f" of {self.budget}"
        done = f"{self.evaluated}{of} evaluations"
        return ", ".join(filter(None, [done, f"{_clock(self.seconds)} elapsed", self.outlook]))


@runtime_checkable
class Display(Protocol):
    """Shows progress."""

    def show(self, progress: Progress) -> None:
        """Show where a run stands."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


def display(progress: bool | Callable[[Progress], object] | Display) -> Display:
    """The way of showing asked for: True for the best the place allows, False for none."""
    if isinstance(progress, Display):
        return progress
    if callable(progress):
        return Callback(progress)
    if not isinstance(progress, bool):
        raise InputError(f"progress must be True, False or a callable, got {progress!r}")
    if not progress or sys.stderr is None:
        return Callback(lambda _: None)
    return Bar() if sys.stderr.isatty() else Lines()


class Callback:
    """Hands every progress to a function."""

    def __init__(self, function: Callable[[Progress], object]):
        self._function = function

    def show(self, progress: Progress) -> None:
        """Hand it on."""
        self._function(progress)

    def close(self) -> None:
        """Nothing to do."""


class Estimating:
    """Shows progress in another way, and says once how long it will take."""

    def __init__(self, screen: Display):
        self._screen = screen
        self._start: int | None = None
        self._told = False

    def show(self, progress: Progress) -> None:
        """Show it; tell the time per evaluation once there are a few new ones."""
        self._screen.show(progress)
        if self._start is None:
            self._start = progress.evaluated
        done = progress.evaluated - self._start
        if done >= FIRST_FEW and not self._told:
            self._told = True
            each = f"{progress.seconds / done:.2g} s each"
            known = progress.remaining is not None and progress.remaining > 0
            rest = f", about {_clock(progress.remaining or 0.0)} for the rest" if known else ""
            print(f"The first {done} trainings took {each}{rest}.", file=sys.stderr, flush=True)

    def close(self) -> None:
        """No more will come."""
        self._screen.close()


class Lines:
    """A line on stderr now and then; none at all for a run of a few seconds."""

    def __init__(self) -> None:
        self._next = time.monotonic() + FIRST_LINE
        self._last: Progress | None = None
        self._printed = False

    def show(self, progress: Progress) -> None:
        """Print it if it is time."""
        self._last = progress
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_EVERY
            self._print(progress)

    def close(self) -> None:
        """Print the end if the beginning was printed."""
        if self._printed and self._last is not None:
            self._print(self._last)

    def _print(self, progress: Progress) -> None:
        print(f"dupre: {progress}", file=sys.stderr, flush=True)
        self._printed, self._last = True, None


class Bar:
    """A progress bar on the terminal behind stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("evaluations"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[outlook]}"),
            console=Console(stderr=True),
        )
        self._task: Any = None

    def show(self, progress: Progress) -> None:
        """Move the bar."""
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task("", total=progress.budget, outlook="")
        done, outlook = progress.evaluated, progress.outlook
        self._bar.update(self._task, completed=done, outlook=outlook)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.stop()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
