"""From what is known of coalitions to a `Valuation`: `infer`.

Notation: b coalitions that count, W (n, b) their weights; positions as in `state`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import solve_triangular

from dupre._types import Floats, Ints
from dupre.game.coalitions import to_names
from dupre.game.draws import SampledValues
from dupre.game.observed import Observed
from dupre.predictor.calibration import (
    Z95,
    diagnose,
    pooled_variance,
    student,
)
from dupre.predictor.gp import Posterior
from dupre.result.covariances import Uncertainty
from dupre.result.records import Duplicates, Evidence, Facts, Joining, Subsidy, TrainingNoise
from dupre.result.remarks import with_notes
from dupre.result.valuation import Valuation
from dupre.valuation import explain, validation_rows
from dupre.valuation.core_payments import least_core_payments
from dupre.valuation.state import LEAST_CORRECTION, State
from dupre.valuation.state_notes import NOT_CORRECTED, decisive_trainings, notes_about


def infer(state: State) -> Valuation:
    """The values and all that is said with them."""
    state.require_utility()
    wanted = state.question.least_core
    if wanted is None:
        return with_notes(_infer_values(state))
    return with_notes(_infer_core(state, wanted.name, wanted.draws))


def forecast_widths(state: State, picks: Ints, now: Valuation) -> pd.DataFrame:
    """Expected widths of the intervals once 0, 1, 2, ... picks are evaluated: `Valuer.forecast`."""
    steps = [now.uncertainty]
    if picks.size:
        steps += _expect(state, picks, now.uncertainty)
    widths = np.array([step.spread().half_width() for step in steps])
    frame = pd.DataFrame(widths, columns=list(now.owners))
    frame.insert(0, "widest", widths.max(axis=1))
    first = state.observed.evaluated
    frame.index = pd.RangeIndex(first, first + len(frame), name="evaluated")
    return frame


def _expect(state: State, picks: Ints, now: Uncertainty) -> list[Uncertainty]:
    """The uncertainty once the first 1, 2, ... picks are evaluated."""
    beliefs, equal = state.beliefs, state.question.sameness.equal_covariance
    if (random := _from_random(state)) is not None:
        covariance, m = random.covariance, random.draws
        spread = equal(covariance) * m
        steps = range(1, len(picks) + 1)
        return [replace(now, prediction=now.noise + spread / (m + more)) for more in steps]
    posterior = beliefs.posterior
    index = np.searchsorted(state.unknown, picks)
    # Standard deviations shrink as those of the best form do.
    own = beliefs.averaged.functional_covariance()
    variance = posterior.functional_variance()
    expected = []
    for more, covariance in enumerate(forecast(posterior, index), start=1):
        part = np.sqrt(np.maximum(np.diag(covariance), 0.0) / np.where(variance > 0, variance, 1.0))
        W = np.delete(posterior.W, index[:more], axis=1)
        found = equal(_widen(state, own * np.outer(part, part), W))
        expected.append(replace(now, prediction=now.noise + found))
    return expected


def forecast(posterior: Posterior, picks: Ints) -> Floats:
    """Covariance of the functionals W @ u once the first 1, 2, ... picks are evaluated, (k, f, f).

    It does not depend on what their utilities will be, only on the kernel being right.
    """
    gp = posterior.gp
    observed = posterior.covariance(picks, picks)
    observed[np.diag_indices_from(observed)] += gp.noise_of_next
    own_noise = gp.noise_of_predicted * (posterior.W * posterior.slope)[:, picks].T
    root = np.linalg.cholesky(observed)
    explained = solve_triangular(root, posterior.cross(picks) + own_noise, lower=True)
    removed = np.cumsum(np.einsum("kf,kg->kfg", explained, explained), axis=0)
    return np.asarray(posterior.functional_covariance() - removed)


def training_noise(observed: Observed) -> TrainingNoise:
    """What repeated trainings say; whether trainings have seeds is not known here."""
    variance, further = pooled_variance([own for own in observed.scored if len(own) > 1])
    return TrainingNoise(further, math.sqrt(variance), False, variance == 0)


def _infer_values(state: State) -> Valuation:
    question, beliefs = state.question, state.beliefs
    W, b, empty = question.weights.W, question.b, state.observed.empty
    recorded, known = state.recorded[:b], state.utilities[:b]
    measured = state.widened_variances[:b]
    noise = (W[:, recorded] * measured[recorded]) @ W[:, recorded].T
    diagnostics = diagnose(beliefs.predictor) if state.unknown.size else None
    utilities = known.copy()
    random = _from_random(state) if diagnostics is not None else None
    off = validation_rows.deviations(state)
    predicted = diagnostics is not None and (off is not None or random is None)
    posterior = beliefs.averaged if predicted else None
    if random is not None:
        utilities[~recorded] = random.guess[~recorded]
        # Draws have the noise of their trainings in their spread: only that of the others is added.
        certain = np.isin(np.arange(b), question.heaviest) & recorded
        noise = (W[:, certain] * measured[certain]) @ W[:, certain].T
        mean, covariance = random.mean, random.covariance + noise
    elif posterior is not None and diagnostics is not None:
        utilities[state.unknown] = posterior.mean
        mean = W[:, recorded] @ known[recorded] + posterior.W @ posterior.mean
        covariance = noise + _widen(state, posterior.functional_covariance(), posterior.W)
    else:
        mean, covariance = W[:, recorded] @ known[recorded], noise
    counting, sampling = question.counting, _sampling(state, utilities, random)
    # Means are summed over more coalitions than variances could be: less error of sampling.
    if question.larger is not None and diagnostics is not None and random is None:
        more = question.larger
        larger = beliefs.utilities_of(more.weights.members)
        mean = more.weights.W @ larger
        sampling = more.sampling_covariance(larger, empty, np.zeros(len(larger)))
        counting = len(larger)
    covariance, noise = map(question.sameness.equal_covariance, (covariance, noise))
    mean = question.sameness.equal(mean + question.weights.empty * empty)
    M = validation_rows.evaluation_weights(state, posterior)
    validation = None if off is None else validation_rows.covariance(state, M, off)
    deal = validation_rows.deal_covariance(state, validation)
    freedom = None if diagnostics is None or random is not None else _freedom(state)
    uncorrected = random is None and bool(diagnostics) and question.strategy.corrected
    return Valuation(
        semivalue=(question.precedence or question.semivalue).name,
        mean=mean,
        owners=question.owners.names,
        rows=question.owners.rows,
        uncertainty=Uncertainty(covariance, noise, sampling, validation, deal, freedom),
        notes=(
            *notes_about(state, off, predicted=bool(diagnostics)),
            *([NOT_CORRECTED] if uncorrected else ()),
            *decisive_trainings(state, M, mean),
        ),
        facts=_facts(
            state,
            counting=counting,
            grand=_grand(state, random),
            diagnostics=diagnostics,
            check=beliefs.check,
            sampled=random is not None and not question.strategy.corrected,
            corrected=random is not None and question.strategy.corrected,
        ),
    )


def _infer_core(state: State, name: str, draws: int) -> Valuation:
    listed = state.question.estimator is None
    unknown = state.unknown.size or not listed
    diagnostics = diagnose(state.beliefs.predictor) if unknown else None
    grand = _grand(state, None)
    found = least_core_payments(state, draws, grand, listed=listed)
    # Around the amount. The subsidies of draws have an upward bias: a subsidy is a maximum.
    off = Z95 * math.sqrt(found.subsidy_variance)
    names = state.question.owners.names
    tight = [to_names(row, names) for row in np.unique(found.core.tight, axis=0)]
    return Valuation(
        semivalue=name,
        mean=found.core.payments,
        owners=names,
        rows=state.question.owners.rows,
        uncertainty=Uncertainty(
            found.covariance,
            np.zeros_like(found.covariance) if unknown else found.covariance,
            validation=found.validation,
            # Of the values that guide the search: payments are no sum of utilities.
            deal=validation_rows.deal_covariance(state, found.validation),
            freedom=_freedom(state) if unknown else None,
        ),
        notes=notes_about(state, validation_rows.deviations(state), predicted=bool(unknown)),
        facts=_facts(
            state,
            grand=grand,
            counting=state.question.counting,
            diagnostics=diagnostics,
            check=state.beliefs.check,
            subsidy=Subsidy(
                amount=found.core.subsidy,
                low=found.core.subsidy - off,
                high=found.core.subsidy + off,
                tight=tuple(sorted(tight, key=len)),
                looked=found.core.looked,
                violation=found.core.violation,
                proven=listed,
            ),
        ),
    )


def _facts(state: State, **found: Any) -> Facts:
    """What a valuation says besides the values."""
    question, observed = state.question, state.observed
    missing = ~state.recorded[question.most_important]
    guessed = missing[: question.strategy.design(question.owners.n)].any()
    return Facts(
        joining=None if question.precedence is None else Joining(question.precedence.cohorts),
        grand_predicted=bool(np.isnan(state.utilities_at(state.everyone)[0])),
        first_left=int(missing.sum()) if guessed else 0,
        empty=observed.empty,
        floor=observed.floor,
        floored=int(observed.raised.sum()),
        evaluated=observed.evaluated,
        duplicates=_duplicates(state),
        failures=state.failures,
        training_noise=training_noise(observed),
        evidence=Evidence(explain.evaluations_and_predictions(state), *question.relations),
        **found,
    )


def _duplicates(state: State) -> Duplicates | None:
    """Whose rows are the same, and what was saved by it; None if there is nothing to say."""
    question, merged, names = state.question, state.question.merged, state.question.owners.names
    if not merged.changed:
        return None
    counts = np.asarray(merged.by_name.W.any(axis=0))
    stood_for = int((counts & state.recorded[merged.column]).sum())
    return Duplicates(
        owners=tuple(tuple(names[i] for i in group) for group in question.sameness.groups),
        coalitions=int(counts.sum()),
        different=question.counting,
        saved=stood_for - int((state.recorded[: question.b] & question.counts).sum()),
    )


def _from_random(state: State) -> SampledValues | None:
    """The values from random draws, if they are asked for or the predictor has failed."""
    beliefs = state.beliefs
    if state.question.strategy.corrected:
        return beliefs.corrected_values if len(beliefs.drawn) >= LEAST_CORRECTION else None
    return beliefs.values_from_draws if beliefs.check_failed else None


def _sampling(state: State, utilities: Floats, random: SampledValues | None) -> Floats | None:
    """Covariance due to the choice of coalitions; None if none was drawn at random.

    Utilities without a weight do not matter.
    """
    merged = state.question.merged
    if not merged.by_name.drawn:
        return None
    # Those without a weight have no utility; any number will do, the mean keeps rounding small.
    filled = np.where(np.isnan(utilities), np.nanmean(utilities), utilities)
    rough = np.zeros(len(utilities))
    if random is not None:  # otherwise the noise of predictions is in their own variance
        rough[state.unknown] = random.squared_error
    return merged.sampling_covariance(filled, state.observed.empty, rough)


def _freedom(state: State) -> float | None:
    """Degrees of freedom of the errors of predictions."""
    return student(state.beliefs.predictor.gp).freedom


def _widen(state: State, covariance: Floats, W: Floats) -> Floats:
    """Covariance of predicted values as reported: overconfidence and outliers included."""
    learned = state.beliefs.predictor
    wider = student(learned.gp).scale ** 2
    return np.asarray(covariance * wider + learned.outlier_variance * W @ W.T)


def _grand(state: State, random: SampledValues | None) -> float:
    """Utility of all owners, predicted or guessed if it is not recorded."""
    everyone, at = state.everyone, int(state.positions(state.everyone)[0])
    if at >= 0 and state.recorded[at]:
        return float(state.utilities[at])
    if random is not None and 0 <= at < state.question.b:
        return float(random.guess[at])
    if state.question.least_core is not None:  # by the form that predicts all others of it
        return float(state.beliefs.predict_by_best(everyone)[0])
    return float(state.beliefs.predict(everyone)[0][0])
