import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest

from dupre.errors import InputError
from dupre.tables.csv_json import read_csv, read_json

ROWS = "o,x,y\na,1,u\nb,2,v\n"


@pytest.fixture
def written(tmp_path):
    """Contents in, path of a file that holds them out."""

    def write(contents, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return path

    return write


def parsed(path, delimiter=",", as_text=(), **how):
    return read_csv(path, delimiter=delimiter, as_text=as_text, **how)


def refused(path, match, **options):
    with pytest.raises(InputError, match=match) as caught:
        parsed(path, **options)
    assert "\n" not in str(caught.value)


SAME = [ROWS, ROWS.rstrip(), ROWS.replace("\n", "\r\n"), ROWS.replace("\n", "\r")]
SAME += [b"\xef\xbb\xbf" + ROWS.encode(), "\n\n" + ROWS.replace("b,", "\n  \nb,")]
SAME += ['"o","x","y"\n"a",1,"u"\n"b",2,"v"\n']


@pytest.mark.parametrize("contents", SAME)
def test_one_table_may_be_written_in_several_ways(written, contents):
    frame = parsed(written(contents))
    assert frame.to_dict("list") == {"o": ["a", "b"], "x": [1, 2], "y": ["u", "v"]}


def test_delimiter_decimal_sign_and_encoding_can_be_stated_and_text_kept(written):
    frame = parsed(written('o,x\n\na,"1\n2"\nb,3\n\nc,4\n'))
    assert (frame.index.name, frame.index.tolist()) == ("line", [3, 5, 7])
    assert parsed(written("o\na\nb\n")).shape == (2, 1)
    assert parsed(written("o,x,y\n")).shape == (0, 3)
    assert list(parsed(written(",o\n0,a\n1,b\n")).columns) == ["unnamed column 1", "o"]

    frame = parsed(written("o,x\n007,007\nNA,NA\n,\n"), as_text=("o",))
    assert frame["o"].tolist()[:2] == ["007", "NA"]
    assert frame["x"].tolist()[0] == 7
    assert frame["o"].isna().tolist() == [False, False, True]
    assert frame["x"].isna().tolist() == [False, True, True]
    rows = "o;x\nZürich;1,5\nBern;-2,25\n"
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        file = written(rows.encode(encoding))
        frame = parsed(file, ";", decimal=",", encoding=encoding)
        assert frame.columns.tolist() == ["o", "x"]
        assert frame["o"].tolist() == ["Zürich", "Bern"]
        assert frame["x"].tolist() == [1.5, -2.25]
    refused(written(rows), "not the delimiter, got ','; state delimiter=';'", decimal=",")
    refused(written(rows), "'klingon' is no encoding", delimiter=";", encoding="klingon")
    refused(written(rows), "is not ASCII text: byte 0xc3", delimiter=";", encoding="ascii")

    for delimiter in ("", ";;", '"', "\n"):
        refused(written(ROWS), "delimiter must be one character", delimiter=delimiter)
    for given, between in ((";", ";"), ("\\t", "\t"), ("tab", "\t")):
        assert parsed(written(ROWS.replace(",", between)), given).shape == (2, 3)


@pytest.mark.parametrize("between", [";", "\t", "|"])
def test_another_delimiter_is_suggested_not_guessed(written, between):
    decimals = ROWS.replace(",", between).replace("1", "1,5")
    refused(written(decimals), "delimiter=" + re.escape(repr(between)))


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
        refused(written(contents), match)


def test_a_gzip_file_is_unpacked_and_a_cell_may_be_long(written):
    packed = gzip.compress(ROWS.encode())
    assert parsed(written(packed, "t.csv.gz")).shape == (2, 3)
    refused(written(packed[:-9], "cut.csv.gz"), "cannot unpack .*cut.csv.gz")
    refused(written("plain", "not.csv.gz"), "cannot unpack")
    refused(written("", "none.csv.gz"), r"empty \(0 bytes\)")
    assert parsed(written(f"o,x\na,{'x' * 200_000}\n")).loc[2, "x"] == "x" * 200_000
    numbers = np.random.default_rng(0).normal(size=500).tolist()
    assert parsed(written("\n".join(["x", *map(repr, numbers)])))["x"].tolist() == numbers


RECORDS = [{"o": "007", "x": 1, "y": "u"}, {"o": "b", "x": None, "y": "NA"}]


def test_json_lines_know_their_lines_and_a_list_of_objects_is_the_same_table(written):
    lines = "\n".join(map(json.dumps, RECORDS))
    for contents in (lines, json.dumps(RECORDS), json.dumps(RECORDS, indent=2)):
        frame = read_json(written(contents, "t.json"))
        assert frame["o"].tolist() == ["007", "b"]
        assert frame["y"].tolist() == ["u", "NA"]
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
        with pytest.raises(InputError, match=match):
            read_json(written(contents, "t.json"))


LATE = {
    "a text among numbers": ["1"] * 19_999 + ["x"],
    "a decimal among whole numbers": ["1"] * 19_999 + ["0.5"],
    "truth, then text": ["True"] * 19_999 + ["maybe"],
    "gaps, then text": [""] * 19_999 + ["x"],
    "gaps, then truth": [""] * 19_999 + ["True"],
    "gaps, then numbers": [""] * 19_999 + ["3"],
    "a long number": ["1"] * 19_999 + ["9" * 30],
}


@pytest.mark.parametrize("cells", LATE.values(), ids=LATE)
def test_a_large_file_is_read_part_by_part_as_if_at_once(tmp_path, cells):
    content = "a,b\n" + "".join(f"{cell},{'y' * 40}\n" for cell in cells)
    (tmp_path / "x.csv").write_text(content)
    found = read_csv(tmp_path / "x.csv", delimiter=",", as_text=()).reset_index(drop=True)
    how = {"keep_default_na": False, "na_values": [""], "low_memory": False}
    pd.testing.assert_frame_equal(found, pd.read_csv(tmp_path / "x.csv", **how))
