"""What each owner adds to groups of 0, 1, 2, ... others, with its uncertainty.

Each size is a semivalue of its own, whose coalitions are few: all of them up to 12 owners, and a
sample above that, whose error is part of the intervals. It costs no training.

Notation: n owners, b coalitions with weights W (n, b), p coalitions with a position.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dupre._types import Floats
from dupre.game import estimators
from dupre.game.semivalues import MOST_SIZES, group_sizes, joining
from dupre.game.weights import Weights
from dupre.predictor.calibration import widening
from dupre.result.covariances import roots
from dupre.result.records import Z95
from dupre.valuation.duplicates import merge
from dupre.valuation.knowledge import Knowledge
from dupre.valuation.observations import widen_by_repeats
from dupre.valuation.validation_rows import Deviations, deviations

SAMPLES = 512
"""Coalitions drawn for each size if not all are taken; 10n if that is more."""


def contributions_by_size(known: Knowledge) -> pd.DataFrame:
    """Mean contribution of each owner to groups of each size.

    The columns are `owner`, `others` (in the group), `value`, and `low` and `high`, between which
    it lies with 95 %, all sources of uncertainty included. Of more than 12 owners 12 sizes are
    taken. Sizes below the smallest group that was evaluated are left out: nothing shows how
    utilities fall off there. Empty if values do without the predictor because it failed its check.
    """
    names, seen = known.question.owners.names, known.observations
    smallest = int(seen.members[seen.recorded].sum(axis=1).min())
    sizes = [s for s in group_sizes(len(names)) if s >= smallest or s + 1 == smallest == 1]
    if not sizes or known.check_failed():
        return pd.DataFrame(columns=["owner", "others", "value", "low", "high"])
    off = deviations(known)
    found = [_contributions_to(known, int(others), off) for others in sizes]
    mean, half = np.array(found).transpose(1, 2, 0).reshape(2, -1)
    return pd.DataFrame(
        {
            "owner": [name for name in names for _ in sizes],
            "others": np.tile(sizes, len(names)),
            "value": mean,
            "low": mean - half,
            "high": mean + half,
        }
    )


def _weights(known: Knowledge, others: int) -> Weights:
    """Of the coalitions that enter what owners add to so many others."""
    n, semivalue = known.question.owners.n, joining(others)
    every = known.question.estimator is None and not known.unknown.size
    if n <= MOST_SIZES or every:
        found = estimators.exact(semivalue, n)
        counts = found.W.any(axis=0)
        return Weights(found.members[counts], found.W[:, counts], found.empty)
    return estimators.regression(semivalue, n, max(SAMPLES, 10 * n), known.rng(11, others))


def _contributions_to(
    known: Knowledge, others: int, off: Deviations | None
) -> tuple[Floats, Floats]:
    """What each owner adds to so many others, and half the width of its interval, (n,) each."""
    merged, observations = merge(_weights(known, others), known.identity), known.observations
    members, W, empty = merged.weights.members, merged.weights.W, merged.weights.empty
    at, counts = observations.positions_or_none(members), merged.counts
    utilities = np.append(observations.utilities, np.nan)[at]
    recorded = counts & ~np.isnan(utilities)
    unknown = np.flatnonzero(counts & ~recorded)
    M = np.zeros((len(W), len(observations)))
    M[:, at[recorded]] = W[:, recorded]
    variance = M**2 @ widen_by_repeats(known.training_variances(), known.repeated)
    if unknown.size:
        learned = known.predictor()
        posterior = learned.posterior(known.features_of(members[unknown]), W[:, unknown])
        utilities[unknown] = posterior.mean
        own = np.diag(posterior.functional_covariance()) * widening(learned.gp) ** 2
        variance = variance + own + learned.outlier_variance * np.sum(posterior.W**2, axis=1)
        M[:, known.fitted] += posterior.observed_weights
    utilities[~counts] = 0.0  # without a weight
    sampling = merged.sampling_covariance(utilities, known.empty, np.zeros(len(utilities)))
    variance = (roots(variance) + roots(np.diag(sampling))) ** 2  # DUPRE Remark 1
    if off is not None:
        used = observations.recorded
        change = M[:, used] @ off.evaluated[used] + np.outer(empty, off.empty)
        variance = variance + np.mean(change**2, axis=1)
    equal = known.identity.equal
    return equal(W @ utilities + empty * known.empty), equal(Z95 * roots(variance))
