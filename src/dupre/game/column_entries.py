"""Random entries of W where every coalition drawn enters the values of all owners.

Of each draw two weights are kept: that of its members and that of the other owners. A list of the
entries would be n times as long, and with a thousand owners fill gigabytes. What follows from them
is computed for BLOCK coalitions at a time.

Notation: n owners, b coalitions, d draws, r units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dupre._types import Floats, Ints, Members
from dupre.game.blocks import split

BLOCK = 2_048
"""Coalitions whose memberships are numbers of 64 bits at a time."""


def blocks(count: int) -> list[slice]:
    """Slices of up to BLOCK that cover so many."""
    return split(count, BLOCK)


def additive_utilities(members: Members, game: Floats) -> Floats:
    """Utilities of coalitions, (b, n), and of the empty one in a simple game, (b + 1,).

    The game is a sum of worths of owners, its first n numbers, and of levels of sizes, the next
    n + 1.
    """
    n = members.shape[1]
    found = np.append(game[n:][members.sum(axis=1)], game[n])
    for some in blocks(len(members)):
        found[some] += members[some] @ game[:n]
    return found


@dataclass(frozen=True, eq=False)
class ColumnEntries:
    """Entries of all owners in d draws; `Entries` of one stratum, whose terms add up to a sum.

    Attributes:
        members: of the columns of W, (b, n).
        column: of W that each draw adds to, (d,).
        inside: what it adds to the weights of its members, (d,).
        outside: what it adds to those of the others, (d,).
        draw: the unit of each, (d,).
    """

    members: Members
    column: Ints
    inside: Floats
    outside: Floats
    draw: Ints

    def __len__(self) -> int:
        return int(self.members.shape[1]) * len(self.draw)

    @property
    def units(self) -> int:
        """How many independent draws, r."""
        return len(np.unique(self.draw))

    def terms(self, u: Floats) -> Floats:
        """Sum of weight * u over the entries of each unit and owner, (r, n)."""
        order = np.argsort(self.draw, kind="stable")
        _, first = np.unique(self.draw[order], return_index=True)
        ends = np.append(first, len(order))
        found = np.empty((len(first), self.members.shape[1]))
        for some in blocks(len(first)):
            these = order[ends[some.start] : ends[some.stop]]
            amount = u[self.column[these]]
            inside, outside = amount * self.inside[these], amount * self.outside[these]
            each = np.where(self.members[self.column[these]], inside[:, None], outside[:, None])
            found[some] = np.add.reduceat(each, first[some] - first[some.start], axis=0)
        return found

    def sums_of_squares(self, amount: Floats, n: int) -> Floats:
        """Sum of weight² * amount over the entries of each owner, (n,); amounts are (b + 1,)."""
        each = amount[self.column]
        inside, outside = (
            np.bincount(self.column, part**2 * each, minlength=len(self.members))
            for part in (self.inside, self.outside)
        )
        found = np.zeros(n)
        for some in blocks(len(self.members)):
            found += inside[some] @ self.members[some] + outside[some] @ ~self.members[some]
        return found

    def seen(self, n: int) -> Members:
        """Owners to whom an entry gives a weight other than zero, (n,)."""
        inside, outside = (self.column[part != 0] for part in (self.inside, self.outside))
        found = np.zeros(n, dtype=bool)
        for column, is_in in ((inside, True), (outside, False)):
            found |= np.any(self.members[np.unique(column)] == is_in, axis=0)
        return found
