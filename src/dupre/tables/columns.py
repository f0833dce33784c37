"""What a column of a table holds: numbers, categories or dates.

Texts that are numbers or dates for people (`12 %`, `31.05.2024`) are read before, by `numbers`.
A column is of one kind in all its rows. A few cells of another kind ("?" among numbers) are
refused. They do not turn numbers into categories: a model would be trained on the wrong thing
without a warning.

The index of a table says on which line of a file its rows are (see `formats`); messages name it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dupre._types import Members
from dupre.checks import LARGEST
from dupre.errors import InputError, Remedy
from dupre.wording import did_you_mean, quote, quote_names

MAX_TEXTS = 50
"""Different texts up to which a column is never treated as free text."""

FEW = 0.05
"""Share of cells below which cells of another kind than the rest are errors in the data."""

_DATE = r"\d{4}-\d{2}-\d{2}"
_PLACEHOLDERS = {"na", "n.a.", "n/a", "nan", "null", "none", "missing", "#div/0!", "#value!"}


def as_tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    """A name or several, as several."""
    return (names,) if isinstance(names, str) else tuple(names)


def check_drop(frame: pd.DataFrame, *, owner: str, target: str, drop: Sequence[str]) -> None:
    """Raise InputError if a column to drop is unknown or needed."""
    names = [str(name) for name in frame.columns if name not in (owner, target)]
    for name in drop:
        if name in (owner, target):
            raise InputError(f"cannot drop {name!r}: it is the owner or the target column")
        if name not in names:
            raise InputError(
                f"cannot drop {name!r}: no such column{did_you_mean(name, names)}; "
                f"the columns are {quote_names(names)}"
            )


def kind(column: pd.Series) -> str:
    """What a column holds: "number", "truth", "date", "text", "empty" or "other"."""
    types = pd.api.types
    if column.isna().all():
        return "empty"
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "text"  # whatever its categories are: somebody has said so
    if types.is_bool_dtype(column):
        return "truth"
    if types.is_datetime64_any_dtype(column):
        return "date"
    if types.is_numeric_dtype(column):
        return "other" if types.is_complex_dtype(column) else "number"
    nested = (list, dict, set, tuple, bytes, np.ndarray)
    held = column if types.is_object_dtype(column.dtype) else ()
    return "other" if any(isinstance(value, nested) for value in held) else "text"


def tidy(column: pd.Series, *, needed: bool = False) -> pd.Series:
    """A column in the type of what it holds: ISO dates become points in time.

    A column that is `needed`, as the target, can neither have empty cells nor be left out.

    Raises:
        InputError: a few cells are of another kind than the rest, or numbers are infinite.
    """
    column = _as_numpy(column)
    found = kind(column)
    if found == "number":
        _check_finite(column, needed=needed)
    if found == "text" and not isinstance(column.dtype, pd.CategoricalDtype):
        return _tidy_text(column, needed=needed)
    return column


def place(frame: pd.DataFrame | pd.Series, row: int) -> str:
    """Where a row is in its file, in words; without a line in the index, line 1 is the header."""
    index = frame.index
    if index.names[-1] not in ("line", "row"):
        return f"line {row + 2}"
    where = index[row]
    if isinstance(where, tuple):
        return f"{index.names[-1]} {where[-1]} of {where[0]}"
    return f"{index.names[-1]} {where}"


def first(mask: pd.Series | Members) -> int:
    """Position of the first true entry."""
    return int(np.flatnonzero(np.asarray(mask))[0])


def whole_as_text(column: pd.Series) -> pd.Series:
    """Every value as text; 3.0 as "3", because a gap turns whole numbers into floats."""

    def write(value: object) -> str:
        is_whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        return str(int(value)) if is_whole else str(value)  # type: ignore[call-overload]

    texts = [None if pd.isna(value) else write(value) for value in column.astype(object)]
    return pd.Series(texts, index=column.index, dtype=object, name=column.name)


def _as_numpy(column: pd.Series) -> pd.Series:
    """The column in one of numpy's own types, if there is one for it."""
    types = pd.api.types
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return column
    if isinstance(dtype, pd.StringDtype) and dtype.na_value is pd.NA:  # few models know pd.NA
        return column.astype(object).where(column.notna(), None)
    if types.is_timedelta64_dtype(dtype):
        days: pd.Series = column.dt.total_seconds() / 86_400  # the unit of dates in models
        return days
    if types.is_datetime64_any_dtype(dtype):
        return _as_dates(column)
    if types.is_extension_array_dtype(dtype) and types.is_numeric_dtype(dtype):
        return _without_extension(column)
    return _without_objects(column) if types.is_object_dtype(dtype) else column


def _without_extension(column: pd.Series) -> pd.Series:
    """A column of one of pandas' own types of numbers and truth values."""
    if not column.isna().any():  # only then do whole numbers stay whole
        return column.astype(getattr(column.dtype, "numpy_dtype", np.float64))
    if not pd.api.types.is_bool_dtype(column.dtype):
        return column.astype(np.float64)
    return column.astype(object).where(column.notna(), None)


def _without_objects(column: pd.Series) -> pd.Series:
    """A column of objects, if these are dates or numbers, in the type of these."""
    held = pd.api.types.infer_dtype(column, skipna=True)
    if held in ("date", "datetime", "datetime64"):
        return _as_dates(column)
    if held in ("integer", "floating", "decimal", "mixed-integer-float"):
        numbers = [_as_float(value) for value in column]
        return pd.Series(numbers, index=column.index, dtype=np.float64, name=column.name)
    return column


def _as_float(value: Any) -> float:
    try:
        return np.nan if pd.isna(value) else float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return np.inf if value > 0 else -np.inf


def _as_dates(column: pd.Series) -> pd.Series:
    """Points in time without zone; NaT where a cell holds none."""
    # By way of UTC: times of several zones are compared, and models know no zones.
    found = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    return found.dt.tz_localize(None)


def _tidy_text(column: pd.Series, *, needed: bool) -> pd.Series:
    held = column[column.notna().to_numpy()]
    text = held.astype(str)
    dated = text.str.match(_DATE).to_numpy(dtype=bool)
    # Mostly dates: the others are errors, and no dates would become categories without a word.
    if dated.mean() > 1 - FEW:
        dates = _as_dates(text.where(dated, None))
        _check_few(held, dates.isna().to_numpy(), "dates such as 2024-05-31", needed=needed)
        every = column.astype(str).where(column.notna(), None)
        return _as_dates(every) if dates.notna().all() else column
    number = pd.to_numeric(text, errors="coerce").notna().to_numpy(dtype=bool)
    _check_few(held, ~number, "numbers", needed=needed)
    return column


def _check_few(held: pd.Series, wrong: Members, what: str, *, needed: bool) -> None:
    """Raise InputError if a few cells are of another kind, or are signs for "no value"."""
    if not wrong.any():
        return
    few = wrong.mean() < FEW
    if not few and wrong.mean() <= 0.5:  # a column of numbers, with a sign for "no value"
        texts = held[wrong].astype(str).str.strip().str.casefold().unique()
        few = all(text in _PLACEHOLDERS or not re.search(r"\w", text) for text in texts)
    if few:
        value = held.iloc[first(wrong)]
        raise InputError(
            f"column {held.name!r} holds {what}, but {quote(value)} in {place(held, first(wrong))} "
            f"and the like in {int(wrong.sum())} of {len(held)} cells; ",
            *_how_to_mend(held.name, needed=needed),
        )


def _check_finite(column: pd.Series, *, needed: bool) -> None:
    values = column.to_numpy(np.float64)
    wrong = np.abs(values) >= LARGEST
    if wrong.any():
        raise InputError(
            f"column {column.name!r} holds {values[first(wrong)]} in {place(column, first(wrong))} "
            f"and the like in {int(wrong.sum())} of {len(column)} cells; expected finite numbers "
            f"below {LARGEST:g}: ",
            *_how_to_mend(column.name, needed=needed),
        )


def _how_to_mend(name: object, *, needed: bool) -> tuple[str, ...]:
    """The end of a message about cells of a column; `needed` as for `tidy`."""
    if needed:
        return ("correct those cells, or leave their rows out of the file",)
    return "leave those cells empty", *or_drop(name)


def or_drop(name: object) -> tuple[str, ...]:
    """The end of a message about a column that can also be left out."""
    return ", or leave the column out with ", Remedy.DROP, repr(str(name))
