import pickle

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.naive_bayes import GaussianNB

from dupre.data.digests import digests_of_rows
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.metrics import as_metric
from dupre.training.evaluation import Training, evaluate
from dupre.utility import score
from dupre.utility.model import ModelUtility
from dupre.utility.score import Score, draw_resamples

LABELS = ["accuracy", "balanced_accuracy", "neg_log_loss", "neg_brier_score", "f1_macro"]
LABELS += ["f1_weighted", "f1_micro", "jaccard_macro", "recall_weighted", "roc_auc_ovr"]
LABELS += ["roc_auc_ovr_weighted", "roc_auc_ovo"]
BINARY = ["f1", "recall", "jaccard", "neg_log_loss", "neg_brier_score", "roc_auc"]
NUMBERS = ["r2", "explained_variance", "neg_mean_squared_error", "neg_mean_absolute_error"]
NUMBERS += ["neg_root_mean_squared_error", "neg_mean_absolute_percentage_error"]
NUMBERS += ["neg_root_mean_squared_log_error", "neg_median_absolute_error"]


def tables(kind):
    X, y = load_diabetes(return_X_y=True) if kind == "numbers" else load_iris(return_X_y=True)
    if kind == "binary":
        X, y = X[y > 0] + np.random.default_rng(0).normal(size=(100, 4)), y[y > 0] - 1
    order = np.random.default_rng(0).permutation(len(y))
    train, rest = order[:60], order[60:120]
    owners = Owners.from_arrays(X[train], y[train], np.arange(60) % 3)
    return owners, (X[rest], y[rest])


@pytest.mark.parametrize(
    ("kind", "metric"),
    [("labels", m) for m in LABELS]
    + [("binary", m) for m in BINARY]
    + [("numbers", m) for m in NUMBERS]
    + [("binary", lambda model, X, y: float(np.mean(model.predict_proba(X)[:, 1] * y)))],
)
def test_resampled_utilities_are_the_metric_of_resampled_rows(kind, metric):
    owners, (X, y) = tables(kind)
    model = {"numbers": Ridge(), "binary": LogisticRegression()}.get(kind, GaussianNB())
    how = {"metric": metric, "resamples": 8, "floor": False}
    utility = ModelUtility(model, owners, validation=(X, y), **how)
    fitted = model.fit(owners.X[owners.owner < 2], owners.y[owners.owner < 2])
    scorer = get_scorer(metric) if isinstance(metric, str) else metric
    drawn = draw_resamples(digests_of_rows(X, y), 8)
    found = utility(("0", "1"))
    assert found == pytest.approx(scorer(fitted, X, y))
    wanted = [scorer(fitted, X[drawn.rows(b)], y[drawn.rows(b)]) for b in range(8)]
    np.testing.assert_allclose(found.resampled, wanted, rtol=1e-6)
    several = ("roc_auc_ovo", "neg_median_absolute_error")
    assert as_metric(metric).is_called_for_each == (callable(metric) or metric in several)
    assert utility(()).resampled.shape == (8,)


def test_resamples_follow_the_rows_also_in_groups_and_can_be_left_out(monkeypatch):
    owners, (X, y) = tables("labels")
    how = {"metric": "neg_log_loss"}
    first = ModelUtility(LogisticRegression(), owners, validation=(X, y), **how)
    turned = ModelUtility(LogisticRegression(), owners, validation=(X[::-1], y[::-1]), **how)
    none = ModelUtility(LogisticRegression(), owners, validation=(X, y), resamples=0, **how)
    np.testing.assert_allclose(first(("0",)).resampled, turned(("0",)).resampled)
    assert none(("0",)).resampled is None
    assert none(("0",)) == first(("0",))
    assert none(()).resampled is None
    stated = ModelUtility(LogisticRegression(), owners, validation=(X, y), empty=-2.0, **how)
    assert set(stated(()).resampled) == {-2.0}
    right = np.random.default_rng(0).integers(2, size=3_000).astype(float)
    spread = np.sqrt(right.var() / 3_000)
    for most in (10_000, 500):
        monkeypatch.setattr(score, "MOST_GROUPS", most)
        found = Score.from_rows(right)
        assert found == right.mean()
        assert np.std(found.resampled) == pytest.approx(spread, rel=0.15)


def test_a_score_keeps_its_resamples_and_a_failed_one_is_not_known():
    owners, (X, y) = tables("binary")
    one = int(np.flatnonzero(y == 1)[0])
    rows = np.append(np.flatnonzero(y == 0)[:11], one)  # a third of the resamples have one class
    utility = ModelUtility(GaussianNB(), owners, validation=(X[rows], y[rows]), metric="roc_auc")
    found = pickle.loads(pickle.dumps(utility(("0", "1"))))
    assert found == utility(("0", "1"))
    assert 30 < np.isnan(found.resampled).sum() < 120
    for resampled in ([0.1], [[0.1, 0.2]], ["a", "b"], 0.3, [0.1, np.inf]):
        with pytest.raises(InputError, match="at least 2 resamples"):
            Score(0.1, resampled)
    known = evaluate(lambda members: Score.from_rows([0.0, 1.0]), Training(("0",)))
    assert known.score == 0.5
    assert len(known.score.resampled) == score.RESAMPLES


def test_a_metric_that_depends_on_the_order_of_rows_is_not_scored_on_resamples():
    owners, (X, y) = tables("binary")
    held = np.where(y == 1, 20.0, 1.0)

    def by_position(model, X, y):
        return np.average(model.predict(X) == y, weights=held)

    def by_label(model, X, y):
        return np.average(model.predict(X) == y, weights=np.where(y == 1, 20.0, 1.0))

    wrong, right = (
        ModelUtility(LogisticRegression(), owners, validation=(X, y), metric=metric)
        for metric in (by_position, by_label)
    )
    for members in ((), ("0", "1")):
        with pytest.warns(UserWarning, match="the metric depends on the order of validation rows"):
            found = wrong(members)
        assert found.resampled is None
        assert found == right(members)
        assert len(right(members).resampled) == score.RESAMPLES


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_rounding_is_no_dependence_on_the_order_of_rows(scale):
    owners, (X, y) = tables("numbers")
    held = np.linspace(0.5, 1.5, len(y))

    def close(model, X, y):
        errors = (model.predict(X) - y).astype(np.float32)
        return scale * np.mean(errors)  # near zero: the sum depends on the order a little

    def by_position(model, X, y):
        return scale * np.mean(held * (model.predict(X) - y))

    utility, wrong = (
        ModelUtility(Ridge(), owners, validation=(X, y), metric=metric, empty=0.0)
        for metric in (close, by_position)
    )
    assert np.std(utility(("0",)).resampled) > 0
    with pytest.warns(UserWarning, match="order of validation rows"):
        assert wrong(("0",)).resampled is None


@pytest.mark.parametrize("metric", ["r2", "explained_variance"])
def test_one_extreme_target_leaves_resamples_without_it_as_they_are(metric):
    owners, (X, y) = tables("numbers")
    y = y.copy()
    y[5] = 9999999999.0
    how = {"metric": metric, "resamples": 8, "floor": False}
    found = ModelUtility(Ridge(), owners, validation=(X, y), **how)(("0", "1"))
    fitted = Ridge().fit(owners.X[owners.owner < 2], owners.y[owners.owner < 2])
    drawn = draw_resamples(digests_of_rows(X, y), 8)
    rows = [drawn.rows(b) for b in range(8)]
    assert 0 < sum(5 in some for some in rows) < 8
    wanted = [get_scorer(metric)(fitted, X[some], y[some]) for some in rows]
    np.testing.assert_allclose(found.resampled, wanted, rtol=1e-6)


@pytest.mark.parametrize("metric", ["r2", "explained_variance"])
def test_r2_is_not_known_on_a_resample_of_equal_targets(metric):
    owners, (X, y) = tables("numbers")
    X, y = X[:12], np.where(np.arange(12) == 3, y[3], 0.1)
    utility = ModelUtility(Ridge(), owners, validation=(X, y), metric=metric, floor=False)
    drawn = draw_resamples(digests_of_rows(X, y), utility.resamples)
    equal = drawn.counts[:, drawn.group[3]] == 0
    assert 0 < equal.sum() < len(equal)
    np.testing.assert_array_equal(np.isnan(utility(("0", "1")).resampled), equal)
