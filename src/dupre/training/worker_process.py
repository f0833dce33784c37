"""Child processes that train, one training at a time.

A `ChildProcess` loads the utility once and evaluates one training after the other. It is killed
when a training takes too long. When it dies, one training is lost, not the run. Large arrays of the
utility lie in one file that all children of a machine map into their memory: they share one copy
of the rows.

The child is a plain Python process, not one of multiprocessing: scripts need no main guard, the
number of threads is limited before anything is imported, and a child ends when its parent is gone.
"""

from __future__ import annotations

import importlib
import json
import mmap
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

import cloudpickle
import numpy as np

from dupre.errors import InputError, Remedy
from dupre.files import open_lossy, open_missing
from dupre.training.evaluation import Evaluation, Training, evaluate

if TYPE_CHECKING:
    from dupre.utility.model import Utility

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dupre.training.worker_process import serve; serve(sys.argv[2], int(sys.argv[3]))"
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_ALIGNED = 64


@dataclass(frozen=True)
class ProcessSettings:
    """How a training is run, wherever it is.

    Attributes:
        threads: of BLAS and OpenMP in each training.
        timeout: seconds after which a training counts as failed; None for no limit.
        retries: further attempts when the process of a training dies.
    """

    threads: int = 1
    timeout: float | None = None
    retries: int = 2


class ChildProcess:
    """A process for one training at a time; it is started again when it dies."""

    def __init__(self, payload: Path, settings: ProcessSettings):
        self._payload = payload
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None
        self._expired = False
        self._closed = False
        self._busy = threading.Lock()
        self._asking = threading.Lock()
        self._asked = 0

    def warm_up(self) -> None:
        """Start the process before the first training."""
        with self._busy:
            try:
                self._start()
            except _DIED:
                self._reap()

    def evaluate(self, training: Training) -> Evaluation:
        """Evaluate in the process, and again in a new one if it dies.

        Raises:
            InputError: the utility cannot be loaded in another process.
        """
        with self._busy:
            return self._evaluate(training)

    def _evaluate(self, training: Training) -> Evaluation:
        start = time.perf_counter()
        self._expired = False
        for attempt in range(training.attempt, training.attempt + self._settings.retries + 1):
            training = replace(training, attempt=attempt)
            try:
                self._start()
                return self._ask(training)
            except _DIED:
                end = self._reap()
            if self._closed:
                return Evaluation(training, None, failure="closed")
            if self._expired:
                failure = f"timeout: not finished after {self._settings.timeout:g} seconds"
                break
            advice = "; is memory short?" if end == "signal 9" else ""
            failure = f"the worker process died ({end}) in attempt {attempt}{advice}"
        return Evaluation(training, None, failure=failure, seconds=time.perf_counter() - start)

    def close(self) -> None:
        """Kill the process, also during a training."""
        self._closed = True
        if (child := self._child) is not None:
            _kill(child)
        with self._busy:  # a thread that was waiting for the child has left
            self._reap()

    def _start(self) -> None:
        if self._child is not None:
            if self._child.poll() is None:
                return
            self._reap()  # it died while idle
        arguments = [json.dumps(sys.path), str(self._payload), str(self._settings.threads)]
        self._child = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **dict.fromkeys(_THREADS, str(self._settings.threads))},
            start_new_session=True,  # Ctrl-C reaches the parent alone; see also _kill
        )
        if self._closed:  # by another thread in the meantime
            _kill(self._child)
        if (problem := _receive(self._child.stdout)) is not None:
            self._reap()
            raise InputError(
                "the utility cannot be loaded in a worker process; define what it needs in "
                "modules that workers can import, or use ",
                Remedy.ONE_PROCESS,
                f"\n{problem}",
            )

    def _ask(self, training: Training) -> Evaluation:
        """Send a training to the child, receive its evaluation; raises _DIED if it dies."""
        assert self._child is not None
        timer = None
        if self._settings.timeout is not None:
            timer = threading.Timer(self._settings.timeout, self._expire, [self._asked])
            timer.daemon = True
            timer.start()
        try:
            _send(self._child.stdin, training)
            evaluation: Evaluation = _receive(self._child.stdout)
            return evaluation
        finally:
            if timer is not None:
                timer.cancel()
            with self._asking:
                self._asked += 1

    def _expire(self, asked: int) -> None:
        with self._asking:
            if asked == self._asked and self._child is not None:  # there is no answer yet
                self._expired = True
                _kill(self._child)

    def _reap(self) -> str:
        """Make sure that the child is dead, close its pipes, and say how it ended."""
        child, self._child = self._child, None
        if child is None:
            return "it could not be started"
        _kill(child)
        code = child.wait()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):  # a training may still wait in the pipe
                pipe.close()  # type: ignore[union-attr]  # both are pipes
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a child together with the processes it has started."""
    if child.returncode is not None:
        return
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # it has a session of its own
    else:
        child.kill()


_DIED = (EOFError, OSError, pickle.UnpicklingError)
"""What reading from or writing to a child raises when it is dead."""


def serve(payload: str, threads: int) -> None:
    """What a child does: load the utility, report, then evaluate each training from stdin.

    Answers go to the original stdout. What trainings print goes to stderr. Their stdin is empty.
    Processes that they fork do not keep the pipe of answers open.
    """
    open_missing()
    answers, questions = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = sys.stderr = open_lossy(2)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: os.close(answers.fileno()))
    trainings: SimpleQueue[Training] = SimpleQueue()
    threading.Thread(target=_listen, args=(questions, trainings, payload), daemon=True).start()
    try:
        utility = PackedUtility.from_file(Path(payload))
    except Exception:  # noqa: BLE001  # loading runs the user's code; the parent reports it
        _send(answers, traceback.format_exc())
        return
    _send(answers, None)
    while True:
        evaluation = evaluate(utility, trainings.get(), threads=threads)
        _send(answers, replace(evaluation, cause=None))  # exceptions may not be picklable


def _listen(stdin: IO[bytes], trainings: SimpleQueue[Training], payload: str) -> None:
    """Receive trainings. When the parent is gone, delete the rows and end everything."""
    with suppress(*_DIED):
        while True:
            trainings.put(_receive(stdin))
    with suppress(OSError):
        os.unlink(payload)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)  # with all that the training has started
    os._exit(1)


def _send(stream: IO[bytes] | None, thing: Any) -> None:
    assert stream is not None
    pickle.dump(thing, stream)
    stream.flush()


def _receive(stream: IO[bytes] | None) -> Any:
    assert stream is not None
    return pickle.load(stream)  # from our own child or parent


@dataclass(frozen=True)
class PackedUtility:
    """A utility to be sent to other processes: its pickle, and its large arrays as bytes."""

    pickled: bytes
    buffers: tuple[Any, ...]

    def to_file(self) -> Path:
        """Write it to a temporary file that processes can share.

        Raises:
            InputError: the disk is full.
        """
        with ExitStack() as stack:
            try:
                descriptor, name = tempfile.mkstemp(prefix="dupre-", suffix=".rows")
                stack.callback(os.unlink, name)
                with os.fdopen(descriptor, "wb") as file:
                    sizes = [len(buffer) for buffer in self.buffers]
                    pickle.dump((self.pickled, sizes), file)
                    for buffer in self.buffers:
                        file.write(b"\0" * (-file.tell() % _ALIGNED))
                        file.write(buffer)
            except OSError as cause:
                raise InputError(
                    f"the rows for the workers do not fit into {tempfile.gettempdir()} ({cause}); "
                    "set the environment variable TMPDIR to a directory with more room"
                ) from cause
            stack.pop_all()
        return Path(name)

    @staticmethod
    def from_file(path: Path) -> Utility:
        """The utility. Its large arrays stay in the file; pages are read when they are used.

        A process can write to the arrays; no other process sees it.
        """
        with path.open("rb") as file:
            pickled, sizes = pickle.load(file)  # written by our parent
            start = file.tell()
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        buffers = []
        for size in sizes:
            start += -start % _ALIGNED
            buffers.append(whole[start : start + size])
            start += size
        config, utility = pickle.loads(pickled, buffers=buffers)
        if config is not None:
            importlib.import_module("sklearn").set_config(**config)
        loaded: Utility = utility
        return loaded


def _sklearn_config() -> Any:
    """The configuration of scikit-learn, which other processes must have too; None if default.

    To set it a process must import scikit-learn, which takes longer than all else at its start.
    """
    if (sklearn := sys.modules.get("sklearn")) is None:
        return None
    with ThreadPoolExecutor(1) as new_thread:  # a new thread has the default
        default = new_thread.submit(sklearn.get_config).result()
    return None if sklearn.get_config() == default else sklearn.get_config()


def pack(utility: Utility) -> PackedUtility:
    """Pack a utility, also one defined in a script or a notebook.

    Raises:
        InputError: it holds something that cannot be sent to another process.
    """
    buffers: list[pickle.PickleBuffer] = []
    slim = utility.to_send() if hasattr(utility, "to_send") else utility
    try:
        data = cloudpickle.dumps(
            (_sklearn_config(), slim), protocol=5, buffer_callback=buffers.append
        )
    except Exception as cause:  # the user's objects pickle themselves by code of their own
        raise InputError(
            f"the utility cannot be sent to worker processes: {cause}; open files, connections and "
            "locks inside the call instead of keeping them in the model or utility, or use ",
            Remedy.ONE_PROCESS,
            " without ",
            Remedy.TIMEOUT,
        ) from cause
    return PackedUtility(data, tuple(np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers))
