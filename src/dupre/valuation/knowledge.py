"""The coalitions that count, what is known of them, and what is predicted for the others.

Everything here is a function of what has been recorded, u(empty) included, and of the seed.

Notation: b coalitions with weights W (n, b). Positions from b on are coalitions recorded besides
them; the predictor learns from these too. Coalitions that hold the same rows are one of the b if
the `Identity` goes by contents.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from dupre._types import NOTHING, Floats, Ints, Members, Names
from dupre.data.sketch import SketchCache
from dupre.game.coalitions import keys, order_by_complement
from dupre.game.draws import (
    LEAST_DRAWS,
    Draws,
    SampledValues,
    error_by_size,
    estimate_from_draws,
    guess_by_size,
    split_into_blocks,
)
from dupre.game.semivalues import Semivalue
from dupre.game.ties import descending_order
from dupre.game.weights import column_norms
from dupre.predictor import form
from dupre.predictor.averaging import AveragedPosterior
from dupre.predictor.calibration import check_predictor
from dupre.predictor.features import Features
from dupre.predictor.form import Predictor, check_prior
from dupre.predictor.gp import Posterior
from dupre.result.records import PredictorCheck
from dupre.utility.limits import UNBOUNDED
from dupre.valuation import next_batch
from dupre.valuation.duplicates import Identity, merge
from dupre.valuation.observations import Observations
from dupre.valuation.question import Question

P_CHOSEN_UP_TO = 255
"""Coalitions up to which the order p of the distance is chosen too."""

PREDICTED_AT_ONCE = 4_096
"""Coalitions outside the weights that are predicted at a time: memory is O(a) for each."""

BLOCKS = 4
"""Parts of the draws; each is compared with a predictor that has seen only the parts before."""


class Knowledge:
    """What is known of the coalitions that enter the values.

    Args:
        question: which values are wanted, and how.
        identity: when two coalitions are one.
    """

    def __init__(self, question: Question, identity: Identity):
        owners, semivalue = question.owners, question.semivalue
        self.question, self.identity = question, identity
        self.merged = merge(question.weights(), identity)
        self.weights = weights = self.merged.weights
        self.b = len(weights.members)
        self.counts: Members = self.merged.counts
        self.empty = 0.0
        self.empty_resampled: Floats | None = None
        self.bounds = UNBOUNDED
        self._rows = owners.rows
        self.observations = Observations(weights.members, owners.names, identity)
        self.everyone = int(self.observations.positions(np.ones((1, owners.n), dtype=bool))[0])
        self.most_important = self._heaviest(semivalue, 2 * owners.n + 1)
        if question.in_order or question.strategy.uniform:
            self.heaviest = self.order[: question.first]
        elif question.first == len(self.most_important):
            self.heaviest = self.most_important
        else:
            self.heaviest = self._heaviest(semivalue, question.first)
        self.draws = Draws(weights.W, self.heaviest, question.check, self.rng(4))
        self.sketch = SketchCache(owners, seed=question.seed)
        if question.kernel is not None or owners.points is None:
            check_prior(question.prior, self.features(np.flatnonzero(self.counts)))
        self._memory: tuple[bytes, Predictor] | None = None
        self._posterior: tuple[tuple[Predictor, bytes], Posterior] | None = None
        self._averaged: AveragedPosterior | None = None
        self._correction: tuple[bytes, SampledValues] | None = None

    def rng(self, *purpose: int) -> np.random.Generator:
        """A generator for this purpose alone."""
        return np.random.default_rng([self.question.seed, *purpose])

    def _heaviest(self, semivalue: Semivalue, count: int) -> Ints:
        """The coalitions of a first design, as far as they count, then the heaviest others."""
        position = {key: i for i, key in enumerate(self.identity.keys(self.weights.members))}
        first = next_batch.first_design(semivalue, self._rows, count, self.rng(1))
        designed = self.identity.keys(first)
        chosen = list(dict.fromkeys(position[key] for key in designed if key in position))
        weight = np.where(self.counts, column_norms(self.weights.W), 0.0)
        chosen = next_batch.add_sizes_between(chosen, self.weights.members, weight, self.rng(12))
        heavy = descending_order(weight)
        others = heavy[~np.isin(heavy, chosen) & self.counts[heavy]]
        return np.append(np.array(chosen, dtype=np.int64), others)[:count]

    @cached_property
    def order(self) -> Ints:
        """The coalitions that count, as the estimator drew them, or drawn uniformly."""
        counts = np.flatnonzero(self.counts)
        return self.rng(10).permutation(counts) if self.question.strategy.uniform else counts

    @property
    def counting(self) -> int:
        """Coalitions that have a weight, those that hold the same rows once."""
        return int(self.counts.sum())

    @property
    def evaluated(self) -> int:
        """Coalitions recorded or failed."""
        return len(self.observations.trainings) + len(self.observations.failures)

    @property
    def failures(self) -> dict[Names, str]:
        """Every coalition that could not be evaluated, and why."""
        observations = self.observations
        return {
            observations.names(i): observations.failures[i] for i in sorted(observations.failures)
        }

    @property
    def recorded(self) -> Members:
        """Which of those that count have a utility, (b,)."""
        return self.observations.recorded[: self.b]

    @property
    def utilities(self) -> Floats:
        """The utilities, NaN where there is none, (b,)."""
        return self.observations.utilities[: self.b]

    @property
    def failed(self) -> Members:
        """Which of those that count could not be evaluated, (b,)."""
        return self.observations.failed[: self.b]

    @property
    def unknown(self) -> Ints:
        """Coalitions that have a weight and no utility: their utilities are predicted."""
        return np.flatnonzero(~self.recorded & self.counts)

    @property
    def open(self) -> Ints:
        """Unknown coalitions that may still be evaluated."""
        return np.flatnonzero(~self.recorded & ~self.failed & self.counts)

    @property
    def first(self) -> Ints:
        """Coalitions evaluated first: the heaviest, then those for the check."""
        return np.concatenate([self.heaviest, self.draws.held])

    @property
    def shown(self) -> Ints:
        """Recorded coalitions to learn from, in an order fixed by their members."""
        recorded = self.observations.recorded.copy()
        recorded[self.draws.held] = False
        ours, more = np.flatnonzero(recorded[: self.b]), np.flatnonzero(recorded[self.b :]) + self.b
        if not more.size:
            return ours
        order = sorted(range(len(more)), key=keys(self.observations.members[more]).__getitem__)
        return np.append(ours, more[order])

    @property
    def fitted(self) -> Ints:
        """Those that the predictor is fitted to: outliers are not among them."""
        return np.delete(self.shown, self.predictor().outliers)

    @property
    def repeated(self) -> list[tuple[float, ...]]:
        """Utilities of the coalitions trained more than once."""
        trainings = self.observations.trainings
        return [trainings[i] for i in sorted(trainings) if len(trainings[i]) > 1]

    @property
    def by_size(self) -> Ints:
        """Recorded coalitions of the first design: all owners, then one of each size in turn."""
        heavy = self._certain[descending_order(column_norms(self.weights.W[:, self._certain]))]
        size = self._sizes[heavy]
        turn = np.array([np.sum(size[:i] == size[i]) for i in range(len(size))])
        return heavy[np.lexsort((size % len(self.weights.W), turn))]  # of all owners first

    def features(self, index: Ints) -> Features:
        """What kernels compare of some coalitions of the observations."""
        return self._describe(self.observations.members[index], self.sketch)

    def features_of(self, members: Members) -> Features:
        """What kernels compare of any coalitions, (m, n)."""
        return self._describe(self.observations.representatives(members), self.sketch)

    @cached_property
    def _counting(self) -> Features:
        """Of all b coalitions: what is computed of them is kept from round to round."""
        return self._describe(self.weights.members, self.sketch).make_lasting()

    def _describe(self, members: Members, vectors: Callable[..., Floats]) -> Features:
        has_rows = self.question.owners.points is not None
        return Features(members, self._rows, vectors if has_rows else None)

    def training_variances(self) -> Floats:
        """Variance of each utility as estimated from repeated trainings."""
        return self.observations.training_variances(self.draws.held)

    def predictor(self) -> Predictor:
        """The predictor of what is recorded now, learned once."""
        shown = self.shown
        seen, measured = self.observations, self.training_variances()[shown]
        known = seen.members[shown], seen.utilities[shown], measured, np.float64(self.empty)
        key = b"".join(array.tobytes() for array in known)
        if self._memory is None or self._memory[0] != key:
            self._memory = key, self._learn(shown, measured, 2, len(shown))
        return self._memory[1]

    def _learn(self, index: Ints, measured: Floats, *purpose: int) -> Predictor:
        utilities = self.observations.utilities[index]
        # What was recorded is possible, whatever the bounds say. A plain posterior has none.
        seen, prior = np.append(utilities, self.empty), self.question.prior
        low, high = UNBOUNDED if prior.plain else self.bounds
        return form.learn(
            self.features(index),
            utilities,
            measured=measured,
            empty=self.empty,
            choose_p=self.b <= P_CHOSEN_UP_TO,
            prior=prior,
            bounds=(min(low, seen.min()), max(high, seen.max())),
            rng=self.rng(*purpose),
        )

    def posterior(self, W: Floats) -> Posterior:
        """Of the unknown coalitions and of functionals W, (f, b), of them, by the best form."""
        learned, unknown = self.predictor(), self.unknown
        key = learned, unknown.tobytes()  # once for the values and for the next batch
        if W is self.weights.W and self._posterior is not None and self._posterior[0] == key:
            return self._posterior[1]
        posterior = learned.gp.posterior(self._counting[unknown], W[:, unknown])
        if W is self.weights.W:
            self._posterior = key, posterior
        return posterior

    def averaged_posterior(self) -> AveragedPosterior:
        """Of the unknown coalitions and of the values, by all forms."""
        posterior = self.posterior(self.weights.W)
        if self._averaged is None or self._averaged.best is not posterior:
            self._averaged = self.predictor().average(posterior)
        return self._averaged

    def predict(self, learned: Predictor, members: Members) -> Floats:
        """Predicted utilities of coalitions, (m, n), by a given predictor, (m,)."""
        representatives = self.observations.representatives(members)
        features = self._describe(representatives, self.sketch.compute)
        return np.clip(learned.gp.posterior(features).mean, *learned.bounds)

    def utilities_of(self, members: Members) -> Floats:
        """Utilities of coalitions, (m, n), as evaluated or as expected, (m,)."""
        utilities = self.observations.utilities_at(members)
        unknown = np.flatnonzero(np.isnan(utilities))
        order = unknown[order_by_complement(members[unknown])]  # they are sketched faster
        for index in np.array_split(order, 1 + len(order) // PREDICTED_AT_ONCE):
            utilities[index], _ = self.predictor().predict(self.features_of(members[index]))
        return utilities

    def check(self) -> PredictorCheck | None:
        """The predictor measured on the check coalitions; None until all are evaluated."""
        held = self.draws.held
        found = held[self.recorded[held]]
        if len(found) < LEAST_DRAWS or not np.all(self.recorded[held] | self.failed[held]):
            return None
        utilities, measured = self.utilities[found], self.training_variances()[found]
        by_size, freedom = error_by_size(self._sizes, self.utilities, self._certain, found)
        inputs = self.features(found)
        return check_predictor(
            self.predictor(), inputs, utilities, measured, by_size=by_size, freedom=freedom
        )

    def check_failed(self) -> bool:
        """Whether the predictor was found to be not clearly better than the mean of a size."""
        check = self.check()
        return check is not None and check.failed

    @property
    def _sizes(self) -> Ints:
        """Owners of each coalition that counts, (b,)."""
        return np.asarray(self.weights.members.sum(axis=1))

    @property
    def _certain(self) -> Ints:
        """Recorded coalitions of the first design."""
        return self.heaviest[self.recorded[self.heaviest]]

    @property
    def drawn(self) -> Ints:
        """Evaluated draws, repetitions included."""
        return self.draws.evaluated_draws(self.recorded, self.failed)

    def values_from_draws(self) -> SampledValues:
        """The values from random coalitions, without the predictor."""
        return self._estimate(guess_by_size(self._sizes, self.utilities, self._certain)[None])

    def corrected_values(self) -> SampledValues:
        """The predictor's values with their error, estimated from random coalitions.

        Each block of draws is compared with a predictor that has seen the blocks before it, and
        whatever else was recorded. Letting it see the blocks after it as well, as cross-fitting
        does, would make their errors depend on each other, and the intervals too narrow.
        """
        seen = self.observations
        known = seen.utilities, self.training_variances(), seen.failed, np.float64(self.empty)
        key = b"".join(array.tobytes() for array in known)
        if self._correction is None or self._correction[0] != key:
            self._correction = key, self._compute_correction()
        return self._correction[1]

    def _compute_correction(self) -> SampledValues:
        blocks = split_into_blocks(self.drawn, BLOCKS)
        everything = self.features(np.arange(self.b))
        guesses = np.empty((BLOCKS, self.b))
        for j in range(BLOCKS):
            to_come = np.setdiff1d(
                np.concatenate(blocks[j:]), np.concatenate(blocks[:j] or [NOTHING])
            )
            seen = self.shown[~np.isin(self.shown, to_come)]
            measured = self.observations.training_variances(to_come)[seen]
            learned = self._learn(seen, measured, 5, j, len(seen))
            guesses[j] = np.clip(learned.gp.posterior(everything).mean, *learned.bounds)
            ours = seen[seen < self.b]
            guesses[j, ours] = self.utilities[ours]
        return self._estimate(guesses)

    def _estimate(self, guesses: Floats) -> SampledValues:
        recorded = self.recorded[self.heaviest]
        return estimate_from_draws(
            self.weights.W,
            self.utilities,
            guesses,
            certain=self._certain,
            draws=self.drawn,
            chances=self.draws.chances,
            failed=np.union1d(np.flatnonzero(self.failed), self.heaviest[~recorded]),
        )
