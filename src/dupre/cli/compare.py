"""`dupre compare`: is one owner worth more than another?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from dupre.cli import options as o
from dupre.cli.output import last_results, print_json
from dupre.notes import Note, select, warnings


def compare(
    run: Annotated[Path, o.DIR],
    a: Annotated[str, o.OWNER_A],
    b: Annotated[str, o.OWNER_B],
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Is A worth more than B, and with what probability?"""
    from dupre.result.as_text import format_comparison
    from dupre.result.uncertainty import IN_NO_INTERVAL
    from dupre.runs.directory import RunDirectory

    results = last_results(RunDirectory(run))
    found = [(v.semivalue, v.compare(a, b)) for v in results]
    if json:
        print_json([{"semivalue": name, **asdict(comparison)} for name, comparison in found])
    else:
        told: list[Note] = []
        for v, (name, comparison) in zip(results, found, strict=True):
            notes = [*select(v.notes, IN_NO_INTERVAL), *warnings(v.notes)]
            new = [one for one in notes if one not in told]
            told += new
            print("\n".join([format_comparison(name, comparison), *map(str, new)]))
