"""Standard deviations, intervals and sums of the covariances of values.

Notation: n owners; covariances (n, n).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from dupre._types import Floats


def bounded_sum(covariance: Floats, sampling: Floats | None) -> Floats:
    """Covariance of values with both errors, however correlated the two are, (n, n).

    Its diagonal is the bound sigma_GP² + sigma_MC² + 2 sigma_GP sigma_MC of DUPRE Remark 1; the
    correlations of owners are those of the sum of both.
    """
    if sampling is None:
        return covariance
    both = covariance + sampling
    stds = [roots(np.diag(part)) for part in (covariance, sampling, both)]
    scale = (stds[0] + stds[1]) / np.where(stds[2] > 0, stds[2], 1.0)
    return np.asarray(both * np.outer(scale, scale))


def roots(variance: Floats) -> Floats:
    """Standard deviations; zero for variances that rounding has made negative."""
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def spreads(covariance: Floats) -> Floats:
    """Standard deviation of every difference of two values, (n, n)."""
    variance = np.diag(covariance)
    return roots(variance[:, None] + variance - 2 * covariance)


def half_widths(covariance: Floats, level: float = 0.95) -> Floats:
    """Half the width of the interval at this level of each value, (n,)."""
    factor = float(ndtri((1 + level) / 2))
    return np.asarray(factor * roots(np.diag(covariance)))
