"""What each owner adds to groups of 0, 1, 2, ... others, with its uncertainty.

Notation: n owners, b coalitions that count; G (f, b) weights of f = n n mean contributions.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dupre._types import Floats
from dupre.game.group_sizes import size_weights
from dupre.predictor.calibration import widening
from dupre.result.covariances import roots
from dupre.result.records import Z95
from dupre.valuation.knowledge import Knowledge
from dupre.valuation.validation_rows import deviations

MOST_OWNERS = 12
"""Owners up to which contributions by group size are computed: there are n² of them."""


def contributions_by_size(known: Knowledge) -> pd.DataFrame:
    """Mean contribution of each owner to groups of each size.

    The columns are `owner`, `others` (in the group), `value`, and `low` and `high`, between which
    it lies with 95 %, all sources of uncertainty included. Empty if there are too many owners, or
    if values come from a sample of coalitions.
    """
    names, everyone = known.question.owners.names, known.merged.by_name.members
    n = len(names)
    if n > MOST_OWNERS or known.question.estimator is not None or known.check_failed():
        return pd.DataFrame(columns=["owner", "others", "value", "low", "high"])
    W, empty = size_weights(everyone)
    G = np.zeros((known.b, n * n))
    np.add.at(G, known.merged.column, W.reshape(n * n, -1).T)
    G = known.identity.average(G.T.reshape(n, -1)).reshape(n * n, -1)
    mean, variance = _mean_and_variance(known, G, empty.ravel())
    half = Z95 * roots(variance)
    owner, others = np.divmod(np.arange(n * n), n)
    return pd.DataFrame(
        {
            "owner": [names[i] for i in owner],
            "others": others,
            "value": mean,
            "low": mean - half,
            "high": mean + half,
        }
    )


def _mean_and_variance(known: Knowledge, G: Floats, empty: Floats) -> tuple[Floats, Floats]:
    """Of the sums G @ utilities + empty * u(no data), (f,) each."""
    recorded, unknown = known.recorded, known.unknown
    mean = G[:, recorded] @ known.utilities[recorded] + empty * known.empty
    variance = G[:, recorded] ** 2 @ known.training_variances()[: known.b][recorded]
    M = np.zeros((len(G), len(known.observations)))
    M[:, : known.b][:, recorded] = G[:, recorded]
    if unknown.size:
        learned = known.predictor()
        posterior = learned.posterior(known.features(unknown), G[:, unknown])
        mean = mean + posterior.W @ posterior.mean
        own = np.diag(posterior.functional_covariance()) * widening(learned.gp) ** 2
        variance = variance + own + learned.outlier_variance * np.sum(posterior.W**2, axis=1)
        M[:, known.fitted] += posterior.observed_weights
    if (off := deviations(known)) is not None:
        change = M @ off.evaluated + np.outer(empty, off.empty)
        variance = variance + np.mean(change**2, axis=1)
    return mean, variance
