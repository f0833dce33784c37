"""Exact Gaussian process regression of utilities on coalitions.

What sets it apart from a general library: hyper-parameters are learned on distances computed once,
and the posterior of any linear functional of b predictions costs O(b²) kernel entries but only
O(b) memory: no b x b matrix is ever built.

Notation (docs/notation.md): a evaluated coalitions, b predicted ones, W (n, b) functionals.
z = warp(u); K = kernel matrix of the evaluated, L its Cholesky factor with noise on the diagonal.
RW06 is Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from dupre.errors import InputError
from dupre.kernels import Features, Kernel
from dupre.typing import Floats, Ints
from dupre.warp import Warp

TILE = 512
"""Side of the square pieces in which a large kernel matrix is passed through: they fit a cache."""

LEARN_ON = 500
"""Evaluations on which hyper-parameters are learned; all are conditioned on."""

# Weak log-normal beliefs (mean and standard deviation of the logarithm) about hyper-parameters of
# standardised utilities: they decide only while a handful of evaluations cannot.
PRIOR = {
    "gamma": (-1.0, 1.5),  # relative to one over the median distance
    "variance": (0.0, 1.0),  # utilities are standardised: a term can explain all of them
    "noise": (np.log(0.01), 2.0),
    "decay": (float(os.environ.get("DM", "0.0")), float(os.environ.get("DS", "0.5"))),
}
BOUNDS = {
    "gamma": (np.log(1e-3), np.log(1e2)),
    "variance": (np.log(1e-6), np.log(1e3)),
    "noise": (np.log(1e-7), np.log(2.0)),
    "decay": (-0.5, 2.5),
}


@dataclass(frozen=True)
class Amplitude:
    """How far utilities spread around the mean, relative to their usual spread: rows ** -decay.

    Attributes:
        decay: 0 if coalitions of all sizes spread alike, positive if small ones spread more.
        reference: logarithm of the number of rows at which the amplitude is 1.
    """

    decay: float = 0.0
    reference: float = 0.0

    def __call__(self, inputs: Features) -> Floats:
        """The amplitude of m coalitions, (m,)."""
        return np.exp(-self.decay * (log_rows(inputs) - self.reference))


def log_rows(inputs: Features) -> Floats:
    """Logarithm of the rows of m coalitions, (m,)."""
    return np.asarray(np.log(inputs.members @ inputs.rows))


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """A kernel conditioned on utilities. Make one with `condition` or `fit`.

    Attributes:
        kernel: with its learned hyper-parameters, in units of z.
        noise: variance of z around the process, beyond what was measured.
        measured: variance of each evaluated z that repeated trainings have shown, (a,).
        inputs: the evaluated coalitions, length a.
        utilities: theirs, (a,).
        warp: how u becomes z.
        L: lower Cholesky factor of K + noise I + diag(measured), (a, a).
        alpha: (K + noise I + diag(measured))^-1 z, (a,).
        evidence: log density of the utilities and hyper-parameters; compares forms of kernel.
    """

    kernel: Kernel
    noise: float
    measured: Floats
    inputs: Features
    utilities: Floats
    warp: Warp
    L: Floats
    alpha: Floats
    evidence: float
    amplitude: Amplitude = Amplitude()

    @property
    def z(self) -> Floats:
        """The utilities as the process sees them, (a,)."""
        return self.warp.forward(self.utilities) / self.amplitude(self.inputs)

    def back(self, mean: Floats, variance: Floats, inputs: Features) -> tuple[Floats, Floats]:
        """Mean of u and slope du/dz of coalitions whose z is normal, each (m,)."""
        size = self.amplitude(inputs)
        utility, slope = self.warp.back(mean * size, variance * size**2)
        return utility, slope * size

    @property
    def slope(self) -> Floats:
        return self.warp.slope(self.utilities) * self.amplitude(self.inputs)

    @property
    def noise_of_next(self) -> float:
        """Variance of z around the process that the next evaluation will have."""
        return self.noise + float(np.mean(self.measured))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Mean and variance of each z given all others, (a,) each (RW06 Eq. 5.12)."""
        return self._left_out

    @cached_property
    def _left_out(self) -> tuple[Floats, Floats]:
        inverse_L = solve_triangular(self.L, np.eye(len(self.L)), lower=True, check_finite=False)
        precision = np.einsum("ij,ij->j", inverse_L, inverse_L)
        return self.z - self.alpha / precision, 1 / precision

    def leave_one_out_score(self) -> Floats:
        """Each z minus its prediction from all others, in standard deviations, (a,)."""
        mean, variance = self.leave_one_out()
        return np.asarray((self.z - mean) / np.sqrt(variance))

    def posterior(self, inputs: Features, W: Floats) -> Posterior:
        """Prediction of b further coalitions and of the functionals W, (f, b), of them."""
        explained = np.empty((len(self.inputs), len(inputs)))
        for start in range(0, len(inputs), TILE):
            columns = slice(start, start + TILE)
            K = self.kernel(self.inputs, inputs[columns])
            explained[:, columns] = solve_triangular(self.L, K, lower=True, check_finite=False)
        mean_z = explained.T @ solve_triangular(self.L, self.z, lower=True, check_finite=False)
        variance = self.kernel.diagonal(inputs) - np.einsum("ab,ab->b", explained, explained)
        variance = np.maximum(variance, 0.0)
        mean, slope = self.back(mean_z, variance + self.noise, inputs)
        return Posterior(self, inputs, W, mean, variance, slope, explained)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the evaluated coalitions say of b others and of f linear functionals of them.

    Attributes:
        gp: where it comes from.
        inputs: the b coalitions.
        W: the functionals, (f, b).
        mean: of the utilities, (b,).
        variance: of their z, without noise, (b,).
        slope: du/dz at the mean, (b,).
        explained: L^-1 K_AB, (a, b).
    """

    gp: GaussianProcess
    inputs: Features
    W: Floats
    mean: Floats
    variance: Floats
    slope: Floats
    explained: Floats

    @property
    def std(self) -> Floats:
        """Standard deviation of each utility if it were evaluated, noise included, (b,)."""
        return np.asarray(np.sqrt(self.variance + self.gp.noise) * self.slope)

    def functional_covariance(self) -> Floats:
        """Covariance of W @ u, (f, f), noise of the predicted utilities included."""
        WJ = self.W * self.slope
        known = self.explained @ WJ.T
        covariance = self.gp.noise * WJ @ WJ.T - known.T @ known
        for i in range(0, len(self.inputs), TILE):
            for j in range(i, len(self.inputs), TILE):
                rows, columns = slice(i, i + TILE), slice(j, j + TILE)
                tile = self.gp.kernel(self.inputs[rows], self.inputs[columns])
                part = WJ[:, rows] @ tile @ WJ[:, columns].T
                covariance += part if i == j else part + part.T
        return (covariance + covariance.T) / 2

    def cross(self, index: Ints) -> Floats:
        """Posterior covariance of the z of some coalitions with the functionals, (len(index), f).

        The prior part K[index, B] @ (W slope)^T is summed over square tiles of the kernel matrix.
        """
        right = (self.W * self.slope).T
        rows = self.inputs[index]
        prior = np.zeros((len(rows), right.shape[1]))
        for i in range(0, len(rows), TILE):
            for j in range(0, len(self.inputs), TILE):
                tile = self.gp.kernel(rows[i : i + TILE], self.inputs[j : j + TILE])
                prior[i : i + TILE] += tile @ right[j : j + TILE]
        return np.asarray(prior - self.explained[:, index].T @ (self.explained @ right))

    def covariance(self, rows: Ints, columns: Ints) -> Floats:
        """Posterior covariance of the z of some coalitions with those of others."""
        prior = self.gp.kernel(self.inputs[rows], self.inputs[columns])
        return np.asarray(prior - self.explained[:, rows].T @ self.explained[:, columns])


def condition(
    kernel: Kernel,
    inputs: Features,
    utilities: Floats,
    *,
    noise: float,
    measured: Floats | None = None,
    warp: Warp | None = None,
    amplitude: Amplitude = Amplitude(),
) -> GaussianProcess:
    """Gaussian process with these hyper-parameters given utilities, (a,) (RW06 Alg. 2.1).

    `measured` is the variance of each utility that repeated trainings have shown, (a,).
    """
    warp = warp or Warp()
    size = amplitude(inputs)
    z = warp.forward(utilities) / size
    known = np.zeros(len(z)) if measured is None else measured
    measured_z = (np.sqrt(known) / (warp.slope(utilities) * size)) ** 2
    K = kernel(inputs, inputs)
    K[np.diag_indices_from(K)] += noise + measured_z
    L = _cholesky(K)
    if L is None:
        raise InputError(
            f"the kernel matrix of {len(z)} coalitions is not positive definite with noise "
            f"{noise:g}; raise the noise"
        )
    alpha = cho_solve((L, True), z, check_finite=False)
    evidence = _log_likelihood(L, alpha, z) + warp.log_slope(utilities) - float(np.log(size).sum())
    return GaussianProcess(
        kernel, noise, measured_z, inputs, utilities, warp, L, alpha, evidence, amplitude
    )


def fit(
    kernel: Kernel,
    inputs: Features,
    utilities: Floats,
    *,
    warp: Warp,
    starts: int,
    rng: np.random.Generator,
    measured: Floats | None = None,
    near: Floats | None = None,
) -> GaussianProcess:
    """Learn the kernel's hyper-parameters and the noise by maximum a posteriori, then condition.

    L-BFGS-B with analytic gradients from several starts: `near` if given (the `relative_theta` of
    an earlier fit), the prior mean, then draws from the prior.
    """
    chosen = np.arange(len(utilities))
    if len(chosen) > LEARN_ON:
        chosen = np.sort(rng.choice(len(chosen), LEARN_ON, replace=False))
    v = warp.forward(utilities[chosen])
    known = np.zeros(len(utilities)) if measured is None else measured
    fixed = (np.sqrt(known[chosen]) / warp.slope(utilities[chosen])) ** 2
    rows = log_rows(inputs[chosen])
    reference = float(np.mean(rows))
    distances = kernel.distances(inputs[chosen], inputs[chosen])
    form = kernel.at_median(distances)
    objective = _objective(form, distances, v, fixed, rows - reference)
    prior_mean, prior_std = _of_each(PRIOR, form)
    bounds = list(zip(*_of_each(BOUNDS, form), strict=True))
    first = [] if near is None else [near]
    first.append(prior_mean)
    draws = [rng.normal(prior_mean, prior_std) for _ in range(max(0, starts - len(first)))]
    results = [
        minimize(
            objective,
            np.clip(start, *np.array(bounds).T),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 200},
        )
        for start in [*first, *draws][:starts]
    ]
    # The first of those that are as good as the best: which is best is often a matter of rounding.
    height = [float(result.fun) for result in results]
    best = results[int(np.argmax(np.array(height) <= min(height) + 1e-4))]
    learned = form.with_theta(_absolute(form, best.x))
    noise = float(np.exp(best.x[-2]))
    amplitude = Amplitude(float(best.x[-1]), reference)
    gp = _condition_at_least(learned, inputs, utilities, noise, known, warp, amplitude)
    log_prior = -float(np.sum(((best.x - prior_mean) / prior_std) ** 2)) / 2
    return replace(gp, evidence=gp.evidence + log_prior)


def _condition_at_least(
    kernel: Kernel,
    inputs: Features,
    utilities: Floats,
    noise: float,
    measured: Floats,
    warp: Warp,
    amplitude: Amplitude,
) -> GaussianProcess:
    """Condition with this noise, or with the next power of ten that all evaluations bear.

    Hyper-parameters learned on a part can be too smooth for the whole by rounding alone.
    """
    try:
        return condition(
            kernel,
            inputs,
            utilities,
            noise=noise,
            measured=measured,
            warp=warp,
            amplitude=amplitude,
        )
    except InputError:
        if noise > 1:  # as much noise as there is anything: rounding is not the reason
            raise
        return _condition_at_least(
            kernel, inputs, utilities, 10 * noise, measured, warp, amplitude
        )


def relative_theta(gp: GaussianProcess) -> Floats:
    """Learned hyper-parameters in units of the median distances: a start for another fit."""
    distances = gp.kernel.distances(gp.inputs, gp.inputs)
    offset = _absolute(gp.kernel.at_median(distances), np.zeros(len(gp.kernel.theta) + 2))
    return np.append(gp.kernel.theta - offset, [np.log(gp.noise), gp.amplitude.decay])


def _of_each(table: dict[str, tuple[float, float]], form: Kernel) -> Floats:
    """Both entries of a table by role, for every hyper-parameter and the noise, (2, t + 1)."""
    return np.array([table[role] for role in [*form.roles, "noise", "decay"]]).T


def _absolute(form: Kernel, relative: Floats) -> Floats:
    """Theta from hyper-parameters of which each gamma is relative to that of `form`."""
    is_gamma = np.array([role == "gamma" for role in form.roles], dtype=bool)
    return np.asarray(relative[:-2] + np.where(is_gamma, form.theta, 0.0))


def _objective(
    form: Kernel, distances: Any, v: Floats, measured: Floats, rows: Floats
) -> Callable[[Floats], tuple[float, Floats]]:
    """Negative log posterior of relative hyper-parameters and its gradient (RW06 Eq. 5.9)."""
    prior_mean, prior_std = _of_each(PRIOR, form)

    def negative_log_posterior(relative: Floats) -> tuple[float, Floats]:
        noise, decay = float(np.exp(relative[-2])), relative[-1]
        z = v * np.exp(decay * rows)
        fixed = measured * np.exp(2 * decay * rows)
        K, derivatives = form.with_theta(_absolute(form, relative)).gradient(distances)
        K = K.copy()
        K[np.diag_indices_from(K)] += noise + fixed
        L = _cholesky(K)
        if L is None:  # an impossible corner of the box: send the search back
            return 1e25, np.zeros_like(relative)
        alpha = cho_solve((L, True), z, check_finite=False)
        lower, _ = dpotri(L, lower=1)  # K^-1 below and on the diagonal: all the gradient needs
        inner = lower + np.tril(lower, -1).T - np.outer(alpha, alpha)
        gradient = [float(np.vdot(inner, dK)) / 2 for dK in derivatives]
        gradient.append(noise * float(np.trace(inner)) / 2)
        gradient.append(float(alpha @ (rows * z) + np.diag(inner) @ (rows * fixed)))
        t = (relative - prior_mean) / prior_std
        value = -_log_likelihood(L, alpha, z) + float(t @ t) / 2
        return value, np.array(gradient) + t / prior_std

    return negative_log_posterior


def _log_likelihood(L: Floats, alpha: Floats, z: Floats) -> float:
    """Log density of z (RW06 Eq. 5.8)."""
    return float(-z @ alpha / 2 - np.log(np.diag(L)).sum() - len(z) * np.log(2 * np.pi) / 2)


def _cholesky(K: Floats) -> Floats | None:
    try:
        return np.asarray(cholesky(K, lower=True, check_finite=False))
    except np.linalg.LinAlgError:
        return None
