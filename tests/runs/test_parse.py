import pytest

import dupre
from dupre.runs import config
from dupre.runs.parse import parse_bounds, parse_budget, parse_floor, parse_members, parse_options


def options(semivalue="shapley", until="", time="", **machine):
    return parse_options(
        config.Config(
            config.DataSection("/d.csv", "owner", "y"),
            config.UtilitySection(),
            config.ValuesSection((semivalue,)),
            config.LimitsSection(until=until, time=time),
            config.MachineSection(**machine),
        )
    )


def test_semivalues_durations_and_members_are_read():
    for text in ("least-core", "least_core"):
        assert options(text).semivalues[0].name == "Least core"
    assert options("Banzhaf").semivalues[0].name == "Banzhaf"
    assert options("beta:4,1").semivalues[0].name == "Beta(4, 1)-Shapley"
    texts = ("90s", "30m", "1h30m", "1.5 h", "2D")
    assert [options(timeout=text).timeout for text in texts] == [90, 1800, 5400, 5400, 172_800]
    owners = ("A", "B", "Smith, J")
    assert parse_members("B, A", owners) == ("A", "B")
    assert parse_members("Smith, J", owners) == ("Smith, J",)
    assert parse_members('["Smith, J", "A"]', owners) == ("A", "Smith, J")
    blanks = ("Basel ", " Bern", "Bern ", "Chur")
    assert parse_members("Basel", blanks) == parse_members('["Basel"]', blanks) == ("Basel ",)
    assert parse_members('["Basel ", "Bern "]', blanks) == ("Basel ", "Bern ")
    with pytest.raises(dupre.InputError, match="unknown owner 'Bern'"):  # which of the two?
        parse_members("Bern", blanks)
    with pytest.raises(dupre.InputError, match="names 'Basel ' twice"):
        parse_members('["Basel", "Basel "]', blanks)
    with pytest.raises(dupre.InputError, match="' ,' names no owner"):
        parse_members(" ,", owners)


def test_until_values_are_known_or_the_ranking_is_settled_or_the_time_is_over():
    for text in ("±0.01", "0.01", "+-0.01", "+/-0.01", " ± 1e-2 ", "± .01"):
        assert options(until=text).stop.text == dupre.stopping.within(0.01).text
    assert options(until="ranking").stop.text == dupre.stopping.ranking_settled().text
    assert options(time="2h").stop.text == dupre.stopping.wall_time(7200).text
    both = options(until="ranking", time="90s").stop.text
    assert both == (dupre.stopping.ranking_settled() | dupre.stopping.wall_time(90)).text
    assert options().stop is None


@pytest.mark.parametrize("text", ["soon", "-0.1", "0", "±", "1..2", "nan"])
def test_other_ends_are_refused(text):
    with pytest.raises(dupre.InputError, match="or ranking"):
        options(until=text)


@pytest.mark.parametrize("text", ["2", "2 hours", "h", "-3m", "1h 30", "0m 0s"])
def test_what_is_no_duration_is_refused(text):
    expected = "is no duration above zero; expected such as 90s, 30m, 2h or 1h30m"
    for flag in ("time", "timeout"):
        with pytest.raises(dupre.InputError, match=f"--{flag} {text!r} {expected}"):
            options(**{flag: text})


def test_budgets_processes_floors_and_bounds_are_numbers():
    assert parse_budget("60", 12) == 60
    assert parse_budget("+40", 12) == 52
    for text in ("", "+", "-3", "0", "+0", "4.5", "many"):
        with pytest.raises(dupre.InputError, match=r"or \+40 for 40 more"):
            parse_budget(text, 12)
    assert options().timeout is None
    with pytest.raises(dupre.InputError, match="--jobs must be 1 or more, or -1"):
        options(jobs=-2)
    with pytest.raises(dupre.InputError, match="not both"):
        options(jobs=2, dask="tcp://127.0.0.1:8786")

    assert [parse_floor(text) for text in ("", "none", "-0.5", "0")] == [None, False, -0.5, 0.0]
    assert parse_bounds("") is None
    assert [parse_bounds(text) for text in ("0,1", ",1")] == [(0.0, 1.0), (-float("inf"), 1.0)]
    for parse, text in ((parse_floor, "low"), (parse_bounds, "1"), (parse_bounds, "0,x")):
        with pytest.raises(dupre.InputError, match=f"must be .* got {text!r}"):
            parse(text)
