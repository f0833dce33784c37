"""A market over a year: a quote, an owner who joins, a copy that joins later, one who leaves.

Every step begins with the trainings of the one before, and pays what the values say then.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import dupre

X, y = load_digits(return_X_y=True)
X = X / 16
part = np.random.default_rng(0).permutation(len(y))
holds = {"Ada": part[:60], "Ben": part[60:140], "Cleo": part[140:260], "Dan": part[260:420]}
eve, validation = part[420:520], part[900:]

owners = dupre.Owners.from_mapping({name: (X[rows], y[rows]) for name, rows in holds.items()})
utility = dupre.ModelUtility(
    LogisticRegression(max_iter=300), owners, validation=(X[validation], y[validation])
)


def pay(valuation: dupre.Valuation, why: str) -> dupre.Valuation:
    """Print who is worth how much, what that cost, and shares of 1,000."""
    new = valuation.facts.evaluated - valuation.facts.found
    print(f"\n# {why}: {new} trainings instead of {valuation.facts.evaluated}\n\n{valuation}\n")
    payments = valuation.payments(1_000, currency="EUR", anyway=True)
    print(payments.frame["payment"].to_string())
    return valuation


with TemporaryDirectory() as place:
    store = Path(place) / "market.sqlite"
    results = [pay(dupre.value(owners, utility, budget=15, store=store), "Four owners")]

    print(f"\n# Eve asks\n\n{dupre.quote(owners, utility, 'Eve', X[eve], y[eve], store=store)}")

    owners = owners.with_owner("Eve", X[eve], y[eve])
    utility = utility.with_owners(owners)
    results.append(pay(dupre.value(owners, utility, budget=24, store=store), "Eve joins"))

    owners = owners.with_owner("Eve's copy", X[eve], y[eve])
    utility = utility.with_owners(owners)
    results.append(pay(dupre.value(owners, utility, budget=36, store=store), "A copy joins"))
    order = dupre.precedence([["Ada", "Ben", "Cleo", "Dan"], ["Eve"], ["Eve's copy"]])
    first = dupre.value(owners, utility, semivalue=order, budget=40, store=store)
    print(f"\nIf who came first counts, it is worth what it adds:\n\n{first}")

    owners = owners.without("Ben")
    utility = utility.with_owners(owners)
    results.append(pay(dupre.value(owners, utility, budget=31, store=store), "Ben leaves"))

history = dupre.history(results)
print(f"\n# The year\n\n{history}")
if len(sys.argv) > 1:  # a file for the figure
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    dupre.plots.history(history, figure.add_subplot())
    figure.savefig(sys.argv[1], dpi=150)
