"""Metrics: how a trained model is scored, and all that is known of each score. One table.

A metric is a name with its facts: between which numbers its scores lie, what they are called, how
to compute them on resamples of the validation rows. Greater is better in all of them: a loss counts
as minus itself, as the names of scikit-learn say (`neg_log_loss`).

Most metrics are means over rows, or functions of such means. Their scores on B resamples are one
product of a (B, m) matrix of counts and a (m, k) matrix of terms, instead of B calls. Areas under
the ROC curve follow from how often each row is drawn.

Notation: m validation rows, B resamples, k terms of a row, c classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dupre._types import Floats, Ints, Task
from dupre.checks import UNBOUNDED, Bounds, check_bounds, finite
from dupre.errors import InputError, Remedy

Scorer = Callable[[Any, Any, Any], float]
"""A function (model, X, y) -> score."""

Terms = tuple[Any, Callable[[Floats], Floats]]
"""Terms of each row, (m, k), and the scores, (B,), from their means over resamples, (B, k)."""

EQUAL = 1e-12
"""Part of a mean square below which a variance is only rounding."""

DEFAULT: dict[Task, str] = {"classification": "accuracy", "regression": "r2"}


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric with its facts. Give one of your own as `metric=` of a ModelUtility.

    Args:
        name: of a scorer of scikit-learn, or any other if `scorer` or `terms` is given.
        scorer: function (model, X, y) -> score. Without one it is that of scikit-learn, or the
            score that follows from `terms`.
        terms: function (y, predicted) of all validation rows that gives the score of each, (m,), if
            the metric is their mean. Otherwise it gives the terms of each row, (m, k), together
            with a function from their means, (B, k), to the scores, (B,). Without terms, the metric
            is called once for each resample.
        ranks: function (model, X, y) for metrics of sorted rows: it gives a function from how often
            each row is drawn, (m,), to the score.
        probabilities: whether the metric needs `predict_proba`. Its terms are then a function of
            the index of the true class, (m,), and the probabilities, (m, c).
        greater_is_better: False for a loss: it counts as minus itself.
        task: what it is for; None for both.
        bounds: between which utilities lie, None for an end without one.
        floor: lowest utility that counts; "no data" for metrics that compare with a constant
            prediction, as R² does, and have no lower bound: a score below that of no data counts
            as that.
        empty: score of no data; by default that of the best constant prediction.
        counts_rows: whether every validation row counts the same, whatever its class.
        squares: whether a row counts by the square of its error.
        for_more: if the metric is for two classes, the one to take for more.
        words: what it is called within a sentence.
        unit: of a change of it; "points" for scores that people read in per cent.
        sentence: what scores say to an owner, of `{all}` data and of `{none}`. `{all:%}` is in per
            cent, `{all:loss}` without the minus of a loss.
        common: whether it is named where a metric is to be chosen.
        also_called: names of it that are not the scorer's.
    """

    name: str
    scorer: Scorer | None = None
    terms: Callable[[NDArray[Any], NDArray[Any]], Any] | None = None
    ranks: Callable[[Any, Any, NDArray[Any]], Callable[[Floats], float]] | None = None
    probabilities: bool = False
    greater_is_better: bool = True
    task: Task | None = None
    bounds: Bounds = UNBOUNDED
    floor: float | Literal["no data"] | None = None
    empty: float | None = None
    counts_rows: bool = False
    squares: bool = False
    for_more: str = ""
    words: str = ""
    unit: str = ""
    sentence: str = ""
    common: bool = False
    also_called: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"the name of a metric must be a text, got {self.name!r}")
        for what in ("scorer", "terms", "ranks"):
            if not (getattr(self, what) is None or callable(getattr(self, what))):
                raise InputError(f"{what} of metric {self.name!r} must be a function")
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        if self.floor not in (None, "no data"):
            finite(self.floor, "floor")

    def __repr__(self) -> str:
        return f"Metric({self.name!r})"

    @property
    def fingerprint(self) -> Any:
        """What decides the scores."""
        return [self.name, self.scorer, self.terms, self.probabilities, self.greater_is_better]

    @property
    def is_own(self) -> bool:
        """Whether the user's code decides, not the scorer of scikit-learn with this name."""
        named = self.scorer is None and _scorer_named(self.name) is not None
        return not (named and self.greater_is_better)

    @property
    def is_called_for_each(self) -> bool:
        """Whether it is called once for each resample, which may take long."""
        return self.terms is None and self.ranks is None

    @property
    def is_pooled(self) -> bool:
        """Whether predictions of several folds are scored together, being means over rows."""
        return self.scorer is None and self.terms is not None

    def __call__(self, model: Any, X: Any, y: NDArray[Any]) -> float:
        """The score of a fitted model on these rows, greater is better."""
        if self.scorer is not None:
            score = self.scorer(model, X, y)
        elif (theirs := _scorer_named(self.name)) is not None:
            score = theirs(model, X, y)
        elif (terms := self.terms_of(model, X, y)) is not None:
            return mean_score(terms)
        else:
            raise InputError(f"metric {self.name!r} has neither a scorer nor terms")
        return float(score) if self.greater_is_better else -float(score)

    def terms_of(self, model: Any, X: Any, y: NDArray[Any]) -> Terms | None:
        """The terms of all rows; None if it is no function of means over rows."""
        if self.terms is None:
            return None
        if self.probabilities:
            found = self.terms(np.searchsorted(model.classes_, y), model.predict_proba(X))
        else:
            numbers = y.astype(np.float64) if self.task == "regression" else y
            found = self.terms(numbers, np.ravel(model.predict(X)))
        if found is None:
            return None
        if isinstance(found, tuple):
            of_rows, scores = found
            sign = 1.0 if self.greater_is_better else -1.0
            return of_rows, lambda means: sign * scores(means)
        rows = np.asarray(found, dtype=np.float64)
        if rows.shape != (len(y),):
            raise InputError(
                f"terms of metric {self.name!r} must give one number for each of the {len(y)} rows "
                f"(or a pair of terms and a function of their means), got shape {rows.shape}"
            )
        return _mean(rows if self.greater_is_better else -rows)


def as_metric(metric: str | Scorer | Metric) -> Metric:
    """A metric from its name, from a function (model, X, y), or as it is."""
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return find(metric)
    if not callable(metric):
        raise InputError(f"metric must be a scorer name or a callable, got {metric!r}")
    return Metric(getattr(metric, "__name__", f"a {type(metric).__qualname__}"), metric)


def find(name: str) -> Metric:
    """The row of a metric; of other scorers of scikit-learn the name tells the sign alone."""
    low_only = (-math.inf, 0.0) if name.startswith("neg_") else UNBOUNDED
    return TABLE.get(name) or Metric(name, bounds=low_only)


def scorer_names() -> list[str]:
    """The names of all scorers of scikit-learn."""
    from sklearn.metrics import get_scorer_names

    return list(get_scorer_names())


@cache  # scikit-learn copies a scorer each time it is asked for
def _scorer_named(name: str) -> Scorer | None:
    from sklearn.metrics import get_scorer

    found: Scorer | None = get_scorer(name) if name in scorer_names() else None
    return found


def mean_score(terms: Terms) -> float:
    """The score on all rows."""
    of_rows, scores = terms
    return float(scores(np.asarray(of_rows.mean(axis=0)).reshape(1, -1))[0])


def check_metric(metric: str | Scorer | Metric, task: Task, targets: NDArray[Any]) -> Metric:
    """The metric with its facts; InputError if it is unknown, or made for another task.

    `targets` are those to train on: some metrics are for two classes alone.
    """
    found = as_metric(metric)
    if found.scorer is None and found.terms is None and _scorer_named(found.name) is None:
        raise InputError(
            f"unknown metric {found.name!r}; expected a scikit-learn scorer name such as "
            "'accuracy', 'balanced_accuracy', 'neg_log_loss', 'r2' or 'neg_mean_absolute_error'"
        )
    if task == "classification" and found.task == "regression":
        raise InputError(
            f"metric {found.name!r} measures errors of numbers but the task is classification; use "
            "'accuracy' or another classification metric, or ",
            Remedy.STATE_REGRESSION,
        )
    if task == "regression" and found.task == "classification":
        raise InputError(
            f"metric {found.name!r} scores classes but the task is regression; use 'r2' or another "
            "regression metric"
        )
    if task == "classification" and found.for_more:
        _check_labels(found, np.unique(targets).tolist())
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


# Terms: means of losses.


def _take_mean(means: Floats) -> Floats:
    return means[:, 0]


def _take_root(means: Floats) -> Floats:
    return -np.sqrt(means[:, 0])


def _mean(of_rows: Floats) -> Terms:
    return of_rows[:, None], _take_mean


def _squared_error(y: Floats, predicted: Floats) -> Terms:
    return _mean(-((y - predicted) ** 2))


def _absolute_error(y: Floats, predicted: Floats) -> Terms:
    return _mean(-np.abs(y - predicted))


def _relative_error(y: Floats, predicted: Floats) -> Terms:
    return _mean(-(np.abs(y - predicted) / np.maximum(np.abs(y), np.finfo(np.float64).eps)))


def _squared_log_error(y: Floats, predicted: Floats) -> Terms:
    return _squared_error(np.log1p(y), np.log1p(predicted))


def _root(of: Callable[[Floats, Floats], Terms], y: Floats, predicted: Floats) -> Terms:
    """The root of a mean of losses."""
    of_rows, _ = of(y, predicted)
    return -of_rows, _take_root


def _log_loss(true: Ints, chances: Floats) -> Terms:
    smallest = float(np.finfo(chances.dtype).eps)  # as scikit-learn clips: no loss is infinite
    chance = np.clip(chances[np.arange(len(true)), true], smallest, 1 - smallest)
    return _mean(np.log(chance))


def _brier(true: Ints, chances: Floats) -> Terms:
    off = chances - (np.arange(chances.shape[1]) == true[:, None])
    # scikit-learn counts one of two classes only.
    return _mean(-((off**2).sum(axis=1) / (2 if chances.shape[1] == 2 else 1)))


# Terms: parts of a variance.


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


# Terms: counts of labels.


def _accuracy(y: NDArray[Any], predicted: NDArray[Any]) -> Terms:
    return _mean((y == predicted).astype(np.float64))


def _ratio(
    ratio: Callable[[Floats, Floats, Floats], Floats],
    average: str,
    y: NDArray[Any],
    predicted: NDArray[Any],
) -> Terms | None:
    """Terms of a ratio of counts: rows of each class that are right, true, predicted.

    `average` is that of scikit-learn, "" for the class of the label 1 alone, or "true" for the mean
    over classes that occur among the targets.
    """
    from scipy import sparse

    classes, codes = np.unique(np.concatenate([y, predicted]), return_inverse=True)
    rows, (true, guess) = np.arange(len(y)), codes.reshape(2, -1)
    counted = [((true == guess) * 1.0, true), (np.ones(len(y)), true), (np.ones(len(y)), guess)]
    one_hot = [
        sparse.csr_array((counts, (rows, code)), shape=(len(y), len(classes)))
        for counts, code in counted
    ]
    if average == "" and 1 not in classes.tolist():
        return None
    which: str | int = average or classes.tolist().index(1)

    def scores(means: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return _average_ratio(ratio, which, *np.split(means, 3, axis=1))

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


def _f1(right: Floats, true: Floats, guess: Floats) -> Floats:
    return 2 * right / (true + guess)


def _precision(right: Floats, _: Floats, guess: Floats) -> Floats:
    return right / guess


def _recall(right: Floats, true: Floats, _: Floats) -> Floats:
    return right / true


def _jaccard(right: Floats, true: Floats, guess: Floats) -> Floats:
    return right / (true + guess - right)


def _area(average: str, model: Any, X: Any, y: NDArray[Any]) -> Callable[[Floats], float]:
    """The area under the ROC curve, from how often each row is drawn, (m,).

    It is the chance that a row of a class has a higher decision than one of another class, half
    of ties included (Hanley and McNeil 1982); NaN if all rows drawn are of one class. `average` is
    "" for two classes, "macro" or "weighted" for each class against all others.
    """
    classes = model.classes_
    if average:
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
        return float(np.average(parts, weights=shares if average == "weighted" else None))

    return area


# The table. A scorer of scikit-learn that has no row is called for each resample, without bounds.

_of_classes = partial(Metric, task="classification")
_share = partial(_of_classes, bounds=(0.0, 1.0), unit="points")
_of_chances = partial(_of_classes, probabilities=True)
_area_of = partial(
    _share,
    words="the area under the ROC curve",
    sentence="everybody's data order {all:%} of pairs rightly, guessing {none:%}",
)
_of_numbers = partial(Metric, task="regression")
_loss = partial(_of_numbers, bounds=(-math.inf, 0.0))
_like_r2 = partial(_of_numbers, bounds=(-math.inf, 1.0), floor="no data")
_EXPLAINED = "everybody's data explain {all:%} of the differences"  # no data explain none of them
_OFF = "{} {{all:loss}} with everybody's data, {{none:loss}} without"

_RATIOS = {
    "f1": (_f1, "the F1 score"),
    "precision": (_precision, "precision"),
    "recall": (_recall, "recall"),
    "jaccard": (_jaccard, "the Jaccard score"),
}
_ROWS = [
    _share(
        "accuracy",
        terms=_accuracy,
        counts_rows=True,
        words="accuracy",
        sentence="with everybody's data {all:%} right, by guessing {none:%}",
        common=True,
    ),
    _share(
        "balanced_accuracy",
        terms=partial(_ratio, _recall, "true"),
        words="balanced accuracy",
        sentence="{all:%} right per class with everybody's data, guessing {none:%}",
        common=True,
    ),
    *(
        _share(
            f"{name}_{average}".rstrip("_"),
            terms=partial(_ratio, ratio, average) if average != "samples" else None,
            for_more="" if average else f"{name}_macro",  # without an average: of the label 1
            words=f"{words} {average}".rstrip(),
            common=(name, average) == ("f1", "macro"),
        )
        for name, (ratio, words) in _RATIOS.items()
        for average in ("", "macro", "micro", "weighted", "samples")
    ),
    _share("average_precision", words="average precision"),
    _share("top_k_accuracy", words="top-k accuracy"),
    _of_classes("matthews_corrcoef", bounds=(-1.0, 1.0)),
    _of_chances(
        "neg_log_loss",
        bounds=(-math.inf, 0.0),
        terms=_log_loss,
        counts_rows=True,
        sentence="log loss {all:loss} with everybody's data, {none:loss} by guessing",
        common=True,
        also_called=("logloss",),
    ),
    _of_chances(
        "neg_brier_score",
        bounds=(-math.inf, 0.0),
        terms=_brier,
        counts_rows=True,
        sentence="Brier score {all:loss} with everybody's data, {none:loss} by guessing",
    ),
    _of_chances("d2_log_loss_score", bounds=(-math.inf, 1.0), floor="no data"),
    _of_chances("d2_brier_score", bounds=(-math.inf, 1.0), floor="no data"),
    _area_of("roc_auc", ranks=partial(_area, ""), for_more="roc_auc_ovr", also_called=("auc",)),
    _area_of("roc_auc_ovr", ranks=partial(_area, "macro"), probabilities=True, common=True),
    _area_of("roc_auc_ovr_weighted", ranks=partial(_area, "weighted"), probabilities=True),
    # A mean over pairs of classes, a median and a maximum are no functions of means over rows.
    _area_of("roc_auc_ovo", probabilities=True),
    _area_of("roc_auc_ovo_weighted", probabilities=True),
    _like_r2("r2", terms=_r2, squares=True, words="R²", sentence=_EXPLAINED, common=True),
    _like_r2("explained_variance", terms=_explained_variance, squares=True, sentence=_EXPLAINED),
    _like_r2("d2_absolute_error_score"),
    _like_r2("d2_pinball_score"),
    _like_r2("d2_tweedie_score"),
    _loss(
        "neg_mean_absolute_error",
        terms=_absolute_error,
        sentence="off by {all:loss} on average with everybody's data, {none:loss} without",
        common=True,
        also_called=("mae",),
    ),
    _loss(
        "neg_root_mean_squared_error",
        terms=partial(_root, _squared_error),
        squares=True,
        sentence=_OFF.format("root mean square error"),
        common=True,
        also_called=("rmse",),
    ),
    _loss(
        "neg_mean_squared_error",
        terms=_squared_error,
        squares=True,
        sentence=_OFF.format("mean squared error"),
        also_called=("mse",),
    ),
    _loss(
        "neg_mean_absolute_percentage_error",
        terms=_relative_error,
        sentence=_OFF.format("relative error"),
        also_called=("mape",),
    ),
    _loss("neg_mean_squared_log_error", terms=_squared_log_error),
    _loss("neg_root_mean_squared_log_error", terms=partial(_root, _squared_log_error)),
    _loss("neg_median_absolute_error", sentence=_OFF.format("median error")),
    _loss("neg_mean_gamma_deviance"),
    _loss("neg_mean_poisson_deviance"),
    _loss("neg_max_error"),
    _of_numbers("max_error"),
]
TABLE = {metric.name: metric for metric in _ROWS}
"""Metrics of which more is known than that they are scorers of scikit-learn, by name."""
