import datetime
import gzip
import json
import os
import pickle
import re
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import openpyxl
import pandas as pd
import pytest

from dupre.spec import Files
from dupre.tables import formats
from dupre.tables.formats import read_csv, read_json, read_one
from refusals import refused

FRAME = pd.DataFrame({"o": ["a", "b", "a"], "x": [1.5, None, 3.0], "y": ["u", "v", "u"]})
LINES = ("to_json", {"orient": "records", "lines": True})
WRITERS = {
    **dict.fromkeys(["t.csv", "T.CSV", "t.csv.gz", "t.txt"], ("to_csv", {"index": False})),
    "t.tsv": ("to_csv", {"index": False, "sep": "\t"}),
    "t.parquet": ("to_parquet", {}),
    "t.pq": ("to_parquet", {"index": False}),
    "t.feather": ("to_feather", {}),
    **dict.fromkeys(["t.jsonl", "t.ndjson", "t.json"], LINES),
    "t.xlsx": ("to_excel", {"index": False}),
}
ARROW = ("t.parquet", "t.pq", "t.feather")


def write(path, frame=FRAME, **more):
    """The path of a file of the kind that its name tells."""
    method, options = WRITERS[path.name]
    getattr(frame, method)(path, **options | more)
    return path


def sheet(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_table_and_says_where_rows_stand(tmp_path, name):
    frame = read_one(write(tmp_path / name))
    pd.testing.assert_frame_equal(
        frame.reset_index(drop=True), FRAME, check_dtype=False, check_column_type=False
    )
    if "json" not in name:
        expected = ("row", [1, 2, 3]) if name in ARROW else ("line", [2, 3, 4])
        assert (frame.index.name, frame.index.tolist()) == expected
    (tmp_path / name).write_bytes(b"")
    refused(r"is empty \(0 bytes\)", read_one, str(tmp_path / name))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather", "t.xlsx"])
def test_a_table_needs_rows_and_an_index_with_a_name_is_a_column(tmp_path, name):
    path = write(tmp_path / name, FRAME.iloc[:0])
    refused(r"names 3 columns but has no rows", read_one, path)
    FRAME.set_index("o").to_parquet(tmp_path / "index.parquet")
    assert list(read_one(tmp_path / "index.parquet").columns) == ["o", "x", "y"]


@pytest.mark.parametrize("name", [*ARROW, "t.xlsx"])
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_a_damaged_file_is_one_line(tmp_path, name, kept):
    contents = write(tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(contents[: int(kept * len(contents))] or b"garbage")
    refused(f"cannot read .*{name} as ", read_one, tmp_path / name)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.xlsx"])
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, name):
    package, extra = ("pyarrow", "parquet") if name in ARROW else ("openpyxl", "excel")
    path = write(tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    refused(rf"needs the package {package}; pip .*'dupre\[{extra}\]'", read_one, path)


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
        refused(match, read_one, tmp_path / name)
    ran = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(ran),)

    for name in ("t.pkl", "t.csv", "t.json", "t.parquet", "t.xlsx"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        refused(None, read_one, tmp_path / name)
    assert not ran.exists()


def test_a_file_that_is_missing_or_may_not_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "patients.csv").touch()
    for place, match in (
        ("patient.csv", r"no file .*patient.csv \(did you mean 'patients.csv'\?"),
        ("nowhere/patients.csv", "nor a directory"),
        ("", "got the directory"),
        ("a" * 300 + ".csv", "cannot open"),
    ):
        refused(match, read_one, tmp_path / place)
    paths = [write(tmp_path / name) for name in ("t.csv", "t.xlsx", "t.parquet")]
    monkeypatch.setattr(Path, "is_dir", Mock(side_effect=PermissionError(13, "Permission denied")))
    for path in paths:
        refused(f"cannot open .*{path.name}: Permission denied", read_one, path)


def test_cells_of_a_sheet_keep_their_types_and_of_several_sheets_one_is_read(tmp_path):
    day = datetime.datetime(2024, 5, 31)
    first = ["o", "x", "d", None, 2024]
    rows = [first, ["007", 1, day, "q", "#N/A"], [], ["NA", 2.5, None, "r", 3]]
    frame = read_one(sheet(tmp_path / "t.xlsx", rows), as_text=("o",))
    assert list(frame.columns) == ["o", "x", "d", "unnamed column 4", "2024"]
    assert frame.index.tolist() == [2, 4]
    assert frame[["o", "x"]].to_numpy().tolist() == [["007", 1], ["NA", 2.5]]
    assert frame["d"].tolist()[0] == pd.Timestamp(day)
    assert frame["2024"].isna().tolist() == [True, False]

    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as book:
        for name, columns in {"old": {"x": [1]}, "new": {"x": [2]}, "blank": {}}.items():
            pd.DataFrame(columns).to_excel(book, sheet_name=name, index=False)
    assert formats.sheet_names(path) == ["old", "new"]
    assert formats.sheet_names(tmp_path / "t.csv") == []
    assert read_one(path)["x"].tolist() == [1]
    assert read_one(path, Files(sheet="new"))["x"].tolist() == [2]
    wrong = r"no sheet 'nw' \(did you mean 'new'\?\); it has 'old',"
    refused(wrong, read_one, path, Files(sheet="nw"))


def test_a_fault_of_a_sheet_is_one_clear_message(tmp_path):
    for rows, match in (
        ([], "the first sheet of .* is empty"),
        ([[], ["o", "x"], [1, 2]], "row 1 of .* is empty"),
        ([["o", "x", "o"], [1, 2, 3]], "two columns named 'o', number 1 and 3"),
    ):
        refused(match, read_one, sheet(tmp_path / "t.xlsx", rows))


def test_names_of_files_tell_kind_and_owner():
    def each(function, *names):
        return [function(Path(name)) for name in names]

    assert each(formats.suffix, "a.CSV", "a.csv.gz", "a.gz") == [".csv", ".csv", ".gz"]
    assert each(formats.stem, "d/a.csv", "a.csv.gz", "a.b.csv") == ["a", "a", "a.b"]
    assert each(formats.is_readable, "a.csv", "a.xls") == [True, False]
    assert each(formats.holds_data, "a.xls", "a.md", "a") == [True, False, False]


def test_a_small_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "ALWAYS", 50_000)
    frame = pd.DataFrame({"a": [0.0] * 20_000, "b": "the same text"})
    zstd, short = {"compression": "zstd"}, frame.head(2_000)
    for name, rows, how in (
        ("t.csv.gz", frame, {}),
        ("t.parquet", frame, {}),
        ("t.feather", frame, zstd),
        ("t.xlsx", short, {}),
    ):
        path = write(tmp_path / name, rows, **how)
        monkeypatch.setattr(formats, "MOST_TIMES", 2)
        refused(f"{name} unpacks to more than", read_one, path)
        monkeypatch.setattr(formats, "MOST_TIMES", 1_000)
        assert len(read_one(path)) == len(rows)


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_a_long_text_in_many_rows_counts_in_each(tmp_path, monkeypatch, use_dictionary):
    monkeypatch.setattr(formats, "ALWAYS", 500_000)
    frame = pd.DataFrame({"a": ["x" * 1_000] * 1_000 + [None]})
    how = {"compression": "zstd", "use_dictionary": use_dictionary}
    path = write(tmp_path / "t.parquet", frame, **how)
    refused("unpacks to more than", read_one, path)
    monkeypatch.setattr(formats, "ALWAYS", 1_500_000)
    assert read_one(path)["a"].str.len().sum() == 1_000_000


# --- CSV and JSON

ROWS = "o,x,y\na,1,u\nb,2,v\n"


@pytest.fixture
def written(tmp_path):
    """Contents in, path of a file that holds them out."""

    def write_file(contents, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return path

    return write_file


def parsed(path, delimiter=None, as_text=(), **how):
    return read_csv(path, Files(delimiter=delimiter, **how), as_text)


SAME = [ROWS, ROWS.rstrip(), ROWS.replace("\n", "\r\n"), ROWS.replace("\n", "\r")]
SAME += [b"\xef\xbb\xbf" + ROWS.encode(), "\n\n" + ROWS.replace("b,", "\n  \nb,")]
SAME += ['"o","x","y"\n"a",1,"u"\n"b",2,"v"\n']


@pytest.mark.parametrize("contents", SAME)
def test_one_table_may_be_written_in_several_ways(written, contents):
    frame = parsed(written(contents))
    assert frame.to_dict("list") == {"o": ["a", "b"], "x": [1, 2], "y": ["u", "v"]}


def test_codes_that_begin_with_zeros_are_kept_and_other_numbers_as_they_are_written_if_asked(
    written,
):
    rows = "zip,month,x,n\n00123,01,0.001,1.50\n12345,12,100,2\n,02,1.001,NA\n"
    frame = parsed(written(rows))
    assert frame["zip"].tolist()[:2] == ["00123", "12345"]
    assert frame["zip"].isna().tolist() == [False, False, True]
    numbers = {"month": [1, 12, 2], "x": [0.001, 100, 1.001]}
    assert frame[["month", "x"]].to_dict("list") == numbers
    assert frame.index.tolist() == [2, 3, 4]
    kept = read_one(written(rows), written=("n", "unknown"))["n"]
    assert kept.tolist()[:2] == ["1.50", "2"]
    assert kept.isna().tolist() == [False, False, True]


def test_delimiter_decimal_sign_and_encoding_can_be_stated_and_text_kept(written):
    frame = parsed(written('o,x\n\na,"1\n2"\nb,3\n\nc,4\n'))
    assert (frame.index.name, frame.index.tolist()) == ("line", [3, 5, 7])
    assert parsed(written("o\na\nb\n")).shape == (2, 1)
    assert parsed(written("o,x,y\n")).shape == (0, 3)
    assert list(parsed(written(",o\n0,a\n1,b\n")).columns) == ["unnamed column 1", "o"]

    frame = parsed(written("o,x\n007,07\nNA,NA\n,\n"), as_text=("o",))
    assert frame.iloc[0].tolist() == ["007", 7]
    assert frame["o"].tolist()[1] == "NA"
    assert frame.isna().to_numpy().tolist() == [[False, False], [False, True], [True, True]]
    rows = "o;x\nZürich;1,5\nBern;-2,25\n"
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        frame = parsed(written(rows.encode(encoding)), ";", decimal=",", encoding=encoding)
        assert frame.to_dict("list") == {"o": ["Zürich", "Bern"], "x": [1.5, -2.25]}
    refused("not the delimiter, got ','; state delimiter=';'", parsed, written(rows), decimal=",")
    refused("'klingon' is no encoding", parsed, written(rows), delimiter=";", encoding="klingon")
    refused("is not ASCII text: byte 0xc3", parsed, written(rows), delimiter=";", encoding="ascii")

    for delimiter in ("", ";;", '"', "\n"):
        refused("delimiter must be one character", parsed, written(ROWS), delimiter=delimiter)
    for given, between in ((";", ";"), ("\\t", "\t"), ("tab", "\t")):
        assert parsed(written(ROWS.replace(",", between)), given).shape == (2, 3)


@pytest.mark.parametrize("between", [";", "\t", "|"])
def test_another_delimiter_is_suggested_not_guessed(written, between):
    decimals = ROWS.replace(",", between).replace("1", "1,5")
    refused("delimiter=" + re.escape(repr(between)), parsed, written(decimals))


def test_a_fault_of_a_csv_is_one_clear_message(written):
    for contents, match in (
        ("", r"t\.csv is empty \(0 bytes\)"),
        (" \n\n", r"is empty \(3 bytes\)"),
        (ROWS + "a,1,u,9\n", r"line 4 of .*t.csv has 4 values but its header names 3 \('o', "),
        (ROWS + "\na,1\n", "line 5 of .* has 2 values"),
        ("o,x,y\na,1,u,\nb,2,v,\n", "line 2 of .* has 4 values"),
        ("o,y,x,y\na,1,2,3\n", "two columns named 'y', number 2 and 4"),
        (ROWS + '"a,1,u\nb,2,v\n', "from line 4 on: a quotation mark is opened and not closed"),
        (ROWS + '"a"z,1,u\n', "from line 4 on"),
        ("o,x\na,é\n".encode("latin-1"), r"byte 0xe9 .*6 \(line 2\), .* 'é' .*encoding='cp1252'"),
        (b"o,x\na,\xe9\x81\n", r"not UTF-8 text: byte 0xe9 at position 6 \(line 2\); save it as"),
        (ROWS.encode("utf-16"), "is UTF-16, expected UTF-8; .* or state encoding='utf-16'"),
        (ROWS.encode("utf-16-le"), "line 1 of .* holds a zero byte"),
        (gzip.compress(ROWS.encode(), mtime=0), "compressed by gzip"),
        (b"PK\x03\x04rest", "an Excel or zip file"),
        (" <!DOCTYPE html><html></html>", "a web page"),
    ):
        refused(match, parsed, written(contents))


def test_a_gzip_file_is_unpacked_and_a_cell_may_be_long(written):
    packed = gzip.compress(ROWS.encode())
    assert parsed(written(packed, "t.csv.gz")).shape == (2, 3)
    refused("cannot unpack .*cut.csv.gz", parsed, written(packed[:-9], "cut.csv.gz"))
    refused("cannot unpack", parsed, written("plain", "not.csv.gz"))
    refused(r"empty \(0 bytes\)", parsed, written("", "none.csv.gz"))
    assert parsed(written(f"o,x\na,{'x' * 200_000}\n")).loc[2, "x"] == "x" * 200_000
    numbers = np.random.default_rng(0).normal(size=500).tolist()
    assert parsed(written("\n".join(["x", *map(repr, numbers)])))["x"].tolist() == numbers


RECORDS = [{"o": "007", "x": 1, "y": "u"}, {"o": "b", "x": None, "y": "NA"}]


def test_json_lines_know_their_lines_and_a_list_of_objects_is_the_same_table(written):
    lines = "\n".join(map(json.dumps, RECORDS))
    for contents in (lines, json.dumps(RECORDS), json.dumps(RECORDS, indent=2)):
        frame = read_json(written(contents, "t.json"))
        assert frame[["o", "y"]].to_numpy().tolist() == [["007", "u"], ["b", "NA"]]
        assert frame["x"].isna().tolist() == [False, True]
    frame = read_json(written('{"a": 1}\n\n{"a": 2}\n', "t.jsonl"))
    assert (frame.index.name, frame.index.tolist()) == ("line", [1, 3])


def test_a_fault_of_json_is_one_clear_message(written):
    for contents, match in (
        ('{"a": 1}\n{"a": \n', "line 2 of .* is not a JSON object .*expected JSON lines"),
        ('{"a": 1}\n[1]\n', r"line 2 of .* is \[1\]; expected a JSON object"),
        ("[1, 2]", "row 1 of .* is 1; expected a JSON object"),
        ("[1, ", "is not JSON"),
        ('{"a": {"0": 1}, "b": {"0": 2}}', "one JSON object of whole columns"),
        ('{\n"a": 1\n}', "expected JSON lines"),
        ('{"a": 1, "a": 2}', "an object has a key twice"),
        ('{"a": "x"}\n{"a": 1}\n{"a": 1e}', "line 3 of .* is not a JSON object"),
        ('[{"a": 1, "a": 2}]', "an object has a key twice"),
        ("[" * 100_000, "is not JSON"),
        ('{"a":' * 100_000, "line 1 of .* is not a JSON object"),
    ):
        refused(match, read_json, written(contents, "t.json"))


LATE = [("1", "x"), ("1", "0.5"), ("1", "9" * 30), ("True", "maybe")]
LATE += [("", "x"), ("", "True"), ("", "3")]


@pytest.mark.parametrize(("usual", "last"), LATE)
def test_a_large_file_is_read_part_by_part_as_if_at_once(tmp_path, usual, last):
    content = "a,b\n" + f"{usual},{'y' * 40}\n" * 19_999 + f"{last},{'y' * 40}\n"
    (path := tmp_path / "x.csv").write_text(content)
    how = {"keep_default_na": False, "na_values": [""], "low_memory": False}
    pd.testing.assert_frame_equal(parsed(path).reset_index(drop=True), pd.read_csv(path, **how))
