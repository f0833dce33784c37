"""Games with known answers: who holds what, what every coalition is worth, and the exact values.

`load(name)` makes one of NAMES. Trained games come with the utilities of all their coalitions, in
`tables.npz`; the others are computed on demand, from data that scikit-learn bundles or from a
closed form. Nothing is downloaded.

Notation: n owners, m coalitions as boolean rows, (m, n).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from dupre._types import Floats, Members, Names
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game.coalitions import MAX_OWNERS_ENUMERATED, from_names
from dupre.game.estimators import exact
from dupre.game.semivalues import Semivalue
from dupre.wording import did_you_mean

TRAINED = (
    *("digits-random-8", "digits-by-label-10", "digits-skewed-10", "digits-paper-6"),
    *("diabetes-random-8", "housing-random-8", "housing-by-location-10"),
)
"""Games of which every coalition was trained once (benchmarks/games.py)."""

COMPUTED = (
    *("diabetes-ridge-14", "cancer-centroid-12", "digits-centroid-10"),
    *("curve-24", "quota-15", "largest-20", "pairs-30"),
)
"""Games that are computed on demand: models that follow from sums over rows, and closed forms."""

NAMES = TRAINED + COMPUTED
"""What `load` takes."""


@dataclass(frozen=True, eq=False)
class Game:
    """A game of n owners whose values are known.

    Attributes:
        name: shown in tables.
        owners: who holds which rows.
        utilities: of all_coalitions(n), (2^n - 1,), or a callable of boolean rows, (m, n), that
            are not empty, which returns theirs, (m,).
        empty: utility of no data.
        closed: callable(semivalue) -> the exact values, (n,), where not all coalitions can be
            summed over; None to sum.
    """

    name: str
    owners: Owners
    utilities: Floats | Callable[[Members], Floats]
    empty: float
    closed: Callable[[Semivalue], Floats] | None = None

    def __post_init__(self) -> None:
        n = self.owners.n
        if not callable(self.utilities) and np.shape(self.utilities) != (2**n - 1,):
            raise InputError(
                f"the game {self.name!r} has {n} owners: expected 2^{n} - 1 = {2**n - 1:,} "
                f"utilities, got shape {np.shape(self.utilities)}; their order is that of the "
                "binary digits, the first owner's the lowest"
            )
        if self.closed is None and n > MAX_OWNERS_ENUMERATED:
            raise InputError(
                f"the game {self.name!r} has {n} owners, too many to sum over all coalitions; "
                "state closed=, a callable(semivalue) -> values"
            )

    def utilities_of(self, members: Members) -> Floats:
        """Utilities of coalitions that may be empty, (m, n), (m,)."""
        found, filled = np.full(len(members), self.empty), members.any(axis=1)
        if callable(self.utilities):
            found[filled] = self.utilities(members[filled])
        else:
            found[filled] = self.utilities[members[filled] @ (1 << np.arange(self.owners.n)) - 1]
        return found

    def utility(self, members: Names) -> float:
        """The utility of one coalition by its owners' names: what `dupre.value` asks for."""
        if not members:
            return self.empty
        return float(self.utilities_of(from_names(members, self.owners.names)[None])[0])

    def values(self, semivalue: Semivalue) -> Floats:
        """The exact values, (n,)."""
        if self.closed is not None:
            return self.closed(semivalue)
        weights = exact(semivalue, self.owners.n)
        return weights.W @ self.utilities_of(weights.members) + weights.empty * self.empty


def load(name: str) -> Game:
    """One of NAMES.

    Raises:
        InputError: there is no such game.
    """
    if name not in NAMES:
        raise InputError(
            f"unknown game {name!r}{did_you_mean(name, NAMES)}; expected one of {', '.join(NAMES)}"
        )
    # Owners are made by scikit-learn, which takes a second to import.
    module = import_module(f"dupre.benchmark.{'trained' if name in TRAINED else 'computed'}")
    found: Game = module.make(name)
    return found
