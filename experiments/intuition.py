"""The paper's Figure 2: owners with like data play like parts, whatever coalition they join.

The paper draws points on a circle and states two numbers, k(C + l, C + l') = 0.99 and k(C + l, C +
j) = 0.19, for owners l and l' with like data and j with other data. It states neither the points
nor gamma. Here l and l' hold points of the same quarter of the circle, j of the opposite one, and C
of the two between; classes are inside and outside. gamma is the one at which the second number is
the paper's, so that the first alone is measured.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import dupre
from dupre.data.sketch import SketchCache
from dupre.predictor.kernels import Features

PRINTED = 0.19
"""k(C + l, C + j)."""

ROWS, SEEDS = 50, range(10)
START = {"C": 0.25, "C'": 0.75, "l": 0.0, "l'": 0.0, "j": 0.5}
"""Where the quarter of each owner begins, in turns of the circle."""


def measure() -> pd.DataFrame:
    """k(C + l, C + l') of each seed at this gamma."""
    rows = [{"seed": seed, "l and l'": similarity(seed), "l and j": PRINTED} for seed in SEEDS]
    return pd.DataFrame(rows)


def similarity(seed: int) -> float:
    """k(C + l, C + l') where k(C + l, C + j) is the paper's number."""
    owners = owners_of(seed)
    with_one = [[name in ("C", "C'", one) for name in owners.names] for one in ("l", "l'", "j")]
    features = Features(np.array(with_one), owners.rows, SketchCache(owners, seed=seed))
    # -gamma d(l, j) = log(0.19), and gamma scales every distance alike.
    distance = dupre.kernels.paper(p=2).kernel.distances(features, features)
    return float(PRINTED ** (distance[0, 1] / distance[0, 2]))


def owners_of(seed: int) -> dupre.Owners:
    """Points at random places of each owner's quarter, inside (class 0) and outside (class 1)."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(list(START), ROWS)
    turn = np.array([START[name] for name in owner]) + rng.random(len(owner)) / 4
    y = rng.integers(2, size=len(owner))
    radius = 0.5 + 0.5 * y + 0.05 * rng.standard_normal(len(owner))
    X = radius[:, None] * np.column_stack([np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)])
    return dupre.Owners.from_arrays(X, y, owner)
