"""Rows on directions, one after the other, and the linear algebra of vectors of data sets.

Notation: N rows, d columns, L directions, c distinct labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dupre._types import Floats, Ints
from dupre.data.encoding import Points
from dupre.game.blocks import split

AT_ONCE = 8
"""Directions that all rows are projected on at a time, or half as many as there are columns if that
is more: all of them may not fit into memory."""


@dataclass(frozen=True, eq=False)
class Projections:
    """Rows of owners on L directions, their features and labels apart.

    Features are divided by the square root of their total variance, unless they are raw.

    Attributes:
        points: of the owners.
        theta: directions of features, (d, L).
        labels: projections of the c distinct labels, (c, L).
        label: which of them each row has, (N,).
        raw: whether features are taken as they were given.
    """

    points: Points
    theta: Floats
    labels: Floats
    label: Ints
    raw: bool = False

    def along(self, eta: float) -> Iterator[Floats]:
        """Rows on one direction after the other, (N,) each, under feature weight eta.

        All of them together may not fit into memory.
        """
        columns, directions = self.theta.shape
        step = max(AT_ONCE, columns // 2)
        for some in split(directions, step):
            # Distinct rows only: within one product, equal rows can be rounded differently.
            features = self.points.project(self.theta[:, some], raw=self.raw)
            features /= 1.0 if self.raw else np.sqrt(self.points.variance or 1.0)
            for x, part in zip(features.T, self.labels.T[some], strict=True):
                yield (eta * x)[self.points.index] + ((1 - eta) * part)[self.label]


def classical_scaling(vectors: NDArray[np.floating]) -> Floats:
    """Coordinates, (c, c), that keep the Euclidean distances of c vectors.

    They are the symmetric root of the Gram matrix, which is unique. Eigenvectors are not: their
    sign, and their direction if eigenvalues are equal, depend on the rounding of a CPU.
    """
    centred = np.asarray(vectors - vectors.mean(axis=0), dtype=np.float64)
    scale, axes = spectrum(centred, least=1e-9)
    return np.asarray((axes * np.sqrt(scale)) @ axes.T)


def spectrum(centred: Floats, *, least: float) -> tuple[Floats, Floats]:
    """Eigenvalues above `least` of the largest, rising, and eigenvectors of the Gram matrix."""
    scale, axes = np.linalg.eigh(centred @ centred.T)
    keep = scale > least * max(scale[-1], 0.0)
    return scale[keep], axes[:, keep]


def unit_directions(dimension: int, count: int, seed: int) -> Floats:
    """Directions uniform on the unit sphere, (dimension, count)."""
    theta = np.random.default_rng([seed, 0]).standard_normal((dimension, count))
    return np.asarray(theta / np.linalg.norm(theta, axis=0))
