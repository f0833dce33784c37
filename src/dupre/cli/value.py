"""`dupre value`: train a few models and say what each owner's data is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dupre.cli import options as o
from dupre.cli import output
from dupre.cli.signals import interrupt_on_signals

if TYPE_CHECKING:
    from dupre.runs.directory import RunDirectory
    from dupre.runs.run import Run


def value(
    data: Annotated[str, o.DATA],
    owner: Annotated[str, o.OWNER],
    target: Annotated[str, o.TARGET],
    validation: Annotated[str | None, o.VALIDATION] = None,
    holdout: Annotated[float | None, o.HOLDOUT] = None,
    model: Annotated[str | None, o.MODEL] = None,
    metric: Annotated[str | None, o.METRIC] = None,
    empty: Annotated[float | None, o.EMPTY] = None,
    floor: Annotated[str | None, o.FLOOR] = None,
    bounds: Annotated[str | None, o.BOUNDS] = None,
    semivalue: Annotated[list[str] | None, o.SEMIVALUE] = None,
    samples: Annotated[int | None, o.SAMPLES] = None,
    kernel: Annotated[str | None, o.KERNEL] = None,
    prior_mean: Annotated[str | None, o.PRIOR_MEAN] = None,
    strategy: Annotated[str | None, o.STRATEGY] = None,
    budget: Annotated[int | None, o.BUDGET] = None,
    until: Annotated[str | None, o.UNTIL] = None,
    time: Annotated[str | None, o.TIME] = None,
    jobs: Annotated[int | None, o.JOBS] = None,
    dask: Annotated[str | None, o.DASK] = None,
    repeats: Annotated[int | None, o.REPEATS] = None,
    skip_failures: Annotated[bool | None, o.SKIP] = None,
    timeout: Annotated[str | None, o.TIMEOUT] = None,
    task: Annotated[str | None, o.TASK] = None,
    delimiter: Annotated[str | None, o.DELIMITER] = None,
    drop: Annotated[list[str] | None, o.DROP] = None,
    decimal: Annotated[str | None, o.DECIMAL] = None,
    encoding: Annotated[str | None, o.ENCODING] = None,
    sheet: Annotated[str | None, o.SHEET] = None,
    skip_empty: Annotated[bool, o.SKIP_EMPTY] = False,
    seed: Annotated[int | None, o.SEED] = None,
    run: Annotated[Path | None, o.RUN] = None,
    spot_check: Annotated[bool, o.SPOT_CHECK] = True,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Train a few models and say what each owner's data is worth."""
    spec = o.as_spec(locals())  # the options have the names of its settings
    from dupre.runs.prepare import prepare_new

    directory = output.directory_for(run, data)
    prepared = prepare_new(directory.with_history(spec))
    train(directory, replace(prepared, check=spot_check), json=json)


def train(directory: RunDirectory, run: Run, *, json: bool, accept: bool = False) -> None:
    """Print the plan, train, write the results, print them; also for `dupre resume`."""
    from dupre.result.uncertainty import trainings_help
    from dupre.runs import values
    from dupre.runs.plan import plan
    from dupre.runs.resume import accept_loss
    from dupre.training.dask import connect
    from dupre.valuation.progress import WithEstimate, display

    run = run.after(output.command_line())
    # The lock makes the directory: a cluster that does not answer leaves none.
    with interrupt_on_signals(), connect(run.spec.machine.dask or "") as client, directory.lock():
        known = values.count_known(run, directory.store)
        accept_loss(directory, run, accept=accept)
        output.write_spec(directory, run.spec)
        output.say(plan(run, str(directory), known, directory.earlier_owners))
        with output.redirect_stdout_to_stderr():
            valuations = values.train(run, directory.store, WithEstimate(display(True)), client)
        kept = directory.write_results(valuations)
    output.print_values(valuations, json=json)
    output.say_kept(kept)
    if checks := valuations[0].checked:
        output.say(f"Trained again so far, to check what is stored: {checks:,}")
    output.say(f"Report: {directory.report}")
    if any(map(trainings_help, valuations)):
        output.say(f"Go on with: {directory.command('resume', '--budget', f'+{run.owners.n}')}")
