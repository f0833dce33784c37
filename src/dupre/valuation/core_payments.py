"""Least core payments from evaluated and predicted utilities, and how sure they are.

The least core is no weighted sum of utilities, so its uncertainty is not one matrix product: it is
found anew for draws of the utilities from their joint posterior.

Notation: n owners, c coalitions that bind or may bind, d draws.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dupre._types import Floats, Ints, Members
from dupre.checks import whole
from dupre.errors import InputError
from dupre.game.least_core import Core, draw_cores, least_core, search_core
from dupre.game.semivalues import Semivalue, shapley
from dupre.game.ties import descending
from dupre.predictor.calibration import widening
from dupre.valuation.knowledge import Knowledge

MAX_DRAWN = 2_048
"""Predicted coalitions whose utilities are drawn jointly: those nearest to binding."""

LOOKED_AT = 60_000
"""Coalitions looked at in search of violated constraints where not all can be listed."""


@dataclass(frozen=True)
class LeastCore:
    """The least core (Yan & Procaccia 2021), asked for in the place of a semivalue.

    Payments that leave no coalition with much reason to go its own way; of all such payments the
    most equal ones. It is found on all coalitions for up to 16 owners, and for more on those
    that a search finds to bind.

    Args:
        draws: of all utilities from their posterior, whose least cores tell the uncertainty.
        guide: the semivalue whose uncertainty decides what is evaluated.
    """

    draws: int = 100
    guide: Semivalue = shapley
    name = "Least core"

    def __post_init__(self) -> None:
        whole(self.draws, "draws", least=2)
        if not isinstance(self.guide, Semivalue):
            raise InputError(f"guide must be a semivalue such as dupre.shapley, got {self.guide!r}")


@dataclass(frozen=True, eq=False)
class Payments:
    """A least core and its uncertainty.

    Attributes:
        core: found on the evaluated and predicted utilities.
        covariance: of the payments around those of the core, (n, n).
        subsidies: of the draws, (d,).
    """

    core: Core
    covariance: Floats
    subsidies: Floats


def least_core_payments(pool: Knowledge, draws: int, grand: float, *, listed: bool) -> Payments:
    """The least core of what is recorded and predicted.

    Args:
        pool: all that is known.
        draws: how many times to draw all utilities.
        grand: utility of all owners, evaluated or predicted.
        listed: whether the pool holds all coalitions; if not, more are searched for.
    """
    known = _Known(pool)
    members = known.proper()
    if listed:
        core = least_core(members, known(members), grand=grand, empty=pool.empty)
    else:
        core = search_core(
            known,
            members.shape[1],
            start=members,
            grand=grand,
            empty=pool.empty,
            rng=pool.rng(7),
            limit=LOOKED_AT,
        )
        members = np.append(members, core.tight, axis=0)
    # The egalitarian point is equal for equal owners; a search may have looked at one of them.
    core = replace(core, payments=known.equal(core.payments[None])[0])
    if listed and not pool.unknown.size and not pool.training_variances().any():
        return Payments(core, np.zeros((members.shape[1],) * 2), np.array([core.subsidy]))
    # Each owner alone and all but each, which bound the subsidy, then those nearest to binding.
    one = np.eye(members.shape[1], dtype=bool)
    members = np.unique(np.concatenate([one, ~one, members]), axis=0)
    slack = core.subsidy + members @ core.payments - (known(members) - pool.empty)
    slack[np.isin(members.sum(axis=1), [1, len(one) - 1])] = -np.inf
    binding, utilities, grands = known.drawn(members[descending(-slack)], draws)
    payments, subsidies = draw_cores(binding, utilities, grand=grands, empty=pool.empty)
    off = known.equal(payments) - core.payments
    covariance = pool.identity.equal_covariance(off.T @ off / draws)
    return Payments(core, covariance, subsidies)


class _Known:
    """Utilities of any coalitions, as evaluated or as predicted, each once."""

    def __init__(self, pool: Knowledge):
        self._knowledge = pool
        self._keys = pool.identity.keys
        observations = pool.observations
        recorded = np.flatnonzero(observations.recorded)
        found = self._keys(observations.members[recorded])
        self._position = dict(zip(found, recorded.tolist(), strict=True))
        self._utility = dict(zip(found, observations.utilities[recorded].tolist(), strict=True))

    def proper(self) -> Members:
        """All coalitions at hand that are neither empty nor of all owners.

        Those recorded besides the pool's come in an order of their own, not that of recording.
        """
        pool = self._knowledge
        more = np.flatnonzero(pool.observations.recorded[pool.b :]) + pool.b
        besides = np.unique(pool.observations.members[more], axis=0)
        members = np.append(pool.merged.by_name.members, besides, axis=0)
        return np.asarray(members[~members.all(axis=1)])

    def equal(self, payments: Floats) -> Floats:
        """Payments, (d, n), equal for owners who hold the same rows."""
        return self._knowledge.identity.average(payments.T).T

    def __call__(self, members: Members) -> Floats:
        """Utilities of coalitions, (m, n), as evaluated or as expected, (m,)."""
        found = self._keys(members)
        new = {key: row for row, key in enumerate(found) if key not in self._utility}
        if new:
            predicted = self._knowledge.predict(
                self._knowledge.predictor(), members[list(new.values())]
            )
            self._utility.update(zip(new, predicted.tolist(), strict=True))
        return np.array([self._utility[key] for key in found])

    def drawn(self, members: Members, draws: int) -> tuple[Members, Floats, Floats]:
        """Coalitions, (c, n), their utilities, (d, c), and those of all owners, (d,), at random.

        Of the coalitions given, in order of importance: all that are evaluated, and the first
        MAX_DRAWN others. Coalitions that are one have the same utilities in every draw.
        """
        pool, rng = self._knowledge, self._knowledge.rng(8)
        at = self._positions(members)
        unknown = np.flatnonzero(at < 0)[:MAX_DRAWN]
        unknown = unknown[np.lexsort(members[unknown].T)]  # rounding must not deal out the numbers
        evaluated = at[at >= 0]
        everyone = np.ones((1, members.shape[1]), dtype=bool)
        grand = self._positions(everyone)
        rows = np.concatenate([members[unknown], everyone[grand < 0]])
        noise = np.sqrt(pool.training_variances())
        positions = np.append(evaluated, grand[grand >= 0])
        once, which = _first_of_each(positions.tolist())
        told = noise[positions[once]] * rng.standard_normal((draws, len(once)))
        told = pool.observations.utilities[positions] + told[:, which]
        once, which = _first_of_each(self._keys(rows))
        guessed = np.empty((draws, 0))
        if len(rows):
            guessed = _joint_draws(pool, rows[once], draws, rng)[:, which]
        grands = guessed[:, -1] if (grand < 0).all() else told[:, -1]
        listed = np.append(members[at >= 0], members[unknown], axis=0)
        every = np.append(told[:, : len(evaluated)], guessed[:, : len(unknown)], axis=1)
        return listed, every, grands

    def _positions(self, members: Members) -> Ints:
        """Where evaluated coalitions are recorded, (m,); -1 for others."""
        return np.array(
            [self._position.get(key, -1) for key in self._keys(members)], dtype=np.int64
        )


def _first_of_each(things: Sequence[Hashable]) -> tuple[Ints, Ints]:
    """Where each different thing is first, (k,), and which of them each is, (m,)."""
    number: dict[Hashable, int] = {}
    which = [number.setdefault(thing, len(number)) for thing in things]
    _, once = np.unique(np.array(which, dtype=np.int64), return_index=True)
    return once, np.array(which, dtype=np.int64)


def _joint_draws(pool: Knowledge, members: Members, draws: int, rng: np.random.Generator) -> Floats:
    """Utilities of coalitions, (c, n), drawn from their joint posterior, (d, c).

    As wide as intervals of values are: over-sureness, strays and noise included.
    """
    learned = pool.predictor()
    posterior = learned.gp.posterior(pool.features_of(members))
    every = np.arange(len(members))
    covariance = posterior.covariance(every, every)
    covariance[np.diag_indices_from(covariance)] += learned.gp.noise
    # A Cholesky factor is unique; eigenvectors are not, and draws would differ between CPUs.
    root = np.linalg.cholesky(covariance)
    normal = rng.standard_normal((draws, len(members)))
    wide = normal @ root.T * posterior.slope * widening(learned.gp)
    strays = np.sqrt(learned.outlier_variance) * rng.standard_normal(wide.shape)
    return np.asarray(posterior.mean + wide + strays)
