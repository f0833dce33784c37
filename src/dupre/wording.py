"""Names, lists and numbers in sentences that people read, and the name that was probably meant.

Names, cells and messages may come from anywhere, and must not control a terminal: what is printed
passes through `escape_controls`, a name through `printable`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

MOST_LISTED = 12
"""Names up to which a list is written out."""

LONGEST_NAME = 48
"""Characters of a name up to which it is not shortened within a sentence."""

LONGEST_SHOWN = 120
"""Characters of a name or a cell up to which it is shown as a whole in a table or a message."""

LONGEST_LINE = 2_000
"""Characters of a line up to which it is printed as a whole."""

MOST_PLACES = 8
"""Decimals up to which a number is written without a power of ten."""

MOST_NAMED = 8
"""Things named one by one; the others are counted."""

FORMULA = ("=", "+", "-", "@")
"""How a text begins that spreadsheets take for a formula."""

ROWS_HELD_OUT = "rows held out"
"""The section of a provenance that numbers the rows of each owner that validate."""

WEIGHTS = "weights of owners"
"""The section of a provenance that has the part of a score that each owner's rows decide."""

ROWS_OF = "rows of "
"""What the digest of an owner's rows is called among the fingerprints, before the name."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None if none is close.

    Case and surrounding space are ignored; space, hyphen and underscore are the same.
    """
    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(_fold(other), other)
    found = get_close_matches(_fold(name), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message: " (did you mean 'price'?)", or nothing."""
    found = closest(name, known)
    return f" (did you mean {quote(found)}?)" if found is not None else ""


def quote_names(names: Iterable[str], *, most: int = MOST_LISTED) -> str:
    """'a', 'b', 'c', … and 30 more."""
    every = list(names)
    text = ", ".join(map(quote, every[:most]))
    return f"{text}, … and {len(every) - most} more" if len(every) > most else text


def _fold(name: str) -> str:
    return " ".join(name.replace("_", " ").replace("-", " ").split()).casefold()


def escape_controls(text: str) -> str:
    """The text in one line: line breaks and other control characters are spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def spell_out(name: str) -> str:
    """The whole name in one line; different names stay different, as a backslash is doubled."""
    return escape_controls(name.replace("\\", "\\\\"))


def printable(name: str) -> str:
    """The name in one line, as tables and messages show it."""
    return shorten(name, LONGEST_SHOWN)


def shorten(name: str, longest: int = LONGEST_NAME) -> str:
    """The name in one line, the middle of a long one left out."""
    return cut(spell_out(name), longest)


def cut(text: str, longest: int) -> str:
    """The text, the middle of a long one left out."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def quote(thing: object) -> str:
    """A name or a cell in quotation marks, the middle of a long one left out."""
    return cut(repr(thing), LONGEST_SHOWN)


def json_text(thing: Any) -> str:
    """The thing as JSON; only control characters are escaped, not other letters."""
    text = json.dumps(thing, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def json_numbers(numbers: Iterable[float]) -> str:
    """Numbers as a short JSON list that keeps every digit; NaN is null."""
    plain = [None if math.isnan(number) else number for number in numbers]
    return json.dumps(plain, separators=(",", ":"))


def deal_in_words(folds: int) -> str:
    """What chance decided when rows were split into so many folds."""
    return "split of the rows" if folds == 1 else "deal of the folds"


def join_list(parts: Iterable[str], most: int = MOST_NAMED) -> str:
    """`a, b and c`; those after about `most` by number."""
    texts = list(parts)
    most = most + 1 if len(texts) == most + 1 else most
    texts = [*texts[:most], *([f"{len(texts) - most:,} more"] if len(texts) > most else [])]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def count_things(count: int, thing: str) -> str:
    """A number of things: `1 row`, `2,000 rows`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def percent(part: float) -> str:
    """A probability in per cent, never rounded to certainty."""
    if 0.995 <= part < 1:
        return ">99"
    return "<1" if 0 < part < 0.005 else f"{100 * part:.0f}"


def plain_number(value: float, places: int) -> str:
    """A number with this many decimals, as programs read it; no minus sign before zero.

    Of more than MOST_PLACES decimals it is given in a power of ten, up to the same decimal.
    """
    value = _without_rounding(value)
    return _in_powers(value, places) if places > MOST_PLACES else f"{value:z.{places}f}"


def write_apart(low: float, high: float) -> tuple[str, str]:
    """Two numbers with four digits, or with as many as it takes to tell them apart."""
    digits = next((d for d in (4, 8) if f"{low:.{d}g}" != f"{high:.{d}g}"), 16)
    return f"{low:.{digits}g}", f"{high:.{digits}g}"


def number(value: float, places: int) -> str:
    """A number with this many decimals, as it is printed; a dash where there is none."""
    if math.isnan(value):
        return "–"
    value = _without_rounding(value)
    text = _in_powers(value, places) if places > MOST_PLACES else f"{value:z,.{places}f}"
    return f"−{text[1:]}" if text.startswith("-") else text


def _without_rounding(value: float) -> float:
    """The number to 15 digits: numbers that are equal but for rounding are printed alike."""
    return float(f"{value:.15g}")


def _in_powers(value: float, places: int) -> str:
    if not math.isfinite(value):
        return f"{value:f}"
    if abs(value) < 0.5 * 10.0**-places:
        return "0"
    digits = math.floor(math.log10(abs(value))) + places
    return f"{value:.{max(0, digits)}e}"


def format_time(seconds: float) -> str:
    """Minutes and seconds, `1:05`, or hours too, `1:00:05`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def in_minutes(seconds: float) -> str:
    """A time to plan by, `about 14 minutes`; "" below one minute: nobody plans by less."""
    minutes = round(seconds / 60)
    return f"about {count_things(minutes, 'minute')}" if minutes else ""
