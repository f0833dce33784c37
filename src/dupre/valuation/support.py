"""What evaluated utilities do not show, so that intervals of predictions are partly a guess.

A process learns from utilities how far others may lie. If they are all equal, or only two different
numbers, or if no group between single owners and nearly all is among them, then part of that is
assumed, not learned.
"""

from __future__ import annotations

import numpy as np

from dupre._types import Floats
from dupre.notes import Code, Note, note
from dupre.valuation.state import State
from dupre.wording import short_number, write_apart

EQUAL_UP_TO = 100
"""Evaluations after which a run without a budget may stop although utilities show no scale.

If all of so many are equal, fewer than 3 in 100 others differ, with 95 %.
"""


def is_too_early(state: State, *, limited: bool) -> bool:
    """Whether intervals after the first design are no reason to stop a run yet.

    Utilities without a scale give intervals that can be far too narrow, so they are none until
    there is one or nothing is left. A game may really have no more than two utilities: without a
    limit of the run, intervals count again after twice the first design and at least EQUAL_UP_TO
    evaluations.

    Args:
        state: what is evaluated, the first design at least.
        limited: whether a budget ends the run.
    """
    most = max(EQUAL_UP_TO, 2 * len(state.question.first))
    going = bool(state.open.size) and (limited or state.observed.evaluated < most)
    return going and len(_first_levels(state)) < 3


def has_middle_sizes(state: State) -> bool:
    """Whether a group of 2 to n - 2 owners is known; if not, what lies between is a guess."""
    size, n = state.sizes[state.shown], state.question.owners.n
    return n < 4 or bool(np.any((size >= 2) & (size <= n - 2)))


def missing_support(state: State) -> list[Note]:
    """A note if utilities to predict from do not show how far others may lie.

    Something must be predicted.
    """
    count, levels = len(state.shown), _first_levels(state)
    if count >= 2 and len(levels) == 1:
        text = (
            f"all {count:,} utilities to predict from are equal ({short_number(levels[0])}): "
            "nothing shows how far those of other coalitions may lie, and the intervals do not "
            "allow for that."
        )
        return [note(Code.EQUAL_UTILITIES, text, count=count, utility=levels[0])]
    if count >= 3 and len(levels) == 2:
        low, high = write_apart(min(levels), max(levels))
        text = (
            f"the {count:,} utilities to predict from are only two numbers, {low} and {high}: "
            f"nothing shows which other coalitions reach {high} except that they are like these, "
            "and the intervals allow for that only in part."
        )
        return [note(Code.TWO_UTILITIES, text, count=count, utilities=sorted(levels))]
    if not has_middle_sizes(state) and state.recorded[state.question.most_important].all():
        n = state.question.owners.n
        between = "2" if n == 4 else f"2 to {n - 2}"
        text = (
            f"no group of {between} owners is evaluated: nothing shows how utilities grow between "
            "single owners and nearly all of them."
        )
        return [note(Code.NO_MIDDLE_SIZES, text, smallest=2, largest=n - 2)]
    return []


def _first_levels(state: State) -> list[float]:
    """Up to three different utilities to predict from."""
    rest: Floats = state.utilities[state.shown]
    rounding = 1e-12 * float(np.abs(rest).max(initial=0.0))
    levels: list[float] = []
    while rest.size and len(levels) < 3:
        levels.append(float(rest[0]))
        rest = rest[np.abs(rest - levels[-1]) > rounding]
    return levels
