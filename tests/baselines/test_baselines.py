from functools import partial
from itertools import combinations, permutations
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import root
from scipy.special import softmax
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.metrics import log_loss
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import closed_form
from dupre import EvaluationError, InputError, ModelUtility, Owners, baselines
from dupre.baselines import gradient_shapley, influence, knn_shapley, leave_one_out, tmc_shapley
from dupre.baselines.knn import match_shares, regression_shares
from owners_and_games import shuffled_digits


def players(n):
    """Owners of one row each, for games that look at names alone."""
    return Owners.from_arrays(np.arange(n)[:, None], np.arange(n) / 2, np.arange(n))


class Asked:
    """A game as a utility that counts how often it is asked."""

    def __init__(self, game):
        self.game, self.calls = game, []

    def __call__(self, members):
        self.calls.append(members)
        row = np.isin(np.arange(self.game.n), [int(name) for name in members])
        return float(self.game.utility(row[None, :])[0]) if members else 0.0


def marginals_of_all_orders(utility, names):
    """Marginal contributions along every permutation, (n!, n)."""
    table = {
        frozenset(members): utility(members)
        for size in range(len(names) + 1)
        for members in combinations(names, size)
    }
    found = []
    for order in permutations(names):
        gains = {
            name: table[frozenset(order[: i + 1])] - table[frozenset(order[:i])]
            for i, name in enumerate(order)
        }
        found.append([gains[name] for name in names])
    return np.array(found)


def assert_within_five_errors(baseline, every, count):
    """Means of `count` draws among all marginals lie within 5 standard errors of their mean."""
    error = every.std(axis=0) / np.sqrt(count)
    off = np.abs(baseline.values - every.mean(axis=0))
    assert np.all(off <= 5 * error + 1e-12)
    # The variance of a sample variance of bounded marginals is at most (half range)^4 / count.
    half = np.ptp(every, axis=0) / 2
    variance = baseline.std.to_numpy() ** 2 * count
    assert np.all(np.abs(variance - every.var(axis=0)) <= 5 * half**2 / np.sqrt(count) + 1e-12)


@pytest.fixture(scope="module")
def digits():
    X, y = shuffled_digits()
    owner = np.arange(200) ** 2 % 7 % 4  # owners of different sizes
    return Owners.from_arrays(X[:200], y[:200], owner), (X[200:500], y[200:500])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    X, y = X[order], y[order]
    return Owners.from_arrays(X[:90], y[:90], np.arange(90) % 5), (X[90:], y[90:])


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    owner = np.where(np.arange(300) < 297, np.arange(300) % 3, 3)  # the last holds three rows
    return Owners.from_arrays(X[:300], y[:300], owner), (X[300:], y[300:])


def test_the_public_names_are_these():
    assert baselines.__all__ == sorted(baselines.__all__)
    assert all(getattr(baselines, name).__doc__ for name in baselines.__all__)


# Truncated Monte Carlo


@pytest.mark.parametrize(
    "game",
    [closed_form.airport([1, 2, 4, 8]), closed_form.glove(4), closed_form.unanimity(5, [0, 3])],
)
def test_permutations_without_truncation_have_no_bias_and_an_honest_error(game):
    owners = players(game.n)
    every = marginals_of_all_orders(Asked(game), owners.names)
    np.testing.assert_allclose(every.mean(axis=0), game.shapley, atol=1e-12)
    utility = Asked(game)
    found = tmc_shapley(utility, owners, permutations=400, tolerance=0, seed=3)
    assert_within_five_errors(found, every, 400)
    assert len(utility.calls) == len(set(utility.calls)) == 2**game.n  # none is paid for twice
    assert found.trained == 2**game.n - 1
    assert found.values.sum() == pytest.approx(every[0].sum(), abs=1e-12)
    assert list(found.values.index) == list(owners.names)


def test_truncation_changes_the_price_at_a_plateau_and_sets_what_is_within_the_tolerance_to_zero():
    game, owners = closed_form.majority(7), players(7)
    plain, cut = Asked(game), Asked(game)
    whole = tmc_shapley(plain, owners, permutations=30, tolerance=0, seed=5)
    short = tmc_shapley(cut, owners, permutations=30, tolerance=0.5, seed=5)
    pd.testing.assert_series_equal(whole.values, short.values)
    assert {len(members) for members in cut.calls} == {0, 1, 2, 3, 4, 7}
    assert short.trained == len(cut.calls) - 1 < whole.trained
    utility = Asked(closed_form.additive([1.0, 0.1]))
    found = tmc_shapley(utility, players(2), permutations=64, tolerance=0.2, seed=0)
    first = found.values["1"] / 0.1  # share of permutations in which the second came first
    assert 0 < first < 1
    assert found.values["0"] == pytest.approx(1.0)
    assert found.std["1"] == pytest.approx(0.1 * np.sqrt(first * (1 - first) / 63))
    nothing = tmc_shapley(utility, players(2), permutations=2, tolerance=2, seed=0)
    assert not nothing.values.any()
    assert nothing.trained == 1


@pytest.mark.parametrize(
    "wrong", [{"tolerance": -1}, {"tolerance": np.nan}, {"permutations": 1}, {"permutations": 2.5}]
)
def test_wrong_arguments_are_refused_before_anything_is_asked(wrong):
    utility = Asked(closed_form.majority(3))
    with pytest.raises(InputError, match=next(iter(wrong))):
        tmc_shapley(utility, players(3), **({"permutations": 4, "tolerance": 0, "seed": 0} | wrong))
    assert not utility.calls


@pytest.mark.parametrize(
    "method", [leave_one_out, partial(tmc_shapley, permutations=2, tolerance=0, seed=0)]
)
def test_a_utility_that_is_no_number_is_an_error_with_the_coalition(method):
    def utility(members):
        return float("nan") if members else 0.0

    with pytest.raises(EvaluationError, match="finite") as error:
        method(utility, players(3))
    assert error.value.members == ("0", "1", "2")


@pytest.mark.parametrize(
    "method", [leave_one_out, partial(tmc_shapley, permutations=2, tolerance=0, seed=0)]
)
def test_what_was_evaluated_before_a_failure_is_kept(method):
    owners, asked = players(3), Asked(closed_form.airport([1, 5, 2]))

    def fragile(members):
        if len(members) == 2:
            raise RuntimeError("no room")
        return asked(members)

    with pytest.raises(
        EvaluationError, match=r"evaluating \{.*\} failed: RuntimeError: no roo"
    ) as at:
        method(fragile, owners)
    error = at.value
    assert isinstance(error.__cause__, RuntimeError)
    assert len(error.members) == 2
    assert set(error.known) == set(asked.calls) >= {("0", "1", "2")}
    assert "the exception's .known: go on with a utility that looks there" in str(error)
    again = Asked(closed_form.airport([1, 5, 2]))
    found = method(lambda members: error.known.get(members) or again(members), owners)
    assert found.trained > len(again.calls)


def test_leave_one_out_is_what_is_lost_for_one_training_more_than_owners():
    utility = Asked(closed_form.airport([1, 5, 2]))
    found = leave_one_out(utility, players(3))
    np.testing.assert_allclose(found.values, [0, 3, 0])
    assert not found.std.any()
    assert found.trained == len(utility.calls) == 4


# Gradient Shapley


class Seen(RegressorMixin, BaseEstimator):
    """Counts the rows it has seen."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):  # noqa: ARG002  # scikit-learn's signature
        raise AssertionError("nothing is trained from scratch")

    def partial_fit(self, X, y):  # noqa: ARG002
        self.seen_ = getattr(self, "seen_", 0) + len(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_every_permutation_is_one_pass_over_all_rows(diabetes):
    owners, validation = diabetes

    def rows_seen(model, X, y):
        return getattr(model, "seen_", 0)

    how = {"metric": rows_seen, "permutations": 6, "seed": 0}
    found = gradient_shapley(Seen(), owners, validation=validation, **how)
    np.testing.assert_array_equal(found.values, owners.rows)
    assert not found.std.any()
    assert found.trained == 6


def test_a_model_that_forgets_no_order_has_its_shapley_values(digits):
    owners, validation = digits
    model = MultinomialNB()  # partial_fit of parts equals fit of the whole
    utility = ModelUtility(model, owners, validation=validation)
    every = marginals_of_all_orders(utility, owners.names)
    found = gradient_shapley(model, owners, validation=validation, permutations=80, seed=1)
    assert_within_five_errors(found, every, 80)
    assert found.values.sum() == pytest.approx(every[0].sum(), abs=1e-12)
    assert not hasattr(model, "classes_")


def test_one_owner_per_class_is_no_obstacle_even_for_probabilities():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    owners = Owners.from_arrays(X[::2], y[::2], y[::2])
    model = SGDClassifier(loss="log_loss")
    validation = X[1::2], y[1::2]
    how = {"validation": validation, "metric": "neg_log_loss", "permutations": 8}
    first, second, other = (gradient_shapley(model, owners, **how, seed=s) for s in (4, 4, 5))
    assert np.isfinite(first.values).all()
    pd.testing.assert_series_equal(first.values, second.values)
    two = Owners.from_arrays(owners.X[owners.y < 2], owners.y[owners.y < 2], owners.y[owners.y < 2])
    of_two = gradient_shapley(model, two, **how, seed=0)  # of a class in validation alone
    assert np.isfinite(of_two.values).all()
    assert not first.values.equals(other.values)
    assert model.random_state is None


def test_values_of_two_owners_are_a_mixture_of_both_orders(diabetes):
    owners, validation = diabetes
    two = Owners.from_arrays(owners.X, owners.y, owners.owner < 2)
    parts = {name: two.data_of(np.array(two.names) == name) for name in two.names}
    every = []
    for order in permutations(two.names):
        model, before, gains = SGDRegressor(shuffle=False), 0.0, {}
        for name in order:
            after = model.partial_fit(*parts[name]).score(*validation)
            gains[name], before = after - before, after
        first = empty_r2(validation)
        every.append([gains[name] - (name == order[0]) * first for name in two.names])
    how = {"validation": validation, "permutations": 9, "seed": 0}
    found = gradient_shapley(SGDRegressor(shuffle=False), two, **how)
    shares = [k / 9 * np.array(every[0]) + (1 - k / 9) * np.array(every[1]) for k in range(1, 9)]
    assert min(np.abs(found.values.to_numpy() - share).max() for share in shares) < 1e-12


def empty_r2(validation):
    """The better of mean and median by R²: the mean, 0 but for rounding."""
    return DummyRegressor().fit(*validation).score(*validation)


@pytest.mark.parametrize(
    "model", [RandomForestClassifier(), make_pipeline(StandardScaler(), SGDClassifier())]
)
def test_a_model_that_cannot_be_updated_is_refused(iris, model):
    owners, validation = iris
    with pytest.raises(InputError, match="partial_fit"):
        gradient_shapley(model, owners, validation=validation, permutations=2, seed=0)


# KNN-Shapley


def row_shapley(utility, size):
    """Shapley values of rows 0 .. size - 1 by the definition."""
    table = {c: utility(list(c)) for k in range(size + 1) for c in combinations(range(size), k)}
    values = np.zeros(size)
    for subset, worth in table.items():
        for row in set(range(size)) - set(subset):
            joined = tuple(sorted((*subset, row)))
            values[row] += (table[joined] - worth) / (size * comb(size - 1, len(subset)))
    return values


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 10))
def test_shares_of_matches_equal_brute_force(matches, k):
    match = np.array(matches, dtype=float)
    exact = row_shapley(lambda rows: match[rows[:k]].sum() / k, len(match))
    np.testing.assert_allclose(match_shares(match[None], k)[0], exact, atol=1e-12)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=7), st.integers(1, 10), st.integers(-6, 6))
def test_shares_of_a_regression_equal_brute_force(targets, k, t):
    y = np.array(targets, dtype=float)
    exact = row_shapley(lambda rows: -((y[rows[:k]].sum() / k - t) ** 2), len(y))
    shares = regression_shares(y[None], np.array([[t]]), k)
    np.testing.assert_allclose(shares[0], exact, atol=1e-10)


def knn_by_brute_force(owners, validation, k):
    """Values of owners in the game among rows; equally far rows are ordered by target."""
    X_val, y_val = validation
    both = StandardScaler().fit_transform(np.vstack([owners.X, X_val]))
    train, val = both[: len(owners.y)], both[len(owners.y) :]
    classes = owners.task == "classification"
    middle = 0.0 if classes else owners.y.mean()
    values = np.zeros(len(owners.y))
    for x, t in zip(val, y_val, strict=True):
        distance = np.round(((train - x) ** 2).sum(axis=1), 9)

        def utility(rows, distance=distance, t=t):
            near = sorted(rows, key=lambda r: (distance[r], owners.y[r]))[:k]
            if classes:
                return sum(owners.y[r] == t for r in near) / k
            return -((sum(owners.y[r] - middle for r in near) / k - (t - middle)) ** 2)

        values += row_shapley(utility, len(train)) / len(val)
    return np.bincount(owners.owner, values)


@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_values_equal_brute_force_with_ties_and_more_neighbours_than_rows(task, k):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(8, 2))
    X[[3, 5]] = X[0]  # equal rows, in part with other targets
    y = np.array([1, 0, 2, 0, 1, 1, 2, 0]) * (1 if task == "classification" else 1.5)
    owners = Owners.from_arrays(X, y, [0, 1, 2, 1, 0, 2, 2, 1], task=task)
    validation = rng.normal(size=(4, 2)), y[:4]
    found = knn_shapley(owners, validation=validation, neighbours=k)
    np.testing.assert_allclose(found.values, knn_by_brute_force(owners, validation, k), atol=1e-10)
    assert found.trained == 0
    assert not found.std.any()


def test_equal_rows_are_worth_the_same_whoever_holds_them(iris):
    owners, validation = iris
    X, y = owners.X[:40], owners.y[:40]
    mixed = np.random.default_rng(0).permutation(80)
    twice, holder = (np.vstack([X, X])[mixed], np.tile(y, 2)[mixed]), np.repeat(["a", "b"], 40)
    copies = Owners.from_arrays(*twice, holder[mixed])
    values = knn_shapley(copies, validation=validation, neighbours=3).values
    assert values["a"] == pytest.approx(values["b"], rel=1e-12)


def test_values_add_up_to_the_gain_of_all_rows_in_blocks_and_sparse_or_not(digits, monkeypatch):
    owners, validation = digits
    found = knn_shapley(owners, validation=validation, neighbours=4)
    both = StandardScaler().fit_transform(np.vstack([owners.X, validation[0]]))
    distance = ((both[None, :200] - both[200:, None]) ** 2).sum(axis=2)
    near = np.argsort(distance, axis=1)[:, :4]
    assert found.values.sum() == pytest.approx((owners.y[near] == validation[1][:, None]).mean())
    monkeypatch.setattr("dupre.baselines.knn.BLOCK", 1000)
    blocks = knn_shapley(owners, validation=validation, neighbours=4)
    np.testing.assert_allclose(blocks.values, found.values, rtol=1e-12)
    thin = Owners.from_arrays(sparse.csr_array(owners.X), owners.y, owners.owner)
    rows = sparse.csr_array(validation[0]), validation[1]
    of_thin = knn_shapley(thin, validation=rows, neighbours=4)
    np.testing.assert_allclose(of_thin.values, found.values, atol=1e-12)


@pytest.mark.parametrize("method", [knn_shapley, influence])
def test_categories_are_encoded_alike_for_owners_and_validation(method):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], 120),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9, 120), "D"),
            "holder": rng.choice(["good", "bad"], 120),
        }
    )
    frame["colour"] = frame["colour"].astype("category")
    truth = frame["colour"].eq("red").map({True: "yes", False: "no"})
    frame["bought"] = truth.where(frame["holder"] == "good", truth.map({"yes": "no", "no": "yes"}))
    owners = Owners.from_frame(frame, owner="holder", target="bought")
    other = frame.assign(bought=truth).drop(columns="holder").iloc[::2]
    values = method(owners, validation=other).values
    # Colours alone decide: the one owner tells the truth of each, the other its opposite.
    assert values["good"] > 0
    assert values["bad"] < values["good"] / 2


@pytest.mark.parametrize("method", [knn_shapley, influence, baselines.lava])
def test_embedded_owners_need_the_same_embedding_again(method, digits):
    owners, (X, y) = digits
    images = owners.X.reshape(-1, 8, 8), X.reshape(-1, 8, 8)

    def flat(rows):
        return rows.reshape(len(rows), -1)

    embedded = Owners.from_arrays(images[0], owners.y, owners.owner, embed=flat)
    with pytest.raises(InputError, match="embed="):
        method(embedded, validation=(images[1], y))
    found = method(embedded, validation=(images[1], y), embed=flat)
    pd.testing.assert_series_equal(found.values, method(owners, validation=(X, y)).values)


@pytest.mark.parametrize("method", [knn_shapley, influence, baselines.lava])
def test_validation_rows_are_checked_before_anything_is_computed(method, iris):
    owners, (X, y) = iris
    with pytest.raises(InputError, match="shape"):
        method(owners, validation=(X[:, :2], y))
    with pytest.raises(InputError, match="the validation rows"):
        method(owners, validation=(np.where(X > 5, np.nan, X), y))
    embedded = Owners.from_arrays(owners.X, owners.y, owners.owner, embed=np.log)
    with pytest.raises(InputError, match="of the validation rows holds NaN"):
        method(embedded, validation=(np.full_like(X, np.inf), y), embed=np.log)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [(partial(knn_shapley, neighbours=k), "neighbours") for k in (0, 1.5, True, None)]
    + [(partial(influence, regularisation=r), "regularisation") for r in (0, -1, np.inf, "1")],
)
def test_neighbours_and_regularisation_must_be_positive(method, wrong, iris):
    with pytest.raises(InputError, match=wrong):
        method(iris[0], validation=iris[1])


# Influence


def validation_loss(owners, validation, weight, penalty):
    """Loss on validation rows of a model trained by scikit-learn on weighted rows."""
    X_val, y_val = validation
    both = StandardScaler().fit_transform(np.vstack([owners.X, X_val]))
    both = np.column_stack([both, np.ones(len(both))])
    train, val = both[: len(owners.y)], both[len(owners.y) :]
    if owners.task == "regression":
        middle = owners.y.mean()
        model = Ridge(alpha=penalty, fit_intercept=False, solver="cholesky")
        model.fit(train, owners.y - middle, sample_weight=weight)
        return np.mean((model.predict(val) - (y_val - middle)) ** 2)
    # A penalty on both classes' weights is half of that on their difference.
    share = 2 if len(np.unique(owners.y)) == 2 else 1
    solver = "newton-cholesky" if share == 2 else "newton-cg"
    how = {"fit_intercept": False, "solver": solver, "tol": 1e-10, "max_iter": 10_000}
    model = LogisticRegression(C=share / penalty, **how)
    model.fit(train, owners.y, sample_weight=weight)
    return log_loss(y_val, model.predict_proba(val))


def of_two_classes(iris):
    owners, (X, y) = iris
    kept, asked = owners.y > 0, y > 0
    few = Owners.from_arrays(owners.X[kept], owners.y[kept], owners.owner[kept])
    return few, (X[asked], y[asked])


@pytest.mark.parametrize("case", ["regression", "two classes", "three classes"])
@pytest.mark.parametrize("penalty", [0.3, 5.0])
def test_influence_is_the_derivative_of_the_loss_by_an_owners_weight(case, penalty, iris, diabetes):
    owners, validation = {
        "regression": diabetes,
        "two classes": of_two_classes(iris),
        "three classes": iris,
    }[case]
    found = influence(owners, validation=validation, regularisation=penalty)
    assert found.trained == 1
    assert_slopes(found, lambda w: validation_loss(owners, validation, w, penalty), owners)


def assert_slopes(found, loss, owners, h=1e-3):
    """Influences are derivatives of a loss by the weights of owners."""
    rows = [owners.owner == i for i in range(owners.n)]
    slopes = np.array([(loss(1 - h * own) - loss(1 + h * own)) / (2 * h) for own in rows])
    scale = np.abs(slopes).max()
    np.testing.assert_allclose(found.values / scale, slopes / scale, atol=1e-5)


def test_the_error_of_influence_shrinks_and_wrong_labels_have_a_negative_one(diabetes, iris):
    owners, validation = diabetes
    found = influence(owners, validation=validation, regularisation=1.0)
    whole = validation_loss(owners, validation, np.ones(300), 1.0)

    def error(part):
        weight = 1 - part * (owners.owner == 0)
        rise = validation_loss(owners, validation, weight, 1.0) - whole
        return abs(rise - part * found.values["0"])

    assert error(0.02) / error(0.01) == pytest.approx(4, rel=0.05)

    owners, validation = iris
    y = np.where(owners.owner == 2, (owners.y + 1) % 3, owners.y)
    spoilt = Owners.from_arrays(owners.X, y, owners.owner)
    values = influence(spoilt, validation=validation).values
    assert values.idxmin() == "2"
    assert values["2"] < 0 < values.drop("2").min()


def test_a_class_that_only_validation_has_costs_loss_too(iris):
    owners, (X_val, y_val) = iris
    kept = owners.y < 2
    owners = Owners.from_arrays(owners.X[kept], owners.y[kept], owners.owner[kept])
    both = StandardScaler().fit_transform(np.vstack([owners.X, X_val]))
    both = np.column_stack([both, np.ones(len(both))])
    train, val = both[: len(owners.y)], both[len(owners.y) :]
    truth = np.eye(3)[owners.y]

    def loss(weight):
        def slope(flat):
            V = flat.reshape(5, 3)
            residuals = softmax(train @ V, axis=1) - truth
            return (train.T @ (weight[:, None] * residuals) + V).ravel()

        solved = root(slope, np.zeros(15), tol=1e-13)
        assert np.abs(slope(solved.x)).max() < 1e-11
        return log_loss(y_val, softmax(val @ solved.x.reshape(5, 3), axis=1), labels=[0, 1, 2])

    assert_slopes(influence(owners, validation=(X_val, y_val)), loss, owners)
