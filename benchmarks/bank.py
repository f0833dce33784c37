"""Coverage of dupre's intervals over a bank of small games of which every coalition is trained.

    python benchmarks/bank.py [--part report] [--seeds 1] [--budgets 2n+1 4n 8n] [--games N]
                              [--jobs -1] [--json FILE]
    python benchmarks/bank.py --compare OLD.json NEW.json
    python benchmarks/bank.py --train [--jobs -1]

There are 72 recipes: every data set with every division among every number of owners, the models
taking turns (`recipes`). Each recipe gives three games in both parts: part "choose" (split seeds 0,
2 and 3), on which settings of dupre are chosen, and part "report" (split seeds 1, 4 and 5), on
which they are reported. Split into rows for training and validation, division and training seeds
all derive from that seed.

Half of a data set's rows are for training, half for validation, stratified by class. The metric is
accuracy for classes, R² for diabetes. `--train` trains all coalitions of both parts and writes
`benchmarks/tables/bank.npz`, one array (2^n,) of float64 per game, by binary code of the coalition.

Budgets are 2n + 1, 4n and 8n trainings, but at least n coalitions are left to predict: of 5 owners
8n stands for 26. `few_trainings.py` looks at n + 1 and 2n + 1.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import dupre
from dupre.benchmark import Game
from dupre.data.owners import Owners
from dupre.game.coalitions import all_coalitions, to_names
from dupre.utility.model import ModelUtility
from games import quietly

TABLE = Path(__file__).parent / "tables/bank.npz"
PARTS = {"choose": (0, 2, 3), "report": (1, 4, 5)}
"""Split seeds."""

LEAST_ROWS = 4
OWNERS = (5, 7, 9)
LOADERS = {
    "iris": load_iris,
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "diabetes": load_diabetes,
}
FEATURE = {"iris": 0, "wine": 0, "cancer": 0, "diabetes": 2}
"""Column that divides by feature: sepal length, alcohol, mean radius, body mass index."""

DIVISIONS = ("random", "target", "feature", "sizes", "copy", "shuffled")
"""Who holds which training rows.

random     equal parts at random
target     sorted by class or target, then cut into equal parts
feature    sorted by one feature, then cut into equal parts
sizes      at random, LEAST_ROWS each and the others in Dirichlet(1, ..., 1) shares
copy       equal parts at random, the last owner holds the same rows as the first
shuffled   equal parts at random, the targets of the last owner are shuffled
"""

SMALL = {"n_estimators": 20, "max_depth": 2}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "tree": DecisionTreeClassifier,
    "k-NN": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(n_neighbors=3)),
    "Bayes": GaussianNB,
    "ridge": lambda: make_pipeline(StandardScaler(), RidgeClassifier()),
    "boosting": lambda: GradientBoostingClassifier(**SMALL),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "boosting": lambda: GradientBoostingRegressor(**SMALL),
    "tree": DecisionTreeRegressor,
    "k-NN": lambda: make_pipeline(StandardScaler(), KNeighborsRegressor(n_neighbors=3)),
    "ridge": lambda: make_pipeline(StandardScaler(), Ridge()),
}

SEMIVALUES = {
    "Shapley": dupre.shapley,
    "Banzhaf": dupre.banzhaf,
    "Beta(1, 4)": dupre.beta_shapley(1, 4),
}
BUDGETS: dict[str, Callable[[int], int]] = {
    "n+1": lambda n: n + 1,
    "2n+1": lambda n: 2 * n + 1,
    "4n": lambda n: 4 * n,
    "8n": lambda n: min(8 * n, 2**n - 1 - n),
}
BY_DEFAULT = ("2n+1", "4n", "8n")
NORMAL_95, NORMAL_999 = 1.959964, 3.290527

Record = dict[str, Any]
"""One run: what was valued, and per owner the true value, the error and the stated deviation."""


@dataclass(frozen=True)
class Recipe:
    """How a game is made, but for the split seed."""

    data: str
    model: str
    division: str
    n: int

    @property
    def name(self) -> str:
        return f"{self.data}-{self.model}-{self.division}-{self.n}"


def recipes() -> list[Recipe]:
    """The 72 recipes: every data set, division and number of owners, the models taking turns.

    Models come round so that each occurs about equally often with every data set, division and
    number of owners. Diabetes has no naive Bayes.
    """
    cells = product(enumerate(LOADERS), enumerate(DIVISIONS), enumerate(OWNERS))
    chosen = []
    for (i, data), (j, division), (k, n) in cells:
        models = list(REGRESSORS if data == "diabetes" else CLASSIFIERS)
        chosen.append(Recipe(data, models[(i + j + k) % len(models)], division, n))
    return chosen


def utility_of(recipe: Recipe, seed: int) -> ModelUtility:
    """The utility of one game, with its owners."""
    rng = np.random.default_rng([seed, recipes().index(recipe)])
    X, y = LOADERS[recipe.data](return_X_y=True)
    classes = recipe.data != "diabetes"
    X, X_val, y, y_val = train_test_split(
        X,
        y,
        test_size=0.5,
        random_state=int(rng.integers(2**31)),
        stratify=y if classes else None,
    )
    X, y, owner = divide(recipe, X, y, rng)
    model = (CLASSIFIERS if classes else REGRESSORS)[recipe.model]()
    owners = Owners.from_arrays(X, y, owner, task="classification" if classes else "regression")
    # R² far below 0 is a part of what is hard: nothing is raised to a floor.
    return ModelUtility(model, owners, validation=(X_val, y_val), seed=seed, floor=False)


def divide(
    recipe: Recipe, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets and owner of every row; see DIVISIONS."""
    n, mixed = recipe.n, rng.permutation(len(y))  # ties are sorted at random
    X, y = X[mixed], y[mixed]
    if recipe.division == "target":
        order = np.argsort(y, kind="stable")
    elif recipe.division == "feature":
        order = np.argsort(X[:, FEATURE[recipe.data]], kind="stable")
    else:
        order = np.arange(len(y))
    X, y = X[order], y[order]
    if recipe.division == "sizes":
        share = rng.dirichlet(np.ones(n))
        rows = LEAST_ROWS + rng.multinomial(len(y) - n * LEAST_ROWS, share)
        owner = np.repeat(np.arange(n), rows)
    else:
        parts = n - 1 if recipe.division == "copy" else n
        owner = np.arange(len(y)) * parts // len(y)
    if recipe.division == "copy":
        first = owner == 0
        X, y = np.concatenate([X, X[first]]), np.concatenate([y, y[first]])
        owner = np.append(owner, np.full(first.sum(), n - 1))
    if recipe.division == "shuffled":
        y[owner == n - 1] = rng.permutation(y[owner == n - 1])
    return X, y, owner


def train_game(recipe: Recipe, seed: int) -> np.ndarray:
    """The utilities of all coalitions by binary code, (2^n,); the first is that of no data."""
    utility = utility_of(recipe, seed)
    with threadpool_limits(1):  # the number of threads can change the last digit
        rows = all_coalitions(utility.owners.n)
        trained = [quietly(utility, to_names(row, utility.owners.names)) for row in rows]
    return np.array([utility.empty, *trained])


def train(jobs: int) -> None:
    """Train every coalition of both parts and write the table."""
    games = [
        (split, recipe) for splits in PARTS.values() for split in splits for recipe in recipes()
    ]
    games.sort(key=lambda game: -game[1].n)  # the longest first
    tables = joblib.Parallel(n_jobs=jobs, verbose=1)(
        joblib.delayed(train_game)(recipe, split) for split, recipe in games
    )
    names = [f"{split}/{recipe.name}" for split, recipe in games]
    np.savez_compressed(TABLE, **dict(sorted(zip(names, tables, strict=True))))


def load_bank(part: str) -> list[tuple[Game, Recipe, int]]:
    """The games of one part, "choose" or "report", each with its recipe and its split seed."""
    games = []
    with np.load(TABLE, allow_pickle=False) as tables:
        for split, recipe in product(PARTS[part], recipes()):
            owners = utility_of(recipe, split).owners
            name = f"{split}/{recipe.name}"
            empty, *utilities = tables[name]
            game = Game(name, owners, np.array(utilities), float(empty))
            games.append((game, recipe, split))
    return games


def run(
    game: Game, recipe: Recipe, split: int, *, semivalue: str, budget: str, seed: int
) -> Record:
    """Value the owners of a game once."""
    expected = game.values(SEMIVALUES[semivalue])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        valuation = dupre.value(
            game.owners,
            game.utility,
            budget=BUDGETS[budget](game.owners.n),
            semivalue=SEMIVALUES[semivalue],
            seed=seed,
            progress=False,
        )
    return {
        "game": game.name,
        "split": split,
        "data": recipe.data,
        "model": recipe.model,
        "division": recipe.division,
        "n": recipe.n,
        "semivalue": semivalue,
        "budget": budget,
        "trainings": BUDGETS[budget](game.owners.n),
        "seed": seed,
        "scale": float(np.ptp(np.append(game.utilities, game.empty))),
        "values": expected.tolist(),
        "errors": (np.asarray(valuation.mean) - expected).tolist(),
        "stds": np.asarray(valuation.std).tolist(),
    }


def within(record: Record, deviations: float) -> np.ndarray:
    """Which true values are at most so many standard deviations away, (n,).

    What is known exactly has no deviation and an error of rounding; it counts as inside.
    """
    errors, stds = np.abs(record["errors"]), np.array(record["stds"])
    return np.asarray(errors <= deviations * stds + 1e-9 * record["scale"])


def relative_mse(record: Record) -> float:
    """Mean squared error relative to the variance of the true values."""
    floor = (1e-9 * record["scale"]) ** 2  # a geometric mean bears no zeros
    return (mse(record) + floor) / (float(np.var(record["values"])) + floor)


def relative_width(record: Record) -> float:
    """Mean half-width of the 95 % intervals over the standard deviation of the true values."""
    spread = float(np.std(record["values"])) + 1e-9 * record["scale"]
    return NORMAL_95 * float(np.mean(record["stds"])) / spread


def mse(record: Record) -> float:
    return float(np.mean(np.square(record["errors"])))


def coverage(records: Iterable[Record], deviations: float = NORMAL_95) -> float:
    """Share of all true values that are inside."""
    return float(np.concatenate([within(record, deviations) for record in records]).mean())


def standard_error(records: Iterable[Record]) -> float:
    """Of the coverage, if other games had been played: owners of one game are not independent."""
    inside = np.array(
        [[(hits := within(record, NORMAL_95)).sum(), hits.size] for record in records]
    )
    share = inside[:, 0].sum() / inside[:, 1].sum()
    return float(np.linalg.norm(inside[:, 0] - share * inside[:, 1]) / inside[:, 1].sum())


def geometric_mean(numbers: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(numbers)))))


def report(records: list[Record], part: str) -> None:
    """Print one part's section of the results."""
    seeds = len({record["seed"] for record in records})
    names = {record["game"] for record in records}
    print("\n## Coverage over a bank of small games (`python benchmarks/bank.py`)\n")
    print(
        f'Part "{part}": {len(names)} games, {seeds} seed{"s" if seeds > 1 else ""} each.', end=" "
    )
    print("± is one standard error over games.\n")
    print(
        "| semivalue | trainings | runs | 95 % intervals cover | beyond 3.29 std | "
        "runs that cover ≤ 60 % | median width | MSE / variance |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for (semivalue, budget), runs in _grouped(records, ("semivalue", "budget")):
        poor = sum(within(record, NORMAL_95).mean() <= 0.6 for record in runs)
        print(
            f"| {semivalue} | {budget} | {len(runs)} | {_percent(coverage(runs))} "
            f"± {100 * standard_error(runs):.1f} | "
            f"{_percent(1 - coverage(runs, NORMAL_999))} | {poor} | "
            f"{np.median([relative_width(record) for record in runs]):.2g} | "
            f"{geometric_mean(relative_mse(record) for record in runs):.2g} |"
        )
    print("\n| over all budgets | runs |", end="")
    print(*(f" {semivalue} cover | beyond 3.29 std |" for semivalue in SEMIVALUES), sep="")
    print("|---|---|" + "---|---|" * len(SEMIVALUES))
    for key in ("division", "model", "data", "n", "split"):
        for (group,), runs in _grouped(records, (key,)):
            cells = []
            for semivalue in SEMIVALUES:
                own = [record for record in runs if record["semivalue"] == semivalue]
                cells.append(_percent(coverage(own)) if own else "–")
                cells.append(_percent(1 - coverage(own, NORMAL_999)) if own else "–")
            shown = {"n": f"{group} owners", "split": f"split seed {group}"}
            name = shown.get(key, f"{key}: {group}")
            print(f"| {name} | {len(runs)} | {' | '.join(cells)} |")


def compare(old: list[Record], new: list[Record]) -> None:
    """Print how two versions of dupre differ on the runs that both have made."""
    before = {_identity(record): record for record in old}
    both = [record for record in new if _identity(record) in before]
    print(f"{len(both)} runs in both; {len(old)} old, {len(new)} new.")
    if changed := sum(not _same_game(before[_identity(record)], record) for record in both):
        print(f"Of {changed} runs the true values differ: the table was trained again in between.")
    print(
        "\n| semivalue | trainings | runs | MSE new / old | width new / old | old cover | ", end=""
    )
    print("new cover | old beyond 3.29 std | new |\n|---|---|---|---|---|---|---|---|---|")
    for (semivalue, budget), runs in _grouped(both, ("semivalue", "budget")):
        olds = [before[_identity(record)] for record in runs]
        pairs = list(zip(runs, olds, strict=True))
        errors = geometric_mean(relative_mse(r) / relative_mse(o) for r, o in pairs)
        widths = geometric_mean(_guarded_width(r) / _guarded_width(o) for r, o in pairs)
        print(
            f"| {semivalue} | {budget} | {len(runs)} | {errors:.3f} | {widths:.3f} | "
            f"{_percent(coverage(olds))} | {_percent(coverage(runs))} | "
            f"{_percent(1 - coverage(olds, NORMAL_999))} | "
            f"{_percent(1 - coverage(runs, NORMAL_999))} |"
        )


def _guarded_width(record: Record) -> float:
    return relative_width(record) + 1e-9


def _identity(record: Record) -> tuple[Any, ...]:
    """What two records of the same run share."""
    return tuple(record[key] for key in ("game", "semivalue", "trainings", "seed"))


def _same_game(one: Record, other: Record) -> bool:
    return np.allclose(one["values"], other["values"], rtol=0, atol=1e-9 * one["scale"])


def _grouped(
    records: list[Record], keys: Sequence[str]
) -> list[tuple[tuple[Any, ...], list[Record]]]:
    """Records by the values of these keys, in the order in which values first occur."""
    ranks = {key: list(dict.fromkeys(record[key] for record in records)) for key in keys}

    def rank(record: Record) -> tuple[int, ...]:
        return tuple(ranks[key].index(record[key]) for key in keys)

    groups = groupby(sorted(records, key=rank), rank)
    return [(tuple(ranks[k][i] for k, i in zip(keys, r, strict=True)), list(g)) for r, g in groups]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, default="report")
    parser.add_argument("--seeds", type=int, default=1, help="runs of dupre per game and budget")
    parser.add_argument("--budgets", nargs="+", choices=BUDGETS, default=BY_DEFAULT)
    parser.add_argument("--games", type=int, help="only so many of the games, at random")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one per core")
    parser.add_argument("--json", type=Path, help="write one record per run to this file")
    parser.add_argument("--train", action="store_true", help="train all games of both parts")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"))
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.jobs)
        return
    if arguments.compare:
        compare(*(json.loads(file.read_text()) for file in arguments.compare))
        return
    games = load_bank(arguments.part)
    if arguments.games:
        few = np.random.default_rng(0).permutation(len(games))[: arguments.games]
        games = [games[i] for i in sorted(few)]
    runs = product(games, SEMIVALUES, arguments.budgets, range(arguments.seeds))
    records = joblib.Parallel(n_jobs=arguments.jobs)(
        joblib.delayed(run)(*game, semivalue=name, budget=budget, seed=seed)
        for game, name, budget, seed in runs
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(records))
    report(records, arguments.part)


if __name__ == "__main__":
    _main()
