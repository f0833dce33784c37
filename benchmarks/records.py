"""One run of dupre on a game whose values are known, and how runs are scored.

A record holds the error of every value and the distribution that is stated of it, so that scores
can be computed anew from a file of records. What is known exactly has a standard deviation of 0 and
an error of rounding; it counts as inside of any interval, and has no density.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import dupre
from dupre.benchmark import Game
from dupre.game.semivalues import Semivalue
from dupre.predictor.student import Spread

LEVELS = (0.5, 0.68, 0.95, 0.99, 0.999)
"""At which intervals are scored."""

TENTHS = 10
"""Groups of stated probabilities of an order, from 0.5 to 1."""

Record = dict[str, Any]
"""Of every owner the true value, the error and the two standard deviations that are stated; of
every pair the probability of the more likely order, and whether it is right."""


def record_of(valuation: dupre.Valuation, game: Game, semivalue: Semivalue) -> Record:
    expected = game.values(semivalue)
    spread = valuation.uncertainty.spread()
    one, other = np.triu_indices(game.owners.n, 1)
    said = valuation.probability_greater().to_numpy()[one, other]
    true = expected[one] - expected[other]
    scale = float(np.ptp(np.append(game.utilities, game.empty)))
    told = (np.abs(true) > 1e-9 * scale) & (np.abs(said - 0.5) < 0.5)  # one is worth more, unsaid
    return {
        "game": game.name,
        "n": game.owners.n,
        "scale": scale,
        "values": expected.tolist(),
        "errors": (np.asarray(valuation.mean) - expected).tolist(),
        "student": spread.student.tolist(),
        "normal": spread.normal.tolist(),
        "freedom": spread.freedom,
        "said": np.maximum(said, 1 - said)[told].tolist(),
        "right": ((true > 0) == (said > 0.5))[told].tolist(),
    }


def spread_of(record: Record) -> Spread:
    """The distribution that was stated."""
    student, normal = (np.array(record[part]) for part in ("student", "normal"))
    return Spread(student, normal, record["freedom"])


def within(record: Record, level: float = 0.95) -> np.ndarray:
    """Which true values are in their interval, (n,)."""
    half = spread_of(record).half_width(level)
    return np.asarray(np.abs(record["errors"]) <= half + 1e-9 * record["scale"])


def coverage(records: Iterable[Record], level: float = 0.95) -> float:
    """Share of all true values that are in their interval."""
    return float(np.concatenate([within(record, level) for record in records]).mean())


def standard_error(records: Iterable[Record], level: float = 0.95) -> float:
    """Of the coverage, if other games had been played: owners of one game are not independent."""
    inside = np.array([[(hits := within(record, level)).sum(), hits.size] for record in records])
    share = inside[:, 0].sum() / inside[:, 1].sum()
    return float(np.linalg.norm(inside[:, 0] - share * inside[:, 1]) / inside[:, 1].sum())


def log_density(record: Record, spread: Spread | None = None) -> np.ndarray:
    """Of the errors relative to the spread of the true values, of those not known exactly."""
    spread = spread or spread_of(record)
    errors, scale = np.array(record["errors"]), true_spread(record)
    return spread.log_density(errors)[spread.std > 1e-9 * record["scale"]] + np.log(scale)


def true_spread(record: Record) -> float:
    """Standard deviation of the true values."""
    return float(np.std(record["values"])) + 1e-9 * float(record["scale"])


def relative_mse(record: Record) -> float:
    """Mean squared error relative to the variance of the true values."""
    floor = (1e-9 * record["scale"]) ** 2  # a geometric mean bears no zeros
    return (mse(record) + floor) / (float(np.var(record["values"])) + floor)


def mse(record: Record) -> float:
    return float(np.mean(np.square(record["errors"])))


def relative_width(record: Record) -> float:
    """Mean half-width of the 95 % intervals over the standard deviation of the true values."""
    return float(np.mean(spread_of(record).half_width())) / true_spread(record)


def orders_right(records: Iterable[Record]) -> list[tuple[int, float, float, float]]:
    """Of the orders said in each tenth of probability: how many, said, right, its standard error.

    The error is over games, as that of a coverage.
    """
    rows = [(r["said"], r["right"]) for r in records]
    said, right = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
    run = np.repeat(np.arange(len(rows)), [len(row[0]) for row in rows])
    tenth = np.minimum(((said - 0.5) * 2 * TENTHS).astype(int), TENTHS - 1)
    table = []
    for k in range(TENTHS):
        at = tenth == k
        share = float(right[at].mean())
        of_runs = np.bincount(run[at], right[at] - share)
        error = float(np.linalg.norm(of_runs)) / at.sum()
        table.append((int(at.sum()), float(said[at].mean()), share, error))
    return table


def geometric_mean(numbers: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(numbers)))))


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
