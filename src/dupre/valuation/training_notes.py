"""What a valuation says of the utility and its trainings, besides the values.

A run and a look at what is stored say the same of the same trainings: both end with `complete`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dupre.notes import Code, Note, note, select
from dupre.result.records import TrainingNoise
from dupre.result.remarks import with_notes
from dupre.result.valuation import Valuation
from dupre.store.origin import Origin, provenance
from dupre.training.evaluation import Evaluation
from dupre.utility.describe import Traits
from dupre.utility.validation import ValidationRows
from dupre.valuation.deals import deal_notes
from dupre.valuation.failures import group_warnings
from dupre.valuation.infer import training_noise
from dupre.valuation.second_trainings import reproducibility_notes
from dupre.valuation.validation_rows import mixed_resamples, not_validating, validation_notes
from dupre.valuation.valuer import Valuer
from dupre.wording import ROWS_HELD_OUT, WEIGHTS, count_things, in_minutes

MOST_LISTED = 1_000
"""Numbers of rows that are kept of an owner: who holds more may check these."""


def complete(
    valuation: Valuation,
    valuer: Valuer,
    traits: Traits,
    *,
    origin: Origin,
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
    noise = _training_noise(traits, training_noise(valuer.state.observed))
    further = (
        *notes,
        *mixed_resamples(used),
        *validation_notes(traits.validation),
        *not_validating(traits),
        *reproducibility_notes(traits, noise),
        *deal_notes(traits, valuation.uncertainty.deal, valuer.dealt),
    )
    if not traits.uses_validation:
        none = np.zeros_like(valuation.uncertainty.total)
        uncertainty = replace(valuation.uncertainty, validation=none)
        valuation = replace(valuation, uncertainty=uncertainty)
    made_from = provenance(valuer.question.seed, origin.setting, origin.owners)
    if (scored := traits.validation) is not None:
        made_from |= _of_validation(scored)
    valuation = valuation.with_facts(
        warnings=group_warnings(used),
        provenance=made_from,
        training_noise=noise,
        validation_rows=traits.validation_rows,
        validating={} if traits.validation is None else traits.validation.shares,
        folds=traits.folds,
    )
    return with_notes(valuation, further)


def _of_validation(scored: ValidationRows) -> dict[str, dict[str, str]]:
    """The words of the metric, which rows are held out, and what owners weigh, if that is known."""
    metric = scored.metric
    words = {name: getattr(metric, name) for name in ("words", "unit", "sentence")}
    found = {
        "metric": words if metric.words or metric.sentence else {},
        ROWS_HELD_OUT: {name: _list(rows) for name, rows in scored.held_out.items()},
        WEIGHTS: {name: f"{part:.6g}" for name, part in scored.weights.items()},
    }
    return {section: texts for section, texts in found.items() if texts}


def _list(rows: list[int]) -> str:
    """Row numbers for people to check; of very many the first."""
    more = len(rows) - MOST_LISTED
    listed = ", ".join(map(str, rows[:MOST_LISTED]))
    return f"{listed} and {more:,} more" if more > 0 else listed or "none"


def unused_notes(count: int, repeats: int | None) -> list[Note]:
    """A note about stored coalitions that do not count, for they lack trainings."""
    if not count or repeats is None or repeats == 1:
        return []
    some = count_things(count, "stored coalition")
    text = f"not used: {some} with fewer than {repeats} trainings, the repeats asked for."
    return [note(Code.UNUSED_COALITIONS, text, coalitions=count, repeats=repeats)]


def elsewhere_notes(count: int) -> list[Note]:
    """A note about stored evaluations that were scored on other validation rows."""
    if not count:
        return []
    told = f"{count_things(count, 'stored evaluation')}, repeats included"
    text = f"Not used: {told}, scored on other validation rows."
    return [note(Code.SCORED_ELSEWHERE, text, evaluations=count)]


def cost_notes(seconds: float) -> list[Note]:
    """A note on how long each further evaluation takes, if ten of them take a minute or more."""
    if not (minutes := in_minutes(10 * seconds)):
        return []
    text = f"10 more coalitions are expected to take {minutes}."
    return [note(Code.COST, text, seconds=seconds)]


def warn_of_failed_predictor(valuation: Valuation) -> None:
    """Warn the caller of `dupre.value` if the values do not rely on the predictor."""
    if valuation.facts.sampled:
        for told in select(valuation.notes, [Code.PREDICTOR_FAILED]):
            warnings.warn(told.text, stacklevel=4)


def _training_noise(traits: Traits, found: TrainingNoise) -> TrainingNoise:
    """What repeated trainings say, with what is known of the utility itself."""
    if traits.deals:  # the effect of seeds is part of what further deals show
        return replace(found, seeded=False, deterministic=False)
    deterministic = found.deterministic or traits.deterministic is True
    return replace(found, seeded=traits.seeded, deterministic=deterministic)
