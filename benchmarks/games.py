"""Real games with complete utility tables: who holds what, and what every coalition is worth.

A table is the output of `python benchmarks/games.py NAME ...` (all 2^n - 1 trainings) and is
committed under `benchmarks/tables/`, so that accuracy can be measured without training anything.
California housing is read from the folder named by DUPRE_DATA, then `../shared/data`, then through
scikit-learn's loader.

`housing_ridge_20` needs no table: a ridge regression follows from sums over its rows, so that all
2^20 coalitions of twenty owners are trained within seconds.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import fetch_california_housing, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dupre._types import Names
from dupre.data.owners import Owners
from dupre.game.coalitions import all_coalitions, to_names
from dupre.game.estimators import exact
from dupre.game.semivalues import Semivalue
from dupre.utility.model import ModelUtility

TABLES = Path(__file__).parent / "tables"


@dataclass(frozen=True)
class Game:
    """A complete game: owners, the utilities of all_coalitions(n), (2^n - 1,), and u(empty)."""

    name: str
    owners: Owners
    utilities: np.ndarray
    empty: float
    budgets: tuple[int, ...]

    @property
    def table(self) -> dict[Names, float]:
        """The utility of every coalition by its owners' names; its __getitem__ is a Utility."""
        names = [to_names(row, self.owners.names) for row in all_coalitions(self.owners.n)]
        return {(): self.empty} | dict(zip(names, map(float, self.utilities), strict=True))

    def values(self, semivalue: Semivalue) -> np.ndarray:
        """The exact values, (n,)."""
        weights = exact(semivalue, self.owners.n)
        return weights.W @ self.utilities + weights.empty * self.empty


def digits_random_8() -> ModelUtility:
    X, X_val, y, y_val = _digits()
    owner = np.random.default_rng(0).permutation(len(y)) % 8
    return _classify(X, y, owner, (X_val, y_val))


def digits_by_label_10() -> ModelUtility:
    X, X_val, y, y_val = _digits()
    return _classify(X, y, y, (X_val, y_val))


def digits_skewed_10() -> ModelUtility:
    """Dirichlet label skew among ten owners; the last three have their labels shuffled."""
    X, X_val, y, y_val = _digits()
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(10, 0.5), size=10)  # [label, owner]
    owner = np.array([rng.choice(10, p=share[label]) for label in y])
    y = y.copy()
    for bad in (7, 8, 9):
        y[owner == bad] = rng.permutation(y[owner == bad])
        flip = (owner == bad) & (rng.random(len(y)) < 0.7)
        y[flip] = rng.integers(10, size=flip.sum())
    return _classify(X, y, owner, (X_val, y_val))


def digits_paper_6() -> ModelUtility:
    """The paper's division of MNIST (Section 4.1) on the digits of scikit-learn."""
    X, X_val, y, y_val = _digits()
    holder = {1: 0, 4: 0, 5: 0, 7: 0, 8: 0, 2: 1, 9: 2, 6: 3, 0: 4, 3: 5}
    return _classify(X, y, np.array([holder[label] for label in y]), (X_val, y_val))


def diabetes_random_8() -> ModelUtility:
    X, y = load_diabetes(return_X_y=True)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.4, random_state=0)
    owner = np.random.default_rng(0).permutation(len(y)) % 8
    owners = Owners.from_arrays(X, y, owner)
    return ModelUtility(Ridge(alpha=0.01), owners, validation=(X_val, y_val))


def housing_random_8() -> ModelUtility:
    X, X_val, y, y_val = housing(train=1600)
    owner = np.random.default_rng(0).permutation(len(y)) % 8
    return _regress_by_mlp(X, y, owner, (X_val, y_val))


def housing_by_location_10() -> ModelUtility:
    X, X_val, y, y_val = housing(train=2000)
    place = X[["Latitude", "Longitude"]]
    owner = KMeans(10, n_init=4, random_state=0).fit_predict(place)
    return _regress_by_mlp(X, y, owner, (X_val, y_val))


GAMES: dict[str, Callable[[], ModelUtility]] = {
    "digits-random-8": digits_random_8,
    "digits-by-label-10": digits_by_label_10,
    "digits-skewed-10": digits_skewed_10,
    "digits-paper-6": digits_paper_6,
    "diabetes-random-8": diabetes_random_8,
    "housing-random-8": housing_random_8,
    "housing-by-location-10": housing_by_location_10,
}
BUDGETS = {6: (10, 20, 30), 8: (30, 60, 100), 10: (50, 100, 200)}


RIDGE_ALPHA = 10.0


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
    utilities = _ridge_r2(X, y, owner, X_val, y_val)
    members = all_coalitions(20)
    for code in [*(2 ** np.arange(20) - 1), *rng.integers(len(members), size=10)]:
        trained = utility(to_names(members[code], owners.names))
        assert abs(trained - utilities[code]) < 1e-6, "the sums give another model than training"
    return Game("housing-ridge-20", owners, utilities, utility.empty, (100, 300, 1000))


def load(name: str) -> Game:
    """A game with its committed table."""
    utility = GAMES[name]()
    owners = utility.owners
    empty, rows = read_table(TABLES / f"{name}.csv", all_coalitions(owners.n))
    utilities = rows["utility"].to_numpy()
    return Game(name, owners, utilities, float(empty["utility"]), BUDGETS[owners.n])


def train(name: str) -> None:
    """Train every coalition of a game and write its table."""
    utility = GAMES[name]()
    owners = utility.owners
    members = all_coalitions(owners.n)
    jobs = (joblib.delayed(quietly)(utility, to_names(row, owners.names)) for row in members)
    utilities = joblib.Parallel(n_jobs=-1, verbose=1)(jobs)
    frame = pd.DataFrame({"utility": [utility.empty, *utilities]})
    write_table(TABLES / f"{name}.csv", members, frame)


def read_table(path: Path, members: np.ndarray) -> tuple[pd.Series, pd.DataFrame]:
    """The row of no data, and the rows of these coalitions, (m, n), of a table, plain or .gz."""
    frame = pd.read_csv(path, dtype=str).set_index("coalition").astype(float)  # to the last bit
    return frame.loc["0" * members.shape[1]], frame.loc[[_digits_of(row) for row in members]]


def write_table(path: Path, members: np.ndarray, rows: pd.DataFrame) -> None:
    """Write columns for no data and for these coalitions, (m, n), gzipped if it ends so."""
    path.parent.mkdir(exist_ok=True)
    codes = ["0" * members.shape[1], *map(_digits_of, members)]
    # Without the time of writing, equal tables are equal files.
    compression = {"method": "gzip", "mtime": 1} if path.suffix == ".gz" else None
    rows.set_index(pd.Index(codes, name="coalition")).to_csv(path, compression=compression)


def quietly(utility: ModelUtility, names: Names) -> float:
    with warnings.catch_warnings():  # an unconverged model is part of the game
        warnings.simplefilter("ignore")
        return utility(names)


def _digits_of(row: np.ndarray) -> str:
    return "".join("1" if inside else "0" for inside in row)


def _digits() -> list[np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)


def _classify(X, y, owner, validation) -> ModelUtility:  # type: ignore[no-untyped-def]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    return ModelUtility(model, Owners.from_arrays(X, y, owner), validation=validation)


def data_folder() -> Path:
    """Where data sets lie: the folder named by DUPRE_DATA, then `../shared/data`."""
    return Path(os.environ.get("DUPRE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def housing(train: int) -> list[pd.DataFrame]:
    """Rows of California housing: X, X for validation, y, y for validation."""
    file = data_folder() / "california_housing.csv.gz"
    frame = pd.read_csv(file) if file.exists() else fetch_california_housing(as_frame=True).frame
    X, y = frame.drop(columns="MedHouseVal"), frame["MedHouseVal"]
    return train_test_split(X, y, train_size=train, test_size=2000, random_state=0)


def _regress_by_mlp(X, y, owner, validation) -> ModelUtility:  # type: ignore[no-untyped-def]
    mlp = MLPRegressor(
        hidden_layer_sizes=(32, 16), alpha=3.0, max_iter=100, learning_rate_init=0.005
    )
    scaled = TransformedTargetRegressor(mlp, transformer=StandardScaler())
    # arcsinh: the columns have very long tails.
    model = make_pipeline(FunctionTransformer(np.arcsinh), StandardScaler(), scaled)
    return ModelUtility(model, Owners.from_arrays(X, y, owner), validation=validation)


def _ridge_r2(
    X: np.ndarray, y: np.ndarray, owner: np.ndarray, X_val: np.ndarray, y_val: np.ndarray
) -> np.ndarray:
    """R² of a ridge regression on every coalition, (2^n - 1,), from the owners' Gram matrices."""
    A, A_val = (np.column_stack([rows, np.ones(len(rows))]) for rows in (X, X_val))
    n, d = owner.max() + 1, A.shape[1]
    grams = np.array([A[owner == i].T @ A[owner == i] for i in range(n)])
    moments = np.array([A[owner == i].T @ y[owner == i] for i in range(n)])
    penalty = RIDGE_ALPHA * np.diag(np.append(np.ones(d - 1), 0.0))  # the intercept is free
    spread = np.sum((y_val - y_val.mean()) ** 2)
    utilities = []
    for block in np.array_split(all_coalitions(n).astype(np.float64), 2**n // 2**15 or 1):
        G = (block @ grams.reshape(n, -1)).reshape(-1, d, d) + penalty
        w = np.linalg.solve(G, (block @ moments)[:, :, None])[:, :, 0]
        squared = np.einsum("bi,ij,bj->b", w, A_val.T @ A_val, w, optimize=True)
        squared += y_val @ y_val - 2 * w @ (A_val.T @ y_val)
        utilities.append(1 - squared / spread)
    return np.concatenate(utilities)


if __name__ == "__main__":
    for game in sys.argv[1:] or GAMES:
        train(game)
