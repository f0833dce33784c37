"""A utility together with what it would be on other validation rows.

A utility is an average over a sample of validation rows. Other rows of the same population would
give another one. The bootstrap (Efron 1979) tells how far: score the same model on B resamples, in
which each row counts as often as it was drawn. The resamples are the same for every coalition, so
that what all coalitions have in common cancels in the values.

Notation: m validation rows, B resamples, g groups of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import gammaincinv

from dupre._types import Digests, Floats, Ints, Names
from dupre.checks import LARGEST, as_utility
from dupre.errors import InputError
from dupre.wording import json_numbers

RESAMPLES = 200
"""Resamples of the validation rows; they know a standard deviation to 5 %."""

# Counts of 200 resamples of so many groups are 16 MB.
MOST_GROUPS = 10_000
"""Rows that are drawn one by one; of more rows, groups of about equal size are drawn."""

FEWEST_DIFFERENT = 10
"""Different rows from which on their numbers tell whether equal ones are copies."""

CHANCE = 0.01
"""Probability of taking equal rows that were drawn independently for copies, at most."""


class Score(float):
    """A utility that knows what it would be on other validation rows: a float with an attribute.

    A utility of your own may return one instead of a number, and a `Valuer` may record one.
    The resamples must be the same for every coalition.

    Args:
        utility: on all validation rows.
        resampled: on each of B resamples of them, (B,), the same ones for every coalition; NaN
            where it cannot be computed. None if it is not known.

    Attributes:
        resampled: the same, (B,), or None.
        before_floor: the score before a floor raised it; None if there is no floor.
    """

    resampled: Floats | None
    before_floor: Score | None = None

    def __new__(cls, utility: Any, resampled: Sequence[float] | Floats | None = None) -> Score:
        """Check that both are numbers."""
        self = super().__new__(cls, as_utility(utility))
        self.resampled = None if resampled is None else _check_resampled(resampled)
        return self

    def __getnewargs__(self) -> tuple[float, Floats | None]:  # type: ignore[override]
        """What a copy or a pickle is made of."""
        return float(self), self.resampled

    def at_least(self, floor: float) -> Score:
        """The score, or the floor where it is higher."""
        resampled = None if self.resampled is None else np.maximum(self.resampled, floor)
        found = Score(max(float(self), floor), resampled)
        found.before_floor = self if self.before_floor is None else self.before_floor
        return found

    @classmethod
    def from_rows(cls, scores: Sequence[float] | Floats, resamples: int = RESAMPLES) -> Score:
        """The mean of the scores of single validation rows, (m,), and of resamples of them.

        Give the scores of all coalitions for the same rows in the same order: 1 where a model is
        right and 0 where it is wrong, or minus each loss. Resamples of a single row are NaN: they
        would all be the same.
        """
        rows = np.asarray(scores, dtype=np.float64)
        if rows.ndim != 1 or not rows.size or not np.isfinite(rows).all():
            raise InputError("expected one finite score for each validation row")
        drawn = draw_resamples(np.arange(2 * len(rows), dtype=np.uint64).reshape(-1, 2), resamples)
        if drawn.too_few:
            return cls(rows.mean(), drawn.unknown)
        return cls(rows.mean(), drawn.sum_rows(rows[:, None])[:, 0] / drawn.sizes)


def check_score(number: object, what: str) -> float:
    """A `Score` as it is, any other number as a float, or an InputError that names `what` it is."""
    return number if isinstance(number, Score) else as_utility(number, what)


def before_floor(utility: float) -> float:
    """What was scored, before a floor raised it, with its resamples if they are known."""
    scored: float | None = getattr(utility, "before_floor", None)
    return utility if scored is None else scored


def known_resamples(utility: object) -> Floats | None:
    """What a utility is on resamples, (B,); None for a plain number."""
    found: Floats | None = getattr(utility, "resampled", None)
    return found


def as_scored(trainings: Mapping[Names, Sequence[float]]) -> dict[Names, tuple[float, ...]]:
    """Utilities of coalitions before a floor raised them; a store keeps these."""
    return {names: tuple(map(before_floor, several)) for names, several in trainings.items()}


def resampled_of(scores: Sequence[float]) -> Floats | None:
    """What several utilities are on the same B resamples, (., B); None if one does not know."""
    known = [known_resamples(score) for score in scores]
    counts = {None if part is None else len(part) for part in known}
    return None if None in counts or len(counts) > 1 else np.array(known)


def mean_score(scores: Sequence[float]) -> Score:
    """The mean of several utilities, with its resamples if all of them know theirs."""
    resampled = resampled_of(scores)
    return Score(np.mean(scores), None if resampled is None else resampled.mean(axis=0))


def format_resampled(resampled: Floats | None) -> str | None:
    """Utilities on resamples, (B,), as a cell of a table: a JSON list that keeps every digit.

    One that cannot be computed is null. None if nothing is known.
    """
    return None if resampled is None else json_numbers(resampled.tolist())


def _check_resampled(resampled: Any) -> Floats:
    try:
        numbers = np.array(resampled, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or len(numbers) < 2 or (np.abs(numbers) > LARGEST).any():
        raise InputError(
            "resampled must be the utilities on at least 2 resamples of the validation rows, got "
            f"{resampled!r:.80}"
        )
    return numbers


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Which of m validation rows count as one.

    Attributes:
        number: of each row, (m,), by its contents; copies of a row have the same.
        repeated: how many rows are equal to one before, copies or not.
    """

    number: Ints
    repeated: int

    @property
    def counted(self) -> int:
        """Rows that count, copies of a row as one."""
        return int(self.number.max()) + 1


def find_equal_rows(contents: Digests, *, dealt: bool = False) -> EqualRows:
    """Which of the rows with these digests, (m, 2), are equal, and whether they are copies.

    Of rows that a splitter has dealt, equal ones are one row that validates several times.
    """
    order = np.lexsort((contents[:, 1], contents[:, 0]))
    ordered = contents[order]
    first = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    times = np.diff(np.append(np.flatnonzero(first), len(first)))
    number = np.empty(len(first), dtype=np.int64)
    one = dealt or _are_copies(times)
    number[order] = np.cumsum(first) - 1 if one else np.arange(len(first))
    return EqualRows(number, 0 if dealt else int((~first).sum()))


def _are_copies(times: Ints) -> bool:
    """Whether rows that occur so many times each are copies of each other.

    If rows are drawn independently, the times of equal ones vary: given that a row occurs, the
    number of its further occurrences has at least the variance of a Poisson number, its mean. Of a
    file that was joined to itself all rows occur equally often. So rows are copies if the variance
    is improbably small for that (the index of dispersion, Fisher 1950). Of a few different rows, as
    in a balanced design, nothing can be told: each counts, unless there are only one or two.
    """
    further = float(times.mean()) - 1
    if further == 0 or len(times) < FEWEST_DIFFERENT:
        return further > 0 and len(times) <= 2
    least = 2 * gammaincinv((len(times) - 1) / 2, CHANCE)  # a quantile of chi-squared
    return bool(((times - times.mean()) ** 2).sum() < least * further)


@dataclass(frozen=True, eq=False)
class Resamples:
    """B resamples of m rows.

    Attributes:
        counts: how often each group was drawn, (B, g).
        group: the group of each row, (m,).
        equal: which of the rows count as one.
        weights: of the rows, (m,); None if they count alike.
    """

    counts: Floats
    group: Ints
    equal: EqualRows
    weights: Floats | None = None

    def part(self, rows: Ints) -> Resamples:
        """The same resamples of some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Resamples(self.counts, self.group[rows], self.equal, weights)

    @property
    def row_weights(self) -> Floats:
        """How much each row counts, (m,)."""
        return np.ones(len(self.group)) if self.weights is None else self.weights

    def sum_rows(self, terms: Any) -> Floats:
        """Sums over the rows of each resample of k terms of each row, (m, k), (B, k).

        Each row counts by its weight.
        """
        grouped = self._indicator @ terms
        return np.asarray((grouped.T @ self.counts.T).T)

    @property
    def too_few(self) -> bool:
        """Whether there is only one row to draw, so that resamples tell nothing about others."""
        return bool(self.counts.shape[1] < 2)

    @property
    def unknown(self) -> Floats:
        """Scores that are not known, (B,)."""
        return np.full(len(self.counts), np.nan)

    @cached_property
    def sizes(self) -> Floats:
        """Rows of each resample, or their weights together, (B,)."""
        return self.sum_rows(np.ones((len(self.group), 1)))[:, 0]

    def rows(self, resample: int) -> Ints:
        """Indices of the rows of one resample, repetitions included."""
        times = self.counts[resample, self.group].astype(np.int64)
        return np.repeat(np.arange(len(self.group)), times)

    @cached_property
    def _indicator(self) -> sparse.csr_array:
        m, g = len(self.group), self.counts.shape[1]
        return sparse.csr_array((self.row_weights, (self.group, np.arange(m))), shape=(g, m))


def draw_resamples(
    contents: Digests, resamples: int, weights: Floats | None = None, *, dealt: bool = False
) -> Resamples:
    """Resamples of rows with these digests, (m, 2); copies of a row are drawn together.

    They depend on the contents of the rows, not on their order, the machine or a seed: utilities
    of the same validation rows are comparable wherever they were computed.
    """
    equal = find_equal_rows(contents, dealt=dealt)
    m, (_, first) = equal.counted, np.unique(equal.number, return_index=True)
    g = min(m, MOST_GROUPS)
    # A sum of digests is the same in any order of the rows; unsigned integers wrap around.
    total = contents[first].sum(axis=0)
    rng = np.random.default_rng([m, resamples, *map(int, total)])
    counts = [np.bincount(rng.integers(g, size=g), minlength=g) for _ in range(resamples)]
    drawn = np.array(counts, dtype=np.float64).reshape(-1, g)
    return Resamples(drawn, equal.number % g, equal, weights)
