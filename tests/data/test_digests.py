from __future__ import annotations

import copy
import functools
import json
import os
import pickle
import re
import subprocess
import sys
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

from dupre import InputError
from dupre.data.contents import digests_of_rows
from dupre.data.digests import digest


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


def assert_counts(make, first=1, second=2):
    """The digest follows the argument, and nothing else."""
    assert digest(make(first)) == digest(make(first)) != digest(make(second))


def variants(source):
    """Two sources from one that holds «first|second» wherever they differ."""
    return [re.sub("«(.*?)[|](.*?)»", rf"\{k}", source, flags=re.DOTALL) for k in (1, 2)]


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
        assert_counts(make)


def test_functions_that_refer_to_each_other_have_digests(load):
    source = "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != {} and even(n - 1)"
    assert_counts(lambda k: load(source.format(k)).even)


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


@pytest.mark.parametrize(
    "make",
    [
        case("text", lambda n: np.array(["yes", "no" * n])),
        case("datetime64", lambda n: np.array([0, n], "M8[s]")),
        case("timedelta64", lambda n: np.array([0, n], "m8[s]")),
        case("masked", lambda n: np.ma.array([1.0, 2.0], mask=[False, n > 1])),
        case("structured", lambda n: np.array([(1, 0.5), (n, 0.5)], [("a", "i4"), ("b", "f8")])),
        case("big-endian", lambda n: np.array([0.0, n], ">f8")),
        case("numpy-string", lambda n: np.array(["a" * 50, f"{n}" * 50], np.dtypes.StringDType())),
    ],
)
def test_arrays_of_every_kind_are_told_by_their_contents(make):
    assert_counts(make)


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
    assert_counts(lambda pair: pd.DataFrame({"a": make(*pair)}), (1, 2), (2, 1))


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


def test_the_order_of_categories_counts_but_not_those_of_others():
    def column(categories):
        return pd.Series(pd.Categorical(["a", "b", "a"], categories=categories))

    assert digest(column(["a", "b"])) == digest(column(["a", "b", "c"]))
    assert digest(column(["a", "b"])) != digest(column(["b", "a"]))


def test_two_columns_of_one_name_are_both_told():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    first, second = (pd.DataFrame(v, columns=["a", "a"]) for v in (values, values[:, ::-1]))
    assert digest(first) != digest(second)


@pytest.mark.parametrize(
    "make",
    [
        case("Index", lambda n: pd.Index(["a", n])),
        case("RangeIndex", lambda n: pd.RangeIndex(n)),
        case("Series", lambda n: pd.Series([1, n])),
        case("Timestamp", lambda n: pd.Timestamp(f"2020-01-0{n}")),
        case("MultiIndex", lambda n: pd.MultiIndex.from_tuples([(1, n)])),
    ],
)
def test_other_pandas_things_are_told_by_their_values(make):
    assert_counts(make)


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
    assert_counts(lambda text: load(source.format(text)).Mine(), "X", "-X")
    assert_counts(load(source.format("X")).Mine)


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

    assert_counts(scorer)
    assert digest(scorer(2)) != digest(make_scorer(fbeta_score, greater_is_better=False, beta=2))
    source = "def score(y, p): return float((y == p).mean() {} 1)"
    assert_counts(lambda sign: make_scorer(load(source.format(sign)).score), "+", "-")


# --- functions

SAME = [
    "«|# a comment\n\n»def utility(m):«| # another»\n  return len(m)",
    "A = «1|2»\ndef utility(m): return len(m)",
    "def other(): return «1|2»\ndef utility(m): return len(m)",
    "def make():\n  «a|b» = 1\n  return lambda m: «a|b»\nutility = make()",
    "def utility(m«|: tuple[str, ...]») «|-> float »: return len(m)",
]

CHANGED = [
    "def utility(m): return «+|-»len(m)",
    "def utility(m): return «0.5|0.25»",
    "def utility(m): return «0.0|-0.0»",
    "def utility(m): return «1|True»",
    "def utility(m): return len(m) «<|>» 2",
    "def utility(m): return m.«real|imag»",
    "def utility(m): return «min|max»(m)",
    "def utility(m): return m in {'a', «'b'|'c'»}",
    "def utility(m, k=«1|2»): return k",
    "def utility(m, *, k=«1|2»): return k",
    "utility = lambda m: len(m) + «1|2»",
    "utility = lambda m: (lambda: «1|2»)()",
    "def make(a):\n  return lambda m: a\nutility = make(«1|2»)",
    "def make(a, b):\n  return lambda m: a - b\nutility = make(«1, 2|2, 1»)",
    "A = «1|2»\ndef utility(m): return A",
    "import numpy as np\nA = np.arange(«3|4»)\ndef utility(m): return A.sum()",
    "A = «1|2»\ndef utility(m): return [(lambda: A)() for _ in m]",
    "def f(): return «1|2»\ndef utility(m): return f()",
    "A = «1|2»\ndef g(): return A\ndef f(): return g()\nutility = lambda m: f()",
    "def f(): return «1|2»\ndef utility(m, f=f): return f()",
    "import functools\ndef f(a, m): return a\nutility = functools.partial(f, «1|2»)",
    "import functools\ndef f(a, m): return «a|-a»\nutility = functools.partial(f, 1)",
    "import functools\ndef d(f):\n  @functools.wraps(f)\n  def g(*a): return f(*a)\n  return g\n"
    "@d\ndef utility(m): return «1|2»",
    "def utility(«|*»m): return len(m)",
    "def f(«good, bad|bad, good»): return «good - bad|bad - good»\n"
    "def utility(m): return f(good=1, bad=2)",
    "def utility(m):\n  «try: m.a(); m.b()|m.a()\n  try: m.b()»\n  except ValueError: return 0",
    "import functools\n@functools.cache\ndef f(): return «1|2»\ndef utility(m): return f()",
    "import functools\n@functools.lru_cache\ndef utility(m): return «1|2»",
]

IN_CLASSES = [
    "class U:\n  weight = «1|2»\n  def __call__(self, m): return self.weight\nutility = U()",
    "class Settings:\n  weight = «1|2»\ndef utility(m): return Settings.weight",
    "import enum\nclass W(enum.Enum):\n  HIGH = «1|2»\ndef utility(m): return W.HIGH.value",
    "import functools\nclass U:\n  def f(self, a, m): return a\n"
    "  __call__ = functools.partialmethod(f, «1|2»)\nutility = U()",
    "class U:\n  class Inner:\n    weight = «1|2»\n"
    "  def __call__(self, m): return self.Inner.weight\nutility = U()",
    "import functools\nclass U:\n  @functools.cached_property\n  def weight(self): return «1|2»\n"
    "  def __call__(self, m): return self.weight\nutility = U()",
]


@pytest.mark.parametrize("source", SAME)
def test_what_changes_no_result_changes_no_digest(load, source):
    before, after = (digest(load(text).utility) for text in variants(source))
    assert before == after


@pytest.mark.parametrize("source", CHANGED + IN_CLASSES)
def test_what_can_change_a_result_changes_the_digest(load, source):
    assert_counts(lambda text: load(text).utility, *variants(source))


@pytest.mark.parametrize(
    "source",
    [
        "from helpers import score\ndef utility(m): return score(m)",
        "import helpers\ndef utility(m): return helpers.score(m)",
    ],
)
def test_helpers_in_other_modules_of_the_user_count(load, source):
    def make(number):
        load(f"def score(m): return {number}", name="helpers")
        return load(source).utility

    assert_counts(make)


def test_functions_of_installed_packages_are_told_by_name_and_not_walked():
    assert digest(np.linalg.solve) != digest(np.linalg.inv)
    assert digest(fbeta_score) == digest(fbeta_score)


def test_functions_without_a_module_of_record_are_told_by_their_code():
    def made(text):
        space = {"__name__": "a_plugin_loaded_by_hand"}
        exec(text, space)
        return space["utility"]

    assert_counts(made, *variants("def utility(m): return «1|2»"))


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
    assert_counts(lambda word: load(source.format(word)).utility, "a+", "b+")


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

    assert_counts(Slotted)


@dataclass
class Settings:
    depth: int = 3
    inner: object = None


def test_dataclasses_are_told_by_their_fields():
    assert digest(Settings()) == digest(Settings(3)) != digest(Settings(4))
    assert_counts(lambda n: Settings(inner=Settings(inner=np.arange(n))))


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


SCRIPT = """
import json, sys
import things as module
from dupre.data.contents import digests_of_rows
from dupre.data.digests import digest

rows = digests_of_rows([{"a", "b", "c"}, ("x", 1)], np.array(["p", "q"]))
found = {name: digest(thing) for name, thing in module.things.items()}
print(json.dumps({"module": found, "script": digest(things), "rows": rows.tolist()}))
"""


def test_digests_are_the_same_in_every_process(load, tmp_path):
    here = {name: digest(thing) for name, thing in load(THINGS, "things").things.items()}
    script = tmp_path / "script.py"
    script.write_text(THINGS + SCRIPT)
    runs = [
        subprocess.Popen(
            [sys.executable, str(script)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    first, second = (json.loads(run.communicate(timeout=300)[0]) for run in runs)
    assert first == second
    assert first["module"] == here
    assert len(set(here.values())) == len(here)
    rows = digests_of_rows([{"a", "b", "c"}, ("x", 1)], np.array(["p", "q"]))
    assert first["rows"] == rows.tolist()


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


def test_a_class_made_by_exec_without_a_module_is_the_users():
    def made(k):
        names = {}
        exec(f"class Made:\n    def __call__(self, m): return {k}", names)
        return names["Made"]()

    assert_counts(made)


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
