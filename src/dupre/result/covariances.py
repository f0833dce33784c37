"""Covariances of values: the sum of their sources, and what follows from it.

Notation: n owners; every covariance is (n, n).
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.special import ndtr, ndtri

from dupre._types import Floats
from dupre.errors import InputError


def bounded_sum(covariance: Floats, sampling: Floats | None) -> Floats:
    """Covariance of values with both errors, however correlated the two are, (n, n).

    Its diagonal is the bound sigma_GP² + sigma_MC² + 2 sigma_GP sigma_MC of DUPRE Remark 1; the
    correlations of owners are those of the sum of both.
    """
    if sampling is None:
        return covariance
    both = covariance + sampling
    stds = [np.sqrt(np.maximum(np.diag(part), 0.0)) for part in (covariance, sampling, both)]
    scale = (stds[0] + stds[1]) / np.where(stds[2] > 0, stds[2], 1.0)
    return np.asarray(both * np.outer(scale, scale))


def total_covariance(
    covariance: Floats, sampling: Floats | None, validation: Floats | None
) -> Floats:
    """Covariance of values with all errors, (n, n); the choice of rows is independent of both."""
    found = bounded_sum(covariance, sampling)
    return found if validation is None else found + validation


def roots(variance: Floats) -> Floats:
    """Standard deviations; rounding may leave a variance below zero."""
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def spreads(covariance: Floats) -> Floats:
    """Standard deviation of every difference of two values, (n, n)."""
    variance = np.diag(covariance)
    return roots(variance[:, None] + variance - 2 * covariance)


def probability_above_zero(mean: Floats, std: Floats) -> Floats:
    """P(x > 0) of normal numbers; 1/2 where the mean is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(std > 0, mean / std, np.sign(mean) * np.inf)
    return np.asarray(ndtr(np.where(mean == 0, 0.0, score)))


def half_widths(covariance: Floats, level: float = 0.95) -> Floats:
    """Half the width of the interval at this level of each value, (n,)."""
    factor = float(ndtri((1 + level) / 2))
    return factor * roots(np.diag(covariance))


def check_level(level: object) -> None:
    """Raise InputError if this is no probability."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise InputError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}")
