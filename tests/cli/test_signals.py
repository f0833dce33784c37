import os
import re
import signal
import subprocess
import sys

import pytest

from command_tables import (
    FEW,
    WINE,
)
from commands import COMMAND, environment, run, write_model
from dupre.cli.signals import interrupt_on_signals


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SIGINT", 130),
        pytest.param("SIGTERM", 143, marks=pytest.mark.slow),
        pytest.param("SIGHUP", 129, marks=pytest.mark.slow),
    ],
)
def test_signals_end_a_run_with_what_is_finished_and_the_way_to_go_on(data, name, code):
    end = f"begun.append(1); len(begun) != 3 or os.kill(os.getpid(), signal.{name})"
    write_model(data / f"ending_{code}.py", end)
    before = signal.getsignal(getattr(signal, name))
    how = ("--model", f"ending_{code}.py:Own", "--budget", 5, "--run", "run", "--holdout", 0.2)
    done = run("value", *WINE, *how, cwd=data, code=code)
    assert signal.getsignal(getattr(signal, name)) is before
    kept = "stopped; 2 trainings so far are kept .*`dupre resume run` goes"
    assert re.search(kept, done.stderr)


@pytest.mark.parametrize(
    ("module", "name"),
    [("typer", "SIGINT"), pytest.param("eager", "SIGTERM", marks=pytest.mark.slow)],
)
def test_a_signal_during_an_import_that_swallows_exceptions_ends_the_command(data, module, name):
    (data / "first").mkdir()
    send = f"os.kill(os.getpid(), signal.{name})"
    text = f"import os, signal\ntry: {send}\nexcept BaseException: pass\n"
    (data / f"first/{module}.py").write_text(text)  # typer is imported by the command itself
    env = environment(PYTHONPATH=os.pathsep.join([str(data / "first"), *filter(None, sys.path)]))
    how = ("value", *FEW, "--model", "eager:Own", "--run", "run")
    done = subprocess.run([COMMAND, *how], cwd=data, env=env, capture_output=True, check=False)
    assert done.returncode == 128 + getattr(signal, name)
    assert (done.stdout, done.stderr) == (b"", b"\nstopped\n")
    assert not (data / "run").exists()


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with interrupt_on_signals():
            os.kill(os.getpid(), signal.SIGHUP)  # raises nothing
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
