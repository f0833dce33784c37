"""What owners add to groups of each size, and whether that is below zero for most sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dupre._types import Bools, Floats

if TYPE_CHECKING:
    from dupre.result.valuation import Valuation


def by_size(v: Valuation) -> Floats | None:
    """Value, low and high of each owner's contribution to groups of s others, (n, n, 3)."""
    n = len(v.owners)
    if len(v.contributions) != n * n:
        return None
    numbers = v.contributions[["value", "low", "high"]].to_numpy(dtype=np.float64)
    return numbers.reshape(n, n, 3)


def harms_most_groups(v: Valuation) -> Bools:
    """Owners who lower utilities on average of all groups, surely, and for most sizes, (n,).

    None does if nothing is known of sizes: a value below zero may be due to a single size.
    """
    found = by_size(v)
    if found is None:
        return np.zeros(len(v.owners), dtype=bool)
    below = v.interval()["high"].to_numpy() < 0
    return np.asarray(below & (np.mean(found[:, :, 0] < 0, axis=1) > 0.5))
