"""The same utility of other owners: who joins trains and does not validate, who leaves is gone."""

from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold

import dupre
from dupre.errors import InputError
from dupre.utility.score import known_resamples


def table(n=96, owners=4, seed=0):
    """Rows of owners A, B, ... with groups and times; some rows are held by two."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["group"] = rng.integers(12, size=n)
    frame["time"] = rng.permutation(n) // 2
    frame["firm"] = [chr(65 + i % owners) for i in range(n)]
    noise = rng.normal(size=n)
    frame["y"] = np.where(frame.a + 0.5 * noise > 0, "yes", "no")
    frame["number"] = frame.a - frame.b + 0.3 * noise
    shared = frame[frame.firm == "A"].head(4).assign(firm="B")
    return pd.concat([frame, shared], ignore_index=True)


def owners_of(frame, *, classes=True):
    other = "number" if classes else "y"
    return dupre.Owners.from_frame(
        frame.drop(columns=other), owner="firm", target="y" if classes else "number"
    )


def rows_of(frame, name, *, classes=True):
    return frame[frame.firm == name].drop(columns=["firm", "number" if classes else "y"])


SPLITS = {
    "folds": dupre.Folds(4),
    "by default": dupre.Folds(),
    "held out": dupre.Holdout(0.4),
    "by a column": dupre.Folds(4, by="group"),
    "in time": dupre.Folds(4, in_time="time"),
    "every owner the same": dupre.Folds(4, equal_owners=True),
    "held out, every owner the same": dupre.Holdout(0.4, equal_owners=True),
    "in time, every owner the same": dupre.Folds(4, in_time="time", equal_owners=True),
}


def coalitions(names):
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))


def assert_equal(found, expected, names, repeats=(0, 1)):
    for members in coalitions(names):
        for repeat in repeats:
            one, other = (u(members, repeat=repeat) for u in (found, expected))
            assert float(one) == float(other)
            np.testing.assert_array_equal(known_resamples(one), known_resamples(other))


def make(owners, split, *, classes=True, **how):
    model = LogisticRegression() if classes else Ridge()
    return dupre.ModelUtility(model, owners, validation=split, resamples=20, **how)


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("classes", [True, False])
def test_a_newcomer_changes_no_coalition_of_the_others(split, classes):
    frame = table()
    some = frame[frame.firm != "B"]
    owners = owners_of(some, classes=classes)
    utility = make(owners, split, classes=classes)
    # A copies rows of B, too: they are held by a newcomer and by a present owner.
    more = owners.with_owner("B", rows_of(frame, "B", classes=classes))
    joined = utility.with_owners(more)
    assert_equal(joined, utility, ("A", "C", "D"))
    dealt, newcomer = joined.first_deal, more.owner == more.names.index("B")
    assert all(train[newcomer].any() for train in dealt.train)
    assert len(joined.y_val) == len(utility.y_val)
    assert joined.empty == utility.empty


@pytest.mark.parametrize("split", [s for n, s in SPLITS.items() if "in time" not in n])
def test_without_a_leaver_it_is_as_if_it_had_never_been_there(split):
    frame = table()
    frame = frame.drop_duplicates(["a", "b", "c"])  # what others hold too stays
    utility = make(owners_of(frame), split)
    owners = utility.owners.without("C")
    k = {} if isinstance(split, dupre.Holdout) else {"k": 4 if split.k else 10}
    fresh = make(owners, type(split)(**{**vars(split), **k}))
    assert_equal(utility.with_owners(owners), fresh, ("A", "B", "D"))


def test_rows_of_a_leaver_that_others_hold_still_validate_and_all_are_back_with_it():
    frame = table()
    utility = make(owners_of(frame), dupre.Folds(4))
    left = utility.with_owners(utility.owners.without("A"))
    assert len(left.y_val) == 96 - 24 + 4
    back = left.with_owners(left.owners.with_owner("A", rows_of(frame, "A")))
    assert_equal(back, utility, "ABCD")


def test_rows_that_validate_can_be_taken_over_by_a_utility_of_the_same_split():
    frame = table()
    first = make(owners_of(frame[frame.firm != "B"]), dupre.Folds())
    fresh = make(owners_of(frame), dupre.Folds())
    assert len(fresh.y_val) > len(first.y_val)
    assert_equal(fresh.with_validating(first.validating), first, ("A", "C", "D"))


def test_a_row_that_changes_validates_no_more():
    frame = table().drop_duplicates(["a", "b", "c"])
    utility = make(owners_of(frame), dupre.Folds(4))
    changed = rows_of(frame, "B")
    changed.iloc[0, 0] += 1
    other = utility.with_owners(utility.owners.with_rows("B", changed))
    assert len(other.y_val) == len(utility.y_val) - 1
    assert other.owners.rows.tolist() == utility.owners.rows.tolist()


def test_validation_rows_of_nobody_stay_as_they_are():
    frame = table()
    owners, validation = owners_of(frame[frame.firm != "D"]), rows_of(frame, "D")
    utility = make(owners, validation)
    joined = utility.with_owners(owners.with_owner("E", validation))
    assert_equal(joined, utility, "ABC")
    assert_equal(utility.with_owners(owners.without("B")), utility, "AC")


def test_a_stated_score_of_no_data_stays_and_another_one_follows_the_rows():
    utility = make(owners_of(table()), dupre.Folds(4), empty=0.125, floor=0.25)
    left = utility.with_owners(utility.owners.without("A"))
    assert (left.empty, left.floor) == (0.125, 0.25)


def test_what_cannot_be_kept_to_is_refused():
    frame = table()
    owners = owners_of(frame)
    by_array = make(owners, dupre.Folds(4, by=np.arange(100) % 10))
    with pytest.raises(InputError, match="name of a column"):
        by_array.with_owners(owners.without("A"))
    with pytest.raises(InputError, match="KFold cannot keep"):
        make(owners, KFold(4)).with_owners(owners.without("A"))
    utility = make(owners, dupre.Folds(4))
    other = frame.replace({"y": {"yes": "maybe"}})
    with pytest.raises(InputError, match="'maybe', which no row had"):
        utility.with_owners(owners_of(other))
    with pytest.raises(InputError, match="made for classification"):
        utility.with_owners(owners_of(frame, classes=False))
