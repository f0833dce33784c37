"""What an owner adds to groups of each size, as weighted sums of utilities.

Shapley values average over sizes. An owner may help small groups and harm large ones, or the other
way round; its value alone does not tell.

Notation: n owners, m coalitions.
"""

from __future__ import annotations

import numpy as np
from scipy.special import binom

from dupre._types import Floats, Members


def size_weights(members: Members) -> tuple[Floats, Floats]:
    """Weights of all coalitions, (m, n), and of no data in mean contributions.

    Returns:
        W, (n, n, m), and (n, n): W[i, s] @ u less what no data weigh is the mean of
        u(C + i) - u(C) over all C of s owners other than i.
    """
    m, n = members.shape
    sizes, W, empty = members.sum(axis=1), np.zeros((n, n, m)), np.zeros((n, n))
    empty[:, 0] = -1.0
    for i, inside in enumerate(members.T):
        for index, others, sign in (
            (np.flatnonzero(inside), sizes[inside] - 1, 1.0),
            (np.flatnonzero(~inside), sizes[~inside], -1.0),
        ):
            W[i, others, index] = sign / binom(n - 1, others)
    return W, empty
