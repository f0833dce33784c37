"""`dupre compare`: is one owner worth more than another, and who moved since an earlier run?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dupre.cli import options as o
from dupre.cli.output import last_results, print_json
from dupre.errors import InputError
from dupre.notes import Note, select, warnings
from dupre.wording import quote

if TYPE_CHECKING:
    from dupre.result.valuation import Valuation


def compare(
    run: Annotated[Path, o.DIR],
    a: Annotated[str, o.OWNER_A],
    b: Annotated[str | None, o.OWNER_B] = None,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Is owner A worth more than B, and with what probability?

    Without B, A is the directory of a later run: who moved since, by how much, and whether it is
    more than the intervals explain.
    """
    from dupre.runs.directory import RunDirectory

    results = last_results(RunDirectory(run))
    if b is not None:
        _compare_owners(results, a, b, json=json)
        return
    if not Path(a).is_dir():
        raise InputError(
            f"there is no directory {quote(a)}; state two owners, or the directory of a later run"
        )
    _compare_runs(results, last_results(RunDirectory(Path(a))), json=json)


def _compare_owners(results: list[Valuation], a: str, b: str, *, json: bool) -> None:
    from dupre.result.as_text import format_comparison
    from dupre.result.uncertainty import IN_NO_INTERVAL

    found = [(v.semivalue, v.compare(a, b)) for v in results]
    if json:
        print_json([{"semivalue": name, **asdict(comparison)} for name, comparison in found])
        return
    told: list[Note] = []
    for v, (name, comparison) in zip(results, found, strict=True):
        notes = [*select(v.notes, IN_NO_INTERVAL), *warnings(v.notes)]
        new = [one for one in notes if one not in told]
        told += new
        print("\n".join([format_comparison(name, comparison), *map(str, new)]))


def _compare_runs(before: list[Valuation], after: list[Valuation], *, json: bool) -> None:
    """Of each semivalue that both have; of the first ones, which differ, if there is none."""
    pairs = [(one, other) for one in before for other in after if one.semivalue == other.semivalue]
    found = [other.changes_since(one) for one, other in pairs or [(before[0], after[0])]]
    if json:
        print_json([one.as_json() for one in found])
    else:
        print("\n\n".join(map(str, found)))
