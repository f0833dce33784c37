"""What every baseline returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dupre._types import Floats
from dupre.data.owners import Owners


@dataclass(frozen=True, eq=False)
class Baseline:
    """Values of owners by one method.

    Attributes:
        values: of each owner, by name.
        std: Monte Carlo standard error of each; zero where the method does not sample, NaN
            where it predicts and does not know its error. It does not include errors of the
            method's assumptions.
        trained: how many full trainings of a model it took.
    """

    values: pd.Series
    std: pd.Series
    trained: int


def from_values(owners: Owners, values: Floats, *, trained: int) -> Baseline:
    """Values, (n,), of a method that does not sample."""
    return _to_baseline(owners, values, np.zeros(owners.n), trained)


def from_permutations(owners: Owners, marginals: Floats, *, trained: int) -> Baseline:
    """Means of marginal contributions, (m, n), one row per independent permutation."""
    error = marginals.std(axis=0, ddof=1) / np.sqrt(len(marginals))
    return _to_baseline(owners, marginals.mean(axis=0), error, trained)


def _to_baseline(owners: Owners, values: Floats, std: Floats, trained: int) -> Baseline:
    index = pd.Index(owners.names, name="owner")
    return Baseline(
        pd.Series(values, index=index, name="value"),
        pd.Series(std, index=index, name="std"),
        trained,
    )
