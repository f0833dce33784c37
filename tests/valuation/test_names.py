import pytest

from dupre import InputError, kernels
from dupre.predictor.kernels import LinearInSize
from dupre.valuation.names import parse_prior, parse_strategy, with_mean
from dupre.valuation.strategies import Active, Uniform

DATA = kernels.SlicedWasserstein(p=None, rho=None, eta=None)
MEMBERSHIP = 1.0 * kernels.Membership()
SUM = 1.0 * (DATA * kernels.Size()) + MEMBERSHIP + 1.0 * kernels.Linear()


def test_kernels_means_and_strategies_by_name():
    assert parse_prior("default", "linear") == kernels.Prior(mean=LinearInSize())
    assert parse_prior("Paper", "constant") == kernels.paper()
    assert parse_prior("gp-binary", "constant") == kernels.Prior(MEMBERSHIP, plain=True)
    half = kernels.Prior(MEMBERSHIP, mean=kernels.Constant(0.5))
    assert parse_prior("membership", "0.5") == half
    assert parse_prior("data * size + membership+linear", "constant") == kernels.Prior(SUM)
    assert parse_strategy("active") == Active()
    assert parse_strategy("half-active") == Active(uniform=True)
    assert parse_strategy("Half-active: Ada") == Active(uniform=True, focus=("Ada",))
    assert parse_strategy("active:Ada, Ben") == Active(focus=("Ada", "Ben"))
    assert parse_strategy('active:["Ada, Ltd"]') == Active(focus=("Ada, Ltd",))
    assert parse_strategy("uniform") == Uniform()


def test_what_has_no_such_name_is_refused():
    for call, message in (
        (lambda: parse_prior("menbership", "constant"), ".did you mean 'membership'"),
        (lambda: parse_prior("data*", "constant"), "'' is not known"),
        (lambda: parse_prior("paper", "quadratic"), "--prior-mean 'quadratic' is not known"),
        (lambda: with_mean("paper", "constant"), "must name a Kernel or a Prior"),
        (lambda: parse_strategy("random"), "--strategy 'random' is not known; expected active, h"),
        (lambda: parse_strategy("uniform:Ada"), "--strategy 'uniform:Ada' is not known"),
        (lambda: parse_strategy("active:A,B,C"), "focus must be one owner or a pair"),
    ):
        with pytest.raises(InputError, match=message):
            call()
