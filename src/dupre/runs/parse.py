"""Options as objects: the texts of the command and of config.toml are parsed here.

Names of semivalues are parsed in `game.semivalues`, those of kernels and strategies in
`valuation.names`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from dupre._types import Names
from dupre.checks import finite
from dupre.errors import InputError
from dupre.game.coalitions import find_owner, from_names, to_names
from dupre.game.semivalues import Semivalue
from dupre.runs.config import Config, ValuesSection
from dupre.tables.user_code import is_dotted, load
from dupre.utility.adapters import names_in
from dupre.utility.limits import Bounds, check_bounds
from dupre.valuation import stopping
from dupre.valuation.names import Prior, parse_prior, parse_strategy, with_mean
from dupre.valuation.question import LeastCore, parse_values
from dupre.valuation.stopping import Rule
from dupre.valuation.strategies import Strategy

_PART = r"(\d+(?:\.\d+)?)\s*([smhd])"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True)
class Options:
    """What the texts of a configuration ask for.

    Attributes:
        semivalues: what is to be valued by; the first decides what is trained.
        stop: when to stop besides the budget; None if nothing is asked for.
        timeout: seconds after which a training has failed; None for no limit.
        prior: what the predictor assumes; None for the default.
        strategy: what to train next; None for the default.
    """

    semivalues: tuple[Semivalue | LeastCore, ...]
    stop: Rule | None
    timeout: float | None
    prior: Prior | None = None
    strategy: Strategy | None = None


def parse_options(config: Config) -> Options:
    """The options of a configuration; InputError if one is not valid, whatever the data are."""
    machine = config.machine
    if machine.jobs == 0 or machine.jobs < -1:
        raise InputError(f"--jobs must be 1 or more, or -1 for one per core, got {machine.jobs}")
    if machine.dask and machine.jobs != 1:
        raise InputError("state --jobs for this machine or --dask for a cluster, not both")
    return Options(
        semivalues=tuple(map(parse_values, config.values.semivalues)),
        stop=_parse_stop(config.limits.until, config.limits.time),
        timeout=_parse_duration(machine.timeout, "--timeout") if machine.timeout else None,
        prior=_parse_prior(config.values),
        strategy=parse_strategy(wanted) if (wanted := config.values.strategy) else None,
    )


def _parse_prior(values: ValuesSection) -> Prior | None:
    """The kernel and the mean that are asked for; None if neither is."""
    if values.kernel is None and values.prior_mean is None:
        return None
    kernel, mean = values.kernel or "default", values.prior_mean or "constant"
    return with_mean(load(kernel), mean) if is_dotted(kernel) else parse_prior(kernel, mean)


def parse_budget(text: str, known: int) -> int:
    """A number of trainings; with a + in front, that many more than are known."""
    number = text.strip()
    if not re.fullmatch(r"\+?\d+", number) or int(number) == 0:
        raise InputError(
            f"--budget {text!r} is no number of trainings; expected such as 60, or +40 for 40 more"
        )
    return int(number) + (known if number.startswith("+") else 0)


def parse_members(text: str, owners: Names) -> Names:
    """The owners in a text such as "A,C", or in a JSON list if their names hold commas."""
    if text in owners:
        return (text,)
    if text.startswith("["):
        names = names_in(text)
    else:
        names = tuple(filter(None, map(str.strip, text.split(","))))
        if not names:
            raise InputError(f"{text!r} names no owner; expected such as A,C")
    names = tuple(find_owner(name, owners) for name in names)
    return to_names(from_names(names, owners), owners)


def parse_floor(text: str) -> float | bool | None:
    """What `ModelUtility` takes: a number, False for none, None for the default."""
    word = text.strip().lower()
    if not word or word == "none":
        return False if word else None
    try:
        return finite(float(word), "--floor")
    except ValueError as cause:
        raise InputError(f"--floor must be a number or none, got {text!r}") from cause


def parse_bounds(text: str) -> Bounds | None:
    """Two numbers with a comma between them, an end without a bound left out; None if empty."""
    if not text.strip():
        return None
    try:
        low, high = (float(part) if part.strip() else None for part in text.split(","))
    except ValueError as cause:
        raise InputError(f"--bounds must be two numbers such as 0,1 or ,1, got {text!r}") from cause
    return check_bounds((low, high))


def _parse_stop(until: str, time: str) -> Rule | None:
    """The first of the two that holds ends the run."""
    rules = [_parse_until(until)] if until else []
    if time:
        rules.append(stopping.wall_time(_parse_duration(time, "--time")))
    return (rules[0] | rules[1]) if len(rules) == 2 else next(iter(rules), None)


WORDS: dict[str, Callable[[], Rule]] = {
    "ranking": stopping.ranking_settled,
    "rows": stopping.rows_dominate,
}
"""Reasons to stop by name."""


def _parse_until(text: str) -> Rule:
    if (rule := WORDS.get(text.strip().lower())) is not None:
        return rule()
    found = re.fullmatch(r"\s*(?:±|\+/?-)?\s*([0-9.eE+-]+)\s*", text)
    try:
        distance = float(found[1]) if found else 0.0
    except ValueError:
        distance = 0.0
    if not distance > 0:
        raise InputError(
            f"--until {text!r} is not known; expected a half width such as ±0.01, or "
            f"{' or '.join(WORDS)}"
        )
    return stopping.within(distance)


def _parse_duration(text: str, flag: str) -> float:
    """Seconds of a duration such as 90s, 30m, 2h or 1h30m."""
    wanted = text.strip().lower()
    parts = re.findall(_PART, wanted)
    seconds = math.fsum(float(number) * _SECONDS[unit] for number, unit in parts)
    if re.sub(rf"{_PART}|\s", "", wanted) or not 0 < seconds < math.inf:
        raise InputError(
            f"{flag} {text!r} is no duration above zero; expected such as 90s, 30m, 2h or 1h30m"
        )
    return seconds
