"""What a store and a result were made from, and whether that is still the same.

Owners' rows and the parts of a utility have fingerprints. The setting of a store is all that its
utilities depend on besides the owners' rows, part by part: model, metric, validation data, seed.
"""

from __future__ import annotations

import platform
import sqlite3
import textwrap
import types
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from dupre.data.digests import digest, stated_fingerprint
from dupre.data.owners import Owners
from dupre.data.rows import take
from dupre.errors import Remedy, StoreError
from dupre.training.evaluation import now
from dupre.training.sqlite import connect, escape_surrogates, explain_errors, transaction

PACKAGES = ("dupre", "numpy", "scipy", "scikit-learn", "pandas")
"""Packages whose version can change a digit of a result."""


@dataclass(frozen=True)
class Part:
    """One part of what a utility depends on besides the owners' rows."""

    description: str
    digest: str


def of_owners(owners: Owners) -> dict[str, str]:
    """A digest of each owner's rows, by name: their order and the types of columns count."""
    held = [np.flatnonzero(owners.owner == index) for index in range(owners.n)]
    digests = [digest((take(owners.X, rows), owners.y[rows])) for rows in held]
    return dict(zip(owners.names, digests, strict=True))


def of_utility(utility: Any) -> dict[str, Part]:
    """What the utility of a coalition depends on besides its rows, part by part.

    The parts are those of the utility's `fingerprint`: a text, or a mapping from names to parts.
    Without a fingerprint the utility is one part.
    """
    stated = stated_fingerprint(utility)
    whole = utility if stated is None else stated
    parts = {"utility": whole}
    if isinstance(stated, Mapping):  # a subclass may use the same parts differently
        parts = {"utility": type(utility), **stated}
    return {str(name): Part(_describe(part), digest(part)) for name, part in parts.items()}


def provenance(
    seed: int, setting: Mapping[str, Part], contents: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Versions, settings and fingerprints, in words.

    Args:
        seed: of everything random in dupre.
        setting: what utilities depend on besides the owners' rows; empty if not known.
        contents: fingerprint of each owner's rows; empty texts if not known.
    """
    found = {
        "versions": {"Python": platform.python_version()} | {p: _version(p) for p in PACKAGES},
        "settings": {"seed": str(seed), **{k: part.description for k, part in setting.items()}},
        "fingerprints": {k: part.digest for k, part in setting.items()}
        | {f"rows of {name}": mark for name, mark in contents.items() if mark},
    }
    return {section: texts for section, texts in found.items() if texts}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its sources
        return "not installed"


def _describe(part: Any) -> str:
    """A part in words, for messages that say what differs."""
    if isinstance(part, str):
        text = part
    elif isinstance(part, tuple) and len(part) == 2 and hasattr(part[1], "__len__"):
        text = f"{len(part[1])} rows"
    elif isinstance(part, types.FunctionType):
        text = f"the function {part.__qualname__}"
    elif " at 0x" in repr(part):
        text = f"a {type(part).__qualname__}"
    elif isinstance(part, type):
        text = part.__qualname__
    else:
        text = repr(part)
    return textwrap.shorten(" ".join(text.split()), 300, placeholder=" …")


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
