"""What is known and believed after some evaluations: everything is chosen and inferred from it.

A state is a function of the question and of what has been evaluated. What is believed (the
predictor, its posterior) is computed once for each state, when it is first asked for.

Notation: b coalitions with weights W (n, b). A position is a column of W, or b and more for a
coalition that was evaluated besides: the predictor learns from these too. p positions in all.
Coalitions that hold the same rows have one position if the question goes by contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dupre._types import NOTHING, Bools, Floats, Ints, Members, Names
from dupre.checks import UNBOUNDED
from dupre.errors import InputError, Remedy
from dupre.game.coalitions import from_names, keys, order_by_complement, to_names
from dupre.game.draws import (
    LEAST_DRAWS,
    SampledValues,
    error_by_size,
    estimate_from_draws,
    guess_by_size,
    split_into_blocks,
)
from dupre.game.observed import Observed
from dupre.game.weights import student_factor
from dupre.predictor import form
from dupre.predictor.averaging import AveragedPosterior
from dupre.predictor.calibration import (
    PredictorCheck,
    check_predictor,
    pooled_variance,
    std_of_a_training,
    variance_of_means,
)
from dupre.predictor.form import Predictor
from dupre.predictor.gp import Posterior
from dupre.predictor.kernel_inputs import Features
from dupre.valuation.cost import Cost, fit_cost
from dupre.valuation.question import Question

P_CHOSEN_UP_TO = 255
"""Coalitions up to which the order p of the distance is chosen too."""

PREDICTED_AT_ONCE = 4_096
"""Coalitions outside the weights that are predicted at a time: memory is O(a) for each."""

BLOCKS = 4
"""Parts of the draws; each is compared with a predictor that has seen only the parts before."""

LEAST_CORRECTION = LEAST_DRAWS * BLOCKS
"""Random draws without which the predictor's values are not corrected."""


@dataclass(frozen=True, eq=False)
class State:
    """What a strategy chooses by, and values are inferred from.

    Attributes:
        question: what is asked.
        observed: what has been evaluated.
        pending: positions of coalitions that are being evaluated now.
    """

    question: Question
    observed: Observed
    pending: Ints = field(default_factory=lambda: NOTHING)

    def with_pending(self, pending: Ints) -> State:
        """The same while these are being evaluated; what is believed is computed once for both."""
        _ = self.beliefs  # made before the copy, so that both have the same
        again = copy(self)
        object.__setattr__(again, "pending", pending)
        return again

    @cached_property
    def _layout(self) -> tuple[Members, Ints, dict[bytes, int]]:
        """All coalitions, (p, n), the position of each in `observed`, and of those besides W."""
        seen, question = self.observed, self.question
        rows, b = np.append(seen.members, seen.failed, axis=0), question.b
        same = question.sameness
        wanted = same.keys(rows)
        at = np.array([question.columns.get(key, -1) for key in wanted], dtype=np.int64)
        others = np.flatnonzero(at < 0)
        if not others.size:
            return question.weights.members, at, {}
        # By their members, not by when they came: the order of rows decides last digits of a fit.
        besides = same.canonical(rows[others])
        order = np.array(sorted(range(len(others)), key=keys(besides).__getitem__))
        at[others[order]] = b + np.arange(len(others))
        members = np.append(question.weights.members, besides[order], axis=0)
        return members, at, {wanted[i]: int(at[i]) for i in others}

    @property
    def members(self) -> Members:
        """The coalitions, (p, n)."""
        return self._layout[0]

    @cached_property
    def utilities(self) -> Floats:
        """Mean of each coalition's trainings, NaN where there is none, (p,)."""
        found = np.full(len(self.members), np.nan)
        found[self._layout[1][: len(self.observed)]] = self.observed.utilities
        return found

    @cached_property
    def recorded(self) -> Bools:
        """Which have a utility, (p,)."""
        return np.asarray(~np.isnan(self.utilities))

    @cached_property
    def failed(self) -> Bools:
        """Which could not be evaluated, (p,)."""
        mask = np.zeros(len(self.members), dtype=bool)
        mask[self._layout[1][len(self.observed) :]] = True
        return mask

    @cached_property
    def row(self) -> dict[int, int]:
        """The row of `observed` of each recorded position, in rising order of positions."""
        at = self._layout[1][: len(self.observed)]
        return {int(at[i]): int(i) for i in np.argsort(at)}

    @property
    def failures(self) -> dict[Names, str]:
        """Every coalition that could not be evaluated, and why."""
        at, reasons = self._layout[1][len(self.observed) :], self.observed.reasons
        return {self.names(at[i]): reasons[i] for i in np.argsort(at)}

    @property
    def unknown(self) -> Ints:
        """Coalitions that have a weight and no utility: their utilities are predicted."""
        b = self.question.b
        return np.flatnonzero(~self.recorded[:b] & self.question.counts)

    @property
    def open(self) -> Ints:
        """Unknown coalitions that may be evaluated next: neither failed nor pending."""
        unknown = self.unknown
        still_open = unknown[~self.failed[unknown]]
        if not self.pending.size:
            return still_open
        return np.setdiff1d(still_open, self.pending, assume_unique=True)

    @property
    def first_left(self) -> Ints:
        """What is still to be evaluated before any is predicted, in its order."""
        return self.question.first[np.isin(self.question.first, self.open)]

    @property
    def shown(self) -> Ints:
        """Recorded coalitions to learn from: those with a weight, then those besides."""
        recorded = self.recorded.copy()
        recorded[self.question.draws.held] = False  # the predictor is checked on them
        return np.flatnonzero(recorded)

    @property
    def everyone(self) -> Members:
        """The coalition of all owners, (1, n), whether it has a position or not."""
        return np.ones((1, self.question.owners.n), dtype=bool)

    def require_utility(self) -> None:
        """Raise InputError if there is no utility to learn from."""
        if not self.shown.size:
            raise InputError("no utility to learn from has been recorded; ", Remedy.EVALUATE)

    @property
    def sizes(self) -> Ints:
        """Owners of each coalition, (p,)."""
        return np.asarray(self.members.sum(axis=1))

    @cached_property
    def cost(self) -> Cost | None:
        """What a training takes, as the first design shows; None if nothing of it is known.

        The same from the end of the first design on.
        """
        first = self.question.first[self.recorded[self.question.first]].tolist()
        rows = self.members[first] @ self.question.owners.rows
        seconds = np.array([self.observed.seconds[self.row[i]] for i in first])
        known = np.isfinite(seconds)
        return fit_cost(rows[known], seconds[known])

    def names(self, position: int | np.integer[Any]) -> Names:
        """The owners of a coalition."""
        return to_names(self.members[position], self.question.owners.names)

    def rows_of(self, coalitions: Iterable[Iterable[str]]) -> Members:
        """Coalitions by owner names as boolean rows, (m, n)."""
        names = self.question.owners.names
        rows = [from_names(members, names) for members in coalitions]
        return np.array(rows, dtype=bool).reshape(-1, len(names))

    def positions(self, rows: Members) -> Ints:
        """Positions of coalitions, boolean rows (m, n), (m,); -1 for those that have none."""
        columns, others = self.question.columns, self._layout[2]
        found = [columns.get(key, others.get(key, -1)) for key in self.question.sameness.keys(rows)]
        return np.array(found, dtype=np.int64)

    def utilities_at(self, rows: Members) -> Floats:
        """Utilities of coalitions, boolean rows (m, n), NaN where there is none, (m,)."""
        return np.append(self.utilities, np.nan)[self.positions(rows)]

    def representatives(self, rows: Members) -> Members:
        """For each coalition the one that is predicted in its place, (m, n).

        It is the same for all coalitions that hold the same rows.
        """
        if not self.question.sameness.by_content:
            return rows
        found, at = self.question.sameness.canonical(rows), self.positions(rows)
        found[at >= 0] = self.members[at[at >= 0]]
        return found

    def features_of(self, rows: Members) -> Features:
        """What kernels compare of any coalitions, (m, n)."""
        return self.question.describe(self.representatives(rows))

    @property
    def repeated(self) -> list[tuple[float, ...]]:
        """Scores of the coalitions trained more than once."""
        scores = [self.observed.scores[i] for i in self.row.values()]
        return [own for own in scores if len(own) > 1]

    @cached_property
    def variances(self) -> Floats:
        """Variance of each utility as estimated from repeated trainings, (p,)."""
        return self.variances_without(self.question.draws.held)

    def variances_without(self, hidden: Ints) -> Floats:
        """The same, where hidden coalitions do not enter the estimates of the others, (p,)."""
        measured = np.zeros(len(self.members))
        everything = np.array(list(self.row), dtype=np.int64)
        # Hidden ones are measured with all others, which must not depend on them: these again.
        for positions in (everything, np.setdiff1d(everything, hidden)):
            scores = [self.observed.scores[self.row[i]] for i in positions.tolist()]
            measured[positions] = variance_of_means(scores)
        return measured

    @property
    def widened_variances(self) -> Floats:
        """Variances as wide as Student's t asks for with so few repeats, (p,)."""
        return widen_by_repeats(self.variances, self.repeated)

    @cached_property
    def deviations(self) -> Floats | None:
        """Utilities on B resamples less those on all rows, (p, B); zero where there is none."""
        if (off := self.observed.deviations) is None:
            return None
        found = np.zeros((len(self.members), off.shape[1]))
        found[self._layout[1][: len(off)]] = off
        return found

    @cached_property
    def beliefs(self) -> Beliefs:
        """What the predictor says, computed when it is asked for."""
        return Beliefs(self)


class Beliefs:
    """What is believed of the coalitions that were not evaluated; each part is computed once."""

    def __init__(self, state: State):
        self._state = state
        self._question = state.question

    @cached_property
    def predictor(self) -> Predictor:
        """Fitted to what is recorded."""
        shown = self._state.shown
        # Starts follow from how many are shown: the same for any order of arrival.
        return self._fit(shown, self._state.variances[shown], 2, len(shown))

    @property
    def fitted(self) -> Ints:
        """Coalitions that the predictor is fitted to: outliers are not among them."""
        return np.delete(self._state.shown, self.predictor.outliers)

    def _fit(self, index: Ints, measured: Floats, *purpose: int) -> Predictor:
        question, empty = self._question, self._state.observed.empty
        utilities = self._state.utilities[index]
        # What was recorded is possible, whatever the bounds say. A plain posterior has none.
        seen, prior = np.append(utilities, empty), question.prior
        low, high = UNBOUNDED if prior.plain else question.bounds
        return form.learn(
            question.describe(self._state.members[index]),
            utilities,
            measured=measured,
            empty=empty,
            choose_p=question.b <= P_CHOSEN_UP_TO,  # SW_1 is no matrix product, and slow for more
            prior=prior,
            bounds=(min(low, seen.min()), max(high, seen.max())),
            rng=question.rng(*purpose),
        )

    @cached_property
    def posterior(self) -> Posterior:
        """Of the unknown coalitions and of the values, by the best form."""
        return self.posterior_of(self._question.weights.W)

    def posterior_of(self, W: Floats) -> Posterior:
        """Of the unknown coalitions and of functionals W, (f, b), of them, by the best form."""
        unknown = self._state.unknown
        return self.predictor.gp.posterior(self._question.features[unknown], W[:, unknown])

    def posterior_of_some(self, some: Ints, W: Floats) -> Posterior:
        """Of m unknown coalitions and of functionals W, (f, m), of them, by the best form."""
        return self.predictor.gp.posterior(self._question.describe(self._state.members[some]), W)

    @cached_property
    def averaged(self) -> AveragedPosterior:
        """Of the unknown coalitions and of the values, by all forms."""
        return self.predictor.average(self.posterior)

    def predict(self, members: Members) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the utilities of any coalitions, (m, n), (m,) each.

        It is that of a training: noise, overconfidence and the chance of outliers are included.
        """
        mean, std = self.predictor.predict(self._state.features_of(members))
        return mean, std_of_a_training(self.predictor, std)

    def predict_by_best(self, members: Members) -> Floats:
        """Means of the utilities of any coalitions, (m, n), by the best form alone, (m,)."""
        rows = self._state.representatives(members)
        found = self.predictor.gp.posterior(self._question.describe(rows, keep=False))
        return np.clip(found.mean, *self.predictor.bounds)

    def utilities_of(self, members: Members) -> Floats:
        """Utilities of coalitions, (m, n), as evaluated or as expected, (m,)."""
        utilities = self._state.utilities_at(members)
        unknown = np.flatnonzero(np.isnan(utilities))
        # The sketch of a complement follows from that of a coalition, if it comes next.
        order = unknown[order_by_complement(members[unknown])]
        for index in np.array_split(order, 1 + len(order) // PREDICTED_AT_ONCE):
            features = self._state.features_of(members[index])
            utilities[index], _ = self.predictor.predict(features)
        return utilities

    @cached_property
    def check(self) -> PredictorCheck | None:
        """The predictor measured on the check coalitions; None until all are evaluated."""
        state, held = self._state, self._question.draws.held
        found = held[state.recorded[held]]
        if len(found) < LEAST_DRAWS or not np.all(state.recorded[held] | state.failed[held]):
            return None
        by_size, freedom = error_by_size(state.sizes, state.utilities, self.certain, found)
        return check_predictor(
            self.predictor,
            self._question.describe(state.members[found]),
            state.utilities[found],
            state.variances[found],
            by_size=by_size,
            freedom=freedom,
        )

    @property
    def check_failed(self) -> bool:
        """Whether the predictor was found to be not clearly better than the mean of a size."""
        return self.check is not None and self.check.failed

    @property
    def certain(self) -> Ints:
        """Recorded coalitions of the first design."""
        heaviest = self._question.heaviest
        return heaviest[self._state.recorded[heaviest]]

    @property
    def drawn(self) -> Ints:
        """Evaluated draws, repetitions included."""
        state = self._state
        return self._question.draws.evaluated_draws(state.recorded, state.failed)

    @cached_property
    def values_from_draws(self) -> SampledValues:
        """The values from random coalitions, without the predictor."""
        state, b = self._state, self._question.b
        guess = guess_by_size(state.sizes[:b], state.utilities[:b], self.certain)
        return self._estimate(guess[None])

    @cached_property
    def corrected_values(self) -> SampledValues:
        """The predictor's values with their error, estimated from random coalitions.

        Each block of draws is compared with a predictor that has seen the blocks before it, and
        whatever else was recorded. Letting it see the blocks after it as well, as cross-fitting
        does, would make their errors depend on each other, and the intervals too narrow.
        """
        state, b = self._state, self._question.b
        blocks, shown = split_into_blocks(self.drawn, BLOCKS), state.shown
        everything = self._question.describe(state.members[:b])
        guesses = np.empty((BLOCKS, b))
        for j in range(BLOCKS):
            to_come = np.setdiff1d(
                np.concatenate(blocks[j:]), np.concatenate(blocks[:j] or [NOTHING])
            )
            seen = shown[~np.isin(shown, to_come)]
            learned = self._fit(seen, state.variances_without(to_come)[seen], 5, j, len(seen))
            guesses[j] = np.clip(learned.gp.posterior(everything).mean, *learned.bounds)
            ours = seen[seen < b]
            guesses[j, ours] = state.utilities[ours]
        return self._estimate(guesses)

    def _estimate(self, guesses: Floats) -> SampledValues:
        question, state, b = self._question, self._state, self._question.b
        missing = question.heaviest[~state.recorded[question.heaviest]]
        return estimate_from_draws(
            question.weights.W,
            state.utilities[:b],
            guesses,
            certain=self.certain,
            draws=self.drawn,
            chances=question.draws.chances,
            failed=np.union1d(np.flatnonzero(state.failed[:b]), missing),
        )


def widen_by_repeats(variances: Floats, scores: Sequence[Sequence[float]]) -> Floats:
    """Variances of utilities as wide as Student's t asks for with so few repeats, (p,)."""
    _, freedom = pooled_variance(scores)
    return variances * student_factor(freedom) ** 2 if freedom else variances
