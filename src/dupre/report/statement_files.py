"""Statements as files of their own: one page of HTML to one owner that names no other owner."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from dupre.errors import InputError
from dupre.files import replace_text
from dupre.game.coalitions import unknown_owner
from dupre.report.document import Heading, document
from dupre.report.markup import text
from dupre.report.page import statement_markup
from dupre.report.relations import relations
from dupre.report.statements import statements

if TYPE_CHECKING:
    from dupre.result.valuation import Valuation

TITLE = "What your data are worth"

LONGEST = 60
"""Characters of an owner's name in the name of a file."""


def write_statements(
    v: Valuation, directory: Path, *, only: Collection[str] = (), heading: Heading
) -> list[Path]:
    """Write the statements of all owners, or of `only` some; return where they are."""
    for name in only:
        if name not in v.owners:
            raise unknown_owner(name, v.owners)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise InputError(
            f"the directory {str(directory)!r} cannot be made ({cause.strerror}); choose another"
        ) from cause
    names, written = file_names(v.owners), []
    title = heading.title or TITLE
    for statement in statements(v, relations(v), to_owner_alone=True):
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
    for owner in owners:
        stem = re.sub(r"[^\w.-]+", "-", owner)[:LONGEST].strip(".-") or "owner"
        name, count = stem, 1
        while name.casefold() in taken:  # some systems do not tell upper from lower case
            count += 1
            name = f"{stem}-{count}"
        taken.add(name.casefold())
        names.append(f"statement-{name}.html")
    return names
