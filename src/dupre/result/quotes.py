"""A quote: what an owner's rows would be worth, and what would change for the others.

It is a prediction before the owner has joined, sharpened by a few trainings. Nobody is paid by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from dupre._types import Names
from dupre.result.as_text import align, decimals, gain_in_words
from dupre.result.payments import share_amount
from dupre.result.records import ReadOnlyArrays
from dupre.result.sharing import Negative
from dupre.result.values import Values
from dupre.wording import count_things, number, plain_number, printable

MOST_OWNERS = 12
"""Present owners up to which a quote prints all of them; of more, those whose values move most."""


@dataclass(frozen=True)
class KeptQuote:
    """What is kept of a quote beside a run.

    Attributes:
        name: of the owner quoted.
        rows: how many it would bring.
        semivalue: of what kind the value is.
        value, low, high: what it would be worth, and the 95 % interval of that.
        trained: coalitions with it that were trained.
        exists: whether the rows exist.
        made: when, as text.
    """

    name: str
    rows: int
    semivalue: str
    value: float
    low: float
    high: float
    trained: int
    exists: bool
    made: str


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

    def with_provenance(self, provenance: Mapping[str, Mapping[str, str]]) -> Quote:
        """The same, with what utilities come from: their metric has words."""
        now, then = (
            replace(v, facts=replace(v.facts, provenance=provenance))
            for v in (self.before, self.after)
        )
        return replace(self, before=now, after=then)

    def to_frame(self) -> pd.DataFrame:
        """One row for each owner, the newcomer last: as `changes`; it has no value before."""
        low, high = self.interval()
        own = {"before": float("nan"), "after": self.value, "change": self.value}
        newcomer = pd.DataFrame([own | {"low": low, "high": high}], [self.name])
        return pd.concat([self.changes, newcomer]).rename_axis("owner")

    def payments(
        self,
        amount: float,
        *,
        currency: str = "",
        negative: Negative = "zero",
        minimum: float = 0.0,
    ) -> pd.DataFrame:
        """What everybody would be paid of an amount: `now`, `then` and the `change`; a proposal.

        Whether values are payable decides nothing here: see `Valuation.payments` for the terms.
        `low` and `high` are the 95 % interval of the payment then.
        """
        terms: dict[str, Any] = {"currency": currency, "negative": negative, "minimum": minimum}
        now, then = (
            share_amount(v, amount, for_these_rows=False, anyway=True, **terms).frame
            for v in (self.before, self.after)
        )
        names = [*self.before.owners, self.name]
        found = pd.DataFrame({"now": now["payment"].reindex(names, fill_value=0.0)})
        found["then"], found["low"], found["high"] = (
            then[column].reindex(names) for column in ("payment", "low", "high")
        )
        found.insert(2, "change", found["then"] - found["now"])
        return found.rename_axis("owner")

    def summary(self, made: str) -> KeptQuote:
        """What is kept of it; `made` says when."""
        low, high = self.interval()
        kept = self.name, self.rows, self.after.semivalue, self.value, low, high
        return KeptQuote(*kept, len(self.spent), self.exists, made)

    def as_plain(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        without, with_newcomer = self.utility
        return asdict(self.summary(made="")) | {
            "utility": {"now": without, "then": with_newcomer},
            "spent": [list(names) for names in self.spent],
            "owners": self.to_frame().reset_index().to_dict("records"),
        }

    def __repr__(self) -> str:
        low, high = self.interval()
        return f"Quote({self.name!r}, {self.value:.4g}, 95 %: {low:.4g} … {high:.4g})"

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
            f"Now {gain_in_words(self.before)}.",
            f"Then {gain_in_words(self.after)}.",
        ]

    def _table(self) -> Sequence[str]:
        places, moved = decimals(self.after), self.changes
        if left := max(0, len(moved) - MOST_OWNERS):
            most = moved["change"].abs().sort_values(ascending=False).index[:MOST_OWNERS]
            moved = moved.loc[most]
        lines: list[tuple[str, ...]] = [("owner", "now", "then", "change", "95 % interval")]
        for owner, row in moved.iterrows():
            low, high = (plain_number(row[side], places) for side in ("low", "high"))
            cells = (plain_number(row[key], places) for key in ("before", "after", "change"))
            lines.append((printable(str(owner)), *cells, f"{low} … {high}"))
        return [*align(lines), *([f"… {left:,} more move less"] if left else [])]

    def _next(self) -> str:
        if not self.exists:
            return "These rows do not exist: the quote assumes new ones of the same kind."
        if self.spent:
            return "A quote pays nobody. These trainings count when the owner joins."
        return "A quote pays nobody. A few trainings with the newcomer make it sharp."


def format_proposal(paid: pd.DataFrame, amount: float, currency: str) -> str:
    """What `Quote.payments` returns as a table under its title."""
    lines: list[tuple[str, ...]] = [("owner", "now", "then", "change", "95 % interval then")]
    for owner, row in paid.iterrows():
        cells = (plain_number(row[key], 2) for key in ("now", "then", "change"))
        interval = f"{plain_number(row['low'], 2)} … {plain_number(row['high'], 2)}"
        lines.append((printable(str(owner)), *cells, interval))
    title = f"Of {number(amount, 2)} {currency}".rstrip()
    return "\n".join([f"{title}, as a proposal:", "", *align(lines)])
