"""Child processes that train, one training at a time.

A `ChildProcess` loads the utility once and evaluates one training after the other. It is killed
when a training, or loading the utility, takes too long. When it dies, one training is lost, not the
run.

The child is a plain Python process, not one of multiprocessing: scripts need no main guard, the
number of threads is limited before anything is imported, and a child ends when its parent is gone.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

from dupre.errors import InputError, Remedy
from dupre.files import open_closed_streams, open_lossy
from dupre.training.evaluation import OUT_OF_MEMORY, Evaluation, Training, evaluate
from dupre.training.packed_utility import PackedUtility

_START = (
    "import gc, json, sys; gc.set_threshold(10_000); "  # importing is quicker: see cli.command
    "sys.path[:] = json.loads(sys.argv[1]); "
    "from dupre.training.worker_process import serve; serve(sys.argv[2], int(sys.argv[3]))"
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

CLOSED = "closed"
"""The failure of a training whose run has ended."""

# It imports the user's packages, which says nothing of how long a training may take.
LOAD_SECONDS = 30.0
"""Loading a utility may take this long, or as long as a training if that is more: it imports."""

NO_MEMORY = errno.ENOMEM
"""The exit code of a process that has not even memory left to answer."""

END_SECONDS = 2.0
"""How long a process that has stopped answering may take to end by itself."""


@dataclass(frozen=True)
class ProcessSettings:
    """How a training is run, on any machine.

    Attributes:
        threads: of BLAS and OpenMP in each training.
        timeout: seconds after which a training counts as failed; None for no limit. See also
            `LOAD_SECONDS`.
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
            self._expired = False
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
        start, killed = time.perf_counter(), _kills_for_memory()
        self._expired = False
        for attempt in range(training.attempt, training.attempt + self._settings.retries + 1):
            training = replace(training, attempt=attempt)
            try:
                child = self._start()
                with self._limit(self._settings.timeout):
                    _send(child.stdin, training)
                    evaluation: Evaluation = _receive(child.stdout)
                    return evaluation
            except _DIED:
                end = self._reap()
            if self._closed:
                return Evaluation(training, None, failure=CLOSED)
            if self._expired:
                failure = f"timeout: not finished after {self._settings.timeout:g} seconds"
                break
            failure = f"the worker process died ({end}) in attempt {attempt}"
            if end == f"exit code {NO_MEMORY}":
                failure = f"{OUT_OF_MEMORY}: the worker process had none left to answer"
                break
            if end == "signal 9":
                if (now := _kills_for_memory()) != killed:
                    failure = f"{OUT_OF_MEMORY}: the system killed the worker process"
                    break  # it would need as much again
                if now is None:
                    failure += "; is memory short?"
        seconds = time.perf_counter() - start
        return Evaluation(training, None, failure=failure, timed_out=self._expired, seconds=seconds)

    def close(self) -> None:
        """Kill the process, also during a training."""
        self._closed = True
        if (child := self._child) is not None:
            _kill(child)
        with self._busy:  # a thread that was waiting for the child has left
            self._reap()

    def _start(self) -> subprocess.Popen[bytes]:
        """The child, with the utility loaded; raises _DIED if it dies."""
        if self._child is not None:
            if self._child.poll() is None:
                return self._child
            self._reap()  # it died while idle
        arguments = [json.dumps(sys.path), str(self._payload), str(self._settings.threads)]
        self._child = child = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **dict.fromkeys(_THREADS, str(self._settings.threads))},
            start_new_session=True,  # Ctrl-C reaches the parent alone; see also _kill
        )
        if self._closed:  # by another thread in the meantime
            _kill(child)
        limit = self._settings.timeout and max(self._settings.timeout, LOAD_SECONDS)
        try:
            with self._limit(limit):
                problem = _receive(child.stdout)
        except _DIED:
            if not self._expired:
                raise
            problem = f"It was not loaded after {limit:g} seconds. A longer timeout allows more."
        if problem is not None:
            self._reap()
            raise InputError(
                "the utility cannot be loaded in a worker process; define what it needs in "
                "modules that workers can import, or use ",
                Remedy.ONE_PROCESS,
                f"\n{problem}",
            )
        return child

    @contextmanager
    def _limit(self, seconds: float | None) -> Iterator[None]:
        """Kill the child if this takes longer; None for no limit."""
        timer = None
        if seconds is not None:
            timer = threading.Timer(seconds, self._expire, [self._asked])
            timer.daemon = True
            timer.start()
        try:
            yield
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
        running = _is_running(child)
        _kill(child)
        code = child.wait()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):  # a training may still wait in the pipe
                pipe.close()  # type: ignore[union-attr]  # both are pipes
        if running:
            return "it closed the pipe for its answers"
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _is_running(child: subprocess.Popen[bytes]) -> bool:
    """Whether a child that has stopped answering goes on; it has a moment to end by itself.

    Its number is not given away before it is waited for: `_kill` needs it for its group.
    """
    end = time.monotonic() + END_SECONDS
    while child.returncode is None:
        if not hasattr(os, "waitid"):
            child.poll()
        elif os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return False
        if time.monotonic() > end:
            return child.returncode is None
        time.sleep(0.002)
    return False


def _kills_for_memory() -> int | None:
    """How many processes the system has killed because memory was short; None if it is unknown."""
    try:
        counts = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
        return int(counts["oom_kill"])
    except (OSError, KeyError, ValueError):  # not Linux, or an old one
        return None


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
    open_closed_streams()
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
        _answer(answers, traceback.format_exc(), payload)
        return
    _answer(answers, None, payload)
    while True:
        try:
            evaluation = evaluate(utility, trainings.get(), threads=threads)
            evaluation = replace(evaluation, cause=None)  # exceptions may not be picklable
            _answer(answers, evaluation, payload)
        except MemoryError:  # the record of one needs memory, too
            os._exit(NO_MEMORY)


def _listen(stdin: IO[bytes], trainings: SimpleQueue[Training], payload: str) -> None:
    """Receive trainings until the parent is gone."""
    try:
        while True:
            trainings.put(_receive(stdin))
    except _DIED as end:
        # A training may close all files; other children of the living parent need the rows then.
        if getattr(end, "errno", None) != errno.EBADF:
            _end(payload)


def _answer(answers: IO[bytes], thing: Any, payload: str) -> None:
    """Send something to the parent, unless it is gone."""
    try:
        _send(answers, thing)
    except BrokenPipeError:
        _end(payload)


def _end(payload: str) -> None:
    """Delete the rows and end everything, for the parent is gone."""
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
