"""Models and metrics by name, with the preprocessing that mixed columns need.

The preprocessing is the same for all models: gaps in numbers are filled with the median, numbers
and dates are scaled, a missing category is a level of its own. It is part of the pipeline and
fitted on a coalition's rows alone: rows of other owners have no influence.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dupre._types import Task
from dupre.checks import takes
from dupre.data.encoding import NumericColumns, encode
from dupre.errors import InputError
from dupre.metrics import DEFAULT, TABLE, Metric, Scorer, find, scorer_names
from dupre.tables.features import Columns
from dupre.tables.preprocessing import as_numbers, describe_steps, preprocessor
from dupre.tables.user_code import is_dotted, load
from dupre.utility.estimator import is_estimator
from dupre.wording import did_you_mean

NAMES = ("logistic", "ridge", "forest", "boosting", "mlp", "knn")
"""Models that have a name of their own."""


@dataclass(frozen=True)
class Model:
    """An estimator that is fitted on the columns of a table as they are.

    Attributes:
        estimator: not yet fitted.
        description: the preprocessing and the model in words, a line each.
        raw: whether it is a pipeline of the user, which also gets the columns that are left out.
    """

    estimator: Any
    description: tuple[str, ...]
    raw: bool = False


class _Nearest(BaseEstimator):  # type: ignore[misc]  # untyped
    """The nearest rows, or all rows if there are fewer than asked for."""

    kind: ClassVar[Any]

    def __init__(self, n_neighbors: int = 5):
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the rows."""
        self.nearest_ = self.kind(n_neighbors=min(self.n_neighbors, len(X))).fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        """The class of most of the nearest rows, or their mean target."""
        return self.nearest_.predict(X)


class NearestClassifier(ClassifierMixin, _Nearest):  # type: ignore[misc]
    """The majority of the nearest rows."""

    kind = KNeighborsClassifier

    @property
    def classes_(self) -> Any:
        """The classes of the rows."""
        return self.nearest_.classes_

    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes among the nearest rows."""
        return self.nearest_.predict_proba(X)


class NearestRegressor(RegressorMixin, _Nearest):  # type: ignore[misc]
    """The mean of the nearest rows."""

    kind = KNeighborsRegressor


def model(name: str | None, columns: Columns, *, task: Task) -> Model:
    """A model by name, or from the user's own code, for a table with these columns.

    A pipeline of the user is used as it is and gets every column of X. Any other estimator comes
    after our preprocessing, which drops `columns.left_out`.

    Args:
        name: one of `NAMES`, or "module:object" where the object is an estimator, a class, or a
            function without arguments that returns an estimator. None for logistic regression in
            classification, ridge in regression.
        columns: what the columns of X hold.
        task: what the model is for.

    Raises:
        InputError: an unknown name, or a model that does not fit the task.
    """
    if name is None:
        name = "logistic" if task == "classification" else "ridge"
    if not is_dotted(name):
        return _preprocess(_by_name(name, task), columns)
    estimator = _estimator(load(name), name)
    wrong = is_regressor if task == "classification" else is_classifier
    if wrong(estimator):
        raise InputError(
            f"the task is {task} but {name}, a {type(estimator).__name__}, is made for the other "
            "one; choose another model, or state the task"
        )
    parts = [estimator, *estimator.get_params(deep=True).values()]
    if any(isinstance(part, (Pipeline, ColumnTransformer)) for part in parts):
        text = f"columns as they are, but for those dropped, to your own {name}"
        return Model(estimator, (text,), raw=True)
    return _preprocess(estimator, columns)


def metric(name: str | None, *, task: Task) -> str | Scorer | Metric:
    """The name of a scikit-learn scorer that fits the task, or a callable of the user's own code.

    Args:
        name: of a scorer, or "module:object" of a callable(model, X, y) -> float or of a
            `dupre.metrics.Metric`. None for "accuracy" in classification, "r2" in regression.
        task: what the model is for.

    Raises:
        InputError: unknown, or not for this task.
    """
    if name is None:
        return DEFAULT[task]
    if is_dotted(name):
        return _scorer(load(name), name)
    fitting = [m for m in scorer_names() if find(m).task in (None, task)]
    if name in fitting:
        return name
    common = ", ".join(m.name for m in TABLE.values() if m.common and m.task == task)
    if name in scorer_names():
        raise InputError(f"the metric {name!r} is not for {task}; choose one such as {common}")
    called = {other: m.name for m in TABLE.values() for other in m.also_called}
    close = called.get(name.casefold().replace("_", ""))
    hint = f" (did you mean {close!r}?)" if close in fitting else did_you_mean(name, fitting)
    raise InputError(
        f"unknown metric {name!r}{hint}; expected a scikit-learn scorer for {task} such as "
        f"{common}, or module:object of a callable(model, X, y)"
    )


def embed_for(frame: pd.DataFrame, columns: Columns) -> Callable[[Any], NumericColumns] | None:
    """What `Owners.from_frame(embed=)` needs to measure distances between rows of this table.

    Args:
        frame: the table, of all rows, also those for validation.
        columns: what its columns hold.

    Returns:
        None if the rows can be compared as they are. If numbers or dates are missing, or the table
        still has the columns left out: a callable(X) that fills gaps with the median and ignores
        the columns left out.
    """
    measured = [*columns.numbers, *columns.dates]
    ignored = any(name in frame.columns for name, _ in columns.left_out)
    if not ignored and not frame[measured].isna().any(axis=None):
        return None

    def embed(X: Any) -> NumericColumns:
        used = X[list(columns.used)].copy()
        for name in measured:
            numbers = pd.Series(as_numbers(used[[name]])[:, 0], index=used.index)
            used[name] = numbers.fillna(0.0 if numbers.isna().all() else numbers.median())
        return encode(used)

    return embed


def _preprocess(estimator: Any, columns: Columns) -> Model:
    """The estimator after our preprocessing."""
    steps = [("prepare", preprocessor(columns)), ("model", estimator)]
    return Model(Pipeline(steps), (*describe_steps(columns), f"then {_show(estimator)}"))


def _by_name(name: str, task: Task) -> Any:
    classes = task == "classification"
    if name == "logistic":
        if not classes:
            raise InputError("logistic predicts classes but the task is regression; use ridge")
        return LogisticRegression(max_iter=1000)
    if name == "ridge":
        return RidgeClassifier() if classes else Ridge()
    if name == "forest":
        return _class("ensemble", "RandomForest", task)(n_estimators=100, n_jobs=1)
    if name == "boosting":
        return _class("ensemble", "HistGradientBoosting", task)()
    if name == "mlp":
        network = _class("neural_network", "MLP", task)(hidden_layer_sizes=(64,), max_iter=500)
        scaler = StandardScaler()
        return network if classes else TransformedTargetRegressor(network, transformer=scaler)
    if name == "knn":
        return NearestClassifier() if classes else NearestRegressor()
    raise InputError(
        f"unknown model {name!r}{did_you_mean(name, NAMES)}; expected one of {', '.join(NAMES)}, "
        "or module:object of your own, such as my_model:pipeline or sklearn.svm:SVC"
    )


def _class(module: str, family: str, task: Task) -> Any:
    """A class of scikit-learn, imported when it is asked for: others need not wait for it."""
    kind = "Classifier" if task == "classification" else "Regressor"
    return getattr(importlib.import_module(f"sklearn.{module}"), f"{family}{kind}")


def _estimator(found: Any, name: str) -> Any:
    """The estimator that a loaded object is, or returns when called."""
    if not is_estimator(found) and callable(found):
        try:
            found = found()
        except Exception as cause:  # the user's code may raise anything
            raise InputError(
                f"calling {name} without arguments failed: {type(cause).__name__}: {cause}; "
                "expected an estimator, or a function or class that makes one without arguments"
            ) from cause
    if not is_estimator(found):
        raise InputError(
            f"{name} is or returns a {type(found).__name__}; expected a scikit-learn estimator "
            "(fit, predict, get_params), or a function without arguments that returns one"
        )
    return found


def _scorer(found: Any, name: str) -> Scorer | Metric:
    if isinstance(found, Metric):
        return found
    expected = f"{name} must be a callable(model, X, y) -> float"
    if not callable(found) or isinstance(found, type):
        raise InputError(f"{expected}, got {type(found).__name__}; write a function")
    if not takes(found, None, None, None):
        raise InputError(
            f"{expected}, but it takes {inspect.signature(found)}; make one from a function of "
            "(y, predicted) by sklearn.metrics.make_scorer"
        )
    scorer: Scorer = found
    return scorer


def _show(estimator: Any) -> str:
    if isinstance(estimator, TransformedTargetRegressor) and estimator.regressor is not None:
        return f"{_show(estimator.regressor)} on the scaled target"
    return textwrap.shorten(" ".join(repr(estimator).split()), 120, placeholder=" …")
