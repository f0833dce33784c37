import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from test_kernels import KERNELS as EVERY_KERNEL

from dupre import InputError, Owners
from dupre.data.sketch import SketchCache
from dupre.game.coalitions import all_coalitions, keys
from dupre.game.estimators import exact as all_weights
from dupre.game.semivalues import banzhaf
from dupre.predictor import form, gp
from dupre.predictor import kernel_inputs as module
from dupre.predictor.fitting import Search, fit
from dupre.predictor.gp import Amplitude, Scale, multiply
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Linear, Membership, Size
from dupre.predictor.warp import Warp
from processes import ROWS, N, features, split

ALL_FORMS = True
DATA_KERNEL = form.Form().kernel()
DECAYING = Amplitude(decay=0.7, reference=np.log(50.0))
CURVED = Warp(curved=True, centre=0.2, width=0.7, shift=0.1, scale=0.9)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


KERNELS = {
    "membership": (Membership(0.3), RBF(np.sqrt(1 / 0.6))),
    "sum": (
        0.7 * Membership(0.2) + 0.4 * Linear(),
        ConstantKernel(0.7) * RBF(np.sqrt(1 / 0.4))
        + ConstantKernel(0.4 / (1 + N)) * DotProduct(1.0),
    ),
}


@pytest.mark.parametrize("noise", [1e-3, 0.5])
@pytest.mark.parametrize("name", KERNELS)
def test_condition_agrees_with_scikit_learn(rng, name, noise):
    kernel, sklearn_kernel = KERNELS[name]
    a, b, u = split(rng)
    reference = GaussianProcessRegressor(sklearn_kernel, alpha=noise, optimizer=None)
    reference.fit(a.members.astype(float), u)
    mean, covariance = reference.predict(b.members.astype(float), return_cov=True)

    process = gp.condition(kernel, a, u, noise=noise)
    posterior = process.posterior(b)
    index = np.arange(len(b))

    likelihood = reference.log_marginal_likelihood_value_
    assert process.log_likelihood == pytest.approx(likelihood, abs=1e-8)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-8)
    np.testing.assert_allclose(posterior.variance, np.diag(covariance), atol=1e-8)
    np.testing.assert_allclose(posterior.covariance(index, index), covariance, atol=1e-8)


@pytest.mark.parametrize("warp", [Warp(), Warp(centre=0.3, width=2.0), CURVED])
@pytest.mark.parametrize("name", KERNELS)
def test_measured_noise_agrees_with_scikit_learn(rng, name, warp):
    kernel, sklearn_kernel = KERNELS[name]
    a, b, u = split(rng)
    noise, measured = 0.02, rng.uniform(0, 1, len(u)) * (np.arange(len(u)) % 3 > 0)
    h = 1e-6
    slope = 2 * h / (warp.forward(u + h) - warp.forward(u - h))
    alpha = noise + measured / slope**2
    reference = GaussianProcessRegressor(sklearn_kernel, alpha=alpha, optimizer=None)
    reference.fit(a.members.astype(float), warp.forward(u))
    mean, covariance = reference.predict(b.members.astype(float), return_cov=True)

    process = gp.condition(kernel, a, u, noise=noise, measured=measured, scale=Scale(warp))
    posterior = process.posterior(b)
    index = np.arange(len(b))
    likelihood = reference.log_marginal_likelihood_value_ - np.log(slope).sum()
    expected, _ = warp.back(mean, np.diag(covariance) + noise)

    assert process.log_likelihood == pytest.approx(likelihood, abs=1e-6)
    np.testing.assert_allclose(posterior.mean, expected, atol=1e-6)
    np.testing.assert_allclose(posterior.covariance(index, index), covariance, atol=1e-6)
    np.testing.assert_allclose(process.measured, measured / slope**2, atol=1e-6)
    assert process.noise_of_next == pytest.approx(noise + np.mean(measured / slope**2))


def test_nothing_measured_is_a_noise_of_zero_and_a_likelihood_is_that_of_utilities(rng):
    a, _, u = split(rng)
    without = gp.condition(DATA_KERNEL, a, u, noise=0.1, scale=Scale(CURVED))
    zero = gp.condition(
        DATA_KERNEL, a, u, noise=0.1, measured=np.zeros(len(u)), scale=Scale(CURVED)
    )
    np.testing.assert_array_equal(without.L, zero.L)
    assert without.log_likelihood == zero.log_likelihood
    assert without.noise_of_next == 0.1
    np.testing.assert_array_equal(without.measured, 0.0)
    twice = features(np.ones((2, N), dtype=bool))
    with pytest.raises(InputError, match="raise the noise"):
        gp.condition(Membership(), twice, np.zeros(2), noise=0.0)

    plain = gp.condition(4.0 * Membership(0.3), a, u, noise=0.4)
    scaled = gp.condition(Membership(0.3), a, u, noise=0.1, scale=Scale(Warp(width=2.0)))
    assert scaled.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-9)

    a, _, _ = split(rng)
    rows = a.members @ ROWS
    root = np.sqrt(rows / ROWS.sum())
    np.testing.assert_allclose(np.diff(gp.growth(a)) / np.diff(root), gp.growth(a)[0] / root[0])
    np.testing.assert_allclose(DECAYING(a), np.exp(-0.7 * (gp.growth(a) - DECAYING.reference)))
    np.testing.assert_array_equal(Amplitude(reference=3.0)(a), 1.0)


def test_an_amplitude_is_a_kernel_and_noise_multiplied_by_it_on_both_sides(rng):
    a, b, u = split(rng)
    noise, measured = 0.02, rng.uniform(0, 0.3, len(u))
    warp = Warp(centre=0.3, width=2.0)
    of_a, of_b = DECAYING(a), DECAYING(b)
    K = np.outer(of_a, of_a) * DATA_KERNEL(a, a) + np.diag(noise * of_a**2 + measured / 4)
    K_AB = np.outer(of_a, of_b) * DATA_KERNEL(a, b)
    v, inverse = (u - 0.3) / 2, np.linalg.inv(K)

    options = {"noise": noise, "measured": measured, "scale": Scale(warp, DECAYING)}
    process = gp.condition(DATA_KERNEL, a, u, **options)
    posterior = process.posterior(b)

    density = multivariate_normal(np.zeros(len(v)), K).logpdf(v)
    assert process.log_likelihood == pytest.approx(density - len(u) * np.log(2), abs=1e-8)
    np.testing.assert_allclose(posterior.mean, 0.3 + 2 * K_AB.T @ inverse @ v, atol=1e-8)
    prior = of_b**2 * (DATA_KERNEL.diagonal(b) + noise)
    variance = prior - np.einsum("ab,ab->b", K_AB, inverse @ K_AB)
    np.testing.assert_allclose(posterior.std, 2 * np.sqrt(variance), atol=1e-8)


@pytest.mark.parametrize("warp", [Warp(centre=0.3, width=2.0), CURVED])
def test_slope_and_back_of_a_process_are_those_of_its_z(rng, warp):
    a, _, u = split(rng)
    process = gp.condition(DATA_KERNEL, a, u, noise=0.1, scale=Scale(warp, DECAYING))
    utility, slope = process.scale.back(process.z, np.zeros(len(u)), a)
    np.testing.assert_allclose(utility, u, atol=1e-9)
    np.testing.assert_allclose(slope, process.slope, rtol=1e-9)
    h = 1e-6
    moved, _ = process.scale.back(process.z + h, np.zeros(len(u)), a)
    np.testing.assert_allclose((moved - u) / h, process.slope, rtol=1e-4)


@pytest.mark.parametrize("amplitude", [Amplitude(), DECAYING], ids=["equal", "decaying"])
@pytest.mark.parametrize("warp", [Warp(), Warp(centre=0.3, width=2.0), CURVED])
def test_leave_one_out_equals_refitting_without_each_point(rng, warp, amplitude):
    a, _, u = split(rng, evaluated=12)
    measured = rng.uniform(0, 0.1, len(u))
    options = {"noise": 0.05, "scale": Scale(warp, amplitude)}
    process = gp.condition(DATA_KERNEL, a, u, measured=measured, **options)
    slope = warp.slope(u) * amplitude(a)
    mean, variance = process.leave_one_out()
    for i in range(len(u)):
        others = np.delete(np.arange(len(u)), i)
        known = (a[others], u[others])
        without = gp.condition(DATA_KERNEL, *known, measured=measured[others], **options)
        predicted = without.posterior(a[np.array([i])])
        around = 0.05 + measured[i] / slope[i] ** 2
        assert variance[i] == pytest.approx(predicted.variance[0] + around, abs=1e-9)
        # Back as the others' process goes back: with the noise of a utility, not of a mean.
        own = variance[i : i + 1] - measured[i] / slope[i] ** 2
        back, _ = process.scale.back(mean[i : i + 1], own, a[np.array([i])])
        assert back[0] == pytest.approx(predicted.mean[0], abs=1e-9)


@pytest.mark.parametrize("tile", [module.TILE, 7])
@pytest.mark.parametrize("amplitude", [Amplitude(), DECAYING], ids=["equal", "decaying"])
@pytest.mark.parametrize("warp", [Warp(), CURVED], ids=["straight", "curved"])
def test_functional_covariance_equals_the_dense_formula(rng, monkeypatch, warp, amplitude, tile):
    monkeypatch.setattr(module, "TILE", tile)
    a, b, u = split(rng)
    W, noise = rng.normal(size=(4, len(b))), 0.03
    process = gp.condition(DATA_KERNEL, a, u, noise=noise, scale=Scale(warp, amplitude))
    posterior = process.posterior(b, W)

    K_AB = DATA_KERNEL(a, b)
    inverse = np.linalg.inv(DATA_KERNEL(a, a) + noise * np.eye(len(u)))
    dense = DATA_KERNEL(b, b) - K_AB.T @ inverse @ K_AB
    WJ = W * posterior.slope
    expected = WJ @ (dense + noise * np.eye(len(b))) @ WJ.T

    np.testing.assert_allclose(posterior.functional_covariance(), expected, atol=1e-8)
    some = np.array([3, 0, 30])
    np.testing.assert_allclose(posterior.cross(some), (dense @ WJ.T)[some], atol=1e-8)
    part = posterior.covariance(some, np.arange(9))
    np.testing.assert_allclose(part, dense[some, :9], atol=1e-8)
    noisy = np.sqrt(np.diag(dense) + noise) * posterior.slope
    np.testing.assert_allclose(posterior.std, noisy, atol=1e-8)


def learned(a, u):
    nothing, rng = np.zeros(len(u)), np.random.default_rng(0)
    return form.learn(a, u, measured=nothing, empty=0.0, choose_p=False, rng=rng).gp


def test_landmarks_give_the_dense_covariances_as_far_as_they_reach(rng, monkeypatch):
    a, b, u = split(rng)
    W, process = rng.normal(size=(3, len(b))), gp.condition(KERNELS["sum"][0], a, u, noise=0.01)
    exact, some = process.posterior(b, W), np.arange(0, len(b), 3)
    covariance, cross = exact.functional_covariance(), exact.cross(some)
    monkeypatch.setattr(gp, "EXACT_UP_TO", 0)
    for count, tolerance, all_kept in ((len(b), 1e-6, 2_048), (len(b), 1e-6, 0), (30, 0.15, 0)):
        monkeypatch.setattr(gp, "COUNT", count)
        monkeypatch.setattr(module, "ALL_KEPT", all_kept)
        found = process.posterior(b, W)
        assert len(found.landmarks.index) == count
        scale = tolerance * np.abs(covariance).max()
        np.testing.assert_allclose(found.functional_covariance(), covariance, atol=scale)
        scale = tolerance * np.abs(cross).max()
        np.testing.assert_allclose(found.cross(some), cross, atol=scale)
    # What few landmarks do not explain is measured: on all coalitions there is no error left.
    monkeypatch.setattr(gp, "COUNT", 5)
    found = process.posterior(b, W).functional_covariance()
    np.testing.assert_allclose(found, covariance, atol=1e-6 * np.abs(covariance).max())
    each = process.posterior(b, np.eye(len(b)))
    np.testing.assert_allclose(np.sqrt(each.functional_variance()), each.std, rtol=1e-6)


def test_what_landmarks_miss_is_estimated_from_a_sample(rng, monkeypatch):
    members = rng.permutation(all_coalitions(11))
    a, b = (Features(some, np.arange(10, 21)) for some in np.split(members, [150]))
    u = a.members @ np.linspace(0.1, 0.6, 11)
    kernel = 0.3 * Linear() + 1.0 * Membership(0.15)
    process = gp.condition(kernel, a, u, noise=1e-4)
    weights = all_weights(banzhaf, 11)
    position = {key: i for i, key in enumerate(keys(weights.members))}
    W = weights.W[:, [position[key] for key in keys(b.members)]]
    exact = process.posterior(b, W).functional_variance()
    monkeypatch.setattr(gp, "EXACT_UP_TO", 0)
    monkeypatch.setattr(gp, "COUNT", 100)
    found = process.posterior(b, W)
    through = found.landmarks.product
    assert np.all(np.sum(through**2, axis=0) < 0.8 * exact)  # landmarks alone miss much
    np.testing.assert_allclose(found.functional_variance(), exact, rtol=0.05)


@pytest.mark.parametrize("kernel", [300.0 * Linear(), 300.0 * Linear() + 10.0 * Membership(0.003)])
def test_landmarks_are_right_where_nearly_everything_is_known(rng, monkeypatch, kernel):
    a, b, _ = split(rng)
    process = gp.condition(kernel, a, a.members @ np.arange(N), noise=1e-7)
    W = rng.normal(size=(3, len(b)))
    exact = process.posterior(b, W).functional_variance()
    monkeypatch.setattr(gp, "EXACT_UP_TO", 0)
    monkeypatch.setattr(module, "ALL_KEPT", 0)
    np.testing.assert_allclose(process.posterior(b, W).functional_variance(), exact, rtol=1e-3)


def test_means_of_very_many_coalitions_are_those_of_few(rng, monkeypatch):
    a, b, u = split(rng)
    process = gp.condition(KERNELS["sum"][0], a, u, noise=0.01, scale=Scale(CURVED, DECAYING))
    W = rng.normal(size=(2, len(b)))
    exact = process.posterior(b, W)
    monkeypatch.setattr(gp, "EXACT_UP_TO", 0)
    found = process.posterior(b, W)
    assert found.explained is None
    for name in ("mean", "slope", "inner"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=1e-9)


@pytest.mark.parametrize("a", [1, gp.SMALL, gp.SMALL + 1, 5 * gp.SMALL - 2])
def test_a_factor_is_inverted_by_halves(rng, a):
    root = rng.normal(size=(a, a))
    L = np.linalg.cholesky(root @ root.T + a * np.eye(a))
    inverse = np.tril(gp.invert_lower(np.asfortranarray(L)))
    np.testing.assert_allclose(inverse @ L, np.eye(a), atol=1e-12)


@pytest.mark.parametrize("evaluated", [1, 2, 12])
@pytest.mark.parametrize("level", [0.1, 0.0, -3e5])
def test_equal_utilities_predict_that_utility_everywhere(rng, evaluated, level):
    a, b, _ = split(rng, evaluated)
    mean, std = learned(a, np.full(evaluated, level)).predict(b)
    np.testing.assert_allclose(mean, level, rtol=1e-12, atol=1e-12)
    assert np.all(np.isfinite(std))
    assert np.all(std > 0)
    if evaluated == 2:  # two different ones are enough, too
        mean, std = learned(a, np.array([0.2, 0.9])).predict(b)
        assert np.all(np.isfinite(mean))
        assert np.all(std > 0)


def left_out_errors(seed, outlier, predicted_by=learned):
    """Root mean square error on left-out coalitions of a smooth game, without and with outlier.

    Evaluated are all single owners, the grand coalition and 18 others; one owner alone falls off.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N * 12, 3)) + np.repeat(rng.normal(size=(N, 3)), 12, axis=0)
    owners = Owners.from_arrays(X, X @ [1.0, 2.0, 3.0], np.repeat(np.arange(N), 12))
    members = all_coalitions(N)
    every = Features(members, owners.rows, SketchCache(owners, seed=0))
    u = 0.8 * (1 - np.exp(-(members @ rng.uniform(0.1, 1.0, N))))
    sizes = members.sum(axis=1)
    rest = rng.permutation(np.flatnonzero((sizes > 1) & (sizes < N)))
    evaluated = np.concatenate([np.flatnonzero((sizes == 1) | (sizes == N)), rest[:18]])
    left_out = rest[18:]
    errors = []
    for worst in (u[0], outlier):
        observed = u.copy()
        observed[0] = worst
        process = predicted_by(every[evaluated], observed[evaluated])
        mean, _ = process.predict(every[left_out])
        errors.append(np.sqrt(np.mean((mean - u[left_out]) ** 2)))
    return errors


@pytest.mark.parametrize("outlier", [-10.0, -1000.0])
def test_an_outlier_leaves_the_other_predictions_about_as_accurate_unlike_a_straight_warp(outlier):
    def straight(a, u):
        chosen = form.Form()
        rng = np.random.default_rng(0)
        return fit(chosen.kernel(), a, u, scale=Scale(chosen.warp(u, 0.0)), search=Search(4, rng))

    errors = np.array([left_out_errors(seed, outlier) for seed in range(3)])
    ratios = errors[:, 1] / errors[:, 0]
    assert np.exp(np.log(ratios).mean()) < 3
    _, without_bend = left_out_errors(0, outlier, straight)
    assert errors[0, 1] < without_bend / 2


WITHOUT_ROWS = {
    name: kernel for name, kernel in EVERY_KERNEL.items() if "data" not in kernel.label
} | {"a kernel of its own": 2.0 * (Membership(gamma=0.2) * Size()) + 0.5 * Membership(gamma=0.7)}


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
    assert bool(asked) == (count < gp.NEARLY_ALL * 2**8)
