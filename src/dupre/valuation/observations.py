"""What is known of every coalition: the utilities of its trainings, why it has none, or nothing.

Notation: b coalitions, one per row of `members`; a position is the index of such a row. A coalition
is recorded once its utility is known, and failed if its training failed. Coalitions that hold the
same rows share a position if the `Identity` goes by contents: their records are several trainings
of the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dupre._types import Floats, Ints, Members, Names
from dupre.errors import InputError
from dupre.game.coalitions import format_members, from_names, to_names
from dupre.game.weights import student_factor
from dupre.predictor.calibration import pooled_variance, variance_of_means
from dupre.utility.score import Score, before_floor, check_score, resampled_of
from dupre.valuation.duplicates import Identity


class Observations:
    """The state of b coalitions, and of any other that is recorded.

    Attributes:
        members: the coalitions, (b, n).
        floor: lowest utility that counts; None if there is none.
        raised: positions of those that have a lower one.
        utilities: mean of each coalition's trainings, NaN where there is none, (b,).
        trainings: utilities of the trainings, by position; a `Score` knows its resamples.
        by_name: the same, by position and by the names under which they were recorded.
        failures: why a coalition could not be evaluated, by position.
    """

    def __init__(self, members: Members, names: Names, identity: Identity | None = None):
        self.members = members
        self.floor: float | None = None
        self.raised: set[int] = set()
        self._owners = names
        self._identity = identity or Identity(len(names))
        self._position = {key: i for i, key in enumerate(self._identity.keys(members))}
        self.utilities = np.full(len(members), np.nan)
        self.trainings: dict[int, tuple[float, ...]] = {}
        self.by_name: dict[int, dict[Names, tuple[float, ...]]] = {}
        self.failures: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.utilities)

    @property
    def recorded(self) -> Members:
        """Which have a utility, (b,)."""
        return np.asarray(~np.isnan(self.utilities))

    @property
    def failed(self) -> Members:
        """Which could not be evaluated, (b,)."""
        mask = np.zeros(len(self), dtype=bool)
        mask[list(self.failures)] = True
        return mask

    def positions(self, rows: Members) -> Ints:
        """Positions of coalitions, boolean rows (m, n), (m,); new ones are appended."""
        wanted = self._identity.keys(rows)
        new = {key: row for row, key in enumerate(wanted) if key not in self._position}
        if new:
            self._position.update({key: len(self) + i for i, key in enumerate(new)})
            added = self._identity.canonical(rows[list(new.values())])
            self.members = np.append(self.members, added, axis=0)
            self.utilities = np.append(self.utilities, np.full(len(new), np.nan))
        return np.array([self._position[key] for key in wanted], dtype=np.int64)

    def locate(self, members: Iterable[str]) -> tuple[int, Names]:
        """Position and names, in the order of the owners, of a coalition."""
        row = from_names(members, self._owners)
        return int(self.positions(row[None])[0]), to_names(row, self._owners)

    def find(self, coalitions: Iterable[Iterable[str]]) -> Ints:
        """Positions of those coalitions that have one."""
        rows = [from_names(members, self._owners) for members in coalitions]
        found = self.positions_or_none(np.array(rows, dtype=bool).reshape(-1, len(self._owners)))
        return np.asarray(found[found >= 0])

    def positions_or_none(self, rows: Members) -> Ints:
        """Positions of coalitions, boolean rows (m, n), (m,); -1 for those that have none."""
        found = [self._position.get(key, -1) for key in self._identity.keys(rows)]
        return np.array(found, dtype=np.int64)

    def utilities_at(self, rows: Members) -> Floats:
        """Utilities of coalitions, boolean rows (m, n), NaN where there is none, (m,)."""
        return np.append(self.utilities, np.nan)[self.positions_or_none(rows)]

    def representatives(self, rows: Members) -> Members:
        """For each coalition the one that is predicted in its place, (m, n).

        It is the same for all coalitions that hold the same rows.
        """
        if not self._identity.by_content:
            return rows
        found, at = self._identity.canonical(rows), self.positions_or_none(rows)
        found[at >= 0] = self.members[at[at >= 0]]
        return found

    def names(self, position: int | np.integer[Any]) -> Names:
        """The owners of a coalition."""
        return to_names(self.members[position], self._owners)

    def record(self, members: Iterable[str], utility: float | Sequence[float]) -> None:
        """Record the utility of a coalition, or several: see `Valuer.record`."""
        position, names = self.locate(members)
        what = f"the utility of {format_members(names)}"
        several: Any = [utility] if np.ndim(utility) == 0 else utility
        numbers = tuple(self.raise_to_floor(check_score(number, what)) for number in several)
        if not numbers:
            raise InputError(f"{what} must be a number or several, got {utility!r}")
        known = self.by_name.get(position, {}).get(names, ())
        if known[: len(numbers)] == numbers:
            adds = len(known) == len(numbers) and resampled_of(known) is None
            if not adds or resampled_of(numbers) is None:
                return
        if numbers[: len(known)] != known:
            raise InputError(
                f"{format_members(names)} already has the utility {_format(known)}, got "
                f"{_format(numbers)}; record repeated trainings of a coalition together, as a list"
            )
        if self.floor is not None and any(before_floor(u) < self.floor for u in numbers):
            self.raised.add(position)
        self.failures.pop(position, None)
        self.by_name.setdefault(position, {})[names] = numbers
        self.trainings[position] = _combine(self.by_name[position])
        self.utilities[position] = np.mean(self.trainings[position])

    def raise_to_floor(self, utility: float) -> float:
        """The utility as it counts."""
        if self.floor is None:
            return utility
        return (utility if isinstance(utility, Score) else Score(utility)).at_least(self.floor)

    def deviations(self) -> Floats | None:
        """Each utility on B resamples of the validation rows less that on all rows, (b, B).

        Zero where there is no utility; None if one was recorded without its resamples.
        """
        recorded = sorted(self.trainings)
        every = [utility for i in recorded for utility in self.trainings[i]]
        if (resampled := resampled_of(every)) is None:
            return None
        counts = np.array([len(self.trainings[i]) for i in recorded])
        off = resampled - np.array(every)[:, None]
        found = np.zeros((len(self), off.shape[1]))
        found[recorded] = np.add.reduceat(off, np.cumsum(counts) - counts) / counts[:, None]
        return found

    def record_failure(self, members: Iterable[str], reason: str) -> None:
        """Record that a coalition cannot be evaluated: see `Valuer.record_failure`."""
        position, names = self.locate(members)
        if names in self.by_name.get(position, {}):
            raise InputError(f"{format_members(names)} has a utility already; it did not fail")
        if position not in self.trainings:  # of another coalition that holds the same rows
            self.failures[position] = str(reason)

    def training_variances(self, held: Ints) -> Floats:
        """Variance of each utility as estimated from repeated trainings, (b,).

        Coalitions in `held` do not enter the estimates of the others.
        """
        measured = np.zeros(len(self))
        everything = np.array(sorted(self.trainings), dtype=np.int64)
        for positions in (everything, np.setdiff1d(everything, held)):
            several = [self.trainings[i] for i in positions.tolist()]
            measured[positions] = variance_of_means(several)
        return measured


def widen_by_repeats(variances: Floats, trainings: Sequence[Sequence[float]]) -> Floats:
    """Variances of utilities as wide as Student's t asks for with so few repeats, (b,)."""
    _, freedom = pooled_variance(trainings)
    return variances * student_factor(freedom) ** 2 if freedom else variances


def _combine(by_name: dict[Names, tuple[float, ...]]) -> tuple[float, ...]:
    """Utilities of the trainings of coalitions that hold the same rows, sorted by their names.

    The same numbers under several names are taken for one training that was recorded several
    times. Otherwise trainings would seem to have no noise.
    """
    if len(set(by_name.values())) == 1:
        return next(iter(by_name.values()))
    return tuple(number for names in sorted(by_name) for number in by_name[names])


def _format(numbers: tuple[float, ...]) -> str:
    return repr(numbers[0]) if len(numbers) == 1 else repr(list(numbers))
