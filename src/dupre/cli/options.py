"""Arguments and options of the verbs, and the spec that they state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from dupre.spec import Spec


def as_spec(options: Mapping[str, Any], *, elsewhere: bool = False) -> Spec:
    """The spec of a verb's options, by their names; `elsewhere` are the trainings of `init`."""
    from dupre.spec import EXTERNAL, spec_of

    settings = {name: options[name] for name in options if name not in _NO_SETTINGS}
    settings["path"] = absolute(options["data"])
    settings["semivalues"] = list(dict.fromkeys(options["semivalue"] or ())) or None
    if options.get("validation"):
        settings["validation"] = absolute(options["validation"])
    for name in ("model", "metric", "kernel"):
        if options.get(name):
            settings[name] = _locate(options[name])
    return spec_of(**settings | ({"model": EXTERNAL} if elsewhere else {}))


_NO_SETTINGS = {"data", "semivalue", "run", "spot_check", "json"}
"""Options that are no settings by that name."""


def absolute(path: str) -> str:
    """A path that stays valid in another directory."""
    return os.path.abspath(os.path.expanduser(path))


def _locate(name: str) -> str:
    """The name with the absolute path of its file, if it is file.py:object."""
    place, colon, thing = name.rpartition(":")
    return f"{absolute(place)}:{thing}" if colon and place.endswith(".py") else name


def _option(metavar: str, text: str, *names: str) -> Any:
    """An option with a value; `names` where it is not called like its parameter."""
    return typer.Option(*names, metavar=metavar, help=text)


def _number(metavar: str, text: str, *names: str, example: float) -> Any:
    """An option with a number."""

    def parse(given: str) -> float:
        try:
            return float(given)
        except ValueError:
            raise typer.BadParameter(
                f"expected a number such as {example:g}, without % and signs between thousands, "
                f"got {given!r}"
            ) from None

    return typer.Option(*names, metavar=metavar, help=text, parser=parse)


def _whole(metavar: str, text: str, *names: str) -> Any:
    """An option with a whole number; how large it may be is checked with the spec."""

    def parse(given: str) -> int:
        try:
            return int(given)
        except ValueError:
            raise typer.BadParameter(f"expected a whole number, got {given!r}") from None

    return typer.Option(*names, metavar=metavar, help=text, parser=parse)


def _flag(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text)


DATA = typer.Argument(
    metavar="DATA",
    help="A CSV, Parquet, Feather, JSON-lines or Excel file, a directory with one file per "
    "owner, or a quoted pattern such as 'data/*.csv'.",
)
DIR = typer.Argument(metavar="DIR", help="A run directory.")
OWNER = _option("COLUMN", "Column that names the owner of a row.", "--owner")
TARGET = _option("COLUMN", "Column that a model predicts.", "--target")
TASK = _option("NAME", "classification or regression; by default the target decides.")
DELIMITER = _option("C", "Between the cells of a CSV file.")
DROP = _option("COLUMN", "Leave a column out; repeatable.")
DECIMAL = _option("C", "Sign before decimals in a CSV file; by default a point.")
ENCODING = _option("NAME", "Of a text file, such as cp1252; by default UTF-8.")
SHEET = _option("NAME", "Of an Excel file; by default the first sheet.")
SKIP_EMPTY = _flag("Leave out rows without an owner or a target, and say how many.", "--skip-empty")
VALIDATION = _option("FILE", "Rows to score models on; no owner trains on them.")
HOLDOUT = _number(
    "PART",
    "Score models on this part of each owner's rows instead; by default 0.25.",
    example=0.25,
)
MODEL = _option(
    "NAME",
    "logistic, ridge, forest, boosting, mlp, knn, or module:object for any scikit-learn "
    "estimator, such as one in a file of this directory.",
)
METRIC = _option("NAME", "scikit-learn scorer or module:object; by default accuracy or r2.")
EMPTY = _number(
    "U", "Utility of no data; by default that of the best constant prediction.", example=0.5
)
FLOOR = _option(
    "U", "Lower utilities count as this one, or none; by default that of no data for r2."
)
BOUNDS = _option(
    "LOW,HIGH",
    "Between which utilities lie, such as 0,1 or ,1; by default those of a named metric.",
)
STATED_EMPTY = _number(
    "U", "Utility of no data, such as that of a blind guess.", "--empty", example=0.5
)
SEMIVALUE = _option(
    "NAME",
    "shapley (the default), banzhaf, beta:A,B, loo or least-core; repeat it for several from "
    "the same trainings: the first decides what is trained.",
)
MORE_SEMIVALUE = _option(
    "NAME",
    "Value the same trainings in this way too; names as for `dupre value`; repeatable.",
    "--semivalue",
)
SAMPLES = _whole(
    "N", "Coalitions that enter the values; by default all, or 16,384 above 16 owners."
)
KERNEL = _option(
    "NAME",
    "What makes coalitions alike: default, paper, gp-binary, a sum of products of data, size, "
    "membership and linear such as data*size+membership, or module:object.",
)
PRIOR_MEAN = _option(
    "WHAT",
    "Utilities expected before any is known: constant (the default), linear in the logarithm "
    "of the rows, or a number.",
)
STRATEGY = _option(
    "NAME",
    "What to train next: active (the default), half-active, uniform; active:OWNER for what "
    "helps to value one owner.",
)
BUDGET = _whole(
    "N", "Coalitions to train at most; by default 6 per owner, or no limit with --until or --time."
)
MORE_BUDGET = _option("N", "Coalitions in all; +N for N more than so far.", "--budget")
UNTIL = _option(
    "WHAT",
    "Stop at intervals of, say, ±0.01; or once the ranking is settled: ranking; or once only "
    "more validation rows would help: rows.",
)
TIME = _option("T", "Stop after 90s, 30m, 2h or 1h30m.")
REPEATS = _whole(
    "N",
    "Trainings of each coalition; by default 1, and a few second ones that measure what the "
    "seed of a random model changes. 1 switches these off.",
)
SEED = _whole("N", "Of everything random.")
RUN = _option("DIR", "Run directory; by default dupre-DATA.", "--run")
JOBS = _whole("N", "Processes to train in; -1 for one per core.")
DASK = _option("ADDRESS", "Train on the Dask cluster of this scheduler.")
SKIP = _flag(
    "If a training fails, go on and predict its coalition; or stop, and train it again when "
    "the run goes on (the default).",
    "--skip-failures/--retry-failures",
)
TIMEOUT = _option("T", "A training that takes longer has failed.")
JSON = _flag("Print JSON instead of a table.", "--json")
TRUST = _flag("Do what the directory names although it was not made here.", "--trust")
MOVED = _option("DATA", "Where the data are now, if they moved.", "--data")
MOVED_VALIDATION = _option("FILE", "Where the validation rows are now.", "--validation")
ACCEPT_ROWS = _flag(
    "Go on without the trainings of rows that have changed; every later result says so.",
    "--accept-rows",
)
ACCEPT_MODEL = _flag(
    "Keep trainings although the model, the metric or their code has changed; every later "
    "result says so.",
    "--accept-model",
)
SPOT_CHECK = _flag(
    "Train one stored coalition again before a run goes on, to see that its utility is still "
    "the same.",
    "--spot-check/--no-spot-check",
)
STATEMENTS = _option("DIR", "Write a page for each owner that names no other owner.")
ONLY = _option("NAME", "With --statements: this owner alone; repeatable.")
AMOUNT = _number("X", "To share among the owners.", example=1234.5)
CURRENCY = _option("CODE", "Such as CHF.")
NEGATIVE = _option(
    "RULE", "zero: who is at or below zero gets nothing; owe: who is below zero pays."
)
MINIMUM = _number("X", "What everybody gets at least.", example=99.5)
OWNER_A = typer.Argument(metavar="A", help="An owner.")
OWNER_B = typer.Argument(metavar="B", help="Another owner.")
MEMBERS = _option("A,B", "Owners of a coalition, as a JSON list if names hold commas; repeatable.")
COUNT = _whole("N", "How many coalitions at most.", "-n", "--number")
PENDING = _option("FILE", "Suggestions of before that are not yet recorded.")
RESULTS = typer.Argument(metavar="FILE", help="A table with the columns coalition and utility.")
REPLACE = _flag("Correct: forget what was recorded of these coalitions before.", "--replace")
DEMO_RUN = _option("DIR", "Directory for everything it writes.", "--run")
