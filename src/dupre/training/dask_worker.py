"""What a run does on a Dask worker.

Every thread of a worker has a `ChildProcess` of its own: a training that takes too long can be
killed there too, and computes the same as on this machine. When the run has ended, its processes
are killed and its rows deleted.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from dupre.training.evaluation import Evaluation, Training
from dupre.training.packed_utility import PackedUtility, delete_abandoned_rows
from dupre.training.worker_process import CLOSED, ChildProcess, ProcessSettings

if TYPE_CHECKING:
    from distributed import Worker

WATCH_SECONDS = 2.0
"""Time between two looks at whether the other side is still there."""

_runs: dict[tuple[str, str], _Run] = {}
_closed_runs: set[tuple[str, str]] = set()
_lock = threading.Lock()


class _Run:
    """What one run has on a Dask worker: a file of rows, and a child process for every thread.

    A thread asks the scheduler whether the run still exists. If not, it is closed here.
    """

    def __init__(self, token: str, packed: PackedUtility, worker: Worker):
        delete_abandoned_rows()
        self._rows = packed.to_file()
        self._children: dict[int, ChildProcess] = {}
        self._closed = threading.Event()
        threading.Thread(target=self._watch, args=(token, worker), daemon=True).start()

    def child(self, settings: ProcessSettings) -> ChildProcess:
        """The child process of this thread."""
        thread = threading.get_ident()
        if thread not in self._children:
            self._children[thread] = ChildProcess(self._rows.path, settings)
        return self._children[thread]

    def close(self) -> None:
        """Kill the child processes and delete the rows."""
        self._closed.set()
        self._rows.delete()
        for child in self._children.values():
            child.close()

    def _watch(self, token: str, worker: Worker) -> None:
        from distributed.utils import sync

        while not self._closed.wait(WATCH_SECONDS):
            with suppress(OSError):  # a worker without a scheduler ends by itself
                try:
                    found = sync(
                        worker.loop, worker.scheduler.get_task_status, keys=[run_key(token)]
                    )
                except RuntimeError:  # the worker has ended, in a process that goes on
                    break
                if found[run_key(token)] is None:
                    break
        close_run(token, worker)


def run_key(token: str) -> str:
    """The task by which the scheduler knows a run."""
    return f"dupre-run-{token}"


def evaluate_on_worker(
    shared: PackedUtility, token: str, settings: ProcessSettings, training: Training
) -> Evaluation:
    """Runs in a thread of a Dask worker: evaluate in the child process of this thread."""
    from distributed import get_worker

    worker = get_worker()
    here = token, worker.id
    with _lock:
        if here in _closed_runs:  # it was still waiting when the run ended
            return Evaluation(training, None, failure=CLOSED)
        if here not in _runs:
            _runs[here] = _Run(token, shared, worker)
        child = _runs[here].child(settings)
    return child.evaluate(training)


def close_run(token: str, dask_worker: Worker) -> None:
    """Runs on a Dask worker: close a run there."""
    here = token, dask_worker.id
    with _lock:
        _closed_runs.add(here)
        if here in _runs:
            _runs.pop(here).close()
