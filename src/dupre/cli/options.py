"""Arguments and options of the verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def _option(metavar: str, text: str, *names: str, least: int | None = None) -> Any:
    """An option with a value; `names` where it is not called like its parameter."""
    return typer.Option(*names, metavar=metavar, help=text, min=least)


def _flag(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text)


DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV, Parquet, Feather, JSON-lines or Excel file, a directory with one file per "
        "owner, or a quoted pattern such as 'data/*.csv'.",
    ),
]
DirArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.")]
OwnerOption = Annotated[str, _option("COLUMN", "Column that names the owner of a row.", "--owner")]
TargetOption = Annotated[str, _option("COLUMN", "Column that a model predicts.", "--target")]
TaskOption = Annotated[
    str, _option("NAME", "classification or regression; by default the target decides.")
]
DelimiterOption = Annotated[str, _option("C", "Between the cells of a CSV file.")]
DropOption = Annotated[list[str] | None, _option("COLUMN", "Leave a column out; repeatable.")]
DecimalOption = Annotated[
    str, _option("C", "Sign before decimals in a CSV file; by default a point.")
]
EncodingOption = Annotated[
    str, _option("NAME", "Of a text file, such as cp1252; by default UTF-8.")
]
SheetOption = Annotated[str, _option("NAME", "Of an Excel file; by default the first sheet.")]
SkipEmptyOption = Annotated[
    bool, _flag("Leave out rows without an owner or a target, and say how many.", "--skip-empty")
]
ValidationOption = Annotated[
    str, _option("FILE", "Rows to score models on; no owner trains on them.")
]
HoldoutOption = Annotated[
    float | None,
    _option("PART", "Score models on this part of each owner's rows instead; by default 0.25."),
]
ModelOption = Annotated[
    str,
    _option(
        "NAME",
        "logistic, ridge, forest, boosting, mlp, knn, or module:object for any scikit-learn "
        "estimator, such as one in a file of this directory.",
    ),
]
MetricOption = Annotated[
    str, _option("NAME", "scikit-learn scorer or module:object; by default accuracy or r2.")
]
EmptyOption = Annotated[
    float | None,
    _option("U", "Utility of no data; by default that of the best constant prediction."),
]
FloorOption = Annotated[
    str,
    _option("U", "Lower utilities count as this one, or none; by default that of no data for r2."),
]
BoundsOption = Annotated[
    str,
    _option(
        "LOW,HIGH",
        "Between which utilities lie, such as 0,1 or ,1; by default those of a named metric.",
    ),
]
StatedEmptyOption = Annotated[
    float, _option("U", "Utility of no data, such as that of a blind guess.", "--empty")
]
SemivalueOption = Annotated[
    list[str] | None,
    _option(
        "NAME",
        "shapley (the default), banzhaf, beta:A,B, loo or least-core; repeat it for several from "
        "the same trainings: the first decides what is trained.",
    ),
]
MoreSemivalueOption = Annotated[
    list[str] | None,
    _option(
        "NAME",
        "Value the same trainings in this way too; names as for `dupre value`; repeatable.",
        "--semivalue",
    ),
]
SamplesOption = Annotated[
    int | None,
    _option(
        "N", "Coalitions that enter the values; by default all, or 16,384 above 16 owners.", least=1
    ),
]
KernelOption = Annotated[
    str,
    _option(
        "NAME",
        "What makes coalitions alike: default, paper, gp-binary, a sum of products of data, size, "
        "membership and linear such as data*size+membership, or module:object.",
    ),
]
PriorMeanOption = Annotated[
    str,
    _option(
        "WHAT",
        "Utilities expected before any is known: constant (the default), linear in the logarithm "
        "of the rows, or a number.",
    ),
]
StrategyOption = Annotated[
    str,
    _option(
        "NAME",
        "What to train next: active (the default), half-active, uniform; active:OWNER for what "
        "helps to value one owner.",
    ),
]
BudgetOption = Annotated[
    int | None,
    _option(
        "N",
        "Coalitions to train at most; by default 6 per owner, or no limit with --until or --time.",
        least=1,
    ),
]
MoreBudgetOption = Annotated[
    str | None, _option("N", "Coalitions in all; +N for N more than so far.", "--budget")
]
UntilOption = Annotated[
    str | None,
    _option(
        "WHAT",
        "Stop at intervals of, say, ±0.01; or once the ranking is settled: ranking; or once only "
        "more validation rows would help: rows.",
    ),
]
TimeOption = Annotated[str | None, _option("T", "Stop after 90s, 30m, 2h or 1h30m.")]
RepeatsOption = Annotated[
    int | None,
    _option(
        "N",
        "Trainings of each coalition; by default 1, and a few second ones that measure what the "
        "seed of a random model changes. 1 switches these off.",
        least=1,
    ),
]
SeedOption = Annotated[int, _option("N", "Of everything random.", least=0)]
RunOption = Annotated[Path | None, _option("DIR", "Run directory; by default dupre-DATA.", "--run")]
JobsOption = Annotated[int | None, _option("N", "Processes to train in; -1 for one per core.")]
DaskOption = Annotated[
    str | None, _option("ADDRESS", "Train on the Dask cluster of this scheduler.")
]
SkipOption = Annotated[
    bool | None,
    _flag(
        "If a training fails, go on and predict its coalition; or stop, and train it again when "
        "the run goes on (the default).",
        "--skip-failures/--retry-failures",
    ),
]
TimeoutOption = Annotated[str | None, _option("T", "A training that takes longer has failed.")]
JsonOption = Annotated[bool, _flag("Print JSON instead of a table.", "--json")]
TrustOption = Annotated[
    bool, _flag("Do what the directory names although it was not made here.", "--trust")
]
MovedOption = Annotated[
    str | None, _option("DATA", "Where the data are now, if they moved.", "--data")
]
MovedValidationOption = Annotated[
    str | None, _option("FILE", "Where the validation rows are now.", "--validation")
]
AcceptRowsOption = Annotated[
    bool,
    _flag(
        "Go on without the trainings of rows that have changed; every later result says so.",
        "--accept-rows",
    ),
]
AcceptModelOption = Annotated[
    bool,
    _flag(
        "Keep trainings although the model, the metric or their code has changed; every later "
        "result says so.",
        "--accept-model",
    ),
]
SpotCheckOption = Annotated[
    bool,
    _flag(
        "Train one stored coalition again before a run goes on, to see that its utility is still "
        "the same.",
        "--spot-check/--no-spot-check",
    ),
]
