"""Tables of the report: values, semivalues side by side, probabilities, trainings."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd

from dupre._types import Floats
from dupre.report.markup import Cell, details, owner, table, text
from dupre.result.covariances import roots
from dupre.result.payments import Payments
from dupre.result.table import table_headings, table_lines
from dupre.result.valuation import Valuation
from dupre.wording import list_names, number, percent, shorten

MOST_ROWS = 200
"""Trainings listed at most."""


def values_table(v: Valuation) -> str:
    """The table of values; standard deviations by source if there are several."""
    columns = [heading.capitalize() for heading in table_headings(v)]
    stds = _stds_by_source(v)
    columns += [f"Std, {source}" for source in stds]
    rows = []
    for i, *entries in table_lines(v):
        link = Cell(f'<a href="#owner-{i}">{owner(v.owners[i])}</a>')
        parts = [Cell(f"{std[i]:.2g}", std[i]) for std in stds.values()]
        rows.append([link, *(Cell(*entry) for entry in entries), *parts])
    caption = f"{v.words.nouns.capitalize()} of all owners"
    return table(caption, columns, rows, sortable=True)


def _stds_by_source(v: Valuation) -> dict[str, Floats]:
    """Parts of the standard deviations, (n,) each; none if there is a single one."""
    untrained = v.prediction_std.to_numpy() ** 2 - v.noise_std.to_numpy() ** 2
    found = {"predictions": roots(untrained)}
    if v.noise.any():
        found["noise of trainings"] = v.noise_std.to_numpy()
    if v.sampling is not None:
        found["choice of coalitions"] = v.sampling_std.to_numpy()
    if v.validation is not None:
        found["choice of validation rows"] = v.validation_std.to_numpy()
    return found if len(found) > 1 else {}


def payments_table(payments: Payments) -> str:
    """What each owner is paid, with the sum."""
    unit = f" ({payments.currency})" if payments.currency else ""
    rows = []
    for name, row in payments.frame.iterrows():
        pay, low, high = (number(row[key], payments.places) for key in ("payment", "low", "high"))
        interval = Cell(f"{low} … {high}", row["low"])
        rows.append([Cell(owner(str(name))), Cell(pay, row["payment"]), interval])
    rows.append([Cell("Sum"), Cell(payments.format(payments.amount)), Cell("")])
    return table("Payments", ["Owner", f"Payment{unit}", "95 % interval"], rows, sortable=False)


def comparison_table(valuations: Sequence[Valuation]) -> str:
    """Owners by semivalues."""
    main = valuations[0]
    columns = ["Owner"]
    columns += [part for v in valuations for part in (shorten(v.semivalue), "Rank")]
    tables = [{line.owner: line for line in table_lines(v)} for v in valuations]
    rows = []
    for i in main.order:
        cells = [Cell(owner(main.owners[i]))]
        for line in (lines[i] for lines in tables):
            value = f"{line.value.text} <small>{line.interval.text}</small>"
            cells += [Cell(value, line.value.sort), Cell(*line.rank)]
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
    """Every training, in a block that opens on a click; empty if they are not recorded."""
    if v.evaluations.empty:
        return ""
    shown, total = v.evaluations.head(MOST_ROWS), len(v.evaluations)
    rows = []
    for done in shown.to_dict("records"):
        failed = done["utility"] is None or pd.isna(done["utility"])
        utility = "failed" if failed else f"{done['utility']:.6g}".replace("-", "−")
        members, seconds = tuple(map(str, json.loads(done["coalition"]))), float(done["seconds"])
        rows.append([
            Cell(text(member_list(members))),
            Cell(str(len(members)), len(members)),
            Cell(utility, None if failed else done["utility"]),
            Cell(f"{seconds:.3g}", seconds) if seconds > 0 else Cell("–"),  # done elsewhere
        ])  # fmt: skip
    columns = ["Coalition", "Owners", "Utility", "Seconds"]
    more = f"; the first {len(shown)} are listed, {total - len(shown):,} more are not"
    summary = f"All {total:,} trainings" if total != 1 else "The only training"
    if in_all := float(v.evaluations["seconds"].sum()):
        summary += f", {in_all:,.3g} seconds in all"
    caption = f"Trainings{more if total > len(shown) else ''}"
    return details(summary, table(caption, columns, rows, sortable=True))


def member_list(members: tuple[str, ...]) -> str:
    """The members of a coalition within a sentence."""
    return list_names(members) if members else "no owner"
