"""What every baseline returns, and what several need: a cache, and rows as points of one space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dupre._types import Floats, Ints, Members, Names
from dupre.checks import as_utility
from dupre.data.encoding import apply_embed, encode, standardise
from dupre.data.owners import Embed, Owners
from dupre.data.rows import check_finite, copy_rows, length, stack
from dupre.errors import EvaluationError, InputError
from dupre.game.coalitions import format_members, to_names
from dupre.utility.protocol import Utility
from dupre.utility.validation import check_validation


@dataclass(frozen=True, eq=False)
class Baseline:
    """Values of owners by one method.

    Attributes:
        values: of each owner, by name.
        std: Monte Carlo standard error of each; zero where the method does not sample, NaN
            where it predicts and does not know its error. It does not include errors of the
            method's assumptions.
        trained: how many full trainings of a model it took.
    """

    values: pd.Series
    std: pd.Series
    trained: int


def from_values(owners: Owners, values: Floats, *, trained: int) -> Baseline:
    """Values, (n,), of a method that does not sample."""
    return Baseline(_series(owners, values, "value"), _series(owners, 0.0, "std"), trained)


def from_permutations(owners: Owners, marginals: Floats, *, trained: int) -> Baseline:
    """Means of marginal contributions, (m, n), one row per independent permutation."""
    error = marginals.std(axis=0, ddof=1) / np.sqrt(len(marginals))
    values = _series(owners, marginals.mean(axis=0), "value")
    return Baseline(values, _series(owners, error, "std"), trained)


def _series(owners: Owners, numbers: Floats | float, name: str) -> pd.Series:
    return pd.Series(numbers, index=pd.Index(owners.names, name="owner"), name=name)


class CachedUtility:
    """The utility of coalitions as boolean rows, (n,), each evaluated once."""

    def __init__(self, utility: Utility, owners: Owners):
        if not callable(utility):
            raise InputError(f"utility must be callable(members) -> float, got {utility!r}")
        self._utility = utility
        self._names = owners.names
        self._known: dict[Names, float] = {}

    @property
    def trained(self) -> int:
        """Coalitions evaluated so far; the empty one needs no training."""
        return sum(map(bool, self._known))

    def __call__(self, row: Members) -> float:
        """Utility of one coalition; EvaluationError, with those known before, if it fails."""
        members = to_names(row, self._names)
        if members not in self._known:
            try:
                self._known[members] = finite_score(self._utility(members), members)
            except EvaluationError as error:
                raise self._complete(str(error), members) from error.__cause__
            except Exception as cause:  # the utility may be the user's code
                reason = f"{type(cause).__name__}: {cause}"
                failed = f"evaluating {format_members(members)} failed: {reason}; remove the cause"
                raise self._complete(failed, members) from cause
        return self._known[members]

    def _complete(self, message: str, members: Names) -> EvaluationError:
        """The error of a failed coalition, with the utilities that are known."""
        count = len(self._known)
        done = f"{count} evaluation{' so far is' if count == 1 else 's so far are'} kept in the"
        error = EvaluationError(
            f"{message}; {done} exception's .known: go on with a utility that looks there first",
            members=members,
        )
        error.known = dict(self._known)
        return error


def finite_score(score: object, members: Names) -> float:
    """The score of a coalition as a float; EvaluationError if it is not a finite number."""
    try:
        return as_utility(score, f"the utility of {format_members(members)}")
    except InputError as cause:
        raise EvaluationError(str(cause), members=members) from cause


@dataclass(frozen=True, eq=False)
class JointEncoding:
    """Encoded rows: row r of the owners is `values[held[r]]`, validation row v `values[asked[v]]`.

    Attributes:
        values: distinct points, (u, d), dense or CSR.
        held: which of them each of the owners' rows is, (N,).
        asked: which of them each validation row is, (m,).
        targets: of the validation rows, (m,).
    """

    values: Floats | sparse.csr_array
    held: Ints
    asked: Ints
    targets: NDArray[Any]


def encode_together(owners: Owners, validation: Any, embed: Embed | None) -> JointEncoding:
    """Check the validation rows and encode them with the owners' rows.

    Levels of categories, means and scales are those of all these rows together: validation rows
    have no place among `owners.points`, which were made without them.
    """
    if owners.embedded and embed is None:
        raise InputError(
            "the owners' rows were embedded; pass the same embed= here for the validation rows"
        )
    X, y = check_validation(validation, owners)
    names = ("the owners", "the validation rows")
    rows = [len(owners.y), len(y)]
    both = stack(names, [owners.X, X])
    columns = encode(both) if embed is None else apply_embed(copy_rows(both), embed, length(both))
    check_finite(columns, names, np.repeat([0, 1], rows))
    points = standardise(columns)
    held, asked = np.split(points.index, rows[:1])
    return JointEncoding(points.values, held, asked, y)
