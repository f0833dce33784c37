"""The trainings of a run: which of them are done, which are missing, and doing them.

Coalitions that hold the same rows share their trainings if the store goes by contents. A coalition
that is scored on folds takes one for each; it is done when the last of them is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count, takewhile

from dupre._types import Names
from dupre.errors import InputError
from dupre.game.coalitions import format_members
from dupre.store.store import Store
from dupre.training.evaluation import Evaluation, Training, known_evaluations, pool
from dupre.training.workers import Workers
from dupre.utility.describe import Traits


class Trainings:
    """The trainings of one run, each saved to the store the moment it is finished.

    Args:
        store: where evaluations are saved.
        workers: who train.
        traits: of the utility.
        owners: names, in the order in which a utility is given them.
        repeats: trainings of each coalition.
        skip: whether a coalition whose training failed is given up.
        is_over: whether the time of the run is over: no further training is started then.

    Attributes:
        twice: keys of the coalitions whose second training counts though `repeats` is 1.
        count: of trainings, those for single folds each.
        failed: the first failed training that must not fail: no other is started.
    """

    def __init__(
        self,
        store: Store,
        workers: Workers,
        traits: Traits,
        owners: Names,
        *,
        repeats: int,
        skip: bool,
        is_over: Callable[[], bool],
    ):
        self.store = store
        self.repeats = repeats
        self.twice: set[Hashable] = set()
        self.count = 0
        self.failed: Evaluation | None = None
        self._workers = workers
        self._traits = traits
        self._owners = owners
        self._skip = skip
        self._is_over = is_over
        self._unsaved: list[Evaluation] = []

    def is_done(self, members: Names) -> bool:
        """Whether no training of a coalition is missing."""
        return all(self._is_answered(Training(members, r)) for r in range(self.repeats))

    def missing(self, members: Names) -> list[Training]:
        """The trainings of a coalition that are still to be done."""
        return self._unanswered((members, repeat) for repeat in range(self.repeats))

    def missing_again(self, coalitions: Iterable[Names], further: int = 1) -> list[Training]:
        """The second trainings of coalitions, or more, that are still to be done."""
        repeats = range(1, further + 1)
        return self._unanswered((members, r) for r in repeats for members in coalitions)

    def scores(self, members: Names) -> list[float]:
        """Utilities of all trainings of a coalition up to the first repeat that is missing."""
        found = self.store.utilities(members)
        return [found[repeat].score for repeat in takewhile(found.__contains__, count())]

    def utilities(self, members: Names) -> list[float]:
        """Utilities of those trainings of a coalition that count."""
        found = self.store.utilities(members)
        repeats = 2 if self.store.key(members) in self.twice else self.repeats
        return [found[repeat].score for repeat in sorted(found) if repeat < repeats]

    def failures(self, members: Names) -> list[Evaluation]:
        """Failed trainings of a coalition that count and were not repeated with success."""
        return self._failures(members, range(self.repeats))

    def run(self, trainings: list[Training]) -> Iterator[Evaluation]:
        """Do these trainings as long as none fails that must not; yield what is saved."""
        while trainings and not self._stops:
            # Looked at when a worker is free: another training may have answered it meanwhile.
            wanted = (t for t in trainings if not (self._stops or self._is_answered(t)))
            for evaluation in self._workers.run(wanted):
                self._keep(evaluation)
                yield evaluation
            trainings = [t for t in trainings if not self._is_answered(t)]

    def save(self, evaluation: Evaluation) -> None:
        """Save an evaluation to the store."""
        self.store.save(evaluation)
        self.count += bool(evaluation.training.members)
        self._stop_if_failed(evaluation)
        if evaluation.part is not None:
            self._pool(evaluation.training)

    def unsaved(self) -> list[Evaluation]:
        """Evaluations that are finished but not in the store, each once."""
        found = [*self._unsaved, *self._workers.finished_evaluations()]
        keys = [(e.training.members, e.training.repeat, e.training.fold) for e in found]
        return list(dict(zip(keys, found, strict=True)).values())

    def _keep(self, evaluation: Evaluation) -> None:
        """Save an evaluation, or know that it is not saved: Ctrl-C may come at any line."""
        self._unsaved.append(evaluation)
        self.save(evaluation)
        self._unsaved.remove(evaluation)

    def _stop_if_failed(self, evaluation: Evaluation) -> None:
        if evaluation.failed and not (self._skip and evaluation.training.members):
            self.failed = self.failed or evaluation

    @property
    def _stops(self) -> bool:
        """Whether no further training is started."""
        return self.failed is not None or self._is_over()

    def _is_answered(self, training: Training) -> bool:
        """Whether a training need not be done: it is done, or its coalition is given up."""
        counting = range(max(self.repeats, training.repeat + 1))
        given_up = self._skip and training.members and self._failures(training.members, counting)
        if given_up or training.repeat in self._successes(training.members):
            return True
        if training.fold is None:
            return False
        return training.fold in self.store.folds_done(training.members, training.repeat)

    def _unanswered(self, wanted: Iterable[tuple[Names, int]]) -> list[Training]:
        """What is left to do for coalitions, each with the number of a repeat."""
        trainings = [self._next_attempt(members, repeat) for members, repeat in wanted]
        left = [training for training in trainings if not self._is_answered(training)]
        return [one for training in left for one in self._by_fold(training)]

    def _by_fold(self, training: Training) -> list[Training]:
        """The trainings that one of a coalition takes; none if all of them are done already."""
        if not self._traits.in_parts or not training.members:
            return [training]
        # A kill may have come between the last fold and the utility of all.
        self._pool(training)
        if self._is_answered(training):
            return []
        every = [replace(training, fold=fold) for fold in range(self._traits.folds)]
        left = [one for one in every if not self._is_answered(one)]
        return left or [training]  # no utility follows from the folds: trained anew it says why

    def _pool(self, training: Training) -> None:
        """Save the utility of a coalition if it is trained for every fold."""
        members, repeat = training.members, training.repeat
        if len(self.store.folds_done(members, repeat)) == self._traits.folds:
            whole = replace(training, fold=None)
            found = pool(self._traits, whole, self.store.folds(members, repeat))
            self.store.save(found)
            self._stop_if_failed(found)

    def _next_attempt(self, members: Names, repeat: int) -> Training:
        """A training of a coalition, with the number of the attempt."""
        tried = self.store.failures(members).get(repeat)
        names = tuple(name for name in self._owners if name in members)
        return Training(names, repeat, tried.training.attempt + 1 if tried else 1)

    def _successes(self, members: Names) -> dict[int, Evaluation]:
        found: dict[int, Evaluation] = {}
        for names in self.store.same(members):
            found |= self.store.utilities(names)
        return found

    def _failures(self, members: Names, counting: range) -> list[Evaluation]:
        failed = {
            repeat: failure
            for names in self.store.same(members)
            for repeat, failure in self.store.failures(names).items()
            if repeat in counting
        }
        done = self._successes(members) if failed else {}
        return [failed[repeat] for repeat in sorted(failed) if repeat not in done]


def new_evaluations(store: Store, known: Mapping[Names, tuple[float, ...]]) -> list[Evaluation]:
    """What is known and not in the store yet; InputError if the store knows otherwise."""
    new = []
    for members, several in known.items():
        utilities = dict(enumerate(several))
        if both := store.contradiction(members, utilities):
            raise InputError(
                f"{both[0]!r} is given for {format_members(members)}, but the store has "
                f"{both[1]!r}; leave it out, or take another store"
            )
        stored, given = store.utilities(members), known_evaluations(members, utilities)
        new += [evaluation for evaluation in given if evaluation.training.repeat not in stored]
    return new
