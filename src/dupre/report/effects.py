"""Values in the words of an owner: by how much its data raise or lower a score.

Scores between 0 and 1 that people read in per cent change by points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

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


def _points(name: str) -> MetricName:
    return MetricName(name, " points", 100.0)


METRICS = {
    "accuracy": _points("accuracy"),
    "balanced_accuracy": _points("balanced accuracy"),
    "top_k_accuracy": _points("top-k accuracy"),
    "average_precision": _points("average precision"),
    "precision": _points("precision"),
    "recall": _points("recall"),
    "f1": _points("the F1 score"),
    "roc_auc": _points("the area under the ROC curve"),
    "r2": MetricName("R²"),
}
"""Names that people know, by the name of the scorer."""


def metric_of(v: Valuation) -> MetricName:
    """What the utility of a valuation is called."""
    metric = v.provenance.get("settings", {}).get("metric", "")
    for name in (metric, metric.removesuffix("_weighted"), metric.removesuffix("_macro")):
        if name in METRICS:
            kind = metric.removeprefix(name).replace("_", " ")
            return replace(METRICS[name], name=METRICS[name].name + kind)
    return MetricName(
        f"the score {metric}" if metric.isidentifier() else "the utility of the model"
    )


def effect(v: Valuation, i: int, verbs: tuple[str, str] = ("raises", "lowers")) -> str:
    """How the data of owner i change the score: `raises accuracy by 16.1 points (15 to 17)`."""
    score, places, value = metric_of(v), decimals(v), v.mean[i]
    turn = verbs[0] if value >= 0 else verbs[1]
    text = f"{turn} {score.name} by {score.number(abs(value), places)}{score.unit}"
    if not v.std.iloc[i]:
        return text
    bounds = np.sort(np.sign(value or 1.0) * v.interval().iloc[i].to_numpy())
    low, high = (score.number(bound, places) for bound in bounds)
    return f"{text} (95 %: {low} to {high})"
