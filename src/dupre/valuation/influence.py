"""What evaluated utilities say of their own weight: one that decides a value, a bad one hidden.

Values are sums of utilities. If one utility is far from all others of its size, it can outweigh
them; readers of the value should know. A floor can hide a bad score of all owners together.

Notation: n owners, p coalitions with a position; M (n, p) from `validation_rows`.
"""

from __future__ import annotations

import numpy as np

from dupre._types import Floats
from dupre.game.coalitions import format_members
from dupre.notes import Code, Note, note
from dupre.predictor.warp import robust_scale
from dupre.valuation.state import State
from dupre.wording import join_list, printable, short_number

FAR = 8.0
"""Robust standard deviations from which on a utility is far from others of its size."""

GAINS = 2.0
"""Distance from others of its size that it must have too, in gains of the largest group."""

DECISIVE = 0.5
"""Part of a value from which on a single training decides it."""

MOST_NAMED = 2
"""Trainings named, and owners of each."""


def spoiled_grand(state: State) -> list[Note]:
    """A note if all owners together score below the floor, which hides how bad it is."""
    observed, everyone = state.observed, np.ones((1, state.question.owners.n), dtype=bool)
    row = state.row.get(int(state.positions(everyone)[0]))
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
