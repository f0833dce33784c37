"""Arguments that must be numbers, checked before anything is paid for."""

from __future__ import annotations

import math
from numbers import Integral

from dupre.errors import InputError


def finite(number: object, what: str) -> float:
    """The number as a float, or an InputError that names `what` it is."""
    try:
        is_text = isinstance(number, (str, bytes, bytearray))
        result = math.nan if is_text else float(number)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result):
        raise InputError(f"{what} must be a finite number, got {number!r}")
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
