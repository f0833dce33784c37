"""Games of which every coalition was trained: owners, made again, and utilities from `tables.npz`.

`python benchmarks/games.py` trains them and writes the file: utilities of all coalitions by binary
code, no data first; 2,000 rows of California housing (census of 1990, Pace & Barry 1997) in 32
bits, which scikit-learn would download, with the region of each. The models are there; here is who
holds what.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from dupre._types import Ints
from dupre.benchmark.games import Game
from dupre.data.owners import Owners

TABLES = files("dupre.benchmark") / "tables.npz"

HARMFUL = (7, 8, 9)
"""Owners of digits-skewed-10 whose labels are wrong."""

PAPER = {1: 0, 4: 0, 5: 0, 7: 0, 8: 0, 2: 1, 9: 2, 6: 3, 0: 4, 3: 5}
"""The owner of each digit in the paper's division of MNIST (DUPRE Sec. 4.1)."""

Rows = tuple[NDArray[Any], NDArray[Any], Ints]
"""Rows, targets and owners."""


def make(name: str) -> Game:
    """The game of this name."""
    with TABLES.open("rb") as file, np.load(file) as tables:
        utilities = tables[name]
    return Game(name, owners_of(name), utilities[1:], float(utilities[0]))


def owners_of(name: str) -> Owners:
    """The owners of the game of this name."""
    return Owners.from_arrays(*OWNERS[name]())


def digits() -> list[NDArray[Any]]:
    """Digits: X, X for validation, y, y for validation."""
    X, y = load_digits(return_X_y=True)
    found: list[NDArray[Any]] = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    return found


def diabetes() -> list[NDArray[Any]]:
    """Diabetes: X, X for validation, y, y for validation."""
    X, y = load_diabetes(return_X_y=True)
    found: list[NDArray[Any]] = train_test_split(X, y, test_size=0.4, random_state=0)
    return found


def _digits_random() -> Rows:
    X, _, y, _ = digits()
    return X, y, np.random.default_rng(0).permutation(len(y)) % 8


def _digits_by_label() -> Rows:
    X, _, y, _ = digits()
    return X, y, y


def _digits_skewed() -> Rows:
    """Dirichlet label skew among ten owners; the last three have their labels shuffled."""
    X, _, y, _ = digits()
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(10, 0.5), size=10)  # [label, owner]
    owner = np.array([rng.choice(10, p=share[label]) for label in y])
    y = y.copy()
    for bad in HARMFUL:
        y[owner == bad] = rng.permutation(y[owner == bad])
        flip = (owner == bad) & (rng.random(len(y)) < 0.7)
        y[flip] = rng.integers(10, size=flip.sum())
    return X, y, owner


def _digits_paper() -> Rows:
    X, _, y, _ = digits()
    return X, y, np.array([PAPER[label] for label in y])


def _diabetes_random() -> Rows:
    X, _, y, _ = diabetes()
    return X, y, np.random.default_rng(0).permutation(len(y)) % 8


def _housing_random() -> Rows:
    X, y, _ = _housing(1_600)
    return X, y, np.random.default_rng(0).permutation(len(y)) % 8


def _housing_by_location() -> Rows:
    return _housing(2_000)


def _housing(count: int) -> Rows:
    """The first rows of housing, their targets, and the region of each."""
    with TABLES.open("rb") as file, np.load(file) as tables:
        rows = tables["housing"][:count].astype(np.float64)
        region = tables["region"][:count].astype(np.int64)
    return rows[:, :-1], rows[:, -1], region


OWNERS: dict[str, Callable[[], Rows]] = {
    "digits-random-8": _digits_random,
    "digits-by-label-10": _digits_by_label,
    "digits-skewed-10": _digits_skewed,
    "digits-paper-6": _digits_paper,
    "diabetes-random-8": _diabetes_random,
    "housing-random-8": _housing_random,
    "housing-by-location-10": _housing_by_location,
}
