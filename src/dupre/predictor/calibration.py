"""How good the predictor is, measured on utilities that it was not fitted to.

Leave-one-out predictions cost almost nothing: the prediction of each evaluated utility from all
others follows from the Cholesky factor (RW06 Eq. 5.12).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri
from scipy.stats import f as fisher

from dupre._types import Floats
from dupre.predictor.form import Predictor
from dupre.predictor.gp import GaussianProcess
from dupre.predictor.kernel_algebra import Kernel, Sum
from dupre.predictor.kernel_inputs import Features
from dupre.result.records import Z95, Diagnostics, PredictorCheck

CONFIDENCE = 0.9
"""With which the variance of errors is not larger than the one that counts."""

TOLERATED = 1 / 3
"""Part of the error variance of predicting by size alone that a predictor may have."""


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
    ratio = TOLERATED * float(fisher.ppf(0.95, len(utilities), freedom))
    mean, std = predictor.predict(inputs)
    variance = std_of_a_training(predictor, std) ** 2 + measured
    errors = utilities - mean
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
    predicted, _ = gp.back(mean, variance, gp.inputs)
    errors = np.append(gp.utilities - predicted, predictor.outlier_errors)
    error = float(np.mean(errors**2))
    spread = float(np.var(predictor.utilities))
    return Diagnostics(
        error=math.sqrt(error),
        r2=1 - error / spread if spread > 0 else math.nan,
        coverage=int(np.sum(np.abs(score) < Z95)) / len(errors),  # outliers count as missed
        widening=widening(gp),
        scales=_scales(predictor),
        noise=math.sqrt(gp.noise) * float(np.median(gp.slope)),
        form=form.text + (", heavy tail" if gp.warp.curved else ""),
        strays=len(predictor.outliers),
        asked=gp.prior.text,
    )


def widening(gp: GaussianProcess, more: int = 0) -> float:
    """Factor on standard deviations: 1 if leave-one-out scores are known to have unit variance.

    From `a` scores their variance is known only roughly: what counts is the upper limit of its
    one-sided confidence interval, a / chi²(a) times the variance found, or times 1 if that is more.
    With `more`, the factor to expect after this many further evaluations. A plain posterior is not
    widened.
    """
    if gp.prior.plain:
        return 1.0
    score = gp.leave_one_out_score()
    overconfidence = max(1.0, float(np.mean(score**2)))
    a = len(score) + more
    return math.sqrt(overconfidence * a / float(chdtri(a, CONFIDENCE)))


def std_of_a_training(predictor: Predictor, std: Floats) -> Floats:
    """Standard deviations as reported: overconfidence and the chance of outliers included."""
    return np.asarray(np.hypot(std * widening(predictor.gp), np.sqrt(predictor.outlier_variance)))


def _scales(predictor: Predictor) -> dict[str, float]:
    """The share of each term of the kernel in the prior variance, averaged as predictions are."""
    shares = {term.label: 0.0 for term in _terms(predictor.gp)}
    for weight, gp in predictor.processes:
        variances = [(term.label, float(term.diagonal(gp.inputs).mean())) for term in _terms(gp)]
        total = sum(variance for _, variance in variances)
        for label, variance in variances:  # two terms can have one label
            shares[label] += weight * variance / total
    return shares


def _terms(gp: GaussianProcess) -> tuple[Kernel, ...]:
    return gp.kernel.kernels if isinstance(gp.kernel, Sum) else (gp.kernel,)
