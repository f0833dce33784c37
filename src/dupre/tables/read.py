"""The table of all owners' rows: from one file, or from one file per owner.

Whatever can be wrong with a table is found here, before anything is trained; messages name the file
and the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from dupre._types import Task
from dupre.data.owners import task_of
from dupre.data.rows import as_targets
from dupre.errors import InputError, Remedy
from dupre.notes import Code, Note, note
from dupre.spec import Data
from dupre.tables import formats
from dupre.tables.columns import as_tuple, kind, or_drop, place, tidy, whole_as_text
from dupre.tables.numbers import (
    Forms,
    find_readings,
    is_code,
    parse_forms,
    read_column,
)
from dupre.tables.roles import (
    check_complete,
    check_known,
    check_roles,
    check_validation,
    cohorts_of,
    name_numbers,
    without_empty,
)
from dupre.wording import closest, quote, quote_names

_BESIDE_DATA = ("readme", "license", "licence", "changelog")


def read_table(data: Data, forms: Sequence[str] | None = None) -> pd.DataFrame:
    """The rows of all owners, checked; its columns are of the types of what they hold.

    How many rows were left out for lack of an owner or a target is in `attrs["skipped"]` of the
    table, in words; how numbers and dates are written is in `attrs["forms"]`, by column; who joined
    together is in `attrs["cohorts"]`, the first first.

    Args:
        data: which rows, and how to read them.
        forms: how numbers and dates are written, such as "price=$ thousands-comma", if that was
            decided before; by default the cells decide.

    Raises:
        InputError: the table cannot be used, or its numbers can be read in two ways; says why and
            where.
    """
    if data.owner == data.target:
        raise InputError(f"owner and target are the same column {data.owner!r}; expected two")
    known = None if forms is None else parse_forms(forms)
    files = files_of(str(data.path))  # Python may give a Path
    if files == [Path(data.path).expanduser()]:
        written = _columns_with_form(data, known)
        frame = formats.read_one(files[0], data, as_text=(data.owner,), written=written)
        if data.sheet is None:
            _check_first_sheet(files[0], frame, (data.owner, data.target))
    else:
        frame = _read_many(files, data, known)
    frame, skipped = without_empty(frame, data, ("owner", "target"))
    frame = check_roles(frame, data, known).reset_index(drop=True)
    frame[data.owner] = name_numbers(frame[data.owner])
    frame.attrs["skipped"] = skipped
    frame.attrs["cohorts"] = () if data.cohorts is None else cohorts_of(frame, data)
    return frame


def _columns_with_form(data: Data, forms: Forms | None) -> set[str]:
    """Columns whose form is known before they are read: their cells are kept as written."""
    return {*parse_forms(data.numbers), *(forms or ())}


def _check_first_sheet(path: Path, frame: pd.DataFrame, needed: Sequence[str]) -> None:
    """Raise InputError if the first of several sheets lacks a column: another may be meant."""
    missing = [name for name in needed if name not in frame.columns]
    names = formats.sheet_names(path) if missing else []
    if len(names) > 1:
        raise InputError(
            f"of {path.name} the first sheet {names[0]!r} was read, which has no column "
            f"{missing[0]!r}; its columns are {quote_names(map(str, frame.columns))}. The other "
            f"sheets are {quote_names(names[1:])}: choose one, such as with ",
            Remedy.SHEET,
            quote(names[1]),
        )


def files_of(data: str) -> list[Path]:
    """The file, or the files of a directory or pattern that hold tables; InputError if none."""
    path = Path(data).expanduser()
    if not data.strip() or "://" in data:
        raise InputError(f"expected a file, a directory or a pattern on this machine, got {data!r}")
    try:
        is_directory, exists = path.is_dir(), path.exists()
    except OSError as cause:
        raise InputError(f"cannot open {path}: {cause.strerror}") from cause
    if is_directory:
        return _files_in(path)
    return _files_like(str(path)) if has_magic(data) and not exists else [path]


def infer_task(frame: pd.DataFrame, data: Data) -> Task:
    """The task that is stated, or that the targets look like."""
    stated = cast("Task | None", data.task)
    return task_of(as_targets(frame[data.target].to_numpy()), stated, data.target)


def check_sheet(data: Data, validation: str | None) -> None:
    """Raise InputError if a sheet is stated, but no file has sheets."""
    files = _files(data, validation)
    if data.sheet and not any(map(formats.has_sheets, files)):
        raise InputError(
            f"--sheet {quote(data.sheet)} is stated, but only .xlsx files have sheets, not "
            f"{quote_names(file.name for file in files)}; leave it out"
        )


def files_to_check(data: Data, validation: str | None) -> list[Note]:
    """What is beside the data and not read: other files, and other sheets of Excel files."""
    found = []
    if names := _names_not_read(data.path):
        text = (
            f"not read: {quote_names(names)}. Directories inside are not searched, and only files "
            "with a known ending are tables (no README and the like); move or rename the data of "
            "owners."
        )
        found.append(note(Code.NOT_READ, text, names=names))
    for file in () if data.sheet else _files(data, validation):
        if len(sheets := formats.sheet_names(file)) > 1:
            text = (
                f"of {len(sheets)} sheets in {file.name} only {sheets[0]!r} is read, not "
                f"{quote_names(sheets[1:])}."
            )
            found.append(note(Code.OTHER_SHEETS, text, file=file.name, sheets=sheets))
    return found


def _files(data: Data, validation: str | None) -> list[Path]:
    """The files of the owners' rows and of the validation rows."""
    return [*files_of(data.path), *map(Path, filter(None, [validation]))]


def _names_not_read(data: str) -> list[str]:
    """What a directory or pattern holds besides its tables: other files, and directories."""
    path, tables = Path(data).expanduser(), set(files_of(data))
    if path.is_dir():
        found = list(path.iterdir())
    elif tables == {path}:
        return []
    else:
        found = [Path(name) for name in glob(str(path), recursive=True)]
    searched = {parent for table in tables for parent in table.parents}
    others = sorted(set(found) - tables - searched)
    return [f"{one.name}/" if one.is_dir() else one.name for one in others if _is_visible(one)]


def _is_visible(path: Path) -> bool:
    """Whether a file is no hidden one, and no mark that Excel leaves beside an open file."""
    return not path.name.startswith((".", "~$"))


def name_of(data: str) -> str:
    """A name for the data: the file without its suffix, or the directory of a pattern."""
    parts = [part for part in Path(data).expanduser().absolute().parts if not has_magic(part)]
    return formats.stem(Path(parts[-1])).strip("/\\:") or "data"


def read_validation(path: str | Path, frame: pd.DataFrame, data: Data) -> pd.DataFrame:
    """The rows of a file on which models are scored: see `read_further`.

    Raises:
        InputError: as that, or there are classes that no owner has.
    """
    result = read_further(path, frame, data, whose="validation")
    targets = frame[data.target].to_numpy(), result[data.target].to_numpy()
    check_validation(*targets, task=infer_task(frame, data))
    return result.drop(columns=data.owner, errors="ignore")


def read_further(path: str | Path, frame: pd.DataFrame, data: Data, *, whose: str) -> pd.DataFrame:
    """The rows of a file with the columns of the owners' table, and its owner column if it has one.

    Args:
        path: of one file; it needs no owner column. It may be written as `data` says, or as usual.
        frame: the owners' table, as `read_table` returns it, maybe with fewer columns. Its
            `attrs["forms"]` say how numbers and dates are written.
        data: what that was read by.
        whose: rows these are, for messages: "validation" or "new".

    Raises:
        InputError: it cannot be read, or a column is missing or holds something else than in the
            owners' table.
    """
    forms: Forms = frame.attrs.get("forms", {})
    try:
        found = formats.read_one(path, data, written=forms)
    except InputError as cause:
        try:
            found = formats.read_one(path, written=forms)
        except InputError:
            raise cause from None
    found, skipped = without_empty(found, data, ("target",))
    stated = parse_forms(data.numbers)
    for name in found.columns.intersection(list(forms)):
        column, _ = read_column(found[name], forms[name], bare=name in stated)
        found = found.assign(**{name: column})
    known = frame.drop(columns=data.owner)
    result = match_columns(found, known, target=data.target, whose=whose)
    if data.owner in found:
        result[data.owner] = found[data.owner].reset_index(drop=True)
    result.attrs["skipped"] = skipped
    return result


def match_columns(
    frame: pd.DataFrame, training: pd.DataFrame, *, target: str, whose: str = "validation"
) -> pd.DataFrame:
    """Further rows with the columns of the training rows, of the same kinds, and no others.

    Raises:
        InputError: a column is missing or holds something else than in training.
    """
    result = {}
    for name in training.columns:
        check_known(frame, "target" if name == target else "training", name, f"the {whose} table")
        result[name] = _match_column(frame[name], training[name], whose)
    check_complete(result[target], f"{whose} target")
    return pd.DataFrame(result, index=frame.index).reset_index(drop=True)


def _files_in(directory: Path) -> list[Path]:
    try:
        found = [path for path in directory.iterdir() if path.is_file()]
    except OSError as cause:
        raise InputError(f"cannot open the directory {directory}: {cause.strerror}") from cause
    return _tables_among(found, f"the directory {directory}")


def _files_like(pattern: str) -> list[Path]:
    found = [Path(name) for name in glob(pattern, recursive=True)]
    if not found:
        raise InputError(f"no file matches the pattern {pattern!r} in this directory; correct it")
    return _tables_among([path for path in found if path.is_file()], f"the pattern {pattern!r}")


def _tables_among(found: Sequence[Path], where: str) -> list[Path]:
    """The files that hold tables, sorted, without others such as a README."""
    visible = sorted(filter(_is_visible, found))
    tables = [
        path
        for path in visible
        if formats.holds_data(path) and not path.name.lower().startswith(_BESIDE_DATA)
    ]
    if not tables:
        others = f"; found {quote_names(path.name for path in visible)}" if visible else ""
        raise InputError(
            f"{where} holds no table{others}; expected one file per owner (directories inside it "
            f"are not searched): {', '.join(formats.READABLE)}"
        )
    for path in tables:
        if not formats.is_readable(path):
            raise InputError(
                f"{where} holds {path.name}, of a format that cannot be read "
                f"({formats.suffix(path)}); save it as CSV or Parquet, or move it away if it is "
                "not the data of an owner"
            )
    return tables


def _read_many(paths: Sequence[Path], data: Data, forms: Forms | None) -> pd.DataFrame:
    """The rows of all files under each other; the index holds file and line."""
    owner = data.owner
    written = _columns_with_form(data, forms)
    frames = {
        path: formats.read_one(path, data, as_text=(owner,), written=written) for path in paths
    }
    named_inside = all(owner in frame.columns for frame in frames.values())
    _check_one_each(paths, by_name=not named_inside)
    head, model = next(iter(frames.items()))
    for path, frame in frames.items():
        _check_same_columns(head, model, path, frame)
    parts = {str(path): frame[list(model.columns)].copy() for path, frame in frames.items()}
    if not named_inside:
        for path, part in zip(paths, parts.values(), strict=True):
            part.insert(0, owner, formats.stem(path))
    mixed = _mixed_columns(parts, skip=(owner, *written, *as_tuple(data.drop)))
    for name in _readable_as_written(mixed, paths, data):
        for path, part in zip(paths, parts.values(), strict=True):
            part[name] = formats.read_one(path, data, written=(name,))[name]
        mixed.remove(name)
    _check_same_kinds(parts, mixed)
    word = "row" if all(part.index.name == "row" for part in parts.values()) else "line"
    # Without these, a column that is empty in one part has the type of the others.
    held = {file: part.dropna(axis=1, how="all") for file, part in parts.items()}
    names = [*([] if named_inside else [owner]), *model.columns]
    return pd.concat(held).reindex(columns=names).rename_axis(["file", word])


def _check_one_each(paths: Sequence[Path], *, by_name: bool) -> None:
    """Raise InputError if two files belong to one owner, or are one table in two formats."""
    seen: dict[str, Path] = {}
    for path in paths:
        key = formats.stem(path) if by_name else str(path.with_name(formats.stem(path)))
        if key in seen:
            raise InputError(
                f"{seen[key]} and {path} have one name, {formats.stem(path)!r}; expected one file "
                "per owner: remove or rename one"
            )
        seen[key] = path


def _check_same_columns(head: Path, model: pd.DataFrame, path: Path, frame: pd.DataFrame) -> None:
    for one, other, has, lacks in ((model, frame, head, path), (frame, model, path, head)):
        missing = [name for name in one.columns if name not in other.columns]
        if missing:
            near = closest(missing[0], other.columns.difference(one.columns))
            instead = f" (it has {near!r})" if near else ""
            raise InputError(
                f"{lacks} has no column {missing[0]!r}{instead}, which {has} has; expected the "
                "same columns in all files"
            )


def _mixed_columns(parts: dict[str, pd.DataFrame], *, skip: Sequence[str]) -> list[str]:
    """Columns that are numbers in some files, and something else in others."""
    found = []
    for name in next(iter(parts.values())).columns.difference(list(skip)):
        kinds = {kind(part[name]) for part in parts.values()} - {"empty"}
        found += [name] * ("number" in kinds and len(kinds) > 1)
    return found


def _readable_as_written(names: Sequence[str], paths: Sequence[Path], data: Data) -> list[str]:
    """Columns whose cells fit one form in all files together, or are codes such as 00123.

    One file may hold 999 alone, which is a number, and another 1'234, which is a text.
    """
    if not names:
        return []
    frames = [formats.read_one(path, data, written=names) for path in paths]
    found = []
    for name in names:
        column = pd.concat([frame[name].astype(object) for frame in frames])
        if is_code(column) or find_readings(column, decimal=data.decimal):
            found.append(name)
    return found


def _check_same_kinds(parts: dict[str, pd.DataFrame], names: Sequence[str]) -> None:
    for name in names:
        seen: dict[str, str] = {}
        for file, part in parts.items():
            seen.setdefault(kind(part[name]), file)
        seen.pop("empty", None)
        other = next(found for found in seen if found != "number")
        column = parts[seen[other]][name].dropna()
        as_number = pd.to_numeric(column.astype(str), errors="coerce")
        odd = column[as_number.isna().to_numpy()]
        odd = column if odd.empty else odd
        raise InputError(
            f"column {name!r} holds numbers in {seen['number']}, but {quote(odd.iloc[0])} in "
            f"{place(odd, 0)} of {seen[other]}; expected one kind in all files: leave such cells "
            "empty",
            *or_drop(name),
        )


def _match_column(column: pd.Series, training: pd.Series, whose: str) -> pd.Series:
    """A further column in the type of the training column."""
    expected, found = kind(training), kind(column)
    if found == "empty":
        types = {"number": np.dtype(np.float64), "truth": np.dtype(np.float64)}
        dtype = training.dtype if expected == "date" else types.get(expected, np.dtype(object))
        return pd.Series(None, index=column.index, dtype=dtype, name=column.name)
    if expected in ("empty", "other"):
        return column
    if expected == "text" and found != "other":
        return column if found == "text" else whole_as_text(column)
    column = tidy(column)
    found = kind(column)
    if found == expected or {found, expected} <= {"number", "truth"}:
        return column
    words = {"number": "numbers", "truth": "truth values", "date": "dates", "text": "texts"}
    odd = column[column.notna().to_numpy()]
    raise InputError(
        f"column {column.name!r} holds {words.get(expected, 'something else')} in training, but "
        f"{quote(odd.iloc[0])} in {place(odd, 0)} of the {whose} rows; expected the same "
        "kind in both"
    )
