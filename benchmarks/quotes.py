"""Quotes for every owner of the benchmark games, beside simple guesses of what it is worth.

    python benchmarks/quotes.py [--games NAME ...] [--spend 0 3 6] [--seeds 1] [--jobs -1]
                                [--json FILE]

Every owner is left out in turn. The others are valued by 4n trainings, n of them. Then the owner
that was left out is quoted: by prediction alone, and after 3 and 6 trainings with it. The exact
values are those of the game with all owners.

What a quote is compared with knows the same trainings, and guesses the value by one number x of
each owner: the values of the n others are fitted by a + b x, least squares.

- *rows*: x is the number of rows.
- *alone*: x is the utility of the owner's rows alone; takes one training of the newcomer.
- *LAVA*: x is minus the sum of its rows' LAVA scores (`dupre.baselines.lava`), rows against those
  of all others.
- *scaling law*: utilities of all trainings are fitted by a - b rows^-c; x is the value in the game
  with these utilities.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy.optimize import curve_fit
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

import dupre
from dupre.benchmark import Game, load
from dupre.game.coalitions import from_names
from dupre.game.estimators import exact

GAMES = (
    *("digits-random-8", "digits-by-label-10", "digits-skewed-10", "digits-paper-6"),
    *("diabetes-random-8", "housing-random-8", "housing-by-location-10", "digits-centroid-10"),
)
SPENT = (0, 3, 6)
Record = dict[str, Any]


def quotes_of(name: str, left_out: int, seed: int, spent: tuple[int, ...]) -> list[Record]:
    """The quotes for one owner of a game, and the guesses."""
    game = load(name)
    newcomer = game.owners.names[left_out]
    owners = game.owners.without(newcomer)
    X, y = game.owners.data_of(np.arange(game.owners.n) == left_out)
    true = float(game.values(dupre.shapley)[left_out])
    spread = float(np.std(game.values(dupre.shapley)))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        valuation = dupre.value(
            owners, game.utility, budget=4 * owners.n, empty=game.empty, seed=seed, progress=False
        )
        found = {
            spend: dupre.quote(
                owners,
                game.utility,
                newcomer,
                X,
                y,
                known=valuation.evaluations,
                empty=game.empty,
                spend=spend,
                seed=seed,
                progress=False,
            )
            for spend in spent
        }
    common = {"game": name, "owner": newcomer, "seed": seed, "true": true, "spread": spread}
    records = [
        common
        | {
            "method": f"quote, {spend}",
            "spend": spend,
            "guess": one.value,
            "std": one.std,
            "low": one.interval()[0],
            "high": one.interval()[1],
        }
        for spend, one in found.items()
    ]
    guesses = simple_guesses(game, valuation, newcomer)
    return records + [common | {"method": key, "guess": guess} for key, guess in guesses.items()]


def simple_guesses(game: Game, valuation: dupre.Valuation, newcomer: str) -> dict[str, float]:
    """The value of the newcomer as each number alone would have it."""
    owners, others = game.owners, list(valuation.owners)
    rows = dict(zip(owners.names, owners.rows.astype(float), strict=True))
    alone = {name: game.utility((name,)) for name in owners.names}
    lava = lava_sums(game)
    values = valuation.values
    numbers = {"rows": rows, "alone": alone, "LAVA": lava, "scaling law": law(game, valuation)}
    guesses = {}
    for key, x in numbers.items():
        design = np.array([[1.0, x[name]] for name in others])
        fitted = np.linalg.lstsq(design, values[others].to_numpy(), rcond=None)[0]
        guesses[key] = float(fitted @ [1.0, x[newcomer]])
    return guesses


def lava_sums(game: Game) -> dict[str, float]:
    """Minus the sum of the LAVA scores of each owner's rows, against all rows."""
    found = dupre.baselines.lava(game.owners, validation=(game.owners.X, game.owners.y))
    return {name: float(found.values[name]) for name in game.owners.names}


def law(game: Game, valuation: dupre.Valuation) -> dict[str, float]:
    """The values of the game whose utilities follow the scaling law that fits what is known."""
    owners = game.owners
    evaluations = valuation.evaluations
    members = np.array(
        [from_names(json.loads(text), owners.names) for text in evaluations["coalition"]]
    )
    rows, utilities = members @ owners.rows.astype(float), evaluations["utility"].to_numpy(float)
    top = float(rows.max())

    def curve(x: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
        return a - b * (np.asarray(x) / top) ** -np.exp(c)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted, _ = curve_fit(curve, rows, utilities, p0=[utilities.max(), 0.1, -0.7], maxfev=20000)
    weights = exact(dupre.shapley, owners.n)
    predicted = curve(weights.members @ owners.rows, *fitted)
    values = weights.W @ predicted + weights.empty * game.empty
    return dict(zip(owners.names, values.tolist(), strict=True))


def report(records: list[Record]) -> None:
    """Print the section of the results."""
    print("\n## Quotes (`python benchmarks/quotes.py`)\n")
    games = list(dict.fromkeys(record["game"] for record in records))
    methods = list(dict.fromkeys(record["method"] for record in records))
    seeds = len({record["seed"] for record in records})
    print(
        f"Every owner left out in turn, {seeds} seed{'s' if seeds > 1 else ''}. Root mean squared "
        "error in standard deviations of the true values; in brackets the rank correlation.\n"
    )
    print("| game | owners | spread |", " | ".join(methods), "|")
    print("|---" * (len(methods) + 3) + "|")
    for game in games:
        cells = []
        for method in methods:
            own = [r for r in records if (r["game"], r["method"]) == (game, method)]
            cells.append(f"{rmse(own):.2g} ({rank(own):.2f})")
        own = [r for r in records if r["game"] == game]
        owners = len({r["owner"] for r in own})
        print(f"| {game} | {owners} | {own[0]['spread']:.2g} |", " | ".join(cells), "|")
    print("\n| quote | 95 % intervals cover | mean rank correlation | runs |\n|---|---|---|---|")
    for method in methods:
        own = [r for r in records if r["method"] == method and "low" in r]
        if own:
            inside = [r["low"] <= r["true"] <= r["high"] for r in own]
            mean = np.mean([rank([r for r in own if r["game"] == game]) for game in games])
            print(f"| {method} | {100 * np.mean(inside):.1f} % | {mean:.2f} | {len(own)} |")


def rmse(records: list[Record]) -> float:
    """In standard deviations of the true values."""
    errors = [(r["guess"] - r["true"]) / r["spread"] for r in records]
    return float(np.sqrt(np.mean(np.square(errors))))


def rank(records: list[Record]) -> float:
    """Of guesses with the true values, mean over seeds."""
    seeds = {r["seed"] for r in records}
    every = [[r for r in records if r["seed"] == seed] for seed in seeds]
    found = [spearmanr([r["guess"] for r in o], [r["true"] for r in o]).statistic for o in every]
    return float(np.mean(np.nan_to_num(found)))


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="+", default=GAMES)
    parser.add_argument("--spend", nargs="+", type=int, default=SPENT)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one per core")
    parser.add_argument("--json", type=Path, help="write one record per guess to this file")
    arguments = parser.parse_args()
    runs = [
        (name, i, seed)
        for name, seed in product(arguments.games, range(arguments.seeds))
        for i in range(load(name).owners.n)
    ]
    found = joblib.Parallel(n_jobs=arguments.jobs)(
        joblib.delayed(quotes_of)(*one, spent=tuple(arguments.spend)) for one in runs
    )
    records = [record for several in found for record in several]
    if arguments.json:
        arguments.json.write_text(json.dumps(records))
    report(records)


if __name__ == "__main__":
    _main()
