"""What a valuation says of the utility and its trainings, besides the values.

A run and a look at what is stored say the same of the same trainings: both end with `complete`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dupre.result.records import TrainingNoise
from dupre.result.valuation import Valuation
from dupre.store import fingerprints
from dupre.training.evaluation import Evaluation
from dupre.utility.model import ModelUtility
from dupre.valuation.failures import group_warnings
from dupre.valuation.second_trainings import reproducibility_caveats
from dupre.valuation.validation_rows import resamples_caveats, validation_caveats
from dupre.valuation.valuer import Valuer


def complete(
    valuation: Valuation,
    valuer: Valuer,
    utility: object,
    *,
    origin: fingerprints.Origin,
    used: Sequence[Evaluation],
    notes: Iterable[str],
) -> Valuation:
    """A valuation with what is known of the utility and of its trainings.

    Args:
        valuation: the values.
        valuer: that computed them.
        utility: what was trained.
        origin: what utilities come from.
        used: the evaluations that the values come from.
        notes: what their store has to say.
    """
    noise = _training_noise(utility, valuer.training_noise())
    caveats = (
        *valuation.caveats,
        *_older_rule_caveats(utility, used),
        *notes,
        *resamples_caveats(used),
        *validation_caveats(utility),
        *reproducibility_caveats(utility, noise),
    )
    if not getattr(utility, "uses_validation", True):
        valuation = replace(valuation, validation=np.zeros_like(valuation.covariance))
    return replace(
        valuation,
        warnings=group_warnings(used),
        provenance=fingerprints.provenance(valuer.question.seed, origin.setting, origin.owners),
        caveats=caveats,
        training_noise=noise,
        validation_rows=utility.equal_rows.counted if isinstance(utility, ModelUtility) else 0,
    )


def has_seeds(utility: object) -> bool:
    """Whether a utility takes a seed for each training that may change the result."""
    return hasattr(utility, "training_seed") and bool(getattr(utility, "seeded", True))


def _training_noise(utility: object, found: TrainingNoise) -> TrainingNoise:
    """What repeated trainings say, with what is known of the utility itself."""
    known = isinstance(utility, ModelUtility) and utility.deterministic
    seeded, deterministic = has_seeds(utility), found.deterministic or known
    return replace(found, seeded=seeded, deterministic=deterministic)


def _older_rule_caveats(utility: object, used: Iterable[Evaluation]) -> list[str]:
    """What is to be said if seeds and the order of rows followed owner names in some trainings."""
    if not isinstance(utility, ModelUtility):
        return []
    used = [e for e in used if e.utility is not None]
    older = [
        e for e in used if utility.is_older_seed(e.seed, e.training.members, e.training.repeat)
    ]
    if not older:
        return []
    return [
        f"{len(older):,} of {len(used):,} trainings are by the older rule, in which seeds and the "
        "order of rows followed owner names; equal owners may differ in them."
    ]
