"""`dupre compare`: is one owner worth more than another?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from dupre.cli import options as o
from dupre.cli.output import last_results, print_json


def compare(
    run: Annotated[Path, o.DIR],
    a: Annotated[str, o.OWNER_A],
    b: Annotated[str, o.OWNER_B],
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Is A worth more than B, and with what probability?"""
    from dupre.result.as_text import beware_notes, format_comparison
    from dupre.result.uncertainty import unknown_notes
    from dupre.runs.directory import RunDirectory

    results = last_results(RunDirectory(run))
    found = [(v.semivalue, v.compare(a, b)) for v in results]
    if json:
        print_json([{"semivalue": name, **asdict(comparison)} for name, comparison in found])
    else:
        told: set[str] = set()
        for v, (name, comparison) in zip(results, found, strict=True):
            notes = [*unknown_notes(v), *beware_notes(v)]
            new = [note for note in notes if note not in told]
            told.update(new)
            print("\n".join([format_comparison(name, comparison), *new]))
