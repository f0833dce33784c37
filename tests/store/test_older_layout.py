"""Stores and run directories that were written when all modules of dupre lay in one directory.

`fixtures/run-flat-layout` was made with the last version of that layout by `dupre value table.csv
--owner clinic --target ill --model knn --budget 12 --semivalue shapley --semivalue banzhaf`.
"""

import json
import shutil
from pathlib import Path

import pytest

from dupre.cli.verbs import app

ALL_FORMS = True
FIXTURES = Path(__file__).parents[1] / "fixtures"
RUN = FIXTURES / "run-flat-layout"
TABLE = FIXTURES / "run-flat-layout-table.csv"


@pytest.fixture
def dupre_command(capfd):
    """Run the command in this process; what it prints as JSON, if it does."""

    def run(*arguments):
        app([str(argument) for argument in arguments], standalone_mode=False)
        printed = capfd.readouterr().out
        return json.loads(printed) if "--json" in arguments else printed

    return run


@pytest.fixture
def older_run(tmp_path, monkeypatch):
    """A copy of the run directory and its result; pages of it have no figures."""
    monkeypatch.setattr("dupre.report.page.draw_figure", lambda *_, **__: "<svg></svg>")
    shutil.copytree(RUN, tmp_path / "run")
    return tmp_path / "run", json.loads((RUN / "result.json").read_text())


def test_an_older_run_is_shown_reported_and_resumed_from_its_trainings(older_run, dupre_command):
    directory, result = older_run
    shown = dupre_command("show", directory, "--json")
    for now, then in zip(shown["valuations"], result["valuations"], strict=True):
        assert all(now[k] == then[k] for k in ("covariance", "coalitions"))
        for owner, before in zip(now["owners"], then["owners"], strict=True):
            assert {key: owner[key] for key in before} == before
    dupre_command("report", directory)
    assert "Dee" in (directory / "report.html").read_text()
    again = dupre_command("resume", directory, "--data", TABLE, "--trust", "--json")
    for now, then in zip(again["valuations"], result["valuations"], strict=True):
        for owner, before in zip(now["owners"], then["owners"], strict=True):
            assert before["low"] <= owner["value"] <= before["high"]  # 3 of 15 are predicted anew
        assert any("12 trainings are by dupre 0.1 or before" in text for text in now["caveats"])
        assert now["trainings"]["checked"] == 1
    more = dupre_command("resume", directory, "--data", TABLE, "--budget", "+3", "--json")
    assert [v["trainings"]["found"] for v in more["valuations"]] == [12, 15]
