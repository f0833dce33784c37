"""Mean squared errors after n + 1 and 2n + 1 trainings, against two predictors that assume little.

    python benchmarks/few_trainings.py [--part report] [--games N] [--jobs -1]

On the games of bank.py, for Shapley and Banzhaf values. With so few trainings the evaluations can
hardly tell what a game is like: what is assumed beforehand decides.

fixed schedule   no data, all owners, each alone, all but one, then complement pairs of half the
                 owners; a Gaussian process on membership and on log(1 + rows), one term for each
size alone       the same coalitions but no data; a Gaussian process on log(rows) alone

The hyper-parameters of both maximise the marginal likelihood. Neither uses code of dupre.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from typing import Any

import joblib
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from bank import (
    DIVISIONS,
    PARTS,
    SEMIVALUES,
    Recipe,
    Record,
    coverage,
    geometric_mean,
    load_bank,
    relative_mse,
    run,
)
from dupre.benchmark import Game

CELLS = list(product(("Shapley", "Banzhaf"), ("n+1", "2n+1")))
STARTS = 4
"""Of the search for hyper-parameters: zero, and random ones."""


def schedule(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Binary codes of the first coalitions, (count,), the largest owners first."""
    n, everyone = len(rows), 2 ** len(rows) - 1
    alone = [1 << int(i) for i in np.argsort(-rows, kind="stable")]
    chosen = [everyone, *alone, *(everyone ^ code for code in alone)]
    while len(set(chosen)) < count:
        half = sum(1 << int(i) for i in rng.permutation(n)[: n // 2])
        chosen += [half, everyone ^ half]
    return np.array(list(dict.fromkeys(chosen))[:count])


def predict(distances: list[np.ndarray], utilities: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The utilities of all coalitions, (m,), those that were not seen as predicted.

    The kernel is the sum of one squared exponential for each matrix of squared distances, (m, m).
    """
    y = utilities[seen]
    centre, width = y.mean(), y.std() or 1.0
    z, k = (y - centre) / width, len(distances)
    units = [d / np.median(d[np.ix_(seen, seen)][d[np.ix_(seen, seen)] > 0]) for d in distances]

    def matrix(x: np.ndarray, columns: np.ndarray) -> np.ndarray:
        pairs = zip(np.exp(x[:k]), np.exp(x[k : 2 * k]), units, strict=True)
        return sum(v * np.exp(-g * d[np.ix_(seen, columns)]) for v, g, d in pairs)

    def factor(x: np.ndarray) -> Any:
        return cho_factor(matrix(x, seen) + np.exp(x[-1]) * np.eye(len(seen)), lower=True)

    def height(x: np.ndarray) -> float:
        """Negative log marginal likelihood."""
        L = factor(x)
        return float(z @ cho_solve(L, z) / 2 + np.log(np.diag(L[0])).sum())

    bounds = [(-9.0, 7.0)] * k + [(-7.0, 5.0)] * k + [(-12.0, 1.0)]
    first = np.append(np.zeros(2 * k), -5.0)
    rng = np.random.default_rng(0)
    starts = [first, *(first + rng.normal(size=(STARTS - 1, len(first))))]
    ends = [minimize(height, start, method="L-BFGS-B", bounds=bounds) for start in starts]
    x = min(ends, key=lambda end: end.fun).x
    mean = centre + width * (matrix(x, np.arange(len(utilities))).T @ cho_solve(factor(x), z))
    mean[seen] = y
    return np.asarray(mean)


def by_fixed_schedule(game: Game, count: int) -> np.ndarray:
    members, utilities = _all(game)
    chosen = np.append(0, schedule(game.owners.rows, count, np.random.default_rng(0)))
    sizes = np.log1p(members @ game.owners.rows)[:, None]
    squared = [cdist(x, x, "sqeuclidean") for x in (members, sizes)]
    return predict(squared, utilities, chosen)


def by_size_alone(game: Game, count: int) -> np.ndarray:
    members, utilities = _all(game)
    chosen = schedule(game.owners.rows, count, np.random.default_rng(0))
    sizes = np.log(members[1:] @ game.owners.rows)[:, None]
    known = predict([cdist(sizes, sizes, "sqeuclidean")], utilities[1:], chosen - 1)
    return np.append(game.empty, known)


PREDICTORS: dict[str, Callable[[Game, int], np.ndarray]] = {
    "fixed schedule": by_fixed_schedule,
    "size alone": by_size_alone,
}


def _all(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """The coalitions by binary code, no data first, (2^n, n), and their utilities, (2^n,)."""
    n = game.owners.n
    members = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return members.astype(np.float64), np.append(game.empty, game.utilities)


def compare(game: Game, recipe: Recipe, split: int, *, semivalue: str, budget: str) -> Record:
    """The record of dupre's run, with the relative errors of all three in "mse"."""
    record = run(game, recipe, split, semivalue=semivalue, budget=budget, seed=0)
    found = {"dupre": relative_mse(record)}
    for name, predictor in PREDICTORS.items():
        with threadpool_limits(1):
            utilities = predictor(game, record["trainings"])
        other = Game(game.name, game.owners, utilities[1:], game.empty)
        errors = other.values(SEMIVALUES[semivalue]) - np.array(record["values"])
        found[name] = relative_mse(record | {"errors": errors})
    return record | {"mse": found}


def report(records: list[Record], part: str) -> None:
    """Print the section of the results."""
    print("\n## Few trainings (`python benchmarks/few_trainings.py`)\n")
    print(
        f'{len({record["game"] for record in records})} games of part "{part}" of the bank. MSE '
        "relative to the variance of the true values, geometric means over games; ratios are those "
        "within a game, × one standard error. The better one is known only in hindsight.\n"
    )
    print(
        "| semivalue | trainings | dupre | fixed schedule | size alone | dupre / fixed schedule | "
        "dupre / size alone | dupre / better of both | 95 % intervals cover |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for cell in CELLS:
        runs = _of(records, cell)
        means = [
            f"{geometric_mean(r['mse'][name] for r in runs):.2g}" for name in ("dupre", *PREDICTORS)
        ]
        ratios = [_ratio(runs, (name,)) for name in PREDICTORS]
        print(
            f"| {' | '.join(cell)} | {' | '.join(means)} | {' | '.join(ratios)} | "
            f"{_ratio(runs, tuple(PREDICTORS))} | {100 * coverage(runs):.1f} % |"
        )
    print("\n| dupre / better of both | ", end="")
    print(" | ".join(f"{semivalue} {budget}" for semivalue, budget in CELLS), end=" |\n")
    print("|---|" + "---|" * len(CELLS))
    for division in DIVISIONS:
        some = [record for record in records if record["division"] == division]
        cells = [_ratio(_of(some, cell), tuple(PREDICTORS)) for cell in CELLS]
        print(f"| division: {division} | {' | '.join(cells)} |")


def _of(records: list[Record], cell: tuple[str, str]) -> list[Record]:
    return [r for r in records if (r["semivalue"], r["budget"]) == cell]


def _ratio(runs: list[Record], names: tuple[str, ...]) -> str:
    """Dupre's error over the smallest of these, and its standard error over games."""
    ratios = [r["mse"]["dupre"] / min(r["mse"][name] for name in names) for r in runs]
    error = np.exp(np.std(np.log(ratios)) / np.sqrt(len(ratios)))
    return f"{geometric_mean(ratios):.2f} × {error:.2f}"


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, default="report")
    parser.add_argument("--games", type=int, help="only so many of the games, at random")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one per core")
    arguments = parser.parse_args()
    games = load_bank(arguments.part)
    if arguments.games:
        few = np.random.default_rng(0).permutation(len(games))[: arguments.games]
        games = [games[i] for i in sorted(few)]
    records = joblib.Parallel(n_jobs=arguments.jobs)(
        joblib.delayed(compare)(*game, semivalue=semivalue, budget=budget)
        for game, (semivalue, budget) in product(games, CELLS)
    )
    report(records, arguments.part)


if __name__ == "__main__":
    _main()
