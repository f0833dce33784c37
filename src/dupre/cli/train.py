"""Verbs that train: value, resume, demo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dupre.cli.ask import compare, predict
from dupre.cli.options import (
    AcceptOption,
    DaskOption,
    DataArgument,
    DelimiterOption,
    DirArgument,
    DropOption,
    JobsOption,
    JsonOption,
    MovedOption,
    OwnerOption,
    RunOption,
    SamplesOption,
    SeedOption,
    SemivalueOption,
    SkipOption,
    TargetOption,
    TaskOption,
    TimeOption,
    TimeoutOption,
    UntilOption,
)
from dupre.cli.output import absolute, command_line, directory_for, open_run, print_values, say
from dupre.errors import InputError

if TYPE_CHECKING:
    from dupre.runs.directory import RunDirectory
    from dupre.runs.job import Job


def value(
    data: DataArgument,
    owner: OwnerOption,
    target: TargetOption,
    validation: Annotated[
        str, typer.Option(metavar="FILE", help="Rows to score models on; nobody's to train on.")
    ] = "",
    holdout: Annotated[
        float | None,
        typer.Option(
            metavar="PART", help="Part of each owner's rows to score models on instead; 0.25."
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="logistic, ridge, forest, boosting, mlp, knn, or module:object for any "
            "scikit-learn estimator, such as one in a file of this directory.",
        ),
    ] = "",
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="scikit-learn scorer or module:object; else accuracy or r2."
        ),
    ] = "",
    empty: Annotated[
        float | None,
        typer.Option(
            metavar="U", help="Utility of no data; else that of the best constant prediction."
        ),
    ] = None,
    semivalue: SemivalueOption = None,
    samples: SamplesOption = None,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Coalitions to train at most; else 6 per owner, or no limit with --until or "
            "--time.",
        ),
    ] = None,
    until: UntilOption = None,
    time: TimeOption = None,
    jobs: JobsOption = None,
    dask: DaskOption = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Trainings of each coalition; else 1, and a few second ones to measure what the "
            "seed of a random model changes. State 1 for none of these.",
        ),
    ] = None,
    skip_failures: SkipOption = None,
    timeout: TimeoutOption = None,
    task: TaskOption = "",
    delimiter: DelimiterOption = "",
    drop: DropOption = None,
    seed: SeedOption = 0,
    run: RunOption = None,
    json: JsonOption = False,
) -> None:
    """Train a few models, tell what each owner's data is worth."""
    from dataclasses import replace

    from dupre.runs import config as c
    from dupre.runs.prepare import prepare_job

    if validation and holdout is not None:
        raise InputError("state --validation FILE or --holdout PART, not both")
    wanted = c.Config(
        data=c.Data(absolute(data), owner, target, task, delimiter, tuple(drop or ())),
        utility=c.Utility(
            model=_located(model),
            metric=_located(metric),
            validation=validation and absolute(validation),
            holdout=0.0 if validation else c.HOLDOUT if holdout is None else holdout,
            empty=empty,
        ),
        values=c.Values(tuple(dict.fromkeys(semivalue or ("shapley",))), samples, repeats, seed),
        limits=c.with_changes(c.Limits(), budget=budget, until=until, time=time),
        machine=c.with_changes(
            c.Machine(), jobs=jobs, dask=dask, timeout=timeout, skip_failures=skip_failures
        ),
    )
    job, directory = prepare_job(wanted), directory_for(run, data)
    _run(directory, replace(job, config=directory.with_history(wanted)), json=json)


def resume(
    run: DirArgument,
    budget: Annotated[
        str | None, typer.Option(metavar="N", help="Coalitions in all; +N for N more than so far.")
    ] = None,
    until: UntilOption = None,
    time: TimeOption = None,
    jobs: JobsOption = None,
    dask: DaskOption = None,
    skip_failures: SkipOption = None,
    timeout: TimeoutOption = None,
    data: MovedOption = None,
    validation: Annotated[
        str | None, typer.Option(metavar="FILE", help="The same for the validation rows.")
    ] = None,
    accept_changes: AcceptOption = False,
    json: JsonOption = False,
) -> None:
    """Go on after an interruption, or with more trainings.

    Without --budget, --until or --time the limits are as before; with one, only that one counts.
    """
    from dataclasses import replace

    from dupre.runs import config as c
    from dupre.runs.parse import parse_budget

    directory, job = open_run(run, data, validation)
    if job.config.elsewhere:
        raise InputError(
            f"the trainings of {str(run)!r} are done elsewhere; use "
            f"`{directory.command('suggest')}` and `{directory.command('record', 'FILE')}`"
        )
    with directory.lock(), directory.name_errors():
        if accept_changes:
            job.accept(directory.store)
        known = job.evaluated(directory.store)
    more = None if budget is None else parse_budget(budget, known)
    limits = c.with_changes(c.Limits(), budget=more, until=until, time=time)
    wanted = replace(
        job.config,
        limits=job.config.limits if limits == c.Limits() else limits,
        machine=c.with_changes(
            job.config.machine, jobs=jobs, dask=dask, timeout=timeout, skip_failures=skip_failures
        ),
    )
    _run(directory, job.with_config(wanted), json=json, accept=accept_changes)


def demo(
    run: Annotated[
        Path, typer.Option("--run", metavar="DIR", help="Directory for everything it writes.")
    ] = Path("dupre-demo"),
) -> None:
    """Show the whole job on data that come along."""
    from dupre.runs import demo as d

    d.write(run)
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
    run_directory, job = open_run(directory)
    (valuation,) = run_directory.results()
    print(d.how_far_off(valuation, d.exact(job, valuation)))
    print(f"\nThe whole story, to open in a browser: {run_directory.report}")


VERBS: dict[Callable[..., None], str] = {
    value: "value patients.csv --owner hospital --target outcome",
    resume: "resume dupre-patients --budget +40",
    demo: "demo",
}
"""With an example of each."""


def _run(directory: RunDirectory, job: Job, *, json: bool, accept: bool = False) -> None:
    """Tell the plan, train, keep the results, tell them."""
    from dataclasses import replace

    from dupre.cli.output import redirect_stdout_to_stderr
    from dupre.runs.plan import plan
    from dupre.training.dask import connect
    from dupre.valuation.progress import WithEstimate, display

    job = replace(job, config=job.config.after(command_line()))
    with directory.lock(), connect(job.config.machine.dask) as client, directory.name_errors():
        known = job.evaluated(directory.store)
        if not accept:
            directory.check_nothing_lost(job.trained(directory.store))
        directory.make(job.config)
        say(plan(job, str(directory), known))
        with redirect_stdout_to_stderr():
            valuations = job.run(directory.store, WithEstimate(display(True)), client)
        directory.write(valuations)
    print_values(valuations, json=json)
    say(f"Report: {directory.report}")
    if not valuations[0].complete:
        say(f"Go on with: {directory.command('resume', '--budget', f'+{job.owners.n}')}")


def _located(name: str) -> str:
    """The same file.py:object from whatever directory the run goes on."""
    place, colon, thing = name.rpartition(":")
    return f"{absolute(place)}:{thing}" if colon and place.endswith(".py") else name
