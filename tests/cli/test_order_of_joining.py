"""`--cohorts COLUMN`: an order of joining from a column of the table."""

import json

import numpy as np
import pandas as pd
import pytest

import dupre
from command_tables import ROLES, good, value, written
from commands import refuse, run
from dupre.cli.output import ExitCode
from dupre.spec import Data, loads
from dupre.tables.read import read_table

JOINED = {"owner 0": "2024-03-01", "owner 1": "2023-01-01", "owner 2": "2024-03-01"}
ORDER = (("owner 1",), ("owner 0", "owner 2"))


def joined(column=JOINED, name="joined"):
    frame = good()
    frame[name] = frame["who"].map(column)
    return frame


def result(directory="run"):
    with open(f"{directory}/result.json") as file:
        return dupre.Valuation.from_json(file.read())


def test_a_run_by_order_of_joining_is_planned_shown_resumed_and_verified(tmp_path):
    written(joined(), "good.csv")
    done = value("--cohorts", "joined", "--folds", 2, budget=2)
    assert "joined      owner 1; then owner 0 and owner 2" in done.stderr
    assert "2 of 4 that count" in done.stderr
    assert result().facts.joining.cohorts == ORDER
    done = run("resume", "run", "--budget", 4)
    told = "Asymmetric Shapley, by order of joining (owner 1; then owner 0 and owner 2): "
    assert told in done.stdout
    after = result()
    assert json.loads(after.facts.provenance["data"]["columns"]) == ["x", "z"]
    assert after.facts.counting == after.facts.evaluated == 4
    assert told in run("show", "run").stdout
    assert "If nobody had come first" in run("show", "run", "--verbose").stdout
    assert "Shapley: " not in run("show", "run", "--semivalue", "banzhaf").stdout
    run("verify", "run")
    page = (tmp_path / "run/report.html").read_text()
    assert "Who joined first" in page
    assert "by order of joining" in page
    assert loads((tmp_path / "run/config.toml").read_text(), "it").data.cohorts == "joined"
    run("pay", "run", "--amount", 100, "--anyway")
    run("report", "run", "--statements", "for owners")
    (letter, *_) = (tmp_path / "for owners").glob("*.html")
    assert "Whoever joined before you is in every group" in letter.read_text()


def test_a_tampered_order_is_found_by_verify():
    written(joined(), "good.csv")
    value("--cohorts", "joined", "--folds", 2)
    with open("run/result.json") as file:
        whole = json.load(file)
    whole["valuations"][0]["facts"]["joining"]["cohorts"].reverse()
    with open("run/result.json", "w") as file:
        json.dump(whole, file)
    done = run("verify", "run", code=ExitCode.DIFFERENCES)
    assert "order of joining (Asymmetric Shapley)" in done.stdout


def test_an_owner_who_joins_later_is_a_cohort_of_its_own():
    frame = joined(JOINED | {"owner 0": "2025-01-01"})
    written(good(20), "checks.csv")
    written(frame[frame["who"] != "owner 0"], "good.csv")
    value("--cohorts", "joined", "--validation", "checks.csv")
    before = result().values
    written(frame, "good.csv")
    run("resume", "run", "--budget", 7)
    after = result()
    assert after.facts.joining.cohorts == (("owner 1",), ("owner 2",), ("owner 0",))
    assert after.facts.evaluated == 3, "one training more"
    np.testing.assert_array_equal(after.values[before.index], before)


@pytest.mark.parametrize("options", [{}, {"drop": ("joined",)}], ids=["as it is", "dropped"])
@pytest.mark.parametrize(
    "times", [(10, 9), ("b", "a"), ("13.02.2024", "14.01.2024"), ("7", "6.5"), ("10", "9")]
)
def test_numbers_texts_and_dates_say_when_an_owner_joined(times, options):
    late, early = times
    written(joined({"owner 0": late, "owner 1": early, "owner 2": late}), "good.csv")
    frame = read_table(Data("good.csv", owner="who", target="y", cohorts="joined", **options))
    assert frame.attrs["cohorts"] == ORDER


def test_trainings_done_elsewhere_can_be_valued_by_order_of_joining(tmp_path):
    written(joined(), "good.csv")
    run("init", "good.csv", *ROLES, "--cohorts", "joined", "--empty", 0.5, "--run", "run")
    frame = pd.DataFrame(
        {
            "coalition": ['["owner 1"]', '["owner 0","owner 1","owner 2"]'],
            "utility": [0.7, 0.9],
        }
    )
    frame.to_csv("scores.csv", index=False)
    done = run("record", "run", "scores.csv")
    assert "by order of joining" in done.stdout + run("show", "run").stdout


def test_what_does_not_say_when_owners_joined_is_refused_before_a_run_begins(tmp_path):
    twice = joined()
    twice.loc[7, "joined"] = "2024-04-01"  # owner 1
    empty = joined()
    empty.loc[3, "joined"] = None
    for frame, words, options in (
        (twice, r"'owner 1' has '2023-01-01 00:00:00' in line 3 and '2024-04-01 00:00:00' in", ()),
        (
            empty,
            "cohort column 'joined' is empty in 1 of 60 rows, first in line 5, of 'owner 0'",
            (),
        ),
        (good(), "the table has no cohort column 'joined'", ()),
        (joined(), "is for Shapley values, but --semivalue is banzhaf", ("--semivalue", "banzhaf")),
    ):
        written(frame, "good.csv")
        assert words in refuse("value", "good.csv", *ROLES, "--cohorts", "joined", *options)
    assert "does not say when" in refuse("value", "good.csv", *ROLES, "--cohorts", "who")
    assert not list(tmp_path.glob("dupre-*"))
