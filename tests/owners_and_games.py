"""Small owners, games that remember what they were asked for, and ways to value and compare."""

import zlib
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_digits

import dupre
from dupre.game import weights
from dupre.game.coalitions import all_coalitions, from_names, to_names
from dupre.game.estimators import exact
from dupre.game.least_core import least_core
from dupre.training.evaluation import evaluate as train


def shuffled_digits():
    """Pictures of digits and what they show, (1797, 64) and (1797,), in a fixed random order."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def make_owners(n, rows=4, names=None):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n * rows, 2)) + np.repeat(rng.normal(size=(n, 2)), rows, axis=0)
    y = X @ [1.0, -1.0] + rng.normal(size=len(X))
    names = [f"owner{i:02d}" for i in range(n)] if names is None else names
    parts = zip(np.split(X, n), np.split(y, n), strict=True)
    return dupre.Owners.from_mapping(dict(zip(names, parts, strict=True)))


class LoggedGame:
    """A game as a utility that remembers which non-empty coalitions it was asked for.

    Args:
        owners: its players.
        game: callable(coalitions (m, n)) -> utilities (m,), or the utilities of all coalitions.
        empty: utility of no data.
    """

    fingerprint = "a game"

    def __init__(self, owners, game, empty=0.0):
        self.owners, self.empty, self.asked = owners, empty, []
        self.game = game
        if not callable(game):
            self.game = lambda C: np.asarray(game)[C @ (1 << np.arange(owners.n)) - 1]

    def __call__(self, members):
        if not members:
            return self.empty
        self.asked.append(members)
        return self.of(members)

    def of(self, members):
        return float(self.game(from_names(members, self.owners.names)[None])[0])

    @property
    def table(self):
        """Utilities of all coalitions."""
        rows = all_coalitions(self.owners.n)
        names = (to_names(row, self.owners.names) for row in rows)
        return dict(zip(names, map(float, self.game(rows)), strict=True))

    def values(self, semivalue=dupre.shapley):
        weights = exact(semivalue, self.owners.n)
        return weights.W @ self.game(weights.members) + weights.empty * self.empty

    def core(self):
        """The least core of all coalitions."""
        members = all_coalitions(self.owners.n)
        *some, grand = self.game(members)
        return least_core(members[:-1], np.array(some), grand=grand, empty=self.empty)


def table_of(owners, seed=0):
    """A random utility of every coalition, and 0.25 of none."""
    numbers = np.random.default_rng(seed).normal(size=2**owners.n - 1)
    return {(): 0.25} | LoggedGame(owners, numbers).table


def counted(function):
    """A utility that remembers what it was asked."""

    def utility(members):
        utility.asked.append(members)
        return function(members)

    utility.asked = []
    utility.fingerprint = "counted"
    return utility


def untouchable(members):
    pytest.fail(f"{members} was evaluated")


untouchable.fingerprint = "counted"


def smooth(owners, seed=0):
    """Diminishing returns, 0.1 without data."""
    worth = np.random.default_rng(seed).uniform(0.1, 1.0, owners.n)
    return LoggedGame(owners, lambda C: 0.9 - 0.8 * np.exp(-(C @ worth)), empty=0.1)


def additive(owners, seed=0):
    worth = np.random.default_rng(seed).normal(size=owners.n)
    return LoggedGame(owners, lambda C: C @ worth)


def white(owners, seed=0):
    """No structure at all: nothing can be learned of one utility from others."""
    *utilities, empty = np.random.default_rng(seed).normal(size=2**owners.n)
    return LoggedGame(owners, utilities, empty)


class Noisy:
    """A game whose trainings are noisy: the noise follows from members and repeat."""

    fingerprint = "a noisy game"

    def __init__(self, game, sigma, seed=0):
        self.game, self.owners, self.empty = game, game.owners, game.empty
        self.sigma, self.seed, self.asked = sigma, seed, []

    def training_seed(self, members, repeat=0):
        return zlib.crc32(repr((self.seed, sorted(members), repeat)).encode())

    def __call__(self, members, *, repeat=0):
        if not members:
            return self.empty
        self.asked.append((members, repeat))
        rng = np.random.default_rng(self.training_seed(members, repeat))
        return self.game.of(members) + rng.normal(0, self.sigma)


class Shuffled:
    """An engine, and its workers, that finish a batch in an order of their own."""

    def __init__(self, seed, on_error="raise"):
        self.rng, self.on_error, self.sizes = np.random.default_rng(seed), on_error, []

    def start(self, utility):
        self.utility = utility
        return self

    def run(self, trainings):
        trainings = list(trainings)
        self.sizes.append(len(trainings))
        for index in self.rng.permutation(len(trainings)):
            yield train(self.utility, trainings[index], threads=1)

    def finished_evaluations(self):
        return []

    def close(self):
        pass


def value(owners, utility, **options):
    """`dupre.value` that shows no progress, and trains nothing that is stored again."""
    if isinstance(options.get("store"), (str, Path)):
        options["store"] = dupre.Stored(options["store"], check=False)
    return dupre.value(owners, utility, **{"progress": False} | options)


def record(valuer, utilities):
    """The valuer, after these utilities of coalitions are recorded."""
    for members, utility in utilities.items():
        valuer.record(members, utility)
    return valuer


def evaluate(valuer, utility, budget):
    """Do what `dupre.value` does: batches of n until the budget is reached; the values."""
    while (left := budget - valuer.evaluated) > 0 and valuer.left:
        for members in valuer.suggest(left if left >= valuer.left else min(valuer.owners.n, left)):
            valuer.record(members, utility(members))
    return valuer.interim_values()  # contributions by size take time


def assert_same(first, second):
    """The same values and uncertainties to the last digit."""
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.uncertainty.total, second.uncertainty.total)
    np.testing.assert_array_equal(first.uncertainty.noise, second.uncertainty.noise)


def holds(valuation, truth, level=0.95):
    """Which of the values are within their intervals, (n,)."""
    bounds = valuation.interval(level)
    return ((bounds["low"] <= truth) & (truth <= bounds["high"])).to_numpy()


def least_share(trials, level=0.95):
    """Share of intervals that hold the truth, at least, but for bad luck of 1 in 10,000."""
    return binom.ppf(1e-4, trials, level) / trials


weighted_banzhaf = dupre.Semivalue(
    "Banzhaf(0.3)", lambda c, n: c * np.log(0.3) + (n - 1 - c) * np.log(0.7)
)
"""Owners join independently of each other, each with a chance of 0.3."""


def no_hidden_variance():
    """Variances as the draws show them, without what is added where they are silent."""
    return patch.object(weights, "_hidden_variance", lambda v, count: np.zeros(len(v)))


class Normal:
    """In place of Student's t: no factor for few draws."""

    @staticmethod
    def ppf(_, degrees):
        return np.ones(np.shape(degrees))


def by_code(found):
    """W with a column for each of all 2^n coalitions, the empty one first."""
    n = len(found.W)
    dense = np.zeros((n, 2**n))
    dense[:, found.members @ 2 ** np.arange(n)] = found.W
    dense[:, 0] = found.empty
    return dense
