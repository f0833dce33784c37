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
    return Baseline(_series(owners, values, "value"), _series(owners, 0.0, "std"), trained)


def from_permutations(owners: Owners, marginals: Floats, *, trained: int) -> Baseline:
    """Means of marginal contributions, (m, n), one row per independent permutation."""
    error = marginals.std(axis=0, ddof=1) / np.sqrt(len(marginals))
    values = _series(owners, marginals.mean(axis=0), "value")
    return Baseline(values, _series(owners, error, "std"), trained)


def _series(owners: Owners, numbers: Floats | float, name: str) -> pd.Series:
    return pd.Series(numbers, index=pd.Index(owners.names, name="owner"), name=name)
