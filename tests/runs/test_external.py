import numpy as np
import pandas as pd
import pytest

from commands import SMALL, run, write_small
from dupre.errors import InputError
from dupre.result.valuation import Valuation
from dupre.runs.external import check_within, parse_members, read_results
from dupre.spec import Files
from dupre.store.frames import as_frame, read_evaluations
from dupre.training.evaluation import Evaluation, Training


def test_results_may_hold_resampled_utilities(tmp_path):
    sheet = tmp_path / "results.csv"
    rows = ['"[""a""]",0.5,"[0.4, 0.6]"', '"[""b""]",0.7,', '"[""c""]",0.7,"[1, ""x""]"']
    sheet.write_text("\n".join(["coalition,utility,resampled", *rows[:2]]))
    first, second = (row.utilities[0] for row in read_results(sheet, ("a", "b", "c")))
    assert first == 0.5
    assert first.resampled.tolist() == [0.4, 0.6]
    assert not hasattr(second, "resampled")
    sheet.write_text("\n".join(["coalition,utility,resampled", rows[2]]))
    with pytest.raises(InputError, match=r"resampled of \{c\} must be a JSON list"):
        read_results(sheet, ("a", "b", "c"))


@pytest.mark.parametrize("kind", ["xlsx", "tsv", "jsonl"])
def test_results_may_come_from_a_spreadsheet_with_all_digits(tmp_path, kind):
    frame = pd.DataFrame({"coalition": ['["a", "b"]'], "utility": [0.123456789012345]})
    sheet = tmp_path / f"results.{kind}"
    if kind == "xlsx":
        frame.to_excel(sheet, index=False)
    elif kind == "jsonl":
        frame.to_json(sheet, orient="records", lines=True, double_precision=15)
    else:
        frame.to_csv(sheet, index=False, sep="\t")
    (row,) = read_results(sheet, ("a", "b"))
    assert (row.members, row.utilities) == (("a", "b"), {0: 0.123456789012345})


def test_utilities_on_resamples_lie_within_the_bounds_too(tmp_path):
    sheet = tmp_path / "results.csv"
    sheet.write_text('coalition,utility,resampled\na,0.5,"[0.4, null, 907]"\n')
    (row,) = read_results(sheet, ("a", "b"))
    check_within(row, (0.0, 1_000.0))
    with pytest.raises(InputError, match=r"utility of \{a\} is 907, but the bounds .* are 0 to 1;"):
        check_within(row, (0.0, 1.0))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_reads_what_a_frame_of_evaluations_writes_and_keeps_it(tmp_path, suffix):
    write_small(tmp_path, ("A", "B"))
    run("init", *SMALL, "--empty", 0, cwd=tmp_path)
    resampled = np.random.default_rng(0).random((3, 4))
    members = [("A",), ("B",), ("A", "B")]
    done = [
        Evaluation(Training(m), 0.5, resampled=r) for m, r in zip(members, resampled, strict=True)
    ]
    sheet, frame = tmp_path / f"done.{suffix}", as_frame(done)
    frame.to_csv(sheet, index=False) if suffix == "csv" else frame.to_parquet(sheet)
    run("record", "dupre-data", sheet, cwd=tmp_path)
    found = Valuation.from_json((tmp_path / "dupre-data" / "result.json").read_text())
    kept = read_evaluations(tmp_path / "dupre-data" / "store.sqlite")
    assert sorted(kept["resampled"]) == sorted(frame["resampled"])
    assert found.uncertainty.validation is not None


def test_a_comma_may_stand_before_decimals(tmp_path):
    sheet = tmp_path / "results.csv"
    sheet.write_text("coalition;utility\na,b;0,35\nc;1\n")
    found = read_results(sheet, ("a", "b", "c"), Files(delimiter=";", decimal=","))
    assert [row.utilities for row in found] == [{0: 0.35}, {0: 1.0}]
    with pytest.raises(
        InputError, match=r"\{a, b\} is '0,35'; expected .* 0.91, .*--decimal states"
    ):
        read_results(sheet, ("a", "b", "c"), Files(delimiter=";"))


def test_the_column_repeat_numbers_trainings(tmp_path):
    sheet = tmp_path / "results.csv"
    sheet.write_text("coalition,utility,repeat\na,0.2,1\na,0.1,0\nb,0.3,\nb,0.4,2\nc,0.5,1.0\n")
    found = read_results(sheet, ("a", "b", "c"))
    assert [row.utilities for row in found] == [{0: 0.1, 1: 0.2}, {0: 0.3, 2: 0.4}, {1: 0.5}]
    for rows, words in (
        ("a,0.1,1\na,0.2,1", r"training 1 of \{a\} is in .* twice; .* number .* 0, 1, 2"),
        ("a,0.1,\na,0.1,0", r"training 0 of \{a\} is in .* twice"),
        ("a,0.1,1\na,0.2,", r"^\{a\} is in .* twice"),
        ("a,0.1,first", r"repeat of \{a\} is 'first'; expected 0, 1, 2"),
        ("a,0.1,-1", "repeat"),
        ("a,0.1,0.5", "repeat"),
        (f"a,0.1,1{'0' * 20}", "repeat"),
    ):
        sheet.write_text(f"coalition,utility,repeat\n{rows}\n")
        with pytest.raises(InputError, match=words):
            read_results(sheet, ("a", "b"))


def test_repeated_trainings_may_be_recorded_in_any_order_and_in_several_files(tmp_path):
    write_small(tmp_path, ("A", "B"))
    run("init", *SMALL, "--empty", 0, cwd=tmp_path)
    for name, rows in (("one", "A,0.2,1\nB,0.5,0"), ("two", "A,0.1,0"), ("three", "A,0.2,1")):
        (tmp_path / f"{name}.csv").write_text(f"coalition,utility,repeat\n{rows}\n")
        run("record", "dupre-data", f"{name}.csv", cwd=tmp_path)
    found = Valuation.from_json((tmp_path / "dupre-data" / "result.json").read_text()).evaluations
    kept = found.set_index(["coalition", "repeat"])["utility"].to_dict()
    assert kept == {('["A"]', 0): 0.1, ('["A"]', 1): 0.2, ('["B"]', 0): 0.5}


@pytest.mark.parametrize(
    ("header", "words"),
    [("a,b", "columns coalition and utility;"), ("coalition", "column utility;")],
)
def test_columns_that_are_missing_are_named(tmp_path, header, words):
    sheet = tmp_path / "results.csv"
    sheet.write_text(f"{header}\n{header}\n")
    with pytest.raises(InputError, match=f"lacks the {words} expected"):
        read_results(sheet, ("a", "b"))


def test_members_are_read_with_blanks_and_commas_in_names():
    owners = ("A", "B", "Smith, J")
    assert parse_members("B, A", owners) == ("A", "B")
    assert parse_members("Smith, J", owners) == ("Smith, J",)
    assert parse_members('["Smith, J", "A"]', owners) == ("A", "Smith, J")
    blanks = ("Basel ", " Bern", "Bern ", "Chur")
    assert parse_members("Basel", blanks) == parse_members('["Basel"]', blanks) == ("Basel ",)
    assert parse_members('["Basel ", "Bern "]', blanks) == ("Basel ", "Bern ")
    for text, names, words in (
        ("Bern", blanks, "unknown owner 'Bern'"),  # which of the two?
        ('["Basel", "Basel "]', blanks, "names 'Basel ' twice"),
        (" ,", owners, "' ,' names no owner"),
    ):
        with pytest.raises(InputError, match=words):
            parse_members(text, names)
