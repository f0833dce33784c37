"""The store: every evaluation is on the disk as soon as it is finished.

One SQLite file holds the evaluations of one utility (one model, metric, validation set and seed)
for any set of owners. Each owner's rows have a fingerprint. An evaluation is valid as long as the
rows of all its members are the same, also by other names if these do not count. The tables are
described in docs/running.md; any SQLite client can read them. Nothing is ever unpickled from a
store.

One process at a time writes to a store (module `locks`); any number may read it meanwhile.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dupre._types import Names
from dupre.errors import InputError, Remedy, StoreError
from dupre.game.coalitions import canonical
from dupre.store.locks import FileLock
from dupre.store.origin import Origin, StoreOrigin, contents_of
from dupre.store.sqlite import (
    COLUMNS,
    FOLD_COLUMNS,
    INSERT,
    INSERT_FOLD,
    Connection,
    connect,
    connect_again,
    expect,
    from_fold_row,
    from_json,
    from_row,
    to_fold_row,
    to_json,
    to_row,
)
from dupre.store.validations import StoreValidations, read_kept
from dupre.training.evaluation import Evaluation, Training, pool
from dupre.training.threads import switch_quickly
from dupre.utility.describe import Traits, validate_by

Statement = tuple[str, tuple[Any, ...]]
"""A statement of SQL, and the row that it writes."""


@dataclass(frozen=True)
class Stored:
    """A store with its options, instead of a path for `store=`.

    Args:
        path: of the SQLite file.
        version: any text of your own; the store of another version is refused. State it if results
            depend on something that you change at times.
        check: whether to train one stored coalition again, to see whether its utility is the same.
        accept_model: whether to keep stored utilities although the model, the metric or the code
            has changed. Every later result says so.
        revalidate: whether to split the owners' rows anew for validation. With folds or a part held
            out, a store keeps to the rows that validated when it was made; those of owners who
            joined later train and do not validate. All trainings are then done again.

    Raises:
        InputError: the path or the version is no text.
    """

    path: str | Path
    version: str = ""
    check: bool = True
    accept_model: bool = False
    revalidate: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, Path)):
            raise InputError(
                f"store must be the path of a file such as 'run.sqlite', got {self.path!r}"
            )
        if not isinstance(self.version, str):
            raise InputError(f"version must be a text such as '2', got {self.version!r}")

    def validate(self, utility: Any) -> Any:
        """The utility on the rows that the store was made with, unless they are split anew.

        Raises:
            InputError: the utility keeps to others.
            StoreError: the store cannot be read.
        """
        kept = None if self.revalidate else read_kept(Path(self.path))
        return utility if kept is None else validate_by(utility, kept)


class Store:
    """The evaluations of one utility that are valid for these owners.

    Args:
        origin: what utilities come from.
        asked: the file, made if it does not exist, and its options; None for a store in memory.
        key: callable(members) -> key, equal for coalitions that share one evaluation; by default
            their names.

    Attributes:
        path: of the file; None in memory.
        origin: what the store was made for, how that was checked, and what the user accepted.
        key: equal for coalitions that share one evaluation.
        stale: number of evaluations of these owners on rows that have changed since.

    Raises:
        StoreError: no store, damaged, or made for another setting or other data; says which.
    """

    def __init__(
        self,
        origin: Origin,
        asked: Stored | None = None,
        key: Callable[[Names], Hashable] | None = None,
    ):
        self.path = None if asked is None else Path(asked.path).resolve()
        self._owners = dict(origin.owners)
        self._last = 0
        self.stale = 0
        self._utilities: dict[Names, dict[int, Evaluation]] = defaultdict(dict)
        self._keys: dict[tuple[Names, int], int] = {}
        self._failures: dict[Names, dict[int, Evaluation]] = defaultdict(dict)
        self.key = key or canonical
        self._same: dict[Hashable, dict[Names, None]] = defaultdict(dict)
        self._elsewhere: dict[tuple[Names, int], str] = {}
        # `Path.exists` raises for some names.
        made_now = self.path is not None and not os.path.exists(self.path)
        with ExitStack() as stack:
            self._db = stack.enter_context(closing(connect(self.path, make=True)))
            self._inode = None if self.path is None else self.path.stat().st_ino
            self._lock = None if self.path is None else FileLock(Path(f"{self.path}-lock"))
            if self._lock is not None:
                stack.callback(self._lock.close)
            self.origin = StoreOrigin(self._db, origin)
            self._scored = StoreValidations(self._db, origin.validation)
            with self._db.write():
                self.origin.check(accept_model=asked is not None and asked.accept_model)
                self._scored.write(revalidate=asked is not None and asked.revalidate)
            if made_now and self._lock is not None:  # the file is that of a store that was deleted
                self._lock.last = 0
            self._catch_up()
            self._writer = _Writer(self.path)
            stack.callback(self._writer.close)
            self._resources = stack.pop_all()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let other processes write to it."""
        self._resources.close()

    def hold(self) -> None:
        """Keep other processes from writing to the store until it is closed.

        Raises:
            StoreError: another one writes to it; says which, and since when.
        """
        if self._lock is None:
            return
        if not self._lock.acquire():
            raise StoreError(
                f"{self._db.name} is in use by another run ({self._lock.holder}); wait for it to "
                "end, or stop it. What it has stored can be read meanwhile"
            )
        self._resources.enter_context(switch_quickly())  # for the threads of `write_at_once`
        self._catch_up()  # another one may have written since this one opened the file

    def utilities(self, members: Names) -> dict[int, Evaluation]:
        """The successful evaluations of a coalition, by repeat."""
        return self._utilities.get(canonical(members), {})

    def seconds(self, members: Names) -> float:
        """How long the first training of a coalition took; 0 if that is not known."""
        # Later repeats do not count: what is known after the first stays as it is.
        first = self.utilities(members).get(0)
        return 0.0 if first is None else first.seconds

    def same(self, members: Names) -> list[Names]:
        """Stored coalitions that share one evaluation with this one, names sorted."""
        return sorted(self._same.get(self.key(members), ()))

    def contradiction(
        self, members: Names, utilities: Mapping[int, float]
    ) -> tuple[float, float] | None:
        """The first given utility, by repeat, that differs from the stored one, and that one."""
        for repeat, utility in sorted(utilities.items()):
            stored = self.utilities(members).get(repeat)
            if stored is not None and stored.utility is not None and stored.utility != utility:
                return utility, stored.utility
        return None

    def failures(self, members: Names) -> dict[int, Evaluation]:
        """The last failed evaluation of each repeat that has never succeeded."""
        known = self.utilities(members)
        failed = self._failures.get(canonical(members), {})
        return {repeat: found for repeat, found in failed.items() if repeat not in known}

    def coalitions(self) -> list[Names]:
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

    def folds_done(self, members: Names, repeat: int) -> set[int]:
        """The folds of a coalition for which it was trained, in one of its repeats."""
        return {row[1] for row in self._fold_rows("fold", members, repeat)}

    def count_folds(self) -> int:
        """Trainings for single folds, of any coalition."""
        [(count,)] = self._db.ask("SELECT count(*) FROM folds")
        return int(count)

    def folds(self, members: Names, repeat: int) -> list[Evaluation]:
        """The trainings of a coalition for its folds, in their order, for the present rows."""
        found: dict[int, Evaluation] = {}
        with self._db.explain_errors("read"):
            for _, *row in self._fold_rows(f"fold, id, {FOLD_COLUMNS}", members, repeat):
                evaluation, key = from_fold_row(row[1:])
                fold, part = row[0], evaluation.part
                if part is not None and fold not in found:
                    part = self._scored.take(part, key, repeat, fold)
                    found[fold] = replace(evaluation, part=part)
        return list(found.values())

    def _fold_rows(self, columns: str, members: Names, repeat: int) -> list[tuple[Any, ...]]:
        """Rows of folds that tell of the present validation rows: those of this set come first."""
        keys = [self._scored.key, *self._scored.serving]
        marks = ", ".join("?" * len(keys))
        query = (
            f"SELECT validation <> ?, {columns} FROM folds WHERE contents IN (?, ?) "
            f"AND repeat = ? AND validation IN ({marks}) ORDER BY fold, 1, id"
        )
        both = [self._contents(members), self._elsewhere.get((canonical(members), repeat))]
        return self._db.ask(query, keys[0], *both, repeat, *keys)

    def score_again(self, traits: Traits) -> None:
        """Score what was scored on other validation rows on the present ones, where parts tell.

        Of the trainings that are kept in parts, one for each fold, nothing is trained again.
        """
        for training in self.scored_elsewhere():
            parts = self.folds(training.members, training.repeat)
            if traits.pooled and len(parts) == traits.folds:
                self.save(pool(traits, training, parts))

    def scored_elsewhere(self) -> list[Training]:
        """Trainings of these owners that were scored on other validation rows only."""
        return [
            Training(names, repeat)
            for names, repeat in sorted(self._elsewhere)
            if repeat not in self._utilities.get(names, {})
        ]

    def refresh(self) -> None:
        """Read new evaluations, also those that a thread has written."""
        for key, evaluation, contents, scored in self._new_evaluations():
            training = evaluation.training
            names = self.origin.holders(training.members, contents)
            if names is not None and (scored == self._scored.key or evaluation.failed):
                self._keep(key, replace(evaluation, training=replace(training, members=names)))
            elif names is not None:
                self._elsewhere[names, training.repeat] = contents
            elif all(name in self._owners for name in training.members):
                self.stale += 1
            self._last = key  # at the end, so that an interruption loses nothing

    def _keep(self, key: int, evaluation: Evaluation) -> None:
        names, repeat = evaluation.training.members, evaluation.training.repeat
        if evaluation.utility is None:
            self._failures[names][repeat] = evaluation
        elif repeat not in self._utilities[names]:  # it may be there by other names, too
            self._utilities[names][repeat] = evaluation
            self._keys[names, repeat] = key
        self._same[self.key(names)][names] = None

    def _new_evaluations(self) -> Iterator[tuple[int, Evaluation, str, str]]:
        """Key, evaluation, contents and validation of each row that was not read yet."""
        query = f"SELECT id, {COLUMNS} FROM evaluations WHERE id > ? ORDER BY id"
        with self._db.explain_errors("read"):
            for row in self._db.execute(query, (self._last,)):
                yield (row[0], *from_row(row))

    def save(self, evaluation: Evaluation) -> None:
        """Write one evaluation to the disk; a second utility of the same training is ignored."""
        # Then read back: a resumed run must see the same numbers.
        statement = self._to_statement(evaluation)
        if not self._writer.has_written(statement):
            self._check_file()
            with self._db.write():
                self._db.execute(*statement)
        self._note_last()
        self._writer.forget(statement)

    def write_at_once(self, evaluation: Evaluation) -> None:
        """Write an evaluation from any thread; `save` takes note of it, or tries it again."""
        with suppress(sqlite3.Error, StoreError):  # `save` says why it cannot be written
            self._check_file()
            self._writer.write(self._to_statement(evaluation))

    def record(self, evaluations: Sequence[Evaluation], *, replacing: bool = False) -> None:
        """Write several evaluations, all or none; `replacing` deletes those of their coalitions."""
        statements = [self._to_statement(evaluation) for evaluation in evaluations]
        contents = {self._contents(e.training.members) for e in evaluations}
        self._check_file()
        with self._db.write():
            if replacing:
                where = "DELETE FROM evaluations WHERE contents = ?"
                self._db.executemany(where, [(mark,) for mark in contents])
            for statement in statements:
                self._db.execute(*statement)
        self._utilities.clear()  # SQLite may use the keys of deleted rows again
        self._keys.clear()
        self._failures.clear()
        self._same.clear()
        self._elsewhere.clear()
        self._last = self.stale = 0
        self._note_last()

    def to_check(self, *, empty: bool) -> list[Evaluation]:
        """Evaluations that can be done again and must have the same utility.

        Seldom checked ones come first, of these no data if `empty` says that it counts, then cheap
        ones. Not those done elsewhere, and not those from before the user accepted a change.
        """
        times, last = self.origin.checks(), self.origin.last_accepted
        new = [which for which, key in self._keys.items() if key > last]
        new = [which for which in new if which[0] or empty]
        found = [(times[which], self._utilities[which[0]][which[1]]) for which in new]
        known = [pair for pair in found if pair[1].worker != "known"]  # nobody can do those again
        known.sort(key=lambda pair: (pair[0], bool(pair[1].training.members), pair[1].seconds))
        return [e for _, e in known]

    def batch(self, run: str) -> list[Names]:
        """The coalitions of the latest batch of a run; none at first."""
        query = (
            "SELECT coalition FROM batches WHERE run = ? AND number = "
            "(SELECT max(number) FROM batches WHERE run = ?) ORDER BY position"
        )
        with self._db.explain_errors("read"):
            return [from_json(text) for (text,) in self._db.ask(query, run, run)]

    def begin(self, run: str, coalitions: Sequence[Names]) -> None:
        """Write down the next batch of a run before it starts.

        A run that is killed during a batch goes on with this batch when it is resumed. So it
        chooses the same coalitions as without the interruption.
        """
        with self._db.write():
            latest = "SELECT coalesce(max(number), 0) FROM batches WHERE run = ?"
            [(number,)] = self._db.ask(latest, run)
            names = [to_json(canonical(members)) for members in coalitions]
            rows = [(run, number + 1, position, text) for position, text in enumerate(names)]
            self._db.executemany("INSERT INTO batches VALUES (?, ?, ?, ?)", rows)

    def save_round(self, run: str, evaluated: int, found: Mapping[str, float]) -> None:
        """Save what a run has found after this many evaluations."""
        with self._db.write():
            row = (run, evaluated, json.dumps(dict(found)))
            self._db.execute("INSERT OR IGNORE INTO rounds VALUES (?, ?, ?)", row)

    def rounds(self, run: str) -> dict[int, dict[str, float]]:
        """What a run has found, by number of evaluations."""
        query = "SELECT evaluated, found FROM rounds WHERE run = ? ORDER BY evaluated"
        with self._db.explain_errors("read"):
            rows = self._db.ask(query, run)
            return {expect(int, n): expect(dict, json.loads(text)) for n, text in rows}

    def _check_file(self) -> None:
        """Refuse to write to a file that was deleted or replaced: SQLite would not notice."""
        if self.path is not None:
            try:
                inode = self.path.stat().st_ino
            except OSError:
                inode = None
            if inode != self._inode:
                raise StoreError(
                    f"{self._db.name} has been moved or deleted during the run; put it back, or ",
                    Remedy.BEGIN_ANOTHER_STORE,
                )

    def _catch_up(self) -> None:
        """Read what was written; StoreError if the store ends before the last evaluation."""
        held = 0 if self._lock is None else self._lock.last  # first: it grows with the store
        self.refresh()
        if self.path is not None and self._last < held:
            raise StoreError(
                f"{self._db.name} has lost evaluations: it ends at number {self._last:,}, but "
                f"{held:,} were written. Its log '{self.path.name}-wal' has vanished or changed; "
                f"put that back. To go on without them, delete '{self.path}-lock'"
            )

    def _note_last(self) -> None:
        """Read what was just written, and note beside the store how far it goes."""
        self.refresh()
        if self._lock is not None:
            self._lock.last = self._last

    def _to_statement(self, evaluation: Evaluation) -> Statement:
        """What writes an evaluation: a failure for one fold is one of the coalition."""
        of = self._contents(evaluation.training.members), self._scored.key
        if evaluation.part is not None:
            return INSERT_FOLD, to_fold_row(evaluation, *of)
        return INSERT, to_row(evaluation, *of)

    def _contents(self, names: Names) -> str:
        return contents_of(names, self._owners)


class _Writer:
    """A connection for threads that write evaluations while the main one is busy."""

    def __init__(self, path: Path | None):
        self._path = path
        self._db: Connection | None = None
        self._lock = threading.Lock()
        self._written: set[Statement] = set()

    def write(self, statement: Statement) -> None:
        """Write an evaluation; a store in memory is left to the main thread."""
        if self._path is None:
            return
        with self._lock:
            self._db = self._db or connect_again(self._path)
            with self._db.transaction():
                self._db.execute(*statement)
            self._written.add(statement)

    def has_written(self, statement: Statement) -> bool:
        """Whether a thread has written this.

        Without the lock: a set is read in one step, and Ctrl-C could leave the lock closed.
        """
        return statement in self._written

    def forget(self, statement: Statement) -> None:
        """Forget what is taken note of; in one step too, so without the lock."""
        self._written.discard(statement)

    def close(self) -> None:
        """Close the connection; nothing is written afterwards."""
        with self._lock:
            self._path = None
            if self._db is not None:
                self._db.close()
