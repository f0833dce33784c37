"""Values in the words of an owner: by how much its data raise or lower a score.

Scores between 0 and 1 that people read in per cent change by points. A value is an average over
groups: what the data add to groups of each size may be of another sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dupre._types import Floats, Ints
from dupre.game.semivalues import group_sizes
from dupre.metrics import TABLE
from dupre.result.table import decimals
from dupre.result.valuation import Valuation
from dupre.wording import number


@dataclass(frozen=True)
class MetricName:
    """What a metric is called, and the unit of its changes.

    Attributes:
        name: within a sentence.
        unit: after a change; "" if it has none.
        factor: of a change in this unit, 1 or 100.
    """

    name: str
    unit: str = ""
    factor: float = 1.0

    def number(self, change: float, places: int) -> str:
        """A change in this unit; `places` are the decimals of a change without a unit."""
        return number(self.factor * change, places if self.factor == 1 else max(places - 3, 0))

    def with_unit(self, change: str) -> str:
        """A change from `number` with its unit: `2 points`, `1 point`."""
        return change + (self.unit.removesuffix("s") if change in ("1", "−1") else self.unit)


MOST = "in groups of most sizes"
FEW = "though not in groups of most sizes"
OPEN = "but whether in groups of most sizes is not settled"


def metric_of(v: Valuation) -> MetricName:
    """What the utility of a valuation is called."""
    name = v.provenance.get("settings", {}).get("metric", "")
    metric = TABLE.get(name)
    known = {} if metric is None else {"words": metric.words, "unit": metric.unit}
    stated = v.provenance.get("metric", known)  # that of the user's own code
    if words := stated.get("words"):
        unit = stated.get("unit", "")
        return MetricName(words, f" {unit}".rstrip(), 100.0 if unit == "points" else 1.0)
    return MetricName(f"the score {name}" if name.isidentifier() else "the utility of the model")


def effect(
    v: Valuation, i: int, verbs: tuple[str, str, str] = ("raises", "lowers", "changes")
) -> str:
    """How the data of owner i change the score: `raises accuracy by 16.1 points (15 to 17)`.

    It is raised or lowered by a positive number if the interval is on one side of zero.
    """
    score, places, value = metric_of(v), decimals(v), v.mean[i]
    bounds = v.interval().iloc[i].to_numpy()
    if bounds[0] < 0 < bounds[1] or not score.number(value, places).strip("0."):
        sign, turn = 1, verbs[2]
    else:
        sign, turn = (1, verbs[0]) if value > 0 else (-1, verbs[1])
    text = f"{turn} {score.name} by {score.with_unit(score.number(sign * value, places))}"
    if not v.std.iloc[i]:
        return text
    low, high = (score.number(bound, places) for bound in np.sort(sign * bounds))
    return f"{text} (95 %: {low} to {high})"


def by_size(v: Valuation) -> tuple[Ints, Floats] | None:
    """How many others are in the groups, (s,), and value, low and high by owner, (n, s, 3).

    None if nothing is known of sizes.
    """
    n, table = len(v.owners), v.contributions
    if not len(table) or len(table) % n:
        return None
    numbers = table[["value", "low", "high"]].to_numpy(dtype=np.float64)
    others = table["others"].to_numpy(dtype=np.int64)[: len(table) // n]
    return others, numbers.reshape(n, -1, 3)


def harm_by_size(v: Valuation) -> list[str]:
    """Of each owner: whether it lowers utilities in groups of most sizes, or "" if not known.

    A value below zero may be due to a single size.
    """
    found = by_size(v)
    if found is None or len(found[0]) < len(group_sizes(len(v.owners))):
        return [""] * len(v.owners)
    _, numbers = found
    surely = np.mean(numbers[:, :, 2] < 0, axis=1) > 0.5
    possibly = np.mean(numbers[:, :, 1] < 0, axis=1) > 0.5
    return [
        MOST if yes else OPEN if may else FEW for yes, may in zip(surely, possibly, strict=True)
    ]
