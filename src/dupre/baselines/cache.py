"""A utility that evaluates every coalition once."""

from __future__ import annotations

from dupre._types import Members, Names
from dupre.checks import as_utility
from dupre.data.owners import Owners
from dupre.errors import EvaluationError, InputError
from dupre.game.coalitions import format_members, to_names
from dupre.utility.protocol import Utility


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
