"""Covariances of very many predicted coalitions through a few of them.

Notation: b predicted coalitions, l landmarks C among them, functionals W (f, b); P is the posterior
covariance of the z of the b coalitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from dupre._types import Floats, Ints, Members
from dupre.predictor.kernel_products import multiply

if TYPE_CHECKING:
    from dupre.predictor.posterior import Posterior

COUNT = 512
"""How many landmarks."""

SAMPLE = 2_048
"""Coalitions that stand for all in sums of what landmarks do not explain."""

MEASURED = 512
"""Coalitions on which it is measured how much of their covariances landmarks miss."""


@dataclass(frozen=True, eq=False)
class Landmarks:
    """P through the landmarks, and the rest of each coalition alone.

    P = P_BC P_CC^-1 P_CB + what remains once the landmarks C are known, of which the diagonal is
    kept (the fully independent training conditional, Snelson & Ghahramani 2006). It costs O(b l)
    kernel entries instead of O(b²). Landmarks are drawn by their weight in the functionals.

    What remains between different coalitions matters more with more evaluations: without it,
    standard deviations of values would be several percent too small after a few hundred.
    `covariance_of_rest` estimates it for the values; the choice of coalitions does without.

    Attributes:
        index: the landmarks among the b, (l,).
        explained: of the landmarks by the a evaluated coalitions, as `Posterior.explain`, (a, l).
        L: lower Cholesky factor of P_CC, (l, l).
        product: L^-1 P_CB (W du/dz)^T, (l, f).
    """

    index: Ints
    explained: Floats
    L: Floats
    product: Floats

    def explain(self, posterior: Posterior, index: Ints) -> tuple[Floats, Floats]:
        """L^-1 P of the landmarks with some coalitions, (l, m), and what remains.

        That is the variance of the z of each that no landmark explains, (m,).
        """
        prior = posterior.gp.kernel(posterior.inputs[self.index], posterior.inputs[index])
        P = prior - self.explained.T @ posterior.explain(index)
        through = solve_triangular(self.L, P, lower=True, check_finite=False)
        rest = posterior.variance_of(index) - np.einsum("lb,lb->b", through, through)
        return through, np.maximum(rest, 0.0)

    def cross(self, posterior: Posterior, index: Ints) -> Floats:
        """Covariance of the z of some coalitions with the functionals, (len(index), f)."""
        own = (posterior.W[:, index] * posterior.slope[index]).T
        through, rest = self.explain(posterior, index)
        return np.asarray(through.T @ self.product + rest[:, None] * own)

    def covariance_of_rest(self, posterior: Posterior) -> Floats:
        """The part of the covariance of the functionals that no landmark explains, (f, f).

        Both sums over all coalitions are estimated from samples: of the rest of each coalition
        alone, and of how much `cross` is off. For the second, covariances of MEASURED coalitions
        with the functionals are computed in full. The sum of both is a covariance: directions in
        which the estimate is negative count as zero.
        """
        W = posterior.W * posterior.slope
        index, times = posterior.sample
        _, rest = self.explain(posterior, index)
        alone = (W[:, index] * (times * rest)) @ W[:, index].T
        index, times = sample_by_weight(np.linalg.norm(posterior.W, axis=0), MEASURED)
        full = multiply(posterior.gp.kernel, posterior.inputs[index], posterior.inputs, W.T)
        full -= posterior.explain(index).T @ posterior.inner
        missed = (W[:, index] * times) @ (full - self.cross(posterior, index))
        scale, axes = np.linalg.eigh(alone + (missed + missed.T) / 2)
        return np.asarray((axes * np.maximum(scale, 0.0)) @ axes.T)


def find_landmarks(posterior: Posterior) -> Landmarks:
    """Landmarks of a posterior; most are the same once some of its coalitions are evaluated."""
    W = posterior.W
    weight = np.linalg.norm(W, axis=0)
    count = min(COUNT, int(np.count_nonzero(weight)))
    with np.errstate(divide="ignore"):  # without replacement: Efraimidis & Spirakis 2006
        turn = -np.log(_uniform(posterior.inputs.members)) / weight
    index = np.sort(np.argsort(turn, kind="stable")[:count])
    chosen, explained = posterior.inputs[index], posterior.explain(index)
    P, marks = posterior.gp.kernel(chosen, chosen), chosen.keep()
    prior = float(np.mean(np.diag(P)))
    P -= explained.T @ explained
    # Rounding is relative to the prior variance, of which little may remain.
    P[np.diag_indices_from(P)] += 1e-9 * float(np.mean(np.diag(P))) + 1e-13 * prior
    L = cholesky(P, lower=True, check_finite=False)
    product = multiply(posterior.gp.kernel, marks, posterior.inputs, (W * posterior.slope).T)
    product -= explained.T @ posterior.inner
    product = solve_triangular(L, product, lower=True, check_finite=False)
    return Landmarks(index, explained, L, product)


def _uniform(members: Members) -> Floats:
    """A number in (0, 1) for each of m coalitions, (m,): the same whatever stands beside it.

    The owners of a coalition are mixed as SplitMix64 does it (Steele et al. 2014).
    """
    owners = np.random.default_rng(0).integers(2**63, size=members.shape[1], dtype=np.uint64)
    bits = members.astype(np.uint64) @ owners
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(((bits >> np.uint64(11)) + 0.5) / 2.0**53)


def sample_by_weight(weight: Floats, count: int) -> tuple[Ints, Floats]:
    """Up to `count` indices in steps of equal weight, (b,), and for how many each stands, (m,).

    The sum of weight times anything is estimated without bias by that of the sample.
    """
    if len(weight) <= count:
        return np.arange(len(weight)), np.ones(len(weight))
    until = np.cumsum(weight)
    index = np.searchsorted(until, (np.arange(count) + 0.5) / count * until[-1])
    return index, until[-1] / count / weight[index]
