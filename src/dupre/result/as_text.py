"""A valuation as the text that `print` shows: a table, and its notes, the gravest first.

The report takes some of its phrases from here too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np
import pandas as pd

from dupre.result.records import Comparison
from dupre.result.remarks import short_members
from dupre.result.values import Values
from dupre.wording import LONGEST_LINE, cut, escape_controls, number, plain_number, printable


def format_valuation(v: Values) -> str:
    """Title, table and notes."""
    lines = [*title_of(v), "", *_table(v), "", *map(str, v.notes)]
    return "\n".join(cut(escape_controls(line), LONGEST_LINE) for line in lines)


def coalition_count(n: int) -> str:
    """How many coalitions of n owners there are."""
    every = 2**n - 1
    if n <= 30:
        return f"{every:,}"
    if n < 50:
        unit, size = ("trillion", 10**12) if n >= 40 else ("billion", 10**9)
        return f"about {every / size:.3g} {unit}"
    return "more than a thousand trillion"


def trained_part(v: Values) -> str:
    """How many of all coalitions were evaluated."""
    n = len(v.owners)
    if v.complete and v.facts.evaluated == 2**n - 1:
        return f"all {v.facts.evaluated:,} possible coalitions"
    return f"{v.facts.evaluated:,} of {coalition_count(n)} possible coalitions"


def failed_part(v: Values) -> str:
    """How many of the evaluated coalitions failed; nothing if none did."""
    return f", {len(v.facts.failures):,} of them failed" if v.facts.failures else ""


def format_comparison(semivalue: str, c: Comparison) -> str:
    """Whether one owner is worth more than another, in a sentence."""
    if c.probability < 0.5:
        return format_comparison(semivalue, c.swap())
    one, other = printable(c.one), printable(c.other)
    if c.low == c.high == 0:
        return escape_controls(f"{semivalue}: {one} and {other} have the same value.")
    verdict = "" if c.probability >= 0.95 else " Not settled."
    if not verdict and c.low <= 0 <= c.high:
        verdict = (
            " Settled: the probability is at least 95 %. The interval holds zero, because it "
            "leaves out 2.5 % at each end."
        )
    bounds = "nothing predicted" if c.low == c.high else f"95 %: {c.low:z.3g} … {c.high:z.3g}"
    return escape_controls(
        f"{semivalue}: {one} is worth more than {other} with a probability of "
        f"{exact_percent(c.probability)}; difference {c.difference:z.3g} ({bounds}).{verdict}"
    )


def format_predictions(frame: pd.DataFrame) -> str:
    """The utilities that `Valuer.predict` returns, a line each."""
    lines = []
    for row in frame.itertuples():
        if row.evaluated:
            text = f"{row.utility:z.4g}, as evaluated"
        else:
            text = f"{row.utility:z.4g} (95 %: {row.low:z.4g} … {row.high:z.4g}), predicted"
        lines.append(f"{short_members(cast('tuple[str, ...]', row.members))}: {text}")
    return "\n".join(lines)


def title_of(v: Values) -> list[str]:
    """What was valued, how many coalitions were evaluated, and why no more."""
    facts = v.facts
    n = len(v.owners)
    trained = f"{trained_part(v)} evaluated{failed_part(v)}"
    grand = (
        f"≈ {facts.grand:z.4g} (predicted)" if facts.grand_predicted else f"= {facts.grand:z.4g}"
    )
    ends = f"u(all owners) {grand}, u(no data) = {facts.empty:z.4g}"
    lines = [f"{v.semivalue} {v.words.nouns} of {n} owners; {trained}", ends]
    return [*lines, f"Stopped: {facts.stopped}."] if facts.stopped else lines


def _table(v: Values) -> list[str]:
    """Owners from most to least valuable."""
    table = [table_headings(v)]
    for owner, *entries in table_lines(v, plain_number):
        table.append((printable(v.owners[owner]), *(entry.text for entry in entries)))
    return align(table)


def exact_percent(probability: float) -> str:
    """A probability to three digits, never rounded to certainty."""
    if probability == 1:
        return "100 %"
    return "more than 99.9 %" if probability > 0.999 else f"{100 * probability:.3g} %"


class Entry(NamedTuple):
    """A formatted cell, and the number by which its column is sorted."""

    text: str
    sort: float | None


class Line(NamedTuple):
    """The position of one owner among the owners, and its cells."""

    owner: int
    rows: Entry
    value: Entry
    interval: Entry
    share: Entry
    rank: Entry


def table_headings(v: Values) -> tuple[str, ...]:
    """One for each part of a `Line`."""
    return "owner", "rows", v.words.noun, "95 % interval", "share", "rank (95 %)"


def table_lines(v: Values, form: Callable[[float, int], str] = number) -> list[Line]:
    """One for each owner, from the greatest value to the smallest; `form` formats a number."""
    frame, places = v.to_frame(), decimals(v)
    found = []
    for i in map(int, v.order):
        row = frame.iloc[i]
        best, worst, share = int(row["best"]), int(row["worst"]), row["share"]
        low, high = form(row["low"], places), form(row["high"], places)
        found.append(
            Line(
                i,
                Entry(f"{row['rows']:,.0f}", row["rows"]),
                Entry(form(row["value"], places), row["value"]),
                Entry(f"{low} … {high}", row["low"]),
                Entry(f"{form(100 * share, 1)} %", share)
                if np.isfinite(share)
                else Entry("–", None),
                Entry(f"{best}" if best == worst else f"{best}–{worst}", best + worst / 1e4),
            )
        )
    return found


def align(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells as text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip()
        for name, *cells in lines
    ]


def decimals(v: Values) -> int:
    """As many decimals of a value as the intervals deserve."""
    # Of exact values as many as their size deserves, and none that are rounding errors.
    rounding = 1e-12 * (max(abs(v.facts.grand), abs(v.facts.empty)) or 1.0)
    size = max(float(v.std.median()), 3e-3 * float(np.abs(v.mean).max()), rounding)
    return max(0, int(1 - np.floor(np.log10(size))))
