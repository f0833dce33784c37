from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dupre import InputError
from dupre.checks import finite, positive, whole


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_pass_unchanged(number):
    assert finite(number, "x").hex() == number.hex()


@pytest.mark.parametrize("number", [np.nan, np.inf, None, "1", [1], 10**400, 1j])
def test_what_is_no_finite_number_is_named_with_what_came(number):
    for check in (finite, positive):
        with pytest.raises(InputError, match="timeout must be a finite number, got") as caught:
            check(number, "timeout")
        assert repr(number) in str(caught.value)


def test_positive_refuses_zero_and_less():
    assert [positive(number, "x") for number in (5e-324, 1, np.float32(0.5))] == [5e-324, 1, 0.5]
    for number in (0, -0.0, -1e-300, -3):
        with pytest.raises(InputError, match=f"timeout must be positive, got {number!r}"):
            positive(number, "timeout")


def test_whole_numbers_are_counted_from_the_least():
    assert type(whole(np.int64(3), "jobs", least=3)) is int
    for number in (2, 3.0, True, "3", None):
        with pytest.raises(InputError, match="jobs must be a whole number of at least 3, got"):
            whole(number, "jobs", least=3)
