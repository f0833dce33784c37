"""`dupre verify`: does a run directory still say what follows from its store, data and ledger?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from dupre.cli import options as o
from dupre.cli.output import ExitCode, Place, about_a_run, print_json


@about_a_run
def verify(
    place: Place,
    validation: Annotated[str | None, o.MOVED_VALIDATION] = None,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Recompute values and payments from the store, the data and the ledger; name differences.

    For an auditor: nothing is trained and no file is changed. Ends with code 5 if something
    differs. What cannot be checked is said with the reason.
    """
    from dupre.runs.directory import RunDirectory
    from dupre.runs.verify import format_checks
    from dupre.runs.verify import verify as check

    place.check_trusted()
    checks = check(RunDirectory(place.run), *place.moved(validation))
    if json:
        print_json([{**asdict(one), "outcome": one.outcome} for one in checks])
    else:
        print(format_checks(checks))
    if any(one.differences for one in checks):
        raise typer.Exit(ExitCode.DIFFERENCES)
