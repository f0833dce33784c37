from dataclasses import replace

import numpy as np
import pytest

from dupre import Owners
from dupre.data.sketch import SketchCache
from dupre.game.coalitions import all_coalitions
from dupre.predictor.fitting import Search, fit
from dupre.predictor.form import (
    CHOICES,
    CURVED_WEIGHT,
    DEFAULT_WEIGHT,
    EVIDENCE,
    LEAST_WEIGHT,
    OTHERS,
    Form,
    learn,
)
from dupre.predictor.gp import Scale
from dupre.predictor.kernel_inputs import Features

ALL_FORMS = True
N = 6


@pytest.fixture(scope="module")
def coalitions():
    """Features of 40 coalitions in random order, and what their rows add up to."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N * 10, 3)) + np.repeat(rng.normal(size=(N, 3)), 10, axis=0)
    owners = Owners.from_arrays(X, X @ [1.0, 2.0, 3.0], np.repeat(np.arange(N), 10))
    members = all_coalitions(N)[rng.permutation(2**N - 1)[:40]]
    return Features(members, owners.rows, SketchCache(owners, seed=0))


def smooth(coalitions):
    return 0.8 * (1 - np.exp(-(coalitions.members @ np.linspace(0.1, 1.0, N))))


def learned(inputs, utilities, choose_p=True, measured=None):
    rng = np.random.default_rng(0)
    measured = np.zeros(len(utilities)) if measured is None else measured
    return learn(inputs, utilities, measured=measured, empty=0.0, choose_p=choose_p, rng=rng)


def fitted(form, inputs, utilities, starts=4):
    rng = np.random.default_rng(0)
    warp = form.warp(utilities, 0.0)
    return fit(
        form.kernel(), inputs, utilities, scale=Scale(warp), search=Search(starts, rng), decays=True
    )


def test_the_search_starts_at_the_default_form_and_is_a_function_of_its_arguments(coalitions):
    assert Form(**{choice: options[0] for choice, options in CHOICES.items()}) == Form()
    inputs, utilities = coalitions[:20], smooth(coalitions[:20])
    first, again = learned(inputs, utilities), learned(inputs, utilities)
    assert again.form == first.form
    np.testing.assert_array_equal(again.gp.alpha, first.gp.alpha)


@pytest.mark.parametrize("seed", range(3))
def test_the_chosen_form_is_no_less_likely_than_the_default(coalitions, seed):
    rng = np.random.default_rng(seed)
    inputs, utilities = coalitions[:25], smooth(coalitions[:25]) + rng.normal(0, 0.02, 25)
    chosen = learned(inputs, utilities)
    assert chosen.gp.log_likelihood >= fitted(Form(), inputs, utilities).log_likelihood - 1e-9


@pytest.mark.parametrize("form", [Form(), Form(p=1), Form(rho=0.5), Form(eta=0.2)], ids=str)
def test_utilities_drawn_from_a_form_are_explained_by_it_or_better(coalitions, form):
    rng = np.random.default_rng(0)
    kernel = form.kernel()
    K = kernel.at_median(kernel.distances(coalitions, coalitions))(coalitions, coalitions)
    utilities = np.linalg.cholesky(K + 1e-4 * np.eye(len(K))) @ rng.normal(size=len(K))
    chosen = learned(coalitions, utilities)
    # A start near another form's optimum may find a slightly worse one: half a unit.
    assert chosen.gp.log_likelihood >= fitted(form, coalitions, utilities).log_likelihood - 0.5


def test_heavy_tails_are_bent_and_ordinary_utilities_without_a_scale_are_not(coalitions):
    utilities = smooth(coalitions)
    utilities[coalitions.members.sum(axis=1) <= 2] *= -20
    chosen = learned(coalitions, utilities)
    assert chosen.form.curved
    assert chosen.gp.scale.warp.curved
    assert not chosen.outliers.size
    assert not Form(curved=True).warp(np.ones(5), empty=-1.0).curved
    assert Form(curved=True).warp(np.ones(5), empty=-1.0).width == 2.0


def test_p_of_one_is_considered_only_when_asked(coalitions, monkeypatch):
    inputs, utilities = coalitions[:20], smooth(coalitions[:20])
    asked = []
    vectors = inputs.vectors

    def logged(eta, p, members):
        asked.append(p)
        return vectors(eta, p, members)

    inputs = Features(inputs.members, inputs.rows, logged)
    learned(inputs, utilities, choose_p=False)
    assert set(asked) == {2}
    learned(inputs, utilities, choose_p=True)
    assert set(asked) == {1, 2}


def test_a_far_evaluation_is_set_aside_and_widens_what_is_predicted(coalitions):
    utilities = smooth(coalitions)
    utilities[9] = -10.0
    chosen = learned(coalitions, utilities)
    assert chosen.outliers.tolist() == [9]
    assert chosen.fits == (chosen.gp,)
    assert all(len(gp.utilities) == len(utilities) - 1 for _, gp in chosen.processes)
    # One evaluation in forty was off by about 10.5.
    assert chosen.outlier_variance == pytest.approx(10.5**2 / 40, rel=0.1)

    utilities, measured = smooth(coalitions), np.linspace(1e-6, 1e-4, len(coalitions))
    whole = learned(coalitions, utilities, measured=measured)
    slope = whole.gp.slope
    np.testing.assert_allclose(whole.gp.measured, measured / slope**2, rtol=1e-12)
    utilities[9] = -10.0
    chosen = learned(coalitions, utilities, measured=measured)
    assert chosen.outliers.tolist() == [9]
    slope = chosen.gp.slope
    np.testing.assert_allclose(chosen.gp.measured, np.delete(measured, 9) / slope**2, rtol=1e-12)
    utilities = smooth(coalitions)
    utilities[::4] = -np.geomspace(10, 1e6, 10)
    assert len(learned(coalitions, utilities).outliers) <= 4  # at most a tenth is set aside


@pytest.mark.parametrize("seed", range(3))
def test_no_evaluation_of_an_ordinary_noisy_game_is_set_aside_but_one_among_few_is(
    coalitions, seed
):
    noise = np.random.default_rng(seed).normal(0, 0.02, len(coalitions))
    chosen = learned(coalitions, smooth(coalitions) + noise)
    assert not chosen.outliers.size
    assert chosen.outlier_variance == 0
    few = coalitions[: (12, 16, 25)[seed]]  # it does not hide behind the noise it makes
    utilities = smooth(few)
    utilities[5] = -10.0
    assert learned(few, utilities).outliers.tolist() == [5]


def test_all_forms_that_were_tried_count_by_their_likelihood(coalitions):
    chosen = learned(coalitions[:20], smooth(coalitions[:20]))
    both = 2 * len(OTHERS)  # each on a straight and on a curved scale
    forms, others = chosen.fits[:-both], chosen.fits[-both:]
    assert len(forms) == 1 + sum(len(options) - 1 for options in CHOICES.values())
    assert chosen.gp in forms
    assert chosen.gp.log_likelihood >= max(gp.log_likelihood for gp in forms) - 0.01
    asked = [replace(chosen.form, given=kernel).kernel() for kernel, _ in OTHERS for _ in range(2)]
    assert [gp.kernel.roles for gp in others] == [kernel.roles for kernel in asked]
    assert [gp.kernel.label for gp in others] == [kernel.label for kernel in asked]
    weight = np.exp(chosen.log_weights)  # forms of the default kernel share its weight
    assert [gp.scale.warp.curved for gp in others] == [False, True] * len(OTHERS)
    assert weight[:-both].sum() == pytest.approx(np.exp(DEFAULT_WEIGHT))
    prior = [w + CURVED_WEIGHT * curved for _, w in OTHERS for curved in (False, True)]
    np.testing.assert_allclose(np.log(weight[-both:]), prior, atol=1e-12)

    utilities = smooth(coalitions[:20]) + np.random.default_rng(0).normal(0, 0.02, 20)
    chosen = learned(coalitions[:20], utilities)
    weights = np.array([weight for weight, _ in chosen.processes])
    assert weights.sum() == pytest.approx(1)
    assert np.all(weights >= 0)
    likelihood = np.array([gp.log_likelihood for gp in chosen.fits])
    shares = np.exp(EVIDENCE * (likelihood - likelihood.max()) + chosen.log_weights)
    shares[shares < LEAST_WEIGHT * shares.sum()] = 0
    shares /= shares.sum()
    counts = [2 * max(1, round(4 * share)) if share else 0 for share in shares]
    assert len(weights) == sum(counts)
    ends = np.cumsum(counts)
    found = [weights[end - count : end].sum() for end, count in zip(ends, counts, strict=True)]
    np.testing.assert_allclose(found, shares, atol=1e-12)


def test_predictions_are_averaged_over_the_processes(coalitions):
    chosen = learned(coalitions[:20], smooth(coalitions[:20]))
    W = np.random.default_rng(0).normal(size=(2, 20))
    posterior = chosen.posterior(coalitions[20:], W)
    mean = sum(weight * gp.predict(coalitions[20:])[0] for weight, gp in chosen.processes)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-12)
    both = (posterior.mean, posterior.std)
    for found, expected in zip(chosen.predict(coalitions[20:]), both, strict=True):
        np.testing.assert_array_equal(found, expected)
    best = chosen.gp.posterior(coalitions[20:], W)
    np.testing.assert_array_equal(posterior.best.mean, best.mean)

    sums = coalitions.members @ np.array([0.3, 0.1, 0.2, 0.05, 0.15, 0.2])
    chosen = learned(coalitions[:16], sums[:16])
    mean, _ = chosen.predict(coalitions[16:])
    by_data, _ = chosen.gp.predict(coalitions[16:])
    error, alone = (np.mean((found - sums[16:]) ** 2) for found in (mean, by_data))
    assert error < alone / 2


@pytest.mark.parametrize("levels", [1, 2, 10])
def test_whole_numbers_that_are_not_rounded_have_no_least_noise(coalitions, levels):
    n = coalitions.members.shape[1]
    sums = (levels * coalitions.members @ (np.arange(n) == 2)).astype(np.float64)
    chosen = learned(coalitions[:14], sums[:14])
    assert chosen.least_noise == 0
    mean, _ = chosen.predict(coalitions[14:])
    np.testing.assert_allclose(mean, sums[14:], atol=0.01 * levels)


def test_utilities_on_a_lattice_keep_a_twelfth_of_its_squared_step_as_noise(coalitions):
    step = 1 / 20
    utilities = np.round(smooth(coalitions) / step) * step
    chosen = learned(coalitions, utilities)
    assert chosen.least_noise == pytest.approx(step**2 / 12)
    for gp in (*chosen.fits, *(averaged for _, averaged in chosen.processes)):
        noise = gp.noise * np.median(gp.scale.warp.slope(utilities)) ** 2
        assert noise >= step**2 / 12 * (1 - 1e-9)
    # The same game without a lattice is known far better.
    exact = learned(coalitions, smooth(coalitions)).gp
    assert exact.noise * np.median(exact.scale.warp.slope(utilities)) ** 2 < step**2 / 12 / 10
