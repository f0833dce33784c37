"""Do intervals hold what another seed of the split would give? Folds against one split.

Six small tables without validation rows, all coalitions trained, ten seeds. Seeds share the rows,
so the choice of the validation rows is left out of the quantile of a difference for folds; one
split scores on other rows for every seed, so it stays in.

    python benchmarks/folds.py
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import ndtri
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dupre

SEEDS, OWNERS, SETTLED = 10, 4, 0.95
TABLES = {
    "diabetes, 60 rows": (load_diabetes, 60),
    "diabetes, 200 rows": (load_diabetes, 200),
    "diabetes, 440 rows": (load_diabetes, 440),
    "wine, 120 rows": (load_wine, 120),
    "iris, 100 rows": (load_iris, 100),
    "breast cancer, 300 rows": (load_breast_cancer, 300),
}


def values_by_seed(X, y, who, split):
    """The valuation of every seed."""
    model = Ridge() if y.dtype.kind == "f" else LogisticRegression(max_iter=300)
    owners = dupre.Owners.from_arrays(X, y, who)
    found = []
    for seed in range(SEEDS):
        how = {"validation": split, "seed": seed}
        utility = dupre.ModelUtility(make_pipeline(StandardScaler(), model), owners, **how)
        budget = 2**OWNERS - 1
        found.append(dupre.value(owners, utility, budget=budget, seed=seed, progress=False))
    return found


def compare_seeds(found, *, folds):
    """Parts of differences within their quantile, of orders settled, and settled both ways."""
    inside, settled, opposite = [], [], []
    parts = [v.uncertainty.for_these_rows if folds else v.uncertainty.total for v in found]
    P = [v.probability_greater().to_numpy() for v in found]
    for one, other in combinations(range(SEEDS), 2):
        std = np.sqrt(np.diag(parts[one]) + np.diag(parts[other]))
        inside.append(np.abs(found[one].mean - found[other].mean) <= ndtri(0.975) * std)
        for i, j in combinations(range(OWNERS), 2):
            sure = [p[i, j] >= SETTLED or p[j, i] >= SETTLED for p in (P[one], P[other])]
            opposite.append(all(sure) and (P[one][i, j] > 0.5) != (P[other][i, j] > 0.5))
    for p in P:
        settled += [max(p[i, j], p[j, i]) >= SETTLED for i, j in combinations(range(OWNERS), 2)]
    return np.mean(inside), np.mean(settled), np.mean(opposite)


def main():
    print("\n## Seeds of a split, without a validation file (`python benchmarks/folds.py`)\n")
    print(
        "Differences of values between two of ten seeds: within their stated 95 % quantile, pairs "
        "of owners whose order is settled, and pairs settled in opposite ways; standard deviation "
        "of a share over seeds.\n"
    )
    print("| table | split | within | settled | opposite | std of shares |")
    print("|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    every = {}
    for name, (load, rows) in TABLES.items():
        X, y = load(return_X_y=True)
        chosen = rng.permutation(len(y))[:rows]
        who = np.array([f"owner {i}" for i in rng.choice(OWNERS, rows, p=[0.1, 0.2, 0.3, 0.4])])
        for label, split in (("10 folds", dupre.Folds(10)), ("one split", dupre.Holdout(0.25))):
            found = values_by_seed(X[chosen], y[chosen], who, split)
            row = compare_seeds(found, folds=label == "10 folds")
            shares = np.array([v.mean / max(v.mean.sum(), 1e-9) for v in found])
            spread = float(np.median(shares.std(axis=0)))
            every.setdefault(label, []).append(row)
            told = " | ".join(f"{100 * part:.0f} %" for part in row)
            print(f"| {name} | {label} | {told} | {spread:.3f} |", flush=True)
    for label, rows in every.items():
        told = " | ".join(f"{100 * part:.1f} %" for part in np.mean(rows, axis=0))
        print(f"| **all** | {label} | {told} | |")


if __name__ == "__main__":
    main()
