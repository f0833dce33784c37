"""Values of owners as a distribution, and what follows from it.

Notation: n owners; mean (n,), covariances (n, n).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from dupre._types import Floats, Ints
from dupre.checks import positive
from dupre.errors import InputError
from dupre.game.coalitions import find_owner
from dupre.game.ties import descending_order
from dupre.notes import Note
from dupre.result import covariances, records


@dataclass(frozen=True, repr=False, eq=False)
class Values(records.ReadOnlyArrays):
    """The numbers of a `Valuation`, which adds how they are shown, kept and shared."""

    owners: tuple[str, ...]
    rows: Ints
    semivalue: str
    mean: Floats
    uncertainty: covariances.Uncertainty
    facts: records.Facts
    notes: tuple[Note, ...] = ()
    evaluations: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def values(self) -> pd.Series:
        """Expected value of each owner."""
        return self._series(self.mean, "value")

    @property
    def words(self) -> records.Words:
        """What the values are called in sentences: payments, if they are those of a least core."""
        return records.VALUES if self.facts.subsidy is None else records.PAYMENTS

    @property
    def order(self) -> Ints:
        """Indices of the owners from the greatest value to the smallest, (n,).

        Owners of equal value, to a millionth of the largest, come in the order of `owners`.
        """
        return descending_order(self.mean)

    @property
    def std(self) -> pd.Series:
        """Standard deviation of each owner's value."""
        return self._series(self.uncertainty.std(), "std")

    def validation_rows_for(self, distance: float, level: float = 0.95) -> int | None:
        """Validation rows of the same population with which every value is within ± distance.

        None if that alone is not enough, or if nothing is known of the choice of the rows.
        """
        covariances.check_level(level)
        found, rows = self.uncertainty, self.facts.validation_rows
        if found.validation is None or not rows:
            return None
        limit, alone = positive(distance, "the distance"), found.spread(for_these_rows=True)

        def holds(part: float) -> bool:
            """Whether intervals are that narrow if this part of the rows' variance is left."""
            normal = np.hypot(alone.normal, np.sqrt(part) * found.std("validation"))
            return bool(np.all(replace(alone, normal=normal).half_width(level) <= limit))

        if not holds(0.0):
            return None
        low, high = 0.0, 1.0
        while holds(high) and high < rows:  # fewer than one row is none
            low, high = high, 2 * high
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return int(np.ceil(rows / high))

    @property
    def share(self) -> pd.Series:
        """Each value as a part of u(all) - u(empty); NaN unless that is above zero."""
        gain = self.facts.grand - self.facts.empty
        unknown = np.full(len(self.mean), np.nan)  # of a loss the worst would have the most
        return self._series(self.mean / gain if gain > 0 else unknown, "share")

    @property
    def efficiency_gap(self) -> float:
        """u(all) - u(empty) minus the sum of the values: zero for Shapley by definition."""
        return float(self.facts.grand - self.facts.empty - self.mean.sum())

    @property
    def exact(self) -> bool:
        """Whether the values follow from the utilities without any uncertainty.

        They do so for these validation rows, and for these seeds if trainings involve chance.
        """
        chance = self.uncertainty.noise, self.uncertainty.deal
        return self.complete and not any(part is not None and part.any() for part in chance)

    @property
    def finished(self) -> str:
        """When the last training was finished, ISO 8601; "" if that is not known."""
        known = "finished" in self.evaluations and len(self.evaluations)
        return str(self.evaluations["finished"].max()) if known else ""

    @property
    def complete(self) -> bool:
        """Whether every coalition with a weight was evaluated, so that nothing is predicted."""
        return self.facts.diagnostics is None and self.uncertainty.sampling is None

    def interval(self, level: float = 0.95, *, for_these_rows: bool = False) -> pd.DataFrame:
        """Bounds between which each value lies with probability `level`.

        For the population that the validation rows come from, or for these rows alone.
        """
        covariances.check_level(level)
        half = self.uncertainty.spread(for_these_rows=for_these_rows).half_width(level)
        return pd.DataFrame({"low": self.mean - half, "high": self.mean + half}, self._index())

    def probability_greater(self) -> pd.DataFrame:
        """P(row owner is worth more than column owner); 1/2 on a tie."""
        difference = self.mean[:, None] - self.mean
        # Sums over coalitions of equal owners differ by rounding, which must not look certain.
        rounding = 1e-9 * max(np.abs(self.mean).max(), abs(self.facts.grand), abs(self.facts.empty))
        difference[np.abs(difference) <= rounding] = 0.0
        spread = self.uncertainty.spread_of_differences()
        probability = spread.probability_above_zero(difference)
        return pd.DataFrame(probability, index=self._index(), columns=list(self.owners))

    def compare(self, one: str, other: str) -> records.Comparison:
        """Is one owner worth more than another, by how much, with what probability?

        Raises:
            InputError: a name is unknown, or both are the same.
        """
        names = find_owner(str(one), self.owners), find_owner(str(other), self.owners)
        if names[0] == names[1]:
            raise InputError(f"two different owners can be compared, got {names[0]!r} twice")
        i, j = map(self.owners.index, names)
        difference = float(self.mean[i] - self.mean[j])
        half = float(self.uncertainty.spread_of_differences().half_width()[i, j])
        probability = float(self.probability_greater().to_numpy()[i, j])
        bounds = difference - half, difference + half
        return records.Comparison(*names, probability, difference, *bounds)

    def rank_range(self, level: float = 0.95) -> pd.DataFrame:
        """Best and worst rank of each owner: who is above and below it with P >= `level`."""
        covariances.check_level(level)
        probability = self.probability_greater().to_numpy()
        # A level below one half would put owners above each other.
        above = (probability >= level) & (probability > 0.5)
        best, worst = 1 + above.sum(axis=0), len(self.owners) - above.sum(axis=1)
        return pd.DataFrame({"best": best, "worst": worst}, index=self._index())

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Everything per owner: rows, value, std and its parts, low, high, share, best, worst."""
        first = {"rows": self.rows, "value": self.mean, "std": self.uncertainty.std()}
        sources: tuple[covariances.Source, ...] = (
            *("prediction", "noise", "sampling", "validation", "deal"),
        )
        parts = {f"{source}_std": self.uncertainty.std(source) for source in sources}
        frame = pd.DataFrame(first | parts, index=self._index())
        others = [self.interval(level), self.share, self.rank_range(level)]
        return pd.concat([frame, *others], axis=1)

    def with_facts(self, **changes: Any) -> Self:
        """The same with other facts."""
        return replace(self, facts=replace(self.facts, **changes))

    def _index(self) -> pd.Index:
        return pd.Index(self.owners, name="owner")

    def _series(self, numbers: Floats, name: str) -> pd.Series:
        return pd.Series(numbers, index=self._index(), name=name, copy=True)
