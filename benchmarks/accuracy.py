"""Accuracy at equal budget on real games with complete tables: dupre, the paper, and peers.

    python benchmarks/accuracy.py [GAME ...] [--seeds 10]

Prints one table per game: mean squared error of the Shapley values, their Pearson correlation and
Kendall's tau with the exact ones, and the coverage of 95 % intervals, each averaged over seeds.

paper       coalitions drawn uniformly, the supervised sliced Wasserstein kernel alone, eta = 0.5
GP-binary   coalitions drawn uniformly, squared exponential kernel on membership
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

from dupre.benchmark import CountedGame, Estimate, by_dupre, compare, load
from dupre.benchmark.comparison import Method
from dupre.benchmark.games import TRAINED
from dupre.data.owners import Owners
from dupre.data.sketch import Resolution, SketchCache, label_coordinates
from dupre.game.estimators import exact
from dupre.predictor.fitting import Search, fit
from dupre.predictor.gp import Scale
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Kernel, Membership, Scaled, SlicedWasserstein
from dupre.predictor.warp import straight_warp
from games import BUDGETS
from peers import by_shapiq


def by_paper(game: CountedGame, budget: int, seed: int) -> Estimate:
    kernel = Scaled(SlicedWasserstein(eta=paper_eta(game.owners, seed)))
    return _uniform_design(game, budget, seed, kernel)


def by_gp_binary(game: CountedGame, budget: int, seed: int) -> Estimate:
    return _uniform_design(game, budget, seed, Scaled(Membership()))


METHODS: dict[str, Method] = {
    "paper": by_paper,
    "GP-binary": by_gp_binary,
    "dupre": by_dupre,
    "KernelSHAP": partial(by_shapiq, name="KernelSHAP", pairing_trick=True),
    "SVARM": partial(by_shapiq, name="SVARM", pairing_trick=True),
    "kADD-SHAP": partial(by_shapiq, name="kADDSHAP", pairing_trick=True),
    "permutation": partial(by_shapiq, name="PermutationSamplingSV"),
}


def _uniform_design(game: CountedGame, budget: int, seed: int, kernel: Kernel) -> Estimate:
    weights = exact(game.semivalue, game.n)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(weights.members), budget, replace=False))
    others = np.setdiff1d(np.arange(len(weights.members)), chosen)
    universe = Features(weights.members, game.owners.rows, SketchCache(game.owners, seed=seed))
    utilities = game(weights.members[chosen])
    warp = straight_warp(utilities, empty=game.empty)
    gp = fit(kernel, universe[chosen], utilities, scale=Scale(warp), search=Search(4, rng))
    posterior = gp.posterior(universe[others], weights.W[:, others])
    known = weights.W[:, chosen] @ utilities + weights.empty * game.empty
    variance = np.diag(posterior.functional_covariance())
    return Estimate.normal(known + posterior.W @ posterior.mean, np.sqrt(np.maximum(variance, 0)))


def paper_eta(owners: Owners, seed: int) -> float:
    """The label weight of dupre's scaled blocks that equals the paper's 0.5 of raw ones."""
    features = np.sqrt(owners.points.variance)
    if owners.task == "regression":
        return float(features / (features + 1.0))  # y standardised
    labels, label = label_coordinates(owners, seed=seed, resolution=Resolution())
    return float(1 / (1 + np.sqrt(np.var(labels[label], axis=0).sum())))


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
    print("# Results\n\nMade by `make bench`; how to read them: [README](README.md).\n")
    print(f"## Accuracy (`python benchmarks/accuracy.py`, {arguments.seeds} seeds)")
    for game in arguments.games:
        run(game, arguments.seeds)
