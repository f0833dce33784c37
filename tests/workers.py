"""Utilities to train elsewhere, and what to watch the processes with that do it."""

import functools
import os
import resource
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

import dupre
from dupre.game.coalitions import all_coalitions, to_names
from dupre.training.evaluation import Training
from dupre.training.worker_process import ProcessSettings

linux = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads /proc")
ONCE = ProcessSettings(retries=0)
A, B, C = Training(("a",)), Training(("b",)), Training(("c",))

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # children need not import it


@functools.cache
def forest():
    """A model with a seed of its own on a few digits of three owners."""
    X, y = load_digits(return_X_y=True)
    few = y < 3
    X, y = X[few][:160], y[few][:160]
    owners = dupre.Owners.from_arrays(X[:60], y[:60], np.repeat(["a", "b", "c"], 20))
    return dupre.ModelUtility(
        RandomForestClassifier(5, max_depth=2), owners, validation=(X[60:], y[60:])
    )


@functools.cache
def network():
    """Trainings that warn."""
    utility = forest()
    model = MLPClassifier((4,), max_iter=5)
    rows = utility.X_val, utility.y_val
    return dupre.ModelUtility(model, utility.owners, validation=rows, metric="neg_log_loss")


def all_trainings(utility):
    names = utility.owners.names
    several = [to_names(row, names) for row in all_coalitions(len(names))]
    return [Training(members, repeat) for members in several for repeat in (0, 1)]


def contents(evaluations):
    """What must be the same of evaluations wherever they were made."""
    return sorted(
        (e.training.members, e.training.repeat, e.utility, e.seed, e.warnings) for e in evaluations
    )


def holding(thing):
    """A utility that holds any thing and remembers what it was asked."""

    class Holder:
        def __init__(self):
            self.thing = thing
            self.asked = []

        def __call__(self, members):
            self.asked.append(members)
            return 0.5

    return Holder()


def meeting(folder, size=2):
    """A utility whose trainings wait for each other: they end only if they run at once."""

    def utility(members):
        (folder / members[0]).touch()
        wait_for(lambda: len(list(folder.iterdir())) >= size)
        return float(os.getpid())

    folder.mkdir()
    return utility


def end_badly(tried, members):
    """End the process in the way that the coalition is called; `tried` counts how often."""
    tried.open("a").write("x")
    attempts = len(tried.read_text())
    if members == ("exits",):
        sys.exit(7)
    if members == ("ends",):
        os._exit(7)
    if members == ("exhausts memory",):
        np.empty(2**55)
    if members == ("keeps all memory",):
        keep_all_memory()
    if members == ("interrupts",):
        raise KeyboardInterrupt
    if members == ("closes",):
        os.closerange(3, 1_000)
        time.sleep(600)
    if members == ("killed",) or (members == ("killed once",) and attempts == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


def keep_all_memory(kept=[], size=2**22):  # noqa: B006  # that is how it is kept
    """Leave no room for the record of a MemoryError either."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**24, resource.RLIM_INFINITY))
    while True:
        try:
            kept.append(bytearray(size))
        except MemoryError:
            if size < 64:
                raise
            size //= 2


def wait_for(condition, seconds=240.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(0.002)
    return found


def written_number(path):
    """The number in a file, as soon as it is complete."""
    wait_for(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def kill_when_written(path):
    os.kill(written_number(path), signal.SIGKILL)


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
