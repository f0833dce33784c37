"""Engines: where trainings run, how long they may take, and what happens when one fails.

An engine is a record of settings. Its `start` returns workers for one utility. `Local` trains on
this machine, `Dask` on a cluster. Any object with `on_error` and `start` is an engine:

    class Here:
        on_error = "raise"

        def start(self, utility):
            return HereWorkers(utility)  # has run, finished_evaluations and close

Workers of your own call `evaluate` for each training. It turns an exception into a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import joblib

from dupre.checks import positive, whole
from dupre.errors import InputError
from dupre.training.dask import WAIT_SECONDS, DaskCluster, check_client
from dupre.training.evaluation import Evaluation, Training, evaluate
from dupre.training.packed_utility import delete_abandoned_rows
from dupre.training.worker_process import ProcessSettings
from dupre.training.workers import LocalProcesses, ThisProcess, Workers

if TYPE_CHECKING:
    from distributed import Client

    from dupre.utility.protocol import Utility

__all__ = ["Dask", "Engine", "Evaluation", "Local", "Training", "Workers", "evaluate"]

OnError = Literal["raise", "skip"]


@runtime_checkable
class Engine(Protocol):
    """What `dupre.value` asks of an engine."""

    @property
    def on_error(self) -> str:
        """What to do when a training fails: "raise" or "skip", see `Local`."""
        ...

    def start(self, utility: Utility) -> Workers:
        """Workers that evaluate this utility; the caller closes them."""
        ...


@dataclass(frozen=True)
class Local:
    """Trainings on this machine.

    With one job and no timeout they run in this process, where a debugger can follow them.
    Otherwise they run in child processes.

    Args:
        jobs: trainings at the same time, each in a process of its own; -1 for one per core.
        threads: threads of BLAS and OpenMP in each training. Their number can change the last
            digit of a utility.
        timeout: seconds after which a training counts as failed; None for no limit. Loading the
            utility has the same limit, but at least 30 seconds.
        retries: further attempts if the process of a training dies, unless memory was short.
        on_error: "raise" to stop at a failed training after those that are running have finished;
            the next call tries it again. "skip" to go on without it: its utility is predicted.

    Raises:
        InputError: an argument cannot be used.
    """

    jobs: int = 1
    threads: int = 1
    timeout: float | None = None
    retries: int = 2
    on_error: OnError = "raise"

    def __post_init__(self) -> None:
        if self.jobs != -1:
            whole(self.jobs, "jobs (or -1 for one per core)", least=1)
        _process_settings(self)

    def start(self, utility: Utility) -> Workers:
        """Workers of this machine for a utility.

        Raises:
            InputError: the utility cannot be sent to other processes.
        """
        delete_abandoned_rows()
        settings, jobs = _process_settings(self), joblib.effective_n_jobs(int(self.jobs))
        if jobs == 1 and settings.timeout is None:
            return ThisProcess(utility, settings)
        return LocalProcesses(utility, settings, jobs)


@dataclass(frozen=True)
class Dask:
    """Trainings on a Dask cluster.

    Args:
        client: a `dask.distributed.Client` of the cluster.
        threads: as for `Local`.
        timeout: as for `Local`.
        retries: further attempts if the process of a training or its Dask worker dies.
        on_error: as for `Local`.
        wait: seconds to wait for a scheduler or for workers that are gone, before the run ends;
            for a scheduler no longer than the `timeout=` of the client.

    Raises:
        InputError: an argument cannot be used, or Dask is not installed.
    """

    client: Client
    threads: int = 1
    timeout: float | None = None
    retries: int = 2
    on_error: OnError = "raise"
    wait: float = WAIT_SECONDS

    def __post_init__(self) -> None:
        check_client(self.client)
        positive(self.wait, "wait")
        _process_settings(self)

    def start(self, utility: Utility) -> Workers:
        """Workers of the cluster for a utility.

        Raises:
            InputError: the utility cannot be sent there, or the cluster has no workers.
        """
        return DaskCluster(utility, _process_settings(self), self.client, self.wait)


def check_engine(engine: Engine | None, n_jobs: int) -> Engine:
    """The engine that is asked for, by itself or by a number of processes."""
    if engine is None:
        return Local(jobs=n_jobs)
    if n_jobs != 1:
        raise InputError("give n_jobs=, or engine= with its own number of jobs, not both")
    if not isinstance(engine, Engine):
        raise InputError(
            f"engine must be Local() or Dask() of dupre.engines, or have `start` and `on_error`, "
            f"got {engine!r}"
        )
    return engine


def _process_settings(engine: Local | Dask) -> ProcessSettings:
    """What every training of an engine has in common, checked."""
    if engine.on_error not in ("raise", "skip"):
        raise InputError(f"on_error must be 'raise' or 'skip', got {engine.on_error!r}")
    return ProcessSettings(
        whole(engine.threads, "threads", least=1),
        None if engine.timeout is None else positive(engine.timeout, "timeout"),
        whole(engine.retries, "retries", least=0),
    )
