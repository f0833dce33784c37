from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dupre import InputError, NotPayableError
from dupre.notes import Code, note, select, warnings
from dupre.result.payments import MOST_NOTES
from dupre.result.remarks import with_notes
from dupre.result.uncertainty import OF_ROWS
from reporting import UNKNOWN_ROWS, change, exact, valuation

NUMBERS = st.lists(st.floats(-1, 1), min_size=1, max_size=12).filter(
    lambda found: max(found) > 1e-3
)


@cache
def nothing_uncertain(n):
    return exact(n, covariance=np.zeros((n, n)))


def certain(values):
    return replace(nothing_uncertain(len(values)), mean=np.array(values))


def brute_force(values, amount, minimum):
    """max(minimum, c p) that adds up to the amount, c by bisection."""
    positive, low, high = np.maximum(values, 0), 0.0, 1e9
    for _ in range(200):
        c = (low + high) / 2
        low, high = (c, high) if np.maximum(minimum, c * positive).sum() < amount else (low, c)
    return np.maximum(minimum, low * positive)


@settings(max_examples=50)
@given(values=NUMBERS, cents=st.integers(1_200, 10**9), floor=st.integers(0, 100))
def test_payments_add_up_to_the_cent_and_each_is_within_one_of_its_share(values, cents, floor):
    amount, minimum = cents / 100, floor / 100
    found = certain(values).payments(amount, minimum=minimum).frame
    assert np.round(100 * found["payment"]).sum() == cents
    assert (found["payment"] >= minimum).all()
    expected = brute_force(found["value"].to_numpy(), amount, minimum)
    np.testing.assert_allclose(found["payment"], expected, atol=0.01 + 1e-9 * amount)


@settings(max_examples=50)
@given(values=NUMBERS)
def test_who_owes_pays_in_proportion(values):
    v = certain([*values, 20.0])
    found = v.payments(1_000, negative="owe").frame
    assert found["payment"].sum() == pytest.approx(1_000, abs=1e-6)
    np.testing.assert_allclose(
        found["payment"], 1_000 * found["value"] / v.mean.sum(), atol=0.010001
    )


def test_equal_owners_get_cents_in_their_order_and_the_same_interval():
    found = certain([0.2, 0.2, 0.2]).payments(100).frame["payment"]
    assert found.tolist() == [33.34, 33.33, 33.33]

    v = valuation(5)
    same = np.array([0, 1, 1, 3, 4])
    twins = change(v, mean=v.mean[same], covariance=v.uncertainty.total[np.ix_(same, same)])
    found = twins.payments(1e9).frame.loc[[v.owners[1], v.owners[2]], ["low", "high"]]
    assert found.iloc[0].tolist() == found.iloc[1].tolist()


def test_intervals_are_those_of_the_share_itself_and_the_text_states_the_rule():
    """With a known sum a payment is a linear function of the value: its interval is scaled."""
    v = valuation(5)
    centre = np.eye(5) - 1 / 5
    v = change(v, mean=np.linspace(0.1, 0.5, 5), covariance=1e-4 * centre)
    found = v.payments(300, currency="CHF").frame.loc[list(v.owners)]
    scale = 300 / v.mean.sum()
    half = 1.96 * scale * np.sqrt(1e-4 * 4 / 5)
    np.testing.assert_allclose(found["low"], scale * v.mean - half, atol=0.05 * half)
    np.testing.assert_allclose(found["high"], scale * v.mean + half, atol=0.05 * half)

    text = str(certain([0.75, 0.25, -0.1]).payments(1_000, currency="JPY", minimum=10))
    assert "payment JPY" in text
    assert "1,000" in text
    assert "who is at or below zero gets the minimum of 10." in text
    assert "gets nothing" not in text
    assert "743" in text  # 990 in proportion 3 to 1, to whole yen
    small = certain([0.75, 0.25, -0.1]).payments(1_000, currency="jpy", minimum=10)
    assert str(small) == text
    assert certain([0.5]).payments(1, currency="Fr.").currency == "Fr."


def test_an_owner_whose_value_is_certain_keeps_its_payment_among_uncertain_ones():
    """A little variance that nobody has would pay the owner without a value up to 200."""
    v = valuation(3)
    certain_last = np.diag([1e-2, 1e-2, 0.0])
    v = change(v, mean=np.array([0.5, 0.5, 0.0]), covariance=certain_last)
    found = v.payments(1e7).frame.loc[v.owners[2]]
    assert found[["payment", "low", "high"]].tolist() == [0.0, 0.0, 0.0]


def near_zero_beside_a_certain_value(n=12):
    """One owner has all that is above zero; the others are uncertain, and expected below it."""
    mean, std = np.full(n, -0.001), np.full(n, 0.02)
    mean[0], std[0] = 0.02, 0.003
    return change(valuation(n), mean=mean, covariance=np.diag(std**2))


def test_a_payment_outside_its_own_interval_is_said_with_the_reason_and_the_remedy():
    v = near_zero_beside_a_certain_value()
    paid = v.payments(10_000, anyway=True)
    first = paid.frame.iloc[0]
    assert first["payment"] == 10_000 > first["high"]
    assert paid.outside == (v.owners[0],)
    told = paid.notes[-1]
    assert (told.code, told.facts) == (Code.PAID_OUTSIDE, {"owners": [v.owners[0]]})
    assert told.text.startswith(f"the payment of {v.owners[0]} is outside its own 95 % interval")
    assert "gets a part if its value is above zero" in told.text
    assert "by more trainings, or agree" in told.text
    assert str(paid).endswith(f"\n- The payment of {v.owners[0]} is outside its own 95 % interval.")
    of_rows = change(v, validation=v.uncertainty.total, validation_rows=80)
    assert "by more validation rows" in of_rows.payments(10_000, anyway=True).notes[-1].text
    noisy = change(v, noise=v.uncertainty.total)
    assert "by more repeats of trainings" in noisy.payments(10_000, anyway=True).notes[-1].text


def test_of_notes_on_the_values_three_are_told_and_of_payments_all():
    codes = (Code.LEAK, Code.SEEN_ROWS, Code.ONE_CLASS, Code.EMPTY_COLUMN)
    found = [note(code, "a sentence.") for code in codes]
    v = with_notes(near_zero_beside_a_certain_value(), found)
    paid = v.payments(10_000, anyway=True)
    left = len(paid.notes) - 1 - MOST_NOTES
    *_, told, last = str(paid).split("\n")
    assert left > 0
    assert "is outside its own 95 % interval" in told
    assert last == f"{left} more: `notes`"
    assert paid.in_words("dupre show run --verbose").endswith(
        f"{left} more: dupre show run --verbose"
    )


@settings(max_examples=50)
@given(values=NUMBERS, cents=st.integers(1_200, 10**9))
def test_rounding_alone_puts_no_payment_outside_its_interval(values, cents):
    paid = certain(values).payments(cents / 100)
    assert not paid.outside
    tiny = change(certain(values), covariance=1e-20 * np.eye(len(values)))
    assert not tiny.payments(cents / 100).outside


def test_terms_that_cannot_be_kept_are_refused():
    for values, terms, message in (
        ([0.5], {"amount": 0}, "amount must be above zero, got 0"),
        ([0.5], {"amount": -5}, "amount must be above zero, got -5"),
        ([0.5], {"amount": float("nan")}, "finite"),
        ([0.5], {"amount": 1.005}, "at most 2 decimals"),
        ([0.5], {"amount": 1.5, "currency": "JPY"}, "at most 0 decimals"),
        ([0.5], {"amount": 1.5, "currency": "rwf"}, "at most 0 decimals"),
        ([0.5], {"amount": 1e13}, "between 0 and"),
        ([0.5, 0.1], {"amount": 10, "minimum": 6}, "more than the amount"),
        ([0.5, -0.1], {"amount": 10, "minimum": 1, "negative": "owe"}, "no minimum"),
        ([0.5], {"amount": 10, "negative": "forgive"}, "'zero' or 'owe'"),
        ([-0.5, 0.0], {"amount": 10}, "no value above zero"),
        ([5.6e-17, 0.0], {"amount": 10}, "no value above zero"),
        ([-0.5, 0.1], {"amount": 10, "negative": "owe"}, "no sum of values above zero"),
    ):
        with pytest.raises(InputError, match=message):
            certain(values).payments(**terms)


def test_values_that_may_all_be_below_zero_share_nothing_and_the_remedy_is_the_right_one():
    v = change(valuation(2), mean=np.array([0.01, 0.01]), covariance=np.eye(2))
    rows = {"validation": 0.6 * np.eye(2), "validation_rows": 300}
    of_rows = "the greatest part .* choice of the 300 validation rows: score on more rows first"
    for parts, remedy in (
        ({}, "train more coalitions first"),
        (rows, of_rows),
        (rows | {"validation": np.eye(2), "diagnostics": None}, of_rows),
        ({"noise": 0.6 * np.eye(2)}, "repeat the trainings first"),
    ):
        with pytest.raises(
            InputError, match=rf"too .* 2[456] % none of them is above zero; {remedy}$"
        ):
            change(v, **parts).payments(100, anyway=True)
    with pytest.raises(InputError, match=r"(49|50) % their sum is not above zero; train"):
        v.payments(100, negative="owe", anyway=True)


def test_values_that_are_not_payable_are_paid_only_anyway_which_is_said_with_the_reasons():
    v = change(valuation(4), notes=(note(Code.LEAK, "all is new."),), first_left=2)
    for terms in ({}, {"negative": "owe"}):
        with pytest.raises(
            NotPayableError, match=r"^not payable. Missing trainings: .*state anyway"
        ):
            v.payments(100, **terms)
    paid = v.payments(100, anyway=True)
    assert (paid.anyway, paid.verdict) == (True, "not payable")
    lines = str(paid).split("\n")
    assert lines[0] == "Not payable, and paid anyway."
    assert lines[-3:] == [paid.rule, *(f"- {one.short}" for one in warnings(v.notes))]
    assert [one.code for one in paid.notes] == [Code.FIRST_GUESS, Code.LEAK]
    sure = valuation(4).payments(100, anyway=True)  # it is no word about values that are payable
    assert (sure.anyway, str(sure).split("\n")[0]) == (False, "Payable with reservations.")


def test_payments_have_both_intervals_each_with_its_name():
    v = valuation(4)
    plain = change(v, validation=None).payments(100)
    assert UNKNOWN_ROWS in plain.rule
    assert list(plain.intervals) == ["95 % interval"]
    parts = {"covariance": np.eye(4) / 5e3, "validation": np.eye(4) / 1e4}
    known = change(v, **parts, validation_rows=80)
    both = [known.payments(100, for_these_rows=alone) for alone in (False, True)]
    for paid, other, name in zip(both, both[::-1], ("these_rows", "population"), strict=True):
        assert paid.for_these_rows == (name == "population")
        there = paid.frame[[f"low_for_{name}", f"high_for_{name}"]]
        np.testing.assert_array_equal(there, other.frame[["low", "high"]])
        assert select(known.notes, OF_ROWS)[0].text not in paid.rule
    widths = [paid.frame.iloc[0]["high"] - paid.frame.iloc[0]["low"] for paid in both]
    assert widths[1] < widths[0]
    assert str(both[0]).split("\n")[2].split("  ")[-2:] == [
        "95 % for the population",
        "95 % for these rows",
    ]
    assert "95 % for these rows  95 % for the population" in " ".join(str(both[1]).split("   "))
    of_rows = change(v, covariance=np.eye(4) / 1e6, validation=np.eye(4) / 1e6, validation_rows=80)
    frame = of_rows.payments(100).frame
    assert (frame["low_for_these_rows"] == frame["payment"]).all()
    split = note(Code.ONE_SPLIT, "Another split is in no interval.")
    assert with_notes(known, [split]).payments(100).notes == (split,)


def test_an_interval_that_is_too_wide_to_share_by_is_left_out():
    v = change(valuation(2), mean=np.array([0.01, 0.01]), covariance=np.eye(2))
    v = change(v, validation=np.eye(2), diagnostics=None, validation_rows=300)
    paid = v.payments(100, for_these_rows=True, anyway=True)
    assert paid.frame["low_for_population"].isna().all()
    assert str(paid).count(" – ") + str(paid).count(" –\n") == 2


def test_less_than_a_cent_of_doubt_is_no_certainty():
    v = change(valuation(3, mean=np.array([0.5, 0.3, 0.2])), covariance=np.eye(3) / 1e5)
    paid = v.payments(0.05)
    frame = paid.frame
    assert (frame["low"] < frame["high"]).all()
    assert ((frame["low"] <= frame["payment"]) & (frame["payment"] <= frame["high"])).all()
    wide = v.payments(50).frame
    np.testing.assert_array_equal(frame["low"], np.floor(wide["low"] / 10 + 1e-9) / 100)
