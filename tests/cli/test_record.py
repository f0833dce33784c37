import csv
import io
import json
import re
from pathlib import Path

import pytest

from command_tables import (
    ROLES,
    WINE,
    change_owner_1,
    page,
    sheet,
)
from commands import refuse, run
from dupre.runs.directory import RunDirectory


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
    done = run("record", "ask", "results.csv", "--verbose", cwd=data)
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


COALITIONS = ('["owner 0", "owner 1", "owner 2"]', '["owner 0"]', '["owner 1"]')


@pytest.fixture
def recorded(place):
    """A run of trainings done elsewhere, with two recorded."""
    run("init", "good.csv", *ROLES, "--empty", "0.5", "--bounds", "0,9", "--run", "ask")
    run("record", "ask", sheet("first.csv", [(COALITIONS[0], 0.9), (COALITIONS[1], 0.7)]))


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
    done = run(
        "record", "ask", sheet("right.csv", [(COALITIONS[0], 0.8)]), "--replace", "--verbose"
    )
    assert "New: 0. Replaced: 1. In all: 2." in done.stderr
    assert "u(all owners) = 0.8" in done.stdout
    sheet("lost.csv", [(COALITIONS[0], None, "lost")], ("coalition", "utility", "failure"))
    assert "coalitions trained, 1 failed." in run("record", "ask", "lost.csv", "--replace").stdout


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
    told = run(*last, "--accept-rows", "--verbose").stdout
    assert "Not used" not in told  # which is said once, in this way:
    assert "you accepted to go on without 2 coalitions of the result before" in told
    assert "dupre init good.csv" in page("ask")
    assert "dupre record ask more.csv --data moved.csv" in page("ask")


def test_nothing_is_predicted_from_nothing_and_other_verbs_send_on(recorded):
    first, again = (run("suggest", "ask", "-n", "2").stdout for _ in range(2))
    assert first == again
    message = refuse("resume", "ask")
    assert "use `dupre suggest ask` and `dupre record ask FILE`" in message
    run("init", "good.csv", *ROLES, "--empty", "0.5", "--run", "my run")
    message = refuse("predict", "my run", "--members", "owner 1")
    assert "no utility to learn from has been recorded; see `dupre suggest 'my run'`\n" in message
