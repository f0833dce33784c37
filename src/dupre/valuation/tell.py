"""What a valuer is told as it comes in: scores of trainings, and failures, by names of owners.

A contradiction is refused here; `observe` then makes the record that all else is a function of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dupre._types import Members, Names
from dupre.checks import positive
from dupre.errors import InputError
from dupre.game.coalitions import format_members, from_names, to_names
from dupre.game.observed import Observed, observe
from dupre.utility.score import as_scored, check_score, resampled_of
from dupre.valuation.question import Question


class Recorded:
    """Scores and failures of coalitions; counts are kept, so that asking for them costs nothing.

    Args:
        question: whose coalitions count.
        floor: lowest utility that counts; None for none.
        empty: utility of no data.

    Attributes:
        trainings: scores of each coalition, a `Score` with its resamples.
        failures: why a coalition could not be evaluated.
        seconds: that one training of a coalition took, the least that was told.
        left: coalitions that have a weight and may still be evaluated.
        deals: utilities of coalitions under several deals of the folds.
        averaged, deals_rows: as for `Valuer.record_deals`.
    """

    def __init__(self, question: Question, floor: float | None, empty: float):
        self._question, self._floor = question, floor
        self.tell_empty(empty)
        self.trainings: dict[Names, tuple[float, ...]] = {}
        self.failures: dict[Names, str] = {}
        self.seconds: dict[Names, float] = {}
        self.deals: dict[Names, tuple[float, ...]] = {}
        self.averaged = self.deals_rows = False
        self.left = question.counting
        self._keys: set[bytes] = set()

    @property
    def evaluated(self) -> int:
        """Coalitions recorded or failed; those that one evaluation serves count once."""
        return len(self._keys)

    @property
    def scored(self) -> dict[Names, tuple[float, ...]]:
        """What the trainings of each coalition scored, before a floor raised it."""
        return as_scored(self.trainings)

    @property
    def empty(self) -> float:
        """Utility of no data, as it was told."""
        return self._empty

    def take(self, other: Recorded, owners: Iterable[str]) -> None:
        """All that another one was told of coalitions of these owners alone."""
        ours = set(owners)
        for names, scores in other.scored.items():
            if ours.issuperset(names):
                self.record(names, scores)
        for names, reason in other.failures.items():
            if ours.issuperset(names):
                self.record_failure(names, reason)
        for names, utilities in other.deals.items():
            if ours.issuperset(names):
                self.record_deals(names, utilities)
        self.averaged, self.deals_rows = other.averaged, other.deals_rows

    def tell_empty(self, utility: float) -> None:
        """Take another utility of no data."""
        self._empty = check_score(utility, "the utility of the empty coalition")

    def record(self, members: Iterable[str], utility: float | Sequence[float]) -> bool:
        """Record the utility of a coalition, or several: see `Valuer.record`; whether it is new."""
        row, names = self._locate(members)
        what = f"the utility of {format_members(names)}"
        several: Any = [utility] if np.ndim(utility) == 0 else utility
        numbers = tuple(check_score(number, what) for number in several)
        if not numbers:
            raise InputError(f"{what} must be a number or several, got {utility!r}")
        known = self.trainings.get(names, ())
        new, old = map(self._as_counted, (numbers, known))
        if old[: len(new)] == new:
            # The same numbers again are news only if they bring resamples that were not known.
            adds = len(old) == len(new) and resampled_of(known) is None
            if not adds or resampled_of(numbers) is None:
                return False
        if new[: len(old)] != old:
            raise InputError(
                f"{format_members(names)} already has the utility {_format(old)}, got "
                f"{_format(new)}; record repeated trainings of a coalition together, as a list"
            )
        self._count(row)  # first: what Ctrl-C stops here is recorded again, and counted once
        self.trainings[names] = numbers
        self.failures.pop(names, None)
        return True

    def record_failure(self, members: Iterable[str], reason: str) -> None:
        """Record that a coalition cannot be evaluated: see `Valuer.record_failure`."""
        row, names = self._locate(members)
        if names in self.trainings:
            raise InputError(f"{format_members(names)} has a utility already; it did not fail")
        self._count(row)
        self.failures[names] = str(reason)

    def record_deals(self, members: Iterable[str], utilities: Sequence[float]) -> None:
        """Record utilities of a coalition under several deals: see `Valuer.record_deals`."""
        _, names = self._locate(members)
        what = f"the utility of {format_members(names)}"
        self.deals[names] = tuple(float(check_score(number, what)) for number in utilities)

    def record_seconds(self, members: Iterable[str], seconds: float) -> bool:
        """Record what a training took: see `Valuer.record_seconds`; whether it is news."""
        _, names = self._locate(members)
        told = positive(seconds, f"the seconds of {format_members(names)}")
        known = self.seconds.get(names, math.inf)
        # Waiting and the first steps of a process make a training longer, nothing makes it shorter.
        self.seconds[names] = min(told, known)
        return told < known

    def observe(self) -> Observed:
        """All of it, in an order that does not depend on when it came."""
        same, owners = self._question.sameness.keys, self._question.owners.names
        how: dict[str, Any] = {"empty": self._empty, "floor": self._floor, "same": same}
        how |= {"deals": self.deals, "seconds": self.seconds}
        seen = observe(owners, self.trainings, self.failures, **how)
        return replace(seen, averaged=self.averaged, deals_rows=self.deals_rows)

    def _locate(self, members: Iterable[str]) -> tuple[Members, Names]:
        """A coalition as a boolean row, (1, n), and by names in the order of the owners."""
        owners = self._question.owners.names
        row = from_names(members, owners)
        return row[None], to_names(row, owners)

    def _as_counted(self, scores: Sequence[float]) -> tuple[float, ...]:
        """Scores, raised to the floor: two that count as the same do not contradict each other."""
        least = -math.inf if self._floor is None else self._floor
        return tuple(max(float(score), least) for score in scores)

    def _count(self, row: Members) -> None:
        (key,) = self._question.sameness.keys(row)
        if key not in self._keys:
            self._keys.add(key)
            column = self._question.columns.get(key)
            self.left -= column is not None and bool(self._question.counts[column])


def _format(numbers: tuple[float, ...]) -> str:
    return repr(numbers[0]) if len(numbers) == 1 else repr(list(numbers))
