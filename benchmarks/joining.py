"""What it costs to value one more owner: dupre, Delta and Pivot, against a new run.

    python benchmarks/joining.py [--games NAME ...] [--owners 4] [--jobs -1] [--json FILE]

Of every game some owners are left out in turn, evenly spaced. The others are valued by 4n
trainings; then the owner joins. A new run of 4n trainings has a widest interval; trainings are
counted until the values of all owners, with what is known, have none wider: by dupre as it is,
which evaluates its first design, and by `Active(first=0)`, which relies on what is known.

Beside it, after the same number of new trainings, are two estimators for data that change (Zhang,
Liu, Sun, Ren & Wang 2023, "Dynamic Shapley Value Computation"), for owners instead of rows. Both
begin with the exact values of the others, which favours them:

- *Delta*: the change of every value is the mean difference between its contributions with and
  without the newcomer, over random coalitions of the others.
- *Pivot*: the newcomer is put at a random place of random orders; contributions before that place
  are known, those after it are computed anew.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

import dupre
from dupre.benchmark import Game, load
from dupre.game.coalitions import from_names
from quotes import GAMES

Record = dict[str, Any]


class Counted:
    """The utilities of a game, each new one counted once.

    Args:
        game: of all owners.
        known: coalitions that cost nothing, as boolean rows.
    """

    def __init__(self, game: Game, known: np.ndarray):
        self.game = game
        self.seen = {row.tobytes() for row in known}
        self.new = 0

    def __call__(self, row: np.ndarray) -> float:
        if row.any() and row.tobytes() not in self.seen:
            self.seen.add(row.tobytes())
            self.new += 1
        return float(self.game.utilities_of(row[None])[0])


def run(name: str, left_out: int) -> Record:
    """One owner of a game joins the others."""
    game = load(name)
    newcomer = game.owners.names[left_out]
    rest = game.owners.without(newcomer)
    true = game.values(dupre.shapley)
    how: dict[str, Any] = {"empty": game.empty, "progress": False}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh = dupre.value(game.owners, game.utility, budget=4 * game.owners.n, **how)
        before = dupre.value(rest, game.utility, budget=4 * rest.n, **how)
        found = {}
        for key, strategy in (("dupre", None), ("first=0", dupre.strategies.Active(first=0))):
            found[key] = dupre.value(
                game.owners,
                game.utility,
                known=before.evaluations,
                stop=dupre.stopping.within(fresh.uncertainty.widest),
                strategy=strategy,
                budget=2**game.owners.n - 1,
                **how,
            )
    record: Record = {"game": name, "n": game.owners.n, "variance": float(np.var(true))}
    record["fresh"] = {"new": fresh.facts.evaluated, "mse": mse(fresh.mean - true)}
    for key, valuation in found.items():
        new = valuation.facts.evaluated - len(before.evaluations)
        record[key] = {"new": new, "mse": mse(valuation.mean - true)}
    texts = before.evaluations["coalition"]
    known = np.array([from_names(json.loads(text), game.owners.names) for text in texts])
    for key, estimate in (("Delta", delta), ("Pivot", pivot)):
        utility = Counted(game, known)
        rng = np.random.default_rng(0)
        values = estimate(utility, game, left_out, record["dupre"]["new"], rng)
        record[key] = {"new": utility.new, "mse": mse(values - true)}
    return record


def mse(errors: np.ndarray) -> float:
    return float(np.mean(np.square(errors)))


def values_without(game: Game, left_out: int) -> np.ndarray:
    """The exact values of the others in their own game, (n,); 0 for the newcomer."""
    weights = dupre.estimators.exact(dupre.shapley, game.owners.n - 1)
    members = np.insert(weights.members, left_out, False, axis=1)
    values = weights.W @ game.utilities_of(members) + weights.empty * game.empty
    return np.insert(values, left_out, 0.0)


def delta(
    utility: Counted, game: Game, left_out: int, budget: int, rng: np.random.Generator
) -> np.ndarray:
    """Values by the mean change of contributions, with up to `budget` new utilities."""
    n = game.owners.n
    others = np.delete(np.arange(n), left_out)
    values, changes, own = values_without(game, left_out), [[] for _ in range(n)], []
    while utility.new < budget:
        i, size = int(rng.choice(others)), int(rng.integers(n - 1))
        rest = rng.permutation(others[others != i])[:size]
        S = np.zeros(n, dtype=bool)
        S[rest] = True
        plus_i, plus_new, both = S.copy(), S.copy(), S.copy()
        plus_i[i] = plus_new[left_out] = both[i] = both[left_out] = True
        alone = utility(plus_i) - utility(S)
        # An owner joins c of the others and the newcomer with the weight of c + 1 others.
        changes[i].append((size + 1) / n * (utility(both) - utility(plus_new) - alone))
        own.append(utility(plus_new) - utility(S))
    found = np.array([values[i] + (np.mean(changes[i]) if changes[i] else 0.0) for i in range(n)])
    found[left_out] = np.mean(own)
    return found


def pivot(
    utility: Counted, game: Game, left_out: int, budget: int, rng: np.random.Generator
) -> np.ndarray:
    """Values by orders in which only what follows the newcomer is new."""
    n = game.owners.n
    others = np.delete(np.arange(n), left_out)
    sums, count = np.zeros(n), 0
    while utility.new < budget:
        order = np.insert(rng.permutation(others), int(rng.integers(n)), left_out)
        place, row = int(np.flatnonzero(order == left_out)[0]), np.zeros(n, dtype=bool)
        for i in order[:place]:  # kept from the orders of before: they cost nothing
            joined = row.copy()
            joined[i] = True
            pair = game.utilities_of(np.stack([joined, row]))
            sums[i] += pair[0] - pair[1]
            row = joined
        for i in order[place:]:
            joined = row.copy()
            joined[i] = True
            utility.seen.add(row.tobytes())
            sums[i] += utility(joined) - float(game.utilities_of(row[None])[0])
            row = joined
        count += 1
    return sums / max(count, 1)


def report(records: list[Record]) -> None:
    """Print the section of the results."""
    print("\n## One more owner (`python benchmarks/joining.py`)\n")
    print(
        f"{len(records)} joins. New trainings until no interval is wider than the widest of a new "
        "run of 4n, as a part of its 4n; mean squared error over the variance of the true values, "
        "geometric means.\n"
    )
    methods = ("fresh", "dupre", "first=0", "Delta", "Pivot")
    print("| game |", " | ".join(f"{m}: trainings | error" for m in methods), "|")
    print("|---" * (1 + 2 * len(methods)) + "|")
    games = list(dict.fromkeys(record["game"] for record in records))
    for game in (*games, None):
        own = [record for record in records if game in (record["game"], None)]
        cells = []
        for m in methods:
            part = np.mean([r[m]["new"] / r["fresh"]["new"] for r in own])
            logs = [np.log(r[m]["mse"] / r["variance"] + 1e-12) for r in own]
            cells.append(f"{part:.2f} | {np.exp(np.mean(logs)):.2g}")
        print(f"| {game or 'all'} |", " | ".join(cells), "|")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="+", default=GAMES)
    parser.add_argument("--owners", type=int, default=4, help="to leave out of each game")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one per core")
    parser.add_argument("--json", type=Path, help="write one record per join to this file")
    arguments = parser.parse_args()
    runs = []
    for name in arguments.games:
        n = load(name).owners.n
        count = min(arguments.owners, n)
        runs += [(name, int(i)) for i in np.linspace(0, n - 1, count).round()]
    records = joblib.Parallel(n_jobs=arguments.jobs)(joblib.delayed(run)(*one) for one in runs)
    if arguments.json:
        arguments.json.write_text(json.dumps(records))
    report(records)


if __name__ == "__main__":
    _main()
