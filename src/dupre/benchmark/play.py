"""What a method is given, a game that counts what is asked of it, and what it gives back.

Notation: n owners, m coalitions as boolean rows, (m, n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.stats import norm

from dupre._types import Floats, Members, Names
from dupre.benchmark.games import Game
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game.coalitions import from_names, keys
from dupre.game.semivalues import Semivalue


class CountedGame:
    """A game that a method plays: it answers up to `budget` different coalitions.

    Asking for a coalition again, and for no data, is free.

    Attributes:
        owners: who holds which rows.
        empty: utility of no data.
        semivalue: which values are asked for.
        budget: how many different coalitions may be asked for.
    """

    def __init__(self, game: Game, semivalue: Semivalue, budget: int):
        self._game = game
        self._asked: set[bytes] = set()
        self.owners: Owners = game.owners
        self.empty = game.empty
        self.semivalue = semivalue
        self.budget = budget

    @property
    def n(self) -> int:
        """Number of owners."""
        return self.owners.n

    @property
    def asked(self) -> int:
        """How many different coalitions were asked for so far."""
        return len(self._asked)

    def __call__(self, members: Members) -> Floats:
        """Utilities of coalitions as boolean rows, (m, n) or one (n,), (m,).

        Raises:
            InputError: more different coalitions than the budget allows. None is answered then.
        """
        rows = np.atleast_2d(np.asarray(members, dtype=bool))
        if rows.ndim != 2 or rows.shape[1] != self.n:
            raise InputError(
                f"coalitions are boolean rows of {self.n} owners, (m, {self.n}), got shape "
                f"{np.shape(members)}"
            )
        asked = self._asked.union(keys(rows[rows.any(axis=1)]))
        if len(asked) > self.budget:
            raise InputError(
                f"asked for {len(asked)} different coalitions of {self._game.name!r} with a budget "
                f"of {self.budget}; ask for fewer, or return None where a method needs more"
            )
        self._asked = asked
        return self._game.utilities_of(rows)

    def utility(self, members: Names) -> float:
        """The utility of one coalition by its owners' names: for `dupre.value`."""
        names = self.owners.names
        row = from_names(members, names) if members else np.zeros(self.n, dtype=bool)
        return float(self(row)[0])


class Marginals(Protocol):
    """Distributions of n values, such as a frozen one of scipy.stats with arrays for arguments."""

    def interval(self, confidence: float) -> tuple[Any, Any]:
        """Lower and upper ends, (n,) each."""

    def logpdf(self, x: Floats) -> Any:
        """Log density of each at x, (n,)."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method says of the values.

    Attributes:
        values: its estimates, (n,).
        distribution: of each value by itself, if the method states one; `Estimate.normal` makes a
            normal one of standard deviations.
    """

    values: Floats
    distribution: Marginals | None = None

    @classmethod
    def normal(cls, values: Floats, std: Floats) -> Estimate:
        """Values with standard deviations, (n,) each; 0 for a value that is known exactly."""
        return cls(values, norm(values, std))
