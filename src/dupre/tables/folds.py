"""How the rows of a table are split for validation, by what is asked of a run."""

from __future__ import annotations

import pandas as pd

from dupre.errors import InputError
from dupre.spec import Data, Utility
from dupre.tables.columns import kind
from dupre.tables.roles import read_again
from dupre.utility.folds import Folds, Holdout
from dupre.wording import did_you_mean, quote, quote_names


def split_of(frame: pd.DataFrame, wanted: Utility, data: Data) -> Folds | Holdout:
    """How the owners' rows are split for validation.

    A column that models are not given can still say which rows belong together or come later.
    """
    if wanted.holdout is not None:
        return Holdout(wanted.holdout, equal_owners=wanted.equal_owners)
    by = None if wanted.folds_by is None else _column(frame, wanted.folds_by)
    in_time = None if wanted.folds_in_time is None else _times(frame, wanted.folds_in_time, data)
    return Folds(
        wanted.folds,
        by=None if by is None else by.to_numpy(),
        in_time=None if in_time is None else in_time.to_numpy(),
        equal_owners=wanted.equal_owners,
    )


def _column(frame: pd.DataFrame, name: str) -> pd.Series:
    if name not in frame.columns:
        names = list(map(str, frame.columns))
        raise InputError(
            f"there is no column {quote(name)} to make folds by{did_you_mean(name, names)}; the "
            f"columns are {quote_names(names)}"
        )
    return frame[name]


def _times(frame: pd.DataFrame, name: str, data: Data) -> pd.Series:
    """A column as numbers or dates."""
    _column(frame, name)
    column = read_again(frame, name, data)
    if kind(column) not in ("number", "date"):
        raise InputError(
            f"folds in time need numbers or dates, but column {quote(name)} holds texts such as "
            f"{quote(column.iloc[0])}: write all of them in one form, such as 2024-03-01"
        )
    return column
