"""Short references of methods that no package offers, each under its formula, and fixed schedules.

All are methods of `dupre.benchmark`: callables of a game, a budget and a seed. What they evaluate
is known from the start.

Notation: n owners, m coalitions as boolean rows, (m, n), b of them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

import dupre
from dupre import kernels
from dupre.benchmark import CountedGame, Estimate
from dupre.benchmark.methods import of_valuation
from dupre.game.coalitions import random_of_sizes, sample_of_size, to_names
from dupre.game.weights import distinct_coalitions
from dupre.valuation.question import AnyKernel

Schedule = Callable[[int, int, np.random.Generator], np.ndarray]
"""Of n, a budget and a generator: the coalitions to evaluate, up to the budget, in their order."""

DRAWN = 64
"""Random coalitions for each of the budget, so that enough are different."""


def fixed(n: int, budget: int, rng: np.random.Generator) -> np.ndarray:
    """All, singles, all but one, complement pairs of half size, then pairs of any size."""
    alone = np.eye(n, dtype=bool)
    half = sample_of_size(n, n // 2, min(budget, comb(n, n // 2)), rng)
    rest = rng.random((DRAWN * budget, n)) < 0.5
    ends = [np.ones((1, n), dtype=bool), alone, ~alone]
    return distinct_coalitions(np.concatenate([*ends, _paired(half), _paired(rest)]))[0][:budget]


def by_leverage(n: int, budget: int, rng: np.random.Generator) -> np.ndarray:
    """All, then complement pairs of sizes drawn uniformly.

    The leverage of a coalition of size s is 1 / C(n, s) up to a constant (Musco & Witter 2025,
    Lemma 3.2), so that every size is drawn as often.
    """
    drawn = random_of_sizes(n, rng.integers(1, n, DRAWN * budget), rng)
    everyone = np.ones((1, n), dtype=bool)
    return distinct_coalitions(np.concatenate([everyone, _paired(drawn)]))[0][:budget]


def _paired(rows: np.ndarray) -> np.ndarray:
    """Each coalition followed by its complement, (2m, n)."""
    return np.stack([rows, ~rows], axis=1).reshape(-1, rows.shape[1])


def by_schedule(
    game: CountedGame,
    budget: int,
    seed: int,
    *,
    schedule: Schedule,
    kernel: AnyKernel | None = None,
) -> Estimate:
    """A Gaussian process on a schedule; dupre's predictor without a kernel."""
    rows = schedule(game.n, budget, np.random.default_rng(seed))
    valuer = dupre.Valuer(
        game.owners, empty=game.empty, semivalue=game.semivalue, kernel=kernel, seed=seed
    )
    for row, utility in zip(rows, game(rows), strict=True):
        valuer.record(to_names(row, game.owners.names), float(utility))
    return of_valuation(valuer.interim_values())


MEMBERSHIP = kernels.Prior(1.0 * kernels.Membership() + 1.0 * kernels.Linear(), plain=True)
"""A plain process: nothing averaged, bent or widened."""

SIZE = kernels.Prior(1.0 * kernels.Size())
"""Rows alone. Not plain: without noise it is sure that owners of as many rows have one value."""


def du_shapley(game: CountedGame, budget: int, seed: int) -> np.ndarray | None:
    """DU-Shapley (Garrido Lucero et al. 2024, arXiv 2306.02071), at the level of owners.

    phi_i = 1/n sum_{k=0}^{n-1} w(k mu_i + n_i) - w(k mu_i), where w(r) is the utility of r rows,
    n_i the rows of i and mu_i the mean of those of the others. The paper trains on random rows of
    others, which is no coalition. Here w goes through the mean utility of the coalitions of each
    size along random orders, linear in between.
    """
    if game.semivalue is not dupre.shapley:
        return None
    n, rows, rng = game.n, game.owners.rows, np.random.default_rng(seed)
    orders = np.argsort(rng.random((DRAWN * budget, n)), axis=1)
    ranks = np.argsort(orders, axis=1)
    along = (ranks[:, None, :] <= np.arange(n)[:, None]).reshape(-1, n)  # first the whole first
    chosen = distinct_coalitions(along)[0][:budget]
    utilities, sizes = game(chosen), chosen.sum(axis=1)
    each = [sizes == s for s in np.unique(sizes)]
    known = [(0.0, game.empty), *((np.mean(chosen[s] @ rows), utilities[s].mean()) for s in each)]
    totals, w = np.array(known).T
    others = np.outer(np.arange(n), (rows.sum() - rows) / (n - 1))
    return np.mean(np.interp(others + rows, totals, w) - np.interp(others, totals, w), axis=0)


def kernel_banzhaf(game: CountedGame, budget: int, seed: int) -> np.ndarray | None:
    """Kernel Banzhaf (Liu et al. 2024, arXiv 2410.08336): least squares on uniform pairs.

    The Banzhaf values are the slopes of the regression of u(C) on +1/2 for members and -1/2 for
    others over all coalitions (Hammer & Holzman 1992). Few that are drawn uniformly, each with its
    complement, stand for all; of too few the slopes of least norm are taken.
    """
    if game.semivalue is not dupre.banzhaf:
        return None
    drawn = np.random.default_rng(seed).random((DRAWN * budget, game.n)) < 0.5
    chosen = distinct_coalitions(_paired(drawn))[0][:budget]
    rows = np.append(chosen, np.zeros((1, game.n), dtype=bool), axis=0)  # no data are known too
    design = np.column_stack([np.ones(len(rows)), rows - 0.5])
    return np.linalg.lstsq(design, game(rows))[0][1:]
