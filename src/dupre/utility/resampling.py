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
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dupre._types import Floats, Ints
from dupre.data.rows import copy_rows, take
from dupre.metrics import Metric, mean_score
from dupre.utility.score import Resamples

ROUNDING = 1e-6
"""How well our formula and scikit-learn's must agree on all rows."""

ORDER = 1e-3
"""Differences below this part of the spread are ignored when rows are put in another order."""

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
            if abs(mean_score(terms) - utility) <= ROUNDING * max(1.0, abs(utility)):
                return scores(drawn.sum_rows(of_rows) / drawn.sizes[:, None])
    if metric.ranks is not None:
        score = metric.ranks(model, X, y)
        if abs(score(np.ones(len(y))) - utility) <= ROUNDING:
            return np.array([score(counts[drawn.group]) for counts in drawn.counts])

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
