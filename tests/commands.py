"""The command in this process, or as a process of its own where signals and streams matter."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from dupre.cli import app

COMMAND = Path(sys.executable).parent / "dupre"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
RUN_FILES = ("config.toml", "store.sqlite", "result.json", "values.csv", "report.html")
"""What a run directory holds besides the locks of its store."""


def run(*arguments, cwd=".", code=0):
    """Run the command in this process; what it printed to stdout and stderr."""
    arguments = ["dupre", *map(str, arguments)]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        chdir(cwd),
        patch.object(sys, "argv", arguments),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        app.main()
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    assert (end.value.code or 0) == code, texts[1]
    return SimpleNamespace(stdout=texts[0], stderr=texts[1])


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
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
