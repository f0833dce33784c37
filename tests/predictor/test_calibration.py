from functools import cache

import numpy as np
import pytest

import dupre
from dupre.predictor import calibration
from dupre.predictor.calibration import (
    TOLERATED,
    check_predictor,
    diagnose,
    variance_of_means,
)
from dupre.valuation.strategies import Active
from owners_and_games import make_owners, record, smooth, value

ALL_FORMS = True
FIVE = make_owners(5)


@cache
def state():
    return record(dupre.Valuer(FIVE, empty=0.1), smooth(FIVE).table).state


def check(held_out, by_size=1.0, freedom=20):
    known, index, nothing = state(), np.arange(held_out), np.zeros(held_out)
    features, utilities = known.question.features[index], known.utilities[index]
    how = {"by_size": by_size, "freedom": freedom}
    return check_predictor(known.beliefs.predictor, features, utilities, nothing, **how)


def test_the_limit_allows_for_how_few_are_held_out():
    limits = [check(h).limit for h in (4, 6, 8, 12, 16)]
    assert limits == sorted(limits, reverse=True)
    assert check(4, freedom=6).limit > check(4, freedom=30).limit
    assert check(8, by_size=0.02).limit == pytest.approx(0.02 * limits[2])


@pytest.mark.parametrize("h", [4, 8, 16])
def test_a_predictor_of_the_largest_variance_tolerated_fails_in_one_of_twenty(h):
    rng, freedom = np.random.default_rng(h), 20
    limit = check(h, freedom=freedom).limit
    error = np.sqrt(TOLERATED * rng.chisquare(h, 20_000) / h)
    by_size = np.sqrt(rng.chisquare(freedom, 20_000) / freedom)
    assert np.mean(error >= by_size * limit) == pytest.approx(0.05, abs=0.01)


def test_shares_of_terms_are_those_of_all_processes_that_predict():
    sums = {names: 0.1 * len(names) + 0.02 * ("b" in names) for names in smooth(FIVE).table}
    predictor = record(dupre.Valuer(FIVE, empty=0.0), sums).state.beliefs.predictor
    shares = diagnose(predictor).scales
    terms = ["data × size", "membership", "linear", "rows", "linear × size"]
    assert list(shares) == terms
    assert sum(shares.values()) == pytest.approx(1)
    without_data = sum(w for w, gp in predictor.processes if "data" not in gp.kernel.label)
    assert without_data > 0
    assert shares["data × size"] <= 1 - without_data + 1e-9


def unlearnable(seed, n=6):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(10 * n, 2))
    owners = dupre.Owners.from_arrays(X, X @ [1.0, -1.0], np.repeat(np.arange(n), 10))
    utilities: dict[tuple[str, ...], float] = {}
    return owners, lambda members: utilities.setdefault(members, rng.normal())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:on check coalitions:UserWarning")
def test_eight_coalitions_held_out_catch_most_games_without_structure():
    caught = []
    for seed in range(6):
        owners, utility = unlearnable(seed)
        how = {"budget": 24, "empty": 0.0, "seed": seed, "strategy": Active(check=8)}
        caught.append(value(owners, utility, **how).facts.sampled)
    assert np.mean(caught) >= 0.5


def test_variances_of_means():
    for several, expected in (
        ([], []),
        ([[0.3], [0.9], [-2.0]], [0, 0, 0]),  # nothing was measured
        ([[0.1, 0.4, 0.2, 0.9]], [np.var([0.1, 0.4, 0.2, 0.9], ddof=1) / 4]),  # the textbook's
        ([[0.0, 1.0], [5.0, 6.0], [-3.0, -2.0]], [0.5 / 2] * 3),  # equal spreads stay
        ([[7.0], [0.0, 2.0]], [2.0, 1.0]),  # trained once: the pooled spread
        ([[0.5, 0.5], [0.25] * 3], [0, 0]),
        ([[0.1] * 3], [0]),  # not even of rounding
    ):
        np.testing.assert_allclose(variance_of_means(several), np.array(expected), atol=0)


def test_spreads_are_pooled_by_degrees_of_freedom():
    several = [[1.0, 2.0, 4.0], [0.0, 0.1], [3.0]]
    own = np.array([np.var([1.0, 2.0, 4.0], ddof=1), np.var([0.0, 0.1], ddof=1), 0.0])
    degrees = np.array([2, 1, 0])
    pooled = own @ degrees / degrees.sum()
    spread = (calibration.POOLED_WEIGHT * pooled + degrees * own) / (
        calibration.POOLED_WEIGHT + degrees
    )
    np.testing.assert_allclose(variance_of_means(several), spread / [3, 2, 1])
    variance, freedom = calibration.pooled_variance([[1.0, 2.0, 4.0], [0.0, 0.1], [3.0]])
    assert freedom == 3
    assert variance == pytest.approx((2 * np.var([1.0, 2.0, 4.0], ddof=1) + 0.005) / 3)
    assert calibration.pooled_variance([[0.1, 0.1]]) == (0.0, 1)
    unknown, freedom = calibration.pooled_variance([[1.0], [2.0]])
    assert np.isnan(unknown)
    assert freedom == 0


@pytest.mark.parametrize("shift", [0.0, -40.0])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 300.0])
def test_variances_do_not_depend_on_level_and_grow_with_the_square_of_the_scale(shift, scale):
    several = [np.array([0.1, 0.5, 0.2]), np.array([0.9, 0.3])]
    moved = variance_of_means([shift * scale + scale * utilities for utilities in several])
    np.testing.assert_allclose(moved, scale**2 * variance_of_means(several), rtol=1e-6)


def test_with_the_same_noise_everywhere_the_variances_are_unbiased():
    rng = np.random.default_rng(0)
    counts, sigma = [1, 2, 3, 6], 0.3
    found = [
        variance_of_means([rng.normal(level, sigma, count) for level, count in enumerate(counts)])
        for _ in range(4000)
    ]
    standard_error = np.std(found, axis=0) / np.sqrt(len(found))
    off = np.mean(found, axis=0) - sigma**2 / np.array(counts)
    assert np.all(np.abs(off) < 4 * standard_error)
    several = [rng.normal(0, 0.1, 20) for _ in range(9)] + [rng.normal(0, 1.0, 20)]
    variances = variance_of_means(several)
    assert variances[-1] > 10 * variances[:-1].max()  # a noisier coalition is found noisier
