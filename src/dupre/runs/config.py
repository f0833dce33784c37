"""What a run was asked to do, as a TOML file that people can read.

A configuration is written when a run directory is made. Later only its limits, its machine and its
history change: everything else decides what the stored trainings mean.
"""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_type_hints

from dupre.checks import LARGEST
from dupre.errors import InputError
from dupre.wording import did_you_mean, quote

VERSION = 1

PER_OWNER = 6
"""Trainings per owner if neither a budget nor another limit is asked for."""

HOLDOUT = 0.25
"""Part of each owner's rows that is held out by default."""

EXTERNAL = "elsewhere"
"""Instead of a model, if trainings are done elsewhere."""

HELD_BY = ("by_contents", "used_only", "copies_alike")
"""Settings that say by which rule rows are held out: that of the version that began the run."""

LATEST_RULE = (True, True, True)
"""These settings of a new run, the last of its section."""

_MOST = 2**53
_BOUNDS = {
    "holdout": (0, 1),
    "empty": (-LARGEST, LARGEST),
    "samples": (1, _MOST),
    "repeats": (1, _MOST),
    "seed": (0, math.inf),
    "budget": (1, _MOST),
    "jobs": (-1, _MOST),
    "amount": (0, _MOST),
    "minimum": (0, _MOST),
}
"""Between what a number must lie; what depends on the data is checked with them."""


@dataclass(frozen=True)
class DataSection:
    """Whose rows, and how to read them: the options of `dupre value` of the same names.

    `path` is absolute. A text is "" where nothing was stated.
    """

    path: str
    owner: str
    target: str
    task: str = ""
    delimiter: str = ""
    drop: tuple[str, ...] = ()
    decimal: str = ""
    encoding: str = ""
    sheet: str = ""
    skip_empty: bool = False


@dataclass(frozen=True)
class UtilitySection:
    """What the data are used for: the options of `dupre value` of the same names.

    `model` is "elsewhere" if dupre trains nothing. `validation` is absolute; without it,
    `holdout` is the part of each owner's rows to hold out. If `by_contents`, the contents of rows
    decide which ones; in earlier runs the names of their owners did. If `used_only`, only
    what the model is given counts as contents; in earlier runs columns left out did too. If
    `copies_alike`, copies of an owner keep the same rows also where a class must not lose all of
    its rows; in earlier runs only the first of them did. A text is "" where nothing was stated.
    """

    model: str = ""
    metric: str = ""
    validation: str = ""
    holdout: float = 0.0
    empty: float | None = None
    floor: str = ""
    bounds: str = ""
    by_contents: bool = False
    used_only: bool = False
    copies_alike: bool = False


@dataclass(frozen=True)
class ValuesSection:
    """What is computed: the options of `dupre value` of the same names.

    The first of the `semivalues` decides what is trained. None stands for the default.
    """

    semivalues: tuple[str, ...] = ("shapley",)
    samples: int | None = None
    repeats: int | None = None
    seed: int = 0
    kernel: str | None = None
    prior_mean: str | None = None
    strategy: str | None = None


@dataclass(frozen=True)
class LimitsSection:
    """When to stop: number of trainings, precision, time; whichever comes first."""

    budget: int | None = None
    until: str = ""
    time: str = ""


@dataclass(frozen=True)
class MachineSection:
    """Where trainings run."""

    jobs: int = 1
    dask: str = ""
    timeout: str = ""
    skip_failures: bool = False


@dataclass(frozen=True)
class PageSection:
    """Title, contact and logo of the page and the statements; people may edit them."""

    title: str = ""
    contact: str = ""
    logo: str = ""


@dataclass(frozen=True)
class PaymentSection:
    """The last terms of `dupre pay`; no amount if it was never asked."""

    amount: float | None = None
    currency: str = ""
    negative: str = "zero"
    minimum: float = 0.0


@dataclass(frozen=True)
class HistorySection:
    """The commands of the run, in order."""

    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """All sections."""

    data: DataSection
    utility: UtilitySection
    values: ValuesSection = field(default_factory=ValuesSection)
    limits: LimitsSection = field(default_factory=LimitsSection)
    machine: MachineSection = field(default_factory=MachineSection)
    page: PageSection = field(default_factory=PageSection)
    payment: PaymentSection = field(default_factory=PaymentSection)
    history: HistorySection = field(default_factory=HistorySection)

    @property
    def is_external(self) -> bool:
        """Whether trainings are done elsewhere and only recorded here."""
        return self.utility.model == EXTERNAL

    def after(self, command: str) -> Config:
        """With one more command in its history, unless it is the last one again."""
        commands = self.history.commands
        if commands[-1:] == (command,):
            return self
        return replace(self, history=HistorySection((*commands, command)))

    def conflict(self, other: Config) -> str:
        """The first difference by which another configuration needs other trainings, or ""."""
        for section in ("data", "utility", "values"):
            ours, theirs = getattr(self, section), getattr(other, section)
            for one in fields(ours):
                mine, new = getattr(ours, one.name), getattr(theirs, one.name)
                if mine != new:
                    return f"{one.name} {_show(mine)}, not {_show(new)}"
        return ""


def dumps(config: Config) -> str:
    """The configuration as TOML; values that are None are left out."""
    lines = ["# Written by dupre; read by `dupre resume`.", f"version = {VERSION}"]
    for section in fields(config):
        part = getattr(config, section.name)
        lines += ["", f"[{section.name}]"]
        for one in fields(part):
            if (value := getattr(part, one.name)) is not None:
                lines.append(f"{one.name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def loads(text: str, name: str) -> Config:
    """The configuration in a TOML text; InputError, with the `name` of its file, if it is none."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as cause:
        raise InputError(f"{name} is not TOML: {cause}") from cause
    version = found.pop("version", None)
    if version != VERSION:
        raise InputError(
            f"{name} has version {version}, this dupre knows version {VERSION}; use the dupre that "
            "made the run directory, or make another by `dupre value ... --run OTHER`"
        )
    kinds = get_type_hints(Config)
    _check_known(found, kinds, name)
    parts = {
        section: _parse_section(kinds[section], found.get(section, {}), f"[{section}] of {name}")
        for section in kinds
    }
    return Config(**parts)


def with_changes(part: Any, **changes: Any) -> Any:
    """A section with those changes that are not None."""
    return replace(part, **{key: value for key, value in changes.items() if value is not None})


def _parse_section(kind: Any, table: Any, name: str) -> Any:
    if not isinstance(table, dict):
        raise InputError(f"{name} must be a table, got {table!r}")
    hints = get_type_hints(kind)
    _check_known(table, hints, name)
    values = {}
    for key, given in table.items():
        whole = hints[key] in (float, float | None) and type(given) is int
        value = tuple(given) if isinstance(given, list) else _as_float(given) if whole else given
        if not _is_of_type(value, hints[key]):
            raise InputError(f"{key} in {name} is {quote(given)}, which is of the wrong type")
        _check_range(key, value, name)
        values[key] = value
    try:
        return kind(**values)
    except TypeError as cause:
        raise InputError(f"{name} is not complete: {cause}") from cause


def _as_float(number: int) -> float:
    return float(number) if abs(number) <= LARGEST else math.inf


def _check_range(key: str, value: Any, name: str) -> None:
    low, high = _BOUNDS.get(key, (-math.inf, math.inf))
    if type(value) in (int, float) and not low <= value <= high:
        raise InputError(f"{key} in {name} is {value!r}, expected {low:g} to {high:g}")
    if key == "semivalues" and not value:
        raise InputError(f"{key} in {name} names none; expected such as 'shapley'")
    if any("\0" in str(text) for text in (value if isinstance(value, tuple) else (value,))):
        raise InputError(f"{key} in {name} holds a zero byte; remove it")


def _check_known(table: dict[str, Any], known: Any, name: str) -> None:
    for key in table:
        if key not in known:
            raise InputError(
                f"{key} is not known in {name}{did_you_mean(key, known)}; expected one of "
                f"{', '.join(known)}"
            )


def _is_of_type(value: Any, kind: Any) -> bool:
    if kind == tuple[str, ...]:
        return isinstance(value, tuple) and all(isinstance(part, str) for part in value)
    return isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):  # a JSON string is a TOML string, except for one character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "(none)"
    return repr(value) if value not in ("", None) else "(not set)"
