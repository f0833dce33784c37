"""The columns of owners, targets and cohorts: do they look like what they should be?

A wrong choice would not fail: it would be trained and paid for. So a column that does not look like
its role is refused here.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dupre._types import Members, Names, Task
from dupre.data.owners import task_of
from dupre.data.rows import as_targets
from dupre.errors import InputError, Remedy
from dupre.spec import Data
from dupre.tables.columns import (
    MAX_TEXTS,
    as_tuple,
    check_drop,
    first,
    kind,
    place,
    tidy,
    whole_as_text,
)
from dupre.tables.numbers import WITH_UNIT, Forms, kept_as_text, looks_like, read_forms
from dupre.wording import did_you_mean, quote, quote_names

MANY_OWNERS = 20
"""With more owners than this, more than one owner per two rows counts as a mistake."""


def check_roles(frame: pd.DataFrame, data: Data, known: Forms | None = None) -> pd.DataFrame:
    """The table with owner names as text and every column in the type of what it holds.

    An index called "line" or "row" says where rows are in the file. The contents of columns to drop
    are not checked. How numbers and dates are written is in `attrs["forms"]` of the table; `known`
    are the forms of before, if they are decided.

    Raises:
        InputError: a column is missing, or its contents do not fit its role.
    """
    owner, target, drop = data.owner, data.target, as_tuple(data.drop)
    for role, name in (("owner", owner), ("target", target), ("cohort", data.cohorts)):
        if name is not None:
            check_known(frame, role, name)
    check_drop(frame, owner=owner, target=target, drop=drop)
    frame, forms = read_forms(frame, data, known)
    result = {}
    for name in frame.columns:
        if name == owner:
            result[name] = _owner_names(frame[name])
        elif name in drop or name in kept_as_text(forms):
            result[name] = frame[name]
        else:
            result[name] = tidy(frame[name], needed=name == target)
    _check_target(result[target])
    table = pd.DataFrame(result, index=frame.index)
    table.attrs["forms"] = forms
    if data.cohorts is not None:
        _check_cohorts(table[owner], read_again(frame, data.cohorts, data))
    return table


def read_again(frame: pd.DataFrame, name: str, data: Data) -> pd.Series:
    """A column in the type of what it holds, also one that is dropped and so was not read as such.

    That is used beside the model: to group rows, or owners.
    """
    stated = tuple(form for form in data.numbers if form.partition("=")[0] == name)
    alone = msgspec.structs.replace(data, drop=(), numbers=stated)
    return tidy(read_forms(frame[[name]], alone)[0][name])


def cohorts_of(frame: pd.DataFrame, data: Data) -> tuple[Names, ...]:
    """Owners of a checked table who joined together, the first first, by the column that says."""
    when = read_again(frame, str(data.cohorts), data)
    joined = when.groupby(frame[data.owner].to_numpy(), sort=False).first()
    return tuple(tuple(joined.index[joined == at]) for at in sorted(joined.unique()))


def _check_cohorts(owners: pd.Series, when: pd.Series) -> None:
    """Raise InputError if an owner did not join once, or nobody knows when."""
    if when.name == owners.name:
        raise InputError(
            f"the owner column {owners.name!r} does not say when an owner joined; state another "
            "column as that of cohorts"
        )
    if kind(when) == "other":
        raise InputError(
            f"the cohort column {when.name!r} holds lists or the like; expected numbers, dates or "
            "texts that sort: write when each owner joined"
        )
    empty = when.isna().to_numpy()
    if empty.any():
        raise InputError(
            f"the cohort column {when.name!r} is empty in {int(empty.sum())} of {len(when)} rows, "
            f"first in {place(when, first(empty))}, of {quote(owners.iloc[first(empty)])}; write "
            "when each owner joined in all its rows"
        )
    for name, cells in when.groupby(owners.to_numpy(), sort=False):
        other = (cells != cells.iloc[0]).to_numpy()
        if other.any():
            one, two = (
                f"{quote(str(cells.iloc[i]))} in {place(cells, i)}" for i in (0, first(other))
            )
            raise InputError(
                f"{quote(name)} has {one} and {two} of the cohort column {when.name!r}; expected "
                "when the owner joined, the same in all its rows: write one of them in all"
            )


def without_empty(
    frame: pd.DataFrame, data: Data, roles: Sequence[str]
) -> tuple[pd.DataFrame, str]:
    """The rows that have an owner and a target, if such are to be left out; how many have not."""
    keep, counts = np.ones(len(frame), dtype=bool), []
    for role in roles if data.skip_empty else ():
        if (name := getattr(data, role)) in frame.columns:
            blank = _is_blank(frame[name])
            counts += [f"{(blank & keep).sum():,} without {role}"] * int((blank & keep).any())
            keep &= ~blank
    if not keep.any():
        raise InputError(f"every row is {' or '.join(counts)}; expected rows that have both")
    return frame[keep], ", ".join(counts)


def _is_blank(column: pd.Series) -> Members:
    """Whether each cell is empty or holds only white space, (N,)."""
    return np.asarray(column.isna() | (column.astype(str).str.strip() == ""))


def check_known(frame: pd.DataFrame, role: str, name: str, where: str = "the table") -> None:
    """Raise InputError if there is no such column, with the one that was probably meant."""
    if name in frame.columns:
        return
    names = [str(column) for column in frame.columns]
    numbers = pd.to_numeric(pd.Series(names), errors="coerce").notna()
    header = " (is there a header? the first line must name the columns)" * bool(numbers.any())
    raise InputError(
        f"{where} has no {role} column {name!r}{did_you_mean(name, names)}; "
        f"the columns are {quote_names(names)}{header}"
    )


def _owner_names(column: pd.Series) -> pd.Series:
    """The owner of each row as text."""
    if kind(column) == "other":
        raise InputError(
            f"the owner column {column.name!r} holds lists or the like; expected names"
        )
    names = whole_as_text(column)
    blank = _is_blank(names)
    if blank.any():
        raise InputError(
            f"the owner column {column.name!r} is empty in {int(blank.sum())} of {len(names)} "
            f"rows, first in {place(names, first(blank))}; name the owner of every row, or leave "
            "these rows out with ",
            Remedy.SKIP_EMPTY,
        )
    texts = names.astype(str)
    if texts.str.fullmatch(r"[-+]?\d+(\.0+)?").all():
        texts = texts.str.replace(r"\.0+$", "", regex=True)
    _check_owners(texts)
    _check_spelling(texts, "owner")
    return texts.astype(object)


def name_numbers(owners: pd.Series) -> pd.Series:
    """Owner names that are all numbers with the name of their column: "StoreID 7" for 7.

    In a sentence, 7 alone is not seen to be an owner.
    """
    if not owners.str.fullmatch(r"[-+]?\d+").all():
        return owners
    return f"{owners.name} " + owners


def _check_owners(texts: pd.Series) -> None:
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64)
    different = texts.nunique()
    fractional = np.isfinite(numbers) & (numbers != np.round(numbers))
    if np.isfinite(numbers).all() and fractional.any():
        raise InputError(
            f"the owner column {texts.name!r} holds numbers such as "
            f"{texts.iloc[first(fractional)]}; is it the owner column? expected names"
        )
    if different > MANY_OWNERS and different > len(texts) / 2:
        raise InputError(
            f"the owner column {texts.name!r} has {different} different values in {len(texts)} "
            "rows; expected an owner column, which names who holds each row"
        )
    if different == 1:
        raise InputError(
            f"the owner column {texts.name!r} is {quote(texts.iloc[0])} in all {len(texts)} rows; "
            "expected at least two owners"
        )


def _check_spelling(texts: pd.Series, role: str) -> None:
    """Raise InputError if two names differ only in space or in how accents are stored."""
    seen: dict[str, str] = {}
    for name in texts.unique():
        key = " ".join(unicodedata.normalize("NFC", name).split())
        other = seen.setdefault(key, name)
        if other != name:
            by_space = "".join(other.split()) == "".join(name.split())
            show = repr if by_space else ascii  # the same accent can be stored in two ways
            raise InputError(
                f"the {role} column {texts.name!r} holds both {show(other)} and {show(name)}, "
                "which look the same; write them alike if they are, or rename one"
            )


def _check_target(column: pd.Series) -> None:
    check_complete(column, "target")
    found = kind(column)
    if found in ("date", "other"):
        held = "dates" if found == "date" else "lists or other objects"
        raise InputError(
            f"the target column {column.name!r} holds {held}; expected classes or numbers"
        )
    different = column.nunique()
    if different == 1:
        raise InputError(
            f"the target column {column.name!r} is {quote(column.tolist()[0])} in all "
            f"{len(column)} rows; expected something to predict"
        )
    if found == "text":
        like = looks_like(column) if different > MAX_TEXTS else None
        if like and like.what == WITH_UNIT:
            raise InputError(
                f"the target column {column.name!r} holds {WITH_UNIT} such as "
                f"{quote(like.example)}, not all with the same unit; expected "
                "numbers: write all alike"
            )
        if different > MAX_TEXTS and different > len(column) / 2:
            raise InputError(
                f"the target column {column.name!r} has {different} different texts in "
                f"{len(column)} rows; expected classes or numbers: is it the target?"
            )
        _check_spelling(column.astype(str), "target")


def check_complete(column: pd.Series, role: str) -> None:
    """Raise InputError if a cell is empty."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise InputError(
            f"the {role} column {column.name!r} is empty in {int(missing.sum())} of {len(column)} "
            f"rows, first in {place(column, first(missing))} (cells such as NA and None count as "
            "empty); fill them, or leave these rows out with ",
            Remedy.SKIP_EMPTY,
        )


def check_validation(
    y_train: NDArray[Any], y_val: NDArray[Any], *, task: Task | None = None
) -> None:
    """Raise InputError if validation rows have classes that no training row has."""
    if task_of(as_targets(y_train), task) != "classification":
        return
    known = set(np.asarray(y_train).tolist())
    unknown = Counter(label for label in np.asarray(y_val).tolist() if label not in known)
    if unknown:
        shown = ", ".join(
            f"{label!r} ({count} row{'s' if count > 1 else ''})"
            for label, count in unknown.most_common(3)
        )
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise InputError(
            f"the validation rows hold classes that no training row has: {shown}{more}; no model "
            "can get them right: drop those rows, or correct the labels"
        )
