"""The most probable hyper-parameters of a Gaussian process.

All of them are learned on distances computed once; module `laplace` has others around them.

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
from scipy.linalg.lapack import dlauum, dpotrf, dpotrs, dtpttr

from dupre._types import Floats, Ints
from dupre.errors import InputError
from dupre.predictor.gp import (
    Amplitude,
    GaussianProcess,
    condition,
    invert_lower,
    log_likelihood,
    log_rows,
)
from dupre.predictor.kernel_algebra import Kernel
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.packed_terms import Term, diagonal_of_packed, pack, pairs_of
from dupre.predictor.prior import Prior
from dupre.predictor.search import Minimum, minimise
from dupre.predictor.warp import Warp

LEARN_ON = 500
"""Evaluations on which hyper-parameters are learned; all are conditioned on."""

COARSE = 64
"""Fewest evaluations of which a half is searched on before all of them."""

ROUGHLY = 1e-3
"""Twice the log density by which a search on a part may miss its end."""

LEAST_CURVATURE = 0.1
"""Of a search: no number is so uncertain that its prior does not know more."""

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
    curvature: Floats | None = None,
    worse: float = -np.inf,
    least_noise: float = 0.0,
    decays: bool = False,
    prior: Prior | None = None,
) -> GaussianProcess:
    """Learn the hyper-parameters by maximum a posteriori, then condition.

    A quasi-Newton search with analytic gradients from several starts: `near` if given (the
    `position` of an earlier fit), the prior mean, then draws from the prior. Without second
    derivatives of an earlier fit, a part of the evaluations is searched on first, then twice as
    many and so on, each from the end of the one before.

    Args:
        kernel: its form; its hyper-parameters are replaced, unless `prior` holds them.
        inputs: the evaluated coalitions.
        utilities: theirs, (a,).
        warp: of the utilities.
        starts: how many searches.
        rng: of the starts, and of the evaluations to learn from if there are very many.
        measured: variance of each utility as known from repeated trainings, (a,).
        near: x to start from.
        curvature: that of an earlier fit.
        worse: a log likelihood; a fit that would not come near it need not be exact.
        least_noise: smallest variance of a utility around the process.
        decays: whether the amplitude may depend on the number of rows.
        prior: the mean, already learned, and what is held. If it is plain, the marginal
            likelihood alone is maximised.
    """
    prior = prior or Prior()
    known = np.zeros(len(utilities)) if measured is None else measured
    some, u, noise = inputs, utilities, known
    if len(u) > LEARN_ON:
        chosen = np.sort(rng.choice(len(u), LEARN_ON, replace=False))
        some, u, noise = inputs[chosen], utilities[chosen], known[chosen]
    reference = float(np.mean(log_rows(some)))
    how: dict[str, Any] = {"warp": warp, "reference": reference, "prior": prior}
    problem = problem_of(kernel, some, u, noise, **how)
    low, high = limits(kernel, least_noise, warp.slope(u), decays=decays)
    held = prior.held(kernel)
    low[held] = high[held] = _stated(kernel, problem.form, prior.noise)[held]
    mean, std = of_each(PRIOR, kernel)
    first = [mean] if near is None else [near, mean]
    draws = [rng.normal(mean, std) for _ in range(max(0, starts - len(first)))]
    x, B = [*first, *draws][:starts], curvature
    order = np.random.default_rng(0).permutation(len(u))
    for size in _coarse_sizes(len(u)) if B is None else ():
        part = np.sort(order[:size])
        coarse = problem_of(kernel, some[part], u[part], noise[part], form=problem.form, **how)
        B = coarse.rough_curvature if B is None else B
        end = _lowest([minimise(coarse, s, low, high, B=B, enough=ROUGHLY) for s in x])
        x, B = [end.x], coarse.double_curvature(end.B)
    B = problem.rough_curvature if B is None else B
    behind = warp.log_slope(u) - worse
    best = _lowest([minimise(problem, s, low, high, B=B, behind=behind) for s in x])
    how |= {"measured": known, "distances": problem.distances if some is inputs else None}
    gp = condition_at_least(problem.form, best.x, inputs, utilities, **how)
    log_prior = -float(np.sum(((best.x - mean) / problem.spread) ** 2)) / 2
    height = gp.log_likelihood + log_prior
    return replace(gp, log_likelihood=height, learned=best.x, curvature=best.B)


def _coarse_sizes(a: int) -> list[int]:
    """Numbers of evaluations to search on before all a of them, rising."""
    sizes = [a]
    while sizes[-1] >= 2 * COARSE:
        sizes.append(sizes[-1] // 2)
    return sizes[:0:-1]


def _lowest(ends: list[Minimum]) -> Minimum:
    """The lowest end; of ends that differ by rounding alone, the first."""
    height = np.array([end.value for end in ends])
    return ends[int(np.argmax(height <= height.min() + 1e-4))]


def position(gp: GaussianProcess) -> Floats:
    """The x of a process, (t + 2,): a start for another fit."""
    x = _stated(gp.kernel, pairs_of(gp.kernel, gp.inputs).form, gp.noise)
    x[-1] = gp.amplitude.decay
    return x


@dataclass(frozen=True, eq=False)
class Problem:
    """The negative log posterior density of x.

    Attributes:
        form: the kernel with every gamma at one over the median of its distances.
        distances: what it needs of all pairs of the evaluated coalitions.
        terms: of its matrix of them.
        v: warped utilities, (a,).
        measured: variance of each as known from repeated trainings, (a,).
        rows: logarithm of their rows minus that of the reference, (a,).
        spread: standard deviation of the prior of each x, (t + 2,); infinite where it has none.
    """

    form: Kernel
    distances: Any
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
        inverse, _ = dlauum(invert_lower(L), lower=1, overwrite_c=1)
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
        t = (x - self.mean) / self.spread
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
    def mean(self) -> Floats:
        """Of the prior of each x, (t + 2,)."""
        return np.asarray(of_each(PRIOR, self.form)[0])

    @property
    def rough_curvature(self) -> Floats:
        """Second derivatives to begin a search with, (t + 2, t + 2): of the prior, and a little.

        What is added was chosen by the number of steps that searches take.
        """
        return np.diag(self.spread**-2 + 0.02 * len(self.v))

    def double_curvature(self, B: Floats) -> Floats:
        """Second derivatives B if there were twice the evaluations, (t + 2, t + 2)."""
        scale, axes = np.linalg.eigh(2 * B - np.diag(self.spread**-2))
        return np.asarray((axes * np.maximum(scale, LEAST_CURVATURE)) @ axes.T)


def problem_of(
    kernel: Kernel,
    inputs: Features,
    utilities: Floats,
    measured: Floats,
    *,
    warp: Warp,
    reference: float,
    prior: Prior,
    form: Kernel | None = None,
) -> Problem:
    """The problem of a kernel; `form` says what x is relative to if not to these medians."""
    residuals = utilities - prior.expect(inputs)
    _, spread = of_each(PRIOR, kernel)
    spread[prior.held(kernel) | prior.plain] = np.inf
    pairs = pairs_of(kernel, inputs)
    return Problem(
        form=form or pairs.form,
        distances=pairs.distances,
        terms=pairs.terms,
        v=warp.forward(residuals),
        measured=(np.sqrt(measured) / warp.slope(residuals)) ** 2,
        rows=log_rows(inputs) - reference,
        spread=spread,
    )


def condition_at_least(
    form: Kernel,
    x: Floats,
    inputs: Features,
    utilities: Floats,
    *,
    measured: Floats,
    warp: Warp,
    reference: float,
    prior: Prior,
    distances: Any = None,
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
                distances=distances,
            )
        except InputError:
            if noise > 1:  # as large as all utilities: rounding is not the reason
                raise
            noise *= 10


def of_each(table: dict[str, tuple[float, float]], form: Kernel) -> Floats:
    """The two numbers of a table for the role of every entry of x, (2, t + 2)."""
    return np.array([table[role] for role in [*form.roles, "noise", "decay"]]).T


def limits(kernel: Kernel, least_noise: float, slope: Floats, *, decays: bool) -> Floats:
    """Lowest and highest x, (2, t + 2); arguments as in `fit`, and du/dz of the evaluated, (a,)."""
    low, high = both = of_each(BOUNDS, kernel)
    if least_noise > 0:  # in logarithms: the square of a very small slope is zero
        lowest = np.log(least_noise) - 2 * np.log(np.median(slope))
        low[-2] = np.clip(lowest, low[-2], high[-2])
    if not decays:
        low[-1] = high[-1] = 0.0
    return both


def _stated(kernel: Kernel, form: Kernel, noise: float | None) -> Floats:
    """The x of the values that a kernel and a prior state, (t + 2,)."""
    offset = _absolute(form, np.zeros(len(kernel.theta) + 2))
    return np.append(kernel.theta - offset, [np.log(noise or 1.0), 0.0])


def _absolute(form: Kernel, x: Floats) -> Floats:
    """Theta from x, of which each gamma is relative to that of `form`."""
    is_gamma = np.array([role == "gamma" for role in form.roles], dtype=bool)
    return np.asarray(x[:-2] + np.where(is_gamma, form.theta, 0.0))
