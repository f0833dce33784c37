"""Who holds which rows.

`Owners` keeps the rows exactly as the user gave them, for the model, and a numeric view of them,
for the sketch. All checks of rows happen here, before anything is trained.

Notation: N rows in total, n owners.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dupre._types import Bools, Digests, Ints, Members, Task
from dupre.data.digests import digests_of_owners, digests_of_rows
from dupre.data.encoding import Points, apply_embed, encode, standardise
from dupre.data.rows import (
    as_targets,
    check_column_names,
    check_finite,
    check_no_times,
    check_pair,
    check_same_index,
    check_targets,
    copy_unless_fixed,
    gather,
    is_number,
    length,
    match_types,
    stack,
    take,
    to_pandas,
)
from dupre.errors import InputError
from dupre.wording import did_you_mean, printable, quote, quote_names

MAX_CLASSES_INFERRED = 20
"""A y of whole numbers with more distinct values than this is a regression target."""

Embed = Callable[[Any], Any]


@dataclass(frozen=True, repr=False, eq=False)
class Owners:
    """The owners' rows. Build it with `from_arrays`, `from_frame` or `from_mapping`.

    Owners are ordered by label (numbers by size, text alphabetically, a pandas categorical by its
    categories), so that the order of rows, or of a mapping, does not matter.

    Attributes:
        names: one string per owner, (n,).
        X: all rows as given: array (N, ...), DataFrame or CSR matrix.
        y: all targets as given, (N,).
        owner: index into `names` for each row, (N,).
        task: "classification" or "regression".
        points: the numeric view of X.
        embed: makes the numeric view of X, if the user brought it; X itself is not checked then.
        columns: column names of X if it is a frame, else None.
        target: name of the target column if it came from a frame, else None.
    """

    names: tuple[str, ...]
    X: Any
    y: NDArray[Any]
    owner: Ints
    task: Task
    points: Points
    embed: Embed | None = None
    columns: tuple[Hashable, ...] | None = None
    target: Hashable | None = None

    @classmethod
    def from_arrays(
        cls, X: Any, y: Any, owner: Any, *, task: Task | None = None, embed: Embed | None = None
    ) -> Owners:
        """Owners from rows X, targets y and one owner label per row.

        Rows are not copied: do not change X in place as long as the owners are used.

        Args:
            X: array (N, d), frame or scipy sparse matrix; anything row-indexable with `embed`.
                A frame of polars or pyarrow becomes one of pandas.
            y: targets, (N,).
            owner: labels, (N,): strings or other hashables. The name of an owner is `str(label)`,
                also for a utility of your own.
            task: inferred from y by default: text, booleans, categories and whole numbers with at
                most 20 distinct values are classes. Dates are refused: convert them.
            embed: callable(X) -> numeric (N, d) array for the sketch; the model still gets X.
        """
        X, y, owner = map(to_pandas, (X, y, owner))
        check_pair(X, y)
        check_same_index(X, owner, "owner")
        names, codes = _owner_codes(owner)
        return _build_owners(X, y, names, codes, task=task, embed=embed)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        owner: Hashable,
        target: Hashable,
        task: Task | None = None,
        embed: Embed | None = None,
    ) -> Owners:
        """Owners from a frame (pandas, polars, pyarrow) with owner and target; the rest is X."""
        frame = to_pandas(frame)
        if not isinstance(frame, pd.DataFrame):
            raise InputError(
                f"expected a frame of pandas, polars or pyarrow, got {type(frame).__name__}"
            )
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
        return _build_owners(X, frame[target], names, codes, task=task, embed=embed, target=target)

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
        labels = _in_order(data)
        names = _as_names(labels)
        pairs = zip(names, labels, strict=True)
        parts = [_pair(name, data[label], target) for name, label in pairs]
        for name, (X, y) in zip(names, parts, strict=True):
            _check_lengths(name, X, y)
        X = stack(names, [X for X, _ in parts])
        y = pd.concat([pd.Series(as_targets(y)) for _, y in parts], ignore_index=True)
        codes = np.repeat(np.arange(len(names)), [len(y) for _, y in parts])
        task = task or _task_of_dtype(parts[0][1])
        return _build_owners(X, y, names, codes, task=task, embed=embed, target=target)

    def with_owner(self, name: str, X: Any, y: Any = None) -> Owners:
        """These owners and a further one.

        Args:
            name: of the newcomer.
            X: its rows: the same kind and columns as those of the others.
            y: its targets; may be left out if X is a frame with the owners' target column.

        Raises:
            InputError: the name is taken, or the rows do not fit those of the others.
        """
        if str(name) in self.names:
            raise InputError(
                f"there is an owner {quote(name)} already; with_rows gives it other rows"
            )
        return self._changed([], name, X, y)

    def without(self, *names: str) -> Owners:
        """The owners but for these; InputError if there is no such owner, or one is left."""
        return self._changed(self._known(*names))

    def with_rows(self, name: str, X: Any, y: Any = None) -> Owners:
        """The same owners, one of them with these rows instead of its own: see `with_owner`."""
        return self._changed(self._known(name), name, X, y)

    @property
    def embedded(self) -> bool:
        """Whether the numeric view comes from the user's `embed`."""
        return self.embed is not None

    @property
    def n(self) -> int:
        """Number of owners."""
        return len(self.names)

    @property
    def rows(self) -> Ints:
        """Rows held by each owner, (n,)."""
        return np.bincount(self.owner, minlength=self.n)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """All that trainings on these rows can see."""
        return {"names": self.names, "X": self.X, "y": self.y, "owner": self.owner}

    def data_of(self, coalition: Members, part: Bools | None = None) -> tuple[Any, NDArray[Any]]:
        """The pooled rows (X, y) of one coalition, a boolean (n,), ordered by their digests.

        Of these only the ones in `part` of all rows, (N,), if it is given.

        So the data that a model sees depend on the rows alone: not on who holds them, on the names
        and number of owners, or on the order in which rows were given. They may be changed in
        place: some models do.
        """
        chosen = self.rows_of(coalition, part)
        return gather(self.X, chosen), self.y[chosen]

    def rows_of(self, coalition: Members, part: Bools | None = None) -> Ints:
        """The positions of these rows, in the same order."""
        chosen = self._by_digest[coalition[self.owner[self._by_digest]]]
        return np.asarray(chosen if part is None else chosen[part[chosen]])

    @cached_property
    def row_contents(self) -> Digests:
        """A digest of each row with its target, (N, 2): see module `digests`."""
        return digests_of_rows(self.X, self.y)

    def renew_contents(self) -> Digests:
        """`row_contents`, computed again: rows may have changed in place."""
        for name in ("row_contents", "contents", "_by_digest"):
            self.__dict__.pop(name, None)
        return self.row_contents

    @cached_property
    def contents(self) -> Digests:
        """A digest of each owner's rows, (n, 2)."""
        return digests_of_owners(self.row_contents, self.owner, self.n)

    def without_points(self) -> Owners:
        """The same rows without their numeric view, which trainings do not need."""
        slim = copy(self)  # with the digests, if they are known
        object.__setattr__(slim, "points", None)
        object.__setattr__(slim, "embed", None)  # it may be a lambda, which cannot be sent
        return slim

    def _known(self, *names: str) -> list[str]:
        found = [str(name) for name in names]
        for name in found:
            if name not in self.names:
                raise InputError(
                    f"there is no owner {quote(name)}{did_you_mean(name, self.names)}; there are "
                    f"{quote_names(self.names)}"
                )
        return found

    def _changed(self, gone: Sequence[str], name: str = "", X: Any = None, y: Any = None) -> Owners:
        """The owners but for those who are gone, and with the rows of `name` unless X is None."""
        if self.points is None:
            raise InputError("these owners were made for workers, without what distances need")
        names = [other for other in self.names if other not in gone]
        kept = ~np.isin(self.owner, [self.names.index(other) for other in gone])
        held = np.array(self.names, dtype=object)[self.owner[kept]]
        rows, targets = take(self.X, np.flatnonzero(kept)), self.y[kept]
        if X is not None:
            [name] = _as_names([name])
            mine, found = self._newcomer(name, X, y)
            _insert_name(names, name)
            rows = stack((self.names[0], name), [rows, mine])
            targets = as_targets(np.concatenate([targets, found]))
            held = np.append(held, np.full(len(found), name, dtype=object))
        place = {other: i for i, other in enumerate(names)}
        return _build_owners(
            rows,
            targets,
            tuple(names),
            np.array([place[other] for other in held], dtype=np.int64),
            task=self.task,  # as it was: a further row may look like another task
            embed=self.embed,
            target=self.target,
        )

    def _newcomer(self, name: str, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """The rows and targets of one owner, of the types that the others have."""
        X, y = _pair(name, X if y is None else (X, y), self.target)
        _check_lengths(name, X, y)
        y = as_targets(y)
        check_targets(y, (f"owner {name!r}",), np.zeros(len(y), dtype=np.int64))
        task_of(y, self.task, self.target)
        return match_types(X, self.X), match_types(y, self.y)

    @cached_property
    def _by_digest(self) -> Ints:
        """All rows ordered by their digests, (N,); equal rows are interchangeable."""
        return np.lexsort(self.row_contents.T)

    def __repr__(self) -> str:
        held = zip(self.names, self.rows, strict=True)
        rows = ", ".join(f"{printable(name)}: {count}" for name, count in held)
        return f"Owners({self.n} owners, {len(self.y)} rows, {self.task}; {rows})"


def _build_owners(
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
    if not length(X) == len(targets) == len(owner):
        raise InputError(
            f"X, y and owner must have one entry per row, "
            f"got {length(X)}, {len(targets)} and {len(owner)}"
        )
    if len(names) < 2:
        raise InputError(f"expected at least two owners, got {len(names)}: {', '.join(names)}")
    labels = tuple(f"owner {name!r}" for name in names)
    check_targets(targets, labels, owner)
    if sparse.issparse(X):
        X = X.tocsr()
    check_column_names(X)
    columns = encode(X) if embed is None else apply_embed(copy_unless_fixed(X), embed, len(targets))
    check_finite(columns, labels, owner)
    return Owners(
        names=names,
        X=X,
        y=targets,
        owner=owner,
        task=task_of(targets, task or _task_of_dtype(y), target),
        points=standardise(columns),
        embed=embed,
        columns=tuple(X.columns) if isinstance(X, pd.DataFrame) else None,
        target=target,
    )


def _task_of_dtype(y: Any) -> Task | None:
    """Classification for a pandas categorical, whatever its categories are; else None."""
    categorical = isinstance(getattr(y, "dtype", None), pd.CategoricalDtype)
    return "classification" if categorical else None


def task_of(y: NDArray[Any], stated: Task | None, target: Hashable | None = None) -> Task:
    """The stated task if it fits the targets, or the task inferred from them.

    `target` is the name of their column, for messages; None if they have none.
    """
    if stated is not None:
        if stated not in ("classification", "regression"):
            raise InputError(f"task must be 'classification' or 'regression', got {stated!r}")
        if stated == "regression" and not is_number(y):
            where = "y" if target is None else f"the column {quote(target)}"
            odd = next((one for one in y.tolist() if type(one) not in (int, float)), None)
            raise InputError(
                f"a regression needs numbers to predict, but {where} holds {quote(odd)}; choose "
                "another column, or leave the task out"
            )
        return stated
    if not is_number(y):
        check_no_times(y, target)
        return "classification"
    few_whole_numbers = np.all(y == np.round(y)) and len(np.unique(y)) <= MAX_CLASSES_INFERRED
    return "classification" if few_whole_numbers else "regression"


def _owner_codes(owner: Any) -> tuple[tuple[str, ...], Ints]:
    """Ordered owner names and the index among them of each row's label."""
    if getattr(owner, "ndim", 1) != 1:
        raise InputError(f"owner must be one label per row, got shape {owner.shape}")
    with _whole_characters():
        labels = pd.Series(owner).reset_index(drop=True)
    if labels.isna().any():
        row = int(np.flatnonzero(labels.isna())[0])
        raise InputError(f"row {row} has no owner label; every row needs one")
    if isinstance(labels.dtype, pd.CategoricalDtype):
        labels = labels.cat.remove_unused_categories()
        codes = np.asarray(labels.cat.codes, dtype=np.int64)
        return _as_names(list(labels.cat.categories)), codes
    distinct = _in_order(labels.unique())
    names = _as_names(distinct)
    position = {label: index for index, label in enumerate(distinct)}
    return names, np.asarray(labels.map(position), dtype=np.int64)


def _in_order(labels: Iterable[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:  # labels of several types cannot be ordered
        return sorted(labels, key=str)


@contextmanager
def _whole_characters() -> Iterator[None]:
    """Turn half a character in an owner name into an InputError."""
    try:
        yield
    except UnicodeEncodeError as cause:
        raise InputError(
            f"the owner name {quote(cause.object)} holds half a character (a lone surrogate), "
            "which no file can keep; rename that owner"
        ) from cause


def _as_names(labels: Sequence[Any]) -> tuple[str, ...]:
    names = tuple(str(label) for label in labels)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two different owner labels are both shown as {quote(twice)}; rename one")
    for name in names:
        if not name.strip():
            raise InputError(f"an owner has a blank name, {name!r}; name it, or drop its rows")
        with _whole_characters():
            name.encode()
    return names


def _insert_name(names: list[str], name: str) -> None:
    """Put a name where it belongs among names in order, by size if all are numbers."""
    try:
        found = [float(other) > float(name) for other in names]
    except ValueError:
        found = [other > name for other in names]
    names.insert(found.index(True) if any(found) else len(names), name)


def _check_lengths(name: str, X: Any, y: Any) -> None:
    if length(X) != len(y):
        raise InputError(f"owner {name!r}: X has {length(X)} rows but y has {len(y)}")
    if not len(y):
        raise InputError(f"owner {name!r} has no rows; leave it out")


def _pair(name: str, part: Any, target: Hashable | None) -> tuple[Any, Any]:
    """(X, y) of one owner of a mapping."""
    part = to_pandas(part)
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
        X, y = map(to_pandas, part)
        check_pair(X, y, f"owner {name!r}: ")
        if not (isinstance(X, (pd.DataFrame, list)) or sparse.issparse(X)):
            X = np.asarray(X)
        return X, y if isinstance(y, pd.Series) else as_targets(y)
    raise InputError(f"owner {name!r}: expected (X, y) or a DataFrame, got {type(part).__name__}")
