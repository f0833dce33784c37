"""Which coalitions are trained a second time, to measure how much chance changes utilities.

Three are trained first, all owners together among them. If their utilities do not change, the model
is taken to be deterministic. Otherwise others of the first design follow, one for every eight
coalitions evaluated. They are not part of the budget, which counts coalitions. Like every batch
they are written to the store before they start.
"""

from __future__ import annotations

from dupre._types import Names
from dupre.notes import Code, Note, note
from dupre.result.records import TrainingNoise
from dupre.store.store import Store
from dupre.utility.describe import Traits
from dupre.valuation.valuer import Valuer

CHECKED = 3
"""Coalitions trained a second time to find out whether seeds matter."""

LEAST = 6
"""Coalitions trained a second time at least if they do."""

PER_SECOND = 8
"""Evaluated coalitions for each that is trained a second time."""


def count_needed(evaluated: int) -> int:
    """Second trainings that measure the noise of this many evaluated coalitions."""
    return max(LEAST, evaluated // PER_SECOND)


def reproducibility_notes(traits: Traits, noise: TrainingNoise) -> list[Note]:
    """A note if a model has no seed, and scores differently on the same rows."""
    if traits.deterministic is None or traits.seeded or not noise.std > 0:
        return []
    text = (
        "the model is not reproducible: trained twice on the same rows it scores differently, by "
        f"a standard deviation of {noise.std:.2g}, and it has no random_state to set."
    )
    return [note(Code.NOT_REPRODUCIBLE, text, std=noise.std)]


class SecondTrainings:
    """The second trainings of the run with this key."""

    def __init__(self, valuer: Valuer, store: Store, key: str):
        self.valuer = valuer
        self.store = store
        self.key = f"{key} second"

    def coalitions(self) -> list[Names]:
        """Coalitions chosen so far."""
        return self.store.batch(self.key)[1]

    def choose(self) -> bool:
        """Choose more coalitions if more are needed; return whether any were chosen."""
        number, before = self.store.batch(self.key)
        if number and self.valuer.training_noise().deterministic:
            return False
        count = count_needed(self.valuer.evaluated) if number else CHECKED
        begun = self._distinct(before or self._trained_twice())
        every = self._distinct([*begun, *self.valuer.first_evaluated])
        chosen = every[: max(count, len(begun))]
        if len(chosen) == len(before):
            return False
        self.store.begin(self.key, chosen)
        return True

    def _trained_twice(self) -> list[Names]:
        """Coalitions that some run has trained twice already."""
        coalitions = [names for names in sorted(self.store.coalitions()) if names]
        return [names for names in coalitions if {0, 1} <= self.store.utilities(names).keys()]

    def _distinct(self, coalitions: list[Names]) -> list[Names]:
        """Coalitions without those that one training serves together with one before."""
        first: dict[bytes, Names] = {}
        for names in coalitions:
            first.setdefault(self.valuer.key(names), names)
        return list(first.values())
