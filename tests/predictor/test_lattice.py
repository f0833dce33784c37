import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dupre.predictor.lattice import LEAST_STEPS, NO_LATTICE, Lattice, find_lattice, lattice_step


@pytest.mark.parametrize("m", [10, 50, 97, 300, 1000])
@pytest.mark.parametrize("count", [8, 30, 400])
def test_accuracies_on_m_rows_have_a_step_of_one_in_m(m, count):
    right = np.random.default_rng(m + count).integers(m // 2, m + 1, size=count)
    expected = np.gcd.reduce(np.diff(np.unique(right))) / m  # few of them may all be even
    assert lattice_step(right / m) == pytest.approx(expected, rel=1e-6)
    if count == 400:
        assert expected == 1 / m


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(0, 2000), min_size=LEAST_STEPS + 1, max_size=60, unique=True),
    st.integers(20, 5000),
    st.floats(-5, 5),
    st.sampled_from([1.0, -1.0, 0.01]),
)
def test_the_step_is_the_greatest_common_divisor_of_the_differences(counts, m, shift, scale):
    counts = np.array(counts)
    expected = abs(scale) * np.gcd.reduce(np.diff(np.sort(counts))) / m
    assert lattice_step(shift + scale * counts / m) == pytest.approx(expected, rel=1e-4)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.sampled_from([0.0, 0.1, -7.3e8]))
def test_numbers_of_a_continuous_metric_and_equal_ones_have_no_step(seed, count, level):
    assert lattice_step(1 - np.random.default_rng(seed).gamma(2.0, 0.2, count)) == 0
    assert lattice_step(np.full(count, level)) == 0


def test_few_or_continuous_numbers_have_no_step_unless_some_are_equal():
    few = np.arange(LEAST_STEPS) / 40
    assert lattice_step(few) == 0
    assert lattice_step(np.append(few, LEAST_STEPS / 40)) == pytest.approx(1 / 40)
    assert lattice_step(np.append(few, few[0])) == pytest.approx(1 / 40)
    u = np.random.default_rng(0).normal(size=30)
    assert lattice_step(np.append(u, u[:5])) == 0
    assert lattice_step(1e8 + 1e-6 * np.random.default_rng(0).normal(size=40)) == 0
    u = np.random.default_rng(0).integers(0, 60, size=40) / 60
    assert lattice_step(u) == lattice_step(u[::-1]) == lattice_step(np.sort(u))
    for unit in (1e-12, 1e-6, 1e9):
        assert lattice_step(unit * u) == pytest.approx(unit / 60)
        assert lattice_step(unit * np.random.default_rng(0).normal(size=40)) == 0


@settings(deadline=None, max_examples=100)
@given(
    st.floats(-3, 3), st.sampled_from([0.01, 1.0, 40.0]), st.integers(0, 2**32 - 1), st.booleans()
)
def test_no_distribution_on_a_lattice_has_less_than_the_least_variance(origin, step, seed, spread):
    rng = np.random.default_rng(seed)
    points = origin + step * np.arange(-5, 6)
    if spread:
        chance = rng.dirichlet(np.full(11, 0.3))
    else:  # the number below and the one above: the least is reached
        chance = np.zeros(11)
        chance[4] = rng.random()
        chance[5] = 1 - chance[4]
    mean = chance @ points
    variance = chance @ (points - mean) ** 2
    least = float(Lattice(origin, step).least_variance(np.array([mean]))[0])
    assert least <= variance + 1e-9 * step**2
    if not spread:
        assert least == pytest.approx(variance, abs=1e-9 * step**2)


def test_numbers_of_the_lattice_and_continuous_utilities_have_none():
    votes = np.array([0.0, 3.0, 1.0, 1.0])
    lattice = find_lattice(votes)
    assert lattice.step == 1
    np.testing.assert_allclose(lattice.least_variance(np.arange(-4.0, 9.0)), 0, atol=1e-12)
    np.testing.assert_allclose(lattice.least_variance(np.array([0.5, 7.25])), [0.25, 0.1875])
    np.testing.assert_array_equal(NO_LATTICE.least_variance(np.array([0.5, 7.25])), 0)
