from dataclasses import replace

import numpy as np
import pytest

from dupre.game.coalitions import all_coalitions
from dupre.predictor import gp
from dupre.predictor.averaging import AveragedPosterior, average_posterior
from dupre.predictor.gp import Amplitude, Scale
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Linear, Membership, Size
from dupre.predictor.warp import Lattice, Warp

N = 5
ROWS = np.array([5, 8, 13, 20, 40])
CURVED = Warp(curved=True, centre=0.2, width=0.7, shift=0.1, scale=0.9)
DECAYING = Amplitude(0.6, np.log(30.0))


@pytest.fixture
def game():
    """Features of 12 evaluated and all other coalitions, utilities, and functionals."""
    rng = np.random.default_rng(0)
    every = Features(all_coalitions(N), ROWS)
    order = rng.permutation(len(every))
    return every[order[:12]], every[order[12:]], rng.normal(size=12), rng.normal(size=(3, 19))


def processes_of(inputs, utilities):
    """Three processes that agree in nothing but the evaluations."""
    return [
        gp.condition(0.8 * Membership(0.3) + 0.3 * Linear(), inputs, utilities, noise=0.05),
        gp.condition(0.5 * Size(0.7) + Linear(), inputs, utilities, noise=0.2, scale=Scale(CURVED)),
        gp.condition(
            Membership(0.1), inputs, utilities, noise=0.01, scale=Scale(amplitude=DECAYING)
        ),
    ]


def test_mean_and_std_equal_the_moments_of_the_mixture(game):
    a, b, u, W = game
    processes, weights = processes_of(a, u), [0.5, 0.3, 0.2]
    mixture = list(zip(weights, processes, strict=True))
    averaged = average_posterior(processes[1].posterior(b, W), mixture)
    parts = [process.posterior(b, W) for process in processes]
    first = sum(w * part.mean for w, part in zip(weights, parts, strict=True))
    second = sum(w * (part.std**2 + part.mean**2) for w, part in zip(weights, parts, strict=True))
    np.testing.assert_allclose(averaged.mean, first, atol=1e-12)
    np.testing.assert_allclose(averaged.std, np.sqrt(second - first**2), rtol=1e-9)
    np.testing.assert_array_equal(averaged.W, W)


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize("weights", [[1.0], [0.25, 0.75]], ids=["one", "equal"])
def test_one_process_or_several_equal_ones_say_what_it_says(game, index, weights):
    a, b, u, W = game
    process = processes_of(a, u)[index]
    averaged = average_posterior(process.posterior(b, W), [(weight, process) for weight in weights])
    alone = process.posterior(b, W)
    np.testing.assert_allclose(averaged.mean, alone.mean, rtol=1e-12)
    np.testing.assert_allclose(averaged.std, alone.std, rtol=1e-12)
    found, expected = averaged.functional_covariance(), alone.functional_covariance()
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_covariance_of_two_processes_is_within_and_between_them(game):
    a, b, u, W = game
    best, other, _ = processes_of(a, u)
    averaged = average_posterior(best.posterior(b, W), [(0.6, best), (0.4, other)])
    one, two = best.posterior(b, W), other.posterior(b, W)
    # A mixture of two: w (1 - w) times the squared difference of their means.
    apart = W @ (one.mean - two.mean)
    between = 0.6 * 0.4 * np.outer(apart, apart)
    # Within: the covariance by the best, as much larger as single variances are on average.
    squares = (W**2).sum(axis=0)
    larger = (0.6 * one.std**2 + 0.4 * two.std**2) @ squares / (one.std**2 @ squares)
    expected = larger * one.functional_covariance() + between
    np.testing.assert_allclose(averaged.functional_covariance(), expected, rtol=1e-10)

    # Four times the kernel and the noise: the same means and four times the covariance.
    small = gp.condition(Membership(0.3), a, u, noise=0.1)
    large = gp.condition(4.0 * Membership(0.3), a, u, noise=0.4)
    averaged = average_posterior(small.posterior(b, W), [(0.5, small), (0.5, large)])
    parts = [process.posterior(b, W).functional_covariance() for process in (small, large)]
    exact = sum(parts) / 2
    np.testing.assert_allclose(averaged.functional_covariance(), exact, rtol=1e-8)


def test_the_covariance_has_no_negative_variance_and_processes_far_apart_widen_it(game):
    a, b, u, _ = game
    W = np.random.default_rng(2).normal(size=(30, len(b)))
    processes = list(zip([0.5, 0.3, 0.2], processes_of(a, u), strict=True))
    averaged = average_posterior(processes[0][1].posterior(b, W), processes)
    covariance = averaged.functional_covariance()
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.trace(covariance)

    a, b, u, W = game
    best = processes_of(a, u)[0].posterior(b, W)
    means = np.stack([best.mean - 10, best.mean + 10])
    halves = np.array([0.5, 0.5])
    observed = best.observed_weights()
    averaged = AveragedPosterior(best, means, np.stack([best.std**2] * 2), halves, observed)
    np.testing.assert_allclose(averaged.mean, best.mean, atol=1e-12)
    np.testing.assert_allclose(averaged.std, np.hypot(best.std, 10))


def test_a_lattice_gives_utilities_between_its_numbers_at_least_their_variance(game):
    a, b, u, W = game
    best, other, _ = processes_of(a, u)
    plain = average_posterior(best.posterior(b, W), [(0.6, best), (0.4, other)])
    lattice = Lattice(0.1, 3.0)
    found = replace(plain, lattice=lattice)
    least = lattice.least_variance(plain.mean)
    np.testing.assert_allclose(found.std**2, np.maximum(plain.std**2, least), rtol=1e-12)
    more = np.maximum(least - plain.std**2, 0.0)
    assert 0 < np.count_nonzero(more) < len(more)
    expected = plain.functional_covariance() + (W * more) @ W.T
    np.testing.assert_allclose(found.functional_covariance(), expected, rtol=1e-10)
    fine = replace(plain, lattice=Lattice(0.1, 1e-3))  # smaller than what is unknown anyway
    np.testing.assert_array_equal(fine.functional_covariance(), plain.functional_covariance())
