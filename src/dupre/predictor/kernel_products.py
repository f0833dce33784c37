"""Covariance matrices times vectors, without every entry where a kernel allows it.

The linear kernel has rank n + 1. The membership kernel is a product over owners: its matrix of all
coalitions is a Kronecker product of two small ones, each for half of the owners. All else is
computed tile by tile.

Notation: features a and b of ma and mb coalitions of n owners, vectors V (mb, f).
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from dupre._types import Floats, Ints, Members
from dupre.game.blocks import compute_blocks
from dupre.predictor.kernel_algebra import Kernel, Scaled, Sum
from dupre.predictor.kernel_inputs import Features, tiles
from dupre.predictor.kernels import Linear, Membership

NEARLY_ALL = 0.25
"""Share of all coalitions from which on all of them are taken."""


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
    products = compute_blocks(lambda some: kernel(b[some], a).T @ V[some], tiles(len(b)))
    return reduce(np.add, products, np.zeros((len(a), V.shape[1])))


def _multiply_all(gamma: float, a: Members, b: Members, V: Floats) -> Floats:
    """The product of exp(-gamma |A △ B|) with V, zero for all coalitions that are not in b."""
    half, f = b.shape[1] // 2, V.shape[1]
    first, second = _between_subsets(gamma, half), _between_subsets(gamma, b.shape[1] - half)
    every = np.zeros((len(first), len(second), f))
    np.add.at(every, (_codes(b[:, :half]), _codes(b[:, half:])), V)
    every = second @ (first @ every.reshape(len(first), -1)).reshape(every.shape)
    return np.asarray(every[_codes(a[:, :half]), _codes(a[:, half:])])


def _between_subsets(gamma: float, n: int) -> Floats:
    """The membership kernel of all subsets of n owners, (2^n, 2^n)."""
    codes = np.arange(2**n)
    return np.asarray(np.exp(-gamma * np.bitwise_count(codes[:, None] ^ codes)))


def _codes(members: Members) -> Ints:
    """The number whose binary digits are the members, (m,)."""
    return np.asarray(members @ (1 << np.arange(members.shape[1])))
