"""The estimator behind KernelSHAP, for any semivalue: an additive game and its residuals.

    values(u) = values(f) + values(u - f),   f the additive game that fits u best

The first part is known without an error, the second is a weighted mean over coalitions drawn at
random. Utilities of data depend on the size and the members of a coalition far more than on
interactions of members, so the second part is small. Many owners are valued in this way.

Notation: s size of a coalition, mass_s = C(n, s) (omega_(s-1) + omega_s); m pairs drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from dupre._types import Floats, Ints, Members
from dupre.game.coalitions import every_of_size, random_of_sizes
from dupre.game.semivalues import Semivalue, log_binomial
from dupre.game.weights import CERTAIN, Weights, blocks, check_samples, collect_columns

LEVELS_FROM = 4
"""Pairs drawn per owner from which on levels of sizes reduce the error."""

DRAWS_PER_LEVEL = 16
"""Coalitions drawn for each level."""


def regression(semivalue: Semivalue, n: int, samples: int, rng: np.random.Generator) -> Weights:
    """Least squares fit of an additive game, corrected by its residuals.

    For Shapley this is KernelSHAP (Lundberg & Lee 2017) with coalitions in complement pairs (Covert
    & Lee 2021); the smallest and largest sizes are enumerated. The Shapley kernel is omega_(s-1) +
    omega_s for a coalition of s owners; under Banzhaf it is uniform, and the fit alone is the value
    (Hammer & Holzman 1992). For other semivalues the weighted mean of the residuals is added: the
    difference estimator of survey sampling (Särndal, Swensson & Wretman 1992, ch. 6). With many
    draws the fitted game also has levels of sizes, unlike KernelSHAP.
    """
    check_regression_samples(samples, n)
    drawn = _draw(semivalue, n, samples, rng)
    plain, column = collect_columns(drawn.rows, (drawn.inside, drawn.outside), drawn.unit)
    levels = np.zeros((n + 1, 0))
    if drawn.pairs >= LEVELS_FROM * n:
        sizes = drawn.rows[2:].sum(axis=1)
        levels = _levels(np.bincount(sizes, minlength=n + 1), whole=drawn.whole)
    weight = np.bincount(column, drawn.fit)[: len(plain.members)].astype(np.float64)
    fit = LeastSquares.of(plain.members, weight, levels, everyone=int(column[0]))
    return _correct(plain, semivalue.chances(n), fit)


def check_regression_samples(samples: int, n: int) -> None:
    """Raise InputError if `regression` needs more samples for n owners."""
    check_samples("regression", samples, min(6 * n + 2, 2**n - 1), n)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Coalitions of sizes that are complete, and pairs drawn from the others; d in all.

    Attributes:
        rows: first all owners and none, then the others, (d, n).
        inside: weight of each in the values of its members, (d,).
        outside: weight of each in those of the others, (d,).
        fit: weight of the squared error at each in the fit, (d,).
        unit: the pair that each belongs to, (d,), or CERTAIN.
        pairs: how many were drawn.
        whole: sizes that are complete.
    """

    rows: Members
    inside: Floats
    outside: Floats
    fit: Floats
    unit: Ints
    pairs: int
    whole: Ints


def _draw(semivalue: Semivalue, n: int, samples: int, rng: np.random.Generator) -> _Drawn:
    s, p = np.arange(1, n), semivalue.chances(n)
    inside, outside = p[:-1] * n / s, p[1:] * n / (n - s)  # C(n, s) times both omegas
    mass = inside + outside
    listed, left = _outermost_sizes(mass, samples - 1)
    ends = np.array([[True] * n, [False] * n])
    whole = np.concatenate([every_of_size(n, int(size)) for size in s[listed]] or [ends[:0]])
    rows, m, at = [ends, whole], 0, whole.sum(axis=1) - 1
    each = mass * np.exp(-log_binomial(n, s.astype(np.float64)))
    omega = np.exp(semivalue.log_weights(n))
    # In the fit, in the values of members, in those of others; all owners and none come first.
    weights = [np.array([[0.0, 0.0], [p[-1], 0.0], [0.0, -p[0]]])]
    weights.append(np.array([each[at], omega[at], -omega[at + 1]]))
    rest = np.where(listed, 0.0, mass)
    if rest.any():
        m = left // 2
        half = random_of_sizes(n, rng.choice(s, m, p=rest / rest.sum()), rng)
        rows.append(np.stack([half, ~half], axis=1).reshape(-1, n))
        at = rows[-1].sum(axis=1) - 1
        # One over the number of draws and the chance of a coalition or its complement, / C(n, s).
        each = rest.sum() / (m * (rest + rest[::-1]))[at]
        weights.append(each * np.array([mass[at], inside[at], -outside[at]]))
    unit = np.append(np.full(2 + len(whole), CERTAIN), np.repeat(np.arange(m), 2))
    # The ends first, then mixed sizes: some users evaluate the first ones only.
    turn = np.append([0, 1], 2 + rng.permutation(len(unit) - 2))
    fit, members, others = np.concatenate(weights, axis=1)[:, turn]
    drawn = np.concatenate(rows)[turn]
    return _Drawn(drawn, members, others, fit, unit[turn], m, s[listed])


def _outermost_sizes(mass: Floats, samples: int) -> tuple[Members, int]:
    """Sizes, from the ends inwards, whose coalitions all fit into their share; samples left."""
    n = len(mass) + 1
    listed = mass == 0  # sizes without weight are not drawn either
    for s in range(1, n // 2 + 1):
        pair = np.unique([s - 1, n - s - 1])
        count = comb(n, s) * int(np.sum(~listed[pair]))
        if not count:
            continue
        # A size is listed when drawing its share would cost as much.
        if count > samples * mass[pair].sum() / mass[~listed].sum() * (1 + 1e-9):
            break
        listed[pair] = True
        samples -= count
    return listed & (mass > 0), samples


def _levels(drawn: Ints, whole: Ints) -> Floats:
    """Levels of sizes, linear between knots, (n + 1, k); 0 for no owner and for all owners.

    A size in `whole` is a knot. The others were `drawn` this many times, (n + 1,); neighbours share
    a knot until it has enough draws. Sizes never drawn lie on the lines between knots.
    """
    n = len(drawn) - 1
    knots: list[float] = [float(size) for size in whole]
    group: list[int] = []
    for size in np.setdiff1d(np.flatnonzero(drawn), [*whole, 0, n]).tolist():
        group += [size] * int(drawn[size])
        if len(group) >= DRAWS_PER_LEVEL:
            knots.append(float(np.mean(group)))
            group = []
    knots = sorted(set(knots)) or [n / 2]
    sizes, count = np.arange(n + 1.0), len(knots)
    levels = np.ones((n + 1, 1))
    if count > 1:
        left = np.clip(np.searchsorted(knots, sizes, side="right") - 1, 0, count - 2)
        start, end = np.array(knots)[left], np.array(knots)[left + 1]
        part = (sizes - start) / (end - start)
        levels = np.zeros((n + 1, count))
        levels[np.arange(n + 1), left] = 1 - part
        levels[np.arange(n + 1), left + 1] += part
    levels[[0, n]] = 0.0
    return levels


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The game that fits utilities best: worths of owners and levels of sizes.

    It goes through the utilities of all owners and of none. Those of the others are fitted minus
    the straight line from no owner to all of them, by `basis`, whose rows are centred memberships
    and levels. As a matrix the map would have (2n + 1) (b + 1) numbers.

    Attributes:
        members: coalitions, (b, n).
        weight: of the squared error at each, (b,).
        levels: of sizes, (n + 1, k), combinations of which are fitted.
        everyone: which coalition is all owners.
        inverse: pseudoinverse of the weighted squares of the basis, (n + k, n + k).
    """

    members: Members
    weight: Floats
    levels: Floats
    everyone: int
    inverse: Floats

    @classmethod
    def of(cls, members: Members, weight: Floats, levels: Floats, everyone: int) -> LeastSquares:
        """The map for these coalitions, weights of errors and levels."""
        width = members.shape[1] + levels.shape[1]
        gram = np.zeros((width, width))
        found = cls(members, weight, levels, everyone, gram)
        for some, basis in found.basis():
            gram += basis.T @ (weight[some, None] * basis)
        # Centred memberships sum to 0: `rcond` keeps rounding errors from being inverted.
        inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
        return replace(found, inverse=np.asarray(inverse, dtype=np.float64))

    @property
    def share(self) -> Floats:
        """Part of the owners that are in each coalition, (b,)."""
        return np.asarray(self.members.mean(axis=1))

    def basis(self) -> Iterator[tuple[Ints, Floats]]:
        """Some coalitions that have a weight at a time, and their rows, (., n + k)."""
        used = np.flatnonzero(self.weight)
        for part in blocks(len(used)):
            rows = self.members[used[part]]
            centred = rows - rows.mean(axis=1)[:, None]
            yield used[part], np.append(centred, self.levels[rows.sum(axis=1)], axis=1)

    def project(self, numbers: Floats) -> Floats:
        """Basis' diag(weight) numbers, (n + k,), of numbers of the coalitions, (b,)."""
        weighted, found = self.weight * numbers, np.zeros(len(self.inverse))
        for some, basis in self.basis():
            found += weighted[some] @ basis
        return found

    def __matmul__(self, utilities: Floats) -> Floats:
        """Worths and levels, (2n + 1,), of the game that fits utilities, (b + 1,)."""
        n, share = self.members.shape[1], self.share
        every, empty = utilities[self.everyone], utilities[-1]
        fitted = self.inverse @ self.project(utilities[:-1] - share * every - (1 - share) * empty)
        return np.append(fitted[:n] + (every - empty) / n, self.levels @ fitted[n:] + empty)


def _correct(plain: Weights, p: Floats, fit: LeastSquares) -> Weights:
    """Weights W (u - f) + values of f, with f the game that fits u best.

    A worth is the value of its owner; levels h add sum_c p_c (h(c + 1) - h(c)) to every value.
    """
    n, W, empty = fit.members.shape[1], plain.W, plain.empty
    of_levels = np.append(0.0, p) - np.append(p, 0.0)
    # Values of worths, of levels and of a constant, minus what W makes of them.
    missed = np.append(np.eye(n), np.tile(of_levels @ fit.levels, (n, 1)), axis=1)
    missed[:, :n] -= W[:, [fit.everyone]]  # which is not fitted
    for some, basis in fit.basis():
        missed[:, :n] -= W[:, some] @ fit.members[some]
        missed[:, n:] -= W[:, some] @ basis[:, n:]
    constant = of_levels.sum() - W.sum(axis=1) - empty
    each = missed @ fit.inverse
    for some, basis in fit.basis():  # in place: W may fill much of the memory
        W[:, some] += each @ (fit.weight[some, None] * basis).T
    slope = missed[:, :n].mean(axis=1)
    W[:, fit.everyone] += slope - each @ fit.project(fit.share)
    empty += constant - slope - each @ fit.project(1 - fit.share)
    learned = n - 1 + fit.levels.shape[1]
    return replace(plain, control=fit, learned=learned)
