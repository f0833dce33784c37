import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dupre import ModelUtility, Owners
from dupre.errors import StoreError
from dupre.store.origin import of_owners
from dupre.utility.describe import Part, describe
from stores import OWNERS, SETTING, beside, open_store, sql, success, utilities

OTHER = Part("LogisticRegression()", "m2")


def rows(seed):
    X = np.random.default_rng(seed).normal(size=(32, 3))
    return X, np.arange(32) % 2


def real_store(path, *, C=1.0, metric="accuracy", validation=1, seed=0, data=0):
    """The store of a ModelUtility."""
    owners = Owners.from_arrays(*rows(data), np.repeat([f"owner{i}" for i in range(4)], 8))
    model = LogisticRegression(C=C)
    utility = ModelUtility(model, owners, validation=rows(validation), metric=metric, seed=seed)
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
