"""Validation rows: whether they fit the owners' rows, and how many of them are the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dupre._types import Bools, Ints
from dupre.data import rows
from dupre.data.digests import digests_of_contents, with_plain_types
from dupre.data.encoding import encode
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.metrics import Metric
from dupre.utility.folds import Deal, shares_of_owners
from dupre.utility.resampling import folds_without_a_class
from dupre.utility.score import EqualRows


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """The m rows that models are scored on, and what decides how much they tell.

    Attributes:
        X: their features.
        targets: their targets, (m,).
        owners: whose rows are trained on.
        metric: that scores models on them.
        equal: which of them count as one.
        dealt: how they were split from the owners' rows; None if they come from elsewhere.
    """

    X: Any
    targets: NDArray[Any]
    owners: Owners
    metric: Metric
    equal: EqualRows
    dealt: Deal | None = None

    @cached_property
    def idle(self) -> list[Ints | None]:
        """The positions of the rows of each fold that counts nothing: it has no pair to rank."""
        dealt = self.dealt
        if dealt is None or self.metric.ranks is None or len(dealt.tests) == 1:
            return []
        return folds_without_a_class(dealt)

    @cached_property
    def counts(self) -> Bools:
        """Which of them count, (m,): those of folds that do."""
        found = np.ones(len(self.targets), dtype=bool)
        for fold in self.idle:
            found[fold] = False
        return found

    @property
    def counted(self) -> int:
        """How many of them count, copies of a row as one."""
        return len(np.unique(self.equal.number[self.counts]))

    @property
    def shares(self) -> dict[str, float]:
        """The part of those that count that each owner holds; none if they come from elsewhere."""
        if self.dealt is None or self.dealt.row is None:
            return {}
        return shares_of_owners(self.owners, self.dealt.row[self.counts])

    @property
    def weights(self) -> dict[str, float]:
        """The part of a score that each owner's rows decide, if all weigh alike; else nothing."""
        if self.dealt is None or self.dealt.weights is None:
            return {}
        holders = [name for name, part in self.shares.items() if part > 0]
        return dict.fromkeys(holders, 1 / len(holders))

    @property
    def held_out(self) -> dict[str, list[int]]:
        """Which of each owner's rows they are, numbered from 1, if one part of all is held out."""
        dealt = self.dealt
        if dealt is None or dealt.row is None or len(dealt.tests) > 1:
            return {}
        contents, owner = self.owners.row_contents[:, 0], self.owners.owner
        validates = np.isin(contents, contents[dealt.row])
        found = (validates[owner == i] for i in range(self.owners.n))
        return {
            name: (1 + np.flatnonzero(own)).tolist()
            for name, own in zip(self.owners.names, found, strict=True)
        }

    @cached_property
    def seen(self) -> int:
        """How many of them are also among the owners' rows, with the same target.

        No model is scored on a row of its own if they were split from the owners' rows.
        """
        if self.dealt is not None:
            return 0
        return count_shared_rows(self.owners, self.X, self.targets)


def check_validation(validation: Any, owners: Owners) -> tuple[Any, NDArray[Any]]:
    """Validation X and y, (m,); InputError if they do not fit the owners' rows."""
    validation = rows.to_pandas(validation)
    if isinstance(validation, pd.DataFrame) and owners.target is not None:
        if owners.target not in validation.columns:
            raise InputError(f"the validation frame has no target column {owners.target!r}")
        X, y = validation.drop(columns=[owners.target]), validation[owners.target]
    elif isinstance(validation, tuple) and len(validation) == 2:
        X, y = map(rows.to_pandas, validation)
        rows.check_pair(X, y, "validation rows: ")
    else:
        raise InputError(
            "validation must be (X, y), or a frame with the target column if the owners came from "
            f"frames; got {type(validation).__name__}"
        )
    targets, X = rows.as_targets(y), _match_columns(X, owners)
    if rows.length(X) != len(targets):
        raise InputError(
            f"validation X has {rows.length(X)} rows and y has {len(targets)}; expected equal"
        )
    if not len(targets):
        raise InputError("there are no validation rows; expected at least one")
    everyone = np.zeros(len(targets), dtype=np.int64)
    rows.check_targets(targets, ("the validation rows",), everyone)
    if not owners.embedded:
        rows.check_finite(encode(X), ("the validation rows",), everyone)
    # Labels 1 and "1" are different classes to every metric: each model would score 0.
    if rows.is_number(targets) != rows.is_number(owners.y):
        raise InputError(
            f"validation y holds {targets.dtype} but the owners' y holds {owners.y.dtype}; "
            "use the same labels for both"
        )
    if (owners.y == owners.y[0]).all():
        raise InputError(
            f"the target is {owners.y[0]} in all {len(owners.y):,} rows to train on; expected "
            "something to predict"
        )
    if owners.task == "classification" and set(targets).isdisjoint(owners.y):
        raise InputError(
            f"no validation label occurs in training: {sorted(set(targets))[:3]} against "
            f"{sorted(set(owners.y))[:3]}; use the same labels for both"
        )
    return X, targets


def count_shared_rows(owners: Owners, X: Any, y: NDArray[Any]) -> int:
    """How many rows of X, with the targets y, are also among the owners' rows; 0 if unknown."""
    try:
        if _types(X, y) == _types(owners.X, owners.y):
            trained, scored = owners.row_contents, digests_of_contents(X, y)
        else:  # 2 and 2.0 are the same number, in whatever type a file stores it
            trained, scored = (
                digests_of_contents(with_plain_types(X, str), with_plain_types(y, str))
                for X, y in ((owners.X, owners.y), (X, y))
            )
    except InputError:  # rows of this kind cannot be compared
        return 0
    return int(np.isin(scored[:, 0], trained[:, 0]).sum())  # 64 bits are enough for a note


def _types(X: Any, y: NDArray[Any]) -> list[Any]:
    of_X = X.dtypes if isinstance(X, pd.DataFrame) else [getattr(X, "dtype", type(X))]
    return [y.dtype, *of_X]


def _match_columns(X: Any, owners: Owners) -> Any:
    """Validation X with the owners' columns in the owners' order, or an error."""
    if owners.columns is not None:
        if not isinstance(X, pd.DataFrame):
            raise InputError("the owners' X is a DataFrame; validation X must be one too")
        missing = [c for c in owners.columns if c not in X.columns]
        if missing:
            raise InputError(f"validation X lacks the training column {missing[0]!r}")
        return X[list(owners.columns)]
    if owners.embedded and not hasattr(owners.X, "shape"):
        return X
    expected = np.shape(owners.X)[1:]
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.shape[1:] != expected:
        raise InputError(
            f"a row of validation X has shape {X.shape[1:]}, a row of the owners' X {expected}"
        )
    return X
