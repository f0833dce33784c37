"""The command on real files: what it prints, what it writes and how it ends."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from unittest.mock import Mock, patch

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import dupre
from commands import COMMAND, RUN_FILES, environment, refuse, run, start, write_model
from dupre.cli.signals import interrupt_on_signals
from dupre.runs.run import ONE_SPLIT
from faults import stored
from workers import wait_for


def wine():
    """Five wineries of 178 bottles, with gaps, categories, dates and a column of no use."""
    frame = load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"})
    rng = np.random.default_rng(0)
    frame["winery"] = rng.choice(["Alba", "Barolo", "Chianti", "Dolce", "Etna"], len(frame))
    etna = frame["winery"] == "Etna"
    frame.loc[etna, "cultivar"] = rng.permutation(3).repeat(60)[: etna.sum()]
    frame["region"] = rng.choice(["north", "south", None], len(frame))
    frame.loc[::9, "ash"] = np.nan
    frame["picked"] = pd.date_range("2020-01-01", periods=len(frame)).astype(str)
    frame["note"] = [f"bottle {i}" for i in range(len(frame))]
    return frame


WINE = ("wine.csv", "--owner", "winery", "--target", "cultivar")
BOTH = ("--semivalue", "shapley", "--semivalue", "banzhaf")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with the data and a finished run of two semivalues."""
    here = tmp_path_factory.mktemp("place")
    wine().to_csv(here / "wine.csv", index=False)
    done = run("value", *WINE, *BOTH, "--budget", 14, cwd=here)
    (here / "out.txt").write_text(done.stdout)
    (here / "err.txt").write_text(done.stderr)
    return here


@pytest.fixture
def data(tmp_path):
    """A directory with the data."""
    wine().to_csv(tmp_path / "wine.csv", index=False)
    return tmp_path


@pytest.fixture
def copy(place, tmp_path):
    """A directory with the data and the finished run, to go on with."""
    return shutil.copytree(place, tmp_path, dirs_exist_ok=True)


def result(place):
    return dupre.Valuation.from_json((place / "dupre-wine/result.json").read_text())


def test_the_plan_goes_to_stderr_tables_to_stdout_and_all_else_into_the_run_directory(place):
    plan = (place / "err.txt").read_text()
    for words in (
        "5 owners, 135 rows to train on: Alba 25, ",
        "cultivar, 3 classes (classification)",
        "43 rows held out: 25 % of each owner's rows, stratified (seed 0)",
        "numbers (13): fill gaps with the median, scale",
        "categories (1): one column per level",
        "dates (1): days since 1970",
        "left out: note (178 different texts in 178 rows)",
        "then LogisticRegression(max_iter=1000)",
        "accuracy; without data 0.",
        "Shapley, Banzhaf: all from the same trainings, chosen for Shapley",
        "14 of 31 possible",
        " for the rest with dupre's own time.\n",
        "Report: dupre-wine/report.html",
        "dupre resume dupre-wine --budget +5",
    ):
        assert words in plan
    assert re.search(r"(?s)^Plan.*\nThe first \d+ trainings took", plan)

    tables = (place / "out.txt").read_text()
    assert tables.startswith("Shapley values of 5 owners; 14 of 31 possible coalitions evaluated\n")
    assert "\n\nBanzhaf values of 5 owners; 14 of 31 possible" in tables
    assert "owner    rows  " in tables
    assert "Plan" not in tables
    files = {file.name for file in (place / "dupre-wine").iterdir()}
    assert files == {*RUN_FILES, "store.sqlite-lock", ".lock"}
    beside = {file.name for file in place.iterdir()}
    assert beside == {"wine.csv", "dupre-wine", "out.txt", "err.txt"}
    rows = list(csv.DictReader(io.StringIO((place / "dupre-wine/values.csv").read_text())))
    assert [row["semivalue"] for row in rows] == ["Shapley"] * 5 + ["Banzhaf"] * 5


def test_values_are_those_of_the_library(place):
    """The documented split, preprocessing and model, put together by hand."""
    from dupre.runs.directory import RunDirectory
    from dupre.runs.prepare import prepare

    prepared = prepare(RunDirectory(place / "dupre-wine").spec())
    expected = dupre.value(prepared.owners, prepared.utility, budget=14, progress=False)
    assert result(place).values.tolist() == expected.values.tolist()
    # The library is given rows that the command held out.
    assert str(result(place)).replace(f"{ONE_SPLIT}\n", "") == str(expected)


def test_show_and_report_give_the_same_again(place):
    assert run("show", "dupre-wine", cwd=place).stdout == (place / "out.txt").read_text()
    done = run("show", "dupre-wine", "--json", cwd=place)
    assert done.stderr == ""
    names = [v["semivalue"] for v in json.loads(done.stdout)["valuations"]]
    assert names == ["Shapley", "Banzhaf"]
    page = place / "dupre-wine/report.html"
    before = page.read_bytes()
    page.unlink()
    assert run("report", "dupre-wine", cwd=place).stdout == "dupre-wine/report.html\n"
    assert page.read_bytes() == before


def test_other_semivalues_follow_from_the_trainings_there_are(copy):
    how = ("--semivalue", "banzhaf", "--json")
    shown = json.loads(run("show", "dupre-wine", *how, cwd=copy).stdout)["valuations"]
    stored = json.loads((copy / "dupre-wine/result.json").read_text())["valuations"]
    assert [v["semivalue"] for v in shown] == ["Banzhaf"]
    for one, other in zip(shown[0]["owners"], stored[1]["owners"], strict=True):
        assert one["value"] == pytest.approx(other["value"], abs=1e-9)
    done = run("resume", "dupre-wine", "--semivalue", "loo", cwd=copy)
    assert "known already: 14" in done.stderr
    assert "Result before: dupre-wine/history/1" in done.stderr
    assert "leave-one-out values of 5 owners; 14 of 31 possible" in done.stdout
    assert run("show", "dupre-wine", cwd=copy).stdout == done.stdout


def test_no_reader_or_no_streams_are_no_errors(place, data):
    how = {"shell": True, "capture_output": True, "text": True, "check": False}
    env = environment(PYTHONIOENCODING="ascii")
    piped = subprocess.run(f"{COMMAND} show dupre-wine | head -c 10", cwd=place, env=env, **how)
    assert piped.stdout == "Shapley va"
    assert piped.stderr == ""
    how = f"{COMMAND} value {' '.join(WINE)} --budget 4 --run run >&- 2>&-"
    subprocess.run(how, shell=True, cwd=data, env=environment(), check=True)
    assert "4 of 31 possible" in run("show", "run", cwd=data).stdout


def test_payments_are_printed_kept_and_part_of_every_later_page(data):
    run("value", *WINE, "--budget", "7", "--run", "paid", cwd=data)
    told = json.loads(run("pay", "paid", "--amount", "99.95", "--json", cwd=data).stdout)
    assert sum(round(100 * one["payment"]) for one in told["payments"]) == 9995
    shown = run("show", "paid", cwd=data).stdout.splitlines()
    lines = [f"Beware: {one['text']}" for one in told["notes"]]
    assert lines == [line for line in shown if line.startswith("Beware")] != []
    printed = run("pay", "paid", "--amount", "10", "--currency", "CHF", cwd=data).stdout
    assert "sum" in printed
    compared = run("compare", "paid", "Alba", "Etna", cwd=data).stdout
    for text in (printed, compared):
        assert text.endswith("\n".join(["", *lines, ""]))
    table = (data / "paid/payments.csv").read_text()
    assert table.startswith("owner,value,payment,low,high,currency\n")
    resumed = run("resume", "paid", "--budget", "+1", cwd=data).stderr
    assert "The payments have changed: payments.csv and the page have the new ones." in resumed
    (before,) = re.findall(r"Payments before: (\S+)", resumed)
    assert (data / before).read_text() == table != (data / "paid/payments.csv").read_text()
    page = (data / "paid/report.html").read_text()
    assert "Payment (CHF)" in page
    assert "who is at or below zero gets nothing" in page
    assert "above zero" in refuse("pay", "paid", "--amount", "0", cwd=data)
    paid = (data / "paid/payments.csv").read_text()
    full = Mock(side_effect=dupre.InputError("'payments.csv' cannot be written"))
    with patch("dupre.runs.directory.replace_texts", full):
        printed = run("pay", "paid", "--amount", "20", "--currency", "CHF", cwd=data, code=2)
    assert "payment CHF" in printed.stdout
    assert printed.stderr == "Error: 'payments.csv' cannot be written\n"
    assert (data / "paid/payments.csv").read_text() == paid
    asked = ("report", "paid", "--statements", "st", "--only", "Alba")
    (written,) = run(*asked, cwd=data).stdout.split()
    assert "<dt>Payment</dt><dd>" in (data / written).read_text()
    assert " of 10.00 CHF" in (data / written).read_text()
    assert "--statements" in refuse("report", "paid", "--only", "Alba", cwd=data)


def test_questions_about_trainings_that_are_gone_make_no_empty_store(data):
    run("value", *WINE, "--budget", "3", "--run", "gone", cwd=data)
    (data / "gone/store.sqlite").unlink()
    questions = (("show", "--semivalue", "banzhaf"), ("predict", "--members", "Alba"), ("suggest",))
    for asked in questions:
        message = refuse(asked[0], "gone", *asked[1:], cwd=data)
        assert "the trainings of 'gone' are gone: it has a result, but no store.sqlite" in message
        assert not (data / "gone/store.sqlite").exists()
    assert "Shapley values of 5 owners" in run("show", "gone", cwd=data).stdout


def test_compare_prints_the_probability_and_predict_knows_any_coalition(place):
    found = result(place)
    best, worst = found.values.idxmax(), found.values.idxmin()
    sentence = run("compare", "dupre-wine", worst, best, cwd=place).stdout
    assert sentence.startswith(f"Shapley: {best} is worth more than {worst} with a probability of ")
    assert sentence.count("Which rows are held out, and so not trained on, is in no interval") == 1
    told = json.loads(run("compare", "dupre-wine", best, worst, "--json", cwd=place).stdout)
    assert [one["semivalue"] for one in told] == ["Shapley", "Banzhaf"]
    assert told[0]["probability"] == found.probability_greater().loc[best, worst]
    assert told[0]["low"] < told[0]["difference"] < told[0]["high"]
    message = refuse("compare", "dupre-wine", "Alba", "Elba", cwd=place)
    assert "unknown owner 'Elba' (did you mean 'Alba'?); the owners are 'Alba', 'Barolo'" in message

    trained = json.loads(found.evaluations["coalition"][0])
    everyone = found.facts.evidence.coalitions
    missing = everyone[everyone["utility"].isna()]["members"].iloc[0]
    both = ("--members", ",".join(trained), "--members", ", ".join(missing))
    lines = run("predict", "dupre-wine", *both, cwd=place).stdout.splitlines()
    assert lines[0].endswith(", as evaluated")
    assert lines[1].startswith("{" + ", ".join(missing) + "}: ")
    assert lines[1].endswith("), predicted")
    told = json.loads(run("predict", "dupre-wine", *both, "--json", cwd=place).stdout)
    assert told[0]["utility"] == found.evaluations["utility"][0]
    assert told[1]["low"] < told[1]["utility"] < told[1]["high"]


def test_the_same_command_or_resume_goes_on_and_trains_nothing_twice(place, copy):
    done = run("resume", "dupre-wine", "--budget", "+4", "--data", "wine.csv", cwd=copy)
    assert "18 of 31 possible; known already: 14" in done.stderr
    assert "3 of them twice, or 6 if the seed of the model matters (--repeats)" in done.stderr
    assert done.stdout.startswith("Shapley values of 5 owners; 18 of 31")
    before, after = result(place).evaluations, result(copy).evaluations
    kept = after[after["coalition"].isin(before["coalition"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, before)
    assert "budget = 18" in (copy / "dupre-wine/config.toml").read_text()
    again = run("value", *WINE, *BOTH, "--budget", 14, cwd=place)
    assert "known already: 14" in again.stderr
    assert again.stdout == (place / "out.txt").read_text()
    message = refuse("value", *WINE, *BOTH, "--model", "forest", cwd=place)
    assert "'dupre-wine' holds another run (model (not set), not 'forest')" in message


def test_kernel_mean_and_strategy_are_kept_in_the_run_and_said(data):
    (data / "own_kernel.py").write_text("from dupre import kernels\nkernel = kernels.Size()\n")
    paper = ("--kernel", "paper", "--prior-mean", "linear", "--strategy", "half-active:Alba")
    done = run("value", *WINE, *paper, "--budget", 8, "--run", "run", cwd=data)
    asked = "kernel raw data, prior mean linear in log(1 + rows), plain posterior (one process"
    assert f"predictor   {asked}" in done.stderr
    assert "8 of 31 possible, strategy half-active:Alba" in done.stderr
    assert f"The predictor is as asked for: {asked}" in done.stdout
    assert asked in run("resume", "run", "--budget", "+1", cwd=data).stdout
    asked_again = refuse("value", *WINE, "--budget", 8, "--run", "run", cwd=data)
    assert "kernel 'paper', not 'default'" in asked_again
    config = (data / "run" / "config.toml").read_text()
    assert 'kernel = "paper"\nprior_mean = "linear"\nstrategy = "half-active:Alba"' in config
    own = ("--kernel", "own_kernel.py:kernel", "--strategy", "uniform")
    run("init", *WINE, "--empty", 0.4, *own, "--run", "there", cwd=data)
    assert f'kernel = "{data}/own_kernel.py:kernel"' in (data / "there" / "config.toml").read_text()
    first = run("suggest", "there", "-n", 3, cwd=data).stdout
    assert "Alba,Barolo,Chianti,Dolce,Etna" not in first


def test_trainings_done_elsewhere(data):
    limits = ("--floor", "0.55", "--bounds", ",0.9")
    done = run("init", *WINE, "--empty", "0.4", *limits, "--run", "ask", cwd=data)
    assert done.stdout == "ask\n"
    assert "5 owners, 178 rows. Next: dupre suggest ask" in done.stderr
    sheet = run("suggest", "ask", "-n", "6", cwd=data).stdout
    rows = list(csv.reader(io.StringIO(sheet)))
    assert rows[0] == ["coalition", "utility"]
    assert json.loads(rows[1][0]) == ["Alba", "Barolo", "Chianti", "Dolce", "Etna"]
    (data / "given.csv").write_text(sheet)
    others = run("suggest", "ask", "-n", "2", "--pending", "given.csv", "--json", cwd=data)
    assert not {json.dumps(names) for names in json.loads(others.stdout)} & {r[0] for r in rows}

    with open(data / "results.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["coalition", "utility", "failure"])
        writer.writerows([c, 0.4 + len(json.loads(c)) / 10, ""] for c, _ in rows[1:6])
        writer.writerow([rows[6][0], "", "the node was lost"])
    done = run("record", "ask", "results.csv", cwd=data)
    taken = "Read: 6 coalitions, 1 failed. New: 6. Known before: 0. In all: 6."
    assert taken in done.stderr
    assert "1 of 6 evaluations failed; predicted instead" in done.stdout
    assert "the node was lost" in done.stdout
    assert "Utilities below 0.55, the score of no data, count as that: 4 of 6" in done.stdout
    asked = run("predict", "ask", "--members", "Alba,Barolo", "--json", cwd=data).stdout
    assert 0.55 <= json.loads(asked)[0]["low"] <= json.loads(asked)[0]["high"] <= 0.9
    assert (data / "ask/report.html").stat().st_size > 10_000
    again = run("record", "ask", "results.csv", cwd=data)
    assert "New: 0. Known before: 6. In all: 6." in again.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("all_forms")  # as in the processes
def test_stopped_killed_and_in_use_nothing_is_lost(data):
    talk = "print('a model that talks', file=sys.stderr, flush=True)"
    seconds = "0.2 * Path('slow').exists() + Path('slower').exists()"
    write_model(data / "slow_model.py", f"{talk}; time.sleep({seconds})")
    (data / "slow").touch()
    how = ("value", *WINE, "--model", "slow_model.py:Own", "--budget", 12, "--run", "run")
    store = data / "run/store.sqlite"

    first = start(*how, cwd=data)
    wait_for(lambda: len(stored(store)) >= 2)
    first.send_signal(signal.SIGSTOP)
    used = refuse(*how, cwd=data)
    assert f"'run' is in use by another run (process {first.pid}, since 20" in used
    assert "which is stopped: " in used
    first.send_signal(signal.SIGCONT)
    first.send_signal(signal.SIGTERM)
    out, err = first.communicate(timeout=60)
    assert first.returncode == 143
    assert out == ""
    assert "stopped; " in err
    assert "`dupre resume run` goes on" in err
    assert "Traceback" not in err
    so_far = "the run is not finished; these are the values so far."
    assert f"Beware: {so_far}" in run("show", "run", cwd=data).stdout
    run("report", "run", cwd=data)
    assert so_far in (data / "run/report.html").read_text()
    kept = dupre.read_evaluations(store)

    (data / "slower").touch()  # it must not be finished before it is killed
    second = start("resume", "run", "--jobs", 2, cwd=data)
    for stream in (second.stdout, second.stderr):
        stream.close()  # nobody reads it, and the run goes on
    wait_for(lambda: len(stored(store)) >= len(kept) + 3)
    os.killpg(second.pid, signal.SIGKILL)
    second.wait()
    assert so_far in run("show", "run", cwd=data).stdout

    (data / "slow").unlink()
    (data / "slower").unlink()
    done = run("resume", "run", cwd=data)
    assert done.stdout.startswith("Shapley values of 5 owners; 12 of 31")
    whole = run(*how[:-1], "whole", cwd=data)
    assert whole.stdout == done.stdout
    everything = dupre.read_evaluations(store)
    assert not everything[["coalition", "repeat"]].duplicated().any()
    assert set(kept["finished"]) <= set(everything["finished"])


@pytest.mark.slow
def test_verbs_that_take_the_last_result_say_if_trainings_were_stored_since(data):
    run("value", *WINE, "--budget", 7, "--run", "run", cwd=data)
    asked = [("pay", "run", "--amount", 100), ("compare", "run", "Alba", "Etna")]
    for verb in asked:
        assert "stored after" not in run(*verb, cwd=data).stderr
    before = (data / "run/result.json").read_text()
    run("resume", "run", "--budget", 9, cwd=data)
    (data / "run/result.json").write_text(before)  # as if it had been killed before the end
    for verb in asked:
        told = run(*verb, cwd=data).stderr
        assert "Note: trainings were stored after these values were computed; `dupre resume" in told


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SIGINT", 130),
        pytest.param("SIGTERM", 143, marks=pytest.mark.slow),
        pytest.param("SIGHUP", 129, marks=pytest.mark.slow),
    ],
)
def test_signals_end_a_run_with_what_is_finished_and_the_way_to_go_on(data, name, code):
    end = f"begun.append(1); len(begun) != 3 or os.kill(os.getpid(), signal.{name})"
    write_model(data / f"ending_{code}.py", end)
    before = signal.getsignal(getattr(signal, name))
    how = ("--model", f"ending_{code}.py:Own", "--budget", 5, "--run", "run")
    done = run("value", *WINE, *how, cwd=data, code=code)
    assert signal.getsignal(getattr(signal, name)) is before
    kept = "stopped; 2 evaluations so far are kept .*`dupre resume run` goes"
    assert re.search(kept, done.stderr)


@pytest.mark.parametrize(
    ("module", "name"),
    [("typer", "SIGINT"), pytest.param("eager", "SIGTERM", marks=pytest.mark.slow)],
)
def test_a_signal_during_an_import_that_swallows_exceptions_ends_the_command(data, module, name):
    (data / "first").mkdir()
    send = f"os.kill(os.getpid(), signal.{name})"
    text = f"import os, signal\ntry: {send}\nexcept BaseException: pass\n"
    (data / f"first/{module}.py").write_text(text)  # typer is imported by the command itself
    env = environment(PYTHONPATH=os.pathsep.join([str(data / "first"), *filter(None, sys.path)]))
    how = ("value", *WINE, "--model", "eager:Own", "--run", "run")
    done = subprocess.run([COMMAND, *how], cwd=data, env=env, capture_output=True, check=False)
    assert done.returncode == 128 + getattr(signal, name)
    assert (done.stdout, done.stderr) == (b"", b"\nstopped\n")
    assert not (data / "run").exists()


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with interrupt_on_signals():
            os.kill(os.getpid(), signal.SIGHUP)  # raises nothing
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_failed_training_is_named_kept_and_can_be_skipped(data):
    little = "if len(X) < 26: raise MemoryError('too little data to be kind')"
    write_model(data / "fussy.py", little)
    how = ("value", *WINE, "--model", "fussy.py:Own", "--budget", 12, "--run", "run")
    message = refuse(*how, cwd=data)
    assert "failed: out of memory: MemoryError: too little data to be kind; " in message
    assert "go on without it by --skip-failures" in message
    assert message.endswith("`dupre resume run` goes on\n")
    done = run("resume", "run", "--skip-failures", cwd=data)
    assert " failed; predicted instead" in done.stdout
    assert "MemoryError" in (data / "run/report.html").read_text()


@pytest.mark.slow
def test_processes_and_repeats_and_rules_give_the_same_values(data):
    how = ("value", *WINE, "--budget", 6, "--repeats", 2, "--until", "±0.0001", "--time", "1h")
    one = run(*how, "--run", "one", cwd=data)
    two = run(*how, "--run", "two", "--jobs", 2, cwd=data)
    assert one.stdout == two.stdout
    assert "in 2 processes" in two.stderr
    assert "2 times each" in two.stderr
    until = "until (every value is within ± 0.0001 with 95 % or 3600 seconds have passed)"
    assert until in one.stderr


@pytest.mark.slow
def test_no_trainings_are_offered_when_only_validation_rows_would_help(data):
    done = run("value", *WINE, "--model", "knn", "--holdout", "0.1", "--until", "±0.02", cwd=data)
    assert re.search(
        r"Stopped: ± 0.02 takes about \d+.\d times as many validation rows", done.stdout
    )
    assert "More trainings can hardly narrow the intervals, only more validation" in done.stdout
    assert "Go on with" not in done.stderr


def test_an_error_nobody_thought_of_is_two_lines_and_debug_shows_where_it_comes_from(data):
    (data / "broken.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "class Own(LogisticRegression):\n"
        "    def __repr__(self): raise SystemError('a bug')\n"
    )
    how = ("value", *WINE, "--model", "broken:Own")
    message = refuse(*how, cwd=data)
    assert message == "SystemError: a bug\nAdd --debug to see where it comes from.\n"
    with pytest.raises(SystemError, match="a bug"):
        run(*how, "--debug", cwd=data)
    with pytest.raises(dupre.InputError, match="there is no directory 'nowhere'"):
        run("--debug", "show", "nowhere", cwd=data)


def test_every_verb_explains_itself_and_help_imports_nothing_heavy():
    overview = run("--help").stdout
    verbs = re.findall(r"^  (\w+)  ", overview, flags=re.MULTILINE)
    every = "value resume demo show report pay compare predict init suggest record"
    assert " ".join(verbs) == every
    for verb in verbs:
        told = run(verb, "--help").stdout
        assert f"Usage: dupre {verb}" in told
        assert f"Example: dupre {verb}" in told
    heavy = {"numpy", "pandas", "scipy", "sklearn", "matplotlib", "sqlite3"}
    code = (
        "import sys, dupre.cli.app; sys.argv = ['dupre', '--help']\n"
        "try: dupre.cli.app.main()\n"
        f"except SystemExit: print(*{heavy} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""
    assert "Usage: dupre" in done.stdout

    assert run("--version").stdout == f"dupre {dupre.__version__}\n"
    words = {"_DUPRE_COMPLETE": "complete_bash", "COMP_WORDS": "dupre re", "COMP_CWORD": "1"}
    shell = environment(**words)
    done = subprocess.run([COMMAND], env=shell, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == {"resume", "report", "record"}
