"""Trainings on a Dask cluster.

The utility is scattered to the workers once; a training is a few hundred bytes. Every thread of a
worker has a `ChildProcess` of its own: there too a training that takes too long can be killed, and
it computes what it would compute on this machine.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dupre.errors import InputError
from dupre.training.evaluation import Evaluation, Training
from dupre.training.worker_process import ChildProcess, PackedUtility, ProcessSettings, pack

if TYPE_CHECKING:
    from distributed import Client

    from dupre.utility.model import Utility

CONNECT_SECONDS = 5
"""How long to wait for a scheduler to answer."""


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
    """The workers of a Dask cluster; the utility is scattered to them once."""

    def __init__(self, utility: Utility, settings: ProcessSettings, client: Client):
        if not client.nthreads():
            raise InputError(
                "the Dask cluster has no workers; start some, or wait for them with "
                "client.wait_for_workers(1)"
            )
        self.on_finished: Callable[[Evaluation], object] | None = None
        self._client = client
        self._settings = settings
        self._token = uuid.uuid4().hex
        self._packed = pack(utility)
        self._running: dict[Any, Training] = {}
        self._scatter()

    def run(self, trainings: Iterator[Training]) -> Iterator[Evaluation]:
        """Evaluate trainings on all workers at the same time, also on those that join later."""
        from distributed import as_completed

        running = self._running = {}
        finished = as_completed(loop=self._client.loop)

        def submit(training: Training) -> None:
            future = self._client.submit(
                _evaluate_on_dask, self._shared, self._token, self._settings, training, pure=False
            )
            running[future] = training
            future.add_done_callback(self._tell)  # in a thread of the client
            finished.add(future)

        def fill() -> None:
            while len(running) < max(1, sum(self._client.nthreads().values())):
                if (training := next(trainings, None)) is None:
                    return
                submit(training)

        fill()
        for future in finished:
            training = running.pop(future)
            evaluation = _outcome(future, training)
            if evaluation is not None:
                yield evaluation
            elif training.attempt <= self._settings.retries:
                self._scatter()  # the only worker with the rows has died
                submit(replace(training, attempt=training.attempt + 1))
            else:
                yield Evaluation(training, None, failure="the Dask worker died", worker="dask")
            fill()

    def finished_evaluations(self) -> list[Evaluation]:
        """Evaluations that are finished but not yet yielded."""
        done = {f: training for f, training in self._running.items() if f.status == "finished"}
        outcomes = [_outcome(future, training) for future, training in done.items()]
        return [evaluation for evaluation in outcomes if evaluation is not None]

    def _tell(self, future: Any) -> None:
        tell = self.on_finished
        if tell is not None and future.status == "finished":
            with suppress(Exception):  # `run` yields it again, or says what is wrong
                tell(future.result())

    def close(self) -> None:
        """Kill the child processes of all workers and delete the rows."""
        self.on_finished = None
        if self._client.status != "closed":
            with suppress(OSError):  # a scheduler that is gone has no workers left
                self._client.cancel(list(self._running))
                self._client.run(_close_children, self._token, on_error="ignore")
        self._shared.release()

    def _scatter(self) -> None:
        self._shared = self._client.scatter(self._packed, broadcast=True, hash=False)


def _outcome(future: Any, training: Training) -> Evaluation | None:
    """The evaluation of a finished Dask future; None if the result is lost.

    A worker may die after it has finished and before its result was fetched.
    """
    from distributed import CancelledError
    from distributed.scheduler import KilledWorker

    if future.status in ("cancelled", "lost"):
        return None
    try:
        error = future.exception()
        if error is None:
            evaluation: Evaluation = future.result()
            return evaluation
    except CancelledError:
        return None
    if isinstance(error, KilledWorker):
        return Evaluation(training, None, failure=f"the Dask worker died: {error}", worker="dask")
    raise error


_children: dict[tuple[str, int], ChildProcess] = {}
_payloads: dict[str, Path] = {}
_closed_runs: set[str] = set()
_lock = threading.Lock()


def _evaluate_on_dask(
    shared: PackedUtility, token: str, settings: ProcessSettings, training: Training
) -> Evaluation:
    """Runs in a thread of a Dask worker: evaluate in the child process of this thread."""
    key = token, threading.get_ident()
    with _lock:
        if token in _closed_runs:  # it was still waiting when the run ended
            return Evaluation(training, None, failure="closed")
        if token not in _payloads:
            _payloads[token] = shared.to_file()
        if key not in _children:
            _children[key] = ChildProcess(_payloads[token], settings)
    return _children[key].evaluate(training)


def _close_children(token: str) -> None:
    """Runs on a Dask worker: close the child processes of a run."""
    with _lock:
        _closed_runs.add(token)
        for key in [key for key in _children if key[0] == token]:
            _children.pop(key).close()
        if token in _payloads:
            with suppress(OSError):
                _payloads.pop(token).unlink()


@contextmanager
def connect(address: str) -> Iterator[Client | None]:
    """A client of the Dask scheduler at an address; None for an empty address.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """
    if not address:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as cause:
        raise InputError("--dask needs distributed: pip install 'dupre[dask]'") from cause
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as cause:
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({cause}); start one with `dask scheduler` "
            "and give its address, such as tcp://localhost:8786"
        ) from cause
    try:
        yield client
    finally:
        client.close()
