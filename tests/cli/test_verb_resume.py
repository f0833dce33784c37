import json
import os
import re
import signal
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import dupre
from command_tables import (
    BOTH,
    FEW,
    ROLES,
    change_owner_1,
    good,
    page,
    result,
    value,
    written,
)
from commands import refuse, run, start, write_model
from dupre.training import dask
from faults import stored
from workers import wait_for


@pytest.mark.slow
def test_other_semivalues_follow_from_the_trainings_there_are(copy):
    how = ("--semivalue", "banzhaf", "--json")
    shown = json.loads(run("show", "dupre-wine", *how, cwd=copy).stdout)["valuations"]
    stored = json.loads((copy / "dupre-wine/result.json").read_text())["valuations"]
    assert [v["semivalue"] for v in shown] == ["Banzhaf"]
    for one, other in zip(shown[0]["owners"], stored[1]["owners"], strict=True):
        assert one["value"] == pytest.approx(other["value"], abs=1e-9)
    done = run("resume", "dupre-wine", "--semivalue", "loo", cwd=copy)
    assert "known already: 14" in done.stderr
    assert (copy / "dupre-wine/history/1/result.json").is_file()
    assert "\nleave-one-out: " in done.stdout  # of further semivalues the table alone
    assert run("show", "dupre-wine", cwd=copy).stdout == done.stdout


def test_the_same_command_or_resume_goes_on_and_trains_nothing_twice(finished, copy):
    done = run("resume", "dupre-wine", "--budget", "+4", "--data", "wine.csv", cwd=copy)
    assert "18 of 31 possible; known already: 14" in done.stderr
    assert "11 of them under 2 further deals of the folds" in done.stderr
    assert "; 18 of 31 possible coalitions trained." in done.stdout
    before, after = result(finished).evaluations, result(copy).evaluations
    kept = after[after["coalition"].isin(before["coalition"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, before)
    assert "budget = 18" in (copy / "dupre-wine/config.toml").read_text()
    again = run("value", *FEW, *BOTH, "--budget", 14, cwd=finished)
    assert "known already: 14" in again.stderr
    assert again.stdout == (finished / "out.txt").read_text()
    message = refuse("value", *FEW, *BOTH, "--model", "forest", cwd=finished)
    assert "'dupre-wine' holds another run (model (not set), not 'forest')" in message


@pytest.mark.slow
@pytest.mark.usefixtures("all_forms")  # as in the processes
def test_stopped_killed_and_in_use_nothing_is_lost(data):
    talk = "print('a model that talks', file=sys.stderr, flush=True)"
    seconds = "0.2 * Path('slow').exists() + Path('slower').exists()"
    write_model(data / "slow_model.py", f"{talk}; time.sleep({seconds})")
    (data / "slow").touch()
    how = ("value", *FEW, "--model", "slow_model.py:Own", "--budget", 12, "--run", "run")
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
    assert f"Beware: {so_far}" in run("show", "run", "--verbose", cwd=data).stdout
    run("report", "run", cwd=data)
    assert f"T{so_far[1:]}" in (data / "run/report.html").read_text()
    kept = dupre.read_evaluations(store)

    (data / "slower").touch()  # it must not be finished before it is killed
    second = start("resume", "run", "--jobs", 2, cwd=data)
    for stream in (second.stdout, second.stderr):
        stream.close()  # nobody reads it, and the run goes on
    wait_for(lambda: len(stored(store)) >= len(kept) + 3)
    os.killpg(second.pid, signal.SIGKILL)
    second.wait()
    told = run("show", "run", cwd=data).stdout
    assert told.startswith("Not payable: the run is not finished.\n")

    (data / "slow").unlink()
    (data / "slower").unlink()
    done = run("resume", "run", cwd=data)
    assert "; 12 of 31 possible coalitions trained." in done.stdout
    whole = run(*how[:-1], "whole", cwd=data)
    assert whole.stdout.replace(" whole ", " run ") == done.stdout
    everything = dupre.read_evaluations(store)
    assert not everything[["coalition", "repeat"]].duplicated().any()
    assert set(kept["finished"]) <= set(everything["finished"])


@pytest.mark.slow
def test_limits_asked_for_on_resume_replace_those_before():
    four = [f"owner {i % 4}" for i in range(60)]  # the first design of three is everything
    target = good()["y"].mask(np.arange(60) % 4 == 1, "no")  # utilities are more than two numbers
    data = written(good().assign(who=four, y=target))
    run("value", data, *ROLES, "--until", "5", "--run", "run")
    done = run("resume", "run", "--budget", "5", "--verbose")
    assert "none, 13 are known already; resume with --budget +2 adds 2\n" in done.stderr
    assert "Stopped: 13 evaluations are known, more than the budget of 5.\n" in done.stdout
    plan = run("resume", "run", "--budget", "15").stderr
    assert "all 15, so that nothing is predicted; known already: 13\n" in plan
    assert "until" not in plan
    done = run("resume", "run", "--until", "ranking")
    assert "as many of 15 as it takes, until the ranking is settled" in done.stderr
    assert "all 15 possible coalitions trained" in done.stdout
    assert "dupre resume" not in done.stdout  # nothing is left
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


@pytest.mark.slow
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


def test_changed_rows_do_not_replace_a_good_result_unasked():
    good(20).to_csv("validation.csv", index=False)
    value("--validation", "validation.csv", budget=5)
    left = good()[good()["who"] != "owner 1"].copy()
    left.loc[left["who"] == "owner 2", "x"] += 1
    message = refuse("resume", "run", "--data", written(left))
    assert "hold 'owner 1' and the rows of 'owner 2' are no longer those of then" in message
    change_owner_1()
    message = refuse("resume", "run")
    assert "are valid now: the rows of 'owner 1' are no longer those of then." in message
    assert "add --accept-rows; to keep it, begin a run in another directory" in message
    done = run("resume", "run", "--accept-rows", "--verbose")
    assert "Not used" not in done.stdout  # which is said once, in this way:
    for told in (done, run("resume", "run", "--budget", "+1", "--verbose")):
        assert (
            "Beware: you accepted to go on without 3 coalitions of the result before, whose rows"
            in told.stdout
        )


@pytest.mark.slow
def test_trainings_scored_on_other_rows_are_never_mixed():
    good(20).to_csv("validation.csv", index=False)
    value("--validation", "validation.csv")
    good(30).to_csv("validation.csv", index=False)
    assert "validation data" in refuse("resume", "run")
    message = refuse("resume", "run", "--accept-rows", "--accept-model")
    assert "validation data" in message
    assert "cannot be mixed; " in message
    assert message.endswith("(`dupre value` or `dupre init` with --run OTHER)\n")


@pytest.mark.slow
def test_failures_that_were_skipped_can_be_tried_again(place):
    lazy = "if Path('bad day').exists() and len(X) < 20: raise OSError('not today')"
    write_model(place / "moody_model.py", lazy)
    (place / "bad day").touch()
    done = value("--model", "moody_model:Own", "--skip-failures", budget=7)
    assert "; 4 of 7 possible coalitions trained, 3 failed.\n" in done.stdout
    assert "- Of 7 coalitions 3 failed" in done.stdout
    again = "dupre resume run --retry-failures"
    assert f"\nNext: train the failed ones again: {again}\n" in done.stdout
    (place / "bad day").unlink()
    assert "- Of 7 coalitions 3 failed" in run("resume", "run").stdout
    done = run("resume", "run", "--retry-failures", "--verbose")
    assert "known already: 4" in done.stderr
    assert "Exact for this deal of the folds: every coalition" in done.stdout


@pytest.mark.slow
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
    assert "to check what is stored: 1\n" in run("resume", "run", "--verbose").stderr
    told = run("resume", "run", "--no-spot-check", "--verbose").stderr
    assert "stored: 1\n" in told
    write("'no'")
    message = refuse("resume", "run", "--budget", "+1")
    numbers = re.search(r"has the utility (\S+) there, but (\S+) when it", message)
    assert sum(map(float, numbers.groups())) == pytest.approx(1)  # who says yes is right, or no
    assert "`dupre resume run` with --accept-model" in message
    kept = run("resume", "run", "--budget", "+1", "--accept-model", "--verbose")
    assert "5 of 7 possible; known already: 4" in kept.stderr
    (place / "elsewhere").mkdir()
    from_there = run("resume", place / "run", "--budget", "+1", "--verbose", cwd="elsewhere")
    for told in (kept.stdout, from_there.stdout, page("run")):
        assert re.search(r"(?i)you accepted that \d+ trainings are kept although", told)


@pytest.mark.slow
def test_a_cluster_that_did_not_answer_is_not_remembered(place, monkeypatch):
    value()
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.5)
    before = (place / "run/config.toml").read_text()
    message = refuse("resume", "run", "--dask", "tcp://127.0.0.1:9")
    assert "no Dask scheduler answers" in message
    assert "no Dask" in refuse("value", "good.csv", *ROLES, "--dask", "tcp://127.0.0.1:9")
    assert not (place / "dupre-good").exists()
    assert (place / "run/config.toml").read_text() == before


EVIL = (
    "open('run-by-a-stranger', 'w').close(); from sklearn.tree import DecisionTreeClassifier as M"
)


@pytest.mark.slow
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
    members = ("--members", "owner 0")
    for verb in (("predict", "run", *members), ("resume", "run", "--dask", ""), ("verify", "run")):
        message = refuse(*verb)
        assert "'run' was not made here: its config.toml would make this command read " in message
        assert "import 'evil:M' and 'evil:K' and connect to 'tcp://127.0.0.1:1'. If" in message
    for verb in (("suggest", "ask"), ("record", "ask", "good.csv")):
        assert "'ask' was not made here" in refuse(*verb)
    run("show", "run")
    run("report", "run")
    run("compare", "run", "owner 0", "owner 1")
    run("pay", "run", "--amount", "100", "--anyway")
    assert "was not made here" in refuse("resume", "run")  # pay has written the configuration
    assert not done.exists()
    run("suggest", "ask", "--trust")
    run("suggest", "ask")  # it is asked once
    assert "evil has no 'K'" in refuse("resume", "run", "--trust")
    assert done.exists()


@pytest.mark.slow
def test_without_a_home_every_directory_is_asked_about(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert "Note: that this run is trusted cannot be kept" in value().stderr
    assert "was not made here" in refuse("resume", "run")
    run("resume", "run", "--trust")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError))
    assert "was not made here" in refuse("resume", "run")
