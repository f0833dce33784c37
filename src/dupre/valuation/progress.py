"""How far a run is: a bar in a terminal, a line every 30 seconds elsewhere, or a callback."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from dupre.errors import InputError
from dupre.spec import Price
from dupre.wording import count_things, format_time, in_minutes

SLOW = 30.0
"""Seconds of a training of all owners from which on fewer folds are proposed."""

VERY_SLOW = 120.0
"""Seconds from which on the fewest are."""

FEWER_FOLDS, FEWEST_FOLDS = 5, 3
"""Folds that are proposed."""

FIRST_LINE = 5.0
LINE_EVERY = 30.0
"""Seconds until the first line, and between lines, where there is no terminal."""


@dataclass(frozen=True)
class Progress:
    """How far a run is; a callback gets one after every evaluation and batch.

    Attributes:
        evaluated: coalitions evaluated, those found in the store included.
        budget: of coalitions; if a time ends the run as many as are expected to fit, None until
            that is known, and if other rules end it.
        failed: how many of them failed.
        trainings: done in this run; with folds or repeats a coalition takes several.
        seconds: since the store was open and the workers were started.
        remaining: seconds to the end of the budget, estimated; None if there is no estimate.
        widest: half the width of the widest 95 % interval of a value; None until it is known.
        own: seconds of `seconds` in which nothing was trained, but chosen and predicted; None
            until the first choice.
        slow: seconds of a training of all owners, if there are folds and it takes so long that
            fewer of them are worth a thought; None otherwise.
        folds: trainings that one evaluation takes.
        planned: whether `remaining` is by what coalitions cost, as the first design showed, and
            `budget` no more than what is expected to fit into the time of the run.
        price: of an hour of the run; None if it is not known.
    """

    evaluated: int
    budget: int | None
    failed: int
    trainings: int
    seconds: float
    remaining: float | None
    widest: float | None
    own: float | None = None
    slow: float | None = None
    folds: int = 1
    planned: bool = False
    price: Price | None = None

    @property
    def outlook(self) -> str:
        """Time left, the widest interval and failures, in words."""
        parts = []
        if self.remaining is not None:
            cost = "" if self.price is None else f" ({self.price.of(self.remaining)})"
            parts.append(f"about {format_time(self.remaining)} left{cost}")
        if self.widest is not None:
            parts.append(f"widest interval ± {self.widest:.2g}")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return ", ".join(parts)

    def __str__(self) -> str:
        of = "" if self.budget is None else f" of {self.budget}"
        parts = [f"{self.evaluated}{of} coalitions"]
        if self.folds > 1:
            parts.append(f"{self.trainings} trainings")
        parts += [f"{format_time(self.seconds)} elapsed", self.outlook]
        return ", ".join(filter(None, parts))

    @property
    def plan(self) -> str:
        """What is still to come, once the first design shows it, if it takes a minute; else ""."""
        if not self.planned or self.budget is None or self.remaining is None:
            return ""
        if not (time := in_minutes(self.remaining)):
            return ""
        cost = "" if self.price is None else f" ({self.price.of(self.remaining)})"
        return f"{count_things(self.budget - self.evaluated, 'more coalition')} in {time}{cost}"

    @property
    def proposal(self) -> str:
        """Fewer folds, if a training takes long; "" otherwise."""
        if self.slow is None:
            return ""
        fewer = FEWER_FOLDS if self.slow <= VERY_SLOW else FEWEST_FOLDS
        fewer = min(fewer, self.folds - 1)
        if fewer < FEWEST_FOLDS:
            return ""
        return (
            f"a training of all owners takes {format_time(self.slow)}, and each coalition takes "
            f"{self.folds} trainings; {fewer} folds would take {100 * fewer / self.folds:.0f} % "
            "of the time, but the values would depend more on the deal of the rows"
        )


class Clock:
    """The time of a run, of which a part is spent in trainings.

    Attributes:
        choices: how often a batch was chosen by what is predicted.
        trained: seconds of all trainings, each by itself.
    """

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._trained = 0.0
        self._since: float | None = None
        self.choices = 0
        self.trained = 0.0

    @contextmanager
    def training(self) -> Iterator[None]:
        """Count the time as that of trainings."""
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._trained += time.monotonic() - self._since
            self._since = None

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._begun

    @property
    def own(self) -> float:
        """Seconds in which nothing was trained."""
        now = 0.0 if self._since is None else time.monotonic() - self._since
        return self.seconds - self._trained - now

    def per_training(self, count: int) -> float:
        """Seconds of each of this many trainings."""
        return (self.seconds - self.own) / max(count, 1)

    @property
    def pace(self) -> float:
        """Seconds that pass for each second of a training: less than 1 with several workers."""
        return (self.seconds - self.own) / self.trained if self.trained else 1.0

    @property
    def per_choice(self) -> float:
        """Seconds between two batches; 0 until the first choice."""
        return self.own / self.choices if self.choices else 0.0


@runtime_checkable
class Display(Protocol):
    """Shows progress."""

    def show(self, progress: Progress) -> None:
        """Show how far a run is."""
        ...

    def close(self) -> None:
        """End the display."""
        ...


@dataclass(frozen=True)
class Priced:
    """A display that also shows what time costs.

    Attributes:
        inner: the display.
        price: of an hour of the run.
    """

    inner: Display
    price: Price

    def show(self, progress: Progress) -> None:
        """Show it with the price."""
        self.inner.show(replace(progress, price=self.price))

    def close(self) -> None:
        """End the display."""
        self.inner.close()


def display(
    progress: bool | Callable[[Progress], object] | Display, price: Price | None = None
) -> Display:
    """A display: a bar or lines for True, nothing for False, or what was given."""
    if price is not None:
        return Priced(display(progress), price)
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
    """Calls a function with every progress."""

    def __init__(self, function: Callable[[Progress], object]):
        self._function = function

    def show(self, progress: Progress) -> None:
        """Call the function."""
        self._function(progress)

    def close(self) -> None:
        """Nothing to do."""


class Lines:
    """A line on stderr every 30 seconds; none for a run of a few seconds."""

    def __init__(self) -> None:
        self._next = time.monotonic() + FIRST_LINE
        self._last: Progress | None = None
        self._printed = False
        self._proposal, self._plan = _Once(), _Once()

    def show(self, progress: Progress) -> None:
        """Print it if enough time has passed."""
        self._last = progress
        self._proposal.print(progress.proposal)
        self._plan.print(progress.plan)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_EVERY
            self._print(progress)

    def close(self) -> None:
        """Print the last line if there was a first."""
        if self._printed and self._last is not None:
            self._print(self._last)

    def _print(self, progress: Progress) -> None:
        _print_line(f"dupre: {progress}")
        self._printed, self._last = True, None


class Bar:
    """A progress bar on the terminal behind stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("coalitions"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[outlook]}"),
            console=Console(stderr=True),
        )
        self._task: Any = None
        self._proposal, self._plan = _Once(), _Once()

    def show(self, progress: Progress) -> None:
        """Move the bar."""
        self._proposal.print(progress.proposal)
        self._plan.print(progress.plan)
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task("", total=progress.budget, outlook="")
        done, outlook = progress.evaluated, progress.outlook
        with _UNREAD:
            self._bar.update(self._task, completed=done, outlook=outlook)

    def close(self) -> None:
        """Leave the bar as it is."""
        with _UNREAD:
            self._bar.stop()


_UNREAD = suppress(OSError, ValueError)
"""A run goes on when nobody can read its progress: the reader is gone, or the stream closed."""


class _Once:
    """Prints the first text that is not empty."""

    def __init__(self) -> None:
        self._printed = False

    def print(self, text: str) -> None:
        if text and not self._printed:
            self._printed = True
            _print_line(f"dupre: {text}")


def _print_line(text: str) -> None:
    with _UNREAD:
        print(text, file=sys.stderr, flush=True)
