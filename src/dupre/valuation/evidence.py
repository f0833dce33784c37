"""What can be checked about a valuation: utilities, predictions, and how the data are related.

Every prediction here is of a coalition that the predictor was not shown: each evaluated one is
predicted from the others, which follows from the Cholesky factor (RW06 Eq. 5.12).

Notation: m coalitions, one per row of `members`, (m, n).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.spatial.distance import cdist

from dupre._types import Floats, Ints, Members
from dupre.data.owners import Owners
from dupre.game.coalitions import to_names
from dupre.predictor.calibration import std_of_a_training
from dupre.predictor.gp import EXACT_UP_TO
from dupre.valuation.knowledge import Knowledge

MOST_PREDICTED = 256
"""Coalitions not evaluated that are shown as a sample of all."""

ETA = 0.5
"""Weight of features against targets in distances between owners: both alike."""


def predictions(knowledge: Knowledge, members: Members) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the utilities of any coalitions, (m,) each.

    It is that of a training: noise, overconfidence and the chance of outliers are included.
    """
    learned = knowledge.predictor()
    mean, std = learned.predict(knowledge.features_of(members))
    return mean, std_of_a_training(learned, std)


def observations_and_predictions(knowledge: Knowledge, owners: Owners) -> pd.DataFrame:
    """Every evaluated coalition and a sample of the others: see `records.Evidence`."""
    observations = knowledge.observations
    known = np.flatnonzero(observations.recorded)
    sizes = observations.members.sum(axis=1)
    others = _some_of_each_size(knowledge.unknown, sizes[knowledge.unknown])
    index = np.append(known, others)
    predicted, std = np.full(len(index), np.nan), np.full(len(index), np.nan)
    if others.size:
        of_known, of_others = _predict_without(knowledge, known), _predict(knowledge, others)
        predicted, std = (np.append(a, b) for a, b in zip(of_known, of_others, strict=True))
    return pd.DataFrame(
        {
            "members": [to_names(row, owners.names) for row in observations.members[index]],
            "size": sizes[index],
            "rows": observations.members[index] @ owners.rows,
            "utility": observations.utilities[index],
            "predicted": predicted,
            "std": std,
        }
    )


def distances(knowledge: Knowledge, n: int) -> Floats:
    """SW_1 between the rows of any two of n owners, (n, n); NaN if their rows are not known."""
    if knowledge.question.owners.points is None:
        return np.full((n, n), np.nan)
    vectors = knowledge.sketch(ETA, 1, np.eye(n, dtype=bool))
    # Vectors have 32 bits, and so do distances: further digits would only fill a result.
    return np.asarray(cdist(vectors, vectors, "cityblock").astype(np.float32), dtype=np.float64)


def shared_rows(owners: Owners) -> Floats:
    """Part of the row owner's rows that the column owner holds too, targets included, (n, n).

    Rows are compared as they were given: encoded ones may be equal where these are not. Those whose
    contents cannot be compared are taken to be all different.
    """
    # 64 of the 128 bits are enough to count, and sorted faster.
    kinds, kind = np.unique(owners.row_contents[:, 0], return_inverse=True)
    where = owners.owner, kind.reshape(-1)
    held = sparse.csr_array((np.ones(len(owners.y)), where), shape=(owners.n, len(kinds)))
    return np.asarray((held @ (held > 0).T).toarray() / owners.rows[:, None])


def _predict(knowledge: Knowledge, index: Ints) -> tuple[Floats, Floats]:
    """Predictions of some unknown coalitions, (m,) each: those that the values are made of."""
    unknown = knowledge.unknown
    if len(unknown) > EXACT_UP_TO:
        return predictions(knowledge, knowledge.observations.members[index])
    posterior, at = knowledge.averaged_posterior(), np.searchsorted(unknown, index)
    return posterior.mean[at], std_of_a_training(knowledge.predictor(), posterior.std[at])


def _predict_without(knowledge: Knowledge, known: Ints) -> tuple[Floats, Floats]:
    """Predictions of evaluated coalitions from the others, (m,) each."""
    learned = knowledge.predictor()
    mean, variance = learned.gp.leave_one_out()
    utility, slope = learned.gp.back(mean, variance, learned.gp.inputs)
    std = std_of_a_training(learned, np.sqrt(variance) * slope)
    fitted = knowledge.fitted
    rest = np.setdiff1d(known, fitted)  # outliers, and check coalitions
    others = predictions(knowledge, knowledge.observations.members[rest])
    order = np.argsort(np.append(fitted, rest))
    utility = np.clip(utility, *learned.bounds)
    return np.append(utility, others[0])[order], np.append(std, others[1])[order]


def _some_of_each_size(index: Ints, sizes: Ints) -> Ints:
    """At most MOST_PREDICTED of some coalitions, spread evenly over their sizes."""
    turn = np.zeros(len(index))
    for size in np.unique(sizes):
        ours = np.flatnonzero(sizes == size)
        # The golden ratio spreads any first few of them over all of their size.
        turn[ours[np.argsort(np.arange(len(ours)) * 0.6180339887498949 % 1)]] = np.arange(len(ours))
    return np.sort(index[np.argsort(turn, kind="stable")[:MOST_PREDICTED]])
