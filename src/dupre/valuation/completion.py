"""What a valuation says of the utility and its trainings, besides the values.

A run and a look at what is stored say the same of the same trainings: both end with `complete`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dupre.notes import Note
from dupre.result.records import TrainingNoise
from dupre.result.remarks import with_notes
from dupre.result.valuation import Valuation
from dupre.store import fingerprints
from dupre.training.evaluation import Evaluation
from dupre.utility.describe import Traits
from dupre.valuation.failures import group_warnings
from dupre.valuation.second_trainings import reproducibility_notes
from dupre.valuation.validation_rows import mixed_resamples, validation_notes
from dupre.valuation.valuer import Valuer


def complete(
    valuation: Valuation,
    valuer: Valuer,
    traits: Traits,
    *,
    origin: fingerprints.Origin,
    used: Sequence[Evaluation],
    notes: Iterable[Note],
) -> Valuation:
    """A valuation with what is known of the utility and of its trainings.

    Args:
        valuation: the values.
        valuer: that computed them.
        traits: of what was trained.
        origin: what utilities come from.
        used: the evaluations that the values come from.
        notes: what their store has to say.
    """
    noise = _training_noise(traits, valuer.training_noise())
    further = (
        *notes,
        *mixed_resamples(used),
        *validation_notes(traits.utility),
        *reproducibility_notes(traits, noise),
    )
    if not traits.uses_validation:
        valuation = replace(valuation, validation=np.zeros_like(valuation.covariance))
    provenance = fingerprints.provenance(valuer.question.seed, origin.setting, origin.owners)
    if traits.metric is not None and traits.metric.is_own and traits.metric.words:
        provenance["metric"] = {"words": traits.metric.words, "unit": traits.metric.unit}
    valuation = replace(
        valuation,
        warnings=group_warnings(used),
        provenance=provenance,
        training_noise=noise,
        validation_rows=traits.validation_rows,
    )
    return with_notes(valuation, further)


def _training_noise(traits: Traits, found: TrainingNoise) -> TrainingNoise:
    """What repeated trainings say, with what is known of the utility itself."""
    deterministic = found.deterministic or traits.deterministic is True
    return replace(found, seeded=traits.seeded, deterministic=deterministic)
