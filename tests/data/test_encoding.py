import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dupre.data.encoding import MAX_LEVELS
from dupre.data.owners import Owners
from dupre.data.sketch import Resolution, SketchCache
from dupre.game.coalitions import all_coalitions

COARSE = Resolution(directions=10, levels=20, thresholds=64)


def encoded(X):
    """The numeric view of X, one row per row of X."""
    rows = len(X) if not sparse.issparse(X) else X.shape[0]
    owners = Owners.from_arrays(X, np.arange(rows) % 2, np.arange(rows) % 2)
    values = owners.points.values
    return (values.toarray() if sparse.issparse(values) else values)[owners.points.index]


def vectors(owners, eta=0.5):
    return SketchCache(owners, seed=0, resolution=COARSE)(eta, 2, all_coalitions(owners.n))


def pairwise(rows):
    return np.linalg.norm(rows[:, None] - rows[None], axis=2)


def test_numeric_columns_have_mean_zero_and_unit_variance_however_often_rows_occur():
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(50, 3)) * [1e-6, 1.0, 1e6] + [0.0, 100.0, -5e6]
    rows = encoded(X)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(rows.var(axis=0), 1)
    rows = encoded(np.array([[0.0], [0.0], [0.0], [0.0], [4.0], [9.0]]))
    np.testing.assert_allclose([rows.mean(), rows.var()], [0, 1], atol=1e-12)
    owners = Owners.from_arrays(np.array([[-0.0, 1.0], [0.0, 1.0]]), [0, 1], ["a", "b"])
    assert len(owners.points.values) == 1
    assert not np.signbit(owners.points.values).any()
    assert owners.points.index.tolist() == [0, 0]


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9, -3.7])
def test_a_constant_column_is_ignored(constant):
    X = np.column_stack([np.full(30, constant), np.arange(30.0)])
    for rows in (encoded(X), encoded(sparse.csr_array(X))):
        np.testing.assert_allclose(rows[:, 0], 0)
        np.testing.assert_allclose(rows[:, 1].var(), 1)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e5])
def test_the_unit_of_a_column_does_not_change_distances(scale):
    X = np.random.default_rng(0).normal(size=(40, 2))
    np.testing.assert_allclose(pairwise(encoded(X * [scale, 1])), pairwise(encoded(X)), atol=1e-9)


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_different_levels_are_sqrt_2_apart_and_a_missing_one_is_a_level_of_its_own(dtype):
    column = pd.Series(["u", None, "", None, "nan", "u", "v"], dtype=dtype)
    code = np.array([0, 1, 2, 1, 3, 0, 4])
    expected = np.sqrt(2) * (code[:, None] != code)
    np.testing.assert_allclose(pairwise(encoded(pd.DataFrame({"c": column}))), expected, atol=1e-12)
    truth = pd.DataFrame({"c": pd.Categorical([True, None, False, None])})
    assert encoded(truth).shape[1] == 3


def test_numbers_dates_and_truth_are_numbers_and_text_is_levels():
    mixed = np.array([["u", 1.0, 5], ["v", 2.0, 7], ["u", 4.0, 7], ["w", 8.0, 1]], dtype=object)
    frame = pd.DataFrame({"c": ["u", "v", "u", "w"], "x": [1.0, 2.0, 4.0, 8.0], "k": [5, 7, 7, 1]})
    np.testing.assert_allclose(pairwise(encoded(mixed)), pairwise(encoded(frame)))

    days = np.array([0, 1, 5, 9])
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D"),
            "wait": pd.to_timedelta(days, unit="h"),
            "open": [True, False, True, True],
        }
    )
    numbers = np.column_stack([days, days, [1, 0, 1, 1]])
    np.testing.assert_allclose(encoded(frame), encoded(numbers), atol=1e-9)

    frequent = [f"common {i}" for i in range(MAX_LEVELS)]
    rows = encoded(pd.DataFrame({"c": [*frequent, *frequent, "rare", "rarer"]}))
    assert rows.shape[1] == MAX_LEVELS
    distance = pairwise(rows)
    assert distance[-1, -2] == 0
    np.testing.assert_allclose(distance[-1, : 2 * MAX_LEVELS], 1)


@pytest.mark.parametrize(("density", "offset"), [(0.1, 0), (0.6, 0), (1.0, 1e4)])
def test_sparse_and_dense_rows_have_the_same_sliced_wasserstein_distances(density, offset):
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(60, 8)) * (rng.random((60, 8)) < density)
    X[:, 0] += offset  # it cancels in distances
    y, owner = rng.normal(size=60), np.arange(60) % 4
    dense, thin = (Owners.from_arrays(rows, y, owner) for rows in (X, sparse.csr_array(X)))
    assert sparse.issparse(thin.points.values)
    assert thin.points.variance == pytest.approx(dense.points.variance)
    for eta in (0.4, 1.0):
        expected, found = (pairwise(vectors(owners, eta)) for owners in (dense, thin))
        np.testing.assert_allclose(found, expected, rtol=1e-2 if offset else 1e-4, atol=1e-6)
