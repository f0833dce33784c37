"""Figures of a valuation: one function each, which draws on given axes or on axes of its own."""

from __future__ import annotations

from dupre.plots.charts import (
    distances,
    owner_map,
    predictions,
    ranking,
    uncertainty,
    utilities,
    values,
)

__all__ = [
    "distances",
    "owner_map",
    "predictions",
    "ranking",
    "uncertainty",
    "utilities",
    "values",
]
