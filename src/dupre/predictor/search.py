"""The smallest value of a smooth function of a few numbers within bounds, in few evaluations.

A quasi-Newton search (BFGS; Nocedal & Wright 2006, Ch. 6 and Procedure 18.2) that begins with
second derivatives where they are known: of the same function on fewer data, or of one much like it.
L-BFGS-B would learn them anew, and an evaluation costs O(a³).

Notation: x (k,) the numbers, B (k, k) an estimate of the second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dupre._types import Floats, Ints

Function = Callable[[Floats], tuple[float, Floats]]
"""The value at x, and its gradient, (k,)."""

ENOUGH = 1e-8
"""For an end that is exact: what is left after the last step is far smaller."""

MOST_STEPS = 100
LONGEST_STEP = 2.0
"""Of any number in one step: far from the end second derivatives say little."""

DIFFERENCE = 1e-3
"""Step of finite differences."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a search has ended.

    Attributes:
        x: (k,).
        value: there.
        gradient: at the last x where the function was computed, (k,).
        B: the estimate of the second derivatives there, (k, k).
    """

    x: Floats
    value: float
    gradient: Floats
    B: Floats


def minimise(
    function: Function,
    start: Floats,
    low: Floats,
    high: Floats,
    *,
    B: Floats,
    behind: float = np.inf,
    enough: float = ENOUGH,
) -> Minimum:
    """The minimum near `start` within bounds, (k,) each.

    Args:
        function: to be minimised.
        start: where to begin.
        low: bound from below; a number whose bounds are equal is held.
        high: bound from above.
        B: positive definite estimate of the second derivatives, (k, k).
        behind: the search gives up where even ten times the promised decrease leaves the value
            above this.
        enough: twice the decrease that a full step promises, below which it is the last one.
    """
    x = np.clip(start, low, high)
    value, gradient = function(x)
    for _ in range(MOST_STEPS):
        free = np.flatnonzero(~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))))
        step = _newton_step(B, gradient, free)
        promised = float(-gradient @ step)
        if promised < enough:  # what would be left after this step need not be looked at
            return Minimum(np.clip(x + step, low, high), value - promised / 2, gradient, B)
        if value - 10 * promised > behind:
            break
        step *= min(1.0, LONGEST_STEP / float(np.abs(step).max()))
        path = partial(_path, x, step, low, high)
        found = _along(function, path, value, gradient)
        if found is None:  # nothing but rounding is left
            break
        new, value, new_gradient = found
        B = _update(B, new - x, new_gradient - gradient)
        x, gradient = new, new_gradient
    return Minimum(x, value, gradient, B)


def second_derivatives(function: Function, x: Floats, gradient: Floats, free: Ints) -> Floats:
    """Of a function by some of its numbers, (k, k) with k = len(free), by finite differences."""
    axes = DIFFERENCE * np.eye(len(x))[free]
    H = np.array([(function(x + e)[1] - gradient)[free] for e in axes]) / DIFFERENCE
    return np.asarray((H + H.T) / 2)


def _newton_step(B: Floats, gradient: Floats, free: Ints) -> Floats:
    step = np.zeros_like(gradient)
    if free.size:
        step[free] = -np.linalg.solve(B[np.ix_(free, free)], gradient[free])
    return step


def _path(x: Floats, step: Floats, low: Floats, high: Floats, part: float) -> Floats:
    return np.clip(x + part * step, low, high)


def _along(
    function: Function, path: Callable[[float], Floats], value: float, gradient: Floats
) -> tuple[Floats, float, Floats] | None:
    """x, value and gradient at a part of a path that decreases the value; None if there is none."""
    x = path(0.0)
    part = 1.0
    for _ in range(20):
        new = path(part)
        slope = float(gradient @ (new - x))
        new_value, new_gradient = function(new)
        if slope < 0 and new_value <= value + 1e-4 * slope:
            return new, new_value, new_gradient
        # The minimum of the parabola through what is known.
        bend = new_value - value - slope
        part *= float(np.clip(-slope / (2 * bend), 0.1, 0.5)) if slope < 0 < bend else 0.25
    return None


def _update(B: Floats, s: Floats, y: Floats) -> Floats:
    """B after a step s that changed the gradient by y; damped, so that it stays positive."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if sBs <= 0:
        return B
    if sy < 0.2 * sBs:
        part = 0.8 * sBs / (sBs - sy)
        y = part * y + (1 - part) * Bs
        sy = 0.2 * sBs
    return np.asarray(B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy)
