"""Evaluations as rows of the store's table, and back."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dupre.checks import finite
from dupre.errors import StoreError
from dupre.game.coalitions import canonical
from dupre.store.sqlite import connect, escape_surrogates
from dupre.training.evaluation import Evaluation, Training

Kind = TypeVar("Kind")

COLUMNS = (
    "coalition, contents, repeat, attempt, utility, failure, traceback, warnings, seconds, seed, "
    "finished, worker, resampled, checksum"
)

INSERT = (
    f"INSERT INTO evaluations ({COLUMNS}) VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))}) "
    "ON CONFLICT (contents, repeat) WHERE utility IS NOT NULL DO NOTHING"
)
"""Keeps a failure, or the first utility of a training."""


def to_row(evaluation: Evaluation, contents: str) -> tuple[Any, ...]:
    """An evaluation as a row of its table, without the key."""
    training, seed, utility = evaluation.training, evaluation.seed, evaluation.utility
    row = (
        to_json(canonical(training.members)),
        contents,
        training.repeat,
        training.attempt,
        _real(utility),
        escape_surrogates(evaluation.failure) if utility is None else None,
        escape_surrogates(evaluation.traceback) or None,
        to_json(evaluation.warnings),
        _real(evaluation.seconds),
        seed if seed is None or abs(seed) < 2**63 else str(seed),
        evaluation.finished,
        evaluation.worker,
        None if evaluation.resampled is None else evaluation.resampled.astype("<f8").tobytes(),
    )
    return (*row, checksum(row))


def _real(number: float | None) -> float | None:
    """A number as SQLite returns it: there is no minus zero."""
    return None if number is None else float(number) + 0.0


def checksum(row: Sequence[Any]) -> str:
    """A checksum of the columns of a row before it: a flipped bit is noticed."""
    return hashlib.blake2b(repr(tuple(row)).encode(), digest_size=8).hexdigest()


def from_row(row: Sequence[Any]) -> tuple[Evaluation, str]:
    """The evaluation in a row and the contents of its coalition.

    Args:
        row: the key, then COLUMNS.

    Raises:
        sqlite3.DatabaseError: the row holds something else.
    """
    (key, names, contents, repeat, attempt, utility, failure, trace, caught, *cost) = row
    seconds, seed, finished, worker, resampled, stated = cost
    try:
        if stated != checksum(row[1:-1]):
            raise ValueError(
                "its checksum is another; without it the rest can be used: "
                f"DELETE FROM evaluations WHERE id = {key}"
            )
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
        return evaluation, expect(str, contents)
    except (TypeError, ValueError, RecursionError) as cause:
        raise sqlite3.DatabaseError(f"evaluation {key} is not readable: {cause}") from cause


def read_stored(path: Path) -> list[tuple[Evaluation, str]]:
    """All evaluations of coalitions in a store, each with the contents of its coalition.

    If the rows of a coalition have changed, only its evaluations on the latest rows.

    Raises:
        StoreError: it is no store, or damaged.
    """
    if not path.exists():
        raise StoreError(f"there is no store {str(path)!r}")
    query = f"SELECT id, {COLUMNS} FROM evaluations WHERE coalition <> '[]' ORDER BY id"
    with closing(connect(path.resolve(), make=False)) as db, db.explain_errors("read"):
        rows = [from_row(row) for row in db.execute(query)]
    latest = {evaluation.training.members: contents for evaluation, contents in rows}
    return [(found, what) for found, what in rows if latest[found.training.members] == what]


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
