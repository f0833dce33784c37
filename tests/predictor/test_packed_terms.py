from dataclasses import dataclass

import numpy as np
import pytest

from dupre.predictor.kernels import Exponential, Linear, Membership, Scaled, Size
from dupre.predictor.packed_terms import KernelTerm, diagonal_of_packed, pack, terms_of
from processes import split


@dataclass(frozen=True)
class Rational(Exponential):
    """1 / (1 + gamma distance): no exponential, though it is made of one."""

    def distance(self, a, b):
        return Membership().distance(a, b)

    def evaluate(self, distances):
        return 1 / (1 + self.gamma * distances)

    def gradient(self, distances):
        K = self.evaluate(distances)
        return K, [-self.gamma * distances * K**2]


@pytest.mark.parametrize(
    ("kernel", "own"),
    [
        (Membership(), 0),
        (Linear(), 0),
        (2.0 * Size() + Linear(), 0),
        (Scaled(Size() * Membership()) + 0.5 * Membership() + 3.0 * Linear(), 0),
        (0.5 * (Linear() * Size()), 0),
        (Rational() + 2.0 * Membership(), 1),
        (2.0 * (Rational() * Size()) + Rational() + Linear(), 2),
        (1.5 * (2.0 * Membership()), 1),
    ],
)
def test_terms_and_their_gradient_are_those_of_the_kernel(kernel, own):
    rng = np.random.default_rng(0)
    coalitions, _, _ = split(rng, evaluated=14)
    distances = kernel.distances(coalitions, coalitions)
    theta = rng.normal(-1, 0.5, len(kernel.theta))
    K, derivatives = kernel.with_theta(theta).gradient(distances)
    inner = rng.normal(size=K.shape)
    inner += inner.T
    packed = pack(inner)
    packed[diagonal_of_packed(len(K))] /= 2

    terms = terms_of(kernel, distances)
    gradient, found = np.zeros(len(theta)), np.zeros(len(packed))
    for term in terms:
        part, state = term.evaluate(theta)
        found += part
        term.add_gradient(gradient, theta, state, packed)
    assert sum(isinstance(term, KernelTerm) for term in terms) == own
    np.testing.assert_allclose(found, pack(K), rtol=1e-12)
    expected = [np.sum(inner * dK) / 2 for dK in derivatives]
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)
