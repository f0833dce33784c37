"""Coverage of dupre's intervals over a bank of small games of which every coalition is trained.

    python benchmarks/bank.py [--part report] [--seeds 1] [--budgets n+1 2n+1 4n 8n] [--games N]
                              [--jobs -1] [--json FILE]
    python benchmarks/bank.py --compare OLD.json NEW.json
    python benchmarks/bank.py --fit CHOOSE.json
    python benchmarks/bank.py --train [--jobs -1]

There are 72 recipes: every data set with every division among every number of owners, the models
taking turns (`recipes`). Each recipe gives three games in both parts: part "choose" (split seeds 0,
2 and 3), on which settings of dupre are chosen, and part "report" (split seeds 1, 4 and 5), on
which they are reported. Split into rows for training and validation, division and training seeds
all derive from that seed.

Half of a data set's rows are for training, half for validation, stratified by class. The metric is
accuracy for classes, R² for diabetes. `--train` trains all coalitions of both parts and writes
`benchmarks/tables/bank.npz`, one array (2^n,) of float64 per game, by binary code of the coalition.

Budgets are n + 1, 2n + 1, 4n, 8n and 16n trainings, but at least n coalitions are left to predict:
of 5 owners 8n stands for 26. `few_trainings.py` compares n + 1 and 2n + 1 with other predictors.

`--fit` prints the scale and the freedom of errors (`dupre.predictor.calibration`) that the records
of part "choose" make most likely, and the intervals of each data set as the others would set them.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy.optimize import minimize
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
from dupre.predictor import calibration
from dupre.utility.model import ModelUtility
from games import quietly
from records import (
    LEVELS,
    Record,
    coverage,
    geometric_mean,
    log_density,
    orders_right,
    percent,
    record_of,
    relative_mse,
    relative_width,
    standard_error,
    within,
)

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
    "16n": lambda n: min(16 * n, 2**n - 1 - n),
}
BY_DEFAULT = ("n+1", "2n+1", "4n", "8n")


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
    return record_of(valuation, game, SEMIVALUES[semivalue]) | {
        "split": split,
        "data": recipe.data,
        "model": recipe.model,
        "division": recipe.division,
        "semivalue": semivalue,
        "budget": budget,
        "trainings": BUDGETS[budget](game.owners.n),
        "seed": seed,
    }


def report(records: list[Record], part: str, options: str = "") -> None:
    """Print one part's section of the results."""
    seeds = len({record["seed"] for record in records})
    names = {record["game"] for record in records}
    print(f"\n## Coverage over a bank of small games (`python benchmarks/bank.py{options}`)\n")
    print(
        f'Part "{part}": {len(names)} games, {seeds} seed{"s" if seeds > 1 else ""} each.', end=" "
    )
    print("± is one standard error over games. Density: mean negative log density.\n")
    print(
        "| semivalue | trainings | runs |", *(f"{100 * level:g} % |" for level in LEVELS), end=" "
    )
    print("runs that cover ≤ 60 % at 95 % | median width | MSE / variance | density |")
    print("|---|---|---|" + "---|" * len(LEVELS) + "---|---|---|---|")
    for (semivalue, budget), runs in [*_grouped(records, ("semivalue", "budget")), _all(records)]:
        poor = sum(within(record).mean() <= 0.6 for record in runs)
        print(
            f"| {semivalue} | {budget} | {len(runs)} | {_levels(runs)} | {poor} | "
            f"{np.median([relative_width(record) for record in runs]):.2g} | "
            f"{geometric_mean(relative_mse(record) for record in runs):.2g} | "
            f"{_density(runs):.2f} |"
        )
    print("\n| over all budgets | runs |", end="")
    print(*(f" {semivalue}: 95 % | 99.9 % |" for semivalue in SEMIVALUES), sep="")
    print("|---|---|" + "---|---|" * len(SEMIVALUES))
    for key in ("division", "model", "data", "n", "split"):
        for (group,), runs in _grouped(records, (key,)):
            cells = []
            for semivalue in SEMIVALUES:
                own = [record for record in runs if record["semivalue"] == semivalue]
                cells += [percent(coverage(own, level)) if own else "–" for level in (0.95, 0.999)]
            shown = {"n": f"{group} owners", "split": f"split seed {group}"}
            name = shown.get(key, f"{key}: {group}")
            print(f"| {name} | {len(runs)} | {' | '.join(cells)} |")
    print("\nOf two owners, the one more likely to be worth more:\n")
    print("| probability said | right | difference | pairs |\n|---|---|---|---|")
    for pairs, said, right, error in orders_right(records):
        print(
            f"| {percent(said)} | {percent(right)} ± {100 * error:.1f} | "
            f"{100 * (right - said):+.1f} | {pairs} |"
        )


def fit(records: list[Record]) -> None:
    """Print the most likely scale and freedom, and what those of other data sets hold of each."""
    print("| fitted to | scale | freedom | held on |", *(f"{100 * v:g} % |" for v in LEVELS))
    print("|---|---|---|---|" + "---|" * len(LEVELS))
    there = {record["data"] for record in records}
    for left_out in (*(data for data in LOADERS if data in there), None):
        known = [record for record in records if record["data"] != left_out]
        scale, freedom = _most_likely(known)
        held = [record for record in records if left_out in (record["data"], None)]
        cells = _levels([_restated(record, scale, freedom) for record in held])
        first = f"all but {left_out} | {scale:.2f} | {freedom:.1f} | {left_out}"
        print(f"| {first if left_out else f'all | {scale:.2f} | {freedom:.1f} | all'} | {cells} |")


def _most_likely(records: list[Record]) -> tuple[float, float]:
    """Scale and freedom that maximise the density of the errors, every run counting as one."""

    def height(x: np.ndarray) -> float:
        scale, freedom = float(np.exp(x[0])), 2 + float(np.exp(x[1]))
        runs = (_restated(record, scale, freedom) for record in records)
        each = [log_density(record) for record in runs]
        return -float(np.mean([values.mean() for values in each if values.size]))

    start = np.log([calibration.SCALE, calibration.FREEDOM - 2])
    found = minimize(height, start, method="Nelder-Mead", options={"xatol": 0.01, "fatol": 1e-4})
    return float(np.exp(found.x[0])), 2 + float(np.exp(found.x[1]))


def _restated(record: Record, scale: float, freedom: float) -> Record:
    """As with another scale and freedom; those of dupre are taken out."""
    wider = scale / calibration.SCALE
    student = [wider * std for std in record["student"]]
    return record | {"student": student, "freedom": freedom}


def _levels(runs: list[Record]) -> str:
    """Coverage at every level, with its standard error at 95 %."""
    cells = [percent(coverage(runs, level)) for level in LEVELS]
    cells[LEVELS.index(0.95)] += f" ± {100 * standard_error(runs):.1f}"
    return " | ".join(cells)


def _density(runs: list[Record]) -> float:
    return -float(np.concatenate([log_density(record) for record in runs]).mean())


def _all(records: list[Record]) -> tuple[tuple[str, str], list[Record]]:
    return ("all", "all"), records


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
    print("new cover | old density | new |\n|---|---|---|---|---|---|---|---|---|")
    for (semivalue, budget), runs in _grouped(both, ("semivalue", "budget")):
        olds = [before[_identity(record)] for record in runs]
        pairs = list(zip(runs, olds, strict=True))
        errors = geometric_mean(relative_mse(r) / relative_mse(o) for r, o in pairs)
        widths = geometric_mean(_guarded_width(r) / _guarded_width(o) for r, o in pairs)
        print(
            f"| {semivalue} | {budget} | {len(runs)} | {errors:.3f} | {widths:.3f} | "
            f"{percent(coverage(olds))} | {percent(coverage(runs))} | "
            f"{_density(olds):.2f} | {_density(runs):.2f} |"
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
    parser.add_argument("--fit", type=Path, metavar="FILE", help="fit scale and freedom to records")
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.jobs)
        return
    if arguments.compare:
        compare(*(json.loads(file.read_text()) for file in arguments.compare))
        return
    if arguments.fit:
        fit(json.loads(arguments.fit.read_text()))
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
    report(records, arguments.part, f" --games {arguments.games}" if arguments.games else "")


if __name__ == "__main__":
    _main()
