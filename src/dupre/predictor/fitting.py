"""Hyper-parameters of a Gaussian process: the most probable ones, and others around them.

All of them are learned on distances computed once. The second derivatives of their log density
give a normal distribution around the most probable ones (Laplace's approximation, RW06 Sec. 3.4.2
and 5.2). Processes with hyper-parameters drawn from it, each with its importance weight, represent
the uncertainty about them.

Notation: a evaluated coalitions, t hyper-parameters of the kernel. x (t + 2,) holds the logarithms
of those (each gamma relative to one over the median of its distances), of the noise, and the decay
of the amplitude.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy.linalg.blas import dspr
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtpttr
from scipy.optimize import minimize

from dupre._types import Floats, Ints
from dupre.errors import InputError
from dupre.predictor.gp import (
    Amplitude,
    GaussianProcess,
    condition,
    log_likelihood,
    log_rows,
)
from dupre.predictor.kernel_algebra import Kernel
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.packed_terms import Term, diagonal_of_packed, pack, terms_of
from dupre.predictor.prior import Prior
from dupre.predictor.warp import Warp

LEARN_ON = 500
"""Evaluations on which hyper-parameters are learned; all are conditioned on."""

MOST_WEIGHT = 2.0
"""Largest logarithm of an importance weight."""

# Weak normal priors (mean and standard deviation) of x for standardised utilities. They matter only
# while there are few evaluations.
PRIOR = {
    "gamma": (-1.0, 1.5),  # relative to one over the median distance
    "variance": (0.0, 1.0),  # utilities are standardised: one term can explain all
    "noise": (np.log(0.01), 2.0),
    "decay": (0.0, 0.5),
}
BOUNDS = {
    "gamma": (np.log(1e-3), np.log(1e2)),
    "variance": (np.log(1e-6), np.log(1e3)),
    "noise": (np.log(1e-7), np.log(2.0)),
    "decay": (-0.5, 2.5),
}


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
    least_noise: float = 0.0,
    decays: bool = False,
    prior: Prior | None = None,
) -> GaussianProcess:
    """Learn the hyper-parameters by maximum a posteriori, then condition.

    L-BFGS-B with analytic gradients from several starts: `near` if given (the `position` of an
    earlier fit), the prior mean, then draws from the prior.

    Args:
        kernel: its form; its hyper-parameters are replaced, unless `prior` holds them.
        inputs: the evaluated coalitions.
        utilities: theirs, (a,).
        warp: of the utilities.
        starts: how many searches.
        rng: of the starts, and of the evaluations to learn from if there are very many.
        measured: variance of each utility as known from repeated trainings, (a,).
        near: x to start from.
        least_noise: smallest variance of a utility around the process.
        decays: whether the amplitude may depend on the number of rows.
        prior: the mean, already learned, and what is held. If it is plain, the marginal
            likelihood alone is maximised.
    """
    prior = prior or Prior()
    chosen = np.arange(len(utilities))
    if len(chosen) > LEARN_ON:
        chosen = np.sort(rng.choice(len(chosen), LEARN_ON, replace=False))
    known = np.zeros(len(utilities)) if measured is None else measured
    u, reference = utilities[chosen], float(np.mean(log_rows(inputs[chosen])))
    how: dict[str, Any] = {"warp": warp, "reference": reference, "prior": prior}
    problem = _problem(kernel, inputs[chosen], u, known[chosen], **how)
    low, high = _limits(kernel, least_noise, warp.slope(u), decays=decays)
    held = prior.held(kernel)
    low[held] = high[held] = _stated(kernel, problem.form, prior.noise)[held]
    mean, std = _of_each(PRIOR, kernel)
    first = [mean] if near is None else [near, mean]
    draws = [rng.normal(mean, std) for _ in range(max(0, starts - len(first)))]
    results = [
        minimize(
            problem,
            np.clip(start, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"maxiter": 200},
        )
        for start in [*first, *draws][:starts]
    ]
    best = _lowest(results)
    gp = _condition_at_least(problem.form, best, inputs, utilities, measured=known, **how)
    log_prior = -float(np.sum(((best - mean) / problem.spread) ** 2)) / 2
    return replace(gp, log_likelihood=gp.log_likelihood + log_prior)


def _lowest(results: list[Any]) -> Floats:
    """The x of the lowest end; of ends that differ by rounding alone, the first."""
    height = np.array([float(result.fun) for result in results])
    return np.asarray(results[int(np.argmax(height <= height.min() + 1e-4))].x)


def position(gp: GaussianProcess) -> Floats:
    """The x of a process, (t + 2,): a start for another fit."""
    return _position(gp, gp.kernel.at_median(gp.kernel.distances(gp.inputs, gp.inputs)))


def _position(gp: GaussianProcess, form: Kernel) -> Floats:
    x = _stated(gp.kernel, form, gp.noise)
    x[-1] = gp.amplitude.decay
    return x


def sample_around(
    gp: GaussianProcess, *, pairs: int, least_noise: float = 0.0
) -> list[tuple[float, GaussianProcess]]:
    """Processes with hyper-parameters drawn around the learned ones, with weights that sum to 1.

    Draws are symmetric pairs, the same every time. With more than LEARN_ON evaluations the
    hyper-parameters are known well enough: the only process is the given one. So it is if the
    posterior is to be plain. `least_noise` is that of `fit`.
    """
    free = np.flatnonzero(~gp.prior.held(gp.kernel))
    if len(gp.utilities) > LEARN_ON or gp.prior.plain:
        return [(1.0, gp)]
    measured = gp.measured * gp.slope**2  # in units of utility
    reference = gp.amplitude.reference
    how: dict[str, Any] = {"warp": gp.warp, "reference": reference, "prior": gp.prior}
    problem = _problem(gp.kernel, gp.inputs, gp.utilities, measured, **how)
    centre = _position(gp, problem.form)
    value, root = _curvature_root(problem, centre, free)
    normal = np.random.default_rng(0).standard_normal((pairs, len(free)))
    normal = np.concatenate([normal, -normal])
    slope = gp.warp.slope(gp.utilities)
    low, high = _limits(gp.kernel, least_noise, slope, decays=gp.amplitude.decay != 0)
    drawn = np.tile(centre, (len(normal), 1))
    drawn[:, free] = np.clip(centre[free] + normal @ root.T, low[free], high[free])
    height = np.array([problem(x)[0] for x in drawn])
    # Truncated: no single draw may dominate.
    log_weight = np.minimum(value - height + np.sum(normal**2, axis=1) / 2, MOST_WEIGHT)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    how["measured"] = measured
    return [
        (float(w), _condition_at_least(problem.form, x, gp.inputs, gp.utilities, **how))
        for w, x in zip(weight, drawn, strict=True)
    ]


def _curvature_root(problem: _Problem, centre: Floats, free: Ints) -> tuple[float, Floats]:
    """The value at the minimum, and a root of the inverse of its second derivatives by free x."""
    value, gradient = problem(centre)
    step, axes = 1e-3, np.eye(len(centre))[free]
    H = np.array([(problem(centre + step * e)[1] - gradient)[free] for e in axes]) / step
    scale, axes = np.linalg.eigh((H + H.T) / 2)
    # At a bound, or by rounding, a direction can seem flat; with the prior it is not.
    scale = np.maximum(scale, 0.5 / float(problem.spread[free].max()) ** 2)
    return value, np.linalg.cholesky((axes / scale) @ axes.T)  # unique, whatever the axes


@dataclass(frozen=True, eq=False)
class _Problem:
    """The negative log posterior density of x.

    Attributes:
        form: the kernel with every gamma at one over the median of its distances.
        terms: of its matrix of the evaluated coalitions.
        v: warped utilities, (a,).
        measured: variance of each as known from repeated trainings, (a,).
        rows: logarithm of their rows minus that of the reference, (a,).
        spread: standard deviation of the prior of each x, (t + 2,); infinite where it has none.
    """

    form: Kernel
    terms: list[Term]
    v: Floats
    measured: Floats
    rows: Floats
    spread: Floats

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """The value at x and its gradient (RW06 Eq. 5.9); matrices are packed or triangular."""
        a, diagonal, theta = len(self.v), self._diagonal, x[:-2] + self._offset
        noise, decay = float(np.exp(x[-2])), float(x[-1])
        growth = np.exp(decay * self.rows)  # one over the amplitude
        z, measured = self.v * growth, self.measured * growth**2
        parts = [term.evaluate(theta) for term in self.terms]
        packed = reduce(np.add, [part for part, _ in parts])
        K, _ = dtpttr(a, packed, uplo="L")
        K[self._corner] += noise + measured
        L, failed = dpotrf(K, lower=1, clean=0, overwrite_a=1)
        if failed:  # numerically impossible: turn the search around
            return 1e25, np.zeros_like(x)
        alpha, _ = dpotrs(L, z, lower=1)
        log_density = log_likelihood(L, alpha, z)
        inverse, _ = dpotri(L, lower=1, overwrite_c=1)
        inner = dspr(a, -1.0, alpha, pack(inverse), lower=1, overwrite_ap=1)
        on_diagonal = inner[diagonal]
        inner[diagonal] /= 2  # entries beside the diagonal stand for two, and all are halved
        gradient = np.zeros_like(x)
        for term, (_, found) in zip(self.terms, parts, strict=True):
            term.add_gradient(gradient, theta, found, inner)
        gradient[-2] = noise * on_diagonal.sum() / 2
        # The log density of v, not of z: its Jacobian is the sum of decay * rows.
        gradient[-1] = alpha @ (self.rows * z) + on_diagonal @ (self.rows * measured)
        gradient[-1] -= self.rows.sum()
        t = (x - self._mean) / self.spread
        value = -log_density - decay * float(self.rows.sum()) + float(t @ t) / 2
        return value, gradient + t / self.spread

    @cached_property
    def _diagonal(self) -> Ints:
        return diagonal_of_packed(len(self.v))

    @cached_property
    def _corner(self) -> tuple[Ints, ...]:
        return np.diag_indices(len(self.v))

    @cached_property
    def _offset(self) -> Floats:
        return _absolute(self.form, np.zeros(len(self.spread)))

    @cached_property
    def _mean(self) -> Floats:
        return np.asarray(_of_each(PRIOR, self.form)[0])


def _problem(
    kernel: Kernel,
    inputs: Features,
    utilities: Floats,
    measured: Floats,
    *,
    warp: Warp,
    reference: float,
    prior: Prior,
) -> _Problem:
    distances, residuals = kernel.distances(inputs, inputs), utilities - prior.expect(inputs)
    _, spread = _of_each(PRIOR, kernel)
    spread[prior.held(kernel) | prior.plain] = np.inf
    form = kernel.at_median(distances)
    return _Problem(
        form=form,
        terms=terms_of(form, distances),
        v=warp.forward(residuals),
        measured=(np.sqrt(measured) / warp.slope(residuals)) ** 2,
        rows=log_rows(inputs) - reference,
        spread=spread,
    )


def _condition_at_least(
    form: Kernel,
    x: Floats,
    inputs: Features,
    utilities: Floats,
    *,
    measured: Floats,
    warp: Warp,
    reference: float,
    prior: Prior,
) -> GaussianProcess:
    """Condition with these hyper-parameters, or with the smallest larger noise that works.

    With hyper-parameters learned on a part of the evaluations, the matrix of all of them can fail
    to be positive definite by rounding alone.
    """
    kernel, noise = form.with_theta(_absolute(form, x)), float(np.exp(x[-2]))
    amplitude = Amplitude(float(x[-1]), reference)
    while True:
        try:
            return condition(
                kernel,
                inputs,
                utilities,
                noise=noise,
                measured=measured,
                warp=warp,
                amplitude=amplitude,
                prior=prior,
            )
        except InputError:
            if noise > 1:  # as large as all utilities: rounding is not the reason
                raise
            noise *= 10


def _of_each(table: dict[str, tuple[float, float]], form: Kernel) -> Floats:
    """The two numbers of a table for the role of every entry of x, (2, t + 2)."""
    return np.array([table[role] for role in [*form.roles, "noise", "decay"]]).T


def _limits(kernel: Kernel, least_noise: float, slope: Floats, *, decays: bool) -> Floats:
    """Lowest and highest x, (2, t + 2); arguments as in `fit`, and du/dz of the evaluated, (a,)."""
    low, high = limits = _of_each(BOUNDS, kernel)
    if least_noise > 0:  # in logarithms: the square of a very small slope is zero
        lowest = np.log(least_noise) - 2 * np.log(np.median(slope))
        low[-2] = np.clip(lowest, low[-2], high[-2])
    if not decays:
        low[-1] = high[-1] = 0.0
    return limits


def _stated(kernel: Kernel, form: Kernel, noise: float | None) -> Floats:
    """The x of the values that a kernel and a prior state, (t + 2,)."""
    offset = _absolute(form, np.zeros(len(kernel.theta) + 2))
    return np.append(kernel.theta - offset, [np.log(noise or 1.0), 0.0])


def _absolute(form: Kernel, x: Floats) -> Floats:
    """Theta from x, of which each gamma is relative to that of `form`."""
    is_gamma = np.array([role == "gamma" for role in form.roles], dtype=bool)
    return np.asarray(x[:-2] + np.where(is_gamma, form.theta, 0.0))
