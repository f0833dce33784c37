"""The objects that the texts of a spec name: semivalues, kernels, strategies, stop rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul
from typing import TypeAlias

from dupre._types import Names
from dupre.checks import Bounds, check_bounds, finite
from dupre.errors import InputError
from dupre.game.estimators import Sample, regression
from dupre.game.precedence import Precedence, precedence
from dupre.game.semivalues import Semivalue, shapley
from dupre.predictor.kernels import (
    Constant,
    Kernel,
    Linear,
    LinearInSize,
    Membership,
    Prior,
    Size,
    SlicedWasserstein,
    paper,
    paper_process,
)
from dupre.spec import Spec, Values
from dupre.tables.user_code import is_dotted, load
from dupre.utility.adapters import names_in
from dupre.valuation import stopping
from dupre.valuation.question import LeastCore, parse_values
from dupre.valuation.stopping import Rule
from dupre.valuation.strategies import Active, Strategy, Uniform
from dupre.wording import did_you_mean

PRIORS = {
    "default": Prior(),
    "paper": paper(),
    "gp-binary": paper_process(Membership()),
}
TERMS: dict[str, Kernel] = {
    "data": SlicedWasserstein(p=None, rho=None, eta=None),
    "size": Size(),
    "membership": Membership(),
    "linear": Linear(),
}
RULES: dict[str, Callable[[], Rule]] = {
    "ranking": stopping.ranking_settled,
    "rows": stopping.rows_dominate,
}
"""Reasons to stop by name."""

AnyRule: TypeAlias = Semivalue | Precedence | LeastCore

_PART = r"(\d+(?:\.\d+)?)\s*([smhd])"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True)
class Choices:
    """The objects that stand beside a spec, of which `dupre.value` makes use.

    Attributes:
        semivalues: what is to be valued by; the first decides what is trained.
        estimator: draws coalitions; None for the default.
        stop: when to stop besides the budget; None if nothing is asked for.
        timeout: seconds after which a training has failed; None for no limit.
        prior: what the predictor assumes; None for the default.
        strategy: what to train next; None for the default.
    """

    semivalues: tuple[Semivalue | LeastCore, ...]
    estimator: Sample | None = None
    stop: Rule | None = None
    timeout: float | None = None
    prior: Prior | None = None
    strategy: Strategy | None = None

    def by_joining(self, cohorts: tuple[Names, ...]) -> tuple[AnyRule, ...]:
        """What is to be valued by, Shapley values by this order of joining if there is one."""
        in_turn = precedence(cohorts) if cohorts else shapley
        return tuple(in_turn if one is shapley else one for one in self.semivalues)

    def design(self, n: int) -> int:
        """Coalitions of n owners with which values are no first guess."""
        return (self.strategy or Active()).design(n)


def check_cohorts(spec: Spec) -> None:
    """Raise InputError if an order of joining is stated that no value depends on."""
    asked = spec.values.semivalues
    if spec.data.cohorts is not None and shapley not in map(parse_values, asked):
        raise InputError(
            f"--cohorts is for Shapley values, but --semivalue is {', '.join(asked)}; add "
            "--semivalue shapley, or leave out --cohorts"
        )


def parse_choices(spec: Spec) -> Choices:
    """The objects of a spec; InputError if one is not valid, whatever the data are."""
    values, timeout, default = spec.values, spec.machine.timeout, Values()
    # A default is None, as in a call of `dupre.value`: a result says what was asked beyond that.
    return Choices(
        semivalues=tuple(map(parse_values, values.semivalues)),
        estimator=Sample(regression, values.samples) if values.samples else None,
        stop=_parse_stop(spec.limits.until, spec.limits.time),
        timeout=_parse_duration(timeout, "--timeout") if timeout else None,
        prior=_parse_prior(values),
        strategy=None if values.strategy == default.strategy else _parse_strategy(spec),
    )


def _parse_prior(values: Values) -> Prior | None:
    """The prior of a kernel, "paper" or "data*size + membership", and a mean, "linear" or "0.5".

    None if both are the default.
    """
    default, name = Values(), values.kernel.strip().lower()
    if (values.kernel, values.prior_mean) == (default.kernel, default.prior_mean):
        return None
    if is_dotted(values.kernel):
        kernel = load(values.kernel)
    else:
        kernel = PRIORS[name] if name in PRIORS else _parse_sum(name)
    if not isinstance(kernel, (Kernel, Prior)):
        raise InputError(f"--kernel must name a Kernel or a Prior of dupre.kernels, got {kernel!r}")
    prior = Prior(kernel) if isinstance(kernel, Kernel) else kernel
    mean = values.prior_mean.strip().lower()
    if mean == "constant":
        return prior
    if mean == "linear":
        return replace(prior, mean=LinearInSize())
    try:
        return replace(prior, mean=Constant(float(mean)))
    except ValueError:
        raise InputError(
            f"--prior-mean {values.prior_mean!r} is not known; expected constant (the mean of the "
            "trained utilities), linear (in the logarithm of the rows) or a number such as 0.5"
        ) from None


def _parse_sum(text: str) -> Kernel:
    """A sum of products of terms, each with a variance of its own."""
    terms = [[name.strip() for name in term.split("*")] for term in text.split("+")]
    for name in (name for term in terms for name in term):
        if name not in TERMS:
            known = [*PRIORS, *TERMS]
            raise InputError(
                f"--kernel {text!r}: {name!r} is not known{did_you_mean(name, known)}; expected "
                f"{', '.join(PRIORS)}, a sum of products of {', '.join(TERMS)} such as "
                "data*size+membership, or module:object"
            )
    products = [1.0 * reduce(mul, [TERMS[name] for name in term]) for term in terms]
    return reduce(add, products)


def _parse_strategy(spec: Spec) -> Strategy:
    """The strategy of a spec; InputError if it needs seconds that nobody records."""
    strategy = parse_strategy(spec.values.strategy)
    if spec.is_external and isinstance(strategy, Active) and strategy.per == "second":
        raise InputError(
            f"--strategy {spec.values.strategy!r} needs the seconds of trainings, which tables of "
            "trainings done elsewhere do not hold; take active, or Valuer.record_seconds in Python"
        )
    return strategy


def parse_strategy(text: str) -> Strategy:
    """The strategy of "active", "active:Ada,Ben", "half-active", "active-per-second", "uniform"."""
    name, colon, owners = text.strip().partition(":")
    name = name.strip().lower()
    if name == "uniform" and not colon:
        return Uniform()
    if name not in ("active", "half-active", "active-per-second"):
        raise InputError(
            f"--strategy {text!r} is not known; expected active, half-active (half of the budget "
            "drawn uniformly), active-per-second (what helps most for its time) or uniform; "
            "active:OWNER or active:OWNER,OWNER spends it on these"
        )
    listed = names_in(owners) if owners.startswith("[") else map(str.strip, owners.split(","))
    return Active(
        uniform=name == "half-active",
        focus=tuple(listed) if colon else None,  # type: ignore[arg-type]
        per="second" if name == "active-per-second" else "training",
    )


def parse_floor(text: str | None) -> float | bool | None:
    """What `ModelUtility` takes: a number, False for none, None for the default."""
    word = (text or "").strip().lower()
    if not word or word == "none":
        return False if word else None
    try:
        return finite(float(word), "--floor")
    except ValueError as cause:
        raise InputError(f"--floor must be a number or none, got {text!r}") from cause


def parse_bounds(text: str | None) -> Bounds | None:
    """Two numbers with a comma between them, an end without a bound left out; None if empty."""
    if not (text or "").strip():
        return None
    try:
        low, high = (float(part) if part.strip() else None for part in str(text).split(","))
    except ValueError as cause:
        raise InputError(f"--bounds must be two numbers such as 0,1 or ,1, got {text!r}") from cause
    return check_bounds((low, high))


def parse_budget(text: str, known: int) -> int:
    """A number of trainings; with a + in front, that many more than are known."""
    number = text.strip()
    if not re.fullmatch(r"\+?\d+", number) or int(number) == 0:
        raise InputError(
            f"--budget {text!r} is no number of trainings; expected such as 60, or +40 for 40 more"
        )
    return int(number) + (known if number.startswith("+") else 0)


def _parse_stop(until: str | None, time: str | None) -> Rule | None:
    """The first of the two that holds ends the run."""
    rules = [_parse_until(until)] if until else []
    if time:
        rules.append(stopping.wall_time(_parse_duration(time, "--time")))
    return (rules[0] | rules[1]) if len(rules) == 2 else next(iter(rules), None)


def _parse_until(text: str) -> Rule:
    if (rule := RULES.get(text.strip().lower())) is not None:
        return rule()
    # Keyboards without ± write +-, or the number alone.
    found = re.fullmatch(r"\s*(?:±|\+/?-)?\s*([0-9.eE+-]+)\s*", text)
    try:
        distance = float(found[1]) if found else 0.0
    except ValueError:
        distance = 0.0
    if not distance > 0:
        raise InputError(
            f"--until {text!r} is not known; expected a half width such as ±0.01, or "
            f"{' or '.join(RULES)}"
        )
    return stopping.within(distance)


def _parse_duration(text: str, flag: str) -> float:
    """Seconds of a duration such as 90s, 30m, 2h or 1h30m."""
    wanted = text.strip().lower()
    parts = re.findall(_PART, wanted)  # a number without a unit is refused: 90 of what?
    seconds = math.fsum(float(number) * _SECONDS[unit] for number, unit in parts)
    if re.sub(rf"{_PART}|\s", "", wanted) or not 0 < seconds < math.inf:
        raise InputError(
            f"{flag} {text!r} is no duration above zero; expected such as 90s, 30m, 2h or 1h30m"
        )
    return seconds
