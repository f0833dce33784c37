"""Arguments and options of the verbs; those that are settings are made from the spec.

A new setting is a field of `dupre.spec`, a row of `SETTINGS` and a name in the lists of its verbs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import update_wrapper
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from msgspec.structs import asdict, replace

from dupre.errors import InputError
from dupre.spec import SECTIONS, History, Payment, Spec, Utility, spec_of
from dupre.wording import join_list

Verb = Callable[..., None]

SETTINGS = {
    "owner": ("COLUMN", "Column that names the owner of a row."),
    "target": ("COLUMN", "Column that a model predicts."),
    "task": ("NAME", "classification or regression; by default the target decides."),
    "cohorts": (
        "COLUMN",
        "Column of a number, date or text that sorts and says when an owner joined: its value is "
        "the Shapley value among those who joined with it, added to all who joined before.",
    ),
    "drop": ("COLUMN", "Leave a column out; repeatable."),
    "skip_empty": ("", "Leave out rows without an owner or a target, and say how many."),
    "delimiter": ("C", "Between the cells of a CSV file."),
    "decimal": ("C", "Sign before decimals in a CSV file; by default a point."),
    "encoding": ("NAME", "Of a text file, such as cp1252; by default UTF-8."),
    "numbers": (
        "COLUMN=FORM",
        "How a column is written if it can be read in two ways: decimal-point, thousands-comma, "
        "decimal-comma, thousands-point, day-first, month-first, year-first, or text; repeatable.",
    ),
    "sheet": ("NAME", "Of an Excel file; by default the first sheet."),
    "model": (
        "NAME",
        "logistic, ridge, forest, boosting, mlp, knn, or module:object for any scikit-learn "
        "estimator, such as one in a file of this directory.",
    ),
    "metric": ("NAME", "scikit-learn scorer or module:object; by default accuracy or r2."),
    "validation": ("FILE", "Rows to score models on; no owner trains on them."),
    "folds": (
        "K",
        "Without --validation every row validates once, in one of K folds: K trainings for each "
        "coalition; by default 10, or 5 above 2,000 rows.",
    ),
    "folds_by": ("COLUMN", "Keep rows with the same entry, such as a patient, in one fold."),
    "folds_in_time": ("COLUMN", "Score models on rows that come later than those they are of."),
    "holdout": ("PART", "Score models on this part of the rows instead, such as 0.2."),
    "equal_owners": ("", "Weigh the validation rows of every owner the same."),
    "empty": (
        "U",
        "Utility of no data, such as that of a blind guess; for models trained here by default "
        "that of the best constant prediction.",
    ),
    "floor": (
        "U",
        "Lower utilities count as this one, or none; by default that of no data for r2.",
    ),
    "bounds": (
        "LOW,HIGH",
        "Between which utilities lie, such as 0,1 or ,1; by default those of a named metric.",
    ),
    "semivalues": (
        "NAME",
        "shapley (the default), banzhaf, beta:A,B, loo or least-core; repeat it for several from "
        "the same trainings: the first decides what is trained.",
    ),
    "samples": (
        "N",
        "Coalitions that enter the values; by default all, or 16,384 above 16 owners.",
    ),
    "repeats": (
        "N",
        "Trainings of each coalition; by default 1, and a few second ones that measure what the "
        "seed of a random model changes. 1 switches these off.",
    ),
    "seed": ("N", "Of everything random; by default 0."),
    "kernel": (
        "NAME",
        "What makes coalitions alike: default, paper, gp-binary, a sum of products of data, size, "
        "membership and linear such as data*size+membership, or module:object.",
    ),
    "prior_mean": (
        "WHAT",
        "Utilities expected before any is known: constant (the default), linear in the logarithm "
        "of the rows, or a number.",
    ),
    "strategy": (
        "NAME",
        "What to train next: active (the default), half-active, uniform; active:OWNER for what "
        "helps to value one owner; active-per-second for what helps most for its time.",
    ),
    "budget": (
        "N",
        "Coalitions to train at most; by default 6 per owner, or no limit with --until or --time.",
    ),
    "until": (
        "WHAT",
        "Stop at intervals of, say, ±0.01; or once the ranking is settled: ranking; or once only "
        "more validation rows would help: rows.",
    ),
    "time": ("T", "Stop after 90s, 30m, 2h or 1h30m."),
    "jobs": ("N", "Processes to train in; -1 for one per core."),
    "dask": ("ADDRESS", "Train on the Dask cluster of this scheduler."),
    "timeout": ("T", "A training that takes longer has failed."),
    "skip_failures": (
        "",
        "If a training fails, go on and predict its coalition; or stop, and train it again when "
        "the run goes on (the default).",
    ),
    "price": ("P", "Of an hour of the run, such as 1.20/h: says what more trainings cost."),
    "amount": ("X", "To share among the owners."),
    "currency": ("CODE", "Such as CHF."),
    "negative": (
        "RULE",
        "zero (the default): who is at or below zero gets nothing; owe: who is below zero pays.",
    ),
    "minimum": ("X", "What everybody gets at least."),
    "anyway": ("", "Pay although the values are not payable; it is printed with every payment."),
}
"""Settings of a spec that are options: the placeholder of their value, and the help."""

FLAGS = {
    "semivalues": "--semivalue",
    "skip_empty": "--skip-empty",
    "skip_failures": "--skip-failures/--retry-failures",
    "anyway": "--anyway",
}
"""Options that are not called like their setting, or have no value."""


def states(names: str, *, required: str = "") -> Callable[[Verb], Verb]:
    """A verb whose parameter `stated` holds the settings of these names, given as options."""
    kinds = {name: kind for one in SECTIONS.values() for name, kind in get_type_hints(one).items()}
    options = {}
    for name in names.split():
        metavar, text = SETTINGS[name]
        flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
        kind, parse = _OPTION_OF.get(kinds[name], (str, None))
        option = typer.Option(flag, metavar=metavar or None, help=text, parser=parse)
        if name in required.split():
            options[name] = _parameter(name, kind, option, Parameter.empty)
        else:
            options[name] = _parameter(name, kind | None, option, None)
    return in_place_of("stated", options, dict)


def in_place_of(
    parameter: str, options: Mapping[str, Parameter], build: Callable[..., Any]
) -> Callable[[Verb], Verb]:
    """A verb with options in place of one of its parameters, which `build` makes of them.

    Typer reads options off a signature, one parameter each; a structure cannot be one.
    """

    def decorate(verb: Verb) -> Verb:
        def command(**given: Any) -> None:
            found = {name: given.pop(name, one.default) for name, one in options.items()}
            verb(**{parameter: build(**found)}, **given)

        own = dict(signature(verb, eval_str=True).parameters)
        del own[parameter]
        every = [
            one.replace(kind=Parameter.KEYWORD_ONLY) for one in (*options.values(), *own.values())
        ]
        update_wrapper(command, verb)
        command.__signature__ = Signature(every)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in every}
        return command

    return decorate


def as_spec(data: str | None, stated: Mapping[str, Any], **more: Any) -> Spec:
    """The spec of what a verb states: paths become absolute, and names that repeat count once."""
    settings = _settings(data, stated) | more
    needed = {"DATA": "path", "--owner": "owner", "--target": "target"}
    if missing := [flag for flag, name in needed.items() if settings[name] is None]:
        raise InputError(f"state {join_list(missing)}, or settings of before by --config FILE")
    return spec_of(**settings)


def change_spec(spec: Spec, file: Path, data: str | None, stated: Mapping[str, Any]) -> Spec:
    """The spec of a file of settings, with what is stated in place of its own."""
    settings = _settings(data, stated)
    # From the file, not from where the command is typed: both then mean the same wherever it is.
    spec = spec.change(**_located(_every_setting(spec), str(file.expanduser().parent)))
    tables = asdict(spec.utility)
    if any(settings[name] is not None for name in VALIDATION):  # one way excludes the others
        tables |= dict.fromkeys(VALIDATION)
    # What was done and paid in that run belongs to it.
    fresh = replace(spec, utility=Utility(**tables), payment=Payment(), history=History())
    return fresh.change(**settings)


VALIDATION = ("validation", "folds", "folds_by", "folds_in_time", "holdout")
"""Settings that say which rows models are scored on."""


def _settings(data: str | None, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their names; None for what is not stated."""
    semivalues = tuple(dict.fromkeys(stated["semivalues"] or ())) or None
    settings = {**stated, "path": data or None, "semivalues": semivalues}
    return settings | _located(settings)


def _every_setting(spec: Spec) -> dict[str, Any]:
    return {name: one for part in asdict(spec).values() for name, one in asdict(part).items()}


def _located(settings: Mapping[str, Any], base: str = "") -> dict[str, str]:
    """Those of the settings that name files, with absolute paths; relative ones begin at `base`."""
    paths = ((name, settings.get(name)) for name in ("path", "validation", "logo"))
    found = {name: absolute(path, base) for name, path in paths if path}
    for name in ("model", "metric", "kernel"):
        place, colon, thing = (settings.get(name) or "").rpartition(":")
        if colon and place.endswith(".py"):
            found[name] = f"{absolute(place, base)}:{thing}"
    return found


def absolute(path: str, base: str = "") -> str:
    """A path that stays valid in another directory; a relative one begins at `base`."""
    return os.path.abspath(os.path.join(base, os.path.expanduser(path)))


def _parameter(name: str, kind: Any, option: Any, default: Any) -> Parameter:
    annotation = Annotated[kind, option]
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _number(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise typer.BadParameter(
            "expected a number such as 0.25 or 1234.5, without % and signs between thousands, "
            f"got {given!r}"
        ) from None


def _whole(given: str) -> int:
    try:
        return int(given)
    except ValueError:
        raise typer.BadParameter(f"expected a whole number, got {given!r}") from None


_OPTION_OF: dict[Any, tuple[Any, Callable[[str], Any] | None]] = {
    bool: (bool, None),
    int: (int, _whole),
    int | None: (int, _whole),
    float: (float, _number),
    float | None: (float, _number),
    tuple[str, ...]: (list[str], None),
}
"""The type of an option and how it is parsed, by the type of its setting; others are texts."""

DATA = typer.Argument(
    metavar="DATA",
    help="A CSV, Parquet, Feather, JSON-lines or Excel file, a directory with one file per "
    "owner, or a quoted pattern such as 'data/*.csv'.",
)
DIR = typer.Argument(metavar="DIR", help="A run directory.")
OWNER_A = typer.Argument(metavar="A", help="An owner; or a later run directory, without B.")
OWNER_B = typer.Argument(metavar="[B]", help="Another owner.")
RESULTS = typer.Argument(metavar="FILE", help="A table with the columns coalition and utility.")


def _option(metavar: str, text: str, *names: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=text)


def _flag(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text)


RUN = _option("DIR", "Run directory; by default dupre-DATA.", "--run")
DEMO_RUN = _option("DIR", "Directory for everything it writes.", "--run")
MORE_BUDGET = _option("N", "Coalitions in all; +N for N more than so far.", "--budget")
MORE_SEMIVALUE = _option(
    "NAME",
    "Value the same trainings in this way too; names as for `dupre value`; repeatable.",
    "--semivalue",
)
MOVED = _option("DATA", "Where the data are now, if they moved.", "--data")
MOVED_VALIDATION = _option("FILE", "Where the validation rows are now.", "--validation")
FIGURE = _option("FILE", "Draw it too: a png, svg or pdf file.", "--figure")
JSON = _flag("Print JSON instead of a table.", "--json")
VERBOSE = _flag("Print everything there is to know of the values.", "--verbose")
QUIET = _flag("Print the answer and errors, nothing else.", "--quiet")
STRICT = _flag("End with code 3 if anything is to beware of.", "--strict")
CONFIG = _option(
    "FILE",
    "Settings, as docs/cli.md has them; also the config.toml of a run. What is stated besides "
    "counts instead.",
    "--config",
)
TRUST = _flag("Do what the directory names although it was not made here.", "--trust")
ACCEPT_ROWS = _flag(
    "Go on without the trainings of rows that have changed; every later result says so.",
    "--accept-rows",
)
ACCEPT_MODEL = _flag(
    "Keep trainings although the model, the metric or their code has changed; every later "
    "result says so.",
    "--accept-model",
)
REVALIDATE = _flag(
    "Split the rows anew for validation: those of owners who joined validate from now on, and all "
    "trainings are done again.",
    "--revalidate",
)
SPOT_CHECK = _flag(
    "Train one stored coalition again before a run goes on, to see that its utility is still "
    "the same.",
    "--spot-check/--no-spot-check",
)
FOR = _option(
    "rows|population",
    "Intervals for these validation rows, if they are agreed by contract; by default for the "
    "population they come from.",
    "--for",
)
BOOK = _flag(
    "Keep the differences to what was paid before in the ledger, as paid; without it the payments "
    "are a proposal.",
    "--book",
)
PAY_BACK = _flag("With --book: also what owners pay back.", "--pay-back")
AFTER = _option("DIR", "Go on with the ledger of this run, such as that of the quarter before.")
DRY_RUN = _flag("Print, and change nothing.", "--dry-run")
STATEMENTS = _option("DIR", "Write a page for each owner that names no other owner.")
PDF = _flag(
    "Also as PDF: the page, or with --statements the statements instead; printed by an installed "
    "Chromium, Chrome or Edge.",
    "--pdf",
)
EXCEL = _flag("Also write the values and all that belongs to them as values.xlsx.", "--excel")
ONLY = _option("NAME", "With --statements: this owner alone; repeatable.")
MEMBERS = _option("A,B", "Owners of a coalition, as a JSON list if names hold commas; repeatable.")
COUNT = typer.Option(
    "-n", "--number", metavar="N", help="How many coalitions at most.", parser=_whole
)
PENDING = _option("FILE", "Suggestions of before that are not yet recorded.")
NEW_ROWS = typer.Argument(
    metavar="[FILE]", help="Rows of an owner who has not joined, with the columns of the data."
)
NEW_NAME = _option("NAME", "Of that owner; by default as the file says.", "--name")
LIKE = _option("OWNER", "Instead of a file: further rows of the kind that this owner holds.")
LIKE_ROWS = typer.Option("--rows", metavar="N", help="How many of them.", parser=_whole)
SPEND = typer.Option(
    "--spend",
    metavar="K",
    help="Coalitions with the newcomer to train; by default none, 3 make a quote sharp.",
    parser=_whole,
)
REPLACE = _flag("Correct: forget what was recorded of these coalitions before.", "--replace")
