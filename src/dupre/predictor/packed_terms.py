"""The covariance matrix of the evaluated coalitions as a sum of terms, for thousands of thetas.

Learning hyper-parameters needs this one symmetric matrix again and again. So its lower triangle
alone is computed, packed into a vector as LAPACK packs it. A product of exponentials is one
exponential of a weighted sum of distances. A distance that takes few values, as the number of
owners in which two coalitions differ, needs as few exponentials.

Notation: a coalitions, m = a (a + 1) / 2 packed entries, theta as in `Kernel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg.lapack import dtrttp

from dupre._types import Floats, Ints
from dupre.predictor.kernel_algebra import Kernel, Product, Scaled, Sum
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Exponential, Linear

FEW = 64
"""Distances that are whole numbers below this need no more exponentials than this."""

REMEMBERED = 1_000
"""Coalitions up to which what is computed of all pairs is kept."""


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
        levels: 0, 1, 2, ... if k is 1 and all distances are among these few.
        codes: which of them each entry is, (m,).
        matrix: packed, (m,); None for ones.
    """

    variance: int | None
    gammas: Ints
    distances: Floats
    levels: Floats | None
    codes: Ints
    matrix: Floats | None

    def evaluate(self, theta: Floats) -> tuple[Floats, Floats]:
        """The packed matrix, (m,), twice."""
        scale = 1.0 if self.variance is None else float(np.exp(theta[self.variance]))
        gamma = -np.exp(theta[self.gammas])
        if self.levels is not None:
            found = (scale * np.exp(gamma * self.levels)).take(self.codes)
        elif len(gamma):
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
    levels, codes = None, np.empty(0, dtype=np.int64)
    if len(exponents) == 1:
        whole = exponents[0].astype(np.int64)
        if whole.max(initial=0) < FEW and np.array_equal(whole, exponents[0]):
            levels, codes = np.arange(FEW, dtype=np.float64), whole
    stacked = np.array(exponents).reshape(-1, len(packed[0]))
    matrix = np.prod(fixed, axis=0) if fixed else None
    return [ProductTerm(variance, gammas, stacked, levels, codes, matrix)]


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

    return inputs.remember(("pairs", bare), compute) if len(inputs) <= REMEMBERED else compute()


def _is_linear(kernel: Kernel) -> bool:
    return type(kernel) is Linear


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
