from threading import Lock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.utility.model import ModelUtility
from dupre.utility.validation import check_validation, count_shared_rows

X, Y = load_iris(return_X_y=True)
IRIS = Owners.from_arrays(X[::2], Y[::2], np.arange(75) % 4)
X, Y = X[1:100:2], Y[1:100:2]
SHOPS = pd.DataFrame(
    {
        "size": np.arange(12.0),
        "city": ["Bern", "Oslo", "Rome"] * 4,
        "firm": ["x", "y"] * 6,
        "sold": ["no", "no", "yes"] * 4,
    }
)


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


@pytest.mark.parametrize(("model", "target"), [(Ridge(), 7.5), (GaussianNB(), "ill")])
def test_one_target_for_all_rows_to_train_on_is_nothing_to_learn(model, target):
    owners = Owners.from_arrays(X[:20], np.full(20, target), np.arange(20) % 2)
    validation = X[20:30], np.array([target] * 9 + [target if isinstance(target, str) else 9.0])
    with pytest.raises(InputError, match=f"the target is {target} in all 20 rows to train on"):
        ModelUtility(model, owners, validation=validation)
