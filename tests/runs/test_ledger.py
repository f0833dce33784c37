from dataclasses import replace

import msgspec
import numpy as np
import pytest

from dupre import InputError
from dupre.notes import ABOUT_PAYMENTS, Code, select
from dupre.runs.ledger import Ledger, book, check_returns, differences, read_ledger, with_paid
from dupre.spec import Payment
from reporting import exact


def booked(ledger, v, amount, currency="CHF", negative="zero"):
    """The ledger with these payments, and the payments beside what was paid before."""
    terms = Payment(amount, currency, negative)
    paid = with_paid(v.payments(amount, currency=currency, negative=negative), ledger)
    how = {"time": f"2026-0{1 + len(ledger.bookings)}-01", "result": "digest"}
    return book(ledger, v, paid, terms, **how), paid


@pytest.fixture
def v():
    return exact(mean=np.array([0.4, 0.2, 0.1, -0.1]))


def test_only_the_difference_is_booked_and_the_same_again_is_nothing(v):
    first, paid = booked(Ledger(), v, 700)
    assert paid.paid is None
    assert first.paid("CHF") == {
        (entry.owner, entry.number): entry.payment for entry in first.entries
    }
    again, paid = booked(first, v, 700)
    assert again is first
    assert (paid.table()["difference"] == 0).all()
    more, paid = booked(first, v, 1_400)
    assert paid.table()["already_paid"].tolist() == [400.0, 200.0, 100.0, 0.0]
    assert [entry.paid for entry in more.entries[4:]] == [400.0, 200.0, 100.0, 0.0]
    assert sum(more.paid("CHF").values()) == 1_400
    assert more.partners == first.partners


def test_currencies_are_not_added_up_and_named(v):
    first, _ = booked(Ledger(), v, 700)
    both, paid = booked(first, v, 70, "EUR")
    assert (paid.table()["already_paid"] == 0).all()
    (told,) = [one for one in paid.notes if one.code == Code.OTHER_CURRENCIES]
    assert told.facts == {"sums": {"CHF": 700.0}}
    assert both.paid("EUR")["owner 0", 1] == 40.0


def test_who_leaves_is_booked_so_that_a_later_namesake_is_another_partner(v):
    first, _ = booked(Ledger(), v, 700)
    left = replace(v, owners=("owner 0", "owner 1", "owner 2", "Zoe"))
    second, paid = booked(first, left, 700)
    assert set(second.partners) == set(left.owners)
    third, paid = booked(second, v, 700)
    assert third.partners["owner 3"] > second.partners["owner 0"] == 1
    assert [one.code for one in paid.notes if one.code == Code.PAID_TO_FORMER] == []  # it got 0
    moved, _ = booked(first, replace(v, owners=("Zoe", "owner 1", "owner 2", "owner 3")), 700)
    _, paid = booked(moved, v, 700)
    left, again, total = select(paid.notes, ABOUT_PAYMENTS)
    assert left.short == "Zoe left; 400.00 paid before is not counted."
    assert again.short == "owner 0 joined again, as new; 400.00 paid before not counted."
    assert again.facts["partners"] == [{"owner": "owner 0", "joined": 1, "paid": 400.0}]
    assert "not counted: 400.00 to owner 0 (joined by entry 1)." in again.text
    last, _ = booked(moved, v, 700)
    assert total.facts == {"paid": sum(last.paid("CHF").values())} == {"paid": 1_500.0}
    assert total.short == "With these payments 1,500.00 is paid in all."


def test_money_that_an_owner_has_got_is_paid_back_only_if_that_is_stated(v):
    first, _ = booked(Ledger(), v, 700)
    _, paid = booked(first, v, 350)
    with pytest.raises(
        InputError, match=r"200.00 CHF by owner 0, .* of which 700.00 CHF is already"
    ):
        check_returns(paid)
    _, owed = booked(Ledger(), v, 700, negative="owe")
    check_returns(owed)  # who owes by the terms pays nothing back
    check_returns(booked(booked(Ledger(), v, 600, negative="owe")[0], v, 660, negative="owe")[1])


def test_a_ledger_is_read_as_it_was_written_and_follows_from_its_results(v, tmp_path):
    ledger, _ = booked(booked(Ledger(), v, 700)[0], v, 1_050)
    file = tmp_path / "ledger.jsonl"
    file.write_text(ledger.dumps())
    again = read_ledger(file, ledger.head)
    assert (again, again.breaks) == (ledger, ())
    before = Ledger()
    for amount, entries in zip((700, 1_050), ledger.bookings, strict=True):
        payments = v.payments(amount, currency="CHF")
        assert differences(entries, payments, before, {}) == []
        assert differences(entries, payments, before, {"rows of owner 1": "r"}) == [
            ("rows of owner 1", "", "r")
        ]
        found = differences(entries[:3], payments, before, {})
        assert found == [("entry of owner 3", None, 0.0)]
        other = v.payments(amount + 0.01, currency="CHF")
        assert [what.split(" of ")[0] for what, *_ in differences(entries, other, before, {})] == [
            "payment",
            "paid",
        ]
        before = Ledger((*before.entries, *entries))
    closed = ledger.close("/runs/next", "2026-03-01")
    file.write_text(closed.dumps())
    again = read_ledger(file, closed.head)
    assert (again, again.breaks) == (closed, ())
    assert with_paid(v.payments(7, currency="CHF"), again).notes[-1].facts == {"run": "/runs/next"}
    with pytest.raises(InputError, match="payments of 'here' go on in '/runs/next'; book"):
        again.check_open("'here'")
    ledger.check_open("'here'")
    file.write_text(ledger.dumps())
    assert read_ledger(file, closed.head).breaks == ("entries after number 8 are missing",)
    later = booked(Ledger(ledger.entries), v, 2_000)[0].entries[8]
    forged = msgspec.structs.replace(later, number=10, before=closed.head).sealed()
    file.write_text(closed.dumps() + msgspec.json.encode(forged).decode())
    assert read_ledger(file).breaks == ("entry 10 was booked after the ledger was closed",)
    file.write_text(ledger.dumps() + "not JSON\n")
    assert read_ledger(file, ledger.head).breaks == ("line 9 is no entry",)
