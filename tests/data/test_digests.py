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

from dupre.data.digests import digest
from dupre.errors import InputError

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
