"""Arguments and options of the verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV, Parquet, Feather, JSON-lines or Excel file, a directory with one file per "
        "owner, or a quoted pattern such as 'data/*.csv'.",
    ),
]
DirArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.")]
OwnerOption = Annotated[
    str, typer.Option("--owner", metavar="COLUMN", help="Column that names the owner of a row.")
]
TargetOption = Annotated[
    str, typer.Option("--target", metavar="COLUMN", help="Column that a model predicts.")
]
TaskOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="classification or regression; by default the target decides."
    ),
]
DelimiterOption = Annotated[str, typer.Option(metavar="C", help="Between the cells of a CSV file.")]
DropOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave a column out; repeatable.")
]
DecimalOption = Annotated[
    str, typer.Option(metavar="C", help="Sign before decimals in a CSV file; by default a point.")
]
EncodingOption = Annotated[
    str, typer.Option(metavar="NAME", help="Of a text file, such as cp1252; by default UTF-8.")
]
SheetOption = Annotated[
    str, typer.Option(metavar="NAME", help="Of an Excel file; by default the first sheet.")
]
SkipEmptyOption = Annotated[
    bool,
    typer.Option(
        "--skip-empty", help="Leave out rows without an owner or a target, and say how many."
    ),
]
ValidationOption = Annotated[
    str, typer.Option(metavar="FILE", help="Rows to score models on; no owner trains on them.")
]
HoldoutOption = Annotated[
    float | None,
    typer.Option(
        metavar="PART",
        help="Score models on this part of each owner's rows instead; by default 0.25.",
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="logistic, ridge, forest, boosting, mlp, knn, or module:object for any "
        "scikit-learn estimator, such as one in a file of this directory.",
    ),
]
MetricOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="scikit-learn scorer or module:object; by default accuracy or r2."
    ),
]
EmptyOption = Annotated[
    float | None,
    typer.Option(
        metavar="U", help="Utility of no data; by default that of the best constant prediction."
    ),
]
FloorOption = Annotated[
    str,
    typer.Option(
        metavar="U",
        help="Lower utilities count as this one, or none; by default that of no data for r2.",
    ),
]
BoundsOption = Annotated[
    str,
    typer.Option(
        metavar="LOW,HIGH",
        help="Between which utilities lie, such as 0,1 or ,1; by default those of a named metric.",
    ),
]
StatedEmptyOption = Annotated[
    float,
    typer.Option("--empty", metavar="U", help="Utility of no data, such as that of a blind guess."),
]
SemivalueOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="shapley (the default), banzhaf, beta:A,B, loo or least-core; repeat it for several "
        "from the same trainings: the first decides what is trained.",
    ),
]
MoreSemivalueOption = Annotated[
    list[str] | None,
    typer.Option(
        "--semivalue",
        metavar="NAME",
        help="Value the same trainings in this way too; names as for `dupre value`; repeatable.",
    ),
]
SamplesOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Coalitions that enter the values; by default all, or 16,384 above 16 owners.",
    ),
]
KernelOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What makes coalitions alike: default, paper, gp-binary, a sum of products of data, "
        "size, membership and linear such as data*size+membership, or module:object.",
    ),
]
PriorMeanOption = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        help="Utilities expected before any is known: constant (the default), linear in the "
        "logarithm of the rows, or a number.",
    ),
]
StrategyOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What to train next: active (the default), half-active, uniform; active:OWNER for "
        "what helps to value one owner.",
    ),
]
BudgetOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Coalitions to train at most; by default 6 per owner, or no limit with --until or "
        "--time.",
    ),
]
MoreBudgetOption = Annotated[
    str | None,
    typer.Option("--budget", metavar="N", help="Coalitions in all; +N for N more than so far."),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="Stop at intervals of, say, ±0.01; or once the ranking is settled: ranking; or once "
        "only more validation rows would help: rows.",
    ),
]
TimeOption = Annotated[
    str | None, typer.Option(metavar="T", help="Stop after 90s, 30m, 2h or 1h30m.")
]
RepeatsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Trainings of each coalition; by default 1, and a few second ones that measure what "
        "the seed of a random model changes. 1 switches these off.",
    ),
]
SeedOption = Annotated[int, typer.Option(metavar="N", min=0, help="Of everything random.")]
RunOption = Annotated[
    Path | None,
    typer.Option("--run", metavar="DIR", help="Run directory; by default dupre-DATA."),
]
JobsOption = Annotated[
    int | None, typer.Option(metavar="N", help="Processes to train in; -1 for one per core.")
]
DaskOption = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Train on the Dask cluster of this scheduler.")
]
SkipOption = Annotated[
    bool | None,
    typer.Option(
        "--skip-failures/--retry-failures",
        help="If a training fails, go on and predict its coalition; or stop, and train it again "
        "when the run goes on (the default).",
    ),
]
TimeoutOption = Annotated[
    str | None, typer.Option(metavar="T", help="A training that takes longer has failed.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TrustOption = Annotated[
    bool,
    typer.Option("--trust", help="Do what the directory names although it was not made here."),
]
MovedOption = Annotated[
    str | None,
    typer.Option("--data", metavar="DATA", help="Where the data are now, if they moved."),
]
MovedValidationOption = Annotated[
    str | None,
    typer.Option("--validation", metavar="FILE", help="Where the validation rows are now."),
]
AcceptRowsOption = Annotated[
    bool,
    typer.Option(
        "--accept-rows",
        help="Go on without the trainings of rows that have changed; every later result says so.",
    ),
]
AcceptModelOption = Annotated[
    bool,
    typer.Option(
        "--accept-model",
        help="Keep trainings although the model, the metric or their code has changed; every "
        "later result says so.",
    ),
]
SpotCheckOption = Annotated[
    bool,
    typer.Option(
        "--spot-check/--no-spot-check",
        help="Train one stored coalition again before a run goes on, to see that its utility is "
        "still the same.",
    ),
]
