from __future__ import annotations

import copy
import functools
import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import types
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from dupre import InputError, ModelUtility, Owners
from dupre.data.digests import digest
from dupre.training.identity import of_owners, of_utility


def case(id, *values):
    return pytest.param(*values, id=id)


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Source text in, module out: a user's own module, of the same name each time."""

    def loaded(source, name="theirs"):
        file = tmp_path / f"{name}.py"
        file.write_text(source)
        module = types.ModuleType(name)
        module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(source, file, "exec"), vars(module))
        return module

    return loaded


def test_digest_is_32_hexadecimal_digits():
    assert re.fullmatch("[0-9a-f]{32}", digest("anything"))


# --- plain values and containers

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["", "0", "1", "None", "True", "a", "b", "ab"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(values, values)
def test_values_have_the_same_digest_if_and_only_if_they_are_the_same(first, second):
    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (digest(first) == digest(second)) == same


@given(values)
def test_a_copy_has_the_same_digest(value):
    assert digest(json.loads(json.dumps(value))) == digest(value)
    assert digest(copy.deepcopy(value)) == digest(value)
    assert digest(pickle.loads(pickle.dumps(value))) == digest(value)


@given(st.dictionaries(scalars, values, max_size=6), st.randoms())
def test_the_order_of_a_dict_does_not_matter(items, random):
    shuffled = list(items.items())
    random.shuffle(shuffled)
    assert digest(dict(shuffled)) == digest(items)


@given(st.sets(scalars, max_size=8), st.randoms())
def test_the_order_of_a_set_does_not_matter(members, random):
    shuffled = list(members)
    random.shuffle(shuffled)
    assert digest(set(shuffled)) == digest(members) == digest(frozenset(shuffled))


DIFFERENT = [
    (1, 1.0),
    (1, True),
    (0, False),
    (0, None),
    (0.0, -0.0),
    ("1", 1),
    ("a", b"a"),
    ("None", None),
    ([1], (1,)),
    ([], ()),
    ([], {}),
    (set(), []),
    ([[1], [2]], [[1, 2]]),
    ([[], [1]], [[1], []]),
    (["ab"], ["a", "b"]),
    (["a", "b"], ["b", "a"]),
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {"b": 1}),
    ({"a": 1}, [("a", 1)]),
    ({1: "a"}, {"1": "a"}),
    ({1}, {2}),
    ({1}, {1, 2}),
    (range(3), range(4)),
    (slice(1), slice(2)),
    (date(2020, 1, 1), date(2020, 1, 2)),
    (Decimal("0.1"), Decimal("0.10")),
    (namedtuple("P", "a b")(1, 2), namedtuple("P", "a b")(2, 1)),
    (OrderedDict(a=1), OrderedDict(a=2)),
    (functools.partial(int, base=2), functools.partial(int, base=3)),
    (functools.partial(int, "1"), functools.partial(int, "2")),
    (functools.partial(int, "1"), functools.partial(float, "1")),
    (np.random.default_rng(0), np.random.default_rng(1)),
    (np.random.RandomState(0), np.random.RandomState(1)),
    (int, float),
    (np.float32, np.float64),
    (np, pd),
    (len, max),
    (np.mean, np.median),
]


@pytest.mark.parametrize(("first", "second"), DIFFERENT, ids=lambda thing: repr(thing)[:20])
def test_different_things_have_different_digests(first, second):
    assert digest(first) == digest(first)
    assert digest(first) != digest(second)
    assert digest([first, {"deep": (first,)}]) != digest([first, {"deep": (second,)}])


@pytest.mark.parametrize(
    "make",
    [
        lambda: [1, 2],
        lambda: np.arange(3.0),
        lambda: Decimal("1.5"),
        lambda: StandardScaler(),
        lambda: pd.Series(["x", "y"]),
    ],
    ids=["list", "array", "Decimal", "estimator", "series"],
)
def test_one_thing_twice_is_the_same_as_two_equal_things(make):
    once = make()
    assert digest([once, once]) == digest([make(), make()])


def test_cells_that_are_one_object_are_the_same_as_equal_cells():
    day = date(2020, 1, 1)
    shared = pd.DataFrame({"day": pd.Series([day, day], dtype=object)})
    equal = pd.DataFrame({"day": pd.Series([date(2020, 1, 1), date(2020, 1, 1)], dtype=object)})
    assert digest(shared) == digest(equal)
    assert digest(pickle.loads(pickle.dumps(equal))) == digest(equal)


class Node:
    """An object that can hold itself."""

    def __init__(self, **state):
        vars(self).update(state)


def test_structures_that_hold_themselves_have_digests_that_tell_their_contents():
    def ring(value):
        loop = [value]
        loop.append(loop)
        return loop

    def table(value):
        loop = {"value": value}
        loop["me"] = loop
        return loop

    def node(value):
        loop = Node(value=value)
        loop.me = [loop]
        return loop

    for make in (ring, table, node):
        assert digest(make(1)) == digest(make(1))
        assert digest(make(1)) != digest(make(2))


def test_functions_that_refer_to_each_other_have_digests(load):
    source = """
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != {} and even(n - 1)
"""
    assert digest(load(source.format(0)).even) == digest(load(source.format(0)).even)
    assert digest(load(source.format(0)).even) != digest(load(source.format(1)).even)


@pytest.mark.parametrize("holder", [lambda me: {me}, lambda me: {me: 1}], ids=["set", "key"])
def test_an_object_may_be_in_a_set_or_the_key_of_a_dict_that_it_holds(holder):
    node = Node()
    node.peers = holder(node)
    assert digest(node) == digest(node)


def test_a_function_may_be_registered_in_what_it_refers_to(load):
    module = load("WEIGHTS = {}\ndef utility(m): return WEIGHTS[utility]\nWEIGHTS[utility] = 0.5")
    assert digest(module.utility) == digest(module.utility)


def test_the_order_of_a_dict_does_not_matter_for_functions_that_refer_to_each_other(load):
    module = load("def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return even(n - 1)")
    first, second = {"a": module.even, "b": module.odd}, {"b": module.odd, "a": module.even}
    assert digest(first) == digest(second)


def test_too_long_a_chain_of_helpers_is_refused_with_the_way_out(load):
    helpers = "".join(f"def f{i}(m): return f{i + 1}(m)\n" for i in range(300))
    with pytest.raises(InputError, match="attribute `fingerprint`"):
        digest(load(f"{helpers}def f300(m): return 1").f0)


def test_keys_that_look_alike_need_no_order():
    assert digest({Node(): 1, Node(): 1}) == digest({Node(): 1, Node(): 1})


# --- arrays

dtypes = st.sampled_from(["f8", "f4", "f2", "i8", "i4", "u1", "?", "c16"]).map(np.dtype)
arrays = dtypes.flatmap(
    lambda dtype: hnp.arrays(
        dtype, hnp.array_shapes(max_dims=3, max_side=4), elements=hnp.from_dtype(dtype)
    )
)


@given(arrays, st.data())
def test_one_bit_of_an_array_changes_the_digest(array, data):
    raw = bytearray(array.tobytes())
    position = data.draw(st.integers(0, len(raw) - 1))
    bit = 0 if array.dtype == bool else data.draw(st.integers(0, 7))
    raw[position] ^= 1 << bit
    other = np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)
    assert digest(array) == digest(array.copy())
    assert digest(array) != digest(other)


@given(arrays)
def test_memory_layout_does_not_matter(array):
    twice = np.repeat(array, 2, axis=0)
    assert digest(np.asfortranarray(array)) == digest(array)
    assert digest(twice[::2]) == digest(array)
    assert digest(array[::-1][::-1]) == digest(array)
    frozen = array.copy()
    frozen.flags.writeable = False
    assert digest(frozen) == digest(array)


def test_dtype_and_shape_change_the_digest():
    zeros = [np.zeros(6, dtype) for dtype in ("f8", "i8", "u8", "f4", "i4", "?", "c16", "U2", "S8")]
    shapes = [(6,), (1, 6), (6, 1), (2, 3), (3, 2), (6, 0), (0, 6), (0,), ()]
    things = zeros + [np.zeros(shape) for shape in shapes[1:]]
    assert len({digest(thing) for thing in things}) == len(things)


def test_transposed_square_is_another_array():
    square = np.arange(9.0).reshape(3, 3)
    assert digest(square.T) != digest(square)
    assert digest(square.T) == digest(np.ascontiguousarray(square.T))


def test_text_arrays_are_told_by_their_texts():
    assert digest(np.array(["yes", "no"])) == digest(np.array(["yes", "no"]))
    assert digest(np.array(["yes", "no"])) != digest(np.array(["yes", "nö"]))


@pytest.mark.parametrize(
    "make",
    [
        case("datetime64", lambda n: np.array([0, n], "M8[s]")),
        case("timedelta64", lambda n: np.array([0, n], "m8[s]")),
        case("masked", lambda n: np.ma.array([1.0, 2.0], mask=[False, n > 1])),
        case("structured", lambda n: np.array([(1, 0.5), (n, 0.5)], [("a", "i4"), ("b", "f8")])),
        case("big-endian", lambda n: np.array([0.0, n], ">f8")),
        case("numpy-string", lambda n: np.array(["a" * 50, f"{n}" * 50], np.dtypes.StringDType())),
    ],
)
def test_uncommon_arrays_are_told_by_their_contents(make):
    assert digest(make(1)) == digest(make(1))
    assert digest(make(1)) != digest(make(2))


def test_object_arrays_are_told_by_what_they_hold():
    def make(*cells):
        array = np.empty(len(cells), dtype=object)
        array[:] = cells
        return array

    base = make("a", 1, None, [1, 2])
    assert digest(base) == digest(make("a", 1, None, [1, 2]))
    for other in (("b", 1, None, [1, 2]), ("a", 1.0, None, [1, 2]), ("a", 1, None, [1, 3])):
        assert digest(make(*other)) != digest(base)
    assert digest(base.reshape(2, 2)) != digest(base)
    assert digest(np.asfortranarray(base.reshape(2, 2))) == digest(base.reshape(2, 2))


# --- frames


def frame(**columns):
    return pd.DataFrame({"size": [1.0, 2.0, 3.0], "city": ["Bern", "Oslo", "Rome"], **columns})


def test_equal_frames_have_equal_digests_whatever_their_index():
    assert digest(frame()) == digest(frame())
    assert digest(frame().set_axis([7, 8, 9])) == digest(frame())
    assert digest(frame().iloc[[2, 0, 1]].iloc[[1, 2, 0]]) == digest(frame())


@pytest.mark.parametrize(
    "other",
    [
        case("name", frame().rename(columns={"size": "area"})),
        case("kind of name", frame().rename(columns={"size": 0})),
        case("order of columns", frame()[["city", "size"]]),
        case("order of rows", frame().iloc[::-1]),
        case("value", frame(size=[1.0, 2.0, np.nextafter(3.0, 4.0)])),
        case("text", frame(city=["Bern", "Oslo", "Roma"])),
        case("missing number", frame(size=[1.0, 2.0, np.nan])),
        case("missing text", frame(city=["Bern", "Oslo", None])),
        case("dtype", frame(size=np.float32([1, 2, 3]))),
        case("whole numbers", frame(size=[1, 2, 3])),
        case("nullable", frame(size=pd.array([1.0, 2.0, 3.0], "Float64"))),
        case("categories", frame(city=pd.Categorical(["Bern", "Oslo", "Rome"]))),
        case("column more", frame(more=0)),
        case("column fewer", frame()[["size"]]),
        case("row fewer", frame().iloc[:2]),
        case("array", frame().to_numpy()),
    ],
)
def test_any_change_of_a_frame_changes_its_digest(other):
    assert digest(other) != digest(frame())


@pytest.mark.parametrize(
    "make",
    [
        case("string", lambda *v: pd.array([str(x) for x in v] + [None], "string")),
        case("str", lambda *v: pd.Series([str(x) for x in v] + [None], dtype="str")),
        case("Int64", lambda *v: pd.array([*v, None], "Int64")),
        case("Float64", lambda *v: pd.array([*v, None], "Float64")),
        case("boolean", lambda *v: pd.array([*(x > 1 for x in v), None], "boolean")),
        case("object", lambda *v: pd.Series([*v, "text", None], dtype=object)),
        case("category", lambda *v: pd.Categorical([*v, None])),
        case("period", lambda *v: pd.PeriodIndex([f"202{x}-01" for x in v], freq="M")),
        case("interval", lambda *v: pd.arrays.IntervalArray.from_tuples([(0, x) for x in v])),
        case("sparse", lambda *v: pd.arrays.SparseArray([0, 0, *v])),
        case("time zone", lambda *v: pd.to_datetime(list(v), unit="D", utc=True)),
        case("datetime", lambda *v: pd.to_datetime([*v, None], unit="D")),
        case("timedelta", lambda *v: pd.to_timedelta([*v, None], unit="D")),
    ],
)
def test_columns_of_every_kind_are_told_by_their_values(make):
    assert digest(pd.DataFrame({"a": make(1, 2)})) == digest(pd.DataFrame({"a": make(1, 2)}))
    assert digest(pd.DataFrame({"a": make(1, 2)})) != digest(pd.DataFrame({"a": make(2, 1)}))


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean", "string", "object"])
def test_a_missing_value_is_not_the_value_under_it(kind):
    values = ["0", "1"] if kind == "string" else [0, 1]
    full, holed = pd.Series(values, dtype=kind), pd.Series(values, dtype=kind)
    holed[0] = None
    assert digest(full) != digest(holed)
    assert digest(holed) == digest(holed.copy())


def test_categories_that_no_row_has_do_not_matter():
    few = pd.Categorical(["b", "a", "b"])
    many = pd.Categorical(["b", "a", "b"], categories=["z", "a", "y", "b"])
    assert digest(frame(grade=few)) == digest(frame(grade=many))
    assert digest(frame(grade=few)) != digest(frame(grade=pd.Categorical(["b", "b", "a"])))
    codes = pd.Categorical.from_codes(few.codes, ["x", "y"])
    assert digest(frame(grade=few)) != digest(frame(grade=codes))


def test_two_columns_of_one_name_are_both_told():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    first, second = (pd.DataFrame(v, columns=["a", "a"]) for v in (values, values[:, ::-1]))
    assert digest(first) != digest(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pd.Index(["a", "b"]), pd.Index(["a", "c"])),
        (pd.RangeIndex(3), pd.RangeIndex(4)),
        (pd.Series([1, 2]), pd.Series([2, 1])),
        (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")),
        pytest.param(pd.MultiIndex.from_tuples([(1, 2)]), pd.MultiIndex.from_tuples([(1, 3)])),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_other_pandas_things_are_told_by_their_values(first, second):
    assert digest(first) == digest(first.copy() if hasattr(first, "copy") else first)
    assert digest(first) != digest(second)


# --- sparse matrices


def matrix():
    return sparse.csr_array(np.array([[0.0, 1, 2], [3, 0, 0], [4, 0, 5]]))


def test_sparse_matrices_are_told_by_their_values():
    changed = matrix()
    changed.data[0] += 1
    moved = sparse.csr_array(matrix().toarray()[:, [1, 0, 2]])
    wider = sparse.csr_array(np.hstack([matrix().toarray(), np.zeros((3, 1))]))
    things = [matrix(), changed, moved, wider, matrix().astype("f4"), matrix().toarray()]
    assert len({digest(thing) for thing in things}) == len(things)


def test_the_order_of_indices_does_not_matter_and_stays_as_it_is():
    columns, starts = np.array([2, 1, 0, 2, 0], np.int32), np.array([0, 2, 3, 5], np.int32)
    unsorted = sparse.csr_array((np.array([2.0, 1, 3, 5, 4]), columns, starts), shape=(3, 3))
    assert not unsorted.has_sorted_indices
    assert digest(unsorted) == digest(matrix())
    assert unsorted.indices.tolist() == [2, 1, 0, 2, 0]


@pytest.mark.parametrize("kind", ["csc", "coo", "lil", "dok", "bsr"])
def test_the_format_of_a_sparse_matrix_does_not_matter(kind):
    assert digest(matrix().asformat(kind)) == digest(matrix())
    assert digest(sparse.csr_matrix(matrix())) == digest(matrix())


def test_the_width_of_indices_does_not_matter():
    base = matrix()
    wide = sparse.csr_array(
        (base.data, base.indices.astype(np.int64), base.indptr.astype(np.int64)), shape=base.shape
    )
    assert wide.indices.dtype != base.indices.dtype
    assert digest(wide) == digest(base)


def test_entries_of_one_cell_are_their_sum():
    parts = sparse.csr_array((np.array([1.0, 1.0]), np.array([0, 0]), np.array([0, 2])), (1, 2))
    assert digest(parts) == digest(sparse.csr_array(np.array([[2.0, 0.0]])))


# --- estimators and scorers


def pipeline(C=1.0, **scaler):
    columns = make_column_transformer((StandardScaler(**scaler), ["size"]), (OneHotEncoder(), [1]))
    return make_pipeline(columns, LogisticRegression(C=C))


@pytest.mark.parametrize(
    "make",
    [
        LogisticRegression,
        lambda: RandomForestClassifier(n_estimators=7, random_state=np.random.RandomState(0)),
        pipeline,
        lambda: GridSearchCV(Ridge(), {"alpha": np.logspace(0, 1, 3)}, cv=KFold(3)),
        lambda: make_pipeline(FunctionTransformer(np.mean), Ridge()),
    ],
    ids=["model", "forest", "pipeline", "search", "function"],
)
def test_estimators_with_the_same_parameters_have_the_same_digest(make):
    assert digest(make()) == digest(make()) == digest(clone(make()))


def test_any_parameter_of_an_estimator_counts_however_deep():
    things = [
        LogisticRegression(),
        LogisticRegression(C=2.0),
        LogisticRegression(class_weight={0: 1.0, 1: 2.0}),
        LogisticRegression(class_weight={0: 2.0, 1: 1.0}),
        Ridge(),
        pipeline(),
        pipeline(C=2.0),
        pipeline(with_mean=False),
        make_pipeline(StandardScaler(), Ridge()),
        make_pipeline(StandardScaler(), StandardScaler(), Ridge()),
        GridSearchCV(Ridge(), {"alpha": [1, 2]}),
        GridSearchCV(Ridge(), {"alpha": [1, 3]}),
        GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=KFold(3)),
        GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=KFold(4)),
    ]
    assert len({digest(thing) for thing in things}) == len(things)


def test_the_order_of_parameters_given_does_not_matter():
    first = LogisticRegression(class_weight={0: 1.0, 1: 2.0})
    assert digest(first) == digest(LogisticRegression(class_weight={1: 2.0, 0: 1.0}))


def test_code_of_a_users_own_estimator_counts(load):
    source = """
from sklearn.base import BaseEstimator
class Mine(BaseEstimator):
    def __init__(self, a=1): self.a = a
    def fit(self, X, y): return self
    def predict(self, X): return {}
"""
    assert digest(load(source.format("X")).Mine()) == digest(load(source.format("X")).Mine())
    assert digest(load(source.format("X")).Mine()) != digest(load(source.format("-X")).Mine())
    assert digest(load(source.format("X")).Mine()) != digest(load(source.format("X")).Mine(2))


def test_numpy_functions_in_a_pipeline_are_told():
    things = [FunctionTransformer(f) for f in (np.log1p, np.sqrt, np.exp)]
    assert len({digest(thing) for thing in things}) == 3
    assert digest(clone(things[0])) == digest(things[0])


def test_distributions_of_a_search_are_told_by_their_parameters():
    def search(high):
        return RandomizedSearchCV(Ridge(), {"alpha": stats.loguniform(1e-3, high)})

    before = digest(search(10.0))
    assert before != digest(search(11.0))
    stats.norm.rvs(size=3)  # anything that draws from the global generator
    assert digest(search(10.0)) == before


def test_a_frozen_fitted_estimator_is_told_by_what_it_has_learnt():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    things = [FrozenEstimator(Ridge().fit(X, targets)) for targets in (y, -y)]
    assert clone(things[0]).predict(X)[0] != clone(things[1]).predict(X)[0]
    assert digest(things[0]) != digest(things[1])


def test_a_utility_that_fits_its_model_is_the_same_after_it_was_called(load):
    """Or else nobody could go on with an interrupted run in the same notebook."""
    module = load(
        "from sklearn.linear_model import Ridge\nmodel = Ridge()\n"
        "def utility(m): return model.fit([[0.0], [1.0]], [0.0, len(m)]).coef_[0]"
    )
    before = digest(module.utility)
    module.utility(("a", "b"))
    assert digest(module.utility) == before


def test_scorers_are_told_by_metric_and_arguments(load):
    def scorer(beta):
        return make_scorer(fbeta_score, beta=beta)

    assert digest(scorer(2)) == digest(scorer(2))
    things = [scorer(2), scorer(3), make_scorer(fbeta_score, greater_is_better=False, beta=2)]
    assert len({digest(thing) for thing in things}) == 3
    source = "def score(y, p): return float((y == p).mean() {} 1)"
    first, same, other = (
        digest(make_scorer(load(source.format(sign)).score)) for sign in ("+", "+", "-")
    )
    assert first == same
    assert first != other


# --- functions

SAME = [
    case(
        "comments",
        "def utility(m): return len(m)",
        "# a comment\n\n\ndef utility(m):\n    # another\n    return len(m)  # third",
    ),
    case(
        "unused global",
        "A = 1\ndef utility(m): return len(m)",
        "A = 2\ndef utility(m): return len(m)",
    ),
    case(
        "unused function",
        "def other(): return 1\ndef utility(m): return len(m)",
        "def other(): return 2\ndef utility(m): return len(m)",
    ),
    case(
        "names of closures",
        "def make():\n  a = 1\n  return lambda m: a\nutility = make()",
        "def make():\n  b = 1\n  return lambda m: b\nutility = make()",
    ),
    case(
        "annotations",
        "def utility(m): return len(m)",
        "def utility(m: tuple[str, ...]) -> float: return len(m)",
    ),
]

CHANGED = [
    case("code", "def utility(m): return §len(m)", "+", "-"),
    case("constant", "def utility(m): return §", "0.5", "0.25"),
    case("sign of zero", "def utility(m): return §", "0.0", "-0.0"),
    case("type", "def utility(m): return §", "1", "True"),
    case("operator", "def utility(m): return len(m) § 2", "<", ">"),
    case("attribute", "def utility(m): return m.§", "real", "imag"),
    case("builtin", "def utility(m): return §(m)", "min", "max"),
    case("set", "def utility(m): return m in {'a', §}", "'b'", "'c'"),
    case("default", "def utility(m, k=§): return k", "1", "2"),
    case("keyword", "def utility(m, *, k=§): return k", "1", "2"),
    case("lambda", "utility = lambda m: len(m) + §", "1", "2"),
    case("inner lambda", "utility = lambda m: (lambda: §)()", "1", "2"),
    case("closure", "def make(a):\n  return lambda m: a\nutility = make(§)", "1", "2"),
    case(
        "two closures",
        "def make(a, b):\n  return lambda m: a - b\nutility = make(§)",
        "1, 2",
        "2, 1",
    ),
    case("global", "A = §\ndef utility(m): return A", "1", "2"),
    case(
        "global array",
        "import numpy as np\nA = np.arange(§)\ndef utility(m): return A.sum()",
        "3",
        "4",
    ),
    case("inner global", "A = §\ndef utility(m): return [(lambda: A)() for _ in m]", "1", "2"),
    case("helper", "def f(): return §\ndef utility(m): return f()", "1", "2"),
    case(
        "deep", "A = §\ndef g(): return A\ndef f(): return g()\nutility = lambda m: f()", "1", "2"
    ),
    case("passed on", "def f(): return §\ndef utility(m, f=f): return f()", "1", "2"),
    case(
        "partial",
        "import functools\ndef f(a, m): return a\nutility = functools.partial(f, §)",
        "1",
        "2",
    ),
    case(
        "function of a partial",
        "import functools\ndef f(a, m): return §\nutility = functools.partial(f, 1)",
        "a",
        "-a",
    ),
    case(
        "wrapped",
        "import functools\ndef d(f):\n  @functools.wraps(f)\n  def g(*a): return f(*a)\n"
        "  return g\n@d\ndef utility(m): return §",
        "1",
        "2",
    ),
    case("signature", "def utility(§m): return len(m)", "", "*"),
    case(
        "argument names",
        "def f(§\ndef utility(m): return f(good=1, bad=2)",
        "good, bad): return good - bad",
        "bad, good): return bad - good",
    ),
    case(
        "extent of try",
        "def utility(m):\n  §\n  except ValueError: return 0",
        "try: m.a(); m.b()",
        "m.a()\n  try: m.b()",
    ),
    case(
        "cached helper",
        "import functools\n@functools.cache\ndef f(): return §\ndef utility(m): return f()",
        "1",
        "2",
    ),
    case(
        "cached utility",
        "import functools\n@functools.lru_cache\ndef utility(m): return §",
        "1",
        "2",
    ),
]


@pytest.mark.parametrize(("before", "after"), SAME)
def test_what_changes_no_result_changes_no_digest(load, before, after):
    assert digest(load(before).utility) == digest(load(after).utility)


@pytest.mark.parametrize(("source", "before", "after"), CHANGED)
def test_what_can_change_a_result_changes_the_digest(load, source, before, after):
    first, same, other = (
        digest(load(source.replace("§", text)).utility) for text in (before, before, after)
    )
    assert first == same
    assert first != other


@pytest.mark.parametrize(
    "utility",
    [
        case("imported name", "from helpers import score\ndef utility(m): return score(m)"),
        case("module", "import helpers\ndef utility(m): return helpers.score(m)"),
    ],
)
def test_helpers_in_other_modules_of_the_user_count(load, utility):
    digests = []
    for sign in ("+", "+", "-"):
        load(f"def score(m): return {sign}1.0", name="helpers")
        digests.append(digest(load(utility).utility))
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_functions_of_installed_packages_are_told_by_name_and_not_walked():
    assert digest(np.linalg.solve) != digest(np.linalg.inv)
    assert digest(fbeta_score) == digest(fbeta_score)


def test_functions_without_a_module_of_record_are_told_by_their_code():
    def made(text):
        space = {"__name__": "a_plugin_loaded_by_hand"}
        exec(text, space)
        return space["utility"]

    first, second = made("def utility(m): return 1.0"), made("def utility(m): return 2.0")
    assert digest(first) != digest(second)


def test_functions_without_any_module_have_digests():
    first, second = (eval(f"lambda members: {number}", {}) for number in (1.0, 2.0))
    assert first.__module__ is None
    assert digest(first) != digest(second)


def test_running_a_function_does_not_change_its_digest():
    def utility(members):
        total = 0.0
        for index in range(50):
            total += index * len(members)
        return total

    before = digest(utility)
    for _ in range(300):  # enough for the interpreter to specialise its code
        utility(("a", "b"))
    assert digest(utility) == before


def test_a_function_may_refer_to_a_compiled_pattern(load):
    source = "import re\nWORD = re.compile({!r})\ndef utility(m): return len(WORD.findall(m[0]))"
    first, second = (digest(load(source.format(word)).utility) for word in ("a+", "b+"))
    assert first != second


# --- objects and classes

OBJECT = """
class Base:
    def scale(self): return {base}
class Utility(Base):
    def __init__(self, weight): self.weight = weight
    def __call__(self, members): return self.weight * self.scale() * self.factor()
    @staticmethod
    def factor(): return {static}
    @property
    def half(self): return {half}
    @classmethod
    def make(cls): return {made}
    def method(self, members): return {method}
"""
AS_IT_IS = {"base": 1, "static": 1, "half": 1, "made": 1, "method": 1}


def test_callable_objects_are_told_by_state_and_code(load):
    base = digest(load(OBJECT.format(**AS_IT_IS)).Utility(0.5))
    assert digest(load(OBJECT.format(**AS_IT_IS)).Utility(0.5)) == base
    assert digest(load(OBJECT.format(**AS_IT_IS)).Utility(0.6)) != base
    for part in AS_IT_IS:
        changed = OBJECT.format(**{**AS_IT_IS, part: 2})
        assert digest(load(changed).Utility(0.5)) != base, part


def test_bound_methods_are_told_by_method_and_object(load):
    module = load(OBJECT.format(**AS_IT_IS))
    method = digest(module.Utility(0.5).method)
    assert digest(module.Utility(0.5).method) == method
    assert digest(module.Utility(0.6).method) != method
    assert digest(module.Utility(0.5).scale) != method
    changed = load(OBJECT.format(**{**AS_IT_IS, "method": 2}))
    assert digest(changed.Utility(0.5).method) != method


def test_the_order_in_which_attributes_were_set_does_not_matter():
    assert digest(Node(a=1, b=2)) == digest(Node(b=2, a=1))
    assert digest(Node(a=1, b=2)) != digest(Node(a=2, b=1))


def test_slots_count():
    class Slotted:
        __slots__ = ("weight",)

        def __init__(self, weight):
            self.weight = weight

    assert digest(Slotted(1)) == digest(Slotted(1))
    assert digest(Slotted(1)) != digest(Slotted(2))


@dataclass
class Settings:
    depth: int = 3
    inner: object = None


def test_dataclasses_are_told_by_their_fields():
    assert digest(Settings()) == digest(Settings(3))
    assert digest(Settings()) != digest(Settings(4))
    deep = [Settings(inner=Settings(inner=np.arange(n))) for n in (3, 3, 4)]
    assert digest(deep[0]) == digest(deep[1])
    assert digest(deep[0]) != digest(deep[2])


@pytest.mark.parametrize(
    "source",
    [
        case(
            "attribute",
            "class Utility:\n  weight = {}\n  def __call__(self, m): return self.weight\n"
            "utility = Utility()",
        ),
        case(
            "attribute of a class referred to",
            "class Settings:\n  weight = {}\ndef utility(m): return Settings.weight",
        ),
        case(
            "enum",
            "import enum\nclass Weight(enum.Enum):\n  HIGH = {}\n"
            "def utility(m): return Weight.HIGH.value",
        ),
        case(
            "partial method",
            "import functools\nclass Utility:\n  def f(self, a, m): return a\n"
            "  __call__ = functools.partialmethod(f, {})\nutility = Utility()",
        ),
        case(
            "inner class",
            "class Utility:\n  class Inner:\n    weight = {}\n"
            "  def __call__(self, m): return self.Inner.weight\nutility = Utility()",
        ),
        case(
            "cached property",
            "import functools\nclass Utility:\n  @functools.cached_property\n"
            "  def weight(self): return {}\n  def __call__(self, m): return self.weight\n"
            "utility = Utility()",
        ),
    ],
)
def test_what_a_class_holds_besides_methods_counts(load, source):
    first, same, other = (digest(load(source.format(n)).utility) for n in (1, 1, 2))
    assert first == same
    assert first != other


# --- what cannot be told


@pytest.mark.parametrize(
    ("kind", "thing"),
    [
        ("lock", threading.Lock()),
        ("local", threading.local()),
        ("generator", (x for x in ())),
        ("memoryview", memoryview(b"x")),
    ],
    ids=["lock", "local", "generator", "memoryview"],
)
def test_what_cannot_be_told_is_refused_with_the_way_out(kind, thing):
    def utility(members):
        return thing

    for holder in (thing, [thing], {"a": thing}, Node(deep=[thing]), utility):
        with pytest.raises(InputError, match=f"{kind} .*attribute `fingerprint`, any text"):
            digest(holder)


def test_open_files_are_refused(tmp_path):
    with (
        (tmp_path / "rows.txt").open("w") as file,
        pytest.raises(InputError, match=r"TextIOWrapper .*attribute `fingerprint`"),
    ):
        digest(Node(log=file))


def test_a_global_lock_that_a_function_takes_is_refused(load):
    module = load("import threading\nLOCK = threading.Lock()\ndef utility(m):\n  with LOCK: pass")
    with pytest.raises(InputError, match="lock"):
        digest(module.utility)


# --- the fingerprint attribute and the parts of a utility


class Stated:
    """A utility with a state that cannot be told, which says itself when it changes."""

    def __init__(self, fingerprint):
        self.lock = threading.Lock()
        self.fingerprint = fingerprint

    def __call__(self, members):
        return float(len(members))


def digests(utility):
    return {name: part.digest for name, part in of_utility(utility).items()}


def test_a_stated_fingerprint_is_all_that_counts():
    assert digests(Stated("v1")) == digests(Stated("v1"))
    assert digests(Stated("v1")) != digests(Stated("v2"))
    assert list(of_utility(Stated("v1"))) == ["utility"]
    assert of_utility(Stated("v1"))["utility"].description == "v1"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, "a"), (1, "b")),
        (3, 4),
        ("", "v1"),
        pytest.param(np.arange(3), np.arange(4)),
    ],
    ids=["tuple", "number", "text", "array"],
)
def test_a_stated_fingerprint_may_be_anything_that_can_be_told(first, second):
    assert digests(Stated(first)) == digests(Stated(first))
    assert digests(Stated(first)) != digests(Stated(second))


def test_a_stated_fingerprint_counts_inside_other_things():
    def utility(stated):
        return lambda members: stated(members)

    assert digest(Node(inner=Stated("v1"))) == digest(Node(inner=Stated("v1")))
    assert digest(Node(inner=Stated("v1"))) != digest(Node(inner=Stated("v2")))
    assert digest(utility(Stated("v1"))) == digest(utility(Stated("v1")))
    assert digest(utility(Stated("v1"))) != digest(utility(Stated("v2")))


def test_a_function_may_state_its_fingerprint_too():
    def utility(members):
        return threading.Lock()

    utility.fingerprint = "v1"
    first = digests(utility)
    utility.fingerprint = "v2"
    assert digests(utility) != first


def test_stated_parts_are_told_one_by_one():
    first = digests(Stated({"model": "a", "data": np.arange(3)}))
    second = digests(Stated({"model": "a", "data": np.arange(4)}))
    assert list(first) == ["utility", "model", "data"]
    assert first["model"] == second["model"]
    assert first["data"] != second["data"]


def test_a_method_named_fingerprint_is_called():
    class Mine:
        def __init__(self, version):
            self.version = version

        def fingerprint(self):
            return self.version

        def __call__(self, _members):
            return self.version

    assert digests(Mine(1.0)) == digests(Mine(1.0))
    assert digests(Mine(1.0)) != digests(Mine(2.0))


def test_a_utility_that_states_nothing_is_one_part():
    first, second = of_utility(Node(a=1)), of_utility(Node(a=2))
    assert list(first) == ["utility"]
    assert first["utility"].digest == digest(Node(a=1)) != second["utility"].digest


@pytest.mark.parametrize("utility", [Node(a=1), functools.partial(Node.__init__, None)])
def test_descriptions_say_the_same_in_every_process(utility):
    assert "0x" not in of_utility(utility)["utility"].description


def test_descriptions_are_one_short_line():
    for part in ("a\n" * 500, Settings(inner=list(range(5000))), pipeline(), lambda m: 0.5):
        description = of_utility(Stated({"part": part}))["part"].description
        assert "\n" not in description
        assert len(description) <= 300


# --- of a ModelUtility


def rows(seed=0, n=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8 * n, 3))
    y = (X[:, 0] > 0).astype(int)
    y[::8], y[1::8] = 0, 1
    return X, y, np.repeat([f"owner{i}" for i in range(n)], 8)


def model_utility(estimator=None, *, rows_seed=0, validation_seed=1, metric="accuracy", seed=0):
    X, y, _ = rows(validation_seed)
    return ModelUtility(
        estimator or pipeline_of_numbers(),
        Owners.from_arrays(*rows(rows_seed)),
        validation=(X, y),
        metric=metric,
        seed=seed,
    )


def pipeline_of_numbers(C=1.0):
    return make_pipeline(StandardScaler(), LogisticRegression(C=C))


def test_model_utilities_of_the_same_things_have_the_same_parts():
    assert digests(model_utility()) == digests(model_utility())
    assert digests(model_utility(rows_seed=5)) == digests(model_utility())
    used = model_utility()
    used(("owner0", "owner1"))
    assert digests(used) == digests(model_utility())


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("model", {"estimator": pipeline_of_numbers(C=2.0)}),
        ("metric", {"metric": "balanced_accuracy"}),
        ("metric", {"metric": make_scorer(fbeta_score, beta=2)}),
        ("validation data", {"validation_seed": 2}),
        ("seed", {"seed": 1}),
    ],
)
def test_each_part_of_a_model_utility_is_told_apart(part, other):
    before, after = digests(model_utility()), digests(model_utility(**other))
    assert {name for name in before | after if before.get(name) != after.get(name)} == {part}


def test_one_validation_label_counts():
    X, y, _ = rows(1)
    owners = Owners.from_arrays(*rows())
    other = y.copy()
    other[5] = 1 - other[5]
    first, second = (
        digests(ModelUtility(LogisticRegression(), owners, validation=(X, labels)))
        for labels in (y, other)
    )
    assert first["validation data"] != second["validation data"]


# --- of owners


def kinds():
    X, y, owner = rows()
    categories = pd.Categorical(np.where(X[:, 1] > 0, "up", "down"))
    yield "array", (X, y, owner, {})
    yield "frame", (pd.DataFrame({"a": X[:, 0], "b": categories}), y, owner, {})
    yield "sparse", (sparse.csr_array(np.where(X > 0.5, X, 0)), y, owner, {})
    texts = [f"text {value:.3f}" for value in X[:, 0]]
    yield "list", (texts, y, owner, {"embed": lambda T: np.array([[len(t)] for t in T])})


def taken(X, y, owner, options, chosen):
    """Owners of some of the rows, in any order."""
    chosen = np.asarray(chosen)
    if isinstance(X, list):
        part = [X[i] for i in chosen]
    else:
        part = X.iloc[chosen].reset_index(drop=True) if hasattr(X, "iloc") else X[chosen]
    return Owners.from_arrays(part, y[chosen], owner[chosen], **options)


every_kind = pytest.mark.parametrize("given_rows", [case(id, rows) for id, rows in kinds()])


@every_kind
def test_every_owner_has_a_digest_of_its_own_rows(given_rows):
    found = of_owners(taken(*given_rows, np.arange(32)))
    assert list(found) == ["owner0", "owner1", "owner2", "owner3"]
    assert len(set(found.values())) == 4


@every_kind
@settings(max_examples=15)
@given(data=st.data())
def test_how_rows_of_owners_are_mixed_does_not_matter(given_rows, data):
    owner = given_rows[2]
    turns = data.draw(st.permutations(list(owner)))
    queues = {name: iter(np.flatnonzero(owner == name)) for name in set(owner)}
    mixed = [next(queues[name]) for name in turns]
    assert of_owners(taken(*given_rows, mixed)) == of_owners(taken(*given_rows, np.arange(32)))


@every_kind
def test_owners_that_join_or_leave_do_not_change_the_others(given_rows):
    everyone = of_owners(taken(*given_rows, np.arange(32)))
    for absent in range(4):
        chosen = [row for row in range(32) if row // 8 != absent]
        found = of_owners(taken(*given_rows, chosen))
        assert found == {name: everyone[name] for name in found}
        assert len(found) == 3


@every_kind
def test_a_row_more_fewer_or_elsewhere_changes_only_its_owner(given_rows):
    everyone = of_owners(taken(*given_rows, np.arange(32)))
    base = list(range(32))
    for chosen in (base[:10] + base[11:], [*base, 10], base[:8] + base[8:16][::-1] + base[16:]):
        found = of_owners(taken(*given_rows, chosen))
        assert {name for name in found if found[name] != everyone[name]} == {"owner1"}


@settings(max_examples=20)
@given(st.integers(0, 31), st.integers(0, 3))
def test_one_number_changes_only_its_owner(row, column):
    X, y, owner = rows()
    before = of_owners(Owners.from_arrays(X, y, owner))
    if column == 3:
        y[row] = 1 - y[row]
    else:
        X[row, column] = np.nextafter(X[row, column], np.inf)
    after = of_owners(Owners.from_arrays(X, y, owner))
    assert {name for name in before if before[name] != after[name]} == {owner[row]}


def test_categories_of_other_owners_do_not_matter():
    def shop(*grades):
        return pd.DataFrame({"grade": pd.Categorical(grades), "sold": [0, 1]})

    data = {"a": shop("x", "y"), "b": shop("y", "y")}
    two = of_owners(Owners.from_mapping(data, target="sold"))
    three = of_owners(Owners.from_mapping({**data, "c": shop("z", "w")}, target="sold"))
    assert two == {name: three[name] for name in two}


def test_the_length_of_other_owners_labels_does_not_matter():
    X, _, owner = rows()
    labels = np.array(["x", "y"] * 12 + ["x", "longer"] * 4)
    three = of_owners(Owners.from_arrays(X[:24], np.array(["x", "y"] * 12), owner[:24]))
    four = of_owners(Owners.from_arrays(X, labels, owner))
    assert three == {name: four[name] for name in three}


def test_owners_may_have_columns_of_dates():
    X, y, owner = rows()
    days = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=32), "x": X[:, 0]})
    found = of_owners(Owners.from_arrays(days, y, owner))
    assert len(set(found.values())) == 4


# --- in another process

THINGS = """
import functools
from dataclasses import dataclass
import numpy as np, pandas as pd
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

WORDS = [f"word{i}" for i in range(30)]
TABLE = {word: {word + "x", word + "y", "z"} for word in WORDS}

@dataclass
class Settings:
    names: frozenset = frozenset(WORDS)
    depth: float = 0.1

class Utility:
    def __init__(self): self.seen, self.settings = set(WORDS), Settings()
    def __call__(self, members): return len(self.seen & set(members))

def helper(word): return word in {"word1", "word2", "word3", "word4", "word5", "word6"}
def utility(members, *, table=TABLE): return sum(map(helper, members)) + len(WORDS)
def score(model, X, y): return -abs(model.predict(X) - y).mean()

rng = np.random.default_rng(0)
things = {
    "set": set(WORDS),
    "dict": TABLE,
    "function": utility,
    "lambda": lambda members: utility(members) + 1,
    "partial": functools.partial(utility, table={}),
    "object": Utility(),
    "method": Utility().__call__,
    "class": Utility,
    "model": make_pipeline(StandardScaler(), LogisticRegression(class_weight={0: 1, 1: 2})),
    "scorer": make_scorer(helper),
    "array": rng.normal(size=(5, 2)),
    "frame": pd.DataFrame({"a": WORDS, "b": pd.Categorical(WORDS), "c": rng.normal(size=30)}),
    "times": pd.to_datetime(["2020-01-01", None], utc=True),
    "sparse": sparse.random_array((5, 5), density=0.5, rng=rng),
    "generator": np.random.default_rng(3),
    "everything": [utility, Utility(), score, WORDS, {"np": np}],
}
"""


def output(arguments, *, hash_seed, cwd=None):
    """What a Python process of its own prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_digests_are_the_same_in_another_process(load, tmp_path):
    here = {name: digest(thing) for name, thing in load(THINGS, "things").things.items()}
    script = """
        import json
        import things
        from dupre.data.digests import digest
        print(json.dumps({name: digest(thing) for name, thing in things.things.items()}))
    """
    there = json.loads(output(["-c", textwrap.dedent(script)], hash_seed="1", cwd=tmp_path))
    assert there == here
    assert len(set(here.values())) == len(here)


def test_digests_of_a_script_are_the_same_at_each_run(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(THINGS + "\nfrom dupre.data.digests import digest\nprint(digest(things))\n")
    runs = [output([str(script)], hash_seed=seed) for seed in ("1", "2")]
    assert runs[0] == runs[1] != ""


def test_settings_of_a_module_made_at_run_time_count(tmp_path, monkeypatch):
    (tmp_path / "settings_of_a_run.py").write_text("DEPTH = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import settings_of_a_run as settings

    def utility(members):
        return settings.DEPTH * len(members)

    first = digest(utility)
    settings.DEPTH = 10
    assert digest(utility) != first
    settings.DEPTH = 1
    assert digest(utility) == first


def test_the_order_of_categories_counts_but_not_those_of_others():
    def column(categories):
        return pd.Series(pd.Categorical(["a", "b", "a"], categories=categories))

    assert digest(column(["a", "b"])) == digest(column(["a", "b", "c"]))
    assert digest(column(["a", "b"])) != digest(column(["b", "a"]))


def test_a_class_made_by_exec_without_a_module_is_the_users():
    def made(k):
        names = {}
        exec(f"class Made:\n    def __call__(self, m): return {k}", names)
        return names["Made"]()

    assert digest(made(1)) == digest(made(1))
    assert digest(made(1)) != digest(made(2))


def test_an_attribute_is_not_a_global_of_the_same_name():
    source = "X = [1.0]\ndef utility(members):\n    return X.mean\n"
    plain, with_global = {"__name__": "__main__"}, {"__name__": "__main__", "mean": 3}
    exec(source, plain)
    exec(source, with_global)
    assert digest(plain["utility"]) == digest(with_global["utility"])


def test_what_is_computed_again_when_needed_does_not_count():
    class Cached:
        @functools.cached_property
        def table(self):
            return [1, 2]

    one = Cached()
    before = digest(one)
    assert one.table == [1, 2]
    assert digest(one) == before
