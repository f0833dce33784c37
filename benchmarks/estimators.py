"""What filling in unevaluated coalitions adds to every estimator, and the paper's Figure on it.

    python benchmarks/estimators.py [--seeds N] [--figure FILE]

Part A: mean squared error against the exact values when m distinct coalitions may be evaluated.

alone       the estimator with as many samples as give at most m distinct coalitions; "–" where its
            least number of samples gives more, for any of the seeds
filled in   the same m evaluations recorded into a dupre.Valuer of the same estimator with LARGE
            samples, all others predicted (DUPRE App. "Complementing", first perspective); where the
            estimator alone needs more than m, any m of the LARGE (second perspective)
all LARGE   the estimator with LARGE samples, all of them evaluated: what filling in could reach
dupre       dupre.value(owners, utility, budget=m), in batches of a tenth of the budget

Then, of permutation sampling of twenty owners, what of the error comes from single owners whose own
coalition the evaluated orders do not begin with: predictors extrapolate to them.

Part B, Figure "approximate Shapley" of the paper: permutation sampling (DUPRE Alg. 3 and 4) with
512 coalitions evaluated and beta more that are evaluated too, or predicted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import dupre
from dupre import estimators, kernels
from dupre.benchmark import CountedGame, Game, by_dupre, load
from dupre.benchmark.comparison import score
from dupre.benchmark.methods import draw_at_most, of_valuation
from dupre.data.sketch import SketchCache
from dupre.game.coalitions import all_coalitions, to_names
from dupre.game.estimators import Estimator
from dupre.game.semivalues import Semivalue
from dupre.game.weights import Weights
from dupre.predictor import form
from dupre.predictor.kernel_inputs import Features
from games import housing_ridge_20

NAMES = (
    "regression",
    "permutation",
    "antithetic",
    "stratified",
    "structured",
    "svarm",
    "stratified_svarm",
    "one_for_all",
    "group_testing",
    "maximum_sample_reuse",
)
BUDGETS = {10: (60, 120, 250, 500), 20: (100, 300, 1000)}
LARGE = {10: 20_000, 20: 4_096}
SEEDS = {10: 10, 20: 10}
EVALUATED = 512
BETAS = tuple(range(0, 251, 50))
LINES = ("evaluated", "dupre", "SSW kernel", "membership kernel")


def semivalue_of(name: str) -> Semivalue:
    """What is estimated: maximum sample reuse is for Banzhaf only."""
    return dupre.banzhaf if name == "maximum_sample_reuse" else dupre.shapley


def shown(name: str) -> str:
    return name.replace("_", " ") + (" (Banzhaf)" if semivalue_of(name) is dupre.banzhaf else "")


def total(game: Game, weights: Weights) -> np.ndarray:
    return weights.W @ game.utilities_of(weights.members) + weights.empty * game.empty


def complemented(game: Game, truth: np.ndarray, name: str, m: int, seed: int) -> list[float]:
    """Squared error alone, filled in and with all of LARGE, and coverage when filled in."""
    n, estimator, semivalue = game.owners.n, getattr(estimators, name), semivalue_of(name)
    alone = draw_at_most(m, estimator, semivalue, n, seed)
    large = estimator(semivalue, n, LARGE[n], np.random.default_rng([seed, 6]))  # as in the Valuer
    if alone is not None:
        members = alone.members
    else:
        members = np.random.default_rng(seed).permutation(large.members)[:m]
    valuer = _recorded(game, members, estimator, semivalue, seed)
    filled = score(of_valuation(valuer.values()), truth)
    lonely = np.nan if alone is None else float(np.mean((total(game, alone) - truth) ** 2))
    best = float(np.mean((total(game, large) - truth) ** 2))
    return [lonely, filled["mse"], best, filled["covered"]]


def extrapolated(game: Game, truth: np.ndarray, m: int, seed: int) -> list[float]:
    """Squared error of permutation sampling alone, filled in, and so with single owners known.

    Then how many single owners are not evaluated, and the largest error in predicting one.
    """
    n, draw = game.owners.n, estimators.permutation
    alone = draw_at_most(m, draw, dupre.shapley, n, seed)
    assert alone is not None, "m evaluations are enough for orders of n owners"
    valuer = _recorded(game, alone.members, draw, dupre.shapley, seed)
    filled = valuer.values().mean
    predicted = valuer.predict([(name,) for name in game.owners.names])
    off = np.asarray(predicted["utility"]) - game.utilities_of(np.eye(n, dtype=bool))
    large = valuer.question.weights
    single = np.flatnonzero(large.members.sum(axis=1) == 1)
    owner = large.members[single].argmax(axis=1)
    known = filled - large.W[:, single] @ off[owner]
    errors = (float(np.mean((v - truth) ** 2)) for v in (total(game, alone), filled, known))
    return [*errors, float((~predicted["evaluated"]).sum()), float(np.abs(off).max())]


def part_c(game: Game, seeds: int, m: int = 1_000) -> None:
    """Print what single owners without an evaluation do to permutation sampling."""
    truth = total(game, estimators.exact(dupre.shapley, game.owners.n))
    runs = (joblib.delayed(extrapolated)(game, truth, m, seed) for seed in range(seeds))
    found = joblib.Parallel(n_jobs=-1)(runs)
    print(f"\n### {game.name}: permutation sampling, {m:,} evaluated, single owners\n")
    print(
        "| seed | MSE alone | filled in | with all single owners known | single owners not ", end=""
    )
    print("evaluated | largest error of predicting one |\n|---|---|---|---|---|---|")
    for seed, (alone, filled, known, missing, off) in enumerate(found):
        print(f"| {seed} | {alone:.1e} | {filled:.1e} | {known:.1e} | {missing:.0f} | {off:.2g} |")
    ratio, without = (np.log([run[0] / run[k] for run in found]) for k in (1, 2))
    print(
        f"\nAlone / filled in {np.exp(ratio.mean()):.2g} (geometric mean); "
        f"{np.exp(without.mean()):.2g} with all single owners known.",
        flush=True,
    )


def _recorded(
    game: Game, members: np.ndarray, estimator: Estimator, semivalue: Semivalue, seed: int
) -> dupre.Valuer:
    """A valuer by LARGE samples of an estimator that knows these coalitions, (m, n)."""
    valuer = dupre.Valuer(
        game.owners,
        semivalue=semivalue,
        empty=game.empty,
        seed=seed,
        estimator=dupre.estimators.Sample(estimator, LARGE[game.owners.n]),
    )
    for row, utility in zip(members, game.utilities_of(members), strict=True):
        valuer.record(to_names(row, game.owners.names), float(utility))
    return valuer


def dupre_alone(game: Game, truth: np.ndarray, m: int, seed: int) -> list[float]:
    counted = CountedGame(game, dupre.shapley, m)
    strategy = dupre.strategies.Active(batch=max(game.owners.n, m // 10))
    found = score(by_dupre(counted, m, seed, strategy=strategy), truth)
    return [np.nan, found["mse"], np.nan, found["covered"]]


def part_a(game: Game, seeds: int) -> dict[str, np.ndarray]:
    """Print the table of a game; scores of every method, (budgets, 4), means over seeds."""
    n = game.owners.n
    truths = {
        semivalue.name: total(game, estimators.exact(semivalue, n))
        for semivalue in (dupre.shapley, dupre.banzhaf)
    }
    budgets = BUDGETS[n]
    # The longest runs first, so that no core waits for another at the end.
    runs = [(name, m, s) for m in budgets[::-1] for name in ("dupre", *NAMES) for s in range(seeds)]
    jobs = [
        joblib.delayed(dupre_alone)(game, truths["Shapley"], m, seed)
        if name == "dupre"
        else joblib.delayed(complemented)(game, truths[semivalue_of(name).name], name, m, seed)
        for name, m, seed in runs
    ]
    found = dict(zip(runs, joblib.Parallel(n_jobs=-1)(jobs), strict=True))
    scores = {
        name: np.array(
            [np.mean([found[name, m, seed] for seed in range(seeds)], axis=0) for m in budgets]
        )
        for name in (*NAMES, "dupre")
    }
    print(f"\n### {game.name}: {n} owners, LARGE = {LARGE[n]:,} samples, {seeds} seeds\n")
    print(
        "| evaluated | estimator | MSE alone | filled in | alone / filled in | all LARGE evaluated "
        "| 95 % coverage, filled in |"
    )
    print("|---|---|---|---|---|---|---|")
    for i, m in enumerate(budgets):
        for name, rows in scores.items():
            alone, filled, best, covered = rows[i]
            numbers = [_number(alone), _number(filled), _number(alone / filled, ".3g")]
            cells = [m, shown(name), *numbers, _number(best), f"{100 * covered:.0f} %"]
            print(f"| {' | '.join(map(str, cells))} |")
    _summarise(np.array([scores[name] for name in NAMES]))
    return scores


def _summarise(scores: np.ndarray) -> None:
    """One sentence on all estimators and budgets, (estimators, budgets, 4)."""
    alone, filled, _, covered = np.moveaxis(scores, 2, 0)
    first = ~np.isnan(alone)
    ratios = alone[first] / filled[first]
    print(
        f"\nFilling in divides the error by {np.exp(np.mean(np.log(ratios))):.3g} (geometric mean "
        f"of {len(ratios)}; smallest {ratios.min():.2g}, largest {ratios.max():.3g}). Its 95 % "
        f"intervals cover {100 * covered[first].mean():.0f} %, and "
        f"{100 * covered[~first].mean():.0f} % where the estimator alone needs more evaluations.",
        flush=True,
    )


def _number(number: float, form: str = ".1e") -> str:
    if np.isnan(number):
        return "–"
    return "exact" if number < 1e-25 else format(number, form)  # nothing but rounding


def along_orders(game: Game, truth: np.ndarray, seed: int) -> np.ndarray:
    """Squared error and Pearson correlation of every line at every beta, (lines, betas, 2)."""
    n, rng = game.owners.n, np.random.default_rng(seed)
    orders = np.argsort(rng.random((1_000, n)), axis=1)
    codes = np.cumsum(1 << orders, axis=1)  # of the coalitions along each order
    appeared, first = np.unique(codes, return_index=True)
    appeared = appeared[np.argsort(first)]
    rank = np.full(2**n, 2**n)
    rank[appeared] = np.arange(len(appeared))
    needed = np.maximum.accumulate(rank[codes].max(axis=1)) + 1  # coalitions up to each order
    known, others = appeared[:EVALUATED], appeared[EVALUATED : EVALUATED + BETAS[-1]]
    members = all_coalitions(n)
    cache = SketchCache(game.owners, seed=seed)
    seen, unseen = (
        Features(members[index - 1], game.owners.rows, cache) for index in (known, others)
    )
    table = np.append(game.empty, game.utilities_of(members))  # by binary code
    scores = []
    for predicted in (table[others], *_predictions(game, seen, table[known], unseen, rng)):
        u = np.full(2**n, np.nan)
        u[0], u[known], u[others] = game.empty, table[known], predicted
        gains = np.diff(u[codes], axis=1, prepend=u[0])
        by_owner = np.take_along_axis(gains, np.argsort(orders, axis=1), axis=1)
        for beta in BETAS:
            values = by_owner[needed <= EVALUATED + beta].mean(axis=0)
            pearson = np.corrcoef(values, truth)[0, 1]
            scores.append([float(np.mean((values - truth) ** 2)), float(pearson)])
    return np.array(scores).reshape(len(LINES), len(BETAS), 2)


def _predictions(
    game: Game, seen: Features, utilities: np.ndarray, unseen: Features, rng: np.random.Generator
) -> Iterable[np.ndarray]:
    """Utilities of the unseen by dupre, by the paper's setting, and by its GP-binary."""
    how: dict[str, Any] = {"measured": np.zeros(len(seen)), "empty": game.empty, "rng": rng}
    for prior in (None, kernels.paper(), kernels.paper_process(kernels.Membership())):
        learned = form.learn(seen, utilities, choose_p=False, prior=prior, **how)
        yield learned.predict(unseen)[0]


def part_b(game: Game, seeds: int) -> np.ndarray:
    """Print the table of the paper's Figure; scores, (lines, betas, 2), means over seeds."""
    truth = total(game, estimators.exact(dupre.shapley, game.owners.n))
    runs = (joblib.delayed(along_orders)(game, truth, seed) for seed in range(seeds))
    scores = np.mean(joblib.Parallel(n_jobs=-1)(runs), axis=0)
    print(f"\n### {game.name}: permutation sampling, {EVALUATED} evaluated, {seeds} seeds\n")
    print("| beta further, evaluated or predicted | " + " | ".join(map(str, BETAS)) + " |")
    print("|---|" + "---|" * len(BETAS))
    for line, rows in zip(LINES, scores, strict=True):
        said = line if line == "evaluated" else f"predicted by {line}"
        print(f"| MSE, {said} | " + " | ".join(f"{mse:.2e}" for mse, _ in rows) + " |")
        print(f"| Pearson, {said} | " + " | ".join(f"{pearson:.4f}" for _, pearson in rows) + " |")
    return np.asarray(scores)


def draw(
    scores: list[tuple[Game, dict[str, np.ndarray]]], along: np.ndarray, name: str, file: Path
) -> None:
    """Errors against evaluations above, the paper's Figure below."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from PIL import Image

    fig, axes = plt.subplots(2, 2, figsize=(10, 6.5), layout="constrained")
    handles: dict[str, Any] = {}
    for ax, (game, methods) in zip(axes[0], scores, strict=True):
        m = BUDGETS[game.owners.n]
        for colour, estimator in enumerate(NAMES):
            rows = methods[estimator]
            ax.plot(m, rows[:, 0], "--", color=f"C{colour}", linewidth=0.9)
            label = shown(estimator).replace(" (", "\n(")
            (handles[label],) = ax.plot(m, rows[:, 1], color=f"C{colour}", linewidth=2)
        (handles["dupre.value"],) = ax.plot(
            m, methods["dupre"][:, 1], "o-", color="black", linewidth=2, markersize=5
        )
        ax.set(xscale="log", yscale="log", xlabel="coalitions evaluated", ylabel="MSE of values")
        ax.set_xticks(m, map(str, m))
        ax.minorticks_off()
        ax.set_title(f"{game.name}: {game.owners.n} owners", fontsize=10)
    styles = (
        {"color": "0.75", "linewidth": 6},
        {"color": "black", "marker": "o"},
        {"color": "C1", "marker": "s", "linestyle": "--"},
        {"color": "C2", "marker": "^", "linestyle": ":"},
    )
    below = {}
    millionths = (("MSE of values, in millionths", 1e6), ("Pearson correlation", 1.0))
    for measure, (ax, (label, scale)) in enumerate(zip(axes[1], millionths, strict=True)):
        for line, rows, style in zip(LINES, along, styles, strict=True):
            said = line if line == "evaluated" else f"predicted by {line}"
            (below[said],) = ax.plot(BETAS, scale * rows[:, measure], markersize=4, **style)
        ax.set(xlabel=f"further coalitions after {EVALUATED} evaluated", ylabel=label, xticks=BETAS)
        ax.set_title(f"{name}, permutation sampling", fontsize=10)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    legend = {"frameon": False, "fontsize": 8, "title_fontsize": 8, "alignment": "left"}
    title = "dashed: alone\nsolid: filled in by dupre\n"
    fig.legend(handles.values(), handles, loc="outside right upper", title=title, **legend)
    title = "further coalitions are\n"
    fig.legend(below.values(), below, loc="outside right lower", title=title, **legend)
    file.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(file, dpi=110, metadata={"Software": None})
    Image.open(file).convert("RGB").quantize(64).save(file, optimize=True)  # a third of the size


def main(seeds: int | None, figure: Path | None) -> None:
    start = time.perf_counter()
    by_label, ridge = load("digits-by-label-10"), housing_ridge_20()
    print("\n## Estimators (`python benchmarks/estimators.py`)")
    scores = []
    for game in (by_label, ridge):
        scores.append((game, part_a(game, seeds or SEEDS[game.owners.n])))
        print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    part_c(ridge, seeds or SEEDS[20])
    along = part_b(by_label, seeds or SEEDS[10])
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    if figure:
        draw(scores, along, by_label.name, figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, help="of every part; by default 10")
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    main(arguments.seeds, arguments.figure)
