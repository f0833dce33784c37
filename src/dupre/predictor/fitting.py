"""The most probable hyper-parameters of a Gaussian process, and others around them.

All of them are learned on distances computed once. The second derivatives of their log density give
a normal distribution around the most probable ones (Laplace's approximation, RW06 Sec. 3.4.2 and
5.2). Processes with hyper-parameters drawn from it, each with its importance weight, represent the
uncertainty about them.

Notation: a evaluated coalitions, m = a (a + 1) / 2 entries of the lower triangle of their matrix,
packed as LAPACK packs it; t hyper-parameters of the kernel. x (t + 2,) holds the logarithms of
those (each gamma relative to one over the median of its distances), of the noise, and the decay of
the amplitude. B is an estimate of the second derivatives of a function of x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any, Protocol

import numpy as np
from scipy.linalg.blas import dspr
from scipy.linalg.lapack import dlauum, dpotrf, dpotrs, dtpttr, dtrttp

from dupre._types import Floats, Ints
from dupre.errors import InputError
from dupre.predictor.gp import (
    Amplitude,
    GaussianProcess,
    Scale,
    condition,
    growth,
    invert_lower,
    log_likelihood,
)
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Exponential, Kernel, Linear, Product, Rows, Scaled, Sum

# An objective costs O(a³); more evaluations hardly change the hyper-parameters.
LEARN_ON = 500
"""Evaluations on which hyper-parameters are learned; all are conditioned on."""

COARSE = 64
"""Fewest evaluations of which a half is searched on before all of them."""

ROUGHLY = 1e-3
"""Twice the log density by which a search on a part may miss its end."""

LEAST_CURVATURE = 0.1
"""Of a search: no number is so uncertain that its prior does not know more."""

ENOUGH = 1e-8
"""For an end that is exact: what is left after the last step is far smaller."""

MOST_STEPS = 100

LONGEST_STEP = 2.0
"""Of any number in one step: far from the end second derivatives say little."""

# Roughly is enough: importance weights correct for the curvature.
DIFFERENCE = 1e-3
"""Step of finite differences."""

REMEMBERED = 1_000
"""Coalitions up to which what is computed of all pairs is kept."""

MOST_WEIGHT = 2.0
"""Largest logarithm of an importance weight."""


# Weak normal priors (mean and standard deviation) of x for standardised utilities. They matter only
# while there are few evaluations.
PRIOR = {
    "gamma": (-1.0, 1.5),  # relative to one over the median distance
    "variance": (0.0, 1.0),  # utilities are standardised: one term can explain all
    # With that of the others, MSE after n + 1 trainings is 3 to 5 times larger (part "choose" of
    # the bank); means of -3 and -5, and spreads of 1.5 and 3, differ by a few percent.
    "minor variance": (-4.0, 2.0),
    "noise": (np.log(0.01), 2.0),
    "decay": (0.0, 0.5),
}
BOUNDS = {
    "gamma": (np.log(1e-3), np.log(1e2)),
    "variance": (np.log(1e-6), np.log(1e3)),
    "minor variance": (np.log(1e-6), np.log(1e3)),
    "noise": (np.log(1e-7), np.log(2.0)),
    "decay": (-0.5, 2.5),
}


@dataclass(frozen=True, eq=False)
class Search:
    """Where searches for hyper-parameters start, and when one may end early.

    Attributes:
        starts: how many searches.
        rng: of the starts, and of the evaluations to learn from if there are very many.
        near: x to start from, the `position` of an earlier fit.
        curvature: that of an earlier fit.
        worse: a log likelihood; a fit that would not come near it need not be exact.
    """

    starts: int
    rng: np.random.Generator
    near: Floats | None = None
    curvature: Floats | None = None
    worse: float = -np.inf

    def points(self, mean: Floats, std: Floats) -> list[Floats]:
        """The starts: `near` if given, the mean of the prior, then draws from it."""
        first = [mean] if self.near is None else [self.near, mean]
        draws = [self.rng.normal(mean, std) for _ in range(max(0, self.starts - len(first)))]
        return [*first, *draws][: self.starts]


def fit(
    kernel: Kernel,
    inputs: Features,
    utilities: Floats,
    *,
    scale: Scale,
    search: Search,
    measured: Floats | None = None,
    least_noise: float = 0.0,
    decays: bool = False,
) -> GaussianProcess:
    """Learn the hyper-parameters by maximum a posteriori, then condition.

    A quasi-Newton search with analytic gradients from several starts. Without second derivatives of
    an earlier fit, a part of the evaluations is searched on first, then twice as many and so on,
    each from the end of the one before.

    Args:
        kernel: its form; its hyper-parameters are replaced, unless the prior holds them.
        inputs: the evaluated coalitions.
        utilities: theirs, (a,).
        scale: of the utilities: their warp, a mean that is already learned, and what the prior
            holds. If the prior is plain, the marginal likelihood alone is maximised.
        search: where to start.
        measured: variance of each utility as known from repeated trainings, (a,).
        least_noise: smallest variance of a utility around the process.
        decays: whether the amplitude may depend on the number of rows.
    """
    known = np.zeros(len(utilities)) if measured is None else measured
    some, u, noise = inputs, utilities, known
    if len(u) > LEARN_ON:
        chosen = np.sort(search.rng.choice(len(u), LEARN_ON, replace=False))
        some, u, noise = inputs[chosen], utilities[chosen], known[chosen]
    scale = replace(scale, amplitude=Amplitude(reference=float(np.mean(growth(some)))))
    problem = problem_of(kernel, some, u, noise, scale=scale)
    low, high = limits(kernel, least_noise, scale.warp.slope(u), decays=decays)
    held = scale.prior.held(kernel)
    low[held] = high[held] = _stated(kernel, problem.form, scale.prior.noise)[held]
    mean, std = of_each(PRIOR, kernel)
    x, B = search.points(mean, std), search.curvature
    # A fixed order: a fit depends on its arguments alone, whatever was drawn before.
    order = np.random.default_rng(0).permutation(len(u))
    for size in _coarse_sizes(len(u)) if B is None else ():
        part = np.sort(order[:size])
        coarse = problem_of(
            kernel, some[part], u[part], noise[part], scale=scale, form=problem.form
        )
        B = coarse.rough_curvature if B is None else B
        end = _lowest([minimise(coarse, s, low, high, B=B, enough=ROUGHLY) for s in x])
        x, B = [end.x], coarse.double_curvature(end.B)
    B = problem.rough_curvature if B is None else B
    behind = scale.warp.log_slope(u) - search.worse
    best = _lowest([minimise(problem, s, low, high, B=B, behind=behind) for s in x])
    distances = problem.distances if some is inputs else None
    how: dict[str, Any] = {"measured": known, "scale": scale, "distances": distances}
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
    # 1e-4 of a log density is far below what compares forms, and above rounding on any CPU.
    return ends[int(np.argmax(height <= height.min() + 1e-4))]


def position(gp: GaussianProcess) -> Floats:
    """The x of a process, (t + 2,): a start for another fit."""
    x = _stated(gp.kernel, pairs_of(gp.kernel, gp.inputs).form, gp.noise)
    x[-1] = gp.scale.amplitude.decay
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
        growth: of their rows minus that of the reference, (a,).
        spread: standard deviation of the prior of each x, (t + 2,); infinite where it has none.
    """

    form: Kernel
    distances: Any
    terms: list[Term]
    v: Floats
    measured: Floats
    growth: Floats
    spread: Floats

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """The value at x and its gradient (RW06 Eq. 5.9); matrices are packed or triangular."""
        a, diagonal, theta = len(self.v), self._diagonal, x[:-2] + self._offset
        noise, decay = float(np.exp(x[-2])), float(x[-1])
        inverse_size = np.exp(decay * self.growth)  # one over the amplitude
        z, measured = self.v * inverse_size, self.measured * inverse_size**2
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
        # The log density of v, not of z: its Jacobian is the sum of decay * growth.
        gradient[-1] = alpha @ (self.growth * z) + on_diagonal @ (self.growth * measured)
        gradient[-1] -= self.growth.sum()
        t = (x - self.mean) / self.spread
        value = -log_density - decay * float(self.growth.sum()) + float(t @ t) / 2
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
    scale: Scale,
    form: Kernel | None = None,
) -> Problem:
    """The problem of a kernel; `form` says what x is relative to if not to these medians."""
    residuals = scale.residuals(utilities, inputs)
    _, spread = of_each(PRIOR, kernel)
    spread[scale.prior.held(kernel) | scale.prior.plain] = np.inf
    pairs = pairs_of(kernel, inputs)
    return Problem(
        form=form or pairs.form,
        distances=pairs.distances,
        terms=pairs.terms,
        v=scale.warp.forward(residuals),
        measured=(np.sqrt(measured) / scale.warp.slope(residuals)) ** 2,
        growth=growth(inputs) - scale.amplitude.reference,
        spread=spread,
    )


def condition_at_least(
    form: Kernel,
    x: Floats,
    inputs: Features,
    utilities: Floats,
    *,
    measured: Floats,
    scale: Scale,
    distances: Any = None,
) -> GaussianProcess:
    """Condition with these hyper-parameters, or with the smallest larger noise that works.

    With hyper-parameters learned on a part of the evaluations, the matrix of all of them can fail
    to be positive definite by rounding alone.
    """
    kernel, noise = form.with_theta(_absolute(form, x)), float(np.exp(x[-2]))
    scale = replace(scale, amplitude=replace(scale.amplitude, decay=float(x[-1])))
    how: dict[str, Any] = {"measured": measured, "scale": scale, "distances": distances}
    while True:
        try:
            return condition(kernel, inputs, utilities, noise=noise, **how)
        except InputError:
            if noise > 1:  # as large as all utilities: rounding is not the reason
                raise
            noise *= 10  # a few steps from 1e-7 to where rounding no longer matters


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


Function = Callable[[Floats], tuple[float, Floats]]
"""The value at x, and its gradient, (k,)."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a search has ended.

    Attributes:
        x: (k,).
        value: there.
        gradient: at the last x where the function was computed, (k,).
        B: the estimate of the second derivatives there, (k, k).
    """

    x: Floats
    value: float
    gradient: Floats
    B: Floats


def minimise(
    function: Function,
    start: Floats,
    low: Floats,
    high: Floats,
    *,
    B: Floats,
    behind: float = np.inf,
    enough: float = ENOUGH,
) -> Minimum:
    """The minimum near `start` within bounds, (k,) each.

    Args:
        function: to be minimised.
        start: where to begin.
        low: bound from below; a number whose bounds are equal is held.
        high: bound from above.
        B: positive definite estimate of the second derivatives, (k, k).
        behind: the search gives up where even ten times the promised decrease leaves the value
            above this.
        enough: twice the decrease that a full step promises, below which it is the last one.
    """
    x = np.clip(start, low, high)
    value, gradient = function(x)
    for _ in range(MOST_STEPS):
        free = np.flatnonzero(~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))))
        step = _newton_step(B, gradient, free)
        promised = float(-gradient @ step)
        if promised < enough:  # what would be left after this step need not be looked at
            return Minimum(np.clip(x + step, low, high), value - promised / 2, gradient, B)
        if value - 10 * promised > behind:
            break
        step *= min(1.0, LONGEST_STEP / float(np.abs(step).max()))
        path = partial(_path, x, step, low, high)
        found = _along(function, path, value, gradient)
        if found is None:  # nothing but rounding is left
            break
        new, value, new_gradient = found
        B = _update(B, new - x, new_gradient - gradient)
        x, gradient = new, new_gradient
    return Minimum(x, value, gradient, B)


def second_derivatives(function: Function, x: Floats, gradient: Floats, free: Ints) -> Floats:
    """Of a function by some of its numbers, (k, k) with k = len(free), by finite differences."""
    axes = DIFFERENCE * np.eye(len(x))[free]
    H = np.array([(function(x + e)[1] - gradient)[free] for e in axes]) / DIFFERENCE
    return np.asarray((H + H.T) / 2)


def _newton_step(B: Floats, gradient: Floats, free: Ints) -> Floats:
    step = np.zeros_like(gradient)
    if free.size:
        step[free] = -np.linalg.solve(B[np.ix_(free, free)], gradient[free])
    return step


def _path(x: Floats, step: Floats, low: Floats, high: Floats, part: float) -> Floats:
    return np.clip(x + part * step, low, high)


def _along(
    function: Function, path: Callable[[float], Floats], value: float, gradient: Floats
) -> tuple[Floats, float, Floats] | None:
    """x, value and gradient at a part of a path that decreases the value; None if there is none."""
    x = path(0.0)
    part = 1.0
    for _ in range(20):
        new = path(part)
        slope = float(gradient @ (new - x))
        new_value, new_gradient = function(new)
        if slope < 0 and new_value <= value + 1e-4 * slope:  # Nocedal & Wright Eq. 3.4
            return new, new_value, new_gradient
        # The minimum of the parabola through what is known.
        bend = new_value - value - slope
        part *= float(np.clip(-slope / (2 * bend), 0.1, 0.5)) if slope < 0 < bend else 0.25
    return None


def _update(B: Floats, s: Floats, y: Floats) -> Floats:
    """B after a step s that changed the gradient by y; damped, so that it stays positive."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if sBs <= 0:  # no step was made
        return B
    if sy < 0.2 * sBs:  # Nocedal & Wright, Procedure 18.2
        part = 0.8 * sBs / (sBs - sy)
        y = part * y + (1 - part) * Bs
        sy = 0.2 * sBs
    return np.asarray(B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy)


class Term(Protocol):
    """A part of the covariance matrix."""

    def evaluate(self, theta: Floats) -> tuple[Floats, Any]:
        """The packed matrix, (m,), and whatever `add_gradient` needs of it."""

    def add_gradient(self, gradient: Floats, theta: Floats, found: Any, inner: Floats, /) -> None:
        """Add the products of the derivatives by each theta with a packed matrix, (m,)."""


@dataclass(frozen=True, eq=False)
class ProductTerm:
    """variance * matrix * exp(-sum over k of gamma * distance).

    Attributes:
        variance: its index in theta; None for 1.
        gammas: index of each gamma in theta, (k,).
        distances: packed, (k, m).
        matrix: packed, (m,); None for ones.
    """

    variance: int | None
    gammas: Ints
    distances: Floats
    matrix: Floats | None

    def evaluate(self, theta: Floats) -> tuple[Floats, Floats]:
        """The packed matrix, (m,), twice."""
        scale = 1.0 if self.variance is None else float(np.exp(theta[self.variance]))
        gamma = -np.exp(theta[self.gammas])
        if len(gamma):
            found = gamma[0] * self.distances[0]  # BLAS takes longer for one or two rows
            for g, distance in zip(gamma[1:], self.distances[1:], strict=True):
                found += g * distance
            np.exp(found, out=found)
            found *= scale
        else:
            found = np.full(self.distances.shape[1], scale)
        if self.matrix is not None:
            found *= self.matrix
        return found, found

    def add_gradient(self, gradient: Floats, theta: Floats, found: Floats, inner: Floats) -> None:
        """Add to the entries of its variance and of its gammas."""
        weighted = found * inner
        if self.variance is not None:
            gradient[self.variance] += weighted.sum()
        if len(self.gammas):
            gradient[self.gammas] -= np.exp(theta[self.gammas]) * (self.distances @ weighted)


@dataclass(frozen=True, eq=False)
class KernelTerm:
    """A kernel that is no product of exponentials: by its own `gradient`.

    Attributes:
        kernel: with any theta.
        distances: what it needs of the coalitions.
        first: index of the first of its thetas.
    """

    kernel: Kernel
    distances: Any
    first: int

    @property
    def _own(self) -> slice:
        return slice(self.first, self.first + len(self.kernel.theta))

    def evaluate(self, theta: Floats) -> tuple[Floats, list[Floats]]:
        """The packed matrix, (m,), and its derivatives, (a, a) each."""
        K, derivatives = self.kernel.with_theta(theta[self._own]).gradient(self.distances)
        return pack(K), derivatives

    def add_gradient(self, gradient: Floats, _: Floats, found: list[Floats], inner: Floats) -> None:
        """Add to the entries of its thetas."""
        gradient[self._own] += [pack(dK) @ inner for dK in found]


def terms_of(kernel: Kernel, distances: Any, first: int = 0) -> list[Term]:
    """The terms of a kernel, given its distances and the index of the first of its thetas."""
    if isinstance(kernel, Sum):
        starts = first + np.cumsum([0, *(len(part.theta) for part in kernel.kernels)])
        parts = zip(kernel.kernels, distances, starts.tolist(), strict=False)
        return [term for part, d, start in parts for term in terms_of(part, d, start)]
    variance, inner = None, kernel
    if isinstance(kernel, Scaled):
        variance, inner = first, kernel.kernel
    factors = inner.kernels if isinstance(inner, Product) else (inner,)
    if not all(_is_known(factor) for factor in factors):
        return [KernelTerm(kernel, distances, first)]
    packed = [pack(d) for d in (distances if isinstance(inner, Product) else (distances,))]
    exponents = [p for factor, p in zip(factors, packed, strict=True) if not _is_linear(factor)]
    fixed = [p for factor, p in zip(factors, packed, strict=True) if _is_linear(factor)]
    gammas = np.arange(len(exponents)) + first + (variance is not None)
    stacked = np.array(exponents).reshape(-1, len(packed[0]))
    matrix = np.prod(fixed, axis=0) if fixed else None
    return [ProductTerm(variance, gammas, stacked, matrix)]


@dataclass(frozen=True, eq=False)
class Pairs:
    """What a kernel needs of all pairs of some coalitions, whatever its hyper-parameters.

    Attributes:
        kernel: with any hyper-parameters.
        distances: as the kernel has computed them.
    """

    kernel: Kernel
    distances: Any

    @cached_property
    def form(self) -> Kernel:
        """The kernel with every gamma at one over the median of its distances."""
        return self.kernel.at_median(self.distances)

    @cached_property
    def terms(self) -> list[Term]:
        """Of the matrix of the kernel."""
        return terms_of(self.kernel, self.distances)


def pairs_of(kernel: Kernel, inputs: Features) -> Pairs:
    """Computed once for the same coalitions, unless they are very many."""
    bare = kernel.with_theta(np.zeros_like(kernel.theta))

    def compute() -> Pairs:
        return Pairs(bare, bare.distances(inputs, inputs))

    # Several fits, and the draws around each, ask for the same pairs.
    return inputs.remember(("pairs", bare), compute) if len(inputs) <= REMEMBERED else compute()


def _is_linear(kernel: Kernel) -> bool:
    return type(kernel) in (Linear, Rows)


def _is_known(kernel: Kernel) -> bool:
    """Whether it is exp(-gamma distance) or linear; a subclass may evaluate as it likes."""
    own = isinstance(kernel, Exponential) and all(
        getattr(type(kernel), name) is getattr(Exponential, name)
        for name in ("distances", "evaluate", "gradient", "theta", "with_theta")
    )
    return own or _is_linear(kernel)


def pack(K: Floats) -> Floats:
    """The lower triangle of a symmetric matrix, column by column, (m,)."""
    return np.asarray(dtrttp(K, uplo="L")[0])


def diagonal_of_packed(a: int) -> Ints:
    """Where the diagonal is in a packed matrix, (a,)."""
    return np.append(0, np.cumsum(np.arange(a, 1, -1)))


def sample_around(
    gp: GaussianProcess, *, pairs: int, least_noise: float = 0.0
) -> list[tuple[float, GaussianProcess]]:
    """Processes with hyper-parameters drawn around the learned ones, with weights that sum to 1.

    Draws are symmetric pairs, the same every time. With more than LEARN_ON evaluations the
    hyper-parameters are known well enough: the only process is the given one. So it is if the
    posterior is to be plain. `least_noise` is that of `fit`.
    """
    free = np.flatnonzero(~gp.scale.prior.held(gp.kernel))
    if len(gp.utilities) > LEARN_ON or gp.scale.prior.plain:
        return [(1.0, gp)]
    measured = gp.measured * gp.slope**2  # in units of utility
    problem = problem_of(gp.kernel, gp.inputs, gp.utilities, measured, scale=gp.scale)
    centre = position(gp)
    value, root = _curvature_root(problem, centre, free)
    # The same draws every time, so that rounds differ by what was evaluated alone.
    normal = np.random.default_rng(0).standard_normal((pairs, len(free)))
    normal = np.concatenate([normal, -normal])
    slope, decays = gp.scale.warp.slope(gp.utilities), gp.scale.amplitude.decay != 0
    low, high = limits(gp.kernel, least_noise, slope, decays=decays)
    drawn = np.tile(centre, (len(normal), 1))
    drawn[:, free] = np.clip(centre[free] + normal @ root.T, low[free], high[free])
    how: dict[str, Any] = {"measured": measured, "scale": gp.scale}
    how["distances"] = problem.distances
    processes = [condition_at_least(problem.form, x, gp.inputs, gp.utilities, **how) for x in drawn]
    height = np.array([_height(problem, *each) for each in zip(drawn, processes, strict=True)])
    # Truncated: no single draw may dominate.
    log_weight = np.minimum(value - height + np.sum(normal**2, axis=1) / 2, MOST_WEIGHT)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    return list(zip(weight.tolist(), processes, strict=True))


def _curvature_root(problem: Problem, centre: Floats, free: Ints) -> tuple[float, Floats]:
    """The value at the minimum, and a root of the inverse of its second derivatives by free x."""
    value, gradient = problem(centre)
    scale, axes = np.linalg.eigh(second_derivatives(problem, centre, gradient, free))
    # At a bound, or by rounding, a direction can seem flat; with the prior it is not.
    scale = np.maximum(scale, 0.5 / float(problem.spread[free].max()) ** 2)
    return value, np.linalg.cholesky((axes / scale) @ axes.T)  # unique, whatever the axes


def _height(problem: Problem, x: Floats, gp: GaussianProcess) -> float:
    """The value of the problem at x, given the process with these hyper-parameters."""
    if gp.noise > 1.5 * float(np.exp(x[-2])):  # x itself is numerically impossible
        return 1e25
    residuals = gp.scale.residuals(gp.utilities, gp.inputs)
    t = (x - problem.mean) / problem.spread
    return gp.scale.warp.log_slope(residuals) - gp.log_likelihood + float(t @ t) / 2
