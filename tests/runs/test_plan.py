"""What is said before anything is trained."""

import re

import numpy as np
import pandas as pd
import pytest

from dupre.runs.owner_changes import OwnerChanges
from dupre.runs.plan import plan
from prepared_runs import ROWS, prepare, prepare_from, table


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_plan_names_the_columns_how_low_a_score_counts_and_what_scoring_costs():
    words = plan(prepare(table()), "run", 0)
    assert "columns     numbers: x\n              categories: k\n              dates: day" in words
    assert "check" not in words
    assert "beware" not in words
    assert "target      y, 2 classes (classification): False, True\n" in words
    classes = np.where(table()["y"], "Yes", np.where(np.arange(ROWS) % 2, "no", "YES"))
    said = plan(prepare(table(y=classes)), "run", 0)
    assert "3 classes (classification): 'YES', 'Yes', 'no'\n" in said
    assert "taken for 2 classes; write them alike if they are one" in said
    many = {f"x{i}": table()["x"] + i for i in range(20)}
    words = plan(prepare(table(**many)), "run", 0)
    assert "numbers: x, x0, x1, x2, x3, x4, x5, x6 and 13 more" in words
    said = plan(prepare(table(who=["a", "b", "c"] * 80)), "run", 0)
    assert "coalitions  all 7, so that nothing is predicted\n" in said
    assert "--budget" not in said
    for owners, rows in ((20, "12 each\n"), (18, "13 to 14 each, half of them at least 13\n")):
        held = {"who": np.arange(ROWS) % owners, "day": 1.0}
        said = plan(prepare(table(**held), validation="t.csv"), "run", 0)
        assert f"{owners} owners, 240 rows to train on, {rows}" in said

    slow = {"metric": "neg_median_absolute_error", "floor": "-2"}
    words = plan(prepare(table(y=table()["x"]), **slow), "run", 0)
    assert "lower scores than -2 count as that (--floor changes it)" in words
    assert "called 200 times more for each model" in words
    assert "called" not in plan(prepare(table()), "run", 0)


def test_models_are_not_given_the_column_of_groups_and_the_plan_says_if_that_of_times(place):
    patients = table(patient=np.arange(ROWS) // 4)
    run = prepare(patients, folds=4, folds_by="patient")
    assert "patient" not in run.column_names
    assert "left out: patient (folds are made by it)\n" in plan(run, "run", 0)
    (place / "piped.py").write_text(
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "model = make_pipeline(LogisticRegression())\n"
    )
    run = prepare(patients, folds=4, folds_by="patient", model="piped.py:model")
    assert "patient" not in run.column_names
    assert prepare(table(), folds=2, folds_by="who").column_names == ["x", "k", "day"]

    by_time, told = {"folds": 4, "folds_in_time": "day"}, "models are given day, too (or --drop it)"
    run = prepare(table(), **by_time)
    assert "day" in run.column_names
    assert f"              {told}\n" in plan(run, "run", 0)
    assert told not in plan(prepare(table(), **by_time, drop=["day"]), "run", 0)
    assert told not in plan(prepare(table()), "run", 0)


def test_a_plan_counts_only_trainings_that_have_a_weight_and_can_be_done_twice():
    alone = {"semivalues": ("loo", "shapley")}
    said = plan(prepare(table(), **alone), "run", 0)
    assert "coalitions  all 5 that count, so that nothing is predicted\n" in said
    assert "5 of them under 2 further deals of the folds, to know what these change" in said
    assert "150 trainings in all" in said
    # All are trained once and 3 twice, or all: the classifier has a seed.
    said = plan(prepare(table(), **alone, folds=4, folds_in_time="day"), "run", 0)
    assert "3 of them twice, or 5 if" in said
    assert "32 to 40 trainings in all" in said
    said = plan(prepare(table(), **alone, folds=4, folds_in_time="day", repeats=2), "run", 0)
    assert "40 trainings in all" in said
    said = plan(prepare(table(), **alone, holdout=0.2), "run", 0)
    assert "5 of them under 2 further splits" in said
    assert "in all" not in said
    said = plan(prepare(table(), **alone, budget=4), "run", 0)
    assert "coalitions  4 of 5 that count\n" in said
    assert "4 trainings are fewer than the 5 most important ones" in said
    said = plan(prepare(table(), **alone, budget=4), "run", 5)
    assert "adds" not in said
    said = plan(prepare(table(), **alone, until="±0.01"), "run", 0)
    assert "coalitions  as many of 5 that count as it takes, until" in said
    core = {"semivalues": ["least-core"]}
    assert "coalitions  all 15, so that" in plan(prepare(table(), **core), "run", 0)
    for budget, words in ((2, "each of them twice (--repeats)"), (4, "3 of them twice, or 4 if")):
        table(x=table()["x"] + 1).to_csv("rows.csv", index=False)
        said = plan(prepare(table(), budget=budget, validation="rows.csv"), "run", 0)
        assert f"coalitions  {budget} of 15 possible\n              {words}" in said


LONG = [f"{p}{i}" for i in range(8) for p in "abcde"]
DOUBTS = {
    "imbalance": (
        table(y=np.arange(ROWS) % 10 == 0),
        {},
        "(?s)beware.*90 % of validation rows are of",
    ),
    "leak": (table(z=table()["y"].map({True: "a", False: "b"})), {}, "beware.*the column z al"),
    "few validation rows": (table(who=LONG * 6), {}, "check .*40 validation .* 40 owners the aver"),
    "small budget": (table(), {"budget": 8}, "check .*8 .* than the 9 most"),
    "percentages": (
        table().replace({"k": {"n": "8 %", "s": "9"}}),
        {},
        "beware .*k is taken for te",
    ),
    "identifier": (table(n=range(ROWS)), {}, r"check .*n: every row has .*out\. \(--drop\)"),
    "misspelt": (table(who=["toyota", "toyouta"] * 120), {}, "check .*toyota and toyouta look"),
    "nobody": (table(who=["a", "null"] * 120), {}, "check .*'null': that is how empty cells are"),
    "numbers": (table(who=["1", "01", "x"] * 80), {}, "check .*'01' and '1' are the same number"),
    "skipped": (table(who=["a", "b", None] * 80), {"skip_empty": True}, "80 without own"),
}


@pytest.mark.parametrize("kind", DOUBTS)
def test_doubts_are_said_before_anything_is_paid(kind):
    frame, sections, words = DOUBTS[kind]
    said = plan(prepare(frame, **sections), "run", 0)
    assert re.search(words, said), said


def test_the_plan_says_how_numbers_and_dates_are_read():
    money = [f"${i},{i % 10}00.5" for i in range(1, ROWS + 1)]
    frame = table(price=money, share=[f"{i / 4} %" for i in range(ROWS)], part=["1 %", "2 %"] * 120)
    frame["met"] = pd.to_datetime(frame["day"]).dt.strftime("%d.%m.%Y")
    said = plan(prepare(frame), "run", 0)
    assert (
        "read: price as $ amounts with thousands by comma, share and part as per cent (12.5 % is "
        "12.5), met as dates, day first\n"
    ) in said
    assert "beware" not in said
    assert "read:" not in plan(prepare(table()), "run", 0)


def test_who_joins_and_who_leaves_is_named_and_so_are_sheets_not_read():
    changes = OwnerChanges(("site 3",), ("old",), valid=4, of=9)
    said = plan(prepare(table()), "run", 9, changes.lines)
    assert "new: site 3\n" in said
    assert "no longer there: old\n" in said
    assert "valid: 4 of 9 trainings of the result before, which is kept in its history" in said
    assert "new: " not in plan(prepare(table()), "run", 9)
    gaps = table(y=np.where(np.arange(ROWS) < 7, None, table()["y"]))
    words = plan(prepare(gaps, skip_empty=True), "run", 0)
    assert words.count("7 without target") == 1

    with pd.ExcelWriter("t.xlsx") as book:
        for name in ("north", "south"):
            table().to_excel(book, sheet_name=name, index=False)
    first, stated = (prepare_from(path="t.xlsx", sheet=sheet) for sheet in (None, "south"))
    assert "of 2 sheets in t.xlsx only 'north' is read, not 'south'" in plan(first, "run", 0)
    assert "sheet" not in plan(stated, "run", 0)


def test_what_a_directory_holds_besides_tables_is_named_unless_it_is_hidden(place):
    (place / "data" / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/c"):
        table().drop(columns="who").to_csv(f"data/{name}.csv", index=False)
    for name in ("notes", "export.dat", "README.md", ".hidden", "~$a.xlsx"):
        (place / "data" / name).write_text("x")
    told = "check       not read: 'README.md', 'export.dat', 'notes', 'sub/'. Directories inside"
    for path, some in (("data", 1), ("data/*", 1), ("data/*.csv", 0), ("data/**/*.csv", 0)):
        said = plan(prepare_from(path=path), "run", 0)
        assert (said.count(told), said.count("not read")) == (some, some)


def test_a_plan_warns_of_a_single_validation_row_and_counts_it_as_one(place):
    table()[:1].assign(x=0.123).to_csv("one.csv", index=False)
    text = plan(prepare(table(), validation="one.csv"), "run", 0)
    assert "1 row of one.csv" in text
    assert "beware      " in text
    assert "1 validation row cannot show how much others would change the values" in text
    assert "1 rows" not in text
    assert "1 validation rows" not in text


def test_a_plan_says_how_long_trainings_take_and_what_that_costs():
    table(x=table()["x"] + 1).to_csv("rows.csv", index=False)
    priced = {"validation": "rows.csv", "price": "CHF 3/h"}
    said = plan(prepare(table(), budget=15, **priced), "run", 5, each=60.0)
    assert "10 more are expected to take about 10 minutes, CHF 0.50\n" in said
    twice = plan(prepare(table(), budget=15, **priced, jobs=2), "run", 5, each=60.0)
    assert "10 more are expected to take about 5 minutes, CHF 0.25\n" in twice
    hour = plan(prepare(table(), **priced, time="4m"), "run", 5, each=60.0)
    assert "about 4 more are expected to fit into the time, CHF 0.20\n" in hour
    alone = plan(prepare(table(), budget=15, validation="rows.csv"), "run", 5, each=60.0)
    assert "about 10 minutes\n" in alone
    for nothing in (None, 1e-3):  # not known, or not worth a word
        assert "expected" not in plan(prepare(table(), budget=15, **priced), "run", 5, each=nothing)
    until = plan(prepare(table(), **priced, until="±0.01"), "run", 5, each=60.0)
    assert "expected" not in until  # as many as it takes
