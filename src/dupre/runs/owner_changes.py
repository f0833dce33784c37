"""Who joined, left or changed since the last result, and which trainings that leaves valid.

Rows are compared by their digests, which a store keeps of every owner: so an owner who changed one
row, holds its rows twice or sends those of another is named before anything is trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dupre._types import Names
from dupre.result.valuation import Valuation
from dupre.runs.run import Run, usual_budget
from dupre.runs.values import count_valid
from dupre.store.origin import read_rows
from dupre.valuation.stopping import within
from dupre.wording import ROWS_OF, count_things, join_list, printable

Rows = NDArray[np.uint64]
"""The first 64 bits of the digests of an owner's rows, sorted."""

TIMES = {2: "twice"}


@dataclass(frozen=True)
class OwnerChanges:
    """What has changed since the last result; nothing without one.

    Attributes:
        joined, left: by name.
        renamed: new names by those of then; the rows are the same.
        changed: what has changed of an owner's rows, in words.
        copies: whose rows all of an owner's new rows are.
        valid: coalitions of that result whose trainings stay valid.
        of: how many there are.
        lost: how many are no longer valid although none of their owners has left.
    """

    joined: Names = ()
    left: Names = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    valid: int = 0
    of: int = 0
    lost: int = 0

    def __bool__(self) -> bool:
        return bool(self.joined or self.left or self.changed)

    @property
    def lines(self) -> list[str]:
        """All of it in words."""
        named = {"new": self.joined, "no longer there": self.left}
        found = [f"{k}: {join_list(map(printable, names))}" for k, names in named.items() if names]
        found += [f"{printable(a)} is {printable(b)} now" for a, b in self.renamed.items()]
        found += [f"{printable(name)}: {text}" for name, text in self.changed.items()]
        found += [
            f"{printable(name)}: all rows are {printable(other)}'s"
            for name, other in self.copies.items()
        ]
        if self:
            found.append(
                f"valid: {self.valid:,} of {count_things(self.of, 'training')} of the result "
                "before, which is kept in its history"
            )
        return found


def owner_changes(run: Run, last: Valuation | None, store: Path) -> OwnerChanges:
    """How the owners of a run differ from those of its last result."""
    if last is None:
        return OwnerChanges()
    marks = last.facts.provenance.get("fingerprints", {})
    then = {k.removeprefix(ROWS_OF): mark for k, mark in marks.items() if k.startswith(ROWS_OF)}
    now, origin = run.origin.owners, run.origin
    joined = [name for name in now if name not in then]
    left = [name for name in last.owners if name not in now]
    renamed: dict[str, str] = {}
    for name in left if origin.by_content else ():
        same = [other for other in joined if now[other] == then.get(name)]
        if same and same[0] not in renamed.values():
            renamed[name] = same[0]
    joined = [name for name in joined if name not in renamed.values()]
    left = [name for name in left if name not in renamed]
    changed = [name for name in now if name in then and now[name] != then[name]]
    earlier = read_rows(store)
    valid = count_valid(run, store)
    trained = [
        set(json.loads(str(names)))
        for names, rows in last.evaluations.groupby("coalition")
        if rows["utility"].notna().any()
    ]
    stays = sum(not names & set(left) for names in trained)
    return OwnerChanges(
        tuple(joined),
        tuple(left),
        renamed,
        {name: _compare(earlier.get((name, then[name])), origin.rows[name]) for name in changed},
        _copies(origin.rows, [*joined, *changed]),
        min(valid, stays),
        len(trained),
        max(0, stays - valid),
    )


def keep_width(run: Run, last: Valuation, known: int) -> Run:
    """The run until intervals are as narrow as those of the last result; as it is with a rule."""
    widest = float(last.uncertainty.widest)
    if run.choices.stop is not None:
        return run
    # More than the usual budget may be known already, and say nothing of a newcomer.
    most = max(usual_budget(run.owners.n), run.budget or 0, known + run.owners.n)
    cap = min(2**run.owners.n - 1, most)
    if not widest > 0:
        return replace(run, cap=cap)
    return replace(run, cap=cap, choices=replace(run.choices, stop=within(widest)))


def _compare(then: Rows | None, now: Rows) -> str:
    """How the rows of an owner have changed, in words."""
    if then is None:
        return "the rows have changed"
    (old, held), (new, holds) = (np.unique(rows, return_counts=True) for rows in (then, now))
    if np.array_equal(old, new) and len(set((holds / held).tolist())) == 1 and len(now) > len(then):
        times = round(len(now) / len(then))
        return f"holds its rows {TIMES.get(times, f'{times} times')}"
    _, i, j = np.intersect1d(old, new, return_indices=True)
    common = int(np.minimum(held[i], holds[j]).sum())
    gone, added = len(then) - common, len(now) - common
    if gone == added:
        return f"{gone:,} of {count_things(len(then), 'row')} changed"
    return f"{gone:,} of {count_things(len(then), 'row')} gone, {added:,} new"


def _copies(rows: Mapping[str, Rows], names: list[str]) -> dict[str, str]:
    """Whose rows all those of an owner are, if there is somebody."""
    found: dict[str, str] = {}
    for name in names:
        for other, theirs in rows.items():
            if other != name and np.isin(rows[name], theirs).all():
                found.setdefault(name, other)
    return found
