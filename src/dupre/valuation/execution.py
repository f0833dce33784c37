"""Trainings given to workers, and saved to the store one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dupre.store.store import Store
from dupre.training.evaluation import Evaluation, Training
from dupre.training.workers import Workers
from dupre.valuation.outcomes import Outcomes
from dupre.valuation.progress import Clock


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
        self.trained = 0
        self.failed: Evaluation | None = None

    def run(self, trainings: list[Training]) -> Iterator[Evaluation]:
        """Do these trainings as long as none fails that must not; yield what is saved."""
        while trainings and not self._stops:
            # Asked for when a worker is free: an evaluation may have answered it meanwhile.
            wanted = (t for t in trainings if not (self._stops or self._outcomes.is_answered(t)))
            with self._clock.training():
                for evaluation in self._workers.run(wanted):
                    self._keep(evaluation)
                    yield evaluation
            trainings = [t for t in trainings if not self._outcomes.is_answered(t)]

    def _keep(self, evaluation: Evaluation) -> None:
        """Save an evaluation, or know that it is not saved."""
        self._unsaved.append(evaluation)
        self.save(evaluation)
        self._unsaved.remove(evaluation)

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
