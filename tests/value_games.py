"""Value a few games and print picks and values as JSON: `test_same_everywhere` runs it."""

import json

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dupre
from dupre.benchmark import load
from dupre.runs.demo import hospitals


def describe(owners, utility, budget, semivalue=dupre.shapley):
    valuation = dupre.value(owners, utility, budget=budget, semivalue=semivalue, progress=False)
    return {
        "picks": sorted(valuation.evaluations["coalition"]),
        "values": valuation.mean.tolist(),
        "std": valuation.std.tolist(),
        "order": [valuation.owners[i] for i in valuation.order],
    }


def demonstration():
    """The demonstration's table, in which one owner is a copy of another."""
    table, validation = hospitals()
    owners = dupre.Owners.from_frame(table, owner="hospital", target="digit")
    # Without scaling its solver stops early, at another place on every CPU.
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    return owners, dupre.ModelUtility(model, owners, validation=validation)


def symmetric():
    """Owners alike two by two, asked by name: every gain is a tie."""
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(40, 3)), (2, 1))
    owner = [f"{'ab'[r // 40]}{r % 40 // 10}" for r in range(80)]
    owners = dupre.Owners.from_arrays(X, X @ [1.0, -1.0, 0.5], owner)
    return owners, lambda members: float(np.sqrt(len({name[1] for name in members})))


def game(name):
    """A benchmark game, of which all coalitions have been trained."""
    complete = load(name)
    return complete.owners, complete.utility


answers = {
    "demonstration": describe(*demonstration(), 25),
    "symmetric": describe(*symmetric(), 25),
    "digits": describe(*game("digits-random-8"), 30),
    "diabetes, Banzhaf": describe(*game("diabetes-random-8"), 30, dupre.banzhaf),
    # With 20 evaluations the payments are certain, and their deviations nothing but rounding.
    "least core": describe(*game("digits-paper-6"), 10, dupre.LeastCore()),
}
print(json.dumps(answers))
