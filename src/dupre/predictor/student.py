"""Errors of predictions: a Student distribution, and what follows from it together with a normal.

Errors of predictions have heavier tails than a normal distribution: most are small, some are large.
Given a number g from the chi-squared distribution with ν degrees of freedom, an error of a Student
distribution is normal with (ν - 2) / g times its variance. The sum with an independent normal error
is then a mixture of normal ones over g, and so are its intervals and probabilities.

Notation: ν degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammainccinv, gammaincinv, logsumexp, ndtr, ndtri

from dupre._types import Floats

NODES = 48
"""Points at which a mixture is summed; enough for eight digits of any tail that matters."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Standard deviations of errors of any shape: of a Student part, and of a normal part.

    Attributes:
        student: of the part from predictions.
        normal: of the part that is independent of it.
        freedom: degrees of freedom of the Student part, above 2; None if it is normal too.
    """

    student: Floats
    normal: Floats
    freedom: float | None = None

    @property
    def std(self) -> Floats:
        """Standard deviation of the sum of both."""
        return np.hypot(self.student, self.normal)

    def half_width(self, level: float = 0.95) -> Floats:
        """Half the width of the interval at this level around zero."""
        std = self.std
        normal = float(ndtri((1 + level) / 2))
        if self.freedom is None:
            return np.asarray(normal * std)
        part = np.divide(self.student, std, out=np.zeros_like(std), where=std > 0) ** 2
        return np.where(part > 0, _factor(part, self.freedom, level), normal) * std

    def probability_above_zero(self, mean: Floats) -> Floats:
        """P(x > 0) of numbers with these errors around their means; 1/2 where the mean is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(self.std > 0, mean / self.std, np.sign(mean) * np.inf)
            score = np.where(mean == 0, 0.0, score)
            if self.freedom is None:
                return np.asarray(ndtr(score))
            part = np.where(self.std > 0, self.student / self.std, 0.0) ** 2
        probability = np.zeros(score.shape)
        for variance, weight in zip(*_mixture(self.freedom), strict=True):
            probability += weight * ndtr(score / np.sqrt(1 + part * (variance - 1)))
        return np.where(score == 0, 0.5, probability)  # weights add up to 1 up to rounding

    def log_density(self, errors: Floats) -> Floats:
        """Log density of errors of this shape; minus infinity of one that is certain to be zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(self.std > 0, errors / self.std, np.inf)
            if self.freedom is None:
                return np.asarray(-0.5 * (score**2 + math.log(2 * math.pi)) - np.log(self.std))
            part = np.where(self.std > 0, self.student / self.std, 0.0)[..., None] ** 2
            variance, weight = _mixture(self.freedom)
            wide = 1 + part * (variance - 1)
            exponent = -0.5 * (score[..., None] ** 2 / wide + np.log(2 * math.pi * wide))
            return np.asarray(logsumexp(exponent, b=weight, axis=-1) - np.log(self.std))


def _factor(part: Floats, freedom: float, level: float) -> Floats:
    """Half the width of an interval in standard deviations, of any shape.

    It depends on the part of the variance that is Student's.
    """
    variance, weight = _mixture(freedom)
    each = np.sqrt(1 + part[..., None] * (variance - 1))
    half, change = np.zeros(part.shape), np.ones(part.shape)
    # The probability inside is concave in the half-width: Newton's steps come from below.
    while np.any(change > 1e-9 * half):
        score = half[..., None] / each
        # A product by BLAS may round equal rows differently: equal owners have equal intervals.
        inside = np.sum((2 * ndtr(score) - 1) * weight, axis=-1)
        density = np.sum(np.exp(-0.5 * score**2) / each * weight, axis=-1) * math.sqrt(2 / math.pi)
        change = (level - inside) / density
        half = half + change
    return half


@lru_cache(maxsize=64)
def _mixture(freedom: float) -> tuple[Floats, Floats]:
    """A Student distribution of variance 1 as a mixture of normal ones.

    Their variances and weights, (NODES,) each. They are evenly spaced in log g, where the
    trapezoidal rule converges exponentially.
    """
    least, most = gammaincinv(freedom / 2, 1e-12), gammainccinv(freedom / 2, 1e-12)
    log = np.linspace(math.log(2 * least), math.log(2 * most), NODES)
    density = freedom / 2 * log - np.exp(log) / 2
    weight = np.exp(density - density.max())
    return (freedom - 2) / np.exp(log), weight / weight.sum()
