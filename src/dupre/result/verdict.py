"""Can owners be paid by these values? The verdict, from codes of notes and stated limits.

Notation: n owners, m draws of their values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dupre.notes import BEWARE, GUESSED, STOP, Code, Note, note, worst_first
from dupre.result.records import none_above_floor
from dupre.result.sharing import share_parts
from dupre.result.uncertainty import IN_NO_INTERVAL
from dupre.result.values import Values
from dupre.wording import percent

SURE = 0.95
"""Least probability of a gain: as sure as every interval and every settled order."""

MOST_UNDECIDED = 0.5
"""Part of an amount above which it is undecided: above it, more of the money depends on chance than
on data."""

MUCH_UNDECIDED = 0.25
"""Part of an amount above which who pays should know that it is undecided."""

DECIDING = frozenset({Code.NO_GAIN, Code.GAIN_UNSURE, Code.AMOUNT_UNDECIDED, Code.PART_UNDECIDED})
"""Codes of the notes that this module makes."""

# That no resample changes a value leaves out what is rarer than 3 in all rows: small print, not a
# reservation, or exact results would have one too.
RESERVED = frozenset(IN_NO_INTERVAL) - {Code.UNCHANGED_BY_ROWS}
"""Codes of what is in no interval, and makes a reservation whatever its severity."""

Kind = Literal["payable", "payable with reservations", "not payable"]


@dataclass(frozen=True)
class Verdict:
    """Whether owners can be paid by values.

    Attributes:
        kind: "payable", "payable with reservations" or "not payable".
        reasons: the notes that decide it, the gravest first; none if it is payable.
        gain_probability: that all data together are worth more than none, as far as it is known.
        undecided: part of an amount that other possible values would give to others, from 0 to 1.
    """

    kind: Kind
    reasons: tuple[Note, ...]
    gain_probability: float
    undecided: float


def verdict(v: Values) -> Verdict:
    """The verdict on a valuation."""
    probability, undecided = gain_probability(v), undecided_part(v)
    others = [one for one in v.notes if one.code not in DECIDING]
    notes = worst_first([*_decide(v, probability, undecided), *others])
    against = tuple(one for one in notes if one.severity == STOP or one.code in GUESSED)
    if against:
        return Verdict("not payable", against, probability, undecided)
    reserved = tuple(one for one in notes if one.severity == BEWARE or one.code in RESERVED)
    kind: Kind = "payable with reservations" if reserved else "payable"
    return Verdict(kind, reserved, probability, undecided)


def verdict_notes(v: Values) -> list[Note]:
    """What the gain and the shares of an amount say against paying by these values."""
    return _decide(v, gain_probability(v), undecided_part(v))


def gain_probability(v: Values) -> float:
    """P(u(all) > u(no data)), as far as its uncertainty is known.

    The values add up to that gain, so its variance is that of their sum; of semivalues that do not
    add up to it, that of their sum stands for it.
    """
    gain, spread = _gain(v), v.uncertainty.errors().of_sum()
    return float(spread.probability_above_zero(np.array(gain))) if gain else 0.0


def undecided_part(v: Values) -> float:
    """Part of an amount that goes to others, on average over joint draws of the values.

    Half the sum of what owners get more or less in a draw; all of it in a draw that shares nothing.
    """
    if (found := share_parts(v, v.uncertainty.errors())) is None:
        return 1.0
    paid, draws = found
    moved = np.abs(draws - paid).sum(axis=1) / 2
    return float(np.clip(np.where(np.isnan(moved), 1.0, moved).mean(), 0.0, 1.0))


def _gain(v: Values) -> float:
    """u(all) - u(no data); zero if they differ by rounding."""
    grand, empty = v.facts.grand, v.facts.empty
    return 0.0 if abs(grand - empty) <= 1e-12 * max(abs(grand), abs(empty)) else grand - empty


def _decide(v: Values, probability: float, undecided: float) -> list[Note]:
    gain = _gain(v)
    if gain < 0 or none_above_floor(v.facts):  # said by `remarks`; no gain can be shared
        return []
    if not gain:
        text = f"all data together score {v.facts.grand:.4g}, the same as no data."
        return [note(Code.NO_GAIN, text, all=float(v.facts.grand), none=float(v.facts.empty))]
    found = []
    if probability < SURE:
        text = (
            f"that all data together are worth more than none has a probability of only "
            f"{percent(probability)} %; {percent(SURE)} % is needed to pay by it."
        )
        found.append(note(Code.GAIN_UNSURE, text, probability=probability, needed=SURE))
    much = (
        f"{percent(undecided)} % of an amount is undecided: on average so much of it would go to "
        "others by other values that are possible"
    )
    if undecided > MOST_UNDECIDED:
        text = f"{much}; at most {percent(MOST_UNDECIDED)} % may."
        found.append(note(Code.AMOUNT_UNDECIDED, text, part=undecided, most=MOST_UNDECIDED))
    elif undecided > MUCH_UNDECIDED:
        found.append(note(Code.PART_UNDECIDED, f"{much}.", part=undecided))
    return found
