"""The games of the paper: who holds what, and what every coalition is worth.

A game is a `ModelUtility` made by a function of this module. Its table, the utility of every
coalition, is the output of `python -m experiments train NAME` and is committed under
`experiments/tables/`. Rows come from the folder that DUPRE_DATA names, as in `benchmarks/games.py`.

Divisions are those of the paper's Table 5 ("Overview of Experiments and Datasets"). What two cores
cannot train is made smaller, and the docstrings say how.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.games import data_folder, housing
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import dupre
from dupre._types import Names
from dupre.game.coalitions import to_names
from dupre.game.estimators import Sample, Weights, exact, permutation
from dupre.game.semivalues import Semivalue
from experiments.networks import SIDE, ResidualClassifier

FOLDER = Path(__file__).parent
ALL_UP_TO = 10
"""Owners up to which every coalition is trained."""

SAMPLED = 25_000
"""Distinct coalitions that are trained of more owners, as many as the paper samples of 20."""


def mnist_6(seed: int = 0) -> dupre.ModelUtility:
    """Digits {1, 4, 5, 7, 8}, {2}, {9}, {6}, {0}, {3}; 400 rows of each (the paper: 6,000)."""
    return _digits(({1, 4, 5, 7, 8}, {2}, {9}, {6}, {0}, {3}), seed)


def mnist_5() -> dupre.ModelUtility:
    """Digits {0, 1}, {2, 3, 4}, {3, 4, 5}, {6, 7}, {8, 9}; two owners hold the same 3s and 4s."""
    return _digits(({0, 1}, {2, 3, 4}, {3, 4, 5}, {6, 7}, {8, 9}))


def mnist_10() -> dupre.ModelUtility:
    """One digit each, 400 rows of it (the paper: 6,000)."""
    return _digits(tuple({digit} for digit in range(10)))


def cifar_8() -> dupre.ModelUtility:
    """Two labels for two owners, one for six; 200 images of each (the paper: 5,000), 16 x 16.

    The paper's network is a ResNet-18 and its images have 32 x 32 pixels.
    """
    data = _arrays("cifar10_small.npz")
    train = _halve(data["x_train"]), data["y_train"].ravel()
    validation = _halve(data["x_test"]), data["y_test"].ravel()
    X, y, owner = _by_label(*train, ({0, 1}, {2, 3}, *({k} for k in range(4, 10))), rows=200)
    owners = dupre.Owners.from_arrays(X, y, owner)
    return _utility(ResidualClassifier(), owners, validation)


def calih_6(seed: int = 0) -> dupre.ModelUtility:
    """100 random rows each (the paper: 2,700); at its size seeds matter more than rows."""
    return _houses(6, seed)


def calih_8() -> dupre.ModelUtility:
    """100 random rows each, as calih_6."""
    return _houses(8)


def moon_6() -> dupre.ModelUtility:
    """50 rows each; the owners' shares of the second moon are 0, 0.1, 0.3, 0.7, 0.9 and 1.

    The paper does not say how it divides the moons.
    """
    X, y = make_moons(4000, noise=0.2, random_state=0)
    X, X_val, y, y_val = X[:2000], X[2000:], y[:2000], y[2000:]
    shares = (0.0, 0.1, 0.3, 0.7, 0.9, 1.0)
    left = [list(np.flatnonzero(y == label)) for label in (0, 1)]
    rows, owner = [], []
    for i, share in enumerate(shares):
        for label, count in ((0, round(50 * (1 - share))), (1, round(50 * share))):
            rows += [left[label].pop() for _ in range(count)]
            owner += [i] * count
    model = MLPClassifier((32, 16, 8), batch_size=len(rows), learning_rate_init=0.01, max_iter=100)
    owners = dupre.Owners.from_arrays(X[rows], y[rows], np.array(owner))
    return _utility(model, owners, (X_val, y_val))


def imdb_10() -> dupre.ModelUtility:
    """2,500 random reviews each, as in the paper; embeddings of MiniLM, logistic regression."""
    X, y, split = _texts("imdb_minilm.npz")
    return _sentiment(X, y, np.flatnonzero(split == 0), np.flatnonzero(split == 1))


def sst2_10() -> dupre.ModelUtility:
    """692 random sentences each; embeddings of MiniLM, logistic regression."""
    X, y, split = _texts("sst2_sentences_minilm.npz")
    return _sentiment(X, y, np.flatnonzero(split == 0), np.flatnonzero(split == 2))


def imdb_20() -> dupre.ModelUtility:
    """Owner j holds 20 j reviews (the paper: 100 j), of owners 1 to 5 positive, 6 to 10 negative.

    Owners 11 to 20 hold both. 8,000 other reviews are for validation (the paper: 29,000).
    """
    X, y, split = _texts("imdb_minilm.npz")
    validation = X[split == 1], y[split == 1]
    free = np.random.default_rng(0).permutation(np.flatnonzero(split == 0))
    owner = np.full(len(y), -1)
    for j in range(1, 21):
        fits = y[free] == (1 if j <= 5 else 0) if j <= 10 else np.full(len(free), True)
        chosen = free[fits][: 20 * j]
        owner[chosen] = j
        free = free[~np.isin(free, chosen)]
    held = owner > 0
    owners = dupre.Owners.from_arrays(X[held], y[held], owner[held])
    return _utility(LogisticRegression(), owners, validation)


GAMES: dict[str, Callable[[], dupre.ModelUtility]] = {
    "moon-6": moon_6,
    "calih-6": calih_6,
    "calih-8": calih_8,
    "mnist-5": mnist_5,
    "mnist-6": mnist_6,
    "sst2-10": sst2_10,
    "imdb-10": imdb_10,
    "mnist-10": mnist_10,
    "cifar-8": cifar_8,
    "imdb-20": imdb_20,
}
AGAIN = {
    "mnist-6": {f"mnist-again{seed}-6": partial(mnist_6, seed) for seed in range(1, 6)},
    "calih-6": {f"calih-again{seed}-6": partial(calih_6, seed) for seed in range(1, 6)},
}
"""Games trained five times more, with other seeds of their network."""

GAMES |= {name: game for games in AGAIN.values() for name, game in games.items()}


@dataclass(eq=False)
class Game:
    """A game with its table.

    Attributes:
        name: as the command takes it.
        utility: how its table was trained; it has the owners and the validation rows.
        members: the trained coalitions, (b, n): all of up to 10 owners.
        utilities: of these, (b,).
        seconds: what each training took, (b,).
        empty: utility of no data.
    """

    name: str
    utility: dupre.ModelUtility
    members: np.ndarray
    utilities: np.ndarray
    seconds: np.ndarray
    empty: float

    @property
    def owners(self) -> dupre.Owners:
        """Whose rows."""
        return self.utility.owners

    @cached_property
    def names(self) -> list[Names]:
        """The owners of each coalition."""
        return [to_names(row, self.owners.names) for row in self.members]

    @cached_property
    def table(self) -> dict[Names, float]:
        """The utility of each coalition; its __getitem__ is a utility for `dupre.value`."""
        return {(): self.empty} | dict(zip(self.names, map(float, self.utilities), strict=True))

    def values(self, semivalue: Semivalue, utilities: np.ndarray | None = None) -> np.ndarray:
        """The values, (n,), from the table or from other utilities of the same coalitions, (b,)."""
        weights = weights_of(semivalue, self.owners.n)
        u = self.utilities if utilities is None else utilities
        return weights.W @ u + weights.empty * self.empty


@cache
def load(name: str) -> Game:
    """A game with its committed table."""
    utility = GAMES[name]()
    members = weights_of(dupre.shapley, utility.owners.n).members
    empty, rows = read_table(FOLDER / "tables" / f"{name}.csv.gz", members)
    utilities, seconds = rows["utility"].to_numpy(), rows["seconds"].to_numpy()
    return Game(name, utility, members, utilities, seconds, float(empty["utility"]))


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


def _digits_of(row: np.ndarray) -> str:
    return "".join("1" if inside else "0" for inside in row)


@cache
def weights_of(semivalue: Semivalue, n: int) -> Weights:
    """The trained coalitions with their weights.

    All with exact weights, or those of the random orders that bring 25,000.
    """
    if n <= ALL_UP_TO:
        return exact(semivalue, n)
    return orders_until(semivalue, n, SAMPLED, seed=0)


def orders_until(semivalue: Semivalue, n: int, count: int, seed: int) -> Weights:
    """Random orders until there are so many distinct coalitions (Algorithm 3).

    The last order is finished, so that there may be up to n - 1 more.
    """

    def draw(orders: int) -> Weights:
        return permutation(semivalue, n, orders * n, np.random.default_rng(seed))

    low, high = 1, max(2, -(-count // n))  # the estimator draws two at least
    while len(draw(high).members) < count:
        low, high = high, 2 * high
    while high - low > 1:  # low orders bring fewer, high do not
        middle = (low + high) // 2
        low, high = (middle, high) if len(draw(middle).members) < count else (low, middle)
    return draw(high)


def estimator_of(n: int) -> Sample | None:
    """The estimator by which `dupre.value` takes the trained coalitions, whatever its seed."""
    return None if n <= ALL_UP_TO else Sample(_drawn, SAMPLED)


def _drawn(semivalue: Semivalue, n: int, _samples: int, _rng: np.random.Generator) -> Weights:
    return weights_of(semivalue, n)


def train(name: str, jobs: int = 2) -> None:
    """Train every coalition of a game and write its table; it goes on where it was stopped."""
    utility = GAMES[name]()
    members = weights_of(dupre.shapley, utility.owners.n).members
    store = FOLDER / "stores" / f"{name}.sqlite"
    store.parent.mkdir(exist_ok=True)
    with warnings.catch_warnings():  # an unconverged network is part of the game
        warnings.simplefilter("ignore")
        valuation = dupre.value(
            utility.owners,
            utility,
            budget=len(members),
            estimator=estimator_of(utility.owners.n),
            strategy=dupre.strategies.Active(first=len(members), batch=len(members)),
            repeats=1,
            store=store,
            n_jobs=jobs,
        )
    trained = valuation.evaluations.assign(
        code=[frozenset(json.loads(text)) for text in valuation.evaluations["coalition"]]
    ).set_index("code")
    rows = trained.loc[[frozenset(to_names(row, utility.owners.names)) for row in members]]
    no_data = pd.DataFrame({"utility": [utility.empty], "seconds": [0.0]})
    rows = pd.concat([no_data, rows[["utility", "seconds"]]]).round({"seconds": 3})
    write_table(FOLDER / "tables" / f"{name}.csv.gz", members, rows)


def _arrays(file: str) -> dict[str, np.ndarray]:
    path = data_folder() / file
    if not path.exists():
        raise SystemExit(
            f"there is no {path}; docs/paper.md says what {file} has to hold, and DUPRE_DATA names "
            "the folder"
        )
    with np.load(path) as data:
        return dict(data)


def _digits(parts: tuple[set[int], ...], seed: int = 0) -> dupre.ModelUtility:
    """MNIST divided by digits; three hidden layers, 20 epochs (the paper: 100)."""
    data = _arrays("mnist.npz")
    train = data["x_train"].reshape(60_000, -1) / np.float32(255), data["y_train"]
    validation = data["x_test"].reshape(10_000, -1) / np.float32(255), data["y_test"]
    X, y, owner = _by_label(*train, parts, rows=400)
    model = MLPClassifier((64, 32, 16), batch_size=64, max_iter=20)
    owners = dupre.Owners.from_arrays(X, y, owner)
    return _utility(model, owners, validation, seed)


def _houses(n: int, seed: int = 0) -> dupre.ModelUtility:
    """California housing; three hidden layers, all rows in a batch, 100 epochs, as the paper."""
    X, X_val, y, y_val = housing(train=100 * n)
    mlp = MLPRegressor(
        hidden_layer_sizes=(32, 32, 16),
        batch_size=len(y),
        learning_rate_init=0.01,
        alpha=1.0,
        max_iter=100,
    )
    scaled = TransformedTargetRegressor(mlp, transformer=StandardScaler())
    # arcsinh: the columns have very long tails.
    model = make_pipeline(FunctionTransformer(np.arcsinh), StandardScaler(), scaled)
    owner = np.random.default_rng(0).permutation(len(y)) % n
    owners = dupre.Owners.from_arrays(X, y, owner)
    return _utility(model, owners, (X_val, y_val), seed)


def _by_label(
    X: np.ndarray, y: np.ndarray, parts: tuple[set[int], ...], rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first rows of every label, and who holds them: X, y and owner."""
    chosen = [np.concatenate([np.flatnonzero(y == k)[:rows] for k in sorted(p)]) for p in parts]
    index = np.concatenate(chosen)
    return X[index], y[index], np.repeat(np.arange(len(parts)), [len(c) for c in chosen])


def _halve(images: np.ndarray) -> np.ndarray:
    """Images of SIDE x SIDE pixels, each the mean of four, as rows between 0 and 1."""
    pixels = images.reshape(len(images), SIDE, 2, SIDE, 2, -1).mean(axis=(2, 4)) / 255
    return pixels.reshape(len(images), -1).astype(np.float32)


def _texts(file: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = _arrays(file)
    return data["X"].astype(np.float32), data["y"], data["split"]


def _sentiment(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, validation: np.ndarray
) -> dupre.ModelUtility:
    """Ten owners of equally many random rows."""
    owner = np.random.default_rng(0).permutation(len(train)) % 10
    owners = dupre.Owners.from_arrays(X[train], y[train], owner)
    return _utility(LogisticRegression(), owners, (X[validation], y[validation]))


def _utility(
    model: object, owners: dupre.Owners, validation: tuple[np.ndarray, np.ndarray], seed: int = 0
) -> dupre.ModelUtility:
    """Accuracy or R²; without resamples of the validation rows, which no experiment uses."""
    return dupre.ModelUtility(model, owners, validation=validation, resamples=0, seed=seed)
