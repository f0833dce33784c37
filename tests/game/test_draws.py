import itertools

import numpy as np
import pytest
from scipy.stats import t as student

import dupre
from dupre.game.coalitions import all_coalitions
from dupre.game.draws import (
    draw_chances,
    error_by_size,
    estimate_from_draws,
    guess_by_size,
    split_into_blocks,
)
from dupre.game.estimators import exact

SEMIVALUES = [dupre.shapley, dupre.banzhaf, dupre.beta_shapley(4, 1)]


class Game:
    """Random utilities of n owners, of which the heaviest coalitions are certain."""

    def __init__(self, n, semivalue=dupre.shapley, seed=0, spread=1.0):
        self.members = all_coalitions(n)
        self.sizes = self.members.sum(axis=1)
        self.W = exact(semivalue, n).W
        rng = np.random.default_rng(seed)
        self.utilities = self.sizes / n + spread * rng.normal(size=len(self.members))
        self.certain = np.flatnonzero((self.sizes == n) | (self.sizes == 1))
        self.chances = draw_chances(self.W, self.certain)
        self.failed = np.empty(0, dtype=np.int64)
        self.truth = self.W @ self.utilities

    def in_blocks(self, draws, guesses, utilities=None):
        """Of several blocks of draws, each with its own guess."""
        utilities = self.utilities if utilities is None else utilities
        drawn = {"draws": np.asarray(draws), "chances": self.chances, "failed": self.failed}
        guesses = np.asarray(guesses)
        return estimate_from_draws(self.W, utilities, guesses, certain=self.certain, **drawn)

    def estimate(self, draws, utilities=None):
        """Mean and covariance."""
        known = self.utilities if utilities is None else utilities
        guess = guess_by_size(self.sizes, known, self.certain)
        found = self.in_blocks(draws, [guess], utilities)
        return found.mean, found.covariance

    def draw(self, m, rng):
        return rng.choice(len(self.chances), m, p=self.chances)


def wider(m):
    return student.ppf(0.975, m - 1) / student.ppf(0.975, 1e9)


def test_chances_are_probabilities_by_weight_of_what_is_not_certain():
    game = Game(5)
    assert game.chances.sum() == pytest.approx(1)
    assert np.all(game.chances[game.certain] == 0)
    others = np.setdiff1d(np.arange(31), game.certain)
    ratio = game.chances[others] / np.linalg.norm(game.W[:, others], axis=0)
    np.testing.assert_allclose(ratio, ratio[0])
    W = exact(dupre.shapley, 4).W
    before = W.copy()
    draw_chances(W, np.array([0, 1, 14]))
    np.testing.assert_array_equal(W, before)
    W = exact(dupre.leave_one_out, 4).W
    chances = draw_chances(W, np.array([14]))
    assert np.all(chances[~W.any(axis=0)] == 0)
    assert np.count_nonzero(chances) == 4
    W = exact(dupre.shapley, 3).W
    np.testing.assert_array_equal(draw_chances(W, np.arange(7)), np.zeros(7))


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=lambda s: s.name)
def test_the_mean_over_everything_that_can_be_drawn_is_the_exact_value(semivalue):
    game = Game(5, semivalue, seed=5)
    drawable = np.flatnonzero(game.chances)
    # Two equal draws estimate what one draw does, and have a spread.
    expected = sum(game.chances[c] * game.estimate([c, c])[0] for c in drawable)
    np.testing.assert_allclose(expected, game.truth, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=lambda s: s.name)
def test_the_mean_covariance_over_all_pairs_is_that_of_their_estimates(semivalue):
    game = Game(4, semivalue)
    pairs = list(itertools.product(np.flatnonzero(game.chances), repeat=2))
    chance = np.array([game.chances[i] * game.chances[j] for i, j in pairs])
    estimates, covariances = zip(*(game.estimate(pair) for pair in pairs), strict=True)
    errors = np.array(estimates) - game.truth
    true_covariance = (errors * chance[:, None]).T @ errors
    reported = np.tensordot(chance, np.array(covariances), axes=1) / wider(2) ** 2
    np.testing.assert_allclose(reported, true_covariance, atol=1e-12)


@pytest.mark.parametrize("m", [4, 8, 30])
def test_intervals_hold_the_truth_about_as_often_as_they_say(m):
    game = Game(6, seed=5)
    rng = np.random.default_rng(m)
    inside = []
    for _ in range(500):
        mean, covariance = game.estimate(game.draw(m, rng))
        half = 1.96 * np.sqrt(np.diag(covariance))
        inside.append(np.abs(mean - game.truth) <= half)
    assert 0.9 < np.mean(inside) < 0.985


@pytest.mark.parametrize("m", [2, 4, 10])
def test_few_draws_widen_the_intervals_as_student_says(m):
    game = Game(4)
    draws = game.draw(m, np.random.default_rng(m))
    guess = np.interp(game.sizes, *by_size(game))
    terms = game.W[:, draws] * (game.utilities - guess)[draws] / game.chances[draws]
    _, covariance = game.estimate(draws)
    plain = np.cov(terms) / m
    half_width = student.ppf(0.975, m - 1) * np.sqrt(np.diag(plain))
    np.testing.assert_allclose(1.959964 * np.sqrt(np.diag(covariance)), half_width, rtol=1e-6)


def by_size(game):
    """Sizes of the certain coalitions and the mean utility of each."""
    sizes = np.unique(game.sizes[game.certain])
    known = game.utilities[game.certain]
    return sizes, [known[game.sizes[game.certain] == size].mean() for size in sizes]


def test_a_guess_by_size_stands_for_what_failed_and_the_others_stay_unbiased():
    game = Game(4, seed=4)
    drawable = np.flatnonzero(game.chances)
    game.failed, rest = drawable[:3], drawable[3:]
    utilities = game.utilities.copy()
    utilities[game.failed] = np.interp(game.sizes, *by_size(game))[game.failed]
    hidden = game.utilities.copy()
    hidden[game.failed] = np.nan
    chance = game.chances[rest] / game.chances[rest].sum()
    each = [game.estimate([c, c], hidden)[0] for c in rest]
    np.testing.assert_allclose(chance @ each, game.W @ utilities, atol=1e-12)


def test_values_of_any_draws_add_up_and_a_constant_moves_none_but_by_its_share():
    game = Game(5, seed=7)
    for seed in range(20):
        mean, covariance = game.estimate(game.draw(6, np.random.default_rng(seed)))
        assert mean.sum() == pytest.approx(game.utilities[-1], abs=1e-12)
        assert covariance.sum() == pytest.approx(0, abs=1e-12)
    game = Game(5, spread=0.0)
    mean, covariance = game.estimate(game.draw(4, np.random.default_rng(0)))
    np.testing.assert_allclose(mean, game.truth, atol=1e-12)
    np.testing.assert_allclose(covariance, 0, atol=1e-24)
    game = Game(5, seed=4)
    found = game.in_blocks(game.draw(12, np.random.default_rng(0)), [game.utilities] * 3)
    np.testing.assert_allclose(found.mean, game.truth, atol=1e-12)
    assert not found.covariance.any()

    game = Game(4, seed=9)
    draws = game.draw(5, np.random.default_rng(2))
    mean, covariance = game.estimate(draws)
    moved_mean, moved_covariance = game.estimate(draws, game.utilities + 100.0)
    np.testing.assert_allclose(moved_mean - mean, 100 / 4, atol=1e-9)
    np.testing.assert_allclose(moved_covariance, covariance, atol=1e-9)


def remembering(game, draws, blocks):
    """Guesses that know the certain coalitions and whatever earlier blocks have drawn."""
    guess = guess_by_size(game.sizes, game.utilities, game.certain)
    guess[game.certain] = game.utilities[game.certain]
    guesses = []
    for part in split_into_blocks(np.asarray(draws), blocks):
        guesses.append(guess.copy())
        guess[part] = game.utilities[part]
    return np.array(guesses)


@pytest.mark.parametrize(("m", "blocks"), [(16, 4), (18, 4), (19, 4), (5, 1), (7, 3)])
def test_blocks_are_the_draws_in_their_order_and_about_as_long(m, blocks):
    draws = np.random.default_rng(m).integers(0, 9, m)
    parts = split_into_blocks(draws, blocks)
    np.testing.assert_array_equal(np.concatenate(parts), draws)
    lengths = [len(part) for part in parts]
    assert len(lengths) == blocks
    assert max(lengths) - min(lengths) <= 1


def test_block_j_counts_j_fold_and_is_compared_with_its_own_guess():
    game = Game(5, seed=3)
    rng = np.random.default_rng(0)
    draws, guesses = game.draw(14, rng), rng.normal(size=(3, 31))
    parts = [draws[:5], draws[5:10], draws[10:]]
    alone = [game.in_blocks(part, [g]) for part, g in zip(parts, guesses, strict=True)]
    found = game.in_blocks(draws, guesses)
    expected = sum(j * one.mean for j, one in enumerate(alone, start=1)) / 6
    np.testing.assert_allclose(found.mean, expected, atol=1e-12)
    plain = [one.covariance / wider(len(part)) ** 2 for one, part in zip(alone, parts, strict=True)]
    total = sum(j**2 * one for j, one in enumerate(plain, start=1)) / 36
    shares = np.array([1, 4, 9]) / np.array([5, 5, 4])
    freedom = shares.sum() ** 2 / np.sum(shares**2 / [4, 4, 3])  # Satterthwaite
    degrees = student.ppf(0.975, freedom) / student.ppf(0.975, 1e9)
    np.testing.assert_allclose(found.covariance, total * degrees**2, rtol=1e-6)
    np.testing.assert_array_equal(found.guess, guesses[-1])
    assert found.draws == 14


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=lambda s: s.name)
def test_guesses_that_know_earlier_blocks_leave_mean_and_covariance_right(semivalue):
    game = Game(3, semivalue, seed=1)
    drawable = np.flatnonzero(game.chances)
    every = list(itertools.product(drawable, repeat=4))
    chance = np.array([np.prod(game.chances[list(draws)]) for draws in every])
    assert chance.sum() == pytest.approx(1)
    found = [game.in_blocks(draws, remembering(game, draws, 2)) for draws in every]
    errors = np.array([one.mean for one in found]) - game.truth
    np.testing.assert_allclose(chance @ errors, 0, atol=1e-12)
    true_covariance = (errors * chance[:, None]).T @ errors
    freedom = (1 + 4) ** 2 / (1 + 16)  # Satterthwaite, of two blocks of two draws
    factor = (student.ppf(0.975, freedom) / student.ppf(0.975, 1e9)) ** 2
    reported = np.tensordot(chance, np.array([one.covariance for one in found]), axes=1) / factor
    np.testing.assert_allclose(reported, true_covariance, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("blocks", [1, 3])
def test_only_certain_and_drawn_utilities_are_read(blocks):
    game = Game(5, seed=2)
    draws = game.draw(12, np.random.default_rng(1))
    hidden = np.full(31, np.nan)
    read = np.concatenate([game.certain, draws])
    hidden[read] = game.utilities[read]
    guesses = remembering(game, draws, blocks)
    whole, part = game.in_blocks(draws, guesses), game.in_blocks(draws, guesses, hidden)
    np.testing.assert_array_equal(whole.mean, part.mean)
    np.testing.assert_array_equal(whole.covariance, part.covariance)


def test_what_failed_is_as_uncertain_as_guesses_are_wrong_later_blocks_counting_more():
    game = Game(5, seed=6)
    draws = game.draw(40, np.random.default_rng(0))
    failed = np.flatnonzero(game.chances)[:2]
    draws = draws[~np.isin(draws, failed)]
    guesses = np.random.default_rng(1).normal(size=(2, 31))
    without = game.in_blocks(draws, guesses)
    game.failed = failed
    found = game.in_blocks(draws, guesses)
    parts = zip(guesses, split_into_blocks(draws, 2), strict=True)
    errors = [np.mean((game.utilities - guess)[part] ** 2) for guess, part in parts]
    own = (errors[0] + 2 * errors[1]) / 3 * game.W[:, failed] @ game.W[:, failed].T
    scale = (1 - game.chances[failed].sum()) ** 2  # draws are shared among fewer
    np.testing.assert_allclose(found.covariance - own, without.covariance * scale, rtol=1e-9)


def test_the_error_by_size_counts_the_first_design_and_is_the_variance_of_noise():
    sizes = np.array([1, 1, 1, 3, 2, 2])
    utilities = np.array([0.0, 1.0, 2.0, 5.0, 4.0, 2.0])  # means 1 and 5, so 3 in between
    error, freedom = error_by_size(sizes, utilities, np.arange(4), np.array([4, 5]))
    assert freedom == 2 + 2
    assert error == pytest.approx(np.sqrt((1 + 0 + 1 + 0 + 1 + 1) / 4))
    game = Game(6, spread=0.0)
    rng, found = np.random.default_rng(1), []
    others = np.setdiff1d(np.arange(63), game.certain)[:20]
    for _ in range(300):
        utilities = game.sizes / 6 + rng.normal(size=63)
        found.append(error_by_size(game.sizes, utilities, game.certain, others)[0] ** 2)
    assert np.mean(found) == pytest.approx(1.0, rel=0.5)  # means of few are guesses themselves
