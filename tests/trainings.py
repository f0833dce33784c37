"""Utilities to train elsewhere, trainings of them, and what must be the same wherever they run."""

import functools
import os
import resource
import signal
import sys
import time
from pathlib import Path

import cloudpickle
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import dupre
from dupre.training.evaluation import Training
from dupre.training.worker_process import ProcessSettings
from workers import wait_for

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
