"""`dupre history`: every result of a run, who joined and who left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dupre.cli import options as o
from dupre.cli.output import last_results, print_json, say


def history(
    run: Annotated[Path, o.DIR],
    json: Annotated[bool, o.JSON] = False,
    figure: Annotated[Path | None, o.FIGURE] = None,
) -> None:
    """How values moved from result to result, who joined, and who left.

    By the first semivalue; the last results are printed, and --json has all.
    """
    from dupre.runs.directory import RunDirectory
    from dupre.runs.results import read_history

    directory = RunDirectory(run)
    present = last_results(directory)
    found = read_history(directory.earlier_results(present), present[0], most=None)
    if figure is not None:
        from dupre.report.plots import save_history

        save_history(found, figure)
    if json:
        print_json(found.as_json())
    else:
        print(found)
    if figure is not None:
        say(f"Figure: {figure}")
