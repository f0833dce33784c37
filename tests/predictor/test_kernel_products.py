import numpy as np
import pytest
from test_kernels import KERNELS

from dupre.game.coalitions import all_coalitions
from dupre.predictor import kernel_products
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernel_products import multiply
from dupre.predictor.kernels import Linear, Membership, Size

WITHOUT_ROWS = {name: kernel for name, kernel in KERNELS.items() if "data" not in kernel.label} | {
    "a kernel of its own": 2.0 * (Membership(gamma=0.2) * Size()) + 0.5 * Membership(gamma=0.7)
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def some(rng, n, count):
    """Coalitions of n owners, in any order."""
    chosen = rng.permutation(2**n - 1)[:count]
    return Features(all_coalitions(n)[chosen], 1 + np.arange(n))


@pytest.mark.parametrize("kernel", WITHOUT_ROWS.values(), ids=WITHOUT_ROWS.keys())
@pytest.mark.parametrize(("n", "count"), [(1, 1), (2, 3), (7, 127), (7, 60), (9, 20), (10, 600)])
def test_the_product_is_that_with_the_matrix(rng, kernel, n, count):
    b, a = some(rng, n, count), some(rng, n, min(count, 40))
    V = rng.normal(size=(count, 3))
    found = multiply(kernel, a, b, V)
    expected = kernel(a, b) @ V
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", WITHOUT_ROWS.values(), ids=WITHOUT_ROWS.keys())
@pytest.mark.parametrize(("n", "count"), [(3, 7), (9, 20), (10, 700)])
def test_the_product_of_coalitions_with_themselves_too_also_if_some_are_equal(
    rng, kernel, n, count
):
    every = some(rng, n, count)[np.append(np.arange(count), [0, 0, 1])]
    V = rng.normal(size=(3, count + 3)).T
    expected = kernel(every, every) @ V
    found = multiply(kernel, every, every, V)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("count", [255, 64, 63])
def test_entries_are_computed_only_where_few_coalitions_are_asked_for(rng, monkeypatch, count):
    asked = []
    monkeypatch.setattr(
        Membership, "distance", lambda _, a, b: asked.append(1) or np.ones((len(a), len(b)))
    )
    b, a = some(rng, 8, count), some(rng, 8, 40)
    multiply(2.0 * Membership() + Linear(), a, b, rng.normal(size=(count, 2)))
    assert bool(asked) == (count < kernel_products.NEARLY_ALL * 2**8)
