"""How the rows of a table are split for validation, by what is asked of a run."""

from __future__ import annotations

from typing import Any

import pandas as pd
from numpy.typing import NDArray

from dupre.errors import InputError
from dupre.spec import Utility
from dupre.utility.folds import Folds, Holdout
from dupre.wording import did_you_mean, quote, quote_names


def split_of(frame: pd.DataFrame, wanted: Utility) -> Folds | Holdout:
    """How the owners' rows are split for validation."""
    if wanted.holdout is not None:
        return Holdout(wanted.holdout, equal_owners=wanted.equal_owners)
    # A column that models are not given can still say which rows belong together.
    by, in_time = (
        None if column is None else _column(frame, column)
        for column in (wanted.folds_by, wanted.folds_in_time)
    )
    return Folds(wanted.folds, by=by, in_time=in_time, equal_owners=wanted.equal_owners)


def _column(frame: pd.DataFrame, name: str) -> NDArray[Any]:
    if name not in frame.columns:
        names = list(map(str, frame.columns))
        raise InputError(
            f"there is no column {quote(name)} to make folds by{did_you_mean(name, names)}; the "
            f"columns are {quote_names(names)}"
        )
    return frame[name].to_numpy()
