"""`dupre pay`: share an amount by the values, and book what was paid."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec.structs import replace

from dupre.cli import options as o
from dupre.cli.output import last_results, print_json, say, say_kept
from dupre.cli.signals import interrupt_on_signals
from dupre.spec import Payment

if TYPE_CHECKING:
    from dupre.result.payments import Payments
    from dupre.runs.directory import RunDirectory


class Whom(StrEnum):
    """For whom the intervals of payments hold."""

    POPULATION = "population"
    ROWS = "rows"


@o.states("amount currency negative minimum anyway", required="amount")
def pay(
    run: Annotated[Path, o.DIR],
    stated: dict[str, Any],
    whom: Annotated[Whom, o.FOR] = Whom.POPULATION,
    book: Annotated[bool, o.BOOK] = False,
    pay_back: Annotated[bool, o.PAY_BACK] = False,
    after: Annotated[Path | None, o.AFTER] = None,
    dry_run: Annotated[bool, o.DRY_RUN] = False,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Share an amount by the values, to the cent: a table, payments.csv, a section of the page.

    The amount is the total to date: beside each payment stands what was booked before, and the
    difference. Values that nobody should be paid by are refused, unless --anyway is stated.
    """
    from dupre.runs.directory import RunDirectory, spreadsheet
    from dupre.runs.ledger import book as book_payments
    from dupre.runs.ledger import check_returns, digest_of
    from dupre.training.evaluation import now

    directory = RunDirectory(run)
    # Terms are stated anew each time: what was said of another amount is not carried over.
    spec = replace(directory.spec(), payment=Payment())
    spec = spec.change(**stated, for_these_rows=whom is Whom.ROWS)
    valuations = last_results(directory)
    before = None if after is None else RunDirectory(after)
    directory.booked(spec, before)  # first: a lock would make a directory that is not there
    kept = None
    # With the ledger of another run the payments would have to be kept, and so be booked twice.
    writes = not dry_run and (book or before is None)
    # Within the locks: what another command books meanwhile must not be paid twice.
    with interrupt_on_signals(), ExitStack() as locks:
        for one in (directory, before) if writes else ():
            if one is not None:
                locks.enter_context(one.lock())
        ledger = booked = directory.booked(spec, before)
        payments = directory.share(valuations[0], spec, ledger)
        if book and not pay_back:
            check_returns(payments)
        if book:
            ledger.check_open(repr(str(directory)))
            found = {"time": now(), "result": digest_of(spreadsheet(valuations))}
            booked = book_payments(ledger, valuations[0], payments, spec.payment, **found)
        # Before anything is printed: a reader who goes away, as in `| head`, loses nothing.
        if writes:
            if before is not None:
                before.close_ledger(directory, now())
            kept = directory.write_payments(valuations, spec, booked)
    _print(payments, directory, json=json)
    if not writes:
        why = "--dry-run" if dry_run else "with --after only what is booked is kept (--book)"
        say(f"Nothing was written: {why}.")
        return
    if book:
        new = booked.entries[len(ledger.entries) :]
        told = (
            f"Booked as entries {new[0].number} to {new[-1].number}" if new else "Nothing to book"
        )
        say(f"{told}; the ledger is {directory.ledger}, its last digest {booked.head}.")
        if before is not None:
            say(f"The ledger of {before} is closed: its payments go on in {directory}.")
    say(f"The table is in {directory.payments}, the page in {directory.report}.")
    say_kept(kept)


def _print(payments: Payments, directory: RunDirectory, *, json: bool) -> None:
    if not json:
        print(payments.in_words(directory.command("show", "--verbose")))
        return
    found = {name: one for name, one in vars(payments).items() if name not in ("frame", "paid")}
    found["anyway"] = payments.anyway
    found["notes"] = [vars(one) for one in payments.notes]
    table = payments.table().reset_index().astype(object)
    known = table.where(table.notna(), None)  # JSON has no NaN
    print_json(found | {"payments": known.to_dict("records")})
