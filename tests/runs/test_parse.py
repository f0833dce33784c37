from __future__ import annotations

import pytest

import dupre
from dupre.runs import parse


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("shapley", "Shapley"),
        ("Banzhaf", "Banzhaf"),
        ("loo", "leave-one-out"),
        ("least-core", "Least core"),
        ("least_core", "Least core"),
        ("beta:4,1", "Beta(4, 1)-Shapley"),
        ("beta: 16 , 1.5", "Beta(16, 1.5)-Shapley"),
    ],
)
def test_semivalues_by_name(text, name):
    assert parse.semivalue(text).name == name


@pytest.mark.parametrize(
    "text", ["", "beta", "beta:1", "beta:0,1", "beta:1,2,3", "beta:a,b", "core"]
)
def test_unknown_semivalues_are_refused_with_what_there_is(text):
    with pytest.raises(dupre.InputError, match="expected shapley, banzhaf, beta:A,B"):
        parse.semivalue(text)


def test_a_misspelt_semivalue_is_recognised():
    with pytest.raises(dupre.InputError, match=r"is not known \(did you mean 'shapley'\?\)"):
        parse.semivalue("shaply")


@pytest.mark.parametrize("text", ["±0.01", "0.01", "+-0.01", "+/-0.01", " ± 1e-2 ", "± .01"])
def test_a_half_width_in_all_its_spellings(text):
    assert parse.rule(text, "").text == dupre.stopping.within(0.01).text


def test_until_the_ranking_is_settled_or_the_time_is_over():
    assert parse.rule("ranking", "").text == dupre.stopping.ranking_settled().text
    assert parse.rule("", "2h").text == dupre.stopping.wall_time(7200).text
    both = parse.rule("ranking", "90s").text
    assert both == (dupre.stopping.ranking_settled() | dupre.stopping.wall_time(90)).text
    assert parse.rule("", "") is None


@pytest.mark.parametrize("text", ["soon", "-0.1", "0", "±", "1..2", "nan"])
def test_other_ends_are_refused(text):
    with pytest.raises(dupre.InputError, match="or ranking"):
        parse.rule(text, "")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1.5 h", 5400), ("2D", 172_800)],
)
def test_durations(text, seconds):
    assert parse.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "2 hours", "h", "-3m", "1h 30"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(dupre.InputError, match="expected such as 90s, 30m, 2h or 1h30m"):
        parse.seconds(text)


def test_a_budget_in_all_or_in_addition():
    assert parse.budget("60", 12) == 60
    assert parse.budget("+40", 12) == 52
    for text in ("", "+", "-3", "0", "+0", "4.5", "many"):
        with pytest.raises(dupre.InputError, match=r"or \+40 for 40 more"):
            parse.budget(text, 12)
