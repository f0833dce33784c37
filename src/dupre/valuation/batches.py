"""The batches of a run: what each of them trains, and what the next choice does not wait for.

A batch is written to the store before it starts. The coalitions at its end are late: the next batch
is chosen while they are trained, and from what is known without them, even if they are finished by
then. So workers need not wait for a choice, and no choice depends on which training ends first, on
the number of workers or on an interruption. The next batch begins with the late ones of the batch
before; the choice after it knows them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dupre._types import Names
from dupre.store.store import Store
from dupre.training.evaluation import Training
from dupre.valuation.outcomes import Outcomes
from dupre.valuation.second_trainings import SecondTrainings

LATE = 3
"""One of so many coalitions of a batch is late. As a third of a batch comes from the one before,
half of what is chosen is then under way at the next choice."""


class Batches:
    """The latest batch of the run with this key, and how the next one begins.

    Args:
        store: where batches are written.
        key: of the run.
        outcomes: which trainings are done.
        second: which coalitions are trained twice; None if none is.
        ahead: whether the next batch is chosen before the latest one is finished.

    Attributes:
        number: of the latest batch, 0 before the first.
        coalitions: of this batch, in the order in which they are trained.
        late: those that the next choice does not wait for.
        again: coalitions to be trained a second time by the end of this batch.
    """

    def __init__(
        self,
        store: Store,
        key: str,
        outcomes: Outcomes,
        second: SecondTrainings | None,
        *,
        ahead: bool,
    ):
        self._store = store
        self._key = key
        self._outcomes = outcomes
        self._second = second
        self._ahead = ahead
        self.number = 0
        self.coalitions: list[Names] = []
        self.late: list[Names] = []
        self.again: list[Names] = []
        self._late_keys: set[bytes] = set()
        self._finished: set[bytes] = set()
        self._awaited: list[Training] = []

    def read(self) -> None:
        """Take the latest batch from the store; the first design has no late coalitions."""
        self.number, self.coalitions = self._store.batch(self._key)
        self.again = [] if self._second is None else self._second.coalitions()
        late = len(self.coalitions) // LATE if self._ahead and self.number > 1 else 0
        first = self.coalitions[: len(self.coalitions) - late]
        valuer, repeats = self._outcomes.valuer, range(self._outcomes.repeats)
        self.late = [m for m in self.coalitions[len(first) :] if not valuer.has(m)]
        self._late_keys, self._finished = set(map(valuer.key, self.late)), set()
        self._awaited = [Training(members, repeat) for members in first for repeat in repeats]
        self._awaited += [Training(members, 1) for members in self.again]

    def wait_for_all(self) -> None:
        """Let no coalition be late: the next choice knows all of them."""
        self.late, self._late_keys, self._finished = [], set(), set()

    def hold_back(self, members: Names) -> bool:
        """Hold a coalition back that is done if it is late; whether it is.

        So is one that holds the same rows as a late one.
        """
        if not self.late or (key := self._outcomes.valuer.key(members)) not in self._late_keys:
            return False
        self._finished.add(key)
        return True

    @property
    def finished_late(self) -> int:
        """How many late coalitions were held back."""
        return len(self._finished)

    def missing(self, most: int) -> list[Training]:
        """Trainings that are still to be done, of at most so many coalitions not done yet."""
        again = self._outcomes.missing_again(self.again)
        left = [members for members in self.coalitions if not self._outcomes.is_done(members)]
        return again + [t for members in left[:most] for t in self._outcomes.missing(members)]

    def is_ready(self) -> bool:
        """Whether the next batch can be chosen while late coalitions of this one are trained."""
        while self.late and self._awaited and self._outcomes.is_answered(self._awaited[-1]):
            self._awaited.pop()  # asked for after every training: it need not be asked for again
        return bool(self.late) and not self._awaited

    def begin(self, chosen: Sequence[Names]) -> list[Training]:
        """Begin the next batch: what is late, then what was chosen. Returns its new trainings.

        If another process has begun it, nothing is written: its batch is the latest one.
        """
        under_way = self.missing(len(self.coalitions))
        batches = {self._key: (self.number + 1, [*self.late, *self._outcomes.sort(chosen)])}
        if self._second is not None and self.late:  # otherwise they were trained before the choice
            batches |= self._second.next()
        is_ours = self._store.begin_batches(batches)
        self.read()
        new = self.missing(len(self.coalitions)) if is_ours else []
        return [training for training in new if training not in under_way]

    def is_latest(self) -> bool:
        """Whether no other process has begun the next batch."""
        return self._store.batch(self._key)[0] == self.number
