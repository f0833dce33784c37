"""Do intervals hold for the population that the validation rows come from?

Each game has six owners and a population of thousands of rows that nobody trains on. All 63 models
are trained once and predict the whole population; its Shapley values are the truth. Then a mediator
has a validation file of a few hundred rows drawn from the population, and `dupre.value` sees 30 of
the 63 utilities on this file alone. How many of the 95 % intervals hold the truth, with and without
the part that is due to the choice of the rows?

Two more columns say what can be hoped for: the coverage of 2,000 files if all 63 are trained, and
the largest part that one row of the population has in the variance of a value. If a single row in
thousands decides, most files do not hold it, and nothing in them tells of it.

    python benchmarks/validation_rows.py [--files 80] [--rows 300] [NAME ...]

MNIST, IMDb and SST-2 are read from the folder named by DUPRE_DATA (see games.py).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import dupre
from dupre.game.coalitions import all_coalitions, to_names
from dupre.game.estimators import exact

DATA = Path(os.environ.get("DUPRE_DATA", Path(__file__).parents[2] / "shared" / "data"))
OWNERS = 6
BUDGET = 30
EXACT_FILES = 2_000
POPULATION = 8_000


@dataclass(frozen=True)
class Table:
    """Rows of six owners, of the population, and the score of each row under a prediction."""

    X: np.ndarray
    y: np.ndarray
    owner: np.ndarray
    population: tuple[np.ndarray, np.ndarray]
    model: Any
    score: Callable[[np.ndarray, np.ndarray], np.ndarray]


def right(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """1 where a prediction is right: the mean is the accuracy."""
    return (y == predicted).astype(float)


def minus_error(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The mean is minus the mean absolute error."""
    return -np.abs(y - predicted)


def split(X, y, owner, model, score, *, rows=300) -> Table:  # type: ignore[no-untyped-def]
    """The first rows, in a random order, are the owners'; the next are the population."""
    order = np.random.default_rng(0).permutation(len(y))
    train, rest = order[:rows], order[rows : rows + POPULATION]
    holder = np.arange(rows) % OWNERS if owner is None else owner[train]
    return Table(X[train], y[train], holder, (X[rest], y[rest]), model, score)


def mnist() -> tuple[np.ndarray, np.ndarray]:
    """The first 20,000 digits, each 7 x 7."""
    data = np.load(DATA / "mnist.npz")
    X = data["x_train"][:20_000].astype(float).reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4))
    return X.reshape(len(X), -1) / 255, data["y_train"][:20_000].astype(int)


def text(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Sentence embeddings and whether the review is positive."""
    data = np.load(DATA / f"{name}.npz")
    return data["X"].astype(float), data["y"].astype(int)


def housing() -> tuple[np.ndarray, np.ndarray]:
    """Eight columns and the median value of houses."""
    frame = pd.read_csv(DATA / "california_housing.csv.gz")
    return frame.drop(columns="MedHouseVal").to_numpy(), frame["MedHouseVal"].to_numpy()


def mnist_random() -> Table:
    """Equal random parts."""
    return split(*mnist(), None, LogisticRegression(max_iter=200), right)


def mnist_skewed() -> Table:
    """Each owner holds mostly its own digits."""
    X, y = mnist()
    noise = np.random.default_rng(1).integers(OWNERS, size=len(y))
    owner = np.where(np.random.default_rng(2).random(len(y)) < 0.7, y % OWNERS, noise)
    return split(X, y, owner, GaussianNB(var_smoothing=0.01), right)


def imdb_random() -> Table:
    """Equal random parts, one of them with half of the labels wrong."""
    X, y = text("imdb_minilm")
    table = split(X, y, None, LogisticRegression(), right)
    wrong = (table.owner == 0) & (np.random.default_rng(3).random(len(table.y)) < 0.5)
    return Table(table.X, table.y ^ wrong, table.owner, table.population, table.model, table.score)


def sst2_random() -> Table:
    """Equal random parts."""
    return split(*text("sst2_sentences_minilm"), None, LogisticRegression(), right)


def housing_random() -> Table:
    """Equal random parts, minus the mean absolute error."""
    return split(*housing(), None, make_pipeline(StandardScaler(), Ridge()), minus_error)


def housing_by_location() -> Table:
    """Six regions, minus the mean absolute error."""
    X, y = housing()
    owner = KMeans(OWNERS, n_init=1, random_state=0).fit_predict(X[:, 6:])
    return split(X, y, owner, make_pipeline(StandardScaler(), Ridge(10.0)), minus_error, rows=600)


def housing_trees() -> Table:
    """Whether houses are worth more than the median; equal random parts."""
    X, y = housing()
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    return split(X, (y > np.median(y)).astype(int), None, tree, right)


GAMES = [
    mnist_random,
    mnist_skewed,
    imdb_random,
    sst2_random,
    housing_random,
    housing_by_location,
    housing_trees,
]


def measure(table: Table, files: int, rows: int) -> tuple[float, ...]:
    """Coverage without and with the part, and if all is trained; width; part of one row."""
    owners = dupre.Owners.from_arrays(table.X, table.y, table.owner)
    X, y = table.population
    members = all_coalitions(OWNERS)
    scores = {(): _score_of_constant(table)}
    for row in members:
        held = np.isin(table.owner, np.flatnonzero(row))
        predicted = table.model.fit(table.X[held], table.y[held]).predict(X)
        scores[to_names(row, owners.names)] = table.score(y, predicted)
    weights = exact(dupre.shapley, OWNERS)
    every = np.array([scores[to_names(row, owners.names)] for row in weights.members])
    by_row = weights.W @ every + np.outer(weights.empty, scores[()])
    truth = by_row.mean(axis=1)
    inside, wider = [], []
    for seed in range(files):
        file = np.random.default_rng([4, seed]).choice(len(y), rows, replace=False)

        def utility(members, file=file):  # type: ignore[no-untyped-def]
            return dupre.Score.from_rows(scores[members][file])

        found = dupre.value(owners, utility, budget=BUDGET, seed=seed, progress=False)
        bounds = [found.interval(for_these_rows=alone).to_numpy().T for alone in (True, False)]
        inside.append([(low <= truth) & (truth <= high) for low, high in bounds])
        wider.append((bounds[1][1] - bounds[1][0]).mean() / (bounds[0][1] - bounds[0][0]).mean())
    squared = (by_row - truth[:, None]) ** 2
    largest = (squared.max(axis=1) / squared.sum(axis=1)).max()
    exact_part = coverage_of_exact_values(by_row, rows)
    return (*np.mean(inside, axis=(0, 2)), exact_part, float(np.mean(wider)), float(largest))


def coverage_of_exact_values(by_row: np.ndarray, rows: int) -> float:
    """Coverage of intervals from single rows, if every coalition is trained.

    Args:
        by_row: the exact values of the owners on each row of the population alone, (n, N).
        rows: of a validation file.
    """
    rng, truth, inside = np.random.default_rng(5), by_row.mean(axis=1), []
    for _ in range(EXACT_FILES):
        found = by_row[:, rng.choice(by_row.shape[1], rows, replace=False)]
        half = 1.96 * found.std(axis=1) / np.sqrt(rows)
        inside.append(np.abs(found.mean(axis=1) - truth) <= half)
    return float(np.mean(inside))


def _score_of_constant(table: Table) -> np.ndarray:
    """Scores of the population's rows under the best constant."""
    _, y = table.population
    if table.score is right:
        return right(y, np.full(len(y), np.bincount(y).argmax()))
    return minus_error(y, np.full(len(y), np.median(y)))


def main() -> None:
    """Print one line for each game."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--files", type=int, default=80)
    parser.add_argument("--rows", type=int, default=300)
    asked = parser.parse_args()
    chosen = [game for game in GAMES if not asked.names or game.__name__ in asked.names]
    print(f"\n## Validation rows (`python benchmarks/validation_rows.py`, {asked.files} files)\n")
    print(
        f"Six owners, {BUDGET} of 63 trainings, scored on {asked.rows} validation rows; truth on "
        f"up to {POPULATION:,} rows.\n"
    )
    print(
        "| game | 95 % coverage for these rows alone | with the choice of rows | width | "
        "all trained | largest row |"
    )
    print("|---|---|---|---|---|---|")
    every = []
    for game in chosen:
        without, both, best, wider, largest = measure(game(), asked.files, asked.rows)
        every.append((without, both))
        name = game.__name__.replace("_", "-")
        print(
            f"| {name} | {100 * without:.0f} % | {100 * both:.0f} % | × {wider:.1f} | "
            f"{100 * best:.0f} % | {100 * largest:.0f} % |",
            flush=True,
        )
    without, both = np.mean(every, axis=0)
    print(f"\nAll games: {100 * without:.0f} % without the part, {100 * both:.0f} % with it.")


if __name__ == "__main__":
    main()
