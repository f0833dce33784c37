import numpy as np
import pytest

from dupre.predictor import training_noise
from dupre.predictor.training_noise import variance_of_means


def test_variances_of_means():
    for several, expected in (
        ([], []),
        ([[0.3], [0.9], [-2.0]], [0, 0, 0]),  # nothing was measured
        ([[0.1, 0.4, 0.2, 0.9]], [np.var([0.1, 0.4, 0.2, 0.9], ddof=1) / 4]),  # the textbook's
        ([[0.0, 1.0], [5.0, 6.0], [-3.0, -2.0]], [0.5 / 2] * 3),  # equal spreads stay
        ([[7.0], [0.0, 2.0]], [2.0, 1.0]),  # trained once: the pooled spread
        ([[0.5, 0.5], [0.25] * 3], [0, 0]),
        ([[0.1] * 3], [0]),  # not even of rounding
    ):
        np.testing.assert_allclose(variance_of_means(several), np.array(expected), atol=0)


def test_spreads_are_pooled_by_degrees_of_freedom():
    several = [[1.0, 2.0, 4.0], [0.0, 0.1], [3.0]]
    own = np.array([np.var([1.0, 2.0, 4.0], ddof=1), np.var([0.0, 0.1], ddof=1), 0.0])
    degrees = np.array([2, 1, 0])
    pooled = own @ degrees / degrees.sum()
    spread = (training_noise.POOLED_WEIGHT * pooled + degrees * own) / (
        training_noise.POOLED_WEIGHT + degrees
    )
    np.testing.assert_allclose(variance_of_means(several), spread / [3, 2, 1])
    variance, freedom = training_noise.pooled_variance([[1.0, 2.0, 4.0], [0.0, 0.1], [3.0]])
    assert freedom == 3
    assert variance == pytest.approx((2 * np.var([1.0, 2.0, 4.0], ddof=1) + 0.005) / 3)
    assert training_noise.pooled_variance([[0.1, 0.1]]) == (0.0, 1)
    unknown, freedom = training_noise.pooled_variance([[1.0], [2.0]])
    assert np.isnan(unknown)
    assert freedom == 0


@pytest.mark.parametrize("shift", [0.0, -40.0])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 300.0])
def test_variances_do_not_depend_on_level_and_grow_with_the_square_of_the_scale(shift, scale):
    several = [np.array([0.1, 0.5, 0.2]), np.array([0.9, 0.3])]
    moved = variance_of_means([shift * scale + scale * utilities for utilities in several])
    np.testing.assert_allclose(moved, scale**2 * variance_of_means(several), rtol=1e-6)


def test_with_the_same_noise_everywhere_the_variances_are_unbiased():
    rng = np.random.default_rng(0)
    counts, sigma = [1, 2, 3, 6], 0.3
    found = [
        variance_of_means([rng.normal(level, sigma, count) for level, count in enumerate(counts)])
        for _ in range(4000)
    ]
    standard_error = np.std(found, axis=0) / np.sqrt(len(found))
    off = np.mean(found, axis=0) - sigma**2 / np.array(counts)
    assert np.all(np.abs(off) < 4 * standard_error)
    several = [rng.normal(0, 0.1, 20) for _ in range(9)] + [rng.normal(0, 1.0, 20)]
    variances = variance_of_means(several)
    assert variances[-1] > 10 * variances[:-1].max()  # a noisier coalition is found noisier
