"""Does a run directory still say what follows from its store, its data and its ledger?

For an auditor who has the directory and the data. Nothing is trained and nothing is written: the
store is copied elsewhere before it is opened, as even a reader of SQLite writes beside the file.

Digests, texts and money are compared as they are: payments follow from the digits in result.json,
by steps that every processor rounds alike. Values computed anew need not have the same last digits
on another processor; see `VALUE_STDS` and `VALUE_PART`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import pandas as pd
from msgspec.structs import asdict

from dupre.errors import DupreError, InputError, StoreError
from dupre.notes import warnings
from dupre.result.remarks import order_of_joining
from dupre.result.valuation import Valuation
from dupre.runs.directory import RunDirectory, payments_table, spreadsheet
from dupre.runs.ledger import (
    Entry,
    Ledger,
    Unlike,
    differences,
    digest_of,
    read_ledger,
    with_paid,
)
from dupre.runs.results import read_results
from dupre.runs.resume import reopen
from dupre.runs.run import Run
from dupre.runs.values import stored_values
from dupre.store.locks import FileLock
from dupre.store.origin import HINTS
from dupre.store.sqlite import connect, find_damaged
from dupre.wording import (
    LONGEST_LINE,
    ROWS_OF,
    count_things,
    cut,
    escape_controls,
    join_list,
    printable,
    quote,
)

VALUE_STDS = 1e-3
"""Standard deviations by which a value computed anew may differ: no payment is known so well."""

VALUE_PART = 1e-6
"""Part of the greatest value by which it may differ: values agree so well on all processors
(tests/test_same_everywhere.py), also where nothing is uncertain."""

COPIED = ("", "-wal", "-lock")
"""Endings of the files of a store."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it follows from the rest.

    Attributes:
        where: the file that keeps it.
        what: what it is.
        kept, recomputed: as it is kept, and as it follows; None if there is none.
    """

    where: str
    what: str
    kept: float | str | None = None
    recomputed: float | str | None = None

    def __str__(self) -> str:
        if self.kept is None and self.recomputed is None:
            return f"{self.where}: {self.what}"
        return (
            f"{self.where}: {self.what}: kept {_show(self.kept)}, "
            f"recomputed {_show(self.recomputed)}"
        )


@dataclass(frozen=True)
class Check:
    """What came of one check.

    Attributes:
        name: what was looked at.
        found: what was compared, in words; or why it could not be.
        differences: all there are.
        done: whether it could be done.
    """

    name: str
    found: str
    differences: tuple[Difference, ...] = ()
    done: bool = True

    @property
    def outcome(self) -> str:
        """In a word or two."""
        if self.differences:
            return count_things(len(self.differences), "difference")
        return "same" if self.done else "not checked"


@dataclass(frozen=True)
class _Kept:
    """What a run directory keeps, read once.

    Attributes:
        directory: it.
        results: of result.json; none if it cannot be read.
        damage: why it cannot be read; "" if it can.
        ledger: what was booked.
    """

    directory: RunDirectory
    results: tuple[Valuation, ...]
    damage: str
    ledger: Ledger


def verify(directory: RunDirectory, data: str | None, validation: str | None) -> list[Check]:
    """Compare all that a run directory says with what it follows from; see the module.

    Args:
        directory: of the run.
        data: where the data are now, an absolute path; None if they have not moved.
        validation: the same of the validation rows.

    Raises:
        InputError: it is no run directory.
    """
    spec = directory.spec()
    ledger = read_ledger(directory.ledger, spec.history.ledger)
    results, damage = _read_results(directory)
    kept = _Kept(directory, results, damage, ledger)
    with TemporaryDirectory(prefix="dupre-verify-") as place:
        store = _copy_store(directory.store, Path(place))
        run, why = _open(directory, data, validation, store)
        rows = _check_origin(kept, run, why)
        if store is None:
            reason = f"{directory.store.name} is not there"
            checks = [Check("store", reason, done=False), rows, _not_done("values", reason)]
        else:
            stored = _check_store(store)
            checks = [stored, rows, _check_values(kept, run, store, [stored, rows], why)]
    return [
        _check_result(kept),
        *checks,
        _check_table(kept),
        _check_ledger(kept, spec.history.ledger),
        *_check_bookings(kept),
        _check_payments(kept),
    ]


def format_checks(checks: Sequence[Check]) -> str:
    """A line for each check, then one for each difference."""
    names, outcomes = (
        max(len(one) for one in column)
        for column in zip(*((check.name, check.outcome) for check in checks), strict=True)
    )
    lines = [f"{one.name:<{names}}  {one.outcome:<{outcomes}}  {one.found}" for one in checks]
    found = [str(one) for check in checks for one in check.differences]
    text = [*lines, *([""] if found else []), *found]
    return "\n".join(cut(escape_controls(line.rstrip()), LONGEST_LINE) for line in text)


def _read_results(directory: RunDirectory) -> tuple[tuple[Valuation, ...], str]:
    try:
        return tuple(directory.results()), ""
    except InputError as cause:
        return (), str(cause)


def _check_result(kept: _Kept) -> Check:
    """result.json can be read: what follows in it from other parts does so."""
    file = kept.directory.result
    if not file.is_file():
        after = [one for one in (kept.directory.table, kept.directory.payments) if one.is_file()]
        names = [kept.directory.ledger.name] if kept.ledger.entries else []
        if not (names := [*names, *(one.name for one in after)]):
            return _not_done(file.name, "there is no result yet")
        gone = Difference(
            file.name, f"it is gone, but {join_list(names)} came of it", None, "there"
        )
        return Check(file.name, "what follows from it is there", (gone,))
    found = () if kept.results else (Difference(file.name, kept.damage),)
    return Check(file.name, "intervals, shares, ranks and verdict follow from its values", found)


def _open(
    directory: RunDirectory, data: str | None, validation: str | None, store: Path | None
) -> tuple[Run | None, str]:
    """The run with its data; or why there is none."""
    try:
        try:
            return reopen(directory.path, data, validation, store=store)[1], ""
        except StoreError:  # damaged: another check says so
            return reopen(directory.path, data, validation)[1], ""
    except DupreError as cause:
        return None, str(cause)


def _copy_store(store: Path, place: Path) -> Path | None:
    """A copy of the files of a store; None without one."""
    if not store.is_file():
        return None
    files = [store.with_name(f"{store.name}{ending}") for ending in COPIED]
    before = _states(files)
    for file in files:
        if file.is_file():
            copyfile(file, place / file.name)
    if _states(files) != before:
        raise InputError(f"{str(store)!r} is being written to; verify it when that has ended")
    return place / store.name


def _states(files: Sequence[Path]) -> list[tuple[int, int] | None]:
    """Size and time of each file; None for those that are not there."""
    found = [file.stat() if file.is_file() else None for file in files]
    return [None if one is None else (one.st_size, one.st_mtime_ns) for one in found]


def _check_store(store: Path) -> Check:
    """The checksum of every training, and whether the last ones are there."""
    name = store.name
    try:
        counts, damaged = find_damaged(store)
    except StoreError as cause:
        return Check("store", "", (Difference(name, f"it cannot be read: {cause}"),))
    found = [Difference(name, what, *both) for what, *both in damaged]
    last, written = counts["last"], FileLock(Path(f"{store}-lock")).last
    if last < written:
        found.append(Difference(name, "number of the last evaluation written", written, last))
    told = f"checksums of {counts['evaluations']:,} evaluations, {counts['folds']:,} folds"
    return Check("store", told, tuple(found))


def _check_origin(kept: _Kept, run: Run | None, why: str) -> Check:
    """Digests of the owners' rows, the model and the like, now and in the provenance."""
    name, file = "data", kept.directory.result.name
    if run is None or not kept.results:
        return _not_done(name, why or kept.damage)
    then = dict(kept.results[0].facts.provenance.get("fingerprints", {}))
    parts = {key: part.digest for key, part in run.origin.setting.items() if key not in HINTS}
    now = parts | {f"{ROWS_OF}{owner}": mark for owner, mark in run.origin.owners.items()}
    found = [
        Difference(file, f"digest of {printable(key)}", then.get(key), now.get(key))
        for key in dict.fromkeys([*then, *now])
        if then.get(key) != now.get(key)
    ]
    told = f"digests of the rows of {run.owners.n} owners and of {', '.join(parts)}"
    return Check(name, told, tuple(found))


def _check_values(
    kept: _Kept, run: Run | None, store: Path, before: Sequence[Check], why: str
) -> Check:
    """The values, their doubt and what warns of them, from what is stored."""
    name, file = "values", kept.directory.result.name
    if run is None:
        return _not_done(name, why)
    if doubtful := [one.name for one in before if one.differences]:
        return _not_done(name, f"they follow from {' and '.join(doubtful)}, which differ")
    if not kept.results and not kept.directory.table.is_file():
        return _not_done(name, "there is no result yet")
    later = _forget_later(store, kept.results[0]) if kept.results else 0
    try:
        recomputed = stored_values(run, store)
    except DupreError as cause:
        return _not_done(name, str(cause))
    told = (
        f"computed again from {count_things(len(recomputed[0].evaluations), 'training')}; they may "
        f"differ by {VALUE_STDS:g} of their standard deviation"
    )
    if not kept.results:
        told = f"{told}, beside {kept.directory.table.name}"
        return Check(name, told, tuple(_compare_without_result(kept, recomputed)))
    now = {v.semivalue: v for v in recomputed}
    found = list(_compare_trainings(file, kept.results[0].evaluations, recomputed[0].evaluations))
    for v in kept.results:
        if v.semivalue in now:
            found += _compare_values(file, v, now[v.semivalue])
        else:
            found.append(Difference(file, f"{v.semivalue} values", v.semivalue, None))
    told += f". {count_things(later, 'training')} came after the result" if later else ""
    return Check(name, told, tuple(found))


def _forget_later(store: Path, last: Valuation) -> int:
    """Delete from the copy what was stored after a result; how many evaluations these were."""
    finished = str(last.evaluations["finished"].max()) if len(last.evaluations) else ""
    if not finished:
        return 0
    with closing(connect(store, make=False)) as db, db.write():
        later = db.execute("DELETE FROM evaluations WHERE finished > ?", (finished,)).rowcount
    Path(f"{store}-lock").unlink(missing_ok=True)  # it knows of those
    return int(later)


def _compare_trainings(file: str, kept: pd.DataFrame, now: pd.DataFrame) -> Iterator[Difference]:
    """Utilities and failures of each training."""
    then, again = map(_outcomes, (kept, now))
    for key in dict.fromkeys([*then, *again]):
        if then.get(key) != again.get(key):
            coalition, repeat = key
            what = f"utility of {printable(coalition)}{f', repeat {repeat}' if repeat else ''}"
            yield Difference(file, what, then.get(key), again.get(key))


def _outcomes(evaluations: pd.DataFrame) -> dict[tuple[str, int], float | str]:
    """The utility of each coalition and repeat, or why there is none."""
    if not len(evaluations):
        return {}
    columns = (evaluations[name] for name in ("coalition", "repeat", "utility", "failure"))
    return {
        (names, int(repeat)): failure if math.isnan(utility) else float(utility)
        for names, repeat, utility, failure in zip(*columns, strict=True)
    }


def _compare_values(file: str, kept: Valuation, now: Valuation) -> Iterator[Difference]:
    if kept.owners != now.owners:
        owners = [", ".join(map(printable, v.owners)) for v in (kept, now)]
        yield Difference(file, f"owners ({kept.semivalue})", *owners)
        return
    cohorts = [v.facts.joining.cohorts if v.facts.joining else () for v in (kept, now)]
    if cohorts[0] != cohorts[1]:
        name = f"order of joining ({kept.semivalue})"
        yield Difference(file, name, *map(order_of_joining, cohorts))
    allowed = VALUE_STDS * now.std + VALUE_PART * float(now.values.abs().max())
    for what, then, again in (
        ("value", kept.values, now.values),
        ("standard deviation", kept.std, now.std),
    ):
        for owner in kept.owners:
            if abs(then[owner] - again[owner]) > allowed[owner]:
                name = f"{what} of {printable(owner)} ({kept.semivalue})"
                yield Difference(file, name, float(then[owner]), float(again[owner]))
    for what in ("grand", "empty"):
        both = [float(getattr(v.facts, what)) for v in (kept, now)]
        if abs(both[0] - both[1]) > float(allowed.max()):
            yield Difference(file, f"{what} ({kept.semivalue})", *both)
    told = {one.code for one in kept.notes}
    for one in warnings(now.notes):
        if one.code not in told:
            yield Difference(file, f"note {one.code.value} ({kept.semivalue})", None, one.short)


def _compare_without_result(kept: _Kept, now: Sequence[Valuation]) -> list[Difference]:
    """values.csv beside values computed again, as result.json cannot say what it should hold."""
    stds = {(v.semivalue, o): std for v in now for o, std in v.std.items()}
    most = max(float(v.values.abs().max()) for v in now)

    def may_differ(key: tuple[str, ...], _: str) -> float:
        return float(VALUE_STDS * stds.get((key[0], key[1]), 0.0) + VALUE_PART * most)

    file = kept.directory.table
    return _compare_tables(file, spreadsheet(now), ("semivalue", "owner"), may_differ)


def _check_table(kept: _Kept) -> Check:
    """values.csv says what result.json says."""
    file = kept.directory.table
    if not kept.results:
        return _not_done(file.name, f"{kept.directory.result.name} cannot be read")
    found = _compare_tables(file, spreadsheet(kept.results), ("semivalue", "owner"))
    return Check(file.name, "cell by cell, as result.json", tuple(found))


def _check_ledger(kept: _Kept, head: str) -> Check:
    """The chain of digests, and the last one in config.toml."""
    ledger, file = kept.ledger, kept.directory.ledger.name
    found = [Difference(file, text) for text in ledger.breaks]
    if ledger.head != head and not ledger.breaks:
        config = kept.directory.config.name
        found.append(Difference(config, "digest of the last booking", head, ledger.head))
    count, bookings = len(ledger.entries), len(ledger.bookings)
    told = f"the chain of {count:,} entries in {count_things(bookings, 'booking')}, and its end"
    told = told if count else "nothing was booked"
    if ledger.closing is not None:
        told += f"; the payments go on in {quote(ledger.closing.run)}"
    return Check("ledger", told, tuple(found))


def _check_bookings(kept: _Kept) -> list[Check]:
    """Each booking, by the result that it was booked by."""
    results, checks, before = _results_by_digest(kept), [], 0
    for entries in kept.ledger.bookings:
        name = f"booking {entries[0].booking}"
        if (found_in := results.get(entries[0].result)) is None:
            checks.append(_not_done(name, "its result is not kept in this directory"))
        else:
            v, place = found_in
            earlier = Ledger(kept.ledger.entries[:before])
            found = [
                Difference(kept.directory.ledger.name, f"{what} in {name}", *both)
                for what, *both in _compare_booking(entries, v, earlier)
            ]
            checks.append(Check(name, f"its payments, to the cent, by {place}", tuple(found)))
        before += len(entries)
    return checks


def _results_by_digest(kept: _Kept) -> dict[str, tuple[Valuation, str]]:
    """What was paid by, of this result and those before, and its file; by digest of the table."""
    found, name = {}, kept.directory.result.name
    if kept.results:
        found[digest_of(spreadsheet(kept.results))] = kept.results[0], name
    for place, file in kept.directory.earlier_results().items():
        try:
            valuations = read_results(file)
        except InputError:  # of another version, or damaged
            continue
        found.setdefault(digest_of(spreadsheet(valuations)), (valuations[0], place))
    return found


def _compare_booking(entries: Sequence[Entry], v: Valuation, before: Ledger) -> list[Unlike]:
    first = entries[0]
    terms = {name: getattr(first, name) for name in ("currency", "negative", "minimum")}
    try:
        payments = v.payments(first.amount, **terms, anyway=True)
    except InputError as cause:
        return [("the payments", "booked", str(cause))]
    return differences(entries, payments, before, v.facts.provenance.get("fingerprints", {}))


def _check_payments(kept: _Kept) -> Check:
    """payments.csv says what follows from result.json, the terms and the ledger."""
    file, terms = kept.directory.payments, kept.directory.spec().payment
    if not file.is_file() and terms.amount is None:
        return Check(file.name, "nothing was shared")
    if not kept.results:
        return _not_done(file.name, f"{kept.directory.result.name} cannot be read")
    try:
        # Also by a broken ledger: what was paid by it is compared, too.
        paid = with_paid(kept.results[0].payments(**asdict(terms)), kept.ledger)
        expected = payments_table(paid)
    except InputError:
        expected = None
    if terms.amount is None or expected is None:
        there = [Difference(file.name, "the table", "there", None)] if file.is_file() else []
        return Check(file.name, "by these terms nobody is paid", tuple(there))
    bounds = ("low", "high")  # of draws, which other processors round otherwise
    cent = 10.0**-paid.places

    def may_differ(_: tuple[str, ...], column: str) -> float:
        return cent + VALUE_PART * paid.amount if column in bounds else 0.0

    found = _compare_tables(file, expected, ("owner",), may_differ)
    return Check(file.name, "to the cent, by result.json, the terms and the ledger", tuple(found))


def _exactly(_: tuple[str, ...], __: str) -> float:
    return 0.0


def _compare_tables(
    file: Path,
    expected: str,
    keys: tuple[str, ...],
    may_differ: Callable[[tuple[str, ...], str], float] = _exactly,
) -> list[Difference]:
    """Cells of a CSV file that are not as expected; `may_differ` is by how much numbers may."""
    try:
        text = file.read_bytes().decode() if file.is_file() else None
        kept = None if text is None else _cells(text, keys)
    except (UnicodeDecodeError, csv.Error) as cause:
        return [Difference(file.name, f"it cannot be read: {cause}")]
    if kept is None:
        return [Difference(file.name, "the table", None, "there")]
    now, found = _cells(expected, keys), []
    for key, column in dict.fromkeys([*now, *kept]):
        then, again = kept.get((key, column)), now.get((key, column))
        if not _are_alike(then, again, may_differ(key, column)):
            what = f"{column} of {' of '.join(reversed(key))}"
            found.append(Difference(file.name, what, then, again))
    if text != expected and not found and kept == now:
        found.append(Difference(file.name, "its lines are in another order or form"))
    return found


def _cells(text: str, keys: tuple[str, ...]) -> dict[tuple[tuple[str, ...], str], str]:
    """The cells of a table by the keys of their row and by column."""
    found: dict[tuple[tuple[str, ...], str], str] = {}
    for row in csv.DictReader(io.StringIO(text, newline="")):
        key = tuple(str(row.get(name)) for name in keys)
        found |= {(key, str(name)): str(cell) for name, cell in row.items() if name not in keys}
    return found


def _are_alike(one: str | None, other: str | None, allowed: float) -> bool:
    if one == other:
        return True
    if one is None or other is None or not allowed:
        return False
    try:
        return abs(float(one) - float(other)) <= allowed
    except ValueError:
        return False


def _not_done(name: str, why: str) -> Check:
    return Check(name, why, done=False)


def _show(thing: float | str | None) -> str:
    if thing is None:
        return "nothing"
    return quote(thing) if isinstance(thing, str) else str(thing)
