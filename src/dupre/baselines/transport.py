"""Optimal transport between two sets of rows of equal weights, by POT (extra `baselines`).

Notation: M (N, m) costs between N rows and m others; f (N,) and g (m,) the dual potentials.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from dupre._types import Floats
from dupre.errors import InputError

ITERATIONS = 10_000
"""Of Sinkhorn's algorithm at most."""


def load_pot() -> Any:
    """The module `ot`; InputError if the extra is not installed."""
    try:
        import ot
    except ImportError as cause:
        raise InputError(
            "optimal transport needs the package POT; pip install 'dupre[baselines]'"
        ) from cause
    return ot


def transport_cost(M: Floats, entropy: float | None) -> float:
    """Least <P, M> of all plans P; with entropy, of <P, M> + entropy KL(P | independence)."""
    if entropy is None:
        return float(load_pot().emd2([], [], M, numItermax=10**7))
    f, g = entropic_potentials(M, entropy)
    return float(f.mean() + g.mean())


def entropic_potentials(M: Floats, entropy: float) -> tuple[Floats, Floats]:
    """The dual potentials f, (N,), and g, (m,), unique up to a constant (Sinkhorn; Cuturi 2013).

    Raises:
        InputError: the entropy is too small for the algorithm to converge.
    """
    # Subtracted here and added to the potentials below: no row of exp(-M / entropy) is all zero.
    low = M.min(axis=1, keepdims=True)
    left = (M - low).min(axis=0, keepdims=True)
    N, m = M.shape
    a, b = np.full(N, 1 / N), np.full(m, 1 / m)
    options = {"numItermax": ITERATIONS, "stopThr": 1e-7, "log": True, "warn": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows, which the check below finds
        plan, log = load_pot().sinkhorn(a, b, M - low - left, entropy, **options)
    off = np.abs(plan.sum(axis=0) / b - 1).max()
    if not off < 1e-3:
        raise InputError(
            f"optimal transport did not converge in {ITERATIONS:,} iterations; raise entropy="
        )
    f = entropy * np.log(log["u"] / a) + low[:, 0]
    return np.asarray(f), np.asarray(entropy * np.log(log["v"] / b) + left[0])
