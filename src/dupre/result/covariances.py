"""The uncertainty of values by its sources, their sum, and what follows from it.

Notation: n owners; every covariance is (n, n).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from dupre._types import Floats
from dupre.errors import InputError
from dupre.result.records import ReadOnlyArrays

Source = Literal["total", "prediction", "noise", "sampling", "validation", "deal"]
"""A part of the uncertainty, or all of it."""


@dataclass(frozen=True, eq=False)
class Uncertainty(ReadOnlyArrays):
    """How uncertain values are, by the source of it: a covariance, (n, n), for each.

    Attributes:
        prediction: due to utilities not evaluated and to noise; zero when all is known exactly.
        noise: the part of it due to the noise of trainings, as repeated ones showed it.
        sampling: due to which coalitions enter the values; None if all do.
        validation: due to the choice of the validation rows; None if it is not known, and then in
            no interval.
        deal: due to the deal of the folds, or the choice of one split; None if rows are not split,
            or if it is not known.
        total: of all sources together.
    """

    prediction: Floats
    noise: Floats
    sampling: Floats | None = None
    validation: Floats | None = None
    deal: Floats | None = None
    total: Floats = field(init=False)

    def __post_init__(self) -> None:
        total = total_covariance(self.prediction, self.sampling, self.validation, self.deal)
        object.__setattr__(self, "total", total)
        super().__post_init__()

    @property
    def for_these_rows(self) -> Floats:
        """Covariance for these validation rows, (n, n), not for their population."""
        return total_covariance(self.prediction, self.sampling, None, self.deal)

    @property
    def untrained(self) -> Floats:
        """Covariance due to coalitions not evaluated or not drawn, (n, n): trainings reduce it."""
        size, axes = np.linalg.eigh(self.prediction - self.noise)
        # Where nearly all is noise, rounding leaves less than zero.
        rest = (axes * np.maximum(size, 0.0)) @ axes.T
        return bounded_sum(rest, self.sampling)

    @property
    def varies_with_rows(self) -> bool:
        """Whether other validation rows are known to give other values."""
        return self.validation is not None and bool(self.validation.any())

    @property
    def widest(self) -> float:
        """Half the width of the widest 95 % interval."""
        return float(half_widths(self.total).max())

    def shares(self) -> dict[str, float]:
        """Parts of the variance of all values: validation rows, noise, deal of folds, and the rest.

        Of the rest more trainings or draws help: coalitions not evaluated, or not drawn.
        """
        whole = float(np.trace(self.total)) or 1.0  # of exact values every part is zero
        rows = 0.0 if self.validation is None else float(np.trace(self.validation)) / whole
        noise = float(np.trace(self.noise)) / whole
        deal = 0.0 if self.deal is None else float(np.trace(self.deal)) / whole
        rest = max(0.0, 1 - rows - noise - deal)
        return {"rows": rows, "noise": noise, "deal": deal, "not_evaluated": rest}

    def std(self, source: Source = "total") -> Floats:
        """Standard deviation of each value, (n,), due to one source; NaN if it is not known."""
        part: Floats | None = getattr(self, source)
        if part is None:
            unknown = np.nan if source == "validation" else 0.0
            return np.full(len(self.total), unknown)
        return roots(np.diag(part))

    def spread_of_differences(self) -> Floats:
        """Standard deviation of any difference, (n, n); its errors may add up (DUPRE Remark 1)."""
        sampling = 0.0 if self.sampling is None else spreads(self.sampling)
        validation = 0.0 if self.validation is None else spreads(self.validation)
        deal = 0.0 if self.deal is None else spreads(self.deal)
        known = np.hypot(spreads(self.prediction) + sampling, validation)
        return np.asarray(np.hypot(known, deal))


def bounded_sum(covariance: Floats, sampling: Floats | None) -> Floats:
    """Covariance of values with both errors, however correlated the two are, (n, n).

    Its diagonal is the bound sigma_GP² + sigma_MC² + 2 sigma_GP sigma_MC of DUPRE Remark 1; the
    correlations of owners are those of the sum of both.
    """
    if sampling is None:
        return covariance
    both = covariance + sampling
    stds = [np.sqrt(np.maximum(np.diag(part), 0.0)) for part in (covariance, sampling, both)]
    # Both errors may have the same sign: variances would add up only if they were independent.
    scale = (stds[0] + stds[1]) / np.where(stds[2] > 0, stds[2], 1.0)
    return np.asarray(both * np.outer(scale, scale))


def total_covariance(
    covariance: Floats,
    sampling: Floats | None,
    validation: Floats | None,
    deal: Floats | None = None,
) -> Floats:
    """Covariance of values with all errors, (n, n); the last two are independent of the others."""
    found = bounded_sum(covariance, sampling)
    for part in (validation, deal):
        found = found if part is None else found + part
    return found


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
