"""The utility of a coalition: train the user's model on its rows, score it on validation rows.

Anything that is `callable(tuple of owner names) -> float` can stand in for `ModelUtility`.

A failed training raises. It is never turned into a number here or anywhere else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable
from copy import copy
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer, get_scorer_names

from dupre._types import Digests
from dupre.data.contents import digests_of_coalitions
from dupre.data.encoding import encode
from dupre.data.owners import Owners
from dupre.data.rows import (
    as_targets,
    check_finite,
    check_same_index,
    check_targets,
    is_number,
    length,
)
from dupre.errors import InputError, Remedy
from dupre.game.coalitions import from_names, to_names

REGRESSION_METRICS = frozenset(
    {
        "d2_absolute_error_score",
        "d2_pinball_score",
        "d2_tweedie_score",
        "explained_variance",
        "max_error",
        "neg_max_error",
        "neg_mean_absolute_error",
        "neg_mean_absolute_percentage_error",
        "neg_mean_gamma_deviance",
        "neg_mean_poisson_deviance",
        "neg_mean_squared_error",
        "neg_mean_squared_log_error",
        "neg_median_absolute_error",
        "neg_root_mean_squared_error",
        "neg_root_mean_squared_log_error",
        "r2",
    }
)
"""Scorer names that measure errors of numbers, so make no sense for class labels."""

Metric = Callable[[Any, Any, Any], float]


class Utility(Protocol):
    """What `dupre.value` calls: owner names of a coalition in, one finite number out."""

    def __call__(self, members: tuple[str, ...], /) -> float:
        """The utility of the coalition of these owners; of no data for ()."""
        ...


class ModelUtility:
    """Score on validation rows of a model trained on a coalition's rows.

    A coalition whose rows hold a single class is scored by that constant prediction, whatever
    the model: many classifiers refuse to train on one class, and those that do not can predict
    nothing else.

    The empty coalition has the score of the best constant predictor, for which no owner is
    needed: the best of always one class and the validation class frequencies in classification
    (for accuracy: the share of the largest validation class), the better of the mean and the
    median of the validation targets in regression (for R²: 0). State `empty=` to override.

    Every `random_state` of the estimator is set from (seed, contents of the coalition, repeat), and
    rows are ordered by their contents. So a utility depends on the rows alone: not on owner names,
    nor on when, where or after what it is trained; coalitions of the same rows have the same one.

    Args:
        estimator: scikit-learn classifier, regressor or pipeline; it is cloned, never changed.
        owners: whose rows to train on.
        validation: (X, y), or a frame with the owners' target column. The same kind of X and the
            same columns as the owners'.
        metric: scikit-learn scorer name or callable(model, X, y) -> float, greater is better.
            Default: "accuracy" for classification, "r2" for regression.
        empty: utility of the empty coalition.
        seed: from which the training seeds derive.

    Raises:
        InputError: anything that would make every training fail or the score meaningless.
    """

    def __init__(
        self,
        estimator: Any,
        owners: Owners,
        *,
        validation: Any,
        metric: str | Metric | None = None,
        empty: float | None = None,
        seed: int = 0,
    ):
        self.estimator = _check_estimator(estimator, owners)
        self.owners = owners
        if not isinstance(seed, (int, np.integer)):
            raise InputError(f"seed must be a whole number, got {seed!r}")
        self.seed = int(seed)
        self.metric = metric or ("accuracy" if owners.task == "classification" else "r2")
        self._scorer = _check_metric(self.metric, owners)
        self.X_val, self.y_val = _check_validation(validation, owners)
        self._classes = (
            np.unique(np.concatenate([owners.y, self.y_val]))
            if owners.task == "classification"
            else None
        )
        # A named metric is tried even when `empty` is stated: better now than after a training.
        tried = self._constant_score() if empty is None or isinstance(self.metric, str) else 0.0
        if isinstance(empty, str):
            raise InputError(f"empty must be a number, got {empty!r}")
        self.empty = tried if empty is None else float(empty)
        if not np.isfinite(self.empty):
            raise InputError(
                f"the utility of the empty coalition is {self.empty}; state a finite ",
                Remedy.EMPTY,
            )

    @property
    def fingerprint(self) -> dict[str, Any]:
        """All that decides a utility besides the members' rows."""
        return {
            "model": self.estimator,
            "metric": self.metric,
            "validation data": (self.X_val, self.y_val),
            "task": self.owners.task,
            "seed": self.seed,
        }

    @property
    def by_content(self) -> bool:
        """Whether coalitions that hold the same rows have the same utility.

        A subclass with a call or with training seeds of its own may look at owner names.
        """
        ours = (ModelUtility.__call__, ModelUtility.training_seed)
        return (type(self).__call__, type(self).training_seed) == ours

    @property
    def seeded(self) -> bool:
        """Whether the estimator has a `random_state`: its seed may change a utility."""
        return bool(_random_states(self.estimator))

    @property
    def deterministic(self) -> bool:
        """Whether trainings are known to involve no chance.

        So it is for estimators of scikit-learn without a `random_state`. Others may draw random
        numbers of their own.
        """
        parts = [self.estimator, *self.estimator.get_params(deep=True).values()]
        modules = [type(part).__module__ for part in parts if hasattr(part, "get_params")]
        known = all(module.split(".")[0] == "sklearn" for module in modules)
        return known and not self.seeded and self.by_content

    def training_seed(self, members: Collection[str], repeat: int = 0) -> int:
        """Seed of one training of a coalition; every repeat has its own."""
        row = from_names(members, self.owners.names)
        contents = digests_of_coalitions(row[None], self.owners.contents)[0]
        return training_seed(self.seed, contents, repeat)

    def is_older_seed(self, seed: int | None, members: Collection[str], repeat: int) -> bool:
        """Whether a stored seed is by the older rule: it, and the order of rows, followed names."""
        return seed is not None and seed == _seed_from_names(self.seed, members, repeat)

    def to_send(self) -> ModelUtility:
        """A copy for other processes, without the view of the rows that only distances need."""
        slim = copy(self)
        slim.owners = self.owners.without_points()
        return slim

    def __call__(self, members: Collection[str], *, repeat: int = 0) -> float:
        """Utility of the coalition of these owners: one training, unless it is empty."""
        if not members:
            return self.empty
        row = from_names(members, self.owners.names)
        X, y = self.owners.data_of(row)
        if self._classes is not None and len(np.unique(y)) == 1:
            model: Any = DummyClassifier(strategy="constant", constant=[y[0]])
        else:
            model = clone(self.estimator)
            names = to_names(row, self.owners.names)
            _set_random_states(model, self.training_seed(names, repeat))
        return self._score(model.fit(X, y))

    def _score(self, model: Any) -> float:
        if self._classes is not None and isinstance(self.metric, str):
            model = _add_missing_classes(model, self._classes)
        return float(self._scorer(model, self.X_val, self.y_val))

    def _constant_score(self) -> float:
        """Score of the best model that ignores X; a trial run of metric and validation too."""
        if self._classes is None:
            constants: list[Any] = [DummyRegressor(strategy=s) for s in ("mean", "median")]
        else:
            constants = [DummyClassifier(strategy="prior")]
            constants += [
                DummyClassifier(strategy="constant", constant=[label])
                for label in np.unique(self.y_val)
            ]
        try:
            return max(self._score(model.fit(self.X_val, self.y_val)) for model in constants)
        except Exception as cause:
            raise InputError(
                f"metric {self.metric!r} cannot score a constant {self.owners.task} model on the "
                f"validation rows ({cause}); choose a metric that fits the task (a callable takes "
                "model, X and y), or state the utility of no data with ",
                Remedy.EMPTY,
                " if it needs more than a constant model",
            ) from cause


def training_seed(seed: int, contents: Digests, repeat: int = 0) -> int:
    """A 32-bit seed from (seed, contents of a coalition, (2,), repeat)."""
    return _seed_from([int(seed), [int(word) for word in contents], int(repeat)])


def _seed_from_names(seed: int, members: Iterable[str], repeat: int) -> int:
    """The older rule; only by it are trainings of older stores recognised."""
    parts = [int(seed), sorted(map(str, members))]
    return _seed_from([*parts, int(repeat)] if repeat else parts)


def _seed_from(parts: list[Any]) -> int:
    """The first 32 bits of SHA-256."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "little")


class _AllClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A fitted classifier that also names the classes it has never seen, with probability 0.

    Scorers of probabilities need one column per class of the validation rows.
    """

    def __init__(self, model: Any, classes: NDArray[Any]):
        self.model = model
        self.classes_ = classes

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> Any:
        seen = self.model.predict_proba(X)
        full = np.zeros((len(seen), len(self.classes_)))
        full[:, np.searchsorted(self.classes_, self.model.classes_)] = seen
        return full


def _add_missing_classes(model: Any, classes: NDArray[Any]) -> Any:
    if not hasattr(model, "predict_proba") or len(model.classes_) == len(classes):
        return model
    return _AllClasses(model, classes)


def _set_random_states(model: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model.set_params(**{state: int(rng.integers(2**31)) for state in _random_states(model)})


def _random_states(model: Any) -> list[str]:
    """Names of all parameters that are seeds."""
    params = model.get_params(deep=True)
    return sorted(p for p in params if p == "random_state" or p.endswith("__random_state"))


def _check_estimator(estimator: Any, owners: Owners) -> Any:
    if isinstance(estimator, type):
        raise InputError(f"expected an estimator, got the class; write {estimator.__name__}()")
    if not all(hasattr(estimator, method) for method in ("get_params", "fit", "predict")):
        raise InputError(
            f"expected a scikit-learn classifier, regressor or pipeline that ends in one, got "
            f"{type(estimator).__name__}; wrap other models (skorch for torch), or pass any "
            "callable(members) -> float to dupre.value instead of a ModelUtility"
        )
    model = clone(estimator)
    wrong = {"classification": is_regressor, "regression": is_classifier}[owners.task]
    if wrong(model):
        raise InputError(
            f"the owners' task is {owners.task} but {type(model).__name__} is made for the other "
            "one; change the model, or ",
            Remedy.STATE_TASK,
        )
    return model


def _check_metric(metric: str | Metric, owners: Owners) -> Metric:
    if not isinstance(metric, str):
        if not callable(metric):
            raise InputError(f"metric must be a scorer name or a callable, got {metric!r}")
        return metric
    if metric not in get_scorer_names():
        raise InputError(
            f"unknown metric {metric!r}; expected a scikit-learn scorer name such as 'accuracy', "
            "'balanced_accuracy', 'neg_log_loss', 'r2' or 'neg_mean_absolute_error'"
        )
    if owners.task == "classification" and metric in REGRESSION_METRICS:
        raise InputError(
            f"metric {metric!r} measures errors of numbers but the task is classification; use "
            "'accuracy' or another classification metric, or ",
            Remedy.STATE_REGRESSION,
        )
    scorer: Metric = get_scorer(metric)
    return scorer


def _check_validation(validation: Any, owners: Owners) -> tuple[Any, NDArray[Any]]:
    if isinstance(validation, pd.DataFrame) and owners.target is not None:
        if owners.target not in validation.columns:
            raise InputError(f"the validation frame has no target column {owners.target!r}")
        X, y = validation.drop(columns=[owners.target]), validation[owners.target]
    elif isinstance(validation, tuple) and len(validation) == 2:
        X, y = validation
        check_same_index(X, y, "y")
    else:
        raise InputError(
            "validation must be (X, y), or a frame with the target column if the owners came from "
            f"frames; got {type(validation).__name__}"
        )
    targets, X = as_targets(y), _match_columns(X, owners)
    if length(X) != len(targets):
        raise InputError(
            f"validation X has {length(X)} rows and y has {len(targets)}; expected equal"
        )
    if not len(targets):
        raise InputError("there are no validation rows; expected at least one")
    everyone = np.zeros(len(targets), dtype=np.int64)
    check_targets(targets, ("the validation rows",), everyone)
    if not owners.embedded:
        check_finite(encode(X), ("the validation rows",), everyone)
    if is_number(targets) != is_number(owners.y):
        raise InputError(
            f"validation y holds {targets.dtype} but the owners' y holds {owners.y.dtype}; "
            "use the same labels for both"
        )
    if owners.task == "classification" and not np.isin(targets, owners.y).any():
        raise InputError(
            f"no validation label occurs in training: {sorted(set(targets))[:3]} against "
            f"{sorted(set(owners.y))[:3]}; use the same labels for both"
        )
    return X, targets


def _match_columns(X: Any, owners: Owners) -> Any:
    """Validation X with the owners' columns in the owners' order, or an error."""
    if owners.columns is not None:
        if not isinstance(X, pd.DataFrame):
            raise InputError("the owners' X is a DataFrame; validation X must be one too")
        missing = [c for c in owners.columns if c not in X.columns]
        if missing:
            raise InputError(f"validation X lacks the training column {missing[0]!r}")
        return X[list(owners.columns)]
    if owners.embedded and not hasattr(owners.X, "shape"):
        return X
    expected = np.shape(owners.X)[1:]
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.shape[1:] != expected:
        raise InputError(
            f"a row of validation X has shape {X.shape[1:]}, a row of the owners' X {expected}"
        )
    return X
