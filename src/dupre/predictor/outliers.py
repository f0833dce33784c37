"""Evaluations that must not bend the predictions.

An outlier is an evaluation far from its prediction by all others. It is real: it counts in the
values as it is, and more of its kind may come. But it must not bend the predictions. It is set
aside when the marginal likelihood of the others, times the density of the outlier under a broad
distribution, is higher than the marginal likelihood of all.
"""

from __future__ import annotations

import math

import numpy as np

from dupre._types import NOTHING, Floats, Ints
from dupre.game.ties import descending_order
from dupre.predictor.gp import GaussianProcess
from dupre.predictor.warp import robust_scale

OUTLIER_SCORE = 4.0
"""Robust leave-one-out score beyond which an evaluation may be an outlier."""

ROUNDING = 1e-6
"""A smaller error of a standardised utility is only rounding."""

OUTLIER_CHANCE = 0.01
"""Prior probability that an evaluation is an outlier."""


def suspected_outliers(gp: GaussianProcess, utilities: Floats) -> Ints:
    """Evaluations far from their prediction by all others; at most a tenth, or one.

    Far is relative to the scores of the other evaluations: an outlier makes the noise larger, and
    so its own standard deviation.
    """
    if robust_scale(utilities) == 0:
        return NOTHING
    mean, variance = gp.leave_one_out()
    error = np.abs(gp.z - mean)
    score = error / np.sqrt(variance)
    beyond = (score > OUTLIER_SCORE * 1.4826 * np.median(score)) & (error > ROUNDING)
    far = np.flatnonzero(beyond)
    worst_first = far[descending_order(score[far])]
    return np.sort(worst_first[: max(1, len(score) // 10)])


def log_density_of_outliers(utilities: Floats, outliers: Ints) -> float:
    """Log density of outliers under a Cauchy distribution around the utilities, chance included."""
    width = robust_scale(utilities)
    distance = (utilities[outliers] - np.median(utilities)) / width
    return float(np.sum(np.log(OUTLIER_CHANCE / (math.pi * width * (1 + distance**2)))))
