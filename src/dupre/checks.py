"""Checks of arguments: numbers, and what callables take."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence, Sized
from numbers import Integral
from typing import Any

from dupre.errors import InputError, Remedy

LARGEST = 1e150
"""Numbers whose squares are still finite."""

Bounds = tuple[float, float]
"""Between which numbers utilities lie."""

UNBOUNDED: Bounds = (-math.inf, math.inf)


def finite(number: object, what: str) -> float:
    """The number as a float, or an InputError that names `what` it is."""
    try:
        # NumPy would drop the imaginary part of a complex number.
        is_complex = getattr(getattr(number, "dtype", None), "kind", "") == "c"
        is_text = isinstance(number, (str, bytes, bytearray))
        result = math.nan if is_text or is_complex else float(number)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result):
        raise InputError(f"{what} must be a finite number, got {number!r}")
    return result


def as_utility(number: object, what: str = "the utility") -> float:
    """The number as a float that can be squared, or an InputError that names `what` it is."""
    try:
        result = finite(number, what)
    except InputError as cause:
        if not isinstance(number, Sized) or isinstance(number, (str, bytes, bytearray)):
            raise
        raise InputError(
            f"{what} must be a finite number, got {number!r:.60}; with utilities on resamples of "
            "the validation rows it is dupre.Score(utility, resampled)"
        ) from cause
    if abs(result) > LARGEST:
        raise InputError(
            f"{what} must lie between -{LARGEST:g} and {LARGEST:g}, so that its square is a "
            f"number, got {result!r}; divide all utilities by a constant"
        )
    return result


def positive(number: object, what: str) -> float:
    """The number as a float greater than 0, or an InputError."""
    if (result := finite(number, what)) <= 0:
        raise InputError(f"{what} must be positive, got {number!r}")
    return result


def whole(number: object, what: str, *, least: int) -> int:
    """The number as an int, or an InputError that names `what` it is."""
    if not isinstance(number, Integral) or isinstance(number, bool) or number < least:
        raise InputError(f"{what} must be a whole number of at least {least}, got {number!r}")
    return int(number)


def check_bounds(bounds: Any) -> Bounds:
    """Two numbers, None for an end without a bound; InputError if they are something else."""
    if not isinstance(bounds, Sequence) or len(bounds) != 2 or isinstance(bounds, str):
        raise InputError(f"bounds must be two numbers such as (0, 1), got {bounds!r}")
    low, high = (
        end if given is None or given == end else finite(given, "a bound")
        for given, end in zip(bounds, UNBOUNDED, strict=True)
    )
    if not low < high:
        raise InputError(f"the lower bound must be less than the upper one, got {bounds!r}")
    return low, high


def is_within(utility: float, bounds: Bounds) -> bool:
    """Whether a utility lies within bounds, up to rounding."""
    low, high = bounds
    return low - 1e-9 * (1 + abs(low)) <= utility <= high + 1e-9 * (1 + abs(high))


def check_empty_within(empty: float, bounds: Bounds) -> None:
    """Raise InputError if the utility of no data is not one that a model can have."""
    if not is_within(empty, bounds):
        raise InputError(
            f"the utility of no data is {empty:g}, but the bounds of utilities are {bounds[0]:g} "
            f"and {bounds[1]:g}; correct the bounds, or state another number by ",
            Remedy.EMPTY,
        )


def takes(function: Callable[..., Any], *arguments: object, **named: object) -> bool:
    """Whether a callable can be called with such arguments; also if that is not known."""
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return False
    except ValueError:  # some callables written in C have no signature
        return True
    return True
