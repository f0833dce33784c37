import json

import numpy as np
import pytest

from command_tables import ROLES, good, written
from commands import refuse, run


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    """A run with three results: owner 2 joins, then owner 0 leaves."""
    here = tmp_path_factory.mktemp("market")
    frame = good(120).assign(who=[f"owner {i % 4}" for i in range(120)])
    frame["y"] = np.where(frame.index % 7 == 3, "no", frame["y"])
    for name, gone in (("first", "owner 2"), ("second", ""), ("third", "owner 0")):
        written(frame[frame["who"] != gone], here / f"{name}.csv")
    written(frame.assign(x=frame["x"] + 0.1), here / "validation.csv")
    how = ("--validation", "validation.csv", "--run", "run")
    run("value", "first.csv", *ROLES, *how, cwd=here)
    run("resume", "run", "--data", "second.csv", "--budget", 15, cwd=here)
    accept = ("--accept-rows", "--budget", 7)
    run("resume", "run", "--data", "third.csv", *accept, cwd=here)
    return here


def test_history_prints_values_of_all_results_and_who_joined_and_left(market):
    told = run("history", "run", cwd=market).stdout
    assert told.startswith("Shapley values of 3 results\n\nowner ")
    rows = {line[:7]: line.split("  ") for line in told.splitlines() if line.startswith("owner ")}
    assert rows["owner 0"][-1].strip() == "left"
    assert any(cell.strip().startswith("joined ") for cell in rows["owner 2"])
    first, second, third = told.splitlines()[-3:]
    assert first.startswith("Result 1: 20")
    assert ", 7 coalitions trained, sum " in first
    assert ", 15 coalitions trained (+8), sum " in second
    assert " Joined: owner 2." in second
    assert ", 7 coalitions trained (-8), sum " in third
    assert " Left: owner 0." in third
    assert "Other rows" not in told

    found = json.loads(run("history", "run", "--json", cwd=market).stdout)
    for number, file in enumerate(("history/1/", "history/2/", ""), start=1):
        kept = json.loads((market / "run" / f"{file}result.json").read_text())
        expected = {one["name"]: one["value"] for one in kept["valuations"][0]["owners"]}
        assert expected == {
            one["owner"]: one["value"]
            for one in found["owners"]
            if one["result"] == number and one["event"] != "left"
        }
    assert 'id="history"' in (market / "run/report.html").read_text()


def test_a_damaged_result_is_named_and_the_figure_is_written(market):
    kept = (market / "run/history/2/result.json").read_text()
    (market / "run/history/2/result.json").write_text(kept[:99])
    try:
        done = run("history", "run", "--figure", "history.svg", cwd=market)
    finally:
        (market / "run/history/2/result.json").write_text(kept)
    assert done.stderr == "Figure: history.svg\n"
    assert done.stdout.startswith("Shapley values of 2 results\n")
    assert "\nNot read: history/2/result.json (this is no JSON: " in done.stdout
    assert (market / "history.svg").read_text().startswith("<?xml")
    message = refuse("history", "run", "--figure", "history.gif", cwd=market)
    assert "a figure ends in .png, .svg or .pdf, got 'history.gif'" in message
    assert "there is no directory 'nowhere'" in refuse("history", "nowhere", cwd=market)
