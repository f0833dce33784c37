from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer, log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.utility.model import ModelUtility, optimism, training_seed
from dupre.utility.score import Score
from dupre.valuation.value import value


def split(X, y, owner, train=100):
    """Owners of the first rows in a fixed random order, the others for validation."""
    order = np.random.default_rng(0).permutation(len(y))
    X, y, owner = X[order], y[order], owner[order]
    return Owners.from_arrays(X[:train], y[:train], owner[:train]), (X[train:], y[train:])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return split(X, y, np.arange(150) % 4)


@pytest.fixture(scope="module")
def iris_by_class():
    """Owner i holds class i alone."""
    X, y = load_iris(return_X_y=True)
    return split(X, y, y)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return split(X, y, np.arange(442) % 4, train=300)


@pytest.fixture(scope="module")
def shops():
    """A frame with numbers, text and categories, and a validation frame."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=120),
            "city": rng.choice(["Bern", "Oslo", "Rome"], 120),
            "grade": pd.Categorical(rng.choice(list("abc"), 120)),
            "firm": rng.choice(["x", "y", "z"], 120),
        }
    )
    chance = frame["size"] + (frame["city"] == "Rome") + rng.normal(size=120)
    frame["sold"] = np.where(chance > 0.3, "yes", "no")
    return frame[:80], frame[80:].drop(columns="firm")


def coalitions_of(owners):
    for size in range(1, owners.n + 1):
        yield from combinations(owners.names, size)


def by_hand(estimator, owners, members, validation, metric):
    inside = np.isin(np.array(owners.names)[owners.owner], members)
    X = owners.X[inside]
    return get_scorer(metric)(clone(estimator).fit(X, owners.y[inside]), *validation)


# --- the score of a model trained on the coalition's rows


LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())


@pytest.mark.parametrize(
    ("rows", "estimator", "metric"),
    [
        ("iris", LOGISTIC, "accuracy"),
        ("iris", make_pipeline(StandardScaler(), LinearSVC()), "balanced_accuracy"),
        ("iris", GaussianNB(), "neg_log_loss"),
        ("iris", KNeighborsClassifier(3), "f1_macro"),
        ("diabetes", Ridge(0.1), "r2"),
        ("diabetes", Ridge(0.1), "neg_mean_absolute_error"),
        ("diabetes", Ridge(0.1), "neg_root_mean_squared_error"),
    ],
)
def test_a_utility_is_fit_and_score_by_hand(rows, estimator, metric, request):
    owners, validation = request.getfixturevalue(rows)
    utility = ModelUtility(estimator, owners, validation=validation, metric=metric)
    for members in coalitions_of(owners):
        expected = by_hand(estimator, owners, members, validation, metric)
        assert utility(members) == pytest.approx(expected, abs=1e-12)


def test_the_default_metric_follows_the_task_and_a_callable_gets_the_fitted_model(iris, diabetes):
    tree = DecisionTreeClassifier(max_depth=2)
    found = [
        ModelUtility(model, owners, validation=validation).metric.name
        for model, (owners, validation) in ((tree, iris), (Ridge(), diabetes))
    ]
    assert found == ["accuracy", "r2"]
    owners, validation = iris

    def depth(model, X, y):
        np.testing.assert_array_equal(X, validation[0])
        np.testing.assert_array_equal(y, validation[1])
        return float(model.get_depth())

    how = {"metric": depth, "empty": 0.0, "resamples": 0}
    utility = ModelUtility(tree, owners, validation=validation, **how)
    assert utility(("0", "1")) == 2.0


def test_a_pipeline_gets_the_columns_of_the_frame_in_whatever_order_they_are_validated(shops):
    train, validation = shops
    columns = ColumnTransformer(
        [
            ("number", StandardScaler(), ["size"]),
            ("category", OneHotEncoder(handle_unknown="ignore"), ["city", "grade"]),
        ]
    )
    model = make_pipeline(columns, KNeighborsClassifier(3))
    owners = Owners.from_frame(train, owner="firm", target="sold")
    utility = ModelUtility(model, owners, validation=validation)
    X_val, y_val = validation.drop(columns="sold"), validation["sold"]
    for members in coalitions_of(owners):
        rows = train[train["firm"].isin(members)]
        fitted = clone(model).fit(rows.drop(columns=["firm", "sold"]), rows["sold"])
        assert utility(members) == pytest.approx(fitted.score(X_val, y_val))

    owners = Owners.from_frame(train[["size", "firm", "sold"]], owner="firm", target="sold")
    X = validation[["size"]]
    utilities = [
        ModelUtility(DecisionTreeClassifier(max_depth=2), owners, validation=each)(("x", "y"))
        for each in (validation, validation[validation.columns[::-1]], (X, validation["sold"]))
    ]
    assert utilities[0] == utilities[1] == utilities[2]


def test_codes_of_categories_do_not_depend_on_other_owners_or_their_order():
    """The new levels of A come first, in the middle and last; validation has one that B lacks."""
    rng = np.random.default_rng(0)
    parts = {
        name: pd.DataFrame({"g": pd.Categorical([*levels] * 6), "y": rng.random(6 * len(levels))})
        for name, levels in {"B": "bdf", "C": "df", "V": "bch", "A": "acxh"}.items()
    }
    validation = parts.pop("V")
    model = make_pipeline(FunctionTransformer(lambda X: X.apply(lambda g: g.cat.codes)), Ridge())

    def utilities(names):
        owners = Owners.from_mapping({name: parts[name] for name in names}, target="y")
        utility = ModelUtility(model, owners, validation=validation, floor=False)
        return [utility(members) for members in (("B",), ("C",), ("B", "C"))]

    assert utilities("BC") == utilities("CB") == utilities("ABC") == utilities("BCA")
    codes = [[["bcdfh".index(g)] for g in part["g"]] for part in (parts["B"], validation)]
    expected = Ridge().fit(codes[0], parts["B"]["y"]).score(codes[1], validation["y"])
    assert utilities("ABC")[0] == pytest.approx(expected)


def test_sparse_rows_score_as_dense_ones():
    X, y = load_digits(n_class=3, return_X_y=True)
    owner = np.arange(len(y)) % 3
    dense, validation = split(X, y, owner)
    thin, thin_validation = split(sparse.csr_array(X), y, owner)
    model = MultinomialNB()
    expected = ModelUtility(model, dense, validation=validation)
    found = ModelUtility(model, thin, validation=thin_validation)
    for members in coalitions_of(dense):
        assert found(members) == pytest.approx(expected(members))


# --- coalitions that lack classes


LABELS = [[3, 5], ["no", "yes"], np.array(["no", "yes"], dtype=object), [False, True], [0.0, 1.0]]


@pytest.mark.parametrize("labels", LABELS, ids=["int", "text", "object", "bool", "float"])
def test_a_single_class_may_be_of_any_kind(labels):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], np.asarray(labels)[y[:100]]
    owners = Owners.from_arrays(X, y, np.repeat([0, 1], 50))
    utility = ModelUtility(GaussianNB(), owners, validation=(X[:80], y[:80]))
    assert utility(("0",)) == pytest.approx(50 / 80)
    assert utility(("1",)) == pytest.approx(30 / 80)
    assert utility(()) == pytest.approx(50 / 80, abs=0.01)  # nearly always the better class


@pytest.mark.parametrize("members", [("0", "1"), ("0", "2"), ("1", "2"), ("2",)])
@pytest.mark.parametrize("metric", ["neg_log_loss", "roc_auc_ovr"])
def test_classes_never_seen_have_probability_zero(iris_by_class, members, metric):
    owners, (X_val, y_val) = iris_by_class
    model = GaussianNB()
    utility = ModelUtility(model, owners, validation=(X_val, y_val), metric=metric)
    seen = [int(name) for name in members]
    inside = np.isin(owners.y, seen)
    probability = np.zeros((len(y_val), 3))
    if len(seen) == 1:
        probability[:, seen] = 1
    else:
        fitted = clone(model).fit(owners.X[inside], owners.y[inside])
        probability[:, seen] = fitted.predict_proba(X_val)
    if metric == "neg_log_loss":
        expected = -log_loss(y_val, probability, labels=[0, 1, 2])
    else:
        expected = roc_auc_score(y_val, probability, multi_class="ovr")
    assert utility(members) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision"])
def test_a_single_class_ranks_nothing_and_one_that_no_owner_holds_counts_as_missed(metric):
    X, y = load_iris(return_X_y=True)
    owners = Owners.from_arrays(X[:100], y[:100], np.arange(100) % 2)
    utility = ModelUtility(LogisticRegression(), owners, validation=(X, y))
    assert utility(("0", "1")) == pytest.approx(2 / 3)
    X, y = X[50:], y[50:] - 1
    owners = Owners.from_arrays(X, y, y)
    how = {"validation": (X, y), "metric": metric, "resamples": 0}
    utility = ModelUtility(LogisticRegression(), owners, **how)
    assert utility(("0",)) == utility(("1",)) == utility(()) == pytest.approx(0.5)
    assert utility(("0", "1")) > 0.9


# --- the empty coalition


def entropy(y):
    share = np.bincount(y) / len(y)
    return -np.sum(share * np.log(share))


@pytest.mark.parametrize(
    ("rows", "metric", "expected"),
    [
        ("iris", "accuracy", lambda y: np.bincount(y).max() / len(y)),
        ("iris", "balanced_accuracy", lambda y: 1 / 3),
        ("iris", "neg_log_loss", lambda y: -entropy(y)),
        ("iris", "roc_auc_ovr", lambda y: 0.5),
        ("diabetes", "r2", lambda y: 0.0),
        ("diabetes", "neg_mean_squared_error", lambda y: -np.var(y)),
        ("diabetes", "neg_mean_absolute_error", lambda y: -np.mean(np.abs(y - np.median(y)))),
        ("diabetes", "neg_median_absolute_error", lambda y: -np.median(np.abs(y - np.median(y)))),
    ],
)
def test_no_data_score_as_the_best_constant_prediction(rows, metric, expected, request):
    owners, validation = request.getfixturevalue(rows)
    model = LogisticRegression() if rows == "iris" else Ridge()
    how = {"validation": validation, "metric": metric}
    utility = ModelUtility(model, owners, **how, resamples=0)
    assert utility(()) == utility.empty == pytest.approx(expected(validation[1]), abs=1e-12)
    resampled = ModelUtility(model, owners, **how)
    assert resampled(()) == pytest.approx(utility.empty, abs=0.05)
    if metric != "accuracy":  # one constant is the best on every resample, or as good
        assert resampled.empty == pytest.approx(utility.empty, abs=1e-12)


def no_data_of(y):
    X = np.arange(len(y), dtype=float)[:, None]
    owners = Owners.from_arrays(X[:8], np.arange(8) % 2, np.arange(8) % 2)
    return ModelUtility(GaussianNB(), owners, validation=(X, y.astype(int)))


def test_the_larger_of_two_equally_frequent_classes_gains_less_by_being_chosen():
    rng = np.random.default_rng(0)
    drawn = [rng.integers(2, size=50) for _ in range(60)]
    share = np.mean([np.bincount(y).max() / 50 for y in drawn])
    assert share > 0.54
    assert abs(np.mean([no_data_of(y).empty for y in drawn]) - 0.5) < 0.75 * (share - 0.5)
    assert no_data_of(np.arange(50) % 2).empty == 0.5  # of equal strata nothing is chosen
    assert no_data_of(np.arange(50) < 45).empty == pytest.approx(0.9, abs=1e-3)


def test_optimism_is_the_mean_of_both_gaps_up_to_half_the_distance_of_the_worst():
    def scores(*every):
        return [Score(all_rows, np.array(found)) for all_rows, found in every]

    first, second = (0.6, [0.7, 0.5, np.nan, 0.6]), (0.5, [0.4, 0.6, 0.9, 0.65])
    # The second is chosen twice: 0.1 and 0.05 better there, and 0.1 worse on all rows each time.
    assert optimism(scores(first, second)) == pytest.approx(0.05)  # half of 0.1
    third = (0.2, [0.1, 0.1, 0.1, 0.1])
    expected = (0.0 + 0.1 + 0.05 + 2 * 0.1) / 3
    assert optimism(scores(first, second, third)) == pytest.approx(expected)
    assert optimism(scores(third)) == optimism(scores(first, third)) == 0
    assert optimism([Score(0.4), Score(0.6)]) == 0


def test_on_resamples_no_data_have_the_same_taken_off():
    utility = no_data_of(np.arange(50) % 5 > 1)
    ones, zeros = utility(("1",)), utility(("0",))  # each owner holds one class
    assert utility.empty < ones
    expected = np.maximum(ones.resampled, zeros.resampled) - (ones - utility.empty)
    np.testing.assert_allclose(utility.score_of_no_data().resampled, expected, atol=1e-12)


@pytest.mark.parametrize("empty", [0.0, -3, 0.25])
def test_the_utility_of_no_data_can_be_stated(iris, empty):
    utility = ModelUtility(LogisticRegression(), iris[0], validation=iris[1], empty=empty)
    assert utility(()) == empty
    for options, message in (
        ({"empty": np.nan}, "empty coalition is nan; state a finite empty="),
        ({"empty": [1]}, r"empty coalition is \[1\]; state a finite empty="),
        ({"empty": "0.5"}, "empty coalition is '0.5'; state a finite empty="),
        ({"metric": lambda *_: np.nan}, "empty coalition is nan; state a finite empty="),
    ):
        with pytest.raises(InputError, match=message):
            ModelUtility(LogisticRegression(), iris[0], validation=iris[1], **options)


# --- seeds


def contents(*words):
    return np.array(words, dtype=np.uint64)


def test_training_seed_depends_on_seed_contents_and_repeat_alone():
    for seed, repeat in ((3, 0), (np.int64(3), np.int64(0))):
        assert training_seed(seed, contents(1, 2), repeat) == training_seed(3, contents(1, 2))
    distinct = [
        training_seed(seed, digest, repeat)
        for seed in (0, 1)
        for digest in (contents(1, 2), contents(2, 1), contents(12, 0), contents(2**64 - 1, 5))
        for repeat in (0, 1, 2)
    ]
    assert len(set(distinct)) == len(distinct)
    assert all(0 <= seed < 2**32 for seed in distinct)


@settings(deadline=None, max_examples=20)
@given(st.permutations("abcde"), st.permutations(range(90)), st.integers(1, 31))
def test_neither_names_nor_the_order_of_owners_or_rows_change_a_seed(names, order, code):
    X, y = load_iris(return_X_y=True)
    X, y, holder, rows = X[:90], y[:90], np.arange(90) % 5, np.array(order)
    members = [i for i in range(5) if code >> i & 1]

    def seed(owners, members):
        model = DecisionTreeClassifier(max_features=1)
        return ModelUtility(model, owners, validation=(X, y)).training_seed(members)

    ours = seed(Owners.from_arrays(X, y, holder), [str(i) for i in members])
    renamed = Owners.from_arrays(X[rows], y[rows], np.array(names)[holder[rows]])
    assert seed(renamed, [names[i] for i in members]) == ours


@pytest.mark.parametrize("nested", [False, True])
def test_a_utility_does_not_depend_on_order_or_on_earlier_calls(iris, nested):
    owners, validation = iris
    forest = RandomForestClassifier(n_estimators=3, max_features=1)
    model = make_pipeline(StandardScaler(), forest) if nested else forest

    def make(seed=0):
        return ModelUtility(model, owners, validation=validation, metric="neg_log_loss", seed=seed)

    first, other = make(), make()
    expected = first(("0", "2", "3"))
    for members in coalitions_of(owners):
        other(members)
    assert first(("0", "2", "3")) == expected
    assert other(("3", "0", "2")) == expected
    assert other(["2", "3", "0"]) == expected
    assert make(seed=1)(("0", "2", "3")) != expected


def test_coalitions_of_the_same_rows_train_alike():
    X, y = load_iris(return_X_y=True)
    part = (X[::2], y[::2])
    owners = Owners.from_mapping({"a": part, "b": part})
    states = []

    def remember(model, X, y):
        states.append(model.random_state)
        return 0.0

    how = {"metric": remember, "empty": 0.0, "resamples": 0}
    utility = ModelUtility(DecisionTreeClassifier(), owners, validation=(X, y), **how)
    utility(("a",)), utility(("b",)), utility(("a", "b"))
    assert states[0] == states[1] != states[2]


def test_the_estimator_given_is_neither_fitted_nor_changed_and_a_repeat_has_its_own_seed(iris):
    model = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=2, random_state=7))
    before = {name: repr(value) for name, value in model.get_params().items()}
    utility = ModelUtility(model, iris[0], validation=iris[1])
    utility(("0", "1"))
    assert {name: repr(value) for name, value in model.get_params().items()} == before
    for step in (*[step for _, step in model.steps], utility.estimator):
        with pytest.raises(NotFittedError):
            check_is_fitted(step)

    owners, validation = iris
    forest = RandomForestClassifier(n_estimators=3, max_features=1)
    utility, again = (
        ModelUtility(forest, owners, validation=validation, metric="neg_log_loss") for _ in "ab"
    )
    members = ("0", "2")
    first = [utility(members, repeat=repeat) for repeat in range(4)]
    assert len(set(first)) == 4
    assert utility(members) == first[0]
    assert [again(members[::-1], repeat=r) for r in (3, 1)] == [first[3], first[1]]
    assert utility.training_seed(members, 2) == utility.training_seed(members[::-1], 2)
    without_chance = ModelUtility(GaussianNB(), owners, validation=validation)
    assert without_chance(members, repeat=1) == without_chance(members)
    assert utility((), repeat=1) == utility.empty


def score_and_change(model, X, y):
    """A metric that changes all it gets."""
    score = float(np.mean(model.predict_proba(X)[np.arange(len(y)), y]))
    if hasattr(model, "steps"):
        model[:-1].transform(X)
    y[:] = 0
    return score


KINDS = pytest.mark.parametrize("kind", [np.array, pd.DataFrame, sparse.csr_array])


def in_place_and_copied(kind, metric):
    """Owners, and a utility whose model changes rows in place beside one whose model does not."""
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) * [1, 10, 100, 1000]
    order = np.random.default_rng(0).permutation(len(y))
    train, rest = order[:60], order[60:]
    contents = Owners.from_arrays(kind(X[train]), y[train], train % 3).row_contents
    train = train[np.lexsort(contents.T)]  # pandas does not copy all rows in this order
    owners = Owners.from_arrays(kind(X[train]), y[train], train % 3)
    how = {"validation": (kind(X[rest]), y[rest]), "metric": metric, "resamples": 3}
    scalers = [StandardScaler(copy=copy, with_mean=False) for copy in (False, True)]
    models = [make_pipeline(scaler, LogisticRegression()) for scaler in scalers]
    return owners, *(ModelUtility(model, owners, **how) for model in models)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.array(rows)


@KINDS
@pytest.mark.parametrize("metric", ["neg_log_loss", "f1_macro", score_and_change])
def test_a_model_that_changes_rows_in_place_has_rows_of_its_own(kind, metric):
    owners, in_place, copied = in_place_and_copied(kind, metric)
    held = owners.X, in_place.X_val, in_place.y_val
    before = [dense(rows) for rows in held]
    for members in ((), *coalitions_of(owners)):
        found, wanted = in_place(members), copied(members)
        assert found == wanted
        np.testing.assert_array_equal(found.resampled, wanted.resampled)
    for rows, then in zip(held, before, strict=True):
        np.testing.assert_array_equal(dense(rows), then)


@pytest.mark.slow
@KINDS
def test_a_model_that_changes_rows_in_place_changes_none_of_another_process(kind):
    owners, *utilities = in_place_and_copied(kind, "neg_log_loss")
    how = {"budget": 7, "n_jobs": 2, "progress": False}
    found, wanted = (value(owners, utility, **how) for utility in utilities)
    np.testing.assert_array_equal(found.mean, wanted.mean)


@pytest.mark.parametrize(
    ("members", "message"),
    [(("0", "eve"), "unknown owner 'eve'"), (("0", "0"), "twice"), ("01", r"write \('01',\)")],
)
def test_a_coalition_that_names_no_set_of_owners_is_refused(iris, members, message):
    utility = ModelUtility(DecisionTreeClassifier(), iris[0], validation=iris[1])
    with pytest.raises(InputError, match=message):
        utility(members)
