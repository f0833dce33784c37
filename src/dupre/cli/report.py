"""`dupre report`: the page of a run or the statements of its owners, as PDF and Excel too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dupre.cli import options as o
from dupre.cli.output import Place, about_a_run, say_kept
from dupre.cli.show import results_so_far
from dupre.errors import InputError


@about_a_run
def report(
    place: Place,
    statements: Annotated[Path | None, o.STATEMENTS] = None,
    only: Annotated[list[str] | None, o.ONLY] = None,
    pdf: Annotated[bool, o.PDF] = False,
    excel: Annotated[bool, o.EXCEL] = False,
) -> None:
    """Write the page of a run again, of the values so far if it is not finished."""
    from dupre.report.pdf import find_browser, print_page
    from dupre.runs.directory import RunDirectory

    if only and statements is None:
        raise InputError("--only chooses statements; state their directory by --statements DIR")
    browser = find_browser() if pdf else ""  # before anything is written
    directory = RunDirectory(place.run)
    valuations, final = results_so_far(place)
    if statements is None:
        say_kept(directory.write_report(valuations, final=final))
        pages = [directory.report]
    else:
        if final and directory.has_other_payments(valuations[0]):
            say_kept(directory.write_report(valuations))
        pages = directory.write_statements(valuations[0], statements, only or (), final=final)
    copies = [print_page(page, browser) for page in pages] if pdf else []
    copies += [directory.write_workbook(valuations, final=final)] if excel else []
    for path in (*pages, *copies):
        print(path)
