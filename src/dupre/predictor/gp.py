"""Exact Gaussian process regression of utilities on coalitions, and what it predicts.

Other than in a general library, the posterior of any linear functional of b predictions costs O(b²)
kernel entries but only O(b) memory: no b x b matrix is built. Of more than EXACT_UP_TO coalitions
`Landmarks` need fewer entries of the kernel. Module `fitting` learns the hyper-parameters.

Notation (docs/notation.md): a evaluated coalitions A, b predicted ones B, W (f, b) functionals.
z = warp(u - mean) / amplitude; K = kernel matrix, L the Cholesky factor of that of the evaluated
with noise on the diagonal; l landmarks C among the b; P the posterior covariance of the z of the b.
RW06 is Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dtrmm, dtrsm
from scipy.linalg.lapack import dtrtri

from dupre._types import Floats, Ints, Members
from dupre.errors import InputError
from dupre.game.blocks import compute_blocks, split
from dupre.predictor.kernel_inputs import Features, tiles
from dupre.predictor.kernels import Kernel, Linear, Membership, Prior, Scaled, Sum
from dupre.predictor.warp import Warp

SMALL = 64
"""Side of a triangular matrix from which on it is inverted by matrix products of its parts."""

# All coalitions of twelve owners. Of more, all pairs take longer than half a second a round.
EXACT_UP_TO = 4_096
"""Predicted coalitions up to which covariances of functionals are summed over all pairs of them."""

# Standard deviations of values then differ by half a percent at most (benchmarks/scale.py).
COUNT = 512
"""How many landmarks."""

SAMPLE = 2_048
"""Coalitions that stand for all in sums of what landmarks do not explain."""

MEASURED = 512
"""Coalitions on which it is measured how much of their covariances landmarks miss."""

NEARLY_ALL = 0.25
"""Share of all coalitions from which on all of them are taken."""

OWNERS_AT_ONCE = 4
"""Owners of one factor of the Kronecker product: 16 subsets, few enough for a quick product."""


@dataclass(frozen=True)
class Amplitude:
    """The spread of utilities by number of rows: exp(-decay * (growth - reference)).

    A model trained on few rows depends more on which rows they are. Utilities divided by the
    amplitude have the same spread for coalitions of all sizes; the noise and the variances of the
    kernel refer to them.

    Attributes:
        decay: 0 if coalitions of all sizes have the same spread, positive if small ones have more.
        reference: growth at which the amplitude is 1.
    """

    decay: float = 0.0
    reference: float = 0.0

    def __call__(self, inputs: Features) -> Floats:
        """The amplitude of m coalitions, (m,)."""
        return np.asarray(np.exp(-self.decay * (growth(inputs) - self.reference)))


def growth(inputs: Features) -> Floats:
    """Root of the rows of m coalitions, (m,): log n from a mean owner to all n.

    Where rows are alike, the spread falls as a power of the rows; where owners hold different
    labels, exponentially. Small and large coalitions do not tell which: the root lies between.
    """
    n = len(inputs.rows)
    return np.asarray(np.sqrt(inputs.total_rows / inputs.rows.sum()) * np.log(n) / (1 - n**-0.5))


def of_most_rows(inputs: Features) -> Floats:
    """Weights of a mean over the coalitions with the most rows, (m,)."""
    largest = inputs.total_rows == inputs.total_rows.max()
    return np.asarray(largest / largest.sum())


STRAIGHT, NO_PRIOR = Warp(), Prior()
"""Utilities as they are, and nothing assumed of them."""


@dataclass(frozen=True)
class Scale:
    """How utilities become the z that a process sees: z = warp(u - mean) / amplitude.

    Attributes:
        warp: makes their distribution more like a normal one.
        amplitude: the spread of coalitions of each size.
        prior: what was assumed: a mean, and whether predictions are those of the process alone.
    """

    warp: Warp = STRAIGHT
    amplitude: Amplitude = Amplitude()
    prior: Prior = NO_PRIOR

    def residuals(self, utilities: Floats, inputs: Features) -> Floats:
        """Utilities minus the stated mean, (m,)."""
        return utilities - self.prior.expect(inputs)

    def forward(self, utilities: Floats, inputs: Features) -> Floats:
        """The z of utilities, (m,)."""
        return self.warp.forward(self.residuals(utilities, inputs)) / self.amplitude(inputs)

    def slope(self, utilities: Floats, inputs: Features) -> Floats:
        """du/dz at utilities, (m,)."""
        return self.warp.slope(self.residuals(utilities, inputs)) * self.amplitude(inputs)

    def back(self, mean: Floats, variance: Floats, inputs: Features) -> tuple[Floats, Floats]:
        """Mean of u and slope du/dz of coalitions whose z is normal, each (m,)."""
        size = self.amplitude(inputs)
        utility, slope = self.warp.back(mean * size, variance * size**2)
        return utility + self.prior.expect(inputs), slope * size


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """A kernel conditioned on utilities. Make one with `condition` or `fitting.fit`.

    Attributes:
        kernel: with its learned hyper-parameters, in units of z.
        noise: variance of z around the process, in addition to what was measured.
        measured: variance of each evaluated z as known from repeated trainings, (a,).
        inputs: the evaluated coalitions, length a.
        utilities: theirs, (a,).
        scale: how u becomes z.
        L: lower Cholesky factor of K + noise I + diag(measured), (a, a).
        alpha: (K + noise I + diag(measured))^-1 z, (a,).
        log_likelihood: the log marginal likelihood of the utilities, plus the log prior of learned
            hyper-parameters; compares forms of kernel.
        learned: where the search for hyper-parameters has ended, its x; a start for another one.
        curvature: second derivatives of the negative log density there, as it has estimated them.
    """

    kernel: Kernel
    noise: float
    measured: Floats
    inputs: Features
    utilities: Floats
    scale: Scale
    L: Floats
    alpha: Floats
    log_likelihood: float
    learned: Floats | None = None
    curvature: Floats | None = None

    @property
    def z(self) -> Floats:
        """The utilities as the process sees them, (a,)."""
        return self.scale.forward(self.utilities, self.inputs)

    @property
    def slope(self) -> Floats:
        """du/dz at the evaluated utilities, (a,)."""
        return self.scale.slope(self.utilities, self.inputs)

    @property
    def noise_of_predicted(self) -> float:
        """Variance of z around the process that predictions include: DUPRE Prop. 3 has none."""
        return 0.0 if self.scale.prior.plain else self.noise

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
        known = np.einsum("ab,ab->b", explained, explained)
        return np.asarray(np.maximum(self.kernel.diagonal(inputs) - known, 0.0))

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
        if self.scale.warp.curved:  # otherwise it does not matter
            explained = self.explain(K) if explained is None else explained
            variance = self.remaining(explained, inputs) + self.noise
        return self.scale.back(self.alpha @ K, variance, inputs)

    def observed_weights(self, inner: Floats, W: Floats) -> Floats:
        """How much functionals W, (f, b), of predicted means change with each utility, (f, a).

        To first order, at the learned hyper-parameters. Unless a mean is stated, it follows the
        utilities: a change of all of them by the same amount changes every prediction by it. The
        centre of a straight warp is that of the largest coalition.

        Args:
            inner: L^-1 K_AB (W du/dz)^T, (a, f).
            W: the functionals.
        """
        direct = solve_triangular(self.L, inner, lower=True, trans="T", check_finite=False)
        direct = direct.T / self.slope
        mean = self.scale.prior.mean
        if mean is not None and not hasattr(mean, "learn"):
            return np.asarray(direct)
        rest = W.sum(axis=1) - direct.sum(axis=1)
        centre = np.full(len(self.utilities), 1 / len(self.utilities))
        if mean is None and not (self.scale.warp.curved or self.scale.prior.plain):
            centre = of_most_rows(self.inputs)
        return np.asarray(direct + rest[:, None] * centre)


def condition(
    kernel: Kernel,
    inputs: Features,
    utilities: Floats,
    *,
    noise: float,
    measured: Floats | None = None,
    scale: Scale | None = None,
    distances: Any = None,
) -> GaussianProcess:
    """Gaussian process with these hyper-parameters given utilities, (a,) (RW06 Alg. 2.1).

    `measured` is the variance of each utility as known from repeated trainings, (a,); `distances`
    are those of the kernel, if they are known.
    """
    scale = scale or Scale()
    z = scale.forward(utilities, inputs)
    known = np.zeros(len(z)) if measured is None else measured
    measured_z = (np.sqrt(known) / scale.slope(utilities, inputs)) ** 2
    K = kernel(inputs, inputs) if distances is None else np.array(kernel.evaluate(distances))
    K[np.diag_indices_from(K)] += noise + measured_z  # RW06 Alg. 2.1 l. 2
    L = cholesky_factor(K)
    if L is None:
        raise InputError(
            f"the kernel {kernel.label!r} is not positive semi-definite: with noise {noise:g} the "
            f"smallest eigenvalue of its matrix of {len(z)} coalitions is "
            f"{float(np.linalg.eigvalsh(K)[0]):.3g}; raise the noise, or take a valid kernel"
        )
    alpha = cho_solve((L, True), z, check_finite=False)
    # The density of u, not of z: that of z times dz/du.
    density = log_likelihood(L, alpha, z)
    density += scale.warp.log_slope(scale.residuals(utilities, inputs))
    density -= float(np.log(scale.amplitude(inputs)).sum())
    return GaussianProcess(kernel, noise, measured_z, inputs, utilities, scale, L, alpha, density)


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


@dataclass(frozen=True, eq=False)
class Posterior:
    """The prediction of b coalitions and of f linear functionals of them by one process.

    Attributes:
        gp: the process.
        inputs: the b coalitions.
        W: the functionals, (f, b).
        mean: of the utilities, (b,).
        slope: du/dz at the mean, (b,).
        inner: L^-1 K_AB (W slope)^T, (a, f).
        explained: L^-1 K_AB, (a, b); None for more than EXACT_UP_TO coalitions.
    """

    gp: GaussianProcess
    inputs: Features
    W: Floats
    mean: Floats
    slope: Floats
    inner: Floats
    explained: Floats | None

    @cached_property
    def variance(self) -> Floats:
        """Of the z of each coalition, without noise, (b,)."""
        every = np.arange(len(self.inputs))
        parts = [self.variance_of(every[columns]) for columns in tiles(len(every))]
        return np.concatenate([np.empty(0), *parts])

    def variance_of(self, index: Ints) -> Floats:
        """Of the z of some coalitions, without noise, (len(index),)."""
        return self.gp.remaining(self.explain(index), self.inputs[index])

    def explain(self, index: Ints) -> Floats:
        """L^-1 K_AB of some coalitions, (a, len(index))."""
        if self.explained is not None:
            every = np.array_equal(index, np.arange(len(self.inputs)))
            return self.explained if every else np.asarray(self.explained[:, index])
        key = index.tobytes()
        if key not in self._latest:  # one answer is kept, for each may fill much memory
            self._latest.clear()
            self._latest[key] = self.gp.explain(self.gp.kernel(self.gp.inputs, self.inputs[index]))
        return self._latest[key]

    @cached_property
    def _latest(self) -> dict[bytes, Floats]:
        """What `explain` was asked for last, for it is asked several times in a row."""
        return {}

    @property
    def std(self) -> Floats:
        """Standard deviation of each utility if it were evaluated, noise included, (b,)."""
        return np.asarray(np.sqrt(self.variance + self.gp.noise_of_predicted) * self.slope)

    def variance_of_utilities(self, index: Ints) -> Floats:
        """Of some utilities if they were evaluated, noise included, (len(index),)."""
        z = self.variance_of(index) + self.gp.noise_of_predicted
        return np.asarray(z * self.slope[index] ** 2)

    def functional_covariance(self) -> Floats:
        """Covariance of W @ u, (f, f), noise of the predicted utilities included.

        Of more than EXACT_UP_TO coalitions by `Landmarks`.
        """
        WJ, noise = self.W * self.slope, self.gp.noise_of_predicted
        if self.landmarks is not None:
            product, rest = self.landmarks.product, self.landmarks.covariance_of_rest(self)
            return np.asarray(product.T @ product + rest + noise * WJ @ WJ.T)
        covariance = WJ @ self._prior_product + noise * WJ @ WJ.T - self.inner.T @ self.inner
        return np.asarray((covariance + covariance.T) / 2)  # rounding makes it unsymmetric

    @cached_property
    def _prior_product(self) -> Floats:
        """K_BB (W slope)^T, (b, f)."""
        return multiply(self.gp.kernel, self.inputs, self.inputs, (self.W * self.slope).T)

    def observed_weights(self) -> Floats:
        """How much W @ mean changes with each evaluated utility, (f, a), to first order."""
        return self.gp.observed_weights(self.inner, self.W)

    def functional_variance(self) -> Floats:
        """Variance of each of the functionals, (f,)."""
        return np.maximum(np.diag(self.functional_covariance()), 0.0)

    def cross(self, index: Ints) -> Floats:
        """Posterior covariance of the z of some coalitions with the functionals, (m, f)."""
        if self.landmarks is not None:
            return self.landmarks.cross(self, index)
        return np.asarray(self._prior_product[index] - self.explain(index).T @ self.inner)

    @cached_property
    def landmarks(self) -> Landmarks | None:
        """For more than EXACT_UP_TO coalitions."""
        return find_landmarks(self) if self.explained is None else None

    @cached_property
    def sample(self) -> tuple[Ints, Floats]:
        """Coalitions that stand for all in sums, and for how many each stands, (m,) each."""
        if self.explained is not None:
            return np.arange(len(self.inputs)), np.ones(len(self.inputs))
        return sample_by_weight(np.einsum("fb,fb->b", self.W, self.W), SAMPLE)

    def covariance(self, rows: Ints, columns: Ints) -> Floats:
        """Posterior covariance of the z of some coalitions with those of others."""
        prior = self.gp.kernel(self.inputs[rows], self.inputs[columns])
        explained = self.explain(columns)
        return np.asarray(prior - self.explain(rows).T @ explained)


@dataclass(frozen=True, eq=False)
class Landmarks:
    """P through the landmarks, and the rest of each coalition alone.

    P = P_BC P_CC^-1 P_CB + what remains once the landmarks C are known, of which the diagonal is
    kept (the fully independent training conditional, Snelson & Ghahramani 2006). It costs O(b l)
    kernel entries instead of O(b²). Landmarks are drawn by their weight in the functionals.

    What remains between different coalitions matters more with more evaluations: without it,
    standard deviations of values would be several percent too small after a few hundred.
    `covariance_of_rest` estimates it for the values; the choice of coalitions does without.

    Attributes:
        index: the landmarks among the b, (l,).
        explained: of the landmarks by the a evaluated coalitions, as `Posterior.explain`, (a, l).
        L: lower Cholesky factor of P_CC, (l, l).
        product: L^-1 P_CB (W du/dz)^T, (l, f).
    """

    index: Ints
    explained: Floats
    L: Floats
    product: Floats

    def explain(self, posterior: Posterior, index: Ints) -> tuple[Floats, Floats]:
        """L^-1 P of the landmarks with some coalitions, (l, m), and what remains.

        That is the variance of the z of each that no landmark explains, (m,).
        """
        prior = posterior.gp.kernel(posterior.inputs[self.index], posterior.inputs[index])
        P = prior - self.explained.T @ posterior.explain(index)
        through = solve_triangular(self.L, P, lower=True, check_finite=False)
        rest = posterior.variance_of(index) - np.einsum("lb,lb->b", through, through)
        return through, np.maximum(rest, 0.0)

    def cross(self, posterior: Posterior, index: Ints) -> Floats:
        """Covariance of the z of some coalitions with the functionals, (len(index), f)."""
        own = (posterior.W[:, index] * posterior.slope[index]).T
        through, rest = self.explain(posterior, index)
        return np.asarray(through.T @ self.product + rest[:, None] * own)

    def covariance_of_rest(self, posterior: Posterior) -> Floats:
        """The part of the covariance of the functionals that no landmark explains, (f, f).

        Both sums over all coalitions are estimated from samples: of the rest of each coalition
        alone, and of how much `cross` is off. For the second, covariances of MEASURED coalitions
        with the functionals are computed in full. The sum of both is a covariance: directions in
        which the estimate is negative count as zero.
        """
        W = posterior.W * posterior.slope
        index, times = posterior.sample
        _, rest = self.explain(posterior, index)
        alone = (W[:, index] * (times * rest)) @ W[:, index].T
        index, times = sample_by_weight(np.linalg.norm(posterior.W, axis=0), MEASURED)
        full = multiply(posterior.gp.kernel, posterior.inputs[index], posterior.inputs, W.T)
        full -= posterior.explain(index).T @ posterior.inner
        missed = (W[:, index] * times) @ (full - self.cross(posterior, index))
        # A sum of samples need not be a covariance: directions below zero count as zero.
        scale, axes = np.linalg.eigh(alone + (missed + missed.T) / 2)
        return np.asarray((axes * np.maximum(scale, 0.0)) @ axes.T)


def find_landmarks(posterior: Posterior) -> Landmarks:
    """Landmarks of a posterior; most are the same once some of its coalitions are evaluated."""
    W = posterior.W
    weight = np.linalg.norm(W, axis=0)
    count = min(COUNT, int(np.count_nonzero(weight)))
    with np.errstate(divide="ignore"):  # without replacement: Efraimidis & Spirakis 2006
        turn = -np.log(_uniform(posterior.inputs.members)) / weight
    index = np.sort(np.argsort(turn, kind="stable")[:count])
    chosen, explained = posterior.inputs[index], posterior.explain(index)
    P = posterior.gp.kernel(chosen, chosen)
    prior = float(np.mean(np.diag(P)))
    P -= explained.T @ explained
    # Rounding is relative to the prior variance, of which little may remain.
    P[np.diag_indices_from(P)] += 1e-9 * float(np.mean(np.diag(P))) + 1e-13 * prior
    L = cholesky(P, lower=True, check_finite=False)
    product = multiply(posterior.gp.kernel, chosen, posterior.inputs, (W * posterior.slope).T)
    product -= explained.T @ posterior.inner
    product = solve_triangular(L, product, lower=True, check_finite=False)
    return Landmarks(index, explained, L, product)


def _uniform(members: Members) -> Floats:
    """A number in (0, 1) for each of m coalitions, (m,): the same whatever stands beside it.

    The owners of a coalition are mixed as SplitMix64 does it (Steele et al. 2014).
    """
    owners = np.random.default_rng(0).integers(2**63, size=members.shape[1], dtype=np.uint64)
    bits = members.astype(np.uint64) @ owners
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(((bits >> np.uint64(11)) + 0.5) / 2.0**53)


def sample_by_weight(weight: Floats, count: int) -> tuple[Ints, Floats]:
    """Up to `count` indices in steps of equal weight, (b,), and for how many each stands, (m,).

    The sum of weight times anything is estimated without bias by that of the sample.
    """
    if len(weight) <= count:
        return np.arange(len(weight)), np.ones(len(weight))
    until = np.cumsum(weight)
    index = np.searchsorted(until, (np.arange(count) + 0.5) / count * until[-1])
    return index, until[-1] / count / weight[index]


def multiply(kernel: Kernel, a: Features, b: Features, V: Floats) -> Floats:
    """K_ab V, (ma, f), without every entry where a kernel allows it.

    The linear kernel has rank n + 1. The membership kernel is a product over owners: its matrix of
    all coalitions is a Kronecker product of small ones, each for a few of the owners. All else is
    computed tile by tile; of a symmetric matrix one triangle of tiles.
    """
    if isinstance(kernel, Sum):
        parts = [multiply(part, a, b, V) for part in kernel.kernels]
        return reduce(np.add, parts)
    if isinstance(kernel, Scaled):
        return kernel.variance * multiply(kernel.kernel, a, b, V)
    n = b.members.shape[1]
    if type(kernel) is Linear:
        shared = a.memberships @ (b.memberships.T @ V)
        return np.asarray((V.sum(axis=0) + shared) / (1 + n))
    if type(kernel) is Membership and b.mixing is None and len(b) >= NEARLY_ALL * 2.0**n:
        return _multiply_all(kernel.gamma, a.members, b.members, V)
    if a is b:
        return _multiply_symmetric(kernel, a, V)

    def multiply_tile(some: slice) -> Floats:
        K = kernel(b[some], a)
        return np.asarray(K.T @ V[some])

    products = compute_blocks(multiply_tile, tiles(len(b)))
    return reduce(np.add, products, np.zeros((len(a), V.shape[1])))


def _multiply_symmetric(kernel: Kernel, a: Features, V: Floats) -> Floats:
    """K_aa V, (ma, f), of which one triangle of tiles is computed."""
    V = np.ascontiguousarray(V)
    found = np.zeros_like(V)
    parts = [(some, a[some]) for some in tiles(len(a))]  # taken once, used in many tiles

    def multiply_tile(i: int, j: int) -> list[tuple[slice, Floats]]:
        (rows, first), (columns, second) = parts[i], parts[j]
        tile = kernel(first, second)
        product = [(rows, tile @ V[columns])]
        return product if i == j else [*product, (columns, tile.T @ V[rows])]

    pairs = list(combinations_with_replacement(range(len(parts)), 2))
    for products in compute_blocks(lambda pair: multiply_tile(*pair), pairs):
        for where, product in products:
            found[where] += product
    return found


def _multiply_all(gamma: float, a: Members, b: Members, V: Floats) -> Floats:
    """The product of exp(-gamma |A △ B|) with V, zero for all coalitions that are not in b."""
    n, f = b.shape[1], V.shape[1]
    codes = _codes(b)
    every = np.array([np.bincount(codes, column, 2**n) for column in V.T], dtype=np.float64)
    for part in split(n, OWNERS_AT_ONCE):  # the first owners are the lowest digits
        subsets = 2 ** (part.stop - part.start)
        product = every.reshape(-1, subsets) @ _between_subsets(gamma, part.stop - part.start)
        every = product.reshape(f, -1, subsets).swapaxes(1, 2)  # then they are the highest
    return np.asarray(every.reshape(f, -1)[:, _codes(a)].T)


def _between_subsets(gamma: float, n: int) -> Floats:
    """The membership kernel of all subsets of n owners, (2^n, 2^n)."""
    codes = np.arange(2**n)
    return np.asarray(np.exp(-gamma * np.bitwise_count(codes[:, None] ^ codes)))


def _codes(members: Members) -> Ints:
    """The number whose binary digits are the members, (m,)."""
    return np.asarray(members @ (1 << np.arange(members.shape[1])))
