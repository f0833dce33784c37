"""Utilities that can only be certain numbers at equal distances, such as accuracies on m rows.

Two things follow. Rounding to the lattice is noise that no kernel explains. And a utility that is
expected between two numbers of the lattice is one of them or lies farther away, however sure a
process is of the number between: where utilities jump, as in a game of votes, a smooth process can
be sure of what is impossible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dupre._types import Floats

LEAST_STEPS = 6
"""Fewest differences of distinct utilities from which a common step is concluded."""


@dataclass(frozen=True)
class Lattice:
    """The numbers origin + k * step for whole k; all numbers if the step is 0."""

    origin: float = 0.0
    step: float = 0.0

    @property
    def noise(self) -> float:
        """Variance of rounding to the lattice."""
        return self.step**2 / 12

    def least_variance(self, mean: Floats) -> Floats:
        """Of a utility with each of these means, (m,): it is the number below or the one above."""
        if self.step == 0:
            return np.zeros_like(mean)
        above = np.mod((mean - self.origin) / self.step, 1.0)
        return np.asarray(self.step**2 * above * (1 - above))


NO_LATTICE = Lattice()
"""Of a continuous metric."""


def find_lattice(utilities: Floats) -> Lattice:
    """The lattice that utilities, (a,), show."""
    return Lattice(float(utilities[0]), lattice_step(utilities))


def lattice_step(utilities: Floats) -> float:
    """The step of which all differences of utilities, (a,), are multiples; 0 if there is none.

    An accuracy on m rows is a multiple of 1 / m: rounding to it is noise with a variance of
    step² / 12 that no kernel can explain. Utilities of a continuous metric have no common step, and
    no two of them are equal. A few numbers could have a common step by chance, so they get none.
    """
    size = float(np.abs(utilities).max(initial=0.0))
    distinct = np.unique(np.round(utilities / (size or 1.0), 13)) * size
    differences = np.diff(distinct)
    if not differences.size or (len(distinct) == len(utilities) and len(differences) < LEAST_STEPS):
        return 0.0
    spread = float(distinct[-1] - distinct[0])
    if spread < 1e-6 * size:  # the rounding of floats would look like a lattice
        return 0.0
    step = 0.0
    for difference, reach in zip(differences, distinct[1:] - distinct[0], strict=True):
        step, rest = max(step, float(difference)), min(step, float(difference))  # Euclid's
        while rest > 1e-6 * spread:
            step, rest = rest, step % rest
            rest = 0.0 if step - rest < 1e-6 * spread else rest  # only rounding is left
        # All so far are multiples of the step: it is known best from the farthest one.
        step = float(reach) / round(float(reach) / step)
    return step if step > 1e-4 * spread else 0.0
