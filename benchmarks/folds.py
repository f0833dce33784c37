"""Without a validation file: do intervals hold another seed, and the population? Folds, one split.

Seeds: small tables, all coalitions trained, ten seeds, compared as `dupre compare` does. Seeds
share the rows, so the choice of the validation rows is left out of the interval of a difference for
folds; one split scores on other rows for every seed, so it stays in. Where one split is enough,
folds should settle no fewer orders. It is enough if it settles ENOUGH of them at least, and none in
opposite ways by two seeds: where it settles hardly any, there is nothing to keep.

Population: small tables drawn from data of thousands of rows. The truth of a table are the values
if each coalition's model, trained on all of its rows, is scored on thousands of other rows. The
models of folds are trained on nine tenths of the rows, and share most of them.

    python benchmarks/folds.py [--tables 40]

MNIST, IMDb, SST-2 and housing are read from the folder named by DUPRE_DATA (see games.py).
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import combinations

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_friedman1,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dupre
from dupre.game.coalitions import all_coalitions, to_names
from validation_rows import housing, mnist, text

SEEDS, OWNERS, SETTLED, ENOUGH = 10, 4, 0.95, 0.1
SPLITS = {"10 folds": dupre.Folds(10), "one split": dupre.Holdout(0.2)}
POPULATION, PARTS = 4_000, [0.1, 0.2, 0.3, 0.4]


def drawn(load, rows):
    """Rows of a data set, divided among four owners."""
    rng = np.random.default_rng(rows)
    X, y = load()
    chosen = rng.permutation(len(y))[:rows]
    return X[chosen], y[chosen], np.array([f"owner {i}" for i in rng.choice(OWNERS, rows, p=PARTS)])


def polls(rows, seed):
    """Shares in election polls by institute: each is a little off, and much is noise."""
    rng = np.random.default_rng(seed)
    institutes = ["Forsa", "Gallup", "Insa", "Nielsen", "Sonoma"]
    who = rng.choice(institutes, rows, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    day, size, house = rng.random(rows), rng.random(rows), np.array([ord(w[0]) for w in who]) / 50
    y = 38 + 3 * day - 2 * size + house + rng.normal(size=rows)
    return np.column_stack([day, size, day * size, rng.normal(size=(rows, 3))]), y, who


TABLES = {
    **{
        f"{name}, {rows} rows": partial(drawn, partial(load, return_X_y=True), rows)
        for name, load, rows in (
            *(("diabetes", load_diabetes, rows) for rows in (60, 200, 440)),
            ("wine", load_wine, 120),
            ("iris", load_iris, 100),
            ("breast cancer", load_breast_cancer, 300),
        )
    },
    "Friedman 1, 600 rows": partial(
        drawn, partial(make_friedman1, 600, noise=5.0, random_state=0), 600
    ),
    **{f"polls {seed}, 160 rows": partial(polls, 160, seed) for seed in (1, 2, 3)},
}


def values_by_seed(X, y, who, split):
    """The valuation of every seed."""
    model = Ridge() if y.dtype.kind == "f" else LogisticRegression(max_iter=300)
    owners = dupre.Owners.from_arrays(X, y, who)
    found = []
    for seed in range(SEEDS):
        how = {"validation": split, "seed": seed}
        utility = dupre.ModelUtility(make_pipeline(StandardScaler(), model), owners, **how)
        budget = 2**owners.n - 1
        found.append(dupre.value(owners, utility, budget=budget, seed=seed, progress=False))
    return found


def compare_seeds(found):
    """Parts of differences within their interval, of orders settled, and settled both ways."""
    orders, inside, opposite = [settled_orders(v) for v in found], [], []
    for one, other in combinations(range(SEEDS), 2):
        inside.append(~found[other].changes_since(found[one]).frame["moved"])
        opposite.append(orders[one] * orders[other] < 0)
    return np.mean(inside), np.mean(np.abs(orders)), np.mean(opposite)


def settled_orders(v):
    """Of each pair of owners 1 or -1 for who is surely worth more, 0 if it is not settled."""
    P = v.probability_greater().to_numpy()[np.triu_indices(len(v.owners), 1)]
    return (P >= SETTLED).astype(int) - (P <= 1 - SETTLED)


def populations():
    """Data of thousands of rows, the metric and a model, by name; and how many rows a table has."""
    classes, numbers = LogisticRegression(max_iter=300), Ridge()
    scaled = make_pipeline(StandardScaler(), classes)
    imdb, sst2 = (text(name) for name in ("imdb_minilm", "sst2_sentences_minilm"))
    X, y = housing()
    # Of the columns as they are, few houses of the population decide, which no table holds.
    X[:, 2:6] = np.log(X[:, 2:6])
    house = X, np.log(y), make_pipeline(StandardScaler(), numbers)
    return {
        "mnist, 300 rows": (*mnist(), scaled, "accuracy", 300),
        "imdb, 200 rows": (*imdb, scaled, "accuracy", 200),
        "imdb, 200 rows, AUC": (*imdb, classes, "roc_auc", 200),
        "sst2, 400 rows, log loss": (*sst2, classes, "neg_log_loss", 400),
        "housing, 100 rows": (*house, "neg_mean_absolute_error", 100),
        "housing, 400 rows": (*house, "r2", 400),
    }


def measure_population(population, tables):
    """For each split: parts of intervals that hold the truth, and their mean width."""
    X, y, model, metric, rows = population
    found = {label: [] for label in SPLITS}
    for table in range(tables):
        rng = np.random.default_rng([1, table])
        order = rng.permutation(len(y))
        own, others = order[:rows], order[rows : rows + POPULATION]
        who = np.array([f"owner {i}" for i in rng.choice(OWNERS, rows, p=PARTS)])
        owners = dupre.Owners.from_arrays(X[own], y[own], who)
        scored = {"validation": (X[others], y[others]), "resamples": 0, "metric": metric}
        there = dupre.ModelUtility(clone(model), owners, **scored)
        every = [to_names(row, owners.names) for row in all_coalitions(OWNERS)]
        known = {names: there(names) for names in every}
        budget = {"budget": 2**OWNERS - 1, "progress": False}
        truth = dupre.value(owners, known.get, empty=there.empty, **budget).mean
        for label, split in SPLITS.items():
            utility = dupre.ModelUtility(model, owners, validation=split, metric=metric, seed=table)
            bounds = dupre.value(owners, utility, seed=table, **budget).interval().to_numpy()
            inside = (bounds[:, 0] <= truth) & (truth <= bounds[:, 1])
            found[label].append([inside.mean(), (bounds[:, 1] - bounds[:, 0]).mean()])
    return {label: np.mean(numbers, axis=0) for label, numbers in found.items()}


def compare_populations(tables):
    """Print a line for each population."""
    print(
        f"\n## Folds and the population (`python benchmarks/folds.py`, {tables} tables each)\n\n"
        f"{OWNERS} owners, all coalitions trained. Values of models of all rows, scored on "
        f"{POPULATION:,} other rows, inside the 95 % intervals; width of the intervals of 10 folds "
        "against those of one split.\n"
    )
    print("| table | inside, 10 folds | inside, one split | width |")
    print("|---|---|---|---|")
    every = []
    for name, population in populations().items():
        found = measure_population(population, tables)
        (folds, narrow), (single, wide) = (found[label] for label in SPLITS)
        every.append((folds, single))
        width = f"x {narrow / wide:.2f}"
        print(f"| {name} | {100 * folds:.0f} % | {100 * single:.0f} % | {width} |", flush=True)
    folds, single = np.mean(every, axis=0)
    print(f"| **all** | {100 * folds:.1f} % | {100 * single:.1f} % | |")


def compare_every_seed():
    """Print a line for each table and split, and whether folds settle what one split does."""
    print("\n## Seeds of a split, without a validation file (`python benchmarks/folds.py`)\n")
    print(
        "Differences of values between two of ten seeds: within their stated 95 % interval, pairs "
        "of owners whose order is settled, and pairs settled in opposite ways; standard deviation "
        "of a share over seeds.\n"
    )
    print("| table | split | within | settled | opposite | std of shares |")
    print("|---|---|---|---|---|---|")
    every, enough = {label: [] for label in SPLITS}, {}
    for name, make in TABLES.items():
        X, y, who = make()
        for label, split in SPLITS.items():
            found = values_by_seed(X, y, who, split)
            every[label].append(compare_seeds(found))
            shares = np.array([v.share for v in found])  # none where a seed finds no gain
            spread = float(np.median(np.nanstd(shares, axis=0)))
            told = " | ".join(f"{100 * part:.0f} %" for part in every[label][-1])
            print(f"| {name} | {label} | {told} | {spread:.3f} |", flush=True)
        (_, by_folds, _), (_, by_one, opposite) = (rows[-1] for rows in every.values())
        if by_one >= ENOUGH and not opposite:
            enough[name] = by_folds >= by_one
    for label, rows in every.items():
        told = " | ".join(f"{100 * part:.1f} %" for part in np.mean(rows, axis=0))
        print(f"| **all** | {label} | {told} | |")
    print(
        f"\nOne split is enough where it settles {100 * ENOUGH:.0f} % of the pairs at least, "
        f"and none in opposite ways: {', '.join(enough) or 'nowhere'}. Folds settle no fewer "
        f"there: {'yes' if all(enough.values()) else 'no'}."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=40)
    asked = parser.parse_args()
    compare_every_seed()
    compare_populations(asked.tables)


if __name__ == "__main__":
    main()
