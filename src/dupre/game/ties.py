"""Equal numbers are equal, however a CPU rounds them.

Gains of candidates that hold the same data, or play the same part, are equal on paper. In floating
point they differ in the last digits, and which is larger depends on the CPU, the BLAS library and
the number of threads. Whatever is decided by comparing numbers is therefore decided here: numbers
closer than a tolerance are equal, and of equal ones the first in the order given counts.
"""

from __future__ import annotations

import numpy as np

from dupre._types import Floats, Ints

TOLERANCE = 1e-6
"""Numbers closer than this part of the largest magnitude are equal."""


def first_largest(numbers: Floats, scale: float | None = None) -> int:
    """Index of the first of the largest numbers, (m,); `scale` is their largest magnitude."""
    scale = float(np.abs(numbers).max()) if scale is None else scale
    return int(np.argmax(numbers >= numbers.max() - TOLERANCE * scale))


def descending_order(numbers: Floats) -> Ints:
    """Indices that sort numbers, (m,), largest first, equal ones in the order given.

    Numbers linked by steps below the tolerance are all equal, the first and the last too.
    """
    if not len(numbers):
        return np.empty(0, dtype=np.int64)
    order = np.argsort(-numbers, kind="stable")
    finite = np.abs(numbers[np.isfinite(numbers)])
    with np.errstate(invalid="ignore"):  # NaN between equal infinities, which are no step either
        steps = -np.diff(numbers[order])
    level = np.cumsum(np.append(0, steps > TOLERANCE * finite.max(initial=0.0)))
    return np.asarray(order[np.lexsort((order, level))])
