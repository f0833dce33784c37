"""Trainings done elsewhere: ask which coalitions to train, tell their utilities."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

import dupre

X, y = load_diabetes(return_X_y=True)
clinic = np.array(["A", "B", "C", "D", "E", "F"])[np.arange(len(y)) % 6]
train = np.arange(len(y)) < 300
owners = dupre.Owners.from_arrays(X[train], y[train], clinic[train])


def train_somewhere(members: tuple[str, ...]) -> float:
    """Stands for a cluster job: R² on rows no clinic has seen."""
    rows = train & np.isin(clinic, members)
    return Ridge(alpha=0.1).fit(X[rows], y[rows]).score(X[~train], y[~train])


# Which of two clinics is worth more? Spend the trainings on that question.
valuer = dupre.Valuer(owners, empty=0.0, strategy=dupre.strategies.Active(focus=("A", "B")))
while len(valuer.evaluations) < 24 and (batch := valuer.suggest(6)):
    for members in batch:
        valuer.record(members, train_somewhere(members))
valuation = valuer.values()
print(valuation)
print(f"\nP(A is worth more than B) = {valuation.probability_greater().loc['A', 'B']:.3f}")
