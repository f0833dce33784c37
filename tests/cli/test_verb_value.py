import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dupre
from command_tables import (
    FEW,
    ROLES,
    WINE,
    good,
    page,
    result,
    value,
    written,
)
from commands import RUN_FILES, refuse, run, write_model
from dupre.runs.directory import RunDirectory
from dupre.tables.read import name_of


def test_the_plan_goes_to_stderr_tables_to_stdout_and_all_else_into_the_run_directory(finished):
    plan = (finished / "err.txt").read_text()
    for words in (
        "5 owners, 178 rows to train on: Alba 33, ",
        "cultivar, 3 classes (classification)",
        "178 rows: 2 folds (seed 0), every row validates once",
        "each coalition takes 2 trainings, 2 times as long as one (--folds changes it)",
        "numbers (13): fill gaps with the median, scale",
        "categories (1): one column per level",
        "dates (1): days since 1970",
        "left out: note (178 different texts in 178 rows)",
        "then LogisticRegression(max_iter=1000)",
        "accuracy; without data 0.",
        "Shapley, Banzhaf: all from the same trainings, chosen for Shapley",
        "14 of 31 possible",
    ):
        assert words in plan
    assert plan.startswith("Plan\n")
    assert plan.endswith("\nPage: dupre-wine/report.html\n")

    tables = (finished / "out.txt").read_text()
    assert tables.startswith("Payable.\nShapley: with everybody's data")
    assert "; 14 of 31 possible coalitions trained.\nNext: " in tables
    assert "\n\nBanzhaf: " in tables
    assert "dupre show dupre-wine --verbose\n" in tables
    assert "owner    rows  " in tables
    assert "Plan" not in tables
    files = {file.name for file in (finished / "dupre-wine").iterdir()}
    assert files == {*RUN_FILES, "store.sqlite-lock", ".lock"}
    beside = {file.name for file in finished.iterdir()}
    assert beside == {"wine.csv", "dupre-wine", "out.txt", "err.txt"}
    rows = list(csv.DictReader(io.StringIO((finished / "dupre-wine/values.csv").read_text())))
    assert [row["semivalue"] for row in rows] == ["Shapley"] * 5 + ["Banzhaf"] * 5


def test_values_are_those_of_the_library(finished):
    """The documented split, preprocessing and model, put together by hand."""
    from dupre.runs.prepare import prepare

    prepared = prepare(RunDirectory(finished / "dupre-wine").spec())
    expected = dupre.value(prepared.owners, prepared.utility, budget=14, progress=False)
    assert result(finished).values.tolist() == expected.values.tolist()
    assert str(result(finished)) == str(expected)


@pytest.mark.slow
def test_kernel_mean_and_strategy_are_kept_in_the_run_and_said(data):
    (data / "own_kernel.py").write_text("from dupre import kernels\nkernel = kernels.Size()\n")
    paper = ("--kernel", "paper", "--prior-mean", "linear", "--strategy", "half-active:Alba")
    done = run("value", *FEW, *paper, "--budget", 8, "--run", "run", "--verbose", cwd=data)
    asked = "kernel raw data, prior mean linear in log(1 + rows), plain posterior (one process"
    assert f"predictor   {asked}" in done.stderr
    assert "8 of 31 possible, strategy half-active:Alba" in done.stderr
    assert f"The predictor is as asked for: {asked}" in done.stdout
    assert asked in run("resume", "run", "--budget", "+1", "--verbose", cwd=data).stdout
    asked_again = refuse("value", *FEW, "--budget", 8, "--run", "run", cwd=data)
    assert "kernel 'paper', not 'default'" in asked_again
    config = (data / "run" / "config.toml").read_text()
    assert 'kernel = "paper"\nprior_mean = "linear"\nstrategy = "half-active:Alba"' in config
    own = ("--kernel", "own_kernel.py:kernel", "--strategy", "uniform")
    run("init", *WINE, "--empty", 0.4, *own, "--run", "there", cwd=data)
    assert f'kernel = "{data}/own_kernel.py:kernel"' in (data / "there" / "config.toml").read_text()
    first = run("suggest", "there", "-n", 3, cwd=data).stdout
    assert "Alba,Barolo,Chianti,Dolce,Etna" not in first


@pytest.mark.slow
def test_processes_and_repeats_and_rules_give_the_same_values(data):
    how = ("value", *FEW, "--budget", 6, "--repeats", 2, "--until", "±0.0001", "--time", "1h")
    one = run(*how, "--run", "one", cwd=data)
    two = run(*how, "--run", "two", "--jobs", 2, cwd=data)
    assert one.stdout == re.sub(r"\btwo\b", "one", two.stdout)
    assert "in 2 processes" in two.stderr
    assert "2 times each" in two.stderr
    until = "until (every value is within ± 0.0001 with 95 % or 3600 seconds have passed)"
    assert until in one.stderr


@pytest.mark.slow
def test_a_run_ends_when_only_validation_rows_would_help(data):
    how = ("--model", "knn", "--holdout", "0.1", "--until", "±0.02", "--verbose")
    done = run("value", *WINE, *how, cwd=data)
    told = r"Stopped: ± 0.02 takes about \d+.\d times as many validation rows"
    assert re.search(told, done.stdout)
    # A twentieth of the variance, a fifth of a standard deviation, is that of coalitions.
    assert "More trainings can hardly" not in done.stdout


def test_a_failed_training_is_named_kept_and_can_be_skipped(data):
    little = "if len(X) < 26: raise MemoryError('too little data to be kind')"
    write_model(data / "fussy.py", little)
    how = ("value", *FEW, "--model", "fussy.py:Own", "--budget", 12, "--run", "run")
    message = refuse(*how, cwd=data)
    assert "failed: out of memory: MemoryError: too little data to be kind; " in message
    assert "go on without it by --skip-failures" in message
    assert message.endswith("`dupre resume run` goes on\n")
    done = run("resume", "run", "--skip-failures", "--verbose", cwd=data)
    assert " failed; predicted instead" in done.stdout
    assert "MemoryError" in (data / "run/report.html").read_text()


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
    "texts alone": (
        changed(x=[f"{i / 8} %" for i in range(59)] + ["12.5"], z="a"),
        [],
        "percentages such as '0.0 %', but not '12.5' .1 of 60 cells.: .* --numbers 'x=decimal-poi",
    ),
    "model": (lambda: "good.csv", ["--model", "forrest"], "did you mean 'forest'"),
    "semivalue": (lambda: "good.csv", ["--semivalue", "shaply"], "did you mean 'shapley'"),
    "end": (lambda: "good.csv", ["--until", "soon"], "or ranking"),
    "timeout": (lambda: "good.csv", ["--timeout", "soon"], "--timeout 'soon' is no duration"),
    "samples": (lambda: "good.csv", ["--samples", "6"], "estimator regression .* raise --samples"),
    "two forms": (
        changed(x=["1,250"] * 59 + ["2,500"]),
        [],
        r"'x' fits two forms: '1,250' in line 2 .* --numbers 'x=thousands-comma', or --numbers",
    ),
    "form": (lambda: "good.csv", ["--numbers", "x=comma"], "expected COLUMN=FORM.*the forms are"),
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


@pytest.mark.slow
def test_owners_that_may_be_one_or_have_one_row_are_named():
    frame = good()
    frame.loc[0, "who"] = "single"
    done = value(data=written(frame))
    assert re.search(r"^single +1 ", done.stdout, flags=re.MULTILINE)

    data = written(good().replace({"who": {"owner 1": "Owner 0"}}))
    done = run("value", data, *ROLES, "--budget", 3, "--run", "my run", "--holdout", 0.4)
    assert "more trainings: dupre resume 'my run' --budget +3\n" in done.stdout  # can be typed
    told = "Owner 0 and owner 0 look like one owner, and are taken for 2; write"
    assert f"  check       {told}" in done.stderr
    assert run("show", "my run", "--verbose").stdout.count(told) == 1


def test_validation_rows_that_are_trained_on_are_named_wherever_values_are():
    good().to_csv("validation.csv", index=False)
    done = value("--validation", "validation.csv", "--verbose")
    told = "60 of the 60 validation rows are also among the rows to train on"
    for text in (done.stdout, done.stderr, page(), run("show", "run", "--json").stdout):
        assert told in text
    assert done.stdout.count(told) == 1


def test_a_run_is_named_after_its_data(place, monkeypatch):
    (place / "somewhere").mkdir()
    monkeypatch.chdir(place / "somewhere")
    data = ["good.csv", "data/*.csv", "./", "a/b.csv.gz", "a/../x.parquet", "/*.csv"]
    assert [name_of(one) for one in data] == ["good", "data", "somewhere", "b", "x", "data"]


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_models_print_is_no_part_of_the_answer(place):
    write_model(place / "loud_model.py", "print('fitting', flush=True)")
    done = value("--model", "loud_model:Own", "--json")
    assert json.loads(done.stdout)["format"] == "dupre result"
    assert "fitting" in done.stderr


@pytest.mark.slow
def test_the_page_shows_every_command_but_no_directory_of_this_machine(place):
    value()
    run("resume", "run", "--budget", "+1")
    for words in (
        "dupre value good.csv --owner who --target y --budget 4 --run run",
        "dupre resume run --budget +1",
        "Utility is the score (accuracy) on 60 validation rows of a model that predicts y.",
    ):
        assert words in page()

    (place / "page_tree.py").write_text("from sklearn.tree import DecisionTreeClassifier as Tree\n")
    good().to_csv("validation.csv", index=False)
    paths = ("--model", place / "page_tree.py:Tree", "--validation", place / "validation.csv")
    value(*paths, "--run", "other")
    assert "--validation validation.csv" in page("other")
    assert str(place) not in page("other")


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


def districts(rows=120):
    """School districts of four counties, as a ministry publishes them."""
    rng = np.random.default_rng(3)
    poor, spent = rng.uniform(0, 60, rows).round(1), rng.integers(16_000, 60_000, rows) / 4
    score = (700 - 2 * poor + spent / 500 + rng.normal(0, 5, rows)).round(1)
    county = rng.choice(["Kern", "Marin", "Napa", "Yolo"], rows)
    day = pd.Series(pd.date_range("2023-01-01", periods=rows)).astype(str)
    return pd.DataFrame({"who": county, "poor": poor, "spent": spent, "tested": day, "y": score})


def as_published(frame):
    tested = pd.to_datetime(frame["tested"]).dt.strftime("%d.%m.%Y")
    return frame.assign(
        poor=[f"{x} %" for x in frame["poor"]],
        spent=[f"${x:,.2f}" for x in frame["spent"]],
        tested=tested,
        y=[f"{x:,}".replace(".", ",") for x in frame["y"]],
    )


@pytest.mark.slow
def test_the_same_rows_are_worth_the_same_however_their_numbers_are_written():
    frame, how = districts(), (*ROLES, "--folds", 2, "--run")
    plain = run("value", written(frame), *how, "plain", "--budget", 6)
    data = written(as_published(frame), "published.csv")
    done = run("value", data, *how, "run", "--budget", 6)
    assert done.stdout == plain.stdout.replace(" plain ", " run ")
    told = "read: poor as per cent (12.5 % is 12.5), spent as $ amounts with thousands by comma, "
    assert f"{told}tested as dates, day first, y as numbers with a decimal comma\n" in done.stderr
    assert "is taken for texts" not in done.stdout

    other = as_published(frame)
    other.loc[::10, "poor"] = "n/a?"
    done = run("value", written(other), *how, "other", "--budget", 15)
    told = "poor is taken for texts: most cells are percentages such as "
    assert re.search(f"^  beware +{told}", done.stderr, flags=re.MULTILINE)
    assert "- Numbers are taken for texts, as not all are alike: poor." in done.stdout


def test_a_run_goes_on_with_the_forms_it_began_with():
    frame, scored = as_published(districts())[:90], as_published(districts())[90:]
    how = (*ROLES, "--run", "run", "--budget", 4, "--validation", written(scored, "validation.csv"))
    data = written(frame)
    run("value", data, *how)
    assert "poor=decimal-point %" in Path("run/config.toml").read_text()
    more = frame[:1].assign(poor="0.5")
    written(pd.concat([frame, more]))
    for verb in (("resume", "run"), ("value", data, *how)):
        message = refuse(*verb)
        assert "column 'poor' is read as per cent (12.5 % is 12.5), but '0.5' in line 92" in message
    written(pd.concat([frame, more.assign(poor="0.5 %")]))
    assert "poor as per cent" in run("resume", "run", "--accept-rows").stderr


@pytest.mark.slow
def test_an_option_decides_between_two_forms_and_numbers_of_owners_have_their_column():
    frame = good().assign(x=(1000 * good()["x"].abs() + 1001).round().astype(int))
    frame = frame.rename(columns={"who": "StoreID"}).assign(StoreID=[7, 8, 9] * 20)
    roles = ("--owner", "StoreID", "--target", "y", "--budget", 7, "--folds", 2)
    plain = run("value", written(frame), *roles, "--run", "plain")
    data = written(frame.assign(x=[f"{x:,}" for x in frame["x"]]))
    assert "--numbers 'x=decimal-comma'" in refuse("value", data, *roles)
    done = run("value", data, *roles, "--run", "run", "--numbers", "x=thousands-comma")
    assert done.stdout == plain.stdout.replace(" plain ", " run ")
    assert "StoreID 7" in done.stdout
    assert "StoreID 7" in page()
    assert "StoreID 8" in run("compare", "run", 7, 8).stdout
    assert run("predict", "run", "--members", "7,8").stdout.startswith("{StoreID 7, StoreID 8}: ")
    run("report", "run", "--statements", "out", "--only", 7)
    assert [file.name for file in Path("out").iterdir()] == ["statement-StoreID-7.html"]
