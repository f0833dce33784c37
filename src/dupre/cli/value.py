"""`dupre value`: train a few models and say what each owner's data is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dupre.cli import options as o
from dupre.cli import output
from dupre.cli.signals import interrupt_on_signals
from dupre.wording import count_things

if TYPE_CHECKING:
    from dupre.runs.directory import RunDirectory
    from dupre.runs.run import Run


@output.prints_values
@o.states(
    "owner target cohorts validation folds folds_by folds_in_time holdout equal_owners model "
    "metric empty floor bounds semivalues samples kernel "
    "prior_mean strategy budget until time jobs dask repeats skip_failures timeout price "
    "task delimiter drop decimal numbers encoding sheet skip_empty seed",
)
def value(
    printing: output.Printing,
    stated: dict[str, Any],
    data: Annotated[str | None, o.DATA] = None,
    config: Annotated[Path | None, o.CONFIG] = None,
    run: Annotated[Path | None, o.RUN] = None,
    spot_check: Annotated[bool, o.SPOT_CHECK] = True,
) -> None:
    """Train a few models and say what each owner's data is worth.

    State DATA, --owner and --target, or a file of settings by --config.
    """
    from dupre.runs.directory import read_spec
    from dupre.runs.prepare import prepare_new
    from dupre.store.store import Stored

    if config is None:
        spec = o.as_spec(data, stated)
    else:
        spec = o.change_spec(read_spec(config), config, data, stated)
    directory = output.directory_for(run, data or spec.data.path)
    prepared = prepare_new(directory.with_history(spec), Stored(directory.store).validate)
    train(directory, replace(prepared, spot_check=spot_check), printing)


def train(
    directory: RunDirectory,
    run: Run,
    printing: output.Printing,
    *,
    accept: bool = False,
    as_wide: bool = False,
) -> None:
    """Print the plan, train, write the results, print them; also for `dupre resume`.

    If owners have changed, `as_wide` trains until intervals are as narrow as before.
    """
    from dupre.runs import values
    from dupre.runs.owner_changes import keep_width, owner_changes
    from dupre.runs.plan import plan
    from dupre.runs.resume import accept_loss
    from dupre.training.dask import connect
    from dupre.valuation.progress import display

    run = run.after(output.command_line())
    # The lock makes the directory: a cluster that does not answer leaves none.
    with interrupt_on_signals(), connect(run.spec.machine.dask or "") as client, directory.lock():
        known = values.count_known(run, directory.store)
        last, elsewhere = directory.last_result, values.count_scored_elsewhere(run, directory.store)
        changes = owner_changes(run, last, directory.store)
        # Before the settings of the last run are lost.
        accept_loss(directory, run, changes, accept=accept)
        output.write_spec(directory, run.spec)
        if as_wide and changes and last is not None:
            run = keep_width(run, last, known)
        each = values.expected_seconds(run, directory.store)
        output.say(plan(run, str(directory), known, changes.lines, elsewhere, each=each))
        with output.redirect_stdout_to_stderr():
            screen = display(True, run.spec.machine.hourly)
            valuations = values.train(run, directory.store, screen, client)
        kept = directory.write_results(valuations)
    # After the lock: a reader that is slow, or gone, keeps nobody waiting.
    printing.print(valuations, directory)
    output.say_kept(kept)
    if (checks := valuations[0].facts.checked) and printing.verbose:
        output.say(f"Trained again so far, to check what is stored: {checks:,}")
    if changes:
        facts = valuations[0].facts
        new = count_things(facts.evaluated - facts.found, "training")
        output.say(f"{new} instead of {facts.evaluated:,}, as many as a new run would take.")
    output.say(f"Page: {directory.report}")
    printing.end(valuations)
