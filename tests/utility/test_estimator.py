import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, StackingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.utility.estimator import check_estimator, fit, uses_torch
from dupre.utility.model import ModelUtility

X, CODES = load_iris(return_X_y=True)
LABELS = np.array(["c", "a", "b"])[CODES]
OWNERS = Owners.from_arrays(X, CODES, np.arange(150) % 3)
CLASSES, NUMBERS = "classification", "regression"


class Strict(LogisticRegression):
    """Wants the labels 0, 1, …, k - 1 of its own rows, as XGBoost does."""

    def fit(self, X, y):
        if np.unique(y).tolist() != list(range(len(np.unique(y)))):
            raise ValueError(f"Invalid classes inferred from unique values of y: {np.unique(y)}")
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("metric", "labels"),
    [("accuracy", LABELS), ("neg_log_loss", CODES + 3), ("roc_auc_ovr", LABELS)],
)
def test_a_classifier_that_wants_whole_numbers_gets_them_and_answers_in_labels(metric, labels):
    owners = Owners.from_arrays(X, labels, CODES)  # every owner holds one class
    strict, plain = Strict(max_iter=500), LogisticRegression(max_iter=500)
    scaled = make_pipeline(StandardScaler(copy=False), strict)  # the rows change before it refuses
    for models in ((strict, plain), (scaled, make_pipeline(StandardScaler(), plain))):
        strict, plain = (
            ModelUtility(model, owners, validation=(X, labels), metric=metric, resamples=2)
            for model in models
        )
        for members in (("0", "2"), ("0", "1", "2")):
            assert strict(members) == pytest.approx(plain(members), abs=1e-9)


def test_another_failure_is_told_as_it_was():
    gaps = np.full((4, 1), np.nan)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        fit(Strict(), gaps, np.array(list("abab")), again=gaps.copy, seed=0, classes=True)
    with pytest.raises(ValueError, match="Invalid classes"):
        fit(Strict(), X, np.array(CODES + 0.5), again=X.copy, seed=0, classes=False)


class Network(ClassifierMixin, BaseEstimator):
    """Its weights are random numbers of torch."""

    def fit(self, X, y):  # noqa: ARG002
        self.weight_ = sys.modules["torch"].state[0]
        return self

    def predict(self, X):
        raise NotImplementedError


class Torch:
    """What is used of torch."""

    state = (7,)
    cuda = SimpleNamespace(device_count=lambda: 0)
    random = property(lambda self: self)

    def manual_seed(self, seed):
        self.state = (seed,)

    def fork_rng(self, devices):
        assert not list(devices)
        return self

    def __enter__(self):
        self.before = self.state

    def __exit__(self, *_):
        self.state = self.before


def test_torch_is_seeded_for_a_training_and_put_back(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", Torch())
    assert not uses_torch(Network())  # something else has loaded it
    monkeypatch.setattr(sys.modules[__name__], "torch", sys.modules["torch"], raising=False)
    for seed in (1, 2):
        fitted = fit(Network(), X, CODES, again=X.copy, seed=seed, classes=True)
        assert fitted.weight_ == seed
    assert sys.modules["torch"].state == (7,)
    owners = Owners.from_arrays(X, CODES, CODES)
    assert ModelUtility(Network(), owners, validation=(X, CODES)).seeded
    assert not uses_torch(LogisticRegression())


SHUFFLED = [
    KFold(3, shuffle=True),
    StratifiedKFold(3, shuffle=True, random_state=np.random.RandomState(0)),
    ShuffleSplit(3),
    RepeatedStratifiedKFold(n_splits=2, n_repeats=2),
]


@pytest.mark.parametrize("cv", SHUFFLED, ids=lambda cv: type(cv).__name__)
@pytest.mark.parametrize("nested", [False, True])
def test_a_splitter_that_shuffles_is_seeded_as_an_estimator_is(cv, nested):
    rows = np.random.default_rng(0).permutation(150)
    owners = Owners.from_arrays(X[rows[:60]], CODES[rows[:60]], np.arange(60) % 3)
    renamed = Owners.from_arrays(X[rows[59::-1]], CODES[rows[59::-1]], list("cba") * 20)
    model = CalibratedClassifierCV(GaussianNB(), cv=cv)
    model = make_pipeline(StandardScaler(), model) if nested else model
    how = {"validation": (X[rows[60:]], CODES[rows[60:]]), "metric": "neg_log_loss"}
    utility, other = (ModelUtility(model, both, **how) for both in (owners, renamed))
    assert utility.seeded
    assert not utility.deterministic
    first = utility(("0", "1"))
    assert utility(("0", "1")) == first == other(("a", "b"))
    assert utility(("0", "1"), repeat=1) != first
    assert not isinstance(cv.random_state, int)  # the user's own is as it was


@pytest.mark.parametrize("listed", [False, True])
def test_estimators_in_the_grid_of_a_search_are_seeded(listed):
    forest, plain = RandomForestClassifier(3, max_depth=1), GaussianNB()
    pipeline = Pipeline([("scale", StandardScaler()), ("model", plain)])
    grid = {"model": [forest, RandomForestClassifier(2, max_depth=1)], "model__max_features": [1]}
    search = GridSearchCV(pipeline, [grid] if listed else grid, cv=2)
    utility = ModelUtility(search, OWNERS, validation=(X, CODES), metric="neg_log_loss")
    assert utility.seeded
    assert not utility.deterministic
    assert utility(("0", "1")) == utility(("0", "1")) != utility(("0", "1"), repeat=1)
    assert forest.random_state is None
    inner = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 9]}, cv=ShuffleSplit(2))
    for candidates in (
        {"model": [CalibratedClassifierCV(plain, cv=KFold(3, shuffle=True))]},
        {"model": np.array([forest], dtype=object)},
        {"model": [inner]},
    ):
        nested = GridSearchCV(pipeline, candidates, cv=2)
        utility = ModelUtility(nested, OWNERS, validation=(X, CODES), metric="neg_log_loss")
        assert utility.seeded
        assert utility(("0", "1")) == utility(("0", "1"))
    without = GridSearchCV(pipeline, {"model": [plain]}, cv=2)
    assert ModelUtility(without, OWNERS, validation=(X, CODES)).deterministic


class Halves:
    """A splitter of one's own: nobody knows whether it draws."""

    def get_n_splits(self, X=None, y=None, groups=None):  # noqa: ARG002
        return 1

    def split(self, X, y=None, groups=None):  # noqa: ARG002
        rows = np.random.default_rng().permutation(len(X))
        yield rows[::2], rows[1::2]


@pytest.mark.parametrize("cv", [3, KFold(3), KFold(3, shuffle=True, random_state=7), Halves()])
def test_a_splitter_with_a_seed_or_without_chance_is_left_alone(cv):
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5, 7, 9]}, cv=cv)
    utility = ModelUtility(search, OWNERS, validation=(X, CODES))
    assert utility.deterministic == (not isinstance(cv, Halves))  # of another library
    assert not utility.seeded
    fitted = fit(search, X, CODES, again=X.copy, seed=3, classes=True)
    assert getattr(fitted.cv, "random_state", None) == getattr(cv, "random_state", None)


class Forgetful(LogisticRegression):
    """Its `fit` returns nothing."""

    def fit(self, X, y):
        super().fit(X, y)


def test_an_estimator_whose_fit_returns_nothing_is_used_itself():
    fitted = fit(Forgetful(max_iter=500), X, LABELS, again=X.copy, seed=0, classes=True)
    assert isinstance(fitted, Forgetful)
    assert fitted.score(X, LABELS) > 0.9


# --- what is no estimator


class Renamed(LogisticRegression):
    """Does not keep its parameter under its name."""

    def __init__(self, c):
        super().__init__(C=c)


def test_what_is_no_estimator_for_the_task_is_refused():
    for thing, task, message in (
        (LinearRegression(), CLASSES, "task is classification but LinearRegression"),
        (LogisticRegression(), NUMBERS, "task is regression but"),
        (make_pipeline(StandardScaler(), LogisticRegression()), NUMBERS, "task is regression but"),
        (LogisticRegression, CLASSES, r"write LogisticRegression\(\)"),
        (None, CLASSES, "expected a scikit-learn .*NoneType"),
        ("logistic", CLASSES, "expected a scikit-learn .*str"),
        (3, CLASSES, "expected a scikit-learn .*int"),
        (lambda X: X, CLASSES, "expected a scikit-learn .*function"),
        ([LogisticRegression()], CLASSES, "list"),
        (StandardScaler(), CLASSES, "StandardScaler"),
        (Renamed(2.0), CLASSES, r"Renamed cannot be cloned \(.*c.*\); __init__ .* each parameter"),
    ):
        with pytest.raises(InputError, match=message):
            check_estimator(thing, task)


class Unfinished:
    """Has parameters and can be fitted, but predicts nothing and has no tags of scikit-learn."""

    def get_params(self, **_):
        return {}

    def fit(self, *_):
        return self


def test_an_estimator_may_have_no_predict_before_it_is_fitted():
    stacked = StackingClassifier([("bayes", GaussianNB()), ("near", KNeighborsClassifier())], cv=2)
    assert not hasattr(stacked, "predict")
    searched = GridSearchCV(stacked, {"passthrough": [True, False]}, cv=2)
    for model in (stacked, make_pipeline(StandardScaler(), stacked), searched):
        score = ModelUtility(model, OWNERS, validation=(X, CODES), resamples=0)(("0", "1", "2"))
        assert score > 0.9
    numbers = StackingRegressor([("line", LinearRegression()), ("ridge", Ridge())], cv=2)
    widths = Owners.from_arrays(X[:, :3], X[:, 3], np.arange(150) % 3)
    rows = X[::3, :3], X[::3, 3]
    assert ModelUtility(numbers, widths, validation=rows, resamples=0)(("0", "1")) > 0
    with pytest.raises(InputError, match="task is regression but StackingClassifier"):
        check_estimator(stacked, "regression")
    with pytest.raises(InputError, match=r"expected a scikit-learn .*Unfinished"):
        check_estimator(Unfinished(), "classification")


class Foreign(Unfinished):
    """An estimator that does not inherit from scikit-learn."""

    def predict(self, X):
        return np.zeros(len(X))

    def set_params(self, **_):
        return self


def test_an_estimator_without_tags_is_told_what_to_inherit():
    with pytest.raises(InputError, match="let it inherit ClassifierMixin or RegressorMixin"):
        ModelUtility(Foreign(), OWNERS, validation=(X, CODES))
