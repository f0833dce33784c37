"""A quote: what an owner's rows would be worth, and what would change for the others.

It is a prediction before the owner has joined, sharpened by a few trainings. Nobody is paid by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from dupre._types import Names
from dupre.result.as_text import align, decimals, gain_in_words
from dupre.result.records import ReadOnlyArrays
from dupre.result.values import Values
from dupre.wording import count_things, number, plain_number, printable

MOST_OWNERS = 12
"""Present owners up to which a quote prints all of them; of more, those whose values move most."""


@dataclass(frozen=True, eq=False)
class Quote(ReadOnlyArrays):
    """What the rows of an owner who has not joined would be worth. `print` it.

    Attributes:
        name: of that owner.
        rows: how many it would bring.
        before: the values without it.
        after: the values with it; predicted, as far as nothing was trained.
        changes: of the present owners, indexed by name: their value `before` and `after`, the
            `change`, and `low` and `high`, between which the change lies with 95 %.
        spent: coalitions with the newcomer that were trained.
        exists: whether the rows exist; if not, they were made up from those of another owner.
    """

    name: str
    rows: int
    before: Values
    after: Values
    changes: pd.DataFrame
    spent: tuple[Names, ...] = ()
    exists: bool = True

    @property
    def value(self) -> float:
        """What the owner would be worth."""
        return float(self.after.values[self.name])

    @property
    def std(self) -> float:
        """The standard deviation of that."""
        return float(self.after.std[self.name])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Bounds between which the value lies with probability `level`."""
        low, high = self.after.interval(level).loc[self.name].to_numpy(dtype=float)
        return float(low), float(high)

    @property
    def utility(self) -> tuple[float, float]:
        """The utility of all data without and with the newcomer."""
        return self.before.facts.grand, self.after.facts.grand

    def to_frame(self) -> pd.DataFrame:
        """One row for each owner, the newcomer last: as `changes`; it has no value before."""
        low, high = self.interval()
        own = {"before": float("nan"), "after": self.value, "change": self.value}
        newcomer = pd.DataFrame([own | {"low": low, "high": high}], [self.name])
        return pd.concat([self.changes, newcomer]).rename_axis("owner")

    def __str__(self) -> str:
        return "\n".join([*self._answer(), "", *self._table(), "", self._next()])

    def _answer(self) -> list[str]:
        places, (low, high) = decimals(self.after), self.interval()
        told = [plain_number(one, places) for one in (self.value, low, high)]
        how = "before any training"
        if self.spent:
            how = f"after {count_things(len(self.spent), 'training')} with it"
        who = printable(self.name)
        return [
            f"Quote for {who} ({self.rows:,} rows), {how}.",
            f"{self.after.semivalue}: {who} would be worth {told[0]} "
            f"(95 %: {told[1]} … {told[2]}).",
            f"Now {gain_in_words(self.before)}; with {who} {gain_in_words(self.after)}.",
        ]

    def _table(self) -> Sequence[str]:
        places, moved = decimals(self.after), self.changes
        if left := max(0, len(moved) - MOST_OWNERS):
            most = moved["change"].abs().sort_values(ascending=False).index[:MOST_OWNERS]
            moved = moved.loc[most]
        lines: list[tuple[str, ...]] = [("owner", "now", "then", "change", "95 % interval")]
        for owner, row in moved.iterrows():
            low, high = (number(row[side], places) for side in ("low", "high"))
            cells = (plain_number(row[key], places) for key in ("before", "after", "change"))
            lines.append((printable(str(owner)), *cells, f"{low} … {high}"))
        return [*align(lines), *([f"… {left:,} more move less"] if left else [])]

    def _next(self) -> str:
        if not self.exists:
            return "These rows do not exist: the quote assumes new ones of the same kind."
        if self.spent:
            return "A quote pays nobody. These trainings count when the owner joins."
        return "A quote pays nobody. A few trainings with the newcomer make it sharp."
