"""Games whose Shapley values are known in closed form: oracles for tests, toys for docs.

Players are numbered from 0. A game maps coalitions, boolean rows (m, n), to utilities, (m,).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Coalitions = NDArray[np.bool_]


@dataclass(frozen=True)
class Game:
    """A game of n players.

    Attributes:
        n: players.
        utility: callable(coalitions (m, n)) -> utilities (m,).
        shapley: exact Shapley values, (n,).
    """

    n: int
    utility: Callable[[Coalitions], Array]
    shapley: Array


def table_of(game: Game) -> Array:
    """Its 2^n utilities by code, the binary digits of which say who is in."""
    codes = np.arange(2**game.n)
    return np.append(0.0, game.utility((codes[1:, None] >> np.arange(game.n)) & 1 == 1))


def additive(worths: Sequence[float]) -> Game:
    """A coalition is worth the sum of its players: every semivalue of a player is its worth."""
    worth: Array = np.asarray(worths, dtype=np.float64)
    return Game(len(worth), lambda C: np.asarray(C @ worth, dtype=np.float64), worth)


def unanimity(n: int, carrier: Sequence[int]) -> Game:
    """1 if all of the carrier are in, else 0; the carrier shares it equally."""
    needed = list(carrier)
    shapley = np.zeros(n)
    shapley[needed] = 1 / len(needed)
    return Game(n, lambda C: np.where(C[:, needed].all(axis=1), 1.0, 0.0), shapley)


def airport(costs: Sequence[float]) -> Game:
    """The most expensive member's cost: each pays an equal part of every stretch it uses.

    Littlechild & Owen 1973.
    """
    cost = np.asarray(costs, dtype=np.float64)
    order = np.argsort(cost)
    n = len(cost)
    stretches = np.diff(cost[order], prepend=0.0) / np.arange(n, 0, -1)
    shapley = np.empty(n)
    shapley[order] = np.cumsum(stretches)
    return Game(n, lambda C: np.asarray(np.where(C, cost, 0.0).max(axis=1)), shapley)


def glove(right: int) -> Game:
    """1 if player 0, who holds the only left glove, meets any of the right ones.

    Player 0 gets right / (right + 1), every other 1 / (right (right + 1)).
    """
    shapley = np.full(1 + right, 1 / (right * (right + 1)))
    shapley[0] = right / (right + 1)
    return Game(1 + right, lambda C: np.where(C[:, 0] & C[:, 1:].any(axis=1), 1.0, 0.0), shapley)


def majority(n: int) -> Game:
    """1 for more than half of the players: all alike."""
    return Game(n, lambda C: np.where(2 * C.sum(axis=1) > n, 1.0, 0.0), np.full(n, 1 / n))


def unanimity_sum(n: int, terms: int, rng: np.random.Generator) -> Game:
    """A random weighted sum of unanimity games: any game is one, and Shapley is linear."""
    carriers = [rng.choice(n, size=rng.integers(1, n + 1), replace=False) for _ in range(terms)]
    weights = rng.normal(size=terms)
    parts = [unanimity(n, carrier.tolist()) for carrier in carriers]

    def utility(C: Coalitions) -> Array:
        return np.asarray(
            sum(
                (w * part.utility(C) for w, part in zip(weights, parts, strict=True)),
                np.zeros(len(C)),
            )
        )

    shapley = sum((w * part.shapley for w, part in zip(weights, parts, strict=True)), np.zeros(n))
    return Game(n, utility, np.asarray(shapley))
