"""Covariances of two sets of coalitions.

A kernel is an immutable value. Its hyper-parameters are positive; `theta` holds their logarithms.
All that does not depend on them is computed once by `distances` and passed to `evaluate` for every
new theta, which makes fitting cheap.

A new kernel is one method: subclass `Exponential` and write `distance`, the square of a Hilbertian
distance, and exp(-gamma distance) is positive semi-definite (DUPRE App. B, "Proposition 14 in
Meunier et al. 2022").

Notation: features a and b of ma and mb coalitions; matrices are (ma, mb); t hyper-parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from dupre._types import Floats
from dupre.errors import InputError
from dupre.predictor.kernel_inputs import Features


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
        """What each entry of theta is: "gamma" or "variance"."""
        return ["gamma"] * len(self.theta)

    def __call__(self, a: Features, b: Features) -> Floats:
        return self.evaluate(self.distances(a, b))

    def __add__(self, other: Kernel) -> Sum:
        return Sum(_parts(self, Sum) + _parts(other, Sum))

    def __mul__(self, other: Kernel | float) -> Kernel:
        if not isinstance(other, Kernel):
            return Scaled(self, other)
        return Product(_parts(self, Product) + _parts(other, Product))

    def __rmul__(self, variance: float) -> Scaled:
        return Scaled(self, variance)


@dataclass(frozen=True)
class Exponential(Kernel):
    """exp(-gamma distance); a subclass writes `distance`."""

    gamma: float = 1.0

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

    def evaluate(self, distances: Floats) -> Floats:
        return np.asarray(np.exp(-self.gamma * distances))

    def gradient(self, distances: Floats) -> tuple[Floats, list[Floats]]:
        K = self.evaluate(distances)
        return K, [-self.gamma * distances * K]

    def diagonal(self, a: Features) -> Floats:
        return np.ones(len(a))

    def at_median(self, distances: Floats) -> Self:
        positive = distances[distances > 0]
        return replace(self, gamma=1 / float(np.median(positive))) if positive.size else self


@dataclass(frozen=True)
class SlicedWasserstein(Exponential):
    """exp(-gamma SW_2^(2 rho)) or exp(-gamma SW_1^rho) between pooled rows (DUPRE Prop. 1, 2).

    Args:
        p: order of the distance, 1 or 2.
        rho: exponent in [0, 1].
        eta: weight of features against labels in (0, 1] (DUPRE Sec. 2.2).
    """

    p: int = 2
    rho: float = 1.0
    eta: float = 0.5

    @property
    def label(self) -> str:
        return "data"

    def __post_init__(self) -> None:
        if self.p not in (1, 2):
            raise InputError(f"p must be 1 or 2, got {self.p}")
        if not 0 <= self.rho <= 1:
            raise InputError(f"rho must lie in [0, 1] for a valid kernel, got {self.rho}")
        if not 0 < self.eta <= 1:
            raise InputError(f"eta must lie in (0, 1], got {self.eta}")

    def distance(self, a: Features, b: Features) -> Floats:
        x, y = a.sketch(self.eta, self.p), b.sketch(self.eta, self.p)
        distance = squared_euclidean(x, y) if self.p == 2 else cdist(x, y, "cityblock")
        # 0 ** 0 is 1, but a coalition is at distance 0 from itself for any rho.
        return distance if self.rho == 1 else np.where(distance > 0, distance**self.rho, 0.0)


@dataclass(frozen=True)
class Size(Exponential):
    """Squared exponential on log(1 + rows): for SW a data set and two copies of it are equal."""

    def distance(self, a: Features, b: Features) -> Floats:
        x, y = np.log1p(a.members @ a.rows), np.log1p(b.members @ b.rows)
        return np.asarray((x[:, None] - y) ** 2)


@dataclass(frozen=True)
class Membership(Exponential):
    """Squared exponential on the membership vectors: the paper's GP-binary."""

    def distance(self, a: Features, b: Features) -> Floats:
        return squared_euclidean(a.members.astype(np.float64), b.members.astype(np.float64))


@dataclass(frozen=True)
class Linear(Kernel):
    """(1 + |A ∩ B|) / (1 + n): a common level plus a contribution of each owner."""

    @property
    def theta(self) -> Floats:
        return np.empty(0)

    def with_theta(self, theta: Floats) -> Self:
        return self

    def distances(self, a: Features, b: Features) -> Floats:
        shared = a.members.astype(np.float64) @ b.members.T.astype(np.float64)
        return np.asarray((1 + shared) / (1 + a.members.shape[1]))

    def evaluate(self, distances: Floats) -> Floats:
        return distances

    def gradient(self, distances: Floats) -> tuple[Floats, list[Floats]]:
        return distances, []

    def diagonal(self, a: Features) -> Floats:
        return np.asarray((1 + a.members.sum(axis=1)) / (1 + a.members.shape[1]))

    def at_median(self, distances: Floats) -> Self:
        return self


@dataclass(frozen=True)
class Scaled(Kernel):
    """variance * kernel."""

    kernel: Kernel
    variance: float = 1.0

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

    def distances(self, a: Features, b: Features) -> Any:
        return self.kernel.distances(a, b)

    def evaluate(self, distances: Any) -> Floats:
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
        ends = np.cumsum([len(kernel.theta) for kernel in self.kernels])
        parts = np.split(theta, ends[:-1])
        inner = (kernel.with_theta(part) for kernel, part in zip(self.kernels, parts, strict=True))
        return replace(self, kernels=tuple(inner))

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
        return reduce(add, self._evaluate_each(distances))

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

    def evaluate(self, distances: tuple[Any, ...]) -> Floats:
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


def squared_euclidean(x: Floats, y: Floats) -> Floats:
    """Squared distances of the rows of x, (ma, d), and y, (mb, d), by one matrix product.

    Between equal rows, the rest of the cancellation is set to exactly zero.
    """
    xx, yy = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
    squared = x @ y.T
    squared *= -2.0
    squared += xx[:, None]
    squared += yy
    squared[squared < 1e-12 * (xx.max(initial=0.0) + yy.max(initial=0.0))] = 0.0
    return squared


def _parts(kernel: Kernel, kind: type[_Composed]) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, kind) else (kernel,)
