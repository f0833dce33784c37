import datetime
import os
import pickle
import sys
from pathlib import Path
from unittest.mock import Mock

import openpyxl
import pandas as pd
import pytest

from dupre.errors import InputError
from dupre.tables import csv_json, formats
from dupre.tables.formats import FileOptions, read_one

FRAME = pd.DataFrame({"o": ["a", "b", "a"], "x": [1.5, None, 3.0], "y": ["u", "v", "u"]})
WRITERS = {
    "t.csv": lambda path: FRAME.to_csv(path, index=False),
    "T.CSV": lambda path: FRAME.to_csv(path, index=False),
    "t.csv.gz": lambda path: FRAME.to_csv(path, index=False),
    "t.txt": lambda path: FRAME.to_csv(path, index=False),
    "t.tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t"),
    "t.parquet": FRAME.to_parquet,
    "t.pq": lambda path: FRAME.to_parquet(path, index=False),
    "t.feather": FRAME.to_feather,
    "t.jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "t.ndjson": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "t.json": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "t.xlsx": lambda path: FRAME.to_excel(path, index=False),
}
ARROW = ("t.parquet", "t.pq", "t.feather")


def sheet(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_table_and_says_where_rows_stand(tmp_path, name):
    WRITERS[name](tmp_path / name)
    frame = read_one(tmp_path / name)
    pd.testing.assert_frame_equal(
        frame.reset_index(drop=True), FRAME, check_dtype=False, check_column_type=False
    )
    if "json" not in name:
        expected = ("row", [1, 2, 3]) if name in ARROW else ("line", [2, 3, 4])
        assert (frame.index.name, frame.index.tolist()) == expected
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"is empty \(0 bytes\)"):
        read_one(str(tmp_path / name))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather", "t.xlsx"])
def test_a_table_needs_rows_and_an_index_with_a_name_is_a_column(tmp_path, name):
    path, none = tmp_path / name, FRAME.iloc[:0]
    writers = {".csv": none.to_csv, ".parquet": none.to_parquet, ".feather": none.to_feather}
    writers.get(path.suffix, none.to_excel)(path)
    with pytest.raises(InputError, match=r"names \d columns but has no rows"):
        read_one(path)
    FRAME.set_index("o").to_parquet(tmp_path / "index.parquet")
    assert list(read_one(tmp_path / "index.parquet").columns) == ["o", "x", "y"]


@pytest.mark.parametrize("name", [*ARROW, "t.xlsx"])
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_a_damaged_file_is_one_line(tmp_path, name, kept):
    path = tmp_path / name
    WRITERS[name](path)
    contents = path.read_bytes()
    path.write_bytes(contents[: int(kept * len(contents))] or b"garbage")
    with pytest.raises(InputError, match=f"cannot read .*{name} as ") as caught:
        read_one(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.xlsx"])
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, name):
    package, extra = ("pyarrow", "parquet") if name in ARROW else ("openpyxl", "excel")
    WRITERS[name](tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"needs the package {package}; pip .*'dupre\[{extra}\]'"):
        read_one(tmp_path / name)


REFUSED = {
    **dict.fromkeys(["t.pkl", "t.joblib"], "can run any code"),
    **dict.fromkeys(["t.zip", "t.csv.bz2", "t.parquet.gz"], "unpack it"),
    "t.xls": "save it as .xlsx",
    "t.foo": "unknown suffix '.foo'; expected .csv, .tsv",
    "t": "unknown suffix ''",
}


def test_other_kinds_are_refused_with_the_reason_and_nothing_is_unpickled(tmp_path):
    for name, match in REFUSED.items():
        (tmp_path / name).write_bytes(b"contents")
        with pytest.raises(InputError, match=match):
            read_one(tmp_path / name)
    ran = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(ran),)

    for name in ("t.pkl", "t.csv", "t.json", "t.parquet", "t.xlsx"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        with pytest.raises(InputError):
            read_one(tmp_path / name)
    assert not ran.exists()


def test_a_file_that_is_missing_or_may_not_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "patients.csv").touch()
    with pytest.raises(InputError, match=r"no file .*patient.csv \(did you mean 'patients.csv'\?"):
        read_one(tmp_path / "patient.csv")
    with pytest.raises(InputError, match="nor a directory"):
        read_one(tmp_path / "nowhere" / "patients.csv")
    with pytest.raises(InputError, match="got the directory"):
        read_one(tmp_path)
    with pytest.raises(InputError, match="cannot open"):
        read_one(tmp_path / ("a" * 300 + ".csv"))

    names = ("t.csv", "t.xlsx", "t.parquet")
    for name in names:
        WRITERS[name](tmp_path / name)
    monkeypatch.setattr(Path, "is_dir", Mock(side_effect=PermissionError(13, "Permission denied")))
    for name in names:
        with pytest.raises(InputError, match=f"cannot open .*{name}: Permission denied"):
            read_one(tmp_path / name)


def test_cells_of_a_sheet_keep_their_types_and_of_several_sheets_one_is_read(tmp_path):
    day = datetime.datetime(2024, 5, 31)
    first = ["o", "x", "d", None, 2024]
    rows = [first, ["007", 1, day, "q", "#N/A"], [], ["NA", 2.5, None, "r", 3]]
    frame = read_one(sheet(tmp_path / "t.xlsx", rows), as_text=("o",))
    assert list(frame.columns) == ["o", "x", "d", "unnamed column 4", "2024"]
    assert frame.index.tolist() == [2, 4]
    assert frame["o"].tolist() == ["007", "NA"]
    assert frame["x"].tolist() == [1, 2.5]
    assert frame["d"].tolist()[0] == pd.Timestamp(day)
    assert frame["2024"].isna().tolist() == [True, False]

    path = tmp_path / "t.xlsx"
    frames = {"old": pd.DataFrame({"x": [1]}), "new": pd.DataFrame({"x": [2]})}
    with pd.ExcelWriter(path) as book:
        for name, frame in {**frames, "blank": pd.DataFrame()}.items():
            frame.to_excel(book, sheet_name=name, index=False)
    assert formats.sheet_names(path) == ["old", "new"]
    assert formats.sheet_names(tmp_path / "t.csv") == []
    assert read_one(path)["x"].tolist() == [1]
    assert read_one(path, FileOptions(sheet="new"))["x"].tolist() == [2]
    with pytest.raises(InputError, match=r"no sheet 'nw' \(did you mean 'new'\?\); it has 'old',"):
        read_one(path, FileOptions(sheet="nw"))


def test_a_fault_of_a_sheet_is_one_clear_message(tmp_path):
    for rows, match in (
        ([], "the first sheet of .* is empty"),
        ([[], ["o", "x"], [1, 2]], "row 1 of .* is empty"),
        ([["o", "x", "o"], [1, 2, 3]], "two columns named 'o', number 1 and 3"),
    ):
        with pytest.raises(InputError, match=match):
            read_one(sheet(tmp_path / "t.xlsx", rows))


def test_names_of_files_tell_kind_and_owner():
    def each(function, *names):
        return [function(Path(name)) for name in names]

    assert each(formats.suffix, "a.CSV", "a.csv.gz", "a.gz") == [".csv", ".csv", ".gz"]
    assert each(formats.stem, "d/a.csv", "a.csv.gz", "a.b.csv") == ["a", "a", "a.b"]
    assert each(formats.is_readable, "a.csv", "a.xls") == [True, False]
    assert each(formats.holds_data, "a.xls", "a.md", "a") == [True, False, False]


def test_a_small_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_json, "ALWAYS", 50_000)
    frame = pd.DataFrame({"a": [0.0] * 20_000, "b": "the same text"})
    writers = {
        "a.csv.gz": lambda path: frame.to_csv(path, index=False),
        "a.parquet": frame.to_parquet,
        "a.feather": lambda path: frame.to_feather(path, compression="zstd"),
        "a.xlsx": lambda path: frame.head(2_000).to_excel(path, index=False),
    }
    for name, write in writers.items():
        write(tmp_path / name)
        monkeypatch.setattr(csv_json, "MOST_TIMES", 2)
        with pytest.raises(InputError, match=f"{name} unpacks to more than"):
            read_one(tmp_path / name)
        monkeypatch.setattr(csv_json, "MOST_TIMES", 1_000)
        assert len(read_one(tmp_path / name)) >= 2_000


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_a_long_text_in_many_rows_counts_in_each(tmp_path, monkeypatch, use_dictionary):
    monkeypatch.setattr(csv_json, "ALWAYS", 500_000)
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"a": ["x" * 1_000] * 1_000 + [None]})
    frame.to_parquet(path, compression="zstd", use_dictionary=use_dictionary)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_one(path)
    monkeypatch.setattr(csv_json, "ALWAYS", 1_500_000)
    assert read_one(path)["a"].str.len().sum() == 1_000_000
