"""Owners and coalitions that hold the same rows: they are treated as one, and evaluated once.

Weights are merged accordingly. The columns of coalitions that hold the same rows are added up:
W @ u does not change if u is the same for all of them. The rows of owners who hold the same rows
are averaged: their values become equal, and the sum of all values does not change. A copy that
joined later than the original is worth what it adds: only owners of one cohort are averaged.

Notation: n owners, b0 coalitions by names, b by contents; W (n, b0) becomes (n, b).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from dupre._types import Digests, Floats, Ints, Members
from dupre.data.digests import digests_of_coalitions
from dupre.data.owners import Owners
from dupre.game.coalitions import keys, rank
from dupre.game.weights import Weights

ETA = 0.5
"""Weight of features against targets in distances between owners: both alike."""


class Sameness:
    """When two coalitions are one: if they hold the same rows, or if they have the same members.

    Args:
        n: number of owners.
        contents: digest of each owner's rows, (n, 2); None if a coalition is known by its members.
        cohorts: positions of the owners who joined together; by default all did.

    Attributes:
        by_content: whether contents decide.
        kind: for each owner the first owner who holds the same rows, (n,).
        equals: for each owner the first of its cohort who does: their values are equal, (n,).
    """

    def __init__(
        self, n: int, contents: Digests | None = None, cohorts: Sequence[Ints] | None = None
    ):
        self._contents = contents
        self.by_content = contents is not None
        self.kind: Ints = np.arange(n)
        if contents is not None:
            _, first, inverse = np.unique(contents, axis=0, return_index=True, return_inverse=True)
            self.kind = first[inverse.reshape(-1)]
        self.equals = np.empty(n, dtype=np.int64)
        for own in [np.arange(n)] if cohorts is None else cohorts:
            _, first, inverse = np.unique(self.kind[own], return_index=True, return_inverse=True)
            self.equals[own] = own[first[inverse.reshape(-1)]]

    @property
    def symmetric(self) -> Sameness:
        """The same if all owners had joined together."""
        return Sameness(len(self.kind), self._contents)

    @property
    def groups(self) -> list[Ints]:
        """Owners who hold the same rows as another, in groups."""
        return _groups(self.kind)

    def keys(self, members: Members) -> list[bytes]:
        """One hashable key per coalition, (m,): equal for those that are one, and no others."""
        if self._contents is None:
            return keys(members)
        return [row.tobytes() for row in digests_of_coalitions(members, self._contents)]

    def canonical(self, members: Members) -> Members:
        """Coalitions, (m, n), with the first of several owners who hold the same rows."""
        found = members.copy()
        for group in self.groups:
            found[:, group] = np.arange(len(group)) < members[:, group].sum(axis=1)[:, None]
        return found

    def average(self, numbers: Floats) -> Floats:
        """Numbers of owners, (n, .), averaged over those whose values are equal."""
        found = numbers.copy()
        for group in _groups(self.equals):
            found[group] = numbers[group].mean(axis=0)
        return found

    def equal(self, numbers: Floats) -> Floats:
        """Numbers of owners, (n,), equal to the last digit for those whose values are equal."""
        return np.asarray(numbers[self.equals])

    def equal_covariance(self, covariance: Floats) -> Floats:
        """A covariance, (n, n), in which owners whose values are equal differ by nothing.

        Symmetric to the last digit, which a product of matrices is not on every CPU.
        """
        chosen = covariance[np.ix_(self.equals, self.equals)]
        return np.asarray((chosen + chosen.T) / 2)


def _groups(first: Ints) -> list[Ints]:
    """Owners that are one of several, in groups; `first` of each owner's group, (n,)."""
    several = np.flatnonzero(np.bincount(first) > 1)
    return [np.flatnonzero(first == owner) for owner in several]


@dataclass(frozen=True, eq=False)
class Merged:
    """Weights of coalitions, of which those that hold the same rows are one.

    Attributes:
        by_name: the weights as an estimator gave them, b0 coalitions.
        weights: of the b different ones. Members are those of the coalition with the fewest owners
            of all that hold the same rows, the first in the order of owners among them.
        column: which of the b each of the b0 is, (b0,).
        sameness: when two coalitions are one.
    """

    by_name: Weights
    weights: Weights
    column: Ints
    sameness: Sameness

    @property
    def changed(self) -> bool:
        """Whether any owners or coalitions hold the same rows."""
        return self.weights is not self.by_name

    @property
    def counts(self) -> Members:
        """Which of the b stand for a coalition that has a weight, (b,)."""
        found = np.zeros(len(self.weights.members), dtype=bool)
        found[self.column[self.by_name.W.any(axis=0)]] = True
        return found

    def sampling_covariance(self, utilities: Floats, empty: float, rough: Floats) -> Floats:
        """`Weights.sampling_covariance` of the values, from utilities by contents, (b,)."""
        column, average = self.column, self.sameness.average
        found = self.by_name.sampling_covariance(utilities[column], empty, rough[column])
        return self.sameness.equal_covariance(average(average(found).T).T)


def merge(weights: Weights, sameness: Sameness) -> Merged:
    """The weights with one column for all coalitions that hold the same rows."""
    first: dict[bytes, int] = {}
    keys_of_all = sameness.keys(weights.members)
    column = np.array([first.setdefault(key, len(first)) for key in keys_of_all], dtype=np.int64)
    b0, b = len(column), len(first)
    if b == b0 and not sameness.groups:
        return Merged(weights, weights, column, sameness)
    members = sameness.canonical(weights.members)
    # The fewest owners stand for all: fewer names to read, and the same whatever comes first.
    order = np.argsort(rank(members), kind="stable")
    members = members[order[np.unique(column[order], return_index=True)[1]]]
    sums = sparse.csr_array((np.ones(b0), (np.arange(b0), column)), shape=(b0, b))
    W = sameness.average(np.asarray(weights.W @ sums))
    merged = Weights(members, W, sameness.average(weights.empty))
    return Merged(weights, merged, column, sameness)


def distances(sketch: Callable[..., Floats] | None, n: int) -> Floats:
    """SW_1 between the rows of any two of n owners, (n, n); NaN if their rows are not known."""
    if sketch is None:
        return np.full((n, n), np.nan)
    vectors = sketch(ETA, 1, np.eye(n, dtype=bool))
    # Vectors have 32 bits, and so do distances: further digits would only fill a result.
    return np.asarray(cdist(vectors, vectors, "cityblock").astype(np.float32), dtype=np.float64)


def likeness(apart: Floats, rows: Ints, newcomer: int, alike: float) -> Floats:
    """A row for each owner, (n, n): its own unit vector, but for a newcomer its likeness to all.

    The newcomer's row has the weights by which a Gaussian process over owners predicts it from the
    others, and in its own place the root of what is left of its variance.

    Args:
        apart: distances between owners, (n, n).
        rows: of each owner, (n,).
        newcomer: its index.
        alike: part of the variance of what owners add that follows their data.
    """
    found, others = np.eye(len(apart)), np.arange(len(apart)) != newcomer
    K = alike * _alikeness(apart, rows, others) + (1 - alike) * np.eye(len(apart))
    near, known = K[newcomer, others], K[np.ix_(others, others)]
    # Owners who hold the same rows make it singular; they share what is expected of one.
    weights = np.linalg.pinv(known, rcond=1e-8, hermitian=True) @ near
    found[newcomer, others] = weights
    found[newcomer, newcomer] = np.sqrt(max(0.0, 1.0 - float(near @ weights)))
    return found


def learn_alikeness(values: Floats, apart: Floats, rows: Ints) -> float:
    """Part of the variance of values that follows the owners' data: its posterior mean.

    All parts are as likely before. Values of a few owners say little, so it is seldom near 0 or 1.

    Args:
        values: of the owners, (n,).
        apart: distances between them, (n, n).
        rows: of each, (n,).
    """
    n, K = len(values), _alikeness(apart, rows, np.ones(len(values), dtype=bool))
    spread = float(np.std(values))
    z = (values - np.mean(values)) / (spread if spread > 0 else 1.0)
    parts = np.linspace(0.0, 0.95, 20)  # at 1 copies would make it singular
    height = []
    for part in parts:
        C = part * K + (1 - part) * np.eye(n)
        height.append(-0.5 * (np.linalg.slogdet(C)[1] + z @ np.linalg.solve(C, z)))
    weight = np.exp(np.array(height) - max(height))
    return float(parts @ weight / weight.sum())


def _alikeness(apart: Floats, rows: Ints, known: Members) -> Floats:
    """How alike owners are by their data and their numbers of rows, 0 to 1, (n, n)."""
    sizes = np.log(rows)
    off = _in_medians(apart, known) + _in_medians(sizes[:, None] - sizes, known)
    return np.asarray(np.exp(-0.5 * off))


def _in_medians(apart: Floats, others: Members) -> Floats:
    """Squares of distances, (n, n), in units of the median of those between `others`, (n,)."""
    known = np.abs(apart[np.ix_(others, others)])
    return np.square(apart / (float(np.median(known[np.triu_indices(len(known), 1)])) or 1.0))


def shared_rows(owners: Owners) -> Floats:
    """Part of the row owner's rows that the column owner holds too, targets included, (n, n).

    Rows are compared as they were given: encoded ones may be equal where these are not. Those whose
    contents cannot be compared are taken to be all different.
    """
    # 64 of the 128 bits are enough to count, and sorted faster.
    kinds, kind = np.unique(owners.row_contents[:, 0], return_inverse=True)
    where = owners.owner, kind.reshape(-1)
    held = sparse.csr_array((np.ones(len(owners.y)), where), shape=(owners.n, len(kinds)))
    return np.asarray((held @ (held > 0).T).toarray() / owners.rows[:, None])
