from __future__ import annotations

import pytest

from dupre import InputError
from dupre.valuation.strategies import Active, Corrected, Drawn, check_strategy


@pytest.mark.parametrize("kind", [Active, Drawn, Corrected])
@pytest.mark.parametrize("name", ["batch", "first"])
def test_counts_are_whole_numbers_above_zero(kind, name):
    for count in (0, -1, 2.5, "3", True):
        with pytest.raises(InputError, match=f"{name} must be a whole number of at least 1"):
            kind(**{name: count})


@pytest.mark.parametrize("kind", [Active, Drawn])
def test_check_is_a_whole_number(kind):
    for count in (-1, 4.0, None, "4"):
        with pytest.raises(InputError, match="check must be a whole number of at least 0"):
            kind(check=count)


def test_a_correction_and_a_check_exclude_each_other():
    with pytest.raises(TypeError, match="check"):
        Corrected(check=4)


@pytest.mark.parametrize("focus", [(), ("a", "a"), ("a", "b", "c"), 3, {"a"}])
def test_focus_is_one_owner_or_two(focus):
    with pytest.raises(InputError, match="one owner or a pair of different owners"):
        Active(focus=focus)


def test_a_list_of_two_owners_is_a_pair():
    assert Active(focus=["a", 1]) == Active(focus=("a", "1"))


def test_another_thing_is_no_strategy():
    with pytest.raises(InputError, match=r"Active\(\), Drawn\(\) or Corrected\(\)"):
        check_strategy("active")
