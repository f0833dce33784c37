"""Accuracy at equal budget on real games with complete tables: dupre, the paper, and peers.

    python benchmarks/accuracy.py [GAME ...] [--seeds 10]

Prints one table per game: mean squared error of the Shapley values, their Pearson correlation and
Kendall's tau with the exact ones, and the coverage of 95 % intervals, each averaged over seeds.

paper       coalitions drawn uniformly, the supervised sliced Wasserstein kernel alone, eta = 0.5
GP-binary   coalitions drawn uniformly, squared exponential kernel on membership
dupre       dupre.value(owners, utility, budget)
KernelSHAP, SVARM, kADD-SHAP, permutation: from the package shapiq, with the same budget, its
            pairing trick where it has one; u(empty) is not counted, as for dupre.
ShaplEIG    from shapiq as well, if it can be imported: it needs shapiq[shapleig] >= 1.6 and
            Python >= 3.12. Slow, so that it is run with fewer seeds.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable
from importlib.metadata import version

import joblib
import numpy as np
import shapiq
from scipy.stats import kendalltau

import dupre
from dupre.data.sketch import Resolution, SketchCache, label_coordinates
from dupre.game.estimators import exact
from dupre.predictor.fitting import Search, fit
from dupre.predictor.gp import Scale
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Kernel, Membership, Scaled, SlicedWasserstein
from dupre.predictor.warp import straight_warp
from games import GAMES, Game, load

try:
    from shapiq.approximator.shapleig import ShaplEIG
except ImportError:
    ShaplEIG = None

Estimate = tuple[np.ndarray, np.ndarray | None]
"""Values, (n,), and their standard deviations if the method has any."""


def by_dupre(game: Game, budget: int, seed: int) -> Estimate:
    utility = game.table.__getitem__
    valuation = dupre.value(game.owners, utility, budget=budget, seed=seed)
    return valuation.mean, valuation.std.to_numpy()


def by_paper(game: Game, budget: int, seed: int) -> Estimate:
    kernel = Scaled(SlicedWasserstein(eta=paper_eta(game, seed)))
    return _uniform_design(game, budget, seed, kernel)


def by_gp_binary(game: Game, budget: int, seed: int) -> Estimate:
    return _uniform_design(game, budget, seed, Scaled(Membership()))


def by_shapiq(approximator: type, **options: bool) -> Callable[[Game, int, int], Estimate]:
    def estimate(game: Game, budget: int, seed: int) -> Estimate:
        method = approximator(game.owners.n, random_state=seed, **options)
        return method.approximate(budget + 1, _of_rows(game)).get_n_order_values(1), None

    return estimate


def by_shapleig(game: Game, budget: int, seed: int) -> Estimate:
    method = ShaplEIG(game.owners.n, random_state=seed, show_progress=False)
    with warnings.catch_warnings():  # gpytorch warns of the noise that ShaplEIG sets
        warnings.simplefilter("ignore")
        values, variance = method.approximate_with_variance(budget=budget + 1, game=_of_rows(game))
    return values.get_n_order_values(1), np.sqrt(np.maximum(variance, 0))


def _of_rows(game: Game) -> Callable[[np.ndarray], np.ndarray]:
    """The game as shapiq asks for it: utilities, (m,), of boolean rows, (m, n)."""
    utilities = np.append(game.empty, game.utilities)  # indexed by binary code

    def utility(coalitions: np.ndarray) -> np.ndarray:
        return utilities[np.atleast_2d(coalitions).astype(int) @ (1 << np.arange(game.owners.n))]

    return utility


METHODS: dict[str, Callable[[Game, int, int], Estimate]] = {
    "paper": by_paper,
    "GP-binary": by_gp_binary,
    "dupre": by_dupre,
    "KernelSHAP": by_shapiq(shapiq.KernelSHAP, pairing_trick=True),
    "SVARM": by_shapiq(shapiq.SVARM, pairing_trick=True),
    "kADD-SHAP": by_shapiq(shapiq.kADDSHAP, pairing_trick=True),
    "permutation": by_shapiq(shapiq.PermutationSamplingSV),
}
if ShaplEIG is not None:
    METHODS["ShaplEIG"] = by_shapleig
MOST_SEEDS = {"ShaplEIG": 3}
"""Where fewer seeds than asked for are run, to save time."""


def _uniform_design(game: Game, budget: int, seed: int, kernel: Kernel) -> Estimate:
    weights = exact(dupre.shapley, game.owners.n)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(weights.members), budget, replace=False))
    others = np.setdiff1d(np.arange(len(weights.members)), chosen)
    cache = SketchCache(game.owners, seed=seed)
    universe = Features(weights.members, game.owners.rows, cache)
    utilities = game.utilities[chosen]
    warp = straight_warp(utilities, empty=game.empty)
    gp = fit(kernel, universe[chosen], utilities, scale=Scale(warp), search=Search(4, rng))
    posterior = gp.posterior(universe[others], weights.W[:, others])
    known = weights.W[:, chosen] @ utilities + weights.empty * game.empty
    variance = np.diag(posterior.functional_covariance())
    return known + posterior.W @ posterior.mean, np.sqrt(np.maximum(variance, 0))


def paper_eta(game: Game, seed: int) -> float:
    """The label weight of dupre's scaled blocks that equals the paper's 0.5 of raw ones."""
    owners = game.owners
    features = np.sqrt(owners.points.variance)
    if owners.task == "regression":
        return float(features / (features + 1.0))  # y standardised
    labels, label = label_coordinates(owners, seed=seed, resolution=Resolution())
    return float(1 / (1 + np.sqrt(np.var(labels[label], axis=0).sum())))


def score(game: Game, method: str, budget: int, seed: int) -> list[float]:
    """Squared error, Pearson, Kendall and coverage of one run."""
    expected = game.values(dupre.shapley)
    mean, std = METHODS[method](game, budget, seed)
    error = mean - expected
    return [
        float(np.mean(error**2)),
        float(np.corrcoef(mean, expected)[0, 1]) if np.ptp(mean) > 0 else 0.0,
        float(kendalltau(mean, expected).statistic) if np.ptp(mean) > 0 else 0.0,
        np.nan if std is None else float(np.mean(np.abs(error) <= 1.959964 * std)),
    ]


def run(name: str, seeds: int) -> None:
    game = load(name)
    cells = [(m, b) for b in game.budgets for m in METHODS]
    runs = [(m, b, s) for m, b in cells for s in range(min(seeds, MOST_SEEDS.get(m, seeds)))]
    scores = joblib.Parallel(n_jobs=-1)(joblib.delayed(score)(game, *run) for run in runs)
    by_cell: dict[tuple[str, int], list[list[float]]] = {cell: [] for cell in cells}
    for (method, budget, _), numbers in zip(runs, scores, strict=True):
        by_cell[method, budget].append(numbers)
    means = np.array([np.mean(by_cell[cell], axis=0) for cell in cells])
    means = means.reshape(len(game.budgets), len(METHODS), 4)
    print(f"\n### {name}: {game.owners.n} owners, {len(game.utilities) + 1} coalitions\n")
    print("| trainings | method | MSE | MSE / dupre's | Pearson | Kendall | 95 % coverage |")
    print("|---|---|---|---|---|---|---|")
    for budget, rows in zip(game.budgets, means, strict=True):
        ours = rows[list(METHODS).index("dupre"), 0]
        for method, (mse, pearson, kendall, coverage) in zip(METHODS, rows, strict=True):
            covered = "–" if np.isnan(coverage) else f"{100 * coverage:.0f} %"
            print(
                f"| {budget} | {method} | {mse:.1e} | {mse / ours:.3g} | {pearson:.3f} | "
                f"{kendall:.2f} | {covered} |",
                flush=True,
            )
    peers = [i for i, m in enumerate(METHODS) if m not in ("paper", "GP-binary", "dupre")]
    ours = means[:, list(METHODS).index("dupre")]
    paper = means[:, list(METHODS).index("paper"), 0] / ours[:, 0]
    best = means[:, peers, 0].min(axis=1) / ours[:, 0]
    print(
        f"\nPaper's setting / dupre {_factors(paper)} (target 10); best peer / dupre "
        f"{_factors(best)} (target 2); coverage over all budgets {100 * ours[:, 3].mean():.0f} % "
        "(target 90 to 99)."
    )


def shapleig_note(seeds: int) -> str:
    """What the reader has to know about the rows of ShaplEIG, or about their absence."""
    found = version("shapiq")
    if ShaplEIG is None:
        return (
            "ShaplEIG is left out: it needs shapiq[shapleig] >= 1.6 and Python >= 3.12; "
            f"this is shapiq {found} on Python {platform.python_version()}."
        )
    few = min(seeds, MOST_SEEDS["ShaplEIG"])
    return f"ShaplEIG (shapiq {found}) is slow and averaged over {few} of the {seeds} seeds."


def _factors(ratios: np.ndarray) -> str:
    return " / ".join(f"{ratio:.3g}" for ratio in ratios)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("games", nargs="*", default=list(GAMES))
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    print("# Results\n\nMade by `make bench`; how to read them: [README](README.md).\n")
    print(f"## Accuracy (`python benchmarks/accuracy.py`, {arguments.seeds} seeds)\n")
    print(shapleig_note(arguments.seeds))
    for game in arguments.games:
        run(game, arguments.seeds)
