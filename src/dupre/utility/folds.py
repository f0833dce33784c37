"""Which rows train and which validate, when nobody brings validation rows of their own.

`Folds` lets every row validate once: a coalition is trained K times, each time without one fold of
all rows, and scored on that fold. `Holdout` keeps one part of the rows for validation. A row's fold
is a hash of its contents and a seed: equal rows stay together, and nobody's rows move when other
owners join, leave or reorder theirs.

Another set of validation rows would be another game. So which rows validate can be fixed, by a
`Validating`: those of owners who join later train, outside of their own fold like everybody's, but
do not validate.

Which rows fall into which fold is chance, and another deal of the folds gives other values. So the
same rows can be dealt again: deal 0 is the one that counts, further ones tell how much it matters.

Notation: N rows of all owners, m validation rows, K folds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dupre._types import Bools, Floats, Ints
from dupre.checks import finite, whole
from dupre.data.digests import digest, hash_json
from dupre.data.owners import Owners
from dupre.data.rows import take
from dupre.errors import InputError, Remedy
from dupre.spec import FOLDS, FOLDS_OF_MANY, MANY_ROWS


@dataclass(frozen=True, eq=False)
class Validating:
    """Which rows may validate, whoever joins, leaves or changes; made by `ModelUtility.validating`.

    A row that nobody holds any more drops out, and is back when somebody holds it again.

    Attributes:
        rows: the first 64 bits of their digests, (p,), sorted; a row of several owners once for
            each if `holder` is known.
        k: number of folds; None for one part held out.
        holder: whose rows they were, numbered, (p,), if the rows of all owners weigh the same.
        label: 64 bits of the label of each row, (p,), if folds are made by labels.
        fold: of each row, (p,), if folds are in time.
        starts: the time at which each fold begins, (k,), if folds are in time.
        classes: that models predict; None for numbers.
    """

    rows: NDArray[np.uint64]
    k: int | None = None
    holder: Ints | None = None
    label: NDArray[np.uint64] | None = None
    fold: Ints | None = None
    starts: Floats | None = None
    classes: NDArray[Any] | None = None

    @property
    def key(self) -> str:
        """A digest of all of it."""
        arrays = [self.rows, self.holder, self.label, self.fold, self.starts]
        # As a list: texts may be kept in arrays of several types.
        return digest([arrays, self.k, None if self.classes is None else self.classes.tolist()])

    def held_by(self, owners: Owners) -> Validating:
        """Those of the rows that somebody holds now, each once."""
        rows, first = np.unique(self.rows, return_index=True)
        there = first[np.isin(rows, owners.row_contents[:, 0])]
        label = None if self.label is None else self.label[there]
        fold = None if self.fold is None else self.fold[there]
        return replace(self, rows=self.rows[there], holder=None, label=label, fold=fold)


@dataclass(frozen=True, eq=False)
class Folds:
    """K folds of all owners' rows; every different row validates once. `validation=Folds(10)`.

    Args:
        k: how many; 10 by default for up to 2,000 rows, 5 for more.
        by: column of the owners' X, or one label for each of their rows, (N,): rows with the same
            label, such as those of a patient, stay in one fold.
        in_time: column of X, or one time for each row: a fold is scored by a model of the rows
            before it alone, so the first K + 1st part of the rows validates never.
        equal_owners: whether the validation rows of every owner weigh the same together, so that
            who brings more rows has no more say in what a good model is.
        rows: which rows validate; None for all of them. `ModelUtility.with_owners` states it.
    """

    k: int | None = None
    by: Any = None
    in_time: Any = None
    equal_owners: bool = False
    rows: Validating | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            whole(self.k, "folds", least=2)
        if self.by is not None and self.in_time is not None:
            raise InputError("state folds by a column or folds in time, not both")


@dataclass(frozen=True, eq=False)
class Holdout:
    """One split: this part of the different rows validates and is never trained on.

    Args:
        part: between 0 and 1.
        equal_owners, rows: as for `Folds`.
    """

    part: float = 0.2
    equal_owners: bool = False
    rows: Validating | None = None

    def __post_init__(self) -> None:
        if not 0 < finite(self.part, "the part held out") < 1:
            raise InputError(
                f"the part of rows held out must lie between 0 and 1, such as 0.2, got {self.part}"
            )


@dataclass(frozen=True, eq=False)
class Deal:
    """Validation rows, and which rows to train on for each fold of them.

    Attributes:
        X, y: validation rows and their targets, (m,).
        tests: positions among them of each fold; None for all of them, as they are.
        train: which of the owners' rows train for each fold, (N,); None for all.
        row: of the owners, that each validation row is, (m,); None if they are nobody's.
        weights: of the validation rows, (m,); None if they count alike.
        by_chance: whether another split of the same rows was as likely.
    """

    X: Any
    y: NDArray[Any]
    tests: tuple[Ints | None, ...] = (None,)
    train: tuple[Bools | None, ...] = (None,)
    row: Ints | None = None
    weights: Floats | None = None
    by_chance: bool = True

    def parts(self) -> Iterator[tuple[Bools | None, Ints | None]]:
        """For each fold, which rows train and which validate."""
        return zip(self.train, self.tests, strict=True)


def is_split(validation: Any) -> bool:
    """Whether this says how to split the owners' rows; otherwise it is validation rows."""
    return isinstance(validation, (Folds, Holdout)) or hasattr(validation, "get_n_splits")


def can_deal_again(validation: Any) -> bool:
    """Whether the same rows can be split anew; in time and by a splitter there is one way."""
    return isinstance(validation, Holdout) or (
        isinstance(validation, Folds) and validation.in_time is None
    )


def what_decides(split: Any, rows: int) -> Any:
    """What a split depends on besides the rows and the seed, for a fingerprint."""
    if isinstance(split, Holdout):
        return ["held out", split.part, split.equal_owners]
    if not isinstance(split, Folds):
        return split
    # Labels of single rows come and go with the rows: those that validate have theirs.
    by, in_time = (
        stated if stated is None or isinstance(stated, str) else True
        for stated in (split.by, split.in_time)
    )
    return ["folds", split.k or default_folds(rows), by, in_time, split.equal_owners]


def decided_in_words(parts: list[Any]) -> str:
    """What `what_decides` lists, in words."""
    kind, size, *_, equal = parts
    if kind == "held out":
        text = f"{size:.4g} of the rows held out"
    else:
        by, in_time = parts[2:4]
        text = f"{size} folds"
        text += _named(", those of a label together", by) + _named(", in time", in_time)
    return f"{text}; rows of every owner weigh the same" if equal else text


def _named(text: str, column: Any) -> str:
    """A way to deal with the name of its column, if it has one; "" if it is not asked for."""
    if column is None:
        return ""
    return f"{text} ({column})" if isinstance(column, str) else text


def labels_of(split: Any, owners: Owners) -> NDArray[Any] | None:
    """The label of each row, (N,), if folds are made by labels."""
    by = isinstance(split, Folds) and split.by is not None
    return _labels(split.by, owners) if by else None


def default_folds(rows: int) -> int:
    """Folds of so many rows unless another number is stated."""
    return FOLDS if rows <= MANY_ROWS else FOLDS_OF_MANY


def deal(split: Any, owners: Owners, *, seed: int, number: int = 0) -> Deal:
    """The owners' rows, split for validation.

    Args:
        split: `Folds`, `Holdout` or a splitter of scikit-learn.
        owners: whose rows.
        seed: of the hash.
        number: of the deal; 0 is the one that counts.

    Raises:
        InputError: there are too few rows for it.
    """
    first, weights, gone = _different_rows(owners), None, 0
    if not isinstance(split, (Folds, Holdout)):
        tests, train = _by_splitter(split, owners, first)
    else:
        fixed = split.rows or fix(split, owners)
        keys, fold = folds_of(split, fixed, seed=seed, number=number)
        key = owners.row_contents[first, 0]
        first = first[np.isin(key, keys)]
        gone = len(keys) - len(first)
        key = owners.row_contents[first, 0]
        fold = fold[np.searchsorted(keys, key)]
        tests = [first[fold == i] for i in range(fixed.k or 1)]
        train = _train(split, fixed, owners, tests, seed=seed, number=number)
        if split.equal_owners:
            mine = np.isin(fixed.rows, keys)
            held = fixed.rows[mine], _holder(fixed)[mine]
            weights = _equal_weights(
                *held, np.concatenate([key[fold == i] for i in range(fixed.k or 1)])
            )
    _check_rows(tests, train, len(first), gone)
    row = np.concatenate(tests)
    ends = np.cumsum([0, *map(len, tests)])
    positions = [np.arange(a, b) for a, b in pairwise(ends)]
    return Deal(
        take(owners.X, row),
        owners.y[row],
        tuple(positions),
        tuple(train),
        row,
        weights,
        # A splitter sees rows in the order of their digests, which is chance without a seed too.
        by_chance=not isinstance(split, Folds) or split.in_time is None,
    )


def _check_rows(tests: list[Ints], train: list[Bools], left: int, gone: int) -> None:
    """Raise InputError if no fold can be trained and scored."""
    # A fold without rows, which a small table may have, tests nothing.
    if any(len(rows) and part.any() for rows, part in zip(tests, train, strict=True)):
        return
    if gone:
        raise InputError(
            f"of the {gone + left:,} rows that validate only {left:,} are still held by somebody; "
            "take the rows of then, split anew (revalidate), or ",
            Remedy.VALIDATION,
        )
    raise InputError(
        f"{left:,} different rows are too few to split them for validation; ", Remedy.VALIDATION
    )


def fix(split: Folds | Holdout, owners: Owners) -> Validating:
    """All the owners' rows as those that may validate, for later splits to keep to.

    Raises:
        InputError: there are too few rows, labels or times for the folds.
    """
    row, k = _different_rows(owners), None
    label = fold = starts = None
    if isinstance(split, Folds):
        k = default_folds(len(owners.y)) if split.k is None else split.k
        if split.in_time is not None:
            part, starts = _in_time(_moments(_labels(split.in_time, owners)), k)
            row = row[part[row] >= 0]  # the first rows never validate
            fold = part
        else:
            _check_folds(k, len(row))
        if split.by is not None:
            label = _hash_labels(_labels(split.by, owners), k)
    keys, owner = _held(owners, row)
    if not split.equal_owners:
        keys = np.unique(keys)
    # Of equal rows with several labels or times the first counts.
    place = row[np.searchsorted(owners.row_contents[row, 0], keys)]
    return Validating(
        keys,
        k,
        owner if split.equal_owners else None,
        None if label is None else label[place],
        None if fold is None else fold[place],
        starts,
    )


def folds_of(
    split: Folds | Holdout, fixed: Validating, *, seed: int, number: int
) -> tuple[NDArray[np.uint64], Ints]:
    """Every row that validates in a deal, each once, sorted, and its fold; whoever holds it."""
    keys, first = np.unique(fixed.rows, return_index=True)
    if isinstance(split, Holdout):
        keys = keys[_hash_to_unit(keys, seed, number) < split.part]
        return keys, np.zeros(len(keys), dtype=np.int64)
    if fixed.fold is not None:
        return keys, fixed.fold[first]
    hashed = keys if fixed.label is None else fixed.label[first]
    return keys, _hash_to_fold(hashed, fixed.k or 1, seed, number)


def _train(
    split: Folds | Holdout,
    fixed: Validating,
    owners: Owners,
    tests: list[Ints],
    *,
    seed: int,
    number: int,
) -> list[Bools]:
    """Which rows train for each fold, (N,) each: all that are not in the fold themselves."""
    contents, k = owners.row_contents[:, 0], fixed.k or 1
    if isinstance(split, Holdout):
        return [_hash_to_unit(contents, seed, number) >= split.part]
    if fixed.starts is not None:
        moments = _moments(_labels(split.in_time, owners))
        train = [moments < start for start in fixed.starts]
    else:
        labels = labels_of(split, owners)
        hashed = contents if labels is None else _hash_labels(labels, 1)
        fold = _hash_to_fold(hashed, k, seed, number)
        train = [fold != i for i in range(k)]
    return _without_equal(owners, tests, train)


def shares_of_owners(owners: Owners, row: Ints) -> dict[str, float]:
    """The part of the validation rows that each owner holds; a row of several counts for each."""
    validates = np.isin(owners.row_contents[:, 0], owners.row_contents[row, 0])
    # An owner who pads its rows by copies gains nothing: different rows count.
    pairs = np.unique(
        np.column_stack([owners.owner[validates], owners.row_contents[validates, 0]]), axis=0
    )
    counts = np.bincount(pairs[:, 0].astype(np.int64), minlength=owners.n)
    different = len(np.unique(owners.row_contents[row, 0]))  # a splitter may score a row twice
    return {name: float(c) / different for name, c in zip(owners.names, counts, strict=True)}


def _different_rows(owners: Owners) -> Ints:
    """The first of each set of equal rows, ordered by contents, so by nobody's order of rows."""
    contents = owners.row_contents
    order = np.lexsort((contents[:, 1], contents[:, 0]))
    ordered = contents[order]
    return np.asarray(order[np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))])


def _hash_to_unit(rows: NDArray[np.uint64], seed: int, number: int) -> Floats:
    """A number in [0, 1) for each digest, (p,), a seed and the deal."""
    key = int.from_bytes(hash_json(["deal", int(seed), int(number)])[:8], "little")
    z = rows ^ np.uint64(key)
    # The finaliser of splitmix64 (Steele et al. 2014): digests differ, bits of all places count.
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.asarray((z >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _hash_to_fold(digests: NDArray[np.uint64], k: int, seed: int, number: int) -> Ints:
    return np.floor(_hash_to_unit(digests, seed, number) * k).astype(np.int64)


def _check_folds(k: int, different: int) -> None:
    if k > different:
        raise InputError(
            f"{k} folds of {different:,} different rows: expected at least one row in each; state "
            "fewer folds, or ",
            Remedy.VALIDATION,
        )


def _labels(stated: Any, owners: Owners) -> NDArray[Any]:
    """One label for each row, (N,), from a column of X or as they are given."""
    if isinstance(owners.X, pd.DataFrame) and isinstance(stated, str):
        if stated not in owners.X.columns:
            raise InputError(f"there is no column {stated!r} to make folds by")
        stated = owners.X[stated]
    labels = np.asarray(stated)
    if labels.shape != (len(owners.y),):
        raise InputError(
            f"folds need a column of X or one label for each of the {len(owners.y):,} rows, got "
            f"shape {labels.shape}"
        )
    if pd.isna(labels).any():
        raise InputError("some rows have no label to make folds by; fill it in, or drop the rows")
    return labels


def _hash_labels(labels: NDArray[Any], k: int) -> NDArray[np.uint64]:
    """64 bits of the label of each row, (N,); InputError if there are fewer labels than folds."""
    distinct, which = np.unique(labels.astype(str), return_inverse=True)
    if len(distinct) < k:
        raise InputError(
            f"{k} folds of {len(distinct)} labels: expected at least one label in each; state "
            "fewer folds"
        )
    words = [hash_json(["label", label])[:8] for label in distinct]
    return np.frombuffer(b"".join(words), dtype="<u8").astype(np.uint64)[which.reshape(-1)]


def _moments(times: NDArray[Any]) -> Floats:
    """Times as numbers, (N,)."""
    if any(isinstance(time, str) for time in times.tolist()):
        raise InputError(
            f"folds in time need numbers or dates, got texts such as {str(times[0])!r:.40}, "
            "which have no order in time"
        )
    if times.dtype.kind in "biuf":
        return times.astype(np.float64)
    dates = pd.to_datetime(pd.Series(times))
    return np.asarray(dates.astype("int64"), dtype=np.float64)


def _in_time(moments: Floats, k: int) -> tuple[Ints, Floats]:
    """Parts of equal numbers of rows by time: the fold of each row, -1 for the first part, (N,).

    And when each fold begins, (k,): it is scored by a model of the rows before that.
    """
    distinct, which = np.unique(moments, return_inverse=True)
    if len(distinct) <= k:
        raise InputError(
            f"{k} folds in time of {len(distinct)} different times: expected more times than folds"
        )
    # Rows of one moment stay together: a part ends where the next moment begins.
    upto = np.cumsum(np.bincount(which.reshape(-1))) / len(moments)
    part = np.minimum((upto * (k + 1) - 1e-9).astype(np.int64), k) - 1
    starts = np.array([distinct[part >= i].min() for i in range(k)], dtype=np.float64)
    return part[which.reshape(-1)], starts


def _without_equal(owners: Owners, tests: list[Ints], train: list[Bools]) -> list[Bools]:
    """Rows to train on without those that are equal to a row of their fold.

    Equal rows may have other labels or times: who copies rows of others under new ones would be
    paid for knowing what is validated.
    """
    contents = owners.row_contents[:, 0]
    return [
        part & ~np.isin(contents, contents[rows]) for rows, part in zip(tests, train, strict=True)
    ]


def _by_splitter(split: Any, owners: Owners, first: Ints) -> tuple[list[Ints], list[Bools]]:
    """What a splitter of scikit-learn says of the different rows; equal rows go with them."""
    same = pd.factorize(pd.Series(owners.row_contents[:, 0]))[0]
    tests, train = [], []
    try:
        parts = list(split.split(take(owners.X, first), owners.y[first]))
    except (TypeError, ValueError) as cause:
        raise InputError(
            f"{type(split).__name__} cannot split {len(first):,} different rows ({cause}); to keep "
            "rows of one label together, state Folds(by=LABELS)"
        ) from cause
    for trained, scored in parts:
        tests.append(first[scored])
        train.append(np.isin(same, same[first[trained]]))
    return tests, train


def _held(owners: Owners, row: Ints) -> tuple[NDArray[np.uint64], Ints]:
    """Each of these rows once for every owner who holds it: digests, sorted, and owners."""
    contents = owners.row_contents[:, 0]
    mine = np.isin(contents, contents[row])
    pairs = np.unique(
        np.column_stack([contents[mine], owners.owner[mine].astype(np.uint64)]), axis=0
    )
    return pairs[:, 0], pairs[:, 1].astype(np.int64)


def _holder(fixed: Validating) -> Ints:
    if fixed.holder is None:
        raise InputError(
            "the rows that validate were fixed without their owners, whose rows shall weigh the "
            "same; leave out equal_owners, or split the rows anew"
        )
    return fixed.holder


def _equal_weights(keys: NDArray[np.uint64], holder: Ints, rows: NDArray[np.uint64]) -> Floats:
    """Weights of validation rows, (m,), mean 1, that add up to the same for every owner.

    Args:
        keys: digests of rows, sorted, each once for every owner who holds it.
        holder: these owners.
        rows: digests of the rows that are there, (m,); those of owners who left are missing.
    """
    share = 1 / np.bincount(holder)[holder]
    there = np.isin(keys, rows)
    weights = np.zeros(len(rows))
    np.add.at(weights, _places(rows, keys[there]), share[there])
    return np.asarray(weights * len(rows) / weights.sum())


def _places(rows: NDArray[np.uint64], keys: NDArray[np.uint64]) -> Ints:
    """Where each key is among digests of different rows."""
    order = np.argsort(rows)
    return np.asarray(order[np.searchsorted(rows, keys, sorter=order)])
