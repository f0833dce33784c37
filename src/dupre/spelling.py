"""Names as people type them: the one that was meant, and lists short enough to read."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST_LISTED = 12
"""Names up to which a list is written out."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None if none is close.

    Case, surrounding space and the choice between space, hyphen and underscore count for nothing.
    """
    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(_folded(other), other)
    found = get_close_matches(_folded(name), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def meant(name: str, known: Iterable[str]) -> str:
    """The end of a message: " (did you mean 'price'?)", or nothing."""
    found = closest(name, known)
    return f" (did you mean {found!r}?)" if found is not None else ""


def quoted(names: Iterable[str], *, most: int = MOST_LISTED) -> str:
    """'a', 'b', 'c', … and 30 more."""
    every = list(names)
    text = ", ".join(map(repr, every[:most]))
    return f"{text}, … and {len(every) - most} more" if len(every) > most else text


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").replace("-", " ").split()).casefold()


def printable(name: str) -> str:
    """The name with line breaks and other control characters spelled out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
