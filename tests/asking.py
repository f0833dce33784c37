"""Small owners, games that remember what they were asked for, and ways to read the answers."""

from __future__ import annotations

import numpy as np

import dupre
from dupre.game.coalitions import all_coalitions, from_names, to_names
from dupre.game.estimators import exact
from dupre.game.least_core import least_core
from dupre.result.records import Diagnostics

DIAGNOSTICS = Diagnostics(
    error=0.01,
    r2=0.9,
    coverage=0.95,
    widening=1.2,
    scales={"data × size": 0.7, "linear": 0.3},
    noise=0.001,
    form="SW_2",
)
"""Of a predictor that can be trusted."""

RUN_FILES = ("config.toml", "store.sqlite", "result.json", "values.csv", "report.html")
"""What a run directory holds besides the claims of its store."""


def make_owners(n, rows=4):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n * rows, 2)) + np.repeat(rng.normal(size=(n, 2)), rows, axis=0)
    names = np.repeat([f"owner{i:03d}" for i in range(n)], rows)
    return dupre.Owners.from_arrays(X, X @ [1.0, -1.0] + rng.normal(size=len(X)), names)


class Asked:
    """A game as a utility that remembers which non-empty coalitions it was asked for."""

    def __init__(self, owners, game, empty=0.0):
        self.owners, self.game, self.empty, self.asked = owners, game, empty, []

    def __call__(self, members):
        if not members:
            return self.empty
        self.asked.append(members)
        return self.of(members)

    def of(self, members):
        return float(self.game(from_names(members, self.owners.names)[None])[0])

    def values(self, semivalue=dupre.shapley):
        weights = exact(semivalue, self.owners.n)
        return weights.W @ self.game(weights.members) + weights.empty * self.empty

    def core(self):
        """The least core of all coalitions."""
        members = all_coalitions(self.owners.n)
        *some, grand = self.game(members)
        return least_core(members[:-1], np.array(some), grand=grand, empty=self.empty)


FIVE = make_owners(5, rows=8)


class Logged:
    """A game as a utility that remembers which non-empty coalitions it was asked for."""

    def __init__(self, owners, table, empty=0.0):
        self.owners, self.empty, self.asked = owners, empty, []
        rows = all_coalitions(owners.n)
        self.table = {to_names(r, owners.names): float(u) for r, u in zip(rows, table, strict=True)}

    def __call__(self, members):
        if not members:
            return self.empty
        self.asked.append(members)
        return self.table[members]


def smooth(owners, seed=0):
    """Diminishing returns, 0.1 without data."""
    worth = np.random.default_rng(seed).uniform(0.1, 1.0, owners.n)
    table = 0.9 - 0.8 * np.exp(-(all_coalitions(owners.n) @ worth))
    return Logged(owners, table, empty=0.1)


def told(utilities, **options):
    """A valuer that was told these utilities."""
    ours = dupre.Valuer(FIVE, **{"empty": 0.0, **options})
    for members, number in utilities.items():
        ours.record(members, number)
    return ours


weighted_banzhaf = dupre.Semivalue(
    "Banzhaf(0.3)", lambda c, n: c * np.log(0.3) + (n - 1 - c) * np.log(0.7)
)
"""Owners join independently of each other, each with a chance of 0.3."""


class Normal:
    """In place of Student's t: no factor for few draws."""

    @staticmethod
    def ppf(_, degrees):
        return np.ones(np.shape(degrees))


def by_code(found):
    """W with a column for each of all 2^n coalitions, the empty one first."""
    n = len(found.W)
    dense = np.zeros((n, 2**n))
    dense[:, found.members @ 2 ** np.arange(n)] = found.W
    dense[:, 0] = found.empty
    return dense


def notes(v):
    """Lines below the table."""
    return str(v).split("\n\n")[2].split("\n")


def only_line(v, start):
    (line,) = [line for line in str(v).split("\n") if line.startswith(start)]
    return line
