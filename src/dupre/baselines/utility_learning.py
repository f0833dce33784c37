"""Data utility learning: a regression of utilities on who is in a coalition (Wang et al. 2021).

Wang, Yang & Jia 2021, "Improving cooperative game theory-based data valuation via data utility
learning". With a neural network it is NN-binary of DUPRE Sec. 4.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from dupre._types import Floats, Members
from dupre.baselines.baseline import Baseline, CachedUtility, from_values
from dupre.baselines.permutations import set_random_state
from dupre.checks import whole
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game.coalitions import from_names, keys, to_names
from dupre.game.estimators import Sample, exact
from dupre.game.semivalues import Semivalue, parse_semivalue, shapley
from dupre.utility.adapters import Known, as_trainings, from_table
from dupre.utility.estimator import is_estimator
from dupre.utility.protocol import Utility


@dataclass(frozen=True, eq=False)
class LearnedUtilities(Baseline):
    """Values by data utility learning, and the utilities they were computed from.

    Attributes:
        predictions: one row for each coalition that enters the values: `members`, `utility`, and
            whether it was `evaluated`; its utility is then the observed one.
    """

    predictions: pd.DataFrame


def utility_learning(
    utility: Utility | Known,
    owners: Owners,
    *,
    evaluated: int | Iterable[Iterable[str]] | None = None,
    model: Any = None,
    seeds: int = 1,
    semivalue: Semivalue | str = shapley,
    estimator: Sample | None = None,
    seed: int = 0,
) -> LearnedUtilities:
    """Evaluate some coalitions, predict all others from their membership vectors, sum up.

    The regression sees who is in a coalition, and nothing of the data. It says nothing about its
    errors, so `std` is NaN.

    Args:
        utility: a ModelUtility, any callable(tuple of owner names) -> float, or recorded
            evaluations: a mapping {members: utility} or a frame. Asked for () too.
        owners: to be valued.
        evaluated: how many coalitions to draw uniformly and evaluate, or which; by default all
            that were recorded.
        model: a scikit-learn regressor; by default a network of two hidden layers, trained by
            L-BFGS: on a hundred coalitions it predicts better than one trained by Adam.
        seeds: how many times the model is fitted, each with another random state; the predictions
            are averaged.
        semivalue: which values; `"banzhaf"` and the other words of the command do too.
        estimator: a `dupre.estimators.Sample` of coalitions that enter the values; all by default.
        seed: of the draws and of the random states.
    """
    if isinstance(semivalue, str):
        semivalue = parse_semivalue(semivalue)
    count = whole(seeds, "seeds", least=1)
    rng = np.random.default_rng(whole(seed, "seed", least=0))
    regressor = _network() if model is None else model
    if not is_estimator(regressor) or is_classifier(regressor):
        raise InputError(f"model must be a scikit-learn regressor, got {regressor!r}")
    chosen = _choose(utility, evaluated, owners, rng)
    if isinstance(utility, (Mapping, pd.DataFrame)):
        utility = from_table(utility)
    weights = (
        exact(semivalue, owners.n)
        if estimator is None
        else estimator.estimator(semivalue, owners.n, estimator.count, rng)
    )
    cached = CachedUtility(utility, owners)
    empty = cached(np.zeros(owners.n, dtype=bool))
    observed = np.array([cached(row) for row in chosen])
    states = rng.integers(2**31, size=count)
    u = np.mean([_predict(regressor, chosen, observed, weights.members, s) for s in states], axis=0)
    known = dict(zip(keys(chosen), observed, strict=True))
    rows = keys(weights.members)
    u = np.array([known.get(key, guess) for key, guess in zip(rows, u, strict=True)])
    predictions = pd.DataFrame(
        {
            "members": [to_names(row, owners.names) for row in weights.members],
            "utility": u,
            "evaluated": [key in known for key in rows],
        }
    )
    found = from_values(owners, weights.W @ u + weights.empty * empty, trained=cached.trained)
    return LearnedUtilities(found.values, found.std * np.nan, found.trained, predictions)


def _choose(
    utility: Utility | Known,
    evaluated: int | Iterable[Iterable[str]] | None,
    owners: Owners,
    rng: np.random.Generator,
) -> Members:
    """The coalitions to evaluate, (a, n), all different."""
    if evaluated is None:
        if not isinstance(utility, (Mapping, pd.DataFrame)):
            raise InputError("evaluated= must say how many coalitions to evaluate, or which")
        evaluated = [members for members in as_trainings(utility) if members]
    if not isinstance(evaluated, Iterable):
        most = 2**owners.n - 1
        if (count := whole(evaluated, "evaluated", least=2)) > most:
            raise InputError(f"there are {most} coalitions, asked for {count}")
        if owners.n > 62:  # no integers that large, and no two draws alike
            return np.asarray(rng.random((count, owners.n)) < 0.5)
        codes = rng.choice(most, count, replace=False) + 1
        return np.asarray((codes[:, None] >> np.arange(owners.n)) & 1, dtype=bool)
    rows = {row.tobytes(): row for row in (from_names(names, owners.names) for names in evaluated)}
    if len(rows) < 2:
        raise InputError(f"expected at least 2 evaluated coalitions, got {len(rows)}")
    return np.array(list(rows.values()))


def _network() -> MLPRegressor:
    return MLPRegressor(hidden_layer_sizes=(32, 32), solver="lbfgs", alpha=0.03, max_iter=500)


def _predict(model: Any, members: Members, u: Floats, asked: Members, state: int) -> Floats:
    """Utilities of coalitions, (b,), by the model fitted to evaluated ones, on standardised u."""
    middle, spread = float(u.mean()), float(u.std()) or 1.0
    copy = set_random_state(clone(model), int(state))
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # a network stops after max_iter
        copy.fit(members.astype(np.float64), (u - middle) / spread)
        found = np.asarray(copy.predict(asked.astype(np.float64)), dtype=np.float64)
    if found.shape != (len(asked),) or not np.isfinite(found).all():
        raise InputError(
            f"expected one finite prediction for each coalition from {type(model).__name__}; "
            "take another model="
        )
    return middle + spread * found
