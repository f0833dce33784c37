"""What the store says of a coalition: trained, failed, or still to be trained.

Coalitions that hold the same rows share their trainings if the store goes by contents.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from dupre._types import Names
from dupre.errors import InputError
from dupre.game.coalitions import format_members
from dupre.store.store import Store
from dupre.training.evaluation import Evaluation, Training, known_evaluations
from dupre.valuation.valuer import Valuer


class Outcomes:
    """The trainings of one run that are done, and those that are missing.

    Each coalition has `repeats` trainings. With `skip`, one whose training failed is given up.

    Attributes:
        twice: keys of the coalitions whose second training counts though `repeats` is 1.
    """

    def __init__(self, valuer: Valuer, store: Store, *, repeats: int, skip: bool):
        self.valuer = valuer
        self.store = store
        self.repeats = repeats
        self.skip = skip
        self.twice: set[Hashable] = set()

    def is_answered(self, training: Training) -> bool:
        """Whether a training need not be done: it is done, or its coalition is given up."""
        counting = range(max(self.repeats, training.repeat + 1))
        given_up = self.skip and training.members and self._failures(training.members, counting)
        return bool(given_up) or training.repeat in self._successes(training.members)

    def is_done(self, members: Names) -> bool:
        """Whether no training of a coalition is missing."""
        return all(self.is_answered(Training(members, r)) for r in range(self.repeats))

    def missing(self, members: Names) -> list[Training]:
        """The trainings of a coalition that are still to be done."""
        return self._unanswered((members, repeat) for repeat in range(self.repeats))

    def missing_again(self, coalitions: Iterable[Names]) -> list[Training]:
        """The second trainings of coalitions that are still to be done."""
        return self._unanswered((members, 1) for members in coalitions)

    def _unanswered(self, wanted: Iterable[tuple[Names, int]]) -> list[Training]:
        trainings = [self._next_attempt(members, repeat) for members, repeat in wanted]
        return [training for training in trainings if not self.is_answered(training)]

    def sort(self, batch: Sequence[Names]) -> list[Names]:
        """The same coalitions, the largest first: workers then finish together.

        The first design keeps its order, for single owners are more likely to fail; so does a
        strategy that has one.
        """
        if self.valuer.first_left or self.valuer.question.strategy.in_order:
            return list(batch)
        rows = dict(zip(self.valuer.owners.names, self.valuer.owners.rows.tolist(), strict=True))
        return sorted(batch, key=lambda members: -sum(rows[name] for name in members))

    def _next_attempt(self, members: Names, repeat: int) -> Training:
        """A training of a coalition, with the number of the attempt."""
        tried = self.store.failures(members).get(repeat)
        names = tuple(name for name in self.valuer.owners.names if name in members)
        return Training(names, repeat, tried.training.attempt + 1 if tried else 1)

    def utilities(self, members: Names) -> list[float]:
        """Utilities of those trainings of a coalition that count."""
        found = self.store.utilities(members)
        repeats = 2 if self.valuer.key(members) in self.twice else self.repeats
        counting = [repeat for repeat in sorted(found) if repeat < repeats]
        return [found[repeat].score for repeat in counting]

    def failures(self, members: Names) -> list[Evaluation]:
        """Failed trainings of a coalition that count and were not repeated with success."""
        return self._failures(members, range(self.repeats))

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


def new_evaluations(store: Store, known: dict[Names, tuple[float, ...]]) -> list[Evaluation]:
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
