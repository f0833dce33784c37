"""Trainings done elsewhere: the table that `dupre suggest` prints and `dupre record` reads."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dupre._types import Names
from dupre.checks import Bounds, as_utility, is_within
from dupre.errors import InputError
from dupre.game.coalitions import find_owner, format_members, from_names, to_names
from dupre.runs.run import Run
from dupre.runs.values import stored_coalitions, stored_valuer
from dupre.spec import Files
from dupre.store.store import Store
from dupre.tables.formats import USUAL, read_one
from dupre.training.evaluation import Evaluation, Training, known_evaluations
from dupre.utility.adapters import names_in, parse_score
from dupre.utility.score import known_resamples
from dupre.wording import json_text


@dataclass(frozen=True)
class ExternalResult:
    """What came of a coalition that was trained elsewhere.

    Attributes:
        members: its owners.
        utilities: of its trainings, by repeat; none if it failed or is not trained yet.
        failure: why it failed; empty if it did not.
    """

    members: Names
    utilities: Mapping[int, float] = field(default_factory=dict)
    failure: str = ""


def read_results(path: Path, owners: Names, files: Files = USUAL) -> list[ExternalResult]:
    """The coalitions of a table with the columns coalition, utility and maybe others.

    A coalition is a JSON list of owners, or a text such as "A,C". `failure` says why there is no
    utility, `repeat` numbers repeated trainings (0 if it is empty), `resampled` is a JSON list of
    the utilities on resamples of the validation rows. `files` says how the table is written.

    Raises:
        InputError: it cannot be read, or a row is not a result.
    """
    columns = ("coalition", "utility", "failure", "repeat", "resampled")
    # As texts: a utility is parsed with the decimal sign stated, whatever the format of the file.
    frame = read_one(path, files, as_text=columns)
    missing = sorted({"coalition", "utility"} - set(frame.columns))
    if missing:
        which = f"column{'s' * (len(missing) > 1)} {' and '.join(missing)}"
        raise InputError(
            f"{path} lacks the {which}; expected those that `dupre suggest` prints: coalition, "
            "utility"
        )
    found: dict[Names, ExternalResult] = {}
    seen: set[tuple[Names, int]] = set()
    for row in frame.reindex(columns=list(columns)).itertuples(index=False):
        members = parse_members(_text(row.coalition), owners)
        utility, reason = _number(row.utility, files.decimal, members), _text(row.failure)
        if utility is not None:
            utility = parse_score(utility, row.resampled, format_members(members))
        earlier, repeat = found.get(members), _repeat(row.repeat, members)
        if (earlier is not None and repeat is None) or (members, repeat or 0) in seen:
            which = "" if repeat is None else f"training {repeat} of "
            raise InputError(
                f"{which}{format_members(members)} is in {path} twice; leave one out, or number "
                "repeated trainings 0, 1, 2, ... in a column repeat"
            )
        seen.add((members, repeat or 0))
        every = dict(earlier.utilities) if earlier is not None else {}
        if utility is not None:
            every[repeat or 0] = utility
        found[members] = ExternalResult(members, every, reason if utility is None else "")
    return list(found.values())


def parse_members(text: str, owners: Names) -> Names:
    """The owners in a text such as "A,C", or in a JSON list if their names hold commas."""
    if text in owners:
        return (text,)
    if text.startswith("["):
        names = names_in(text)
    else:
        names = tuple(filter(None, map(str.strip, text.split(","))))
        if not names:
            raise InputError(f"{text!r} names no owner; expected such as A,C")
    names = tuple(find_owner(name, owners) for name in names)
    return to_names(from_names(names, owners), owners)


def format_sheet(coalitions: Sequence[Names]) -> str:
    """Coalitions as CSV with a column for their utilities to fill in."""
    texts = [json_text(names) for names in coalitions]
    frame = pd.DataFrame({"coalition": texts, "utility": [None] * len(texts)})
    return frame.to_csv(index=False, lineterminator="\n")


def finished_results(path: Path, owners: Names, files: Files) -> list[ExternalResult]:
    """Those of a table that have a utility or a failure; InputError if there is none."""
    done = [row for row in read_results(path, owners, files) if row.utilities or row.failure]
    if not done:
        raise InputError(f"{path} has no utility yet; fill in that column, then record it")
    return done


def _number(cell: Any, decimal: str, members: Names) -> float | None:
    text = _text(cell)
    if not text:
        return None
    try:
        number = float(text.replace(decimal, "."))
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise InputError(
            f"the utility of {format_members(members)} is {text!r}; expected a number such as "
            f"0{decimal}91, or nothing; --decimal states the sign before decimals"
        )
    return as_utility(number, f"the utility of {format_members(members)}")


def _repeat(cell: Any, members: Names) -> int | None:
    """The number of a repeated training; None if the cell is empty."""
    text = _text(cell)
    if not text:
        return None
    if (whole := re.fullmatch(r"(\d{1,9})(\.0*)?", text)) is None:  # numbers may come as 1.0
        raise InputError(
            f"repeat of {format_members(members)} is {text!r}; expected 0, 1, 2, ..., or nothing"
        )
    return int(whole[1])


def _text(cell: Any) -> str:
    return "" if pd.api.types.is_scalar(cell) and pd.isna(cell) else str(cell).strip()


def _check_resampled(row: ExternalResult, stored: Mapping[int, Evaluation]) -> None:
    """Raise InputError if utilities on resamples are given that are not those stored, by repeat."""
    for repeat, utility in row.utilities.items():
        given, known = known_resamples(utility), stored.get(repeat)
        if given is None or known is None:
            continue
        if known.resampled is None or not np.array_equal(given, known.resampled, equal_nan=True):
            now = "are not recorded" if known.resampled is None else "differ from those recorded"
            raise InputError(
                f"the utilities of {format_members(row.members)} on resamples of the validation "
                f"rows {now}; add --replace to record them instead of what is there"
            )


def check_within(row: ExternalResult, bounds: Bounds) -> None:
    """Raise InputError if a utility, or one on a resample, is outside the bounds."""
    low, high = bounds
    utilities = row.utilities.values()
    resampled = map(known_resamples, utilities)
    every = [number for part in resampled if part is not None for number in part.tolist()]
    for utility in (*utilities, *every):
        if not (math.isnan(utility) or is_within(utility, bounds)):
            raise InputError(
                f"the utility of {format_members(row.members)} is {utility:g}, but the bounds of "
                f"this run are {low:g} to {high:g}; correct it"
            )


def suggest(run: Run, store: Path, count: int, pending: Path | None) -> list[Names]:
    """Coalitions to train elsewhere next, without those in the table `pending`."""
    given = [] if pending is None else read_results(pending, run.owners.names)
    return stored_valuer(run, store).suggest(count, pending=[row.members for row in given])


def record(run: Run, store: Path, given: Sequence[ExternalResult], *, replacing: bool) -> str:
    """Record trainings done elsewhere, all or none, and say in words what was recorded.

    Raises:
        InputError: an unknown owner, or a utility that contradicts a stored one or the bounds.
    """
    for row in given:
        from_names(row.members, run.owners.names)  # refuses unknown owners
        check_within(row, run.traits.bounds)
    failed = [row for row in given if not row.utilities]
    with run.open(store) as kept:
        kept.hold()  # what is compared must be what is added to
        before = set(stored_coalitions(kept))
        new = [e for row in given for e in _evaluations(row, kept, replacing)]
        kept.record(new, replacing=replacing)
        after = set(stored_coalitions(kept))
    again = len(before & {row.members for row in given})
    return (
        f"Read: {len(given)} coalition{'s' * (len(given) != 1)}, {len(failed)} failed. New: "
        f"{len(after - before)}. {'Replaced' if replacing else 'Known before'}: {again}. "
        f"In all: {len(after)}."
    )


def _evaluations(row: ExternalResult, store: Store, replacing: bool) -> list[Evaluation]:
    """What to store of a result."""
    if not replacing and (both := store.contradiction(row.members, row.utilities)):
        raise InputError(
            f"{both[0]!r} is given for {format_members(row.members)}, but {both[1]!r} is recorded; "
            "leave it out, or correct what is recorded with --replace"
        )
    if not replacing:
        _check_resampled(row, store.utilities(row.members))
    if row.utilities:
        return known_evaluations(row.members, row.utilities)
    tried = [] if replacing else [e.training.attempt for e in store.failures(row.members).values()]
    training = Training(row.members, attempt=1 + max(tried, default=0))
    return [Evaluation(training, None, failure=row.failure, worker="known")]
