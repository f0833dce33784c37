"""Games with known answers, and a fair comparison of methods that value their owners.

    def mine(game, budget, seed): ...  # asks game(rows) for utilities; returns values

    methods = {"mine": mine, "dupre": benchmark.by_dupre}
    found = benchmark.compare(methods, benchmark.NAMES, ["2n + 1", "4n"])
    print(found.differences("dupre"))

Every method has the same games, budgets and seeds, and cannot evaluate more than the budget.
"""

from __future__ import annotations

from dupre.benchmark.comparison import Comparison, compare
from dupre.benchmark.games import NAMES, Game, load
from dupre.benchmark.methods import by_dupre, by_estimator
from dupre.benchmark.play import CountedGame, Estimate

__all__ = [
    "NAMES",
    "Comparison",
    "CountedGame",
    "Estimate",
    "Game",
    "by_dupre",
    "by_estimator",
    "compare",
    "load",
]
