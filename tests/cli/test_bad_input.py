"""What people bring by mistake, and what the command says to it before anything is trained."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dupre.cli import app
from dupre.tables.read import name_of
from dupre.training import dask


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good().to_csv("good.csv", index=False)
    return tmp_path


def good(rows=60):
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows)
    return pd.DataFrame(
        {
            "x": x.round(3),
            "z": rng.normal(size=rows).round(3),
            "who": [f"owner {i % 3}" for i in range(rows)],
            "y": np.where(x > 0, "yes", "no"),
        }
    )


@pytest.fixture
def dupre(place, monkeypatch, capsys):
    """Runs the command in this process; its exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dupre", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            app.main()
        found = capsys.readouterr()
        return end.value.code or 0, found.out, found.err

    return run


def written(frame, name="data.csv", **how):
    frame.to_csv(name, index=False, **how)
    return name


def nothing():
    open("data.csv", "w").close()
    return "data.csv"


def latin():
    good().assign(city="Zürich").to_csv("data.csv", index=False, encoding="latin-1")
    return "data.csv"


def holed():
    frame = good()
    frame.loc[4, "y"] = None
    return written(frame)


REFUSED = {
    "missing file": (lambda: "god.csv", [], "god.csv.*did you mean 'good.csv'"),
    "0 bytes": (nothing, [], "data.csv.* is empty"),
    "encoding": (latin, [], "(?s)UTF-8"),
    "delimiter": (lambda: written(good(), sep=";"), [], "--delimiter ';'"),
    "owner column": (lambda: "good.csv", ["--owner", "Who "], "did you mean 'who'"),
    "target column": (lambda: "good.csv", ["--target", "yy"], "did you mean 'y'"),
    "target with gaps": (holed, [], "1 of 60 rows.*line 6"),
    "one owner": (lambda: written(good().assign(who="me")), [], "one owner|at least two owners"),
    "numbers as owners": (lambda: "good.csv", ["--owner", "x"], "is it the owner column"),
    "a row, an owner": (
        lambda: written(good().assign(who=[f"o{i}" for i in range(60)])),
        [],
        "60 different values in 60 rows",
    ),
    "nothing to learn from": (
        lambda: written(good().assign(x=1, z="same")),
        [],
        "no column is left.*the same in every row",
    ),
    "model": (lambda: "good.csv", ["--model", "forrest"], "did you mean 'forest'"),
    "model for numbers": (
        lambda: written(good().assign(y=np.linspace(0, 1, 60))),
        ["--model", "logistic"],
        "use ridge",
    ),
    "module": (lambda: "good.csv", ["--model", "my_model:build"], "no module 'my_model'"),
    "metric": (lambda: "good.csv", ["--metric", "acuracy"], "did you mean 'accuracy'"),
    "semivalue": (lambda: "good.csv", ["--semivalue", "shaply"], "did you mean 'shapley'"),
    "end": (lambda: "good.csv", ["--until", "soon"], "or ranking"),
    "time": (lambda: "good.csv", ["--time", "2"], "90s, 30m, 2h"),
    "timeout": (lambda: "good.csv", ["--timeout", "soon"], "--timeout 'soon' is no duration"),
    "holdout": (lambda: "good.csv", ["--holdout", "1.5"], "between 0 and 1"),
    "both": (lambda: "good.csv", ["--validation", "good.csv", "--holdout", "0.2"], "not both"),
    "task": (lambda: "good.csv", ["--task", "regresion"], "'classification' or 'regression'"),
    "jobs": (lambda: "good.csv", ["--jobs", "0"], "--jobs must be 1 or more"),
    "drop": (lambda: "good.csv", ["--drop", "zz"], "cannot drop 'zz'"),
    "run": (lambda: "good.csv", ["--run", "good.csv"], "run directory 'good.csv' cannot be made"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_it_is_refused_in_a_line_with_the_way_out(kind, dupre, place):
    make, options, words = REFUSED[kind]
    roles = [] if "--owner" in options else ["--owner", "who"]
    roles += [] if "--target" in options else ["--target", "y"]
    data = make()
    before = sorted(path.name for path in place.iterdir())
    code, out, err = dupre("value", data, *roles, *options)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"Error: [^\n]+\n", err), err
    assert re.search(words, err), err
    assert sorted(path.name for path in place.iterdir()) == before


def test_classes_that_nobody_can_learn_are_named(dupre):
    other = good().assign(y="maybe")
    other.to_csv("validation.csv", index=False)
    roles = ("--owner", "who", "--target", "y", "--validation", "validation.csv")
    code, _, err = dupre("value", "good.csv", *roles)
    assert code == 2
    assert "'maybe' (60 rows)" in err


def test_an_owner_with_one_row_keeps_it_and_the_plan_says_so(dupre):
    frame = good()
    frame.loc[0, "who"] = "single"
    written(frame)
    code, out, err = dupre("value", "data.csv", "--owner", "who", "--target", "y", "--budget", 4)
    assert code == 0
    assert "none from single: too few rows" in err
    assert re.search(r"^single +1 ", out, flags=re.MULTILINE)


def test_dates_texts_and_constants_are_used_or_named(dupre):
    frame = good().assign(
        day=pd.date_range("2024-01-01", periods=60).astype(str),
        remark=[f"remark {i}" for i in range(60)],
        same=1,
    )
    written(frame)
    code, _, err = dupre("value", "data.csv", "--owner", "who", "--target", "y", "--budget", 4)
    assert code == 0
    assert "dates (1)" in err
    assert "left out: remark (60 different texts in 60 rows)" in err
    assert "left out: same (the same in every row)" in err


def test_a_run_directory_of_another_version_is_named(dupre, place):
    roles = ("--owner", "who", "--target", "y", "--budget", 4, "--run", "run")
    assert dupre("value", "good.csv", *roles)[0] == 0
    config = place / "run/config.toml"
    config.write_text(config.read_text().replace("version = 1", "version = 99"))
    for verb in (("show", "run"), ("resume", "run"), ("value", "good.csv", *roles)):
        code, out, err = dupre(*verb)
        assert (code, out) == (2, "")
        assert "has version 99, this dupre knows version 1" in err


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "feather", "xlsx", "csv.gz", "directory"])
def test_every_kind_of_table_gives_the_same_values(kind, dupre, place):
    frame = good(30)
    names = {"directory": "parts", "csv.gz": "data.csv.gz"}
    data = names.get(kind, f"data.{kind}")
    if kind == "directory":
        (place / "parts").mkdir()
        for who, part in frame.groupby("who"):
            part.drop(columns="who").to_csv(f"parts/{who}.csv", index=False)
        frame = frame.sort_values("who", kind="stable")
    elif kind == "jsonl":
        frame.to_json(data, orient="records", lines=True)
    elif kind == "xlsx":
        frame.to_excel(data, index=False)
    elif kind == "csv.gz":
        frame.to_csv(data, index=False)
    else:
        getattr(frame, f"to_{kind}")(data)
    frame.to_csv("same.csv", index=False)
    roles = ("--owner", "who", "--target", "y", "--budget", 3)
    found = dupre("value", data, *roles, "--run", "one")
    expected = dupre("value", "same.csv", *roles, "--run", "two")
    assert found[:2] == expected[:2]
    assert found[0] == 0


def test_a_question_asked_on_resume_replaces_the_one_before(dupre):
    four = [f"owner {i % 4}" for i in range(60)]  # the first design of three is everything
    good().assign(who=four).to_csv("four.csv", index=False)
    roles = ("--owner", "who", "--target", "y", "--run", "run")
    assert dupre("value", "four.csv", *roles, "--until", "5")[0] == 0
    _, _, err = dupre("resume", "run", "--budget", "15")
    assert "15 of 15 possible; known already: 9\n" in err
    assert "until" not in err
    _, out, err = dupre("resume", "run", "--until", "ranking")
    assert "as many of 15 as it takes, until the ranking is settled" in err
    assert "15 of 15 possible coalitions evaluated" in out
    assert "Go on with" not in err  # nothing is left
    _, _, err = dupre("resume", "run")
    assert "until the ranking is settled" in err


def test_data_and_validation_may_move(dupre, place):
    good().iloc[:20].to_csv("validation.csv", index=False)
    roles = ("--owner", "who", "--target", "y", "--run", "run", "--budget", "4")
    assert dupre("value", "good.csv", *roles, "--validation", "validation.csv")[0] == 0
    (place / "moved").mkdir()
    for name in ("good.csv", "validation.csv"):
        (place / name).rename(place / "moved" / name)
    code, _, err = dupre("resume", "run", "--budget", "5")
    assert code == 2
    assert "good.csv" in err
    moved = ("--data", "moved/good.csv", "--validation", "moved/validation.csv")
    assert dupre("resume", "run", "--budget", "5", *moved)[0] == 0
    assert dupre("predict", "run", "--members", "owner 0")[0] == 0


def test_validation_rows_that_are_trained_on_are_named_wherever_values_are(dupre, place):
    good().assign(z=lambda frame: frame["z"] * 1.0).to_csv("validation.csv", index=False)
    roles = ("--owner", "who", "--target", "y", "--run", "run", "--budget", "4")
    _, out, err = dupre("value", "good.csv", *roles, "--validation", "validation.csv")
    told = "60 of the 60 validation rows are also among the rows to train on"
    for text in (out, err, (place / "run/report.html").read_text()):
        assert told in text
    assert told in dupre("show", "run", "--json")[1]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("good.csv", "good"),
        ("data/*.csv", "data"),
        ("./", "somewhere"),
        ("a/b.csv.gz", "b"),
        ("a/../x.parquet", "x"),
        ("/*.csv", "data"),
    ],
)
def test_a_run_is_named_after_its_data(data, name, tmp_path, monkeypatch):
    (tmp_path / "somewhere").mkdir()
    monkeypatch.chdir(tmp_path / "somewhere")
    assert name_of(data) == name


def test_what_the_user_typed_is_not_translated(dupre):
    _, _, err = dupre("value", "metric=auc.csv", "--owner", "who", "--target", "y")
    assert "metric=auc.csv" in err


def test_nothing_that_moves_a_terminal_is_printed(dupre):
    written(good().rename(columns={"y": "y\x1b[2J"}))
    _, out, err = dupre(
        "value", "data.csv", "--owner", "who", "--target", "y\x1b[2J", "--budget", 4
    )
    assert "\x1b" not in out + err
    assert "y\\x1b[2J" in err


def test_the_demonstration_overwrites_nothing(dupre, place):
    (place / "mine").mkdir()
    (place / "mine/validation.csv").write_text("precious")
    code, _, err = dupre("demo", "--run", "mine")
    assert code == 2
    assert "'mine' exists and is no demonstration" in err
    assert (place / "mine/validation.csv").read_text() == "precious"


def test_names_with_commas_can_be_asked_for(dupre):
    written(good().replace({"who": {"owner 0": "Smith, J"}}))
    roles = ("--owner", "who", "--target", "y", "--run", "run", "--budget", "4")
    assert dupre("value", "data.csv", *roles)[0] == 0
    for text in ("Smith, J", '["Smith, J", "owner 1"]'):
        code, out, _ = dupre("predict", "run", "--members", text)
        assert code == 0
        assert out.startswith("{Smith, J")
    code, _, err = dupre("predict", "run", "--members", " ,")
    assert code == 2
    assert "names no owner" in err


COALITIONS = ('["owner 0", "owner 1", "owner 2"]', '["owner 0"]', '["owner 1"]')


@pytest.fixture
def asked(dupre, place):
    """A run of trainings done elsewhere with two recorded."""
    roles = ("--owner", "who", "--target", "y", "--empty", "0.5", "--run", "ask")
    assert dupre("init", "good.csv", *roles)[0] == 0
    sheet(place / "first.csv", [(COALITIONS[0], 0.9), (COALITIONS[1], 0.7)])
    assert dupre("record", "ask", "first.csv")[0] == 0
    return dupre


def sheet(path, rows, columns=("coalition", "utility")):
    frame = pd.DataFrame(rows, columns=list(columns))
    kind = path.suffix
    if kind == ".xlsx":
        frame.to_excel(path, index=False)
    elif kind == ".jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        frame.to_csv(path, index=False, sep={".tsv": "\t"}.get(kind, ","))
    return path.name


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(COALITIONS[0], 7.0)], "7.0 is given for .*, but 0.9 is recorded; .* with --replace"),
        ([('["Zoe"]', 1.0)], "unknown owner 'Zoe'"),
        ([(COALITIONS[2], None)], "has no utility yet; fill in that column"),
        ([(COALITIONS[2], 0.6), (COALITIONS[2], 0.7)], "stands twice in results.csv"),
        ([(COALITIONS[2], "0,6")], "is '0,6'; expected a number such as 0.91"),
        ([(COALITIONS[2], "inf")], "finite"),
        ([("owner 1", 0.6)], "a coalition is a JSON list"),
        ([("[]", 0.6)], "never recorded: its utility is stated by --empty"),
    ],
)
def test_results_that_cannot_be_meant_are_refused_and_nothing_is_taken(asked, place, rows, words):
    before = asked("show", "ask")[1]
    sheet(place / "results.csv", [*rows, ('["owner 2"]', 0.8)][: 1 if rows[0][1] is None else 9])
    code, out, err = asked("record", "ask", "results.csv")
    assert (code, out) == (2, "")
    assert re.search(words, err), err
    assert asked("show", "ask")[1] == before


def test_a_wrong_utility_can_be_put_right(asked, place):
    sheet(place / "right.csv", [(COALITIONS[0], 0.8)])
    code, out, err = asked("record", "ask", "right.csv", "--replace")
    assert code == 0
    assert "New: 0. Replaced: 1. In all: 2." in err
    assert "u(all owners) = 0.8" in out
    sheet(place / "lost.csv", [(COALITIONS[0], None, "lost")], ("coalition", "utility", "failure"))
    _, out, _ = asked("record", "ask", "lost.csv", "--replace")
    assert "Failed: 1 of 2 evaluations" in out


@pytest.mark.parametrize("name", ["results.xlsx", "results.tsv", "results.jsonl"])
def test_results_may_come_from_a_spreadsheet(asked, place, name):
    sheet(place / name, [(COALITIONS[2], 0.123456789012345)])
    code, _, err = asked("record", "ask", name)
    assert (code, err) == (
        0,
        "Read: 1 coalitions, 0 of them failed. New: 1. Known before: 0. In all: 3.\n",
    )
    told = json.loads(asked("predict", "ask", "--members", "owner 1", "--json")[1])
    assert told[0]["utility"] == 0.123456789012345


def test_repeated_trainings_are_numbered(asked, place):
    columns = ("coalition", "utility", "repeat")
    sheet(place / "results.csv", [(COALITIONS[2], 0.6, 0), (COALITIONS[2], 0.8, 1)], columns)
    assert asked("record", "ask", "results.csv")[0] == 0
    assert "0.7, as evaluated" in asked("predict", "ask", "--members", "owner 1")[1]


def test_the_delimiter_of_results_is_suggested(asked, place):
    (place / "results.csv").write_text("coalition;utility\n[];1\n")
    assert "--delimiter ';'" in asked("record", "ask", "results.csv")[2]


@pytest.fixture
def valued(dupre, place):
    roles = ("--owner", "who", "--target", "y", "--run", "run", "--budget", "5")
    assert dupre("value", "good.csv", *roles)[0] == 0
    return dupre


def test_a_lost_store_does_not_replace_a_good_result(valued, place):
    before = valued("show", "run")[1]
    (place / "run/store.sqlite").unlink()
    code, _, err = valued("resume", "run", "--budget", "+1")
    assert code == 2
    assert "is of 5 trainings, of which 0 are valid now" in err
    assert valued("show", "run")[1] == before
    assert valued("resume", "run", "--budget", "+1", "--accept-changes")[0] == 0
    assert "1 of 7 possible coalitions" in valued("show", "run")[1]


def change_owner_1():
    frame = good()
    frame.loc[frame["who"] == "owner 1", "x"] += 1
    frame.to_csv("good.csv", index=False)


def test_changed_rows_do_not_replace_a_good_result_unasked(dupre, place):
    good(20).to_csv("validation.csv", index=False)
    roles = ("--owner", "who", "--target", "y", "--run", "run", "--budget", "5")
    assert dupre("value", "good.csv", *roles, "--validation", "validation.csv")[0] == 0
    change_owner_1()
    code, _, err = dupre("resume", "run")
    assert code == 2
    assert "--accept-changes" in err
    code, out, _ = dupre("resume", "run", "--accept-changes")
    assert code == 0
    assert "stored evaluations, of rows changed since then" in out


def test_trainings_scored_on_other_rows_are_never_mixed(valued, place):
    change_owner_1()  # some of the rows held out are among them
    for options in ([], ["--accept-changes"]):
        code, _, err = valued("resume", "run", *options)
        assert code == 2
        assert "validation data" in err
    assert "cannot be mixed with new ones" in err


def test_a_damaged_result_is_made_anew(valued, place):
    before = valued("show", "run")[1]
    (place / "run/result.json").write_text("{}")
    assert "`dupre resume run` makes it anew" in valued("show", "run")[2]
    assert valued("resume", "run")[1] == before


def test_failures_that_were_skipped_can_be_tried_again(dupre, place):
    (place / "moody_model.py").write_text(
        "from pathlib import Path\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "class Moody(LogisticRegression):\n"
        "    def fit(self, X, y):\n"
        "        if Path('bad day').exists() and len(X) < 20: raise OSError('not today')\n"
        "        return super().fit(X, y)\n"
    )
    (place / "bad day").touch()
    roles = ("--owner", "who", "--target", "y", "--run", "run", "--budget", "7")
    model = ("--model", "moody_model:Moody", "--skip-failures")
    assert "Failed: 3 of 7" in dupre("value", "good.csv", *roles, *model)[1]
    (place / "bad day").unlink()
    assert "Failed: 3 of 7" in dupre("resume", "run")[1]
    _, out, err = dupre("resume", "run", "--retry-failures")
    assert "known already: 4" in err
    assert "Exact: every coalition that counts was evaluated." in out


def test_a_run_done_elsewhere_may_move_and_notices_changed_rows(asked, place):
    (place / "good.csv").rename(place / "moved.csv")
    assert "say where they are with --data" in asked("suggest", "ask")[2]
    assert asked("suggest", "ask", "--data", "moved.csv")[0] == 0
    sheet(place / "more.csv", [(COALITIONS[2], 0.6)])
    assert asked("record", "ask", "more.csv", "--data", "moved.csv")[0] == 0
    assert asked("suggest", "ask")[0] == 0
    (place / "moved.csv").rename(place / "good.csv")
    change_owner_1()
    sheet(place / "last.csv", [('["owner 2"]', 0.6)])
    code, _, err = asked("record", "ask", "last.csv", "--data", "good.csv")
    assert code == 2
    assert "is of 3 trainings, of which 1 are valid now" in err
    _, out, _ = asked("record", "ask", "last.csv", "--data", "good.csv", "--accept-changes")
    assert "Not used: 2 stored evaluations, of rows changed since then." in out
    page = (place / "ask/report.html").read_text()
    assert "dupre init good.csv" in page
    assert "dupre record ask more.csv --data moved.csv" in page


def test_a_mended_model_can_keep_its_trainings(dupre, place):
    code = "from sklearn.tree import DecisionTreeClassifier\nclass Tree(DecisionTreeClassifier):\n"
    (place / "tree_model.py").write_text(f"{code}    depth = 1\n")
    roles = ("--owner", "who", "--target", "y", "--run", "run", "--budget", "4")
    how = [sys.executable, "-m", "dupre.cli.app"]
    run = partial(subprocess.run, cwd=place, capture_output=True, text=True, check=False)
    model = ("--model", "tree_model:Tree")
    assert run([*how, "value", "good.csv", *roles, *model]).returncode == 0
    (place / "tree_model.py").write_text(f"{code}    depth = 2\n")
    refused = run([*how, "resume", "run", "--budget", "+1"])
    assert refused.returncode == 2
    assert "`dupre resume run` with --accept-changes" in refused.stderr
    kept = run([*how, "resume", "run", "--budget", "+1", "--accept-changes"])
    assert "5 of 7 possible; known already: 4" in kept.stderr


def test_a_cluster_that_did_not_answer_is_not_remembered(valued, place, monkeypatch):
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.5)
    before = (place / "run/config.toml").read_text()
    assert "no Dask scheduler answers" in valued("resume", "run", "--dask", "tcp://127.0.0.1:9")[2]
    assert (place / "run/config.toml").read_text() == before


def test_what_models_print_is_no_part_of_the_answer(dupre, place):
    (place / "loud_model.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "class Loud(LogisticRegression):\n"
        "    def fit(self, X, y):\n"
        "        print('fitting', flush=True)\n"
        "        return super().fit(X, y)\n"
    )
    roles = ("--owner", "who", "--target", "y", "--budget", "4", "--model", "loud_model:Loud")
    _, out, err = dupre("value", "good.csv", *roles, "--json")
    assert json.loads(out)["format"] == "dupre result"
    assert "fitting" in err


def test_the_page_tells_every_command_and_what_utility_is(valued, place):
    assert valued("resume", "run", "--budget", "+1")[0] == 0
    page = (place / "run/report.html").read_text()
    for words in (
        "dupre value good.csv --owner who --target y --run run --budget 5",
        "dupre resume run --budget +1",
        "Utility is the score (accuracy) on 15 validation rows of a model that predicts y.",
    ):
        assert words in page


def test_commands_that_are_printed_can_be_typed(dupre):
    roles = ("--owner", "who", "--target", "y", "--budget", "3", "--run", "my run")
    assert (
        "Go on with: dupre resume 'my run' --budget +3\n" in dupre("value", "good.csv", *roles)[2]
    )


def test_each_file_may_have_its_own_delimiter(dupre):
    written(good(), sep=";")
    good(20).to_csv("validation.csv", index=False)
    roles = ("--owner", "who", "--target", "y", "--budget", "3", "--delimiter", ";")
    assert dupre("value", "data.csv", *roles, "--validation", "validation.csv")[0] == 0


def test_owners_that_may_be_one_are_named(dupre):
    written(good().replace({"who": {"owner 1": "Owner 0"}}))
    roles = ("--owner", "who", "--target", "y", "--budget", "3")
    _, out, err = dupre("value", "data.csv", *roles)
    assert "  beware      Owner 0 and owner 0 are taken for two owners.\n" in err
    assert "Beware: Owner 0 and owner 0 are taken for two owners.\n" in out


def test_a_run_with_a_model_of_ones_own_goes_on_from_anywhere(dupre, place, monkeypatch):
    (place / "my_tree.py").write_text("from sklearn.tree import DecisionTreeClassifier as Tree\n")
    roles = ("--owner", "who", "--target", "y", "--budget", "3", "--model", "my_tree.py:Tree")
    assert dupre("value", "good.csv", *roles, "--run", "run")[0] == 0
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    assert dupre("resume", place / "run", "--budget", "+1")[0] == 0


def test_asking_again_gives_the_same_answer_and_other_verbs_send_on(asked):
    first = asked("suggest", "ask", "-n", "2")[1]
    assert asked("suggest", "ask", "-n", "2")[1] == first
    code, _, err = asked("resume", "ask")
    assert code == 2
    assert "use `dupre suggest ask` and `dupre record ask FILE`" in err


def test_nothing_is_predicted_from_nothing(dupre):
    roles = ("--owner", "who", "--target", "y", "--empty", "0.5", "--run", "ask")
    assert dupre("init", "good.csv", *roles)[0] == 0
    code, _, err = dupre("predict", "ask", "--members", "owner 1")
    assert code == 2
    assert "no utility to learn from has been recorded; see `dupre suggest" in err
