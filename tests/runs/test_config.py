import tomllib
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dupre import InputError
from dupre.report.document import read_logo
from dupre.runs import config as sections
from dupre.runs.config import (
    Config,
    DataSection,
    LimitsSection,
    MachineSection,
    UtilitySection,
    dumps,
    loads,
)
from dupre.runs.parse import parse_options

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
configs = st.builds(
    Config,
    data=st.builds(
        DataSection, texts, texts, texts, texts, texts, st.lists(texts, max_size=3).map(tuple)
    ),
    utility=st.builds(
        UtilitySection, texts, texts, texts, st.floats(0, 1), st.none() | st.floats(-1e150, 1e150)
    ),
    values=st.builds(
        sections.ValuesSection,
        st.lists(texts, min_size=1, max_size=3).map(tuple),
        st.none() | st.integers(1, 99),
        st.integers(1, 9),
        st.integers(0),
    ),
    limits=st.builds(LimitsSection, st.none() | st.integers(1, 99), texts, texts),
    history=st.builds(sections.HistorySection, st.lists(texts, max_size=2).map(tuple)),
    machine=st.builds(MachineSection, st.integers(-1, 4), texts, texts, st.booleans()),
)
PLAIN = Config(DataSection("/d.csv", "owner", "y"), UtilitySection(holdout=0.25))


@given(configs)
def test_what_is_written_is_read(config):
    assert loads(dumps(config), "it") == config
    assert tomllib.loads(dumps(config))["data"]["owner"] == config.data.owner


def test_a_file_that_was_edited_badly_is_named():
    for old, new, complaint in (
        ("version = 1", "version = 2", "it has version 2, this dupre knows version 1"),
        ("version = 1", "", "it has version None"),
        ("version = 1", "version =", "it is not TOML"),
        ("seed = 0", 'seed = "0"', r"seed in \[values\] of it is '0', which is of the wrong type"),
        ("seed = 0", "seed = true", "seed in .* is True, which is of the wrong type"),
        ("seed = 0", "sed = 0", "sed is not known in .* .did you mean 'seed'"),
        ("[limits]", "[limit]", "limit is not known in it .did you mean 'limits'"),
        ('owner = "owner"', "", r"\[data\] of it is not complete: .*'owner'"),
        ('["shapley"]', "[1]", "semivalues in .* of the wrong type"),
        ('["shapley"]', "[]", "semivalues in .* names none"),
        ("holdout = 0.25", "holdout = nan", "holdout in .* is nan, expected 0 to 1"),
        ("jobs = 1", "jobs = -2", "jobs in .* is -2, expected -1 to"),
        ('path = "/d.csv"', r'path = "a\u0000"', "path in .* holds a zero byte"),
    ):
        text = dumps(PLAIN)
        assert old in text
        with pytest.raises(InputError, match=complaint):
            loads(text.replace(old, new, 1), "it")
        whole = text.replace("holdout = 0.25", "holdout = 0")  # may stand for a float
        assert loads(whole, "it").utility.holdout == 0.0


ODD = ["nan", "-inf", "1e999", "-1", f"1{'0' * 400}", f"1{'0' * 5000}", "true", '""', '"\\u0000"']
ODD += [
    *('"9e999s"', '"beta:nan,0"', '"x:y"', "[]", "[[]]", "{}", "{a = 1}", "1979-05-27"),
    *("[" * 2000,),
]


@given(st.data())
def test_a_changed_file_is_refused_or_its_options_are_known(data):
    lines = dumps(replace(PLAIN, payment=sections.PaymentSection(5.0))).splitlines()
    where = data.draw(st.integers(0, len(lines) - 1))
    key, _, value = lines[where].partition(" = ")
    new = st.sampled_from(ODD).map(lambda odd: f"{key} = {odd}") | st.sampled_from(["", value])
    lines[where] = data.draw(new | st.text(st.characters(exclude_categories=["Cs"]), max_size=5))
    with suppress(InputError):  # and nothing else
        config = loads("\n".join(lines), "it")
        parse_options(config)
        read_logo(config.page.logo)


def test_a_conflict_says_what_differs_and_changes_that_are_none_are_none():
    other = Config(DataSection("/d.csv", "owner", "z"), UtilitySection(holdout=0.25))
    assert PLAIN.conflict(other) == "target 'y', not 'z'"
    model = Config(PLAIN.data, UtilitySection(model="forest", holdout=0.25))
    assert PLAIN.conflict(model) == "model (not set), not 'forest'"
    other = Config(PLAIN.data, PLAIN.utility, limits=LimitsSection(9), machine=MachineSection(2))
    assert PLAIN.conflict(other) == ""

    changed = sections.with_changes(LimitsSection(9, "ranking"), budget=None, time="2h")
    assert changed == LimitsSection(9, "ranking", "2h")
    twice = PLAIN.after("dupre value").after("dupre resume").after("dupre resume")
    assert twice.history.commands == ("dupre value", "dupre resume")
    assert PLAIN.conflict(twice) == ""
