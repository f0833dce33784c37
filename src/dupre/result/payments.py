"""An amount of money shared among owners by their values, to the last cent.

Notation: n owners, m draws of their values; values and payments (m, n), one row per draw.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import pandas as pd

from dupre._types import Floats
from dupre.checks import finite
from dupre.errors import InputError, NotPayableError, Remedy
from dupre.notes import ABOUT_PAYMENTS, Code, Note, note, select, warnings, worst_first
from dupre.result.as_text import align
from dupre.result.sharing import Negative, are_shareable, draw_values, share, without_rounding
from dupre.result.uncertainty import OF_ROWS, rows_in_words
from dupre.result.values import Values
from dupre.result.verdict import Kind, verdict
from dupre.wording import LONGEST_LINE, cut, escape_controls, join_list, percent, printable

DRAWS = 10_000
"""Joint draws of the values, from which the intervals of payments are taken."""

CODE = re.compile("[A-Za-z]{3}")
"""A currency by its code in ISO 4217, which is written in capital letters."""

PLACES = dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF"), 0)
PLACES |= dict.fromkeys(("UGX", "VND", "VUV", "XAF", "XOF", "XPF"), 0)
PLACES |= dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3)
"""Decimals of currencies (ISO 4217) that do not have two."""

MOST_REASONS = 3
"""Reasons against paying that are named."""

ROUNDING = 1e-9
"""Part of an amount up to which the width of an interval is a rounding error."""

LARGEST = 1e12
"""Amounts up to which every cent is a number of its own."""

RULES: dict[Negative, str] = {
    "zero": "Payments are in proportion to the {nouns}; who is at or below zero gets nothing.",
    "owe": "Payments are in proportion to the {nouns}; who is below zero owes its part, which is "
    "shared by the others.",
}


MOST_NOTES = 3
"""Notes that are printed; the others are counted."""


@dataclass(frozen=True, eq=False)
class Payments:
    """What each owner is paid. `print` it.

    Attributes:
        frame: `value`, `payment`, and `low` and `high`, bounds between which the payment lies with
            95 %, by owner, from the greatest value to the smallest. If the choice of the validation
            rows matters, also the bounds for the others: `low_for_these_rows` and
            `high_for_these_rows`, or `low_for_population` and `high_for_population`; NaN if they
            are too wide to share by.
        amount: the sum of the payments.
        currency: such as "CHF"; "" if it is not stated.
        rule: how values become payments, in sentences.
        semivalue: which values they are.
        notes: what the verdict rests on and what warns of something, the gravest first; then what
            belongs to the payments alone, such as which are outside their own intervals.
        verdict: whether owners can be paid by the values.
        for_these_rows: whether intervals are for these validation rows alone, not for the
            population that they come from.
        paid: what each owner was paid before, in this currency; None if nothing was booked.
    """

    frame: pd.DataFrame
    amount: float
    currency: str
    rule: str
    semivalue: str
    notes: tuple[Note, ...]
    verdict: Kind = "payable"
    for_these_rows: bool = False
    paid: pd.Series | None = None

    @property
    def anyway(self) -> bool:
        """Whether owners are paid although the values are not payable."""
        return self.verdict == "not payable"

    @property
    def intervals(self) -> dict[str, tuple[str, str]]:
        """The bounds in the frame, lower and upper, by what they are called."""
        own, other = "the population", "these rows"
        if self.for_these_rows:
            own, other = other, own
        name = other.replace("the ", "").replace(" ", "_")
        ends = f"low_for_{name}", f"high_for_{name}"
        if ends[0] not in self.frame:
            return {"95 % interval": ("low", "high")}
        return {f"95 % for {own}": ("low", "high"), f"95 % for {other}": ends}

    @property
    def places(self) -> int:
        """Decimals of a payment."""
        return PLACES.get(self.currency, 2)

    @property
    def outside(self) -> tuple[str, ...]:
        """Owners whose payment is outside its own interval, by more than rounding."""
        paid, least = self.frame["payment"], 1.5 * 10.0**-self.places
        far = (paid < self.frame["low"] - least) | (paid > self.frame["high"] + least)
        return tuple(map(str, self.frame.index[far]))

    def table(self) -> pd.DataFrame:
        """The frame; with `already_paid` and `difference` if anything was booked before."""
        if self.paid is None:
            return self.frame
        due = (self.frame["payment"] - self.paid).round(self.places) + 0.0  # no minus before zero
        return self.frame.assign(already_paid=self.paid, difference=due)

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, details: str = "`notes`") -> str:
        """The table, how it came about, and notes; `details` is what shows the rest of these."""
        frame, unit = self.table(), f" {self.currency}" if self.currency else ""
        single = ["payment", *(["already_paid", "difference"] if self.paid is not None else [])]
        lines = [["owner", f"payment{unit}", *self.intervals]]
        lines[0] += [name.replace("_", " ") for name in single[1:]]
        for name, row in frame.iterrows():
            pay, *before = (self.format(row[key]) for key in single)
            bounds = [self.between(row[low], row[high]) for low, high in self.intervals.values()]
            lines.append([printable(str(name)), pay, *bounds, *before])
        pay, *before = (self.format(frame[key].sum() + 0.0) for key in single)
        lines.append(["sum", pay, *("" for _ in self.intervals), *before])
        first = f"{self.verdict.capitalize()}{', and paid anyway' if self.anyway else ''}."
        # Of the payments all of them: what shows the values in full does not have these.
        own = select(self.notes, ABOUT_PAYMENTS)
        others = [one for one in self.notes if one not in own]
        text = [first, "", *align(lines), "", self.rule]
        text += [f"- {one.short}" for one in [*others[:MOST_NOTES], *own]]
        text += [f"{more} more: {details}"] if (more := len(others) - MOST_NOTES) > 0 else []
        return "\n".join(cut(escape_controls(line), LONGEST_LINE) for line in text)

    def format(self, payment: float) -> str:
        """A payment as it is printed: `1,611.40`."""
        return f"{payment:,.{self.places}f}"

    def between(self, low: float, high: float) -> str:
        """An interval as it is printed."""
        return "–" if math.isnan(low) else f"{self.format(low)} … {self.format(high)}"


def share_amount(
    v: Values,
    amount: float,
    *,
    currency: str,
    negative: Negative,
    minimum: float,
    for_these_rows: bool,
    anyway: bool,
) -> Payments:
    """Share an amount among the owners of a valuation; see `Valuation.payments`."""
    if CODE.fullmatch(currency):
        currency = currency.upper()
    places = PLACES.get(currency, 2)
    _check_terms(amount, minimum, len(v.owners), places, negative)
    found, shareable = verdict(v), are_shareable(without_rounding(v)[None], negative)[0]
    nothing = (
        "no value above zero, so there is nothing to share the amount by"
        if negative == "zero"
        else f"no sum of values above zero, which negative='owe' needs: it is {v.mean.sum():.4g}"
    )
    if found.kind == "not payable" and not anyway:
        why = " ".join(["not payable.", *(one.short for one in found.reasons[:MOST_NOTES])])
        if shareable:
            raise NotPayableError(f"{why} To pay all the same, ", Remedy.ANYWAY)
        raise NotPayableError(f"{why} There is also {nothing}")
    if not shareable:
        raise InputError(f"there is {nothing}")
    terms = _Terms(float(amount), negative, minimum)
    bounds, part = _interval(v, terms, for_these_rows=for_these_rows)
    # Intervals leave out 2.5 % at each end: no more draws than that may have nothing to share.
    if bounds is None:
        what = "none of them is" if negative == "zero" else "their sum is not"
        raise InputError(
            "the values are too uncertain to share an amount by: with a probability of "
            f"{percent(1 - part)} % {what} above zero; {_remedy(v)} first"
        )
    payment = _round_to_sum(share(v.mean[None], amount, negative, minimum)[0], amount, places)
    columns = {"value": v.mean, "payment": payment, **_bounds("", bounds, payment, places)}
    if v.uncertainty.varies_with_rows:
        others, _ = _interval(v, terms, for_these_rows=not for_these_rows)
        whom = "_for_population" if for_these_rows else "_for_these_rows"
        columns |= _bounds(whom, others, payment, places)
    frame = pd.DataFrame(columns, index=pd.Index(v.owners, name="owner"))
    rule = RULES[negative].format(nouns=f"{v.semivalue} {v.words.nouns}")
    if minimum:
        least = f"{minimum:,.{places}f}"
        rule = rule.replace("gets nothing.", f"gets the minimum of {least}.")
    notes = worst_first([*found.reasons, *warnings(v.notes)])
    paid = Payments(
        frame.iloc[v.order],
        float(amount),
        currency,
        " ".join([rule, *_of_rows(v)]),
        v.semivalue,
        notes,
        verdict=found.kind,
        for_these_rows=for_these_rows,
    )
    return replace(paid, notes=(*notes, *_outside(v, paid.outside)))


def _outside(v: Values, names: tuple[str, ...]) -> list[Note]:
    """Whose payment is outside its own interval, and why."""
    if not names:
        return []
    one = "payment of {} is outside its own 95 % interval"
    several = "payments of {} are outside their own 95 % intervals"
    told = (one if len(names) == 1 else several).format(join_list(map(printable, names)))
    text = f"the {told}. {explain_outside(v)}"
    return [note(Code.PAID_OUTSIDE, text, owners=list(names))]


@dataclass(frozen=True)
class _Terms:
    """How an amount is shared."""

    amount: float
    negative: Negative
    minimum: float


def _interval(
    v: Values, terms: _Terms, *, for_these_rows: bool
) -> tuple[tuple[Floats, Floats] | None, float]:
    """Bounds of the payments, (n,) each, and the part of the draws by which they can be shared.

    None if that part is too small.
    """
    errors = v.uncertainty.errors(for_these_rows=for_these_rows)
    draws = draw_values(v, DRAWS, errors)
    shareable = are_shareable(draws, terms.negative)
    part = float(np.mean(shareable))
    if part < 0.975:
        return None, part
    payments = share(draws[shareable], terms.amount, terms.negative, terms.minimum)
    low, high = np.quantile(payments, [0.025, 0.975], 0)
    return (low, high), part


def _bounds(
    whom: str, bounds: tuple[Floats, Floats] | None, payment: Floats, places: int
) -> dict[str, Floats]:
    """Bounds as columns, rounded outwards: less than a cent of doubt is no certainty."""
    if bounds is None:
        low = high = np.full(len(payment), np.nan)
    elif (bounds[1] - bounds[0] <= ROUNDING * payment.sum()).all():
        low = high = payment  # as the payment itself was rounded to the sum
    else:
        low = np.floor(bounds[0] * 10**places + 1e-6) / 10**places
        high = np.ceil(bounds[1] * 10**places - 1e-6) / 10**places
    return {f"low{whom}": low + 0.0, f"high{whom}": high + 0.0}  # no minus before zero


def _of_rows(v: Values) -> list[str]:
    """For which validation rows intervals hold, if the names of the columns do not say it."""
    if v.uncertainty.varies_with_rows:
        return []
    return [one.text for one in select(v.notes, OF_ROWS)]


def explain_outside(v: Values) -> str:
    """Why a payment can be outside its own interval, and what to do."""
    # A draw pays a value above zero a part, and one below zero nothing: on average an owner near
    # zero gets more in draws than by its expected value, and the others get less.
    helps = {"rows": "validation rows", "noise": "repeats of trainings"}
    more = helps.get(_greatest_source(v), "trainings")
    return (
        "Each payment depends on the values of all owners, and some are "
        "uncertain: an owner who is expected at or below zero gets a part if its value is above "
        f"zero. Before anybody is paid, narrow the intervals by more {more}, or agree that these "
        "payments hold."
    )


def _check_terms(amount: float, minimum: float, n: int, places: int, negative: Negative) -> None:
    if negative not in get_args(Negative):
        raise InputError(f"negative must be 'zero' or 'owe', got {negative!r}")
    for given, name in ((amount, "amount"), (minimum, "minimum")):
        number = finite(given, name)
        if name == "amount" and number <= 0:
            raise InputError(f"amount must be above zero, got {number:,.12g}")
        if not 0 <= number <= LARGEST:
            raise InputError(f"{name} must lie between 0 and {LARGEST:,.0f}, got {number:,}")
        if abs(number - round(number, places)) > 1e-9 * max(number, 1):
            raise InputError(f"{name} must have at most {places} decimals, got {number!r}")
    if negative == "owe" and minimum:
        raise InputError("with negative='owe' there is no minimum: some owners pay; got both")
    if n * minimum > amount:
        raise InputError(
            f"a minimum of {minimum:,.{places}f} for {n} owners is {n * minimum:,.{places}f}, more "
            f"than the amount of {amount:,.{places}f}; lower it"
        )


def _greatest_source(v: Values) -> str:
    """The source of the greatest part of the variance."""
    shares = v.uncertainty.shares()
    return max(shares, key=lambda source: shares[source])


def _remedy(v: Values) -> str:
    """What reduces the greatest part of the uncertainty."""
    greatest = _greatest_source(v)
    if greatest == "rows":
        return (
            f"the greatest part of that is the choice of the {rows_in_words(v)}: score on more rows"
        )
    return "repeat the trainings" if greatest == "noise" else "train more coalitions"


def _round_to_sum(payments: Floats, amount: float, places: int) -> Floats:
    """Whole cents that add up to the amount: the largest remainders are rounded up.

    Of equal remainders those of the first owners are.
    """
    cents = payments * 10**places
    whole = np.floor(cents + 1e-6)
    left = round(amount * 10**places) - int(whole.sum())
    remainder = np.round(cents - whole, 6)
    whole[np.argsort(-remainder, kind="stable")[:left]] += 1
    return np.asarray(whole / 10**places)
