"""Cheaper methods of the literature, to compare dupre with.

Each method is one function that returns a `Baseline`. None uses dupre's predictor or loop; each
states what it assumes and what its values mean.
"""

from __future__ import annotations

from dupre.baselines.gradient import gradient_shapley
from dupre.baselines.influences import influence
from dupre.baselines.knn import knn_shapley
from dupre.baselines.loo import leave_one_out
from dupre.baselines.result import Baseline
from dupre.baselines.tmc import tmc_shapley

__all__ = [
    "Baseline",
    "gradient_shapley",
    "influence",
    "knn_shapley",
    "leave_one_out",
    "tmc_shapley",
]
