from dataclasses import FrozenInstanceError, dataclass, fields, replace
from itertools import product

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from dupre import InputError
from dupre.data.owners import Owners
from dupre.data.sketch import Resolution, SketchCache
from dupre.game.coalitions import all_coalitions
from dupre.predictor import form, kernels
from dupre.predictor.calibration import Student, student
from dupre.predictor.form import Form, check_prior
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import (
    Constant,
    Linear,
    LinearInSize,
    Membership,
    Prior,
    Scaled,
    Size,
    SlicedWasserstein,
)
from processes import split

KERNELS = {
    "data": SlicedWasserstein(gamma=2.0),
    "data, p=1": SlicedWasserstein(gamma=0.7, p=1, rho=0.5, eta=0.8),
    "size": Size(gamma=0.3),
    "membership": Membership(gamma=0.2),
    "linear": Linear(),
    "scaled": Scaled(Size(gamma=0.3), variance=2.5),
    "scaled linear": 3.0 * Linear(),
    "rows": 3.0 * kernels.Rows(),
    "minor": kernels.Minor(Size(gamma=0.3), variance=0.02),
    "sum": Size(gamma=0.5) + Scaled(Membership(gamma=0.1), variance=0.4) + Linear(),
    "product": Size(gamma=0.5) * Membership(gamma=0.1) * SlicedWasserstein(gamma=2.0),
    "product of sums": (Size() + 2.0 * Linear()) * (Linear() + Membership(gamma=0.3)),
    "scaled sum": 0.5 * (Size() + 2.0 * Membership(gamma=0.3)),
    "the default form": Form().kernel(),
    "another form": Form(p=1, rho=0.5, eta=0.2).kernel(),
}

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


@pytest.fixture(scope="module")
def features():
    X, y = load_iris(return_X_y=True)
    owner = np.random.default_rng(0).choice(5, size=150, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    owners = Owners.from_arrays(X, y, owner)
    cache = SketchCache(owners, seed=0, resolution=Resolution(10, 20, 128))
    return Features(all_coalitions(5), owners.rows, cache)


def moved(kernel):
    """The kernel with hyper-parameters away from one."""
    return kernel.with_theta(kernel.theta + np.linspace(-0.6, 0.8, len(kernel.theta)))


@every_kernel
def test_gradient_is_the_derivative_by_finite_differences(kernel, features):
    kernel = moved(kernel)
    distances = kernel.distances(features[:7], features[5:17])
    K, derivatives = kernel.gradient(distances)
    np.testing.assert_allclose(K, kernel.evaluate(distances), rtol=1e-14)
    assert len(derivatives) == len(kernel.theta)
    for k, derivative in enumerate(derivatives):
        step = 1e-5 * np.eye(len(kernel.theta))[k]
        moves = (kernel.theta + sign * step for sign in (1, -1))
        above, below = (kernel.with_theta(theta).evaluate(distances) for theta in moves)
        np.testing.assert_allclose(derivative, (above - below) / 2e-5, rtol=1e-6, atol=1e-9)


@every_kernel
def test_matrix_is_symmetric_and_positive_semi_definite(kernel, features):
    kernel = moved(kernel)
    K = kernel(features, features)
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-9
    np.testing.assert_allclose(kernel.diagonal(features), np.diag(K), rtol=1e-12)
    some = np.array([3, 11, 0, 30])
    np.testing.assert_allclose(kernel(features[some], features[:9]), K[some, :9], atol=1e-12)


@every_kernel
def test_theta_makes_a_round_trip_and_leaves_the_kernel_as_it_was(kernel):
    before = kernel.theta.copy()
    theta = before + np.linspace(-1, 1, len(before))
    other = kernel.with_theta(theta)
    assert type(other) is type(kernel)
    np.testing.assert_allclose(other.theta, theta, atol=1e-12)
    np.testing.assert_array_equal(kernel.theta, before)
    np.testing.assert_allclose(other.with_theta(before).theta, before, atol=1e-12)
    assert len(kernel.roles) == len(before)
    with pytest.raises(FrozenInstanceError):
        setattr(kernel, fields(kernel)[0].name if fields(kernel) else "label", 2.0)


@pytest.mark.parametrize(
    ("p", "rho", "eta"), list(product([1, 2], [0.0, 0.5, 1.0], [0.1, 0.5, 1.0]))
)
def test_data_kernel_is_positive_semi_definite_on_random_data(p, rho, eta):
    rng = np.random.default_rng(0)
    rows = rng.standard_t(2, size=(60, 4)), rng.normal(size=60)
    owners = Owners.from_arrays(*rows, rng.integers(0, 6, 60))
    cache = SketchCache(owners, seed=1, resolution=Resolution(8, 16, 64))
    features = Features(all_coalitions(6), owners.rows, cache)
    kernel = SlicedWasserstein(p=p, rho=rho, eta=eta)
    np.testing.assert_array_equal(np.diag(kernel.distance(features, features)), 0)
    at_median = kernel.at_median(kernel.distances(features, features))
    for gamma in (at_median.gamma, 100 * at_median.gamma, 0.01 * at_median.gamma):
        K = SlicedWasserstein(gamma, p=p, rho=rho, eta=eta)(features, features)
        assert np.linalg.eigvalsh(K).min() > -1e-9


@pytest.mark.parametrize("rho", [0.3, 1.0])
@pytest.mark.parametrize("eta", [0.4, 1.0])
def test_data_kernel_is_the_exponential_of_a_power_of_the_distance(rho, eta, features):
    of_2, of_1 = features.sketch(eta, 2), features.sketch(eta, 1)
    sw2, sw1 = cdist(of_2, of_2), cdist(of_1, of_1, "cityblock")
    of_order_2 = SlicedWasserstein(0.7, p=2, rho=rho, eta=eta)(features, features)
    of_order_1 = SlicedWasserstein(0.7, p=1, rho=rho, eta=eta)(features, features)
    np.testing.assert_allclose(of_order_2, np.exp(-0.7 * sw2 ** (2 * rho)), rtol=1e-6)
    np.testing.assert_allclose(of_order_1, np.exp(-0.7 * sw1**rho), rtol=1e-6)


@pytest.mark.parametrize("p", [1, 2])
def test_the_papers_kernel_has_the_directions_and_levels_it_states(p):
    rng = np.random.default_rng(0)
    owners = Owners.from_arrays(rng.normal(size=(60, 4)), rng.normal(size=60), np.arange(60) % 6)
    members = all_coalitions(6)

    def distances(kernel, **cache):
        features = Features(members, owners.rows, SketchCache(owners, seed=1, **cache))
        return kernel.distances(features, features)

    stated = kernels.paper(p=p, directions=7, levels=9).kernel
    own = Resolution(7, 9, 512)
    expected = distances(kernels.RawSlicedWasserstein(p=p), resolution=own)
    np.testing.assert_array_equal(distances(stated), expected)
    np.testing.assert_array_equal(distances(stated, resolution=Resolution(3, 4, 512)), expected)
    assert not np.allclose(distances(kernels.paper(p=p).kernel), expected, rtol=1e-3)
    for asked in ({"directions": 0}, {"levels": 2.5}):
        with pytest.raises(InputError, match="must be a whole number of at least 1"):
            kernels.paper(**asked)


def test_kernels_without_vectors_or_with_parameters_that_are_not_valid_are_refused(features):
    with pytest.raises(InputError, match="without rows to compare"):
        SlicedWasserstein()(Features(features.members, features.rows), features)
    with pytest.raises(InputError, match="variance of a kernel must be positive"):
        -1.0 * Membership()
    with pytest.raises(InputError, match="gamma must be positive, got -2"):
        Size(gamma=-2)
    for options, message in REFUSED:
        with pytest.raises(InputError, match=message):
            SlicedWasserstein(**options)


REFUSED = [
    ({"p": 3}, "p must be 1 or 2, got 3"),
    ({"p": 0}, "p must be 1 or 2, got 0"),
    ({"rho": -0.1}, r"rho must lie in \[0, 1\] .*got -0.1"),
    ({"rho": 1.5}, r"rho must lie in \[0, 1\] .*got 1.5"),
    ({"eta": 0.0}, r"eta must lie in \(0, 1\], got 0.0"),
    ({"eta": 1.1}, r"eta must lie in \(0, 1\], got 1.1"),
    ({"eta": float("nan")}, "eta must be a finite number, got nan"),
    ({"eta": "half"}, "eta must be a finite number, got 'half'"),
    ({"gamma": 0.0}, "gamma must be positive, got 0.0"),
]


@pytest.mark.parametrize("length", [0.5, 1.7])
def test_membership_is_an_rbf_on_zeros_and_ones(length, features):
    rbf = RBF(length_scale=length)(features.members.astype(float))
    found = Membership(gamma=1 / (2 * length**2))(features, features)
    np.testing.assert_allclose(found, rbf, rtol=1e-12)
    rows = np.log(1 + features.members @ features.rows)[:, None]
    found = Size(gamma=0.5)(features, features)
    np.testing.assert_allclose(found, RBF(1.0)(rows), rtol=1e-12)
    sets = [set(np.flatnonzero(row)) for row in features.members]
    expected = [[(1 + len(a & b)) / 6 for b in sets] for a in sets]
    np.testing.assert_allclose(Linear()(features, features), expected, rtol=1e-15)


def test_operators_add_multiply_and_scale_matrices_roles_and_labels(features):
    a, b, c = Size(0.4), Membership(0.2), Linear()
    A, B, C = (kernel(features, features) for kernel in (a, b, c))
    np.testing.assert_allclose((a + b)(features, features), A + B)
    np.testing.assert_allclose((a * b)(features, features), A * B)
    for scaled in (2.5 * a, a * 2.5):
        np.testing.assert_allclose(scaled(features, features), 2.5 * A)
    np.testing.assert_allclose((a + 2.0 * b * c)(features, features), A + 2 * B * C)
    np.testing.assert_allclose(((a + b) * c)(features, features), (A + B) * C)
    a, b, c = Size(), Membership(), Linear()
    assert (a + b) + c == a + (b + c) == kernels.Sum((a, b, c))
    assert (a * b) * c == a * (b * c) == kernels.Product((a, b, c))

    kernel = Form().kernel()
    assert kernel.roles == ["variance", "gamma", "gamma", "variance", "gamma", "variance"]
    assert kernels.Minor(Size()).roles == ["minor variance", "gamma"]
    assert kernel.label == "data × size + membership + linear"


def test_at_median_sets_every_gamma_to_one_over_its_median_distance(features):
    kernel = Form().kernel()
    distances = kernel.distances(features, features)
    found = kernel.at_median(distances)
    off = ~np.eye(len(features), dtype=bool)
    parts = (SlicedWasserstein(), Size(), Membership())
    medians = [np.median(d[d > 0]) for d in (k.distance(features, features)[off] for k in parts)]
    gammas = np.exp(found.theta)[[role == "gamma" for role in found.roles]]
    variances = np.exp(found.theta)[[role == "variance" for role in found.roles]]
    np.testing.assert_allclose(gammas, 1 / np.array(medians), rtol=1e-12)
    np.testing.assert_allclose(variances, 1)
    one = features[:1]
    assert Size(gamma=0.3).at_median(Size().distances(one, one)) == Size(gamma=0.3)


@dataclass(frozen=True)
class Count(kernels.Exponential):
    def distance(self, a, b):
        return np.abs(a.members.sum(axis=1)[:, None] - b.members.sum(axis=1)).astype(float)


def test_a_new_kernel_is_one_method(features):
    kernel = 2.0 * Count(0.3) + Linear()
    count = features.members.sum(axis=1)
    expected = 2 * np.exp(-0.3 * np.abs(count[:, None] - count))
    expected += Linear()(features, features)
    np.testing.assert_allclose(kernel(features, features), expected)
    np.testing.assert_allclose(kernel.diagonal(features), np.diag(expected))
    np.testing.assert_allclose(np.exp(kernel.theta), [2.0, 0.3])
    assert "count" in (Count() + Linear()).label


def test_features_look_each_vector_up_once_and_a_part_has_those_of_its_coalitions():
    asked = []

    def vectors(eta, p, members):
        asked.append((eta, p, len(members)))
        return 2.0 * members

    features = Features(all_coalitions(3), np.ones(3, dtype=np.int64), vectors)
    features.sketch(0.5, 2), features.sketch(0.5, 2), features[2:5].sketch(0.5, 2)
    features.sketch(1.0, 2), features.sketch(0.5, 1)
    assert asked == [(0.5, 2, 7), (1.0, 2, 7), (0.5, 1, 7)]
    some = np.array([4, 0, 4])
    np.testing.assert_array_equal(features[some].members, features.members[some])
    np.testing.assert_array_equal(features[some].sketch(0.5, 2), 2 * features.members[some])


def test_squared_euclidean_matches_scipy_and_is_zero_exactly_on_equal_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(100.0, 1.0, size=(20, 30))
    y = np.concatenate([x[:5], rng.normal(100.0, 1.0, size=(6, 30))])
    found = kernels.squared_euclidean(x, y)
    np.testing.assert_allclose(found, cdist(x, y, "sqeuclidean"), rtol=1e-8, atol=1e-7)
    np.testing.assert_array_equal(np.diag(found[:5, :5]), 0)
    assert (found >= 0).all()


ALL_FORMS = True
OPEN = kernels.SlicedWasserstein(p=None, rho=None, eta=None)


def learn(inputs, utilities, prior):
    rng, measured = np.random.default_rng(1), np.zeros(len(utilities))
    how = {"measured": measured, "empty": 0.0, "choose_p": False, "rng": rng, "prior": prior}
    return form.learn(inputs, utilities, **how)


@pytest.fixture(scope="module")
def game():
    """Some evaluated and all other coalitions, and smooth utilities of the evaluated."""
    evaluated, others, noise = split(np.random.default_rng(0), evaluated=24)
    return evaluated, others, np.tanh(evaluated.members @ np.linspace(0.1, 0.6, 6)) + 0.01 * noise


@pytest.mark.parametrize("mean", [None, Constant(0.0), LinearInSize()], ids=repr)
def test_a_plain_posterior_is_that_of_the_paper(game, mean):
    evaluated, others, u = game
    learned = learn(evaluated, u, replace(kernels.paper(), mean=mean))
    gp = learned.gp
    scale = gp.scale.warp.width**2
    K, k = scale * gp.kernel(evaluated, evaluated), scale * gp.kernel(evaluated, others)
    inverse = np.linalg.inv(K + scale * gp.noise * np.eye(len(u)))
    centre = np.full(len(u), u.mean()) if mean is None else gp.scale.prior.mean(evaluated)
    there = np.full(len(others), u.mean()) if mean is None else gp.scale.prior.mean(others)
    expected = there + k.T @ inverse @ (u - centre)
    covariance = scale * gp.kernel(others, others) - k.T @ inverse @ k  # DUPRE Sec. 2: no noise
    W = np.random.default_rng(2).normal(size=(3, len(others)))
    posterior = learned.posterior(others, W)
    np.testing.assert_allclose(posterior.mean, expected, atol=1e-8)
    np.testing.assert_allclose(posterior.std, np.sqrt(np.diag(covariance)), atol=1e-6)
    np.testing.assert_allclose(posterior.functional_covariance(), W @ covariance @ W.T, atol=1e-8)
    assert student(gp) == Student(1.0, None)
    assert learned.outlier_variance == gp.scale.amplitude.decay == 0.0


def test_plain_hyper_parameters_maximise_the_marginal_likelihood(game):
    evaluated, _, u = game
    gp = learn(evaluated, u, Prior(1.0 * Membership(), plain=True)).gp
    wide = {"length_scale_bounds": (1e-2, 1e3)}
    kernel = ConstantKernel(1.0, (1e-6, 1e3)) * RBF(**wide) + WhiteKernel(0.01, (1e-7, 2.0))
    z = (u - u.mean()) / gp.scale.warp.width
    theirs = GaussianProcessRegressor(kernel, n_restarts_optimizer=5, random_state=0)
    theirs.fit(evaluated.members.astype(float), z)
    best = theirs.log_marginal_likelihood_value_ - len(u) * np.log(gp.scale.warp.width)
    assert gp.log_likelihood == pytest.approx(best, abs=1e-3)


def test_what_a_kernel_leaves_open_is_chosen_by_the_marginal_likelihood(game):
    evaluated, _, u = game

    stated = {"first": kernels.SlicedWasserstein(), "p": kernels.SlicedWasserstein(p=None)}
    of = {
        name: learn(evaluated, u, Prior(1.0 * kernel, plain=True))
        for name, kernel in ({"open": OPEN} | stated).items()
    }
    chosen = of["open"].gp.kernel.kernel
    again = learn(evaluated, u, Prior(1.0 * replace(chosen, gamma=1.0), plain=True)).gp
    assert of["open"].gp.log_likelihood >= of["first"].gp.log_likelihood
    assert of["open"].gp.log_likelihood == pytest.approx(again.log_likelihood, abs=1e-2)
    assert not chosen.open
    assert of["p"].gp.kernel.kernel.eta == 0.5


@pytest.mark.parametrize("plain", [False, True])
def test_what_is_fixed_stays_and_the_rest_is_learned(game, plain):
    evaluated, _, u = game
    kernel = 2.5 * Membership(gamma=0.3) + 0.7 * Size(gamma=0.2)
    held = Prior(kernel, fixed=("gamma",), noise=0.02, plain=plain)
    for _, gp in learn(evaluated, u, held).processes:
        np.testing.assert_allclose(np.exp(gp.kernel.theta)[[1, 3]], [0.3, 0.2])
        assert gp.noise == pytest.approx(0.02)
        assert not np.isclose(np.exp(gp.kernel.theta)[[0, 2]], [2.5, 0.7]).any()
    every = Prior(kernel, fixed=("gamma", "variance"), plain=plain)
    for _, gp in learn(evaluated, u, every).processes:
        np.testing.assert_allclose(gp.kernel.theta, kernel.theta)


def test_a_mean_is_subtracted_and_added_again(game):
    evaluated, others, u = game

    def expected(coalitions):
        return 3.0 + 0.5 * coalitions.members.sum(axis=1)

    kernel = 1.0 * Membership() + 1.0 * Size()
    with_mean = learn(evaluated, u, Prior(kernel, mean=expected))
    residuals = learn(evaluated, u - expected(evaluated), Prior(kernel, mean=Constant(0.0)))
    (mean, std), (rest, same) = with_mean.predict(others), residuals.predict(others)
    np.testing.assert_allclose(mean, rest + expected(others), rtol=1e-6)
    np.testing.assert_allclose(std, same, rtol=1e-5)
    gp = with_mean.gp
    left_out, _ = gp.scale.back(*gp.leave_one_out(), gp.inputs)
    assert np.abs(left_out - u).max() < 1.0  # in units of utility, mean included


def test_a_line_in_size_is_that_of_least_squares_and_a_mean_must_be_a_number_for_each(game):
    evaluated, others, u = game
    x, there = (np.log1p(of.members @ of.rows) for of in (evaluated, others))
    line = np.polynomial.Polynomial.fit(x, u, 1)
    np.testing.assert_allclose(LinearInSize().learn(evaluated, u)(others), line(there), rtol=1e-9)
    one = evaluated[:1]
    np.testing.assert_allclose(LinearInSize().learn(one, u[:1])(others), u[0])
    with pytest.raises(InputError, match=r"one finite number for each of 39 coalitions.*\(39, 6\)"):
        check_prior(Prior(mean=lambda coalitions: coalitions.members), game[1])
    with pytest.raises(InputError, match="39 coalitions, got NaN or infinity"):
        check_prior(Prior(mean=Constant(np.nan)), game[1])


@dataclass(frozen=True)
class Own(kernels.Exponential):
    """A distance by any formula of the members."""

    kind: str = ""

    def distance(self, a, b):
        x, y = a.members.astype(float), b.members.astype(float)
        apart = np.abs(x[:, None] - y).sum(axis=2)
        return {
            "valid": apart,
            "Cubed": apart**3,
            "Asymmetric": apart + x.sum(axis=1)[:, None],
            "Short": apart[:, :-1],
            "Flat": np.zeros(3),
            "None": None,
            "NaN": np.full_like(apart, np.nan),
        }[self.kind]


def test_an_own_kernel_that_is_not_valid_is_named(game):
    for kind, message in (
        ("Cubed", r"kernel Own is not positive semi-definite: the smallest eigenvalue .* is -\d"),
        ("Asymmetric", "kernel Own is not symmetric"),
        ("Short", r"kernel Own must give finite numbers of shape \(39, 39\), got shape \(39, 38\)"),
        ("Flat", r"kernel Own must give finite numbers of shape \(39, 39\), got shape \(3,\)"),
        ("None", "kernel Own must give finite numbers of .*, got"),
        ("NaN", "kernel Own must give finite numbers of .*, got NaN or infinity"),
    ):
        _, others, _ = game
        with pytest.raises(InputError, match=message):
            check_prior(Prior(1.0 * Membership() + 2.0 * (Size() * Own(kind=kind))), others)
        check_prior(Prior(1.0 * Own(kind="valid")), others)


def test_a_prior_checks_itself():
    for options, message in (
        ({"kernel": "paper"}, "kernel must be a Kernel of dupre.kernels, got 'paper'"),
        ({"mean": 0.5}, r"mean must be Constant\(...\) or LinearInSize\(\).*got 0.5"),
        ({"kernel": Size(), "fixed": "eta"}, "fixed can hold 'gamma' and 'variance', got 'eta'"),
        ({"fixed": ("gamma",)}, "give kernel= too"),
        ({"noise": 0.0}, "noise must be a positive number, got 0.0"),
    ):
        with pytest.raises(InputError, match=message):
            Prior(**options)


def test_a_prior_says_what_was_asked_for():
    assert Prior().text == ""
    prior = Prior(1.0 * Membership(), mean=LinearInSize(), fixed="gamma", noise=0.1, plain=True)
    assert prior.text.startswith("kernel membership, prior mean linear in log(1 + rows), gamma fix")
    assert kernels.paper().text.startswith("kernel raw data, prior mean 0, plain posterior")
