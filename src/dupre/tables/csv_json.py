"""CSV and JSON: text to tables, or one message that names the line.

A CSV has one header line, and every line has as many values as that. Neither the encoding nor the
delimiter nor the decimal sign is guessed: a wrong guess would cost trainings.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from dupre.errors import InputError, Remedy
from dupre.wording import quote_names

EMPTY = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None")
"""How an empty cell is written in text and Excel."""

UTF8 = "utf-8"
"""The encoding of a text unless another is stated."""

UNNAMED = "unnamed column {}"
"""Name of a column whose header is empty, by its position."""

MOST_TIMES, ALWAYS = 100, 100_000_000
"""A packed table may unpack to this many times its size, and to this many bytes in any case."""

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_AS_LINES = (
    "expected JSON lines, one object per line, as DataFrame.to_json(path, orient='records', "
    "lines=True) writes them"
)
_SIGNATURES = {
    b"PK\x03\x04": "an Excel or zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"PAR1": "a Parquet file",
    b"ARROW1": "a Feather file",
    b"\x1f\x8b": "compressed by gzip (name it .csv.gz)",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
}


_NEAREST: dict[str, Any] = (
    {"float_precision": "round_trip"} if int(pd.__version__.partition(".")[0]) < 3 else {}
)
"""To read the number nearest to a text: pandas 2 may be off by a digit, pandas 3 never is."""


_PASS = "surrogatepass"
"""Half a character in a text is refused later, by name."""


def read_csv(
    path: Path,
    *,
    delimiter: str,
    as_text: Collection[str],
    decimal: str = ".",
    encoding: str = UTF8,
) -> pd.DataFrame:
    """The table of a CSV file; its index is the line on which each row begins.

    Args:
        path: of the file; it is unpacked if it ends in .gz.
        delimiter: one character; a tab may be written as in a shell, or "tab".
        as_text: columns to keep as they are written.
        decimal: sign before the decimals of a number: a point or a comma.
        encoding: of the text, by one of Python's names.
    """
    separator = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(separator) != 1 or separator in '"\r\n':
        raise InputError(f"the delimiter must be one character, such as ';', got {delimiter!r}")
    if decimal not in (".", ",") or decimal == separator:
        raise InputError(
            f"the decimal sign must be '.' or ',' and not the delimiter, got {decimal!r}; state ",
            Remedy.DELIMITER,
            "';' if that is what separates the columns",
        )
    content = _text(path, encoding).encode(errors=_PASS)
    records = _records(path, content, separator)
    _, header = next(records, (0, []))
    if len(header) == 1:
        _check_delimiter(path, header[0], separator)
    names = check_distinct(path, [name or UNNAMED.format(i + 1) for i, name in enumerate(header)])
    lines = []
    for line, record in records:
        if len(record) != len(header):
            raise InputError(
                f"line {line} of {path} has {len(record)} values but its header names "
                f"{len(header)} ({quote_names(names, most=3)}); expected as many (a value that "
                f"holds the delimiter {separator!r} belongs in quotation marks)"
            )
        lines.append(line)
    if not lines:
        return pd.DataFrame(columns=names)
    frame = _parse(
        content,
        sep=separator,
        names=names,
        header=0,
        index_col=False,
        dtype={name: str for name in as_text if name in names},
        na_values={name: [""] if name in as_text else list(EMPTY) for name in names},
        keep_default_na=False,
        decimal=decimal,
        encoding_errors=_PASS,
        **_NEAREST,
    )
    if len(frame) != len(lines):
        raise InputError(
            f"{path} has {len(lines)} or {len(frame)} rows, depending on how its quotation marks "
            "are read; write a quotation mark inside a quoted value twice"
        )
    return frame.set_axis(pd.Index(lines, name="line"))


def _parse(content: bytes, **how: Any) -> pd.DataFrame:
    """The frame of a CSV file: part by part, unless a column is of one type in one part only.

    As a whole, pandas takes eight times the size of the file.
    """
    read: Callable[..., pd.DataFrame] = pd.read_csv
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.DtypeWarning)
        with suppress(pd.errors.DtypeWarning):
            return read(io.BytesIO(content), low_memory=True, **how)
    return read(io.BytesIO(content), low_memory=False, **how)


def _records(path: Path, content: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, and its values; blank lines are skipped."""
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8", errors=_PASS, newline="")
    reader = csv.reader(text, delimiter=separator, strict=True)
    csv.field_size_limit(max(csv.field_size_limit(), len(content)))  # a cell may be long
    line = 1
    try:
        for record in reader:
            if len(record) > 1 or (record and record[0].strip()):
                yield line, record
            line = reader.line_num + 1
    except csv.Error as cause:
        reason = str(cause)
        if "unexpected end" in reason:
            reason = "a quotation mark is opened and not closed"
        raise InputError(f"cannot read {path} from line {line} on: {reason}; correct it") from cause


def _check_delimiter(path: Path, header: str, separator: str) -> None:
    """Raise InputError if another delimiter would split the only column."""
    counts = {other: header.count(other) for other in _DELIMITERS if other != separator}
    likely = max(counts, key=counts.__getitem__)
    if counts[likely]:
        shown = "'\\t'" if likely == "\t" else repr(likely)
        raise InputError(
            f"{path} has a single column when split at each {separator!r}, but its header holds a "
            f"{_DELIMITERS[likely]}; if that is what separates the columns, state ",
            Remedy.DELIMITER,
            shown,
        )


def read_json(path: Path, *, encoding: str = UTF8) -> pd.DataFrame:
    """The table of a file of JSON lines or of one list of objects; its index is the line or row."""
    text = _text(path, encoding)
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text, object_pairs_hook=_distinct_keys)
        except (ValueError, RecursionError) as cause:
            raise InputError(f"{path} is not JSON: {first_line(cause)}; correct it") from cause
        lines, word = list(range(1, len(rows) + 1)), "row"
    else:
        pairs = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        rows = [_object(path, line, number) for number, line in pairs]
        lines, word = [number for number, _ in pairs], "line"
    for number, row in zip(lines, rows, strict=True):
        if not isinstance(row, dict):
            raise InputError(
                f"{word} {number} of {path} is {json.dumps(row)[:40]}; expected a JSON object "
                '{"column": value, …}'
            )
    if len(rows) == 1 and rows[0] and all(isinstance(v, (dict, list)) for v in rows[0].values()):
        raise InputError(f"{path} is one JSON object of whole columns; {_AS_LINES}")
    try:
        return pd.DataFrame(rows, index=pd.Index(lines, name=word, dtype="int64"))
    except (UnicodeEncodeError, OverflowError) as cause:  # half a character, 400 digits
        raise InputError(f"{path} is not a table: {first_line(cause)}; correct it") from cause


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _object(path: Path, line: str, number: int) -> Any:
    try:
        return json.loads(line, object_pairs_hook=_distinct_keys)
    except (ValueError, RecursionError) as cause:
        raise InputError(
            f"line {number} of {path} is not a JSON object ({first_line(cause)}); {_AS_LINES}"
        ) from cause


def _text(path: Path, encoding: str) -> str:
    """The contents of a text file, also one compressed by gzip."""
    raw = _unpack(path) if path.suffix.lower() == ".gz" else path.read_bytes()
    if not raw.strip():
        raise InputError(f"{path} is empty ({len(raw)} bytes); expected a header and rows")
    for signature, kind in _SIGNATURES.items():
        if raw[:20].lstrip().lower().startswith(signature.lower()):
            raise InputError(f"{path} is not text but {kind}; rename it, or export it as CSV")
    if encoding == UTF8 and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(
            f"{path} is UTF-16, expected UTF-8; save it as UTF-8, or state ",
            Remedy.ENCODING,
            "'utf-16'",
        )
    try:
        text = raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as cause:
        raise _encoding_error(path, raw, cause) from cause
    except LookupError as cause:
        raise InputError(f"{encoding!r} is no encoding; expected such as cp1252") from cause
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"line {line} of {path} holds a zero byte; save it as UTF-8 text")
    return text


def _unpack(path: Path) -> bytes:
    most = most_unpacked(path.stat().st_size)
    try:
        with gzip.open(path) as packed:
            raw = packed.read(most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as cause:
        raise InputError(
            f"cannot unpack {path}: {first_line(cause)}; pack it again, or copy it again"
        ) from cause
    if len(raw) > most:
        raise unpacks_too_much(path, most)
    return raw


def most_unpacked(size: int) -> int:
    """Bytes that a packed file of this size may unpack to."""
    return max(MOST_TIMES * size, ALWAYS)


def unpacks_too_much(path: Path, most: int) -> InputError:
    """The error for a small file that would fill the memory."""
    return InputError(
        f"{path} unpacks to more than {most:,} bytes, {MOST_TIMES} times its size; if that is "
        "right, give it unpacked, as CSV"
    )


def _encoding_error(path: Path, raw: bytes, cause: UnicodeDecodeError) -> InputError:
    start = cause.start
    line = raw.count(b"\n", 0, start) + 1
    found = f"byte {raw[start]:#04x} at position {start:,} (line {line})"
    message = f"{path} is not {cause.encoding.upper()} text: {found}"
    try:
        shown = raw[start : start + 1].decode("cp1252")
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return InputError(f"{message}; save it as UTF-8")
    return InputError(
        f"{message}, which would be {shown!r} in Windows-1252; save it as UTF-8, or state ",
        Remedy.ENCODING,
        "'cp1252'",
    )


def check_distinct(path: Path, names: list[str]) -> list[str]:
    """The names of columns; InputError if one occurs twice."""
    for place, name in enumerate(names):
        first = names.index(name)
        if first < place:
            raise InputError(
                f"{path} has two columns named {name!r}, number {first + 1} and {place + 1}; "
                "rename or remove one"
            )
    return names


def first_line(cause: BaseException) -> str:
    """The first line of a message, shortened."""
    text = str(cause).strip().split("\n")[0].rstrip(".")
    return text[:160] or type(cause).__name__
