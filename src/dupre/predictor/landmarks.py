"""Covariances of very many predicted coalitions through a few of them.

Notation: b predicted coalitions, l landmarks C among them, functionals W (f, b); P is the posterior
covariance of the z of the b coalitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from dupre._types import Floats, Ints
from dupre.predictor.kernel_inputs import tiles

if TYPE_CHECKING:
    from dupre.predictor.gp import Posterior

COUNT = 512
"""How many landmarks."""


@dataclass(frozen=True, eq=False)
class Landmarks:
    """P through the landmarks, and the rest of each coalition alone.

    P = P_BC P_CC^-1 P_CB + what remains once the landmarks C are known, of which the diagonal is
    kept (the fully independent training conditional, Snelson & Ghahramani 2006). It costs O(b l)
    kernel entries instead of O(b²). Landmarks are drawn by their weight in the functionals; the
    standard deviations of values are then right to about one percent (benchmarks/scale.py).

    Attributes:
        index: the landmarks among the b, (l,).
        L: lower Cholesky factor of P_CC, (l, l).
        product: L^-1 P_CB (W du/dz)^T, (l, f).
        rest: variance of each z that no landmark explains, (b,).
    """

    index: Ints
    L: Floats
    product: Floats
    rest: Floats

    def explain(self, P: Floats) -> Floats:
        """L^-1 P for covariances of the landmarks with k coalitions, (l, k)."""
        return np.asarray(solve_triangular(self.L, P, lower=True, check_finite=False))


def find_landmarks(posterior: Posterior) -> Landmarks:
    """Landmarks of a posterior, the same for the same weights."""
    W, b = posterior.W, len(posterior.inputs)
    weight = np.linalg.norm(W, axis=0)
    count = min(COUNT, int(np.count_nonzero(weight)))
    rng = np.random.default_rng(0)
    index = np.sort(rng.choice(b, count, replace=False, p=weight / weight.sum()))
    P = posterior.covariance(index, index)
    P[np.diag_indices_from(P)] += 1e-9 * float(np.mean(np.diag(P)))  # rounding
    L = cholesky(P, lower=True, check_finite=False)
    product, rest = np.zeros((count, len(W))), np.empty(b)
    for columns in tiles(b):
        through = posterior.covariance(index, np.arange(b)[columns])
        through = solve_triangular(L, through, lower=True, check_finite=False, overwrite_b=True)
        product += through @ (W[:, columns] * posterior.slope[columns]).T
        rest[columns] = posterior.variance[columns] - np.einsum("lb,lb->b", through, through)
    return Landmarks(index, L, product, np.maximum(rest, 0.0))
