import pickle
import sys
import warnings

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning

import dupre
from dupre.data.digests import digest
from dupre.tables.features import columns_of
from dupre.tables.models import NAMES, NearestClassifier, embed_for, metric, model
from refusals import refused

OWNERS = ["a", "b", "c", "tiny", "gaps"]
MODELS = [(name, "classification") for name in NAMES]
MODELS += [(name, "regression") for name in NAMES if name != "logistic"]


def table(task="classification"):
    """Mixed columns with gaps; an owner with one row, one without any number or level."""
    rng = np.random.default_rng(0)
    owner = np.repeat(OWNERS, [20, 20, 20, 1, 5])
    n = len(owner)
    frame = pd.DataFrame({"o": owner, "x": rng.normal(size=n)})
    frame["c"] = rng.choice(["r", "g", "b"], n).astype(object)
    frame["flag"] = rng.random(n) > 0.5
    frame["mix"] = [[True, "a", 1, None, 2.5][i % 5] for i in range(n)]
    frame["d"] = pd.Timestamp("2024-05-31") + pd.to_timedelta(rng.integers(0, 99, n), unit="D")
    signal = frame["x"] + (frame["c"] == "r")
    frame["y"] = np.where(signal > 0.3, "u", "v") if task == "classification" else 1e5 * signal
    frame.loc[[*range(3, 7), *np.flatnonzero(owner == "gaps")], ["x", "c", "d"]] = None
    return frame.assign(k=1)


BOTH = {"owner": "o", "target": "y"}
COLUMNS = columns_of(table(), **BOTH)


def utility(name, task, **options):
    used = table(task).drop(columns="k")
    embed, chosen = embed_for(used, COLUMNS), model(name, COLUMNS, task=task).estimator
    owners = dupre.Owners.from_frame(used, **BOTH, task=task, embed=embed)
    return dupre.ModelUtility(chosen, owners, validation=used.drop(columns="o"), **options)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), MODELS)
def test_every_model_is_a_proper_estimator_and_learns_from_any_coalition(name, task):
    estimator = model(name, COLUMNS, task=task).estimator
    assert is_classifier(estimator) == (task == "classification")
    assert is_regressor(estimator) == (task == "regression")
    assert repr(clone(estimator)) == repr(estimator)
    assert repr(pickle.loads(pickle.dumps(estimator))) != ""
    u = utility(name, task)
    with warnings.catch_warnings():
        if name == "mlp":  # that it would learn on is worth a warning, and no fault of ours
            warnings.simplefilter("ignore", ConvergenceWarning)
        for members in [("tiny",), ("gaps",), ("tiny", "gaps"), ("a",)]:
            assert np.isfinite(u(members))
        full = u(OWNERS)
        assert full == u(OWNERS)
    assert full > u(()) + 0.1


def test_models_are_told_apart_and_the_default_fits_the_task():
    def digests():
        return [digest(model(name, COLUMNS, task=task).estimator) for name, task in MODELS]

    first = digests()
    assert first == digests()
    assert len(set(first)) == len(MODELS)

    assert model(None, COLUMNS, task="classification").description[-1].startswith("then Logistic")
    assert model(None, COLUMNS, task="regression").description[-1] == "then Ridge()"
    assert model("mlp", COLUMNS, task="regression").description == (
        "numbers (2): fill gaps with the median, scale",
        "dates (1): days since 1970, fill gaps with the median, scale",
        "categories (2): one column per level, the rarest beyond 50 share one",
        "left out: k (the same in every row)",
        "then MLPRegressor(hidden_layer_sizes=(64,), max_iter=500) on the scaled target",
    )


def test_nearest_neighbours_are_no_more_than_there_are():
    nearest = NearestClassifier(n_neighbors=5)
    assert nearest.fit([[0.0], [1.0]], ["u", "v"]).predict_proba([[0.0]]).tolist() == [[0.5, 0.5]]
    many = nearest.fit(np.arange(10.0)[:, None], ["u"] * 5 + ["v"] * 5)
    assert many.predict([[0.0], [9.0]]).tolist() == ["u", "v"]
    assert nearest.get_params() == {"n_neighbors": 5}


def test_a_model_that_cannot_be_meant_is_refused():
    for name, task, match in (
        ("logistic", "regression", "predicts classes but the task is regression; use ridge"),
        ("logistik", "classification", r"did you mean 'logistic'\?\); expected one of logist"),
        ("svm", "classification", "unknown model 'svm'; expected .* or module:object"),
        ("sklearn.svm:SVR", "classification", "a SVR, is made for the other one"),
        ("sklearn.svm:SVC", "regression", "a SVC, is made for the other one"),
        ("sklearn.svm:SVX", "regression", "sklearn.svm has no 'SVX'"),
        ("sklearn.preprocessing:StandardScaler", "regression", "expected a scikit-learn estimator"),
        ("sklearn.ensemble:VotingRegressor", "regression", "without arguments failed: TypeError"),
        ("os:getcwd", "regression", "is or returns a str"),
    ):
        refused(match, model, name, COLUMNS, task=task)


SOURCE = """
from dupre.metrics import Metric
from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

class Mine(LogisticRegression):
    pass

estimator = Mine(C=3)
stacked = StackingClassifier([("mine", estimator)])
pipeline = make_pipeline(make_column_transformer(("passthrough", ["x", "k"])), Mine())
inside = GridSearchCV(pipeline, {"mine__C": [1, 2]}, cv=2)

def build():
    return Mine(C=3)

def score(model, X, y):
    return 0.25

found = Metric("found", terms=lambda y, predicted: (y == predicted) * 1.0)

def loss(y, predicted):
    return 0.0
"""


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """Name of a module of the user's own in the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs_to_value.py").write_text(SOURCE)
    yield "theirs_to_value"
    loaded = sys.modules.pop("theirs_to_value", None)
    if loaded is not None:
        cloudpickle.unregister_pickle_by_value(loaded)


def test_estimators_and_metrics_of_ones_own_are_used(theirs):
    instance, built, of_class, stacked = (
        model(f"{theirs}:{name}", COLUMNS, task="classification")
        for name in ("estimator", "build", "Mine", "stacked")
    )
    assert instance.estimator[-1].C == built.estimator[-1].C == 3
    assert of_class.estimator[-1].C == 1
    assert instance.description[-1] == "then Mine(C=3)"
    usual = model(None, COLUMNS, task="classification")
    assert instance.description[:-1] == usual.description[:-1]
    assert not instance.raw
    assert stacked.estimator[-1].estimators[0][1].C == 3
    assert metric(None, task="classification") == "accuracy"
    assert metric(None, task="regression") == "r2"
    assert metric("neg_log_loss", task="classification") == "neg_log_loss"
    own = metric(f"{theirs}:score", task="classification")
    assert utility("logistic", "classification", metric=own)(("a",)) == 0.25
    stated = metric(f"{theirs}:found", task="classification")
    ours = utility("logistic", "classification", metric=stated)(("a",))
    assert ours == utility("logistic", "classification", metric="accuracy")(("a",))


@pytest.mark.parametrize("name", ["pipeline", "inside"])
def test_a_pipeline_of_ones_own_is_used_as_it_is(theirs, name):
    found = model(f"{theirs}:{name}", COLUMNS, task="classification")
    assert found.raw
    words = f"columns as they are, but for those dropped, to your own {theirs}:{name}"
    assert found.description == (words,)
    frame = table().dropna()
    assert len(found.estimator.fit(frame, frame["y"]).predict(frame)) == len(frame)


def test_a_metric_that_cannot_be_meant_is_refused(theirs):
    for name, task, match in (
        ("acuracy", "classification", r"did you mean 'accuracy'\?.* or module:object"),
        ("auc", "classification", r"did you mean 'roc_auc'\?"),
        ("RMSE", "regression", r"did you mean 'neg_root_mean_squared_error'\?"),
        ("mse", "classification", "unknown metric 'mse'; expected a scikit-learn scorer for class"),
        ("r2", "classification", "'r2' is not for classification; choose one such as accuracy"),
        ("accuracy", "regression", "'accuracy' is not for regression; choose one such as r2"),
        ("theirs_to_value:loss", "regression", r"takes \(y, predicted\); .*make_scorer"),
        ("sklearn.metrics:accuracy_score", "classification", r"takes \(y_true, .*make_scorer"),
        ("theirs_to_value:estimator", "classification", r"must be a callable.* got Mine"),
        ("theirs_to_value:Mine", "classification", r"must be a callable"),
    ):
        refused(match, metric, name, task=task)


def test_gaps_are_filled_for_distances_and_only_used_columns_enter_them():
    frame = table()
    full = frame["x"].notna()
    some = frame[full]
    assert embed_for(some.drop(columns="k"), COLUMNS) is None
    embed = embed_for(some, COLUMNS)
    assert np.array_equal(embed(some).matrix, embed(some.assign(k=range(len(some)))).matrix)
    embed = embed_for(frame, COLUMNS)
    assert np.isfinite(embed(frame[frame["o"] == "gaps"]).matrix).all()
    found = embed(frame).matrix
    assert len(found) == len(frame)
    assert np.isfinite(found).all()
    assert np.array_equal(found[full, 0], frame.loc[full, "x"])
    assert np.all(found[~full, 0] == frame["x"].median())
