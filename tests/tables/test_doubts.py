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
from dupre.tables import doubts
from dupre.tables.features import columns_of
from dupre.tables.numbers import Form
from dupre.utility.model import ModelUtility

RNG = np.random.default_rng(0)
X = RNG.normal(size=300)
BOTH = {"owner": "o", "target": "y"}


def texts(notes):
    """What notes say; their facts are data."""
    assert all(json.loads(json.dumps(one.facts)) == one.facts for one in notes)
    return [one.text for one in notes]


def begin(found, words):
    """Whether there is one text that begins so, or none if there are no words."""
    return [text.startswith(words) for text in found] == [True] * bool(words)


def told(of, *frames, **how):
    """What is said of these rows, one under the other."""
    frame = pd.concat(frames, ignore_index=True)
    return texts(of(frame, columns_of(frame, **BOTH), target="y", **how))


def table(y, o="a", **columns):
    return pd.DataFrame({**columns, "y": y, "o": o})


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
    found_of = told(doubts.leaks, table(y, z=column, other=RNG.normal(size=300)), task=task)
    assert [("column z alone" in t and "--" not in t) for t in found_of] == [True] * found


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_diabetes])
def test_good_columns_of_ordinary_tables_are_not_named(load):
    data = load(as_frame=True)
    task = "regression" if load is load_diabetes else "classification"
    assert told(doubts.leaks, table(data.target, **data.data), task=task) == []


def test_numbers_far_from_all_others_are_named_in_a_regression():
    for z, y, task, words in (
        (np.append(X[:-1], 99.0), X, "regression", "others in z (99 beside"),
        (np.append(X[:-1], [np.nan]), np.append(X[1:], 1e9), "regression", "in y (1e+09"),
        (np.append(X[:-1], 99.0), X > 0, "classification", ""),
        (np.exp(X), X, "regression", ""),
        (np.append(np.zeros(299), 9.0), X, "regression", ""),  # most rows are equal: no scale
    ):
        found = told(doubts.far_rows, table(y, z=z), task=task)
        assert [words in text for text in found] == [True] * bool(words)


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
        frame = table([*classes, classes[0]], list("abab"), x=[1.5, 2, 3, 4])
        assert begin(told(doubts.columns_to_check, frame), words)


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_accuracy_says_little_if_most_rows_are_of_one_class_and_what_is_named_can_be_computed():
    able, unable = LogisticRegression(), RidgeClassifier()
    two, three, some = [0, 1, 1], [0, 1, 2], ["no"] * 8
    for model, y_val, y, metric, words in (
        (able, [*some, "yes", "yes"], ["no", "yes", "yes"], "accuracy", "80 % of .* class no, so"),
        (unable, [0] * 8 + [1, 1], two, "accuracy", "; balanced_accuracy or roc_auc does"),
        (able, [0] * 8 + [1, 2], three, "accuracy", "; balanced_accuracy or roc_auc_ovr "),
        (unable, [0] * 8 + [1, 2], three, "accuracy", "; balanced_accuracy does"),
        (able, [0] * 8 + [1, 1], three, "accuracy", "; balanced_accuracy does"),
        (able, [0] * 299 + [1], two, "accuracy", ">99 % of"),
        (able, [0] * 5, two, "accuracy", "all .* class 0, so no metric .* rows of every class"),
        (able, [0] * 8 + [1, 1], two, "balanced_accuracy", ""),
        (able, [0] * 6 + [1] * 4, two, "accuracy", ""),
    ):
        found = texts(doubts.unequal_classes(score(model, y_val, y, metric)))
        assert [bool(re.search(words, text)) for text in found] == [True] * bool(words)
        for better in re.findall(r"balanced_accuracy|roc_auc\w*", " ".join(found)):
            assert np.isfinite(score(model, y_val, y, better)(("a", "b")))


WRITTEN = {  # cells apart by bars, columns by semicolons
    "dates": "31.05.2024|1.6.24; 5/31/2024 12:30|6/1/2024; 31 May 2024|1 Jun 2024; "
    "May 31, 2024|Jun 1, 2024",
    "percentages": "12 %|7.5%; 12.5 %|n/a?|7 %",
    "numbers with signs between thousands": "1'234|999|2’000.50; 1 234|999",
    "numbers with a decimal point": "1.5|2; 1.5|2|3|other",
    "numbers with a comma": "1,5|2.5|1,234.5",
    "numbers with a currency or a unit": "€ 3.25|€ 12; CHF 9,098.40|CHF 12.00; $355,000|-$12|7; "
    f"{'':5000}70 kg|7; 3.25€|4 EUR|$5; 70.1 kg|9 Kg|8; 21.5 °C|7 °C",
    "numbers, some with a bound or in parentheses,": "<3093|3388|7514|41; (3092.90)|3387.93; "
    "≥ 5|>7|9",
    "times": "20:32|03:27:10|1:13 pm; 20:32|3:27|late",
    "plain numbers": f"{'|'.join(map(str, range(9)))}|10|unknown; "
    f"{'|'.join(map(str, range(30, 39)))}|n.d.|?",
    "": "0|1|2|3+; 1:2:3|4:5; A1|A2|A3|B4|C5|C6|C7|D8|E9|F10|F11; "
    "12 %|high|low; 12a|12b; site 1|site 2; 1st|2nd|3rd; 007|12; north|south; 10-20|20-30",
}


@pytest.mark.parametrize(
    ("what", "column"), [(k, column) for k in WRITTEN for column in WRITTEN[k].split("; ")]
)
def test_texts_that_are_numbers_for_people_are_named(what, column):
    cells = 20 * column.split("|")
    frame = table(["b", "c"] * (len(cells) // 2), z=cells, x=[2] + [1.5] * (len(cells) - 1))
    words = what and f"z is taken for texts: most cells are {what} such as "
    assert begin(told(doubts.columns_to_check, frame), words)
    asked = {"z": Form("text")}
    assert not told(doubts.columns_to_check, frame, forms=asked)


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
    frame = table(X[:60] > 0, id=column, x=X[:60])
    for copies in ([], [frame[:20].assign(o="b")]):
        assert begin(
            told(doubts.columns_to_check, frame, *copies), "id: every row has another" * found
        )
    assert not told(doubts.columns_to_check, frame[:50])


def test_a_validation_file_unlike_the_rows_to_train_on_is_told():
    rows = table([0, 1] * 30, sex=["m", "f", None] * 20, x=np.arange(60) / 7, z=X[:60])
    columns, same = columns_of(rows, **BOTH), rows[:20].drop(columns="o")
    text = "in 5 of 20 validation rows sex is a text that no row to train on has, such as 'M'"
    for other, words in (
        ({}, ""),
        ({"sex": ["M", None, "m", "f"] * 5}, text),
        ({"sex": ["M", *["f"] * 19]}, ""),  # one of 20
        ({"sex": None}, "sex is empty in all validation rows, but not"),
        ({"x": None}, "x is empty in all validation rows, but not"),
        ({"z": 1000 * same["z"]}, "most validation rows have z outside of all rows to train on ("),
    ):
        assert begin(texts(doubts.unlike_training(rows, same.assign(**other), columns)), words)


def test_owners_that_look_like_one_are_named():
    for names, alike in (
        (("toyota", "ford", "toyouta"), "toyota and toyouta"),
        (("chevroelt", "chevrolet"), "chevroelt and chevrolet"),
        (("Spital Zürich 1", "Spital Zurich 1"), "Spital Zürich 1 and Spital Zurich 1"),
        (("Hospital A", "Hospital B", "owner 1", "owner 2", "site-01", "site-02"), ""),
        (("North Carolina", "South Carolina", "Iran", "Iraq", "Slovakia", "Slovenia"), ""),
        (("broker1", "broker2", "Basel", "BASEL"), ""),
    ):
        assert begin(texts(doubts.misspelt_names(names)), alike and f"{alike} look like one")


@pytest.mark.parametrize("other", ["BERN", "Be\u200brn", "Ｂern", "Bern\u2060"])
def test_owners_whose_names_look_the_same_are_named(other):
    (found,) = doubts.doubtful_names(("Bern", "Ulm", other))
    assert (found.code, found.facts) == (Code.SIMILAR_NAMES, {"owners": ["Bern", other]})


def test_names_of_nobody_and_equal_numbers_are_doubted():
    for name in ("nan", "NA", "None", "#N/A", "null", " NULL ", ""):
        found = texts(doubts.doubtful_names(("Basel", "Nancy", "1", "2", "3.5", "-1", "1e0", name)))
        assert found == [
            f"{name!r}: that is how empty cells are written, but it is taken for the name of an "
            "owner; leave these rows out if they have none."
        ]
    found = texts(doubts.doubtful_names(("1", "01", "1.0", "2", "10", "1x")))
    assert begin(found, "'1', '01' and '1.0' are the same number, and are taken for 3 owners")
    found = texts(doubts.doubtful_names(("StoreID 7", "StoreID 07", "Store 7")))
    assert begin(found, "'StoreID 7' and 'StoreID 07' are the same number")


def test_rows_that_differ_in_the_last_digits_are_told():
    frame = table(X > 0, x=X, z=X[::-1] / 3)
    copies = frame[:40].assign(o="b")
    assert not told(doubts.near_copies, frame, copies)  # they are found by themselves
    other = copies.assign(x=np.nextafter(copies["x"], 9), z=copies["z"] * (1 + 1e-15))
    words = "40 rows differ from others only after the 12th digit of a number"
    assert begin(told(doubts.near_copies, frame, other), words)
    assert not told(doubts.near_copies, frame, copies.assign(x=copies["x"] * (1 + 1e-9)))
    assert not told(
        doubts.near_copies, table(list("abcdabcd"), x=[0.0, np.nan, 1e300, -1e-300] * 2)
    )
