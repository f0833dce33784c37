"""Features: what kernels compare, all that is known of coalitions except their utilities."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, TypeVar, cast

import numpy as np

from dupre._types import Floats, Ints, Members, View
from dupre.errors import InputError
from dupre.game.blocks import compute_blocks, split

Found = TypeVar("Found")

Compute = Callable[["Features", "Features"], Floats]
"""Distances of coalitions to others, (m, mb)."""

# 32 megabytes for each kernel.
ALL_KEPT = 2_048
"""Coalitions up to which the distances of all pairs are kept."""

MANY = 4_096
"""Coalitions of which vectors are not copied as a whole."""

TILE = 256
"""Side of the square tiles in which a large kernel matrix is computed: they fit into a cache."""


@dataclass(frozen=True, eq=False)
class Features:
    """All that is known of m coalitions except their utilities.

    Attributes:
        members: the coalitions, (m, n).
        rows: rows of each owner, (n,).
        vectors: callable(eta, p, members) -> vectors, (m, d), whose distance in the p-norm is
            SW_p under feature weight eta; it is given a view too, if one is asked for. Only data
            kernels need it.
        mixing: what each owner is taken to be as a member, (n, n): a row of its likeness to all;
            None if owners have nothing in common, as the identity would say.
        origin: the features that these are some of, and which of them, (m,).
    """

    members: Members
    rows: Ints
    vectors: Callable[..., Floats] | None = field(default=None, repr=False)
    mixing: Floats | None = field(default=None, repr=False)
    origin: tuple[Features, Ints] | None = field(default=None, repr=False)
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, index: slice | Ints) -> Features:
        """Some of the coalitions; their vectors are taken from those of all, computed once."""
        origin, at = self.origin or (self, np.arange(len(self)))
        at = at[index]
        some = None
        if self.vectors is not None:  # of very many, those of all are not copied
            many = len(self) > MANY
            some = _SomeVectors(origin, at) if many else _SomeVectors(self, index)
        return Features(self.members[index], self.rows, some, self.mixing, (origin, at))

    @cached_property
    def total_rows(self) -> Ints:
        """Rows of each of the coalitions, (m,)."""
        if self.origin is not None:
            origin, at = self.origin
            return np.asarray(origin.total_rows[at])
        return np.asarray(self.members @ self.rows)

    def distances_to(self, others: Features, key: Hashable, compute: Compute) -> Floats:
        """Distances of these to other coalitions, (m, mb), which `compute` finds.

        Within an origin of up to ALL_KEPT coalitions they are computed once. Those of more are
        computed again each time, which is faster than to read them from memory.
        """
        origin, rows = self.origin or (self, None)
        other, columns = others.origin or (others, None)
        if not _has_hash(key):
            return compute(self, others)
        if others is self and columns is None and len(self) <= ALL_KEPT:
            return self._pairs(key, compute)
        if origin is not other or rows is None or columns is None:
            return compute(self, others)
        if len(origin) > ALL_KEPT:
            return compute(self, others)
        return _take(origin._pairs(key, compute), rows, columns)

    def _pairs(self, key: Hashable, compute: Compute) -> Floats:
        """Distances of all pairs, (m, m), computed once."""
        return self.remember(
            ("distances", key),
            lambda: by_tiles(len(self), lambda i, j: compute(self[i], self[j])),
        )

    @cached_property
    def memberships(self) -> Floats:
        """The members as coordinates, (m, n)."""
        members = self.members.astype(np.float64)
        return members if self.mixing is None else members @ self.mixing

    def sketch(self, eta: float, p: int, view: View | None = None) -> Floats:
        """Vectors under feature weight eta, (m, d), each computed once."""
        vectors = self.vectors
        if vectors is None:
            raise InputError(
                "SlicedWasserstein compares the rows of coalitions, and these owners came "
                "without rows to compare; take Membership, Size or Linear, or owners with rows"
            )
        other = () if view is None else (view,)
        return self.remember((eta, p, view), lambda: vectors(eta, p, self.members, *other))

    def remember(self, key: Hashable, compute: Callable[[], Found]) -> Found:
        """What is computed of these coalitions, once for each key; a key may lack a hash."""
        if not _has_hash(key):
            return compute()
        if key not in self._known:
            self._known[key] = compute()
        return cast(Found, self._known[key])


@dataclass(frozen=True, eq=False)
class _SomeVectors:
    """The vectors of some coalitions of features."""

    features: Features
    index: slice | Ints

    def __call__(self, eta: float, p: int, _: Members, view: View | None = None) -> Floats:
        index = self.index if isinstance(self.index, slice) else _as_slice(self.index)
        return self.features.sketch(eta, p, view)[index]


def _has_hash(key: Hashable) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _as_slice(index: Ints) -> slice | Ints:
    """The same as a slice if it is one: then nothing is copied."""
    if len(index) and index[-1] - index[0] == len(index) - 1 and (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def _take(symmetric: Floats, rows: Ints, columns: Ints) -> Floats:
    """Some rows and columns of a symmetric matrix, (rows, columns).

    The fewer of both are copied as stretches of memory, which is several times faster than entry by
    entry.
    """
    if len(rows) > len(columns):
        return _take(symmetric, columns, rows).T
    if not len(rows):
        return np.empty((len(rows), len(columns)))
    first = int(columns.min())
    return symmetric[rows, first : int(columns.max()) + 1].take(columns - first, axis=1)


def tiles(b: int, across: int = 0) -> list[slice]:
    """Up to TILE of b coalitions each; more, if they are compared with few `across`."""
    return split(b, max(TILE, TILE**2 // across) if across else TILE)


def by_tiles(b: int, compute: Callable[[slice, slice], Floats]) -> Floats:
    """A symmetric matrix of b coalitions, (b, b), of which one triangle of tiles is computed."""
    found = np.empty((b, b))

    def fill(columns: slice, rows: slice) -> None:
        found[rows, columns] = compute(rows, columns)
        if rows != columns:
            found[columns, rows] = found[rows, columns].T

    pairs = list(combinations_with_replacement(tiles(b), 2))
    for _ in compute_blocks(lambda pair: fill(*pair), pairs):
        pass
    return found
