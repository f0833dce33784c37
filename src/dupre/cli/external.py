"""Verbs for trainings done elsewhere: init, suggest, record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from dupre.cli import options as o
from dupre.cli import output
from dupre.cli.signals import interrupt_on_signals


def init(
    data: Annotated[str, o.DATA],
    owner: Annotated[str, o.OWNER],
    target: Annotated[str, o.TARGET],
    empty: Annotated[float, o.STATED_EMPTY],
    floor: Annotated[str, o.FLOOR] = "",
    bounds: Annotated[str, o.BOUNDS] = "",
    semivalue: Annotated[list[str] | None, o.SEMIVALUE] = None,
    samples: Annotated[int | None, o.SAMPLES] = None,
    kernel: Annotated[str, o.KERNEL] = "default",
    prior_mean: Annotated[str, o.PRIOR_MEAN] = "constant",
    strategy: Annotated[str, o.STRATEGY] = "active",
    task: Annotated[str, o.TASK] = "",
    delimiter: Annotated[str, o.DELIMITER] = "",
    drop: Annotated[list[str] | None, o.DROP] = None,
    decimal: Annotated[str, o.DECIMAL] = "",
    encoding: Annotated[str, o.ENCODING] = "",
    sheet: Annotated[str, o.SHEET] = "",
    skip_empty: Annotated[bool, o.SKIP_EMPTY] = False,
    seed: Annotated[int, o.SEED] = 0,
    run: Annotated[Path | None, o.RUN] = None,
) -> None:
    """Set up a run of trainings done elsewhere.

    Then `dupre suggest` says what to train, and `dupre record` reads the utilities.
    """
    from dupre.runs import config as c
    from dupre.runs.prepare import check_sheet, prepare_new_job

    how = (task, delimiter, tuple(drop or ()), decimal, encoding, sheet, skip_empty)
    wanted = c.Config(
        data=c.DataSection(output.absolute(data), owner, target, *how),
        utility=c.UtilitySection(model=c.EXTERNAL, empty=empty, floor=floor, bounds=bounds),
        values=c.ValuesSection(
            tuple(dict.fromkeys(semivalue or ("shapley",))),
            samples,
            None,
            seed,
            *output.predictor_choices(kernel, prior_mean, strategy),
        ),
    )
    check_sheet(wanted)
    job, directory = prepare_new_job(wanted), output.directory_for(run, data)
    wanted = directory.with_history(wanted)
    with interrupt_on_signals(), directory.lock():
        output.write_config(directory, wanted.after(output.command_line()))
    rows = f"{job.owners.n} owners, {len(job.owners.y):,} rows"
    output.say(f"{rows}. Next: {directory.command('suggest')}")
    print(directory)


def suggest(
    run: Annotated[Path, o.DIR],
    count: Annotated[int, o.COUNT] = 8,
    pending: Annotated[Path | None, o.PENDING] = None,
    data: Annotated[str | None, o.MOVED] = None,
    trust: Annotated[bool, o.TRUST] = False,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Print which coalitions to train next elsewhere.

    As CSV with a column to fill in and give to `dupre record`, or as JSON. The answer stays the
    same until something is recorded, or --pending says what is being trained.
    """
    from dupre.runs.recorded import format_sheet

    directory, job = output.open_run(run, data, trust=trust)
    directory.check_store()
    with directory.name_errors():
        found = job.suggestions(directory.store, count, pending)
    if json:
        output.print_json(found)
    else:
        print(format_sheet(found), end="")
    if not found:
        output.say("Nothing is left to gain from a training.")


def record(
    run: Annotated[Path, o.DIR],
    results: Annotated[Path, o.RESULTS],
    replace_recorded: Annotated[bool, o.REPLACE] = False,
    delimiter: Annotated[str, o.DELIMITER] = "",
    decimal: Annotated[str, o.DECIMAL] = ".",
    data: Annotated[str | None, o.MOVED] = None,
    trust: Annotated[bool, o.TRUST] = False,
    accept_rows: Annotated[bool, o.ACCEPT_ROWS] = False,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Record trainings done elsewhere, and print the values."""
    from dupre.runs.recorded import finished_results, read_results

    directory, job = output.open_run(run, data, trust=trust)
    names = job.owners.names
    found = read_results(results, names, delimiter=delimiter or None, decimal=decimal)
    given = finished_results(found, results)
    job = replace(job, config=job.config.after(output.command_line()))
    with interrupt_on_signals(), directory.lock():
        if lost := directory.count_lost(job, accept=accept_rows):
            job.accept_rows(directory.store, lost)
        output.say(job.record(directory.store, given, replacing=replace_recorded))
        valuations = job.values(directory.store)
        output.write_config(directory, job.config)
        kept = directory.write_results(valuations)
    output.print_values(valuations, json=json)
    output.say_kept(kept)


VERBS: dict[Callable[..., None], str] = {
    init: "init patients.csv --owner hospital --target outcome --empty 0.5",
    suggest: "suggest dupre-patients -n 8 > next.csv",
    record: "record dupre-patients next.csv",
}
"""With an example of each."""
