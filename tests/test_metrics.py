import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer, get_scorer_names, zero_one_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

import dupre
from dupre import InputError, ModelUtility, Owners
from dupre.metrics import TABLE, Metric, as_metric, check_metric, check_trial, find
from dupre.report.summary import metric_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)
OWNERS = dupre.Owners.from_arrays(X[:40], Y[:40], np.arange(40) % 4)


OF_NUMBERS = {metric.name for metric in TABLE.values() if metric.task == "regression"}
X_IRIS, Y_IRIS = load_iris(return_X_y=True)
IRIS = Owners.from_arrays(X_IRIS[::2], Y_IRIS[::2], np.arange(75) % 4)
X_IRIS, Y_IRIS = X_IRIS[1:100:2], Y_IRIS[1:100:2]
DIABETES = Owners.from_arrays(*load_diabetes(return_X_y=True), np.arange(442) % 4)


def right(y, predicted):
    return (y == predicted) * 1.0


def share_right(y, predicted):
    return right(y, predicted)[:, None], lambda means: means[:, 0]


def loss(model, X, y):
    return zero_one_loss(y, model.predict(X))


def utility_of(metric, **options):
    options = {"resamples": 20, **options}
    model = LogisticRegression()
    return dupre.ModelUtility(model, OWNERS, validation=(X[40:], Y[40:]), metric=metric, **options)


@pytest.mark.parametrize(
    ("metric", "shift"),
    [
        (Metric("right", terms=right), 0.0),
        (Metric("right", terms=share_right), 0.0),
        (Metric("right", scorer=lambda model, X, y: 1 - loss(model, X, y), terms=right), 0.0),
        (Metric("wrong", scorer=loss, greater_is_better=False), 1.0),
        (Metric("wrong", terms=lambda y, p: y != p, greater_is_better=False), 1.0),
        (Metric("accuracy", bounds=(0.2, None)), 0.0),
    ],
)
def test_a_metric_by_terms_by_a_scorer_or_as_a_loss_is_accuracy(metric, shift):
    found, accuracy = utility_of(metric), utility_of("accuracy")
    # Of no data the choice of the best constant is corrected where terms are known.
    for members in ((),) * (found.metric.terms is not None) + (("0",), ("1", "2", "3")):
        ours, theirs = found(members), accuracy(members)
        assert ours + shift == pytest.approx(theirs, abs=1e-12)
        np.testing.assert_allclose(ours.resampled + shift, theirs.resampled, atol=1e-12)


def test_facts_of_a_metric_are_the_defaults_of_the_utility():
    metric = Metric("right", terms=right, bounds=(None, 1), floor=0.4, empty=0.3)
    utility = utility_of(metric)
    assert (utility.empty, utility.floor, utility.bounds) == (0.3, 0.4, (0.4, 1.0))
    utility = utility_of(metric, empty=0.1, floor=False, bounds=(0, 1))
    assert (utility.empty, utility.floor, utility.bounds) == (0.1, None, (0.0, 1.0))
    relative = utility_of(Metric("right", terms=right, floor="no data"))
    larger = max(np.mean(Y[40:]), 1 - np.mean(Y[40:]))
    assert relative.floor == relative.empty <= larger


def test_probabilities_are_given_with_the_index_of_the_true_class():
    brier = Metric(
        "brier",
        terms=lambda true, chances: -((1 - chances[np.arange(len(true)), true]) ** 2),
        probabilities=True,
    )
    theirs = utility_of("neg_brier_score")
    for members in (("0",), ("1", "2")):
        np.testing.assert_allclose(
            utility_of(brier)(members).resampled, theirs(members).resampled, atol=1e-12
        )


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (lambda: Metric(""), "name of a metric must be a text"),
        (lambda: Metric("x", scorer=3), "scorer of metric 'x' must be a function"),
        (lambda: Metric("x", bounds=(1, 0)), "lower bound must be less"),
        (lambda: Metric("x", floor="low"), "floor must be a finite number"),
        (lambda: utility_of(Metric("unheard_of")), "unknown metric 'unheard_of'"),
        (lambda: utility_of("acuracy"), "unknown metric 'acuracy'.*'balanced_accuracy'"),
        (lambda: utility_of("mse"), "unknown metric 'mse'.*'balanced_accuracy'"),
        (lambda: utility_of(Metric("x", terms=right, task="regression")), "errors of numbers"),
        (
            lambda: utility_of(Metric("x", terms=lambda y, p: y[:3])),
            r"one number for each of the 50",
        ),
        (lambda: utility_of(3), "metric must be a scorer name or a callable, got 3"),
    ],
)
def test_what_cannot_be_a_metric_is_refused(metric, message):
    with pytest.raises(dupre.InputError, match=message):
        metric()


def test_the_words_of_a_metric_are_those_of_statements():
    metric = Metric("right", terms=right, words="the share", unit="points")
    valuation = dupre.value(OWNERS, utility_of(metric), budget=6, progress=False)
    named = metric_of(valuation)
    assert (named.name, named.unit, named.factor) == ("the share", " points", 100.0)
    for text, words in (("r2", "R²"), ("f1_macro", "the F1 score macro"), ("abc", "the score abc")):
        facts = replace(valuation.facts, provenance={"settings": {"metric": text}})
        assert metric_of(replace(valuation, facts=facts)).name == words


def test_rows_of_the_table_can_be_sent_and_others_are_told_by_what_they_compute():
    for metric in TABLE.values():
        again = pickle.loads(pickle.dumps(metric))
        assert (again.name, again.bounds, again.is_own) == (
            metric.name,
            metric.bounds,
            metric.is_own,
        )
    assert [find(name).is_own for name in get_scorer_names()] == [False] * len(get_scorer_names())
    marks = [
        utility_of(metric).fingerprint["metric"]
        for metric in ("accuracy", Metric("accuracy", bounds=(0, 1)))
    ]
    assert marks == ["accuracy", "accuracy"]
    own = [as_metric(right), Metric("right", terms=right), Metric("right", terms=share_right)]
    assert len({dupre.data.digests.digest(metric) for metric in own}) == 3


# --- metrics that do not fit the task or the validation rows


def test_probabilities_need_every_class_in_validation():
    with pytest.raises(InputError, match="neg_log_loss"):
        ModelUtility(LogisticRegression(), IRIS, validation=(X_IRIS, Y_IRIS), metric="neg_log_loss")


def test_metrics_of_the_other_task_are_refused():
    for metric in OF_NUMBERS:
        with pytest.raises(InputError, match=r"unknown metric|measures errors of numbers"):
            check_metric(metric, "classification", IRIS.y)
    for metric in ("accuracy", "neg_log_loss", "f1", "roc_auc"):  # by trying them
        with pytest.raises(InputError, match=f"metric '{metric}' .* regression"):
            ModelUtility(Ridge(), DIABETES, validation=(DIABETES.X, DIABETES.y), metric=metric)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2)), rng.uniform(1, 5, size=40)
    owners = Owners.from_arrays(*rows, np.arange(40) % 2)
    for metric in OF_NUMBERS & set(get_scorer_names()):
        how = {"metric": metric, "resamples": 2}
        utility = ModelUtility(DecisionTreeRegressor(), owners, validation=rows, **how)
        assert np.isfinite(utility(("0", "1")))
    for metric in set(get_scorer_names()) - OF_NUMBERS:
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
            check_metric(metric, owners.task, owners.y)
        else:
            with pytest.raises(InputError, match=better):
                check_metric(metric, owners.task, owners.y)


def test_validation_targets_on_which_a_metric_has_no_meaning_are_refused_at_once():
    two = Owners.from_arrays(X_IRIS, Y_IRIS, np.arange(50) % 3)
    equal, one = (
        (DIABETES.X[:40], np.full(40, 2.5)),
        (X_IRIS[Y_IRIS == 0][:9], Y_IRIS[Y_IRIS == 0][:9]),
    )
    for metric in ("r2", "explained_variance", "d2_absolute_error_score"):
        for options in ({}, {"empty": 0.0, "floor": False}):
            with pytest.raises(InputError, match=rf"all 40 .* are 2\.5: metric '{metric}' has no"):
                ModelUtility(Ridge(), DIABETES, validation=equal, metric=metric, **options)
    with pytest.raises(InputError, match=r"only validation target is 151\.0: metric 'r2' has no"):
        check_trial(find("r2"), np.nan, DIABETES.y[:1])
    for metric in ("roc_auc", "roc_auc_ovr"):
        for empty in (None, 0.5):
            with (
                pytest.warns(UndefinedMetricWarning),
                pytest.raises(InputError, match=f"all 9 .* are 0: metric '{metric}' needs at lea"),
            ):
                ModelUtility(GaussianNB(), two, validation=one, metric=metric, empty=empty)
    with pytest.raises(InputError, match="'neg_mean_squared_error' gives -inf for a constant mod"):
        check_trial(find("neg_mean_squared_error"), -np.inf, DIABETES.y)
    for metric in ("neg_mean_squared_error", "max_error"):
        check_trial(find(metric), 0.0, np.full(40, 2.5))
    check_trial(find("accuracy"), 1.0, np.zeros(40))
    own = as_metric(lambda model, X, y: 0.0)
    check_trial(own, np.nan, np.zeros(40))  # may mean anything
