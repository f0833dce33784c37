"""Least core payments from evaluated and predicted utilities, with their uncertainty.

The least core is not a weighted sum of utilities, so its uncertainty is not one matrix product. It
is computed again for draws of the utilities from their joint posterior.

Notation: n owners, c coalitions that bind or may bind, d draws.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dupre._types import Floats, Ints, Members
from dupre.game.least_core import Core, draw_cores, least_core, search_core
from dupre.game.ties import descending_order
from dupre.predictor.calibration import student
from dupre.valuation.state import State
from dupre.valuation.validation_rows import Deviations, deviations

MAX_DRAWN = 2_048
"""Predicted coalitions whose utilities are drawn jointly: those nearest to binding."""

JITTER = 1e-8
"""Part of the variance that is added to each utility that is drawn where there is no noise."""

LOOKED_AT = 60_000
"""Coalitions looked at in search of violated constraints where not all can be listed."""


@dataclass(frozen=True, eq=False)
class CorePayments:
    """A least core and its uncertainty.

    Attributes:
        core: found on the evaluated and predicted utilities.
        covariance: of the payments around those of the core, (n, n).
        validation: the same due to the choice of the validation rows; None if that is not known.
        subsidy_variance: of the subsidy around that of the core, due to both.
    """

    core: Core
    covariance: Floats
    validation: Floats | None
    subsidy_variance: float


def least_core_payments(state: State, draws: int, grand: float, *, listed: bool) -> CorePayments:
    """The least core of what is recorded and predicted, and of `draws` of all utilities.

    `grand` is the utility of all owners. If not all coalitions are `listed`, more are searched for.
    """
    utility_of = _Utilities(state)
    members = utility_of.proper()
    if listed:
        core = least_core(members, utility_of(members), grand=grand, empty=state.observed.empty)
    else:
        core = search_core(
            utility_of,
            start=members,
            grand=grand,
            empty=state.observed.empty,
            rng=state.question.rng(7),
            limit=LOOKED_AT,
        )
        members = np.append(members, core.tight, axis=0)
    # The egalitarian point is equal for equal owners; a search may have looked at one of them.
    core = replace(core, payments=utility_of.equal(core.payments[None])[0])
    certain = listed and not state.unknown.size and not state.variances.any()
    off = deviations(state)
    if certain and off is None:
        return CorePayments(core, np.zeros((members.shape[1],) * 2), None, 0.0)
    # Each owner alone and all but each, which bound the subsidy, then those nearest to binding.
    one = np.eye(members.shape[1], dtype=bool)
    members = np.unique(np.concatenate([one, ~one, members]), axis=0)
    slack = core.subsidy + members @ core.payments - (utility_of(members) - state.observed.empty)
    slack[np.isin(members.sum(axis=1), [1, len(one) - 1])] = -np.inf
    members = members[descending_order(-slack)]

    def spread(binding: Members, utilities: Floats, grands: Floats) -> tuple[Floats, float]:
        """Covariance of the payments and variance of the subsidy around those of the core."""
        payments, subsidies = draw_cores(
            binding, utilities, grand=grands, empty=state.observed.empty
        )
        apart = utility_of.equal(payments) - core.payments
        covariance = state.question.sameness.equal_covariance(apart.T @ apart / len(payments))
        return covariance, float(np.mean((subsidies - core.subsidy) ** 2))

    drawn = np.zeros((members.shape[1],) * 2), 0.0
    if not certain:
        drawn = spread(*utility_of.draw(members, draws))
    if off is None:
        return CorePayments(core, drawn[0], None, drawn[1])
    resampled = spread(*utility_of.resample(members, off, draws))
    return CorePayments(core, drawn[0], resampled[0], drawn[1] + resampled[1])


class _Utilities:
    """Utilities of any coalitions, as evaluated or as predicted, each once."""

    def __init__(self, state: State):
        self._state = state
        self._keys = state.question.sameness.keys
        recorded = state.recorded
        found = self._keys(state.members[recorded])
        self._utility = dict(zip(found, state.utilities[recorded].tolist(), strict=True))

    def proper(self) -> Members:
        """All coalitions at hand that are neither empty nor of all owners.

        The order of those recorded besides does not depend on when they were recorded.
        """
        state, b = self._state, self._state.question.b
        besides = np.unique(state.members[b:][state.recorded[b:]], axis=0)
        members = np.append(state.question.merged.by_name.members, besides, axis=0)
        return np.asarray(members[~members.all(axis=1)])

    def equal(self, payments: Floats) -> Floats:
        """Payments, (d, n), equal for owners who hold the same rows."""
        return self._state.question.sameness.average(payments.T).T

    def __call__(self, members: Members) -> Floats:
        """Utilities of coalitions, (m, n), as evaluated or as expected, (m,)."""
        found = self._keys(members)
        new = {key: row for row, key in enumerate(found) if key not in self._utility}
        if new:
            predicted = self._state.beliefs.predict_by_best(members[list(new.values())])
            self._utility.update(zip(new, predicted.tolist(), strict=True))
        return np.array([self._utility[key] for key in found])

    def draw(self, members: Members, draws: int) -> tuple[Members, Floats, Floats]:
        """Coalitions, (c, n), their utilities, (d, c), and those of all owners, (d,), at random.

        Of the coalitions given, in order of importance: all that are evaluated, and the first
        MAX_DRAWN others. Coalitions that hold the same rows have equal utilities in every draw.
        """
        state, rng = self._state, self._state.question.rng(8)
        at = self._positions(members)
        unknown = np.flatnonzero(at < 0)[:MAX_DRAWN]
        unknown = unknown[np.lexsort(members[unknown].T)]  # the order must not depend on rounding
        evaluated = at[at >= 0]
        everyone = np.ones((1, members.shape[1]), dtype=bool)
        grand = self._positions(everyone)
        rows = np.concatenate([members[unknown], everyone[grand < 0]])
        noise = np.sqrt(state.variances)
        positions = np.append(evaluated, grand[grand >= 0])
        once, which = _first_of_each(positions.tolist())
        known = noise[positions[once]] * rng.standard_normal((draws, len(once)))
        known = state.utilities[positions] + known[:, which]
        once, which = _first_of_each(self._keys(rows))
        predicted = np.empty((draws, 0))
        if len(rows):
            predicted = _joint_draws(state, rows[once], draws, rng)[:, which]
        grands = predicted[:, -1] if (grand < 0).all() else known[:, -1]
        listed = np.append(members[at >= 0], members[unknown], axis=0)
        every = np.append(known[:, : len(evaluated)], predicted[:, : len(unknown)], axis=1)
        return listed, every, grands

    def resample(
        self, members: Members, off: Deviations, draws: int
    ) -> tuple[Members, Floats, Floats]:
        """The same on resamples of the validation rows, minus the change of no data."""
        state, at = self._state, self._positions(members)
        near = np.append(np.flatnonzero(at >= 0), np.flatnonzero(at < 0)[:MAX_DRAWN])
        chosen = np.append(members[near], np.ones((1, members.shape[1]), dtype=bool), axis=0)
        at = self._positions(chosen)
        change = off.evaluated[at]
        if (at < 0).any():
            features, one = state.features_of(chosen[at < 0]), np.eye(int(np.sum(at < 0)))
            weights = state.beliefs.predictor.gp.posterior(features, one).observed_weights()
            change[at < 0] = weights @ off.evaluated[state.beliefs.fitted]
        utilities = (self(chosen)[:, None] + change - off.empty)[:, :draws]
        return chosen[:-1], utilities[:-1].T, utilities[-1]

    def _positions(self, members: Members) -> Ints:
        """Where evaluated coalitions are recorded, (m,); -1 for others."""
        at = self._state.positions(members)
        return np.where(np.append(self._state.recorded, False)[at], at, -1)


def _first_of_each(things: Sequence[Hashable]) -> tuple[Ints, Ints]:
    """Where each different thing is first, (k,), and which of them each is, (m,)."""
    number: dict[Hashable, int] = {}
    which = [number.setdefault(thing, len(number)) for thing in things]
    _, once = np.unique(np.array(which, dtype=np.int64), return_index=True)
    return once, np.array(which, dtype=np.int64)


def _joint_draws(state: State, members: Members, draws: int, rng: np.random.Generator) -> Floats:
    """Utilities of coalitions, (c, n), drawn from their joint posterior, (d, c).

    Overconfidence, outliers and noise are included, as they are in intervals of values: a plain
    posterior has none of them.
    """
    learned, features = state.beliefs.predictor, state.features_of(members)
    posterior, every = learned.gp.posterior(features), np.arange(len(members))
    covariance = posterior.covariance(every, every)
    noise = learned.gp.noise_of_predicted
    if noise == 0:  # rounding, relative to the prior variance, may leave negative eigenvalues
        prior = float(np.mean(learned.gp.kernel.diagonal(features)))
        noise = JITTER * (float(np.mean(np.diag(covariance))) + 1e-4 * prior)
    covariance[np.diag_indices_from(covariance)] += noise
    # A Cholesky factor is unique; eigenvectors are not, and draws would differ between CPUs.
    root = np.linalg.cholesky(covariance)
    normal = rng.standard_normal((draws, len(members)))
    wide = normal @ root.T * posterior.slope * student(learned.gp).scale
    outliers = np.sqrt(learned.outlier_variance) * rng.standard_normal(wide.shape)
    return np.asarray(np.clip(posterior.mean + wide + outliers, *learned.bounds))
