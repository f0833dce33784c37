import pytest

import dupre
from dupre import kernels
from dupre.game.estimators import Sample, regression
from dupre.predictor.kernels import LinearInSize
from dupre.runs.parse import parse_bounds, parse_budget, parse_choices, parse_floor
from dupre.spec import spec_of
from dupre.valuation.strategies import Active, Uniform


def choices(**settings):
    return parse_choices(spec_of(path="/d.csv", owner="owner", target="y", **settings))


def test_semivalues_durations_and_samples_are_read():
    names = ("least-core", "least_core", "Banzhaf", "beta:4,1")
    found = [semivalue.name for semivalue in choices(semivalues=names).semivalues]
    assert found == ["Least core", "Least core", "Banzhaf", "Beta(4, 1)-Shapley"]
    texts = ("90s", "30m", "1h30m", "1.5 h", "2D")
    assert [choices(timeout=text).timeout for text in texts] == [90, 1800, 5400, 5400, 172_800]
    assert choices(samples=99).estimator == Sample(regression, 99)
    plain = choices(timeout="", until="", time="", kernel="default", strategy="active")
    assert not any([plain.stop, plain.timeout, plain.prior, plain.strategy, plain.estimator])


def test_until_values_are_known_or_the_ranking_is_settled_or_the_time_is_over():
    for text in ("±0.01", "0.01", "+-0.01", "+/-0.01", " ± 1e-2 ", "± .01"):
        assert choices(until=text).stop.text == dupre.stopping.within(0.01).text
    assert choices(until="ranking").stop.text == dupre.stopping.ranking_settled().text
    assert choices(time="2h").stop.text == dupre.stopping.wall_time(7200).text
    both = choices(until="ranking", time="90s").stop.text
    assert both == (dupre.stopping.ranking_settled() | dupre.stopping.wall_time(90)).text


DATA = kernels.SlicedWasserstein(p=None, rho=None, eta=None)
MEMBERSHIP = 1.0 * kernels.Membership()
SUM = 1.0 * (DATA * kernels.Size()) + MEMBERSHIP + 1.0 * kernels.Linear()


@pytest.mark.parametrize(
    ("kernel", "mean", "prior"),
    [
        ("default", "linear", kernels.Prior(mean=LinearInSize())),
        ("Paper", "constant", kernels.paper()),
        ("gp-binary", "constant", kernels.paper_process(kernels.Membership())),
        ("membership", "0.5", kernels.Prior(MEMBERSHIP, mean=kernels.Constant(0.5))),
        ("data * size + membership+linear", "constant", kernels.Prior(SUM)),
    ],
)
def test_kernels_and_means_by_name(kernel, mean, prior):
    assert choices(kernel=kernel, prior_mean=mean).prior == prior


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("half-active", Active(uniform=True)),
        ("Half-active: Ada", Active(uniform=True, focus=("Ada",))),
        ("active:Ada, Ben", Active(focus=("Ada", "Ben"))),
        ('active:["Ada, Ltd"]', Active(focus=("Ada, Ltd",))),
        ("active-per-second", Active(per="second")),
        ("active-per-second:Ada", Active(per="second", focus=("Ada",))),
        ("uniform", Uniform()),
    ],
)
def test_strategies_by_name(name, strategy):
    assert choices(strategy=name).strategy == strategy


DURATION = "is no duration above zero; expected such as 90s, 30m, 2h or 1h30m"
REFUSED = [
    *[({"until": text}, "or ranking") for text in ("soon", "-0.1", "0", "±", "1..2", "nan")],
    *[
        ({flag: text}, f"--{flag} {text!r} {DURATION}")
        for text in ("2", "2 hours", "h", "-3m", "1h 30", "0m 0s")
        for flag in ("time", "timeout")
    ],
    ({"kernel": "menbership"}, ".did you mean 'membership'"),
    ({"kernel": "data*"}, "'' is not known"),
    ({"kernel": "dupre:value"}, "must name a Kernel or a Prior"),
    ({"prior_mean": "quadratic"}, "--prior-mean 'quadratic' is not known"),
    ({"strategy": "random"}, "--strategy 'random' is not known; expected active, h"),
    ({"strategy": "uniform:Ada"}, "--strategy 'uniform:Ada' is not known"),
    ({"strategy": "active-per-second", "model": "elsewhere"}, "needs the seconds of trainings"),
    ({"strategy": "active:A,B,C"}, "focus must be one owner or a pair"),
]


@pytest.mark.parametrize(("settings", "words"), REFUSED)
def test_what_no_object_is_called_is_refused(settings, words):
    with pytest.raises(dupre.InputError, match=words):
        choices(**settings)


def test_budgets_floors_and_bounds_are_numbers():
    assert parse_budget("60", 12) == 60
    assert parse_budget("+40", 12) == 52
    for text in ("", "+", "-3", "0", "+0", "4.5", "many"):
        with pytest.raises(dupre.InputError, match=r"or \+40 for 40 more"):
            parse_budget(text, 12)
    assert [parse_floor(text) for text in (None, "none", "-0.5", "0")] == [None, False, -0.5, 0.0]
    assert parse_bounds(None) is parse_bounds("") is None
    assert [parse_bounds(text) for text in ("0,1", ",1")] == [(0.0, 1.0), (-float("inf"), 1.0)]
    for parse, text in ((parse_floor, "low"), (parse_bounds, "1"), (parse_bounds, "0,x")):
        with pytest.raises(dupre.InputError, match=f"must be .* got {text!r}"):
            parse(text)
