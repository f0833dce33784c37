"""Exact Gaussian process regression of utilities on coalitions.

Other than in a general library, the posterior of any linear functional of b predictions costs O(b²)
kernel entries but only O(b) memory (module `posterior`): no b x b matrix is built. Module `fitting`
learns the hyper-parameters.

Notation (docs/notation.md): a evaluated coalitions, b predicted ones, W (n, b) functionals.
z = warp(u - mean) / amplitude; K = kernel matrix of the evaluated, L its Cholesky factor with noise
on the diagonal.
RW06 is Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dtrmm, dtrsm, strsm
from scipy.linalg.lapack import dtrtri

from dupre._types import Floats
from dupre.errors import InputError
from dupre.game.blocks import compute_blocks
from dupre.predictor.kernel_algebra import Kernel
from dupre.predictor.kernel_inputs import Features, tiles
from dupre.predictor.posterior import Posterior
from dupre.predictor.prior import Prior
from dupre.predictor.warp import Warp

SMALL = 64
"""Side of a triangular matrix from which on it is inverted by matrix products of its parts."""

EXACT_ROWS = 256
"""Evaluated coalitions from which on variances that only shift means need fewer digits."""

SHIFT = 5e-7
"""Part of its distance from the centre by which rounding may change one of very many means."""

EXACT_UP_TO = 4_096
"""Predicted coalitions up to which covariances of functionals are summed over all pairs of them."""


@dataclass(frozen=True)
class Amplitude:
    """The spread of utilities by number of rows: (rows / reference) ** -decay.

    A model trained on few rows depends more on which rows they are. Utilities divided by the
    amplitude have the same spread for coalitions of all sizes; the noise and the variances of the
    kernel refer to them.

    Attributes:
        decay: 0 if coalitions of all sizes have the same spread, positive if small ones have more.
        reference: logarithm of the number of rows at which the amplitude is 1.
    """

    decay: float = 0.0
    reference: float = 0.0

    def __call__(self, inputs: Features) -> Floats:
        """The amplitude of m coalitions, (m,)."""
        return np.asarray(np.exp(-self.decay * (log_rows(inputs) - self.reference)))


def log_rows(inputs: Features) -> Floats:
    """Logarithm of the rows of m coalitions, (m,)."""
    return np.asarray(np.log(inputs.total_rows))


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """A kernel conditioned on utilities. Make one with `condition` or `fitting.fit`.

    Attributes:
        kernel: with its learned hyper-parameters, in units of z.
        noise: variance of z around the process, in addition to what was measured.
        measured: variance of each evaluated z as known from repeated trainings, (a,).
        inputs: the evaluated coalitions, length a.
        utilities: theirs, (a,).
        warp: how u becomes z.
        L: lower Cholesky factor of K + noise I + diag(measured), (a, a).
        alpha: (K + noise I + diag(measured))^-1 z, (a,).
        log_likelihood: the log marginal likelihood of the utilities, plus the log prior of learned
            hyper-parameters; compares forms of kernel.
        amplitude: the spread of coalitions of each size.
        prior: what was assumed: a mean, and whether predictions are those of the process alone.
        learned: where the search for hyper-parameters has ended, its x; a start for another one.
        curvature: second derivatives of the negative log density there, as it has estimated them.
    """

    kernel: Kernel
    noise: float
    measured: Floats
    inputs: Features
    utilities: Floats
    warp: Warp
    L: Floats
    alpha: Floats
    log_likelihood: float
    amplitude: Amplitude
    prior: Prior
    learned: Floats | None = None
    curvature: Floats | None = None

    @property
    def z(self) -> Floats:
        """The utilities as the process sees them, (a,)."""
        return self.warp.forward(self._residuals) / self.amplitude(self.inputs)

    @property
    def _residuals(self) -> Floats:
        return self.utilities - self.prior.expect(self.inputs)

    def back(self, mean: Floats, variance: Floats, inputs: Features) -> tuple[Floats, Floats]:
        """Mean of u and slope du/dz of coalitions whose z is normal, each (m,)."""
        size = self.amplitude(inputs)
        utility, slope = self.warp.back(mean * size, variance * size**2)
        return utility + self.prior.expect(inputs), slope * size

    @property
    def slope(self) -> Floats:
        """du/dz at the evaluated utilities, (a,)."""
        return self.warp.slope(self._residuals) * self.amplitude(self.inputs)

    @property
    def noise_of_predicted(self) -> float:
        """Variance of z around the process that predictions include: DUPRE Prop. 3 has none."""
        return 0.0 if self.prior.plain else self.noise

    @property
    def noise_of_next(self) -> float:
        """Variance of z around the process that the next evaluation will have."""
        return self.noise + float(np.mean(self.measured))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Mean and variance of each z given all others, (a,) each (RW06 Eq. 5.12)."""
        return self._leave_one_out

    @cached_property
    def _leave_one_out(self) -> tuple[Floats, Floats]:
        inverse_L = np.tril(invert_lower(self.L))
        precision = np.einsum("ij,ij->j", inverse_L, inverse_L)
        return self.z - self.alpha / precision, 1 / precision

    def leave_one_out_score(self) -> Floats:
        """Each z minus its prediction from all others, in standard deviations, (a,)."""
        mean, variance = self.leave_one_out()
        return np.asarray((self.z - mean) / np.sqrt(variance))

    def predict(self, inputs: Features) -> tuple[Floats, Floats]:
        """Mean and standard deviation of b utilities, (b,) each, noise as in `Posterior`."""
        posterior = self.posterior(inputs)
        return posterior.mean, posterior.std

    def posterior(self, inputs: Features, W: Floats | None = None) -> Posterior:
        """Prediction of b further coalitions and of functionals W, (f, b), of them, if any."""
        a, b = len(self.inputs), len(inputs)
        W = np.empty((0, b)) if W is None else W
        explained = np.empty((a, b)) if b <= EXACT_UP_TO else None
        mean, slope, inner = np.empty(b), np.empty(b), np.zeros((a, len(W)))

        def predict(columns: slice) -> Floats:
            some = inputs[columns]
            K = self.kernel(self.inputs, some)
            part = None
            if explained is not None:
                part = explained[:, columns] = self.explain(K)
            mean[columns], slope[columns] = self.back_from(K, some, part)
            return np.asarray(K @ (W[:, columns] * slope[columns]).T)

        for product in compute_blocks(predict, tiles(b, a)):
            inner += product
        return Posterior(self, inputs, W, mean, slope, self.explain(inner), explained)

    def explain(self, K: Floats) -> Floats:
        """L^-1 K for covariances of the evaluated with m coalitions, or sums of them, (a, m)."""
        return solve_lower(self.L, K)

    def remaining(self, explained: Floats, inputs: Features) -> Floats:
        """Variance of the z of m coalitions, (m,), given L^-1 K_AB, (a, m)."""
        return self._remaining(_squared_norms(explained), inputs)

    def _remaining(self, explained_variance: Floats, inputs: Features) -> Floats:
        return np.maximum(self.kernel.diagonal(inputs) - explained_variance, 0.0)

    def back_from(
        self, K: Floats, inputs: Features, explained: Floats | None
    ) -> tuple[Floats, Floats]:
        """Mean of u and slope du/dz of m coalitions, (m,) each.

        Args:
            K: covariance of the evaluated with them, (a, m).
            inputs: the m coalitions.
            explained: L^-1 K, if it is known.
        """
        variance = np.zeros(len(inputs))
        if self.warp.curved:  # otherwise it does not matter
            if explained is None:
                known = self._explained_variance(K, inputs)
            else:
                known = _squared_norms(explained)
            variance = self._remaining(known, inputs) + self.noise
        return self.back(self.alpha @ K, variance, inputs)

    def _explained_variance(self, K: Floats, inputs: Features) -> Floats:
        """|L^-1 K|² of m of very many coalitions, (m,), as exactly as their means need it.

        The first EXACT_ROWS of L^-1 K are computed as usual. They usually explain most of the
        covariances; for what they leave 32-bit numbers are enough. Rounding errors of a sum of `a`
        terms are of the order of sqrt(a) (Higham & Mary 2019). Where that many could change a mean
        by more than SHIFT, all is computed in 64 bits.

        Args:
            K: covariance of the evaluated with them, (a, m).
            inputs: the m coalitions.
        """
        first = solve_lower(self.L[:EXACT_ROWS, :EXACT_ROWS], K[:EXACT_ROWS])
        known = _squared_norms(first)
        if len(K) <= EXACT_ROWS:
            return known
        rest = (K[EXACT_ROWS:] - self.L[EXACT_ROWS:, :EXACT_ROWS] @ first).astype(np.float32)
        rest = strsm(1.0, self._single_L.T, rest.T, side=1, overwrite_b=1)
        small = np.einsum("ba,ba->b", rest, rest, dtype=np.float64)
        error = small * np.sqrt(len(K)) * np.finfo(np.float32).eps
        doubtful = error * (self.warp.scale * self.amplitude(inputs)) ** 2 / 2 > SHIFT
        known += small
        if doubtful.any():
            known[doubtful] = _squared_norms(self.explain(K[:, doubtful]))
        return known

    @cached_property
    def _single_L(self) -> Floats:
        """What the rows of L from EXACT_ROWS on have beyond these columns, in 32 bits."""
        return np.asarray(self.L[EXACT_ROWS:, EXACT_ROWS:], dtype=np.float32, order="C")

    def observed_weights(self, inner: Floats, W: Floats) -> Floats:
        """How much functionals W, (f, b), of predicted means change with each utility, (f, a).

        To first order, at the learned hyper-parameters. Unless a mean is stated, it follows the
        utilities: a change of all of them by the same amount changes every prediction by it.

        Args:
            inner: L^-1 K_AB (W du/dz)^T, (a, f).
            W: the functionals.
        """
        direct = solve_triangular(self.L, inner, lower=True, trans="T", check_finite=False)
        direct = direct.T / self.slope
        mean = self.prior.mean
        if mean is not None and not hasattr(mean, "learn"):
            return np.asarray(direct)
        rest = W.sum(axis=1) - direct.sum(axis=1)
        return np.asarray(direct + rest[:, None] / len(self.utilities))


def condition(
    kernel: Kernel,
    inputs: Features,
    utilities: Floats,
    *,
    noise: float,
    measured: Floats | None = None,
    warp: Warp | None = None,
    amplitude: Amplitude | None = None,
    prior: Prior | None = None,
    distances: Any = None,
) -> GaussianProcess:
    """Gaussian process with these hyper-parameters given utilities, (a,) (RW06 Alg. 2.1).

    `measured` is the variance of each utility as known from repeated trainings, (a,); `distances`
    are those of the kernel, if they are known.
    """
    warp, amplitude, prior = warp or Warp(), amplitude or Amplitude(), prior or Prior()
    size, residuals = amplitude(inputs), utilities - prior.expect(inputs)
    z = warp.forward(residuals) / size
    known = np.zeros(len(z)) if measured is None else measured
    measured_z = (np.sqrt(known) / (warp.slope(residuals) * size)) ** 2
    K = kernel(inputs, inputs) if distances is None else np.array(kernel.evaluate(distances))
    K[np.diag_indices_from(K)] += noise + measured_z
    L = cholesky_factor(K)
    if L is None:
        raise InputError(
            f"the kernel {kernel.label!r} is not positive semi-definite: with noise {noise:g} the "
            f"smallest eigenvalue of its matrix of {len(z)} coalitions is "
            f"{float(np.linalg.eigvalsh(K)[0]):.3g}; raise the noise, or take a valid kernel"
        )
    alpha = cho_solve((L, True), z, check_finite=False)
    density = log_likelihood(L, alpha, z) + warp.log_slope(residuals) - float(np.log(size).sum())
    return GaussianProcess(
        kernel, noise, measured_z, inputs, utilities, warp, L, alpha, density, amplitude, prior
    )


def log_likelihood(L: Floats, alpha: Floats, z: Floats) -> float:
    """Log density of z (RW06 Eq. 5.8)."""
    return float(-z @ alpha / 2 - np.log(np.diag(L)).sum() - len(z) * np.log(2 * np.pi) / 2)


def cholesky_factor(K: Floats) -> Floats | None:
    """The lower Cholesky factor; None if the matrix is not positive definite."""
    try:
        # The transpose of a symmetric matrix is itself, and LAPACK need not reorder it.
        return np.asarray(cholesky(K.T, lower=True, check_finite=False))
    except np.linalg.LinAlgError:
        return None


def _squared_norms(explained: Floats) -> Floats:
    """Of each column, (m,)."""
    return np.asarray(np.einsum("ab,ab->b", explained, explained))


def solve_lower(L: Floats, K: Floats) -> Floats:
    """L^-1 K, (a, m), without a copy of either in another order."""
    if not K.size:
        return np.zeros_like(K)
    return np.asarray(dtrsm(1.0, L, np.ascontiguousarray(K).T, side=1, lower=1, trans_a=1).T)


def invert_lower(L: Floats) -> Floats:
    """L^-1, (a, a), of which the lower triangle counts: by halves, twice as fast as LAPACK."""
    a, h = len(L), len(L) // 2
    if a <= SMALL:
        return np.asarray(dtrtri(L, lower=1)[0])
    inverse = np.empty((a, a), order="F")
    inverse[:h, :h], inverse[h:, h:] = invert_lower(L[:h, :h]), invert_lower(L[h:, h:])
    beside = dtrmm(-1.0, inverse[:h, :h], L[h:, :h], side=1, lower=1)
    inverse[h:, :h] = dtrmm(1.0, inverse[h:, h:], beside, lower=1, overwrite_b=1)
    return inverse
