"""The noise of trainings: how much the utility of a coalition changes when it is trained again.

Repeated trainings of a coalition differ by their random seeds. Values are computed from their mean,
whose variance is estimated from their spread. A few repeats give a bad estimate for one coalition,
so it is shrunk towards the spread pooled over all coalitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dupre._types import Floats

POOLED_WEIGHT = 4.0
"""The pooled spread has the weight of this many repeats of a coalition's own."""


def pooled_variance(trainings: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Variance of one training within coalitions, and its degrees of freedom.

    NaN and 0 if no coalition was trained more than once.
    """
    freedom = sum(len(utilities) - 1 for utilities in trainings)
    squares = sum(_squares(utilities) for utilities in trainings)
    return squares / freedom if freedom else math.nan, freedom


def variance_of_means(trainings: Sequence[Sequence[float]]) -> Floats:
    """Variance of the mean of each coalition's repeated utilities, (a,).

    Zero for all if no coalition was trained more than once: then nothing was measured.
    """
    counts = np.array([len(utilities) for utilities in trainings], dtype=float)
    degrees = counts - 1
    if not degrees.any():
        return np.zeros(len(counts))
    squares = np.array([_squares(utilities) for utilities in trainings])
    pooled, _ = pooled_variance(trainings)
    variance = (POOLED_WEIGHT * pooled + squares) / (POOLED_WEIGHT + degrees)
    return np.asarray(variance / counts)


def _squares(utilities: Sequence[float]) -> float:
    """Sum of squared deviations from the mean."""
    # Relative to the first one, equal utilities have no spread, not even by rounding.
    return len(utilities) * float(np.var(np.subtract(utilities, utilities[0])))
