"""The utility of a coalition: train the user's model on its rows, score it on validation rows.

Any `callable(tuple of owner names) -> float` can be used instead of a `ModelUtility`.

A failed training raises. It is never turned into a number, here or anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier, DummyRegressor

from dupre._types import Digests, Floats
from dupre.checks import check_bounds, finite, whole
from dupre.data.digests import digests_of_coalitions, digests_of_rows, hash_json
from dupre.data.owners import Owners
from dupre.data.rows import copy_rows, with_levels_of_both
from dupre.errors import InputError, Remedy
from dupre.game.coalitions import from_names
from dupre.metrics import DEFAULT, Metric, Scorer, check_metric, check_trial
from dupre.utility.estimator import check_estimator, fit, other_libraries, uses_seed
from dupre.utility.folds import (
    Deal,
    Folds,
    Holdout,
    Validating,
    can_deal_again,
    deal,
    fix,
    folds_of,
    is_split,
    labels_of,
    what_decides,
)
from dupre.utility.resampling import (
    Predictions,
    Scored,
    average_of_folds,
    check_folds,
    resample,
    score_weighted,
)
from dupre.utility.score import RESAMPLES, EqualRows, Score, draw_resamples, resampled_of
from dupre.utility.validation import check_validation
from dupre.wording import join_list, quote

Kept = TypeVar("Kept")


class ModelUtility:
    """The score on validation rows of a model trained on a coalition's rows.

    If the rows of a coalition have a single class, the constant prediction of this class is scored,
    whatever the model: many classifiers refuse to train on one class, and the others can predict
    nothing else.

    The empty coalition has the score of the best constant predictor, which needs no owner's data.
    For classification it is the best of each single class and the class frequencies of the
    validation rows (for accuracy: the share of the largest class). What it seems better by being
    chosen on these rows is taken off where resamples tell it in one product of matrices. For
    regression it is the better of the mean and the median of the validation targets (for R²: 0).
    State `empty=` to override.

    Every `random_state` of the estimator is set from (seed, contents of the coalition, repeat), and
    so is that of estimators in the grid of a search, of a splitter which shuffles (unless it is a
    whole number) and the seed of torch if it is used; rows are ordered by their contents. So a
    utility depends on the rows alone, not on owner names or on when and where it is trained.
    Coalitions with the same rows have the same utility. A classifier that refuses the labels gets
    whole numbers. A categorical column has the levels of the coalition's and the validation rows,
    sorted unless it is ordered: their codes do not depend on other owners.

    Every model is scored on resamples of the validation rows too, the same for all coalitions: how
    far the values depend on the choice of these rows follows from them. For accuracy, balanced
    accuracy, F1, precision, recall, log loss, Brier score, R² and errors of numbers this is one
    product of matrices, for areas under the ROC curve a sum over sorted rows. Any other metric is
    called once for each resample, on the same predictions. A metric of your own must take weights
    of rows from X or y: if it gives another score to the same rows in another order, resamples are
    not scored, and a warning says so.

    With folds a coalition is trained once for each, on its rows outside of the fold, and scored on
    the fold's rows of all owners. Predictions of all folds are pooled, and the metric scores them
    together; one that is no function of means over rows is averaged over folds, an area under the
    ROC curve by pairs of rows. In a fold for which a coalition has no rows left, the prediction of
    no data stands. A repeat deals the folds anew.

    Args:
        estimator: scikit-learn classifier, regressor or pipeline; it is cloned, never changed.
        owners: whose rows to train on.
        validation: (X, y), or a frame with the owners' target column: the same kind of X and the
            same columns as the owners'. Or how to split the owners' rows: `Folds(10)`, which lets
            every row validate once, `Holdout(0.2)`, or a splitter of scikit-learn.
        metric: scikit-learn scorer name, callable(model, X, y) -> float, greater is better, or a
            `dupre.metrics.Metric`. Default: "accuracy" for classification, "r2" for regression.
        empty: utility of the empty coalition.
        floor: lowest utility that counts: a lower score counts as this. Default: the score of no
            data for R² and the like, whose scores have no lower bound; none for other metrics.
            False for none. Stores keep the scores as they were.
        bounds: between which scores lie, (low, high), None for an end without one: predictions
            do too. Default: those of the metric, as far as they are known.
        seed: the training seeds derive from it.
        resamples: of the validation rows; 0 to do without. One number for all trainings of a store.

    Raises:
        InputError: every training would fail, or the score would have no meaning.
    """

    def __init__(
        self,
        estimator: Any,
        owners: Owners,
        *,
        validation: Any,
        metric: str | Scorer | Metric | None = None,
        empty: float | None = None,
        floor: float | bool | None = None,
        bounds: tuple[float | None, float | None] | None = None,
        seed: int = 0,
        resamples: int = RESAMPLES,
    ):
        self.estimator = check_estimator(estimator, owners.task)
        if not isinstance(seed, (int, np.integer)):
            raise InputError(f"seed must be a whole number, got {seed!r}")
        self.seed = int(seed)
        self.resamples = whole(resamples, "resamples", least=0)
        if self.resamples == 1:
            raise InputError("one resample of the validation rows says nothing; give 0, or many")
        self.metric = check_metric(metric or DEFAULT[owners.task], owners.task, owners.y)
        self._asked = empty, floor, bounds
        self._begin(owners, validation)

    def _begin(self, owners: Owners, validation: Any, classes: NDArray[Any] | None = None) -> None:
        """All that follows from the rows; `classes` that models predict, if they are known."""
        self.owners = owners
        self._kept: dict[Any, Any] = {}
        self.validation = (
            validation if is_split(validation) else check_validation(validation, owners)
        )
        self._classes = classes
        first = self._deal(0)
        self.X_val, self.y_val = first.X, first.y
        if owners.task == "classification" and classes is None:
            self._classes = np.unique(np.concatenate([owners.y, self.y_val]))
        check_folds(self.metric, first)
        empty, floor, bounds = self._asked
        empty = self.metric.empty if empty is None else empty
        # A named metric is tried even if `empty` is stated: an error now costs no training.
        self._stated = empty is not None
        tried = self._constant_score() if empty is None or self.metric.scorer is None else 0.0
        check_trial(self.metric, tried, self.y_val)
        empty = tried - self._optimism if empty is None else empty
        try:
            self.empty = finite(empty, "empty")
        except InputError as cause:
            raise InputError(
                f"the utility of the empty coalition is {empty!r:.80}; state a finite ",
                Remedy.EMPTY,
            ) from cause

        self.floor = _check_floor(floor, self.metric, self.empty)
        stated = self.metric.bounds if bounds is None else check_bounds(bounds)
        self.bounds = max(stated[0], -np.inf if self.floor is None else self.floor), stated[1]

    def with_owners(self, owners: Owners) -> ModelUtility:
        """The same utility of other owners: models are scored on the same rows as before.

        With `Folds` or `Holdout` these are rows of owners. Rows of newcomers train, outside of
        their own fold like all rows, but do not validate; rows that nobody holds any more drop out.
        So a coalition without newcomers has the same utility as before as long as nobody leaves.

        Raises:
            InputError: another task, a class that no row had, folds by labels of single rows, or
                a splitter that cannot keep to its rows.
        """
        split = self.validation
        if not is_split(split):
            return self._again(owners, split, self._classes)
        labels = [split.by, split.in_time] if isinstance(split, Folds) else []
        if any(not (label is None or isinstance(label, str)) for label in labels):
            raise InputError(
                "folds are made by one label for each row, and rows of other owners have none; "
                "state by= or in_time= as the name of a column of X"
            )
        return self._again(owners, self._fixed(self.validating), self._classes)

    def with_validating(self, rows: Validating) -> ModelUtility:
        """The same utility, but of all rows only these validate: those of an earlier utility."""
        return self._again(self.owners, self._fixed(rows), rows.classes)

    @property
    def validating(self) -> Validating:
        """Which of the owners' rows may validate, for `with_validating`.

        Raises:
            InputError: validation rows are nobody's, or dealt by a splitter of scikit-learn.
        """
        split = self._split()
        if split.rows is not None:
            return split.rows
        fixed = self._keep(("fixed", 0), lambda: fix(split, self.owners))
        return replace(fixed, classes=self._classes)

    def rows_of_folds(
        self, rows: Validating, repeat: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Which of these rows validate in a repeat, sorted by digest, and the fold of each."""
        number = repeat if self.deals else 0
        return folds_of(self._split(), rows, seed=self.seed, number=number)

    def _split(self) -> Folds | Holdout:
        split = self.validation
        if isinstance(split, (Folds, Holdout)):
            return split
        raise InputError(
            f"validation by {type(split).__name__} cannot keep to rows that once validated; state "
            "validation=dupre.Folds(10), or rows of nobody"
        )

    def _fixed(self, rows: Validating) -> Folds | Holdout:
        split = self._split()
        if isinstance(split, Folds) and split.k is None:
            return replace(split, rows=rows, k=rows.k)
        return replace(split, rows=rows)

    def _again(self, owners: Owners, validation: Any, classes: NDArray[Any] | None) -> ModelUtility:
        """A copy for other rows."""
        if owners.task != self.owners.task:
            raise InputError(
                f"the utility is made for {self.owners.task}, but the task of these owners is "
                f"{owners.task}; state task={self.owners.task!r} when building them"
            )
        unseen = [] if classes is None else np.setdiff1d(owners.y, classes).tolist()
        if classes is not None and owners.y.dtype == object:
            classes = classes.astype(object)  # a store has kept texts as such
        if unseen:
            raise InputError(
                f"some rows have the class {join_list(map(quote, unseen))}, which no row had when "
                "the utility was made: its models cannot predict it. Correct these labels, leave "
                "the rows out, or make a new utility of all rows"
            )
        again = copy(self)
        again.__dict__.pop("_of_no_data", None)
        again._begin(owners, validation, classes)
        return again

    @property
    def equal_rows(self) -> EqualRows:
        """Which validation rows are equal, and which of those count as one."""
        return self._scored(0).drawn.equal

    @property
    def first_deal(self) -> Deal:
        """Which rows train and validate, in the deal that counts."""
        return self._deal(0)

    @property
    def in_parts(self) -> bool:
        """Whether a utility is made of parts, of one for each fold: `train_fold` and `pool`.

        Of one part that is held out the predictions are of use, too: see `store.validations`.
        """
        tests = self.first_deal.tests
        return len(tests) > 1 or (is_split(self.validation) and self.metric.is_pooled)

    @property
    def deals(self) -> bool:
        """Whether a repeat splits the rows anew."""
        return can_deal_again(self.validation)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """All that a utility depends on besides the members' rows."""
        split = is_split(self.validation)
        folds = what_decides(self.validation, len(self.owners.y)) if split else None
        return {
            **({"folds": folds} if split else {}),
            "model": self.estimator,
            "metric": self.metric if self.metric.is_own else self.metric.name,
            "validation data": (self.X_val, self.y_val),
            "task": self.owners.task,
            "seed": self.seed,
        }

    @property
    def by_content(self) -> bool:
        """Whether coalitions with the same rows have the same utility.

        A subclass that overrides the call or the training seeds may depend on owner names.
        """
        ours = (ModelUtility.__call__, ModelUtility.training_seed)
        return (type(self).__call__, type(self).training_seed) == ours

    @property
    def seeded(self) -> bool:
        """Whether the seed of a training may change its utility."""
        return uses_seed(self.estimator)

    @property
    def deterministic(self) -> bool:
        """Whether trainings are known to use no random numbers.

        This holds for estimators of scikit-learn without seeds. Others may draw random numbers
        without a seed of ours.
        """
        return not (other_libraries(self.estimator) or self.seeded) and self.by_content

    def is_trained(self, members: Collection[str]) -> bool:
        """Whether a coalition's utility comes from the model, not from a constant prediction."""
        row = from_names(members, self.owners.names)
        return self._classes is None or len(np.unique(self.owners.y[row[self.owners.owner]])) > 1

    def training_seed(self, members: Collection[str], repeat: int = 0) -> int:
        """The seed of one training of a coalition; every repeat has its own."""
        row = from_names(members, self.owners.names)
        contents = digests_of_coalitions(row[None], self.owners.contents)[0]
        return training_seed(self.seed, contents, repeat)

    def to_send(self) -> ModelUtility:
        """A copy for other processes, without the numeric view that only distances need."""
        slim = copy(self)
        slim.owners = self.owners.without_points()
        slim._kept = {}  # validation rows that are the owners' own need not be sent twice
        if is_split(self.validation):
            slim.X_val = None
        return slim

    def score_of_no_data(self) -> Score:
        """The utility of the empty coalition; a stated one does not depend on validation rows.

        On a resample it is that of the model which is the best there.
        """
        if not self.resamples:
            return Score(self.empty)
        drawn = self._scored(0).drawn
        if self._stated:
            known = np.full(len(drawn.counts), self.empty)
            return Score(self.empty, drawn.unknown if drawn.too_few else known)
        found = resampled_of(self._constant_scores)
        if found is None:
            return Score(self.empty)
        # The same is taken off each resample: the choice is among about as many rows.
        return Score(self.empty, np.fmax.reduce(found) - self._optimism)

    def __call__(self, members: Collection[str], *, repeat: int = 0) -> Score:
        """The utility of the coalition of these owners: one training for each fold."""
        if not members:
            return self._at_least(self.score_of_no_data())
        rows = self._scored(repeat)
        if not self.in_parts:
            model, X_val = self._train(members, repeat, 0)
            return self._at_least(self._score_one(model, replace(rows, X=X_val)))
        parts = [
            self.train_fold(members, repeat=repeat, fold=fold) for fold in range(len(rows.tests))
        ]
        return self.pool(parts, repeat=repeat)

    def train_fold(self, members: Collection[str], *, repeat: int = 0, fold: int) -> Floats:
        """What the training for one fold gives; `pool` makes the utility of those of all folds.

        These are the predictions for the rows of the fold, (m,) or (m, c), labels by their
        positions among all classes. For a metric that is averaged over folds it is the score and,
        if they are known, those on resamples, (1 + B,); nothing if the fold cannot be scored.
        """
        rows = self._scored(repeat)
        test = rows.tests[fold]
        one_class = self.metric.ranks is not None and len(np.unique(rows.y[test])) < 2
        if not len(rows.y[test]) or one_class:
            return np.empty(0)
        model, X_val = self._train(members, repeat, fold)
        part = rows.part(X_val, test)
        if self.metric.is_pooled:
            return self._predict(model, part)
        score = self._score_one(model, part)
        known = () if score.resampled is None else score.resampled
        return np.array([score, *known], dtype=np.float64)

    def pool(self, parts: Sequence[Floats], *, repeat: int = 0) -> Score:
        """The utility that follows from what the training for each fold gave."""
        rows = self._scored(repeat)
        if self.metric.is_pooled:
            return self._at_least(self._score_one(self._as_model(parts, rows), rows))
        scored = [rows.part(rows.X, test) for test in rows.tests]
        scores = [
            Score(part[0], part[1:] if len(part) > 1 else None) if len(part) else None
            for part in parts
        ]
        by_pairs = self.metric.ranks is not None
        return self._at_least(average_of_folds(scores, scored, by_pairs=by_pairs))

    def _train(self, members: Collection[str], repeat: int, fold: int) -> tuple[Any, Any]:
        """The model of a coalition for one fold, and the validation rows with its levels."""
        row, dealt = from_names(members, self.owners.names), self._deal(repeat)
        part, X_val = dealt.train[fold], dealt.X
        X, y = self.owners.data_of(row, part)
        if not len(y):
            return self._of_no_data, X_val
        if self._classes is not None and len(np.unique(y)) == 1:
            constant = DummyClassifier(strategy="constant", constant=[y[0]])
            return constant.fit(X, y), X_val
        labelled = self._classes is not None
        X, X_val = with_levels_of_both(X, X_val)

        # A first try may have changed X in place, so a second one gathers the rows again.
        def again() -> Any:
            return with_levels_of_both(self.owners.data_of(row, part)[0], X_val)[0]

        seed = self.training_seed(members, repeat)
        seed = _seed_from([seed, fold]) if fold else seed
        how: dict[str, Any] = {"again": again, "seed": seed, "classes": labelled}
        if (labels := labels_of(self.validation, self.owners)) is not None:
            how["groups"] = labels[self.owners.rows_of(row, part)]
        return fit(self.estimator, X, y, **how), X_val

    def _deal(self, number: int) -> Deal:
        """Which rows train and validate in this deal; the last ones are kept."""
        if not is_split(self.validation):
            return Deal(*self.validation)
        number, split = number if self.deals else 0, self.validation
        if isinstance(split, (Folds, Holdout)):
            split = replace(split, rows=self.validating)
        return self._keep(
            ("deal", number), lambda: deal(split, self.owners, seed=self.seed, number=number)
        )

    def _scored(self, number: int) -> Scored:
        """The validation rows of a deal, and their resamples."""
        number = number if self.deals else 0

        def draw() -> Scored:
            dealt = self._deal(number)
            contents = digests_of_rows(dealt.X, dealt.y)
            is_dealt = dealt.row is not None
            drawn = draw_resamples(contents, self.resamples, dealt.weights, dealt=is_dealt)
            return Scored(dealt.X, dealt.y, drawn, dealt.tests)

        return self._keep(("scored", number), draw)

    def _keep(self, key: Any, make: Callable[[], Kept]) -> Kept:
        """What was made under this key; of further deals only the latest, they are large."""
        if key not in self._kept:
            for old in [k for k in self._kept if k[0] == key[0] and k[1] != 0]:
                del self._kept[old]
            self._kept[key] = make()
        found: Kept = self._kept[key]
        return found

    def _at_least(self, score: Score) -> Score:
        return score if self.floor is None else score.at_least(self.floor)

    @cached_property
    def _of_no_data(self) -> Any:
        """The best model that ignores X."""
        return max(self._fitted_constants(), key=self._score_plainly)

    @property
    def _constant_scores(self) -> list[Score]:
        """Of each model that ignores X, on the validation rows and their resamples."""
        return self._keep(
            ("constants", 0),
            lambda: [self._score_one(m, self._scored(0)) for m in self._fitted_constants()],
        )

    @property
    def _optimism(self) -> float:
        """What the best model that ignores X seems better by being chosen on these rows.

        Of a mean and a median the choice makes no difference that counts. Where each resample takes
        a call of the metric, nothing is known before the first training, and nothing is corrected.
        """
        quick = self.metric.terms is not None and self.resamples > 0
        return optimism(self._constant_scores) if quick and self._classes is not None else 0.0

    def _score_plainly(self, model: Any) -> float:
        """The score of a model that ignores X, on all validation rows."""
        rows = self._scored(0)
        return self._utility(model, copy_rows(rows.X), rows)

    def _predict(self, model: Any, part: Scored) -> Floats:
        """What a model predicts for the rows of a fold, as numbers."""
        method = "predict_proba" if self.metric.probabilities else "predict"
        found = np.asarray(getattr(self._with_classes(model), method)(copy_rows(part.X)))
        if self.metric.probabilities:
            return np.asarray(found, dtype=np.float64)
        found = np.ravel(found)
        if self._classes is None:
            return np.asarray(found, dtype=np.float64)
        places = np.minimum(np.searchsorted(self._classes, found), len(self._classes) - 1)
        if (unknown := self._classes[places] != found).any():
            raise ValueError(f"the model predicts {found[unknown][0]!r}, which no row has")
        return places.astype(np.float64)

    def _as_model(self, parts: Sequence[Floats], rows: Scored) -> Any:
        """The predictions of all folds as those of one model."""
        classes, chances = self._classes, self.metric.probabilities
        columns = 1 if classes is None or not chances else len(classes)
        found = np.empty((len(rows.y), columns))
        for part, test in zip(parts, rows.tests, strict=True):
            found[test] = part.reshape(-1, columns)
        if classes is None:
            return PooledRegressor(found[:, 0])
        return PooledClassifier(
            found if chances else classes[found[:, 0].astype(np.int64)], classes
        )

    def _utility(self, model: Any, X: Any, rows: Scored) -> float:
        """The score on rows that the model and the metric may change in place."""
        found = self.metric(self._with_classes(model), X, rows.y.copy())
        if rows.drawn.weights is None:
            return found
        return score_weighted(self.metric, self._with_classes(model), X, rows)

    def _score_one(self, model: Any, rows: Scored) -> Score:
        with Predictions(model, rows.X, named=self.metric.scorer is None) as predictions:
            utility = self._utility(model, predictions.give_rows(), rows)
            # `Score` refuses what is no number: the training fails, and needs no resamples.
            if not self.resamples or not np.isfinite(utility):
                return Score(utility)
            resampled = resample(
                self.metric,
                self._with_classes(model),
                predictions,
                y=rows.y,
                utility=utility,
                drawn=rows.drawn,
            )
            return Score(utility, resampled)

    def _with_classes(self, model: Any) -> Any:
        """The model, with the classes that it has not seen added for scorers by name."""
        classes, named = self._classes, self.metric.scorer is None
        if classes is None or not named or not hasattr(model, "predict_proba"):
            return model
        return model if len(model.classes_) == len(classes) else _AllClasses(model, classes)

    def _fitted_constants(self) -> list[Any]:
        """Models that ignore X, fitted to the validation rows."""
        if self._classes is None:
            constants: list[Any] = [DummyRegressor(strategy=s) for s in ("mean", "median")]
        else:
            # Which is best depends on the metric: frequencies for log loss, a class for accuracy.
            constants = [DummyClassifier(strategy="prior")]
            constants += [
                DummyClassifier(strategy="constant", constant=[label])
                for label in np.unique(self.y_val)
            ]
        return [model.fit(self.X_val, self.y_val) for model in constants]

    def _constant_score(self) -> float:
        """The score of the best model that ignores X. This also tries the metric."""
        try:
            return max(map(self._score_plainly, self._fitted_constants()))
        except Exception as cause:  # the metric may be the user's code
            raise InputError(
                f"metric {self.metric.name!r} cannot score a constant {self.owners.task} model on "
                f"the validation rows ({cause}); choose a metric that fits the task (a callable "
                "takes model, X and y), or state the utility of no data with ",
                Remedy.EMPTY,
                " if it needs more than a constant model",
            ) from cause


def optimism(scores: Sequence[Score]) -> float:
    """What the best of some models is better by on the rows that chose it than on others.

    By the bootstrap (Efron & Tibshirani 1993, Sec. 17.6): a resample chooses another model, which
    is better there than the best, and worse on all rows, by chance alone. Of 50 rows of two equally
    frequent classes the larger class has 0.056 more than half on average; half of that is left. The
    best loses at most half its distance to the worst: strata of equal size leave nothing to choose.
    """
    every, found = np.array(scores, dtype=np.float64), resampled_of(scores)
    best = int(every.argmax())
    if found is None or not (known := np.isfinite(found).all(axis=0)).any():
        return 0.0
    found = found[:, known]
    better = found.max(axis=0) - found[best]
    worse = every[best] - every[found.argmax(axis=0)]
    return float(min(np.mean(better + worse), (every[best] - every.min()) / 2))


def _check_floor(floor: Any, metric: Metric, empty: float) -> float | None:
    """The lowest utility that counts; None if there is none.

    Args:
        floor: a number, False for none, or None for the default.
        metric: states the default.
        empty: the score of no data.

    Raises:
        InputError: it is something else.
    """
    if floor is False:
        return None
    if floor is None:
        return empty if metric.floor == "no data" else metric.floor
    if floor is True:
        raise InputError("floor must be a number, or False for none, got True")
    return finite(floor, "floor")


def training_seed(seed: int, contents: Digests, repeat: int = 0) -> int:
    """A 32-bit seed from (seed, contents of a coalition, (2,), repeat)."""
    return _seed_from([int(seed), [int(word) for word in contents], int(repeat)])


def _seed_from(parts: list[Any]) -> int:
    """The first 32 bits of SHA-256: `random_state` of scikit-learn takes no more."""
    return int.from_bytes(hash_json(parts)[:4], "little")


class _AllClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A fitted classifier with the classes that it has not seen added, with probability 0.

    Scorers of probabilities need one column for each class of the validation rows.
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


class PooledRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What the models of all folds predict for the validation rows, as one model."""

    def __init__(self, predicted: NDArray[Any]):
        self.predicted = predicted

    def predict(self, _: Any) -> Any:
        """The predictions, which are of the validation rows."""
        return self.predicted


class PooledClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The same for classes; probabilities have two dimensions."""

    def __init__(self, predicted: NDArray[Any], classes: NDArray[Any]):
        self.predicted = predicted
        self.classes_ = classes

    def predict(self, _: Any) -> Any:
        """The predictions, which are of the validation rows."""
        return self.predicted

    def predict_proba(self, _: Any) -> Any:
        """The same, if they are probabilities."""
        return self.predicted
