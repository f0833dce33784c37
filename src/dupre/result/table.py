"""The table of values, as headings and formatted cells: a text, a page and a notebook show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dupre.result.values import Values
from dupre.wording import number


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
    rounding = 1e-12 * (max(abs(v.facts.grand), abs(v.facts.empty)) or 1.0)
    size = max(float(v.std.median()), 3e-3 * float(np.abs(v.mean).max()), rounding)
    return max(0, int(1 - np.floor(np.log10(size))))
