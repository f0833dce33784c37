from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dupre.predictor.warp import MAX_SPREAD, Warp, curved_warp, straight_warp

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
