"""The score of one fitted model on many resamples of the validation rows.

Most metrics are means over rows, or functions of such means: their scores on B resamples are one
product of a (B, m) matrix of counts and a (m, k) matrix of terms. Areas under the ROC curve need a
sum over sorted rows. Any other metric is called once for each resample, on predictions made once.
A metric of one's own must not depend on the order of the rows: one that holds a weight for each row
would give it to other rows in a resample. So it is also called on all rows in another order.

Notation: m validation rows, B resamples, k terms of a row, c classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dupre._types import Floats, Ints
from dupre.data.rows import copy_rows, take
from dupre.utility.model_checks import Metric
from dupre.utility.score import Resamples

Terms = tuple[Any, Callable[[Floats], Floats]]
"""Terms of each row, (m, k), and the scores, (B,), from their means over resamples, (B, k)."""

ROUNDING = 1e-6
"""How well our formula and scikit-learn's must agree on all rows."""

ORDER = 1e-3
"""Differences below this part of the spread are ignored when rows are put in another order."""

EQUAL = 1e-12
"""Part of a mean square below which a variance is only rounding."""

_METHODS = ("predict", "predict_proba", "decision_function")


class Predictions:
    """What a fitted model predicts for validation rows X and resamples of them, each once.

    Its methods are replaced by ones that remember. Rows are copied for models and metrics, since
    some change them in place; the copies are dropped at the end of the with statement, when the
    model, which refers to itself by these methods, is not yet.
    """

    def __init__(self, model: Any, X: Any, *, named: bool):
        self._X = X
        self._known: list[tuple[Any, Any]] = [(X, slice(None))]
        self._kept = named
        for name in filter(partial(hasattr, model), _METHODS):
            try:
                setattr(model, name, self._remember(getattr(model, name)))
            except (AttributeError, TypeError):
                # Some models forbid new attributes: then everything is predicted again.
                self._kept = False

    def _remember(self, method: Callable[[Any], Any]) -> Callable[..., Any]:
        found: list[NDArray[Any]] = []

        @wraps(method)  # scikit-learn looks at the name
        def predict(X: Any, *arguments: Any, **options: Any) -> Any:
            rows = next((rows for known, rows in self._known if known is X), None)
            if rows is None or arguments or options:
                return method(X, *arguments, **options)
            if not found:
                found.append(np.asarray(method(copy_rows(self._X))))
            return found[0][rows].copy()

        return predict

    def of(self, X: Any, rows: Ints) -> None:
        """From now on, X is known to be these rows of the validation rows."""
        self._known[1:] = [(X, rows)]

    def give_rows(self) -> Any:
        """All validation rows, for a metric to use and to change.

        A named metric gives them to the methods that remember, and does nothing else with them.
        """
        if self._kept:
            return self._X
        X = copy_rows(self._X)
        self._known[1:] = [(X, slice(None))]
        return X

    def __enter__(self) -> Predictions:
        return self

    def __exit__(self, *_: object) -> None:
        del self._known[1:]


def resample(
    scorer: Metric,
    metric: str | Metric,
    model: Any,
    predictions: Predictions,
    *,
    y: NDArray[Any],
    utility: float,
    drawn: Resamples,
) -> Floats | None:
    """The scores on all resamples, (B,); NaN where a metric is not defined, or rows are too few.

    None, with a warning, if a metric of one's own depends on the order of the rows.

    `predictions` are those of the fitted model; `y` are the targets of all validation rows, (m,),
    and `utility` is the score on them.
    """
    if drawn.too_few:
        return drawn.unknown
    X = predictions.give_rows()
    terms = _terms(metric, model, X, y) if isinstance(metric, str) else None
    if terms is not None:
        of_rows, scores = terms
        with np.errstate(divide="ignore", invalid="ignore"):
            everything = float(scores(np.asarray(of_rows.mean(axis=0)).reshape(1, -1))[0])
            if abs(everything - utility) <= ROUNDING * max(1.0, abs(utility)):
                return scores(drawn.sum_rows(of_rows) / drawn.sizes[:, None])
    if metric in _AREAS:
        area = _area(str(metric), model, X, y)
        if abs(area(np.ones(len(y))) - utility) <= ROUNDING:
            return np.array([area(counts[drawn.group]) for counts in drawn.counts])

    def score_rows(rows: Ints) -> float:
        some = take(X, rows)
        predictions.of(some, rows)
        # The metric may be the user's code. What it cannot score, such as a resample of a single
        # class, is not known.
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            return float(scorer(model, some, y[rows]))
        return np.nan

    found = np.array([score_rows(drawn.rows(b)) for b in range(len(drawn.counts))])
    if isinstance(metric, str):
        return found
    turned = score_rows(np.random.default_rng(0).permutation(len(y)))
    known = found[np.isfinite(found)]
    spread = float(known.std()) if known.size else 0.0
    if abs(turned - utility) <= ROUNDING * abs(utility) + ORDER * spread:
        return found
    warnings.warn(
        "the metric depends on the order of validation rows: resamples of them are not scored",
        stacklevel=2,
    )
    return None


def is_called_for_each(metric: str | Metric) -> bool:
    """Whether a metric is called once for each resample, which may take long."""
    return metric not in (*_OF_ERRORS, *_OF_CHANCES, *_OF_LABELS, *_AREAS)


_AREAS = ("roc_auc", "roc_auc_ovr", "roc_auc_ovr_weighted")


def _area(metric: str, model: Any, X: Any, y: NDArray[Any]) -> Callable[[Floats], float]:
    """The area under the ROC curve, from how often each row is drawn, (m,).

    It is the chance that a row of a class has a higher decision than one of another class, half
    of ties included (Hanley and McNeil 1982); NaN if all rows drawn are of one class.
    """
    classes = model.classes_
    if metric != "roc_auc":
        decisions = model.predict_proba(X)
    elif hasattr(model, "decision_function"):
        classes, decisions = classes[1:], model.decision_function(X).reshape(-1, 1)
    else:
        classes, decisions = classes[1:], model.predict_proba(X)[:, 1:]
    places = [np.unique(column, return_inverse=True)[1] for column in decisions.T]

    def area(counts: Floats) -> float:
        parts, shares = [], []
        for place, label in zip(places, classes, strict=True):
            ours, others = (
                np.bincount(place, counts * chosen) for chosen in (y == label, y != label)
            )
            below = np.cumsum(others) - others / 2
            with np.errstate(invalid="ignore"):
                parts.append(ours @ below / (ours.sum() * others.sum()))
            shares.append(ours.sum())
        return float(np.average(parts, weights=shares if metric.endswith("weighted") else None))

    return area


def _terms(metric: str, model: Any, X: Any, y: NDArray[Any]) -> Terms | None:
    """The terms of a metric; None if it is no function of means over rows."""
    if metric in _OF_ERRORS:
        return _OF_ERRORS[metric](y.astype(np.float64), np.ravel(model.predict(X)))
    if metric in _OF_CHANCES:
        return _OF_CHANCES[metric](model.predict_proba(X), np.searchsorted(model.classes_, y))
    if metric in _OF_LABELS:
        return _of_labels(metric, y, np.ravel(model.predict(X)))
    return None


def _of_labels(metric: str, y: NDArray[Any], predicted: NDArray[Any]) -> Terms | None:
    """Metrics of counts: rows of each class that are right, that are true, that are predicted."""
    if metric == "accuracy":
        return (y == predicted).astype(np.float64)[:, None], lambda means: means[:, 0]
    classes, codes = np.unique(np.concatenate([y, predicted]), return_inverse=True)
    rows, (true, guess) = np.arange(len(y)), codes.reshape(2, -1)
    counted = [((true == guess) * 1.0, true), (np.ones(len(y)), true), (np.ones(len(y)), guess)]
    one_hot = [
        sparse.csr_array((counts, (rows, code)), shape=(len(y), len(classes)))
        for counts, code in counted
    ]
    ratio, average = _AVERAGES.get(metric) or metric.partition("_")[::2]
    if average == "":  # the class of the label 1 alone
        if 1 not in classes.tolist():
            return None
        average = classes.tolist().index(1)

    def scores(means: Floats) -> Floats:
        return _average_ratio(_RATIOS[ratio], average, *np.split(means, 3, axis=1))

    return sparse.hstack(one_hot, format="csr"), scores


def _average_ratio(
    ratio: Callable[[Floats, Floats, Floats], Floats],
    average: str | int,
    right: Floats,
    true: Floats,
    guess: Floats,
) -> Floats:
    """The ratio of one class, or an average over those that occur, (B,)."""
    if average == "micro":
        right, true, guess = (part.sum(axis=1, keepdims=True) for part in (right, true, guess))
    score = np.nan_to_num(ratio(right, true, guess))
    if isinstance(average, int):
        return np.asarray(score[:, average])
    present = true if average == "true" else true + guess
    weight = true if average == "weighted" else (present > 0).astype(np.float64)
    return np.asarray((score * weight).sum(axis=1) / weight.sum(axis=1))


_AVERAGES = {"balanced_accuracy": ("recall", "true")}
_RATIOS: dict[str, Callable[[Floats, Floats, Floats], Floats]] = {
    "f1": lambda right, true, guess: 2 * right / (true + guess),
    "precision": lambda right, _, guess: right / guess,
    "recall": lambda right, true, _: right / true,
    "jaccard": lambda right, true, guess: right / (true + guess - right),
}
"""Of the rows of a class that are right, true and predicted."""
_OF_LABELS = ["accuracy", "balanced_accuracy"]
_OF_LABELS += [
    f"{ratio}{end}" for ratio in _RATIOS for end in ("", "_macro", "_micro", "_weighted")
]


def _mean(of_rows: Floats) -> Terms:
    return -of_rows[:, None], lambda means: means[:, 0]


def _root(of_rows: Floats) -> Terms:
    return of_rows[:, None], lambda means: -np.sqrt(means[:, 0])


def _r2(y: Floats, predicted: Floats) -> Terms:
    terms = np.column_stack([(y - predicted) ** 2, *_for_variance(y)])
    return terms, lambda means: 1 - means[:, 0] / _variance(means[:, 1:])


def _explained_variance(y: Floats, predicted: Floats) -> Terms:
    error = y - predicted
    terms = np.column_stack([*_for_variance(error), *_for_variance(y)])

    def scores(means: Floats) -> Floats:
        left = np.nan_to_num(_variance(means[:, :2]))  # errors may be all equal, targets must not
        return np.asarray(1 - left / _variance(means[:, 2:]))

    return terms, scores


def _for_variance(numbers: Floats) -> tuple[Floats, Floats]:
    """Terms of a variance, (m,) each.

    They are distances from the median. From the mean, one number of 1e10 would put all others far
    away, and on resamples without it their variance would be lost in rounding.
    """
    away = numbers - np.median(numbers)
    return away, away**2


def _variance(means: Floats) -> Floats:
    """The variance on each resample, (B,), from the means of its terms, (B, 2); NaN if zero."""
    found = means[:, 1] - means[:, 0] ** 2
    return np.where(found > EQUAL * means[:, 1], found, np.nan)


_OF_ERRORS: dict[str, Callable[[Floats, Floats], Terms]] = {
    "r2": _r2,
    "explained_variance": _explained_variance,
    "neg_mean_squared_error": lambda y, p: _mean((y - p) ** 2),
    "neg_root_mean_squared_error": lambda y, p: _root((y - p) ** 2),
    "neg_mean_absolute_error": lambda y, p: _mean(np.abs(y - p)),
    "neg_mean_absolute_percentage_error": lambda y, p: _mean(
        np.abs(y - p) / np.maximum(np.abs(y), np.finfo(np.float64).eps)
    ),
    "neg_mean_squared_log_error": lambda y, p: _mean((np.log1p(y) - np.log1p(p)) ** 2),
    "neg_root_mean_squared_log_error": lambda y, p: _root((np.log1p(y) - np.log1p(p)) ** 2),
}
"""Of targets and predictions, (m,) each."""


def _log_loss(chances: Floats, true: Ints) -> Terms:
    smallest = float(np.finfo(chances.dtype).eps)
    chance = np.clip(chances[np.arange(len(true)), true], smallest, 1 - smallest)
    return _mean(-np.log(chance))


def _brier(chances: Floats, true: Ints) -> Terms:
    off = chances - (np.arange(chances.shape[1]) == true[:, None])
    return _mean((off**2).sum(axis=1) / (2 if chances.shape[1] == 2 else 1))


_OF_CHANCES: dict[str, Callable[[Floats, Ints], Terms]] = {
    "neg_log_loss": _log_loss,
    "neg_brier_score": _brier,
}
"""Of probabilities, (m, c), and the index of the true class, (m,)."""
