"""Features: what kernels compare, all that is known of coalitions except their utilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dupre._types import Floats, Ints, Members
from dupre.errors import InputError

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
    _known: dict[tuple[float, int, bool], Floats] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, index: slice | Ints) -> Features:
        """Some of the coalitions; their vectors are taken from those of all, computed once."""
        some = None if self.vectors is None else _SomeVectors(self, index)
        return replace(self, members=self.members[index], vectors=some, _known={})

    def sketch(self, eta: float, p: int, *, raw: bool = False) -> Floats:
        """Vectors under feature weight eta, (m, d), each computed once."""
        key = eta, p, raw
        if key not in self._known:
            if self.vectors is None:
                raise InputError(
                    "SlicedWasserstein compares the rows of coalitions, and these owners came "
                    "without rows to compare; take Membership, Size or Linear, or owners with rows"
                )
            how = {"raw": True} if raw else {}
            self._known[key] = self.vectors(eta, p, self.members, **how)
        return self._known[key]


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
