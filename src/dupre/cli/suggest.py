"""`dupre suggest`: which coalitions to train next elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dupre.cli import options as o
from dupre.cli.output import Place, about_a_run, print_json, say


@about_a_run
def suggest(
    place: Place,
    count: Annotated[int, o.COUNT] = 8,
    pending: Annotated[Path | None, o.PENDING] = None,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Print which coalitions to train next elsewhere.

    As CSV with a column to fill in and give to `dupre record`, or as JSON. The answer stays the
    same until something is recorded, or --pending says what is being trained.
    """
    from dupre.runs import external

    directory, run = place.open()
    directory.check_store()
    with directory.name_errors():
        found = external.suggest(run, directory.store, count, pending)
    if json:
        print_json(found)
    else:
        print(external.format_sheet(found), end="")
    if not found:
        say("Nothing is left to gain from a training.")
