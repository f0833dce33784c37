"""`dupre record`: record trainings done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from dupre.cli import options as o
from dupre.cli import output
from dupre.cli.output import Place, Printing, about_a_run, prints_values
from dupre.cli.signals import interrupt_on_signals
from dupre.spec import Files


@about_a_run
@prints_values
@o.states("delimiter decimal")
def record(
    place: Place,
    printing: Printing,
    results: Annotated[Path, o.RESULTS],
    stated: dict[str, Any],
    replace: Annotated[bool, o.REPLACE] = False,
    accept_rows: Annotated[bool, o.ACCEPT_ROWS] = False,
) -> None:
    """Record trainings done elsewhere, and print the values."""
    from dupre.runs import external
    from dupre.runs.owner_changes import owner_changes
    from dupre.runs.resume import accept_loss
    from dupre.runs.values import stored_values

    directory, run = place.open()
    files = Files(**{name: one for name, one in stated.items() if one is not None})
    given = external.finished_results(results, run.owners.names, files)
    run = run.after(output.command_line())
    with interrupt_on_signals(), directory.lock():
        changes = owner_changes(run, directory.last_result, directory.store)
        accept_loss(directory, run, changes, accept=accept_rows)
        output.say(external.record(run, directory.store, given, replacing=replace))
        valuations = stored_values(run, directory.store)
        output.write_spec(directory, run.spec)
        kept = directory.write_results(valuations)
    printing.print(valuations, directory)
    output.say_kept(kept)
    printing.end(valuations)
