"""Trainings on a Dask cluster.

The utility is scattered to the workers once; a training is a few hundred bytes. Every thread of a
worker has a `ChildProcess` of its own: a training that takes too long can be killed there too, and
computes the same as on this machine. When the run has ended, its processes are killed and its rows
deleted.

Each run keeps a small task on the scheduler. The scheduler forgets it when the run ends, or when
its client is gone for any reason. Workers look for this task to know whether the run still exists.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from dupre.errors import EngineError, InputError
from dupre.training.evaluation import Evaluation, Training
from dupre.training.packed_utility import PackedUtility, delete_abandoned_rows, pack
from dupre.training.worker_process import CLOSED, ChildProcess, ProcessSettings

if TYPE_CHECKING:
    from distributed import Client, Worker

    from dupre.utility.protocol import Utility

CONNECT_SECONDS = 5
"""How long to wait for a scheduler to answer."""

WAIT_SECONDS = 60.0
"""How long to wait for a scheduler or for workers that are gone."""

POLL_SECONDS = 0.5
"""Time between two looks at whether a cluster has come back."""

WATCH_SECONDS = 2.0
"""Time between two looks at whether the other side is still there."""

_Outcome = Evaluation | Exception | None
_Finished = SimpleQueue[tuple[Any, _Outcome]]


def check_client(client: Client) -> None:
    """Raise InputError if Dask is not installed, or if this is no client of it that can be used."""
    try:
        from distributed import Client as KnownClient
    except ImportError as cause:
        raise InputError("client= needs Dask; install it with pip install 'dupre[dask]'") from cause
    if not isinstance(client, KnownClient) or client.asynchronous:
        raise InputError(
            "client must be a dask.distributed.Client that is not asynchronous, got "
            f"{type(client).__name__}; make one with Client(address) or Client(n_workers=2)"
        )


class DaskCluster:
    """The workers of a Dask cluster; the utility is scattered to them once.

    It waits for a scheduler or for workers that are gone, but not longer than `wait` seconds.

    Raises:
        InputError: the cluster has no workers, or the utility cannot be sent.
    """

    def __init__(
        self,
        utility: Utility,
        settings: ProcessSettings,
        client: Client,
        wait: float = WAIT_SECONDS,
    ):
        self.on_finished: Callable[[Evaluation], object] | None = None
        self._client = client
        self._settings = settings
        self._wait = wait
        self._running: dict[Any, Training] = {}
        self._finished: list[Evaluation] = []  # not yet yielded
        self._wanted: Any = None
        self._shared: Any = None
        if not _places(client):
            raise InputError(
                "the Dask cluster has no workers, or its scheduler does not answer; start some, or "
                "wait for them with client.wait_for_workers(1)"
            )
        self._address = client.scheduler.address
        self._packed = pack(utility)
        self._share()

    def run(self, trainings: Iterator[Training]) -> Iterator[Evaluation]:
        """Evaluate trainings on all workers at the same time, also on those that join later.

        Raises:
            EngineError: the scheduler or all workers are gone.
        """
        self._running = {}
        finished: _Finished = SimpleQueue()
        while True:
            self._occupy(trainings, finished)
            if not self._running:
                return
            if (done := self._wait_for_one(finished)) is not None:
                self._finished = [done]
                if not done.failed:  # after a failure the caller decides first
                    self._occupy(trainings, finished)
                yield done
                self._finished = []

    def _occupy(self, trainings: Iterator[Training], finished: _Finished) -> None:
        """Submit as many trainings as can run, as long as there are any."""
        while len(self._running) < max(1, _places(self._client)):
            if (training := next(trainings, None)) is None:
                return
            self._submit(training, finished)

    def _submit(self, training: Training, finished: _Finished) -> None:
        what = (evaluate_on_worker, self._shared, self._token, self._settings, training)
        try:
            future = self._client.submit(*what, pure=False)  # or a repeat would be looked up
            self._running[future] = training
            future.add_done_callback(partial(self._collect, training, finished))
        except _errors() as cause:
            raise EngineError(self._gone()) from cause

    def _collect(self, training: Training, finished: _Finished, future: Any) -> None:
        """Runs in a thread of the client when a training is done."""
        outcome = _outcome(future, training)
        try:
            if isinstance(outcome, Evaluation) and (notify := self.on_finished) is not None:
                notify(outcome)
        finally:  # otherwise `run` would wait for it for ever
            finished.put((future, outcome))

    def _wait_for_one(self, finished: _Finished) -> Evaluation | None:
        """The next evaluation; None if there is none yet, or its training is tried again."""
        try:
            future, outcome = finished.get(timeout=WATCH_SECONDS)
        except Empty:
            self._wait_for_workers()  # without workers nothing would ever finish
            return None
        training = self._running.pop(future)
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is not None:
            return outcome
        self._share()
        if training.attempt > self._settings.retries:
            return Evaluation(training, None, failure="the Dask worker died", worker="dask")
        self._submit(replace(training, attempt=training.attempt + 1), finished)
        return None

    def finished_evaluations(self) -> list[Evaluation]:
        """Evaluations that are finished but not yet yielded."""
        done = {f: training for f, training in self._running.items() if f.status == "finished"}
        outcomes = [_outcome(future, training) for future, training in done.items()]
        running = [outcome for outcome in outcomes if isinstance(outcome, Evaluation)]
        return [*self._finished, *running]

    def close(self) -> None:
        """Kill the child processes of all workers and delete the rows."""
        self.on_finished = None
        if self._client.status == "running":
            with suppress(*_errors()):  # workers end a run by themselves once its client is gone
                self._client.cancel(list(self._running))
                self._client.run(close_run, self._token, on_error="ignore")
        for future in (self._shared, self._wanted):
            future.release()

    def _share(self) -> None:
        """Give the rows to the workers, unless they have them.

        The scheduler knows a task of this run until it is released, or the client is gone.
        """
        end = time.monotonic() + self._wait
        while True:
            self._wait_for_workers()
            try:
                if self._wanted is None or self._wanted.status not in ("pending", "finished"):
                    self._token = uuid.uuid4().hex
                    self._wanted = self._client.submit(str, key=run_key(self._token))
                if self._shared is None or self._shared.status != "finished":
                    self._shared = self._client.scatter(
                        self._packed, broadcast=True, hash=False, timeout=self._wait
                    )
                return
            except _errors() as cause:  # a worker has died meanwhile
                if time.monotonic() > end:
                    raise EngineError(self._gone()) from cause
                time.sleep(POLL_SECONDS)

    def _wait_for_workers(self) -> None:
        """Wait until the cluster can train; EngineError if it does not come back."""
        end = time.monotonic() + self._wait
        while not _places(self._client):
            if self._client.status == "closed" or time.monotonic() > end:
                raise EngineError(self._gone())
            time.sleep(POLL_SECONDS)

    def _gone(self) -> str:
        reasons = {
            "running": f"it has had no workers for {self._wait:g} seconds",
            "closed": "its client has given up connecting to the scheduler",
        }
        silent = f"its scheduler has not answered for {self._wait:g} seconds"
        reason = reasons.get(self._client.status, silent)
        return f"the Dask cluster at {self._address} is lost: {reason}; start it and connect again"


def _places(client: Client) -> int:
    """Threads of all workers; 0 if the scheduler does not answer."""
    if client.status != "running":  # it is connecting again, or has given up
        return 0
    try:
        ask = client.scheduler.ncores  # as `client.nthreads`, which may wait much longer
        return sum(client.sync(ask, workers=None, callback_timeout=CONNECT_SECONDS).values())
    except _errors():
        return 0


@cache
def _errors() -> tuple[type[Exception], ...]:
    """What Dask raises when a scheduler or its workers are gone."""
    from distributed import CancelledError
    from distributed.client import ClosedClientError

    return OSError, CancelledError, ClosedClientError, AttributeError, RuntimeError


def _outcome(future: Any, training: Training) -> _Outcome:
    """The evaluation or the error of a Dask future that is done; None if the result is lost.

    A worker may die after it has finished and before its result was fetched.
    """
    from distributed.scheduler import KilledWorker

    if future.status in ("cancelled", "lost"):
        return None
    try:
        error: Exception | None = future.exception()
        if error is None:
            evaluation: Evaluation = future.result()
            return None if evaluation.failure == CLOSED else evaluation
    except _errors():
        return None
    if isinstance(error, KilledWorker):
        return Evaluation(training, None, failure=f"the Dask worker died: {error}", worker="dask")
    return error


@contextmanager
def connect(address: str) -> Iterator[Client | None]:
    """A client of the Dask scheduler at an address, None for ""; InputError if none answers."""
    if not address:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as cause:
        raise InputError("--dask needs distributed: pip install 'dupre[dask]'") from cause
    try:
        Client(address, timeout=CONNECT_SECONDS, set_as_default=False).close()
        client = Client(address, timeout=WAIT_SECONDS)  # so long it tries to connect again, too
    except (OSError, ValueError) as cause:
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({cause}); start one with `dask scheduler` "
            "and give its address, such as tcp://localhost:8786"
        ) from cause
    try:
        yield client
    finally:
        client.close()


# On the workers.

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
