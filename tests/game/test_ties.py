import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dupre.game.ties import TOLERANCE, descending_order, first_largest

numbers = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12).map(np.array)
numbers = numbers.filter(np.any)  # rounding has no scale among zeros
rounding = st.integers(0, 10**6).map(lambda seed: np.random.default_rng(seed).normal(size=12))


@given(numbers, rounding)
def test_rounding_changes_neither_the_order_nor_the_largest(exact, errors):
    rounded = exact + 1e-9 * TOLERANCE * errors[: len(exact)]
    assert first_largest(rounded) == first_largest(exact) == np.argmax(exact)
    order = np.argsort(-exact, kind="stable")
    np.testing.assert_array_equal(descending_order(exact), order)
    np.testing.assert_array_equal(descending_order(rounded), order)


def test_numbers_are_told_apart_beyond_the_tolerance_at_any_scale_even_infinite():
    near, far = np.array([1.0, 1.0 + TOLERANCE / 2]), np.array([1.0, 1.0 + 2 * TOLERANCE])
    assert (first_largest(near), first_largest(far)) == (0, 1)
    assert (descending_order(near).tolist(), descending_order(far).tolist()) == ([0, 1], [1, 0])
    assert first_largest(np.array([1.0, 1.1]), scale=1e6) == 0
    for unit in (1e-200, 1.0, 1e200):
        assert descending_order(unit * np.array([1.0, 3.0, 3.0, 2.0])).tolist() == [1, 2, 3, 0]
    found = descending_order(np.array([-np.inf, 0.5, -np.inf, np.inf, 0.5]))
    assert found.tolist() == [3, 1, 4, 0, 2]
    assert descending_order(np.empty(0)).tolist() == []
