"""What evaluated utilities do not show, what they hide, and which of them decides a value.

A process learns from utilities how far others may lie. If they are all equal, or only two or a few
different numbers, or if no group between single owners and nearly all is among them, then part of
that is assumed, not learned. A floor can hide a bad score of all owners together. And values are
sums of utilities: one that is far from all others of its size can outweigh them.

Notation: n owners, p positions as in `state`; M (n, p) from `validation_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dupre._types import Floats
from dupre.checks import Bounds, is_within
from dupre.game.coalitions import format_members
from dupre.notes import Code, Note, note
from dupre.predictor.warp import robust_scale
from dupre.valuation.state import State
from dupre.valuation.validation_rows import Deviations
from dupre.wording import (
    count_things,
    join_list,
    percent,
    printable,
    write_apart,
)

FAR = 8.0
"""Robust standard deviations from which on a utility is far from others of its size."""

GAINS = 2.0
"""Distance from others of its size that it must have too, in gains of the largest group."""

DECISIVE = 0.5
"""Part of a value from which on a single training decides it."""

MOST_LEVELS = 12
"""Different utilities up to which they may be plateaus."""

TIMES = 3
"""How often each came on average, at least, where they are plateaus."""

MOST_NAMED = 2
"""Trainings named, and owners of each."""

NOT_CORRECTED = note(
    Code.NOT_CORRECTED,
    "too few random coalitions are evaluated to estimate the error of the predictor; the values "
    "are not corrected.",
)

FEWEST_RESAMPLES = 20
"""Resamples below which a note says that they tell little.

A standard deviation from B resamples is known to about 1 / sqrt(2B): to 16 % from 20."""


def notes_about(state: State, off: Deviations | None, *, predicted: bool) -> tuple[Note, ...]:
    """What is to be said of evaluated utilities, whatever the values are.

    Args:
        state: what is evaluated.
        off: utilities on resamples; None if they are not known.
        predicted: whether others are predicted from them.
    """
    unseen = missing_support(state) if predicted else []
    every = [score for i in state.row.values() for score in state.observed.scores[i]]
    outside = outside_notes(every, state.question.bounds)
    return (
        *spoiled_grand(state),
        *unseen,
        *outside,
        *missing_resamples(state),
        *few_resamples(off),
    )


def has_middle_sizes(state: State) -> bool:
    """Whether a group of 2 to n - 2 owners is known; if not, what lies between is a guess."""
    size, n = state.sizes[state.shown], state.question.owners.n
    return n < 4 or bool(np.any((size >= 2) & (size <= n - 2)))


def missing_support(state: State) -> list[Note]:
    """A note if utilities to predict from do not show how far others may lie.

    Something must be predicted.
    """
    count, levels = len(state.shown), first_levels(state)
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
    if len(levels) <= MOST_LEVELS and count >= TIMES * len(levels) > 0:
        text = (
            f"the {count:,} utilities to predict from are only {len(levels)} numbers: where others "
            "jump from one to the next is hardly known, and the intervals allow for that in part."
        )
        return [note(Code.FEW_UTILITIES, text, count=count, levels=len(levels))]
    if not has_middle_sizes(state) and state.recorded[state.question.most_important].all():
        n = state.question.owners.n
        between = "2" if n == 4 else f"2 to {n - 2}"
        text = (
            f"no group of {between} owners is evaluated: nothing shows how utilities grow between "
            "single owners and nearly all of them."
        )
        return [note(Code.NO_MIDDLE_SIZES, text, smallest=2, largest=n - 2)]
    return []


def first_levels(state: State) -> list[float]:
    """Different utilities to predict from, up to one more than may be plateaus."""
    rest: Floats = state.utilities[state.shown]
    # Equal scores may differ in their last digits, by the order of additions.
    rounding = 1e-12 * float(np.abs(rest).max(initial=0.0))
    levels: list[float] = []
    while rest.size and len(levels) <= MOST_LEVELS:
        levels.append(float(rest[0]))
        rest = rest[np.abs(rest - levels[-1]) > rounding]
    return levels


def spoiled_grand(state: State) -> list[Note]:
    """A note if all owners together score below the floor, which hides how bad it is."""
    observed = state.observed
    row = state.row.get(int(state.positions(state.everyone)[0]))
    if row is None or not observed.raised[row]:
        return []
    score, counted = float(np.mean(observed.scored[row])), float(observed.utilities[row])
    text = (
        f"all data together score {short_number(score)}, below the floor, and count as "
        f"{short_number(counted)}; wrong rows of a single owner can do this."
    )
    return [note(Code.GRAND_BELOW_FLOOR, text, score=score, counted=counted)]


def decisive_trainings(state: State, M: Floats, values: Floats) -> list[Note]:
    """A note about each training that alone decides the value of an owner, the worst first.

    Args:
        state: what is evaluated.
        M: how much each value changes with each utility, (n, p).
        values: of the owners, (n,).
    """
    at = np.flatnonzero(state.recorded)
    utilities, sizes = state.utilities[at], state.sizes[at]
    typical = np.empty(len(at))
    for k, size in enumerate(sizes):
        others = np.delete(utilities, k)[np.delete(sizes, k) == size]
        # Of a size with one other there is no median worth the name: all sizes stand for it.
        typical[k] = np.median(others if len(others) > 1 else utilities)
    far = utilities - typical
    scale = robust_scale(far)
    change = M[:, at] * far
    gain = abs(float(np.max(utilities[sizes == sizes.max()])) - state.observed.empty)
    unlike = (np.abs(far) > max(FAR * scale, GAINS * gain)) & (scale > 0)
    decided = (np.abs(change) > DECISIVE * np.abs(values)[:, None]) & unlike
    worst = np.argsort(-np.abs(np.where(decided, change, 0.0)).max(axis=0), kind="stable")
    found = []
    for k in worst[: min(MOST_NAMED, int(decided.any(axis=0).sum()))]:
        owners = np.flatnonzero(decided[:, k])
        owners = owners[np.argsort(-np.abs(change[owners, k]), kind="stable")][:MOST_NAMED]
        names, members = state.question.owners.names, state.names(at[k])
        changes = {names[i]: float(change[i, k]) for i in owners}
        parts = [f"that of {printable(n)} by {short_number(by)}" for n, by in changes.items()]
        text = (
            f"one training decides much: {format_members(members)} scored "
            f"{short_number(utilities[k])} where others of this size score about "
            f"{short_number(typical[k])}. This alone changes values: {join_list(parts)}."
        )
        numbers = {"utility": float(utilities[k]), "typical": float(typical[k])}
        found.append(
            note(Code.DECISIVE_TRAINING, text, members=list(members), **numbers, changes=changes)
        )
    return found


def missing_resamples(state: State) -> list[Note]:
    """A note if some evaluations know their utility on resamples and others do not."""
    every = [part for own in state.observed.resampled for part in own]
    counts = [0 if part is None else len(part) for part in every]
    if all(counts) or not any(counts):
        return []
    text = (
        f"{counts.count(0):,} of {len(counts):,} evaluations came without scores on resamples of "
        "the validation rows; how much other rows would change the values is therefore not known."
    )
    return [note(Code.MISSING_RESAMPLES, text, without=counts.count(0), evaluations=len(counts))]


def few_resamples(off: Deviations | None) -> list[Note]:
    """A note if evaluations know their utility on so few resamples that these tell little."""
    count = FEWEST_RESAMPLES if off is None else len(off.empty)
    if count >= FEWEST_RESAMPLES:
        return []
    text = (
        f"{count_things(count, 'resample')} of the validation rows cannot show how much other rows "
        "would change the values: widths of intervals from so few are right to about "
        f"± {percent(1 / np.sqrt(2 * count))} % only. Score on {FEWEST_RESAMPLES} resamples at "
        "least, better on 200."
    )
    return [note(Code.FEW_RESAMPLES, text, resamples=count, needed=FEWEST_RESAMPLES)]


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


def short_number(value: float) -> str:
    """A number as prose has it: three digits, or all before the point."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
