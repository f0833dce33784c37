"""Pieces of an HTML page. Whatever comes from outside passes through `text`.

Every function returns markup; arguments called `content`, `cells` and the like are markup too.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dupre.wording import escape_controls, shorten, with_minus_signs

LONGEST = 300
"""Characters of a name up to which it is written in full."""

_ISOLATED = re.compile("\u2068([^\u2068\u2069]*)\u2069")


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        content: markup.
        sort: the number by which its column is sorted; None to sort by what is shown.
    """

    content: str
    sort: float | None = None


def text(words: str) -> str:
    """Any text as markup; an element isolates what `wording.spell_name` isolates."""
    parts = _ISOLATED.split(words)  # names are at the odd places
    for i, part in enumerate(parts):
        safe = html.escape("\n".join(map(escape_controls, part.split("\n"))))
        # A number stays on one line with its sign and its unit.
        safe = safe.replace(" %", "\u00a0%").replace("± ", "±\u00a0")
        parts[i] = f"<bdi>{html.escape(escape_controls(part))}</bdi>" if i % 2 else safe
    return "".join(parts)


def sentence(words: str) -> str:
    """A text of sentences as markup: one kind of minus sign, and names as they are."""
    parts = _ISOLATED.split(words)
    spelt = [f"\u2068{p}\u2069" if i % 2 else with_minus_signs(p) for i, p in enumerate(parts)]
    return text("".join(spelt))


def owner(name: str) -> str:
    """The name of an owner, in full unless it is very long."""
    return f"<bdi>{html.escape(shorten(name, LONGEST))}</bdi>"


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(kind)}>{sentence(words)}</p>"


def paragraphs(words: Iterable[str]) -> str:
    """One paragraph for each text."""
    return "\n".join(map(paragraph, words))


def items(words: Iterable[str], kind: str = "") -> str:
    """A list of plain texts; nothing for none."""
    lines = "\n".join(f"<li>{sentence(line)}</li>" for line in words)
    return f"<ul{_class(kind)}>\n{lines}\n</ul>" if lines else ""


def definitions(pairs: Iterable[tuple[str, str]], kind: str = "") -> str:
    """Terms and what they stand for, both plain text; several lines are kept as they are."""
    lines = []
    for term, words in pairs:
        shown = f"<pre>{text(words)}</pre>" if "\n" in words else text(words)
        lines.append(f"<div><dt>{text(term)}</dt><dd>{shown}</dd></div>")
    return f"<dl{_class(kind)}>\n" + "\n".join(lines) + "\n</dl>"


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, sortable: bool
) -> str:
    """A table whose first column names its rows; it scrolls by itself where it is too wide."""
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in columns)
    body = "\n".join(f"<tr>{_row(cells)}</tr>" for cells in rows)
    kind = ' class="sortable"' if sortable else ""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(caption)}">\n'
        f"<table{kind}>\n<caption>{text(caption)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def figure(svg: str, caption: str) -> str:
    """A figure and what it shows, in words."""
    return f"<figure>\n{svg}\n<figcaption>{text(caption)}</figcaption>\n</figure>"


def details(summary: str, content: str) -> str:
    """A block that opens on a click."""
    return f"<details>\n<summary>{text(summary)}</summary>\n{content}\n</details>"


def section(name: str, title: str, *content: str) -> str:
    """A section of the page with its heading."""
    inside = "\n".join(part for part in content if part)
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n'
        f'<h2 id="{name}-title">{text(title)}</h2>\n{inside}\n</section>'
    )


def _row(cells: Sequence[Cell]) -> str:
    first, *others = cells
    shown = [f'<th scope="row"{_sort(first)}>{first.content}</th>']
    shown += [f"<td{_sort(cell)}>{cell.content}</td>" for cell in others]
    return "".join(shown)


def _sort(cell: Cell) -> str:
    return "" if cell.sort is None else f' data-value="{cell.sort:.12g}"'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
