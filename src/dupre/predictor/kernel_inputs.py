"""Features: what kernels compare, all that is known of coalitions except their utilities."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from dupre._types import Floats, Ints, Members
from dupre.errors import InputError

Found = TypeVar("Found")

TILE = 512
"""Side of the square tiles in which a large kernel matrix is computed: they fit into a cache."""


@dataclass(frozen=True, eq=False)
class Features:
    """All that is known of m coalitions except their utilities.

    Attributes:
        members: the coalitions, (m, n).
        rows: rows of each owner, (n,).
        vectors: callable(eta, p, members) -> vectors, (m, d), whose distance in the p-norm is
            SW_p under feature weight eta; it is given raw=True for rows as they were given. Only
            data kernels need it.
    """

    members: Members
    rows: Ints
    vectors: Callable[..., Floats] | None = field(default=None, repr=False)
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, index: slice | Ints) -> Features:
        """Some of the coalitions; their vectors are taken from those of all, computed once."""
        some = None if self.vectors is None else _SomeVectors(self, index)
        return replace(self, members=self.members[index], vectors=some, _known={})

    def sketch(self, eta: float, p: int, *, raw: bool = False) -> Floats:
        """Vectors under feature weight eta, (m, d), each computed once."""
        vectors = self.vectors
        if vectors is None:
            raise InputError(
                "SlicedWasserstein compares the rows of coalitions, and these owners came "
                "without rows to compare; take Membership, Size or Linear, or owners with rows"
            )
        how = {"raw": True} if raw else {}
        return self.remember((eta, p, raw), lambda: vectors(eta, p, self.members, **how))

    def remember(self, key: Hashable, compute: Callable[[], Found]) -> Found:
        """What is computed of these coalitions, once for each key; a key may lack a hash."""
        try:
            if key not in self._known:
                self._known[key] = compute()
        except TypeError:
            return compute()
        return cast(Found, self._known[key])


@dataclass(frozen=True, eq=False)
class _SomeVectors:
    """The vectors of some coalitions of features."""

    features: Features
    index: slice | Ints

    def __call__(self, eta: float, p: int, _: Members, *, raw: bool = False) -> Floats:
        return self.features.sketch(eta, p, raw=raw)[self.index]


def tiles(b: int) -> list[slice]:
    """Up to TILE of b coalitions each."""
    return [slice(start, start + TILE) for start in range(0, b, TILE)]
