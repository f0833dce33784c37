"""`dupre init`: set up a run of trainings done elsewhere."""

from __future__ import annotations

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
    floor: Annotated[str | None, o.FLOOR] = None,
    bounds: Annotated[str | None, o.BOUNDS] = None,
    semivalue: Annotated[list[str] | None, o.SEMIVALUE] = None,
    samples: Annotated[int | None, o.SAMPLES] = None,
    kernel: Annotated[str | None, o.KERNEL] = None,
    prior_mean: Annotated[str | None, o.PRIOR_MEAN] = None,
    strategy: Annotated[str | None, o.STRATEGY] = None,
    task: Annotated[str | None, o.TASK] = None,
    delimiter: Annotated[str | None, o.DELIMITER] = None,
    drop: Annotated[list[str] | None, o.DROP] = None,
    decimal: Annotated[str | None, o.DECIMAL] = None,
    encoding: Annotated[str | None, o.ENCODING] = None,
    sheet: Annotated[str | None, o.SHEET] = None,
    skip_empty: Annotated[bool, o.SKIP_EMPTY] = False,
    seed: Annotated[int | None, o.SEED] = None,
    run: Annotated[Path | None, o.RUN] = None,
) -> None:
    """Set up a run of trainings done elsewhere.

    Then `dupre suggest` says what to train, and `dupre record` reads the utilities.
    """
    spec = o.as_spec(locals(), elsewhere=True)  # the options have the names of its settings
    from dupre.runs.prepare import prepare_new

    directory = output.directory_for(run, data)
    prepared = prepare_new(directory.with_history(spec)).after(output.command_line())
    with interrupt_on_signals(), directory.lock():
        output.write_spec(directory, prepared.spec)
    rows = f"{prepared.owners.n} owners, {len(prepared.owners.y):,} rows"
    output.say(f"{rows}. Next: {directory.command('suggest')}")
    print(directory)
