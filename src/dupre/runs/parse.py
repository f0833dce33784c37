"""What can be written on the command line, and what it means: values, limits, durations."""

from __future__ import annotations

import re

from dupre.errors import InputError
from dupre.game.semivalues import Semivalue, banzhaf, beta_shapley, leave_one_out, shapley
from dupre.valuation import stopping
from dupre.valuation.question import LeastCore
from dupre.valuation.stopping import Rule
from dupre.wording import did_you_mean

SEMIVALUES: dict[str, Semivalue | LeastCore] = {
    "shapley": shapley,
    "banzhaf": banzhaf,
    "loo": leave_one_out,
    "least-core": LeastCore(),
}
_PART = r"(\d+(?:\.\d+)?)\s*([smhd])"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def semivalue(text: str) -> Semivalue | LeastCore:
    """What `--semivalue` names: shapley, banzhaf, beta:a,b, loo, least-core."""
    name = text.strip().lower().replace("_", "-")
    if name in SEMIVALUES:
        return SEMIVALUES[name]
    kind, _, numbers = name.partition(":")
    try:
        alpha, beta = map(float, numbers.split(","))
    except ValueError:
        alpha = beta = -1.0
    if kind == "beta" and alpha > 0 and beta > 0:
        return beta_shapley(alpha, beta)
    raise InputError(
        f"--semivalue {text!r} is not known{did_you_mean(name, SEMIVALUES)}; expected shapley, banzhaf, "
        "beta:A,B with two numbers above 0 such as beta:4,1, loo or least-core"
    )


def rule(until: str, time: str) -> Rule | None:
    """What `--until` and `--time` ask for; the first that holds ends the run."""
    rules = [_until(until)] if until else []
    if time:
        rules.append(stopping.wall_time(seconds(time)))
    return (rules[0] | rules[1]) if len(rules) == 2 else next(iter(rules), None)


def _until(text: str) -> Rule:
    if text.strip().lower() == "ranking":
        return stopping.ranking_settled()
    found = re.fullmatch(r"\s*(?:±|\+/?-)?\s*([0-9.eE+-]+)\s*", text)
    try:
        distance = float(found[1]) if found else 0.0
    except ValueError:
        distance = 0.0
    if not distance > 0:
        raise InputError(
            f"--until {text!r} is not known; expected a half width such as ±0.01, or ranking"
        )
    return stopping.within(distance)


def seconds(text: str, flag: str = "--time") -> float:
    """A duration such as 90s, 30m, 2h or 1h30m."""
    wanted = text.strip().lower()
    parts = re.findall(_PART, wanted)
    if not parts or re.sub(rf"{_PART}|\s", "", wanted):
        raise InputError(f"{flag} {text!r} is no duration; expected such as 90s, 30m, 2h or 1h30m")
    return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))


def budget(text: str, evaluated: int) -> int:
    """A number of trainings; with a + in front, so many more than there are."""
    number = text.strip()
    if not re.fullmatch(r"\+?\d+", number) or int(number) == 0:
        raise InputError(
            f"--budget {text!r} is no number of trainings; expected such as 60, or +40 for 40 more"
        )
    return int(number) + (evaluated if number.startswith("+") else 0)
