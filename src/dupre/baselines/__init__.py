"""Cheaper methods of the literature, to compare dupre with.

Each method is one function that returns a `Baseline`. None uses dupre's predictor or loop; each
states what it assumes and what its values mean. `otdd_kernel` is a kernel for `kernel=`.
"""

from __future__ import annotations

from dupre.baselines.baseline import Baseline
from dupre.baselines.influences import influence
from dupre.baselines.knn import knn_shapley
from dupre.baselines.permutations import gradient_shapley, leave_one_out, tmc_shapley
from dupre.baselines.transport import OTDDKernel, lava, otdd_kernel
from dupre.baselines.utility_learning import LearnedUtilities, utility_learning

__all__ = [
    "Baseline",
    "LearnedUtilities",
    "OTDDKernel",
    "gradient_shapley",
    "influence",
    "knn_shapley",
    "lava",
    "leave_one_out",
    "otdd_kernel",
    "tmc_shapley",
    "utility_learning",
]
