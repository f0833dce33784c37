"""Games with known answers, and a fair comparison of methods that value their owners.

from functools import partial
from dupre import benchmark

def mine(game, budget, seed): ...  # asks game(members) at most `budget` times; returns values

found = benchmark.compare(
    {"mine": mine, "dupre": benchmark.by_dupre}, benchmark.NAMES, ["2n + 1", "4n"], seeds=10
)
print(found.differences("dupre"))
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
