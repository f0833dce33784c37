"""What each part of dupre brings: kernel, first design, and active choice.

    python benchmarks/ablation.py [GAME ...] [--seeds 10] [--jobs -1]

kernel  SSW: the sliced Wasserstein kernel of the paper, on rows as they were given, alone;
        membership: the paper's GP-binary; dupre: data x size + membership + linear, by evidence.
        The rest of the predictor is dupre's in all.
design  uniform: the first 2n + 1 coalitions are drawn uniformly; weighted: dupre's first design,
        under Shapley all owners, each alone, all but each.
then    drawn: the others are drawn uniformly; active: those that reduce the variance of the values
        most, in batches of n.

Last, dupre's kernel on a fixed schedule (all, singles, all but one, complement pairs of half size).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dupre import kernels, strategies
from dupre.benchmark import CountedGame, Estimate, by_dupre, compare
from dupre.benchmark.comparison import Method
from dupre.benchmark.games import TRAINED
from dupre.valuation.question import Strategy
from peers import describe, print_table
from references import by_schedule, fixed

BUDGETS = ("4n", "8n")
GAMES = (*TRAINED, "cancer-centroid-12", "digits-centroid-10")
"""By default, to save time: those of up to 12 owners."""
KERNELS = {
    "SSW": kernels.paper().kernel,
    "membership": 1.0 * kernels.Membership(),
    "dupre": None,
}


@dataclass(frozen=True)
class AnyOther(Strategy):
    """After the first design, coalitions drawn uniformly from those left."""

    def choose(self, state: Any, k: int, rng: np.random.Generator) -> np.ndarray:
        return rng.permutation(state.open)[:k]


def by_part(
    game: CountedGame, budget: int, seed: int, *, kernel: str, design: str, then: str
) -> Estimate:
    """The values by this kernel, first design and choice of the others."""
    n = game.n
    chosen: dict[tuple[str, str], Strategy] = {
        ("uniform", "drawn"): strategies.Uniform(),
        ("uniform", "active"): strategies.Active(uniform=True, first=2 * n + 1, batch=n),
        ("weighted", "drawn"): AnyOther(),
        ("weighted", "active"): strategies.Active(),
    }
    strategy = chosen[design, then]
    return by_dupre(game, budget, seed, kernel=KERNELS[kernel], strategy=strategy)


def methods() -> dict[str, Method]:
    """Every combination by name, dupre as it is last, and the fixed schedule."""
    parts = product(KERNELS, ("uniform", "weighted"), ("drawn", "active"))
    found: dict[str, Method] = {
        f"{kernel}, {design}, {then}": partial(by_part, kernel=kernel, design=design, then=then)
        for kernel, design, then in parts
    }
    return found | {"dupre, fixed schedule": partial(by_schedule, schedule=fixed)}


def main(games: list[str], seeds: int, jobs: int) -> None:
    print(f"\n## Ablation (`python benchmarks/ablation.py --seeds {seeds}`)\n")
    print(describe(games, seeds), "A method is its kernel, first design and choice of the others.")
    found = compare(methods(), games, BUDGETS, seeds, n_jobs=jobs)
    print("\nShapley values.\n")
    print_table(found, "dupre, weighted, active")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("games", nargs="*", default=list(GAMES), metavar="GAME")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    main(arguments.games, arguments.seeds, arguments.jobs)
