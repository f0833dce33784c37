import json

import pytest

from command_tables import (
    FEW,
    WINE,
    result,
    wine,
    written,
)
from commands import refuse, run


def test_compare_prints_the_probability_and_predict_knows_any_coalition(finished):
    found = result(finished)
    best, worst = found.values.idxmax(), found.values.idxmin()
    sentence = run("compare", "dupre-wine", worst, best, cwd=finished).stdout
    assert sentence.startswith(f"Shapley: {best} is worth more than {worst} with a probability of ")
    told = json.loads(run("compare", "dupre-wine", best, worst, "--json", cwd=finished).stdout)
    assert [one["semivalue"] for one in told] == ["Shapley", "Banzhaf"]
    assert told[0]["probability"] == found.probability_greater().loc[best, worst]
    assert told[0]["low"] < told[0]["difference"] < told[0]["high"]
    message = refuse("compare", "dupre-wine", "Alba", "Elba", cwd=finished)
    assert "unknown owner 'Elba' (did you mean 'Alba'?); the owners are 'Alba', 'Barolo'" in message

    trained = json.loads(found.evaluations["coalition"][0])
    everyone = found.facts.evidence.coalitions
    missing = everyone[everyone["utility"].isna()]["members"].iloc[0]
    both = ("--members", ",".join(trained), "--members", ", ".join(missing))
    lines = run("predict", "dupre-wine", *both, cwd=finished).stdout.splitlines()
    assert lines[0].endswith(", as evaluated")
    assert lines[1].startswith("{" + ", ".join(missing) + "}: ")
    assert lines[1].endswith("), predicted")
    told = json.loads(run("predict", "dupre-wine", *both, "--json", cwd=finished).stdout)
    assert told[0]["utility"] == found.evaluations["utility"][0]
    assert told[1]["low"] < told[1]["utility"] < told[1]["high"]


@pytest.mark.slow
def test_compare_of_two_runs_says_who_moved(copy):
    (copy / "dupre-wine").rename(copy / "first")
    frame = wine()
    frame.loc[frame["winery"] == "Alba", "winery"] = "Fiano"
    written(frame, copy / "next.csv")
    run("value", "next.csv", *FEW[1:], "--budget", 14, "--run", "next", cwd=copy)
    told = run("compare", "first", "next", cwd=copy).stdout
    assert told.startswith("Shapley values of two results\n\nowner ")
    assert "\nJoined: Fiano (" in told
    assert "\nLeft: Alba (" in told
    assert "\nBoth are scored on the same validation rows: the intervals are for these.\n" in told
    assert told.endswith("of 4 owners moved by more than the intervals explain.\n")
    (found,) = json.loads(run("compare", "first", "next", "--json", cwd=copy).stdout)
    assert found["verdict"] == told.splitlines()[-1]
    assert set(found["joined"]) == {"Fiano"}
    both = json.loads(run("compare", "first", "first", "--json", cwd=copy).stdout)
    assert [one["semivalue"] for one in both] == ["Shapley", "Banzhaf"]

    how = ("value", "next.csv", *WINE[1:], "--budget", 3, "--holdout", 0.2, "--run")
    run(*how, "other", "--metric", "balanced_accuracy", cwd=copy)
    run(*how, "third", "--semivalue", "loo", cwd=copy)
    assert "metric was accuracy, now balanced_accuracy" in refuse(
        "compare", "first", "other", cwd=copy
    )
    assert "semivalue was Shapley, now leave-one-out" in refuse(
        "compare", "first", "third", cwd=copy
    )
    message = refuse("compare", "first", "Alba", cwd=copy)
    assert "there is no directory 'Alba'; state two owners, or the directory of a later" in message
