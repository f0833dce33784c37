import pytest

from dupre.errors import InputError
from dupre.runs.recorded import read_results


def test_results_may_hold_resampled_utilities(tmp_path):
    sheet = tmp_path / "results.csv"
    rows = ['"[""a""]",0.5,"[0.4, 0.6]"', '"[""b""]",0.7,', '"[""c""]",0.7,"[1, ""x""]"']
    sheet.write_text("\n".join(["coalition,utility,resampled", *rows[:2]]))
    (first,), (second,) = (row.utilities for row in read_results(sheet, ("a", "b", "c")))
    assert first == 0.5
    assert first.resampled.tolist() == [0.4, 0.6]
    assert not hasattr(second, "resampled")
    sheet.write_text("\n".join(["coalition,utility,resampled", rows[2]]))
    with pytest.raises(InputError, match=r"resampled of \{c\} must be a JSON list"):
        read_results(sheet, ("a", "b", "c"))


def test_a_comma_may_stand_before_decimals(tmp_path):
    sheet = tmp_path / "results.csv"
    sheet.write_text("coalition;utility\na,b;0,35\nc;1\n")
    found = read_results(sheet, ("a", "b", "c"), delimiter=";", decimal=",")
    assert [row.utilities for row in found] == [(0.35,), (1.0,)]
    with pytest.raises(
        InputError, match=r"\{a, b\} is '0,35'; expected .* 0.91, .*--decimal states"
    ):
        read_results(sheet, ("a", "b", "c"), delimiter=";")
