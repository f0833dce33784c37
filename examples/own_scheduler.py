"""Your own scheduler: whenever a place is free, ask what to train there, and tell what came out.

A thread pool stands for the job queue of a cluster; jobs finish in any order. Unlike
`dupre.value`, which waits for a whole batch, this keeps every place busy; what is evaluated then
depends on which job finishes first.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

import dupre

X, y = load_diabetes(return_X_y=True)
clinic = np.array(["A", "B", "C", "D", "E", "F"])[np.arange(300) % 6]
owners = dupre.Owners.from_arrays(X[:300], y[:300], clinic)


def job(members: tuple[str, ...]) -> float:
    """R² on rows no clinic has seen."""
    rows = np.flatnonzero(np.isin(clinic, members))
    return Ridge(alpha=0.1).fit(X[rows], y[rows]).score(X[300:], y[300:])


PLACES, BUDGET = 3, 25
valuer = dupre.Valuer(owners, empty=0.0)
running: dict[Future[float], tuple[str, ...]] = {}
with ThreadPoolExecutor(PLACES) as queue:
    while valuer.evaluated + len(running) < BUDGET or running:
        free = min(PLACES - len(running), BUDGET - valuer.evaluated - len(running))
        if free and (asked := valuer.suggest(free, pending=running.values())):
            running |= {queue.submit(job, members): members for members in asked}
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            members = running.pop(done)
            if done.exception() is None:
                valuer.record(members, done.result())
            else:
                valuer.record_failure(members, str(done.exception()))

print(valuer.values())
print("\nExpected half widths of the 95 % intervals:")
print(valuer.forecast(10).iloc[::5].round(4).to_string())
