import tomllib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dupre import InputError
from dupre.report.document import read_logo
from dupre.runs.parse import parse_choices
from dupre.spec import (
    Data,
    History,
    Limits,
    Machine,
    Payment,
    Spec,
    Utility,
    Values,
    dumps,
    loads,
    spec_of,
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
some = st.none() | texts
specs = st.builds(
    Spec,
    data=st.builds(
        Data, texts, texts, texts, some, st.lists(texts, max_size=3).map(tuple), delimiter=some
    ),
    utility=st.builds(
        Utility,
        some,
        some,
        st.just(""),
        holdout=st.none() | st.floats(0, 1),
        empty=st.none() | st.floats(-1e150, 1e150),
    ),
    values=st.builds(
        Values,
        st.lists(texts, min_size=1, max_size=3).map(tuple),
        st.none() | st.integers(1, 99),
        st.integers(1, 9),
        st.integers(0),
        texts,
    ),
    limits=st.builds(Limits, st.none() | st.integers(1, 99), some, some),
    history=st.builds(History, st.lists(texts, max_size=2).map(tuple)),
    machine=st.builds(Machine, st.sampled_from([-1, 1, 4]), timeout=some),
)
PLAIN = spec_of(path="/d.csv", owner="owner", target="y", holdout=0.25, amount=5.0)


@given(specs)
def test_what_is_written_is_read(spec):
    assert loads(dumps(spec), "it") == spec
    assert tomllib.loads(dumps(spec))["data"]["owner"] == spec.data.owner


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("version = 2", "version = 1", "it has version 1, this dupre knows version 2; use the"),
        ("version = 2", "version =", "it is not TOML"),
        ("seed = 0", 'seed = "0"', r"seed in \[values\] of it is '0', expected `int`, got `str`"),
        ("seed = 0", "seed = true", "seed in .* is True, expected `int`, got `bool`"),
        ("seed = 0", "sed = 0", r"sed is not known in \[values\] of it .did you mean 'seed'"),
        ("[limits]", "[limit]", "limit is not known in it .did you mean 'limits'"),
        ('owner = "owner"', "", r"\[data\] of it: object missing required field `owner`"),
        ('"shapley"', "1", r"semivalues in .* is \[1\], expected `str`, got `int`"),
        ('"shapley",\n', "", r"semivalues in .* is \[\], expected `array` of length >= 1"),
        ("holdout = 0.25", "holdout = nan", "holdout in .* is nan, expected `float` >= 0.0"),
        ("holdout = 0.25", "holdout = 2", "holdout in .* is 2, expected `float` <= 1.0"),
        ("amount = 5.0", "amount = -1", r"\[payment\] of it: --amount must be above zero, got -1"),
        ("amount = 5.0", "amount = 0", "--amount must be above zero, got 0"),
        ("amount = 5.0", "amount = nan", "--amount must be above zero, got nan"),
        ("jobs = 1", "jobs = -2", r"\[machine\] of it: --jobs must be 1 or more, or -1 for one"),
        ('path = "/d.csv"', r'path = "a\u0000"', "path in .*, expected `str` matching regex"),
    ],
)
def test_a_file_that_was_edited_badly_is_named(old, new, complaint):
    text = dumps(PLAIN)
    assert old in text
    with pytest.raises(InputError, match=complaint):
        loads(text.replace(old, new, 1), "it")


def test_a_file_that_a_person_writes_needs_no_version():
    assert loads(dumps(PLAIN).replace("version = 2", "", 1), "it") == PLAIN


ODD = ["nan", "-inf", "1e999", "-1", f"1{'0' * 400}", f"1{'0' * 5000}", "true", '""', '"\\u0000"']
ODD += [
    *('"9e999s"', '"beta:nan,0"', '"x:y"', "[]", "[[]]", "{}", "{a = 1}", "1979-05-27"),
    *("[" * 2000, "0"),
]


@given(st.data())
def test_a_changed_file_is_refused_or_its_choices_are_known(data):
    lines = dumps(PLAIN).splitlines()
    where = data.draw(st.integers(0, len(lines) - 1))
    key, _, value = lines[where].partition(" = ")
    new = st.sampled_from(ODD).map(lambda odd: f"{key} = {odd}") | st.sampled_from(["", value])
    lines[where] = data.draw(new | st.text(st.characters(exclude_categories=["Cs"]), max_size=5))
    with suppress(InputError):  # and nothing else
        spec = loads("\n".join(lines), "it")
        parse_choices(spec)
        read_logo(spec.page.logo)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": -1}, "--seed is -1, expected `int` >= 0; correct it"),
        ({"budget": 0}, "--budget is 0, expected `int` >= 1"),
        ({"semivalues": []}, "--semivalue is .*length >= 1"),
        ({"prior_mean": 3}, "--prior-mean is 3, expected `str`"),
        ({"jobs": 0}, "^--jobs must be 1 or more, or -1 for one per core, got 0"),
        (
            {"price": "cheap"},
            "^--price must be that of an hour, above zero, such as 1.20/h .*'cheap'",
        ),
        ({"price": "0/h"}, "^--price must be that of an hour, above zero"),
        ({"price": "CHF 1 EUR/h"}, "^--price must be that of an hour, above zero"),
        ({"price": "1.20/day"}, "^--price must be that of an hour, above zero"),
        ({"jobs": 2, "dask": "tcp://127.0.0.1:8786"}, "state --jobs .* or --dask .*, not both"),
        ({"validation": "v.csv"}, "state --validation FILE or --holdout PART, not both"),
    ],
)
def test_an_option_that_cannot_be_meant_is_named_as_the_command_calls_it(options, words):
    with pytest.raises(InputError, match=words):
        PLAIN.change(**options)


def test_a_change_keeps_what_is_none_and_a_conflict_says_what_differs():
    changed = PLAIN.change(budget=9, until="ranking").change(budget=None, time="2h")
    assert changed.limits == Limits(9, "ranking", "2h")
    assert PLAIN.conflict(changed.change(jobs=2)) == ""
    assert changed.without_limits().limits == Limits()
    assert PLAIN.conflict(PLAIN.change(target="z")) == "target 'y', not 'z'"
    assert PLAIN.conflict(PLAIN.change(model="forest")) == "model (not set), not 'forest'"
    assert PLAIN.conflict(PLAIN.change(drop=["a", "b"])) == "drop (none), not a, b"
    folds = spec_of(path="/d.csv", owner="owner", target="y", folds=5)
    default = spec_of(path="/d.csv", owner="owner", target="y")
    told = "folds 10 (the default; 5 above 2,000 rows)"
    assert default.conflict(folds) == f"{told}, not 5"
    assert folds.conflict(default) == f"folds 5, not {told.removeprefix('folds ')}"
    assert PLAIN.conflict(folds) == "holdout 0.25, not (not set)"  # then folds have no default
    assert PLAIN.change(amount=7).payment == Payment(7.0)

    twice = PLAIN.after("dupre value", ("x",)).after("dupre resume", ("x",))
    assert twice.after("dupre resume", ("x",)) == twice
    assert twice.history == History(("dupre value", "dupre resume"), ("x",))
    assert PLAIN.conflict(twice) == ""


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("1.20/h", "1.20 at 1.2/h"),
        ("CHF 1.20/h", "CHF 1.20"),
        ("1.20 CHF / h", "CHF 1.20"),
        ("$3/h", "$ 3.00"),
        (" 1200/h ", "1,200.00 at 1200/h"),
    ],
)
def test_a_price_is_a_number_with_or_without_a_currency(text, hour):
    price = PLAIN.change(price=text).machine.hourly
    assert price.of(3600) == hour
    assert PLAIN.machine.hourly is None
