"""The command in this process, or as a process of its own where signals and streams matter."""

import io
import os
import re
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pandas as pd
import pytest

from dupre.cli import app

COMMAND = Path(sys.executable).parent / "dupre"
RUN_FILES = ("config.toml", "store.sqlite", "result.json", "values.csv", "report.html")
"""What a run directory holds besides the locks of its store."""


def environment(**more):
    """Of a process that runs the command."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", **more}


def call(arguments, cwd, out, err):
    """Run the command in this process, with these streams; its exit code."""
    with (
        chdir(cwd),
        patch.object(sys, "argv", ["dupre", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        app.main()
    return end.value.code or 0


def make_stream():
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def text_of(stream):
    stream.seek(0)
    return stream.read()


def run(*arguments, cwd=".", code=0):
    """Run the command in this process; what it printed to stdout and stderr."""
    out, err = make_stream(), make_stream()
    found = call(arguments, cwd, out, err)
    assert found == code, text_of(err)
    return SimpleNamespace(stdout=text_of(out), stderr=text_of(err))


def write_model(path, before_fit):
    """A model of a user's own: a logistic regression that first does something in each fit."""
    path.write_text(
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "begun = []\n"
        "class Own(LogisticRegression):\n"
        "    def fit(self, X, y):\n"
        f"        {before_fit}\n"
        "        return super().fit(X, y)\n"
    )


def refuse(*arguments, cwd="."):
    """The message of a refusal: a line or two, the last of stderr, and nothing on stdout."""
    done = run(*arguments, cwd=cwd, code=2)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    _, message = re.split(r"^Error: ", done.stderr, flags=re.MULTILINE)
    assert len(message.splitlines()) <= 2
    return message


def start(*arguments, cwd):
    """The command as a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, cwd=cwd, env=environment(), start_new_session=True, **pipes)


NO_FIGURES = ("dupre.report.page.draw_figure", lambda *_, **__: "<svg></svg>")
"""To save time, what pages of tests get in place of a figure."""

SMALL = ("data.csv", "--owner", "owner", "--target", "y")


def write_small(place, owners=("A", "B", "C"), **columns):
    """A table of 60 rows for the options SMALL."""
    table = pd.DataFrame({"owner": [*owners] * (60 // len(owners)), "x": range(60)})
    table = table.assign(**{"y": [0, 1, 1, 0] * 15, **columns})
    table.to_csv(place / "data.csv", index=False)
    return table
