"""The setting of a store: all that its utilities depend on besides the owners' rows.

It has several parts: model, metric, validation data, seed. A store is only used again with the same
setting, and with at least one owner whose rows are the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from dupre.errors import Remedy, StoreError
from dupre.training.evaluation import now
from dupre.training.sqlite import connect, escape_surrogates, explain_errors, transaction

if TYPE_CHECKING:
    from dupre.training.identity import Part


def check_setting(db: sqlite3.Connection, name: str, setting: Mapping[str, Part]) -> None:
    """Compare the setting of a store with the present one; write it into a new store.

    Raises:
        StoreError: they differ; says in which parts.
    """
    stored = _stored_setting(db, name)
    if not stored:
        rows = [
            (n, escape_surrogates(part.description), part.digest) for n, part in setting.items()
        ]
        db.executemany("INSERT INTO setting VALUES (?, ?, ?)", rows)
    elif differences := _differences(stored, setting):
        raise StoreError(f"{name} was made for {differences}; ", Remedy.TAKE_THE_SAME)


def check_owners(db: sqlite3.Connection, name: str, owners: Mapping[str, str]) -> None:
    """Compare the owners of a store with the present ones; write down those that are new.

    Args:
        db: the store.
        name: of the store, for messages.
        owners: fingerprint of each owner's rows.

    Raises:
        StoreError: no owner's rows are the same.
    """
    with explain_errors(name, "read"):
        before = set(db.execute("SELECT name, fingerprint FROM owners").fetchall())
    present = [(escape_surrogates(owner), mark) for owner, mark in owners.items()]
    if before and before.isdisjoint(present):
        theirs, ours = sorted({owner for owner, _ in before}), list(owners)
        raise StoreError(
            f"{name} was made for other data: no owner's rows are the same as then, their order "
            f"and the types of columns included (its owners: {', '.join(theirs[:5])}; now: "
            f"{', '.join(ours[:5])}); take the same data as then, or ",
            Remedy.ANOTHER_STORE,
        )
    first_seen = now()
    rows = [(owner, mark, first_seen) for owner, mark in present]
    db.executemany("INSERT OR IGNORE INTO owners VALUES (?, ?, ?)", rows)


def restate(path: Path, setting: Mapping[str, Part], parts: Collection[str]) -> None:
    """Declare that the evaluations in a store hold although some parts of its setting changed.

    Raises:
        StoreError: another part has changed as well, it is no store, or it is damaged.
    """
    name = f"the store {str(path)!r}"
    with (
        closing(connect(path.resolve(), make=False)) as db,
        explain_errors(name, "written"),
        transaction(db),
    ):
        stored = _stored_setting(db, name)
        changed = [p for p in setting if p not in stored or stored[p][1] != setting[p].digest]
        if others := [part for part in changed if part not in parts]:
            raise StoreError(
                f"the {others[0]} is not the same as for the evaluations in {name}, so they cannot "
                "be mixed with new ones; restore it, or take ",
                Remedy.ANOTHER_STORE,
            )
        rows = [(setting[p].digest, escape_surrogates(setting[p].description), p) for p in changed]
        db.executemany("UPDATE setting SET fingerprint = ?, description = ? WHERE part = ?", rows)


def _stored_setting(db: sqlite3.Connection, name: str) -> dict[str, tuple[str, str]]:
    """Description and digest of each part."""
    with explain_errors(name, "read"):
        rows = db.execute("SELECT part, description, fingerprint FROM setting").fetchall()
    return {part: (description, digest) for part, description, digest in rows}


def _differences(then: Mapping[str, tuple[str, str]], now: Mapping[str, Part]) -> str:
    """Which parts of a setting are not as they were, in words; empty if none."""
    found = []
    for part in dict.fromkeys([*then, *now]):
        if part not in now:
            found.append(f"a {part} ({then[part][0]}), which is not given now")
        elif part not in then:
            found.append(f"no {part}, which is now {now[part].description}")
        elif then[part][1] != now[part].digest:
            before, after = then[part][0], now[part].description
            what = "with other contents" if before == after else f"now {after}"
            found.append(f"the {part} {before}, {what}")
    return " and ".join(found)
