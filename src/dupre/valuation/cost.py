"""How long a training takes by the rows of its coalition, fitted to the first design.

    seconds = fixed + growth * rows^power

The fit uses the first design alone: the largest and the smallest coalitions are in it, and nothing
that comes later changes it. Its seconds are kept in the store with the utilities, so a run that is
resumed fits the same numbers, and chooses the same coalitions.

Notation: m trainings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from dupre._types import Floats, Ints

# From half (models that stop early) to three (Gaussian processes, kernel machines at worst).
POWERS = np.linspace(0.5, 3.0, 11)
"""Growth that is tried."""


@dataclass(frozen=True)
class Cost:
    """Seconds of a training.

    Attributes:
        fixed: seconds that every training takes.
        growth: seconds of one row.
        power: of the number of rows.
    """

    fixed: float
    growth: float
    power: float

    def seconds(self, rows: Ints | int) -> Floats:
        """Of trainings on so many rows, (m,)."""
        return np.asarray(self.fixed + self.growth * np.asarray(rows, np.float64) ** self.power)


def fit_cost(rows: Ints, seconds: Floats) -> Cost | None:
    """The cost for which the relative errors of all trainings have the least sum of squares.

    Relative to what was measured: choices compare ratios of seconds, and a training that took far
    longer than its rows explain, such as the first one in a process, counts as at most one error.
    Nothing is negative, so that more rows never take less time.

    Args:
        rows: of each training, (m,).
        seconds: that it took, above zero, (m,).

    Returns:
        None without a training.
    """
    if not len(rows):
        return None
    if len(np.unique(rows)) == 1:  # nothing shows how seconds grow
        return Cost(float(np.median(seconds)), 0.0, 1.0)
    unit = float(np.max(rows))
    found = []
    for power in POWERS:
        columns = np.stack([np.ones(len(rows)), (rows / unit) ** power], axis=1)
        weights, error = nnls(columns / seconds[:, None], np.ones(len(rows)))
        found.append((error, float(power), weights))
    # Of equal fits, as where seconds do not grow at all, the smallest power: by rounding alone.
    _, power, (fixed, growth) = min(found, key=lambda one: (round(one[0], 9), one[1]))
    return Cost(float(fixed), float(growth) / unit**power, power)
