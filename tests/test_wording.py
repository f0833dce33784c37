import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dupre import InputError, wording


def test_the_name_meant_is_suggested_and_long_lists_and_names_are_cut():
    assert wording.closest("Owner", ["id", "owner"]) == "owner"
    assert wording.closest("owner", ["id", " Owner "]) == " Owner "
    assert wording.closest("house price", ["price", "house_price"]) == "house_price"
    assert wording.closest("taget", ["target", "owner"]) == "target"
    assert wording.closest("owner", ["x", "y"]) is None
    assert wording.closest("owner", []) is None
    assert wording.did_you_mean("taget", ["target"]) == " (did you mean 'target'?)"
    assert wording.did_you_mean("owner", ["x"]) == ""
    assert wording.quote_names(["a", "b"]) == "'a', 'b'"
    assert wording.quote_names([str(i) for i in range(12)]).count("'") == 24
    assert wording.quote_names([str(i) for i in range(42)]).endswith("'11', … and 30 more")
    assert wording.shorten("abcdefghijkl", 7) == "abc…jkl"

    assert wording.join_list(["a"]) == "a"
    assert wording.join_list(["a", "b", "c"]) == "a, b and c"
    assert wording.join_list(["a", "b", "c", "d"], most=2) == "a, b and 2 more"
    assert wording.join_list(["a", "b", "c"], most=2) == "a, b and c"


def test_numbers_have_a_minus_sign_unless_they_are_zero_and_never_more_certainty_than_is_known():
    assert wording.number(-0.25, 2) == "−0.25"
    assert wording.number(-0.0001, 2) == "0.00"
    assert wording.number(float("nan"), 2) == "–"
    assert [wording.plain_number(x, 2) for x in (-0.0001, -0.25)] == ["0.00", "-0.25"]
    assert wording.number(-1.05e-10, 12) == "−1.05e-10"
    small = [wording.plain_number(x, 12) for x in (-1.05e-10, 7.6e-13, 4e-13, 0.0, float("nan"))]
    assert small == ["-1.05e-10", "8e-13", "0", "0", "nan"]
    for write in (wording.number, wording.plain_number):  # equal but for rounding
        assert len({write(x, 3) for x in (0.0875, 0.0875 - 1e-17, 0.35 / 4, 0.7 / 8)}) == 1
        assert len({write(x, 3) for x in np.nextafter(0.0875, [0, 1])}) == 1
    assert wording.number(12345678901.23, 2) == "12,345,678,901.23"
    assert wording.write_apart(0.5, 2.0) == ("0.5", "2")
    assert wording.write_apart(0.1234567, 0.12345671) == ("0.1234567", "0.12345671")

    shares = (0, 0.001, 0.5, 0.999, 1)
    assert list(map(wording.percent, shares)) == ["0", "<1", "50", ">99", "100"]


@given(st.text(), st.text())
def test_different_names_are_spelled_differently_and_in_one_line(one, other):
    assert wording.spell_out(one).isprintable()
    assert (wording.spell_out(one) == wording.spell_out(other)) == (one == other)


def test_a_line_break_and_a_written_one_print_differently():
    assert [wording.printable("a\nb"), wording.printable("a\\nb")] == ["a\\nb", "a\\\\nb"]
    for cut in (wording.printable("x" * 10_000), wording.quote("\x1b" * 10**6)):
        assert len(cut) == wording.LONGEST_SHOWN
    assert len(str(InputError(f"the cell {'x' * 5_000_000!r}; ", "leave it empty"))) < 2_100


@given(st.lists(st.text(st.characters(codec=None))))
def test_json_for_a_terminal_is_the_same_json(names):
    assert json.loads(wording.json_text(names)) == json.loads(json.dumps(names))
    assert wording.json_text(names).isprintable()


def test_one_thing_has_no_plural():
    assert [wording.count_things(n, "row") for n in (0, 1, 2_000)] == [
        "0 rows",
        "1 row",
        "2,000 rows",
    ]
