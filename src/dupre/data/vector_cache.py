"""Vectors of coalitions, each computed once.

Notation: m coalitions of n owners, vectors of r numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dupre._types import Floats, Ints, Members
from dupre.game.coalitions import keys


class VectorCache:
    """A map from coalitions to vectors that computes each of them once."""

    def __init__(self, compute: Callable[[Members], Floats]):
        self.compute = compute
        self._position: dict[bytes, int] = {}
        self._count = 0
        self._vectors: Floats | None = None  # with room for more: they are not copied each time
        self._latest: tuple[bytes, Ints] | None = None

    def __call__(self, members: Members) -> Floats:
        """Vectors of m coalitions, (m, r)."""
        content = members.tobytes()
        if self._latest is None or self._latest[0] != content:
            self._latest = content, self._find(members)
        return np.asarray(self._vectors[self._latest[1]])  # type: ignore[index]  # found

    def _find(self, members: Members) -> Ints:
        """Where the vectors are; those of new coalitions are computed."""
        wanted = keys(members)
        new = {key: row for row, key in enumerate(wanted) if key not in self._position}
        if new or self._vectors is None:
            self.add(list(new), self.compute(members[list(new.values())]))
        return np.array([self._position[key] for key in wanted], dtype=np.int64)

    def add(self, new: list[bytes], vectors: Floats) -> None:
        """Keep the vectors, (m, r), of coalitions with these keys, of which some may be equal."""
        before, self._count = self._count, self._count + len(new)
        if self._vectors is None:
            self._vectors = vectors
        elif self._count > len(self._vectors):
            room = np.empty((2 * self._count, vectors.shape[1]))
            room[:before] = self._vectors[:before]
            self._vectors = room
        self._vectors[before : self._count] = vectors
        self._position.update({key: before + i for i, key in enumerate(new)})
