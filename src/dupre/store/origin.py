"""What stored utilities come from, and whether that is still the same.

Owners' rows and the parts of a utility have fingerprints. The setting of a store is all that its
utilities depend on besides the owners' rows, part by part: model, metric, validation data, seed,
and a version that the user states. Code that a part calls does not count. Some parts are hints: if
one has changed, results may have changed, and the spot check trains the largest stored coalition
(module `spot_check`).

The tables `setting` and `owners` say what a store was made for, `checks` which of its trainings
were done again, and `notes` what the user accepted; every later result repeats it. Where utilities
depend on rows alone, an owner with another name is known by its rows.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dupre._types import Names
from dupre.data.digests import digest, hash_json
from dupre.data.owners import Owners
from dupre.errors import Remedy, StoreError
from dupre.game.coalitions import canonical
from dupre.notes import Code, Note, note
from dupre.store.sqlite import Connection, connect, escape_surrogates, from_json, to_json
from dupre.store.validations import Validation, validation_of
from dupre.training.evaluation import Evaluation, now
from dupre.utility.describe import Part, Traits
from dupre.wording import ROWS_OF, join_list, quote

PACKAGES = ("dupre", "numpy", "scipy", "scikit-learn", "pandas")
"""Packages whose version can change a digit of a result."""

# A counter of calls, levels that nobody uses and a package's patch change; utilities mostly do not.
HINTS = ("state", "categories", "packages")
"""Parts that may change without any change of a utility."""

MODEL = ("utility", "model", "metric", "version")
"""Parts whose change the user can accept; utilities on other validation rows are never mixed."""


_CODES = {"model": Code.ACCEPTED_MODEL, "rows": Code.ACCEPTED_ROWS}
"""What a note in a store is about, by its kind."""


@dataclass(frozen=True)
class Origin:
    """What stored utilities come from.

    Attributes:
        setting: what they depend on besides the owners' rows, part by part.
        owners: fingerprint of each owner's rows.
        by_content: whether they depend on the members' rows alone, not on their names.
        validation: the owners' rows that validate; None if they are nobody's.
        rows: the first 64 bits of the digests of each owner's rows, sorted.
    """

    setting: Mapping[str, Part]
    owners: Mapping[str, str]
    by_content: bool = False
    validation: Validation | None = None
    rows: Mapping[str, NDArray[np.uint64]] = field(default_factory=dict)

    def digest_with(self, others: Sequence[object]) -> str:
        """A digest of all this, hints aside, and of other things."""
        parts = {name: part.digest for name, part in self.setting.items() if name not in HINTS}
        return digest([parts, dict(self.owners), *others])


def origin_of(
    owners: Owners, traits: Traits, contents: Mapping[str, str], stated: str = ""
) -> Origin:
    """What utilities come from; `stated` is the version that the user states.

    `contents` are the fingerprints of the owners' rows.
    """
    setting = dict(traits.fingerprint)
    if stated:
        setting["version"] = Part(stated, digest(stated))
    if levels := _levels(owners):
        setting["categories"] = Part("levels of categories", digest(levels))
    packages = ", ".join(f"{package} {_version(package)}" for package in PACKAGES)
    setting["packages"] = Part(packages, digest(packages))
    rows = owners.row_contents[:, 0]
    held = {name: np.sort(rows[owners.owner == i]) for i, name in enumerate(owners.names)}
    return Origin(setting, contents, traits.by_content, validation_of(traits), held)


def of_owners(owners: Owners, *, renew: bool = True) -> dict[str, str]:
    """A digest of each owner's rows, by name.

    Cells count by value, and the names of columns do; the order and the index of rows do not.
    Digests are computed anew, in case rows were changed in place, unless `renew` is False.
    """
    names = None if owners.columns is None else list(map(repr, owners.columns))
    if renew:
        owners.renew_contents()
    counts, contents = owners.rows.tolist(), owners.contents.tolist()
    return {
        name: hash_json([names, count, words]).hex()[:32]
        for name, count, words in zip(owners.names, counts, contents, strict=True)
    }


def _levels(owners: Owners) -> list[Any]:
    """The levels of every categorical column, in their order: a model may see their codes."""
    columns = owners.X.items() if isinstance(owners.X, pd.DataFrame) else ()
    return [
        [repr(name), column.cat.categories.tolist()]
        for name, column in columns
        if isinstance(column.dtype, pd.CategoricalDtype)
    ]


def provenance(
    seed: int, setting: Mapping[str, Part], contents: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Versions, settings and fingerprints in words; empty settings and texts are not known."""
    parts = {name: part for name, part in setting.items() if name not in HINTS}
    found = {
        "versions": {"Python": platform.python_version()} | {p: _version(p) for p in PACKAGES},
        "settings": {"seed": str(seed), **{k: part.description for k, part in parts.items()}},
        "fingerprints": {k: part.digest for k, part in parts.items()}
        | {f"{ROWS_OF}{name}": mark for name, mark in contents.items() if mark},
    }
    return {section: texts for section, texts in found.items() if texts}


def changed_owners(provenance: Mapping[str, Mapping[str, str]], now: Origin) -> list[str]:
    """Owners of an earlier result whose rows are others now, or who are gone."""
    marks = provenance.get("fingerprints", {})
    then = {k.removeprefix(ROWS_OF): mark for k, mark in marks.items() if k.startswith(ROWS_OF)}
    held = set(now.owners.values()) if now.by_content else set()  # by any name
    return [n for n, mark in then.items() if now.owners.get(n) != mark and mark not in held]


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its sources
        return "not installed"


@dataclass(frozen=True)
class Change:
    """How the setting of a store differs from the present one.

    Attributes:
        text: which parts, in words; empty if they are only hints.
        any: whether any part differs.
        model: whether nothing but the model has changed, which the user can accept.
    """

    text: str = ""
    any: bool = False
    model: bool = True


class StoreOrigin:
    """What one store was made for.

    Args:
        db: the store.
        origin: what utilities come from now.

    Attributes:
        change: how the setting differs; known after `check`.
    """

    def __init__(self, db: Connection, origin: Origin):
        self._db = db
        self._setting, self._owners = origin.setting, origin.owners
        self._by_content = origin.by_content
        self._rows = origin.rows
        # Other rows to score on are no other game then: each evaluation says which ones it had.
        self._hints = HINTS if origin.validation is None else (*HINTS, "validation data")
        self._earlier: list[Mapping[str, str]] = []
        self.change = Change()

    def check(self, *, accept_model: bool) -> None:
        """Compare, inside a transaction; write down the setting of a new store, and new owners.

        Raises:
            StoreError: the setting has changed, or no owner's rows are the same; says what.
        """
        rows = self._db.ask("SELECT part, description, fingerprint FROM setting")
        stored = {part: (description, mark) for part, description, mark in rows}
        if stored:
            self.change = self._compare(stored)
        else:
            self._write_setting()
        if self.change.text and not (accept_model and self.change.model):
            changed = f"{self.change.text}{self._changed_owners()}"
            what = [f"{self._db.name} was made for {changed}; "]
            if self.change.model:
                raise StoreError(*what, Remedy.TAKE_THE_SAME, Remedy.ACCEPT)
            what.append("utilities of both cannot be mixed; take the same things as then, or ")
            raise StoreError(*what, Remedy.ANOTHER_STORE)
        self._check_owners()
        self._write_owners()
        if self._by_content:
            self._earlier = self._read_earlier()

    def holders(self, names: Names, contents: str) -> Names | None:
        """Who holds the rows of a stored evaluation now, names sorted; None if nobody does.

        Args:
            names: the members by their names then.
            contents: the digest of their rows.
        """
        if self._owners.keys() >= set(names) and contents == contents_of(names, self._owners):
            return names
        for marks in self._earlier:
            if marks.keys() >= set(names) and contents == contents_of(names, marks):
                return self._name_by_rows(names, marks)
        return None

    def _name_by_rows(self, names: Names, marks: Mapping[str, str]) -> Names | None:
        """Present names of members, by their fingerprints then; None if one is gone."""
        left, found = dict(self._owners), []  # each once: two owners may hold equal rows
        for name in names:
            same = [owner for owner, mark in left.items() if mark == marks[name]]
            if not same:
                return None
            found.append(name if name in same else same[0])
            del left[found[-1]]
        return canonical(found)

    def _read_earlier(self) -> list[Mapping[str, str]]:
        """Fingerprints by name at all times, if any owner there was has another name now."""
        query = "SELECT first_seen, name, fingerprint FROM owners ORDER BY rowid"
        rows, present = self._db.ask(query), set(self._owners.values())
        if all(self._owners.get(name) == mark for _, name, mark in rows if mark in present):
            return []
        found: list[Mapping[str, str]] = [{}]
        for _, new in groupby(rows, key=lambda row: row[0]):
            found.append({**found[-1], **{name: mark for _, name, mark in new}})
        return found[1:]

    @property
    def checked(self) -> int:
        """How many trainings were done again to check the store; no data does not count."""
        return sum(times for (names, _), times in self.checks().items() if names)

    def checks(self) -> Counter[tuple[Names, int]]:
        """How often each training, by members and repeat, was done again to check the store."""
        rows = self._db.ask("SELECT coalition, repeat FROM checks")
        with self._db.explain_errors("read"):
            return Counter((from_json(names), repeat) for names, repeat in rows)

    @property
    def last_accepted(self) -> int:
        """The last evaluation from before the user accepted a change; 0 if there is none."""
        query = "SELECT coalesce(max(last), 0) FROM notes"
        return int(self._db.ask(query)[0][0])

    def confirm(self, checks: Sequence[tuple[Evaluation, Evaluation]] = ()) -> None:
        """Write down that the evaluations belong to the present setting.

        Args:
            checks: evaluations that were done again, as stored and as they are now.
        """
        rows = [
            (to_json(a.training.members), a.training.repeat, a.utility, b.utility, b.finished)
            for a, b in checks
        ]
        columns = "INSERT INTO checks (coalition, repeat, stored, again, finished)"
        with self._db.write():
            self._db.executemany(f"{columns} VALUES (?, ?, ?, ?, ?)", rows)
            if self.change.any:
                self._write_setting()
            self._write_owners()

    def note(self, kind: str, text: str) -> None:
        """Keep permanently what the user accepted, "model" or "rows"."""
        last = "(SELECT coalesce(max(id), 0) FROM evaluations)" if kind == "model" else "0"
        columns = "INSERT INTO notes (kind, note, written, last)"
        with self._db.write():
            row = (kind, escape_surrogates(text), now())
            self._db.execute(f"{columns} VALUES (?, ?, ?, {last})", row)

    def notes(self) -> list[Note]:
        """What was noted."""
        rows = self._db.ask("SELECT kind, substr(written, 1, 10), note FROM notes ORDER BY id")
        return [note(_CODES[kind], f"{text} ({day}).", day=day) for kind, day, text in rows]

    def _compare(self, stored: Mapping[str, tuple[str, str]]) -> Change:
        """What has changed since the setting was stored, as description and digest of each part."""
        found, differs, model = [], False, True
        for part in dict.fromkeys([*stored, *self._setting]):
            description, mark = stored.get(part, ("", ""))
            new = self._setting.get(part)
            if new is not None and new.digest == mark:
                continue
            differs = True
            same_text = new is not None and new.description == description
            if part in self._hints:
                continue
            model &= part in MODEL
            if new is None:
                found.append(f"a {part} ({description}), which is not given now")
            elif part not in stored:
                found.append(f"no {part}, which is now {new.description}")
            else:
                what = "with other contents" if same_text else f"now {new.description}"
                found.append(f"the {part} {description}, {what}")
        return Change(" and ".join(found), differs, model)

    def _check_owners(self) -> None:
        before = set(self._db.ask("SELECT name, fingerprint FROM owners"))
        pairs = {(escape_surrogates(name), mark) for name, mark in self._owners.items()}
        same_rows = {mark for _, mark in before} & {mark for _, mark in pairs}
        renamed = self._by_content and same_rows
        if before and not (before & pairs or renamed):
            theirs, ours = sorted({owner for owner, _ in before}), list(self._owners)
            what = "name and rows are both" if same_rows else "rows are"
            raise StoreError(
                f"{self._db.name} was made for other data: no owner's {what} the same as then "
                f"(its owners: {', '.join(theirs[:5])}; now: {', '.join(ours[:5])}); take the same "
                "data as then, or ",
                Remedy.ANOTHER_STORE,
            )

    def _changed_owners(self) -> str:
        """Whose rows are no longer those that the store knows, in words."""
        known: dict[str, set[str]] = {}
        for name, mark in self._db.ask("SELECT name, fingerprint FROM owners"):
            known.setdefault(name, set()).add(mark)
        pairs = [(escape_surrogates(name), name, mark) for name, mark in self._owners.items()]
        found = [name for key, name, mark in pairs if mark not in known.get(key, {mark})]
        if not found:
            return ""
        return f" (the rows of {join_list(map(quote, found))} have changed)"

    def _write_setting(self) -> None:
        parts = self._setting.items()
        rows = [(n, escape_surrogates(part.description), part.digest) for n, part in parts]
        self._db.execute("DELETE FROM setting")
        self._db.executemany("INSERT INTO setting VALUES (?, ?, ?)", rows)

    def _write_owners(self) -> None:
        first_seen = now()
        pairs = self._owners.items()
        held = {name: rows.astype("<u8").tobytes() for name, rows in self._rows.items()}
        rows = [(escape_surrogates(o), mark, first_seen, held.get(o)) for o, mark in pairs]
        self._db.executemany("INSERT OR IGNORE INTO owners VALUES (?, ?, ?, ?)", rows)


def read_rows(store: Path) -> dict[tuple[str, str], NDArray[np.uint64]]:
    """Digests of the rows of every owner there was, by name and fingerprint; none without a file.

    Of each row the first 64 bits, sorted.
    """
    if not store.exists():
        return {}
    with closing(connect(store.resolve(), make=False)) as db:
        found = db.ask("SELECT name, fingerprint, rows FROM owners WHERE rows IS NOT NULL")
    return {(name, mark): np.frombuffer(rows, "<u8") for name, mark, rows in found}


def contents_of(names: Names, owners: Mapping[str, str]) -> str:
    """A digest of the rows of a coalition, from the fingerprints of its members' rows."""
    return hash_json([[name, owners[name]] for name in canonical(names)]).hex()[:32]


def has_contents(contents: Callable[[], Mapping[str, str]], members: Names, given: str) -> bool:
    """Whether an evaluation of some contents is of the rows that its members hold now."""
    now = contents() if members else {}
    return set(members) <= now.keys() and contents_of(members, now) == given
