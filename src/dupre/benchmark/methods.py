"""Methods to compare with: dupre itself, and a sampling estimator by itself.

    partial(by_dupre, kernel=mine)                          # a kernel of your own
    partial(by_estimator, estimator=estimators.permutation)

Both ask for the semivalue that the game asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dupre._types import Floats
from dupre.benchmark.play import CountedGame, Estimate
from dupre.errors import InputError
from dupre.game.estimators import Estimator
from dupre.game.semivalues import Semivalue
from dupre.game.weights import Weights
from dupre.result.covariances import Uncertainty
from dupre.result.valuation import Valuation
from dupre.valuation.question import AnyKernel, Strategy
from dupre.valuation.value import value

MOST_SAMPLES = 64
"""Samples for each evaluation at most: where nearly all are drawn, more change little."""


def by_dupre(
    game: CountedGame,
    budget: int,
    seed: int,
    *,
    kernel: AnyKernel | None = None,
    strategy: Strategy | None = None,
) -> Estimate:
    """`dupre.value` with this budget; `kernel` and `strategy` as there."""
    valuation = value(
        game.owners,
        game.utility,
        budget=budget,
        semivalue=game.semivalue,
        empty=game.empty,
        kernel=kernel,
        strategy=strategy,
        progress=False,
        seed=seed,
    )
    return of_valuation(valuation)


def of_valuation(valuation: Valuation) -> Estimate:
    """The values of a valuation and how sure it is of each."""
    return Estimate(valuation.mean, _Around(valuation.mean, valuation.uncertainty))


@dataclass(frozen=True, eq=False)
class _Around:
    """Distributions of values around their means, (n,)."""

    mean: Floats
    uncertainty: Uncertainty

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        half = self.uncertainty.spread().half_width(confidence)
        return self.mean - half, self.mean + half

    def logpdf(self, x: Floats) -> Floats:
        return self.uncertainty.spread().log_density(x - self.mean)


def by_estimator(
    game: CountedGame, budget: int, seed: int, *, estimator: Estimator
) -> Estimate | None:
    """A function of `dupre.estimators`, or one like them, without any prediction.

    It draws as many samples as have at most `budget` different coalitions among them; None where
    the fewest that it takes have more.
    """
    weights = draw_at_most(budget, estimator, game.semivalue, game.n, seed)
    if weights is None:
        return None
    return Estimate(weights.W @ game(weights.members) + weights.empty * game.empty)


def draw_at_most(
    m: int, estimator: Estimator, semivalue: Semivalue, n: int, seed: int
) -> Weights | None:
    """Weights of the most samples that give at most m different coalitions; None if none do."""

    def draw(samples: int) -> Weights | None:
        try:
            # As in a Valuer, so that most estimators draw the beginning of what it draws.
            return estimator(semivalue, n, samples, np.random.default_rng([seed, 6]))
        except InputError:  # fewer than it needs
            return None

    def fits(weights: Weights | None) -> bool:
        return weights is None or len(weights.members) <= m

    low, high = m, 2 * m
    best = draw(low)
    while fits(weights := draw(high)):
        low, high, best = high, 2 * high, weights
        if high > MOST_SAMPLES * m:
            return best
    while high - low > 1 + low // 200:
        middle = (low + high) // 2
        if fits(weights := draw(middle)):
            low, best = middle, weights
        else:
            high = middle
    return best
