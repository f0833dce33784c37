from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dupre.predictor.warp import (
    LEAST_STEPS,
    MAX_SPREAD,
    NO_LATTICE,
    Lattice,
    Warp,
    curved_warp,
    find_lattice,
    lattice_step,
    straight_warp,
)

quick = settings(deadline=None, max_examples=25)
utilities = arrays(
    np.float64, st.integers(3, 30), elements=st.floats(-100, 100, allow_subnormal=False)
)
EMPTY = 1.0
WARPS = [
    straight_warp(np.array([0.2, 0.4, 0.9]), empty=0.1),
    curved_warp(np.array([0.6, 0.7, 0.65, 0.8, -10.0])),
    Warp(curved=True, centre=0.5, width=0.1, shift=-0.3, scale=2.0),
]
either_warp = pytest.mark.parametrize("warp", WARPS, ids=["straight", "curved", "wide"])


def warps_of(u):
    bent = curved_warp(u)
    assume(bent is not None)
    return straight_warp(u, empty=EMPTY), bent


@quick
@given(utilities)
def test_forward_is_inverted_keeps_the_order_and_has_mean_zero_and_variance_one(u):
    ordered = np.unique(u)
    gaps = np.diff(ordered) > 1e-9 * np.abs(u).max()
    for warp in warps_of(u):
        z = warp.forward(u)
        there_and_back, _ = warp.back(z, np.zeros(len(u)))
        np.testing.assert_allclose(there_and_back, u, rtol=1e-9, atol=1e-9 * np.abs(u).max())
        steps = np.diff(warp.forward(ordered))
        assert np.all(steps >= 0)
        assert np.all(steps[gaps] > 0)
        assert np.mean(z) == pytest.approx(0, abs=1e-6)
        # The straight warp has the scale of what is gained too: no data count as one utility more.
        scaled = z if warp.curved else warp.forward(np.append(u, EMPTY))
        assert np.std(scaled) == pytest.approx(1, abs=1e-6)


@either_warp
def test_slopes_are_those_of_forward_and_of_the_mean(warp):
    u = np.linspace(-3, 2, 11)
    h = 1e-6 * warp.width
    derivative = (warp.forward(u + h) - warp.forward(u - h)) / (2 * h)
    np.testing.assert_allclose(warp.slope(u), 1 / derivative, rtol=1e-6)
    assert warp.slope(u).shape == u.shape
    z, variance, h = np.linspace(-2, 2, 9), np.full(9, 0.1), 1e-6
    derivative = (warp.back(z + h, variance)[0] - warp.back(z - h, variance)[0]) / (2 * h)
    np.testing.assert_allclose(warp.back(z, variance)[1], derivative, rtol=1e-6)


@quick
@given(utilities)
def test_both_slopes_of_a_warp_agree_and_so_does_their_logarithm(u):
    for warp in warps_of(u):
        _, back = warp.back(warp.forward(u), np.zeros(len(u)))
        np.testing.assert_allclose(warp.slope(u), back, rtol=1e-6)
        assert warp.log_slope(u) == pytest.approx(-np.log(warp.slope(u)).sum(), abs=1e-9)


@either_warp
@pytest.mark.parametrize("part", [1e-4, 0.1, 1.0])
def test_mean_equals_gauss_hermite_quadrature(warp, part):
    warp = replace(warp, low=-np.inf, high=np.inf)  # as if everything had been seen
    z = np.linspace(-2, 2, 9)
    variance = part * MAX_SPREAD / warp.scale**2
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    shifted = z[:, None] + np.sqrt(variance) * nodes
    u, _ = warp.back(shifted, np.zeros_like(shifted))
    expected = u @ weights / weights.sum()
    np.testing.assert_allclose(warp.back(z, np.full(9, variance))[0], expected, rtol=1e-9)
    largest = np.full(9, MAX_SPREAD / warp.scale**2)  # more shifts the mean no further
    np.testing.assert_allclose(warp.back(z, 100 * largest)[0], warp.back(z, largest)[0])


def test_beyond_what_was_seen_the_way_back_goes_straight_on():
    u = np.array([0.6, 0.7, 0.65, 0.8, -10.0])
    warp = curved_warp(u)
    z, none = np.sort(warp.forward(u)), np.zeros(9)
    for end, extreme in ((z[0], -10.0), (z[-1], 0.8)):
        outside = end + np.sign(end) * np.linspace(0, 30, 9)
        back, slopes = warp.back(outside, none)
        slope = float(warp.slope(np.array([extreme]))[0])
        np.testing.assert_allclose(slopes, slope, rtol=1e-9)
        np.testing.assert_allclose(np.diff(back) / np.diff(outside), slope, rtol=1e-9)
    inside = np.linspace(z[0], z[-1], 9)
    unlimited = replace(warp, low=-np.inf, high=np.inf)
    np.testing.assert_array_equal(warp.back(inside, none), unlimited.back(inside, none))


def test_a_straight_warp_is_affine_and_a_curved_one_bends_far_utilities_alone():
    warp = Warp(centre=3.0, width=2.0)
    mean, slope = warp.back(np.array([-1.0, 0.0, 2.0]), np.array([0.0, 1.0, 50.0]))
    np.testing.assert_array_equal(mean, [1.0, 3.0, 7.0])
    np.testing.assert_array_equal(slope, 2.0)
    u = np.array([0.6, 0.65, 0.7, 0.8])
    near, far = straight_warp(u, empty=0.7), straight_warp(u, empty=-1.0)
    assert far.width > 3 * near.width
    assert near.centre == far.centre == pytest.approx(np.mean(u))
    assert far.width == pytest.approx(np.std([0.6, 0.65, 0.7, 0.8, -1.0]))
    u = np.append(np.linspace(0.6, 0.8, 21), -1000.0)
    warp = curved_warp(u)
    z = warp.forward(u)
    near = np.diff(z[:-1])
    assert near.max() / near.min() < 1.1
    assert (z[-2] - z[-1]) / (z[-2] - z[0]) < 0.01 * (u[-2] - u[-1]) / (u[-2] - u[0])


@pytest.mark.parametrize("level", [0.0, 0.1, -7.3e8])
def test_equal_utilities_are_scaled_by_what_they_gain_and_never_bent(level):
    warp = straight_warp(np.full(10, level), empty=level - 0.25)
    assert warp.width == 0.25
    np.testing.assert_allclose(warp.forward(np.full(10, level)), 0.0, atol=1e-6)
    own = 0.1 * abs(level) or 1.0  # if they gain nothing: a tenth of their own
    assert straight_warp(np.full(4, level), empty=level).width == pytest.approx(own)
    assert curved_warp(np.array([level] * 4 + [0.3, 0.2, 0.4])) is None  # more than half
    assert curved_warp(np.full(5, level)) is None


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
    lattice = replace(find_lattice(votes), repeated=0.0)
    assert lattice.step == 1
    np.testing.assert_allclose(lattice.least_variance(np.arange(-4.0, 9.0)), 0, atol=1e-12)
    np.testing.assert_allclose(lattice.least_variance(np.array([0.5, 7.25])), [0.25, 0.1875])
    np.testing.assert_array_equal(NO_LATTICE.least_variance(np.array([0.5, 7.25])), 0)


@pytest.mark.parametrize("common", [0.0, 0.1])
def test_between_plateaus_a_utility_is_one_of_both_as_often_as_none_is_new(common):
    plateaus = np.array([0.1, 0.5, 0.6 if common else 0.6 + 1e-3 * np.pi])
    seen = np.append(np.repeat(plateaus, [5, 3, 1]), 0.9)  # two of ten came once
    lattice = find_lattice(np.random.default_rng(0).permutation(seen))
    assert lattice.step == pytest.approx(common)
    assert lattice.repeated == pytest.approx(0.8)
    np.testing.assert_allclose(lattice.seen, np.append(plateaus, 0.9))
    mean = np.array([0.3, 0.5, 0.2, 0.0, 2.0])
    inside = 0.8 * np.array([0.2 * 0.2, 0.0, 0.1 * 0.3, 0.0, 0.0])
    np.testing.assert_allclose(lattice.least_variance(mean), inside, atol=1e-12)
    alone = np.array([0.75])  # between two that came once
    np.testing.assert_allclose(
        lattice.least_variance(alone), replace(lattice, repeated=0.0).least_variance(alone)
    )


def test_numbers_that_never_repeat_are_no_plateaus():
    u = np.random.default_rng(0).normal(size=30)
    assert find_lattice(u).is_any
    assert find_lattice(np.full(9, 0.3)).is_any
    again = u * (1 + 1e-15 * np.arange(30))  # equal but for rounding
    assert find_lattice(np.append(u, again)).repeated > 0.9
