import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from dupre.predictor.search import minimise, second_derivatives

FAR = np.full(4, 1e6)


def quadratic(seed):
    """A convex function, its second derivatives and its minimum."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 4))
    H, centre = root @ root.T + 0.1 * np.eye(4), rng.normal(size=4)
    return (lambda x: ((x - centre) @ H @ (x - centre) / 2, H @ (x - centre))), H, centre


def counted(function):
    """The function, and a list of where it was asked."""
    asked = []

    def count(x):
        asked.append(x)
        return function(x)

    return count, asked


@pytest.mark.parametrize("seed", range(5))
def test_with_the_true_second_derivatives_one_step_is_enough_and_from_behind_none(seed):
    function, H, centre = quadratic(seed)
    count, asked = counted(function)
    end = minimise(count, centre + 0.1, -FAR, FAR, B=H)
    np.testing.assert_allclose(end.x, centre, atol=1e-7)
    assert len(asked) <= 2
    count, asked = counted(function)
    end = minimise(count, centre + 1, -FAR, FAR, B=H, behind=-1e6)
    assert len(asked) == 1
    assert end.value == pytest.approx(function(centre + 1)[0])
    x, free = centre + 1, np.array([0, 2])
    found = second_derivatives(function, x, function(x)[1], free)
    np.testing.assert_allclose(found, H[np.ix_(free, free)], rtol=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_the_end_within_bounds_is_that_of_another_search(seed):
    function, _, centre = quadratic(seed)
    rng = np.random.default_rng(seed)
    low = centre - rng.uniform(-0.5, 1.0, 4)
    high = low + rng.uniform(0.0, 1.0, 4)
    high[0] = low[0]  # held
    bounds = list(zip(low, high, strict=True))
    options = {"ftol": 1e-15, "gtol": 1e-9}
    expected = minimize(function, low, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    end = minimise(function, high, low, high, B=np.eye(4))
    assert np.all((end.x >= low) & (end.x <= high))
    assert end.value == pytest.approx(expected.fun, abs=1e-6)
    np.testing.assert_allclose(end.x, expected.x, atol=1e-3)


def test_a_curved_valley_is_followed_to_its_end_around_places_without_a_value():
    end = minimise(lambda x: (rosen(x), rosen_der(x)), np.zeros(4), -FAR, FAR, B=np.eye(4))
    np.testing.assert_allclose(end.x, 1.0, atol=1e-3)

    def function(x):
        if x[0] <= 0.1:
            return 1e25, np.zeros(1)
        return float(x[0] - np.log(x[0])), 1 - 1 / x

    end = minimise(function, np.array([5.0]), -FAR[:1], FAR[:1], B=np.array([[0.01]]))
    np.testing.assert_allclose(end.x, 1.0, atol=1e-4)
