"""What is asked of a run, as plain data: one structure that is config.toml and a verb's options.

Every setting has one name, in one section, with one check. Live objects stand beside it: what its
texts name (a model, a kernel, a stop rule) is made where it is used. A setting that is None was not
stated, and is not written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from dupre.checks import LARGEST
from dupre.errors import InputError
from dupre.wording import did_you_mean, quote

VERSION = 2
"""Of config.toml. Another version is refused: what its settings mean may have changed."""

PER_OWNER = 6
"""Trainings per owner if neither a budget nor another limit is asked for."""

FOLDS, FOLDS_OF_MANY, MANY_ROWS = 10, 5, 2_000
"""Folds by default, and above so many rows, where one deal of them matters less."""

EXTERNAL = "elsewhere"
"""Instead of a model, if trainings are done elsewhere."""

_MOST = 2**53  # whole numbers up to here are exact as floats, which limits are compared with

_MONEY = r"\s*([A-Za-z]{3}|[€£$¥])?\s*"
_PRICE = re.compile(rf"{_MONEY}(\d{{1,15}}(?:\.\d+)?){_MONEY}/\s*h\s*")

# A zero byte ends a path for the operating system: Python then raises what is no message.
Text = Annotated[str, Meta(pattern="^[^\0]*$")]
Count = Annotated[int, Meta(ge=1, le=_MOST)]
Amount = Annotated[float, Meta(ge=0, le=_MOST)]


class Price(Struct, frozen=True):
    """What an hour of a run costs.

    Attributes:
        per_hour: a number above zero.
        currency: such as CHF; "" if it is not stated.
    """

    per_hour: float
    currency: str = ""

    def of(self, seconds: float) -> str:
        """What so many seconds cost, in words."""
        amount = f"{self.per_hour * seconds / 3600:,.2f}"
        return f"{self.currency} {amount}" if self.currency else f"{amount} at {self.per_hour:g}/h"


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of config.toml."""


class Files(Section, frozen=True, kw_only=True):
    """How files are written, where that is not as usual.

    Attributes:
        delimiter: between the values of a line of CSV, one character; by default a comma, or a tab
            for .tsv. A tab may be written as in a shell, or "tab".
        decimal: sign before the decimals of a number in CSV: a point or a comma.
        encoding: of CSV and JSON, by one of Python's names, such as "cp1252".
        sheet: name of the sheet of an Excel file; by default the first.
        numbers: how cells of a column are written if that can be read in two ways, such as
            "price=thousands-comma": a column and one of `dupre.tables.numbers.FORMS`.
    """

    delimiter: Text | None = None
    decimal: Text = "."
    encoding: Text = "utf-8"
    sheet: Text | None = None
    numbers: tuple[Text, ...] = ()


class Data(Files, frozen=True):
    """Whose rows, and how to read them.

    Attributes:
        path: a file; or a directory or a pattern such as "data/*.csv" with one file per owner.
            The name of such a file is that of the owner, unless all files have an owner column.
        owner: name of the owner column; it is added if the names of the files are the owners.
        target: name of the column to predict.
        task: "classification" or "regression"; by default the targets decide.
        drop: names of columns that are not used; what they hold is not checked.
        skip_empty: whether to leave out rows without an owner or a target.
        cohorts: name of the column that says when an owner joined: a number, a date or a text that
            sorts, the same in all its rows. Those who joined later are worth what they add.
    """

    path: Text
    owner: Text
    target: Text
    task: Text | None = None
    drop: tuple[Text, ...] = ()
    skip_empty: bool = False
    cohorts: Text | None = None


class Utility(Section, frozen=True):
    """What the data are used for: the options of `dupre value` of the same names.

    `model` is "elsewhere" if dupre trains nothing. Without a file of `validation` rows, the owners'
    rows are split into `folds`, or `holdout` is the part of them to score models on.
    """

    model: Text | None = None
    metric: Text | None = None
    validation: Text | None = None
    holdout: Annotated[float, Meta(ge=0, le=1)] | None = None
    folds_by: Text | None = None
    folds_in_time: Text | None = None
    folds: Annotated[int, Meta(ge=2, le=_MOST)] | None = None
    equal_owners: bool = False
    empty: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)] | None = None
    floor: Text | None = None
    bounds: Text | None = None

    def __post_init__(self) -> None:
        """Two statements about the rows to score on cannot both be meant."""
        folds = self.folds or self.folds_by or self.folds_in_time
        stated = {
            "--validation FILE": bool(self.validation),
            "--holdout PART": self.holdout is not None,
            "--folds": bool(folds),
        }
        if sum(stated.values()) > 1:
            told = " or ".join(name for name, one in stated.items() if one)
            raise InputError(f"state {told}, not both")
        if self.folds_by and self.folds_in_time:
            raise InputError("state --folds-by COLUMN or --folds-in-time COLUMN, not both")
        if self.validation and self.equal_owners:
            raise InputError("--equal-owners weighs owners' rows, but --validation has its own")


class Values(Section, frozen=True):
    """What is computed; the first of the `semivalues` decides what is trained."""

    semivalues: Annotated[tuple[Text, ...], Meta(min_length=1)] = ("shapley",)
    samples: Count | None = None
    repeats: Count | None = None
    seed: Annotated[int, Meta(ge=0)] = 0
    kernel: Text = "default"
    prior_mean: Text = "constant"
    strategy: Text = "active"


class Limits(Section, frozen=True):
    """When to stop: number of trainings, precision, time; whichever comes first."""

    budget: Count | None = None
    until: Text | None = None
    time: Text | None = None


class Machine(Section, frozen=True):
    """Where trainings run, and what an hour there costs."""

    jobs: int = 1  # a worker takes about a second to start, longer than small models train
    dask: Text | None = None
    timeout: Text | None = None
    skip_failures: bool = False
    price: Text | None = None

    def __post_init__(self) -> None:
        """No number of processes, or two places to train in, cannot be meant."""
        if self.jobs == 0 or not -1 <= self.jobs <= _MOST:
            raise InputError(f"--jobs must be 1 or more, or -1 for one per core, got {self.jobs}")
        if self.dask and self.jobs != 1:
            raise InputError("state --jobs for this machine or --dask for a cluster, not both")
        _ = self.hourly  # refuses what is no price

    @property
    def hourly(self) -> Price | None:
        """The price as a number, of "1.20/h", "CHF 1.20/h" or "1.20 CHF/h"."""
        if self.price is None:
            return None
        found = _PRICE.fullmatch(self.price)
        if found is None or (found[1] and found[3]) or not float(found[2]) > 0:
            raise InputError(
                f"--price must be that of an hour, above zero, such as 1.20/h or CHF 1.20/h, got "
                f"{self.price!r}"
            )
        return Price(float(found[2]), found[1] or found[3] or "")


class Page(Section, frozen=True):
    """Title, contact and logo of the page and the statements; people may edit them."""

    title: Text = ""
    contact: Text = ""
    logo: Text = ""


class Payment(Section, frozen=True):
    """The last terms of `dupre pay`, those of `Valuation.payments`; no amount if never asked."""

    amount: float | None = None
    currency: Text = ""
    negative: Text = "zero"
    minimum: Amount = 0.0
    for_these_rows: bool = False
    anyway: bool = False

    def __post_init__(self) -> None:
        """Nothing to share cannot be meant."""
        if self.amount is not None and not self.amount > 0:  # NaN neither
            raise InputError(f"--amount must be above zero, got {self.amount:,.12g}")


class History(Section, frozen=True):
    """What the run has seen: its commands, in order, and the columns that models are given.

    `forms` say how numbers and dates were written when the run began, such as
    "share=decimal-point %": later rows are read in the same way. None if that is not yet decided.
    `ledger` is the digest of the last payment that was booked.
    """

    commands: tuple[Text, ...] = ()
    columns: tuple[Text, ...] = ()
    forms: tuple[Text, ...] | None = None
    ledger: Text = ""


class Spec(Section, frozen=True):
    """Everything that is asked of a run."""

    data: Data
    utility: Utility = Utility()
    values: Values = Values()
    limits: Limits = Limits()
    machine: Machine = Machine()
    page: Page = Page()
    payment: Payment = Payment()
    history: History = History()

    @property
    def is_external(self) -> bool:
        """Whether trainings are done elsewhere and only recorded here."""
        return self.utility.model == EXTERNAL

    def change(self, **settings: Any) -> Spec:
        """With other settings by their names, checked; those that are None stay as they are."""
        return _parse(_by_section(settings, _as_tables(self)), "")

    def without_limits(self) -> Spec:
        """With no limit stated."""
        return replace(self, limits=Limits())

    def after(
        self, command: str, columns: tuple[str, ...], forms: tuple[str, ...] | None = None
    ) -> Spec:
        """With what the run has seen; a command that is the last one again counts once."""
        commands = self.history.commands
        more = () if commands[-1:] == (command,) else (command,)
        seen = replace(self.history, commands=(*commands, *more), columns=columns, forms=forms)
        return replace(self, history=seen)

    def conflict(self, other: Spec) -> str:
        """The first difference by which another spec needs other trainings, or ""."""
        for section in ("data", "utility", "values"):
            ours, theirs = asdict(getattr(self, section)), asdict(getattr(other, section))
            for name, mine in ours.items():
                if mine != theirs[name]:
                    return f"{name} {_show(name, mine)}, not {_show(name, theirs[name])}"
        return ""


SECTIONS: dict[str, type[Section]] = {
    "data": Data,
    "utility": Utility,
    "values": Values,
    "limits": Limits,
    "machine": Machine,
    "page": Page,
    "payment": Payment,
    "history": History,
}
"""The tables of config.toml."""

_SECTION_OF = {name: key for key, kind in SECTIONS.items() for name in kind.__struct_fields__}


def spec_of(**settings: Any) -> Spec:
    """The spec of these settings by their names, checked; those that are None are not stated."""
    return _parse(_by_section(settings, {}), "")


def dumps(spec: Spec) -> str:
    """The spec as TOML."""
    import tomli_w  # only commands that write need it

    head = "# Written by dupre; read by `dupre resume`.\n"
    return head + tomli_w.dumps({"version": VERSION, **_as_tables(spec)})


def loads(text: str, name: str) -> Spec:
    """The spec in a TOML text; InputError, with the `name` of its file, if it is none."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as cause:
        raise InputError(f"{name} is not TOML: {cause}") from cause
    # A file that people write says none; one that an earlier dupre wrote says which.
    version = found.pop("version", VERSION)
    if version != VERSION:
        raise InputError(
            f"{name} has version {version}, this dupre knows version {VERSION}; use the dupre that "
            "made the run directory, or make another by `dupre value ... --run OTHER`"
        )
    # msgspec refuses unknown names too, but does not say which was meant.
    _check_names(found, name, tuple(SECTIONS))
    for section, table in found.items():
        if isinstance(table, dict):
            fields = SECTIONS[section].__struct_fields__
            _check_names(table, f"[{section}] of {name}", fields)
    return _parse(found, name)


def _parse(found: Mapping[str, Any], name: str) -> Spec:
    """The spec of tables from a file of this `name`, or from options if it is ""."""
    try:
        return convert(found, Spec)
    except ValidationError as error:
        raise InputError(_explain(error, found, name)) from error


def _by_section(settings: Mapping[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    """The tables with settings put where they belong."""
    for name, setting in settings.items():
        if setting is not None:
            tables.setdefault(_SECTION_OF[name], {})[name] = setting
    return tables


def _as_tables(spec: Spec) -> dict[str, Any]:
    """The settings by section, without those that are not stated."""
    return {
        section: {name: one for name, one in asdict(part).items() if one is not None}
        for section, part in asdict(spec).items()
    }


def _explain(error: ValidationError, found: Any, name: str) -> str:
    """Which setting is wrong, what was found and what is expected."""
    text, _, path = str(error).partition(" - at `$")
    keys = re.findall(r"\w*[a-z]\w*", path)
    for key in keys:
        found = found[key]
    where = "".join(f"[{key}] of " for key in keys[:1]) + name
    what = text[:1].lower() + text[1:]
    if len(keys) < 2:
        return f"{where}: {what}" if name else text
    setting = f"{keys[1]} in {where}" if name else _flag(keys[1])
    return f"{setting} is {quote(found)}, {what}; correct it"


def _flag(setting: str) -> str:
    """What the command calls a setting."""
    named = {"path": "DATA", "semivalues": "--semivalue"}
    return named.get(setting, f"--{setting.replace('_', '-')}")


def _check_names(table: Mapping[str, Any], where: str, names: tuple[str, ...]) -> None:
    """Raise InputError if a table holds another name."""
    for key in table:
        if key not in names:
            raise InputError(
                f"{key} is not known in {where}{did_you_mean(key, names)}; expected one of "
                f"{', '.join(names)}"
            )


def _show(name: str, value: Any) -> str:
    if value is None and name == "folds":  # after `holdout`, which leaves no room for a default
        return f"{FOLDS} (the default; {FOLDS_OF_MANY} above {MANY_ROWS:,} rows)"
    if isinstance(value, tuple):
        return ", ".join(value) or "(none)"
    return repr(value) if value not in ("", None) else "(not set)"
