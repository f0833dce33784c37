"""Every paid evaluation, durable the moment it exists.

One SQLite file holds the evaluations of one utility (one model, metric, validation set and seed)
on any set of owners. Each owner's rows have a fingerprint of their own, and an evaluation is valid
wherever all its members' rows are the same as when it was made. The tables are described in
docs/running.md; any SQLite client can read them. Nothing is ever unpickled from a store.

Processes that share a store lock a training before they start it (module `locks`).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from dupre.checks import finite
from dupre.errors import Remedy, StoreError
from dupre.game.coalitions import canonical
from dupre.training.evaluation import Evaluation, Training, now
from dupre.training.locks import FileLocks
from dupre.training.sqlite import connect, explain, transaction

if TYPE_CHECKING:
    from dupre.training.identity import Part

Kind = TypeVar("Kind")

_COLUMNS = (
    "coalition, contents, repeat, attempt, utility, failure, traceback, warnings, seconds, seed, "
    "finished, worker"
)

_INSERT = (
    f"INSERT INTO evaluations ({_COLUMNS}) VALUES ({', '.join('?' * (_COLUMNS.count(',') + 1))}) "
    "ON CONFLICT (contents, repeat) WHERE utility IS NOT NULL DO NOTHING"
)

Contents = Mapping[str, str]


class Store:
    """The evaluations of one utility that are valid for these owners.

    Args:
        path: of the SQLite file, made if it does not exist; None for one in memory.
        setting: what utilities depend on besides the owners' rows.
        owners: fingerprint of each owner's rows.
        key: what is the same for coalitions that one evaluation serves, and for no others; by
            default their names.

    Raises:
        StoreError: no store, damaged, or made for another setting or other data; says which.
    """

    def __init__(
        self,
        path: str | Path | None,
        setting: Mapping[str, Part],
        owners: Contents,
        key: Callable[[tuple[str, ...]], Hashable] | None = None,
    ):
        self.path = None if path is None else Path(path).resolve()
        self._owners = dict(owners)
        self._last = 0
        self.stale = 0  # evaluations of these owners, but of rows that have changed since
        self._utilities: dict[tuple[str, ...], dict[int, Evaluation]] = defaultdict(dict)
        self._failures: dict[tuple[str, ...], dict[int, Evaluation]] = defaultdict(dict)
        self._key = key or canonical
        self._same: dict[Hashable, dict[tuple[str, ...], None]] = defaultdict(dict)
        self._db = connect(self.path, make=True)
        self._place = None if self.path is None else self.path.stat().st_ino
        self._locks = FileLocks(None)
        try:
            self._locks = FileLocks(self.path)
            with self._transaction():
                self._check(setting)
            self.refresh()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release all locks and close the file."""
        self._locks.close()
        self._db.close()

    def utilities(self, members: tuple[str, ...]) -> dict[int, Evaluation]:
        """The successful evaluations of a coalition, by repeat."""
        return self._utilities.get(canonical(members), {})

    def same(self, members: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Stored coalitions that one evaluation serves together with this one, names sorted."""
        return sorted(self._same.get(self._key(members), ()))

    def contradiction(
        self, members: tuple[str, ...], utilities: Sequence[float]
    ) -> tuple[float, float] | None:
        """The first of some utilities, by repeat, that is stored otherwise, and the stored one."""
        for repeat, utility in enumerate(utilities):
            stored = self.utilities(members).get(repeat)
            if stored is not None and stored.utility is not None and stored.utility != utility:
                return utility, stored.utility
        return None

    def failures(self, members: tuple[str, ...]) -> dict[int, Evaluation]:
        """The last failed evaluation of each repeat that has never succeeded."""
        known = self.utilities(members)
        failed = self._failures.get(canonical(members), {})
        return {repeat: found for repeat, found in failed.items() if repeat not in known}

    def coalitions(self) -> list[tuple[str, ...]]:
        """Every coalition with an evaluation that is valid here, names sorted."""
        return list(dict.fromkeys([*self._utilities, *self._failures]))

    def evaluations(self) -> list[Evaluation]:
        """Every evaluation of a coalition that is valid here; of failed ones the last attempt."""
        found: list[Evaluation] = []
        coalitions = [names for names in self.coalitions() if names]
        for names in sorted(coalitions, key=lambda names: (len(names), names)):
            either = {**self.failures(names), **self.utilities(names)}
            found.extend(either[repeat] for repeat in sorted(either))
        return found

    def refresh(self) -> bool:
        """Read what has been added, also by other processes; whether there was anything."""
        columns = f"SELECT id, {_COLUMNS} FROM evaluations WHERE id > ? ORDER BY id"
        with self._explain_errors("read"):
            rows = self._db.execute(columns, (self._last,)).fetchall()
        valid = 0
        for row in rows:
            with self._explain_errors("read"):
                evaluation, contents = _from_row(row)
            names = evaluation.training.members
            if all(name in self._owners for name in names):
                if contents == self._contents(names):
                    found = self._failures if evaluation.utility is None else self._utilities
                    found[names][evaluation.training.repeat] = evaluation
                    self._same[self._key(names)][names] = None
                    valid += 1
                else:
                    self.stale += 1
            self._last = row[0]  # last: an interruption must not lose it
        return valid > 0

    def save(self, evaluation: Evaluation) -> None:
        """Write one evaluation to the disk. A second utility of the same training is ignored."""
        self._check_place()
        with self._transaction():
            self._db.execute(_INSERT, self._row(evaluation))
        self.refresh()

    def record(self, evaluations: Sequence[Evaluation], *, replacing: bool = False) -> None:
        """Write several evaluations, all or none; `replacing` whatever their coalitions had."""
        rows = [self._row(evaluation) for evaluation in evaluations]
        contents = {self._contents(canonical(e.training.members)) for e in evaluations}
        self._check_place()
        with self._transaction():
            if replacing:
                where = "DELETE FROM evaluations WHERE contents = ?"
                self._db.executemany(where, [(mark,) for mark in contents])
            self._db.executemany(_INSERT, rows)
        self._utilities.clear()  # numbers of rows that are gone may be given again
        self._failures.clear()
        self._same.clear()
        self._last = self.stale = 0
        self.refresh()

    def lock(self, training: Training) -> bool:
        """Lock a training for this store; False while another store or process has it."""
        return self._locks.acquire(self._byte(training))

    def unlock(self, training: Training) -> None:
        """Release the lock of a training."""
        self._locks.release(self._byte(training))

    def batch(self, run: str) -> tuple[int, list[tuple[str, ...]]]:
        """Number and coalitions of the latest batch a run has decided on; 0 and none at first."""
        latest = "SELECT coalesce(max(number), 0) FROM batches WHERE run = ?"
        members = "SELECT coalition FROM batches WHERE run = ? AND number = ? ORDER BY position"
        with self._explain_errors("read"):
            (number,) = self._db.execute(latest, (run,)).fetchone()
            rows = self._db.execute(members, (run, number)).fetchall()
            return number, [_strings(text) for (text,) in rows]

    def begin_batch(self, run: str, number: int, coalitions: Sequence[tuple[str, ...]]) -> bool:
        """Write down what a run evaluates next, before it does.

        A run that is killed amid a batch then finishes that batch before it decides anew, so that
        it decides as if it had not been killed.

        Returns:
            Whether it was written: not if another process has written a batch of this number.
        """
        rows = [
            (run, number, position, _json(canonical(names)))
            for position, names in enumerate(coalitions)
        ]
        with self._transaction():
            if self.batch(run)[0] >= number:
                return False
            self._db.executemany("INSERT INTO batches VALUES (?, ?, ?, ?)", rows)
        return True

    def save_round(self, run: str, evaluated: int, found: Mapping[str, float]) -> None:
        """Keep what a run knew after this many evaluations."""
        with self._transaction():
            row = (run, evaluated, json.dumps(dict(found)))
            self._db.execute("INSERT OR IGNORE INTO rounds VALUES (?, ?, ?)", row)

    def rounds(self, run: str) -> dict[int, dict[str, float]]:
        """What a run knew after how many evaluations."""
        query = "SELECT evaluated, found FROM rounds WHERE run = ? ORDER BY evaluated"
        with self._explain_errors("read"):
            rows = self._db.execute(query, (run,)).fetchall()
            return {_expect(int, n): _expect(dict, json.loads(text)) for n, text in rows}

    def _row(self, evaluation: Evaluation) -> tuple[Any, ...]:
        """An evaluation as a row of its table."""
        training, seed = evaluation.training, evaluation.seed
        names = canonical(training.members)
        return (
            _json(names),
            self._contents(names),
            training.repeat,
            training.attempt,
            evaluation.utility,
            _text(evaluation.failure) if evaluation.utility is None else None,
            _text(evaluation.traceback) or None,
            _json(evaluation.warnings),
            evaluation.seconds,
            seed if seed is None or abs(seed) < 2**63 else str(seed),
            evaluation.finished,
            evaluation.worker,
        )

    def _check(self, setting: Mapping[str, Part]) -> None:
        """Compare what the store was made for with what is asked now; fill in a new store."""
        then = dict(self._rows("SELECT part, fingerprint FROM setting"))
        if not then:
            rows = [(n, _text(part.description), part.digest) for n, part in setting.items()]
            self._db.executemany("INSERT INTO setting VALUES (?, ?, ?)", rows)
        elif then != {name: part.digest for name, part in setting.items()}:
            told = dict(self._rows("SELECT part, description FROM setting"))
            raise StoreError(
                f"{self._name} was made for {_differences(then, told, setting)}; ",
                Remedy.TAKE_THE_SAME,
            )
        before = set(self._rows("SELECT name, fingerprint FROM owners"))
        if before and before.isdisjoint((_text(n), mark) for n, mark in self._owners.items()):
            theirs = ", ".join(sorted({name for name, _ in before})[:5])
            raise StoreError(
                f"{self._name} was made for other data: no owner's rows are the same as then, "
                "their order and the types of columns included "
                f"(its owners: {theirs}; now: {', '.join(list(self._owners)[:5])}); take the same "
                "data as then, or ",
                Remedy.ANOTHER_STORE,
            )
        rows = [(_text(name), mark, now()) for name, mark in self._owners.items()]
        self._db.executemany("INSERT OR IGNORE INTO owners VALUES (?, ?, ?)", rows)

    def _check_place(self) -> None:
        """Notice that the file was deleted or replaced: SQLite would go on writing to a ghost."""
        if self.path is not None:
            try:
                place = self.path.stat().st_ino
            except OSError:
                place = None
            if place != self._place:
                raise StoreError(
                    f"{self._name} has been moved or deleted during the run; put it back, or ",
                    Remedy.BEGIN_ANOTHER_STORE,
                )

    @property
    def _name(self) -> str:
        return f"the store {str(self.path)!r}"

    def _rows(self, query: str) -> list[Any]:
        with self._explain_errors("read"):
            return self._db.execute(query).fetchall()

    def _contents(self, names: tuple[str, ...]) -> str:
        return contents_of(names, self._owners)

    def _byte(self, training: Training) -> int:
        """Which byte of the lock file stands for a training."""
        text = f"{self._contents(canonical(training.members))} {training.repeat}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")

    @contextmanager
    def _explain_errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as cause:
            raise explain(cause, self._name, verb) from cause
        except (TypeError, ValueError, RecursionError) as cause:  # of what was read
            damage = sqlite3.DatabaseError(str(cause))
            raise explain(damage, self._name, verb) from cause

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explain_errors("written"), transaction(self._db):
            yield


def restate(path: Path, setting: Mapping[str, Part], parts: Collection[str]) -> None:
    """Declare that the evaluations in a store hold although some parts of its setting changed.

    Raises:
        StoreError: another part has changed as well, it is no store, or it is damaged.
    """
    name = f"the store {str(path)!r}"
    db = connect(path.resolve(), make=False)
    try:
        with transaction(db):
            then = dict(db.execute("SELECT part, fingerprint FROM setting").fetchall())
            changed = [p for p in setting if then.get(p) != setting[p].digest]
            if firm := [part for part in changed if part not in parts]:
                raise StoreError(
                    f"the {firm[0]} is not the same as for the evaluations in {name}, so they "
                    "cannot be mixed with new ones; restore it, or take ",
                    Remedy.ANOTHER_STORE,
                )
            rows = [(setting[p].digest, _text(setting[p].description), p) for p in changed]
            update = "UPDATE setting SET fingerprint = ?, description = ? WHERE part = ?"
            db.executemany(update, rows)
    except sqlite3.Error as cause:
        raise explain(cause, name, "written") from cause
    finally:
        db.close()


def read_stored(path: Path) -> list[tuple[Evaluation, str]]:
    """All evaluations of coalitions in a store, each with the contents of its coalition.

    Of a coalition whose rows have changed in between, only those of the last rows.

    Raises:
        StoreError: it is no store, or damaged.
    """
    name = f"the store {str(path)!r}"
    if not path.exists():
        raise StoreError(f"there is no store {str(path)!r}")
    db = connect(path.resolve(), make=False)
    try:
        query = f"SELECT id, {_COLUMNS} FROM evaluations WHERE coalition <> '[]' ORDER BY id"
        rows = [_from_row(row) for row in db.execute(query)]
    except sqlite3.Error as cause:
        raise explain(cause, name, "read") from cause
    finally:
        db.close()
    latest = {evaluation.training.members: contents for evaluation, contents in rows}
    return [(found, what) for found, what in rows if latest[found.training.members] == what]


def contents_of(names: tuple[str, ...], owners: Contents) -> str:
    """A digest of the rows of a coalition, from the fingerprints of its members' rows."""
    marks = json.dumps([[name, owners[name]] for name in canonical(names)])
    return hashlib.sha256(marks.encode()).hexdigest()[:32]


def _text(text: str) -> str:
    """The text as SQLite takes it: characters that are none are spelled out, as JSON does."""
    return text.encode(errors="backslashreplace").decode()


def _json(names: Sequence[str]) -> str:
    return _text(json.dumps(names, ensure_ascii=False))


def _from_row(row: Sequence[Any]) -> tuple[Evaluation, str]:
    """The evaluation in a row and the contents of its coalition; DatabaseError if it is none."""
    (key, names, contents, repeat, attempt, utility, failure, trace, caught, *cost) = row
    seconds, seed, finished, worker = cost
    try:
        evaluation = Evaluation(
            training=Training(_strings(names), _expect(int, repeat), _expect(int, attempt)),
            utility=None if utility is None else finite(utility, "a stored utility"),
            failure=_expect(str, failure or ""),
            traceback=_expect(str, trace or ""),
            warnings=_strings(caught),
            seconds=finite(seconds, "stored seconds"),
            seed=None if seed is None else int(seed),
            finished=_expect(str, finished),
            worker=_expect(str, worker),
        )
        return evaluation, _expect(str, contents)
    except (TypeError, ValueError, RecursionError) as cause:
        raise sqlite3.DatabaseError(f"evaluation {key} is not readable: {cause}") from cause


def _strings(text: Any) -> tuple[str, ...]:
    return tuple(_expect(str, part) for part in _expect(list, json.loads(text)))


def _expect(kind: type[Kind], thing: Any) -> Kind:
    if not isinstance(thing, kind):
        raise TypeError(f"expected {kind.__name__}, got {thing!r}")
    return thing


def _differences(then: Mapping[str, str], told: Mapping[str, str], now: Mapping[str, Part]) -> str:
    """Which parts of a setting are not as they were, in words."""
    found = []
    for part in dict.fromkeys([*then, *now]):
        if part not in now:
            found.append(f"a {part} ({told[part]}), which is not given now")
        elif part not in then:
            found.append(f"no {part}, which is now {now[part].description}")
        elif then[part] != now[part].digest:
            same = told[part] == now[part].description
            what = "with other contents" if same else f"now {now[part].description}"
            found.append(f"the {part} {told[part]}, {what}")
    return " and ".join(found)
