import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dupre import InputError
from dupre.wording import (
    LONGEST_SHOWN,
    closest,
    did_you_mean,
    exact_percent,
    join_list,
    json_text,
    list_names,
    look_alikes,
    number,
    percent,
    plain_number,
    printable,
    quote,
    quote_names,
    shorten,
    spell_out,
    with_minus_signs,
    without_directories,
)


@pytest.mark.parametrize(
    ("typed", "known", "expected"),
    [
        ("Owner", ["id", "owner"], "owner"),
        ("owner", ["id", " Owner "], " Owner "),
        ("house price", ["price", "house_price"], "house_price"),
        ("taget", ["target", "owner"], "target"),
        ("owner", ["x", "y"], None),
        ("owner", [], None),
    ],
)
def test_the_closest_name_is_the_one_meant(typed, known, expected):
    assert closest(typed, known) == expected


def test_messages_end_with_the_name_meant_and_long_lists_and_names_are_cut():
    assert did_you_mean("taget", ["target"]) == " (did you mean 'target'?)"
    assert did_you_mean("owner", ["x"]) == ""
    assert quote_names(["a", "b"]) == "'a', 'b'"
    assert quote_names([str(i) for i in range(12)]).count("'") == 24
    assert quote_names([str(i) for i in range(42)]).endswith("'11', … and 30 more")
    assert shorten("abcdefghijkl", 7) == "abc…jkl"


def test_lists_end_with_and_and_count_what_is_left_out():
    assert join_list(["a"]) == "a"
    assert join_list(["a", "b", "c"]) == "a, b and c"
    assert join_list(["a", "b", "c", "d"], most=2) == "a, b and 2 more"
    assert join_list(["a", "b", "c"], most=2) == "a, b and c"
    assert list_names(["a", "b"]) == "\u2068a\u2069 and \u2068b\u2069"


def test_numbers_have_a_minus_sign_unless_they_are_zero():
    assert number(-0.25, 2) == "−0.25"
    assert number(-0.0001, 2) == "0.00"
    assert number(float("nan"), 2) == "–"
    assert [plain_number(x, 2) for x in (-0.0001, -0.25)] == ["0.00", "-0.25"]
    said = "from -0.00 and -0 to -0.5 (95 %: -1.4 … -0.1), 2024-05-31, 1e-05, x-1"
    expected = "from 0.00 and 0 to −0.5 (95 %: −1.4 … −0.1), 2024-05-31, 1e-05, x-1"
    assert with_minus_signs(said) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dupre value /home/u/a.csv --validation=/b/c.csv", "dupre value a.csv --validation=c.csv"),
        ("'/my data/x y.csv' is missing", "'x y.csv' is missing"),
        (r"C:\Users\me\x.csv and ~/d/e.csv", "x.csv and e.csv"),
        ("your own /home/me/model.py:build", "your own model.py:build"),
        ("https://scikit-learn.org/stable/x.html", "https://scikit-learn.org/stable/x.html"),
        ("data/x.csv, and/or 1/2", "data/x.csv, and/or 1/2"),
    ],
)
def test_files_are_named_without_their_directories(text, expected):
    assert without_directories(text) == expected


def test_what_is_uncertain_is_never_shown_as_certain():
    assert [percent(p) for p in (0, 0.001, 0.5, 0.999, 1)] == ["0", "<1", "50", ">99", "100"]
    assert exact_percent(0.9999) == "more than 99.9 %"
    assert [exact_percent(p) for p in (0.5, 0.1234, 1)] == ["50 %", "12.3 %", "100 %"]


@given(st.text(), st.text())
def test_different_names_are_spelled_differently_and_in_one_line(one, other):
    assert spell_out(one).isprintable()
    assert (spell_out(one) == spell_out(other)) == (one == other)


def test_a_line_break_and_a_written_one_print_differently():
    assert [printable("a\nb"), printable("a\\nb")] == ["a\\nb", "a\\\\nb"]
    assert len(printable("x" * 10_000)) == len(quote("\x1b" * 10**6)) == LONGEST_SHOWN
    assert len(str(InputError(f"the cell {'x' * 5_000_000!r}; ", "leave it empty"))) < 2_100


@given(st.lists(st.text(st.characters(codec=None))))
def test_json_for_a_terminal_is_the_same_json(names):
    assert json.loads(json_text(names)) == json.loads(json.dumps(names))
    assert json_text(names).isprintable()


@pytest.mark.parametrize(
    "other", ["Be\u200brn", "Веrn", "Ｂern", "Bеrn\u2060", "ΒERN", "Be\u3164rn", "Bern\ufe0f"]
)
def test_names_that_look_alike_are_told_with_what_they_are(other):
    (told,) = look_alikes(["Bern", "Basel", other])
    assert told.startswith("Bern and ")
    assert ascii(other)[1:-1] in told


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A-B", "A\u2010B"),
        ("O'Neil", "O\u2019Neil"),
        ("B0B", "BOB"),
        ("l1", "11"),
        ("go", "\u0581o"),
    ],
)
def test_dashes_quotes_digits_and_armenian_letters_can_look_alike(one, other):
    assert len(look_alikes([one, other])) == 1


def test_names_that_do_not_look_alike_are_not_told():
    assert (
        look_alikes(["Bern", "Barn", "Москва", "Mockba", "北京", "Bern 2", "Bern 1", "Bärn"]) == []
    )
    assert look_alikes(["A", "a"]) == ["A and a are taken for two owners."]
