"""From what is known of coalitions to a `Valuation`.

Notation: b coalitions that count, W (n, b) their weights; what is known of them is in `known`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dupre._types import Floats, Ints
from dupre.data.owners import Owners
from dupre.game.coalitions import to_names
from dupre.game.draws import LEAST_DRAWS, SampledValues
from dupre.predictor.calibration import diagnose, pooled_variance, widening
from dupre.result.covariances import total_covariance
from dupre.result.records import (
    Z95,
    Diagnostics,
    Duplicates,
    Evidence,
    PredictorCheck,
    Subsidy,
    TrainingNoise,
)
from dupre.result.valuation import Valuation
from dupre.utility.limits import outside_notes
from dupre.utility.score import before_floor
from dupre.valuation import evidence, next_batch, validation_rows
from dupre.valuation.core_payments import least_core_payments
from dupre.valuation.duplicates import Merged, merge
from dupre.valuation.influence import decisive_trainings, spoiled_grand
from dupre.valuation.knowledge import BLOCKS, Knowledge
from dupre.valuation.observations import widen_by_repeats
from dupre.valuation.question import LeastCore, Question
from dupre.valuation.support import missing_support

LEAST_CORRECTION = LEAST_DRAWS * BLOCKS
"""Random draws without which the predictor's values are not corrected."""


@dataclass(frozen=True, eq=False)
class Inference:
    """From what is known to what is wanted.

    Attributes:
        known: what is known of the coalitions that count.
        question: what is wanted.
    """

    known: Knowledge
    question: Question

    @property
    def owners(self) -> Owners:
        """To be valued."""
        return self.question.owners

    def valuation(self) -> Valuation:
        """The values and all that is said with them."""
        if self.question.least_core is not None:
            return self._core_valuation(self.question.least_core)
        return self._valuation()

    def expected_covariances(self, picks: Ints, noise: Floats) -> list[Floats]:
        """Covariance of the values once the first 1, 2, ... picks are evaluated, sampling apart."""
        known = self.known
        if (random := self._from_random(known.check())) is not None:
            covariance, m = random.covariance, random.draws
            spread = known.identity.equal_covariance(covariance) * m
            return [noise + spread / (m + more) for more in range(1, len(picks) + 1)]
        posterior = known.posterior(known.weights.W)
        index = np.searchsorted(known.unknown, picks)
        # Standard deviations shrink as those of the best form do.
        own = known.averaged_posterior().functional_covariance()
        now = posterior.functional_variance()
        expected = []
        for more, covariance in enumerate(next_batch.forecast(posterior, index), start=1):
            part = np.sqrt(np.maximum(np.diag(covariance), 0.0) / np.where(now > 0, now, 1.0))
            W = np.delete(posterior.W, index[:more], axis=1)
            wider = widening(known.predictor().gp, more)
            widened = self._widen(own * np.outer(part, part), W, wider)
            expected.append(noise + known.identity.equal_covariance(widened))
        return expected

    def _valuation(self) -> Valuation:
        known, W = self.known, self.known.weights.W
        recorded = known.recorded
        measured = widen_by_repeats(known.training_variances()[: known.b], known.repeated)
        noise = (W[:, recorded] * measured[recorded]) @ W[:, recorded].T
        check = known.check()
        diagnostics = diagnose(known.predictor()) if known.unknown.size else None
        utilities = known.utilities.copy()
        random = self._from_random(check) if diagnostics is not None else None
        off = validation_rows.deviations(known)
        predicted = diagnostics is not None and (off is not None or random is None)
        posterior = known.averaged_posterior() if predicted else None
        if random is not None:
            utilities[~recorded] = random.guess[~recorded]
            certain = np.isin(np.arange(known.b), known.heaviest) & recorded
            noise = (W[:, certain] * measured[certain]) @ W[:, certain].T
            mean, covariance = random.mean, random.covariance + noise
        elif posterior is not None and diagnostics is not None:
            utilities[known.unknown] = posterior.mean
            mean = W[:, recorded] @ known.utilities[recorded] + posterior.W @ posterior.mean
            own = posterior.functional_covariance()
            covariance = noise + self._widen(own, posterior.W, diagnostics.widening)
        else:
            mean, covariance = W[:, recorded] @ known.utilities[recorded], noise
        counting, sampling = known.counting, self._sampling(utilities, random)
        if self._larger is not None and diagnostics is not None and random is None:
            more, larger = self._larger.weights, known.utilities_of(self._larger.weights.members)
            mean = more.W @ larger
            sampling = self._larger.sampling_covariance(larger, known.empty, np.zeros(len(larger)))
            counting = len(larger)
        covariance, noise = map(known.identity.equal_covariance, (covariance, noise))
        mean = known.identity.equal(mean + known.weights.empty * known.empty)
        M = validation_rows.evaluation_weights(known, posterior)
        validation = None if off is None else validation_rows.covariance(known, M, off)
        return Valuation(
            semivalue=self.question.semivalue.name,
            mean=mean,
            caveats=(*self._caveats(diagnostics, off), *decisive_trainings(known, M, mean)),
            counting=counting,
            covariance=total_covariance(covariance, sampling, validation),
            prediction=covariance,
            noise=noise,
            sampling=sampling,
            validation=validation,
            grand=self._grand(random),
            diagnostics=diagnostics,
            check=check,
            sampled=random is not None and not self.question.corrected,
            corrected=random is not None and self.question.corrected,
            uncorrected=random is None and diagnostics is not None and self.question.corrected,
            **self._circumstances(),
        )

    def _core_valuation(self, wanted: LeastCore) -> Valuation:
        known = self.known
        unknown = known.unknown.size or not self._listed
        diagnostics = diagnose(known.predictor()) if unknown else None
        grand = self._grand(None)
        found = least_core_payments(known, wanted.draws, grand, listed=self._listed)
        # Around the amount. The subsidies of draws have an upward bias: a subsidy is a maximum.
        off = Z95 * math.sqrt(found.subsidy_variance)
        tight = [to_names(row, self.owners.names) for row in np.unique(found.core.tight, axis=0)]
        return Valuation(
            semivalue=wanted.name,
            mean=found.core.payments,
            caveats=self._caveats(diagnostics, validation_rows.deviations(known)),
            covariance=total_covariance(found.covariance, None, found.validation),
            prediction=found.covariance,
            validation=found.validation,
            noise=np.zeros_like(found.covariance) if unknown else found.covariance,
            grand=grand,
            counting=known.counting,
            diagnostics=diagnostics,
            check=known.check(),
            subsidy=Subsidy(
                amount=found.core.subsidy,
                low=found.core.subsidy - off,
                high=found.core.subsidy + off,
                tight=tuple(sorted(tight, key=len)),
                looked=found.core.looked,
                violation=found.core.violation,
                proven=self._listed,
            ),
            **self._circumstances(),
        )

    def _caveats(
        self, diagnostics: Diagnostics | None, off: validation_rows.Deviations | None
    ) -> tuple[str, ...]:
        """Reasons not to trust values or payments, a sentence each; `off` is of resamples."""
        known = self.known
        unseen = missing_support(known) if diagnostics is not None else []
        every = [number for several in known.observations.trainings.values() for number in several]
        outside = outside_notes(every, known.bounds)
        of_rows = [*validation_rows.missing_resamples(known), *validation_rows.few_resamples(off)]
        return (*spoiled_grand(known), *unseen, *outside, *of_rows)

    def _circumstances(self) -> dict[str, Any]:
        """What a valuation says besides the values."""
        known = self.known
        return {
            "owners": self.owners.names,
            "rows": self.owners.rows,
            "grand_predicted": not known.observations.recorded[known.everyone],
            "first_left": int((~known.recorded[known.most_important]).sum()),
            "empty": known.empty,
            "floor": known.observations.floor,
            "floored": len(known.observations.raised),
            "evaluated": known.evaluated,
            "duplicates": self._duplicates(),
            "failures": known.failures,
            "training_noise": self.training_noise(),
            "evidence": Evidence(
                evidence.observations_and_predictions(known, self.owners), *self._relations
            ),
        }

    def training_noise(self) -> TrainingNoise:
        """What repeated trainings say; whether trainings have seeds is not known here."""
        scores = [list(map(before_floor, own)) for own in self.known.repeated]
        variance, further = pooled_variance(scores)
        return TrainingNoise(further, math.sqrt(variance), False, variance == 0)

    def _duplicates(self) -> Duplicates | None:
        """Whose rows are the same, and what was saved by it; None if there is nothing to say."""
        known, names = self.known, self.owners.names
        if not known.merged.changed:
            return None
        counts = np.asarray(known.merged.by_name.W.any(axis=0))
        stood_for = int((counts & known.recorded[known.merged.column]).sum())
        return Duplicates(
            owners=tuple(tuple(names[i] for i in group) for group in known.identity.groups),
            coalitions=int(counts.sum()),
            different=known.counting,
            saved=stood_for - int((known.recorded & known.counts).sum()),
        )

    @property
    def _listed(self) -> bool:
        """Whether all coalitions enter the values, not a sample."""
        return self.question.estimator is None

    @cached_property
    def _larger(self) -> Merged | None:
        """A larger sample, over which expected values are summed.

        Its covariance would cost the square of its size: that of the smaller sample is used.
        """
        weights = self.question.more_weights()
        return None if weights is None else merge(weights, self.known.identity)

    @cached_property
    def _relations(self) -> tuple[Floats, Floats]:
        """Distances between owners, and the rows they share."""
        return evidence.distances(self.known, self.owners.n), evidence.shared_rows(self.owners)

    def _from_random(self, check: PredictorCheck | None) -> SampledValues | None:
        """The values from random draws, if they are asked for or the predictor has failed."""
        if self.question.corrected:
            enough = len(self.known.drawn) >= LEAST_CORRECTION
            return self.known.corrected_values() if enough else None
        failed = check is not None and check.failed
        return self.known.values_from_draws() if failed else None

    def _sampling(self, utilities: Floats, random: SampledValues | None) -> Floats | None:
        """Covariance due to the choice of coalitions; None if none was drawn at random.

        Utilities without a weight do not matter.
        """
        known = self.known
        if not known.merged.by_name.drawn:
            return None
        filled = np.where(np.isnan(utilities), np.nanmean(utilities), utilities)
        rough = np.zeros(known.b)
        if random is not None:  # otherwise the noise of predictions is in their own variance
            rough[known.unknown] = random.squared_error
        return known.merged.sampling_covariance(filled, known.empty, rough)

    def _widen(self, covariance: Floats, W: Floats, wider: float) -> Floats:
        """Covariance of predicted values as reported: overconfidence and outliers included."""
        return np.asarray(covariance * wider**2 + self.known.predictor().outlier_variance * W @ W.T)

    def _grand(self, random: SampledValues | None) -> float:
        """Utility of all owners, predicted or guessed if it is not recorded."""
        known = self.known
        if known.observations.recorded[known.everyone]:
            return float(known.observations.utilities[known.everyone])
        if random is not None and known.everyone < known.b:
            return float(random.guess[known.everyone])
        alone = known.observations.members[[known.everyone]]
        if (
            self.question.least_core is not None
        ):  # by the form that predicts all others of its coalitions
            return float(known.predict(known.predictor(), alone)[0])
        return float(evidence.predictions(known, alone)[0][0])
