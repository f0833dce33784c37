"""What to watch the processes with that train, and to end them."""

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import pytest

linux = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads /proc")

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # children need not import it


def wait_for(condition, seconds=240.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(0.002)
    return found


def read_pid(path):
    """The number of a process in a file, as soon as it is complete."""
    wait_for(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def kill_when_written(path):
    os.kill(read_pid(path), signal.SIGKILL)


def stat_of(pid):
    """State, parent and group of a process; state blank if there is none."""
    try:
        state, parent, group = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return " ", 0, 0
    return state, int(parent), int(group)


def is_gone(pid):
    return stat_of(pid)[0] in "Z "


def children_of(pid):
    """Every child of a process, also a dead one nobody has asked about."""
    everyone = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return {one for one in everyone if stat_of(one)[1] == pid}


@contextmanager
def meanwhile(action):
    """Do something in a thread; what goes wrong in it goes wrong here."""
    problems = []

    def act():
        try:
            action()
        except Exception as problem:
            problems.append(problem)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    yield
    thread.join()
    assert not problems, problems
