"""What is known of every coalition: the utilities of its trainings, why it has none, or nothing.

Notation: b coalitions, one per row of `members`; a position is the index of such a row. A coalition
is recorded once its utility is known, failed if its training went wrong, held out if the predictor
must not see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dupre.checks import finite
from dupre.coalitions import from_names, keys, shown, to_names
from dupre.errors import InputError
from dupre.noise import variance_of_means
from dupre.typing import Floats, Ints, Members, Names


class Ledger:
    """The state of b coalitions, and of any other that is recorded.

    Attributes:
        members: the coalitions, (b, n).
        utilities: mean of each coalition's trainings, NaN where there is none, (b,).
        trainings: utilities of the trainings, by position.
        failures: why a coalition could not be evaluated, by position.
    """

    def __init__(self, members: Members, names: Names):
        self.members = members
        self._owners = names
        self._position = {key: i for i, key in enumerate(keys(members))}
        self.utilities = np.full(len(members), np.nan)
        self.trainings: dict[int, tuple[float, ...]] = {}
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
        """Where coalitions, boolean rows (m, n), are, (m,); new ones are appended."""
        wanted = keys(rows)
        new = {key: row for row, key in enumerate(wanted) if key not in self._position}
        if new:
            self._position.update({key: len(self) + i for i, key in enumerate(new)})
            self.members = np.append(self.members, rows[list(new.values())], axis=0)
            self.utilities = np.append(self.utilities, np.full(len(new), np.nan))
        return np.array([self._position[key] for key in wanted], dtype=np.int64)

    def at(self, members: Iterable[str]) -> tuple[int, Names]:
        """Position and names, in the order of the owners, of a coalition."""
        row = from_names(members, self._owners)
        return int(self.positions(row[None])[0]), to_names(row, self._owners)

    def known(self, coalitions: Iterable[Iterable[str]]) -> Ints:
        """Positions of those coalitions that have one."""
        rows = [from_names(members, self._owners) for members in coalitions]
        found = [self._position.get(keys(row[None])[0], -1) for row in rows]
        return np.array([position for position in found if position >= 0], dtype=np.int64)

    def names(self, position: int | np.integer[Any]) -> Names:
        """The owners of a coalition."""
        return to_names(self.members[position], self._owners)

    def record(self, members: Iterable[str], utility: float | Sequence[float]) -> None:
        """Take in the utility of a coalition, or those of its repeated trainings.

        Raises:
            InputError: an unknown owner, the empty coalition, a number that is not finite, or
                utilities that contradict those recorded before.
        """
        position, names = self.at(members)
        what = f"the utility of {shown(names)}"
        several: Any = [utility] if np.ndim(utility) == 0 else utility
        numbers = tuple(finite(number, what) for number in several)
        if not numbers:
            raise InputError(f"{what} must be a number or several, got {utility!r}")
        known = self.trainings.get(position, ())
        if known[: len(numbers)] == numbers:
            return
        if numbers[: len(known)] != known:
            raise InputError(
                f"{shown(names)} already has the utility {_listed(known)}, got {_listed(numbers)}; "
                "record repeated trainings of a coalition together, as a list"
            )
        self.failures.pop(position, None)
        self.utilities[position] = np.mean(numbers)
        self.trainings[position] = numbers

    def record_failure(self, members: Iterable[str], reason: str) -> None:
        """Take in that a coalition cannot be evaluated.

        Raises:
            InputError: an unknown owner, the empty coalition, or one that has a utility.
        """
        position, names = self.at(members)
        if position in self.trainings:
            raise InputError(f"{shown(names)} has a utility already; it did not fail")
        self.failures[position] = str(reason)

    def measured(self, held: Ints) -> Floats:
        """Variance of each utility that repeated trainings have shown, (b,).

        Those that are held out have no say in that of the others.
        """
        measured = np.zeros(len(self))
        everything = np.array(sorted(self.trainings), dtype=np.int64)
        for positions in (everything, np.setdiff1d(everything, held)):
            several = [self.trainings[i] for i in positions.tolist()]
            measured[positions] = variance_of_means(several)
        return measured


def _listed(numbers: tuple[float, ...]) -> str:
    return repr(numbers[0]) if len(numbers) == 1 else repr(list(numbers))
