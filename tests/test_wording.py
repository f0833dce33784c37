from __future__ import annotations

import pytest

from dupre.wording import closest, did_you_mean, quote_names


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


def test_a_message_ends_with_the_name_meant_or_with_nothing():
    assert did_you_mean("taget", ["target"]) == " (did you mean 'target'?)"
    assert did_you_mean("owner", ["x"]) == ""


def test_a_long_list_is_cut_and_says_by_how_much():
    assert quote_names(["a", "b"]) == "'a', 'b'"
    assert quote_names([str(i) for i in range(12)]).count("'") == 24
    assert quote_names([str(i) for i in range(42)]).endswith("'11', … and 30 more")
