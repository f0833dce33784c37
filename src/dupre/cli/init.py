"""`dupre init`: set up a run of trainings done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from dupre.cli import options as o
from dupre.cli import output
from dupre.cli.signals import interrupt_on_signals
from dupre.spec import EXTERNAL


@o.states(
    "owner target cohorts empty floor bounds semivalues samples kernel prior_mean strategy task "
    "delimiter drop decimal numbers encoding sheet skip_empty seed",
    required="owner target empty",
)
def init(
    data: Annotated[str, o.DATA],
    stated: dict[str, Any],
    run: Annotated[Path | None, o.RUN] = None,
) -> None:
    """Set up a run of trainings done elsewhere.

    Then `dupre suggest` says what to train, and `dupre record` reads the utilities.
    """
    from dupre.runs.prepare import prepare_new

    spec = o.as_spec(data, stated, model=EXTERNAL)
    directory = output.directory_for(run, data)
    prepared = prepare_new(directory.with_history(spec)).after(output.command_line())
    with interrupt_on_signals(), directory.lock():
        output.write_spec(directory, prepared.spec)
    rows = f"{prepared.owners.n} owners, {len(prepared.owners.y):,} rows"
    output.say(f"{rows}. Next: {directory.command('suggest')}")
    print(directory)
