"""Where trainings run: in this process, in processes of this machine, on a Dask cluster.

All of them take trainings from an iterator whenever a process is free, and yield evaluations as
they finish. What a training computes does not depend on where it runs: a `ModelUtility` takes its
seeds from the coalition, and the number of threads of BLAS and OpenMP is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol, runtime_checkable

from dupre.training.evaluation import Evaluation, Training, evaluate
from dupre.training.packed_utility import pack
from dupre.training.worker_process import ChildProcess, ProcessSettings
from dupre.utility.protocol import Utility


@runtime_checkable
class Workers(Protocol):
    """Processes or machines that train. The caller closes them.

    If they have an attribute `on_finished`, it is set to a function of an evaluation. They call it,
    in any thread, as soon as a training is finished: then it is stored even while nobody consumes
    what `run` yields.
    """

    def run(self, trainings: Iterator[Training]) -> Iterator[Evaluation]:
        """Take a training from the iterator whenever one can be started; yield evaluations.

        They are yielded as they finish, in any order. Take no more than can run at the same
        time: none is given once the run has to stop.
        """
        ...

    def finished_evaluations(self) -> list[Evaluation]:
        """Evaluations that were finished but not yet consumed when the caller left `run`."""
        ...

    def close(self) -> None:
        """Stop all trainings at once."""
        ...


class ThisProcess:
    """One training after the other in this process: a debugger can follow it."""

    def __init__(self, utility: Utility, settings: ProcessSettings):
        self._utility = utility
        self._settings = settings

    def run(self, trainings: Iterator[Training]) -> Iterator[Evaluation]:
        """Evaluate trainings one by one."""
        for training in trainings:
            yield evaluate(self._utility, training, threads=self._settings.threads)

    def finished_evaluations(self) -> list[Evaluation]:
        """None: a training that was interrupted is lost."""
        return []

    def close(self) -> None:
        """Nothing is left running."""


class LocalProcesses:
    """Child processes on this machine, each with a thread of this process that waits for it."""

    def __init__(self, utility: Utility, settings: ProcessSettings, jobs: int):
        self.on_finished: Callable[[Evaluation], object] | None = None
        self._rows = pack(utility).to_file()
        self._children = [ChildProcess(self._rows.path, settings) for _ in range(jobs)]
        self._threads = ThreadPoolExecutor(jobs)
        self._finished: list[Evaluation] = []  # not yet yielded
        self._busy: dict[Future[Any], ChildProcess] = {
            self._threads.submit(child.warm_up): child for child in self._children
        }

    def run(self, trainings: Iterator[Training]) -> Iterator[Evaluation]:
        """Evaluate trainings in all children at the same time."""
        starting = set(self._busy)
        while True:
            if not self._occupy(trainings) and starting.issuperset(self._busy):
                return
            for future in wait(self._busy, return_when=FIRST_COMPLETED).done:
                evaluation = future.result()
                del self._busy[future]
                if evaluation is None:  # the child has started
                    continue
                if not evaluation.failed:  # after a failure the caller decides first
                    self._occupy(trainings)
                yield evaluation
                self._finished.remove(evaluation)

    def _occupy(self, trainings: Iterator[Training]) -> bool:
        """Give every idle child a training; whether there was one for each."""
        busy = set(self._busy.values())
        for child in self._children:
            if child not in busy:
                if (training := next(trainings, None)) is None:
                    return False
                self._busy[self._threads.submit(self._evaluate, child, training)] = child
        return True

    def _evaluate(self, child: ChildProcess, training: Training) -> Evaluation:
        """Runs in the thread that waits for a child."""
        evaluation = child.evaluate(training)
        self._finished.append(evaluation)
        if (notify := self.on_finished) is not None:
            notify(evaluation)
        return evaluation

    def finished_evaluations(self) -> list[Evaluation]:
        """Evaluations that are finished but not yet yielded."""
        return list(self._finished)

    def close(self) -> None:
        """Kill the children and delete the file of rows."""
        self.on_finished = None  # trainings that are killed now are not reported
        self._rows.delete()  # first: if this process is killed now, no file is left
        for child in self._children:
            child.close()
        self._threads.shutdown()
        self._rows.delete()  # Windows keeps a file that is in use
