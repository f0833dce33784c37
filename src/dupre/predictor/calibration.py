"""How good the predictor is on utilities that it was not fitted to, and the noise of trainings.

Leave-one-out predictions cost almost nothing: the prediction of each evaluated utility from all
others follows from the Cholesky factor (RW06 Eq. 5.12).

Repeated trainings of a coalition differ by their random seeds. Values are computed from their mean,
whose variance is estimated from their spread. A few repeats give a bad estimate for one coalition,
so it is shrunk towards the spread pooled over all coalitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri  # scipy.stats would take 0.3 s at every import of a result

from dupre._types import Floats
from dupre.predictor.form import Predictor
from dupre.predictor.gp import GaussianProcess
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Kernel, Sum

SCALE = 1.05
"""Errors of values are this many times as large as the posterior says: its hyper-parameters are
learned, and batches are chosen by it."""

FREEDOM = 4.0
"""Degrees of freedom of the Student distribution of errors. `benchmarks/bank.py --fit` prints the
most likely scale and freedom: 1.01 and 3.7 on part "choose" of the bank, but without one of its
data sets up to 1.07 and 4.9. Neither depends on the number of owners or of evaluations from 2n + 1
on, nor on left-out errors, whose size does not tell which runs err most."""

TOLERATED = 1 / 3
"""Part of the error variance of predicting by size alone that a predictor may have."""

ROUNDING = 1e-12
"""An error that is smaller relative to its utility is none."""

POOLED_WEIGHT = 4.0
"""The pooled spread has the weight of this many repeats of a coalition's own."""

Z95 = 1.96
"""Standard deviations on each side that hold 95 % of a normal distribution."""


@dataclass(frozen=True)
class Student:
    """What the standard deviations of predictions are multiplied by, and degrees of freedom."""

    scale: float = 1.0
    freedom: float | None = None


@dataclass(frozen=True)
class Diagnostics:
    """What left-out utilities say about the predictor.

    Attributes:
        error: root mean square error of the left-out utilities.
        r2: share of their variance explained; 0 or less is no better than a constant.
        coverage: share of them inside their 95 % prediction interval, if that were normal.
        scales: share of prior variance of each kernel term, averaged as predictions are: which
            similarity mattered.
        noise: standard deviation of a utility around the process, in units of utility.
        form: the chosen p, rho, eta and warp, in words.
        strays: number of outliers, evaluations that the predictor does not use; they count in
            the values, and the chance of more is part of the intervals.
        asked: kernel, prior mean and what else of the predictor was asked for, in words; empty if
            all of it is dupre's choice.
    """

    error: float
    r2: float
    coverage: float
    scales: Mapping[str, float]
    noise: float
    form: str
    strays: int = 0
    asked: str = ""


@dataclass(frozen=True)
class PredictorCheck:
    """What check coalitions, which the predictor is never shown, say about it.

    Attributes:
        held_out: how many there are.
        error: root mean square error of their predicted utilities.
        by_size: that of the guess without a predictor, the mean utility of the same size in the
            first design; measured on the first design too.
        limit: error from which on the predictor counts as failed: one that leaves a third of the
            variance of that guess stays below it with 95 %.
        coverage: share of them inside their 95 % prediction interval, widened like those of values.
    """

    held_out: int
    error: float
    by_size: float
    limit: float
    coverage: float

    @property
    def r2(self) -> float:
        """Share explained of the variance within sizes; NaN where there is none."""
        return 1 - (self.error / self.by_size) ** 2 if self.by_size else math.nan

    @property
    def failed(self) -> bool:
        """Whether the predictor is not clearly better than the mean of their size."""
        return self.error > 0 and self.error >= self.limit


def check_predictor(
    predictor: Predictor,
    inputs: Features,
    utilities: Floats,
    measured: Floats,
    *,
    by_size: float,
    freedom: int,
) -> PredictorCheck:
    """Measure a predictor on evaluations it was not fitted to.

    Args:
        predictor: the one to measure.
        inputs: check coalitions, length h.
        utilities: theirs, (h,).
        measured: variance of each utility as known from repeated trainings, (h,).
        by_size: root mean square error of predicting by size alone.
        freedom: degrees of freedom of `by_size`.
    """
    # Errors of the largest tolerated variance exceed the limit with probability 5 %, for any h.
    ratio = TOLERATED * float(fdtri(len(utilities), freedom, 0.95))
    mean, std = predictor.predict(inputs)
    variance = std_of_a_training(predictor, std) ** 2 + measured
    errors = utilities - mean
    errors[np.abs(errors) <= ROUNDING * np.abs(utilities)] = 0.0  # an average rounds
    return PredictorCheck(
        held_out=len(utilities),
        error=math.sqrt(np.mean(errors**2)),
        by_size=by_size,
        limit=by_size * math.sqrt(ratio),
        coverage=float(np.mean(errors**2 <= Z95**2 * variance)),
    )


def diagnose(predictor: Predictor) -> Diagnostics:
    """Measure a predictor on its own evaluations by leaving out each of them in turn."""
    gp, form = predictor.gp, predictor.form
    mean, variance = gp.leave_one_out()
    score = gp.leave_one_out_score()
    predicted, _ = gp.scale.back(mean, variance, gp.inputs)
    errors = np.append(gp.utilities - predicted, predictor.outlier_errors)
    error = float(np.mean(errors**2))
    spread = float(np.var(predictor.utilities))
    return Diagnostics(
        error=math.sqrt(error),
        r2=1 - error / spread if spread > 0 else math.nan,
        coverage=int(np.sum(np.abs(score) < Z95)) / len(errors),  # outliers count as missed
        scales=_scales(predictor),
        noise=math.sqrt(gp.noise) * float(np.median(gp.slope)),
        form=form.text + (", heavy tail" if gp.scale.warp.curved else ""),
        strays=len(predictor.outliers),
        asked=gp.scale.prior.text,
    )


def student(gp: GaussianProcess) -> Student:
    """The distribution of the errors of a process's predictions; a plain posterior is as it is."""
    return Student() if gp.scale.prior.plain else Student(SCALE, FREEDOM)


def std_of_a_training(predictor: Predictor, std: Floats) -> Floats:
    """Standard deviations as reported: overconfidence and the chance of outliers included."""
    wider = std * student(predictor.gp).scale
    return np.asarray(np.hypot(wider, np.sqrt(predictor.outlier_variance)))


def _scales(predictor: Predictor) -> dict[str, float]:
    """The share of each term of the kernel in the prior variance, averaged as predictions are."""
    every = [term for gp in (predictor.gp, *predictor.fits) for term in _terms(gp)]
    shares = {term.label: 0.0 for term in every}
    for weight, gp in predictor.processes:
        variances = [(term.label, float(term.diagonal(gp.inputs).mean())) for term in _terms(gp)]
        total = sum(variance for _, variance in variances)
        for label, variance in variances:  # two terms can have one label
            shares[label] += weight * variance / total
    return shares


def _terms(gp: GaussianProcess) -> tuple[Kernel, ...]:
    return gp.kernel.kernels if isinstance(gp.kernel, Sum) else (gp.kernel,)


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
