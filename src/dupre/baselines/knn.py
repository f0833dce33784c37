"""KNN-Shapley: exact Shapley values of rows for a nearest-neighbour model.

Jia et al. 2019, "Efficient task-specific data valuation for nearest neighbor algorithms".

The utility of a set S of rows for one validation row (x, t), with its rows ordered by distance to
x and only the first K of them counted, is

    classification   1/K  sum of [y = t]
    regression       - (1/K  sum of y  -  t)^2      y and t measured from the mean of all y

and the mean of this over validation rows. A sum of fewer than K rows is divided by K too.

Notation: N rows, m validation rows, K neighbours; rows are numbered from 1, the nearest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from dupre._types import Floats
from dupre.baselines.baseline import Baseline, encode_together, from_values
from dupre.checks import whole
from dupre.data.owners import Embed, Owners

BLOCK = 2**22
"""Distances held at once."""


def knn_shapley(
    owners: Owners, *, validation: Any, neighbours: int = 5, embed: Embed | None = None
) -> Baseline:
    """Exact Shapley values of all rows for a K-nearest-neighbour model, summed per owner.

    The players are rows, not owners: an owner's value is the sum over its rows, which is not the
    Shapley value of the owner as one player. It is a value for any model only as far as a
    nearest-neighbour model on the standardised columns resembles that model.

    Takes O(N log N) per validation row and trains nothing. Rows equally far from a validation row
    are ordered by their targets, so that equal rows are worth the same whoever holds them.

    Args:
        owners: to be valued.
        validation: (X, y), or a frame with the owners' target column.
        neighbours: K.
        embed: the callable the owners were made with, if they were.
    """
    k = whole(neighbours, "neighbours", least=1)
    together = encode_together(owners, validation, embed)
    by_target = np.argsort(np.unique(owners.y, return_inverse=True)[1], kind="stable")
    held, holder = together.held[by_target], owners.owner[by_target]
    classes = owners.task == "classification"
    middle = 0.0 if classes else owners.y.mean()
    y = owners.y[by_target] if classes else owners.y[by_target] - middle
    totals = np.zeros(owners.n)
    m = len(together.asked)
    for rows in np.array_split(np.arange(m), -(-m * len(y) // BLOCK)):
        asked = together.values[together.asked[rows]]
        distances = euclidean_distances(asked, together.values, squared=True)[:, held]
        order = np.argsort(distances, axis=1, kind="stable")
        t = together.targets[rows, None]
        shares = (
            match_shares((y[order] == t).astype(np.float64), k)
            if classes
            else regression_shares(y[order], t - middle, k)
        )
        totals += np.bincount(holder[order].ravel(), shares.ravel(), minlength=owners.n)
    return from_values(owners, totals / m, trained=0)


def match_shares(match: Floats, k: int) -> Floats:
    """Shapley values of rows, (m, N), whose matches with the target, (m, N), add 1/k each.

    Jia et al. 2019, Theorem 1; their min(K, N) / N is kept for the last row, so that N may be
    smaller than K.
    """
    step = (match - _next_row(match)) * _chance_to_count(match.shape[1], k) / k
    return _sum_from_end(step)


def regression_shares(y: Floats, t: Floats, k: int) -> Floats:
    """Shapley values of rows with targets y, (m, N), for predicting t, (m, 1).

    As Jia et al. 2019, Theorem 6, with u(nothing) = -t^2 where they have 0. Rows i and i + 1 take
    the same place among the neighbours, next to the same others with sum Y, so that

        s_i - s_{i+1} = E [counts] (y_i - y_{i+1}) (2 t / K - (y_i + y_{i+1} + 2 Y) / K^2)

    over coalitions without them whose size is uniform: then so is the number of members among
    any of the others. For i = N, y_{N+1} = 0.
    """
    size = y.shape[1]
    chance = _chance_to_count(size, k)
    i = np.arange(1, size + 1)
    first = np.minimum(k, i)
    nearer = first * (first - 1) / (2 * i * np.maximum(i - 1, 1))  # P(i counts, a nearer one is in)
    last = np.clip(i - 2, 0, k - 1)
    farther = last * (last + 1) / (2 * np.maximum((i - 1) * (i - 2), 1))  # P(a farther one counts)
    others = (np.cumsum(y, axis=1) - y) * nearer + _next_row(_next_row(_sum_from_end(y * farther)))
    after = _next_row(y)
    step = (y - after) * (2 * t * chance / k - ((y + after) * chance + 2 * others) / k**2)
    return _sum_from_end(step)


def _chance_to_count(size: int, k: int) -> Floats:
    """Probability that fewer than k of the i - 1 nearer rows are in, (size,)."""
    i = np.arange(1, size + 1)
    return np.asarray(np.minimum(k, i) / i)


def _next_row(array: Floats) -> Floats:
    """The entry after each, (m, N), 0 for the last."""
    return np.hstack([array[:, 1:], np.zeros((len(array), 1))])


def _sum_from_end(array: Floats) -> Floats:
    return np.asarray(np.cumsum(array[:, ::-1], axis=1)[:, ::-1])
