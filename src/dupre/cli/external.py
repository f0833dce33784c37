"""Verbs for trainings done elsewhere: init, suggest, record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dupre.cli import options as o
from dupre.cli.output import (
    absolute,
    command_line,
    directory_for,
    open_run,
    predictor_choices,
    print_json,
    print_values,
    say,
    write_config,
)


def init(
    data: o.DataArgument,
    owner: o.OwnerOption,
    target: o.TargetOption,
    empty: o.StatedEmptyOption,
    floor: o.FloorOption = "",
    bounds: o.BoundsOption = "",
    semivalue: o.SemivalueOption = None,
    samples: o.SamplesOption = None,
    kernel: o.KernelOption = "default",
    prior_mean: o.PriorMeanOption = "constant",
    strategy: o.StrategyOption = "active",
    task: o.TaskOption = "",
    delimiter: o.DelimiterOption = "",
    drop: o.DropOption = None,
    decimal: o.DecimalOption = "",
    encoding: o.EncodingOption = "",
    sheet: o.SheetOption = "",
    skip_empty: o.SkipEmptyOption = False,
    seed: o.SeedOption = 0,
    run: o.RunOption = None,
) -> None:
    """Set up a run of trainings done elsewhere.

    Then `dupre suggest` says what to train, and `dupre record` reads the utilities.
    """
    from dupre.runs import config as c
    from dupre.runs.prepare import prepare_job

    how = (task, delimiter, tuple(drop or ()), decimal, encoding, sheet, skip_empty)
    wanted = c.Config(
        data=c.DataSection(absolute(data), owner, target, *how),
        utility=c.UtilitySection(model=c.EXTERNAL, empty=empty, floor=floor, bounds=bounds),
        values=c.ValuesSection(
            tuple(dict.fromkeys(semivalue or ("shapley",))),
            samples,
            None,
            seed,
            *predictor_choices(kernel, prior_mean, strategy),
        ),
    )
    job, directory = prepare_job(wanted), directory_for(run, data)
    wanted = directory.with_history(wanted)
    with directory.lock():
        write_config(directory, wanted.after(command_line()))
    rows = f"{job.owners.n} owners, {len(job.owners.y):,} rows"
    say(f"{rows}. Next: {directory.command('suggest')}")
    print(directory)


def suggest(
    run: o.DirArgument,
    count: Annotated[
        int, typer.Option("-n", "--number", min=1, help="How many coalitions at most.")
    ] = 8,
    pending: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Suggestions of before that are not yet recorded."),
    ] = None,
    data: o.MovedOption = None,
    trust: o.TrustOption = False,
    json: o.JsonOption = False,
) -> None:
    """Print which coalitions to train next elsewhere.

    As CSV with a column to fill in and give to `dupre record`, or as JSON. The answer stays the
    same until something is recorded, or --pending says what is being trained.
    """
    from dupre.runs.recorded import format_sheet

    directory, job = open_run(run, data, trust=trust)
    with directory.name_errors():
        found = job.suggestions(directory.store, count, pending)
    if json:
        print_json(found)
    else:
        print(format_sheet(found), end="")
    if not found:
        say("Nothing is left to gain from a training.")


def record(
    run: o.DirArgument,
    results: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table with the columns coalition and utility."),
    ],
    replace_recorded: Annotated[
        bool,
        typer.Option(
            "--replace", help="Correct: forget what was recorded of these coalitions before."
        ),
    ] = False,
    delimiter: o.DelimiterOption = "",
    data: o.MovedOption = None,
    trust: o.TrustOption = False,
    accept_rows: o.AcceptRowsOption = False,
    json: o.JsonOption = False,
) -> None:
    """Record trainings done elsewhere, and print the values."""
    from dupre.runs.recorded import finished_results, read_results

    directory, job = open_run(run, data, trust=trust)
    found = read_results(results, job.owners.names, delimiter=delimiter or None)
    given = finished_results(found, results)
    job = replace(job, config=job.config.after(command_line()))
    with directory.lock():
        trained = job.count_trained(directory.store)
        if lost := directory.count_lost(trained, accept=accept_rows):
            job.accept_rows(directory.store, lost)
        say(job.record(directory.store, given, replacing=replace_recorded))
        valuations = job.values(directory.store)
        write_config(directory, job.config)
        directory.write_results(valuations)
    print_values(valuations, json=json)


VERBS: dict[Callable[..., None], str] = {
    init: "init patients.csv --owner hospital --target outcome --empty 0.5",
    suggest: "suggest dupre-patients -n 8 > next.csv",
    record: "record dupre-patients next.csv",
}
"""With an example of each."""
