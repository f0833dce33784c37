"""Checks of an estimator, a metric and validation rows before the first training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor

from dupre.data import rows
from dupre.data.digests import digests_of_contents, with_plain_types
from dupre.data.encoding import encode
from dupre.data.owners import Owners
from dupre.errors import InputError, Remedy
from dupre.metrics import Metric, Scorer, as_metric, scorer_names


def check_estimator(estimator: Any, owners: Owners) -> Any:
    """A clone of the estimator; InputError if it is none, or made for another task."""
    if isinstance(estimator, type):
        raise InputError(f"expected an estimator, got the class; write {estimator.__name__}()")
    if not is_estimator(estimator):
        raise InputError(
            f"expected a scikit-learn classifier, regressor or pipeline that ends in one, got "
            f"{type(estimator).__name__}; wrap other models (skorch for torch), or pass any "
            "callable(members) -> float to dupre.value instead of a ModelUtility"
        )
    try:
        model = clone(estimator)
    except Exception as cause:  # its code may be the user's
        raise InputError(
            f"{type(estimator).__name__} cannot be cloned ({cause}); __init__ of an estimator of "
            "your own must name each parameter, and store it unchanged under that name"
        ) from cause
    wrong = {"classification": is_regressor, "regression": is_classifier}[owners.task]
    try:
        is_wrong = wrong(model)
    except AttributeError as cause:
        raise InputError(
            f"{type(model).__name__} does not say whether it classifies or regresses ({cause}); "
            "let it inherit ClassifierMixin or RegressorMixin, then BaseEstimator, of sklearn.base"
        ) from cause
    if is_wrong:
        raise InputError(
            f"the owners' task is {owners.task} but {type(model).__name__} is made for the other "
            "one; change the model, or ",
            Remedy.STATE_TASK,
        )
    return model


def is_estimator(thing: Any) -> bool:
    """Whether a thing is an estimator that predicts, at the latest when it is fitted.

    A StackingClassifier with its default final estimator has no `predict` before.
    """
    if isinstance(thing, type) or not (hasattr(thing, "get_params") and hasattr(thing, "fit")):
        return False
    try:
        return hasattr(thing, "predict") or is_classifier(thing) or is_regressor(thing)
    except AttributeError:  # only estimators of scikit-learn say of which kind they are
        return False


def check_metric(metric: str | Scorer | Metric, owners: Owners) -> Metric:
    """The metric with its facts; InputError if it is unknown, or made for another task."""
    found = as_metric(metric)
    if found.scorer is None and found.terms is None and found.name not in scorer_names():
        raise InputError(
            f"unknown metric {found.name!r}; expected a scikit-learn scorer name such as "
            "'accuracy', 'balanced_accuracy', 'neg_log_loss', 'r2' or 'neg_mean_absolute_error'"
        )
    if owners.task == "classification" and found.task == "regression":
        raise InputError(
            f"metric {found.name!r} measures errors of numbers but the task is classification; use "
            "'accuracy' or another classification metric, or ",
            Remedy.STATE_REGRESSION,
        )
    if owners.task == "regression" and found.task == "classification":
        raise InputError(
            f"metric {found.name!r} scores classes but the task is regression; use 'r2' or another "
            "regression metric"
        )
    if owners.task == "classification" and found.for_more:
        _check_labels(found, np.unique(owners.y).tolist())
    return found


def _check_labels(metric: Metric, labels: list[Any]) -> None:
    """Raise InputError if a metric of two classes is asked for more, or cannot tell which is 1."""
    any_label = metric.terms is None  # an area ranks rows, whatever the two labels are
    if len(labels) > 2 or not (any_label or 1 in labels):
        found = f"{len(labels)} classes" if len(labels) > 2 else f"the classes {labels}"
        raise InputError(
            f"metric {metric.name!r} is for two classes{'' if any_label else ', 0 and 1'}, "
            f"but there are {found}; use {metric.for_more!r}"
        )


def check_validation(validation: Any, owners: Owners) -> tuple[Any, NDArray[Any]]:
    """Validation X and y, (m,); InputError if they do not fit the owners' rows."""
    validation = rows.to_pandas(validation)
    if isinstance(validation, pd.DataFrame) and owners.target is not None:
        if owners.target not in validation.columns:
            raise InputError(f"the validation frame has no target column {owners.target!r}")
        X, y = validation.drop(columns=[owners.target]), validation[owners.target]
    elif isinstance(validation, tuple) and len(validation) == 2:
        X, y = map(rows.to_pandas, validation)
        rows.check_pair(X, y, "validation rows: ")
    else:
        raise InputError(
            "validation must be (X, y), or a frame with the target column if the owners came from "
            f"frames; got {type(validation).__name__}"
        )
    targets, X = rows.as_targets(y), _match_columns(X, owners)
    if rows.length(X) != len(targets):
        raise InputError(
            f"validation X has {rows.length(X)} rows and y has {len(targets)}; expected equal"
        )
    if not len(targets):
        raise InputError("there are no validation rows; expected at least one")
    everyone = np.zeros(len(targets), dtype=np.int64)
    rows.check_targets(targets, ("the validation rows",), everyone)
    if not owners.embedded:
        rows.check_finite(encode(X), ("the validation rows",), everyone)
    if rows.is_number(targets) != rows.is_number(owners.y):
        raise InputError(
            f"validation y holds {targets.dtype} but the owners' y holds {owners.y.dtype}; "
            "use the same labels for both"
        )
    if (owners.y == owners.y[0]).all():
        raise InputError(
            f"the target is {owners.y[0]} in all {len(owners.y):,} rows to train on; expected "
            "something to predict"
        )
    if owners.task == "classification" and set(targets).isdisjoint(owners.y):
        raise InputError(
            f"no validation label occurs in training: {sorted(set(targets))[:3]} against "
            f"{sorted(set(owners.y))[:3]}; use the same labels for both"
        )
    return X, targets


def check_trial(metric: Metric, score: float, y: NDArray[Any]) -> None:
    """Raise InputError if a metric cannot tell models apart on these validation rows.

    Args:
        metric: one of your own may score anything.
        score: what a constant model got on them.
        y: their targets, (m,).
    """
    if metric.scorer is not None:
        return
    remedy = Remedy.VALIDATION, ", or choose another metric"
    known = bool(np.isfinite(score))
    if (y == y[0]).all() and (not known or metric.floor == "no data"):
        many = len(y) > 1
        which = (
            f"all {len(y):,} validation targets are" if many else "the only validation target is"
        )
        numbers = metric.task == "regression"
        why = "has no meaning on such rows" if numbers else "needs at least two classes"
        raise InputError(f"{which} {y[0]}: metric {metric.name!r} {why}; ", *remedy)
    if not known:
        raise InputError(
            f"metric {metric.name!r} gives {score} for a constant model on the validation rows; ",
            *remedy,
        )


def count_shared_rows(owners: Owners, X: Any, y: NDArray[Any]) -> int:
    """How many rows of X, with the targets y, are also among the owners' rows; 0 if unknown."""
    try:
        if _types(X, y) == _types(owners.X, owners.y):
            trained, scored = owners.row_contents, digests_of_contents(X, y)
        else:
            trained, scored = (
                digests_of_contents(with_plain_types(X, str), with_plain_types(y, str))
                for X, y in ((owners.X, owners.y), (X, y))
            )
    except InputError:  # rows of this kind cannot be compared
        return 0
    return int(np.isin(scored[:, 0], trained[:, 0]).sum())  # 64 bits are enough for a note


def _types(X: Any, y: NDArray[Any]) -> list[Any]:
    of_X = X.dtypes if isinstance(X, pd.DataFrame) else [getattr(X, "dtype", type(X))]
    return [y.dtype, *of_X]


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
