from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from dupre import InputError
from dupre.predictor import form, kernels
from dupre.predictor.calibration import widening
from dupre.predictor.kernel_checks import check_prior
from dupre.predictor.kernels import Constant, LinearInSize, Membership, Prior, Size
from processes import split

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
    scale = gp.warp.width**2
    K, k = scale * gp.kernel(evaluated, evaluated), scale * gp.kernel(evaluated, others)
    inverse = np.linalg.inv(K + scale * gp.noise * np.eye(len(u)))
    centre = np.full(len(u), u.mean()) if mean is None else gp.prior.mean(evaluated)
    there = np.full(len(others), u.mean()) if mean is None else gp.prior.mean(others)
    expected = there + k.T @ inverse @ (u - centre)
    covariance = scale * gp.kernel(others, others) - k.T @ inverse @ k  # DUPRE Sec. 2: no noise
    W = np.random.default_rng(2).normal(size=(3, len(others)))
    posterior = learned.posterior(others, W)
    np.testing.assert_allclose(posterior.mean, expected, atol=1e-8)
    np.testing.assert_allclose(posterior.std, np.sqrt(np.diag(covariance)), atol=1e-6)
    np.testing.assert_allclose(posterior.functional_covariance(), W @ covariance @ W.T, atol=1e-8)
    assert widening(gp) == 1.0
    assert learned.outlier_variance == gp.amplitude.decay == 0.0


def test_plain_hyper_parameters_maximise_the_marginal_likelihood(game):
    evaluated, _, u = game
    gp = learn(evaluated, u, Prior(1.0 * Membership(), plain=True)).gp
    wide = {"length_scale_bounds": (1e-2, 1e3)}
    kernel = ConstantKernel(1.0, (1e-6, 1e3)) * RBF(**wide) + WhiteKernel(0.01, (1e-7, 2.0))
    z = (u - u.mean()) / gp.warp.width
    theirs = GaussianProcessRegressor(kernel, n_restarts_optimizer=5, random_state=0)
    theirs.fit(evaluated.members.astype(float), z)
    best = theirs.log_marginal_likelihood_value_ - len(u) * np.log(gp.warp.width)
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
    left_out, _ = gp.back(*gp.leave_one_out(), gp.inputs)
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
    assert isinstance(kernels.paper().kernel, kernels.Kernel)
    assert "plain posterior" in kernels.paper().text
