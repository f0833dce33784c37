"""The uncertainty of values by its sources, their sum, and what follows from it.

What follows from predictions has a Student distribution (`predictor.student`), all owners with one
shared scale; the other sources are normal, and independent of it.

Notation: n owners; every covariance is (n, n).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Literal

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from dupre._types import Floats
from dupre.errors import InputError
from dupre.predictor.student import Spread
from dupre.result.records import ReadOnlyArrays

Source = Literal["total", "prediction", "noise", "sampling", "validation", "deal"]
"""A part of the uncertainty, or all of it."""

ROUNDING = 1e-6
"""Part of the variance of noise below which the rest of a prediction's is not told from zero."""


@dataclass(frozen=True, eq=False)
class Errors:
    """Joint distribution of the errors of values: a Student part and a normal part.

    Attributes:
        student: covariance of the part from predictions, (n, n).
        normal: covariance of the part that is independent of it, (n, n).
        freedom: degrees of freedom of the Student part.
    """

    student: Floats
    normal: Floats
    freedom: float | None

    def of_each(self) -> Spread:
        """Of every value, (n,)."""
        return Spread(roots(np.diag(self.student)), roots(np.diag(self.normal)), self.freedom)

    def of_sum(self) -> Spread:
        """Of the sum of all values, ()."""
        # Predictions of a sum that is known cancel only up to rounding.
        least = 1e-12 * float(np.trace(self.student) + np.trace(self.normal))
        variances = (float(part.sum()) for part in (self.student, self.normal))
        student, normal = (np.sqrt(np.array(v if v > least else 0.0)) for v in variances)
        return Spread(student, normal, self.freedom)

    def draw(self, count: int) -> Floats:
        """Joint draws, (count, n): always the same, so that the same values give the same cents."""
        rng = np.random.default_rng(0)
        n = len(self.student)
        normal = rng.standard_normal((count, n)) @ _factor_of(self.normal).T
        student = rng.standard_normal((count, n)) @ _factor_of(self.student).T
        if self.freedom is not None:
            chi = rng.chisquare(self.freedom, (count, 1))
            student *= np.sqrt((self.freedom - 2) / chi)
        return np.asarray(student + normal)


def _factor_of(covariance: Floats) -> Floats:
    """A root of a covariance that does not depend on rounding, (n, n)."""
    n, variance = len(covariance), np.maximum(np.diag(covariance), 0.0)
    size = float(variance.max())
    if not size > 0:
        return np.zeros((n, n))
    # A little is added to the diagonal: the values may have a known sum, so that the covariance
    # is singular, and its factor must not depend on rounding.
    more = 1e-8 * size * np.eye(n)
    try:
        factor = cholesky(covariance + more, lower=True)
    except LinAlgError:  # where nearly all is known, what is left may be rounding alone
        values, vectors = eigh(covariance)
        factor = cholesky((vectors * np.maximum(values, 0.0)) @ vectors.T + more, lower=True)
    # Each value keeps its own variance: one that is certain is the same in every draw.
    return np.asarray(factor * np.sqrt(variance / (variance + 1e-8 * size))[:, None])


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
        freedom: degrees of freedom of the Student distribution of what is not evaluated or not
            drawn; None if that is normal, as the other parts are.
        total: of all sources together.
    """

    prediction: Floats
    noise: Floats
    sampling: Floats | None = None
    validation: Floats | None = None
    deal: Floats | None = None
    freedom: float | None = None
    total: Floats = field(init=False)

    def __post_init__(self) -> None:
        errors = self.errors()
        object.__setattr__(self, "total", errors.student + errors.normal)
        super().__post_init__()

    def errors(self, *, for_these_rows: bool = False) -> Errors:
        """Joint distribution of the errors: for the population, or for these validation rows."""
        student, sampling = bounded(self._predicted, self.sampling)
        normal = self.noise + sampling
        for part in (None if for_these_rows else self.validation, self.deal):
            normal = normal if part is None else normal + part
        return Errors(student, normal, self.freedom)

    def spread(self, *, for_these_rows: bool = False) -> Spread:
        """Standard deviations of every value, (n,)."""
        return self.errors(for_these_rows=for_these_rows).of_each()

    @property
    def untrained(self) -> Errors:
        """Errors due to coalitions not evaluated or not drawn: trainings reduce them."""
        return Errors(*bounded(self._predicted, self.sampling), self.freedom)

    @property
    def _predicted(self) -> Floats:
        """Covariance due to coalitions not evaluated, (n, n), without the noise of others."""
        rest = self.prediction - self.noise
        # Where nearly all is noise, what is left is rounding.
        if np.trace(rest) <= ROUNDING * np.trace(self.noise):
            return np.zeros_like(rest)
        return rest

    @property
    def varies_with_rows(self) -> bool:
        """Whether other validation rows are known to give other values."""
        return self.validation is not None and bool(self.validation.any())

    @property
    def half_of_one(self) -> float:
        """Half the width of a prediction's 95 % interval, in its standard deviations."""
        return float(Spread(np.ones(()), np.zeros(()), self.freedom).half_width())

    @property
    def widest(self) -> float:
        """Half the width of the widest 95 % interval."""
        return float(self.spread().half_width().max())

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

    def spread_of_differences(self) -> Spread:
        """Of any difference of two values, (n, n); its errors may add up (DUPRE Remark 1)."""
        student, sampling = (
            spreads(self._predicted),
            spreads(np.zeros_like(self.noise) if self.sampling is None else self.sampling),
        )
        both = np.hypot(student, sampling)
        scale = np.divide(student + sampling, both, out=np.ones_like(both), where=both > 0)
        normal = np.hypot(spreads(self.noise), scale * sampling)
        for part in (self.validation, self.deal):
            normal = normal if part is None else np.hypot(normal, spreads(part))
        return Spread(scale * student, normal, self.freedom)


def bounded(prediction: Floats, sampling: Floats | None) -> tuple[Floats, Floats]:
    """Two covariances of values that may depend on each other, scaled for their sum, (n, n) each.

    The diagonal of the sum is the bound sigma_GP² + sigma_MC² + 2 sigma_GP sigma_MC of DUPRE
    Remark 1; the correlations of owners are those of the sum of both.
    """
    if sampling is None:
        return prediction, np.zeros_like(prediction)
    stds = [roots(np.diag(part)) for part in (prediction, sampling, prediction + sampling)]
    # Both errors may have the same sign: variances would add up only if they were independent.
    scale = (stds[0] + stds[1]) / np.where(stds[2] > 0, stds[2], 1.0)
    return prediction * np.outer(scale, scale), sampling * np.outer(scale, scale)


def roots(variance: Floats) -> Floats:
    """Standard deviations; rounding may leave a variance below zero."""
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def spreads(covariance: Floats) -> Floats:
    """Standard deviation of every difference of two values, (n, n)."""
    variance = np.diag(covariance)
    return roots(variance[:, None] + variance - 2 * covariance)


def check_level(level: object) -> None:
    """Raise InputError if this is no probability."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise InputError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}")
