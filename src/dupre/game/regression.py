"""The estimator behind KernelSHAP, for any semivalue: an additive game and its residuals.

    values(u) = values(f) + values(u - f),   f the additive game that fits u best

The first part is known without an error, the second is a weighted mean over coalitions drawn at
random. Utilities of data depend on the size and the members of a coalition far more than on
interactions of members, so the second part is small. Many owners are valued in this way.

Notation: s size of a coalition, mass_s = C(n, s) (omega_(s-1) + omega_s); m pairs drawn.
"""

from __future__ import annotations

from math import comb

import numpy as np

from dupre._types import Floats, Ints, Members
from dupre.game.coalitions import every_of_size, random_of_sizes
from dupre.game.semivalues import Semivalue, log_binomial
from dupre.game.weight_matrix import (
    CERTAIN,
    Weights,
    additive_basis,
    check_samples,
    coalition_weights,
    collect_weights,
    distinct_coalitions,
)

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
    check_samples("regression", samples, min(6 * n + 2, 2**n - 1), n)
    s, p = np.arange(1, n), semivalue.chances(n)
    inside, outside = p[:-1] * n / s, p[1:] * n / (n - s)  # C(n, s) times both omegas
    mass = inside + outside
    listed, left = _outermost_sizes(mass, samples - 1)
    ends = np.array([[True] * n, [False] * n])
    whole = np.concatenate([every_of_size(n, int(size)) for size in s[listed]] or [ends[:0]])
    rows, m = [ends, whole], 0
    weight = [np.outer(np.ones(n), [p[-1], -p[0]]), coalition_weights(semivalue, whole)]
    each = mass * np.exp(-log_binomial(n, s.astype(np.float64)))
    fit = [np.zeros(2), each[whole.sum(axis=1) - 1]]
    rest = np.where(listed, 0.0, mass)
    if rest.any():
        m = left // 2
        half = random_of_sizes(n, rng.choice(s, m, p=rest / rest.sum()), rng)
        drawn = np.stack([half, ~half], axis=1).reshape(-1, n)
        at = drawn.sum(axis=1) - 1
        # One over the number of draws and the chance of a coalition or its complement, / C(n, s).
        each = rest.sum() / (m * (rest + rest[::-1]))[at]
        rows.append(drawn)
        weight.append(each * np.where(drawn.T, inside[at], -outside[at]))
        fit.append(each * mass[at])
    unit = np.append(np.full(2 + len(whole), CERTAIN), np.repeat(np.arange(m), 2))
    everything = np.concatenate(rows)
    # The ends first, then mixed sizes: some users evaluate the first ones only.
    turn = np.append([0, 1], 2 + rng.permutation(len(everything) - 2))
    weights = np.concatenate(weight, axis=1)
    counts = np.ones_like(weights, dtype=bool)  # also where the semivalue gives no weight
    everything, weights, unit = everything[turn], weights[:, turn], unit[turn]
    plain = collect_weights(everything, weights, unit, np.zeros_like(unit), counts=counts)
    levels = np.zeros((n + 1, 0))
    if m >= LEVELS_FROM * n:
        sizes = everything[2:].sum(axis=1)
        levels = _levels(np.bincount(sizes, minlength=n + 1), whole=s[listed])
    return _fit(plain, p, everything, np.concatenate(fit)[turn], levels)


def _outermost_sizes(mass: Floats, samples: int) -> tuple[Members, int]:
    """Sizes, from the ends inwards, whose coalitions all fit into their share; samples left."""
    n = len(mass) + 1
    listed = mass == 0  # sizes without weight are not drawn either
    for s in range(1, n // 2 + 1):
        pair = np.unique([s - 1, n - s - 1])
        count = comb(n, s) * int(np.sum(~listed[pair]))
        if not count:
            continue
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


def _fit(plain: Weights, p: Floats, drawn: Members, fit: Floats, levels: Floats) -> Weights:
    """Weights W (u - f) + values of f, with f the game that fits u best.

    f goes through the utilities of all owners, the first row drawn, and of none; `fit`, (d,),
    weighs the squared errors at the others. It has a worth of each owner and a combination h of
    the `levels` of sizes, (n + 1, k), which adds sum_c p_c (h(c + 1) - h(c)) to every value.
    """
    n, b = plain.W.shape
    _, column = distinct_coalitions(drawn)
    weight = np.bincount(column, fit, minlength=b + 1)[:b, None]
    share = plain.members.mean(axis=1)
    centred = plain.members - share[:, None]
    basis = np.append(centred, levels[plain.members.sum(axis=1)], axis=1)
    # Centred memberships sum to 0: `rcond` keeps rounding errors from being inverted.
    gram = basis.T @ (weight * basis)
    solved = np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ (weight * basis).T
    solved = np.append(solved[:n], levels @ solved[n:], axis=0)
    # What is fitted is u minus the straight line from no owner to all of them.
    control = np.append(solved, np.zeros((2 * n + 1, 1)), axis=1)
    control[:, column[0]] -= solved @ share
    control[:, b] -= solved @ (1 - share)
    control[:n, column[0]] += 1 / n
    control[:n, b] -= 1 / n
    control[n:, b] += 1.0
    of_levels = np.append(0.0, p) - np.append(p, 0.0)
    of_basis = np.append(np.eye(n), np.tile(of_levels, (n, 1)), axis=1)
    W = np.append(plain.W, plain.empty[:, None], axis=1)
    W = W + (of_basis - W @ additive_basis(plain.members)) @ control
    learned = n - 1 + levels.shape[1]
    return Weights(plain.members, W[:, :b], W[:, b], plain.entries, control, learned)
