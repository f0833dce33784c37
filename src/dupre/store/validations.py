"""Which rows validate: a store keeps to those that it was made with, whoever joins or leaves.

With folds or a part held out the owners' rows validate. A store writes down which ones, and every
later run scores on these alone, until it is asked to split anew. So an owner who joins changes no
utility of the others. Rows that nobody holds any more drop out: that is another set of validation
rows, and each evaluation says which one it was scored on. Of trainings for single folds the
predictions are kept, row by row: what they score on fewer rows follows without a training.

A set is known by a digest of its rows and of all that a score depends on besides.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dupre._types import Floats, Ints
from dupre.data.digests import digest
from dupre.store.sqlite import VALIDATION_COLUMNS, Connection, checksum, connect, expect
from dupre.training.evaluation import now
from dupre.utility.describe import Traits
from dupre.utility.folds import Validating

Layout = Callable[[Validating, int], tuple[NDArray[np.uint64], Ints]]

OF_NOBODY = ""
"""What evaluations are scored on if their validation rows are not split from the owners' rows."""


@dataclass(frozen=True, eq=False)
class Validation:
    """The rows that validate now.

    Attributes:
        fixed: all that may validate.
        present: those of them that somebody holds.
        layout: callable(rows, repeat) -> digests of those that validate in a repeat, and folds.
        pooled: whether predictions are kept, so that a score on fewer rows follows.
    """

    fixed: Validating
    present: Validating
    layout: Layout
    pooled: bool

    @property
    def key(self) -> str:
        """A digest of all that a score depends on besides the model."""
        # Who held a row, also of those that are gone, decides its weight.
        weights = None if self.fixed.holder is None else self.fixed.key
        return self.present.key if weights is None else digest([self.present.key, weights])

    def serves(self, earlier: Validating) -> bool:
        """Whether predictions for earlier rows tell what these rows would score."""
        now, then = self.present, earlier
        if not self.pooled or not np.isin(now.rows, then.rows).all():
            return False
        place = np.searchsorted(then.rows, now.rows)
        return all(
            _are_equal(getattr(now, name), part if part is None or whole else part[place])
            for name, whole in (("label", False), ("fold", False), ("starts", True))
            for part in [getattr(then, name)]
        ) and _are_equal(now.classes, then.classes)

    def take(self, part: Floats, earlier: Validating, repeat: int, fold: int) -> Floats:
        """What was predicted for a fold of earlier rows, for those of them that are present."""
        rows, folds = self.layout(earlier, repeat)
        kept = np.isin(rows[folds == fold], self.present.rows)
        return part.reshape(len(kept), -1)[kept].reshape(-1) if len(kept) else part


def validation_of(traits: Traits) -> Validation | None:
    """The rows that validate; None if they are nobody's, or were dealt by another splitter."""
    if traits.fixed is None:
        return None
    present = traits.fixed.held_by(traits.utility.owners)
    return Validation(traits.fixed, present, traits.utility.rows_of_folds, traits.pooled)


def read_kept(path: Path) -> Validating | None:
    """The rows that a store keeps to; None if there is no store, or if they are nobody's.

    Raises:
        StoreError: the store cannot be read.
    """
    if not path.exists():
        return None
    with closing(connect(path.resolve(), make=False)) as db:
        return _read_kept(db)


class StoreValidations:
    """The sets of rows that evaluations of one store were scored on.

    Args:
        db: the store.
        validation: rows that validate now; None if they are nobody's.

    Attributes:
        key: of the present set.
        serving: earlier sets whose predictions tell what these rows would score, by their keys.
    """

    def __init__(self, db: Connection, validation: Validation | None):
        self._db, self._validation = db, validation
        self.key = OF_NOBODY if validation is None else validation.key
        self.serving: dict[str, Validating] = {}

    def write(self, *, revalidate: bool) -> None:
        """Write down the present set, inside a transaction; later runs keep to the first one.

        With `revalidate` they keep to the present one.
        """
        if (validation := self._validation) is None:
            return
        query = f"SELECT {VALIDATION_COLUMNS} FROM validations WHERE kept = 0 AND id <> ?"
        earlier = {row[0]: _from_row(row) for row in self._db.ask(query, self.key)}
        self.serving = {key: rows for key, rows in earlier.items() if validation.serves(rows)}
        kept = _read_kept(self._db)
        self._insert(self.key, validation.present)
        if kept is None or (revalidate and kept.key != validation.fixed.key):
            key = f"{validation.fixed.key} fixed"
            self._insert(key, validation.fixed)
            number = "(SELECT 1 + coalesce(max(kept), 0) FROM validations)"
            self._db.execute(f"UPDATE validations SET kept = {number} WHERE id = ?", (key,))

    def take(self, part: Floats, key: str, repeat: int, fold: int) -> Floats:
        """What was predicted for a fold of the set with this key, for the present rows."""
        if key == self.key or self._validation is None:
            return part
        return self._validation.take(part, self.serving[key], repeat, fold)

    def _insert(self, key: str, rows: Validating) -> None:
        row = _to_row(key, rows)
        marks = ", ".join("?" * len(row))
        columns = VALIDATION_COLUMNS
        self._db.execute(f"INSERT OR IGNORE INTO validations ({columns}) VALUES ({marks})", row)


def _read_kept(db: Connection) -> Validating | None:
    """The rows to keep to: those of the beginning, or of the last time they were split anew."""
    query = (
        f"SELECT {VALIDATION_COLUMNS} FROM validations WHERE kept > 0 ORDER BY kept DESC LIMIT 1"
    )
    found = db.ask(query)
    with db.explain_errors("read"):
        return _from_row(found[0]) if found else None


def _are_equal(one: Any, other: Any) -> bool:
    return (one is None and other is None) or bool(np.array_equal(one, other))


_ARRAYS = {"rows": "<u8", "holder": "<i8", "label": "<u8", "fold": "<i8", "starts": "<f8"}


def _to_row(key: str, rows: Validating) -> tuple[Any, ...]:
    arrays = [
        None if getattr(rows, name) is None else getattr(rows, name).astype(kind).tobytes()
        for name, kind in _ARRAYS.items()
    ]
    classes = None if rows.classes is None else json.dumps(rows.classes.tolist())
    row = (key, rows.k, *arrays, classes, now())
    return (*row, checksum(row))


def _from_row(row: tuple[Any, ...]) -> Validating:
    """The rows of a set; sqlite3.DatabaseError if they are not those that were written."""
    key, k, *blobs, classes, _, mark = row
    if mark != checksum(row[:-1]):
        raise sqlite3.DatabaseError(f"validation {key} is not readable: its checksum is another")
    arrays: dict[str, Any] = {
        name: None if blob is None else np.frombuffer(expect(bytes, blob), kind).astype(kind[1:])
        for (name, kind), blob in zip(_ARRAYS.items(), blobs, strict=True)
    }
    labels = None if classes is None else np.array(json.loads(classes))
    return Validating(**arrays, k=k, classes=labels)
