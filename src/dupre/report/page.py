"""A valuation as one self-contained HTML page, and as the table that notebooks show.

The answer stands first, in few words; all other sections fold. Everything comes from `Valuation`
records. Each function returns what a part of the template `page.html` shows, as plain texts, tables
and figures; a part for which nothing was recorded says so in a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from dupre._types import Floats
from dupre.errors import InputError, NotPayableError
from dupre.files import replace_text
from dupre.notes import ABOUT_TABLE, Code, Note, select, warnings
from dupre.predictor.calibration import Diagnostics
from dupre.report.document import (
    Heading,
    full_name,
    list_names,
    render,
    spell_name,
    without_directories,
)
from dupre.report.plots import draw_figure, in_per_cent, known_widths
from dupre.report.relations import Relation, relations
from dupre.report.summary import (
    PAID_ANYWAY,
    agreement,
    answer,
    best_owner,
    certainty_word,
    grave_notes,
    harmed_by,
    last_day,
    meaning,
    open_neighbours,
    reservation,
    settled_pairs,
    texts,
)
from dupre.result import as_text
from dupre.result.as_text import (
    MOST_NOTES,
    SYMMETRIC,
    SYMMETRIC_HEADINGS,
    decimals,
    gain_in_words,
    how_sure,
    symmetric_lines,
    table_headings,
    table_lines,
    what_next,
)
from dupre.result.history import (
    History,
    history_headings,
    history_lines,
    result_sentences,
    title_of,
)
from dupre.result.payments import Payments
from dupre.result.quotes import KeptQuote
from dupre.result.valuation import Valuation
from dupre.wording import WEIGHTS, deal_in_words, join_list, number, shorten

TITLE = "What each owner's data are worth"

MOST_WORDS = 80
"""Words of the answer, apart from those in its table and below it in the figure."""

MOST_LISTED = 20
"""Pairs, relations and the like listed at most; owners up to which a matrix is also a table."""

MOST_ROWS = 200
"""Trainings listed at most."""

LONGEST = 1_000
"""Characters of a failure, a warning or a setting that are shown."""

_OF_SUBSIDY = (Code.SUBSIDY, Code.SUBSIDY_SEARCHED)
_OF_CHECK = (Code.CHECK_COALITIONS, Code.PREDICTOR_FAILED, Code.NOT_CORRECTED, Code.CORRECTED)
_OF_FIT = (Code.OUTLIERS, Code.NO_BETTER_THAN_CONSTANT)
"""Codes of the notes that sections repeat."""

_BEGIN_WITH_NAMES = frozenset(
    {
        *(*ABOUT_TABLE, Code.SAME_OWNERS, Code.LATER_COPIES),
        *(Code.TEXTS_FOR_NUMBERS, Code.EMPTY_COLUMN),
    }
)
"""Codes of the notes whose text may begin with the name of an owner or a column."""

SCALES = {
    "data": "what their data are like",
    "raw data": "what their data are like",
    "size": "how much data they hold",
    "data × size": "what their data are like and how much of them there is",
    "membership": "who takes part",
    "linear": "a fixed amount that each owner adds",
}
"""Terms of the predictor's kernel in words."""

CAPTIONS = {
    "ranking": "How probable it is that the owner of the row is worth more than the owner of the "
    "column; the stronger the colour, the more certain.",
    "history": "Values with 95 % intervals: of each owner those of the last results, one below the "
    "other, the present one in full colour.",
    "predictions": "Each point is a trained coalition, predicted without its own training. The "
    "nearer to the line, the better; the bars are 95 % intervals.",
    "owner_map": "Owners as points: the nearer two points, the more alike the data, features and "
    "targets together. Directions have no meaning.",
    "distances": "Distance between the data of any two owners (sliced Wasserstein), in per cent of "
    "that of a typical pair.",
    "uncertainty": "Half the width of the widest 95 % interval after this many trained coalitions, "
    "and what is expected of more. Dotted, if it is known: the part that is due to the choice of "
    "the validation rows, which no training reduces.",
}
"""What figures show, in words."""

Shown = dict[str, Any]
"""What one section of the template shows."""


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        text: what it shows.
        sort: the number by which its column is sorted; None to sort by what is shown.
        small: what follows in small letters.
    """

    text: str
    sort: float | None = None
    small: str = ""


class Table(NamedTuple):
    """A table whose first column names its rows; if `sortable`, by a click on any column."""

    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    sortable: bool = False


class Figure(NamedTuple):
    """A figure as an SVG element, and what it shows, in words."""

    svg: Markup
    caption: str


def write(valuations: Sequence[Valuation], path: Path) -> None:
    """Write the page to a file, as a whole or not at all.

    Raises:
        InputError: the valuations do not belong together, or the file cannot be written.
    """
    if not path.parent.is_dir():
        raise InputError(
            f"there is no directory {str(path.parent)!r} to write the report to; make it first"
        )
    if path.is_dir():
        raise InputError(
            f"the report is a file, but {str(path)!r} is a directory; choose a file in it, such as "
            f"{str(path / 'report.html')!r}"
        )
    replace_text(path, page(valuations))


def page(
    valuations: Sequence[Valuation],
    *,
    heading: Heading = Heading(),  # noqa: B008 (it is frozen)
    paid: Payments | InputError | None = None,
    quoted: Sequence[KeptQuote] = (),
    history: History | None = None,
) -> str:
    """The page as HTML.

    Args:
        valuations: one, or several semivalues of the same owners; the first is the main one.
        heading: title, contact and logo.
        paid: what owners are paid, or why nobody is; None if nothing is said about that.
        quoted: what owners who have not joined would be worth.
        history: earlier results and this one; None if there is nothing to say about them.
    """
    _check_owners(valuations)
    v = valuations[0]
    title = heading.title or TITLE
    day = last_day(v)
    subtitle = f"{shorten(v.semivalue)} {v.words.nouns} of {len(v.owners):,} owners"
    if v.facts.joining is not None:
        subtitle += ", by order of joining"
    shown = {
        "heading": heading,
        "title": title,
        "subtitle": f"{subtitle}, {day}" if day else subtitle,
        "answer": _answer(v, paid, _count_words(title, subtitle, day)),
        "notes": _notes(valuations, paid),
        "payments": None if paid is None else _payments(paid),
        "history": _history(history) if history and len(history.valuations) > 1 else None,
        "comparison": _comparison(valuations) if len(valuations) > 1 else None,
        "quotes": _quotes(v, quoted),
        "joining": _joining(v) if v.facts.joining is not None else None,
        "uncertainty": _uncertainty(v),
        "ranking": _ranking(v),
        "trained": _trainings(v),
        "trust": _predictor(v),
        "data": _data(v, relations(v)),
        "failures": _failures(v),
        "reproduce": _reproduction(v),
    }
    return render("page.html", shown)


def notebook_table(v: Valuation) -> str:
    """The values as HTML for a notebook: each interval a small bar, the notes below."""
    frame = v.to_frame()
    first = float(min(frame["low"].min(), 0.0))
    # No span at all would divide by zero: every value is zero, and so is the bar.
    span = max(float(max(frame["high"].max(), 0.0)) - first, 1e-300)
    rows = []
    for i, *entries in table_lines(v):
        low, value, high = 100 * (frame.iloc[i][["low", "value", "high"]] - first) / span
        # Half a per cent is seen even if the interval is a point.
        bar = {"low": low, "width": max(high - low, 0.5), "value": value}
        rows.append({
            "name": full_name(v.owners[i]),
            "cells": [entry.text for entry in entries],
            **{key: f"{part:.1f}" for key, part in bar.items()},
        })  # fmt: skip
    columns = [*table_headings(v)]
    columns.insert(columns.index("95 % interval") + 1, "")  # bars follow the intervals
    shown = {"title": as_text.title_of(v), "columns": columns, "rows": rows}
    zero = f"{-100 * first / span:.1f}"
    shown |= {"bar": columns.index("") - 2, "zero": zero, "notes": list(map(str, v.notes))}
    return render("notebook.html", shown)


def _answer(v: Valuation, paid: Payments | InputError | None, used: int) -> Shown:
    """Can owners be paid, what was gained, who is worth how much; `used` words stand above it."""
    notes = grave_notes(v)
    told = notes[:MOST_NOTES]
    gain = gain_in_words(v)
    lead, shorts = [f"{gain[:1].upper()}{gain[1:]}."], [one.short for one in told[:1]]
    verdict, sure = [v.verdict.kind.capitalize()], [how_sure(v)]
    if isinstance(paid, Payments) and paid.anyway:
        verdict.append(PAID_ANYWAY)
    unpaid = "No payments." if isinstance(paid, InputError) else ""
    left = MOST_WORDS - used - _count_words(*verdict, *lead, *shorts, unpaid, *sure)
    if len(notes) > 1:
        left -= 3  # the line that counts those below
    # By weight, not by place: what to do next, then who, then the notes after the gravest. What is
    # left out here is in the sections.
    for where, text in [
        (sure, f"Next: {what_next(v)}"),
        *((lead, text) for text in (best_owner(v), harmed_by(v)) if text),
        *((shorts, one.short) for one in told[1:]),
    ]:
        if _count_words(text) <= left:
            where.append(text)
            left -= _count_words(text)
        elif where is shorts:
            break  # no note before a graver one
    more = len(notes) - len(shorts)
    return {
        "kind": v.verdict.kind.replace(" ", "-"),
        "verdict": verdict,
        "lead": " ".join(lead),
        "beware": shorts,
        "more": f"{more} more below" if more else "",
        "unpaid": unpaid,
        "table": _values_table(v, paid),
        "sure": sure,
        "figure": _figure(v, "values", _values_caption(v)),
    }


def _values_caption(v: Valuation) -> str:
    """What the figure of the values shows: only the signs that are in it."""
    bounds = v.interval()
    alone = v.interval(for_these_rows=True)
    parts = [f"{v.words.nouns.capitalize()}, 95 % intervals"]
    if v.uncertainty.validation is not None and (alone["low"] < alone["high"]).any():
        parts.append("thick: for these validation rows alone")
    if (bounds["high"] < 0).any():
        parts.append("diamond: below zero")
    return f"{'; '.join(parts)}."


def _count_words(*texts: str) -> int:
    # A sign between blanks, such as ± or %, is no word.
    return sum(any(map(str.isalnum, word)) for text in texts for word in text.split())


def _notes(valuations: Sequence[Valuation], paid: Payments | InputError | None) -> list[str]:
    """Everything that may speak against the values, in full; the gravest first."""
    first, *others = valuations
    found = [*grave_notes(first), *select(first.notes, _OF_SUBSIDY)]
    if isinstance(paid, Payments):
        found += [one for one in paid.notes if one not in found]
    lines = [_sentence(one) for one in found]
    lines += [
        f"{shorten(v.semivalue)}: {one.text}"
        for v in others
        for one in [*warnings(v.notes), *select(v.notes, _OF_SUBSIDY)]
        if one not in first.notes
    ]
    return lines


def _sentence(one: Note) -> str:
    """A note as a sentence; a name at its beginning stays as it is."""
    text = without_directories(one.text)
    return text if one.code in _BEGIN_WITH_NAMES else f"{text[:1].upper()}{text[1:]}"


def _values_table(v: Valuation, paid: Payments | InputError | None) -> Table:
    """Who is paid, or worth, how much, with the interval of that first; then what explains it."""
    columns = ["Owner", v.words.noun.capitalize(), "95 % interval", "Share", "Rank (95 %)", "Rows"]
    rows = []
    for line in table_lines(v):
        main = [Cell(*line.value), Cell(*line.interval)]
        if isinstance(paid, Payments):  # the interval of the value is in another section
            # The interval for the others is in the section of the payments.
            main = [*_payment_cells(paid, v.owners[line.owner])[:2], Cell(*line.value)]
        more = (Cell(*entry) for entry in (line.share, line.rank, line.rows))
        rows.append([Cell(full_name(v.owners[line.owner])), *main, *more])
    if isinstance(paid, Payments):
        columns[1:3] = [f"Payment{_unit(paid)}", next(iter(paid.intervals)), columns[1]]
    return Table("All owners", columns, rows, sortable=True)


def _payment_cells(paid: Payments, owner: str) -> list[Cell]:
    """A payment and its intervals."""
    row = paid.frame.loc[[owner]].iloc[0]
    cells = [Cell(number(row["payment"], paid.places), row["payment"])]
    for low, high in paid.intervals.values():
        known = not np.isnan(row[low])
        ends = " … ".join(number(row[end], paid.places) for end in (low, high))
        cells.append(Cell(ends, row[low]) if known else Cell("–"))
    return cells


def _unit(paid: Payments) -> str:
    return f" ({paid.currency})" if paid.currency else ""


def _stds_by_source(v: Valuation) -> dict[str, Floats]:
    """Parts of the standard deviations, (n,) each."""
    untrained = v.uncertainty.std("prediction") ** 2 - v.uncertainty.std("noise") ** 2
    found = {"predictions": np.maximum(untrained, 0.0) ** 0.5}  # rounding may leave less than zero
    if v.uncertainty.noise.any():
        found["noise of trainings"] = v.uncertainty.std("noise")
    if v.uncertainty.sampling is not None:
        found["choice of coalitions"] = v.uncertainty.std("sampling")
    if v.uncertainty.validation is not None:
        found["choice of validation rows"] = v.uncertainty.std("validation")
    if v.uncertainty.deal is not None:
        found[deal_in_words(v.facts.folds)] = v.uncertainty.std("deal")
    return found


def _deviations_table(v: Valuation) -> Table | None:
    """Intervals, and standard deviations by their sources; None if nothing is uncertain."""
    if not v.std.any():
        return None
    stds, places = {**_stds_by_source(v), "in all": v.std.to_numpy()}, decimals(v) + 1
    rows = [
        [
            Cell(full_name(v.owners[line.owner])),
            Cell(*line.interval),
            *(Cell(number(s[line.owner], places), float(s[line.owner])) for s in stds.values()),
        ]
        for line in table_lines(v)
    ]
    columns = ["Owner", f"{v.words.noun.capitalize()}, 95 % interval"]
    columns += [f"{source[:1].upper()}{source[1:]}" for source in stds]
    return Table("Standard deviations by their source", columns, rows, sortable=True)


def _quotes(v: Valuation, quoted: Sequence[KeptQuote]) -> Shown | None:
    """What owners who have not joined would be worth; None without any."""
    outside = [one for one in quoted if one.name not in v.owners]
    if not outside:
        return None
    words = (
        "What owners who have not joined would be worth, from what was known on that day. "
        "Nobody is paid by a quote."
    )
    columns = ["Owner", "Value, quoted", "95 % interval", "Rows", "Trained with it", "Quoted on"]
    places = decimals(v)
    rows = [
        [
            Cell(full_name(one.name), None, "" if one.exists else "rows that do not exist yet"),
            Cell(number(one.value, places), one.value),
            Cell(f"{number(one.low, places)} … {number(one.high, places)}", one.low),
            Cell(f"{one.rows:,}", one.rows),
            Cell(f"{one.trained:,}", one.trained),
            Cell(one.made[:10]),
        ]
        for one in outside
    ]
    return {"words": words, "table": Table("Quotes", columns, rows, sortable=True)}


def _comparison(valuations: Sequence[Valuation]) -> Shown:
    return {"words": agreement(valuations), "table": _comparison_table(valuations)}


def _comparison_table(valuations: Sequence[Valuation]) -> Table:
    """Owners by semivalues."""
    main = valuations[0]
    columns = ["Owner"]
    columns += [part for v in valuations for part in (shorten(v.semivalue), "Rank")]
    tables = [{line.owner: line for line in table_lines(v)} for v in valuations]
    rows = []
    for i in main.order:
        cells = [Cell(full_name(main.owners[i]))]
        for line in (lines[i] for lines in tables):
            cells += [Cell(*line.value, small=line.interval.text), Cell(*line.rank)]
        rows.append(cells)
    return Table("The same trainings, valued in several ways", columns, rows, sortable=True)


def _joining(v: Valuation) -> Shown:
    """Who joined first, and what owners would be worth whoever did."""
    (rule,) = select(v.notes, [Code.PRECEDENCE])
    later = [_sentence(one) for one in select(v.notes, [Code.LATER_COPIES])]
    columns = [heading.capitalize() for heading in SYMMETRIC_HEADINGS]
    rows = [[Cell(full_name(n)), *map(Cell, cells)] for n, *cells in symmetric_lines(v)]
    table = Table(f"{SYMMETRIC}.", columns, rows) if rows else None
    return {"words": " ".join([rule.text, *later]), "table": table}


def _payments(found: Payments | InputError) -> Shown:
    """What each owner is paid, or why nobody is."""
    if isinstance(found, NotPayableError):  # the notes say why
        return {"words": "No payments: the values are not payable.", "table": None}
    if isinstance(found, InputError):
        return {"words": f"No payments: {without_directories(str(found))}.", "table": None}
    frame = found.table()
    single = [name for name in ("payment", "already_paid", "difference") if name in frame]
    rows = []
    for name, row in frame.iterrows():
        before = [Cell(number(row[key], found.places), row[key]) for key in single[1:]]
        rows.append([Cell(full_name(str(name))), *_payment_cells(found, str(name)), *before])
    pay, *before = (Cell(number(float(frame[key].sum()), found.places)) for key in single)
    rows.append([Cell("Sum"), pay, *(Cell("") for _ in found.intervals), *before])
    columns = ["Owner", f"Payment{_unit(found)}", *found.intervals]
    columns += [name.replace("_", " ").capitalize() for name in single[1:]]
    words = f"{PAID_ANYWAY}. {found.rule}" if found.anyway else found.rule
    return {"words": words, "table": Table("Payments", columns, rows)}


def _history(found: History) -> Shown:
    """The last results: the values of each, and what changed from one to the next."""
    shown = found.last()
    rows = [
        [Cell(full_name(name)), *(Cell(*entry) for entry in entries)]
        for name, entries in history_lines(shown, number)
    ]
    columns = ["Owner", *(one.capitalize() for one in history_headings(shown))]
    return {
        "table": Table(title_of(shown), columns, rows, sortable=True),
        "results": result_sentences(shown, number, spell_name),
        "not_read": [f"Not read: {without_directories(one)}." for one in found.not_read],
        "figure": _figure(shown, "history"),
    }


def _ranking(v: Valuation) -> Shown:
    """Which owners are in an order that is settled."""
    neighbours, (settled, pairs) = open_neighbours(v), settled_pairs(v)
    probably = f"a probability of at least 95 %{reservation(v)}"
    if neighbours:
        words = (
            f"The order of {settled:,} of {pairs:,} pairs of owners is settled: one of the two is "
            f"ahead with {probably}. Neighbours in the ranking whose order is not settled:"
        )
    else:
        words = f"Yes: each owner is ahead of the next with {probably}."
    return {
        "words": words,
        "neighbours": _first_lines(neighbours),
        "figure": _figure(v, "ranking"),
        # Of more owners it would be a wall of numbers; the figure shows the same.
        "table": _probability_table(v) if len(v.owners) <= MOST_LISTED else None,
    }


def _probability_table(v: Valuation) -> Table:
    """P(row owner is worth more than column owner), in per cent."""
    P, order = v.probability_greater().to_numpy(), v.order
    # In the head of a column a long name would push all others out of sight.
    columns = ["Worth more than …", *(shorten(v.owners[i]) for i in order)]
    rows = [
        [Cell(full_name(v.owners[i]))]
        + [Cell("–" if i == j else f"{in_per_cent(v, P[i, j])} %") for j in order]
        for i in order
    ]
    return Table("Probability that the row is worth more than the column", columns, rows)


def _trainings(v: Valuation) -> Shown:
    """Utilities observed and predicted, and the trainings themselves."""
    failed = f", {len(v.facts.failures):,} failed" if v.facts.failures else ""
    trained = v.facts.evaluated - len(v.facts.failures)
    words = [
        "A coalition is a group of owners whose data are pooled to train one model; its utility "
        "says how good that model is. "
        f"{trained:,} coalitions were trained{failed}; {_counting_sentence(v)}",
    ]
    words += texts(v, Code.DUPLICATES, Code.SAMPLED_COALITIONS)
    if v.facts.stopped:
        words.append(f"Training ended because {v.facts.stopped}.")
    figure = None
    if v.facts.evidence is not None and v.facts.evidence.coalitions["utility"].notna().any():
        predicted = v.facts.evidence.coalitions["utility"].isna().sum()
        caption = "Each point is a coalition: how many owners it has and its utility"
        if predicted:
            caption += f", trained or predicted; of those not trained {predicted:,} are shown"
        figure = _figure(v, "utilities", f"{caption}.")
    return {"words": words, "figure": figure, **_trainings_table(v)}


def _trainings_table(v: Valuation) -> Shown:
    """Every training as a table, None if they are not recorded, and a summary of it."""
    if v.evaluations.empty:
        return {"table": None}
    # A page is sent by mail: with all trainings it would be as large as the store.
    some, total = v.evaluations.head(MOST_ROWS), len(v.evaluations)
    rows = []
    for done in some.to_dict("records"):
        failed = done["utility"] is None or pd.isna(done["utility"])
        utility = "failed" if failed else f"{done['utility']:.6g}".replace("-", "−")
        members, seconds = tuple(map(str, json.loads(done["coalition"]))), float(done["seconds"])
        rows.append([
            Cell(_member_list(members)),
            Cell(str(len(members)), len(members)),
            Cell(str(done.get("repeat", 0) + 1), done.get("repeat", 0)),
            Cell(utility, None if failed else done["utility"]),
            Cell(f"{seconds:.3g}", seconds) if seconds > 0 else Cell("–"),  # done elsewhere
        ])  # fmt: skip
    more = f"; the first {len(some)} are listed, {total - len(some):,} more are not"
    folds = f", {v.facts.folds:,} trainings each" if v.facts.folds > 1 else ""
    summary = f"All {total:,} evaluations{folds}" if total != 1 else "The only evaluation"
    if in_all := float(v.evaluations["seconds"].sum()):
        summary += f", {in_all:,.3g} seconds in all"
    caption = f"Evaluations{more if total > len(some) else ''}"
    # A repeat trains with another seed; of folds, it also deals the rows anew.
    columns = ["Coalition", "Owners", "Deal" if folds else "Repeat", "Utility", "Seconds"]
    return {"summary": summary, "table": Table(caption, columns, rows, sortable=True)}


def _predictor(v: Valuation) -> Shown:
    """The predictor on utilities it was not shown."""
    if (d := v.facts.diagnostics) is None:
        words = "Nothing was predicted, so nothing depends on it."
        return {"words": words, "figure": None, "notes": []}
    figure = None
    if v.facts.evidence is not None:
        both = v.facts.evidence.coalitions[["utility", "predicted"]].notna().all(axis=1)
        figure = _figure(v, "predictions") if both.any() else None
    used = [] if v.facts.sampled else [_similarity_sentence(d)]
    used += [] if v.facts.sampled else map(_sentence, select(v.notes, _OF_FIT))
    notes = [*map(_sentence, select(v.notes, _OF_CHECK)), *used]
    return {"words": _left_out_sentences(v, d), "figure": figure, "notes": notes}


def _data(v: Valuation, found: Sequence[Relation]) -> Shown:
    """Distances between the owners' data."""
    lines = _first_lines([relation.text for relation in found])
    words = "" if lines else (
        "No two owners share many rows or hold data of an unusually similar kind, and no owner's "
        "data are unlike those of all others."
    )  # fmt: skip
    known = v.facts.evidence is not None
    if not known:
        words, lines = "Distances between the data were not recorded.", []
    return {
        "words": words,
        "relations": lines,
        "validating": _validating(v),
        "map": _figure(v, "owner_map") if known else None,
        "distances": _figure(v, "distances") if known else None,
    }


def _validating(v: Valuation) -> Table | None:
    """Whose rows validate; None if that is not known, or they come from elsewhere."""
    if not v.facts.validating:
        return None
    parts = [(i, v.facts.validating.get(v.owners[i], 0.0)) for i in v.order]
    rows = [
        [Cell(full_name(v.owners[i])), Cell(f"{number(100 * part, 1)} %", part)]
        for i, part in parts
    ]
    columns = ["Owner", "Part of the validation rows"]
    if weights := v.facts.provenance.get(WEIGHTS, {}):
        columns.append("Weight in a score")
        for (i, _), row in zip(parts, rows, strict=True):
            weight = float(weights.get(v.owners[i], 0.0))
            row.append(Cell(f"{number(100 * weight, 1)} %", weight))
    return Table("Whose rows models are scored on", columns, rows, sortable=True)


def _uncertainty(v: Valuation) -> Shown:
    """How sure the answer is, by source, and the widest interval against trainings."""
    known, words = known_widths(v), []
    if len(known) > 1:
        first, last = known.iloc[0], known.iloc[-1]
        words.append(
            f"After {first['evaluated']:,.0f} trained coalitions the widest 95 % interval was "
            f"± {first['widest']:.2g}, after {last['evaluated']:,.0f} it was "
            f"± {last['widest']:.2g}."
        )
    words += texts(v, Code.VARIANCE, Code.DEAL, Code.REPEATED_TRAININGS, Code.MORE_ROWS)
    words += texts(v, Code.FORECAST, Code.COST)
    if not words and v.complete:
        words.append("Nothing is left to train: every coalition that counts was trained.")
    elif not words:
        words.append("How the uncertainty fell was not recorded.")
    drawn = len(known) > 1 or len(v.facts.forecast) > 1
    return {
        "answer": answer(v),
        "meaning": [*meaning(v), f"{certainty_word(v)}." if v.std.any() else ""],
        "table": _deviations_table(v),
        "words": words,
        "figure": _figure(v, "uncertainty") if drawn else None,
    }


def _failures(v: Valuation) -> Shown:
    """What went wrong, with the coalitions it concerns."""
    facts = v.facts
    failures = [f"{_member_list(names)}: {_cut(why)}" for names, why in facts.failures.items()]
    raised = [
        f"{_cut(message)} (in {len(coalitions):,} of {facts.evaluated:,} trainings: "
        f"{join_list(map(_member_list, coalitions), most=3)})"
        for message, coalitions in facts.warnings.items()
    ]
    failed = (
        f"{len(failures):,} of {facts.evaluated:,} coalitions failed; their utilities are "
        "predicted."
    )
    rest = texts(v, Code.STALE)
    if not failures and not raised and not rest:
        rest = ["None: no training failed or raised a warning."]
    return {
        "failed": failed if failures else "",
        "failures": _first_lines(failures),
        "warned": "Warnings that trainings raised:" if raised else "",
        "warnings": _first_lines(raised),
        "rest": rest,
        "advice": [without_directories(text) for text in texts(v, *ABOUT_TABLE)],
    }


def _reproduction(v: Valuation) -> Shown:
    """Versions, settings, the command."""
    words = "" if v.facts.provenance else (
        "How this was computed was not recorded; the same call with the same seed and the same "
        "data gives it again."
    )  # fmt: skip
    records = [
        (name[:1].upper() + name[1:], [(_cut(key), _cut(text)) for key, text in texts.items()])
        for name, texts in v.facts.provenance.items()
    ]
    return {"words": words, "records": records}


def _counting_sentence(v: Valuation) -> str:
    if v.complete:
        return "that is all that count in the values, so nothing had to be predicted."
    if v.facts.diagnostics is None:
        return "they include all that were drawn for the values."
    return f"{v.facts.counting:,} count in the values, and those not trained were predicted."


def _left_out_sentences(v: Valuation, d: Diagnostics) -> str:
    if np.isnan(d.r2):
        return "That could not be checked: the trained utilities are all equal."
    words = (
        "Each trained coalition was hidden in turn and predicted from the others. The predictions "
        f"were off by {d.error:.2g} (root mean square); they explain "
        f"{max(0.0, 100 * d.r2):.0f} % of the differences between utilities (R² "
        f"{number(d.r2, 2)}). Of the trained utilities {100 * d.coverage:.0f} % lay inside the "
        "predictor's own 95 % interval: "
        f"{'about as many as should' if d.coverage >= 0.9 else 'fewer than should'}."
    )
    if v.facts.evidence is None:
        return words
    both = v.facts.evidence.coalitions.dropna(subset=["utility", "predicted"])
    half = both["std"] * v.uncertainty.half_of_one
    inside = (both["utility"] - both["predicted"]).abs() <= half
    return f"{words} The intervals shown here allow for that, and hold {100 * inside.mean():.0f} %."


def _similarity_sentence(d: Diagnostics) -> str:
    parts = [
        f"{100 * part:.0f} % by {SCALES.get(label, label)}" for label, part in d.scales.items()
    ]
    return (
        f"The predictor compares coalitions {join_list(parts)}. By chance, a training differs from "
        f"what can be predicted by about {d.noise:.2g}."
        f"{f' It is as asked for: {d.asked}.' if d.asked else ''}"
    )


def _figure(shown: Valuation | History, name: str, caption: str = "") -> Figure:
    caption = caption or CAPTIONS[name]
    # Markup already: matplotlib and ElementTree have escaped the names in it.
    return Figure(Markup(draw_figure(shown, name, label=caption)), caption)


def _member_list(members: tuple[str, ...]) -> str:
    """The members of a coalition within a sentence."""
    return list_names(members) if members else "no owner"


def _cut(words: str) -> str:
    """A text from outside, which may be very long and name files of this machine."""
    words = without_directories(words)
    return words if len(words) <= LONGEST else f"{words[:LONGEST]} …"


def _first_lines(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LISTED
    return [*lines[:MOST_LISTED], f"… and {more:,} more."] if more > 0 else lines


def _check_owners(valuations: Sequence[Valuation]) -> None:
    if not valuations:
        raise InputError("a report needs at least one valuation, got none")
    for v in valuations[1:]:
        if v.owners != valuations[0].owners:
            raise InputError(
                f"the {v.semivalue} values are of other owners than the "
                f"{valuations[0].semivalue} values; report them in pages of their own"
            )
