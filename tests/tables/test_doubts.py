"""Doubts about a table: said where there is reason, and not of ordinary tables."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from dupre.data.owners import Owners
from dupre.notes import Code
from dupre.tables.columns import columns_of
from dupre.tables.doubts import (
    columns_to_check,
    doubtful_names,
    far_rows,
    leaks,
    misspelt_names,
    near_copies,
    unequal_classes,
    unlike_training,
)
from dupre.utility.model import ModelUtility

RNG = np.random.default_rng(0)
X = RNG.normal(size=300)
BOTH = {"owner": "o", "target": "y"}


def texts(notes):
    """What notes say; their facts are data."""
    assert all(json.loads(json.dumps(one.facts)) == one.facts for one in notes)
    return [one.text for one in notes]


def doubts(y, task, **columns):
    frame = pd.DataFrame({**columns, "y": y, "o": "a"})
    return texts(leaks(frame, columns_of(frame, **BOTH), target="y", task=task))


@pytest.mark.parametrize(
    ("y", "task", "column", "found"),
    [
        (X > 0, "classification", X, True),
        (np.where(X > 0, "yes", "no"), "classification", np.where(X > 0, "paid", "due"), True),
        (X > 0, "classification", X + 0.5 * RNG.normal(size=300), False),
        (X, "regression", 3 * X + 0.1 * RNG.normal(size=300), True),
        (X, "regression", -np.exp(X), True),
        (np.round(X), "regression", [f"level {round(x)}" for x in X], True),
        (X, "regression", X + 0.4 * RNG.normal(size=300), False),
        (X > 0, "classification", [f"code {i // 3}" for i in range(300)], False),
        (X, "regression", np.where(np.arange(300) < 9, X, np.nan), False),  # too few to tell
    ],
)
def test_a_column_that_nearly_determines_the_target_is_named(y, task, column, found):
    told = doubts(y, task, z=column, other=RNG.normal(size=300))
    assert [("column z alone" in text and "--drop 'z'" in text) for text in told] == [True] * found


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_diabetes])
def test_good_columns_of_ordinary_tables_are_not_named(load):
    data = load(as_frame=True)
    task = "regression" if load is load_diabetes else "classification"
    assert doubts(data.target, task, **data.data) == []


def test_numbers_far_from_all_others_are_named_in_a_regression():
    for z, y, task, words in (
        (np.append(X[:-1], 99.0), X, "regression", ["others in z (99 beside"]),
        (np.append(X[:-1], [np.nan]), np.append(X[1:], 1e9), "regression", ["in y (1e+09"]),
        (np.append(X[:-1], 99.0), X > 0, "classification", []),
        (np.exp(X), X, "regression", []),
        (np.append(np.zeros(299), 9.0), X, "regression", []),  # most rows are equal: no scale
    ):
        frame = pd.DataFrame({"z": z, "y": y, "o": "a"})
        told = texts(far_rows(frame, columns_of(frame, **BOTH), target="y", task=task))
        assert len(told) == len(words)
        assert all(word in text for word, text in zip(words, told, strict=True))


def score(model, y_val, y, metric):
    owners = Owners.from_arrays(X[:12, None], np.array(y * 4), ["a", "b"] * 6)
    return ModelUtility(model, owners, validation=(X[: len(y_val), None], y_val), metric=metric)


def test_classes_that_differ_only_in_capital_letters_or_blanks_are_named():
    for classes, words in (
        (["Yes", "YES", "no"], "'Yes' (2 rows) and 'YES' (1 row) in y differ only in capital"),
        (["Yes", "yes ", "no"], "'Yes' (2 rows) and 'yes ' (1 row) in y differ only"),
        (["yes", "no", "no"], ""),
        ([1, 2, 3], ""),
        ([True, False, True], ""),
    ):
        frame = pd.DataFrame({"y": [*classes, classes[0]], "x": [1.5, 2, 3, 4], "o": list("abab")})
        told = texts(columns_to_check(frame, columns_of(frame, **BOTH), "y"))
        assert [text.startswith(words) for text in told] == [True] * bool(words)


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_accuracy_says_little_if_most_rows_are_of_one_class_and_what_is_named_can_be_computed():
    able, unable = LogisticRegression(), RidgeClassifier()
    two, three, some = [0, 1, 1], [0, 1, 2], ["no"] * 8
    for model, y_val, y, metric, words in (
        (able, [*some, "yes", "yes"], ["no", "yes", "yes"], "accuracy", "80 % of .* class no, so"),
        (unable, [0] * 8 + [1, 1], two, "accuracy", "--metric balanced_accuracy or roc_auc does"),
        (able, [0] * 8 + [1, 2], three, "accuracy", "--metric balanced_accuracy or roc_auc_ovr "),
        (unable, [0] * 8 + [1, 2], three, "accuracy", "--metric balanced_accuracy does"),
        (able, [0] * 8 + [1, 1], three, "accuracy", "--metric balanced_accuracy does"),
        (able, [0] * 299 + [1], two, "accuracy", ">99 % of"),
        (able, [0] * 5, two, "accuracy", "all .* class 0, so no metric .* rows of every class"),
        (able, [0] * 8 + [1, 1], two, "balanced_accuracy", ""),
        (able, [0] * 6 + [1] * 4, two, "accuracy", ""),
    ):
        told = texts(unequal_classes(score(model, y_val, y, metric)))
        assert [bool(re.search(words, text)) for text in told] == [True] * bool(words)
        for better in re.findall(r"balanced_accuracy|roc_auc\w*", " ".join(told)):
            assert np.isfinite(score(model, y_val, y, better)(("a", "b")))


def test_texts_that_are_numbers_for_people_are_named():
    for cells, what in (
        (["31.05.2024", "1.6.24"], "dates"),
        (["5/31/2024 12:30", "6/1/2024"], "dates"),
        (["31 May 2024", "1 Jun 2024"], "dates"),
        (["May 31, 2024", "Jun 1, 2024"], "dates"),
        (["12 %", "7.5%"], "percentages"),
        (["1'234", "999", "2’000.50"], "numbers with signs between thousands"),
        (["1 234", "999"], "numbers with signs between thousands"),
        (["1.5", "2"], "numbers with a decimal point"),
        (["€ 3.25", "€ 12"], "numbers with a currency or a unit"),
        (["CHF 9,098.40", "CHF 12.00"], "numbers with a currency or a unit"),
        (["$355,000", "-$12", "7"], "numbers with a currency or a unit"),
        ([f"{'':5000}70 kg", "7"], "numbers with a currency or a unit"),
        (["3.25€", "4 EUR", "$5"], "numbers with a currency or a unit"),
        (["70.1 kg", "9 Kg", "8"], "numbers with a currency or a unit"),
        (["21.5 °C", "7 °C"], "numbers with a currency or a unit"),
        (["12a", "12b"], ""),
        (["site 1", "site 2"], ""),
        (["1st", "2nd", "3rd"], ""),
        (["007", "12"], ""),
        (["north", "south"], ""),
        (["10-20", "20-30"], ""),
    ):
        frame = pd.DataFrame(
            {"z": cells * 20, "x": 1.5, "o": "a", "y": ["b", "c"] * (10 * len(cells))}
        )
        frame.loc[0, "x"] = 2
        told = texts(columns_to_check(frame, columns_of(frame, **BOTH), "y"))
        assert [text.startswith(f"z: {what} such as ") for text in told] == [True] * bool(what)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (np.arange(60), True),
        (RNG.permutation(60) + 10**6, True),
        (np.arange(60) // 2, False),
        (np.arange(60) / 2, False),
        (pd.date_range("2024-01-01", periods=60), False),
        (np.append(np.arange(59.0), np.nan), False),
    ],
)
def test_whole_numbers_that_are_all_different_may_be_identifiers(column, found):
    frame = pd.DataFrame({"id": column, "x": X[:60], "o": "a", "y": X[:60] > 0})
    told = texts(columns_to_check(frame, columns_of(frame, **BOTH), "y"))
    assert [text.startswith("id: every row has another") for text in told] == [True] * found
    few = frame[:50].reset_index(drop=True)
    assert not columns_to_check(few, columns_of(few, **BOTH), "y")
    twice = pd.concat([frame, frame[:20].assign(o="b")], ignore_index=True)
    told = texts(columns_to_check(twice, columns_of(twice, **BOTH), "y"))
    assert [text.startswith("id: every row has another") for text in told] == [True] * found


def test_a_validation_file_unlike_the_rows_to_train_on_is_told():
    rows = pd.DataFrame(
        {"sex": ["m", "f", None] * 20, "x": np.arange(60) / 7, "y": [0, 1] * 30, "o": "a"}
    )
    columns = columns_of(rows, **BOTH)
    same = rows[:20].drop(columns="o")
    assert not unlike_training(rows, same, columns)
    (told,) = texts(unlike_training(rows, same.assign(sex=["M", None, "m", "f"] * 5), columns))
    assert told.startswith("in 5 of 20 validation rows sex is a text that no row to train on has")
    assert "'M'" in told
    assert not unlike_training(rows, same.assign(sex=["M", *["f"] * 19]), columns)  # one of 20
    for name in ("sex", "x"):
        (told,) = texts(unlike_training(rows, same.assign(**{name: None}), columns))
        assert told.startswith(f"{name} is empty in all validation rows, but not")


def test_owners_that_look_like_one_are_named():
    for names, alike in (
        (("toyota", "ford", "toyouta"), "toyota and toyouta"),
        (("chevroelt", "chevrolet"), "chevroelt and chevrolet"),
        (("Spital Zürich 1", "Spital Zurich 1"), "Spital Zürich 1 and Spital Zurich 1"),
        (("Hospital A", "Hospital B", "owner 1", "owner 2", "site-01", "site-02"), ""),
        (("North Carolina", "South Carolina", "Iran", "Iraq", "Slovakia", "Slovenia"), ""),
        (("broker1", "broker2", "Basel", "BASEL"), ""),
    ):
        told = texts(misspelt_names(names))
        assert [text.startswith(f"{alike} look like one") for text in told] == [True] * bool(alike)


@pytest.mark.parametrize("other", ["BERN", "Be\u200brn", "Ｂern", "Bern\u2060"])
def test_owners_whose_names_look_the_same_are_named(other):
    (told,) = doubtful_names(("Bern", "Ulm", other))
    assert (told.code, told.facts) == (Code.SIMILAR_NAMES, {"owners": ["Bern", other]})


def test_names_of_nobody_and_equal_numbers_are_doubted():
    for name in ("nan", "NA", "None", "#N/A", "null", " NULL "):
        (told,) = texts(doubtful_names(("Basel", name)))
        assert told.startswith(f"{name!r}: that is how empty cells are written")
    (told,) = texts(doubtful_names(("1", "01", "1.0", "2", "10", "1x")))
    assert told.startswith("'1', '01' and '1.0' are the same number, and are taken for 3 owners")
    assert texts(doubtful_names(("Nancy", "1", "2", "3.5", "-1", "", "1e0"))) == [
        "'': that is how empty cells are written, but it is taken for the name of an owner; leave "
        "these rows out if they have none."
    ]


def test_rows_that_differ_in_the_last_digits_are_told():
    frame = pd.DataFrame({"x": X, "z": X[::-1] / 3, "o": "a", "y": X > 0})
    copies = frame[:40].assign(o="b")
    both = pd.concat([frame, copies], ignore_index=True)
    assert not near_copies(both, columns_of(both, **BOTH), "y")  # they are found by themselves
    other = copies.assign(x=np.nextafter(copies["x"], 9), z=copies["z"] * (1 + 1e-15))
    both = pd.concat([frame, other], ignore_index=True)
    (told,) = texts(near_copies(both, columns_of(both, **BOTH), "y"))
    assert told.startswith("40 rows differ from others only after the 12th digit of a number")
    far = pd.concat([frame, copies.assign(x=copies["x"] * (1 + 1e-9))], ignore_index=True)
    assert not near_copies(far, columns_of(far, **BOTH), "y")
    zero = pd.DataFrame({"x": [0.0, np.nan, 1e300, -1e-300] * 2, "o": "a", "y": list("abcdabcd")})
    assert not near_copies(zero, columns_of(zero, **BOTH), "y")


def test_a_validation_file_in_another_unit_is_told():
    rows = pd.DataFrame({"x": X, "z": X**2, "y": X > 0, "o": "a"})
    columns, same = columns_of(rows, **BOTH), rows[:50].drop(columns="o")
    assert not unlike_training(rows, same, columns)
    (told,) = texts(unlike_training(rows, same.assign(x=1000 * same["x"]), columns))
    assert told.startswith("most validation rows have x outside of all rows to train on (")
