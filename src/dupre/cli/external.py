"""Verbs for trainings done elsewhere: init, suggest, record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dupre.cli.options import (
    AcceptOption,
    DataArgument,
    DelimiterOption,
    DirArgument,
    DropOption,
    JsonOption,
    MovedOption,
    OwnerOption,
    RunOption,
    SamplesOption,
    SeedOption,
    SemivalueOption,
    TargetOption,
    TaskOption,
)
from dupre.cli.output import (
    absolute,
    command_line,
    directory_for,
    open_run,
    print_json,
    print_values,
    say,
)


def init(
    data: DataArgument,
    owner: OwnerOption,
    target: TargetOption,
    empty: Annotated[
        float, typer.Option(metavar="U", help="Utility of no data, such as a blind guess's.")
    ],
    semivalue: SemivalueOption = None,
    samples: SamplesOption = None,
    task: TaskOption = "",
    delimiter: DelimiterOption = "",
    drop: DropOption = None,
    seed: SeedOption = 0,
    run: RunOption = None,
) -> None:
    """Set up a run of trainings done elsewhere.

    Then `dupre suggest` says what to train, and `dupre record` takes the utilities in.
    """
    from dupre.runs import config as c
    from dupre.runs.prepare import prepare_job

    wanted = c.Config(
        data=c.Data(absolute(data), owner, target, task, delimiter, tuple(drop or ())),
        utility=c.Utility(model=c.ELSEWHERE, empty=empty),
        values=c.Values(tuple(dict.fromkeys(semivalue or ("shapley",))), samples, seed=seed),
    )
    job, directory = prepare_job(wanted), directory_for(run, data)
    wanted = directory.with_history(wanted)
    with directory.lock():
        directory.make(wanted.after(command_line()))
    rows = f"{job.owners.n} owners, {len(job.owners.y):,} rows"
    say(f"{rows}. Next: {directory.command('suggest')}")
    print(directory)


def suggest(
    run: DirArgument,
    count: Annotated[
        int, typer.Option("-n", "--number", min=1, help="How many coalitions at most.")
    ] = 8,
    pending: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Suggestions given out before and not yet recorded."),
    ] = None,
    data: MovedOption = None,
    json: JsonOption = False,
) -> None:
    """Print which coalitions to train next elsewhere.

    As CSV with a column to fill in and give to `dupre record`, or as JSON. Asking again before
    anything is recorded gives the same answer, unless --pending says what is under way.
    """
    from dupre.runs.recorded import sheet

    directory, job = open_run(run, data)
    found = job.suggestions(directory.store, count, pending)
    if json:
        print_json(found)
    else:
        print(sheet(found), end="")
    if not found:
        say("Nothing is left to gain from a training.")


def record(
    run: DirArgument,
    results: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table with the columns coalition and utility."),
    ],
    replace_recorded: Annotated[
        bool,
        typer.Option(
            "--replace", help="Put right: forget what was recorded of these coalitions before."
        ),
    ] = False,
    delimiter: DelimiterOption = "",
    data: MovedOption = None,
    accept_changes: AcceptOption = False,
    json: JsonOption = False,
) -> None:
    """Take in trainings done elsewhere, and tell the values."""
    from dataclasses import replace

    from dupre.runs.recorded import finished_results, read

    directory, job = open_run(run, data)
    given = finished_results(read(results, delimiter=delimiter or None), results)
    job = replace(job, config=job.config.after(command_line()))
    with directory.lock(), directory.name_errors():
        if not accept_changes:
            directory.check_nothing_lost(job.trained(directory.store))
        say(job.record(directory.store, given, replacing=replace_recorded))
        valuations = job.values(directory.store)
        directory.make(job.config)
        directory.write(valuations)
    print_values(valuations, json=json)


VERBS: dict[Callable[..., None], str] = {
    init: "init patients.csv --owner hospital --target outcome --empty 0.5",
    suggest: "suggest dupre-patients -n 8 > next.csv",
    record: "record dupre-patients next.csv",
}
"""With an example of each."""
