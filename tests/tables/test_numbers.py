"""Numbers and dates as people write them: read alike, asked about, or left as they are."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dupre.spec import Data
from dupre.tables.numbers import (
    FORMS,
    Form,
    explain_forms,
    find_readings,
    is_code,
    parse_forms,
    read_column,
    read_forms,
    write_forms,
)
from refusals import refused

DATA = Data("", "o", "y")


def column(values, **options):
    return pd.Series(values, name="c", **options)


def cells(text):
    """Cells apart by bars; an empty one is a gap."""
    return column([cell or None for cell in text.split("|")], dtype=object)


def read(text, **options):
    """The form in words of settings and the values, if there is one reading."""
    ((form, values),) = find_readings(cells(text), **options)
    return str(form), values.tolist()


def days(*texts):
    return [pd.Timestamp(text) for text in texts]


READ = [
    ("12.5 %|7%|-3\u00a0%", "decimal-point %", [12.5, 7, -3]),
    ("$1,234|$12|-$5.50|$-2", "$ thousands-comma", [1234, 12, -5.5, -2]),
    ("$1|$2.5", "$ decimal-point", [1, 2.5]),
    ("1'234|999|2’000.50", "decimal-point", [1234, 999, 2000.5]),
    ("1 234|999|1\u202f000\u202f000", "decimal-point", [1234, 999, 1e6]),
    ("1 234,5|7", "decimal-comma", [1234.5, 7]),
    ("1,5|2,25|3", "decimal-comma", [1.5, 2.25, 3]),
    ("1,234|1,5", "decimal-comma", [1.234, 1.5]),
    ("0,125|1,500", "decimal-comma", [0.125, 1.5]),
    ("1,234,567|12", "thousands-comma", [1234567, 12]),
    ("1,234.5|12", "thousands-comma", [1234.5, 12]),
    ("1.234,5|12", "thousands-point", [1234.5, 12]),
    ("1.234.567|12", "thousands-point", [1234567, 12]),
    ("12,5 %|3 %", "decimal-comma %", [12.5, 3]),
    ("CHF 9'098.40|chf 12.00", "CHF decimal-point", [9098.4, 12]),
    ("3,25 €|12 €", "decimal-comma €", [3.25, 12]),
    ("70 kg|71.5 Kg.", "decimal-point kg", [70, 71.5]),
    ("−5|3.5|+2", "decimal-point", [-5, 3.5, 2]),
    ("1.5|2", "decimal-point", [1.5, 2]),
    ("31.05.2024|1.6.2024", "day-first", days("2024-05-31", "2024-06-01")),
    ("01.02.2024|03.04.2024", "day-first", days("2024-02-01", "2024-04-03")),
    ("05.31.2024|06.01.2024", "month-first", days("2024-05-31", "2024-06-01")),
    ("31/05/2024|01/06/2024", "day-first", days("2024-05-31", "2024-06-01")),
    ("5/31/2024 12:30|6/1/2024", "month-first", days("2024-05-31 12:30", "2024-06-01")),
    ("2024/05/31|2024.6.1", "year-first", days("2024-05-31", "2024-06-01")),
    ("31 May 2024|1-Jun-2024", "day-first", days("2024-05-31", "2024-06-01")),
    ("May 31, 2024|Sept 1 2024", "month-first", days("2024-05-31", "2024-09-01")),
    ("01/01/2024|02/02/2024", "day-first", days("2024-01-01", "2024-02-02")),
]


@pytest.mark.parametrize(("text", "form", "values"), READ)
def test_a_column_whose_cells_all_fit_one_form_is_read(text, form, values):
    assert read(text) == (form, values)
    gaps = f"{text}||   "
    ((_, found),) = find_readings(cells(gaps))
    assert found.tolist()[:-2] == values
    assert found.isna().tolist() == [False] * len(values) + [True] * 2
    assert parse_forms(write_forms({"a=b": Form("text")})) == {"a=b": Form("text")}
    ((kept, _),) = find_readings(cells(text))
    assert parse_forms(write_forms({"c": kept})) == {"c": kept}
    pd.testing.assert_series_equal(read_column(cells(gaps), kept)[0], found)


@pytest.mark.parametrize(
    "text",
    [
        *("00123|12345", "123|456", "007 %|8 %", "079 123 456|079 123 457"),
        *("12.5 %|n/a?", "12 %|13", "$5|€6", "$5|5", "12a|12b", "1st|2nd", "10-20|20-30"),
        *("1,5|2.5", "1,234.5|1.234,5", "1,23,4|5", "+-5.5|1", "1..5|2", "north|south", "1.5.|2"),
        *("31.02.2024|1.1.2024", "31.05.24|1.6.24", "31.05.2024|soon", "13/13/2024|1/1/2024"),
        *("1.5.2024|1.5", "2024-05-31|2024-06-01", "31.05/2024|1.6.2024", "True|1.5"),
    ],
)
def test_a_column_that_fits_no_form_or_may_be_a_code_stays_text(text):
    assert find_readings(cells(text)) == []
    frame = pd.DataFrame({"o": "a", "c": cells(text), "y": 1})
    found, forms = read_forms(frame, DATA)
    assert forms == {}
    pd.testing.assert_frame_equal(found, frame)


def test_other_columns_than_texts_are_not_read_and_numbers_among_texts_are():
    for values in ([1.5, 2], [True, False], [[1], [2]], [None, None], pd.Categorical(["1 %"])):
        assert find_readings(column(values)) == []
    mixed = column([1234, "1'234.5", 0.00001, None], dtype=object)
    ((_, found),) = find_readings(mixed)
    assert found.tolist()[:3] == [1234, 1234.5, 0.00001]
    assert find_readings(column([12.5, "12.5 %"], dtype=object)) == []
    assert find_readings(column([True, "1.5"], dtype=object)) == []
    assert find_readings(column([pd.Timestamp("2024-05-31"), "1.6.2024"], dtype=object))
    assert is_code(cells("00123|12345"))
    assert not is_code(cells("01|12"))
    assert not is_code(cells("00123|x"))


@pytest.mark.parametrize(
    ("text", "one", "other", "cell"),
    [
        ("12|1,234", "thousands-comma", "decimal-comma", "'1,234' in line 3"),
        ("$1,234|$12", "thousands-comma", "decimal-comma", "'$1,234' in line 2"),
        ("€ 1.234|€ 2.500", "decimal-point", "thousands-point", "'€ 1.234' in line 2"),
        ("01/01/2024|03/04/2024", "day-first", "month-first", "'03/04/2024' in line 3"),
        ("03-04-2024|", "day-first", "month-first", "'03-04-2024' in line 2"),
    ],
)
def test_a_column_that_fits_two_forms_is_asked_about(text, one, other, cell):
    frame = pd.DataFrame({"o": "a", "c": cells(text), "y": 1})
    said = refused("column 'c' fits two forms", read_forms, frame, DATA)
    assert cell in said
    assert f"numbers='c={one}', or numbers='c={other}'" in said
    assert ("decimal=','" in said) == ("comma" in one)
    found = {}
    for form in (one, other):
        table, forms = read_forms(frame, Data("", "o", "y", numbers=(f"c={form}",)))
        assert forms["c"].name == form
        found[form] = table["c"]
        pd.testing.assert_frame_equal(read_forms(frame, DATA, forms)[0], table)
    assert not found[one].equals(found[other])
    text, _ = read_forms(frame, Data("", "o", "y", numbers="c=text"))
    pd.testing.assert_frame_equal(text, frame)
    assert read_forms(frame, Data("", "o", "y", drop="c"))[1] == {}
    both = refused("the same for 'd'", read_forms, frame.assign(d=frame["c"]), DATA)
    assert "'d'" in both


def test_a_stated_decimal_comma_decides_for_all_columns():
    assert read("1.234|12", decimal=",") == ("thousands-point", [1234, 12])
    assert read("$1,234|$12", decimal=",") == ("$ decimal-comma", [1.234, 12])
    assert find_readings(cells("1.5|2"), decimal=",") == []


def test_who_states_a_form_says_what_cells_without_a_sign_are():
    for text, form, values in (
        ("12 %|13|", "decimal-point", [12, 13]),
        ("$1,234|1,234", "thousands-comma", [1234, 1234]),
    ):
        found, whole = read_column(cells(text), Form(form), bare=True)
        assert found.tolist()[:2] == values
        assert whole.before or whole.after
    refused("'€5' in line 3", read_column, cells("$5|€5"), Form("decimal-point"), bare=True)
    found, _ = read_column(column([7, 8]), Form("text"))
    assert found.tolist() == ["7", "8"]


def test_a_cell_that_does_not_fit_a_known_form_is_named():
    for form, text, cell in (
        ("decimal-point %", "12 %|13", "13' in line 3"),
        ("$ thousands-comma", "$5||$1,5", "1,5' in line 4"),
        ("day-first", "31.05.2024|05/31/2024", "05/31/2024' in line 3"),
    ):
        known = parse_forms((f"c={form}",))
        words = re.escape(known["c"].words)
        said = refused(f"'c' is read as {words}, but ", read_column, cells(text), known["c"])
        assert cell in said
    refused("'c' is read as per cent", read_column, column([12.5]), Form("decimal-point", "", "%"))
    frame = pd.DataFrame({"o": "a", "c": cells("1.5 %|2 %"), "y": 1})
    assert read_forms(frame, DATA, {})[1] == {}  # it was text when the run began


def test_forms_are_stated_for_columns_there_are():
    for text, words in (
        ("price", "expected COLUMN=FORM"),
        ("c=decimal_comma", "did you mean 'decimal-comma'"),
        ("=text", "expected COLUMN=FORM"),
    ):
        refused(words, parse_forms, (text,))
    frame = pd.DataFrame({"o": "a", "cost": cells("1|2"), "y": 1})
    for name, words in (("costs", r"did you mean 'cost'"), ("o", "no such column besides the own")):
        refused(words, read_forms, frame, Data("", "o", "y", numbers=(f"{name}=text",)))


def test_forms_are_told_in_words():
    forms = parse_forms(
        ("a=decimal-point %", "b=$ thousands-comma", "c=decimal-comma", "d=day-first", "e=text")
    )
    assert explain_forms({**forms, "f": forms["d"]}) == (
        "a as per cent (12.5 % is 12.5), b as $ amounts with thousands by comma, c as numbers with "
        "a decimal comma, d and f as dates, day first, e as text"
    )
    assert all(Form(name).words for name in FORMS)
    for text, words in (
        ("6'621 | 12", "numbers with thousands by apostrophe"),
        ("1 250,5 | 0,5", "numbers with a decimal comma and thousands by blank"),
        ("CHF 6’621 | CHF 1’000", "CHF amounts with thousands by apostrophe"),
        ("1,5 | 0,25", "numbers with a decimal comma"),
    ):
        (reading,) = find_readings(cells(text))
        assert reading.form.words == words
        assert read_column(cells(text), reading.form)[1].words == words  # as a run goes on
        (again,) = parse_forms(write_forms({"c": reading.form})).values()
        assert again == reading.form


WAYS = {
    "plain": lambda x: f"{x}",
    "percent": lambda x: f"{x} %",
    "dollars": lambda x: f"${x:,}".replace("$-", "-$"),
    "swiss": lambda x: f"{x:,}".replace(",", "’"),
    "german": lambda x: f"{x:,} €".translate(str.maketrans(",.", ".,")),
    "french": lambda x: f"{x:,}".translate(str.maketrans(",.", "\u202f,")),
}


@pytest.mark.parametrize("way", WAYS)
@given(st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1))
def test_numbers_are_the_same_however_they_are_written(way, numbers):
    numbers = [*numbers, *map(type(numbers[0]), ("1234.56", "0.5"))]  # one that tells
    ((_, found),) = find_readings(column([WAYS[way](x) for x in numbers]))
    assert found.tolist() == [float(x) for x in numbers]


@given(st.lists(st.integers(-(10**12), 10**12), min_size=2))
def test_whole_numbers_stay_whole(numbers):
    ((_, found),) = find_readings(column([f"{x:,}".replace(",", "'") + " kg" for x in numbers]))
    assert found.dtype == np.int64
    assert found.tolist() == numbers


@given(st.lists(st.datetimes(pd.Timestamp(1800, 1, 1), pd.Timestamp(2100, 1, 1)), min_size=1))
def test_days_are_the_same_however_they_are_written(days):
    expected = [pd.Timestamp(day).normalize() for day in days]
    for form, write in (
        ("day-first", lambda day: f"{day.day}.{day.month:02}.{day.year}"),
        ("day-first", lambda day: f"{day:%d/%m/%Y}"),
        ("month-first", lambda day: f"{day:%m/%d/%Y}"),
        ("year-first", lambda day: f"{day:%Y/%m/%d}"),
        ("month-first", lambda day: f"{day:%B %d, %Y}"),
    ):
        found, _ = read_column(column([write(day) for day in days]), Form(form))
        assert found.tolist() == expected
