"""Trainings given to workers, locked for other processes, and saved to the store one by one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

from dupre.store.locks import Holder, find_holder
from dupre.store.store import Store
from dupre.training.evaluation import Evaluation, Training
from dupre.training.workers import Workers
from dupre.valuation.outcomes import Outcomes
from dupre.valuation.progress import Clock

POLL_SECONDS = 0.2
"""Time between two looks at whether another process has finished its trainings."""


class Execution:
    """The trainings of one run.

    Args:
        store: where evaluations are saved.
        workers: who train.
        outcomes: which trainings are done.
        clock: counts their time.
        is_over: whether the time of the run is over: no further training is started then.

    Attributes:
        trained: coalitions trained, each time that they were.
        failed: the first failed training that must not fail: no other is started.
    """

    def __init__(
        self,
        store: Store,
        workers: Workers,
        outcomes: Outcomes,
        clock: Clock,
        is_over: Callable[[], bool],
    ):
        self._store = store
        self._workers = workers
        self._outcomes = outcomes
        self._clock = clock
        self._is_over = is_over
        self._unsaved: list[Evaluation] = []
        self._reported: set[Holder] = set()
        self.trained = 0
        self.failed: Evaluation | None = None

    def run(self, trainings: list[Training]) -> Iterator[Evaluation]:
        """Evaluate what no other process is evaluating, wait for what others are.

        Yields every evaluation once it is saved.
        """
        waiting = trainings
        while waiting and not self._stops:
            with self._clock.training():
                for evaluation in self._workers.run(filter(self._lock, waiting)):
                    self._keep(evaluation)
                    yield evaluation
            waiting = [t for t in waiting if not self._outcomes.is_answered(t)]
            if waiting and not self._stops:
                self._wait()
                self._store.refresh()

    def _keep(self, evaluation: Evaluation) -> None:
        """Save an evaluation, or know that it is not saved."""
        self._unsaved.append(evaluation)
        self.save(evaluation)
        self._unsaved.remove(evaluation)
        self._store.unlock(evaluation.training)

    def save(self, evaluation: Evaluation) -> None:
        """Save an evaluation to the store."""
        self._store.save(evaluation)
        named, skip = bool(evaluation.training.members), self._outcomes.skip
        self.trained += named
        if evaluation.utility is None and not (skip and named):
            self.failed = self.failed or evaluation

    def unsaved(self) -> list[Evaluation]:
        """Evaluations that are finished but not in the store, each once."""
        found = [*self._unsaved, *self._workers.finished_evaluations()]
        return list({(e.training.members, e.training.repeat): e for e in found}.values())

    @property
    def _stops(self) -> bool:
        """Whether no further training is started."""
        return self.failed is not None or self._is_over()

    def _lock(self, training: Training) -> bool:
        """Lock a training, unless another process does it, or no more is started."""
        if self._stops or self._outcomes.is_answered(training):
            return False
        if not self._store.lock(training):
            return False
        self._store.refresh()
        if self._outcomes.is_answered(training):  # by another process, just before
            self._store.unlock(training)
            return False
        return True

    def _wait(self) -> None:
        """Wait a moment for another process, and say so if it is stopped."""
        time.sleep(POLL_SECONDS)
        holder = find_holder(self._store.path) if self._store.path is not None else None
        if holder is not None and holder.stopped and holder not in self._reported:
            self._reported.add(holder)
            warnings.warn(f"waiting for a training of {holder}", stacklevel=2)
