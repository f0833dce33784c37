"""Tables of the report: values, semivalues side by side, probabilities, trainings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dupre.report.markup import Cell, details, owner, table, text
from dupre.result.as_text import decimals
from dupre.wording import join_list, number, percent, shorten, spell_name

if TYPE_CHECKING:
    from dupre.result.valuation import Valuation

MOST_ROWS = 200
"""Trainings listed at most."""


def values_table(v: Valuation) -> str:
    """Rows, value, interval, share and rank of each owner; sums over samples with two errors."""
    frame, places = v.to_frame(), decimals(v)
    what = "Payment" if v.subsidy else "Value"
    columns = ["Owner", "Rows", what, "95 % interval"]
    columns += ["Share", "Rank (95 %)"]
    parts = v.sampling is not None
    if parts:
        columns += ["Std, predictions", "Std, choice"]
    rows = []
    for i in v.order:
        row = frame.iloc[i]
        link = f'<a href="#owner-{i}">{owner(v.owners[i])}</a>'
        cells = [
            Cell(link),
            Cell(f"{row['rows']:,.0f}", row["rows"]),
            Cell(number(row["value"], places), row["value"]),
            Cell(between(row["low"], row["high"], places), row["low"]),
            Cell(share_of(row["share"]), row["share"] if np.isfinite(row["share"]) else None),
            Cell(rank(row["best"], row["worst"]), row["best"] + row["worst"] / 1e4),
        ]
        if parts:
            cells += [Cell(f"{row[part]:.2g}", row[part])
                      for part in ("prediction_std", "sampling_std")]  # fmt: skip
        rows.append(cells)
    return table(f"{what}s of all owners", columns, rows, sortable=True)


def comparison_table(valuations: Sequence[Valuation]) -> str:
    """Owners by semivalues."""
    main = valuations[0]
    columns = ["Owner"]
    columns += [part for v in valuations for part in (shorten(v.semivalue), "Rank")]
    frames, places = [v.to_frame() for v in valuations], [decimals(v) for v in valuations]
    rows = []
    for i in main.order:
        cells = [Cell(owner(main.owners[i]))]
        for frame, digits in zip(frames, places, strict=True):
            row = frame.iloc[i]
            bounds = between(row["low"], row["high"], digits)
            value = f"{number(row['value'], digits)} <small>{bounds}</small>"
            cells.append(Cell(value, row["value"]))
            ranks = rank(row["best"], row["worst"])
            cells.append(Cell(ranks, row["best"] + row["worst"] / 1e4))
        rows.append(cells)
    return table("The same trainings, valued in several ways", columns, rows, sortable=True)


def probability_table(v: Valuation) -> str:
    """P(row owner is worth more than column owner), in per cent."""
    order = v.order
    probability = v.probability_greater().to_numpy()
    columns = ["Worth more than …"]
    columns += [shorten(v.owners[i]) for i in order]
    rows = [
        [Cell(owner(v.owners[i]))]
        + [Cell("–" if i == j else f"{text(percent(probability[i, j]))} %") for j in order]
        for i in order
    ]
    return table("Probability that the row is worth more than the column", columns, rows,
                 sortable=False)  # fmt: skip


def trainings_table(v: Valuation) -> str:
    """Every training, to be opened; nothing where they are not recorded."""
    if v.evaluations.empty:
        return ""
    shown, total = v.evaluations.head(MOST_ROWS), len(v.evaluations)
    rows = []
    for done in shown.to_dict("records"):
        failed = done["utility"] is None or pd.isna(done["utility"])
        utility = "failed" if failed else f"{done['utility']:.6g}".replace("-", "−")
        members = tuple(map(str, json.loads(done["coalition"])))
        rows.append([
            Cell(text(member_list(members))),
            Cell(str(len(members)), len(members)),
            Cell(utility, None if failed else done["utility"]),
            _seconds_cell(float(done["seconds"])),
        ])  # fmt: skip
    columns = ["Coalition", "Owners", "Utility", "Seconds"]
    more = f"; the first {len(shown)} are listed, {total - len(shown):,} more are not"
    seconds = float(v.evaluations["seconds"].sum())
    summary = f"All {total:,} trainings" if total != 1 else "The only training"
    if seconds:
        summary += f", {seconds:,.3g} seconds in all"
    caption = f"Trainings{more if total > len(shown) else ''}"
    return details(summary, table(caption, columns, rows, sortable=True))


def _seconds_cell(seconds: float) -> Cell:
    """How long a training took; nobody knows of those done elsewhere."""
    return Cell(f"{seconds:.3g}", seconds) if seconds > 0 else Cell("–")


def between(low: float, high: float, places: int) -> str:
    """An interval."""
    return f"{number(low, places)} … {number(high, places)}"


def share_of(share: float) -> str:
    """A share in per cent."""
    return f"{number(100 * share, 1)} %" if np.isfinite(share) else "–"


def rank(best: float, worst: float) -> str:
    """A rank or a range of ranks."""
    return f"{best:.0f}" if best == worst else f"{best:.0f}–{worst:.0f}"


def member_list(members: tuple[str, ...]) -> str:
    """The members of a coalition within a sentence."""
    return join_list([spell_name(name) for name in members]) if members else "no owner"
