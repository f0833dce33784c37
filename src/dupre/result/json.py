"""Valuations as JSON and back: the documented, versioned form of a result (docs/result.md).

The document follows the records: each field of a record is a field of it, under the same name and
with its type, and no other field is allowed. Numbers keep every digit; a number that is not known
(NaN) is null. What is the same for all valuations of a document is written once. The verdict, and
bounds, shares and ranks of owners, are written for the reader; they follow from the rest and must
not contradict it when they are read.

Scores on resamples are nine tenths of a document of 5 owners, also packed: they are as good as
random digits. A run directory keeps them in its store alone. Written as lists, the matrices of 300
owners are 10 MB of digits, and the names of coalitions are 2 MB. A list of scores is therefore the
base64 text of its 64-bit numbers, least significant byte first, compressed by zlib: no digit is
lost. Of many owners a matrix is packed in the same way, if it is symmetric its lower triangle, row
by row, otherwise all of it. A coalition is a hexadecimal number, "0x5" for the first and the third
owner: bit i stands for owner i in the order of the document.
"""

from __future__ import annotations

import binascii
import json
import re
import reprlib
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import partial
from types import NoneType
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pandas as pd

from dupre._types import Floats
from dupre.checks import LARGEST
from dupre.errors import InputError
from dupre.result.records import Evidence, Facts
from dupre.result.values import Values
from dupre.result.verdict import verdict
from dupre.wording import json_numbers, quote, quote_names

Kind = TypeVar("Kind", bound=Values)

FORMAT = "dupre result"
VERSION = 7
"""Of the format; it changes with every field, so that a document is read as it was meant."""

PACKED_FROM = 51
"""Owners from which on matrices and coalitions are packed."""

ROUNDING = 1e-6
"""Relative difference that counts as rounding; documents are read on other machines too."""

STDS = 6.0
"""Standard deviations by which sampled values may miss their sum."""

# Squares of larger numbers are infinite, and a JSON number beyond 2^53 is not exact everywhere.
Number: TypeAlias = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
FromZero: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
Freedom: TypeAlias = Annotated[float, msgspec.Meta(gt=2, le=LARGEST)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Cell: TypeAlias = bool | int | float | str | None

COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "evaluations": dict.fromkeys(("coalition", "failure", "warnings", "finished", "worker"), str)
    | {"repeat": Count, "attempt": Count, "seed": int | None}
    | {"utility": Number | None, "seconds": FromZero | None},
    "coalitions": {"members": tuple[str, ...], "size": Count, "rows": Count}
    | {"utility": Number | None, "predicted": Number | None, "std": FromZero | None},
    "rounds": {"evaluated": Count, "": Number | None},
    "contributions": {"owner": str, "others": Count}
    | dict.fromkeys(("value", "low", "high"), Number),
    "symmetric": {"owner": str} | dict.fromkeys(("value", "low", "high"), Number | None),
    "forecast": {"evaluated": Count, "widest": Number, "": Number},
}
"""Types of the columns that a table has if it has rows; that of others under ""."""

INDEXES = {"forecast": "evaluated"}
"""Columns that are the index of their table."""

TEXTS_IN_JSON = ("coalition", "warnings")
"""Columns of texts that are JSON lists of texts themselves."""

BOUNDS = {"distances": (0.0, LARGEST), "shared": (0.0, 1.0)}
"""Between which the numbers of a matrix lie; all other matrices are covariances."""

KNOWN = ("grand", "empty")
"""Numbers of records that are never null."""

ONCE: Mapping[str, type] = {
    "evaluations": Values,
    "provenance": Facts,
    "distances": Evidence,
    "shared": Evidence,
}
"""Fields of these records that are the same for all valuations of a document."""

ELSEWHERE = {**ONCE, **dict.fromkeys(("owners", "rows", "mean"), Values)}
"""Fields that do not stand in their record but above it, or in the table of owners."""

MOST_IN_A_LIST = 2**20
"""Numbers that a packed list may have: a damaged text must not fill the memory."""

_FLOAT = np.dtype("<f8")  # as documented, on any machine

_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "an object",
    "str": "a text",
}
"""What msgspec calls the types of JSON, in words."""


def dumps(valuations: Sequence[Values], *, resamples: bool = True) -> str:
    """The JSON document of some valuations of the same trainings.

    Args:
        valuations: of the same trainings.
        resamples: whether scores on resamples are written; not if a store beside it has them.

    Raises:
        InputError: a text holds half a character, for which JSON has no form.
    """
    first, evidence = valuations[0], valuations[0].facts.evidence
    left_out = [] if resamples else ["resampled"]
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "valuations": [
            {"verdict": _verdict(v), "owners": _owner_rows(v)} | _plain(v, len(v.owners))
            for v in valuations
        ],
        "evaluations": first.evaluations.drop(columns=left_out, errors="ignore"),
        "provenance": first.facts.provenance,
        "distances": evidence and evidence.distances,
        "shared": evidence and evidence.shared,
    }
    encode = partial(_encode, owners=first.owners)
    # msgspec writes numbers with all their digits, and null for those that are not finite.
    try:
        return msgspec.json.encode(whole, enc_hook=encode).decode()
    except UnicodeEncodeError as cause:
        raise InputError(
            f"{quote(cause.object)} holds half a character (a lone surrogate), which no JSON can "
            "hold; change it"
        ) from cause


def loads(text: str, kind: type[Kind]) -> list[Kind]:
    """The valuations in a JSON document; `kind` is `Valuation`.

    Raises:
        InputError: it is damaged, contradicts itself, or is of another version.
    """
    try:
        whole = msgspec.json.decode(text)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as cause:
        raise InputError(f"this is no JSON: {cause}") from cause
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise InputError(f'this is no result of dupre: expected JSON with "format": "{FORMAT}"')
    if (version := whole.get("version")) != VERSION:
        raise InputError(
            f"the result has version {version!r} of the format, this dupre knows version "
            f"{VERSION}; read it with the dupre that made it"
        )
    _check_names(whole, ["format", "version", "valuations", *ONCE], "")
    parts = _convert(whole["valuations"], list[dict[str, Any]], "valuations")
    if not parts:
        raise InputError("the result holds no valuation")
    return [_valuation(kind, part, whole, f"valuations[{i}]") for i, part in enumerate(parts)]


def _verdict(v: Values) -> dict[str, Any]:
    """The verdict; its reasons by the codes of the notes."""
    found = verdict(v)
    return {**vars(found), "reasons": [one.code.value for one in found.reasons]}


def _owner_rows(v: Values) -> list[dict[str, Any]]:
    """What is said of each owner, with all that follows from the rest."""
    alone = v.interval(for_these_rows=True).add_suffix("_for_these_rows")
    frame = v.to_frame().join(alone).rename_axis("name").reset_index()
    return frame.to_dict("records")  # type: ignore[return-value]


def _plain(record: Any, n: int) -> dict[str, Any]:
    """A record as an object; a mapping whose keys are not texts as a list of pairs.

    Fields that stand elsewhere in the document are left out.
    """
    hints, found = get_type_hints(type(record)), {}
    for part in fields(record):
        moved = isinstance(record, ELSEWHERE.get(part.name, ()))
        if moved or not _is_written(part, n):
            continue
        thing = getattr(record, part.name)
        if is_dataclass(thing):
            thing = _plain(thing, n)
        elif isinstance(thing, Mapping):
            thing = list(thing.items()) if _has_pairs(hints[part.name]) else dict(thing)
        found[part.name] = thing
    return found


def _is_written(part: Field[Any], n: int) -> bool:
    """Whether the records of n owners have this field in JSON: of many not what follows."""
    return part.init or n < PACKED_FROM


def _has_pairs(hint: Any) -> bool:
    """Whether this is a mapping whose keys cannot be names of fields in JSON."""
    return get_origin(hint) is Mapping and get_args(hint)[0] is not str


def _encode(thing: Any, owners: tuple[str, ...]) -> Any:
    """What msgspec does not know: a table as lists by column, a matrix as a list of rows."""
    many = len(owners) >= PACKED_FROM
    if isinstance(thing, pd.DataFrame):
        frame = thing.reset_index() if thing.index.name else thing
        columns = {str(name): frame[name].tolist() for name in frame}
        # Scores on resamples, 200 of each coalition, are most of the digits of any document.
        return {
            name: pack_column(name, cells, owners) if many or name == "resampled" else cells
            for name, cells in columns.items()
        }
    if isinstance(thing, np.ndarray):
        return pack_matrix(thing) if many else thing.tolist()
    if isinstance(thing, np.generic):
        return thing.item()
    if thing is pd.NA:
        return None
    raise NotImplementedError(f"{type(thing).__name__} has no form in JSON")


def _valuation(kind: type[Kind], raw: dict[str, Any], whole: dict[str, Any], place: str) -> Kind:
    """The valuation at a place of a document."""
    decided = _convert(raw.pop("verdict", None), _Verdict, f"{place}.verdict")
    stated, place_of_owners = raw.pop("owners", None), f"{place}.owners"
    owners = _convert(stated, list[_Owner], place_of_owners)
    names = tuple(owner.name for owner in owners)
    if len(set(names)) < max(2, len(names)):
        raise _damage(place_of_owners, "at least two owners with different names", names)
    rows = np.array([owner.rows for owner in owners], dtype=np.int64)
    mean = np.array([owner.value for owner in owners], dtype=np.float64)
    reader = _Reader({"owners": names, "rows": rows, "mean": mean})
    for name, record in ONCE.items():
        if whole[name] is not None:  # without evidence there are no relations of owners
            hint = get_type_hints(record)[name]
            reader.elsewhere[name] = reader.field(name, hint, whole[name], name)
    valuation: Kind = reader.record(kind, raw, place)
    _check_numbers(valuation, stated, place_of_owners)
    _check_cohorts(valuation, f"{place}.facts.joining.cohorts")
    _check_sum(valuation, place_of_owners)
    _check_ranks(valuation, stated, place_of_owners)
    _check_verdict(valuation, decided, f"{place}.verdict")
    return valuation


class _Verdict(msgspec.Struct, forbid_unknown_fields=True):
    """The verdict as it is written; it follows, and is checked by `_check_verdict`."""

    kind: str
    reasons: list[str]
    gain_probability: Number
    undecided: Number


class _Owner(msgspec.Struct):
    """What is needed of an owner; the rest follows, and is checked by `_check_numbers`."""

    name: str
    rows: Count
    value: Number


@dataclass(frozen=True)
class _Reader:
    """Reads what the records of a valuation hold, by their types.

    Attributes:
        elsewhere: what was read of the fields in ELSEWHERE.
    """

    elsewhere: dict[str, Any]

    @property
    def owners(self) -> tuple[str, ...]:
        """Names of the owners, in the order of the document."""
        return tuple(self.elsewhere["owners"])

    def record(self, kind: Any, raw: Any, place: str) -> Any:
        """A record of this kind."""
        hints, parts = get_type_hints(kind), fields(kind)
        names = [part.name for part in parts if _is_written(part, len(self.owners))]
        moved = [name for name in names if issubclass(kind, ELSEWHERE.get(name, ()))]
        found = {name: self.elsewhere[name] for name in moved if name in self.elsewhere}
        rest = [name for name in names if name not in found]
        _check_names(_convert(raw, dict[str, Any], place), rest, place)
        for name in rest:
            found[name] = self.field(name, hints[name], raw[name], f"{place}.{name}")
        # What a record computes of its other fields is stated for readers without Python.
        record = kind(**{part.name: found.pop(part.name) for part in parts if part.init})
        for name, stated in found.items():
            follows = getattr(record, name)
            if np.abs(stated - follows).max() > ROUNDING * np.abs(follows).max():
                raise _damage(f"{place}.{name}", "what follows from its parts", stated)
        return record

    def field(self, name: str, hint: Any, raw: Any, place: str) -> Any:
        """A field of a record with this name and type."""
        if NoneType in (options := get_args(hint)):
            if raw is None:
                return None
            (hint,) = (option for option in options if option is not NoneType)
        if name == "freedom":
            return _convert(raw, Freedom, place)
        if hint is float and name not in KNOWN:
            found = _convert(raw, Number | None, place)
            return np.nan if found is None else found
        if is_dataclass(hint):
            return self.record(hint, raw, place)
        if get_origin(hint) is tuple and is_dataclass(kind := get_args(hint)[0]):
            parts = enumerate(_convert(raw, list[Any], place))
            return tuple(self.record(kind, part, f"{place}[{i}]") for i, part in parts)
        if hint is pd.DataFrame:
            return self.table(name, raw, place)
        if get_origin(hint) is np.ndarray:
            return self.matrix(name, raw, place)
        if _has_pairs(hint):
            return dict(_convert(raw, list[tuple[get_args(hint)]], place))  # type: ignore[misc]
        # A count is never negative, and no number of a result has an infinite square.
        plain = {int: Count, float: Number, Mapping[str, float]: dict[str, Number]}
        return _convert(raw, plain.get(hint, hint), place)

    def table(self, name: str, raw: Any, place: str) -> pd.DataFrame:
        """A table from its columns."""
        kinds = COLUMNS.get(name, {})  # a table that is not listed there may hold any cells
        columns = _convert(raw, dict[str, list[Any]], place)
        length = max(map(len, columns.values()), default=0)
        for column in kinds if length else ():
            if column and column not in columns:
                raise _missing(place, column)
        found = {}
        for column, packed in columns.items():
            at, kind = f"{place}.{column}", kinds.get(column, kinds.get("", Cell))
            if len(packed) != length:
                raise _damage(at, f"a list of {length} cells", packed)
            unpacked = unpack_column(column, packed, self.owners)
            cells = _convert(unpacked, list[kind], at)  # type: ignore[valid-type]
            for cell in cells if column in TEXTS_IN_JSON else ():
                _check_texts(cell, at)
            found[column] = pd.Series(cells, dtype=_column_type(kind, cells))
        frame = pd.DataFrame(found)
        return frame.set_index(INDEXES[name]) if name in INDEXES and length else frame

    def matrix(self, name: str, raw: Any, place: str) -> Floats:
        """A matrix, (n, n): a list of rows or packed; all of it may be unknown."""
        n, largest = len(self.owners), LARGEST**2
        low, high = BOUNDS.get(name, (-largest, largest))
        if isinstance(raw, str):
            found = unpack_matrix(raw, n)
        else:
            rows = _convert(raw, list[list[float | None]], place)
            whole = len(rows) == n and all(len(row) == n for row in rows)
            found = np.array(rows, dtype=np.float64) if whole else None
        what = f"{n} rows of {n} numbers from {low:g} to {high:g}, or the text of a packed matrix"
        if found is None:
            raise _damage(place, what, raw)
        within = (low <= found) & (found <= high)
        if not within.all() and not (np.isnan(found).all() and name in BOUNDS):
            raise _damage(place, what, float(found[~within][0]))
        if name not in BOUNDS and not _is_covariance(found):
            raise _damage(place, f"a covariance of {n} values", raw)
        return found


def _column_type(kind: Any, cells: Sequence[Any]) -> str | None:
    """That of a column of a table; None to take that of its cells."""
    if kind in (Number, Number | None, FromZero | None):
        return "float64"  # also where all cells are null
    fits = kind == (int | None) and all(cell is None or abs(cell) < 2**63 for cell in cells)
    return "Int64" if fits else None


def _is_covariance(matrix: Floats) -> bool:
    """Whether a matrix is one, up to rounding."""
    scaled = matrix / max(np.abs(matrix).max(), 1e-300)
    # A sum of terms that cancel leaves eigenvalues a little below zero, in relation to the largest.
    symmetric = np.abs(scaled - scaled.T).max() <= ROUNDING
    return bool(symmetric and np.linalg.eigvalsh(scaled).min() >= -5e-9)


def _check_texts(cell: str, place: str) -> None:
    try:
        msgspec.json.decode(cell, type=list[str])
    except (msgspec.MsgspecError, RecursionError):
        raise _damage(place, "a JSON list of texts", cell) from None


def _check_numbers(v: Values, stated: Any, place: str) -> None:
    """Raise InputError if what is stated of owners does not follow from the rest of the document.

    That finds damage and contradictions: a value that is not in the middle of its interval, a share
    that is not its part of the gain. It does not find a careful forgery, in which all of that
    holds: only training again shows it.
    """
    bounds = v.interval()
    scales = np.abs(v.mean) + (bounds["high"] - bounds["low"]).to_numpy()
    for i, owner in enumerate(_owner_rows(v)):
        _check_names(stated[i], list(owner), f"{place}[{i}]")
        for name in (name for name in owner if name not in ("name", "rows", "best", "worst")):
            at, follows = f"{place}[{i}].{name}", float(owner[name])
            found = _convert(stated[i][name], Number | None, at)
            scale = 1.0 if name == "share" else scales[i]
            known = found is not None
            off = abs(found - follows) if known else 0.0
            if known == np.isnan(follows) or off > ROUNDING * (scale + abs(follows)):
                source = "utilities" if name == "share" else "uncertainty"
                number = "null" if np.isnan(follows) else repr(follows)
                raise _damage(at, f"{number}, which follows from its value and the {source}", found)


def _check_cohorts(v: Values, place: str) -> None:
    """Raise InputError if there are cohorts, and they do not hold every owner once."""
    if (joining := v.facts.joining) is None:
        return
    found = [name for cohort in joining.cohorts for name in cohort]
    if sorted(found) != sorted(v.owners) or not all(joining.cohorts):
        raise _damage(place, "every owner in one of the cohorts", joining.cohorts)


def _check_sum(v: Values, place: str) -> None:
    """Shapley values add up to u(all) - u(empty); if sampled, within their error."""
    if v.semivalue != "Shapley" and v.facts.joining is None:
        return
    allowed = ROUNDING * (abs(v.facts.grand) + abs(v.facts.empty) + float(np.abs(v.mean).sum()))
    if v.uncertainty.sampling is not None or v.facts.sampled or v.facts.corrected:
        allowed += STDS * float(v.std.sum())
    if abs(v.efficiency_gap) > allowed:
        raise InputError(
            f"the result is damaged: the values in {place} add up to {v.mean.sum():.6g}, but "
            f"Shapley values add up to grand - empty = {v.facts.grand - v.facts.empty:.6g}"
        )


def _check_ranks(v: Values, stated: Any, place: str) -> None:
    """Best and worst ranks are those of the level 0.95, up to rounding of probabilities."""
    ranges = [v.rank_range(0.95 + off) for off in (-ROUNDING, ROUNDING)]
    for i, owner in enumerate(stated):
        for name in ("best", "worst"):
            at = f"{place}[{i}].{name}"
            low, high = sorted(int(ranks[name].iloc[i]) for ranks in ranges)
            if not low <= _convert(owner[name], Count, at) <= high:
                expected = f"{low}, which follows from the values and their uncertainty"
                raise _damage(at, expected, owner[name])


def _check_verdict(v: Values, stated: _Verdict, place: str) -> None:
    """Raise InputError if the verdict is not that on the rest of the document."""
    for name, follows in _verdict(v).items():
        found = getattr(stated, name)
        same = abs(found - follows) <= ROUNDING if isinstance(found, float) else found == follows
        if not same:
            raise _damage(f"{place}.{name}", f"{follows!r}, which follows from the rest", found)


def _convert(raw: Any, kind: Any, place: str) -> Any:
    """What is at a place, as this type; InputError if it is not of it."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as cause:
        message, _, path = str(cause).partition(" - at `$")
        inner = path.rstrip("`")
        if lacking := re.fullmatch("Object missing required field `(.*)`", message):
            raise _missing(place + inner, lacking[1]) from None
        shown = inner.partition("[...]")[0]  # a key of a mapping, which msgspec does not name
        for name, number in re.findall(r"\.(\w+)|\[(\d+)\]", shown):
            raw = raw[name or int(number)]
        message = re.sub("^Invalid enum value .*", "a value that is known here", message)
        expected = re.sub(r"^Expected |, got .*$", "", message)
        words = re.sub("`([^`]*)`", lambda found: _in_words(found[1]), expected)
        raise _damage(place + inner, words, raw) from None


def _in_words(kinds: str) -> str:
    return " or ".join(_KINDS.get(kind, kind) for kind in kinds.split(" | "))


def _check_names(found: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    """Raise InputError if a field is missing, or one is there that is not known."""
    for name in known:
        if name not in found:
            raise _missing(place, name)
    if unknown := sorted(found.keys() - set(known)):
        raise InputError(
            f"the result is damaged: {_join(place, unknown[0])} is not known; "
            f"{place or 'the document'} has the fields {quote_names(known, most=99)}"
        )


def _missing(place: str, name: str) -> InputError:
    return InputError(f"the result is damaged: {_join(place, name)} is missing")


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _damage(place: str, expected: str, found: Any) -> InputError:
    return InputError(
        f"the result is damaged: {place} must be {expected}, got {reprlib.repr(found)}"
    )


def pack_matrix(matrix: Floats) -> str:
    """The text of a matrix, (n, n)."""
    symmetric = np.array_equal(matrix, matrix.T, equal_nan=True)
    return _pack(matrix[np.tril_indices(len(matrix))] if symmetric else matrix)


def unpack_matrix(text: str, n: int) -> Floats | None:
    """The matrix, (n, n), of a text; None if it is not that of one."""
    numbers = _unpack(text, n * n)
    if numbers is None or len(numbers) not in (n * (n + 1) // 2, n * n):
        return None
    if len(numbers) == n * n:
        return numbers.reshape(n, n)
    found = np.empty((n, n))
    found[np.tril_indices(n)] = numbers
    found.T[np.tril_indices(n)] = numbers
    return found


def _pack(numbers: Floats) -> str:
    return b64encode(zlib.compress(numbers.astype(_FLOAT).tobytes(), 9)).decode()


def _unpack(text: str, most: int) -> Floats | None:
    """Up to `most` numbers in a text; None if it is damaged or has more."""
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(b64decode(text, validate=True), most * _FLOAT.itemsize + 1)
    except (binascii.Error, ValueError, zlib.error):
        return None
    if not unpacker.eof or len(content) % _FLOAT.itemsize:
        return None
    return np.frombuffer(content, dtype=_FLOAT).astype(np.float64)


def pack_list(cell: Any) -> Any:
    """The text of a list, given by its JSON text of numbers and nulls; anything else as it is."""
    if not isinstance(cell, str):
        return cell
    return _pack(np.array([np.nan if x is None else x for x in json.loads(cell)], dtype=np.float64))


def unpack_list(cell: Any) -> Any:
    """The JSON text of a packed list; anything else as it is."""
    if not isinstance(cell, str) or cell.startswith("["):
        return cell
    numbers = _unpack(cell, MOST_IN_A_LIST)
    return cell if numbers is None else json_numbers(numbers.tolist())


def pack_column(name: str, cells: list[Any], owners: Sequence[str]) -> list[Any]:
    """The cells of a column of a table, packed if they are coalitions or lists of numbers.

    A coalition is given by names or by the JSON text of their list. What could not be read back to
    the last character stays as it is.
    """
    if name == "resampled":
        return list(map(pack_list, cells))
    if name not in ("coalition", "members"):
        return cells
    position = {name: i for i, name in enumerate(owners)}
    packed = []
    for cell in cells:
        members = json.loads(cell) if isinstance(cell, str) else cell
        text = hex(sum(1 << position.get(name, len(owners)) for name in members))
        again = unpack_coalition(text, owners, as_text=isinstance(cell, str))
        packed.append(text if again == (cell if isinstance(cell, str) else list(cell)) else cell)
    return packed


def unpack_column(name: str, cells: list[Any], owners: Sequence[str]) -> list[Any]:
    """The cells of a column as they were; what is not packed, or damaged, as it is."""
    if name == "resampled":
        return list(map(unpack_list, cells))
    if name not in ("coalition", "members"):
        return cells
    return [unpack_coalition(cell, owners, as_text=name == "coalition") for cell in cells]


def unpack_coalition(cell: Any, owners: Sequence[str], *, as_text: bool) -> Any:
    """The names in a packed coalition, as a list or its JSON text; anything else as it is."""
    if not isinstance(cell, str) or not re.fullmatch("0x[0-9a-f]+", cell):
        return cell
    if len(cell) - 2 > len(owners) // 4 + 1 or (code := int(cell, 16)) >> len(owners):
        return cell  # not of these owners
    names = [name for i, name in enumerate(owners) if code >> i & 1]
    return json.dumps(sorted(names), ensure_ascii=False) if as_text else names
