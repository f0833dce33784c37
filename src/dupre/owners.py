"""Who holds which rows.

`Owners` keeps the rows exactly as the user gave them, for the model, next to a numeric view of
them, for the sketch. All checks of rows happen here, before anything is trained.

Notation: N rows in total, n owners.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dupre.encoding import Columns, Points, embedded, encode, standardise
from dupre.errors import InputError
from dupre.typing import Ints, Members, Task

MAX_CLASSES_INFERRED = 20
"""A whole-number y with more distinct values than this is taken for a regression target."""

Embed = Callable[[Any], Any]


@dataclass(frozen=True, repr=False)
class Owners:
    """The owners' rows. Build it with `from_arrays`, `from_frame` or `from_mapping`.

    Owners are ordered: by label for `from_arrays` and `from_frame` (numbers by size, text
    alphabetically, a pandas categorical by its categories), so that the order of rows does not
    matter; as given for `from_mapping`.

    Attributes:
        names: one string per owner, (n,).
        X: all rows as given: array (N, ...), DataFrame or CSR matrix.
        y: all targets as given, (N,).
        owner: index into `names` for each row, (N,).
        task: "classification" or "regression".
        points: the numeric view of X.
        embedded: whether the numeric view is the user's own, so that X itself is not checked.
        columns: column names of X if it is a frame, else None.
        target: name of the target column if it came from a frame, else None.
    """

    names: tuple[str, ...]
    X: Any
    y: NDArray[Any]
    owner: Ints
    task: Task
    points: Points
    embedded: bool = False
    columns: tuple[Hashable, ...] | None = None
    target: Hashable | None = None

    @classmethod
    def from_arrays(
        cls, X: Any, y: Any, owner: Any, *, task: Task | None = None, embed: Embed | None = None
    ) -> Owners:
        """Owners from rows X, targets y and one owner label per row.

        Args:
            X: array (N, d), DataFrame or scipy sparse matrix; anything row-indexable with `embed`.
            y: targets, (N,).
            owner: labels, (N,): strings or other hashables, which are shown as strings.
            task: inferred from y when not stated: text, truth values, categories and whole numbers
                with at most 20 distinct values are classes.
            embed: callable(X) -> numeric (N, d) array for the sketch; the model still gets X.
        """
        names, codes = _owner_codes(owner)
        return _checked(X, y, names, codes, task=task, embed=embed)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        owner: Hashable,
        target: Hashable,
        task: Task | None = None,
        embed: Embed | None = None,
    ) -> Owners:
        """Owners from a frame with an owner column and a target column; the rest is X."""
        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"expected a pandas DataFrame, got {type(frame).__name__}")
        for role, column in (("owner", owner), ("target", target)):
            if column not in frame.columns:
                raise InputError(
                    f"the {role} column {column!r} is not in the frame; "
                    f"its columns are {', '.join(map(repr, frame.columns))}"
                )
        if owner == target:
            raise InputError(f"owner and target are the same column {owner!r}")
        names, codes = _owner_codes(frame[owner])
        X = frame.drop(columns=[owner, target])
        return _checked(X, frame[target], names, codes, task=task, embed=embed, target=target)

    @classmethod
    def from_mapping(
        cls,
        data: Mapping[Any, Any],
        *,
        target: Hashable | None = None,
        task: Task | None = None,
        embed: Embed | None = None,
    ) -> Owners:
        """Owners from {name: (X, y)} or {name: DataFrame}; frames need the `target` column's name.

        All X must be of one kind (arrays, frames or sparse) with the same columns.
        """
        if not isinstance(data, Mapping) or not data:
            raise InputError("expected a non-empty mapping {name: (X, y)} or {name: DataFrame}")
        names = _as_names(list(data))
        parts = [_pair(name, part, target) for name, part in zip(names, data.values(), strict=True)]
        for name, (X, y) in zip(names, parts, strict=True):
            if _length(X) != len(y):
                raise InputError(f"owner {name!r}: X has {_length(X)} rows but y has {len(y)}")
            if not len(y):
                raise InputError(f"owner {name!r} has no rows; leave it out")
        X = _stack(names, [X for X, _ in parts])
        y = pd.concat([pd.Series(y) for _, y in parts], ignore_index=True)
        codes = np.repeat(np.arange(len(names)), [len(y) for _, y in parts])
        return _checked(X, y, names, codes, task=task, embed=embed, target=target)

    @property
    def n(self) -> int:
        """Number of owners."""
        return len(self.names)

    @property
    def rows(self) -> Ints:
        """Rows held by each owner, (n,)."""
        return np.bincount(self.owner, minlength=self.n)

    def data_of(self, coalition: Members) -> tuple[Any, NDArray[Any]]:
        """The pooled rows (X, y) of one coalition, a boolean (n,), in the order they were given."""
        return take(self.X, chosen := np.flatnonzero(coalition[self.owner])), self.y[chosen]

    def __repr__(self) -> str:
        held = zip(self.names, self.rows, strict=True)
        rows = ", ".join(f"{name}: {count}" for name, count in held)
        return f"Owners({self.n} owners, {len(self.y)} rows, {self.task}; {rows})"


def take(X: Any, rows: Ints) -> Any:
    """Rows of an array, frame, sparse matrix or list."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    if isinstance(X, list):
        return [X[r] for r in rows]
    return X[rows]


def check_finite(columns: Columns, names: tuple[str, ...], owner: Ints) -> None:
    """Raise InputError naming owner and column if a numeric column holds NaN or infinity."""
    matrix = columns.matrix
    if isinstance(matrix, sparse.csr_array):
        coo = matrix.tocoo()
        bad = ~np.isfinite(coo.data)
        rows, cols = coo.coords[0][bad], coo.coords[1][bad]
    else:
        rows, cols = np.nonzero(~np.isfinite(matrix))
    if not rows.size:
        return
    row, col = rows[0], cols[0]
    holder = owner[row]
    count = int(np.sum((cols == col) & (owner[rows] == holder)))
    raise InputError(
        f"column {columns.source[col]!r} of {names[holder]} holds NaN or infinity "
        f"in {count} of {int(np.sum(owner == holder))} rows; fill or drop them, or pass embed=, a "
        "callable that turns X into finite numbers, and leave the rest to the model's pipeline"
    )


def as_targets(y: Any) -> NDArray[Any]:
    """Y as a one-dimensional array."""
    if isinstance(y, pd.DataFrame):
        y = y.to_numpy()
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"y must be one-dimensional, one target per row, got shape {array.shape}")
    return array


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


def _checked(
    X: Any,
    y: Any,
    names: tuple[str, ...],
    owner: Ints,
    *,
    task: Task | None,
    embed: Embed | None,
    target: Hashable | None = None,
) -> Owners:
    """Validate everything about the rows and build the Owners."""
    targets = as_targets(y)
    if not _length(X) == len(targets) == len(owner):
        raise InputError(
            f"X, y and owner must have one entry per row, "
            f"got {_length(X)}, {len(targets)} and {len(owner)}"
        )
    if len(names) < 2:
        raise InputError(f"expected at least two owners, got {len(names)}: {', '.join(names)}")
    labels = tuple(f"owner {name!r}" for name in names)
    check_targets(targets, labels, owner)
    if sparse.issparse(X):
        X = X.tocsr()
    columns = embedded(X, embed, len(targets)) if embed else encode(X)
    check_finite(columns, labels, owner)
    frame_columns = tuple(X.columns) if isinstance(X, pd.DataFrame) else None
    return Owners(
        names=names,
        X=X,
        y=targets,
        owner=owner,
        task=_task(targets, task),
        points=standardise(columns),
        embedded=embed is not None,
        columns=frame_columns,
        target=target,
    )


def _task(y: NDArray[Any], stated: Task | None) -> Task:
    number = y.dtype.kind in "iuf"
    if stated is not None:
        if stated not in ("classification", "regression"):
            raise InputError(f"task must be 'classification' or 'regression', got {stated!r}")
        if stated == "regression" and not number:
            raise InputError(f"a regression needs a numeric y, got dtype {y.dtype}")
        return stated
    if not number:
        return "classification"
    few_whole_numbers = np.all(y == np.round(y)) and len(np.unique(y)) <= MAX_CLASSES_INFERRED
    return "classification" if few_whole_numbers else "regression"


def _owner_codes(owner: Any) -> tuple[tuple[str, ...], Ints]:
    """Ordered owner names and the index among them of each row's label."""
    labels = pd.Series(owner).reset_index(drop=True)
    if labels.isna().any():
        row = int(np.flatnonzero(labels.isna())[0])
        raise InputError(f"row {row} has no owner label; every row needs one")
    if isinstance(labels.dtype, pd.CategoricalDtype):
        labels = labels.cat.remove_unused_categories()
        codes = np.asarray(labels.cat.codes, dtype=np.int64)
        return _as_names(list(labels.cat.categories)), codes
    distinct = list(labels.unique())
    try:
        distinct = sorted(distinct)
    except TypeError:  # labels of several types have no order of their own
        distinct = sorted(distinct, key=str)
    names = _as_names(distinct)
    position = {label: index for index, label in enumerate(distinct)}
    return names, np.asarray(labels.map(position), dtype=np.int64)


def _as_names(labels: Sequence[Any]) -> tuple[str, ...]:
    names = tuple(str(label) for label in labels)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two different owner labels are both shown as {twice!r}; rename one")
    return names


def _pair(name: str, part: Any, target: Hashable | None) -> tuple[Any, Any]:
    """(X, y) of one owner of a mapping."""
    if isinstance(part, pd.DataFrame):
        if target is None:
            raise InputError(f"owner {name!r} holds a DataFrame: name its target column, target=")
        if target not in part.columns:
            raise InputError(
                f"the target column {target!r} is not in the frame of owner {name!r}; "
                f"its columns are {', '.join(map(repr, part.columns))}"
            )
        return part.drop(columns=[target]), part[target].reset_index(drop=True)
    if isinstance(part, tuple) and len(part) == 2:
        X, y = part
        if not (isinstance(X, (pd.DataFrame, list)) or sparse.issparse(X)):
            X = np.asarray(X)
        return X, as_targets(y)
    raise InputError(f"owner {name!r}: expected (X, y) or a DataFrame, got {type(part).__name__}")


def _stack(names: tuple[str, ...], parts: list[Any]) -> Any:
    """All owners' X under each other, refusing different kinds or columns."""
    first = parts[0]
    for name, part in zip(names, parts, strict=True):
        if _kind(part) != _kind(first):
            raise InputError(
                f"all owners need X of one kind: {names[0]!r} has {_kind(first)}, "
                f"{name!r} has {_kind(part)}"
            )
        if _columns(part) != _columns(first):
            raise InputError(
                f"all owners need the same columns: {names[0]!r} has {_columns(first)}, "
                f"{name!r} has {_columns(part)}"
            )
    if isinstance(first, pd.DataFrame):
        return _concat_frames(parts)
    if isinstance(first, list):
        return [row for part in parts for row in part]
    if sparse.issparse(first):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def _concat_frames(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """pd.concat that keeps a column categorical when the owners' categories differ."""
    parts = [part.copy(deep=False) for part in parts]
    for column in parts[0].columns:
        if all(isinstance(part[column].dtype, pd.CategoricalDtype) for part in parts):
            union = pd.api.types.union_categoricals(
                [part[column] for part in parts], ignore_order=True
            ).categories
            for part in parts:
                if not part[column].cat.categories.equals(union):
                    part[column] = part[column].cat.set_categories(union)
    return pd.concat(parts, ignore_index=True)


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


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(cast(Sequence[Any], X))
