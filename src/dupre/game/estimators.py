"""Which coalitions enter a value with which weights: all of them, or some drawn at random.

An estimator is a function (semivalue, n, samples, rng) -> `Weights`. It draws at most `samples`
coalitions, each to be evaluated once however often it was drawn. Values, their uncertainty and
active selection work with any of them, because values are linear in the utilities.

Every estimator is unbiased for any game: its expected weights are the exact ones of DUPRE Prop. 3,
those of `regression` up to terms of the order 1 / samples.

Notation: omega_c is the weight of a coalition of c others in Eq. 2; p_c = omega_c C(n - 1, c) the
chance that a semivalue gives an owner to join c others, sum_c p_c = 1; d coalitions drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import TypeAlias

import numpy as np
from scipy.stats import binom

from dupre._types import Floats, Ints, Members
from dupre.checks import whole
from dupre.errors import InputError
from dupre.game.coalitions import all_coalitions, every_of_size, random_cover, random_of_sizes
from dupre.game.regression import regression
from dupre.game.semivalues import Semivalue, shapley
from dupre.game.weights import (
    CERTAIN,
    Weights,
    check_samples,
    coalition_weights,
    collect_entries,
    collect_weights,
)

__all__ = [
    "Estimator",
    "Sample",
    "Weights",
    "antithetic",
    "collect_weights",
    "exact",
    "group_testing",
    "maximum_sample_reuse",
    "one_for_all",
    "permutation",
    "regression",
    "stratified",
    "stratified_svarm",
    "structured",
    "svarm",
]

Rng: TypeAlias = np.random.Generator
Estimator: TypeAlias = Callable[[Semivalue, int, int, Rng], Weights]


@dataclass(frozen=True)
class Sample:
    """How many coalitions an estimator draws.

    By default 4,096 are drawn to choose from and for variances, and 16,384 for the expected values
    (40n for both if that is more). More cost no training, and reduce the error of sampling.

    Attributes:
        estimator: a function of this module such as `permutation`.
        count: coalitions to draw.
    """

    estimator: Estimator
    count: int

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be a function, got {self.estimator!r}")
        whole(self.count, "the number of coalitions to draw", least=1)


def exact(semivalue: Semivalue, n: int) -> Weights:
    """Every coalition with its weight in DUPRE Prop. 3: the exact value once all are known."""
    members = all_coalitions(n)
    empty = np.full(n, -semivalue.chances(n)[0])
    return Weights(members, coalition_weights(semivalue, members), empty)


def permutation(semivalue: Semivalue, n: int, samples: int, rng: Rng) -> Weights:
    """Marginal contributions along random orders of the owners (DUPRE Alg. 3 and 4).

    Castro, Gómez & Tejada 2009. An owner's place in an order is uniform, so that weighing its
    contribution at place c by n p_c gives any semivalue. n coalitions per order.
    """
    orders = _orders(n, _units("permutation", samples, n, n), rng)
    return _contributions_along(semivalue, orders, unit=np.arange(len(orders)))


def antithetic(semivalue: Semivalue, n: int, samples: int, rng: Rng) -> Weights:
    """Permutation sampling in pairs: every order is also used backwards.

    Mitchell, Cooper, Frank & Holmes 2022. An owner early in one order is late in the other, so
    that the effect of the size of coalitions cancels. 2 n coalitions per pair.
    """
    there = _orders(n, _units("antithetic", samples, 2 * n, n), rng)
    orders = np.stack([there, there[:, ::-1]], axis=1).reshape(-1, n)
    return _contributions_along(semivalue, orders, unit=np.repeat(np.arange(len(there)), 2))


def stratified(semivalue: Semivalue, n: int, samples: int, rng: Rng) -> Weights:
    """Equally many marginal contributions of every owner to coalitions of every size.

    Maleki, Tran-Thanh, Hines, Rahwan & Rogers 2013. A size is enumerated if all its contributions
    fit into its part of the samples. Two coalitions per contribution.
    """
    chance = semivalue.chances(n)
    sizes = np.flatnonzero(chance)
    m = _units("stratified", samples, 2 * n * len(sizes), n)
    parts = []
    for c in sizes:
        complete = comb(n - 1, int(c)) <= m
        others = every_of_size(n - 1, int(c)) if complete else None
        count = m if others is None else len(others)
        owner = np.tile(np.arange(n), count)
        if others is None:
            subsets = random_of_sizes(n - 1, np.full(n * m, c), rng)
        else:
            subsets = np.repeat(others, n, axis=0)
        without = np.zeros((n * count, n), dtype=bool)
        column = np.arange(n - 1) + (np.arange(n - 1) >= owner[:, None])
        np.put_along_axis(without, column, subsets, axis=1)
        unit = np.full(n * count, CERTAIN) if complete else c * n * m + np.arange(n * count)
        parts.append(_contributions(without, owner, chance[c] / count, unit, int(c)))
    return _join(parts)


def structured(semivalue: Semivalue, n: int, samples: int, rng: Rng) -> Weights:
    """Every owner swapped into every place of random orders equally often.

    Van Campen, Hamers, Husslage & Lindelauf 2018. An order serves one place: each owner in turn is
    swapped with the owner there, and its contribution is taken. n + 1 coalitions per order.
    """
    chance = semivalue.chances(n)
    places = np.flatnonzero(chance)
    m = _units("structured", samples, (n + 1) * len(places), n)
    parts = []
    for c in places:
        complete = c in (0, n - 1)  # one order has all contributions
        orders = _orders(n, 1 if complete else m, rng)
        before = np.argsort(orders, axis=1) < c
        without = before[:, None, :] & ~np.eye(n, dtype=bool)
        moved_out = np.nonzero(before)  # if swapped, the owner at the place moves before it
        without[(*moved_out, orders[moved_out[0], c])] = True
        owner = np.tile(np.arange(n), len(orders))
        unit = np.repeat(c * m + np.arange(len(orders)), n)
        unit = np.full_like(unit, CERTAIN) if complete else unit
        weight = chance[c] / len(orders)
        parts.append(_contributions(without.reshape(-1, n), owner, weight, unit, int(c)))
    return _join(parts)


def svarm(semivalue: Semivalue, n: int, samples: int, rng: Rng) -> Weights:
    """The mean over coalitions with an owner less the mean over others without it.

    SVARM, Kolpaczki, Bengs, Muschalik & Hüllermeier 2024: a coalition counts for all its members,
    or for all other owners. Sizes are drawn so that each owner gets the right distribution.
    """
    draws = (check_samples("svarm", samples, 4 * n, n) - 2 * n) // 2
    p, size = semivalue.chances(n), np.arange(n)
    p /= p.sum()
    joined = rng.choice(size, n, p=p), rng.choice(size, n, p=p)  # one of each to begin with
    parts = []
    for sign, joins in ((1, joined[0]), (-1, joined[1])):
        # Among n owners, C has the chance C(n, |C|) omega, which is p n / (members who count).
        weight = p * n / (size + 1 if sign > 0 else n - size)
        sizes = rng.choice(size, draws, p=weight / weight.sum()) + (sign > 0)
        warm = random_of_sizes(n, joins, rng, but=np.arange(n)) | (sign * np.eye(n) > 0)
        drawn = random_of_sizes(n, sizes, rng)
        counts = drawn if sign > 0 else ~drawn
        mean = sign * np.append(np.eye(n), counts.T, axis=1) / (1 + counts.sum(axis=0))[:, None]
        unit = np.arange(n + draws) + (sign > 0) * (n + draws)
        owner, row = np.nonzero(mean)
        drawn = np.append(warm, drawn, axis=0)
        parts.append((drawn, owner, row, mean[owner, row], unit, np.full(n + draws, sign > 0)))
    return _join(parts, means=True)


def stratified_svarm(semivalue: Semivalue, n: int, samples: int, rng: Rng) -> Weights:
    """Coalitions with and without an owner, each size on its own.

    Stratified SVARM, Kolpaczki et al. 2024: sizes 1 and n - 1 are enumerated, size s of the others
    is drawn with a chance proportional to 1 / min(s, n - s). A coalition counts for every owner.
    """
    size = np.arange(2, n - 1)
    chance = 1 / np.minimum(size, n - size)
    return _means_by_size("stratified_svarm", semivalue, n, samples, chance=chance, rng=rng)


def one_for_all(semivalue: Semivalue, n: int, samples: int, rng: Rng) -> Weights:
    """The same coalitions for every semivalue: the draws do not depend on it.

    One sample fits all (OFA-A), Li & Yu 2024. Sizes 1 and n - 1 are enumerated, size s of the
    others is drawn with a chance proportional to 1 / sqrt(s (n - s)).
    """
    size = np.arange(2, n - 1)
    chance = 1 / np.sqrt(size * (n - size))
    return _means_by_size("one_for_all", semivalue, n, samples, chance=chance, rng=rng)


def group_testing(semivalue: Semivalue, n: int, samples: int, rng: Rng) -> Weights:
    """Differences between owners from random groups, shifted to the known sum of all values.

    Jia et al. 2019, Alg. 1, with the least squares solution in place of any feasible one. The sum
    is known for Shapley only.
    """
    if not np.allclose(semivalue.chances(n), shapley.chances(n), rtol=1e-9, atol=0):
        raise InputError(
            "group testing finds differences between values and needs their sum, which is known "
            f"for Shapley only; for {semivalue.name} take one_for_all or regression"
        )
    draws = check_samples("group_testing", samples, 2 * n, n) - 1
    size = np.arange(1, n)
    chance = 1 / size + 1 / (n - size)
    groups = random_of_sizes(n, rng.choice(size, draws, p=chance / chance.sum()), rng)
    weight = chance.sum() / draws * (groups.T - groups.mean(axis=1))
    ends = np.outer(np.full(n, 1 / n), [1.0, -1.0])
    drawn = np.concatenate([np.ones((1, n), dtype=bool), np.zeros((1, n), dtype=bool), groups])
    unit = np.concatenate([[CERTAIN, CERTAIN], np.arange(draws)])
    return collect_weights(drawn, np.append(ends, weight, axis=1), unit, np.zeros_like(unit))


def maximum_sample_reuse(semivalue: Semivalue, n: int, samples: int, rng: Rng) -> Weights:
    """Mean utility with an owner minus mean utility without it, over the same coalitions.

    Wang & Jia 2023 for Banzhaf. It works wherever owners join independently of each other, each
    with the same chance: weighted Banzhaf values (Li & Yu 2023).
    """
    logs = semivalue.log_weights(n)
    steps = np.diff(logs) if np.isfinite(logs).all() else np.array([np.nan])
    if not np.allclose(steps, steps[0], rtol=0, atol=1e-9):
        raise InputError(
            "maximum sample reuse needs a semivalue under which owners join independently, such "
            f"as Banzhaf; for {semivalue.name} take one_for_all or regression"
        )
    joins = 1 / (1 + np.exp(-steps[0]))
    least = 2 * n
    while n * (binom.cdf(1, least, joins) + binom.cdf(1, least, 1 - joins)) > 1e-4:
        least += 1  # an owner in fewer than two, or in all but fewer than two, has no spread
    draws = check_samples("maximum_sample_reuse", samples, least, n)
    drawn = rng.random((draws, n)) < joins
    inside = drawn.sum(axis=0)
    if not np.all((inside >= 2) & (draws - inside >= 2)):
        raise InputError(
            f"an owner was in fewer than two of {draws} coalitions, or in all but fewer than two; "
            "raise samples"
        )
    unit = np.tile(np.arange(draws), 2)
    weight = np.append(drawn.T / inside[:, None], ~drawn.T / (inside - draws)[:, None], axis=1)
    return collect_weights(
        np.tile(drawn, (2, 1)), weight, unit, np.repeat([1, 0], draws), means=True
    )


def _means_by_size(
    name: str, semivalue: Semivalue, n: int, samples: int, *, chance: Floats, rng: Rng
) -> Weights:
    """Mean utility with and without each owner for every size; `chance` of sizes 2 .. n - 2.

    Two covers of every size come first, so that no mean is empty and each has a spread.
    """
    p = semivalue.chances(n)
    covers = [random_cover(n, s, rng) for s in range(2, n - 1) for _ in range(2)]
    outer = np.concatenate([every_of_size(n, s) for s in sorted({1, n - 1, n})])
    least = len(outer) + sum(map(len, covers))
    left = check_samples(name, samples, least, n) - least
    inner = np.empty((0, n), dtype=bool)
    if covers:
        sizes = rng.choice(np.arange(2, n - 1), left, p=chance / chance.sum())
        inner = np.concatenate([*covers, random_of_sizes(n, sizes, rng)])
    mixed = rng.permutation(len(inner))  # mixed sizes: some users evaluate the first ones only
    inner = inner[mixed]
    size = inner.sum(axis=1)
    inside, outside = np.zeros((2, n + 1, n))
    np.add.at(inside, size, inner)
    np.add.at(outside, size, ~inner)
    with_owner = inner.T * p[size - 1] / np.maximum(inside[size].T, 1)
    without = ~inner.T * -p[size % n] / np.maximum(outside[size].T, 1)
    weight = [coalition_weights(semivalue, outer), np.full((n, 1), -p[0]), with_owner, without]
    nobody = np.zeros((1, n), dtype=bool)
    # The coalitions of a cover depend on each other: they are one draw.
    draw = np.repeat(np.arange(len(covers)), [len(rows) for rows in covers])
    draw = np.append(draw, len(covers) + np.arange(len(size) - len(draw)))[mixed]
    unit = np.concatenate([np.full(len(outer) + 1, CERTAIN), np.tile(draw, 2)])
    stratum = np.concatenate([np.zeros(len(outer) + 1, dtype=np.int64), 2 * size, 2 * size + 1])
    drawn = np.concatenate([outer, nobody, inner, inner])
    return collect_weights(drawn, np.concatenate(weight, axis=1), unit, stratum, means=True)


def _contributions_along(semivalue: Semivalue, orders: Ints, unit: Ints) -> Weights:
    """Contributions of all owners along orders, (r, n); `unit` of each order, (r,)."""
    r, n = orders.shape
    place = np.argsort(orders, axis=1)
    prefixes = place[:, None, :] < np.arange(n + 1)[:, None]
    weight, counts = np.zeros((r, n + 1, n)), np.zeros((r, n + 1, n), dtype=bool)
    order, owner = np.arange(r)[:, None], np.arange(n)
    each = n * semivalue.chances(n)[place] / r
    for prefix, sign in ((place + 1, 1), (place, -1)):
        weight[order, prefix, owner] = sign * each
        counts[order, prefix, owner] = True  # also where the semivalue gives it no weight
    units = np.repeat(unit, n + 1)
    drawn, counted = prefixes.reshape(-1, n), counts.reshape(-1, n).T
    weights, stratum = weight.reshape(-1, n).T, np.zeros_like(units)
    return collect_weights(drawn, weights, units, stratum, counts=counted)


Part: TypeAlias = tuple[Members, Ints, Ints, Floats, Ints, Ints]
"""Coalitions drawn, (d, n); owner, row, weight of entries, (t,); units and strata, (d,)."""


def _contributions(without: Members, owner: Ints, weight: float, unit: Ints, stratum: int) -> Part:
    """What owners, (k,), add to coalitions without them, (k, n), all with the same weight."""
    k, n = without.shape
    joined = without.copy()
    joined[np.arange(k), owner] = True
    drawn = np.stack([without, joined], axis=1).reshape(2 * k, n)
    entries = np.repeat(owner, 2), np.arange(2 * k), np.tile([-weight, weight], k)
    return drawn, *entries, np.repeat(unit, 2), np.full(2 * k, stratum)


def _join(parts: list[Part], *, means: bool = False) -> Weights:
    """Weights of all parts; the coalitions of the parts alternate in proportion."""
    lengths = [len(part[0]) for part in parts]
    progress = np.concatenate([np.arange(length) // 2 / length for length in lengths])
    order = np.argsort(progress, kind="stable")
    drawn, owner, row, weight, unit, stratum = map(np.concatenate, zip(*parts, strict=True))
    first = np.repeat(np.cumsum([0, *lengths[:-1]]), [len(part[1]) for part in parts])
    row = np.argsort(order)[first + row]
    at = np.lexsort((row, owner))
    found = owner[at], row[at], weight[at]
    return collect_entries(drawn[order], found, unit[order], stratum[order], means=means)


def _orders(n: int, count: int, rng: Rng) -> Ints:
    """Random orders of the owners, (count, n)."""
    return np.argsort(rng.random((count, n)), axis=1)


def _units(name: str, samples: int, each: int, n: int) -> int:
    """How many units of `each` coalitions can be drawn, at least two."""
    return check_samples(name, samples, 2 * each, n) // each
