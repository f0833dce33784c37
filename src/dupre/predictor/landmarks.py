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
    from dupre.predictor.posterior import Posterior

COUNT = 512
"""How many landmarks."""

SAMPLE = 2_048
"""Coalitions that stand for all in sums of what landmarks do not explain."""


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
    """

    index: Ints
    L: Floats
    product: Floats

    def explain(self, posterior: Posterior, index: Ints) -> Floats:
        """L^-1 P of the landmarks with some coalitions, (l, len(index))."""
        P = posterior.covariance(self.index, index)
        return np.asarray(solve_triangular(self.L, P, lower=True, check_finite=False))

    def rest(self, posterior: Posterior, index: Ints, through: Floats | None = None) -> Floats:
        """Variance of the z of some coalitions that no landmark explains, (len(index),)."""
        through = self.explain(posterior, index) if through is None else through
        rest = posterior.variance_of(index) - np.einsum("lb,lb->b", through, through)
        return np.asarray(np.maximum(rest, 0.0))

    def cross(self, posterior: Posterior, index: Ints) -> Floats:
        """Covariance of the z of some coalitions with the functionals, (len(index), f)."""
        own = (posterior.W[:, index] * posterior.slope[index]).T
        through = self.explain(posterior, index)
        rest = self.rest(posterior, index, through)
        return np.asarray(through.T @ self.product + rest[:, None] * own)


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
    marks, product = posterior.inputs[index], np.zeros((count, len(W)))
    for columns in tiles(b):
        K = posterior.gp.kernel(marks, posterior.inputs[columns])
        product += K @ (W[:, columns] * posterior.slope[columns]).T
    product -= posterior.explain(index).T @ posterior.inner
    return Landmarks(index, L, solve_triangular(L, product, lower=True, check_finite=False))


def sample_by_weight(weight: Floats) -> tuple[Ints, Floats]:
    """Up to SAMPLE indices in steps of equal weight, (b,), and for how many each stands, (m,) each.

    The sum of weight times anything is estimated without bias by that of the sample.
    """
    if len(weight) <= SAMPLE:
        return np.arange(len(weight)), np.ones(len(weight))
    until = np.cumsum(weight)
    index = np.searchsorted(until, (np.arange(SAMPLE) + 0.5) / SAMPLE * until[-1])
    return index, until[-1] / SAMPLE / weight[index]
