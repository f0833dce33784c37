import pickle

import numpy as np
import pytest
from scipy.special import binom
from scipy.stats import betabinom
from scipy.stats import binom as binomial_distribution

from dupre import InputError, Semivalue, banzhaf, beta_shapley, leave_one_out, shapley
from dupre.game.semivalues import log_binomial, parse_semivalue

BUILT_IN = [
    *(shapley, banzhaf, leave_one_out, beta_shapley(1, 1), beta_shapley(16, 1)),
    *(beta_shapley(1, 4), beta_shapley(0.5, 0.5)),
]
every_semivalue = pytest.mark.parametrize("semivalue", BUILT_IN, ids=lambda s: s.name)


@every_semivalue
def test_chances_are_a_distribution_by_weights_and_numbers_of_coalitions(semivalue):
    for n in (1, 2, 3, 10, 300, 3000):
        logs, chances = semivalue.log_weights(n), semivalue.chances(n)
        assert logs.shape == chances.shape == (n,)
        assert np.all(np.isfinite(logs)) or semivalue is leave_one_out
        assert np.all(chances >= 0)
        assert chances.sum() == pytest.approx(1, abs=1e-9)
        if n <= 10:
            expected = np.exp(logs) * binom(n - 1, np.arange(n))
            np.testing.assert_allclose(chances, expected, rtol=1e-10)


@pytest.mark.parametrize("n", [1, 7, 30])
def test_log_binomial_equals_the_binomial(n):
    k = np.arange(n + 1)
    np.testing.assert_allclose(np.exp(log_binomial(n, k)), binom(n, k), rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(16, 1), (4, 2)])
def test_beta_with_larger_alpha_favours_small_coalitions_and_mirrors(a, b):
    n = 8
    small, large = beta_shapley(a, b).log_weights(n), beta_shapley(b, a).log_weights(n)
    of_size = small + log_binomial(n - 1, np.arange(n))
    assert np.all(np.diff(of_size[b - 1 :]) < 0)
    np.testing.assert_allclose(small, large[::-1], atol=1e-12)


def test_semivalues_of_ones_own_by_name_and_in_a_pickle():
    for semivalue in (shapley, banzhaf, leave_one_out, beta_shapley(4, 1)):
        again = pickle.loads(pickle.dumps(semivalue))
        np.testing.assert_array_equal(again.log_weights(7), semivalue.log_weights(7))

    def log_weight(c, n):
        return c * np.log(0.3) + (n - 1 - c) * np.log(0.7)

    binomial = Semivalue("binomial(0.3)", log_weight)
    np.testing.assert_allclose(np.exp(binomial.log_weights(3)), [0.49, 0.21, 0.09])
    assert "binomial(0.3)" in repr(binomial)
    texts = ("shapley", " Banzhaf ", "loo", "beta: 16 , 1.5")
    names = ["Shapley", "Banzhaf", "leave-one-out", "Beta(16, 1.5)-Shapley"]
    assert [parse_semivalue(text).name for text in texts] == names


@pytest.mark.parametrize(
    ("log_weight", "message"),
    [
        (lambda c, n: np.zeros(n), "sum to"),
        (lambda c, n: np.full(n, -np.inf), "sum to"),
        (lambda c, n: np.where(c == 0, np.nan, 0.0), "numbers or -inf"),
        (lambda c, n: np.where(c == 0, np.inf, 0.0), "numbers or -inf"),
        (lambda c, n: np.zeros(n + 1), "numbers or -inf"),
        (lambda c, n: 0.0, "numbers or -inf"),
    ],
    ids=["too much", "nothing", "nan", "inf", "too many", "scalar"],
)
def test_weights_of_no_semivalue_are_refused_by_name(log_weight, message):
    mine = Semivalue("mine", log_weight)
    for ask in (mine.log_weights, mine.chances):
        with pytest.raises(InputError, match=message) as error:
            ask(4)
        assert "mine" in str(error.value)


@pytest.mark.parametrize("n", [2, 9, 200])
def test_chances_of_joining_so_many_others(n):
    c = np.arange(n)
    np.testing.assert_allclose(shapley.chances(n), 1 / n, rtol=1e-9)
    of_coins = binomial_distribution.pmf(c, n - 1, 0.5)
    np.testing.assert_allclose(banzhaf.chances(n), of_coins, rtol=1e-9)
    np.testing.assert_array_equal(leave_one_out.chances(n), c == n - 1)
    # Kwon & Zou 2022: who joins with a chance drawn from Beta(beta, alpha).
    for alpha, beta in ((1, 1), (4, 1), (1, 4), (16, 1), (0.5, 2.5)):
        of_betas = betabinom.pmf(c, n - 1, beta, alpha)
        np.testing.assert_allclose(beta_shapley(alpha, beta).chances(n), of_betas, rtol=1e-8)


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 0), (-1, 2), (float("nan"), 1), ("4", 1)])
def test_beta_refuses_parameters_that_are_not_positive(a, b):
    with pytest.raises(InputError, match="numbers above 0"):
        beta_shapley(a, b)
    for name, log_weight in (("mine", 3), (3, lambda c, n: c)):
        with pytest.raises(InputError, match="a name and a callable"):
            Semivalue(name, log_weight)


@pytest.mark.parametrize("text", ["", "beta", "beta:1", "beta:0,1", "beta:1,2,3", "beta:a,b", "co"])
def test_unknown_names_are_refused_with_those_there_are(text):
    with pytest.raises(InputError, match="expected shapley, banzhaf, beta:A,B"):
        parse_semivalue(text)
    with pytest.raises(InputError, match=r"is not known \(did you mean 'shapley'\?\)"):
        parse_semivalue("shaply")
