"""Which of 40 data sources do harm? More owners than coalitions could ever be enumerated for.

    python examples/many_owners.py

Four sources have shuffled labels. 100 of 2^40 - 1 possible models are trained; the values are sums
over sampled coalitions, and the printed table says what that adds to the uncertainty.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import dupre


def forty_sources(seed: int = 0) -> tuple[dupre.Owners, tuple[np.ndarray, np.ndarray]]:
    """Digits in forty parts; sources 37 to 40 have shuffled their labels."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    X, y = X[order] / 16, y[order]
    source = np.arange(1200) % 40
    labels = y[:1200].copy()
    for bad in range(36, 40):
        labels[source == bad] = rng.permutation(labels[source == bad])
    names = [f"source {i + 1}" for i in source]
    return dupre.Owners.from_arrays(X[:1200], labels, names), (X[1200:], y[1200:])


if __name__ == "__main__":
    owners, validation = forty_sources()
    utility = dupre.ModelUtility(LogisticRegression(max_iter=500), owners, validation=validation)
    valuation = dupre.value(owners, utility, budget=100)
    print(valuation)
    last = valuation.values.nsmallest(4).index
    print(f"\nThe four of least value: {', '.join(sorted(last))}.")
