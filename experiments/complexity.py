"""Measured cost of one distance between coalitions against the rows they hold (Table 4).

OTDD  exact optimal transport of POT between rows, with label distances
SW    `ot.sliced_wasserstein_distance` of POT: rows are projected and sorted for every pair
SSW   dupre: all pairs of the 255 coalitions of 8 owners, divided by their number; sorting included
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import ot
import pandas as pd

import dupre
from dupre.data.sketch import SketchCache
from dupre.game.coalitions import all_coalitions
from dupre.predictor.kernels import squared_euclidean

OWNERS, FEATURES, DIRECTIONS = 8, 20, 50
ROWS = (32, 64, 128, 256, 512, 1024, 2048)
"""Rows per owner; a coalition of the pair has four owners."""

MOST = {"OTDD": 512}
"""Rows per owner up to which a method is measured: beyond, a pair takes too long."""


def measure() -> pd.DataFrame:
    """Seconds per pair, and as multiples of those of SSW at the same number of rows."""
    found = []
    for rows in ROWS:
        owners = _owners(rows)
        for name, seconds_of in METHODS.items():
            if rows <= MOST.get(name, rows):
                seconds = float(np.median([seconds_of(owners) for _ in range(3)]))
                found.append({"method": name, "rows": 4 * rows, "seconds": seconds})
    frame = pd.DataFrame(found)
    ours = frame[frame["method"] == "SSW"].set_index("rows")["seconds"]
    return frame.assign(multiple=frame["seconds"] / frame["rows"].map(ours))


def growth(scores: pd.DataFrame, method: str) -> float:
    """The power of the rows with which the cost grows: slope between the largest four."""
    rows = scores[scores["method"] == method].sort_values("rows").tail(4)
    return float(np.polyfit(np.log(rows["rows"]), np.log(rows["seconds"]), 1)[0])


def _otdd(owners: dupre.Owners) -> float:
    (A, a), (B, b) = _pair(owners)
    start = time.process_time()
    cost = ot.dist(A, B, metric="euclidean")
    labels = [
        [
            ot.sliced_wasserstein_distance(A[a == i], B[b == j], n_projections=DIRECTIONS, p=1)
            for j in (0, 1)
        ]
        for i in (0, 1)
    ]
    ot.emd2([], [], cost + np.array(labels)[np.ix_(a, b)], numItermax=1_000_000)
    return time.process_time() - start


def _sliced(owners: dupre.Owners) -> float:
    (A, _), (B, _) = _pair(owners)
    start = time.process_time()
    ot.sliced_wasserstein_distance(A, B, n_projections=DIRECTIONS)
    return time.process_time() - start


def _sketched(owners: dupre.Owners) -> float:
    members = all_coalitions(OWNERS)
    start = time.process_time()
    vectors = SketchCache(owners, seed=0)(0.5, 2, members)
    squared_euclidean(vectors, vectors)
    return (time.process_time() - start) / (len(members) * (len(members) - 1) / 2)


METHODS: dict[str, Callable[[dupre.Owners], float]] = {
    "OTDD": _otdd,
    "SW": _sliced,
    "SSW": _sketched,
}


def _owners(rows: int) -> dupre.Owners:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=OWNERS * rows)
    X = rng.standard_normal((len(y), FEATURES)) + y[:, None]
    return dupre.Owners.from_arrays(X, y, np.arange(len(y)) % OWNERS)


def _pair(owners: dupre.Owners) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and labels of the first and of the last four owners."""
    first = np.arange(OWNERS) < 4
    return [owners.data_of(members) for members in (first, ~first)]
