"""A valuation as an Excel workbook: answer, values, payments, notes and trainings, a sheet each.

Numbers are numbers, everything else is text: no cell is a formula, whatever an owner is called.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from dupre.errors import InputError
from dupre.report.document import without_directories
from dupre.report.summary import PAID_ANYWAY, last_day, meaning
from dupre.result.as_text import decimals, gain_in_words, how_sure, what_next
from dupre.result.payments import Payments
from dupre.result.valuation import Valuation
from dupre.wording import FORMULA, cut, escape_controls

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

LONGEST_CELL = 32_767
"""Characters that a cell of Excel holds at most."""

WIDEST = 60
"""Characters up to which a column is as wide as its texts; longer texts take several lines."""

NUMBER = 10
"""Characters of a column of numbers; Excel shows as many digits as there is room for."""

OF_TRAININGS = ("coalition", "repeat", "utility", "seconds", "failure", "finished")
"""Columns of the trainings; seeds, workers and resamples are in the store alone."""

HEADINGS = {
    "std": "standard deviation",
    "low": "95 % from",
    "high": "95 % to",
    "best": "best rank (95 %)",
    "worst": "worst rank (95 %)",
    "already_paid": "already paid",
}
"""What columns are called, unless by their own names."""

Rows = Sequence[Sequence[Any]]


class Fraction(NamedTuple):
    """A number and the format that Excel shows it in; the cell holds all its digits."""

    number: float
    format: str


def workbook(valuations: Sequence[Valuation], paid: Payments | InputError | None = None) -> bytes:
    """The workbook as the bytes of an .xlsx file.

    Args:
        valuations: one, or several semivalues of the same owners; the first is the main one.
        paid: what owners are paid, or why nobody is; None if nothing is said about that.

    Raises:
        InputError: openpyxl is not installed.
    """
    try:
        from openpyxl import Workbook
    except ImportError as cause:
        raise InputError(
            "writing an Excel workbook needs the package openpyxl; pip install 'dupre[excel]'"
        ) from cause
    book = Workbook()
    book.remove(book.worksheets[0])  # a new workbook has an empty sheet
    _add(book, "answer", _answer(valuations, paid))
    names = [v.semivalue for v in valuations]
    frames = [v.to_frame().iloc[v.order] for v in valuations]
    values = pd.concat(frames, keys=names, names=["semivalue"]).reset_index()
    _add(book, "values", _rows(values, _format(max(map(decimals, valuations)))))
    if isinstance(paid, Payments):
        payments = paid.table().drop(columns="value").assign(currency=paid.currency)
        head, *rows = _rows(payments.reset_index(), _format(paid.places))
        ends = [name for kind in paid.intervals for name in _headings_of_ends(kind)]
        _add(book, "payments", [[*head[:2], *ends, *head[2 + len(ends) :]], *rows])
    _add(book, "notes", _notes(valuations))
    _add(book, "trainings", _trainings(valuations[0]))
    kept = io.BytesIO()
    book.save(kept)
    return kept.getvalue()


def _answer(valuations: Sequence[Valuation], paid: Payments | InputError | None) -> Rows:
    """What the first screen says, a line each; a column for each semivalue."""
    first = valuations[0]
    rows: list[list[Any]] = [
        ["answer", *(v.semivalue for v in valuations)],
        ["verdict", *(v.verdict.kind for v in valuations)],
        ["why", *(" ".join(one.short for one in v.verdict.reasons) for v in valuations)],
        ["gain", *(gain_in_words(v) for v in valuations)],
        ["how sure", *(how_sure(v) for v in valuations)],
        ["next", *(what_next(v) for v in valuations)],
        ["utility", " ".join(meaning(first))],
        ["last training", last_day(first)],
    ]
    if isinstance(paid, Payments):
        anyway = f"{PAID_ANYWAY}. " if paid.anyway else ""
        rows += [
            ["payments", f"{anyway}{paid.rule}"],
            ["amount", Fraction(paid.amount, _format(paid.places))],
        ]
    elif paid is not None:
        rows.append(["payments", f"none: {without_directories(str(paid))}"])
    return [*rows, [], *_owners(first, paid)]


def _owners(v: Valuation, paid: Payments | InputError | None) -> Rows:
    """Who is paid, or worth, how much, as in the first table of the page."""
    columns = ["value", "low", "high", "share", "best", "worst", "rows"]
    frame = v.to_frame().iloc[v.order][columns].reset_index()
    head, *rows = _rows(frame, _format(decimals(v)))
    if not isinstance(paid, Payments):
        return [head, *rows]
    kind, ends = next(iter(paid.intervals.items()))
    _, *amounts = _rows(paid.frame.loc[frame["owner"], ["payment", *ends]], _format(paid.places))
    of_payment = [f"payment {paid.currency}".strip(), *_headings_of_ends(kind)]
    return [
        [head[0], *of_payment, head[1], *head[4:]],
        *([row[0], *own, row[1], *row[4:]] for row, own in zip(rows, amounts, strict=True)),
    ]


def _headings_of_ends(interval: str) -> list[str]:
    """What the ends of an interval are called."""
    return [f"{interval}, from", f"{interval}, to"]


def _notes(valuations: Sequence[Valuation]) -> Rows:
    rows = [
        [v.semivalue, one.severity, one.code, without_directories(one.text)]
        for v in valuations
        for one in v.notes
    ]
    return [["semivalue", "severity", "code", "text"], *rows]


def _trainings(v: Valuation) -> Rows:
    trained = v.evaluations[[name for name in OF_TRAININGS if name in v.evaluations]]
    if "failure" in trained:
        trained = trained.assign(failure=trained["failure"].map(without_directories))
    return _rows(trained, "0.0000")


def _format(places: int) -> str:
    """The format of numbers with so many decimals."""
    return f"#,##0.{'0' * places}".rstrip(".")


def _rows(frame: pd.DataFrame, form: str) -> Rows:
    """Headings and rows; fractions in a format, shares in per cent."""
    forms = [
        ("0.0%" if name == "share" else form) if kind.kind == "f" else ""
        for name, kind in frame.dtypes.items()
    ]
    rows = [
        [Fraction(thing, form) if form else thing for thing, form in zip(row, forms, strict=True)]
        for row in frame.itertuples(index=False, name=None)
    ]
    return [[_heading(str(name)) for name in frame.columns], *rows]


def _heading(name: str) -> str:
    """What a column is called: `deviation by noise` of `noise_std`."""
    source, _, last = name.rpartition("_")
    return f"deviation by {source}" if last == "std" and source else HEADINGS.get(name, name)


def _add(book: Workbook, name: str, rows: Rows) -> None:
    """Add a sheet of rows, the first of them headings."""
    sheet = book.create_sheet(name)
    for i, row in enumerate(rows, start=1):
        for j, thing in enumerate(row, start=1):
            _fill(sheet, i, j, thing)
    sheet.freeze_panes = "B2"
    for cells in sheet.columns:
        longest = max([NUMBER, *(len(cell.value) for cell in cells if cell.data_type == "s")])
        sheet.column_dimensions[cells[0].column_letter].width = min(longest, WIDEST) + 2


def _fill(sheet: Worksheet, i: int, j: int, thing: Any) -> None:
    from openpyxl.styles import Alignment, Font

    cell = sheet.cell(i, j)
    cell.font = Font(bold=i == 1 or thing == "owner")  # headings
    if isinstance(thing, Integral):
        cell.value = int(thing)
    elif isinstance(thing, Fraction):
        cell.value = float(thing.number) if math.isfinite(thing.number) else None
        cell.number_format = thing.format
    elif thing:
        cell.value = cut(escape_controls(str(thing)), LONGEST_CELL)
        # Last: openpyxl takes what begins with = for a formula, and #N/A for an error.
        cell.data_type = "s"
        # Excel keeps such a cell as text, also after somebody has opened it for editing.
        cell.quotePrefix = cell.value.startswith(FORMULA)
        cell.alignment = Alignment(wrap_text=True, vertical="top")
