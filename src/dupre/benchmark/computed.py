"""Games that are computed on demand: models that follow from sums over rows, and closed forms.

A ridge regression and a classifier by nearest class means are functions of sums over the rows of a
coalition, so that all coalitions are trained within a second or two. Closed forms give exact values
of more owners than can be enumerated.

Notation: n owners, m coalitions, d columns, v validation rows, k classes; p_c is the chance that an
owner joins c others (`Semivalue.chances`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from dupre._types import Floats, Ints, Members
from dupre.benchmark.games import Game
from dupre.benchmark.trained import diabetes, digits
from dupre.data.owners import Owners
from dupre.game.blocks import split
from dupre.game.coalitions import all_coalitions
from dupre.game.semivalues import Semivalue

BLOCK = 4_096
"""Coalitions trained at a time, which limits memory."""


def make(name: str) -> Game:
    """The game of this name."""
    return GAMES[name](name)


def skewed_owners(rows: int, n: int, least: int, rng: np.random.Generator) -> Ints:
    """The owner of each row, (rows,): `least` each, the others in Dirichlet(1, ..., 1) shares."""
    shares = rng.multinomial(rows - least * n, rng.dirichlet(np.ones(n)))
    return np.repeat(np.arange(n), least + shares)


def ridge_r2(
    train: tuple[Floats, Floats, Ints], validation: tuple[Floats, Floats], alpha: float
) -> Floats:
    """R² of a ridge regression on every coalition, (2^n - 1,), from the owners' Gram matrices.

    Args:
        train: rows, (N, d), targets and owners, (N,) each.
        validation: rows, (v, d), and targets, (v,).
        alpha: the penalty; the intercept is free.
    """
    (X, y, owner), (X_val, y_val) = train, validation
    A, A_val = (np.column_stack([rows, np.ones(len(rows))]) for rows in (X, X_val))
    n, d = int(owner.max()) + 1, A.shape[1]
    grams = np.array([A[owner == i].T @ A[owner == i] for i in range(n)])
    moments = np.array([A[owner == i].T @ y[owner == i] for i in range(n)])
    penalty = alpha * np.diag(np.append(np.ones(d - 1), 0.0))
    spread, of_validation = np.sum((y_val - y_val.mean()) ** 2), A_val.T @ A_val
    members = all_coalitions(n)
    utilities = np.empty(len(members))
    for some in split(len(members), BLOCK):
        block = members[some].astype(np.float64)
        G = (block @ grams.reshape(n, -1)).reshape(-1, d, d) + penalty
        w = np.linalg.solve(G, (block @ moments)[:, :, None])[:, :, 0]
        squared = np.einsum("bi,ij,bj->b", w, of_validation, w, optimize=True)
        squared += y_val @ y_val - 2 * w @ (A_val.T @ y_val)
        utilities[some] = 1 - squared / spread
    return utilities


def centroid_accuracy(
    train: tuple[Ints, Ints, Ints], validation: tuple[Ints, Ints], classes: int
) -> Floats:
    """Accuracy of nearest class means on every coalition, (2^n - 1,).

    Rows are whole numbers: sums and products of them are exact, so that near ties are decided in
    the same way on every CPU. A class without rows is never predicted.

    Args:
        train: rows, (N, d), classes and owners, (N,) each.
        validation: rows, (v, d), and classes, (v,).
        classes: how many, k.
    """
    (X, y, owner), (X_val, y_val) = train, validation
    n, d = int(owner.max()) + 1, X.shape[1]
    sums, counts = np.zeros((n, classes, d)), np.zeros((n, classes))
    np.add.at(sums, (owner, y), X)
    np.add.at(counts, (owner, y), 1)
    members = all_coalitions(n)
    utilities = np.empty(len(members))
    for some in split(len(members), BLOCK // 16):
        block = members[some].astype(np.float64)
        S, c = (block @ sums.reshape(n, -1)).reshape(-1, classes, d), block @ counts
        held = np.maximum(c, 1)[:, :, None]
        # |x - S / c|² without |x|², which all classes share, (m, k, v).
        apart = (np.einsum("mkd,mkd->mk", S, S)[:, :, None] / held - 2 * (S @ X_val.T)) / held
        apart[c == 0] = np.inf
        utilities[some] = np.mean(apart.argmin(axis=1) == y_val, axis=1)
    return utilities


def _diabetes_ridge(name: str) -> Game:
    """14 owners of very different size, two of them with shuffled targets."""
    X, X_val, y, y_val = diabetes()
    rng = np.random.default_rng(0)
    scale = X.std(axis=0)
    X, X_val, owner = X / scale, X_val / scale, skewed_owners(len(y), 14, 3, rng)
    y = y.copy()
    for bad in (12, 13):
        y[owner == bad] = rng.permutation(y[owner == bad])
    utilities = ridge_r2((X, y, owner), (X_val, y_val), alpha=10.0)
    return Game(name, Owners.from_arrays(X, y, owner), utilities, _r2_of_mean(y, y_val))


def _r2_of_mean(y: Floats, y_val: Floats) -> float:
    """R² of the mean of the training targets: what a model without rows predicts."""
    return float(1 - np.sum((y_val - y.mean()) ** 2) / np.sum((y_val - y_val.mean()) ** 2))


def _cancer_centroid(name: str) -> Game:
    """12 owners of very different size."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    X, X_val = (np.rint(100 * (rows - centre) / scale).astype(np.int64) for rows in (X, X_val))
    owner = skewed_owners(len(y), 12, 4, np.random.default_rng(0))
    return _by_centroids(name, (X, y, owner), (X_val, y_val))


def _digits_centroid(name: str) -> Game:
    """10 owners, each with rows of the two digits i and i + 1 and a few of all."""
    X, X_val, y, y_val = digits()
    rng = np.random.default_rng(0)
    owner = (y - rng.integers(2, size=len(y))) % 10
    anywhere = rng.random(len(y)) < 0.1
    owner[anywhere] = rng.integers(10, size=int(anywhere.sum()))
    X, X_val = X.astype(np.int64), X_val.astype(np.int64)
    return _by_centroids(name, (X, y, owner), (X_val, y_val))


def _by_centroids(name: str, train: tuple[Ints, Ints, Ints], validation: tuple[Ints, Ints]) -> Game:
    """A game of nearest class means; no data predict the most frequent class of all owners."""
    X, y, owner = train
    utilities = centroid_accuracy(train, validation, int(y.max()) + 1)
    empty = float(np.mean(validation[1] == np.bincount(y).argmax()))
    return Game(name, Owners.from_arrays(X.astype(np.float64), y, owner), utilities, empty)


@dataclass(frozen=True, eq=False)
class OfTotal:
    """u(C) = function(sum of the members' whole numbers): voting, or a curve of rows.

    Attributes:
        amounts: of the owners, (n,).
        function: callable of totals, an array; of 0 it is the utility of no data.
    """

    amounts: Ints
    function: Callable[[Ints], Floats]

    def __call__(self, members: Members) -> Floats:
        """Utilities of m coalitions, (m,)."""
        return self.function(members @ self.amounts)

    def values(self, semivalue: Semivalue) -> Floats:
        """By counting coalitions of each size and total without an owner, (n,)."""
        n, most = len(self.amounts), int(self.amounts.sum())
        totals = np.arange(most + 1)
        worth = self.function(totals)
        chances = semivalue.chances(n) / [comb(n - 1, c) for c in range(n)]
        found = np.empty(n)
        for i, amount in enumerate(self.amounts):
            count = np.zeros((n, most + 1))  # [size, total]
            count[0, 0] = 1.0
            for other in np.delete(self.amounts, i):
                count[1:, other:] += count[:-1, : most + 1 - other].copy()
            gain = worth[np.minimum(totals + amount, most)] - worth
            found[i] = chances @ (count @ gain)  # none has a total above most - amount
        return found


@dataclass(frozen=True, eq=False)
class Largest:
    """u(C) = the largest worth among the members: the best data set counts alone.

    Attributes:
        worths: of the owners, (n,), none negative.
    """

    worths: Floats

    def __call__(self, members: Members) -> Floats:
        """Utilities of m coalitions, (m,)."""
        return np.asarray((members * self.worths).max(axis=1))

    def values(self, semivalue: Semivalue) -> Floats:
        """Step by step of the worths, as in the airport game (Littlechild & Owen 1973), (n,).

        The step between two neighbouring worths is gained by an owner above it who joins others
        that are all below.
        """
        n, order = len(self.worths), np.argsort(self.worths)
        steps = np.diff(self.worths[order], prepend=0.0)
        chances = semivalue.chances(n)
        below = np.arange(n)  # of n - 1 others as many are below step k as come before it
        alone = [
            sum(chances[c] * comb(int(k), c) / comb(n - 1, c) for c in range(int(k) + 1))
            for k in below
        ]
        found = np.empty(n)
        found[order] = np.cumsum(steps * np.array(alone))
        return found


@dataclass(frozen=True, eq=False)
class Pairs:
    """u(C) = sum of worths and of what pairs within C gain together.

    Attributes:
        worths: of the owners, (n,).
        gains: of pairs, (n, n), symmetric with a zero diagonal.
    """

    worths: Floats
    gains: Floats

    def __call__(self, members: Members) -> Floats:
        """Utilities of m coalitions, (m,)."""
        M = members.astype(np.float64)
        return np.asarray(M @ self.worths + np.einsum("mi,ij,mj->m", M, self.gains, M) / 2)

    def values(self, semivalue: Semivalue) -> Floats:
        """An owner's worth, and its gains with others as often as they are there, (n,)."""
        n = len(self.worths)
        present = semivalue.chances(n) @ np.arange(n) / (n - 1)
        return np.asarray(self.worths + present * self.gains.sum(axis=1))


def _made_up(amounts: Ints, quality: Floats, rng: np.random.Generator) -> Owners:
    """Owners with rows of a linear rule, the noisier the lower their quality, (n,), in [0, 1]."""
    owner = np.repeat(np.arange(len(amounts)), amounts)
    X = rng.normal(size=(len(owner), 3))
    noise = rng.normal(size=len(owner)) * (1.5 - quality[owner])
    return Owners.from_arrays(X, X @ [1.0, -1.0, 0.5] + noise, owner)


def _curve(name: str) -> Game:
    """A learning curve: 24 owners of 2 to 40 rows, and nothing but the number of rows counts."""
    rng = np.random.default_rng(0)
    amounts = 2 + np.rint(38 * rng.beta(1.0, 3.0, 24)).astype(np.int64)
    game = OfTotal(amounts, lambda total: 0.9 - 0.8 / np.sqrt(1 + total / 20))
    owners = _made_up(amounts, np.ones(24), rng)
    return Game(name, owners, game, 0.1, game.values)


def _quota(name: str) -> Game:
    """A vote: 15 owners with 1 to 9 votes, and 1 if more than half of all are in."""
    rng = np.random.default_rng(0)
    amounts = rng.integers(1, 10, 15)
    half = amounts.sum() / 2
    game = OfTotal(amounts, lambda total: (total > half).astype(np.float64))
    owners = _made_up(10 * amounts, np.ones(15), rng)
    return Game(name, owners, game, 0.0, game.values)


def _largest(name: str) -> Game:
    """The best of 20 owners counts alone; the better, the less noise in its rows."""
    rng = np.random.default_rng(0)
    game = Largest(rng.random(20))
    return Game(name, _made_up(np.full(20, 15), game.worths, rng), game, 0.0, game.values)


def _pairs(name: str) -> Game:
    """Worths of 30 owners, and gains and losses of pairs: owners alike lose together."""
    rng = np.random.default_rng(0)
    worths = rng.random(30)
    gains = np.triu(rng.normal(-0.01, 0.02, (30, 30)), 1)
    game = Pairs(worths, gains + gains.T)
    return Game(name, _made_up(np.full(30, 15), worths, rng), game, 0.0, game.values)


GAMES: dict[str, Callable[[str], Game]] = {
    "diabetes-ridge-14": _diabetes_ridge,
    "cancer-centroid-12": _cancer_centroid,
    "digits-centroid-10": _digits_centroid,
    "curve-24": _curve,
    "quota-15": _quota,
    "largest-20": _largest,
    "pairs-30": _pairs,
}
