"""Which coalitions are trained again, to measure how much chance changes utilities.

Where a repeat deals the folds anew, those of the first design are evaluated under further deals
(module `deals`). Otherwise a repeat has another seed alone:

Three are trained first, all owners together among them. If their utilities do not change, the model
is taken to be deterministic. Otherwise others of the first design follow, one for every eight
coalitions evaluated. They are not part of the budget, which counts coalitions. Like every batch
they are written to the store before they start.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from dupre._types import Names
from dupre.notes import Code, Note, note
from dupre.result.records import TrainingNoise
from dupre.store.store import Store
from dupre.utility.describe import Traits
from dupre.utility.score import mean_score
from dupre.valuation.infer import training_noise
from dupre.valuation.strategies import first_evaluated
from dupre.valuation.valuer import Valuer

# One could be equal by chance; a metric with few levels needs a few.
CHECKED = 3
"""Coalitions trained a second time to find out whether seeds matter."""

LEAST = 6
"""Coalitions trained a second time at least if they do."""

# A variance from m / 8 differences is known to about sqrt(16 / m): 40 % at 100 evaluations.
PER_SECOND = 8
"""Evaluated coalitions for each that is trained a second time."""


def count_needed(evaluated: int) -> int:
    """Second trainings that measure the noise of this many evaluated coalitions."""
    return max(LEAST, evaluated // PER_SECOND)


def reproducibility_notes(traits: Traits, noise: TrainingNoise) -> list[Note]:
    """A note if a model has no seed, and scores differently on the same rows."""
    if traits.deterministic is None or traits.seeded or traits.deals or not noise.std > 0:
        return []
    text = (
        "the model is not reproducible: trained twice on the same rows it scores differently, by "
        f"a standard deviation of {noise.std:.2g}, and it has no random_state to set."
    )
    return [note(Code.NOT_REPRODUCIBLE, text, std=noise.std)]


def choose_dealt(valuer: Valuer, store: Store) -> list[Names]:
    """The coalitions to evaluate under further deals: the first design, as far as it succeeded."""
    # Those of another semivalue serve as well: trainings are shared by all that a run values.
    if before := _distinct(store, _trained_twice(store)):
        return before
    state = valuer.state
    first = state.question.most_important
    return [state.names(i) for i in first[state.recorded[first]]]


def record(
    valuer: Valuer, members: Names, scores: Sequence[float], traits: Traits, repeats: int | None
) -> None:
    """Record the scores of a coalition by repeat: those of deals, or of trainings alone.

    `repeats` are those asked for: the mean of so many deals counts, by default the first.
    """
    if not traits.deals:
        valuer.record(members, scores)
        return
    counting = scores[: repeats or 1]
    valuer.record(members, counting[0] if len(counting) == 1 else mean_score(counting))
    if len(scores) > 1:
        averaged = len(counting) == len(scores)
        valuer.record_deals(members, scores, averaged=averaged, other_rows=traits.deals_rows)


def choose(valuer: Valuer, store: Store, before: Sequence[Names]) -> list[Names]:
    """Coalitions to train a second time: those chosen before, and more if more are needed."""
    if before and training_noise(valuer.state.observed).deterministic:
        return list(before)
    count = count_needed(valuer.evaluated) if before else CHECKED
    begun = _distinct(store, before or _trained_twice(store))
    every = _distinct(store, [*begun, *first_evaluated(valuer.state)])
    return every[: max(count, len(begun))]


def _trained_twice(store: Store) -> list[Names]:
    """Coalitions that some run has trained twice already."""
    coalitions = [names for names in sorted(store.coalitions()) if names]
    return [names for names in coalitions if {0, 1} <= store.utilities(names).keys()]


def _distinct(store: Store, coalitions: Iterable[Names]) -> list[Names]:
    """Coalitions without those that one training serves together with one before."""
    first: dict[Hashable, Names] = {}
    for names in coalitions:
        first.setdefault(store.key(names), names)
    return list(first.values())
