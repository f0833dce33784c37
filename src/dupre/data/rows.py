"""Rows as users give them (arrays, frames, sparse matrices, lists), their targets, and checks.

Every function takes all of these kinds. Owners are only names in messages here.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from copy import deepcopy
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dupre._types import Ints
from dupre.checks import LARGEST
from dupre.data.encoding import NumericColumns
from dupre.errors import InputError
from dupre.wording import quote

_TIMES = ("datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period")


def to_pandas(rows: Any) -> Any:
    """A frame or a column of another library (polars, pyarrow) as that of pandas; others as is."""
    if isinstance(rows, (np.ndarray, pd.DataFrame, pd.Series, list)) or sparse.issparse(rows):
        return rows
    import narwhals  # here: arrays and frames of pandas, the usual rows, do without

    found = narwhals.from_native(rows, pass_through=True, eager_only=True, allow_series=True)
    frames = (narwhals.DataFrame, narwhals.Series)
    return found.to_pandas() if isinstance(found, frames) else rows


def check_same_index(X: Any, other: Any, what: str, whose: str = "") -> None:
    """Raise InputError if two pandas objects, matched by position, have different indexes.

    The message names `what` the other one is, and begins with `whose` rows they are.
    """
    pandas = (pd.DataFrame, pd.Series)
    both = isinstance(X, pandas) and isinstance(other, pandas) and len(X) == len(other)
    if both and not X.index.equals(other.index):
        raise InputError(
            f"{whose}X and {what} are matched row by row but have different indexes; align them, "
            f"or pass {what}.to_numpy() if their order is right"
        )


def check_pair(X: Any, y: Any, whose: str = "") -> None:
    """Raise InputError if X and y have different indexes, or one has masked entries.

    NumPy and scikit-learn use the numbers under a mask. The message begins with `whose` rows they
    are.
    """
    check_same_index(X, y, "y", whose)
    for what, array in (("X", X), ("y", y)):
        masked = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else np.empty(0)
        if masked.any():
            raise InputError(
                f"{whose}{what} has masked entries, {int(masked.sum()):,} of {masked.size:,}, and "
                "models would use the numbers under the mask; fill them, or drop their rows"
            )


def take(X: Any, rows: Ints) -> Any:
    """Rows of an array, frame, sparse matrix or list."""
    if isinstance(X, (pd.DataFrame, pd.Series)):
        return X.iloc[rows]
    if isinstance(X, list):
        return [X[r] for r in rows]
    return X[rows]


def gather(X: Any, rows: Ints) -> Any:
    """`take`, but rows that may be changed in place: they share nothing with X."""
    found = take(X, rows)
    # pandas shares all rows in their order, and scikit-learn writes to what is shared.
    shared = isinstance(found, (pd.DataFrame, pd.Series)) and len(found) == length(X)
    of_objects = isinstance(found, list) or (
        isinstance(found, np.ndarray) and found.dtype.kind == "O"
    )
    return copy_rows(found) if shared or of_objects else found


def copy_rows(X: Any) -> Any:
    """The same rows, which may be changed in place; objects that cannot be copied are shared."""
    try:
        return deepcopy(X)
    except Exception:  # noqa: BLE001  # rows may be objects of any kind, with code of their own
        return take(X, np.arange(length(X)))


def copy_unless_fixed(X: Any) -> Any:
    """`copy_rows`, but not of an array that nobody can change: a file larger than memory."""
    fixed = isinstance(X, np.ndarray) and not X.flags.writeable
    return X if fixed else copy_rows(X)


def check_finite(columns: NumericColumns, names: tuple[str, ...], owner: Ints) -> None:
    """Raise InputError naming owner and column if a number is missing, infinite or too large."""
    matrix = columns.matrix
    if isinstance(matrix, sparse.csr_array):
        coo = matrix.tocoo()
        bad = ~(np.abs(coo.data) < LARGEST)
        rows, cols = coo.coords[0][bad], coo.coords[1][bad]
    else:
        rows, cols = np.nonzero(~((matrix < LARGEST) & (matrix > -LARGEST)))  # without a copy
    if not rows.size:
        return
    row, col = rows[0], cols[0]
    holder = owner[row]
    count = int(np.sum((cols == col) & (owner[rows] == holder)))
    raise InputError(
        f"column {columns.source[col]!r} of {names[holder]} holds NaN or infinity (or more than "
        f"{LARGEST:g}) in {count} of {int(np.sum(owner == holder))} rows; fill or drop them, or "
        "pass embed=, a callable that turns X into finite numbers, and leave the rest to the "
        "model's pipeline"
    )


def as_targets(y: Any) -> NDArray[Any]:
    """Y as a one-dimensional array."""
    if isinstance(y, pd.DataFrame):
        y = y.to_numpy()
    array = np.asarray(y)
    if array.dtype == object and array.ndim == 1:
        array = pd.Series(array).infer_objects().to_numpy()
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"y must be one-dimensional, one target per row, got shape {array.shape}")
    return array


def is_number(y: NDArray[Any]) -> bool:
    """Whether targets are numbers rather than text or booleans."""
    return y.dtype.kind in "iuf"


def check_no_times(y: NDArray[Any], target: Hashable | None) -> None:
    """Raise InputError if targets are dates, times or durations: each would be a class.

    `target` is the name of their column, None if they have none.
    """
    if pd.api.types.infer_dtype(y) in _TIMES:
        where = "y" if target is None else f"the column {quote(target)}"
        raise InputError(
            f"expected numbers or classes to predict, but {where} holds dates or times such as "
            f"{quote(str(y[0]))}; convert them to numbers (days since a date) or to classes "
            "(months)"
        )


def check_targets(y: NDArray[Any], names: tuple[str, ...], owner: Ints) -> None:
    """Raise InputError naming the owner if a target is missing or infinite."""
    bad = ~np.isfinite(y) if y.dtype.kind in "fc" else np.asarray(pd.isna(y))
    if bad.any():
        holder = owner[np.flatnonzero(bad)[0]]
        raise InputError(
            f"y of {names[holder]} holds missing or infinite values in "
            f"{int(np.sum(bad & (owner == holder)))} of {int(np.sum(owner == holder))} rows; "
            "drop those rows"
        )
    if y.dtype == object and len({type(label) for label in y}) > 1:
        raise InputError(
            f"y of {names[owner[0]]} and others mixes types such as "
            f"{' and '.join(sorted({type(label).__name__ for label in y})[:2])}; use one"
        )


def check_column_names(X: Any) -> None:
    """Raise InputError if a frame has two columns of one name."""
    if isinstance(X, pd.DataFrame) and not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise InputError(f"the column {twice!r} appears twice; rename one of them")


def stack(names: tuple[str, ...], parts: list[Any]) -> Any:
    """All owners' X in one; InputError if they differ in kind or columns."""
    first = parts[0]
    check_column_names(first)
    for name, part in zip(names, parts, strict=True):
        if _kind(part) != _kind(first):
            both = f"{names[0]!r} has {_kind(first)}, {name!r} has {_kind(part)}"
            raise InputError(f"all owners need X of one kind: {both}")
        if _columns(part) != _columns(first):
            both = _difference(names[0], first, name, part)
            raise InputError(f"all owners need the same columns: {both}")
    if isinstance(first, pd.DataFrame):
        return _concat_frames(parts)
    if isinstance(first, list):
        return [row for part in parts for row in part]
    if sparse.issparse(first):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def _concat_frames(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """pd.concat that keeps a column categorical when the owners' categories differ."""
    common: dict[Hashable, pd.CategoricalDtype] = {}
    for column, dtype in parts[0].dtypes.items():
        dtypes = [part[column].dtype for part in parts]
        kinds = [other for other in dtypes if isinstance(other, pd.CategoricalDtype)]
        if len(kinds) == len(parts) and any(other != dtype for other in kinds):
            levels = {level for other in kinds for level in other.categories}
            common[column] = pd.CategoricalDtype(_sort_levels(levels))
    return pd.concat([part.astype(common) for part in parts], ignore_index=True)


def match_types(rows: Any, others: Any) -> Any:
    """Rows with the types of other rows where no value changes by that; else as they are.

    Digests of rows depend on types: a column of floats among whole numbers would change all rows.
    """
    if isinstance(rows, pd.DataFrame) and isinstance(others, pd.DataFrame):
        check_column_names(rows)
        known = [c for c in rows.columns if c in others.columns]
        return rows.astype({c: _as_type(rows[c], others[c].dtype).dtype for c in known})
    if isinstance(rows, list) and isinstance(others, np.ndarray):
        rows = np.asarray(rows)
    if hasattr(rows, "dtype") and hasattr(others, "dtype"):
        return _as_type(rows, others.dtype)
    return rows


def _as_type(values: Any, dtype: Any) -> Any:
    if isinstance(dtype, pd.CategoricalDtype):  # `stack` joins levels that others do not have
        return values.astype(dtype if values.dropna().isin(dtype.categories).all() else "category")
    if values.dtype == dtype:
        return values
    try:
        cast = values.astype(dtype)
        same = (cast != values).nnz == 0 if sparse.issparse(values) else (cast == values).all()
    except (TypeError, ValueError):
        return values
    return cast if same else values


def _sort_levels(levels: Collection[Any]) -> list[Any]:
    """Levels in an order that does not depend on the order of owners."""
    try:
        return sorted(levels)
    except TypeError:  # numbers and texts
        return sorted(levels, key=lambda level: (type(level).__name__, repr(level)))


def with_levels_of_both(X: Any, other: Any) -> tuple[Any, Any]:
    """Two frames with the same levels in each categorical column: those that occur in one of them.

    Levels are sorted; those of an ordered column keep their order. So codes do not depend on the
    levels of other rows. Anything but frames stays as it is.
    """
    if not (isinstance(X, pd.DataFrame) and isinstance(other, pd.DataFrame)):
        return X, other
    common: dict[Hashable, pd.CategoricalDtype] = {}
    for column, dtype in X.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype):
            occurs = {*X[column].dropna().unique(), *other[column].dropna().unique()}
            first = [level for level in dtype.categories if dtype.ordered and level in occurs]
            levels = [*first, *_sort_levels(occurs.difference(first))]
            common[column] = pd.CategoricalDtype(levels, dtype.ordered)
    return (X.astype(common), other.astype(common)) if common else (X, other)


def _difference(first_name: str, first: Any, name: str, part: Any) -> str:
    """How the columns of two owners differ, in words."""
    if not isinstance(part, pd.DataFrame):
        return f"rows of {first_name!r} have shape {first.shape[1:]}, of {name!r} {part.shape[1:]}"
    lacking = [column for column in first.columns if column not in part.columns]
    if lacking:
        return f"{name!r} lacks {lacking[0]!r}, which {first_name!r} has"
    added = [column for column in part.columns if column not in first.columns]
    if added:
        return f"{first_name!r} lacks {added[0]!r}, which {name!r} has"
    return f"{name!r} has them in another order than {first_name!r}"


def _kind(X: Any) -> str:
    if isinstance(X, pd.DataFrame):
        return "a DataFrame"
    if sparse.issparse(X):
        return "a sparse matrix"
    return "a list" if isinstance(X, list) else "an array"


def _columns(X: Any) -> Any:
    if isinstance(X, pd.DataFrame):
        return list(X.columns)
    return None if isinstance(X, list) else X.shape[1:]


def length(X: Any) -> int:
    """Number of rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(cast(Sequence[Any], X))
