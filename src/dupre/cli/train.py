"""Verbs that train: value, resume, demo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dupre.cli import options as o
from dupre.cli import output
from dupre.cli.ask import compare, predict
from dupre.cli.signals import interrupt_on_signals
from dupre.errors import InputError

if TYPE_CHECKING:
    from dupre.runs.directory import RunDirectory
    from dupre.runs.job import Job


def value(
    data: Annotated[str, o.DATA],
    owner: Annotated[str, o.OWNER],
    target: Annotated[str, o.TARGET],
    validation: Annotated[str, o.VALIDATION] = "",
    holdout: Annotated[float | None, o.HOLDOUT] = None,
    model: Annotated[str, o.MODEL] = "",
    metric: Annotated[str, o.METRIC] = "",
    empty: Annotated[float | None, o.EMPTY] = None,
    floor: Annotated[str, o.FLOOR] = "",
    bounds: Annotated[str, o.BOUNDS] = "",
    semivalue: Annotated[list[str] | None, o.SEMIVALUE] = None,
    samples: Annotated[int | None, o.SAMPLES] = None,
    kernel: Annotated[str, o.KERNEL] = "default",
    prior_mean: Annotated[str, o.PRIOR_MEAN] = "constant",
    strategy: Annotated[str, o.STRATEGY] = "active",
    budget: Annotated[int | None, o.BUDGET] = None,
    until: Annotated[str | None, o.UNTIL] = None,
    time: Annotated[str | None, o.TIME] = None,
    jobs: Annotated[int | None, o.JOBS] = None,
    dask: Annotated[str | None, o.DASK] = None,
    repeats: Annotated[int | None, o.REPEATS] = None,
    skip_failures: Annotated[bool | None, o.SKIP] = None,
    timeout: Annotated[str | None, o.TIMEOUT] = None,
    task: Annotated[str, o.TASK] = "",
    delimiter: Annotated[str, o.DELIMITER] = "",
    drop: Annotated[list[str] | None, o.DROP] = None,
    decimal: Annotated[str, o.DECIMAL] = "",
    encoding: Annotated[str, o.ENCODING] = "",
    sheet: Annotated[str, o.SHEET] = "",
    skip_empty: Annotated[bool, o.SKIP_EMPTY] = False,
    seed: Annotated[int, o.SEED] = 0,
    run: Annotated[Path | None, o.RUN] = None,
    spot_check: Annotated[bool, o.SPOT_CHECK] = True,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Train a few models and say what each owner's data is worth."""
    from dupre.runs import config as c
    from dupre.runs.prepare import check_sheet, prepare_new_job

    if validation and holdout is not None:
        raise InputError("state --validation FILE or --holdout PART, not both")
    how = (task, delimiter, tuple(drop or ()), decimal, encoding, sheet, skip_empty)
    rows = validation and output.absolute(validation)
    held = 0.0 if validation else c.HOLDOUT if holdout is None else holdout
    names = tuple(dict.fromkeys(semivalue or ("shapley",)))
    chosen = output.predictor_choices(kernel, prior_mean, strategy)
    trained = (output.locate(model), output.locate(metric), rows, held)
    wanted = c.Config(
        data=c.DataSection(output.absolute(data), owner, target, *how),
        utility=c.UtilitySection(*trained, empty, floor, bounds, *c.LATEST_RULE),
        values=c.ValuesSection(names, samples, repeats, seed, *chosen),
        limits=c.with_changes(c.LimitsSection(), budget=budget, until=until, time=time),
        machine=c.with_changes(
            c.MachineSection(), jobs=jobs, dask=dask, timeout=timeout, skip_failures=skip_failures
        ),
    )
    check_sheet(wanted)
    directory = output.directory_for(run, data)
    job = prepare_new_job(directory.with_history(wanted))
    _run(directory, replace(job, check=spot_check), json=json)


def resume(
    run: Annotated[Path, o.DIR],
    budget: Annotated[str | None, o.MORE_BUDGET] = None,
    semivalue: Annotated[list[str] | None, o.MORE_SEMIVALUE] = None,
    until: Annotated[str | None, o.UNTIL] = None,
    time: Annotated[str | None, o.TIME] = None,
    jobs: Annotated[int | None, o.JOBS] = None,
    dask: Annotated[str | None, o.DASK] = None,
    skip_failures: Annotated[bool | None, o.SKIP] = None,
    timeout: Annotated[str | None, o.TIMEOUT] = None,
    data: Annotated[str | None, o.MOVED] = None,
    validation: Annotated[str | None, o.MOVED_VALIDATION] = None,
    trust: Annotated[bool, o.TRUST] = False,
    accept_rows: Annotated[bool, o.ACCEPT_ROWS] = False,
    accept_model: Annotated[bool, o.ACCEPT_MODEL] = False,
    spot_check: Annotated[bool, o.SPOT_CHECK] = True,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Go on after an interruption, or with more trainings.

    Without --budget, --until and --time the limits are as before; with one of them, only that
    counts.
    """
    from dupre.runs import config as c
    from dupre.runs.parse import parse_budget

    directory, job = output.open_run(run, data, validation, trust=trust)
    job = job.with_semivalues([*job.config.values.semivalues, *(semivalue or ())])
    if job.config.is_external:
        raise InputError(
            f"the trainings of {str(run)!r} are done elsewhere; use "
            f"`{directory.command('suggest')}` and `{directory.command('record', 'FILE')}`"
        )
    job = replace(job, check=spot_check, accept_model=accept_model)
    with directory.lock():
        known = job.count_known(directory.store)
    more = None if budget is None else parse_budget(budget, known)
    limits = c.with_changes(c.LimitsSection(), budget=more, until=until, time=time)
    wanted = replace(
        job.config,
        limits=job.config.limits if limits == c.LimitsSection() else limits,
        machine=c.with_changes(
            job.config.machine, jobs=jobs, dask=dask, timeout=timeout, skip_failures=skip_failures
        ),
    )
    _run(directory, job.with_config(wanted), json=json, accept=accept_rows)


def demo(run: Annotated[Path, o.DEMO_RUN] = Path("dupre-demo")) -> None:
    """Show everything on data that come with dupre."""
    from dupre.runs import demo as d

    d.write_tables(run)
    print(d.STORY)
    data, checks, directory = run / "hospitals.csv", run / "validation.csv", run / "run"
    columns = "--owner hospital --target digit"
    limits = f"--budget {d.BUDGET} --run {directory}"
    print(f"$ dupre value {data} {columns} --validation {checks} {limits}\n", flush=True)
    value(
        str(data),
        owner="hospital",
        target="digit",
        validation=str(checks),
        budget=d.BUDGET,
        run=directory,
    )
    print(f"\n$ dupre compare {directory} Fay Dan", flush=True)
    compare(directory, "Fay", "Dan")
    print(f"\n$ dupre predict {directory} --members Ada,Ben,Cleo", flush=True)
    predict(directory, ["Ada,Ben,Cleo"])
    print("\nTraining all 255 to see how far off that was ...", flush=True)
    run_directory, job = output.open_run(directory)
    (valuation,) = run_directory.results()
    print(d.describe_error(valuation, d.exact_values(job, valuation)))
    print(f"\nThe whole story, to open in a browser: {run_directory.report}")


VERBS: dict[Callable[..., None], str] = {
    value: "value patients.csv --owner hospital --target outcome",
    resume: "resume dupre-patients --budget +40",
    demo: "demo",
}
"""With an example of each."""


def _run(directory: RunDirectory, job: Job, *, json: bool, accept: bool = False) -> None:
    """Print the plan, train, write the results, print them."""
    from dupre.result.uncertainty import trainings_help
    from dupre.runs.plan import plan
    from dupre.training.dask import connect
    from dupre.valuation.progress import WithEstimate, display

    job = replace(job, config=job.config.after(output.command_line()))
    # The lock makes the directory: a cluster that does not answer leaves none.
    with interrupt_on_signals(), connect(job.config.machine.dask) as client, directory.lock():
        known = job.count_known(directory.store)
        if lost := directory.count_lost(job, accept=accept):
            job.accept_rows(directory.store, lost)
        output.write_config(directory, job.config)
        output.say(plan(job, str(directory), known, directory.earlier_owners))
        with output.redirect_stdout_to_stderr():
            valuations = job.run(directory.store, WithEstimate(display(True)), client)
        kept = directory.write_results(valuations)
    output.print_values(valuations, json=json)
    output.say_kept(kept)
    if checks := valuations[0].checked:
        output.say(f"Trained again so far, to check what is stored: {checks:,}")
    output.say(f"Report: {directory.report}")
    if any(map(trainings_help, valuations)):
        output.say(f"Go on with: {directory.command('resume', '--budget', f'+{job.owners.n}')}")
