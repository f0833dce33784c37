from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dupre.tables import holdout
from dupre.tables.holdout import check_validation, hold_out, row_contents
from refusals import refused

CLASSES = {"task": "classification"}
NUMBERS = {"task": "regression"}

games = st.tuples(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("uvw")), min_size=30, max_size=80),
    st.floats(0.1, 0.9),
    st.integers(0, 100),
)


@given(games)
def test_each_owner_gives_its_share_unless_a_class_would_be_lost(game):
    rows, fraction, seed = game
    owner, y = np.array(rows).T
    held = hold_out(owner, y, fraction, **CLASSES, seed=seed)
    assert set(y[~held]) == set(y)
    asked = {name: int(fraction * np.sum(owner == name) + 1e-9) for name in owner}
    given = {name: np.sum(held & (owner == name)) for name in owner}
    assert all(given[name] <= asked[name] for name in owner)
    assert sum(asked.values()) - sum(given.values()) <= len(set(y))
    numbers = np.arange(len(rows)) % 7.0
    held = hold_out(owner, numbers, fraction, **NUMBERS, seed=seed)  # exactly the share
    assert {name: np.sum(held & (owner == name)) for name in owner} == asked


def test_classes_are_held_out_in_proportion_and_small_owners_give_none():
    owner = np.repeat(["a", "b"], 100)
    y = np.tile(np.repeat(["u", "v"], [80, 20]), 2)
    held = hold_out(owner, y, 0.25, **CLASSES, seed=3)
    for name in ("a", "b"):
        assert np.unique(y[held & (owner == name)], return_counts=True)[1].tolist() == [20, 5]
    y = np.random.default_rng(0).permutation(100.0 + np.arange(100))
    held = hold_out(np.repeat("a", 100), y, 0.2, **NUMBERS, seed=1)
    assert np.all(np.diff(np.sort(y[held])) == 5)

    held = hold_out(owner, np.arange(200.0), 0.29, **NUMBERS, seed=0)  # 0.29 * 100 < 29 in floats
    assert held.sum() == 58
    owner = np.array(["big"] * 10 + ["one"] + ["few"] * 4)
    held = hold_out(owner, np.arange(15.0), 0.2, **NUMBERS, seed=0)
    assert held.sum() == 2
    assert holdout.owners_without_held_rows(owner, held) == ("one", "few")
    y = np.array([True, "a", 1, None] * 10, dtype=object)
    assert hold_out(np.repeat(["a", "b"], 20), y, 0.25, **CLASSES, seed=0).sum() == 10

    owner, y = np.repeat(["a", "b"], 10), np.array(["u"] * 19 + ["rare"])
    for seed in range(20):  # the last row of a class stays
        assert "rare" in y[~hold_out(owner, y, 0.9, **CLASSES, seed=seed)]


def test_the_seed_decides_and_not_how_a_column_is_stored():
    owner, y = np.repeat(["a", "b"], 50), np.tile([0, 1], 50)
    first = hold_out(owner, y, 0.2, **CLASSES, seed=1)
    assert np.array_equal(first, hold_out(pd.Series(owner), pd.Series(y), 0.2, seed=1))
    assert np.array_equal(first, hold_out(owner, y, 0.2, **CLASSES, seed=1))
    assert not np.array_equal(first, hold_out(owner, y, 0.2, **CLASSES, seed=2))
    assert not np.array_equal(first[:50], first[50:])  # owners draw apart

    plain = pd.DataFrame({"n": [1, 2, 3], "t": ["u", None, "v"], "b": [True, False, True]})
    other = plain.astype({"n": "Int64", "t": "category", "b": "boolean"})
    again = other.sample(frac=1, random_state=0).sort_index()
    assert np.array_equal(row_contents(plain), row_contents(again))
    assert len(np.unique(row_contents(plain), axis=0)) == 3


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_owners_who_hold_the_same_rows_give_and_keep_the_same(task):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.integers(0, 9, 40), "y": rng.choice([3, 10, 20], 40)})
    mixed = rows.sample(frac=1, random_state=1).astype({"x": float})
    other = pd.DataFrame({"x": rng.normal(size=30), "y": rng.choice([3, 10, 20], 30)})
    frame = pd.concat([rows, other, mixed], ignore_index=True)
    owner = np.repeat(["a", "b", "a copy"], [40, 30, 40])
    contents = row_contents(frame)
    held = hold_out(owner, frame["y"], 0.3, contents=contents, task=task, seed=5)
    first, again = frame[held & (owner == "a")], frame[held & (owner == "a copy")]
    assert len(first) == 12
    assert sorted(first.to_numpy().tolist()) == sorted(again.to_numpy().tolist())
    assert np.array_equal(holdout.rows_of_copies(owner, contents), owner == "a copy")
    by_name = hold_out(owner, frame["y"], 0.3, task=task, seed=5)
    assert not np.array_equal(by_name, held)
    alone = hold_out(["z"] * 30, other["y"], 0.3, contents=contents[40:70], task=task, seed=5)
    assert np.array_equal(alone, held[40:70])  # whoever else there is, whatever it is called
    more_owner, more_y = np.append(["new"] * 9, owner), np.append([1, 2, 100] * 3, frame["y"])
    assert np.array_equal(hold_out(more_owner, more_y, 0.3, task=task, seed=5)[9:], by_name)


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 20, float("nan"), True])
def test_a_fraction_is_between_0_and_1_and_too_few_rows_are_said(fraction):
    owner, y = np.array(["a", "b", "b"]), np.array([0, 1, 1])
    refused(r"between 0 and 1, such as 0\.2", hold_out, owner, y, fraction, **CLASSES, seed=0)
    few = r"too few rows \(at most 2\).*or take validation rows from elsewhere"
    refused(few, hold_out, owner, y, 0.2, **CLASSES, seed=0)


def test_copies_keep_the_same_rows_of_a_class_that_nobody_else_holds():
    """At some seeds all rows of the class "rare" are held out, and the first is given back."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=12), "y": ["a", "b"] * 5 + ["rare", "a"]})
    owner, both = np.repeat(["A", "copy"], 12), pd.concat([frame, frame[::-1]], ignore_index=True)
    contents = row_contents(both)

    def keep(seed):
        held = hold_out(owner, both["y"], 0.25, contents=contents, seed=seed)
        kept = both[~held]
        return [set(map(tuple, kept[owner[~held] == who].to_numpy())) for who in ("A", "copy")]

    kept = [keep(seed) for seed in range(40)]
    assert all(of_a == of_copy for of_a, of_copy in kept)
    assert len({frozenset(of_a) for of_a, _ in kept}) > 1
    with patch.object(holdout, "_rows_equal_to", lambda rows, _: rows):
        assert any(of_a != of_copy for of_a, of_copy in map(keep, range(40)))


def test_validation_classes_occur_in_training():
    train = np.array(["u", "v"])
    check_validation(train, np.array(["v", "v"]), **CLASSES)
    check_validation(np.array([1.0]), np.array([2.0]), **NUMBERS)
    for scored, match in (
        ("wuxw", r"'w' \(2 rows\), 'x' \(1 row\); no model"),
        ("abcde", r"and 2 more; .*drop those rows, or correct the labels"),
    ):
        refused(match, check_validation, train, np.array(list(scored)), **CLASSES)
