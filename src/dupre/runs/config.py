"""What a run was asked to do, as a TOML file that people can read.

A configuration is written once, when a run directory is made, and rewritten only when its limits
or its machine change: everything else decides what the stored trainings mean.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_type_hints

from dupre.errors import InputError
from dupre.wording import did_you_mean

VERSION = 1

HOLDOUT = 0.25
"""Part of each owner's rows that is held out if nothing else is asked for."""

ELSEWHERE = "elsewhere"
"""In the place of a model whose trainings are done elsewhere."""


@dataclass(frozen=True)
class Data:
    """Whose rows, and how to read them.

    Attributes:
        path: of a table, a directory, or a pattern; absolute.
        owner: column that names the owner of a row.
        target: column to be predicted.
        task: "classification" or "regression"; "" to tell by the target.
        delimiter: of a CSV file; "" for the usual one.
        drop: columns to leave out.
    """

    path: str
    owner: str
    target: str
    task: str = ""
    delimiter: str = ""
    drop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Utility:
    """What the data are used for.

    Attributes:
        model: name or module:object; "" for the usual one, "elsewhere" if dupre trains nothing.
        metric: name or module:object; "" for the usual one.
        validation: file with rows for validation, absolute; "" to hold rows out.
        holdout: part of each owner's rows to hold out; 0 with a validation file.
        empty: utility of no data; None for that of the best constant prediction.
    """

    model: str = ""
    metric: str = ""
    validation: str = ""
    holdout: float = 0.0
    empty: float | None = None


@dataclass(frozen=True)
class Values:
    """What is wanted: semivalues, the first of which decides what is trained.

    `samples` are the coalitions that enter the values; None for all, or 16,384 above 16 owners.
    `repeats` are the trainings of each; None for 1 and a few second ones if the model has seeds.
    """

    semivalues: tuple[str, ...] = ("shapley",)
    samples: int | None = None
    repeats: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Limits:
    """When to stop: trainings, a state of knowledge, a time; whichever comes first."""

    budget: int | None = None
    until: str = ""
    time: str = ""


@dataclass(frozen=True)
class Machine:
    """Where trainings run."""

    jobs: int = 1
    dask: str = ""
    timeout: str = ""
    skip_failures: bool = False


@dataclass(frozen=True)
class History:
    """The commands that made the result what it is, the first one first."""

    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """All of it."""

    data: Data
    utility: Utility
    values: Values = field(default_factory=Values)
    limits: Limits = field(default_factory=Limits)
    machine: Machine = field(default_factory=Machine)
    history: History = field(default_factory=History)

    @property
    def elsewhere(self) -> bool:
        """Whether trainings are done elsewhere and only recorded here."""
        return self.utility.model == ELSEWHERE

    def after(self, command: str) -> Config:
        """With one more command in its history, unless it was the last one."""
        commands = self.history.commands
        if commands[-1:] == (command,):
            return self
        return replace(self, history=History((*commands, command)))

    def conflict(self, other: Config) -> str:
        """In what another configuration means other trainings; empty if it goes on with these."""
        for section in ("data", "utility", "values"):
            ours, theirs = getattr(self, section), getattr(other, section)
            for one in fields(ours):
                mine, new = getattr(ours, one.name), getattr(theirs, one.name)
                if mine != new:
                    return f"{one.name} {_shown(mine)}, not {_shown(new)}"
        return ""


def dumps(config: Config) -> str:
    """The configuration as TOML; what is not set is left out."""
    lines = ["# Written by dupre; read by `dupre resume`.", f"version = {VERSION}"]
    for section in fields(config):
        part = getattr(config, section.name)
        lines += ["", f"[{section.name}]"]
        for one in fields(part):
            if (value := getattr(part, one.name)) is not None:
                lines.append(f"{one.name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def loads(text: str, name: str) -> Config:
    """The configuration in a TOML text.

    Raises:
        InputError: it is none, or of another version; `name` says where it came from.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as cause:
        raise InputError(f"{name} is no TOML: {cause}") from cause
    version = found.pop("version", None)
    if version != VERSION:
        raise InputError(
            f"{name} has version {version}, this dupre knows version {VERSION}; use the dupre that "
            "made the run directory, or make another with --run"
        )
    kinds = get_type_hints(Config)
    _check_known(found, kinds, name)
    parts = {
        section: _section(kinds[section], found.get(section, {}), f"[{section}] of {name}")
        for section in kinds
    }
    return Config(**parts)


def with_changes(part: Any, **changes: Any) -> Any:
    """A section with those changes that are not None."""
    return replace(part, **{key: value for key, value in changes.items() if value is not None})


def _section(kind: Any, table: Any, name: str) -> Any:
    if not isinstance(table, dict):
        raise InputError(f"{name} must be a table, got {table!r}")
    hints = get_type_hints(kind)
    _check_known(table, hints, name)
    values = {}
    for key, value in table.items():
        if isinstance(value, list):
            value = tuple(value)
        elif hints[key] in (float, float | None) and type(value) is int:
            value = float(value)
        if not _fits(value, hints[key]):
            raise InputError(f"{key} in {name} is {value!r}, which is of the wrong kind")
        values[key] = value
    try:
        return kind(**values)
    except TypeError as cause:
        raise InputError(f"{name} is not complete: {cause}") from cause


def _check_known(table: dict[str, Any], known: Any, name: str) -> None:
    for key in table:
        if key not in known:
            raise InputError(
                f"{key} means nothing in {name}{did_you_mean(key, known)}; known are {', '.join(known)}"
            )


def _fits(value: Any, kind: Any) -> bool:
    if kind == tuple[str, ...]:
        return isinstance(value, tuple) and all(isinstance(part, str) for part in value)
    return isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):  # a JSON string is a TOML string, but for one character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "(none)"
    return repr(value) if value not in ("", None) else "(not set)"
