"""Fields of a JSON document that may come from anywhere: each has a kind and knows its place.

A document is read field by field. Whatever is not of its kind is an InputError that names the field
(`valuations[0].owners[2].rows`), what was expected there and what was found.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar, get_type_hints

import numpy as np
import pandas as pd

from dupre._types import Floats
from dupre.checks import LARGEST
from dupre.errors import InputError
from dupre.result.packed import unpack_matrix
from dupre.wording import quote_names

Kind = TypeVar("Kind")


def _is_text(thing: Any) -> bool:
    try:
        return isinstance(thing, str) and bool(thing.encode() or True)
    except UnicodeEncodeError:  # half a character
        return False


def _is_count(thing: Any) -> bool:
    return type(thing) is int and 0 <= thing < 2**53


def _is_number(thing: Any) -> bool:
    return type(thing) in (int, float) and abs(thing) <= LARGEST


def _is_list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda thing: isinstance(thing, list) and all(map(check, thing))


def _is_coalition(thing: Any) -> bool:
    try:
        return _is_text(thing) and _is_list_of(_is_text)(json.loads(thing))
    except (ValueError, RecursionError):
        return False


CHECKS: dict[str, Callable[[Any], bool]] = {
    "a text": _is_text,
    "true or false": lambda thing: isinstance(thing, bool),
    "a whole number": _is_count,
    "a number": _is_number,
    "a number or null": lambda thing: thing is None or _is_number(thing),
    "a number from 0 on or null": lambda thing: thing is None or (_is_number(thing) and thing >= 0),
    "a whole number or null": lambda thing: thing is None or type(thing) is int,
    "a text, a number or null": lambda thing: not isinstance(thing, (list, dict)),
    "a list": lambda thing: isinstance(thing, list),
    "an object": lambda thing: isinstance(thing, dict),
    "a list of texts": _is_list_of(_is_text),
    "a list of lists of texts": _is_list_of(_is_list_of(_is_text)),
    "a JSON list of texts": _is_coalition,
    "an object of numbers": lambda thing: (
        isinstance(thing, dict) and all(map(_is_number, thing.values()))
    ),
}
"""Kinds of fields and cells by what an error calls them."""

_FLOATS = ("a number", "a number or null", "a number from 0 on or null")
_OF_TYPE = {float: "a number or null", int: "a whole number", bool: "true or false", str: "a text"}


@dataclass(frozen=True)
class Field:
    """A part of a document and its place in it."""

    thing: Any
    place: str = ""

    def error(self, expected: str) -> InputError:
        """The error that says what was expected here."""
        what = self.place.lstrip(".") or "it"
        return InputError(
            f"the result is damaged: {what} must be {expected}, got {reprlib.repr(self.thing)}"
        )

    def of(self, kind: str) -> Any:
        """What is here; InputError if it is not of this kind."""
        if not CHECKS[kind](self.thing):
            raise self.error(kind)
        return self.thing

    def __getitem__(self, name: str) -> Field:
        if name not in self.of("an object"):
            raise InputError(f"the result is damaged: {f'{self.place}.{name}'[1:]} is missing")
        return self.get(name)

    def get(self, name: str, otherwise: Any = None) -> Field:
        """A field that older documents do not have."""
        return Field(self.of("an object").get(name, otherwise), f"{self.place}.{name}")

    def __iter__(self) -> Iterator[Field]:
        for i, thing in enumerate(self.of("a list")):
            yield Field(thing, f"{self.place}[{i}]")

    def number(self) -> float:
        """A finite number."""
        return float(self.of("a number"))

    def names(self) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self.of("a list of texts"))

    def coalitions(self) -> tuple[tuple[str, ...], ...]:
        """A list of lists of texts."""
        return tuple(map(tuple, self.of("a list of lists of texts")))

    def matrix(self, n: int, low: float, high: float) -> Floats:
        """A list of n rows of n numbers between two bounds, or a packed text; or all are null."""
        what = f"{n} rows of {n} numbers"
        if isinstance(self.thing, str):
            return self._unpack(n, low, high, what)
        cells = [cell for row in self for cell in row.of("a list")]
        if any(len(row) != n for row in self.of("a list")) or len(cells) != n * n:
            raise self.error(what)
        unknown = all(cell is None for cell in cells)
        for cell in () if unknown else cells:
            if type(cell) not in (int, float) or not low <= cell <= high:
                raise Field(cell, self.place).error(f"{what} from {low:g} to {high:g}")
        return np.array(cells, dtype=np.float64).reshape(n, n)

    def _unpack(self, n: int, low: float, high: float, what: str) -> Floats:
        found = unpack_matrix(self.thing, n)
        if found is None:
            raise self.error(f"{what}, or the text of a packed matrix")
        within = (low <= found) & (found <= high)
        if not within.all() and not np.isnan(found).all():
            raise Field(float(found[~within][0]), self.place).error(
                f"{what} from {low:g} to {high:g}"
            )
        return found

    def covariance(self, n: int) -> Floats:
        """A covariance of n numbers, up to rounding."""
        found = self.matrix(n, -(LARGEST**2), LARGEST**2)
        if np.isnan(found).any():
            raise self.error(f"a covariance of {n} values")
        scaled = found / max(np.abs(found).max(), 1e-300)
        symmetric = np.abs(scaled - scaled.T).max() <= 1e-6
        if not symmetric or np.linalg.eigvalsh(scaled).min() < -5e-9:
            raise self.error(f"a covariance of {n} values")
        return found

    def record(self, kind: type[Kind]) -> Kind | None:
        """A dataclass from its fields, each checked for its type; a null number is NaN."""
        if self.thing is None:
            return None
        hints, parts = get_type_hints(kind), {}
        needed = [one.name for one in fields(kind) if one.default is MISSING]  # type: ignore[arg-type]
        for name in (*needed, *self.of("an object")):
            if name not in hints:
                raise self.error(f"an object of {quote_names(hints)} alone")
            part, hint = self[name], hints[name]
            if hint == Mapping[str, float]:
                parts[name] = part.of("an object of numbers")
            elif hint in _OF_TYPE:
                found = part.of(_OF_TYPE[hint])
                parts[name] = np.nan if found is None else hint(found)
            else:
                parts[name] = part.coalitions()
        return kind(**parts)

    def table(self, kinds: Mapping[str, str]) -> pd.DataFrame:
        """A table of columns and rows: at least these columns, others are of the kind under ""."""
        columns = self["columns"].names()
        if len(set(columns)) < len(columns):
            raise self["columns"].error("different names")
        rows = list(self["rows"])
        for row in rows:
            if len(row.of("a list")) != len(columns):
                raise row.error(f"{len(columns)} cells")
        if rows and (lacking := [name for name in kinds if name and name not in columns]):
            raise self["columns"].error(f"names with {quote_names(lacking)} among them")
        for i, name in enumerate(columns):
            kind = kinds.get(name, kinds.get("", "a text, a number or null"))
            for row in rows:
                if not CHECKS[kind](row.thing[i]):
                    raise Field(row.thing[i], f"{row.place}[{i}]").error(f"{kind} ({name})")
        frame = pd.DataFrame([row.thing for row in rows], columns=list(columns))
        numbers = [name for name in columns if kinds.get(name, kinds.get("")) in _FLOATS]
        return frame.astype(dict.fromkeys(numbers, np.float64))
