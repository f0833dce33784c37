from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from dupre.spec import Data
from dupre.tables.read import match_columns, read_table, read_validation
from refusals import refused

A, B = "x,c,y\n1,r,u\n2,g,v\n", "x,c,y\n3,r,u\n4,b,v\n5,b,v\n"


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Files by name in, a directory to work in out."""
    monkeypatch.chdir(tmp_path)

    def filled(**files):
        for name, contents in files.items():
            path = Path("data", name.replace("__", "."))
            path.parent.mkdir(exist_ok=True)
            path.write_text(contents)
        return "data"

    return filled


def table(data, **options):
    return read_table(Data(data, owner="o", target="y", **options))


def test_an_owner_column_in_all_files_decides(directory):
    directory(all__csv="o,x,y\n007,1,u\nNA,2,v\n007,3,\u00e9\n")

    frame = table("data/all.csv")
    assert frame[["o", "y"]].T.to_numpy().tolist() == [["007", "NA", "007"], ["u", "v", "\u00e9"]]
    assert frame.index.equals(pd.RangeIndex(3))
    Path("data/all.csv").unlink()
    directory(p1__csv="o,x,y\nq,1,u\nr,2,v\n", p2__csv="o,x,y\nq,3,v\n")
    assert table("data")["o"].tolist() == ["q", "r", "q"]
    directory(p3__csv="x,y\n1,u\n")
    refused(r"data/p3.csv has no column 'o', which data/p1.csv has", table, "data")


@pytest.mark.parametrize("data", ["data", "data/", "data/*.csv", "data/*", "d*/[ab].csv"])
def test_files_are_named_after_their_owners(directory, data):
    directory(a__csv=A, b__csv=B)
    found = {"o": list("aabbb"), "x": [1, 2, 3, 4, 5], "c": list("rgrbb"), "y": list("uvuvv")}
    assert table(data).to_dict("list") == found


def test_files_may_be_of_several_formats_and_column_orders_and_have_any_name(directory):
    directory(**{"b__csv": "y,x,c\nu,3,r\n", "all[1]__csv": "o,x,y\na,1,u\nb,2,v\n"})
    assert len(table("data/all[1].csv")) == 2  # it is a file before it is a pattern
    Path("data/all[1].csv").unlink()
    pd.DataFrame({"x": [1], "c": ["r"], "y": ["v"]}).to_parquet("data/a.parquet")
    pd.DataFrame({"c": ["g"], "x": [2.5], "y": ["v"]}).to_csv("data/c.csv.gz", index=False)
    assert table("data")[["o", "x"]].to_numpy().tolist() == [["a", 1], ["b", 3], ["c", 2.5]]


def test_what_lies_beside_the_data_and_a_column_empty_in_one_file_do_no_harm(directory):
    directory(a__csv=A, b__csv=B, README="x", README__txt="a, b", notes__md="x", __DS_Store="x")
    Path("data", "~$b.xlsx").write_text("x")
    Path("data", "inner.csv").mkdir()
    assert table("data")["o"].nunique() == 2

    gap = "n,d,c,y\n,,,u\n"
    directory(a__csv=gap, b__csv="n,d,c,y\n1,2024-05-31,r,v\n2,2024-06-01,g,v\n", c__csv=gap)
    frame = table("data")
    assert frame["n"].dtype == np.float64
    assert frame["d"].dtype.kind == "M"
    assert frame.loc[0, ["n", "d", "c"]].isna().all()


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({}, r"no file .*data"),
        ({"README": "x"}, r"holds no table; found 'README'; expected one file per owner"),
        ({"a__csv": A, "b__csv": "x,k,y\n1,r,u\n"}, r"data/b.csv has no column 'c', which data/a"),
        ({"a__csv": A, "b__csv": "x,C,y\n1,r,u\n"}, r"no column 'c' \(it has 'C'\)"),
        ({"a__csv": A, "b__csv": "x,c,z,y\n1,r,1,u\n"}, "a.csv has no column 'z', which data/b"),
        ({"a__csv": A, "a__txt": A}, r"data/a.csv and data/a.txt have one name, 'a'"),
        ({"a__csv": A, "b__xls": "x"}, r"holds b.xls, of a format that cannot be read"),
        ({"a__csv": A, "b__pkl": "x"}, r"holds b.pkl"),
        ({"a__csv": A, "b__csv": ""}, r"data/b.csv is empty"),
        ({"a__csv": A, "b__csv": "x,c,y\n"}, r"data/b.csv names 3 columns but has no rows"),
        ({"a__csv": A}, "'o' is 'a' in all 2 rows; expected at least two owners"),
        ({"a__csv": A, "b__csv": "x,c,y\n?,r,u\n"}, r"numbers in data/a.csv, but '\?' in line 2"),
        ({"a__csv": A, "b__csv": "x,c,y\n3,r,\n"}, r"'y' is empty .* line 2 of data/b.csv"),
    ],
)
def test_a_fault_of_a_directory_is_one_clear_message(directory, files, match):
    directory(**files)
    refused(match, table, "data")


def test_files_of_one_name_in_several_directories_need_an_owner_column(directory, tmp_path):
    def write(contents):
        for place in ("s1", "s2"):
            (tmp_path / place).mkdir(exist_ok=True)
            (tmp_path / place / "t.csv").write_text(contents.format(place))

    write(A)
    refused("s1/t.csv and s2/t.csv have one name, 't'", table, "s*/t.csv")
    write("o,x,y\n{0},1,u\n{0},2,v\n")
    assert table("s*/t.csv")["o"].tolist() == ["s1", "s1", "s2", "s2"]


def test_a_place_without_data_or_that_may_not_be_read_says_so(directory, monkeypatch):
    for data, match in (
        ("", "expected a file, a directory or a pattern"),
        ("https://example.org/a.csv", "on this machine"),
        ("*.parquet", r"no file matches the pattern '\*.parquet'"),
        ("nothing.csv", "there is no file nothing.csv"),
        ("a" * 300, "cannot open"),
    ):
        refused(match, table, data)
        refused("the same column 'o'", read_table, Data(data, owner="o", target="o"))
    Path("data/inner").mkdir(parents=True)
    refused("the directory data holds no table; expected one file per owner", table, "data")
    refused("the pattern 'data/\\*' holds no table", table, "data/*")
    monkeypatch.setattr(Path, "iterdir", Mock(side_effect=PermissionError(13, "Permission denied")))
    refused("cannot open the directory data: Permission denied", table, "data")


def test_delimiter_and_drop_are_passed_on_and_empty_rows_can_be_left_out(directory):
    directory(a__csv="x;k;y\n1;?;u\n2;1;v\n", b__csv="x;k;y\n1;3;u\n2;4;v\n")
    refused("state delimiter=';'", table, "data")
    refused("column 'k' holds numbers in data/b.csv.*drop='k'", table, "data", delimiter=";")
    assert table(Path("data"), delimiter=";", drop="k").shape == (4, 4)

    rows = "o;x;y\na;1,5;u\n ;2;v\nb;3;\n;4;\nb;5;v\n"
    directory(all__csv=rows)
    how = {"delimiter": ";", "decimal": ","}
    refused("leave these rows out with skip_empty=True", table, "data/all.csv", **how)
    frame = table("data/all.csv", **how, skip_empty=True)
    assert frame["x"].tolist() == [1.5, 5]
    assert frame.attrs["skipped"] == "2 without owner, 1 without target"
    found = read_validation("data/all.csv", frame, Data("", "o", "y", **how, skip_empty=True))
    assert found["x"].tolist() == [1.5, 2, 5]
    assert found.attrs["skipped"] == "2 without target"
    directory(none__csv="o;x;y\na;1,5;\n")
    refused("every row is 1 without target", table, "data/none.csv", **how, skip_empty=True)


def test_validation_rows_get_the_columns_and_kinds_and_have_the_classes_of_training(directory):
    rows = "o,x,k,d,y\na,1.5,1,2024-05-31,1\nb,2,B,2024-06-01,2\n"
    other = "d,y,more,k,x\n2024-07-01,2,z,1,3\n,1,z,2,4\n"
    directory(all__csv=rows, val__csv=other)
    training = table("data/all.csv")
    found = read_validation("data/val.csv", training, Data("", "o", "y", delimiter=";"))
    day = pd.Timestamp("2024-07-01")
    expected = {"x": [3.0, 4], "k": ["1", "2"], "d": [day, pd.NaT], "y": [2, 1]}
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected), check_dtype=False)
    assert found["d"].dtype.kind == "M"
    directory(all__csv="o,x,y\na,1,u\nb,2,v\n", val__csv="x,y\n1,u\n2,w\n")
    told, training = r"classes that no training row has: 'w' \(1 row\)", table("data/all.csv")
    refused(told, read_validation, "data/val.csv", training, Data("", "o", "y"))


@pytest.mark.parametrize("kind", [1.5, "text", pd.Timestamp("2024-05-31"), True])
def test_an_empty_validation_column_has_the_type_of_training(kind):
    training = pd.DataFrame({"x": [kind, kind], "y": [1, 2]})
    found = match_columns(training.assign(x=None), training, target="y")
    assert found["x"].isna().all()
    assert pd.concat([training, found])["x"].notna().sum() == 2


def test_validation_rows_that_do_not_fit_are_refused():
    for validation, match in (
        ({"x": [1.0, 2.0]}, "the validation table has no target column 'y'"),
        ({"X": [1.0, 2.0], "y": [1, 2]}, r"no training column 'x' \(did you mean 'X'\?\)"),
        ({"x": ["a", "b"], "y": [1, 2]}, "'x' holds numbers in training, but 'a' in line 2"),
        ({"x": [1.0, 2.0], "y": [1, None]}, "validation target column 'y' is empty in 1 of 2"),
        ({"x": [1.0, 2.0], "y": ["u", "v"]}, "'y' holds numbers in training, but 'u'"),
    ):
        training = pd.DataFrame({"x": [1.0, 2.0], "y": [1, 2]})
        refused(match, match_columns, pd.DataFrame(validation), training, target="y")


def test_a_column_that_the_first_sheet_lacks_may_be_on_another(tmp_path):
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"info": ["hello"]}).to_excel(book, sheet_name="Read me", index=False)
        frame = pd.DataFrame({"o": ["a", "b"] * 4, "x": range(8), "y": ["u", "v"] * 4})
        frame.to_excel(book, sheet_name="Data", index=False)
    words = "first sheet 'Read me' was read, which has no column 'o'; its columns are 'info'. "
    refused(
        words + "The other sheets are 'Data': choose one, such as with sheet='Data'", table, path
    )
    assert len(table(path, sheet="Data")) == 8


def test_numbers_of_all_files_are_read_in_one_form_and_validation_rows_too(directory):
    directory(
        a__csv='p,s,y\n"1,234",5 %,u\n"12,500",7 %,v\n', b__csv="p,s,y\n12.5,8 %,u\n999,9 %,v\n"
    )
    frame = table("data")
    assert frame["p"].tolist() == [1234, 12500, 12.5, 999]  # 12.5 decides for both files
    assert frame["s"].tolist() == [5, 7, 8, 9]
    assert {name: str(form) for name, form in frame.attrs["forms"].items()} == {
        "p": "thousands-comma",
        "s": "decimal-point %",
    }
    data, forms = Data("data", "o", "y"), frame.attrs["forms"]
    directory(**{"../v__csv": 'p,s,y\n"2,000",5 %,u\n"3,000",6 %,v\n'})
    found = read_validation("v.csv", frame.drop(columns=[]), data)
    assert found["p"].tolist() == [2000, 3000]
    directory(**{"../v__csv": "p,s,y\n1,5 %,u\n2,6,v\n"})
    refused("'s' is read as per cent .* but '6' in line 3", read_validation, "v.csv", frame, data)
    directory(b__csv="p,s,y\n12,8 %,u\n999,9 %,v\n")
    refused("column 'p' fits two forms: '1,234' in line 2 of data/a.csv", table, "data")
    assert table("data", numbers="p=decimal-comma")["p"].tolist() == [1.234, 12.5, 12, 999]
    kept = [f"{name}={form}" for name, form in forms.items()]
    again = read_table(data, kept)
    assert again["p"].tolist() == [1234, 12500, 12, 999]
    directory(b__csv="p,s,y\n12,8 %,u\n999,soon,v\n")
    refused("'s' is read as .* but 'soon' in line 3 of data/b.csv", read_table, data, kept)


def test_codes_of_one_file_are_codes_in_all_and_a_stated_text_is_kept_as_it_is_written(directory):
    directory(a__csv="k,x,y\n00123,1,u\n00200,2,v\n", b__csv="k,x,y\n12345,3,u\n12346,4,v\n")
    frame = table("data")
    assert frame["k"].tolist() == ["00123", "00200", "12345", "12346"]
    assert frame["x"].tolist() == [1, 2, 3, 4]
    frame = table("data", numbers=["x=text"])
    assert frame["x"].tolist() == ["1", "2", "3", "4"]
    directory(**{"../v__csv": "k,x,y\n12345,2,u\n00123,1,v\n"})
    found = read_validation("v.csv", frame, Data("data", "o", "y", numbers=["x=text"]))
    assert found[["k", "x"]].to_numpy().tolist() == [["12345", "2"], ["00123", "1"]]


def test_owners_that_are_all_numbers_are_named_with_their_column(directory):
    for rows, names in (
        ("o,x,y\n7,1,u\n08,2,v\n", ["o 7", "o 08"]),
        ("o,x,y\n7,1,u\nb,2,v\n", ["7", "b"]),
    ):
        directory(all__csv=rows)
        assert table("data/all.csv")["o"].tolist() == names
