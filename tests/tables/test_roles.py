import pandas as pd
import pytest

from dupre.spec import Data
from dupre.tables.roles import check_known, check_roles
from refusals import refused

ROLES = Data("", "o", "y")


def table(owner=("a", "b", "a", "b"), target=("u", "v", "u", "v"), **columns):
    return pd.DataFrame({"o": list(owner), "x": range(len(owner)), "y": list(target)} | columns)


SAME = [["007", "7", "7", "7"], ["1.0.2", "1.1", "1.1", "1.1"], ["A", "a", "A", "a"]]
SAME += [["NA", "None", "NA", "NA"], pd.Categorical(["b", "a", "b", "a"])]


def names(owner):
    frame = table(owner=owner, target=["u", "v"] * (len(owner) // 2))
    return check_roles(frame, ROLES)["o"].tolist()


def unfit(match, **options):
    """The message with which a table of this kind is refused."""
    return refused(match, check_roles, table(**options), ROLES)


def test_every_row_has_an_owner_known_by_text_that_is_no_fraction():
    for numbers in ([3, 4, 3, 3], [3.0, 4.0, 3.0, 3.0], ["3.0", "4.0", "3", "3"]):
        assert names(numbers) == ["3", "4", "3", "3"]
    assert names([True, False, True, True]) == ["True", "False", "True", "True"]
    for texts in SAME:
        assert names(texts) == list(texts)
    for gap in (None, "", "  ", float("nan")):
        unfit("'o' is empty in 2 of 4 rows, first in line 3", owner=["a", gap, "b", gap])
    for owner in ([0.37, 1.0, 2.0, 3.0], ["0.37", "1", "2", "3"]):
        unfit(r"numbers such as 0\.37; is it the owner column\?", owner=owner)


def test_columns_are_looked_for_by_name_and_keep_their_rows():
    for data, match in (
        (Data("", "O ", "y"), r"no owner column 'O ' \(did you mean 'o'\?\); .* 'o'"),
        (Data("", "o", "label"), "no target column 'label'; the columns are 'o', 'x', 'y'"),
    ):
        refused(match, check_roles, table(), data)
    headless = pd.DataFrame([[1, 2]], columns=["5.1", "setosa"])
    refused("is there a header", check_known, headless, "owner", "o")

    frame = table(d=["2024-05-31", None] * 2).set_axis(pd.Index([2, 3, 5, 6], name="line"))
    result = check_roles(frame, ROLES)
    assert list(result.columns) == list(frame.columns)
    assert result.index.equals(frame.index)
    assert result["d"].dtype.kind == "M"
    assert frame["d"].tolist()[0] == "2024-05-31"  # the frame given is not changed


def test_one_owner_lists_and_numbers_of_rows_are_no_owners_and_every_row_has_a_target():
    many = [f"o{i}" for i in range(40)]
    unfit("40 different values in 40 rows", owner=many, target=["u", "v"] * 20)
    assert len(set(names(many * 2))) == 40  # half as many owners as rows
    assert len(set(names(many[:20]))) == 20  # few owners may have a row each

    unfit("'o' is 'a' in all 4 rows; expected at least two owners", owner=["a"] * 4)
    unfit("holds lists", owner=[[1, 2], [3], [1, 2], [3]])
    unfit("'y' is empty in 1 of 4 rows, first in line 4", target=["u", "v", None, "v"])
    unfit("'y' is empty in 4 of 4", target=[None] * 4)
    notes = [f"note {i}" for i in range(60)]
    unfit("60 different texts in 60 rows", owner=["a", "b"] * 30, target=notes)
    prices = [f"{'€$'[i % 2]}{i}" for i in range(60)]
    words = r"holds numbers with a currency or a unit such as '€0', not all with the same unit"
    unfit(f"'y' {words}", owner=["a", "b"] * 30, target=prices)


@pytest.mark.parametrize(
    ("one", "other"), [("A", "A "), ("A B", "A  B"), ("A", "\u00a0A"), ("\u00e9", "e\u0301")]
)
def test_names_that_look_the_same_are_unfit(one, other):
    unfit("target column 'y' holds both", target=[one, other, one, "b"])
    said = unfit("look the same", owner=[one, other, one, "b"])
    shown = said.split("holds both ")[1].split(", which")[0].split(" and ")
    assert shown[0] != shown[1]


def test_a_target_is_something_to_predict_and_dropped_columns_are_not_checked():
    for target, match in (
        (["u"] * 4, "is 'u' in all 4 rows"),
        ([3.0] * 4, "is 3.0 in all 4 rows"),
        (["2024-05-31", "2024-06-01"] * 2, "holds dates; expected classes or numbers"),
        ([[1], [2], [1], [2]], "holds lists"),
        ([1.0, float("inf"), 2.0, 3.0], "'y' holds inf in line 3"),
        (["31.05.2024", "1.6.2024"] * 2, "holds dates; expected classes or numbers"),
        (["1,500", "2,500", "3", "4"], "column 'y' fits two forms: '1,500' in line 2"),
        (["1", "?", "2", "3"], r"'y' holds numbers, but '\?' in line 3"),
    ):
        unfit(match, target=target)
    frame = table(bad=["1", "?", "2", "3"])
    unfit("'bad' holds numbers", bad=["1", "?", "2", "3"])
    result = check_roles(frame, Data("", "o", "y", drop=["bad"]))
    assert result["bad"].tolist() == frame["bad"].tolist()
    drop = Data("", "o", "y", drop=["bd"])
    refused(r"cannot drop 'bd'.*did you mean 'bad'", check_roles, frame, drop)
