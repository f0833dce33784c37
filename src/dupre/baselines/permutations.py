"""Methods that train along random orders of the owners, and leave one out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from dupre._types import Floats, Ints
from dupre.baselines.baseline import (
    Baseline,
    CachedUtility,
    finite_score,
    from_permutations,
    from_values,
)
from dupre.checks import finite, whole
from dupre.data.owners import Owners
from dupre.data.rows import copy_rows
from dupre.errors import InputError
from dupre.game.coalitions import to_names
from dupre.metrics import Metric, Scorer
from dupre.utility.estimator import random_states
from dupre.utility.model import ModelUtility
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
    marginals = [
        _truncated_marginals(cached, rng.permutation(owners.n), close) for _ in range(count)
    ]
    return from_permutations(owners, np.array(marginals), trained=cached.trained)


def _truncated_marginals(cached: CachedUtility, order: Ints, tolerance: float) -> Floats:
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


def gradient_shapley(
    model: Any,
    owners: Owners,
    *,
    validation: Any,
    metric: str | Scorer | Metric | None = None,
    permutations: int,
    seed: int,
) -> Baseline:
    """Shapley values of a model that sees every row once, owner after owner.

    Along each random permutation a fresh model is updated with `partial_fit`, one call per owner,
    and scored after each: n marginal contributions for the price of one pass over all rows. This
    assumes that one pass stands for a training to convergence, and that a model does not depend
    on the order in which it meets its rows; neither holds exactly, so these are values of another
    game than that of trained models. Algorithm 2 takes a step per row; here the model's own
    `partial_fit` decides how an owner's rows are cut into steps. Before the first owner the score
    is that of the best constant predictor, as in ModelUtility.

    All models start from the same random state: standard errors are over permutations alone.

    Args:
        model: scikit-learn classifier or regressor with `partial_fit`; cloned, never changed.
        owners: to be valued.
        validation: (X, y), or a frame with the owners' target column.
        metric: scorer name or callable(model, X, y) -> float; accuracy or R² by default.
        permutations: how many to draw, at least 2. Each counts as one training.
        seed: of the permutations and of the models.
    """
    count = whole(permutations, "permutations", least=2)
    utility = ModelUtility(model, owners, validation=validation, metric=metric)
    if not hasattr(model, "partial_fit"):
        raise InputError(
            f"expected a model with partial_fit, such as SGDClassifier, SGDRegressor or "
            f"MLPClassifier, got {type(model).__name__}; pipelines have none: scale X beforehand"
        )
    rng = np.random.default_rng(whole(seed, "seed", least=0))
    start = set_random_state(clone(model), int(rng.integers(2**31)))
    marginals = [
        _updated_marginals(start, utility, rng.permutation(owners.n)) for _ in range(count)
    ]
    return from_permutations(owners, np.array(marginals), trained=count)


def _updated_marginals(start: Any, utility: ModelUtility, order: Ints) -> Floats:
    """Changes of the score, (n,), as the owners' rows come in, one owner after the other."""
    owners, score = utility.owners, utility.metric
    model = clone(start)
    first = {}
    if owners.task == "classification":  # scorers of probabilities need a column for each class
        first["classes"] = np.unique(np.concatenate([owners.y, utility.y_val]))
    marginals = np.empty(owners.n)
    before = utility.empty
    for position, owner in enumerate(order):
        X, y = owners.data_of(np.arange(owners.n) == owner)
        model.partial_fit(X, y, **(first if position == 0 else {}))
        joined = to_names(np.isin(np.arange(owners.n), order[: position + 1]), owners.names)
        scored = score(model, copy_rows(utility.X_val), utility.y_val.copy())
        after = finite_score(scored, joined)
        marginals[owner] = after - before
        before = after
    return marginals


def set_random_state(model: Any, seed: int) -> Any:
    """The model, with every random state within it set."""
    return model.set_params(**dict.fromkeys(random_states(model), seed))
