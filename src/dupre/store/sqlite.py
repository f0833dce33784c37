"""The SQLite file of a store: tables, evaluations as rows, opening it, damage, errors explained.

The file is opened through SQLite alone: a process that closes a file drops all its locks on it,
those of SQLite too.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dupre.checks import finite
from dupre.errors import Remedy, StoreError
from dupre.game.coalitions import canonical
from dupre.training.evaluation import Evaluation, Training

# Long enough for a slow disk, short enough that a program which never lets go is named.
LOCK_SECONDS = 60.0
"""How long to wait for another process that is writing, in seconds."""

HEADER = 100
"""The smallest size of an SQLite file in bytes."""

VERSION = 4
APPLICATION_ID = 0x44555052
"""The bytes "DUPR", which mark a file as a store."""

SCHEMA = """
CREATE TABLE setting (
    part TEXT PRIMARY KEY,
    description TEXT NOT NULL,
    fingerprint TEXT NOT NULL
);
CREATE TABLE owners (
    name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    first_seen TEXT NOT NULL,
    rows BLOB,
    PRIMARY KEY (name, fingerprint)
);
CREATE TABLE validations (
    id TEXT PRIMARY KEY,
    k INTEGER,
    rows BLOB NOT NULL,
    holder BLOB,
    label BLOB,
    fold BLOB,
    starts BLOB,
    classes TEXT,
    first_seen TEXT NOT NULL,
    checksum TEXT NOT NULL,
    kept INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE evaluations (
    id INTEGER PRIMARY KEY,
    coalition TEXT NOT NULL,
    contents TEXT NOT NULL,
    validation TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    utility REAL,
    failure TEXT,
    traceback TEXT,
    warnings TEXT NOT NULL,
    seconds REAL NOT NULL,
    seed,
    finished TEXT NOT NULL,
    worker TEXT NOT NULL,
    resampled BLOB,
    checksum TEXT NOT NULL,
    CHECK ((utility IS NULL) <> (failure IS NULL))
);
CREATE UNIQUE INDEX one_utility ON evaluations (contents, validation, repeat)
WHERE utility IS NOT NULL;
CREATE TABLE folds (
    id INTEGER PRIMARY KEY,
    coalition TEXT NOT NULL,
    contents TEXT NOT NULL,
    validation TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    part BLOB NOT NULL,
    warnings TEXT NOT NULL,
    seconds REAL NOT NULL,
    seed,
    finished TEXT NOT NULL,
    worker TEXT NOT NULL,
    checksum TEXT NOT NULL,
    UNIQUE (contents, validation, repeat, fold)
);
CREATE TABLE batches (
    run TEXT NOT NULL,
    number INTEGER NOT NULL,
    position INTEGER NOT NULL,
    coalition TEXT NOT NULL,
    PRIMARY KEY (run, number, position)
);
CREATE TABLE rounds (
    run TEXT NOT NULL,
    evaluated INTEGER NOT NULL,
    found TEXT NOT NULL,
    PRIMARY KEY (run, evaluated)
);
CREATE TABLE checks (
    id INTEGER PRIMARY KEY,
    coalition TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    stored REAL NOT NULL,
    again REAL NOT NULL,
    finished TEXT NOT NULL
);
CREATE TABLE notes (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    note TEXT NOT NULL,
    last INTEGER NOT NULL,
    written TEXT NOT NULL
);
"""

Kind = TypeVar("Kind")

COLUMNS = (
    "coalition, contents, validation, repeat, attempt, utility, failure, traceback, warnings, "
    "seconds, seed, finished, worker, resampled, checksum"
)

FOLD_COLUMNS = (
    "coalition, contents, validation, repeat, fold, part, warnings, seconds, seed, finished, "
    "worker, checksum"
)

VALIDATION_COLUMNS = "id, k, rows, holder, label, fold, starts, classes, first_seen, checksum"


def _insert(table: str, columns: str, unless: str) -> str:
    """A statement that writes a row, unless there is one with the same key."""
    values = ", ".join("?" * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES ({values}) ON CONFLICT {unless} DO NOTHING"


INSERT = _insert("evaluations", COLUMNS, "(contents, validation, repeat) WHERE utility IS NOT NULL")
"""Keeps a failure, or the first utility of a training."""

INSERT_FOLD = _insert("folds", FOLD_COLUMNS, "(contents, validation, repeat, fold)")
"""Keeps the first training for a fold; one that failed is kept as a failure of its coalition."""


class Connection(sqlite3.Connection):
    """A connection to a store; `name` is that of the store in messages."""

    name = ""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that excludes other processes; written to the disk when it ends."""
        try:
            self.execute("BEGIN IMMEDIATE")
            yield
            self.execute("COMMIT")
        finally:
            if self.in_transaction:
                self.execute("ROLLBACK")

    @contextmanager
    def explain_errors(self, verb: str) -> Iterator[None]:
        """Turn an error of SQLite, or of what was read, into a StoreError that says what to do.

        `verb` is what cannot be done with the store: "read", "written".
        """
        try:
            yield
        except sqlite3.Error as cause:
            raise _explain(cause, self.name, verb) from cause
        except (TypeError, ValueError, RecursionError) as cause:  # of what was read
            raise _explain(sqlite3.DatabaseError(str(cause)), self.name, verb) from cause

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction whose errors are explained."""
        with self.explain_errors("written"), self.transaction():
            yield

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of an answer; errors are explained."""
        with self.explain_errors("read"):
            return self.execute(query, values).fetchall()

    def make_tables(self, schema: str) -> None:
        """Execute the statements of a schema, inside a transaction."""
        for statement in schema.split(";\n")[:-1]:
            self.execute(statement)


def connect(path: Path | None, *, make: bool) -> Connection:
    """A connection to a store of this version, or to a new one in memory.

    Args:
        path: absolute path of the file; None for memory.
        make: whether to make the tables if the file is new.

    Raises:
        StoreError: it is no store, damaged, or cannot be read and written.
    """
    name = f"the store {str(path)!r}"
    with ExitStack() as stack:
        try:
            if path is not None:
                _check_path(path, name)
            db = connect_again(path)
            stack.callback(db.close)
            _retry_while_locked(partial(_check_tables, db, make=make))
            if path is not None:
                _check_length(db, path)
        except StoreError:
            raise
        except (sqlite3.Error, OSError, ValueError) as cause:
            raise _explain(cause, name, "opened") from cause
        stack.pop_all()
    return db


def connect_again(path: Path | None) -> Connection:
    """A connection to a store that is known to be one, for any thread, one at a time."""
    db = sqlite3.connect(
        path or ":memory:",
        timeout=LOCK_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=Connection,
    )
    db.name = f"the store {str(path)!r}"
    # Every commit waits for the disk, which takes less time than a training, and is moved from the
    # log into the file at once: what was paid for is in one file.
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 1")
    return db


def escape_surrogates(text: str) -> str:
    """The text without lone surrogates, which SQLite refuses: they are spelled out as in JSON."""
    return text.encode(errors="backslashreplace").decode()


def to_row(evaluation: Evaluation, contents: str, validation: str) -> tuple[Any, ...]:
    """An evaluation as a row of its table, without the key.

    Args:
        evaluation: what is kept.
        contents: the digest of the rows of its coalition.
        validation: the key of the rows that it was scored on.
    """
    training, utility = evaluation.training, evaluation.utility
    row = (
        to_json(canonical(training.members)),
        contents,
        validation,
        training.repeat,
        training.attempt,
        _real(utility),
        escape_surrogates(evaluation.failure) if utility is None else None,
        escape_surrogates(evaluation.traceback) or None,
        to_json(evaluation.warnings),
        _real(evaluation.seconds),
        _seed(evaluation.seed),
        evaluation.finished,
        evaluation.worker,
        None if evaluation.resampled is None else evaluation.resampled.astype("<f8").tobytes(),
    )
    return (*row, checksum(row))


def to_fold_row(evaluation: Evaluation, contents: str, validation: str) -> tuple[Any, ...]:
    """The training for one fold as a row of its table, without the key: see `to_row`."""
    training = evaluation.training
    row = (
        to_json(canonical(training.members)),
        contents,
        validation,
        training.repeat,
        training.fold,
        # Labels and the like have few different bytes.
        zlib.compress(np.asarray(evaluation.part, "<f8").tobytes(), level=1),
        to_json(evaluation.warnings),
        _real(evaluation.seconds),
        _seed(evaluation.seed),
        evaluation.finished,
        evaluation.worker,
    )
    return (*row, checksum(row))


def from_fold_row(row: Sequence[Any]) -> tuple[Evaluation, str]:
    """The training for a fold in a row, and what it was scored on: the key, then FOLD_COLUMNS.

    Raises:
        sqlite3.DatabaseError: the row holds something else.
    """
    key, names, _, validation, repeat, fold, part, caught, *cost = row
    seconds, seed, finished, worker, _ = cost
    with _readable("fold", key, "folds", row):
        evaluation = Evaluation(
            training=Training(from_json(names), expect(int, repeat), fold=expect(int, fold)),
            utility=None,
            part=np.frombuffer(zlib.decompress(expect(bytes, part)), "<f8"),
            warnings=from_json(caught),
            seconds=finite(seconds, "stored seconds"),
            seed=None if seed is None else int(seed),
            finished=expect(str, finished),
            worker=expect(str, worker),
        )
        return evaluation, expect(str, validation)


def _seed(seed: int | None) -> int | str | None:
    # SQLite has 64-bit integers; the column has no type, so that a text stays a text.
    return seed if seed is None or abs(seed) < 2**63 else str(seed)


def _real(number: float | None) -> float | None:
    """A number as SQLite returns it: there is no minus zero."""
    return None if number is None else float(number) + 0.0


def checksum(row: Sequence[Any]) -> str:
    """A checksum of the columns of a row before it: a flipped bit is noticed."""
    return hashlib.blake2b(repr(tuple(row)).encode(), digest_size=8).hexdigest()


def from_row(row: Sequence[Any]) -> tuple[Evaluation, str, str]:
    """The evaluation in a row, the contents of its coalition, and what it was scored on.

    Args:
        row: the key, then COLUMNS.

    Raises:
        sqlite3.DatabaseError: the row holds something else.
    """
    (key, names, contents, validation, repeat, attempt, utility, failure, trace, caught, *cost) = (
        row
    )
    seconds, seed, finished, worker, resampled, _ = cost
    with _readable("evaluation", key, "evaluations", row):
        evaluation = Evaluation(
            training=Training(from_json(names), expect(int, repeat), expect(int, attempt)),
            utility=None if utility is None else finite(utility, "a stored utility"),
            failure=expect(str, failure or ""),
            traceback=expect(str, trace or ""),
            warnings=from_json(caught),
            seconds=finite(seconds, "stored seconds"),
            seed=None if seed is None else int(seed),
            finished=expect(str, finished),
            worker=expect(str, worker),
            resampled=None if resampled is None else np.frombuffer(expect(bytes, resampled), "<f8"),
        )
        return evaluation, expect(str, contents), expect(str, validation)


@contextmanager
def _readable(what: str, key: int, table: str, row: Sequence[Any]) -> Iterator[None]:
    """Check the checksum of a row, and turn what cannot be read into an error of the database."""
    try:
        if row[-1] != checksum(row[1:-1]):
            raise ValueError(
                "its checksum is another; without it the rest can be used: "
                f"DELETE FROM {table} WHERE id = {key}"
            )
        yield
    except (TypeError, ValueError, RecursionError, zlib.error) as cause:
        raise sqlite3.DatabaseError(f"{what} {key} is not readable: {cause}") from cause


def read_stored(path: Path) -> list[tuple[Evaluation, str]]:
    """All evaluations of coalitions in a store, each with the contents of its coalition.

    If its rows have changed, or those that it is scored on, only its evaluations on the latest.

    Raises:
        StoreError: it is no store, or damaged.
    """
    if not path.exists():
        raise StoreError(f"there is no store {str(path)!r}")
    query = f"SELECT id, {COLUMNS} FROM evaluations WHERE coalition <> '[]' ORDER BY id"
    with closing(connect(path.resolve(), make=False)) as db, db.explain_errors("read"):
        rows = [from_row(row) for row in db.execute(query)]
    latest = {evaluation.training.members: what for evaluation, *what in rows}
    return [(found, what[0]) for found, *what in rows if latest[found.training.members] == what]


def find_damaged(path: Path) -> tuple[dict[str, int], list[tuple[str, str | None, str]]]:
    """How many rows a store holds, which have another checksum than they should, or are missing.

    Returns:
        the number of rows by table, and the `last` key of an evaluation; what, as it is kept (None
        if it is missing), and as it should be, for each damaged one.

    Raises:
        StoreError: it is no store, or damaged as a whole.
    """
    counts = {"last": 0, "evaluations": 0, "folds": 0}
    damaged: list[tuple[str, str | None, str]] = []
    with closing(connect(path.resolve(), make=False)) as db, db.explain_errors("read"):
        for table, columns in (("evaluations", COLUMNS), ("folds", FOLD_COLUMNS)):
            for key, names, *rest in db.execute(f"SELECT id, {columns} FROM {table} ORDER BY id"):
                counts[table] += 1
                if rest[-1] != (now := checksum((names, *rest[:-1]))):
                    what = f"checksum of row {key} of {table} ({names})"
                    damaged.append((what, str(rest[-1]), now))
        [(counts["last"],)] = db.ask("SELECT coalesce(max(id), 0) FROM evaluations")
        damaged += _find_missing_folds(db)
    return counts, damaged


def _find_missing_folds(db: Connection) -> list[tuple[str, None, str]]:
    """Which rows of folds are no longer there; of evaluations some may be replaced, of these none.

    A row after the last one leaves no gap, but a coalition with a utility of fewer folds.
    """
    gaps = db.ask(
        "SELECT before + 1, id - 1 FROM "
        "(SELECT id, lag(id, 1, 0) OVER (ORDER BY id) AS before FROM folds) WHERE id > before + 1"
    )
    if gaps:
        rows = [f"row {one}" if one == end else f"rows {one} to {end}" for one, end in gaps]
        return [(f"{row} of folds", None, "there") for row in rows]
    pooled = db.ask(
        "SELECT folds.coalition, repeat, count(DISTINCT fold) FROM folds JOIN evaluations "
        "USING (contents, repeat) WHERE utility IS NOT NULL GROUP BY contents, repeat"
    )
    most = max((done for *_, done in pooled), default=0)
    return [
        (f"{most - done} of {most} folds of {names}, repeat {repeat}", None, "there")
        for names, repeat, done in pooled
        if done < most
    ]


def to_json(texts: Sequence[str]) -> str:
    """Names or warnings as a JSON list."""
    return escape_surrogates(json.dumps(texts, ensure_ascii=False))


def from_json(text: Any) -> tuple[str, ...]:
    """The texts in a JSON list; TypeError or ValueError if it is none."""
    return tuple(expect(str, part) for part in expect(list, json.loads(text)))


def expect(kind: type[Kind], thing: Any) -> Kind:
    """The thing itself; TypeError if it is not of this kind."""
    if not isinstance(thing, kind):
        raise TypeError(f"expected {kind.__name__}, got {thing!r}")
    return thing


def _explain(cause: Exception, name: str, verb: str) -> StoreError:
    """An error of SQLite as a StoreError that says what to do."""
    code = _code(cause)
    help_: tuple[str, ...]
    # A file limit (RLIMIT_FSIZE) shows as an input/output error: to the user the disk is full.
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR) or "full" in str(cause):
        kept = ": everything stored before is kept"
        help_ = ("make room on the disk, then ", Remedy.CALL_AGAIN, kept)
    elif code == sqlite3.SQLITE_NOTADB:
        help_ = ("it is no SQLite file; take ", Remedy.ANOTHER_STORE)
    elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR) or not code:
        help_ = (
            "it is damaged; take a copy of it from before, save what is left with "
            "`sqlite3 FILE .recover`, or take ",
            Remedy.ANOTHER_STORE,
        )
    elif code == sqlite3.SQLITE_BUSY:
        help_ = ("another program has kept it locked for a minute; let that finish first",)
    elif code == sqlite3.SQLITE_CONSTRAINT:
        help_ = ("this is no evaluation; please report it",)
    else:
        help_ = ("may this user read and write the file and its directory?",)
    return StoreError(f"{name} cannot be {verb} ({cause}): ", *help_)


def _check_path(path: Path, name: str) -> None:
    if path.is_dir():
        raise StoreError(f"{name} is a directory; expected a file such as 'run.sqlite'")
    if not path.parent.is_dir():
        raise StoreError(f"{name} cannot be made: there is no directory {str(path.parent)!r}")
    if path.exists() and 0 < path.stat().st_size < HEADER:  # SQLite would overwrite it
        raise StoreError(f"{name} is no SQLite file; take ", Remedy.ANOTHER_STORE)


def _check_tables(db: Connection, *, make: bool) -> None:
    """Make the tables of an empty file; refuse what is no store of this version."""

    def ask(question: str) -> Any:
        return db.execute(question).fetchone()[0]

    marks = [ask("PRAGMA application_id"), ask("PRAGMA user_version")]
    # Marks of 0 are those of any SQLite file: only one without tables is taken for a new store.
    if make and marks == [0, 0] and not ask("SELECT count(*) FROM sqlite_master"):
        db.execute("PRAGMA journal_mode = WAL")
        with db.transaction():
            if not ask("SELECT count(*) FROM sqlite_master"):
                db.make_tables(SCHEMA)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {VERSION}")
    if ask("PRAGMA application_id") != APPLICATION_ID:
        raise StoreError(f"{db.name} is no store of dupre; take ", Remedy.ANOTHER_STORE)
    if (version := ask("PRAGMA user_version")) != VERSION:
        raise StoreError(
            f"{db.name} has version {version} of the tables, this dupre knows version {VERSION}; "
            "use the dupre that made it, or ",
            Remedy.ANOTHER_STORE,
        )
    # Not integrity_check: that also compares indexes with tables, O(N log N) (SQLite's manual).
    if (verdict := ask("PRAGMA quick_check(1)")) != "ok":
        raise sqlite3.DatabaseError(verdict)


def _check_length(db: sqlite3.Connection, path: Path) -> None:
    """Raise DatabaseError if the end of the file is missing: SQLite would read zeros there.

    The order matters: another process may move pages from the log into the file in the meantime.
    """
    pages, size = (db.execute(f"PRAGMA page_{what}").fetchone()[0] for what in ("count", "size"))
    log = Path(f"{path}-wal")
    in_log = log.exists() and log.stat().st_size > 0
    if not in_log and (length := path.stat().st_size) < pages * size:
        raise sqlite3.DatabaseError(f"its end is missing after {length} bytes")


def _retry_while_locked(work: Callable[[], None]) -> None:
    """Call again while another process has a lock: SQLite does not always wait by itself."""
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            locked = _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not locked or time.monotonic() > end:
                raise
        time.sleep(0.05)


def _code(error: Exception) -> int:
    if isinstance(error, (OSError, ValueError)):
        return sqlite3.SQLITE_CANTOPEN
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
