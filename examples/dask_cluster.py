"""Trainings on a Dask cluster: give its client to `dupre.value`.

    python examples/dask_cluster.py                       # starts two workers on this machine
    python examples/dask_cluster.py tcp://10.0.0.1:8786   # or uses a scheduler that runs already

Needs `pip install 'dupre[dask]'`.
"""

from __future__ import annotations

import sys

import numpy as np
from distributed import Client
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import dupre


def main() -> None:
    X, y = load_diabetes(return_X_y=True)
    owner = np.array(["A", "B", "C", "D", "E", "F"])[np.arange(300) % 6]
    owners = dupre.Owners.from_arrays(X[:300], y[:300], owner)
    utility = dupre.ModelUtility(
        GradientBoostingRegressor(), owners, validation=(X[300:], y[300:]), metric="r2"
    )
    # Trainings have processes of their own, so the workers need none.
    here = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with Client(sys.argv[1]) if len(sys.argv) > 1 else Client(**here) as client:
        valuation = dupre.value(owners, utility, budget=30, engine=dupre.engines.Dask(client))
    print(valuation)
    print(f"\nTrained by {valuation.evaluations['worker'].nunique()} workers.")


if __name__ == "__main__":
    main()
