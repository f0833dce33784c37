import functools
import importlib
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dupre
from dupre import ModelUtility, Owners
from dupre.errors import StoreError
from dupre.store.origin import of_owners
from dupre.utility.describe import Part, describe
from stores import OWNERS, SETTING, beside, open_store, sql, success, utilities


class Stated:
    """A utility with a state that cannot be told, which says itself when it changes."""

    def __init__(self, fingerprint):
        self.lock = threading.Lock()
        self.fingerprint = fingerprint

    def __call__(self, members):
        return float(len(members))


class Plain(SimpleNamespace):
    def __call__(self, members):
        return len(members)


def digests(utility):
    return {name: part.digest for name, part in describe(utility).fingerprint.items()}


def rows(seed=0, n=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8 * n, 3))
    y = (X[:, 0] > 0).astype(int)
    y[::8], y[1::8] = 0, 1
    return X, y, np.repeat([f"owner{i}" for i in range(n)], 8)


def owners_of(*given):
    return of_owners(Owners.from_arrays(*given))


@pytest.mark.parametrize(
    ("first", "second"),
    [("v1", "v2"), ((1, "a"), (1, "b")), (3, 4), ("", "v1"), (np.arange(3), np.arange(4))],
    ids=["text", "tuple", "number", "empty", "array"],
)
def test_a_stated_fingerprint_is_all_that_counts(first, second):
    assert digests(Stated(first)) == digests(Stated(first)) != digests(Stated(second))
    assert digests(Stated(first)) == digests(Stated(lambda: first))
    assert list(describe(Stated(first)).fingerprint) == ["utility"]


def test_parts_are_told_one_by_one_in_short_lines_the_same_everywhere():
    first = digests(Stated({"model": "a", "data": np.arange(3)}))
    second = digests(Stated({"model": "a", "data": np.arange(4)}))
    assert list(first) == ["utility", "model", "data"]
    assert first["model"] == second["model"]
    assert first["data"] != second["data"]
    first, second = digests(Plain(a=1)), digests(Plain(a=2))
    assert list(first) == ["utility", "state"]
    assert first["utility"] == second["utility"]
    assert first["state"] != second["state"]
    assert digests(Plain(a=1).__call__)["state"] == first["state"]

    for utility in (Plain(a=1), functools.partial(Stated.__init__, None)):
        assert "0x" not in describe(utility).fingerprint["utility"].description
    assert describe(Stated("v1")).fingerprint["utility"].description == "v1"
    for part in ("a\n" * 500, list(range(5000)), make_pipeline(StandardScaler()), lambda m: 0.5):
        description = describe(Stated({"part": part})).fingerprint["part"].description
        assert "\n" not in description
        assert len(description) <= 300


def model_utility(rows_seed=0):
    owners = Owners.from_arrays(*rows(rows_seed))
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return ModelUtility(model, owners, validation=rows(1)[:2])


def test_model_utilities_of_the_same_things_have_the_same_parts():
    assert digests(model_utility()) == digests(model_utility())
    assert digests(model_utility(rows_seed=5)) == digests(model_utility())
    used = model_utility()
    used(("owner0", "owner1"))
    assert digests(used) == digests(model_utility())


def kinds():
    X, y, owner = rows()
    categories = pd.Categorical(np.where(X[:, 1] > 0, "up", "down"))
    days = pd.date_range("2020-01-01", periods=32)
    yield X, y, owner, {}
    yield pd.DataFrame({"a": X[:, 0], "b": categories, "day": days}), y, owner, {}
    yield sparse.csr_array(np.where(X > 0.5, X, 0)), y, owner, {}
    texts = [f"text {value:.3f}" for value in X[:, 0]]
    yield texts, y, owner, {"embed": lambda T: np.array([[len(t)] for t in T])}


def taken(X, y, owner, options, chosen):
    """Fingerprints of owners of some of the rows, in any order."""
    chosen = np.asarray(chosen)
    if isinstance(X, list):
        part = [X[i] for i in chosen]
    else:
        part = X.iloc[chosen].reset_index(drop=True) if hasattr(X, "iloc") else X[chosen]
    return of_owners(Owners.from_arrays(part, y[chosen], owner[chosen], **options))


every_kind = pytest.mark.parametrize(
    "given_rows", list(kinds()), ids=["array", "frame", "sparse", "list"]
)


@every_kind
def test_rows_of_any_kind_change_only_the_fingerprint_of_their_owner(given_rows):
    mixed = np.random.default_rng(1).permutation(32)
    everyone = taken(*given_rows, np.arange(32))
    assert taken(*given_rows, mixed) == everyone

    assert list(everyone) == ["owner0", "owner1", "owner2", "owner3"]
    assert len(set(everyone.values())) == 4
    for absent in range(4):
        found = taken(*given_rows, [row for row in range(32) if row // 8 != absent])
        assert found == {name: everyone[name] for name in found}
        assert len(found) == 3

    base = list(range(32))
    for chosen in (base[:10] + base[11:], [*base, 10]):
        found = taken(*given_rows, chosen)
        assert {name for name in found if found[name] != everyone[name]} == {"owner1"}


@settings(max_examples=20)
@given(st.integers(0, 31), st.integers(0, 3))
def test_one_number_changes_only_its_owner(row, column):
    X, y, owner = rows()
    before = owners_of(X, y, owner)
    if column == 3:
        y[row] = 1 - y[row]
    else:
        X[row, column] = np.nextafter(X[row, column], np.inf)
    after = owners_of(X, y, owner)
    assert {name for name in before if before[name] != after[name]} == {owner[row]}


AS_TYPES = {
    "index": lambda frame: frame.set_axis(range(7, 39)),
    "pandas types": lambda frame: frame.convert_dtypes().astype({"then": object}),
    "objects": lambda frame: frame.astype({"b": object, "label": object}),
    "python strings": lambda frame: frame.astype({"b": pd.StringDtype("python")}),
    "microseconds": lambda frame: frame.astype({"day": "datetime64[us]"}),
    "seconds": lambda frame: frame.astype({"then": "datetime64[s]"}).astype({"then": object}),
    "names": lambda frame: frame.set_axis(frame.columns.astype(object), axis=1),
}
"""What pandas 2 and 3 make of the same table, and more."""


def fingerprints(frame, owner):
    """Of the owners' rows, and of the same rows as validation data."""
    X, y = frame.drop(columns="label"), frame["label"]
    owners = Owners.from_arrays(X, y, owner, embed=lambda X: X[["a"]].to_numpy(float))
    utility = ModelUtility(DummyClassifier(), owners, validation=(X, y))
    return of_owners(owners), digests(utility)["validation data"]


@pytest.mark.parametrize("change", AS_TYPES.values(), ids=AS_TYPES)
def test_cells_count_by_value_whatever_pandas_calls_their_type(change):
    X, _, owner = rows()
    days = pd.date_range("2020-01-01", periods=32, unit="ns")
    text = np.where(X[:, 1] > 0, "up", "down")
    frame = pd.DataFrame({"a": X[:, 0], "n": np.arange(32), "b": text, "day": days})
    frame = frame.assign(byte=np.arange(32, dtype=np.uint8), yes=text == "up", label=text)
    frame["then"] = pd.Series(list(days), dtype=object)
    frame["level"] = frame["b"].astype("category")
    assert fingerprints(change(frame), owner) == fingerprints(frame, owner)
    renamed = frame.rename(columns={"a": "n", "n": "a"})
    assert fingerprints(renamed, owner) != fingerprints(frame, owner)


def test_the_length_of_other_owners_labels_does_not_matter():
    X, _, owner = rows()
    labels = np.array(["x", "y"] * 12 + ["x", "longer"] * 4)
    three = owners_of(X[:24], np.array(["x", "y"] * 12), owner[:24])
    four = owners_of(X, labels, owner)
    assert three == {name: four[name] for name in three}


@pytest.fixture
def counted(monkeypatch):
    """Every time that all rows are fingerprinted."""
    made = []
    module = importlib.import_module("dupre.valuation.source")
    monkeypatch.setattr(
        module, "of_owners", lambda owners: made.append(owners) or of_owners(owners)
    )
    return made


def test_rows_are_fingerprinted_once_per_call_and_again_if_they_changed(tmp_path, counted):
    X, y, owner = rows(n=3)
    owners = Owners.from_arrays(X, y, owner)
    utility = ModelUtility(LogisticRegression(), owners, validation=(X, y))
    store = tmp_path / "run.sqlite"
    known = None
    for call, budget in enumerate((3, 5, 7), start=1):
        dupre.value(owners, utility, budget=budget, store=store, known=known, progress=False)
        assert len(counted) == call
        known = dupre.read_evaluations(store)

    X, y, _ = rows(n=3)
    owners = Owners.from_arrays(np.tile(X, (2, 1)), np.tile(y, 2), np.repeat(["a", "b"], len(y)))
    utility = ModelUtility(LogisticRegression(), owners, validation=(X, y))
    same = dupre.value(owners, utility, budget=3, store=tmp_path / "one.sqlite", progress=False)
    owners.X[0] += 1
    other = dupre.value(owners, utility, budget=3, store=tmp_path / "two.sqlite", progress=False)
    assert same.facts.duplicates.owners == (("a", "b"),)
    assert other.facts.duplicates is None


# What a store was made for.


OTHER = Part("LogisticRegression()", "m2")


def real_store(path, *, C=1.0, metric="accuracy", validation=1, seed=0, data=0):
    """The store of a ModelUtility."""
    owners, model = Owners.from_arrays(*rows(data)), LogisticRegression(C=C)
    utility = ModelUtility(model, owners, validation=rows(validation)[:2], metric=metric, seed=seed)
    return open_store(path, of_owners(owners), describe(utility).fingerprint)


def test_the_same_things_open_a_store_again(path):
    with real_store(path) as store:
        store.save(success(("owner0", "owner2"), utility=0.75))
    with real_store(path) as store:
        assert store.utilities(("owner2", "owner0"))[0].utility == 0.75
    parts = [part for (part,) in sql(path, "SELECT part FROM setting ORDER BY rowid")]
    assert parts == ["utility", "model", "metric", "validation data", "task", "seed"]


@pytest.mark.parametrize(
    ("other", "named", "shown"),
    [
        ({"C": 2.0}, ["model"], "C=2.0"),
        ({"metric": "balanced_accuracy"}, ["metric"], "balanced_accuracy"),
        ({"validation": 2}, ["validation data"], "32 rows"),
        ({"seed": 7}, ["seed"], "7"),
        ({"C": 2.0, "seed": 7}, ["model", "seed"], "C=2.0"),
        ({"data": 3}, [], "made for other data: no owner's rows are the same"),
    ],
)
def test_other_things_are_refused_and_named(path, other, named, shown):
    with real_store(path) as store:
        store.save(success(("owner0",)))
    before = sql(path, "SELECT * FROM setting"), sql(path, "SELECT * FROM owners")
    with pytest.raises(StoreError) as caught:
        real_store(path, **other)
    message = str(caught.value)
    assert str(path) in message
    assert shown in message
    assert "store=" in message
    parts = ["model", "metric", "validation data", "seed"]
    assert [part for part in parts if f"the {part} " in message] == named
    assert (sql(path, "SELECT * FROM setting"), sql(path, "SELECT * FROM owners")) == before
    with real_store(path) as store:
        assert store.utilities(("owner0",))[0].utility == 0.5


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"model": SETTING["model"]}, r"a seed \(0\), which is not given now"),
        ({**SETTING, "optimiser": Part("adam", "o1")}, "no optimiser, which is now adam"),
        ({**SETTING, "model": OTHER}, r"the model LogisticRegression\(\), with other contents"),
    ],
)
def test_parts_that_came_went_or_changed_are_named_and_the_store_is_left(path, setting, message):
    with open_store(path) as store:
        store.save(success())
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match="no owner's rows are the same as then"):
            open_store(path, owners={"a": "other"}, by_content=True)
        with pytest.raises(StoreError, match="no owner's name and rows are both the same as then"):
            open_store(path, owners={"z": OWNERS["a"]})
        with pytest.raises(StoreError, match=message):
            open_store(path, setting=setting)
    assert path.read_bytes() == before
    assert beside(path) == []


def test_a_changed_part_can_be_accepted_but_no_other_and_hints_need_not_be(path):
    with open_store(path) as store:
        store.save(success())
    corrected = {**SETTING, "model": Part("corrected", "m2")}
    with pytest.raises(StoreError, match=r"was made for the model .*accept_model=True"):
        open_store(path, setting=corrected)
    reseeded = {**corrected, "seed": Part("1", "s2")}
    with pytest.raises(StoreError, match=r"the seed 0, now 1; .* cannot be mixed"):
        open_store(path, setting=reseeded, accept_model=True)
    with open_store(path, setting=corrected, accept_model=True) as store:
        assert store.utilities(("a",))[0].utility == 0.5
        store.origin.confirm()
    with open_store(path, setting=corrected):
        pass
    with pytest.raises(StoreError):
        utilities(path, "a")
    path = path.with_name("hints.sqlite")
    open_store(path, setting={**SETTING, "packages": Part("numpy 1", "1")}).close()
    with open_store(path, setting={**SETTING, "packages": Part("numpy 2", "2")}) as store:
        assert (store.origin.change.text, store.origin.change.any) == ("", True)
