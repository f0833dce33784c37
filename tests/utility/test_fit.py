"""Labels and seeds of one training."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dupre.data.owners import Owners
from dupre.utility.fit import fit, uses_torch
from dupre.utility.model import ModelUtility

X, CODES = load_iris(return_X_y=True)
LABELS = np.array(["c", "a", "b"])[CODES]


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
