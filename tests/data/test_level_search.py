import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dupre.data.level_search import pass_levels, type_up_to


@settings(deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 600),
    st.sampled_from([1, 2, 50, 127, 128, 1_000, 32_767, 32_768]),
)
def test_the_same_numbers_are_counted_as_one_by_one(seed, count, levels):
    rng = np.random.default_rng(seed)
    reached = np.sort(rng.integers(0, levels + 1, size=(3, count)), axis=1)
    reached[:, -1] = levels
    found = pass_levels(reached.astype(type_up_to(levels)), levels)
    expected = [np.searchsorted(row, np.arange(levels), side="right") for row in reached]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("levels", "bits"), [(50, 8), (127, 8), (128, 16), (40_000, 32)])
def test_numbers_leave_their_highest_bit_free(levels, bits):
    assert 8 * type_up_to(levels).itemsize == bits
    assert levels < 2 ** (bits - 1)
