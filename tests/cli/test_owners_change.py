"""`dupre resume --data NEW`: owners who join, leave and change, and rows split anew."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dupre
from commands import refuse, run
from stores import sql

NAMES = ("Ada", "Ben", "Cleo", "Dan")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(*names, rows=24):
    """The same rows for an owner, whoever else is there."""
    parts = []
    for name in names:
        rng = np.random.default_rng(list(name.encode()))
        x, z = rng.normal(size=(2, rows)).round(3)
        y = np.where(x + rng.normal(size=rows) > 0, "yes", "no")
        parts.append(pd.DataFrame({"x": x, "z": z, "who": name, "y": y}))
    return pd.concat(parts, ignore_index=True)


def begin(*options, budget=9):
    table(*NAMES).to_csv("data.csv", index=False)
    how = ("--owner", "who", "--target", "y", "--folds", 3, "--run", "run", *options)
    return run("value", "data.csv", *how, "--budget", budget)


def resume(frame, *options, code=0):
    frame.to_csv("data.csv", index=False)
    return run("resume", "run", *options, code=code).stderr


def result():
    return dupre.Valuation.from_json(Path("run/result.json").read_text())


def trained():
    return sql("run/store.sqlite", "SELECT count(*) FROM folds")[0][0]


def test_a_newcomer_trains_and_does_not_validate_until_it_is_asked_for():
    begin()
    before, folds = result(), trained()
    told = resume(table(*NAMES, "Eve"))
    after = result()
    assert re.search(r"^  changes +new: Eve$", told, flags=re.MULTILINE)
    assert "valid: 9 of 9 trainings of the result before, which is kept in its history" in told
    assert "every value is within ± " in told
    assert "every row of the beginning validates once" in told
    assert after.facts.found == 9
    new = after.facts.evaluated - 9
    assert f"\n{new} trainings instead of {after.facts.evaluated}, as many as" in told
    assert after.facts.validation_rows == before.facts.validation_rows
    assert after.facts.validating["Eve"] == 0
    assert "not_validating" in {note.code for note in after.notes}
    assert (after.facts.grand, after.facts.empty) != (0, 0)
    assert trained() > folds
    old = before.evaluations.set_index(["coalition", "repeat"])["utility"]
    new = after.evaluations.set_index(["coalition", "repeat"])["utility"]
    assert new[old.index].tolist() == old.tolist()

    told = resume(table(*NAMES, "Eve"), "--revalidate", "--budget", 5)
    assert f"{after.facts.evaluated} coalitions scored on other rows so far would be" in told
    assert "every row validates once" in told
    again = result()
    assert again.facts.validating["Eve"] == pytest.approx(0.2)
    assert again.facts.found == 0
    assert "not_validating" not in {note.code for note in again.notes}
    resume(table(*NAMES, "Eve"))  # which goes on with the new rows
    assert result().facts.validating["Eve"] == pytest.approx(0.2)


def test_a_leaver_takes_its_rows_out_of_the_validation_without_a_training():
    begin(budget=15)
    folds = trained()
    told = resume(table("Ada", "Cleo", "Dan"), "--no-spot-check")
    assert "no longer there: Ben" in told
    assert "0 trainings instead of 7" in told
    assert trained() == folds
    left = result()
    assert left.facts.validation_rows == 72
    fresh = dupre.Owners.from_frame(table("Ada", "Cleo", "Dan"), owner="who", target="y")
    assert left.owners == fresh.names
    assert (Path("run/history/1/result.json")).is_file()
    # It comes again with the same rows: all that was trained with it counts again.
    told = resume(table(*NAMES), "--no-spot-check")
    assert "new: Ben" in told
    assert "0 trainings instead of 15" in told
    assert trained() == folds


def test_rows_that_changed_are_counted_by_name_before_anything_is_trained():
    begin()
    once = table(*NAMES)
    once.loc[once.index[once.who == "Ben"][0], "x"] += 1
    once.to_csv("data.csv", index=False)
    assert "add --accept-rows" in refuse("resume", "run")
    told = resume(once, "--accept-rows", "--budget", 1)
    assert "Ben: 1 of 24 rows changed\n" in told
    assert result().facts.validation_rows == 95

    copied = table("Cleo").assign(who="Ben")
    doubled = pd.concat([table("Ada", "Cleo"), copied, table("Dan", "Dan")])
    told = resume(doubled, "--accept-rows", "--budget", 1)
    assert "Ben: 24 of 24 rows changed\n" in told
    assert "Ben: all rows are Cleo's\n" in told
    assert "Dan: holds its rows twice\n" in told
    told = resume(doubled.replace({"who": {"Dan": "Fay"}}))
    assert "Dan is Fay now" in told


def test_classes_never_seen_and_no_rows_left_are_refused():
    begin(budget=3)
    odd = pd.concat([table(*NAMES), table("Eve").assign(y="maybe")])
    odd.to_csv("data.csv", index=False)
    assert "the class 'maybe', which no row had" in refuse("resume", "run")
    table("Fay", "Gus").to_csv("data.csv", index=False)
    message = refuse("resume", "run")
    assert "of the 96 rows that validate only 0 are still held by somebody" in message
