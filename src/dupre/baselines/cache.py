"""A utility that evaluates every coalition once."""

from __future__ import annotations

from dupre._types import Members, Names
from dupre.checks import as_utility
from dupre.data.owners import Owners
from dupre.errors import EvaluationError, InputError
from dupre.game.coalitions import format_members, keys, to_names
from dupre.utility.model import Utility


class CachedUtility:
    """The utility of coalitions as boolean rows, (n,), each evaluated once."""

    def __init__(self, utility: Utility, owners: Owners):
        if not callable(utility):
            raise InputError(f"utility must be callable(members) -> float, got {utility!r}")
        self._utility = utility
        self._names = owners.names
        self._known: dict[bytes, float] = {}

    @property
    def trained(self) -> int:
        """Coalitions evaluated so far; the empty one needs no training."""
        return sum(any(key) for key in self._known)

    def __call__(self, row: Members) -> float:
        """Utility of one coalition."""
        [key] = keys(row[None, :])
        if key not in self._known:
            members = to_names(row, self._names)
            self._known[key] = finite_score(self._utility(members), members)
        return self._known[key]


def finite_score(score: object, members: Names) -> float:
    """The score of a coalition as a float; EvaluationError if it is not a finite number."""
    try:
        return as_utility(score, f"the utility of {format_members(members)}")
    except InputError as cause:
        raise EvaluationError(str(cause), members=members) from cause
