import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from dupre import InputError
from dupre.tables.columns import kind, place, tidy, whole_as_text
from dupre.tables.features import Columns, columns_of
from refusals import refused


def case(id, *values):
    return pytest.param(*values, id=id)


def column(values, **options):
    return pd.Series(values, name="c", **options)


DAY = datetime.date(2024, 5, 31)
KINDS = [
    case("integers", [1, 2], "number"),
    case("floats", [1.5, None], "number"),
    case("nullable", pd.array([1, None], dtype="Int64"), "number"),
    case("decimals", [Decimal("1.5"), None], "number"),
    case("objects", pd.Series([1, 2.5], dtype=object), "number"),
    case("durations", pd.to_timedelta([1, 2], unit="D"), "number"),
    case("booleans", [True, False], "truth"),
    case("nullable booleans", pd.array([True, False], dtype="boolean"), "truth"),
    case("booleans with gaps", [True, None], "text"),
    case("texts", ["a", None], "text"),
    case("nullable texts", pd.array(["a", None], dtype="string"), "text"),
    case("a categorical of numbers", pd.Categorical([1, 2]), "text"),
    case("a mixture", [True, "a", 1], "text"),
    case("dates as text", ["2024-05-31", None], "date"),
    case("times as text", ["2024-05-31T10:00:00", "2024-05-31 10:00:00+02:00"], "date"),
    case("dates", [DAY, None], "date"),
    case("points in time", pd.to_datetime(["2024-05-31", None]), "date"),
    case("with a zone", pd.to_datetime(["2024-05-31"]).tz_localize("Asia/Tokyo"), "date"),
    case("dates of another form", ["31.05.2024", "01.06.2024"], "text"),
    case("codes like dates", ["2024-99-99", "2024-99-98"], "text"),
    case("nothing", [None, np.nan], "empty"),
    case("lists", [[1, 2], None], "other"),
    case("dicts", [{"a": 1}, {"a": 2}], "other"),
    case("bytes", [b"a", b"b"], "other"),
]


@pytest.mark.parametrize(("values", "expected"), KINDS)
def test_a_column_is_of_the_kind_of_what_it_holds(values, expected):
    found = tidy(column(values))
    assert kind(found) == expected
    if expected == "number":
        assert found.dtype.kind in "if"
    if expected == "date":
        assert found.dtype.kind == "M"
    pd.testing.assert_series_equal(tidy(found), found)  # what is tidy stays as it is


@pytest.mark.parametrize("odd", ["?", "-", "unknown", "1,5"])
def test_a_few_texts_among_numbers_are_refused(odd):
    cells = column([odd if i == 7 else str(i) for i in range(40)])
    said = refused(r"'c' holds numbers.*line 9", tidy, cells)
    assert repr(odd) in said
    assert "leave the column out with drop='c'" in said
    said = refused(r"'c' holds numbers.*line 9", tidy, cells, needed=True)
    assert "drop=" not in said
    assert "leave those cells empty" not in said


@pytest.mark.parametrize("odd", ["?", "--", "n.a.", "#DIV/0!"])
def test_signs_for_no_value_are_refused_even_if_frequent_but_other_texts_are_categories(odd):
    refused("leave those cells empty", tidy, column(["1", odd, "2", odd, "3"]))
    mixed = column(["1", "2", "other", "2"])
    pd.testing.assert_series_equal(tidy(mixed), mixed)


def test_a_few_texts_among_dates_are_refused_and_times_are_of_one_zone():
    dates = [f"2024-05-{i % 28 + 1:02d}" for i in range(40)]
    dates[3] = "2024-02-31"
    refused(r"holds dates .*'2024-02-31' in line 5", tidy, column(dates))
    found = tidy(column(["2024-05-31T12:00:00+02:00", "2024-05-31T10:00:00Z", "2024-05-31T10:00"]))
    assert found.nunique() == 1


@pytest.mark.parametrize("number", [np.inf, -np.inf, 1e200, 10**400, -(10**400)], ids=range(5))
def test_numbers_are_finite(number):
    cells = column([1.0, number, None], dtype=object)
    refused("in line 3 and the like in 1 of 3 cells", tidy, cells)


def test_a_place_is_a_line_of_the_file_and_whole_numbers_as_text_have_no_point():
    found = whole_as_text(column([3.0, 2.5, None, "a", True, 10**20]))
    assert found.tolist() == ["3", "2.5", None, "a", "True", str(10**20)]
    frame = pd.DataFrame({"c": [1, 2]})
    assert place(frame, 0) == "line 2"
    assert place(frame.set_axis(pd.Index([5, 9], name="line")), 1) == "line 9"
    assert place(frame.set_axis(pd.Index([1, 2], name="row")), 1) == "row 2"
    files = pd.MultiIndex.from_tuples([("a.csv", 2), ("b.csv", 2)], names=["file", "line"])
    assert place(frame.set_axis(files), 1) == "line 2 of b.csv"


TABLE = pd.DataFrame({"o": ["a", "b"] * 60, "x": np.arange(120.0), "y": [0, 1] * 60})


def sorted_out(drop=(), **columns):
    return columns_of(TABLE.assign(**columns), owner="o", target="y", drop=drop)


def test_columns_are_sorted_by_kind_and_categories_kept_but_not_without_a_name():
    day = pd.Timestamp("2024-05-31")
    found = sorted_out(
        flag=[True, False] * 60, colour=["r", "g"] * 60, day=[day, None] * 60, n=[1, 2] * 60
    )
    assert found == Columns(("x", "flag", "n"), ("colour",), ("day",))
    assert found.used == ("x", "flag", "n", "colour", "day")
    few, recurring, gaps = ([f"{i % n}" for i in range(120)] for n in (50, 60, 1))
    gaps[::2] = [None] * 60
    for texts in (few, recurring, gaps):
        assert sorted_out(c=texts) == Columns(("x",), ("c",), ())
    found = sorted_out(**{"unnamed column 1": range(120)})
    assert found.left_out == (("unnamed column 1", "no name in the header"),)


def test_columns_of_no_use_are_left_out_with_the_reason():
    for values, reason in (
        ([1] * 120, "the same in every row"),
        (["a"] * 120, "the same in every row"),
        ([None] * 120, "empty"),
        ([f"id{i}" for i in range(120)], "120 different texts in 120 rows"),
        ([f"{i % 61}" if i < 100 else None for i in range(120)], "61 different"),
        ([[1, 2]] * 120, "not plain numbers or texts"),
        ([{"a": [1]}] * 120, "not plain numbers or texts"),
    ):
        found = sorted_out(c=pd.Series(values, dtype=object).infer_objects()).left_out
        assert [(name, why[: len(reason)]) for name, why in found] == [("c", reason)]


def test_columns_can_be_dropped_but_one_must_be_left():
    for drop in ("c", ["c"]):
        asked = Columns(("x",), (), (), (("c", "asked for"),))
        assert sorted_out(drop=drop, c=range(120)) == asked
    refused(r"drop 'xx': no such column \(did you mean 'x'\?\)", sorted_out, drop=["xx"])
    refused("cannot drop 'y': it is the owner or the target", sorted_out, drop=["y"])
    refused(r"no column is left .*'x': asked for", sorted_out, drop=["x"])
    refused("found none", columns_of, TABLE[["o", "y"]], owner="o", target="y")


def test_of_a_table_of_texts_alone_it_is_said_which_cells_fit_no_form_and_what_to_do():
    def left(texts):
        frame = TABLE[["o", "y"]].assign(x=texts)
        with pytest.raises(InputError) as caught:
            columns_of(frame, owner="o", target="y")
        return "".join(map(str, caught.value.parts))

    shares = [f"{i / 8} %" for i in range(120)]
    told = left([*shares[:-1], "12.5"])
    assert (
        "'x': 120 different texts in 120 rows. Of 'x' most cells are percentages such as " in told
    )
    assert "but not '12.5' (1 of 120 cells): write all alike, or leave cells empty, or " in told
    assert told.endswith("'x=decimal-point'")
    told = left([*shares[:60], *(f"{i / 8} kg" for i in range(60))])
    assert "'0.0 %', but not '0.0 kg' (60 of 120 cells): write all alike, or leave cells" in told
    assert told.endswith("empty")  # no form reads both
    assert left([f"id{i}" for i in range(120)]).endswith("120 different texts in 120 rows")
