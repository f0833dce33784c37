"""Joint draws of the values of owners, and an amount shared by each draw.

Notation: n owners, m draws of their values; values and payments (m, n), one row per draw.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from dupre._types import Bools, Floats
from dupre.result.covariances import Errors
from dupre.result.values import Values

Negative = Literal["zero", "owe"]
"""What a negative value means: no payment, or a payment by the owner."""

FEWER_DRAWS = 2_000
"""Joint draws for what is no payment: parts of an amount are known to about 0.01 by so many."""


def without_rounding(v: Values) -> Floats:
    """The values, (n,); those that are only rounding errors of utilities are zero."""
    size = np.nanmax(np.abs([v.facts.grand, v.facts.empty, *v.evaluations.get("utility", ())]))
    return np.where(np.abs(v.mean) > 1e-12 * size, v.mean, 0.0)


def are_shareable(values: Floats, negative: Negative) -> Bools:
    """Whether each row of values says how to share, (m,)."""
    found = values.max(axis=1) if negative == "zero" else values.sum(axis=1)
    return np.asarray(found > 0)


def draw_values(v: Values, draws: int, errors: Errors) -> Floats:
    """Joint draws of the values with these errors, (m, n)."""
    if not (errors.student.any() or errors.normal.any()):
        return v.mean[None]
    # Owners of the same rows have the same draws, however a root of a covariance was made.
    every = np.column_stack([v.mean, errors.student, errors.normal])
    _, first, which = np.unique(every, axis=0, return_index=True, return_inverse=True)
    return np.asarray(v.mean + errors.draw(draws))[:, first[which.reshape(-1)]]


def share(values: Floats, amount: float, negative: Negative, minimum: float) -> Floats:
    """Payments before rounding, (m, n): each row adds up to the amount."""
    if negative == "owe":
        return np.asarray(amount * values / values.sum(axis=1, keepdims=True))
    m, n = values.shape
    positive = np.maximum(values, 0.0)
    # max(minimum, c p) adds up to the amount. If the k greatest are above the minimum, their sum
    # S_k gives c; the right k is the last whose smallest owner is above it.
    ordered = -np.sort(-positive, axis=1)
    count = np.arange(1, n + 1)
    sums = np.cumsum(ordered, axis=1)
    scale = (amount - (n - count) * minimum) / sums
    above = (scale * ordered >= minimum) & (ordered > 0)
    above[:, 0] = True  # also if rounding puts the share of the greatest just below the minimum
    last = n - 1 - np.argmax(above[:, ::-1], axis=1)
    return np.asarray(np.maximum(minimum, scale[np.arange(m), last, None] * positive))


def share_parts(v: Values, errors: Errors) -> tuple[Floats, Floats] | None:
    """Parts of an amount by the values, (n,), and by draws with these errors, (m, n).

    A draw that shares nothing is NaN; None if the values themselves share nothing.
    """
    if not are_shareable(without_rounding(v)[None], "zero")[0]:
        return None
    size = np.abs(v.mean).max()  # a part of a sum below 1e-308 has no inverse
    draws = draw_values(v, FEWER_DRAWS, errors) / size
    parts, shareable = np.full_like(draws, np.nan), are_shareable(draws, "zero")
    parts[shareable] = share(draws[shareable], 1.0, "zero", 0.0)
    return share(v.mean[None] / size, 1.0, "zero", 0.0)[0], parts
