"""The limits of a utility: bounds that no model can exceed, and a floor.

R² has no lower bound: one group whose model fails on a few rows can score -14 and decide the values
of its members, although nobody would use such a model: a prediction without data is better, and can
always be had. So scores of metrics like R² that are below the score of no data count as that score,
unless another floor is stated or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dupre.checks import Bounds, finite, is_within
from dupre.errors import InputError, Remedy
from dupre.metrics import Metric
from dupre.notes import Code, Note, note
from dupre.utility.score import check_score


def check_floor(floor: Any, metric: Metric, empty: float) -> float | None:
    """The lowest utility that counts; None if there is none.

    Args:
        floor: a number, False for none, or None for the default.
        metric: states the default.
        empty: the score of no data.

    Raises:
        InputError: it is something else.
    """
    if floor is False:
        return None
    if floor is None:
        return empty if metric.floor == "no data" else metric.floor
    if floor is True:
        raise InputError("floor must be a number, or False for none, got True")
    return finite(floor, "floor")


def check_stated_empty(empty: float | None, floor: float | None) -> None:
    """Raise InputError if that is no number, or if no data are stated to score below the floor.

    Raising the number to the floor would change what was stated without a word.
    """
    if empty is not None and check_score(empty, "empty") < (-math.inf if floor is None else floor):
        raise InputError(
            f"no data are stated to score {empty:g}, but the floor of the utility is {floor:g}: "
            "lower scores count as that; state empty= to the ModelUtility, whose floor follows it, "
            "or give it another floor="
        )


def check_known_empty(known: Sequence[float], empty: float | None) -> None:
    """Raise InputError if no data have another utility among what is known than by `empty`.

    Args:
        known: utilities that `known=` has for no data; may be none.
        empty: that of the ModelUtility, or stated; None if the known ones count.
    """
    others = [utility for utility in known if utility != empty]
    if empty is not None and others:
        raise InputError(
            f"known= has the utility {others[0]!r} for no data, (), but it is {empty!r} by the "
            "ModelUtility or by empty=, which would count; leave () out of known=, or state that "
            "number as empty= to the ModelUtility, or to dupre.value for another utility"
        )


def check_empty_within(empty: float, bounds: Bounds) -> None:
    """Raise InputError if the utility of no data is not one that a model can have."""
    if not is_within(empty, bounds):
        raise InputError(
            f"the utility of no data is {empty:g}, but the bounds of utilities are {bounds[0]:g} "
            f"and {bounds[1]:g}; correct the bounds, or state another number by ",
            Remedy.EMPTY,
        )


def outside_notes(utilities: Sequence[float], bounds: Bounds) -> list[Note]:
    """A note if some utilities lie outside the bounds: these were wrong then."""
    outside = [utility for utility in utilities if not is_within(utility, bounds)]
    if not outside:
        return []
    low, high = bounds
    text = (
        f"{len(outside):,} of {len(utilities):,} utilities lie outside the bounds {low:g} and "
        f"{high:g}, such as {outside[0]:.4g}. The bounds are wrong, and so may be predictions; "
        "begin another run with the right ones."
    )
    ends = [end if math.isfinite(end) else None for end in (low, high)]
    counts = {"outside": len(outside), "utilities": len(utilities)}
    return [note(Code.OUTSIDE_BOUNDS, text, **counts, bounds=ends, first=float(outside[0]))]
