import pytest

from dupre import InputError
from dupre.predictor.kernels import (
    Constant,
    Linear,
    LinearInSize,
    Membership,
    Prior,
    Size,
    SlicedWasserstein,
    paper,
)
from dupre.valuation.names import parse_prior, parse_strategy, with_mean
from dupre.valuation.strategies import Active, Uniform

DATA = SlicedWasserstein(p=None, rho=None, eta=None)


@pytest.mark.parametrize(
    ("kernel", "mean", "expected"),
    [
        ("default", "linear", Prior(mean=LinearInSize())),
        ("Paper", "constant", paper()),
        ("gp-binary", "constant", Prior(1.0 * Membership(), plain=True)),
        ("membership", "0.5", Prior(1.0 * Membership(), mean=Constant(0.5))),
        (
            "data * size + membership+linear",
            "constant",
            Prior(1.0 * (DATA * Size()) + 1.0 * Membership() + 1.0 * Linear()),
        ),
    ],
)
def test_kernels_and_means_by_name(kernel, mean, expected):
    assert parse_prior(kernel, mean) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("active", Active()),
        ("half-active", Active(uniform=True)),
        ("Half-active: Ada", Active(uniform=True, focus=("Ada",))),
        ("active:Ada, Ben", Active(focus=("Ada", "Ben"))),
        ('active:["Ada, Ltd"]', Active(focus=("Ada, Ltd",))),
        ("uniform", Uniform()),
    ],
)
def test_strategies_by_name(text, expected):
    assert parse_strategy(text) == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parse_prior("menbership", "constant"), ".did you mean 'membership'"),
        (lambda: parse_prior("data*", "constant"), "'' is not known"),
        (lambda: parse_prior("paper", "quadratic"), "--prior-mean 'quadratic' is not known"),
        (lambda: with_mean("paper", "constant"), "must name a Kernel or a Prior"),
        (lambda: parse_strategy("random"), "--strategy 'random' is not known; expected active, h"),
        (lambda: parse_strategy("uniform:Ada"), "--strategy 'uniform:Ada' is not known"),
        (lambda: parse_strategy("active:A,B,C"), "focus must be one owner or a pair"),
    ],
)
def test_what_has_no_such_name_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
