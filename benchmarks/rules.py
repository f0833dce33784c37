"""Coverage of dupre's intervals on games that follow a rule instead of a trained model.

    python benchmarks/rules.py [RULE ...] [--jobs -1] [--json FILE]

Such games jump where those of models change smoothly: they are not what the predictor is made for,
and show how far its intervals can be trusted there. Every rule is played by 6, 8 and 11 owners on
four divisions of data, of which the predictor knows that they have nothing to do with the rule only
by the utilities. Semivalues, budgets and measures are those of `bank.py`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path

import joblib
import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_wine
from threadpoolctl import threadpool_limits

import dupre
from bank import BUDGETS, SEMIVALUES
from dupre.benchmark import Game
from dupre.data.owners import Owners
from dupre.game.coalitions import all_coalitions
from dupre.notes import GUESSED, Code, has
from records import Record, coverage, record_of, spread_of

OWNERS = (6, 8, 11)
SEEDS = (0, 1)
ROWS_EACH = 20
Rule = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def majority(M: np.ndarray, _: np.random.Generator) -> np.ndarray:
    """1 if more than half of the owners are in."""
    return (2 * M.sum(axis=1) > M.shape[1]).astype(float)


def quota(M: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """1 if 60 % of the votes are in; owners have 1 to 5 votes."""
    votes = rng.integers(1, 6, M.shape[1])
    return (M @ votes > 0.6 * votes.sum()).astype(float)


def any_of_three(M: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """1 if one of three owners is in."""
    return M[:, rng.permutation(M.shape[1])[:3]].any(axis=1).astype(float)


def all_of_three(M: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """1 if all of three owners are in."""
    return M[:, rng.permutation(M.shape[1])[:3]].all(axis=1).astype(float)


def best_of_four(M: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The best member counts: four owners are worth 0.5 to 0.8, the others nothing."""
    worth = np.zeros(M.shape[1])
    worth[rng.permutation(len(worth))[:4]] = [0.5, 0.6, 0.7, 0.8]
    return np.asarray((M * worth).max(axis=1))


def saturated(M: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sum of worths up to 40 % of the whole."""
    worth = rng.random(M.shape[1])
    return np.minimum(M @ worth, 0.4 * worth.sum())


def votes(M: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sum of whole numbers."""
    return np.asarray(M @ rng.integers(1, 6, M.shape[1])).astype(float)


def plateaus(M: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sum of worths, of which only passing 2 to 11 thresholds counts, each by another gain."""
    thresholds = np.sort(rng.random(rng.integers(2, 12)))
    heights = np.append(0, np.cumsum(rng.integers(1, 16, len(thresholds)))) / 120
    return np.asarray(
        heights[np.searchsorted(thresholds, M @ rng.dirichlet(np.full(M.shape[1], 3)))]
    )


RULES: tuple[Rule, ...] = (
    majority,
    quota,
    any_of_three,
    all_of_three,
    best_of_four,
    saturated,
    votes,
    plateaus,
)


def uneven(n: int, rng: np.random.Generator) -> Owners:
    """Random rows, between 3 and most of them for an owner."""
    X = rng.normal(size=(ROWS_EACH * n, 3))
    others = rng.choice(n, (ROWS_EACH - 3) * n, p=rng.dirichlet(np.full(n, 2.0)))
    return _owners(X, X[:, 0] > 0, np.append(np.repeat(np.arange(n), 3), others))


def real(load: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Callable[..., Owners]:
    """Rows of a data set, in equal parts at random."""

    def make(n: int, rng: np.random.Generator) -> Owners:
        X, y = load(return_X_y=True)
        chosen = rng.permutation(len(y))[: ROWS_EACH * n]
        return _owners(X[chosen], y[chosen], np.arange(len(chosen)) % n)

    return make


def _owners(X: np.ndarray, y: np.ndarray, owner: np.ndarray) -> Owners:
    return Owners.from_arrays(X, y, [f"owner {i:02d}" for i in owner])


DATA = {
    "uneven": uneven,
    "wine": real(load_wine),
    "digits": real(load_digits),
    "diabetes": real(load_diabetes),
}


def run(rule: Rule, data: str, n: int, seed: int, *, semivalue: str, budget: str) -> Record:
    """Value the owners of a game once."""
    rng = np.random.default_rng([seed, n, RULES.index(rule), list(DATA).index(data)])
    owners = DATA[data](n, rng)
    game = Game(rule.__name__, owners, rule(all_coalitions(n), rng), 0.0)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        valuation = dupre.value(
            owners,
            game.utility,
            budget=BUDGETS[budget](n),
            semivalue=SEMIVALUES[semivalue],
            progress=False,
        )
    return record_of(valuation, game, SEMIVALUES[semivalue]) | {
        "data": data,
        "semivalue": semivalue,
        "budget": budget,
        "told": has(valuation.notes, *GUESSED, Code.FEW_UTILITIES),
    }


def largest_error(records: list[Record]) -> float:
    """In standard deviations; an error of rounding is none."""
    found = []
    for record in records:
        errors = np.maximum(np.abs(record["errors"]) - 1e-9 * record["scale"], 0.0)
        found.append(np.max(errors / np.maximum(spread_of(record).std, 1e-300)))
    return float(max(found))


def report(records: list[Record], rules: list[Rule]) -> None:
    """Print the section of the results."""
    print("\n## Games of rules (`python benchmarks/rules.py`)\n")
    print(
        f"{len(records)} runs: 6, 8 and 11 owners, four divisions of data, two draws of each; 4n "
        "trainings, or 8n and never all of them.\n"
    )
    print(
        "| rule | semivalue | trainings | 95 % intervals cover | outside 99.9 % | largest error, "
        "std | runs with a note that something is guessed |\n|---|---|---|---|---|---|---|"
    )
    for rule, semivalue, budget in product(rules, ("Shapley", "Banzhaf"), ("4n", "8n")):
        wanted = rule.__name__, semivalue, budget
        runs = [r for r in records if (r["game"], r["semivalue"], r["budget"]) == wanted]
        told = float(np.mean([record["told"] for record in runs]))
        print(
            f"| {rule.__name__.replace('_', ' ')} | {semivalue} | {budget} | "
            f"{100 * coverage(runs):.0f} % | {100 * (1 - coverage(runs, 0.999)):.1f} % | "
            f"{largest_error(runs):.1f} | {100 * told:.0f} % |"
        )


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rules", nargs="*", default=[rule.__name__ for rule in RULES])
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one per core")
    parser.add_argument("--json", type=Path, help="write one record per run to this file")
    arguments = parser.parse_args()
    rules = [rule for rule in RULES if rule.__name__ in arguments.rules]
    runs = product(rules, DATA, OWNERS, SEEDS, ("Shapley", "Banzhaf"), ("4n", "8n"))
    records = joblib.Parallel(n_jobs=arguments.jobs)(
        joblib.delayed(run)(*game, semivalue=semivalue, budget=budget)
        for *game, semivalue, budget in runs
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(records))
    report(records, rules)


if __name__ == "__main__":
    _main()
