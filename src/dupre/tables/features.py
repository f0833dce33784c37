"""The columns that models are given, by what they hold, and why others are left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from dupre.errors import InputError
from dupre.tables.columns import MAX_TEXTS, as_tuple, check_drop, kind
from dupre.tables.formats import UNNAMED
from dupre.tables.numbers import how_to_read

ASKED, NAMELESS = "asked for", "no name in the header"
GROUPS, JOINED = "folds are made by it", "it says when an owner joined"
"""Why columns are left out whatever they hold."""


@dataclass(frozen=True)
class Columns:
    """The columns of X by what they hold, in the order of the table.

    Attributes:
        numbers: names of the columns of numbers and truth values.
        categories: names of the columns of few different texts.
        dates: names of the columns of points in time.
        left_out: (name, reason in words) of the columns that are of no use to a model.
        free_texts: names of those left out because most of their texts occur once.
    """

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    dates: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    free_texts: tuple[str, ...] = field(default=(), compare=False)

    @property
    def used(self) -> tuple[str, ...]:
        """All names that are not left out."""
        return (*self.numbers, *self.categories, *self.dates)


def columns_of(
    frame: pd.DataFrame,
    *,
    owner: str,
    target: str,
    drop: str | Sequence[str] = (),
    groups: str | None = None,
    cohorts: str | None = None,
) -> Columns:
    """The columns of X by what they hold; X is the table without owner and target.

    Args:
        frame: the table, as `read_table` returns it.
        owner: name of the owner column.
        target: name of the target column.
        drop: name or names of columns to leave out.
        groups: name of a column that folds are made by, such as a patient. It is left out: no model
            is scored on rows of a group that it was trained on, so it can only mislead.
        cohorts: name of the column that says when an owner joined. It is left out: it says who
            holds a row, not what the row is like.

    Raises:
        InputError: a column to drop is unknown or needed, or no column is left.
    """
    drop = as_tuple(drop)
    check_drop(frame, owner=owner, target=target, drop=drop)
    names = [str(name) for name in frame.columns if name not in (owner, target)]
    stated = {groups: GROUPS, cohorts: JOINED} | dict.fromkeys(drop, ASKED)
    reasons = {name: stated.get(name) or _reason_against(name, frame[name]) for name in names}
    counts = {name: _count_free_texts(frame[name]) for name in names if not reasons[name]}
    free = {
        name: f"{count} different texts in {len(frame)} rows"
        for name, count in counts.items()
        if count
    }
    reasons |= free
    kinds = {name: kind(frame[name]) for name in names if not reasons[name]}
    if not kinds:
        raise _nothing_left(frame, reasons, tuple(free))
    return Columns(
        numbers=tuple(name for name in kinds if kinds[name] in ("number", "truth")),
        categories=tuple(name for name in kinds if kinds[name] == "text"),
        dates=tuple(name for name in kinds if kinds[name] == "date"),
        left_out=tuple((name, reason) for name, reason in reasons.items() if reason),
        free_texts=tuple(free),
    )


def _nothing_left(
    frame: pd.DataFrame, reasons: Mapping[str, str], free: Sequence[str]
) -> InputError:
    """The error of a table without a column to train on; free texts may be numbers for people."""
    found = "; ".join(f"{name!r}: {reason}" for name, reason in reasons.items()) or "none"
    text = f"no column is left to train on besides owner and target; found {found[:400]}"
    texts = next((parts for parts in map(how_to_read, (frame[name] for name in free)) if parts), ())
    return InputError(text, *([". ", *texts] if texts else []))


def _reason_against(name: str, column: pd.Series) -> str:
    """Why a column is of no use to a model; "" if it is of use."""
    found = kind(column)
    if found == "empty":
        return "empty"
    if found == "other":
        return "not plain numbers or texts"
    if re.fullmatch(UNNAMED.format(r"\d+"), name) or name.startswith("Unnamed: "):
        return NAMELESS
    held = column[column.notna().to_numpy()]
    different = held.astype(str).nunique() if found == "text" else held.nunique()
    # A single value with gaps tells those rows from the others.
    if different == 1 and len(held) == len(column):
        return "the same in every row"
    return ""


def _count_free_texts(column: pd.Series) -> int:
    """How many different texts a column holds if most occur once; 0 for any other column.

    They are names or notes, whose levels no other row shares.
    """
    if kind(column) != "text":
        return 0
    held = column[column.notna().to_numpy()].astype(str)
    different = held.nunique()
    return different if different > MAX_TEXTS and different > len(held) / 2 else 0
