"""The ledger of a run: every payment that was booked, one entry per owner and booking.

`ledger.jsonl` is only ever appended to. Each entry holds a digest of itself and of the entry before
it, so that an entry that is changed, removed or put in later is noticed. config.toml keeps the last
digest, so that entries missing at the end are noticed too.

The amount of a booking is the total to date. An entry books the difference between an owner's
payment and what it was paid before: booking the same again books nothing, also after a kill.

A partner is a name together with the number of the entry by which it joined. A booking lists all
owners, also those who get nothing; who is not in the last booking has left. Whoever comes under
that name later is another partner: nothing that was paid before counts for it.

A ledger goes on in one other run at most, such as that of the next quarter: that begins with all
entries of this one, and this one ends with a `Closing`, after which nothing is booked here. The
closing is written first: a kill between the two leaves a ledger that pays nobody, never two that
both do, and the same command again goes on where the closing says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, cast

import msgspec
import pandas as pd

from dupre.data.digests import hash_json
from dupre.errors import InputError
from dupre.notes import Code, Note, note
from dupre.result.payments import PLACES, Payments
from dupre.result.sharing import Negative
from dupre.result.values import Values
from dupre.spec import Payment
from dupre.wording import ROWS_OF, join_list, printable, quote

Unlike: TypeAlias = tuple[str, float | str | None, float | str | None]
"""What differs, as it was booked, and as it is recomputed."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one owner was paid in one booking.

    Attributes:
        number: of the entry, from 1.
        booking: number of the booking; its entries have the same time and terms.
        time: when it was booked, ISO 8601.
        owner: whose payment it is.
        joined: number of the entry by which this partner joined.
        rows: digest of the owner's rows; "" if it is not known.
        amount, currency, negative, minimum: the terms, as `Valuation.payments` has them.
        anyway: whether the values were not payable.
        payment: what the owner is to have in all, by the values.
        paid: what is paid by this entry: the payment without what was paid before.
        result: digest of values.csv.
        before: digest of the entry before; "" for the first.
        digest: of everything above.
    """

    number: int
    booking: int
    time: str
    owner: str
    joined: int
    rows: str
    amount: float
    currency: str
    negative: Negative
    minimum: float
    anyway: bool
    payment: float
    paid: float
    result: str
    before: str
    digest: str = ""

    def sealed(self) -> Entry:
        """The entry with its digest."""
        return msgspec.structs.replace(self, digest=_digest(self))


class Closing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of a ledger that goes on in another run.

    Attributes:
        number: of the closing, one more than that of the last entry.
        time: when it was closed, ISO 8601.
        run: the directory of the other run, an absolute path.
        before: digest of the entry before; "" if there is none.
        digest: of everything above.
    """

    number: int
    time: str
    run: str
    before: str
    digest: str = ""

    def sealed(self) -> Closing:
        """The closing with its digest."""
        return msgspec.structs.replace(self, digest=_digest(self))


def _digest(line: Entry | Closing) -> str:
    # Not of the text of a line: blanks and the order of names may change on the way.
    parts = [getattr(line, name) for name in line.__struct_fields__ if name != "digest"]
    return hash_json(parts).hex()


@dataclass(frozen=True)
class Ledger:
    """The entries of a ledger, in their order.

    Attributes:
        entries: those that can be read.
        breaks: what is wrong with the chain, in words; none if nothing is.
        closing: where it goes on; None if nowhere else.
    """

    entries: tuple[Entry, ...] = ()
    breaks: tuple[str, ...] = ()
    closing: Closing | None = None

    @property
    def head(self) -> str:
        """The digest of the last line; "" without one."""
        lines = self._lines
        return lines[-1].digest if lines else ""

    @property
    def _lines(self) -> list[Entry | Closing]:
        return [*self.entries, *([] if self.closing is None else [self.closing])]

    @property
    def bookings(self) -> list[list[Entry]]:
        """The entries of each booking, in their order."""
        found: dict[int, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.booking, []).append(entry)
        return list(found.values())

    @property
    def partners(self) -> dict[str, int]:
        """Who is in the last booking: names, and the number of the entry by which each joined."""
        last = self.bookings[-1] if self.entries else []
        return {entry.owner: entry.joined for entry in last}

    def paid(self, currency: str) -> dict[tuple[str, int], float]:
        """What each partner was paid in one currency, by name and number."""
        found: dict[tuple[str, int], float] = {}
        for one in self.entries:
            if one.currency == currency:
                key = (one.owner, one.joined)
                found[key] = round(found.get(key, 0.0) + one.paid, PLACES.get(currency, 2))
        return found

    def check(self, name: str) -> None:
        """Raise InputError if the chain is broken: nobody is paid by such a ledger."""
        if self.breaks:
            raise InputError(
                f"{name} was changed: {self.breaks[0]}; put back the file as it was booked. "
                "`dupre verify` names every difference"
            )

    def check_open(self, name: str) -> None:
        """Raise InputError if it goes on elsewhere: what is booked twice would be paid twice."""
        if self.closing is not None:
            raise InputError(
                f"the payments of {name} go on in {self.closing.run!r}; book them there, by "
                "`dupre pay` with that directory"
            )

    def close(self, run: str, time: str) -> Ledger:
        """The ledger, which goes on in another run from this time on."""
        number = 1 + len(self.entries)
        closing = Closing(number=number, time=time, run=run, before=self.head)
        return replace(self, closing=closing.sealed())

    def dumps(self) -> str:
        """A line of JSON for each entry, and for the closing."""
        return "".join(f"{msgspec.json.encode(line).decode()}\n" for line in self._lines)


def read_ledger(file: Path, head: str = "") -> Ledger:
    """The ledger in a file; empty if there is none.

    Args:
        file: of lines of JSON.
        head: digest of an entry that was the last one; "" if none was booked.

    Raises:
        InputError: it cannot be read.
    """
    try:
        lines = file.read_bytes().splitlines() if file.is_file() else []
    except OSError as cause:
        raise InputError(f"{str(file)!r} cannot be read: {cause}") from cause
    found: list[Entry | Closing] = []
    breaks: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = _read_line(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            breaks.append(f"line {number} is no entry")
            continue
        last = (found[-1].number, found[-1].digest) if found else (0, "")
        if entry.sealed().digest != entry.digest:
            breaks.append(f"entry {entry.number} was changed after it was booked")
        elif (entry.number - 1, entry.before) != last:
            # In relation to the one before: what is missing is said once, not of all that follow.
            before = f"entry {last[0]}" if found else "the beginning"
            breaks.append(f"entry {entry.number} does not follow {before}")
        elif found and isinstance(found[-1], Closing):
            breaks.append(f"entry {entry.number} was booked after the ledger was closed")
        found.append(entry)
    if head and not breaks and all(entry.digest != head for entry in found):
        breaks.append(f"entries after number {len(found)} are missing")
    entries = tuple(one for one in found if isinstance(one, Entry))
    closing = next((one for one in found if isinstance(one, Closing)), None)
    return Ledger(entries, tuple(breaks), closing)


def _read_line(line: bytes) -> Entry | Closing:
    """What a line holds; DecodeError if it is neither."""
    found = msgspec.json.decode(line)
    if isinstance(found, dict) and "run" in found:
        return msgspec.convert(found, Closing)
    return msgspec.convert(found, Entry)


def with_paid(payments: Payments, ledger: Ledger) -> Payments:
    """The payments beside what is already paid, if anything is booked."""
    payments = replace(payments, notes=(*payments.notes, *_of_later(ledger)))
    if not ledger.entries:
        return payments
    names, partners = [str(name) for name in payments.frame.index], ledger.partners
    paid = ledger.paid(payments.currency)
    present = {(name, partners[name]) for name in names if name in partners}
    mine = {name: paid.get((name, joined), 0.0) for name, joined in present}
    before = pd.Series([mine.get(name, 0.0) for name in names], payments.frame.index)
    gone = {key: one for key, one in paid.items() if key not in present and one}
    notes = [*_of_former(payments, gone), *_of_other_currencies(payments, ledger)]
    return replace(payments, paid=before, notes=(*payments.notes, *notes))


def _of_later(ledger: Ledger) -> list[Note]:
    """That what is paid in another run does not count here."""
    if ledger.closing is None:
        return []
    run = ledger.closing.run
    text = f"the payments go on in {quote(run)}; what is paid there is not counted here."
    return [note(Code.PAID_ELSEWHERE, text, run=run)]


def _of_former(payments: Payments, gone: Mapping[tuple[str, int], float]) -> list[Note]:
    """What was paid to partners who have left, also to those whose names are here again."""
    if not gone:
        return []
    again = {key: one for key, one in gone.items() if key[0] in payments.frame.index}
    left = {key: one for key, one in gone.items() if key not in again}
    notes = [
        *_note_of(payments, Code.PAID_TO_FORMER, "to partners who left", left),
        *_note_of(payments, Code.JOINED_AGAIN, "before their names joined again, as new", again),
    ]
    total = round(payments.amount + sum(gone.values()), payments.places)
    text = f"with these payments {payments.format(total)} is paid in all."
    return [*notes, note(Code.PAID_IN_ALL, text, paid=total)]


def _note_of(
    payments: Payments, code: Code, what: str, gone: Mapping[tuple[str, int], float]
) -> list[Note]:
    if not gone:
        return []
    who = join_list(
        f"{payments.format(one)} to {printable(name)} (joined by entry {joined})"
        for (name, joined), one in gone.items()
    )
    text = f"Already paid {what}, and not counted: {who}."
    facts = [{"owner": name, "joined": joined, "paid": one} for (name, joined), one in gone.items()]
    names, paid = list(dict.fromkeys(name for name, _ in gone)), sum(gone.values())
    return [note(code, text, partners=facts, names=names, paid=paid)]


def _of_other_currencies(payments: Payments, ledger: Ledger) -> list[Note]:
    """What was paid in other currencies, which are never added up."""
    others = sorted({one.currency for one in ledger.entries} - {payments.currency})
    sums = {name: round(sum(ledger.paid(name).values()), PLACES.get(name, 2)) for name in others}
    if not sums:
        return []
    each = join_list(
        f"{one:,.{PLACES.get(name, 2)}f} {name or 'without a currency'}"
        for name, one in sums.items()
    )
    text = f"Also booked, and not counted: {each}. Currencies are not added up."
    return [note(Code.OTHER_CURRENCIES, text, sums=sums)]


def book(
    ledger: Ledger, v: Values, payments: Payments, terms: Payment, *, time: str, result: str
) -> Ledger:
    """The ledger with the differences of these payments booked; the same one if there are none.

    Args:
        ledger: what is booked so far.
        v: the values that they are by.
        payments: with what is already paid; see `with_paid`.
        terms: by which they are.
        time: of the booking, ISO 8601.
        result: digest of the values; see `digest_of`.
    """
    frame, partners = payments.table(), ledger.partners
    marks = v.facts.provenance.get("fingerprints", {})
    paid = frame["difference"] if payments.paid is not None else frame["payment"]
    # Who left is known by a booking without it, also if nobody is paid anything by that.
    if not paid.any() and set(partners) == set(v.owners):
        return ledger
    entries, number = list(ledger.entries), len(ledger.entries)
    booking = 1 + (entries[-1].booking if entries else 0)
    for name, payment, one in zip(map(str, frame.index), frame["payment"], paid, strict=True):
        number += 1
        entry = Entry(
            number=number,
            booking=booking,
            time=time,
            owner=name,
            joined=partners.get(name, number),
            rows=marks.get(f"{ROWS_OF}{name}", ""),
            amount=payments.amount,
            currency=payments.currency,
            negative=cast("Negative", terms.negative),  # checked by `Valuation.payments`
            minimum=terms.minimum,
            anyway=payments.anyway,
            payment=float(payment),
            paid=float(one),
            result=result,
            before=entries[-1].digest if entries else "",
        )
        entries.append(entry.sealed())
    return Ledger(tuple(entries))


def check_returns(payments: Payments) -> None:
    """Raise InputError if an owner was paid more than it is to have now."""
    if payments.paid is None:
        return
    frame = payments.table()
    # With negative="owe" an owner may owe by the terms; only money that it has got is paid back.
    back = frame[(frame["difference"] < 0) & (frame["already_paid"] > 0)]["difference"]
    if not len(back):
        return
    unit = f" {payments.currency}" if payments.currency else ""
    each = [
        f"{payments.format(-one)}{unit} by {printable(str(name))}" for name, one in back.items()
    ]
    total = payments.format(float(payments.paid.sum()))
    raise InputError(
        f"somebody would have to pay back: {join_list(each)}. --amount is the total to date, of "
        f"which {total}{unit} is already paid; state a greater one, or add --pay-back to book that "
        "this is paid back"
    )


def digest_of(table: str) -> str:
    """The digest of values.csv: of the table alone, as the JSON also tells times and versions."""
    return hashlib.sha256(table.encode()).hexdigest()


def differences(
    booking: Sequence[Entry], payments: Payments, before: Ledger, rows: Mapping[str, str]
) -> list[Unlike]:
    """What of a booking does not follow from its result: what it is, booked, recomputed.

    Args:
        booking: its entries.
        payments: by the same terms and the same values.
        before: the ledger before the booking.
        rows: digests by name, among them those of the owners' rows.
    """
    paid = with_paid(payments, before)
    frame, partners = paid.table(), before.partners
    due = frame["difference"] if paid.paid is not None else frame["payment"]
    found: list[Unlike] = []
    for entry in booking:
        name = printable(entry.owner)
        if entry.owner not in frame.index:
            found.append((f"entry of {name}", entry.paid, None))
            continue
        expected: dict[str, float | str] = {
            "payment": float(frame["payment"][entry.owner]),
            "paid": float(due[entry.owner]),
            "joined": partners.get(entry.owner, entry.number),
            "rows": rows.get(f"{ROWS_OF}{entry.owner}", ""),
            "anyway": payments.anyway,
        }
        for what, now in expected.items():
            then = getattr(entry, what)
            # Sums of cents, which are equal on paper, differ by rounding.
            cents = isinstance(now, float) and round(then - now, payments.places) == 0
            if then != now and not cents:
                found.append((f"{what} of {name}", then, now))
    missing = set(map(str, frame.index)) - {entry.owner for entry in booking}
    return [*found, *((f"entry of {printable(n)}", None, float(due[n])) for n in sorted(missing))]
