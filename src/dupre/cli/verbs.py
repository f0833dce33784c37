"""The command `dupre`: verbs over run directories. Answers go to stdout, all else to stderr.

Heavy modules are imported by the verbs that need them, so that `dupre --help` is quick.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from dupre.cli.options import (
    DaskOption,
    DataArgument,
    DelimiterOption,
    DirArgument,
    DropOption,
    JobsOption,
    JsonOption,
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
from dupre.cli.speech import in_flags, say
from dupre.errors import DupreError, InputError

if TYPE_CHECKING:
    from dupre.cli.job import Job
    from dupre.cli.rundir import RunDirectory
    from dupre.values import Valuation


class Verbs(TyperGroup):
    """Verbs that say where everything is when they are interrupted."""

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; Ctrl-C is no accident to be reported by the framework."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            say(f"\n{in_flags(stop) or 'stopped'}")
            raise typer.Exit(130) from stop


app = typer.Typer(
    name="dupre",
    cls=Verbs,
    help="What is each data owner's data worth? Fair values with honest uncertainty, after "
    "training only a handful of models.\n\nBegin with `dupre demo`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from dupre import __version__

        print(f"dupre {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[  # answered before anything else
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Tell the version.")
    ] = False,
    debug: Annotated[  # taken by `main`, wherever it stands
        bool, typer.Option("--debug", help="Show where an error comes from; also after a verb.")
    ] = False,
) -> None:
    """Verbs over run directories."""


@app.command(epilog="Example: dupre value patients.csv --owner hospital --target outcome")
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
        int, typer.Option(metavar="N", min=1, help="Trainings of each coalition.")
    ] = 1,
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

    from dupre.cli import config as c
    from dupre.cli.prepare import prepared

    if validation and holdout is not None:
        raise InputError("state --validation FILE or --holdout PART, not both")
    wanted = c.Config(
        data=c.Data(_absolute(data), owner, target, task, delimiter, tuple(drop or ())),
        utility=c.Utility(
            model=_located(model),
            metric=_located(metric),
            validation=validation and _absolute(validation),
            holdout=0.0 if validation else c.HOLDOUT if holdout is None else holdout,
            empty=empty,
        ),
        values=c.Values(tuple(dict.fromkeys(semivalue or ("shapley",))), samples, repeats, seed),
        limits=c.changed(c.Limits(), budget=budget, until=until, time=time),
        machine=c.changed(
            c.Machine(), jobs=jobs, dask=dask, timeout=timeout, skip_failures=skip_failures
        ),
    )
    job, directory = prepared(wanted), _directory(run, data)
    _run(directory, replace(job, config=directory.continued(wanted)), json=json)


@app.command(
    epilog="Example: dupre init patients.csv --owner hospital --target outcome --empty 0.5"
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
    from dupre.cli import config as c
    from dupre.cli.prepare import prepared

    wanted = c.Config(
        data=c.Data(_absolute(data), owner, target, task, delimiter, tuple(drop or ())),
        utility=c.Utility(model=c.ELSEWHERE, empty=empty),
        values=c.Values(tuple(dict.fromkeys(semivalue or ("shapley",))), samples, seed=seed),
    )
    job, directory = prepared(wanted), _directory(run, data)
    wanted = directory.continued(wanted)
    with directory.locked():
        directory.make(wanted)
    next_ = directory.command("suggest").strip("`")
    say(f"{job.owners.n} owners, {len(job.owners.y):,} rows. Next: {next_}")
    print(directory)


@app.command(epilog="Example: dupre resume dupre-patients --budget +40")
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
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="Where the data are now, if they moved.")
    ] = None,
    validation: Annotated[
        str | None, typer.Option(metavar="FILE", help="The same for the validation rows.")
    ] = None,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes",
            help="Keep trainings though the code of the model has changed, or go on though rows "
            "have, and trainings with them are lost.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Go on after an interruption, or with more trainings.

    Without --budget, --until or --time the limits are as before; with one, only that one counts.
    """
    from dataclasses import replace

    from dupre.cli import choices
    from dupre.cli import config as c
    from dupre.cli.prepare import check

    directory, job = _opened(run, data, validation)
    if job.config.elsewhere:
        raise InputError(
            f"the trainings of {str(run)!r} are done elsewhere; use {directory.command('suggest')} "
            f"and {directory.command('record', 'FILE')}"
        )
    with directory.named():
        if accept_changes:
            job.accept(directory.store)
        known = job.evaluated(directory.store)
    more = None if budget is None else choices.budget(budget, known)
    limits = c.changed(c.Limits(), budget=more, until=until, time=time)
    wanted = replace(
        job.config,
        limits=job.config.limits if limits == c.Limits() else limits,
        machine=c.changed(
            job.config.machine, jobs=jobs, dask=dask, timeout=timeout, skip_failures=skip_failures
        ),
    )
    check(wanted)
    _run(directory, replace(job, config=wanted), json=json, accept=accept_changes)


@app.command(epilog="Example: dupre show dupre-patients")
def show(run: DirArgument, json: JsonOption = False) -> None:
    """Print the values of a run again."""
    from dupre.cli.rundir import RunDirectory

    _print(RunDirectory(run).results(), json=json)


@app.command(epilog="Example: dupre report dupre-patients")
def report(run: DirArgument) -> None:
    """Write the page of a run again, and tell where it is."""
    from dupre.cli.rundir import RunDirectory

    directory = RunDirectory(run)
    directory.write_report(directory.results())
    print(directory.report)


@app.command(epilog="Example: dupre compare dupre-patients Basel Bern")
def compare(
    run: DirArgument,
    a: Annotated[str, typer.Argument(metavar="A", help="An owner.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another owner.")],
    json: JsonOption = False,
) -> None:
    """Is A worth more than B, and with what probability?"""
    from dataclasses import asdict

    from dupre.cli.rundir import RunDirectory
    from dupre.text import compared

    found = [(v.semivalue, v.compare(a, b)) for v in RunDirectory(run).results()]
    if json:
        _print_json([{"semivalue": name, **asdict(comparison)} for name, comparison in found])
    else:
        for name, comparison in found:
            print(compared(name, comparison))


@app.command(epilog="Example: dupre predict dupre-patients --members Basel,Bern")
def predict(
    run: DirArgument,
    members: Annotated[
        list[str],
        typer.Option(metavar="A,B", help="Owners of a coalition; repeat it for further ones."),
    ],
    json: JsonOption = False,
) -> None:
    """Tell the utility of a coalition without training it."""
    from dupre.text import predicted

    directory, job = _opened(run)
    coalitions = [job.members(text) for text in members]
    found = job.valuer(directory.store).predict(coalitions)
    if json:
        _print_json(found.to_dict("records"))
    else:
        print(predicted(found))


@app.command(epilog="Example: dupre suggest dupre-patients -n 8 > next.csv")
def suggest(
    run: DirArgument,
    count: Annotated[
        int, typer.Option("-n", "--number", min=1, help="How many coalitions at most.")
    ] = 8,
    pending: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Suggestions given out before and not yet recorded."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print which coalitions to train next elsewhere.

    As CSV with a column to fill in and give to `dupre record`, or as JSON. Asking again before
    anything is recorded gives the same answer, unless --pending says what is under way.
    """
    directory, job = _opened(run)
    found = job.suggestions(directory.store, count, pending)
    if json:
        _print_json(found)
    else:
        print(job.sheet(found), end="")
    if not found:
        say("Nothing is left to gain from a training.")


@app.command(epilog="Example: dupre record dupre-patients next.csv")
def record(
    run: DirArgument,
    results: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table with the columns coalition and utility."),
    ],
    replace_recorded: Annotated[
        bool, typer.Option("--replace", help="Put right what was recorded before.")
    ] = False,
    delimiter: DelimiterOption = "",
    json: JsonOption = False,
) -> None:
    """Take in trainings done elsewhere, and tell the values."""
    from dataclasses import replace

    from dupre.cli.results import finished, read

    directory, job = _opened(run)
    given = finished(read(results, delimiter=delimiter or None), results)
    job = replace(job, config=job.config.after(_command()))
    with directory.locked():
        say(job.record(directory.store, given, replacing=replace_recorded))
        valuations = job.values(directory.store)
        directory.make(job.config)
        directory.write(valuations)
    _print(valuations, json=json)


@app.command(epilog="Example: dupre demo")
def demo(
    run: Annotated[
        Path, typer.Option("--run", metavar="DIR", help="Directory for everything it writes.")
    ] = Path("dupre-demo"),
) -> None:
    """Show the whole job on data that come along."""
    from dupre.cli import demo as d

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
    opened, job = _opened(directory)
    (valuation,) = opened.results()
    print(d.how_far_off(valuation, d.exact(job, valuation)))
    print(f"\nThe whole story, to open in a browser: {opened.report}")


def main() -> None:
    """The entry point. A traceback is shown with --debug only, wherever that stands."""
    debug = "--debug" in sys.argv
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app([argument for argument in sys.argv[1:] if argument != "--debug"], prog_name="dupre")
    except Exception as error:
        if debug:
            raise
        if isinstance(error, DupreError):
            say(f"Error: {in_flags(error)}")
        else:
            say(f"Error: {type(error).__name__}: {error}\nAdd --debug to see where it comes from.")
        sys.exit(2)


def _directory(run: Path | None, data: str) -> RunDirectory:
    from dupre.cli.rundir import RunDirectory
    from dupre.tables.reading import name_of

    return RunDirectory(Path(f"dupre-{name_of(data)}") if run is None else run.expanduser())


def _opened(
    run: Path, data: str | None = None, validation: str | None = None
) -> tuple[RunDirectory, Job]:
    """A run directory that is there already, with its data."""
    from dataclasses import replace

    from dupre.cli.prepare import prepared
    from dupre.cli.rundir import RunDirectory

    directory = RunDirectory(run)
    config = directory.config()
    if data is not None:
        config = replace(config, data=replace(config.data, path=_absolute(data)))
    if validation is not None:
        moved = replace(config.utility, validation=_absolute(validation), holdout=0.0)
        config = replace(config, utility=moved)
    return directory, prepared(config)


def _run(directory: RunDirectory, job: Job, *, json: bool, accept: bool = False) -> None:
    """Tell the plan, train, keep the results, tell them."""
    from dataclasses import replace

    from dupre.cli.machine import connected, stdout_kept_clean
    from dupre.cli.plan import plan
    from dupre.progress import Estimating, display

    job = replace(job, config=job.config.after(_command()))
    with directory.locked(), connected(job.config.machine.dask) as client, directory.named():
        known = job.evaluated(directory.store)
        if not accept:
            directory.check_nothing_lost(known)
        directory.make(job.config)
        say(plan(job, str(directory), known))
        with stdout_kept_clean():
            valuations = job.run(directory.store, Estimating(display(True)), client)
        directory.write(valuations)
    _print(valuations, json=json)
    say(f"Report: {directory.report}")
    if not valuations[0].exact:
        say(f"Go on with: {directory.command('resume', '--budget', f'+{job.owners.n}').strip('`')}")


def _print(valuations: list[Valuation], *, json: bool) -> None:
    if json:
        from dupre.schema import dumped

        print(dumped(valuations))
    else:
        print("\n\n".join(map(str, valuations)))


def _print_json(found: object) -> None:
    import json

    print(json.dumps(found, ensure_ascii=False))


def _command() -> str:
    return shlex.join(["dupre", *sys.argv[1:]])


def _located(name: str) -> str:
    """The same file.py:object from whatever directory the run goes on."""
    place, colon, thing = name.rpartition(":")
    return f"{_absolute(place)}:{thing}" if colon and place.endswith(".py") else name


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


if __name__ == "__main__":
    main()
