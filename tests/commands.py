"""The command as its users run it: a subprocess that ends with an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).parent / "dupre"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def run(*arguments, cwd, code=0, **how):
    """Run the command to its end."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        **how,
    )
    assert done.returncode == code, done.stderr
    return done


def complaint(*arguments, cwd):
    """The message of a refusal: a line or two, no traceback, nothing on stdout."""
    done = run(*arguments, cwd=cwd, code=2)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert done.stderr.startswith("Error: ")
    return done.stderr
