"""What the recorded utilities say of the values: from a pool of coalitions to a `Valuation`.

Notation: b coalitions that count, W (n, b) their weights; what is known of them is in the `pool`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dupre._types import Floats, Ints
from dupre.data.owners import Owners
from dupre.game.coalitions import to_names
from dupre.game.draws import LEAST_DRAWS, SampledValues
from dupre.game.weights import Weights
from dupre.predictor.calibration import diagnose, widening
from dupre.predictor.training_noise import pooled_variance
from dupre.predictor.training_noise import widening as widening_by_repeats
from dupre.result.records import Z95, Duplicates, Evidence, Subsidy, TrainingNoise, Validation
from dupre.result.valuation import Valuation, bounded_sum
from dupre.valuation import evidence, next_batch
from dupre.valuation.core_payments import LeastCore, least_core_payments
from dupre.valuation.duplicates import Merged, merge
from dupre.valuation.knowledge import BLOCKS, Knowledge

LEAST_CORRECTION = LEAST_DRAWS * BLOCKS
"""Random draws without which the predictor's values are not corrected."""


@dataclass(frozen=True, eq=False)
class Inference:
    """From what is known to what is wanted.

    Attributes:
        pool: what is known.
        owners: to be valued.
        name: of the semivalue.
        least_core: wanted in its place, or None.
        corrected: whether the predictor is to be corrected by random draws.
        listed: whether all coalitions enter the values, not a sample.
        draw_more: gives weights of a larger sample, over which the expected values are summed; its
            covariance would cost the square of its size, so that of the pool's sample stands for
            it. None if there is none.
    """

    pool: Knowledge
    owners: Owners
    name: str
    least_core: LeastCore | None
    corrected: bool
    listed: bool
    draw_more: Callable[[], Weights] | None = None

    def valuation(self) -> Valuation:
        """The values and all that is said with them."""
        if self.least_core is not None:
            return self._core_valuation(self.least_core)
        return self._valuation()

    def expected_covariances(self, picks: Ints, noise: Floats) -> list[Floats]:
        """Covariance of the values once the first 1, 2, ... picks are evaluated, sampling apart."""
        pool = self.pool
        if (random := self._from_random(pool.validation())) is not None:
            covariance, m = random.covariance, random.draws
            spread = pool.identity.equal_covariance(covariance) * m
            return [noise + spread / (m + more) for more in range(1, len(picks) + 1)]
        posterior = pool.posterior(pool.weights.W)
        index = np.searchsorted(pool.unknown, picks)
        # Standard deviations shrink as those of the best form do.
        own = pool.averaged_posterior().functional_covariance()
        now = posterior.functional_variance()
        expected = []
        for more, covariance in enumerate(next_batch.forecast(posterior, index), start=1):
            part = np.sqrt(np.maximum(np.diag(covariance), 0.0) / np.where(now > 0, now, 1.0))
            W = np.delete(posterior.W, index[:more], axis=1)
            wider = widening(pool.predictor().gp, more)
            widened = self._widened(own * np.outer(part, part), W, wider)
            expected.append(noise + pool.identity.equal_covariance(widened))
        return expected

    def _valuation(self) -> Valuation:
        pool, W = self.pool, self.pool.weights.W
        recorded, freedom = pool.recorded, pooled_variance(pool.repeated)[1]
        measured = pool.training_variances()[: pool.b] * widening_by_repeats(freedom)
        noise = (W[:, recorded] * measured[recorded]) @ W[:, recorded].T
        validation = pool.validation()
        diagnostics = diagnose(pool.predictor()) if pool.unknown.size else None
        utilities = pool.utilities.copy()
        random = self._from_random(validation) if diagnostics is not None else None
        if random is not None:
            utilities[~recorded] = random.guess[~recorded]
            certain = np.isin(np.arange(pool.b), pool.heaviest) & recorded
            noise = (W[:, certain] * measured[certain]) @ W[:, certain].T
            mean, covariance = random.mean, random.covariance + noise
        elif diagnostics is not None:
            posterior = pool.averaged_posterior()
            utilities[pool.unknown] = posterior.mean
            mean = W[:, recorded] @ pool.utilities[recorded] + posterior.W @ posterior.mean
            own = posterior.functional_covariance()
            covariance = noise + self._widened(own, posterior.W, diagnostics.widening)
        else:
            mean, covariance = W[:, recorded] @ pool.utilities[recorded], noise
        counting, sampling = pool.counting, self._sampling(utilities, random)
        if self._larger is not None and diagnostics is not None and random is None:
            more, larger = self._larger.weights, pool.utilities_of(self._larger.weights.members)
            mean = more.W @ larger
            sampling = self._larger.sampling_covariance(larger, pool.empty, np.zeros(len(larger)))
            counting = len(larger)
        covariance, noise = map(pool.identity.equal_covariance, (covariance, noise))
        return Valuation(
            semivalue=self.name,
            mean=pool.identity.equal(mean + pool.weights.empty * pool.empty),
            counting=counting,
            covariance=bounded_sum(covariance, sampling),
            prediction=covariance,
            noise=noise,
            sampling=sampling,
            grand=self._grand(random),
            diagnostics=diagnostics,
            validation=validation,
            sampled=random is not None and not self.corrected,
            corrected=random is not None and self.corrected,
            uncorrected=random is None and diagnostics is not None and self.corrected,
            **self._circumstances(),
        )

    def _core_valuation(self, wanted: LeastCore) -> Valuation:
        pool = self.pool
        unknown = pool.unknown.size or not self.listed
        grand = self._grand(None)
        found = least_core_payments(pool, wanted.draws, grand, listed=self.listed)
        # Around the amount: least cores of draws lie above it, as of many surprises some are good.
        off = Z95 * float(np.sqrt(np.mean((found.subsidies - found.core.subsidy) ** 2)))
        tight = [to_names(row, self.owners.names) for row in np.unique(found.core.tight, axis=0)]
        return Valuation(
            semivalue=wanted.name,
            mean=found.core.payments,
            covariance=found.covariance,
            noise=np.zeros_like(found.covariance) if unknown else found.covariance,
            grand=grand,
            counting=pool.counting,
            diagnostics=diagnose(pool.predictor()) if unknown else None,
            validation=pool.validation(),
            subsidy=Subsidy(
                amount=found.core.subsidy,
                low=found.core.subsidy - off,
                high=found.core.subsidy + off,
                tight=tuple(sorted(tight, key=len)),
                looked=found.core.looked,
                violation=found.core.violation,
                proven=self.listed,
            ),
            **self._circumstances(),
        )

    def _circumstances(self) -> dict[str, Any]:
        """What a valuation says besides the values."""
        pool = self.pool
        return {
            "owners": self.owners.names,
            "rows": self.owners.rows,
            "grand_predicted": not pool.observations.recorded[pool.everyone],
            "first_left": int((~pool.recorded[pool.most_important]).sum()),
            "empty": pool.empty,
            "evaluated": pool.evaluated,
            "duplicates": self._duplicates(),
            "failures": pool.failures,
            "training_noise": self.training_noise(),
            "evidence": Evidence(
                evidence.observations_and_predictions(pool, self.owners), *self._relations
            ),
        }

    def training_noise(self) -> TrainingNoise:
        """What repeated trainings say; whether trainings have seeds is not known here."""
        variance, further = pooled_variance(self.pool.repeated)
        return TrainingNoise(further, math.sqrt(variance), False, variance == 0)

    def _duplicates(self) -> Duplicates | None:
        """Whose rows are the same, and what was saved by it; None if there is nothing to say."""
        pool, names = self.pool, self.owners.names
        if not pool.merged.changed:
            return None
        counts = np.asarray(pool.merged.by_name.W.any(axis=0))
        stood_for = int((counts & pool.recorded[pool.merged.column]).sum())
        return Duplicates(
            owners=tuple(tuple(names[i] for i in group) for group in pool.identity.groups),
            coalitions=int(counts.sum()),
            different=pool.counting,
            saved=stood_for - int((pool.recorded & pool.counts).sum()),
        )

    @cached_property
    def _larger(self) -> Merged | None:
        return None if self.draw_more is None else merge(self.draw_more(), self.pool.identity)

    @cached_property
    def _relations(self) -> tuple[Floats, Floats]:
        """Distances between owners, and the rows they share."""
        return evidence.distances(self.pool, self.owners.n), evidence.shared_rows(self.owners)

    def _from_random(self, validation: Validation | None) -> SampledValues | None:
        """The values from random draws, if they are asked for or the predictor has failed."""
        if self.corrected:
            return (
                self.pool.corrected_values() if len(self.pool.drawn) >= LEAST_CORRECTION else None
            )
        return self.pool.values_from_draws() if has_failed(validation) else None

    def _sampling(self, utilities: Floats, random: SampledValues | None) -> Floats | None:
        """Covariance due to the choice of coalitions; utilities without a weight do not matter."""
        if self.listed:
            return None
        pool = self.pool
        known = np.where(np.isnan(utilities), np.nanmean(utilities), utilities)
        rough = np.zeros(pool.b)
        if random is not None:  # otherwise the noise of predictions is in their own variance
            rough[pool.unknown] = random.squared_error
        return pool.merged.sampling_covariance(known, pool.empty, rough)

    def _widened(self, covariance: Floats, W: Floats, wider: float) -> Floats:
        """Covariance of predicted values as it is reported: over-sureness and strays included."""
        return np.asarray(covariance * wider**2 + self.pool.predictor().outlier_variance * W @ W.T)

    def _grand(self, random: SampledValues | None) -> float:
        """Utility of all owners, predicted or guessed if it is not recorded."""
        pool = self.pool
        if pool.observations.recorded[pool.everyone]:
            return float(pool.observations.utilities[pool.everyone])
        if random is not None and pool.everyone < pool.b:
            return float(random.guess[pool.everyone])
        alone = pool.observations.members[[pool.everyone]]
        if self.least_core is not None:  # by the form that predicts all others of its coalitions
            return float(pool.predict(pool.predictor(), alone)[0])
        return float(evidence.predictions(pool, alone)[0][0])


def has_failed(validation: Validation | None) -> bool:
    """Whether the predictor was found to be not clearly better than the mean of a size."""
    return validation is not None and validation.failed
