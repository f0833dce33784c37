from threading import Lock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.metrics import TABLE, as_metric, find
from dupre.utility import model_checks
from dupre.utility.model import ModelUtility
from dupre.utility.model_checks import (
    check_metric,
    check_validation,
    count_shared_rows,
)

REGRESSION_METRICS = {metric.name for metric in TABLE.values() if metric.task == "regression"}
X, Y = load_iris(return_X_y=True)
IRIS = Owners.from_arrays(X[::2], Y[::2], np.arange(75) % 4)
X, Y = X[1:100:2], Y[1:100:2]
DIABETES = Owners.from_arrays(*load_diabetes(return_X_y=True), np.arange(442) % 4)
SHOPS = pd.DataFrame(
    {
        "size": np.arange(12.0),
        "city": ["Bern", "Oslo", "Rome"] * 4,
        "firm": ["x", "y"] * 6,
        "sold": ["no", "no", "yes"] * 4,
    }
)


def test_metrics_of_the_other_task_are_refused():
    for metric in REGRESSION_METRICS:
        with pytest.raises(InputError, match=r"unknown metric|measures errors of numbers"):
            check_metric(metric, IRIS)
    for metric in ("accuracy", "neg_log_loss", "f1", "roc_auc"):  # by trying them
        with pytest.raises(InputError, match=f"metric '{metric}' .* regression"):
            ModelUtility(Ridge(), DIABETES, validation=(DIABETES.X, DIABETES.y), metric=metric)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2)), rng.uniform(1, 5, size=40)
    owners = Owners.from_arrays(*rows, np.arange(40) % 2)
    for metric in REGRESSION_METRICS & set(get_scorer_names()):
        how = {"metric": metric, "resamples": 2}
        utility = ModelUtility(DecisionTreeRegressor(), owners, validation=rows, **how)
        assert np.isfinite(utility(("0", "1")))
    for metric in set(get_scorer_names()) - REGRESSION_METRICS:
        with pytest.raises((ValueError, AttributeError, TypeError, UserWarning)):
            get_scorer(metric)(DummyRegressor().fit(*rows), *rows)


def test_a_metric_of_two_classes_names_that_of_more():
    for metric, labels, better in (
        ("roc_auc", [0, 1, 2], "'roc_auc' is for two classes, but .* 3 classes; use 'roc_auc_ovr'"),
        ("f1", ["a", "b", "c"], "use 'f1_macro'"),
        ("recall", ["no", "yes"], r"0 and 1, but .* \['no', 'yes'\]; use 'recall_macro'"),
        ("roc_auc", ["no", "yes"], None),
        ("f1", [False, True], None),
    ):
        y = np.array(labels * 6)[:12]
        owners = Owners.from_arrays(np.arange(12.0)[:, None], y, ["a", "b"] * 6)
        if better is None:
            check_metric(metric, owners)
        else:
            with pytest.raises(InputError, match=better):
                check_metric(metric, owners)


def test_what_is_no_metric_is_refused_and_probabilities_need_every_class_in_validation():
    for metric, message in {
        "acuracy": "unknown metric 'acuracy'.*'balanced_accuracy'",
        "mse": "unknown metric 'mse'.*'balanced_accuracy'",
        3: "scorer name or a callable, got 3",
    }.items():
        with pytest.raises(InputError, match=message):
            check_metric(metric, IRIS)
    with pytest.raises(InputError, match="neg_log_loss"):
        ModelUtility(LogisticRegression(), IRIS, validation=(X, Y), metric="neg_log_loss")


class Renamed(LogisticRegression):
    """Does not keep its parameter under its name."""

    def __init__(self, c):
        super().__init__(C=c)


def test_what_is_no_estimator_for_the_task_is_refused():
    for thing, owners, message in (
        (LinearRegression(), IRIS, "task is classification but LinearRegression"),
        (LogisticRegression(), DIABETES, "task is regression but"),
        (make_pipeline(StandardScaler(), LogisticRegression()), DIABETES, "task is regression but"),
        (LogisticRegression, IRIS, r"write LogisticRegression\(\)"),
        (None, IRIS, "expected a scikit-learn .*NoneType"),
        ("logistic", IRIS, "expected a scikit-learn .*str"),
        (3, IRIS, "expected a scikit-learn .*int"),
        (lambda X: X, IRIS, "expected a scikit-learn .*function"),
        ([LogisticRegression()], IRIS, "list"),
        (StandardScaler(), IRIS, "StandardScaler"),
        (Renamed(2.0), IRIS, r"Renamed cannot be cloned \(.*c.*\); __init__ .* each parameter"),
    ):
        with pytest.raises(InputError, match=message):
            model_checks.check_estimator(thing, owners)


class Unfinished:
    """Has parameters and can be fitted, but predicts nothing and has no tags of scikit-learn."""

    def get_params(self, **_):
        return {}

    def fit(self, *_):
        return self


def test_an_estimator_may_have_no_predict_before_it_is_fitted():
    stacked = StackingClassifier([("bayes", GaussianNB()), ("line", LogisticRegression())], cv=2)
    assert not hasattr(stacked, "predict")
    searched = GridSearchCV(stacked, {"passthrough": [True, False]}, cv=2)
    for model in (stacked, make_pipeline(StandardScaler(), stacked), searched):
        score = ModelUtility(model, IRIS, validation=(X, Y), resamples=0)(("0", "1", "2"))
        assert score > 0.9
    numbers = StackingRegressor([("line", LinearRegression()), ("ridge", Ridge())], cv=2)
    rows = DIABETES.X[:50], DIABETES.y[:50]
    assert ModelUtility(numbers, DIABETES, validation=rows, resamples=0)(("0", "1")) > 0
    with pytest.raises(InputError, match="task is regression but StackingClassifier"):
        model_checks.check_estimator(stacked, DIABETES)
    with pytest.raises(InputError, match=r"expected a scikit-learn .*Unfinished"):
        model_checks.check_estimator(Unfinished(), IRIS)


def damaged(value):
    rows = X.copy()
    rows[3, 2] = value
    return rows


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ((X[:, :3], Y), r"validation X has shape \(3,\), .* \(4,\)"),
        ((X[:, 0], Y), r"validation X has shape \(\), .* \(4,\)"),
        ((damaged(np.nan), Y), "column '2' of the validation rows .* 1 of 50"),
        ((damaged(np.inf), Y), "column '2' of the validation rows .* 1 of 50"),
        ((X, np.where(Y == 1, np.nan, Y)), "y of the validation rows holds missing"),
        ((np.ma.masked_equal(X, X[3, 2]), Y), "validation rows: X has masked entries"),
        ((X, np.ma.masked_equal(Y, 1)), "validation rows: y has masked entries"),
        ((X, Y[:-1]), "X has 50 rows and y has 49"),
        ((X[:-1], Y), "X has 49 rows and y has 50"),
        ((np.vstack([X, np.full((1, 4), np.nan)]), Y), "X has 51 rows and y has 50"),
        ((X, np.column_stack([Y, Y])), r"y must be one-dimensional.* \(50, 2\)"),
        ((X[:0], Y[:0]), "no validation rows"),
        (X, r"validation must be \(X, y\).* got ndarray"),
        ((X, Y, Y), r"validation must be \(X, y\).* got tuple"),
        (pd.DataFrame(X).assign(y=Y), "got DataFrame"),
        ((X, Y.astype(str)), "use the same labels for both"),
        ((X, Y.astype(str).astype(object)), "use the same labels for both"),
        ((X, Y + 10), "no validation label occurs in training"),
    ],
)
def test_unusable_validation_rows_are_refused_with_the_culprit(validation, message):
    with pytest.raises(InputError, match=message):
        check_validation(validation, IRIS)


def test_validation_targets_on_which_a_metric_has_no_meaning_are_refused_at_once():
    two = Owners.from_arrays(X, Y, np.arange(50) % 3)
    equal, one = (DIABETES.X[:40], np.full(40, 2.5)), (X[Y == 0][:9], Y[Y == 0][:9])
    for metric in ("r2", "explained_variance", "d2_absolute_error_score"):
        for options in ({}, {"empty": 0.0, "floor": False}):
            with pytest.raises(InputError, match=rf"all 40 .* are 2\.5: metric '{metric}' has no"):
                ModelUtility(Ridge(), DIABETES, validation=equal, metric=metric, **options)
    with pytest.raises(InputError, match=r"only validation target is 151\.0: metric 'r2' has no"):
        model_checks.check_trial(find("r2"), np.nan, DIABETES.y[:1])
    for metric in ("roc_auc", "roc_auc_ovr"):
        for empty in (None, 0.5):
            with (
                pytest.warns(UndefinedMetricWarning),
                pytest.raises(InputError, match=f"all 9 .* are 0: metric '{metric}' needs at lea"),
            ):
                ModelUtility(GaussianNB(), two, validation=one, metric=metric, empty=empty)
    with pytest.raises(InputError, match="'neg_mean_squared_error' gives -inf for a constant mod"):
        model_checks.check_trial(find("neg_mean_squared_error"), -np.inf, DIABETES.y)
    for metric in ("neg_mean_squared_error", "max_error"):
        model_checks.check_trial(find(metric), 0.0, np.full(40, 2.5))
    model_checks.check_trial(find("accuracy"), 1.0, np.zeros(40))
    model_checks.check_trial(
        as_metric(lambda model, X, y: 0.0), np.nan, np.zeros(40)
    )  # may mean anything


def test_an_unusable_validation_frame_is_refused_with_the_culprit():
    for validation, message in (
        (SHOPS.drop(columns="city"), "lacks the training column 'city'"),
        (SHOPS.drop(columns="sold"), "no target column 'sold'"),
        (SHOPS.assign(size=np.nan), "column 'size' of the validation rows"),
        ((SHOPS[["size"]].to_numpy(), SHOPS["sold"]), "must be one too"),
        ((SHOPS, SHOPS["sold"].sample(frac=1, random_state=0)), "different indexes"),
    ):
        owners = Owners.from_frame(SHOPS, owner="firm", target="sold")
        with pytest.raises(InputError, match=message):
            check_validation(validation, owners)


def test_validation_rows_that_are_trained_on_are_counted_however_they_are_stored():
    rows = pd.DataFrame({"x": [1, 2, 3], "c": ["a", None, "b"], "who": [1, 1, 2], "y": [0, 1, 0]})
    owners = Owners.from_frame(rows, owner="who", target="y")
    same, y = pd.DataFrame({"x": [2.0, 3.0, 3.0], "c": [None, "b", "b"]}), np.array([1, 0, 1])
    for kind in ("int64", "float64"):
        assert count_shared_rows(owners, same.astype({"x": kind}), y) == 2
        assert count_shared_rows(owners, same.astype({"x": kind}), y + 7.0) == 0
    when = pd.to_datetime(["2024-01-01 00:00", "2024-01-02 03:00"])
    owners = Owners.from_frame(rows[1:].assign(c=when), owner="who", target="y")
    assert count_shared_rows(owners, owners.X[:1], owners.y[:1]) == 1
    for kind in (np.float64, np.float32, sparse.csr_matrix):
        owners = Owners.from_arrays(kind(np.eye(4)), [0, 1, 0, 1], list("aabb"))
        assert count_shared_rows(owners, kind(np.eye(4)[[0, 0, 1]]), np.array([0, 1, 1])) == 2
    assert count_shared_rows(owners, sparse.eye(4, dtype=np.int64), np.array([0.0, 1, 0, 0])) == 3
    unlike = [Lock() for _ in range(4)]  # these cannot be compared
    owners = Owners.from_arrays(unlike, owners.y, list("aabb"), embed=lambda X: np.eye(len(X)))
    assert count_shared_rows(owners, unlike, owners.y) == 0


class Foreign:
    """An estimator that does not inherit from scikit-learn."""

    def fit(self, *_):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def get_params(self, **_):
        return {}

    def set_params(self, **_):
        return self


def test_an_estimator_without_tags_is_told_what_to_inherit():
    with pytest.raises(InputError, match="let it inherit ClassifierMixin or RegressorMixin"):
        ModelUtility(Foreign(), IRIS, validation=(X, Y))


@pytest.mark.parametrize(("model", "target"), [(Ridge(), 7.5), (GaussianNB(), "ill")])
def test_one_target_for_all_rows_to_train_on_is_nothing_to_learn(model, target):
    owners = Owners.from_arrays(X[:20], np.full(20, target), np.arange(20) % 2)
    validation = X[20:30], np.array([target] * 9 + [target if isinstance(target, str) else 9.0])
    with pytest.raises(InputError, match=f"the target is {target} in all 20 rows to train on"):
        ModelUtility(model, owners, validation=validation)
