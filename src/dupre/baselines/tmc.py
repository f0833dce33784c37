"""Methods that train coalitions: truncated Monte Carlo Shapley, and leave one out."""

from __future__ import annotations

import numpy as np

from dupre._types import Floats, Ints
from dupre.baselines.cache import CachedUtility
from dupre.baselines.result import Baseline, from_permutations, from_values
from dupre.checks import finite, whole
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.utility.protocol import Utility


def tmc_shapley(
    utility: Utility, owners: Owners, *, permutations: int, tolerance: float, seed: int
) -> Baseline:
    """Shapley values as mean marginal contributions along random permutations, cut short.

    Ghorbani & Zou 2019, "Data Shapley", Algorithm 1.

    Owners join one by one; once the utility is within the tolerance of u(N), the remaining ones
    count as adding nothing. This assumes that the utility stays there. Only with tolerance 0,
    which is plain permutation sampling, are the values unbiased; the standard errors never include
    the bias.

    Args:
        utility: a ModelUtility or any callable(tuple of owner names) -> float; asked for every
            coalition once, and for () as the utility of no data.
        owners: to be valued.
        permutations: how many to draw, at least 2.
        tolerance: in units of utility; 0 cuts nothing.
        seed: of the permutations.
    """
    count = whole(permutations, "permutations", least=2)
    if (close := finite(tolerance, "tolerance")) < 0:
        raise InputError(f"tolerance must be at least 0, in units of utility, got {tolerance!r}")
    cached = CachedUtility(utility, owners)
    rng = np.random.default_rng(whole(seed, "seed", least=0))
    marginals = [_marginals(cached, rng.permutation(owners.n), close) for _ in range(count)]
    return from_permutations(owners, np.array(marginals), trained=cached.trained)


def _marginals(cached: CachedUtility, order: Ints, tolerance: float) -> Floats:
    """Marginal contributions of all owners, (n,), along one permutation."""
    marginals = np.zeros(len(order))
    all_in = cached(np.ones(len(order), dtype=bool))
    joined = np.zeros(len(order), dtype=bool)
    before = cached(joined)
    for owner in order:
        if abs(all_in - before) < tolerance:
            break
        joined[owner] = True
        after = cached(joined)
        marginals[owner] = after - before
        before = after
    return marginals


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
