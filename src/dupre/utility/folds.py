"""Which rows train and which validate, when nobody brings validation rows of their own.

`Folds` lets every row validate once: a coalition is trained K times, each time without one fold of
all rows, and scored on that fold. `Holdout` keeps one part of the rows for validation. A row's fold
is a hash of its contents and a seed: equal rows stay together, and nobody's rows move when other
owners join, leave or reorder theirs.

Which rows fall into which fold is chance, and another deal of the folds gives other values. So the
same rows can be dealt again: deal 0 is the one that counts, further ones tell how much it matters.

Notation: N rows of all owners, m validation rows, K folds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dupre._types import Bools, Floats, Ints
from dupre.checks import finite, whole
from dupre.data.digests import hash_json
from dupre.data.owners import Owners
from dupre.data.rows import take
from dupre.errors import InputError, Remedy
from dupre.spec import FOLDS, FOLDS_OF_MANY, MANY_ROWS


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
    """

    k: int | None = None
    by: Any = None
    in_time: Any = None
    equal_owners: bool = False

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
        equal_owners: as for `Folds`.
    """

    part: float = 0.2
    equal_owners: bool = False

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
    """

    X: Any
    y: NDArray[Any]
    tests: tuple[Ints | None, ...] = (None,)
    train: tuple[Bools | None, ...] = (None,)
    row: Ints | None = None
    weights: Floats | None = None

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
    return ["folds", split.k or default_folds(rows), split.by, split.in_time, split.equal_owners]


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
    first = _different_rows(owners)
    if isinstance(split, Holdout):
        held = _uniform(owners, seed, number) < split.part
        tests, train = [first[held[first]]], [~held]
    elif not isinstance(split, Folds):
        tests, train = _by_splitter(split, owners, first)
    elif split.in_time is not None:
        tests, train = _in_time(_labels(split.in_time, owners), first, split, owners)
    else:
        k = _count_folds(split, len(owners.y), len(first))
        if split.by is None:
            fold = np.floor(_uniform(owners, seed, number) * k).astype(np.int64)
        else:
            fold = _by_label(_labels(split.by, owners), k, seed, number)
        tests = [first[fold[first] == i] for i in range(k)]
        train = _without_equal(owners, tests, [fold != i for i in range(k)])
    # A fold without rows, which a small table may have, tests nothing.
    if not any(len(rows) and part.any() for rows, part in zip(tests, train, strict=True)):
        raise InputError(
            f"{len(first):,} different rows are too few to split them for validation; ",
            Remedy.VALIDATION,
        )
    row = np.concatenate(tests)
    ends = np.cumsum([0, *map(len, tests)])
    positions = [np.arange(a, b) for a, b in pairwise(ends)]
    equal = isinstance(split, (Folds, Holdout)) and split.equal_owners
    return Deal(
        take(owners.X, row),
        owners.y[row],
        tuple(positions),
        tuple(train),
        row,
        _equal_weights(owners, row) if equal else None,
    )


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


def _uniform(owners: Owners, seed: int, number: int) -> Floats:
    """A number in [0, 1) for each row from its contents, a seed and the deal, (N,)."""
    key = int.from_bytes(hash_json(["deal", int(seed), int(number)])[:8], "little")
    z = owners.row_contents[:, 0] ^ np.uint64(key)
    # The finaliser of splitmix64 (Steele et al. 2014): digests differ, bits of all places count.
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.asarray((z >> np.uint64(11)) * 2.0**-53)


def _count_folds(split: Folds, rows: int, different: int) -> int:
    k = default_folds(rows) if split.k is None else split.k
    if k > different:
        raise InputError(
            f"{k} folds of {different:,} different rows: expected at least one row in each; state "
            "fewer folds, or ",
            Remedy.VALIDATION,
        )
    return k


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


def _by_label(labels: NDArray[Any], k: int, seed: int, number: int) -> Ints:
    """The fold of each row by its label, (N,)."""
    distinct, which = np.unique(labels.astype(str), return_inverse=True)
    if len(distinct) < k:
        raise InputError(
            f"{k} folds of {len(distinct)} labels: expected at least one label in each; state "
            "fewer folds"
        )
    keys = [hash_json(["deal", int(seed), int(number), label])[:8] for label in distinct]
    return np.array([int.from_bytes(key, "little") % k for key in keys])[which.reshape(-1)]


def _in_time(
    times: NDArray[Any], first: Ints, split: Folds, owners: Owners
) -> tuple[list[Ints], list[Bools]]:
    """Parts of equal numbers of rows by time: each but the first is scored by those before it."""
    if any(isinstance(time, str) for time in times.tolist()):
        raise InputError(
            f"folds in time need numbers or dates, got texts such as {str(times[0])!r:.40}, "
            "which have no order in time"
        )
    k = default_folds(len(owners.y)) if split.k is None else split.k
    moments, which = np.unique(times, return_inverse=True)
    if len(moments) <= k:
        raise InputError(
            f"{k} folds in time of {len(moments)} different times: expected more times than folds"
        )
    # Rows of one moment stay together: a part ends where the next moment begins.
    upto = np.cumsum(np.bincount(which.reshape(-1))) / len(times)
    part = np.minimum((upto * (k + 1) - 1e-9).astype(np.int64), k)[which.reshape(-1)]
    tests = [first[part[first] == i] for i in range(1, k + 1)]
    return tests, _without_equal(owners, tests, [part < i for i in range(1, k + 1)])


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


def _equal_weights(owners: Owners, row: Ints) -> Floats:
    """Weights of validation rows, (m,), mean 1, that add up to the same for every owner."""
    contents = owners.row_contents[:, 0]
    place = {int(key): i for i, key in enumerate(contents[row])}
    weights = np.zeros(len(row))
    for i in range(owners.n):
        own = {place[int(key)] for key in contents[owners.owner == i] if int(key) in place}
        if own:
            weights[sorted(own)] += 1 / len(own)
    return np.asarray(weights * len(row) / weights.sum())
