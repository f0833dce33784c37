import json
from pathlib import Path

import pytest

from command_tables import (
    FEW,
    good,
    value,
)
from commands import refuse, run


@pytest.mark.slow
def test_show_and_report_give_the_same_again(finished):
    assert run("show", "dupre-wine", cwd=finished).stdout == (finished / "out.txt").read_text()
    assert run("show", "dupre-wine", cwd=finished).stderr == "Page: dupre-wine/report.html\n"
    done = run("show", "dupre-wine", "--json", cwd=finished)
    assert done.stderr == ""
    names = [v["semivalue"] for v in json.loads(done.stdout)["valuations"]]
    assert names == ["Shapley", "Banzhaf"]
    page = finished / "dupre-wine/report.html"
    before = page.read_bytes()
    page.unlink()
    assert run("report", "dupre-wine", cwd=finished).stdout == "dupre-wine/report.html\n"
    assert page.read_bytes() == before


def test_questions_about_trainings_that_are_gone_make_no_empty_store(data):
    run("value", *FEW, "--budget", "3", "--run", "gone", cwd=data)
    (data / "gone/store.sqlite").unlink()
    questions = (("show", "--semivalue", "banzhaf"), ("predict", "--members", "Alba"), ("suggest",))
    for asked in questions:
        message = refuse(asked[0], "gone", *asked[1:], cwd=data)
        assert "the trainings of 'gone' are gone: it has a result, but no store.sqlite" in message
        assert not (data / "gone/store.sqlite").exists()
    assert "3 of 31 possible coalitions" in run("show", "gone", cwd=data).stdout


@pytest.mark.slow
def test_verbs_that_take_the_last_result_say_if_trainings_were_stored_since(data):
    run("value", *FEW, "--budget", 7, "--run", "run", cwd=data)
    asked = [("pay", "run", "--anyway", "--amount", 100), ("compare", "run", "Alba", "Etna")]
    for verb in asked:
        assert "stored after" not in run(*verb, cwd=data).stderr
    before = (data / "run/result.json").read_text()
    run("resume", "run", "--budget", 9, cwd=data)
    (data / "run/result.json").write_text(before)  # as if it had been killed before the end
    for verb in asked:
        told = run(*verb, cwd=data).stderr
        assert "Note: trainings were stored after these values were computed; `dupre resume" in told


@pytest.mark.slow
def test_owners_are_found_without_the_blanks_at_the_ends_of_their_names(place):
    good().replace({"who": {"owner 1": "owner 1 "}}).to_csv("good.csv", index=False)
    value(budget=7)
    assert "is worth more than" in run("compare", "run", "owner 1", "owner 2").stdout
    assert "owner 1" in run("predict", "run", "--members", "owner 1,owner 0").stdout
    told = run("report", "run", "--statements", "st", "--only", "owner 1").stdout
    assert Path(told.removesuffix("\n")).is_file()
