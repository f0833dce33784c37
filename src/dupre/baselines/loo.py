"""Leave one out: the oldest of all baselines."""

from __future__ import annotations

import numpy as np

from dupre.baselines.cache import CachedUtility
from dupre.baselines.result import Baseline, from_values
from dupre.data.owners import Owners
from dupre.utility.model import Utility


def leave_one_out(utility: Utility, owners: Owners) -> Baseline:
    """What is lost without each owner, u(N) - u(N without i), for n + 1 trainings (Cook 1977).

    Exact for what it measures, but not a fair share: of two owners with the same rows either can
    be left out, so both are worth almost nothing.

    Args:
        utility: a ModelUtility or any callable(tuple of owner names) -> float.
        owners: to be valued.
    """
    cached = CachedUtility(utility, owners)
    everyone = np.ones(owners.n, dtype=bool)
    without = ~np.eye(owners.n, dtype=bool)
    values = np.array([cached(everyone) - cached(row) for row in without])
    return from_values(owners, values, trained=cached.trained)
