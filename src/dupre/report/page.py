"""A valuation as one self-contained HTML page, and as the table that notebooks show.

Everything on the page comes from `Valuation` records. Statements are also written as files of their
own: one page to one owner, which names no other owner.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from dupre.errors import InputError
from dupre.files import replace_text
from dupre.game.coalitions import find_owner
from dupre.report import sections
from dupre.report.document import Heading, document
from dupre.report.markup import definitions, items, owner, paragraph, paragraphs, section, text
from dupre.report.relations import relations
from dupre.report.statements import Statement, statements
from dupre.report.summary import meaning, reservation, surely
from dupre.result.as_text import failed_part, notes, title_of, trained_part
from dupre.result.payments import Payments
from dupre.result.table import table_headings, table_lines
from dupre.result.uncertainty import split_notes
from dupre.result.valuation import Valuation

NO_HEADING = Heading()

TITLE = "What each owner's data are worth"
TITLE_TO_OWNER = "What your data are worth"

LONGEST_STEM = 60
"""Characters of an owner's name in the name of a file."""

SURELY = (
    "{} means with a probability of at least 95 %{}. An interval says how well the value of the "
    "owner's present rows is known{}, not what other rows of the same owner would be worth{}."
)

SIZES = "What these data add to groups of so many other owners, on average (95 % intervals):"

NAVIGATION = {
    "answer": "Answer",
    "payments": "Payments",
    "ranking": "Ranking",
    "trained": "Trainings",
    "trust": "Predictor",
    "data": "Data",
    "uncertainty": "Uncertainty",
    "failures": "Failures",
    "reproduce": "Reproduce",
    "statements": "Statements",
}
"""Sections in their order, with their names in the navigation."""


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
    heading: Heading = NO_HEADING,
    paid: Payments | InputError | None = None,
) -> str:
    """The page as HTML.

    Args:
        valuations: one, or several semivalues of the same owners; the first is the main one.
        heading: title, contact and logo.
        paid: what owners are paid, or why nobody is; None if nothing is said about that.
    """
    _check_owners(valuations)
    v = valuations[0]
    found = relations(v)
    each = f"One for each owner, to be printed on a page of its own. {_surely(v)}"
    articles = [statement_markup(v, one) for one in statements(v, found, paid)]
    parts = [
        sections.answer_section(valuations),
        sections.ranking_section(v),
        sections.trainings_section(v),
        sections.predictor_section(v),
        sections.data_section(v, found),
        sections.uncertainty_section(v),
        sections.failures_section(v),
        sections.reproduction_section(v),
        section("statements", "Statements", paragraph(each), *articles),
    ]
    names = dict(NAVIGATION)
    if paid is not None:
        parts.insert(1, sections.payments_section(v, paid))
    else:
        del names["payments"]
    links = "\n".join(f'<li><a href="#{name}">{short}</a></li>' for name, short in names.items())
    title = heading.title or TITLE
    return document(
        title,
        heading,
        '<a class="skip" href="#main">Skip to the answer</a>',
        f"<header>\n<h1>{text(title)}</h1>\n{paragraphs(_subtitle(v))}\n</header>",
        f'<nav aria-label="Sections">\n<ul>\n{links}\n</ul>\n</nav>',
        '<main id="main">',
        *parts,
        "</main>",
        sortable=True,
    )


def notebook_table(v: Valuation) -> str:
    """The values as HTML for a notebook: each interval a small bar, the notes below."""
    frame = v.to_frame()
    first = float(min(frame["low"].min(), 0.0))
    span = max(float(max(frame["high"].max(), 0.0)) - first, 1e-300)
    zero, rows = -100 * first / span, []
    for i, *entries in table_lines(v):
        row = frame.iloc[i]
        low, value, high = (100 * (row[k] - first) / span for k in ("low", "value", "high"))
        cells = [entry.text for entry in entries]
        cells.insert(_BAR - 1, _bar(low, value, high, zero))
        name = f'<th scope="row" style="text-align:left">{owner(v.owners[i])}</th>'
        shown = "".join(f'<td style="{_PADDED}">{cell}</td>' for cell in cells)
        rows.append(f"<tr>{name}{shown}</tr>")
    body = "\n".join(rows)
    head = [*table_headings(v)]
    head.insert(_BAR, "")
    columns = "".join(f'<th scope="col" style="{_PADDED}">{text(column)}</th>' for column in head)
    lines = "<br>".join(map(text, title_of(v)))
    return (
        f'<div class="dupre"><p>{lines}</p>\n'
        '<div style="max-height:36em;overflow:auto"><table>\n'
        f"<thead><tr>{columns}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n"
        f"{items(notes(v))}</div>"
    )


def _bar(low: float, value: float, high: float, zero: float) -> str:
    """An interval as a bar with a mark at the value, and a line at zero; all in per cent."""
    line = f"position:absolute;left:{zero:.1f}%;top:0;height:100%;border-left:1px solid;"
    return (
        '<div style="position:relative;width:12em;height:1em" aria-hidden="true">'
        f'<i style="{line}opacity:.35"></i>'
        f'<i style="position:absolute;left:{low:.1f}%;width:{max(high - low, 0.5):.1f}%;'
        'top:.3em;height:.4em;background:currentColor;opacity:.3"></i>'
        f'<i style="position:absolute;left:{value:.1f}%;top:.1em;height:.8em;'
        'border-left:2px solid"></i></div>'
    )


_PADDED = "text-align:right;padding:.15em .6em;white-space:nowrap"

_BAR = 4
"""Column of the bars, after that of the intervals."""


def _subtitle(v: Valuation) -> list[str]:
    about, n = "predicted to be " if v.grand_predicted else "", len(v.owners)
    return [
        f"{v.semivalue} {v.words.nouns} of {n:,} owners; {trained_part(v)} trained{failed_part(v)}",
        f"Utility of all data together {about}{v.grand:.4g}, of no data {v.empty:.4g}",
        *meaning(v),
    ]


def statement_markup(v: Valuation, statement: Statement) -> str:
    """One statement as an article."""
    name = f"owner-{statement.owner}"
    context = f"Statement on the {v.semivalue} {v.words.nouns} of "
    context += " ".join([f"{len(v.owners):,} owners.", *meaning(v), _surely(v)])
    sizes = ""
    if statement.sizes:
        sizes = f"{paragraph(SIZES)}\n{definitions(statement.sizes, 'sizes')}\n"
    return (
        f'<article id="{name}" aria-labelledby="{name}-title">\n'
        f'<h3 id="{name}-title">{owner(v.owners[statement.owner])}</h3>\n'
        f"{paragraph(statement.effect, 'lead')}\n"
        f"{paragraph(context, 'context')}\n{definitions(statement.facts, 'facts')}\n"
        f"{paragraphs(statement.paragraphs)}\n{sizes}"
        f"{items(statement.caveats, 'caveats')}\n</article>"
    )


def write_statements(
    v: Valuation,
    directory: Path,
    *,
    only: Collection[str] = (),
    heading: Heading = NO_HEADING,
    paid: Payments | InputError | None = None,
) -> list[Path]:
    """Write the statements of all owners, or of `only` some; return where they are.

    `heading` and `paid` are those of `page`.
    """
    only = [find_owner(name, v.owners) for name in only]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise InputError(
            f"the directory {str(directory)!r} cannot be made ({cause.strerror}); choose another"
        ) from cause
    names, written = file_names(v.owners), []
    title = heading.title or TITLE_TO_OWNER
    every = statements(v, relations(v), paid, to_owner_alone=True)
    for statement in every:
        i = statement.owner
        if not only or v.owners[i] in only:
            body = f"<main>\n<h1>{text(title)}</h1>\n{statement_markup(v, statement)}\n</main>"
            path = directory / names[i]
            replace_text(path, document(title, heading, body))
            written.append(path)
    return written


def file_names(owners: Collection[str]) -> list[str]:
    """A name for the file of each owner that every system allows, all different."""
    taken: set[str] = set()
    names = []
    for full in owners:
        stem = re.sub(r"[^\w.-]+", "-", full)[:LONGEST_STEM].strip(".-") or "owner"
        name, count = stem, 1
        while name.casefold() in taken:  # some systems do not tell upper from lower case
            count += 1
            name = f"{stem}-{count}"
        taken.add(name.casefold())
        names.append(f"statement-{name}.html")
    return names


def _surely(v: Valuation) -> str:
    others = ", if models are scored on other validation rows of the same population too"
    known = "" if v.validation is None or not v.validation.any() else others
    split = ", nor what the value is if other rows are held out" if split_notes(v) else ""
    return SURELY.format(surely(v).capitalize(), reservation(v), known, split)


def _check_owners(valuations: Sequence[Valuation]) -> None:
    if not valuations:
        raise InputError("a report needs at least one valuation, got none")
    for v in valuations[1:]:
        if v.owners != valuations[0].owners:
            raise InputError(
                f"the {v.semivalue} values are of other owners than the "
                f"{valuations[0].semivalue} values; report them in pages of their own"
            )
