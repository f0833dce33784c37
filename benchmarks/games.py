"""The models behind the games of `dupre.benchmark`, and one game of twenty owners.

    python benchmarks/games.py [NAME ...]      # all 2^n - 1 trainings of games again

writes the utilities into `src/dupre/benchmark/tables.npz`, so that accuracy can be measured
without training anything. California housing is read from the folder named by DUPRE_DATA, then
`../shared/data`, then through scikit-learn's loader. The package has 2,000 rows of it in 32 bits
and the region of each (KMeans of latitude and longitude): the predictor compares these, the models
were trained on all digits.

`housing_ridge_20` needs no table: a ridge regression follows from sums over its rows, so that all
2^20 coalitions of twenty owners are trained within seconds.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import fetch_california_housing
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dupre._types import Names
from dupre.benchmark import Game
from dupre.benchmark.computed import ridge_r2
from dupre.benchmark.games import TRAINED
from dupre.benchmark.trained import diabetes, digits, owners_of
from dupre.data.owners import Owners
from dupre.game.coalitions import all_coalitions, to_names
from dupre.utility.model import ModelUtility

FILE = Path(__file__).parents[1] / "src/dupre/benchmark/tables.npz"
BUDGETS = {6: (10, 20, 30), 8: (30, 60, 100), 10: (50, 100, 200), 20: (100, 300, 1000)}
RIDGE_ALPHA = 10.0


def utility_of(name: str) -> ModelUtility:
    """The model of a game, trained on any coalition."""
    owners = owners_of(name)
    if name.startswith("digits"):
        _, X_val, _, y_val = digits()
        model: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
        return ModelUtility(model, owners, validation=(X_val, y_val))
    if name.startswith("diabetes"):
        _, X_val, _, y_val = diabetes()
        return ModelUtility(Ridge(alpha=0.01), owners, validation=(X_val, y_val))
    X, X_val, y, y_val = housing(train=len(owners.y))
    mlp = MLPRegressor(
        hidden_layer_sizes=(32, 16), alpha=3.0, max_iter=100, learning_rate_init=0.005
    )
    scaled = TransformedTargetRegressor(mlp, transformer=StandardScaler())
    # arcsinh: the columns have very long tails.
    model = make_pipeline(FunctionTransformer(np.arcsinh), StandardScaler(), scaled)
    owners = Owners.from_arrays(X, y, owners.owner)
    return ModelUtility(model, owners, validation=(X_val, y_val))


def housing_ridge_20() -> Game:
    """Twenty owners of very different size; the last three have their targets shuffled.

    Columns are transformed before they are handed out: scaling by what a coalition holds would
    make its model no function of sums.
    """
    X, X_val, y, y_val = housing(train=4000)
    scaled = make_pipeline(FunctionTransformer(np.arcsinh), StandardScaler()).fit(X)
    X, X_val, y, y_val = scaled.transform(X), scaled.transform(X_val), np.array(y), np.array(y_val)
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(20, 1.0))
    rows = 10 + rng.multinomial(len(y) - 200, share)
    owner = np.repeat(np.arange(20), rows)
    for bad in (17, 18, 19):
        y[owner == bad] = rng.permutation(y[owner == bad])
    owners, ridge = Owners.from_arrays(X, y, owner), Ridge(alpha=RIDGE_ALPHA)
    utility = ModelUtility(ridge, owners, validation=(X_val, y_val), floor=False)
    utilities = ridge_r2((X, y, owner), (X_val, y_val), RIDGE_ALPHA)
    members = all_coalitions(20)
    for code in [*(2 ** np.arange(20) - 1), *rng.integers(len(members), size=10)]:
        trained = utility(to_names(members[code], owners.names))
        assert abs(trained - utilities[code]) < 1e-6, "the sums give another model than training"
    return Game("housing-ridge-20", owners, utilities, utility.empty)


def train(name: str) -> None:
    """Train every coalition of a game and write its utilities, that of no data first."""
    utility = utility_of(name)
    owners = utility.owners
    members = all_coalitions(owners.n)
    jobs = (joblib.delayed(quietly)(utility, to_names(row, owners.names)) for row in members)
    utilities = joblib.Parallel(n_jobs=-1, verbose=1)(jobs)
    with np.load(FILE) as tables:
        found = dict(tables) | {name: np.append(utility.empty, utilities)}
    np.savez_compressed(FILE, **found)


def quietly(utility: ModelUtility, names: Names) -> float:
    with warnings.catch_warnings():  # an unconverged model is part of the game
        warnings.simplefilter("ignore")
        return utility(names)


def data_folder() -> Path:
    """Where data sets lie: the folder named by DUPRE_DATA, then `../shared/data`."""
    return Path(os.environ.get("DUPRE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def housing(train: int) -> list[pd.DataFrame]:
    """Rows of California housing: X, X for validation, y, y for validation."""
    file = data_folder() / "california_housing.csv.gz"
    frame = pd.read_csv(file) if file.exists() else fetch_california_housing(as_frame=True).frame
    X, y = frame.drop(columns="MedHouseVal"), frame["MedHouseVal"]
    return train_test_split(X, y, train_size=train, test_size=2000, random_state=0)


if __name__ == "__main__":
    for game in sys.argv[1:] or TRAINED:
        train(game)
