"""What owners add to groups of each size, and whether that is below zero for most sizes."""

from __future__ import annotations

import numpy as np

from dupre._types import Floats, Ints
from dupre.result.valuation import Valuation

MOST = "in groups of most sizes"
FEW = "though not in groups of most sizes"
OPEN = "but whether in groups of most sizes is not settled"


def by_size(v: Valuation) -> tuple[Ints, Floats] | None:
    """How many others are in the groups, (s,), and value, low and high by owner, (n, s, 3).

    None if nothing is known of sizes.
    """
    n, table = len(v.owners), v.contributions
    if not len(table) or len(table) % n:
        return None
    numbers = table[["value", "low", "high"]].to_numpy(dtype=np.float64)
    others = table["others"].to_numpy(dtype=np.int64)[: len(table) // n]
    return others, numbers.reshape(n, -1, 3)


def harm_by_size(v: Valuation) -> list[str]:
    """Of each owner: whether it lowers utilities in groups of most sizes, or "" if not known.

    A value below zero may be due to a single size.
    """
    found = by_size(v)
    if found is None:
        return [""] * len(v.owners)
    _, numbers = found
    surely = np.mean(numbers[:, :, 2] < 0, axis=1) > 0.5
    possibly = np.mean(numbers[:, :, 1] < 0, axis=1) > 0.5
    return [
        MOST if yes else OPEN if may else FEW for yes, may in zip(surely, possibly, strict=True)
    ]
