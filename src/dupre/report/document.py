"""Templates filled in: what a page shows is escaped here, all of it, and nowhere else.

Templates are in `templates/`. Whatever an expression of theirs shows passes through `escape_text`;
only figures, our style sheet and our script are markup already.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from dupre.errors import InputError
from dupre.wording import MOST_NAMED, escape_controls, join_list, shorten

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST_NAME = 300
"""Characters of a name up to which a table or a heading shows it in full."""

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
}
"""Kinds of logos by the end of the file's name."""

LARGEST_LOGO = 500_000
"""Bytes of a logo: it is part of every page."""

_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
_MINUS_ZERO = re.compile(r"(?<![\w.-])-(?=0(?:\.0+)?(?![\d.]))")
_DIRECTORIES = re.compile(r"(?<![\w:/.\\])(?:~|[A-Za-z]:)?(?:[/\\][^\s/\\'\":,;]+)+[/\\](?=\S)")
_QUOTED_DIRECTORIES = re.compile(r"(?<=')(?:~|[A-Za-z]:)?(?:[/\\][^'/\\\n]+)+[/\\](?=[^'/\\\n]+')")
_ISOLATED = re.compile("\u2068([^\u2068\u2069]*)\u2069")


@dataclass(frozen=True)
class Heading:
    """Title, contact and logo of the page and of every statement.

    Attributes:
        title: in place of the usual one; "" for that.
        contact: whom to ask, such as a name and an address; "" for nobody.
        logo: a picture as a data URI; "" for none.
    """

    title: str = ""
    contact: str = ""
    logo: str = ""


def read_logo(path: str) -> str:
    """A picture as a data URI, "" for no path; InputError if it is no picture, or too large."""
    if not path:
        return ""
    kind = PICTURES.get(Path(path).suffix.lower())
    if kind is None:
        raise InputError(f"the logo must be one of {', '.join(PICTURES)}, got {path!r}")
    try:
        content = Path(path).read_bytes()
    except OSError as cause:
        raise InputError(f"the logo {path!r} cannot be read: {cause.strerror}") from cause
    if len(content) > LARGEST_LOGO:
        raise InputError(
            f"the logo {path!r} has {len(content):,} bytes; take one of at most {LARGEST_LOGO:,}"
        )
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def spell_name(name: str) -> str:
    """The name within a sentence: shortened, and kept apart from the writing direction around it.

    The two characters that isolate it (U+2068, U+2069) are in no name: `printable` spells them out.
    """
    return f"\u2068{shorten(name)}\u2069"


def list_names(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """Names within a sentence; those after about `most` by number."""
    return join_list(map(spell_name, names), most)


def full_name(owner: str) -> str:
    """An owner in a table or a heading: in full unless very long, isolated as in sentences."""
    return f"\u2068{shorten(owner, LONGEST_NAME)}\u2069"


def render(template: str, shown: Mapping[str, Any]) -> str:
    """The template of this name with what it shows."""
    return _environment().get_template(template).render(shown)


def escape_text(words: object) -> Markup:
    """Any text as markup; an element isolates what `wording.spell_name` isolates."""
    if isinstance(words, Markup):
        return words
    parts = _ISOLATED.split(str(words))  # names are at the odd places
    parts[1::2] = [f"<bdi>{escape(escape_controls(name))}</bdi>" for name in parts[1::2]]
    for i, part in enumerate(parts[::2]):
        safe = escape("\n".join(map(escape_controls, part.split("\n"))))
        # A number stays on one line with its sign and its unit.
        parts[2 * i] = safe.replace(" %", "\u00a0%").replace("± ", "±\u00a0")
    return Markup("".join(parts))


def _escape_sentence(words: str) -> Markup:
    """A text of sentences as markup: one kind of minus sign, and names as they are."""
    parts = _ISOLATED.split(words)
    spelt = [f"\u2068{p}\u2069" if i % 2 else with_minus_signs(p) for i, p in enumerate(parts)]
    return escape_text("".join(spelt))


@cache
def _environment() -> Environment:
    # Imported here: most verbs of the command write no page.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("dupre.report"),
        autoescape=True,
        # Escapes more than `autoescape`: control characters too, for every expression shown.
        finalize=escape_text,
        # A name that a template misspells is an error, not an empty place.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Read, not included by a template: to jinja, braces of a style sheet could mean something.
    templates = files("dupre.report").joinpath("templates")
    style, script = (
        templates.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    found.globals |= {"style": Markup(style), "script": Markup(script), "digest": digest}
    found.filters["sentence"] = _escape_sentence
    return found


def with_minus_signs(words: str) -> str:
    """A sentence with the minus signs of `number` before its numbers, and none before zero."""
    return _MINUS.sub("−", _MINUS_ZERO.sub("", words))


def without_directories(words: str) -> str:
    """A text in which files of this machine are named without their directories."""
    return _DIRECTORIES.sub("", _QUOTED_DIRECTORIES.sub("", words))
