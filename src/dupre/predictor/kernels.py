"""What the predictor assumes of utilities before it has seen one: kernels, a mean, a noise.

    dupre.value(owners, utility, budget=60, kernel=Prior(kernel, mean=LinearInSize()))

A kernel is an immutable value: the covariance of any two coalitions. Its hyper-parameters are
positive; `theta` holds their logarithms. All that does not depend on them is computed once by
`distances` and passed to `evaluate` for every new theta, which makes fitting cheap.

A new kernel is one method: subclass `Exponential` and write `distance`, the square of a Hilbertian
distance, and exp(-gamma distance) is positive semi-definite (DUPRE App. B, "Proposition 14 in
Meunier et al. 2022"). Kernels are added, multiplied and scaled.

Utilities are divided by their standard deviation before a process is fitted, so variances of
kernels and the noise are relative to its square.

Notation: features a and b of ma and mb coalitions, a of them evaluated; matrices are (ma, mb); t
hyper-parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product
from operator import add, iadd, mul
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from dupre._types import Floats, Members, View
from dupre.checks import finite, positive, whole
from dupre.errors import InputError
from dupre.game.blocks import fill_blocks
from dupre.predictor.kernel_inputs import TILE, Features, by_tiles, tiles

__all__ = [
    "Constant",
    "Exponential",
    "Features",
    "Kernel",
    "Linear",
    "LinearInSize",
    "Membership",
    "Prior",
    "Product",
    "RawSlicedWasserstein",
    "Scaled",
    "Size",
    "SlicedWasserstein",
    "Sum",
    "paper",
    "paper_process",
]

ROLES = ("gamma", "variance")
"""Hyper-parameters of a kernel that can be held."""


class Kernel(ABC):
    """Covariance function of coalitions."""

    @property
    @abstractmethod
    def theta(self) -> Floats:
        """Logarithms of the hyper-parameters, (t,)."""

    @abstractmethod
    def with_theta(self, theta: Floats) -> Self:
        """The same kernel with other hyper-parameters."""

    @abstractmethod
    def distances(self, a: Features, b: Features) -> Any:
        """All that `evaluate` needs of the coalitions, in a form that only this kernel knows."""

    @abstractmethod
    def evaluate(self, distances: Any) -> Floats:
        """The covariance matrix, (ma, mb)."""

    def exponent(self, distances: Any) -> Floats | None:
        """The logarithm of the covariance matrix, (ma, mb), if the kernel computes it first."""
        return None

    @abstractmethod
    def gradient(self, distances: Any) -> tuple[Floats, list[Floats]]:
        """The covariance matrix and its derivative by each entry of theta."""

    @abstractmethod
    def diagonal(self, a: Features) -> Floats:
        """The variance of each coalition, (ma,), without the matrix."""

    @abstractmethod
    def at_median(self, distances: Any) -> Self:
        """The same kernel with every gamma at one over the median of its distances."""

    @property
    def label(self) -> str:
        """One word for what it compares."""
        return type(self).__name__.lower()

    @property
    def roles(self) -> list[str]:
        """What each entry of theta is: "gamma", "variance" or "minor variance"."""
        return ["gamma"] * len(self.theta)

    @property
    def open(self) -> frozenset[str]:
        """Which of p, rho and eta are left to the marginal likelihood."""
        return frozenset()

    def choose(self, p: int, rho: float, eta: float) -> Kernel:
        """The same kernel with those of p, rho and eta that it leaves open."""
        return self

    def __call__(self, a: Features, b: Features) -> Floats:
        """The covariance matrix, (ma, mb), of which a large one is computed tile by tile."""
        if len(a) * len(b) <= TILE**2:
            return self.evaluate(self.distances(a, b))
        if a is b:
            return by_tiles(len(a), lambda i, j: self(a[i], b[j]))
        K = np.empty((len(a), len(b)))
        fill_blocks(
            K,
            lambda tile: self.evaluate(self.distances(a[tile[0]], b[tile[1]])),
            list(product(tiles(len(a)), tiles(len(b)))),
        )
        return K

    def __add__(self, other: Kernel) -> Sum:
        return Sum(_parts(self, Sum) + _parts(other, Sum))

    def __mul__(self, other: Kernel | float) -> Kernel:
        if not isinstance(other, Kernel):
            return Scaled(self, other)
        return Product(_parts(self, Product) + _parts(other, Product))

    def __rmul__(self, variance: float) -> Scaled:
        return Scaled(self, variance)


@dataclass(frozen=True)
class Scaled(Kernel):
    """variance * kernel."""

    kernel: Kernel
    variance: float = 1.0

    def __post_init__(self) -> None:
        positive(self.variance, "the variance of a kernel")

    @property
    def label(self) -> str:
        return self.kernel.label

    @property
    def theta(self) -> Floats:
        return np.append(np.log(self.variance), self.kernel.theta)

    @property
    def roles(self) -> list[str]:
        return ["variance", *self.kernel.roles]

    def with_theta(self, theta: Floats) -> Self:
        inner = self.kernel.with_theta(theta[1:])
        return replace(self, kernel=inner, variance=float(np.exp(theta[0])))

    @property
    def open(self) -> frozenset[str]:
        return self.kernel.open

    def choose(self, p: int, rho: float, eta: float) -> Kernel:
        return replace(self, kernel=self.kernel.choose(p, rho, eta))

    def distances(self, a: Features, b: Features) -> Any:
        return self.kernel.distances(a, b)

    def exponent(self, distances: Any) -> Floats | None:
        exponent = self.kernel.exponent(distances)
        if exponent is not None:
            exponent += np.log(self.variance)
        return exponent

    def evaluate(self, distances: Any) -> Floats:
        if (exponent := self.exponent(distances)) is not None:
            return np.exp(exponent, out=exponent)
        return self.variance * self.kernel.evaluate(distances)

    def gradient(self, distances: Any) -> tuple[Floats, list[Floats]]:
        K, derivatives = self.kernel.gradient(distances)
        K = self.variance * K
        return K, [K, *(self.variance * dK for dK in derivatives)]

    def diagonal(self, a: Features) -> Floats:
        return self.variance * self.kernel.diagonal(a)

    def at_median(self, distances: Any) -> Self:
        return replace(self, kernel=self.kernel.at_median(distances))


@dataclass(frozen=True)
class Minor(Scaled):
    """The same for a term that most games need little or not at all.

    Its variance has a prior of its own, so that a few evaluations do not make it large.
    """

    @property
    def roles(self) -> list[str]:
        return ["minor variance", *self.kernel.roles]


@dataclass(frozen=True)
class _Composed(Kernel):
    """Several kernels under one operation; distances are a tuple with an entry for each."""

    kernels: tuple[Kernel, ...]

    @property
    def theta(self) -> Floats:
        return np.concatenate([kernel.theta for kernel in self.kernels])

    @property
    def roles(self) -> list[str]:
        return [role for kernel in self.kernels for role in kernel.roles]

    def with_theta(self, theta: Floats) -> Self:
        inner: list[Kernel] = []
        for kernel in self.kernels:
            own = len(kernel.roles)
            inner.append(kernel.with_theta(theta[:own]))
            theta = theta[own:]
        return replace(self, kernels=tuple(inner))

    @property
    def open(self) -> frozenset[str]:
        return frozenset().union(*(kernel.open for kernel in self.kernels))

    def choose(self, p: int, rho: float, eta: float) -> Kernel:
        return replace(self, kernels=tuple(k.choose(p, rho, eta) for k in self.kernels))

    def distances(self, a: Features, b: Features) -> tuple[Any, ...]:
        return tuple(kernel.distances(a, b) for kernel in self.kernels)

    def at_median(self, distances: tuple[Any, ...]) -> Self:
        pairs = zip(self.kernels, distances, strict=True)
        return replace(self, kernels=tuple(kernel.at_median(d) for kernel, d in pairs))

    def _evaluate_each(self, distances: tuple[Any, ...]) -> list[Floats]:
        return [k.evaluate(d) for k, d in zip(self.kernels, distances, strict=True)]

    def _gradients(self, distances: tuple[Any, ...]) -> list[tuple[Floats, list[Floats]]]:
        return [k.gradient(d) for k, d in zip(self.kernels, distances, strict=True)]


@dataclass(frozen=True)
class Sum(_Composed):
    """kernel + kernel + ..."""

    @property
    def label(self) -> str:
        return " + ".join(kernel.label for kernel in self.kernels)

    def evaluate(self, distances: tuple[Any, ...]) -> Floats:
        first, *others = self._evaluate_each(distances)
        return reduce(iadd, others[1:], first + others[0]) if others else first

    def gradient(self, distances: tuple[Any, ...]) -> tuple[Floats, list[Floats]]:
        parts = self._gradients(distances)
        return reduce(add, [K for K, _ in parts]), [dK for _, dKs in parts for dK in dKs]

    def diagonal(self, a: Features) -> Floats:
        return reduce(add, [kernel.diagonal(a) for kernel in self.kernels])


@dataclass(frozen=True)
class Product(_Composed):
    """kernel * kernel * ...; of exponentials: one exponential of a weighted sum of distances."""

    @property
    def label(self) -> str:
        return " × ".join(kernel.label for kernel in self.kernels)

    def exponent(self, distances: tuple[Any, ...]) -> Floats | None:
        parts = [k.exponent(d) for k, d in zip(self.kernels, distances, strict=True)]
        known = [part for part in parts if part is not None]
        return reduce(iadd, known) if len(known) == len(parts) else None

    def evaluate(self, distances: tuple[Any, ...]) -> Floats:
        if (exponent := self.exponent(distances)) is not None:
            return np.exp(exponent, out=exponent)
        return reduce(mul, self._evaluate_each(distances))

    def gradient(self, distances: tuple[Any, ...]) -> tuple[Floats, list[Floats]]:
        parts = self._gradients(distances)
        derivatives = []
        for i, (_, dKs) in enumerate(parts):
            others = [K for j, (K, _) in enumerate(parts) if j != i]
            derivatives += [reduce(mul, others, dK) for dK in dKs]
        return reduce(mul, [K for K, _ in parts]), derivatives

    def diagonal(self, a: Features) -> Floats:
        return reduce(mul, [kernel.diagonal(a) for kernel in self.kernels])


def _parts(kernel: Kernel, kind: type[_Composed]) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, kind) else (kernel,)


@dataclass(frozen=True)
class Exponential(Kernel):
    """exp(-gamma distance); a subclass writes `distance`."""

    gamma: float = 1.0

    def __post_init__(self) -> None:
        positive(self.gamma, "gamma")

    @abstractmethod
    def distance(self, a: Features, b: Features) -> Floats:
        """A squared Hilbertian distance, (ma, mb), zero between a coalition and itself."""

    @property
    def theta(self) -> Floats:
        return np.log([self.gamma])

    def with_theta(self, theta: Floats) -> Self:
        return replace(self, gamma=float(np.exp(theta[0])))

    def distances(self, a: Features, b: Features) -> Floats:
        return self.distance(a, b)

    def exponent(self, distances: Floats) -> Floats | None:
        # A subclass that evaluates in its own way is no exponential of its distances.
        own = type(self).evaluate is not Exponential.evaluate
        return None if own else np.asarray(-self.gamma * distances)

    def evaluate(self, distances: Floats) -> Floats:
        exponent = -self.gamma * distances
        return np.asarray(np.exp(exponent, out=exponent))

    def gradient(self, distances: Floats) -> tuple[Floats, list[Floats]]:
        K = self.evaluate(distances)
        return K, [-self.gamma * distances * K]

    def diagonal(self, a: Features) -> Floats:
        return np.ones(len(a))

    def at_median(self, distances: Floats) -> Self:
        positive = distances[np.tril(distances > 0)]  # each pair once
        return replace(self, gamma=1 / float(np.median(positive))) if positive.size else self


@dataclass(frozen=True)
class SlicedWasserstein(Exponential):
    """exp(-gamma SW_2^(2 rho)) or exp(-gamma SW_1^rho) between pooled rows (DUPRE Prop. 1, 2).

    Columns are standardised, and features and labels divided by the total spread of each.

    Args:
        gamma: one over the squared length-scale; learned unless `Prior(fixed=...)` holds it.
        p: order of the distance, 1 or 2; None leaves it to the marginal likelihood, as below.
        rho: exponent in [0, 1], or None.
        eta: weight of features against labels in (0, 1] (DUPRE Sec. 2.2), or None.
    """

    p: int | None = 2
    rho: float | None = 1.0
    eta: float | None = 0.5

    @property
    def label(self) -> str:
        return "data"

    @property
    def view(self) -> View | None:
        """How it looks at rows; None for dupre's way."""
        return None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p not in (1, 2, None):
            raise InputError(f"p must be 1 or 2, got {self.p}")
        if self.rho is not None and not 0 <= finite(self.rho, "rho") <= 1:
            raise InputError(f"rho must lie in [0, 1] for a valid kernel, got {self.rho}")
        if self.eta is not None and not 0 < finite(self.eta, "eta") <= 1:
            raise InputError(f"eta must lie in (0, 1], got {self.eta}")

    @property
    def open(self) -> frozenset[str]:
        return frozenset(name for name in ("p", "rho", "eta") if getattr(self, name) is None)

    def choose(self, p: int, rho: float, eta: float) -> Kernel:
        return replace(
            self,
            p=p if self.p is None else self.p,
            rho=rho if self.rho is None else self.rho,
            eta=eta if self.eta is None else self.eta,
        )

    def distance(self, a: Features, b: Features) -> Floats:
        p, rho, eta = self.p, self.rho, self.eta
        if p is None or rho is None or eta is None:
            raise InputError("p, rho and eta are open; `choose` them before the kernel is computed")

        def compute(a: Features, b: Features) -> Floats:
            x, y = (of.sketch(eta, p, self.view) for of in (a, b))
            distance = squared_euclidean(x, y) if p == 2 else cdist(x, y, "cityblock")
            if rho == 0.5:
                return np.sqrt(distance, out=distance)
            # 0 ** 0 is 1, but a coalition is at distance 0 from itself for any rho.
            return distance if rho == 1 else np.where(distance > 0, distance**rho, 0.0)

        return a.distances_to(b, self._at_unit, compute)

    @cached_property
    def _at_unit(self) -> Self:
        return replace(self, gamma=1.0)


@dataclass(frozen=True)
class RawSlicedWasserstein(SlicedWasserstein):
    """The same with rows as they were given: [eta X, (1 - eta) e(y)] (DUPRE Sec. 2.2).

    The meaning of eta then depends on the units and the number of the columns.

    Args:
        grid: L directions and K levels; None for what dupre takes for so many owners.
    """

    grid: tuple[int, int] | None = None

    @property
    def label(self) -> str:
        return "raw data"

    @property
    def view(self) -> View:
        return True, self.grid


@dataclass(frozen=True)
class Size(Exponential):
    """Squared exponential on log(1 + rows): for SW a data set and two copies of it are equal."""

    def distance(self, a: Features, b: Features) -> Floats:
        x, y = (np.log1p(of.total_rows) for of in (a, b))
        apart = x[:, None] - y
        return np.asarray(np.square(apart, out=apart))


@dataclass(frozen=True)
class Membership(Exponential):
    """Squared exponential on the membership vectors: the paper's GP-binary."""

    def distance(self, a: Features, b: Features) -> Floats:
        ours, theirs, n = a.memberships, b.memberships, a.members.shape[1]
        # One product instead of a product and two sums over the whole matrix.
        x, y = (np.ones((len(of), n + 2)) for of in (a, b))
        x[:, :n], x[:, n] = -2.0 * ours, np.square(ours).sum(axis=1)
        y[:, :n], y[:, n + 1] = theirs, np.square(theirs).sum(axis=1)
        found = np.asarray(x @ y.T)  # whole numbers: |A| + |B| - 2 |A ∩ B|
        return found if a.mixing is None else np.maximum(found, 0.0)  # but for mixed members


@dataclass(frozen=True)
class _Fixed(Kernel):
    """A kernel without hyper-parameters: what it computes of coalitions is its matrix."""

    @property
    def theta(self) -> Floats:
        return np.empty(0)

    def with_theta(self, theta: Floats) -> Self:
        return self

    def evaluate(self, distances: Floats) -> Floats:
        return distances

    def gradient(self, distances: Floats) -> tuple[Floats, list[Floats]]:
        return distances, []

    def at_median(self, distances: Floats) -> Self:
        return self


@dataclass(frozen=True)
class Linear(_Fixed):
    """(1 + |A ∩ B|) / (1 + n): a common level plus a contribution of each owner."""

    def distances(self, a: Features, b: Features) -> Floats:
        shared = a.memberships @ b.memberships.T
        shared += 1
        shared /= 1 + a.members.shape[1]
        return np.asarray(shared)

    def diagonal(self, a: Features) -> Floats:
        return np.asarray((1 + np.square(a.memberships).sum(axis=1)) / (1 + a.members.shape[1]))


@dataclass(frozen=True)
class Rows(_Fixed):
    """(1 + r s) / 2 for r and s parts of all rows: a common level, and a worth of every row."""

    def distances(self, a: Features, b: Features) -> Floats:
        x, y = (of.total_rows / of.rows.sum() for of in (a, b))
        return np.asarray((1 + np.outer(x, y)) / 2)

    def diagonal(self, a: Features) -> Floats:
        return np.asarray((1 + (a.total_rows / a.rows.sum()) ** 2) / 2)


def paper(
    eta: float | None = 0.5,
    *,
    p: int | None = None,
    rho: float | None = 1.0,
    directions: int = 50,
    levels: int = 50,
) -> Prior:
    """The paper's setting: the supervised sliced Wasserstein kernel alone, nothing added.

    Rows are as given, labels are embedded by multi-dimensional scaling of the distances between
    classes (DUPRE Sec. 2.2). Each default is what the paper says of its experiments.

    Args:
        eta: weight of features against labels: 0.5 (Sec. 4). None leaves it to the marginal
            likelihood, as Sec. 3 says; so do p and rho.
        p: order of the distance: by the likelihood (Sec. 3, "the norm").
        rho: its exponent: 1, as in Algorithm 1; Sec. 3 does not list it among what is chosen.
        directions: L of Algorithm 1. The paper states none; 50 is what POT takes.
        levels: K, at which quantiles are compared in the place of the integral of Algorithm 1.
    """
    grid = whole(directions, "directions", least=1), whole(levels, "levels", least=1)
    return paper_process(RawSlicedWasserstein(p=p, rho=rho, eta=eta, grid=grid))


def paper_process(kernel: Kernel) -> Prior:
    """The paper's Gaussian process with a kernel, such as its GP-binary with `Membership()`.

    Prior mean 0 and the posterior of Prop. 3, as Sec. 2 prints them; the variance of the kernel,
    gamma and the noise have the highest marginal likelihood (Sec. 3), without a prior on them.
    """
    return Prior(1.0 * kernel, mean=Constant(0.0), plain=True)


def squared_euclidean(x: Floats, y: Floats) -> Floats:
    """Squared distances of the rows of x, (ma, d), and y, (mb, d), by one matrix product.

    Between equal rows, the rest of the cancellation is set to exactly zero.
    """
    xx, yy = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
    squared = (-2.0 * x) @ y.T if len(x) <= len(y) else x @ (-2.0 * y).T  # the smaller is copied
    squared += xx[:, None]
    squared += yy
    squared[squared < 1e-12 * (xx.max(initial=0.0) + yy.max(initial=0.0))] = 0.0
    return squared


Mean = Callable[[Features], Floats]
"""The expected utilities, (m,), of m coalitions."""


@dataclass(frozen=True)
class Constant:
    """The same expected utility for all coalitions; `Constant(0.0)` is the paper's, as printed."""

    value: float

    def __call__(self, coalitions: Features) -> Floats:
        """Of m coalitions, (m,)."""
        return np.full(len(coalitions), float(self.value))


@dataclass(frozen=True)
class LinearInSize:
    """intercept + slope * log(1 + rows), by least squares on the evaluated coalitions."""

    intercept: float = 0.0
    slope: float = 0.0

    def __call__(self, coalitions: Features) -> Floats:
        """Of m coalitions, (m,)."""
        return np.asarray(self.intercept + self.slope * _size(coalitions))

    def learn(self, coalitions: Features, utilities: Floats) -> LinearInSize:
        """The line through these utilities, (a,)."""
        size = _size(coalitions)
        size = size - size.mean()
        slope = float(size @ utilities / (size @ size)) if np.ptp(size) > 0 else 0.0
        return LinearInSize(float(utilities.mean() - slope * _size(coalitions).mean()), slope)


@dataclass(frozen=True)
class Prior:
    """What `kernel=` takes where a kernel alone does not say enough.

    By default dupre does more than condition one process: it tries a curved scale of utilities,
    lets the spread depend on the number of rows, sets outliers aside, averages over
    hyper-parameters that explain the evaluations about as well, has weak priors on them, and widens
    intervals where left-out evaluations show them too narrow. With `plain=True` it does none of
    this. What is open is chosen by maximum marginal likelihood, and the posterior is that of DUPRE
    Prop. 3 as printed: the variance of predicted utilities does not contain the noise.

    Args:
        kernel: of `dupre.kernels`, or your own; None for dupre's. p, rho and eta that are None
            are chosen by the marginal likelihood.
        mean: expected utilities before any is seen: `Constant(0.5)`, `LinearInSize()`, or a
            callable that is given m coalitions as `Features` and returns (m,). If it has a method
            `learn(coalitions, utilities)`, what that returns is used. None for the
            utility of the largest evaluated coalition, or if `plain` the mean of all. No curved
            scale is tried around a stated mean.
        fixed: which hyper-parameters of the kernel keep their values: "gamma", "variance". All
            are learned by default.
        noise: variance of a utility around the process, held at this; None to learn it.
        plain: whether to condition one process and do nothing else.
    """

    kernel: Kernel | None = None
    mean: Mean | None = None
    fixed: tuple[str, ...] = ()
    noise: float | None = None
    plain: bool = False

    def __post_init__(self) -> None:
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise InputError(f"kernel must be a Kernel of dupre.kernels, got {self.kernel!r}")
        if self.mean is not None and not callable(self.mean):
            raise InputError(
                "mean must be Constant(...) or LinearInSize() of dupre.kernels, or a callable, got "
                f"{self.mean!r}"
            )
        names = (self.fixed,) if isinstance(self.fixed, str) else tuple(self.fixed)
        object.__setattr__(self, "fixed", names)
        if unknown := [name for name in names if name not in ROLES]:
            raise InputError(
                f"fixed can hold {' and '.join(map(repr, ROLES))}, got {unknown[0]!r}; p, rho and "
                "eta keep the values that a kernel states, noise= holds the noise"
            )
        if names and self.kernel is None:
            raise InputError("fixed= holds what a kernel states: give kernel= too")
        if self.noise is not None and not 0 < self.noise < np.inf:
            raise InputError(f"noise must be a positive number, got {self.noise!r}")

    def held(self, kernel: Kernel) -> Members:
        """Which of the hyper-parameters of a kernel, the noise and the decay keep their values."""
        noise = self.noise is not None
        return np.array([*(role in self.fixed for role in kernel.roles), noise, False], dtype=bool)

    def learn_mean(self, coalitions: Features, utilities: Floats) -> Prior:
        """With the mean that these utilities, (a,), suggest, if it is one that learns."""
        learn = getattr(self.mean, "learn", None)
        return self if learn is None else replace(self, mean=learn(coalitions, utilities))

    def expect(self, coalitions: Features) -> Floats:
        """The stated mean of m coalitions, (m,); zero if none is stated.

        Raises:
            InputError: the user's mean gives something else.
        """
        if self.mean is None:
            return np.zeros(len(coalitions))
        expected, asked = np.asarray(self.mean(coalitions), dtype=np.float64), (len(coalitions),)
        if expected.shape != asked or not np.isfinite(expected).all():
            got = "NaN or infinity" if expected.shape == asked else f"shape {expected.shape}"
            raise InputError(
                f"mean must give one finite number for each of {len(coalitions)} coalitions, got "
                f"{got}"
            )
        return expected

    @property
    def text(self) -> str:
        """What was asked for, in words; nothing if all is dupre's choice."""
        parts = [f"kernel {self.kernel.label}"] if self.kernel is not None else []
        if self.mean is not None:
            parts.append(f"prior mean {_describe(self.mean)}")
        parts += [f"{name} fixed" for name in self.fixed]
        if self.noise is not None:
            parts.append(f"noise {self.noise:g}")
        if self.plain:
            parts.append("plain posterior (one process, nothing averaged or widened)")
        return ", ".join(parts)


def _size(coalitions: Features) -> Floats:
    return np.asarray(np.log1p(coalitions.total_rows))


def _describe(mean: Mean) -> str:
    if isinstance(mean, Constant):
        return f"{mean.value:g}"
    if isinstance(mean, LinearInSize):
        return "linear in log(1 + rows)"
    return getattr(mean, "__name__", type(mean).__name__)
