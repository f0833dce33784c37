"""Gradient Shapley (Ghorbani & Zou 2019, "Data Shapley", Algorithm 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from dupre._types import Floats, Ints
from dupre.baselines.cache import finite_score
from dupre.baselines.result import Baseline, from_permutations
from dupre.checks import whole
from dupre.data.owners import Owners
from dupre.data.rows import copy_rows
from dupre.errors import InputError
from dupre.game.coalitions import to_names
from dupre.metrics import Metric, Scorer
from dupre.utility.fit import random_states
from dupre.utility.model import ModelUtility


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
    marginals = [_marginals(start, utility, rng.permutation(owners.n)) for _ in range(count)]
    return from_permutations(owners, np.array(marginals), trained=count)


def _marginals(start: Any, utility: ModelUtility, order: Ints) -> Floats:
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
