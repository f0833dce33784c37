"""Accuracy at equal budget on real games with complete tables: dupre, the paper, and peers.

    python benchmarks/accuracy.py [GAME ...] [--seeds 10]

Prints one table per game: mean squared error of the Shapley values, their Pearson correlation and
Kendall's tau with the exact ones, and the coverage of 95 % intervals, each averaged over seeds.

paper       coalitions drawn uniformly, `dupre.kernels.paper()`: the paper's setting
GP-binary   coalitions drawn uniformly, the same process with the kernel on membership
dupre       dupre.value(owners, utility, budget)
KernelSHAP, SVARM, kADD-SHAP, permutation: from the package shapiq, with the same budget, its
            pairing trick where it has one; u(empty) is not counted, as for dupre.

More peers, on more games, with paired differences: `peers.py`.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
import pandas as pd

from dupre import kernels, strategies
from dupre.benchmark import by_dupre, compare, load
from dupre.benchmark.comparison import Method
from dupre.benchmark.games import TRAINED
from games import BUDGETS
from peers import by_shapiq

GP_BINARY = kernels.paper_process(kernels.Membership())

METHODS: dict[str, Method] = {
    "paper": partial(by_dupre, kernel=kernels.paper(), strategy=strategies.Uniform()),
    "GP-binary": partial(by_dupre, kernel=GP_BINARY, strategy=strategies.Uniform()),
    "dupre": by_dupre,
    "KernelSHAP": partial(by_shapiq, name="KernelSHAP", pairing_trick=True),
    "SVARM": partial(by_shapiq, name="SVARM", pairing_trick=True),
    "kADD-SHAP": partial(by_shapiq, name="kADDSHAP", pairing_trick=True),
    "permutation": partial(by_shapiq, name="PermutationSamplingSV"),
}


def run(name: str, seeds: int) -> None:
    """Print the table of a game, and how far dupre is ahead."""
    game = load(name)
    budgets = BUDGETS[game.owners.n]
    runs = compare(METHODS, [game], budgets, seeds, n_jobs=-1).runs
    means = runs.groupby(["allowed", "method"])[["mse", "pearson", "kendall", "covered"]].mean()
    print(f"\n### {name}: {game.owners.n} owners, {2**game.owners.n} coalitions\n")
    print("| trainings | method | MSE | MSE / dupre's | Pearson | Kendall | 95 % coverage |")
    print("|---|---|---|---|---|---|---|")
    for budget in budgets:
        ours = means.loc[(budget, "dupre"), "mse"]
        for method in METHODS:
            mse, pearson, kendall, coverage = means.loc[(budget, method)]
            covered = "–" if np.isnan(coverage) else f"{100 * coverage:.0f} %"
            print(
                f"| {budget} | {method} | {mse:.1e} | {mse / ours:.3g} | {pearson:.3f} | "
                f"{kendall:.2f} | {covered} |",
                flush=True,
            )
    mse, covered = means["mse"].unstack(), means["covered"].unstack()
    peers = [method for method in METHODS if method not in ("paper", "GP-binary", "dupre")]
    print(
        f"\nPaper's setting / dupre {_factors(mse['paper'] / mse['dupre'])} (target 10); best peer "
        f"/ dupre {_factors(mse[peers].min(axis=1) / mse['dupre'])} (target 2); coverage over all "
        f"budgets {100 * covered['dupre'].mean():.0f} % (target 90 to 99)."
    )


def _factors(ratios: pd.Series) -> str:
    return " / ".join(f"{ratio:.3g}" for ratio in ratios)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("games", nargs="*", default=list(TRAINED))
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    print(f"\n## Accuracy (`python benchmarks/accuracy.py`, {arguments.seeds} seeds)")
    for game in arguments.games:
        run(game, arguments.seeds)
