"""Covariances of two sets of coalitions.

A new kernel is one method: subclass `Exponential` and write `distance`, the square of a Hilbertian
distance, and exp(-gamma distance) is positive semi-definite (DUPRE App. B, "Proposition 14 in
Meunier et al. 2022"). Kernels are added, multiplied and scaled; `Prior` says what is assumed
besides: a mean, and what is not learned.

Notation: features a and b of ma and mb coalitions; matrices are (ma, mb); t hyper-parameters.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist

from dupre._types import Floats
from dupre.checks import finite, positive
from dupre.errors import InputError
from dupre.predictor.kernel_algebra import Kernel, Product, Scaled, Sum
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.prior import Constant, LinearInSize, Prior

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
]


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
    raw: ClassVar[bool] = False

    @property
    def label(self) -> str:
        return "raw data" if self.raw else "data"

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
            x, y = (of.sketch(eta, p, raw=self.raw) for of in (a, b))
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
    """

    raw: ClassVar[bool] = True


@dataclass(frozen=True)
class Size(Exponential):
    """Squared exponential on log(1 + rows): for SW a data set and two copies of it are equal."""

    def distance(self, a: Features, b: Features) -> Floats:
        x, y = (np.log1p(of.total_rows) for of in (a, b))
        if b.are_kept:  # as precise as other distances to them
            x, y = x.astype(np.float32), y.astype(np.float32)
        apart = x[:, None] - y
        return np.asarray(np.square(apart, out=apart))


@dataclass(frozen=True)
class Membership(Exponential):
    """Squared exponential on the membership vectors: the paper's GP-binary."""

    def distance(self, a: Features, b: Features) -> Floats:
        n = a.members.shape[1]
        x, y = (np.ones((len(of), n + 2)) for of in (a, b))
        x[:, :n], x[:, n] = -2.0 * a.members, a.members.sum(axis=1)
        y[:, :n], y[:, n + 1] = b.members, b.members.sum(axis=1)
        return np.asarray(x @ y.T)  # whole numbers: |A| + |B| - 2 |A ∩ B|


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
        shared += 1
        shared /= 1 + a.members.shape[1]
        return np.asarray(shared)

    def evaluate(self, distances: Floats) -> Floats:
        return distances

    def gradient(self, distances: Floats) -> tuple[Floats, list[Floats]]:
        return distances, []

    def diagonal(self, a: Features) -> Floats:
        return np.asarray((1 + a.members.sum(axis=1)) / (1 + a.members.shape[1]))

    def at_median(self, distances: Floats) -> Self:
        return self


def paper(eta: float | None = 0.5, *, p: int | None = 2, rho: float | None = 1.0) -> Prior:
    """The paper's predictor: the supervised sliced Wasserstein kernel alone, nothing added.

    Rows are as given, labels are embedded by multi-dimensional scaling of the distances between
    classes (DUPRE Sec. 2.2), and the posterior is that of Prop. 3: see `Prior`. The paper's own
    baseline GP-binary is `Prior(1.0 * Membership(), plain=True)`.

    Args:
        eta: weight of features against labels, 0.5 in the paper's experiments; None leaves it to
            the marginal likelihood, as Sec. 3 says; so do p and rho.
        p: order of the distance.
        rho: its exponent.
    """
    return Prior(1.0 * RawSlicedWasserstein(p=p, rho=rho, eta=eta), plain=True)


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
