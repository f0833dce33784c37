"""Owners who join, leave and change: the values are those of a fresh run that knows the same."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import dupre
from dupre.errors import InputError, StoreError
from dupre.utility.describe import describe
from dupre.utility.score import before_floor
from dupre.valuation.second_trainings import record
from stores import fresh_path, sql


@pytest.fixture
def place():
    with fresh_path() as path:
        yield path.parent


POOL = "ABCDE"
SPLITS = {
    "folds": dupre.Folds(3),
    "by a column": dupre.Folds(3, by="group"),
    "in time": dupre.Folds(3, in_time="time"),
    "every owner the same": dupre.Folds(3, equal_owners=True),
    "held out": dupre.Holdout(0.4),
}


def rows(name, version=0, n=24):
    """Of one owner; another version is other rows in part."""
    rng = np.random.default_rng([ord(name), 7])
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(4), columns=["a", "b", "c"])
    frame["group"] = rng.integers(9, size=n)
    frame["time"] = rng.integers(60, size=n)
    frame["number"] = frame.a - frame.b + 0.5 * rng.normal(size=n)
    frame.loc[: 2 * version, "a"] += version
    return frame


def owners_of(versions, *, classes):
    target = "y" if classes else "number"
    return dupre.Owners.from_mapping(
        {name: with_target(rows(name, v), classes) for name, v in versions.items()},
        target=target,
    )


def with_target(frame, classes):
    return frame.assign(y=frame.number > 0).drop(columns="number") if classes else frame


def make(owners, split, *, classes, metric=None):
    model = LogisticRegression() if classes else Ridge()
    return dupre.ModelUtility(model, owners, validation=split, metric=metric, resamples=20)


def value(owners, utility, path, budget, **options):
    stored = dupre.Stored(path, check=False, **options)
    return dupre.value(owners, utility, budget=budget, store=stored, progress=False)


def told(owners, utility, evaluations):
    """A valuer that is told of all these trainings, each of them done here once more."""
    traits = describe(utility)
    how = {"floor": utility.floor, "bounds": utility.bounds, "by_content": True}
    valuer = dupre.Valuer(owners, empty=utility.score_of_no_data(), **how)
    for names, some in evaluations.sort_values("repeat").groupby("coalition"):
        members = tuple(json.loads(names))
        scores = []
        for repeat, stored, cell in zip(
            some["repeat"], some["utility"], some["resampled"], strict=True
        ):
            known = dupre.Score(stored, json.loads(cell))
            now = before_floor(utility(members, repeat=repeat))
            # A model may predict a row with another last bit beside other rows.
            assert float(known) == pytest.approx(float(now), rel=1e-12, abs=1e-12)
            np.testing.assert_allclose(known.resampled, now.resampled, rtol=1e-10, atol=1e-12)
            scores.append(known)
        record(valuer, members, scores, traits, None)
    return valuer


def change(versions, owners, rng, classes):
    """One owner more, less, or with other rows: by name, and as owners."""
    absent = [name for name in POOL if name not in versions]
    kinds = ["join"] * bool(absent) + ["leave"] * (len(versions) > 3) + ["change"]
    kind = rng.choice(kinds)
    name = str(rng.choice(absent if kind == "join" else list(versions)))
    if kind == "leave":
        return {n: v for n, v in versions.items() if n != name}, owners.without(name)
    version = int(rng.integers(3))
    new = with_target(rows(name, version), classes)
    make_owners = owners.with_owner if kind == "join" else owners.with_rows
    return versions | {name: version}, make_owners(name, new)


@pytest.mark.parametrize(
    "split", ["folds", *(pytest.param(s, marks=pytest.mark.slow) for s in SPLITS if s != "folds")]
)
@pytest.mark.parametrize("classes", [True, False])
def test_ten_changes_give_the_values_of_a_run_that_knows_the_same_trainings(split, classes, place):
    rng, split = np.random.default_rng(len(split) + classes), SPLITS[split]
    versions = dict.fromkeys("ABCD", 0)
    owners = owners_of(versions, classes=classes)
    begun, path = make(owners, split, classes=classes), place / "run.sqlite"
    value(owners, begun, path, 5)
    for _ in range(10):
        versions, owners = change(versions, owners, rng, classes)
        # A new process knows the data and the store, not the utility of the beginning.
        again = owners_of(versions, classes=classes)
        found = value(again, make(again, split, classes=classes), path, 5)
        fresh = told(owners, begun.with_owners(owners), found.evaluations).values()
        assert found.values.tolist() == fresh.values.tolist()
        np.testing.assert_array_equal(found.uncertainty.total, fresh.uncertainty.total)


def test_a_valuer_takes_over_what_is_told_of_owners_who_have_not_changed():
    versions, rng = dict.fromkeys("ABCD", 0), np.random.default_rng(3)
    owners = owners_of(versions, classes=False)
    begun = make(
        owners, (rows("F")[["a", "b", "c", "group", "time"]], rows("F")["number"]), classes=False
    )
    valuer = dupre.Valuer(owners, empty=0.0, semivalue="banzhaf", by_content=True, seed=2)
    for _ in range(10):
        for members in valuer.suggest(4):
            valuer.record(members, begun.with_owners(valuer.owners)(members))
        known, before = valuer.trainings, versions
        versions, owners = change(versions, valuer.owners, rng, classes=False)
        valuer = valuer.with_owners(owners)
        same = {name for name, version in versions.items() if before.get(name) == version}
        assert valuer.trainings == {m: u for m, u in known.items() if set(m) <= same}
        fresh = dupre.Valuer(owners, empty=0.0, semivalue="banzhaf", by_content=True, seed=2)
        for members, scored in valuer.trainings.items():
            fresh.record(members, scored)
        assert valuer.suggest(3) == fresh.suggest(3)
        if valuer.has_utility:
            assert valuer.values().values.tolist() == fresh.values().values.tolist()


def test_a_leaver_costs_no_training_where_predictions_are_kept(place):
    owners = owners_of(dict.fromkeys("ABCD", 0), classes=True)
    left = owners.without("B")
    for metric, known in (("accuracy", 7), ("neg_log_loss", 7), ("roc_auc", 0)):
        for split in (dupre.Folds(3), dupre.Holdout(0.4)):
            path = place / f"{metric}{split.equal_owners}{type(split).__name__}.sqlite"
            value(owners, make(owners, split, classes=True, metric=metric), path, 15)
            utility = make(left, split, classes=True, metric=metric)
            after = value(left, utility, path, 1)
            assert after.facts.found == known
            told = {note.code for note in after.notes}
            assert ("scored_elsewhere" in told) == (not known)


def test_a_newcomer_validates_once_the_rows_are_split_anew(place):
    path, split = place / "run.sqlite", dupre.Folds(3)
    owners = owners_of(dict.fromkeys("ABC", 0), classes=False)
    value(owners, make(owners, split, classes=False), path, 7)
    more = owners.with_owner("D", with_target(rows("D"), classes=False))
    first = value(more, make(more, split, classes=False), path, 9)
    assert (first.facts.found, first.facts.validation_rows) == (7, 72)
    assert first.facts.validating["D"] == 0
    anew = value(more, make(more, split, classes=False), path, 9, revalidate=True)
    assert (anew.facts.found, anew.facts.validation_rows) == (0, 96)
    assert anew.facts.validating["D"] == 0.25
    kept = value(more, make(more, split, classes=False), path, 9)  # later runs keep to these
    assert (kept.facts.found, kept.facts.validation_rows) == (9, 96)
    # What is asked for once more changes nothing.
    again = value(more, make(more, split, classes=False), path, 9, revalidate=True)
    assert (again.facts.found, again.facts.validation_rows) == (9, 96)


def test_who_comes_back_under_its_old_name_with_other_rows_is_trained_again(place):
    path, split = place / "run.sqlite", dupre.Folds(3)
    owners = owners_of(dict.fromkeys("ABC", 0), classes=False)
    begun = make(owners, split, classes=False)
    value(owners, begun, path, 7)
    left = owners.without("C")
    for version, known in ((0, 7), (2, 3)):
        back = left.with_owner("C", with_target(rows("C", version), classes=False))
        found = value(back, begun.with_owners(back), path, 1)
        assert found.facts.found == known


def test_a_utility_that_keeps_to_other_rows_than_the_store_is_refused(place):
    path, split = place / "run.sqlite", dupre.Folds(3)
    owners = owners_of(dict.fromkeys("ABC", 0), classes=False)
    value(owners, make(owners, split, classes=False), path, 2)
    later = owners.without("C").with_owner("D", with_target(rows("D"), classes=False))
    other = make(later, split, classes=False).with_owners(later)
    with pytest.raises(InputError, match="made for other validation rows"):
        value(later, other, path, 2)
    value(later, other, path, 2, revalidate=True)


def test_validation_rows_of_a_damaged_store_are_not_used(place):
    path = place / "run.sqlite"
    owners = owners_of(dict.fromkeys("ABC", 0), classes=False)
    value(owners, make(owners, dupre.Folds(3), classes=False), path, 2)
    sql(path, "UPDATE validations SET rows = substr(rows, 9)")
    with pytest.raises(StoreError, match="its checksum is another"):
        value(owners, make(owners, dupre.Folds(3), classes=False), path, 2)
