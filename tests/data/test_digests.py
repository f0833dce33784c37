import copy
import functools
import json
import subprocess
import sys
import threading
from collections import OrderedDict
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dupre.data.digests import digest, digests_of_coalitions, digests_of_owners, digests_of_rows
from dupre.data.owners import Owners
from dupre.data.rows import take
from dupre.errors import InputError
from dupre.game.coalitions import all_coalitions

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(values, values, st.randoms())
def test_values_have_the_same_digest_if_and_only_if_they_are_the_same(first, second, random):
    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (digest(first) == digest(second)) == same
    assert digest(copy.deepcopy(first)) == digest(first)
    if isinstance(first, dict):
        items = list(first.items())
        random.shuffle(items)
        assert digest(dict(items)) == digest(first)


class Node:
    """An object that can hold itself."""

    def __init__(self, **state):
        vars(self).update(state)

    def score(self, members):
        return len(members)


def ring(n):
    loop = Node(n=n)
    loop.me = [loop]
    return loop


def frame(n):
    return pd.DataFrame({"size": [1.0, float(n)], "city": ["Bern", f"Oslo {n}"]})


def structured(n):
    return np.array([(1, 2)], [("a", "i4"), ("b", "i4")] if n == 1 else [("b", "i4"), ("a", "i4")])


def fitted(n):
    return StandardScaler().fit([[0.0], [float(n)]])


def plus(n):
    if n == 1:
        return lambda m: len(m) + 1
    return lambda m: len(m) + 2


FOLLOWS = {
    "number": lambda n: n,
    "kind of number": lambda n: 1 if n == 1 else 1.0,
    "set": lambda n: {n, "a"},
    "nested": lambda n: [[1], [2]] if n == 1 else [[1, 2]],
    "partial": lambda n: functools.partial(int, base=n),
    "decimal": lambda n: Decimal(f"0.{n}"),
    "date": lambda n: date(2020, 1, n),
    "ordered dict": lambda n: OrderedDict(a=n),
    "generator": np.random.default_rng,
    "class": lambda n: (int, float)[n - 1],
    "function of a library": lambda n: (np.mean, np.median)[n - 1],
    "ring": ring,
    "array": lambda n: np.array([0.0, n]),
    "shape": lambda n: np.zeros((n, 6 // n)),
    "text array": lambda n: np.array(["yes", "no" * n]),
    "object array": lambda n: np.array([n, "a", None], dtype=object),
    "masked": lambda n: np.ma.array([1.0, 2.0], mask=[False, n > 1]),
    "names of fields": structured,
    "frame": frame,
    "index of a frame": lambda n: frame(1).set_axis([n, 5]),
    "index of a series": lambda n: pd.Series([1, 2], index=[n, 5]),
    "categories": lambda n: pd.Series(pd.Categorical(["a", "b"], [["a", "b"], ["b", "a"]][n - 1])),
    "missing": lambda n: pd.Series([1, None if n == 1 else 2], dtype="Int64"),
    "sparse": lambda n: sparse.csr_array(np.array([[0.0, n]])),
    "parameter": lambda n: make_pipeline(StandardScaler(), LogisticRegression(C=n)),
    "kernel": lambda n: GaussianProcessRegressor(RBF(n)),
    "fitted state": fitted,
    "frozen": lambda n: FrozenEstimator(fitted(n)),
    "scorer": lambda n: make_scorer(fbeta_score, beta=n),
    "attribute": lambda n: Node(n=n),
    "bound method": lambda n: Node(n=n).score,
    "constant of a lambda": plus,
}


@pytest.mark.parametrize("make", FOLLOWS.values(), ids=FOLLOWS)
def test_a_digest_follows_the_contents_and_nothing_else(make):
    first, same, other = digest([make(1)]), digest([make(1)]), digest([make(2)])
    assert first == same != other
    once = make(1)
    assert digest([once, once]) == digest([make(1), make(1)])


SAME = {
    "order of memory": (np.eye(3)[:, :2], np.asfortranarray(np.eye(3)[:, :2])),
    "width of text": (np.array(["a"], "U9"), np.array(["a"], "U1")),
    "format of a sparse matrix": (sparse.csr_array(np.eye(3)), sparse.coo_array(np.eye(3))),
    "unused categories": (
        pd.Series(pd.Categorical(["b"], ["a", "b"])),
        pd.Series(pd.Categorical(["b"])),
    ),
    "another lock": (Node(lock=threading.Lock()), Node(lock=threading.Lock())),
    "order of attributes": (Node(a=1, b=2), Node(b=2, a=1)),
    "cached function": (functools.cache(plus), functools.lru_cache(5)(plus)),
}


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
def test_what_makes_no_difference_does_not_count(pair):
    assert digest(pair[0]) == digest(pair[1])


def test_what_cannot_be_compared_counts_by_its_class_or_is_refused():
    with pytest.raises(InputError, match="this lock cannot be compared"):
        digest([threading.Lock()], strict=True)
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert digest(deep) == digest(list)
    with pytest.raises(InputError, match="nested too deeply"):
        digest(deep, strict=True)


SOURCE = """
def utility(members):
    {docstring}
    return {constant} * len(members)  {comment}
"""


def loaded(tmp_path, monkeypatch, **texts):
    """A function of a file that is written anew."""
    texts = {"docstring": "'''One.'''", "constant": 1, "comment": "# one"} | texts
    (tmp_path / "mine.py").write_text(SOURCE.format(**texts))
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("mine", None)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        return __import__("mine").utility
    finally:
        sys.modules.pop("mine", None)
        sys.dont_write_bytecode = before


@pytest.mark.slow
def test_functions_are_told_by_source_and_alike_in_every_process(tmp_path, monkeypatch):
    def digest_with(**texts):
        return digest(loaded(tmp_path, monkeypatch, **texts))

    for texts in ({"docstring": "'''Two.'''"}, {"docstring": ""}, {"comment": "# two\n\n\n"}):
        assert digest_with(**texts) == digest_with()
    assert digest_with(constant=22) != digest_with()
    space = {}
    exec("def f(m): return 1", space)  # without source it counts by its name
    assert digest(space["f"]) == digest(space["f"]) != digest(len)

    told = subprocess.check_output([sys.executable, "-c", IN_ANOTHER], text=True).strip()
    vectorizer = CountVectorizer(stop_words=["x", "y"])
    assert digest([{"a", "b", "c"}, np.arange(3), vectorizer, np.mean]) == told


IN_ANOTHER = """
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from dupre.data.digests import digest
print(digest([{"a", "b", "c"}, np.arange(3), CountVectorizer(stop_words=["x", "y"]), np.mean]))
"""


def digests(X, y=None):
    """The digest of each row as a pair of numbers."""
    count = X.shape[0] if hasattr(X, "shape") else len(X)
    targets = np.zeros(count, dtype=int) if y is None else np.asarray(y)
    return [tuple(row) for row in digests_of_rows(X, targets).tolist()]


def mixed_frame():
    return pd.DataFrame(
        {
            "number": [1.5, -2.0, np.nan, 1.5],
            "whole": np.array([1, 2, 3, 1], dtype=np.int8),
            "truth": [True, False, True, True],
            "text": ["u", "vv", None, "u"],
            "kind": pd.Categorical(["b", None, "a", "b"], ["a", "b"]),
            "day": pd.to_datetime(["2020-01-01", None, "2021-05-06", "2020-01-01"]),
            "moment": pd.to_datetime(["2020-01-01", None, "2021-05-06", "2020-01-01"], utc=True),
            "maybe": pd.array([1, None, 3, 1], dtype="Int64"),
            "string": pd.array(["x", "y", None, "x"], dtype="string"),
            "span": pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2), (0, 2), (0, 1)]),
        }
    )


CONTAINERS = {
    "array": np.array([[1.0, 2.0], [3.0, 4.0], [2.0, 1.0], [1.0, 2.0]]),
    "whole numbers": np.array([[1, 2], [3, 4], [2, 1], [1, 2]], dtype=np.int16),
    "images": np.array([[[1, 0], [0, 1]], [[1, 1], [0, 0]], [[0, 1], [0, 1]], [[1, 0], [0, 1]]]),
    "truth": np.array([[True, False], [False, True], [True, True], [True, False]]),
    "text": np.array([["a", "bc"], ["ab", "c"], ["", "abc"], ["a", "bc"]]),
    "objects": np.array([["a", 1], ["a", 1.5], ["a", None], ["a", 1]], dtype=object),
    "frame": mixed_frame(),
    "sparse": sparse.csr_array(np.array([[1.0, 0, 2], [0, 1, 2], [1, 2, 0], [1, 0, 2]])),
    "empty sparse rows": sparse.csr_array(np.array([[0, 0], [0, 1.0], [1, 0], [0, 0]])),
    "texts": ["good", "bad", "good ", "good"],
    "dicts": [{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1}, {"b": 2, "a": 1}],
    "arrays in a list": [np.arange(3), np.arange(2), np.arange(3.0), np.arange(3)],
    "series": pd.Series(["good", "bad", "good ", "good"], index=[3, 3, 1, 0]),
    "masked": np.ma.array(
        [[1.0, 2], [1, 3], [1, 9], [1, 2]], mask=[[0, 0], [0, 0], [0, 1], [0, 0]]
    ),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_digest_depends_on_the_row_and_its_target_alone(kind):
    X = CONTAINERS[kind]
    first, second, third, fourth = everything = digests(X)
    assert first == fourth
    assert len({first, second, third}) == 3
    for rows in ([3, 1, 0, 2], [2, 1], [0]):  # neither on its place nor on other rows
        assert digests(take(X, np.array(rows))) == [everything[row] for row in rows]
    assert len(set(digests(X, [0, 0, 0, 1]))) == 4


@pytest.mark.parametrize(
    "y", [[0, 1, 0, 0], [0.5, 1.0, 0.5, 0.5], list("abaa"), [True, False, True, True]]
)
def test_targets_of_any_kind_are_told_apart(y):
    found = digests(np.zeros((4, 1)), y)
    assert found[0] == found[2] == found[3] != found[1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, complex, object])
def test_minus_zero_is_zero(dtype):
    zero, minus, one = digests(np.array([[0.0], [-0.0], [1.0]]).astype(dtype))
    assert zero == minus != one
    assert digests(np.zeros((2, 1)), [0.0, -0.0])[0] == digests(np.zeros((2, 1)), [-0.0, 0.0])[0]


def test_missing_things_and_stored_zeros_are_all_alike():
    other = np.uint64(0x7FF8000000000001).view(np.float64)
    first, second = digests(np.array([[np.nan], [other]]))
    assert first == second
    found = digests(np.array([[None], [np.nan], [pd.NA], [pd.NaT], ["x"]], dtype=object))
    assert len(set(found)) == 2

    data, where = np.array([1.0, 0.0, -0.0, 1.0]), np.array([0, 1, 2, 0])
    X = sparse.csr_array((data, where, np.array([0, 3, 4])), shape=(2, 3))
    first, second = digests(X)
    assert first == second
    assert X.nnz == 4, "the matrix given is not changed"
    entries = np.array([1.0, 1.0, 2.0, 2.0, 2.0]), np.array([2, 2, 0, 0, 2])
    X = sparse.csr_array((*entries, np.array([0, 3, 5])), shape=(2, 3))
    first, second = digests(X)
    assert first == second


def test_bytes_and_names_do_not_matter_but_order_and_types_of_cells_do():
    X = np.array([[1.5, 2.5], [3.5, 4.5]])
    assert digests(X.astype(">f8")) == digests(X.astype("<f8"))
    assert digests(np.asfortranarray(X)) == digests(X)
    frame = mixed_frame()
    assert digests(frame.set_axis(list("dcbahgfeji"), axis=1)) == digests(frame)
    assert digests(frame.set_index(pd.Index([5, 5, 5, 5]))) == digests(frame)
    assert digests(np.array([[1.0, 2.0]])) != digests(np.array([[2.0, 1.0]]))
    values = ["b", "a", None, "b"]
    one = pd.DataFrame({"c": pd.Categorical(values, ["a", "b"])})
    other = pd.DataFrame({"c": pd.Categorical(values, ["z", "b", "a"])})
    assert digests(one) == digests(other)

    found = digests(np.array([[1], [True], [1.0], ["1"], [b"1"]], dtype=object))
    assert len(set(found)) == 5
    lock = threading.Lock()
    found = digests([lock, lock, threading.Lock()])
    assert len(set(found)) == 3


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_dates_beyond_nanoseconds_are_told_apart(unit):
    days = ["9999-12-31", "9999-12-30", "2024-05-31", "9999-12-31"]
    times = [pd.Timestamp(day).as_unit(unit) for day in days]
    levels = pd.Index(times[:3], dtype=f"datetime64[{unit}]")
    for column in (pd.Series(times, dtype=object), pd.Series(pd.Categorical(times, levels))):
        first, second, third, fourth = digests(column.to_frame())
        assert first == fourth
        assert len({first, second, third}) == 3
    in_another = [time.as_unit("us") for time in times]
    objects = [pd.Series(some, dtype=object).to_frame() for some in (times, in_another)]
    assert digests(objects[0]) == digests(objects[1])


def test_containers_are_read_row_by_row_and_in_blocks(monkeypatch):
    class Rows:
        def __init__(self, things):
            self.things = np.array(things)

        def __len__(self):
            return len(self.things)

        def __getitem__(self, rows):
            return self.things[rows]

    first, second, third = digests(Rows(["a", "b", "a"]))
    assert first == third != second
    X = np.random.default_rng(0).normal(size=(50, 3))
    whole = digests(X)
    monkeypatch.setattr("dupre.data.digests.BLOCK", 7)
    assert digests(X) == whole


def test_digests_are_the_same_everywhere_and_depend_on_rows_alone():
    X = np.array([[1.0, -2.5], [0.0, 3.0]])
    assert digests(X, np.array([0, 1], dtype=np.int64)) == [
        (11_696_924_369_378_159_684, 12_152_493_216_118_496_187),
        (18_210_252_916_903_900_627, 433_793_355_287_464_951),
    ]
    assert digests(["good", "bad"], ["a", "b"]) == [
        (15_498_431_933_246_381_962, 6_410_957_775_708_842_942),
        (6_248_787_606_398_538_775, 10_470_246_024_605_294_350),
    ]
    times = [
        pd.Timestamp("2020-01-02 03:04:05.678901234"),
        pd.Timestamp("2020-01-02", tz="Europe/Zurich"),
    ]
    assert digests(np.array(times, dtype=object)[:, None]) == [
        (4_736_980_515_222_350_990, 1_423_266_932_395_875_480),
        (6_367_779_156_241_019_056, 13_278_734_040_211_613_028),
    ]
    X, y = np.arange(12.0)[:, None] % 7, np.arange(12) % 2
    labels = np.repeat(list("abc"), 4)
    rows = np.random.default_rng(0).permutation(12)
    owners = Owners.from_arrays(X, y, labels)
    renamed = Owners.from_arrays(X[rows], y[rows], np.char.replace(labels, "a", "z")[rows])
    assert renamed.names == ("b", "c", "z")
    np.testing.assert_array_equal(owners.contents, renamed.contents[[2, 0, 1]])
    assert len({tuple(row) for row in owners.contents.tolist()}) == 3


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=8, max_size=8), st.permutations(range(8)))
def test_a_coalition_has_the_digest_of_the_multiset_of_its_rows(cells, order):
    X, y = np.array(cells, dtype=float)[:, None], np.zeros(8, dtype=int)
    holder = np.array([0, 0, 1, 1, 1, 2, 2, 3])
    rows = digests_of_rows(X, y)
    owners = digests_of_owners(rows, holder, 4)
    found = digests_of_coalitions(all_coalitions(4), owners)
    held = (np.flatnonzero(coalition[holder]) for coalition in all_coalitions(4))
    bags = [tuple(sorted(X[rows_of, 0])) for rows_of in held]
    for i in range(len(bags)):
        for j in range(i):
            assert (bags[i] == bags[j]) == np.array_equal(found[i], found[j])
    mixed = np.array(order)
    np.testing.assert_array_equal(digests_of_owners(rows[mixed], holder[mixed], 4), owners)
    owners = np.array([[2**64 - 1, 1], [2, 2**64 - 1]], dtype=np.uint64)  # sums wrap around
    found = digests_of_coalitions(all_coalitions(2), owners)
    np.testing.assert_array_equal(found[-1], np.array([1, 0], dtype=np.uint64))
