"""Intervals and probabilities of a Student error with a normal one: against SciPy and by draws."""

import numpy as np
import pytest
from scipy import stats

from dupre.predictor.student import Spread

FREEDOMS = [2.5, 4.0, 8.0, 60.0]
LEVELS = [0.5, 0.68, 0.95, 0.99, 0.999]


def student(freedom, std=1.0):
    return stats.t(freedom, scale=std * np.sqrt((freedom - 2) / freedom))


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("level", LEVELS)
def test_without_a_normal_part_it_is_a_student_distribution(freedom, level):
    std = np.array([0.3, 2.0])
    spread = Spread(std, np.zeros(2), freedom)
    expected = [student(freedom, each).ppf((1 + level) / 2) for each in std]
    np.testing.assert_allclose(spread.half_width(level), expected, rtol=1e-6)
    mean = np.array([-0.4, 3.0])
    expected = [student(freedom, s).sf(-m) for m, s in zip(mean, std, strict=True)]
    np.testing.assert_allclose(spread.probability_above_zero(mean), expected, rtol=1e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_without_degrees_of_freedom_it_is_normal(level):
    spread = Spread(np.array([3.0]), np.array([4.0]))
    assert spread.half_width(level) == pytest.approx(stats.norm.ppf((1 + level) / 2) * 5)
    assert spread.probability_above_zero(np.array([5.0])) == pytest.approx(stats.norm.cdf(1))


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_many_degrees_or_a_normal_part_alone_are_normal(freedom):
    alone = Spread(np.zeros(2), np.array([1.0, 0.0]), freedom)
    np.testing.assert_allclose(alone.half_width(), [stats.norm.ppf(0.975), 0])
    many = Spread(np.ones(1), np.ones(1), 1e6)
    assert many.half_width() == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(2), rel=1e-5)


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("part", [0.2, 1.0, 5.0])
def test_the_sum_of_both_is_their_convolution(freedom, part):
    spread = Spread(np.array([part]), np.array([1.0]), freedom)
    grid = np.linspace(-12, 12, 24_001)  # of the normal part
    for x in (0.4, 2.0, 6.0):
        above = student(freedom, part).sf(x - grid)
        expected = np.trapezoid(above * stats.norm.pdf(grid), grid)
        probability = spread.probability_above_zero(np.array([-x]))[0]
        assert probability == pytest.approx(expected, rel=1e-6)
        # The same tail on both sides of the interval at its level.
        assert spread.half_width(1 - 2 * expected)[0] == pytest.approx(x, rel=1e-5)


@pytest.mark.parametrize("freedom", [None, *FREEDOMS])
def test_the_density_is_the_slope_of_the_probability(freedom):
    spread = Spread(np.array([0.5, 2.0, 0.0]), np.array([1.0, 0.0, 3.0]), freedom)
    error, step = np.array([0.3, -5.0, 4.0]), 1e-4
    ends = [spread.probability_above_zero(error + side * step) for side in (-1, 1)]
    density = (ends[1] - ends[0]) / (2 * step)
    np.testing.assert_allclose(spread.log_density(error), np.log(density), rtol=1e-5, atol=1e-5)


def test_certain_numbers_are_above_or_below_zero():
    spread = Spread(np.zeros(3), np.zeros(3), 4.0)
    np.testing.assert_array_equal(
        spread.probability_above_zero(np.array([-1.0, 0.0, 1.0])), [0, 0.5, 1]
    )
    np.testing.assert_array_equal(spread.half_width(), 0)


def test_any_shape():
    rng = np.random.default_rng(0)
    spread = Spread(rng.random((3, 4)), rng.random((3, 4)), 5.0)
    mean = rng.normal(size=(3, 4))
    half, probability = spread.half_width(0.9), spread.probability_above_zero(mean)
    for i, j in np.ndindex(3, 4):
        one = Spread(spread.student[i, j], spread.normal[i, j], 5.0)
        assert one.half_width(0.9) == pytest.approx(half[i, j])
        assert one.probability_above_zero(mean[i, j]) == pytest.approx(probability[i, j])
