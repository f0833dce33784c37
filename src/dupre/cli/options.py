"""Arguments and options that several verbs share."""

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
        metavar="NAME", help="classification or regression; told by the target if left out."
    ),
]
DelimiterOption = Annotated[str, typer.Option(metavar="C", help="Between the cells of a CSV file.")]
DropOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave a column out; repeatable.")
]
SemivalueOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="shapley (the default), banzhaf, beta:A,B, loo or least-core; repeat it for several "
        "from the same trainings: the first decides what is trained.",
    ),
]
SamplesOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Coalitions that enter the values; else all, or 16,384 above 16 owners.",
    ),
]
SeedOption = Annotated[int, typer.Option(metavar="N", min=0, help="Of everything random.")]
RunOption = Annotated[
    Path | None, typer.Option("--run", metavar="DIR", help="Run directory; else dupre-DATA.")
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="Stop at intervals of, say, ±0.01, or once the ranking is settled: ranking.",
    ),
]
TimeOption = Annotated[
    str | None, typer.Option(metavar="T", help="Stop after 90s, 30m, 2h or 1h30m.")
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
        help="Go on if a training fails, its coalition is predicted; or stop at it, and try it "
        "again when the run goes on (the default).",
    ),
]
TimeoutOption = Annotated[
    str | None, typer.Option(metavar="T", help="Give a training up as failed after so long.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
MovedOption = Annotated[
    str | None,
    typer.Option("--data", metavar="DATA", help="Where the data are now, if they moved."),
]
AcceptOption = Annotated[
    bool,
    typer.Option(
        "--accept-changes",
        help="Go on without trainings of rows that have changed; and keep all others though the "
        "code of the model has.",
    ),
]
