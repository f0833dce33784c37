"""One file to one table, or one message that says what is wrong with the file.

The suffix of a file decides how it is read. A CSV has one header line, and every line has as many
values as that. Nothing is guessed, neither encoding nor delimiter nor decimal sign: a wrong guess
would cost trainings. Nothing is ever unpickled.

The index of a table says where its rows are in the file, so that later messages can name the place.
It is called "line" for text and Excel, "row" for formats without lines.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pandas as pd

from dupre.errors import InputError, Remedy
from dupre.spec import Files
from dupre.wording import did_you_mean, quote_names

EMPTY = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None")
"""How an empty cell is written in text and Excel."""

UTF8 = "utf-8"
"""The encoding of a text unless another is stated."""

UNNAMED = "unnamed column {}"
"""Name of a column whose header is empty, by its position."""

MOST_TIMES, ALWAYS = 100, 100_000_000
"""A packed table may unpack to this many times its size, and to this many bytes in any case."""

_PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth")
_SHEETS = (".xls", ".xlsb", ".xlsm", ".ods", ".numbers")
_PACKED = (".zip", ".tar", ".tgz", ".bz2", ".xz", ".7z", ".zst", ".rar")
_ARRAYS = (".h5", ".npy", ".npz")
_OTHERS = (*_ARRAYS, ".arff", ".avro", ".db", ".dta", ".orc", ".rds", ".sav", ".sqlite")
_TEXTS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")
_ARROW = (".parquet", ".pq", ".feather")
_OF_PYTHON = (AttributeError, EOFError, LookupError, MemoryError, OSError, TypeError, ValueError)
_DAMAGED = (*_OF_PYTHON, BadZipFile, NotImplementedError, SyntaxError, zlib.error)
"""What pyarrow, openpyxl and what they use raise for a damaged file."""

READABLE = (*_TEXTS, *_ARROW, ".xlsx")
"""Suffixes of the files that can be read; those of text also with .gz."""

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

# To read the number nearest to a text: pandas 2 may be off by a digit, pandas 3 never is.
_NEAREST: dict[str, Any] = {"float_precision": "round_trip"} if pd.__version__[:2] == "2." else {}

_PASS = "surrogatepass"  # half a character in a text is refused later, by name


_CODE = re.compile(rb"(?<![\d.])0\d\d+(?![\d.])")  # 00123; 01 may be a month

USUAL = Files()


def read_one(
    path: str | Path,
    options: Files = USUAL,
    *,
    as_text: Collection[str] = (),
    written: Collection[str] = (),
) -> pd.DataFrame:
    """The table of one file.

    Args:
        path: a .csv, .tsv, .txt (also .gz), .parquet, .pq, .feather, .jsonl, .ndjson, .json or
            .xlsx file.
        options: how it is written.
        as_text: columns of CSV and Excel files to keep as they are written: "007" stays "007", and
            "NA" is a name.
        written: columns of CSV files whose numbers are kept as texts; cells such as NA are empty.

    Raises:
        InputError: no such file, or it cannot be read; says why.
    """
    path = Path(path).expanduser()
    try:
        _check_file(path)
        frame = _frame(path, options, as_text, written)
    except OSError as cause:
        raise InputError(f"cannot open {path}: {cause.strerror or first_line(cause)}") from cause
    if not frame.shape[1]:
        raise InputError(f"{path} is empty; expected named columns and rows")
    if not len(frame):
        raise InputError(f"{path} names {frame.shape[1]} columns but has no rows; add rows")
    # JSON and Parquet may name columns by numbers: models and messages know texts alone.
    frame.columns = pd.Index(check_distinct(path, [str(name) for name in frame.columns]))
    return frame


def suffix(path: Path) -> str:
    """The suffix that decides how a file is read, in lower case: ".csv" also for "a.CSV.gz"."""
    last = path.suffix.lower()
    if last == ".gz":
        inner = Path(path.stem).suffix.lower()
        return inner if inner in _TEXTS else last
    return last


def stem(path: Path) -> str:
    """The name of a file without its suffixes: "a" for "a.csv.gz"."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def is_readable(path: Path) -> bool:
    """Whether the suffix of a file is one that can be read."""
    return suffix(path) in READABLE


def holds_data(path: Path) -> bool:
    """Whether a file is a table by its suffix, even if it cannot be read."""
    return suffix(path) in (*READABLE, *_PICKLES, *_SHEETS, *_PACKED, *_OTHERS, ".gz")


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"expected a file, got the directory {path}")
    if not path.exists():
        raise InputError(f"there is no file {path}{_neighbour(path)}")
    if not is_readable(path):
        raise InputError(f"cannot read {path}: {_refusal(path)}")


def has_sheets(path: Path) -> bool:
    """Whether a file is an Excel file."""
    return suffix(path) == ".xlsx"


def sheet_names(path: Path) -> list[str]:
    """The sheets of an Excel file that hold something; none for another file."""
    if not has_sheets(path):
        return []
    with warnings.catch_warnings(), pd.ExcelFile(path, engine="openpyxl") as book:
        warnings.simplefilter("ignore")
        names = [str(name) for name in book.sheet_names]
        return [n for n in names if not book.parse(n, header=None, nrows=1).empty]


def _frame(
    path: Path, options: Files, as_text: Collection[str], written: Collection[str]
) -> pd.DataFrame:
    kind = suffix(path)
    if kind == ".xlsx":
        return _excel(path, options.sheet, as_text)
    if kind in _ARROW:
        return _arrow(path)
    if "json" in kind:
        return read_json(path, options)
    return read_csv(path, options, as_text, written)


def read_csv(
    path: Path,
    options: Files = USUAL,
    as_text: Collection[str] = (),
    written: Collection[str] = (),
) -> pd.DataFrame:
    """The table of a CSV file; its index is the line on which each row begins.

    A column of digits of which some begin with a zero, such as 00123, is kept as it is written:
    these are names, and no numbers.
    """
    delimiter, decimal = options.delimiter, options.decimal
    if delimiter is None:
        delimiter = "\t" if suffix(path) == ".tsv" else ","
    # In most shells a tab cannot be typed.
    separator = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(separator) != 1 or separator in '"\r\n':
        raise InputError(f"the delimiter must be one character, such as ';', got {delimiter!r}")
    if decimal not in (".", ",") or decimal == separator:
        raise InputError(
            f"the decimal sign must be '.' or ',' and not the delimiter, got {decimal!r}; state ",
            Remedy.DELIMITER,
            "';' if that is what separates the columns",
        )
    content = _text(path, options.encoding).encode(errors=_PASS)
    # Read twice: pandas fills up short lines and does not say on which line a row begins.
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
    kept = {name for name in (*as_text, *written) if name in names}
    how = {
        "sep": separator,
        "names": names,
        "header": 0,
        "index_col": False,
        "na_values": {name: [""] if name in as_text else list(EMPTY) for name in names},
        "keep_default_na": False,
        "decimal": decimal,
        "encoding_errors": _PASS,
        **_NEAREST,
    }
    frame = _with_codes(_parse(content, dtype=dict.fromkeys(kept, str), **how), content, how)
    if len(frame) != len(lines):
        raise InputError(
            f"{path} has {len(lines)} or {len(frame)} rows, depending on how its quotation marks "
            "are read; write a quotation mark inside a quoted value twice"
        )
    return frame.set_axis(pd.Index(lines, name="line"))


def _with_codes(frame: pd.DataFrame, content: bytes, how: dict[str, Any]) -> pd.DataFrame:
    """The frame with columns such as 00123 as they are written."""
    numeric = list(frame.select_dtypes("number").columns)
    if not numeric or not _CODE.search(content):  # few files have codes, and are read once more
        return frame
    texts = _parse(content, dtype=dict.fromkeys(numeric, str), usecols=numeric, **how)
    codes = [n for n in numeric if texts[n].str.fullmatch(r"\s*0\d\d+\s*", na=False).any()]
    return frame.assign(**{name: texts[name] for name in codes})


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
    ended = []  # the reader asks for a line after the last only within quotation marks

    def mark_end() -> Iterator[str]:
        ended.append(True)
        yield from ()

    reader = csv.reader(chain(text, mark_end()), delimiter=separator, strict=True)
    csv.field_size_limit(max(csv.field_size_limit(), len(content)))  # a cell may be long
    line = 1
    try:
        for record in reader:
            if len(record) > 1 or (record and record[0].strip()):
                yield line, record
            line = reader.line_num + 1
    except csv.Error as cause:
        reason = "a quotation mark is opened and not closed" if ended else str(cause)
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


def read_json(path: Path, options: Files = USUAL) -> pd.DataFrame:
    """The table of a file of JSON lines or of one list of objects; its index is the line or row."""
    text = _text(path, options.encoding)
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
    # As DataFrame.to_json writes by default: its columns would be taken for one row.
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
    if "\0" in text:  # UTF-16 without a mark at its beginning, most likely
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"line {line} of {path} holds a zero byte; save it as UTF-8 text")
    return text


def _unpack(path: Path) -> bytes:
    most = _most_unpacked(path)
    try:
        with gzip.open(path) as packed:
            raw = packed.read(most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as cause:
        raise InputError(
            f"cannot unpack {path}: {first_line(cause)}; pack it again, or copy it again"
        ) from cause
    _check_size(path, len(raw))
    return raw


def _most_unpacked(path: Path) -> int:
    """Bytes that a packed file may unpack to."""
    return max(MOST_TIMES * path.stat().st_size, ALWAYS)


def _check_size(path: Path, unpacked: int) -> None:
    """Raise InputError if a small file would fill the memory."""
    if unpacked > (most := _most_unpacked(path)):
        raise InputError(
            f"{path} unpacks to more than {most:,} bytes, {MOST_TIMES} times its size; if that is "
            "right, give it unpacked, as CSV"
        )


def _encoding_error(path: Path, raw: bytes, cause: UnicodeDecodeError) -> InputError:
    start = cause.start
    line = raw.count(b"\n", 0, start) + 1
    found = f"byte {raw[start]:#04x} at position {start:,} (line {line})"
    message = f"{path} is not {cause.encoding.upper()} text: {found}"
    try:  # the encoding of most files that are not UTF-8; some bytes have no meaning in it
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


def _arrow(path: Path) -> pd.DataFrame:
    read = _feather if suffix(path) == ".feather" else _parquet
    frame = _read(read, path, extra="parquet", package="pyarrow")
    if any(name is not None for name in frame.index.names):  # an index with a name is data
        frame = frame.reset_index()
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1, name="row"))


def _feather(path: Path) -> pd.DataFrame:
    import pyarrow as pa

    with suppress(pa.ArrowInvalid), pa.ipc.open_file(path) as file:  # not of the first version
        _check_size(path, 8 * file.count_rows() * len(file.schema))
    return pd.read_feather(path)


def _parquet(path: Path) -> pd.DataFrame:
    import pyarrow.compute as pc
    from pyarrow.parquet import read_metadata, read_schema, read_table

    found = read_metadata(path)
    packed = sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups))
    _check_size(path, max(packed, 8 * found.num_rows * found.num_columns))
    kinds = ("string", "large_string", "binary", "large_binary")
    # Metadata tell the size of a dictionary of texts, not of the column that is made of it.
    texts = [field.name for field in read_schema(path) if str(field.type) in kinds]
    parts = [  # a text is kept once, however many rows hold it
        pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
        for column in read_table(path, columns=texts, read_dictionary=texts).columns
        for chunk in column.chunks
    ]
    _check_size(path, sum(parts))
    return pd.read_parquet(path, engine="pyarrow")  # the other engine can unpickle


def _excel(path: Path, sheet: str | None, as_text: Collection[str]) -> pd.DataFrame:
    raw = _read(partial(_sheet, sheet=sheet), path, extra="excel", package="openpyxl")
    blank = raw.isna().all(axis=1).to_numpy()
    if blank.all():
        which = "first sheet" if sheet is None else f"sheet {sheet!r}"
        raise InputError(f"the {which} of {path} is empty; expected a header and rows")
    header = [
        UNNAMED.format(i + 1) if pd.isna(cell) else str(cell) for i, cell in enumerate(raw.iloc[0])
    ]
    if blank[0]:
        raise InputError(f"row 1 of {path} is empty; expected the names of the columns there")
    frame = raw.iloc[1:].set_axis(check_distinct(path, header), axis=1)
    frame.index = pd.RangeIndex(2, len(raw) + 1, name="line")
    frame = frame[~blank[1:]]  # after the lines are numbered: blank ones count
    for name in frame.columns.difference(list(as_text)):
        frame[name] = frame[name].mask(frame[name].isin(EMPTY), None)
    return frame.infer_objects()


def _sheet(path: Path, sheet: str | None) -> pd.DataFrame:
    with ZipFile(path) as packed:
        _check_size(path, sum(part.file_size for part in packed.infolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of styles and forms, not of values
        if sheet is not None and sheet not in (names := sheet_names(path)):
            raise InputError(
                f"{path} has no sheet {sheet!r}{did_you_mean(sheet, names)}; it has "
                f"{quote_names(names)}"
            )
        return pd.read_excel(
            path,
            sheet_name=0 if sheet is None else sheet,
            header=None,
            dtype=object,
            engine="openpyxl",
            keep_default_na=False,
            na_values=[""],
        )


def _read(
    read: Callable[[Path], pd.DataFrame], path: Path, *, extra: str, package: str
) -> pd.DataFrame:
    """What pandas reads with an optional package; its many errors become one."""
    if not path.stat().st_size:
        raise InputError(f"{path} is empty (0 bytes); expected a header and rows")
    try:
        return read(path)
    except ImportError as cause:
        raise InputError(
            f"reading {path.name} needs the package {package}; pip install 'dupre[{extra}]'"
        ) from cause
    except (InputError, PermissionError):
        raise
    except _DAMAGED as cause:
        raise InputError(
            f"cannot read {path} as {suffix(path)}: {first_line(cause)}; write it again, "
            "or give it the suffix of what it is"
        ) from cause


def _neighbour(path: Path) -> str:
    """A file of the same directory with a similar name, or that there is no directory."""
    parent = path.parent
    if not parent.is_dir():
        return f", nor a directory {parent}"
    try:
        return did_you_mean(path.name, [other.name for other in parent.iterdir()])
    except OSError:
        return ""


def _refusal(path: Path) -> str:
    last = path.suffix.lower()
    if last in _PICKLES:
        why = f"opening a {last} file can run any code that is in it"
        return f"{why}; save the table as CSV or Parquet instead"
    if last in _SHEETS:
        return f"of spreadsheets only .xlsx can be read, not {last}; save it as .xlsx or .csv"
    if last in (*_PACKED, ".gz"):
        return f"of packed files only .csv.gz can be read, not {path.name}; unpack it"
    return f"unknown suffix {last!r}; expected {', '.join(READABLE)}; rename or export it"
