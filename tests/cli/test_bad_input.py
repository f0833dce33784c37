"""What people bring by mistake, and what the command answers before anything is trained."""

import json
import re
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from commands import refuse, run, write_model
from dupre.runs.directory import RunDirectory
from dupre.tables.read import name_of
from dupre.training import dask

ROLES = ("--owner", "who", "--target", "y")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The current directory, with a good table."""
    monkeypatch.chdir(tmp_path)
    good().to_csv("good.csv", index=False)
    return tmp_path


def page(run="run"):
    """The page of a run."""
    return Path(run, "report.html").read_text()


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


def written(frame, name="data.csv", **how):
    frame.to_csv(name, index=False, **how)
    return name


def value(*options, data="good.csv", budget=4):
    """Run `dupre value` in the directory `run`."""
    return run("value", data, *ROLES, "--budget", budget, "--run", "run", *options)


def changed(**columns):
    return lambda: written(good().assign(**columns))


ODD = good()["x"].astype(object).where(good().index != 3, "?")
REFUSED = {
    "missing file": (lambda: "god.csv", [], "god.csv.*did you mean 'good.csv'"),
    "encoding": (lambda: written(good().assign(c="ü"), encoding="latin-1"), [], "(?s)UTF-8"),
    "delimiter": (lambda: written(good(), sep=";"), [], "state --delimiter ';'"),
    "owner column": (lambda: "good.csv", ["--owner", "Who "], "did you mean 'who'"),
    "text among numbers": (changed(x=ODD), [], r"'\?' in line 5 .* the column out with --drop 'x'"),
    "nothing to learn from": (changed(x=1, z="a"), [], "no column is left.*the same in every row"),
    "model": (lambda: "good.csv", ["--model", "forrest"], "did you mean 'forest'"),
    "semivalue": (lambda: "good.csv", ["--semivalue", "shaply"], "did you mean 'shapley'"),
    "end": (lambda: "good.csv", ["--until", "soon"], "or ranking"),
    "timeout": (lambda: "good.csv", ["--timeout", "soon"], "--timeout 'soon' is no duration"),
    "samples": (lambda: "good.csv", ["--samples", "6"], "estimator regression .* raise --samples"),
    "sheet": (lambda: "good.csv", ["--sheet", "x"], "only .xlsx files have sheets, not 'good.csv'"),
    "texts as numbers": (lambda: "good.csv", ["--task", "regression"], "column 'y' holds 'yes'"),
    "holdout": (lambda: "good.csv", ["--holdout", "1.5"], "--holdout is 1.5, expected .* <= 1"),
    "small holdout": (lambda: "good.csv", ["--holdout", "0.01"], "with --validation FILE"),
    "both": (lambda: "good.csv", ["--validation", "good.csv", "--holdout", "0.2"], "not both"),
    "task": (lambda: "good.csv", ["--task", "regresion"], "'classification' or 'regression'"),
    "empty": (lambda: "good.csv", ["--empty", "nan"], "--empty is nan, expected"),
    "jobs": (lambda: "good.csv", ["--jobs", "0"], "--jobs must be 1 or more"),
    "run": (lambda: "good.csv", ["--run", "good.csv"], "run directory 'good.csv' cannot be made"),
    "classes that nobody can learn": (
        lambda: written(good().assign(y="maybe"), "other.csv") and "good.csv",
        ["--validation", "other.csv"],
        r"'maybe' \(60 rows\)",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_it_is_refused_in_a_line_with_the_way_out(kind, place):
    make, options, words = REFUSED[kind]
    data = make()
    before = sorted(path.name for path in place.iterdir())
    message = refuse("value", data, *ROLES, *options)
    assert re.fullmatch(r"[^\n]+\n", message)
    assert re.search(words, message), message
    assert sorted(path.name for path in place.iterdir()) == before


def test_owners_that_may_be_one_or_have_one_row_are_named():
    frame = good()
    frame.loc[0, "who"] = "single"
    done = value(data=written(frame))
    assert "none from single: too few rows" in done.stderr
    assert re.search(r"^single +1 ", done.stdout, flags=re.MULTILINE)

    data = written(good().replace({"who": {"owner 1": "Owner 0"}}))
    done = run("value", data, *ROLES, "--budget", 3, "--run", "my run")
    assert "Go on with: dupre resume 'my run' --budget +3\n" in done.stderr  # can be typed
    told = "Owner 0 and owner 0 look like one owner, and are taken for 2; write"
    assert f"  check       {told}" in done.stderr
    assert done.stdout.count(told) == 1


@pytest.mark.slow
def test_limits_asked_for_on_resume_replace_those_before():
    four = [f"owner {i % 4}" for i in range(60)]  # the first design of three is everything
    target = good()["y"].mask(np.arange(60) % 4 == 1, "no")  # utilities are more than two numbers
    data = written(good().assign(who=four, y=target))
    run("value", data, *ROLES, "--until", "5", "--run", "run")
    done = run("resume", "run", "--budget", "5")
    assert "none, 13 are known already; resume with --budget +2 adds 2\n" in done.stderr
    assert "Stopped: 13 evaluations are known, more than the budget of 5.\n" in done.stdout
    plan = run("resume", "run", "--budget", "15").stderr
    assert "all 15, so that nothing is predicted; known already: 13\n" in plan
    assert "until" not in plan
    done = run("resume", "run", "--until", "ranking")
    assert "as many of 15 as it takes, until the ranking is settled" in done.stderr
    assert "all 15 possible coalitions evaluated" in done.stdout
    assert "Go on with" not in done.stderr  # nothing is left
    assert "until the ranking is settled" in run("resume", "run").stderr


def test_data_and_validation_may_move_and_have_delimiters_of_their_own(place):
    written(good(20), "validation.csv")
    options = ("--delimiter", ";", "--validation", "validation.csv")
    value(*options, data=written(good(), "good.csv", sep=";"))
    (place / "moved").mkdir()
    for name in ("good.csv", "validation.csv"):
        (place / name).rename(place / "moved" / name)
    message = refuse("resume", "run", "--budget", "5")
    assert "good.csv'; say where they are with --data" in message
    moved = ("--data", "moved/good.csv", "--validation", "moved/validation.csv")
    run("resume", "run", "--budget", "5", *moved)
    run("predict", "run", "--members", "owner 0")


def test_validation_rows_that_are_trained_on_are_named_wherever_values_are():
    good().to_csv("validation.csv", index=False)
    done = value("--validation", "validation.csv")
    told = "60 of the 60 validation rows are also among the rows to train on"
    for text in (done.stdout, done.stderr, page(), run("show", "run", "--json").stdout):
        assert told in text
    assert done.stdout.count(told) == 1


def test_a_run_is_named_after_its_data(place, monkeypatch):
    (place / "somewhere").mkdir()
    monkeypatch.chdir(place / "somewhere")
    data = ["good.csv", "data/*.csv", "./", "a/b.csv.gz", "a/../x.parquet", "/*.csv"]
    assert [name_of(one) for one in data] == ["good", "data", "somewhere", "b", "x", "data"]


def test_nothing_that_moves_a_terminal_is_printed():
    strange = {"owner 0": "\x1b[2J\x9b5m\u202e", "owner 1": "OWNER 2", "owner 2": "x" * 10_000}
    data = written(good().replace({"who": strange}).rename(columns={"y": "y\x1b[2J"}))
    roles = ("--owner", "who", "--target", "y\x1b[2J")
    done = run("value", data, *roles, "--budget", 4, "--run", "run")
    assert "y\\x1b[2J" in done.stderr
    assert "\n\\x1b[2J\\x9b5m\\u202e " in done.stdout
    run("init", data, *roles, "--empty", "0.5", "--run", "ask")
    sheet, lists = run("suggest", "ask"), run("suggest", "ask", "--json")
    for text in (done.stdout, done.stderr, sheet.stdout, lists.stdout):
        assert text.replace("\n", "").isprintable()
    assert max(map(len, (done.stdout + done.stderr).split("\n"))) < 400
    assert strange["owner 0"] in json.loads(lists.stdout)[0]
    (Path("filled.csv")).write_text(sheet.stdout.replace(",\n", ",0.5\n"))
    run("record", "ask", "filled.csv")


def test_the_demonstration_overwrites_nothing(place):
    (place / "mine").mkdir()
    (place / "mine/validation.csv").write_text("precious")
    assert "'mine' exists and is no demonstration" in refuse("demo", "--run", "mine")
    assert (place / "mine/validation.csv").read_text() == "precious"


EVIL = (
    "open('run-by-a-stranger', 'w').close(); from sklearn.tree import DecisionTreeClassifier as M"
)


def test_nothing_of_a_directory_from_elsewhere_is_run_unasked(place):
    value()
    run("init", "good.csv", *ROLES, "--empty", "0.5", "--run", "ask")
    (place / "evil.py").write_text(EVIL)
    config = place / "run/config.toml"
    text = config.read_text().replace("[utility]", '[utility]\nmodel = "evil:M"')
    text = text.replace('kernel = "default"', 'kernel = "evil:K"')
    config.write_text(text.replace("jobs = 1", 'dask = "tcp://127.0.0.1:1"'))
    external = place / "ask/config.toml"
    external.write_text(external.read_text().replace("empty = 0.5", "empty = 0.75"))
    done = place / "run-by-a-stranger"
    for verb in (("predict", "run", "--members", "owner 0"), ("resume", "run", "--dask", "")):
        message = refuse(*verb)
        assert "'run' was not made here: its config.toml would make this command read " in message
        assert "import 'evil:M' and 'evil:K' and connect to 'tcp://127.0.0.1:1'. If" in message
    for verb in (("suggest", "ask"), ("record", "ask", "good.csv")):
        assert "'ask' was not made here" in refuse(*verb)
    run("show", "run")
    run("report", "run")
    run("compare", "run", "owner 0", "owner 1")
    run("pay", "run", "--amount", "100")
    assert "was not made here" in refuse("resume", "run")  # pay has written the configuration
    assert not done.exists()
    run("suggest", "ask", "--trust")
    run("suggest", "ask")  # it is asked once
    assert "evil has no 'K'" in refuse("resume", "run", "--trust")
    assert done.exists()


def test_without_a_home_every_directory_is_asked_about(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert "Note: that this run is trusted cannot be kept" in value().stderr
    assert "was not made here" in refuse("resume", "run")
    run("resume", "run", "--trust")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError))
    assert "was not made here" in refuse("resume", "run")


COALITIONS = ('["owner 0", "owner 1", "owner 2"]', '["owner 0"]', '["owner 1"]')


@pytest.fixture
def recorded(place):
    """A run of trainings done elsewhere, with two recorded."""
    run("init", "good.csv", *ROLES, "--empty", "0.5", "--bounds", "0,9", "--run", "ask")
    run("record", "ask", sheet("first.csv", [(COALITIONS[0], 0.9), (COALITIONS[1], 0.7)]))


def sheet(name, rows, columns=("coalition", "utility")):
    return written(pd.DataFrame(rows, columns=list(columns)), name)


WRONG = [
    ([(COALITIONS[0], 7.0)], "7.0 is given for .*, but 0.9 is recorded; .* with --replace"),
    ([("[];1",)], "--delimiter ';'"),
    ([('["Zoe"]', 1.0)], "unknown owner 'Zoe'"),
    ([(COALITIONS[2], None)], "has no utility yet; fill in that column"),
    ([(COALITIONS[2], 0.6), (COALITIONS[2], 0.7)], "is in results.csv twice"),
    ([(COALITIONS[2], "0,6")], "is '0,6'; expected a number such as 0.91"),
    ([(COALITIONS[2], "inf")], "finite"),
    ([("[owner 1]", 0.6)], "a coalition is a JSON list"),
    ([('["owner 1", "owner 1"]', 0.6)], "names 'owner 1' twice; name it once"),
    ([(COALITIONS[2], 55)], "of {owner 1} is 55, but the bounds of this run are 0 to 9"),
    ([(",", 0.6)], "',' names no owner; expected such as A,C"),
    ([("[]", 0.6)], "got none; for no data, its utility is stated by --empty"),
]


def test_results_that_cannot_be_meant_are_refused_and_nothing_is_taken(recorded):
    before = run("show", "ask").stdout
    for rows, words in WRONG:
        columns = ("coalition", "utility") if len(rows[0]) == 2 else ("coalition;utility",)
        more = [] if rows[0][1:] in ((), (None,)) else [('["owner 2"]', 0.8)]
        sheet("results.csv", [*rows, *more], columns)
        message = refuse("record", "ask", "results.csv")
        assert re.search(words, message), message
    assert run("show", "ask").stdout == before


def test_a_wrong_utility_can_be_corrected(recorded):
    done = run("record", "ask", sheet("right.csv", [(COALITIONS[0], 0.8)]), "--replace")
    assert "New: 0. Replaced: 1. In all: 2." in done.stderr
    assert "u(all owners) = 0.8" in done.stdout
    sheet("lost.csv", [(COALITIONS[0], None, "lost")], ("coalition", "utility", "failure"))
    assert "1 of 2 evaluations failed" in run("record", "ask", "lost.csv", "--replace").stdout


def test_resamples_that_are_not_those_recorded_need_to_replace_them(recorded):
    columns = ("coalition", "utility", "resampled")
    utilities = zip(COALITIONS[:2], [0.9, 0.7], strict=True)
    rows = [(name, utility, str([0.6, 0.7] * 10)) for name, utility in utilities]
    sheet("filled.csv", rows, columns)
    message = refuse("record", "ask", "filled.csv")
    assert "resamples of the validation rows are not recorded; add --replace" in message
    assert "Replaced: 2." in run("record", "ask", "filled.csv", "--replace").stderr
    assert RunDirectory(Path("ask")).results()[0].uncertainty.validation is not None
    assert "Known before: 2." in run("record", "ask", "filled.csv").stderr
    sheet("changed.csv", [(COALITIONS[0], 0.9, str([0.5, 0.7] * 10))], columns)
    message = refuse("record", "ask", "changed.csv")
    assert "rows differ from those recorded; add --replace" in message
    run("record", "ask", sheet("plain.csv", [(COALITIONS[0], 0.9)]))  # says nothing of resamples


def test_coalitions_may_be_written_as_for_predict_with_numbered_repeats(recorded):
    run("record", "ask", sheet("more.csv", [("owner 1", 0.7), ("owner 2, owner 0", 0.8)]))
    for members, told in (("owner 1", "0.7"), ("owner 0,owner 2", "0.8")):
        assert f"{told}, as evaluated" in run("predict", "ask", "--members", members).stdout
    columns, both = ("coalition", "utility", "repeat"), '["owner 0", "owner 1"]'
    run("record", "ask", sheet("results.csv", [(both, 0.6, 0), (both, 0.8, 1)], columns))
    assert "0.7, as evaluated" in run("predict", "ask", "--members", "owner 0,owner 1").stdout


def test_a_lost_store_does_not_replace_a_good_result_and_a_damaged_one_is_made_again(place):
    value(budget=5)
    before = run("show", "run").stdout
    (place / "run/store.sqlite").unlink()
    message = refuse("resume", "run", "--budget", "+1")
    assert "is of 5 trainings, of which 0 are valid now: the store has changed." in message
    assert message.endswith("with `dupre value ... --run OTHER`\n")
    assert run("show", "run").stdout == before
    run("resume", "run", "--budget", "+1", "--accept-rows")
    assert "1 of 7 possible coalitions" in run("show", "run").stdout
    before = value().stdout
    (place / "run/result.json").write_text("{}")
    assert "`dupre resume run` makes it again" in refuse("show", "run")
    assert run("resume", "run").stdout == before


def change_owner_1():
    frame = good()
    frame.loc[frame["who"] == "owner 1", "x"] += 1
    frame.to_csv("good.csv", index=False)


def test_changed_rows_do_not_replace_a_good_result_unasked():
    good(20).to_csv("validation.csv", index=False)
    value("--validation", "validation.csv", budget=5)
    left = good()[good()["who"] != "owner 1"].copy()
    message = refuse("resume", "run", "--data", written(left))
    assert "are valid now: the data no longer hold 'owner 1'. To replace" in message
    left.loc[left["who"] == "owner 2", "x"] += 1
    message = refuse("resume", "run", "--data", written(left))
    assert "hold 'owner 1' and the rows of 'owner 2' are no longer those of then" in message
    change_owner_1()
    message = refuse("resume", "run")
    assert "are valid now: the rows of 'owner 1' are no longer those of then." in message
    assert "add --accept-rows; to keep it, begin a run in another directory" in message
    done = run("resume", "run", "--accept-rows")
    assert "stored evaluations, repeats included, of rows changed since then" in done.stdout
    for told in (done, run("resume", "run", "--budget", "+1")):
        assert (
            "Beware: Accepted: without 3 coalitions of the result before, whose rows" in told.stdout
        )


def test_owners_are_found_without_the_blanks_at_the_ends_of_their_names(place):
    good().replace({"who": {"owner 1": "owner 1 "}}).to_csv("good.csv", index=False)
    value(budget=7)
    assert "is worth more than" in run("compare", "run", "owner 1", "owner 2").stdout
    assert "owner 1" in run("predict", "run", "--members", "owner 1,owner 0").stdout
    told = run("report", "run", "--statements", "st", "--only", "owner 1").stdout
    assert Path(told.removesuffix("\n")).is_file()


def test_trainings_scored_on_other_rows_are_never_mixed():
    value()
    change_owner_1()  # some of the rows held out are among them
    assert "validation data" in refuse("resume", "run")
    message = refuse("resume", "run", "--accept-rows", "--accept-model")
    assert "validation data" in message
    assert "cannot be mixed; " in message
    assert "with other contents (the rows of 'owner 1' have changed); " in message
    assert message.endswith("(`dupre value` or `dupre init` with --run OTHER)\n")


def test_failures_that_were_skipped_can_be_tried_again(place):
    lazy = "if Path('bad day').exists() and len(X) < 20: raise OSError('not today')"
    write_model(place / "moody_model.py", lazy)
    (place / "bad day").touch()
    done = value("--model", "moody_model:Own", "--skip-failures", budget=7)
    assert "; 7 of 7 possible coalitions evaluated, 3 of them failed\n" in done.stdout
    assert "3 of 7 evaluations failed" in done.stdout
    (place / "bad day").unlink()
    assert "3 of 7 evaluations failed" in run("resume", "run").stdout
    done = run("resume", "run", "--retry-failures")
    assert "known already: 4" in done.stderr
    assert "Exact for these validation rows and seeds: every coalition" in done.stdout


def test_a_run_done_elsewhere_may_move_and_notices_changed_rows(recorded, place):
    (place / "good.csv").rename(place / "moved.csv")
    assert "say where they are with --data" in refuse("suggest", "ask")
    run("suggest", "ask", "--data", "moved.csv")
    run("record", "ask", sheet("more.csv", [(COALITIONS[2], 0.6)]), "--data", "moved.csv")
    run("suggest", "ask")
    (place / "moved.csv").rename(place / "good.csv")
    change_owner_1()
    last = ("record", "ask", sheet("last.csv", [('["owner 2"]', 0.6)]), "--data", "good.csv")
    assert "is of 3 trainings, of which 1 are valid now" in refuse(*last)
    told = run(*last, "--accept-rows").stdout
    assert "Not used: 2 stored evaluations, repeats included, of rows changed since then." in told
    assert "Accepted: without 2 coalitions of the result before" in told
    assert "dupre init good.csv" in page("ask")
    assert "dupre record ask more.csv --data moved.csv" in page("ask")


def test_a_model_that_changed_is_refused_anywhere_unless_it_is_accepted_for_good(place):
    names = ("--model", "my_model.py:Mine")

    def write(predicts):
        (place / "my_model.py").write_text(
            "from sklearn.dummy import DummyClassifier\n"
            "class Mine(DummyClassifier):\n"
            f"    def predict(self, X): return [{predicts}] * len(X)\n"
        )
        sys.modules.pop("my_model", None)

    write("'yes'")
    value(*names)
    write("('yes')")  # the same
    assert "to check what is stored: 1\n" in run("resume", "run").stderr
    assert "stored: 1\n" in run("resume", "run", "--no-spot-check").stderr
    write("'no'")
    message = refuse("resume", "run", "--budget", "+1")
    numbers = re.search(r"has the utility (\S+) there, but (\S+) when it", message)
    assert sum(map(float, numbers.groups())) == pytest.approx(1)  # who says yes is right, or no
    assert "`dupre resume run` with --accept-model" in message
    kept = run("resume", "run", "--budget", "+1", "--accept-model")
    assert "5 of 7 possible; known already: 4" in kept.stderr
    (place / "elsewhere").mkdir()
    from_there = run("resume", place / "run", "--budget", "+1", cwd="elsewhere")
    for told in (kept.stdout, from_there.stdout, page("run")):
        assert "Accepted: 7 trainings are kept although" in told


def test_a_cluster_that_did_not_answer_is_not_remembered(place, monkeypatch):
    value()
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.5)
    before = (place / "run/config.toml").read_text()
    message = refuse("resume", "run", "--dask", "tcp://127.0.0.1:9")
    assert "no Dask scheduler answers" in message
    assert "no Dask" in refuse("value", "good.csv", *ROLES, "--dask", "tcp://127.0.0.1:9")
    assert not (place / "dupre-good").exists()
    assert (place / "run/config.toml").read_text() == before


def test_what_models_print_is_no_part_of_the_answer(place):
    write_model(place / "loud_model.py", "print('fitting', flush=True)")
    done = value("--model", "loud_model:Own", "--json")
    assert json.loads(done.stdout)["format"] == "dupre result"
    assert "fitting" in done.stderr


def test_the_page_shows_every_command_but_no_directory_of_this_machine(place):
    value()
    run("resume", "run", "--budget", "+1")
    for words in (
        "dupre value good.csv --owner who --target y --budget 4 --run run",
        "dupre resume run --budget +1",
        "Utility is the score (accuracy) on 15 validation rows of a model that predicts y.",
    ):
        assert words in page()

    (place / "page_tree.py").write_text("from sklearn.tree import DecisionTreeClassifier as Tree\n")
    good().to_csv("validation.csv", index=False)
    paths = ("--model", place / "page_tree.py:Tree", "--validation", place / "validation.csv")
    value(*paths, "--run", "other")
    assert "--validation validation.csv" in page("other")
    assert str(place) not in page("other")


def test_nothing_is_predicted_from_nothing_and_other_verbs_send_on(recorded):
    first, again = (run("suggest", "ask", "-n", "2").stdout for _ in range(2))
    assert first == again
    message = refuse("resume", "ask")
    assert "use `dupre suggest ask` and `dupre record ask FILE`" in message
    run("init", "good.csv", *ROLES, "--empty", "0.5", "--run", "my run")
    message = refuse("predict", "my run", "--members", "owner 1")
    assert "no utility to learn from has been recorded; see `dupre suggest 'my run'`\n" in message


def test_a_kernel_that_is_not_valid_is_named_before_anything_is_trained(place):
    (place / "far_kernel.py").write_text(
        "import numpy as np\n"
        "from dupre import kernels\n"
        "class Far(kernels.Exponential):\n"
        "    def distance(self, a, b):\n"
        "        return (a.members[:, None] != b.members).sum(axis=2) ** 3.0\n"
        "kernel = Far()\n"
        "text = 'data'\n"
    )
    for options, expected in (
        (("--kernel", "far_kernel.py:kernel"), "kernel Far is not positive semi-definite: the sm"),
        (("--kernel", "far_kernel.py:text"), "must name a Kernel or a Prior"),
        (("--strategy", "active:Owner 0"), "as focus of the strategy (did you mean 'owner 0'?)"),
    ):
        assert expected in refuse("value", "good.csv", *ROLES, *options, "--run", "run")
    assert not (place / "run").exists()
