"""What an owner adds to groups of each size, as weighted sums of utilities.

Shapley values average over sizes. An owner may help small groups and harm large ones, or the other
way round; its value alone does not tell. What it adds to groups of s others is a semivalue too: the
one in which only groups of this size count.

Notation: n owners.
"""

from __future__ import annotations

import numpy as np

from dupre._types import Floats, Ints
from dupre.game.semivalues import Semivalue, log_binomial

MOST_SIZES = 12
"""Sizes of groups that are looked at: of more owners a part, evenly spaced, the ends included."""


def group_sizes(n: int) -> Ints:
    """The numbers of others that are looked at, at most `MOST_SIZES` of 0 .. n - 1."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_SIZES)).round().astype(np.int64))


def joining(others: int) -> Semivalue:
    """The mean of u(C + i) - u(C) over all C of so many owners other than i."""

    def log_weight(c: Floats, n: int) -> Floats:
        return np.where(c == others, -log_binomial(n - 1, c), -np.inf)

    return Semivalue(f"joining {others} others", log_weight)
