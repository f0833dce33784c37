"""One file to one table, or one message that says what is wrong with the file.

The suffix of a file decides how it is read. Nothing is guessed and nothing is ever unpickled.

The index of a table says where its rows are in the file, so that later messages can name the place.
It is called "line" for text and Excel, "row" for formats without lines.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import pandas as pd

from dupre.errors import InputError
from dupre.tables import csv_json
from dupre.wording import did_you_mean, quote_names

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


@dataclass(frozen=True)
class FileOptions:
    """How files are written, where that is not as usual.

    Attributes:
        delimiter: between the values of a line of CSV; by default a comma, or a tab for .tsv.
        decimal: sign before the decimals of a number in CSV.
        encoding: of CSV and JSON.
        sheet: name of the sheet of an Excel file; by default the first.
    """

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = csv_json.UTF8
    sheet: str | None = None


USUAL = FileOptions()


def read_one(
    path: str | Path, options: FileOptions = USUAL, *, as_text: Collection[str] = ()
) -> pd.DataFrame:
    """The table of one file.

    Args:
        path: a .csv, .tsv, .txt (also .gz), .parquet, .pq, .feather, .jsonl, .ndjson, .json or
            .xlsx file.
        options: how it is written.
        as_text: columns of CSV and Excel files to keep as they are written: "007" stays "007", and
            "NA" is a name.

    Raises:
        InputError: no such file, or it cannot be read; says why.
    """
    path = Path(path).expanduser()
    try:
        _check_file(path)
        frame = _frame(path, options, as_text)
    except OSError as cause:
        raise InputError(
            f"cannot open {path}: {cause.strerror or csv_json.first_line(cause)}"
        ) from cause
    if not frame.shape[1]:
        raise InputError(f"{path} is empty; expected named columns and rows")
    if not len(frame):
        raise InputError(f"{path} names {frame.shape[1]} columns but has no rows; add rows")
    frame.columns = pd.Index(csv_json.check_distinct(path, [str(name) for name in frame.columns]))
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


def _frame(path: Path, options: FileOptions, as_text: Collection[str]) -> pd.DataFrame:
    kind = suffix(path)
    if kind == ".xlsx":
        return _excel(path, options.sheet, as_text)
    if kind in _ARROW:
        return _arrow(path)
    if "json" in kind:
        return csv_json.read_json(path, encoding=options.encoding)
    delimiter = options.delimiter
    if delimiter is None:
        delimiter = "\t" if kind == ".tsv" else ","
    how = {"decimal": options.decimal, "encoding": options.encoding}
    return csv_json.read_csv(path, delimiter=delimiter, as_text=as_text, **how)


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
        csv_json.UNNAMED.format(i + 1) if pd.isna(cell) else str(cell)
        for i, cell in enumerate(raw.iloc[0])
    ]
    if blank[0]:
        raise InputError(f"row 1 of {path} is empty; expected the names of the columns there")
    frame = raw.iloc[1:].set_axis(csv_json.check_distinct(path, header), axis=1)
    frame.index = pd.RangeIndex(2, len(raw) + 1, name="line")
    frame = frame[~blank[1:]]
    for name in frame.columns.difference(list(as_text)):
        frame[name] = frame[name].mask(frame[name].isin(csv_json.EMPTY), None)
    return frame.infer_objects()


def _check_size(path: Path, unpacked: int) -> None:
    """Raise InputError if a file unpacks to far more bytes than it has."""
    if unpacked > (most := csv_json.most_unpacked(path.stat().st_size)):
        raise csv_json.unpacks_too_much(path, most)


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
            f"cannot read {path} as {suffix(path)}: {csv_json.first_line(cause)}; write it again, "
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
