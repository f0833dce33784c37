"""How far the utility of a coalition moves when its model is trained again.

Repeated trainings of a coalition differ by their random seeds; their mean is what a value is made
of, and its error is known from their spread. A few repeats tell one coalition's spread badly, so
it is drawn towards the spread pooled over all coalitions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dupre.typing import Floats

POOLED_WEIGHT = 4.0
"""The pooled spread counts for a coalition as much as this many repeats of its own would."""


def variance_of_means(trainings: Sequence[Sequence[float]]) -> Floats:
    """Variance of the mean of each coalition's repeated utilities, (a,).

    Zero for all if no coalition was trained more than once: then nothing was measured.
    """
    counts = np.array([len(utilities) for utilities in trainings], dtype=float)
    degrees = counts - 1
    if not degrees.any():
        return np.zeros(len(counts))
    # Seen from the first of them, equal utilities have no spread, not even of rounding.
    spreads = [np.var(np.subtract(utilities, utilities[0])) for utilities in trainings]
    squares = counts * np.array(spreads)
    pooled = squares.sum() / degrees.sum()
    variance = (POOLED_WEIGHT * pooled + squares) / (POOLED_WEIGHT + degrees)
    return np.asarray(variance / counts)
