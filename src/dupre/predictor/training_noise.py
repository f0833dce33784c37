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

LEAST_STEPS = 6
"""Fewest differences of distinct utilities from which a common step is concluded."""

POOLED_WEIGHT = 4.0
"""The pooled spread has the weight of this many repeats of a coalition's own."""


def pooled_variance(trainings: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Variance of one training within coalitions, and its degrees of freedom.

    NaN and 0 if no coalition was trained more than once.
    """
    freedom = sum(len(utilities) - 1 for utilities in trainings)
    squares = sum(_squares(utilities) for utilities in trainings)
    return squares / freedom if freedom else math.nan, freedom


def lattice_step(utilities: Floats) -> float:
    """The step of which all differences of utilities, (a,), are multiples; 0 if there is none.

    An accuracy on m rows is a multiple of 1 / m: rounding to it is noise with a variance of
    step² / 12 that no kernel can explain. Utilities of a continuous metric have no common step, and
    no two of them are equal. A few numbers could have a common step by chance, so they get none.
    """
    size = float(np.abs(utilities).max(initial=0.0))
    distinct = np.unique(np.round(utilities / (size or 1.0), 13)) * size
    differences = np.diff(distinct)
    if not differences.size or (len(distinct) == len(utilities) and len(differences) < LEAST_STEPS):
        return 0.0
    spread = float(distinct[-1] - distinct[0])
    if spread < 1e-6 * size:  # the rounding of floats would look like a lattice
        return 0.0
    step = 0.0
    for difference, reach in zip(differences, distinct[1:] - distinct[0], strict=True):
        step, rest = max(step, float(difference)), min(step, float(difference))  # Euclid's
        while rest > 1e-6 * spread:
            step, rest = rest, step % rest
            rest = 0.0 if step - rest < 1e-6 * spread else rest  # only rounding is left
        # All so far are multiples of the step: it is known best from the farthest one.
        step = float(reach) / round(float(reach) / step)
    return step if step > 1e-4 * spread else 0.0


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
