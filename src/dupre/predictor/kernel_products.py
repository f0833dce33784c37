"""Covariance matrices times vectors, without every entry where a kernel allows it.

The linear kernel has rank n + 1. The membership kernel is a product over owners: its matrix of all
coalitions is a Kronecker product of small ones, each for a few of the owners. All else is
computed tile by tile; of a symmetric matrix one triangle of tiles.

Notation: features a and b of ma and mb coalitions of n owners, vectors V (mb, f).
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations_with_replacement

import numpy as np

from dupre._types import Floats, Ints, Members
from dupre.game.blocks import compute_blocks, split
from dupre.predictor.kernel_algebra import Kernel, Scaled, Sum
from dupre.predictor.kernel_inputs import Features, tiles
from dupre.predictor.kernels import Linear, Membership

NEARLY_ALL = 0.25
"""Share of all coalitions from which on all of them are taken."""

OWNERS_AT_ONCE = 4
"""Owners of one factor of the Kronecker product: 16 subsets, few enough for a quick product."""


def multiply(kernel: Kernel, a: Features, b: Features, V: Floats) -> Floats:
    """K_ab V, (ma, f)."""
    if isinstance(kernel, Sum):
        parts = [multiply(part, a, b, V) for part in kernel.kernels]
        return reduce(np.add, parts)
    if isinstance(kernel, Scaled):
        return kernel.variance * multiply(kernel.kernel, a, b, V)
    n = b.members.shape[1]
    if type(kernel) is Linear:
        shared = a.members.astype(np.float64) @ (b.members.T.astype(np.float64) @ V)
        return np.asarray((V.sum(axis=0) + shared) / (1 + n))
    if type(kernel) is Membership and len(b) >= NEARLY_ALL * 2.0**n:
        return _multiply_all(kernel.gamma, a.members, b.members, V)
    if a is b:
        return _multiply_symmetric(kernel, a, V)

    def multiply_tile(some: slice) -> Floats:
        K = kernel(b[some], a)
        return np.asarray(K.T.astype(V.dtype, copy=False) @ V[some])

    products = compute_blocks(multiply_tile, tiles(len(b)))
    return reduce(np.add, products, np.zeros((len(a), V.shape[1])))


def _multiply_symmetric(kernel: Kernel, a: Features, V: Floats) -> Floats:
    """K_aa V, (ma, f), of which one triangle of tiles is computed."""
    V = np.ascontiguousarray(V)
    found = np.zeros_like(V)
    parts = [(some, a[some]) for some in tiles(len(a))]

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
