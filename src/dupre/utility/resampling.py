"""The score of one fitted model on many resamples of the validation rows.

Metrics that are functions of means over rows are computed on all resamples at once, and those of
sorted rows from counts (module `metrics`). Any other metric is called once for each resample, on
predictions made once. A metric of one's own must not depend on the order of the rows: one that
holds a weight for each row would give it to other rows in a resample. So it is also called on all
rows in another order.

Notation: m validation rows, B resamples, k terms of a row, c classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dupre._types import Floats, Ints
from dupre.data.rows import copy_rows, take
from dupre.errors import InputError, Remedy
from dupre.metrics import Metric, Terms, mean_score
from dupre.utility.folds import Deal
from dupre.utility.score import Resamples, Score

ROUNDING = 1e-6
"""How well our formula and scikit-learn's must agree on all rows."""

ORDER = 1e-3
"""Differences below this part of the spread are ignored when rows are put in another order."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Validation rows that models are scored on.

    Attributes:
        X, y: the rows and their targets, (m,).
        drawn: resamples of them.
        tests: positions of the rows of each fold; None for all.
    """

    X: Any
    y: NDArray[Any]
    drawn: Resamples
    tests: tuple[Ints | None, ...] = (None,)

    def part(self, X: Any, test: Ints | None) -> Scored:
        """One fold of the rows; X are all of them, as its model needs them."""
        if test is None:
            return replace(self, X=X)
        return Scored(take(X, test), self.y[test], self.drawn.part(test))

    def pairs(self, counts: Floats | None = None) -> float:
        """Pairs of rows of different classes; `counts` says how often each is drawn, (m,)."""
        _, label = np.unique(self.y, return_inverse=True)
        of_class = np.bincount(label.reshape(-1), counts)
        return float(of_class.sum() ** 2 - (of_class**2).sum()) / 2


def average_of_folds(
    scores: Sequence[Score | None], parts: Sequence[Scored], *, by_pairs: bool
) -> Score:
    """The mean of the scores of folds, on all rows and on each resample.

    A fold counts by its rows, or by its pairs of rows of different classes; None counts nothing.
    An area under the ROC curve is a share of pairs within a fold: models of different folds need
    not rank on one scale, so that rows of different folds are never compared.
    """
    known = [(score, part) for score, part in zip(scores, parts, strict=True) if score is not None]
    ones = [np.ones(len(part.y)) for _, part in known]
    sizes = [
        part.pairs(one) if by_pairs else one.sum()
        for (_, part), one in zip(known, ones, strict=True)
    ]
    utility = float(np.average([float(score) for score, _ in known], weights=sizes))
    resampled = [score.resampled for score, _ in known]
    if any(own is None for own in resampled):
        return Score(utility)
    weights = np.array([_sizes_of(part, by_pairs) for _, part in known])
    # What has no weight on a resample, such as a fold of one class there, does not count in it.
    own = np.where(weights > 0, np.array(resampled, dtype=np.float64), 0.0)
    with np.errstate(invalid="ignore"):
        return Score(utility, (own * weights).sum(axis=0) / weights.sum(axis=0))


def _sizes_of(part: Scored, by_pairs: bool) -> Floats:
    """Rows of a fold, or its pairs, on each resample, (B,)."""
    drawn = part.drawn
    if not by_pairs:
        return drawn.sizes
    return np.array([part.pairs(counts[drawn.group]) for counts in drawn.counts])


def check_folds(metric: Metric, dealt: Deal) -> None:
    """Raise InputError if a metric cannot be scored within the folds."""
    weighted = dealt.weights is not None
    if weighted and not metric.is_pooled:
        raise InputError(
            f"metric {metric.name!r} cannot weigh owners alike; take one that is a mean over rows, "
            "such as 'accuracy' or 'r2', or leave equal weights out"
        )
    if metric.ranks is None or len(dealt.tests) == 1:
        return
    classes = np.unique(dealt.y)
    for fold, test in enumerate(tested := _tested(dealt), start=1):
        missing = np.setdiff1d(classes, dealt.y[test])
        # Of two classes a fold without one has no pairs, and counts nothing: a note says so.
        if missing.size and len(classes) > 2:
            raise InputError(
                f"fold {fold} of {len(tested)} has no row of class {missing[0]!r}, which "
                f"metric {metric.name!r} needs in each; state fewer folds, another metric, or ",
                Remedy.VALIDATION,
            )
    if len(folds_without_a_class(dealt)) == len(tested):
        raise InputError(
            f"every fold has rows of one class only, so metric {metric.name!r} has no pair to "
            "rank; state fewer folds, or ",
            Remedy.VALIDATION,
        )


def folds_without_a_class(dealt: Deal) -> list[Ints | None]:
    """The positions of the rows of each fold that lacks a class of the validation rows."""
    classes = len(np.unique(dealt.y))
    return [test for test in _tested(dealt) if len(np.unique(dealt.y[test])) < classes]


def _tested(dealt: Deal) -> list[Ints | None]:
    """The positions of the validation rows of each fold that has any."""
    return [test for test in dealt.tests if test is None or len(test)]


def score_weighted(metric: Metric, model: Any, X: Any, rows: Scored) -> float:
    """The score if validation rows count by their weights; the metric is a mean over rows."""
    terms = metric.terms_of(model, X, rows.y)
    if terms is None:
        raise InputError(f"metric {metric.name!r} has no terms of rows to weigh")
    return _weighted(terms, rows.drawn)


def _weighted(terms: Terms, drawn: Resamples) -> float:
    """The score on all rows, each by its weight."""
    if drawn.weights is None:
        return mean_score(terms)
    of_rows, scores = terms
    means = np.asarray(drawn.weights @ of_rows) / drawn.weights.sum()
    return float(scores(means.reshape(1, -1))[0])


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
    metric: Metric,
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
    if (terms := metric.terms_of(model, X, y)) is not None:
        of_rows, scores = terms
        with np.errstate(divide="ignore", invalid="ignore"):
            # Another version of scikit-learn may define a metric in another way.
            if abs(_weighted(terms, drawn) - utility) <= ROUNDING * max(1.0, abs(utility)):
                return scores(drawn.sum_rows(of_rows) / drawn.sizes[:, None])
    if metric.ranks is not None:
        score = metric.ranks(model, X, y)
        if abs(score(drawn.row_weights) - utility) <= ROUNDING:
            weights = drawn.row_weights
            return np.array([score(counts[drawn.group] * weights) for counts in drawn.counts])

    def score_rows(rows: Ints) -> float:
        some = take(X, rows)
        predictions.of(some, rows)
        # The metric may be the user's code. What it cannot score, such as a resample of a single
        # class, is not known.
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            return metric(model, some, y[rows])
        return np.nan

    found = np.array([score_rows(drawn.rows(b)) for b in range(len(drawn.counts))])
    if metric.scorer is None:
        return found
    # Any other order will do; a fixed one gives the same answer for every model.
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
