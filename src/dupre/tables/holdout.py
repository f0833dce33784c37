"""Rows held out for validation: a share of each owner's rows, spread over classes or targets.

Every owner gives the same share of its rows. Which rows depends on the seed and on the owner's own
rows, not on the other owners: they stay the same when another owner joins. If contents decide,
owners who hold the same rows give and keep the same ones; otherwise the name of an owner decides.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dupre._types import Digests, Ints, Members, Task
from dupre.data.digests import digests_of_rows, hash_json, with_plain_types
from dupre.data.owners import task_of
from dupre.data.rows import as_targets
from dupre.errors import InputError, Remedy


def hold_out(
    owner: Any,
    y: Any,
    fraction: float,
    *,
    contents: Digests | None = None,
    task: Task | None = None,
    seed: int = 0,
) -> Members:
    """Which rows are held out, (N,).

    Each owner gives floor(fraction * rows): an owner with fewer than 1 / fraction rows gives none.
    They are a systematic sample of the owner's rows sorted by target, so that classes are held out
    in proportion. In classification, a class of which all rows would be held out keeps its first
    row for training, and all rows equal to that; only this can depend on the other owners.

    Args:
        owner: name of each row's owner, (N,).
        y: targets, (N,).
        fraction: of each owner's rows, between 0 and 1.
        contents: of the rows, as `row_contents` gives them, (N, 2): they decide then, whatever
            owners are called and however rows are ordered. Otherwise the owners' names do.
        task: decides how rows are sorted; by default what the targets look like.
        seed: the same rows for the same seed.

    Raises:
        InputError: the fraction is not between 0 and 1, or all owners have too few rows.
    """
    task = task_of(as_targets(y), task)
    if isinstance(fraction, bool) or not 0 < fraction < 1:
        raise InputError(
            f"the fraction of rows held out must be between 0 and 1, such as 0.2, got {fraction!r}"
        )
    owner, y = np.asarray(owner), np.asarray(y)
    held = np.zeros(len(y), dtype=bool)
    for name in dict.fromkeys(owner.tolist()):
        rows, who = np.flatnonzero(owner == name), name
        if contents is not None:
            rows = rows[np.lexsort(contents[rows].T)]
            who = contents[rows].sum(axis=0).tolist()  # unsigned integers wrap around
        held[rows[_sample(y[rows], fraction, task, _generator(seed, who))]] = True
    if task == "classification":
        kept = _last_of_their_class(y, held)
        if contents is not None:  # copies of an owner keep the same rows
            kept = _rows_equal_to(kept, contents)
        held[kept] = False
    if not held.any():
        most = max(Counter(owner.tolist()).values())
        raise InputError(
            f"no row would be held out: the owners have too few rows (at most {most}) to give "
            f"{fraction:g} of them; state a larger fraction, or ",
            Remedy.VALIDATION,
        )
    return held


def row_contents(frame: pd.DataFrame) -> Digests:
    """What each row holds, (N, 2); 1 and 1.0 are the same, however a column is stored."""
    return digests_of_rows(with_plain_types(frame, object), np.zeros(len(frame)))


def rows_of_copies(owner: Any, contents: Digests) -> Members:
    """Which rows belong to an owner who holds the same rows as one before, (N,)."""
    first: dict[tuple[int, ...], Any] = {}
    owner = np.asarray(owner)
    copies = np.zeros(len(owner), dtype=bool)
    for name in dict.fromkeys(owner.tolist()):
        rows = owner == name
        copies |= rows & (first.setdefault(tuple(contents[rows].sum(axis=0)), name) != name)
    return copies


def owners_without_held_rows(owner: NDArray[Any], held: Members) -> tuple[str, ...]:
    """Names of the owners none of whose rows is held out, in order of appearance."""
    names, givers = dict.fromkeys(np.asarray(owner).tolist()), set(np.asarray(owner)[held].tolist())
    return tuple(str(name) for name in names if name not in givers)


def check_validation(
    y_train: NDArray[Any], y_val: NDArray[Any], *, task: Task | None = None
) -> None:
    """Raise InputError if validation rows have classes that no training row has."""
    if task_of(as_targets(y_train), task) != "classification":
        return
    known = set(np.asarray(y_train).tolist())
    unknown = Counter(label for label in np.asarray(y_val).tolist() if label not in known)
    if unknown:
        shown = ", ".join(
            f"{label!r} ({count} row{'s' if count > 1 else ''})"
            for label, count in unknown.most_common(3)
        )
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise InputError(
            f"the validation rows hold classes that no training row has: {shown}{more}; no model "
            "can get them right: drop those rows, or correct the labels"
        )


def _sample(y: NDArray[Any], fraction: float, task: Task, rng: np.random.Generator) -> Ints:
    """Positions of a systematic sample, with a random start, of one owner's rows by target."""
    # A product such as 0.29 * 100 may be just below the whole number that is meant.
    count = min(int(fraction * len(y) + 1e-9), len(y) - 1)
    # As texts, labels of any type can be sorted, whatever labels other owners have.
    key = np.array([str(label) for label in y]) if task == "classification" else y
    order = np.lexsort((rng.random(len(y)), key))
    steps = (np.arange(count) + rng.random()) * (len(y) / max(count, 1))
    return np.asarray(order[np.minimum(steps.astype(np.int64), len(y) - 1)])


def _generator(seed: int, name: object) -> np.random.Generator:
    """Random numbers of one owner, the same whatever other owners there are."""
    start = hash_json(["hold out", int(seed), str(name)])[:8]
    return np.random.default_rng(int.from_bytes(start, "little"))


def _rows_equal_to(rows: Ints, contents: Digests) -> Ints:
    """Every row that holds the same as one of these."""
    wanted = {tuple(one) for one in contents[rows].tolist()}
    if not wanted:
        return rows
    return np.flatnonzero([tuple(one) in wanted for one in contents.tolist()])


def _last_of_their_class(y: NDArray[Any], held: Members) -> Ints:
    """The first row of each class of which all rows are held out."""
    labels, kept = y.tolist(), set(y[~held].tolist())
    first: dict[Any, int] = {}
    for row in np.flatnonzero(held).tolist():
        if labels[row] not in kept:
            first.setdefault(labels[row], row)
    return np.array(list(first.values()), dtype=np.int64)
