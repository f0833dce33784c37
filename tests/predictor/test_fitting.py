from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize, rosen, rosen_der
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from dupre.predictor import fitting, form, gp
from dupre.predictor.fitting import (
    KernelTerm,
    Search,
    diagonal_of_packed,
    fit,
    minimise,
    pack,
    position,
    sample_around,
    second_derivatives,
    terms_of,
)
from dupre.predictor.gp import Amplitude, Scale
from dupre.predictor.kernels import (
    Exponential,
    Linear,
    Membership,
    Scaled,
    Size,
    SlicedWasserstein,
)
from dupre.predictor.warp import Warp
from processes import N, split

REFERENCE = 1.5
DATA_KERNEL = form.Form().kernel()
CURVED = Warp(curved=True, centre=0.2, width=0.7, shift=0.1, scale=0.9)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def problem(kernel, inputs, utilities, measured, warp=Warp(), reference=REFERENCE):  # noqa: B008 (frozen)
    scale = Scale(warp, Amplitude(reference=reference))
    return fitting.problem_of(kernel, inputs, utilities, measured, scale=scale)


def log_prior(kernel, x):
    mean, std = np.array([fitting.PRIOR[role] for role in [*kernel.roles, "noise", "decay"]]).T
    return -np.sum(((x - mean) / std) ** 2) / 2


@pytest.mark.parametrize("learn_on", [fitting.LEARN_ON, 15])
def test_fit_conditions_all_on_the_noise_that_was_measured(rng, monkeypatch, learn_on):
    monkeypatch.setattr(fitting, "LEARN_ON", learn_on)
    kernel = Membership()
    a, b, u = split(rng, evaluated=25)
    measured = rng.uniform(0, 0.5, len(u))
    process = fit(kernel, a, u, scale=Scale(), search=Search(2, rng), measured=measured)
    width = np.sqrt(0.5 / np.exp(process.kernel.theta[0]))
    reference = GaussianProcessRegressor(
        RBF(width), alpha=process.noise + measured, optimizer=None
    ).fit(a.members.astype(float), u)
    expected = reference.predict(b.members.astype(float))
    np.testing.assert_allclose(process.predict(b)[0], expected, atol=1e-8)
    if learn_on > len(u):
        expected = reference.log_marginal_likelihood_value_ + log_prior(kernel, position(process))
        assert process.log_likelihood == pytest.approx(expected, abs=1e-8)


def test_noise_that_was_measured_is_not_learned_a_second_time():
    noise = {"measured": [], "not": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, _, spread = split(rng, evaluated=40)
        u = a.members @ np.linspace(0.1, 1.0, N) + 0.5 * spread
        for name, variance in (("measured", 0.25), ("not", 0.0)):
            measured = np.full(len(u), variance)
            process = fit(Linear(), a, u, scale=Scale(), search=Search(2, rng), measured=measured)
            noise[name].append(process.noise)
    # Their sum is what it was: 0.5² is either known or learned.
    assert np.mean(noise["not"]) == pytest.approx(0.25, rel=0.4)
    assert np.mean(noise["measured"]) < 0.3 * np.mean(noise["not"])


GRADIENTS = [Membership(), Scaled(Size()) + Scaled(Linear()), DATA_KERNEL]
GRADIENTS += [form.Form(p=1, rho=0.5).kernel()]
GRADIENTS += [Scaled(SlicedWasserstein(rho=0.5) * Membership() * Size())]


@pytest.mark.parametrize("kernel", GRADIENTS, ids=lambda kernel: kernel.label)
@pytest.mark.parametrize("measured", [0.0, 0.4])
def test_gradient_of_the_objective_equals_finite_differences(rng, kernel, measured):
    a, _, u = split(rng)
    objective = problem(kernel, a, u, measured * rng.uniform(size=len(u)))
    for _ in range(3):
        x = rng.normal(size=len(kernel.theta) + 2)
        steps = 1e-6 * np.eye(len(x))
        numeric = [(objective(x + e)[0] - objective(x - e)[0]) / 2e-6 for e in steps]
        np.testing.assert_allclose(objective(x)[1], numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("warp", [Warp(), CURVED], ids=["straight", "curved"])
def test_objective_is_the_negative_log_posterior_of_the_conditioned_process(rng, warp):
    a, _, u = split(rng)
    measured = rng.uniform(0, 0.3, len(u))
    objective = problem(DATA_KERNEL, a, u, measured, warp)
    x = rng.normal(size=len(DATA_KERNEL.theta) + 2)
    kernel = objective.form.with_theta(fitting._absolute(objective.form, x))
    scale = Scale(warp, Amplitude(x[-1], REFERENCE))
    process = gp.condition(kernel, a, u, noise=np.exp(x[-2]), measured=measured, scale=scale)
    np.testing.assert_allclose(position(process), x, atol=1e-9)
    # The objective is a density of the warped utilities; the likelihood one of the utilities.
    expected = -(process.log_likelihood - warp.log_slope(u)) - log_prior(DATA_KERNEL, x)
    assert objective(x)[0] == pytest.approx(expected, abs=1e-9)


def test_objective_equals_a_dense_normal_density_of_the_warped_utilities(rng):
    a, _, u = split(rng)
    measured = rng.uniform(0, 0.3, len(u))
    objective = problem(DATA_KERNEL, a, u, measured, CURVED)
    x = 0.5 * rng.normal(size=len(DATA_KERNEL.theta) + 2)
    size = np.exp(-x[-1] * (gp.growth(a) - REFERENCE))
    kernel = objective.form.with_theta(fitting._absolute(objective.form, x))
    K = np.outer(size, size) * (kernel(a, a) + np.exp(x[-2]) * np.eye(len(u)))
    K += np.diag(measured / CURVED.slope(u) ** 2)
    density = multivariate_normal(np.zeros(len(u)), K).logpdf(CURVED.forward(u))
    assert objective(x)[0] == pytest.approx(-density - log_prior(DATA_KERNEL, x), abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_more_starts_never_fit_worse_than_one(seed):
    rng = np.random.default_rng(seed)
    a, _, u = split(rng, evaluated=15)
    one, several = (
        fit(DATA_KERNEL, a, u, scale=Scale(), search=Search(s, np.random.default_rng(seed)))
        for s in (1, 5)
    )
    assert several.log_likelihood >= one.log_likelihood - 1e-9


@pytest.mark.parametrize("decays", [False, True])
@pytest.mark.parametrize("largest", [0.0, 0.5])
def test_fit_ends_where_the_objective_is_flat_or_at_a_bound(rng, largest, decays):
    a, _, u = split(rng)
    measured = largest * rng.uniform(size=len(u))
    options = {"search": Search(3, rng), "measured": measured, "decays": decays}
    process = fit(DATA_KERNEL, a, u, scale=Scale(), **options)
    assert process.scale.amplitude.reference == pytest.approx(np.mean(gp.growth(a)))
    objective = problem(DATA_KERNEL, a, u, measured, reference=process.scale.amplitude.reference)
    x = position(process)
    roles = [*DATA_KERNEL.roles, "noise", "decay"]
    low, high = np.array([fitting.BOUNDS[role] for role in roles]).T
    slope = approx_fprime(x, lambda t: objective(t)[0], 1e-6)
    inside = (x > low + 1e-6) & (x < high - 1e-6)
    inside[-1] &= decays
    np.testing.assert_allclose(slope[inside], 0.0, atol=0.05)


def test_fitting_from_the_hyper_parameters_of_a_fit_is_no_worse_than_it(rng):
    a, _, u = split(rng)
    first = fit(DATA_KERNEL, a, u, scale=Scale(), search=Search(4, rng))
    near = position(first)
    again = fit(DATA_KERNEL, a, u, scale=Scale(), search=Search(1, rng, near))
    assert again.log_likelihood >= first.log_likelihood - 1e-8


def test_hyper_parameters_learned_on_a_subset_are_conditioned_on_all(rng, monkeypatch):
    monkeypatch.setattr(fitting, "LEARN_ON", 10)
    a, b, _ = split(rng, evaluated=40)
    u = a.members @ np.linspace(0.1, 1.0, N)
    process = fit(DATA_KERNEL, a, u, scale=Scale(), search=Search(2, rng))
    anew = gp.condition(process.kernel, a, u, noise=process.noise)
    assert process.scale.amplitude.decay == 0
    assert len(process.L) == len(process.alpha) == 40
    np.testing.assert_allclose(process.predict(b)[0], anew.predict(b)[0], atol=1e-12)
    truth = b.members @ np.linspace(0.1, 1.0, N)
    np.testing.assert_allclose(process.predict(b)[0], truth, atol=0.1)


def test_noise_too_small_for_all_evaluations_is_raised_rather_than_given_up(rng, monkeypatch):
    a, _, _ = split(rng, 40)
    u = a.members @ np.linspace(0.1, 1.0, N)
    real, asked = gp.cholesky_factor, []
    monkeypatch.setattr(fitting, "LEARN_ON", 15)
    expected = fit(DATA_KERNEL, a, u, scale=Scale(), search=Search(1, np.random.default_rng(0)))

    def fails_twice(K):
        if len(K) == 40:
            asked.append(1)
            if len(asked) <= 2:
                return None
        return real(K)

    monkeypatch.setattr(gp, "cholesky_factor", fails_twice)
    process = fit(DATA_KERNEL, a, u, scale=Scale(), search=Search(1, np.random.default_rng(0)))
    assert process.noise == pytest.approx(100 * expected.noise)


# The decay and the least noise.


def test_without_decays_the_amplitude_is_one_whatever_the_start(rng):
    a, _, u = split(rng)
    near = np.ones(len(DATA_KERNEL.theta) + 2)
    process = fit(DATA_KERNEL, a, u, scale=Scale(), search=Search(3, rng, near))
    assert process.scale.amplitude.decay == 0
    np.testing.assert_array_equal(process.scale.amplitude(a), 1.0)


def test_a_decay_is_learned_where_small_coalitions_spread_more():
    learned = {0.0: [], 1.0: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        a, _, z = split(rng, evaluated=60)
        for decay, found in learned.items():
            u = Amplitude(decay, REFERENCE)(a) * z
            process = fit(Membership(), a, u, scale=Scale(), search=Search(2, rng), decays=True)
            found.append(process.scale.amplitude.decay)
    assert np.mean(learned[1.0]) == pytest.approx(1.0, abs=0.2)
    assert np.mean(learned[0.0]) == pytest.approx(0.0, abs=0.2)


@pytest.mark.parametrize("warp", [Warp(), Warp(centre=0.3, width=2.0), CURVED])
@pytest.mark.parametrize("least", [1e-4, 0.05])
def test_the_noise_is_never_below_the_least(rng, warp, least):
    a, _, _ = split(rng, evaluated=40)
    u, _ = warp.back(a.members @ np.linspace(0.1, 1.0, N), np.zeros(40))  # z is linear
    free, bound = (
        fit(Linear(), a, u, scale=Scale(warp), search=Search(2, rng), least_noise=some)
        for some in (0.0, least)
    )
    lowest = least / np.median(warp.slope(u)) ** 2
    assert free.noise < 1e-5
    assert bound.noise == pytest.approx(max(lowest, free.noise), rel=1e-3)
    assert bound.noise >= lowest * (1 - 1e-9)


# Hyper-parameters around the learned ones.


def test_a_sample_is_the_same_every_time_and_decays_only_where_that_was_learned(rng, monkeypatch):
    a, _, u = split(rng)
    measured = rng.uniform(0, 0.3, len(u))
    process = fit(
        DATA_KERNEL,
        a,
        u,
        scale=Scale(CURVED),
        search=Search(2, rng),
        measured=measured,
        decays=True,
    )
    first, again = (sample_around(process, pairs=2) for _ in range(2))
    for (weight, one), (same_weight, same) in zip(first, again, strict=True):
        assert weight == same_weight
        np.testing.assert_array_equal(one.alpha, same.alpha)
        assert one.scale.warp == process.scale.warp
        np.testing.assert_array_equal(one.utilities, u)
        np.testing.assert_allclose(one.measured * one.slope**2, measured, rtol=1e-9)
    process = fit(DATA_KERNEL, a, u, scale=Scale(CURVED), search=Search(2, rng), decays=True)
    for pairs in (1, 4):
        weights = np.array([weight for weight, _ in sample_around(process, pairs=pairs)])
        assert len(weights) == 2 * pairs
        assert weights.sum() == pytest.approx(1)
        assert np.all(weights >= 0)

    process = fit(DATA_KERNEL, a, u, scale=Scale(), search=Search(2, rng))
    assert {one.scale.amplitude.decay for _, one in sample_around(process, pairs=3)} == {0.0}
    process = fit(DATA_KERNEL, a, u, scale=Scale(), search=Search(2, rng), decays=True)
    assert len({one.scale.amplitude.decay for _, one in sample_around(process, pairs=3)}) > 1

    process = fit(Membership(), a, u, scale=Scale(), search=Search(1, rng))
    monkeypatch.setattr(fitting, "LEARN_ON", len(u))
    assert len(sample_around(process, pairs=2)) == 4
    monkeypatch.setattr(fitting, "LEARN_ON", len(u) - 1)
    assert sample_around(process, pairs=2) == [(1.0, process)]


@pytest.mark.parametrize("warp", [Warp(), CURVED])
def test_the_noise_of_a_sample_is_never_below_the_least(rng, warp):
    a, _, _ = split(rng, evaluated=40)
    u, _ = warp.back(a.members @ np.linspace(0.1, 1.0, N), np.zeros(40))  # z is linear
    least = 1e-4
    process = fit(Linear(), a, u, scale=Scale(warp), search=Search(2, rng), least_noise=least)
    lowest = least / np.median(warp.slope(u)) ** 2
    free, bound = (
        [one.noise for _, one in sample_around(process, pairs=4, least_noise=some)]
        for some in (0.0, least)
    )
    assert min(free) < lowest / 2
    assert min(bound) == pytest.approx(lowest)
    assert max(bound) == pytest.approx(max(free))


def test_many_weighted_samples_have_the_posterior_mean_of_the_hyper_parameters(rng):
    a, _, u = split(rng, evaluated=60)
    kernel = Linear()
    u = a.members @ np.linspace(0.1, 1.0, N) + 0.3 * u
    process = fit(kernel, a, u, scale=Scale(), search=Search(2, rng))
    sample = sample_around(process, pairs=1000)
    x = np.array([np.log(one.noise) for _, one in sample])
    weights = np.array([weight for weight, _ in sample])
    # The noise is the only hyper-parameter: the mean over a fine grid is the oracle.
    objective = problem(kernel, a, u, np.zeros(len(u)), reference=process.scale.amplitude.reference)
    grid = np.linspace(x.min(), x.max(), 501)
    height = np.array([objective(np.array([t, 0.0]))[0] for t in grid])
    density = np.exp(height.min() - height)
    density /= density.sum()
    mean = grid @ density
    std = np.sqrt((grid - mean) ** 2 @ density)
    assert weights @ x == pytest.approx(mean, abs=0.1 * std)
    assert np.sqrt(weights @ (x - weights @ x) ** 2) == pytest.approx(std, rel=0.1)


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
