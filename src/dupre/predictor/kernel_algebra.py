"""What a kernel is, and kernels made of others: scales, sums and products.

A kernel is an immutable value. Its hyper-parameters are positive; `theta` holds their logarithms.
All that does not depend on them is computed once by `distances` and passed to `evaluate` for every
new theta, which makes fitting cheap.

Notation: features a and b of ma and mb coalitions; matrices are (ma, mb); t hyper-parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from operator import add, iadd, mul
from typing import Any, Self

import numpy as np

from dupre._types import Floats
from dupre.checks import positive
from dupre.game.blocks import fill_blocks
from dupre.predictor.kernel_inputs import TILE, Features, by_tiles, tiles


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
        """What each entry of theta is: "gamma" or "variance"."""
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
        across = [slice(None)] if b.are_kept else tiles(len(b))
        if len(a) * len(b) <= TILE**2 or (len(a) <= TILE and len(across) == 1):
            return self.evaluate(self.distances(a, b))
        if a is b:
            return by_tiles(len(a), lambda i, j: self(a[i], b[j]))
        K = np.empty((len(a), len(b)))
        fill_blocks(
            K,
            lambda tile: self.evaluate(self.distances(a[tile[0]], b[tile[1]])),
            list(product(tiles(len(a)), across)),
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
