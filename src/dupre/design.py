"""Which coalitions to train: first the heaviest, then those the posterior asks for.

Under Shapley every coalition size carries the same total weight, so the n single owners together
weigh as much as all C(n, n/2) middle coalitions. Coalitions drawn uniformly almost never are the
heavy ones; taking the heaviest first changes the result more than any kernel does.
"""

from __future__ import annotations

from math import comb

import numpy as np

from dupre.coalitions import keys, sample_of_size
from dupre.gp import Posterior
from dupre.semivalues import Semivalue
from dupre.typing import Floats, Ints, Members


def first_design(semivalue: Semivalue, n: int, count: int, rng: np.random.Generator) -> Members:
    """Up to `count` coalitions, (., n): all owners first, then the heaviest per coalition.

    Sizes are taken by the weight of one coalition in the values of all owners. Sizes s and n - s
    of equal weight are taken together in complement pairs; within a size the order is random.
    Coalitions without weight are never taken.
    """
    weight = _weight_of_size(semivalue, n)
    design: dict[bytes, Members] = {}

    def add(rows: Members) -> None:
        design.update(zip(keys(rows), rows, strict=True))

    add(np.ones((1, n), dtype=bool))
    for size in sorted(range(1, n), key=lambda s: (-weight[s], s)):
        if len(design) >= count or weight[size] == 0:
            break
        needed = min(count - len(design), comb(n, size))
        rows = sample_of_size(n, size, needed, rng)
        if np.isclose(weight[size], weight[n - size], rtol=1e-9, atol=0.0):
            rows = np.stack([rows, ~rows], axis=1).reshape(-1, n)
        add(rows)
    return np.array(list(design.values()))[:count]


def _weight_of_size(semivalue: Semivalue, n: int) -> Floats:
    """Norm over owners of the weights of one coalition of size s = 0 .. n, (n + 1,)."""
    omega = np.exp(semivalue.log_weights(n))
    s = np.arange(n + 1)
    inside, outside = np.insert(omega, 0, 0.0), np.append(omega, 0.0)
    return np.asarray(np.sqrt(s * inside**2 + (n - s) * outside**2))


def active_batch(posterior: Posterior, candidates: Ints, count: int) -> Ints:
    """Up to `count` of the candidates that most reduce the summed variance of the functionals.

    Greedy (DUPRE Alg. 2) for all functionals at once. Evaluating g reduces the variance by
    ||cov(z_g, functionals)||² / (var z_g + noise); after a pick the covariances lose a rank-one
    term. O(c (a + f)) per pick with c candidates, where Alg. 2 as printed pays O(c a²).

    Args:
        posterior: of the coalitions not evaluated and the functionals to pin down.
        candidates: indices into the predicted coalitions, (c,).
        count: how many to pick.
    """
    cross, variance = posterior.cross(candidates), posterior.variance[candidates]
    noise = posterior.gp.noise
    gain = np.einsum("cf,cf->c", cross, cross) / (variance + noise)
    # Most picks are among the best of the start: their covariances in one matrix product.
    likely = np.argsort(-gain, kind="stable")[: 4 * count]
    rows = posterior.covariance(candidates[likely], candidates)
    covariances = dict(zip(likely.tolist(), rows, strict=True))
    picks: list[int] = []
    removed: list[Floats] = []  # square roots of the rank-one terms, (c,) each
    for _ in range(min(count, len(candidates))):
        gain = np.einsum("cf,cf->c", cross, cross) / (variance + noise)
        gain[picks] = -1.0
        g = int(np.argmax(gain))
        picks.append(g)
        if g not in covariances:
            covariances[g] = posterior.covariance(candidates[[g]], candidates)[0]
        covariance = covariances[g]
        for term in removed:
            covariance = covariance - term[g] * term
        root = np.sqrt(variance[g] + noise)
        cross = cross - np.outer(covariance, cross[g]) / root**2
        variance = np.maximum(variance - (covariance / root) ** 2, 0.0)
        removed.append(covariance / root)
    return candidates[picks]
