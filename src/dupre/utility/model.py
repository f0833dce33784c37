"""The utility of a coalition: train the user's model on its rows, score it on validation rows.

Anything that is `callable(tuple of owner names) -> float` can stand in for `ModelUtility`.

A failed training raises. It is never turned into a number here or anywhere else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from copy import copy
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor

from dupre._types import Digests
from dupre.data.contents import digests_of_coalitions
from dupre.data.owners import Owners
from dupre.errors import InputError, Remedy
from dupre.game.coalitions import from_names, to_names
from dupre.utility.model_checks import Metric, check_estimator, check_metric, check_validation


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
        self.estimator = check_estimator(estimator, owners)
        self.owners = owners
        if not isinstance(seed, (int, np.integer)):
            raise InputError(f"seed must be a whole number, got {seed!r}")
        self.seed = int(seed)
        self.metric = metric or ("accuracy" if owners.task == "classification" else "r2")
        self._scorer = check_metric(self.metric, owners)
        self.X_val, self.y_val = check_validation(validation, owners)
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
        except Exception as cause:  # the metric may be the user's code
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
