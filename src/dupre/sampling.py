"""Values from coalitions drawn at random, whatever any predictor makes of them.

Unbiased and with an error that is measured, not modelled: what is left when the predictor fails on
coalitions held out. With few draws the intervals are wide, and rightly so.

A value is a sum over coalitions, W @ u. Some coalitions are certain to be evaluated and enter as
they are; of all others, m are drawn with replacement, C with probability q_C:

    W_certain u_certain + W_others c + mean over draws of W_C (u_C - c_C) / q_C

c is a plain guess from the size of a coalition (a control variate): it takes most of the spread
out of the draws and cannot bias them, because it is made from the certain coalitions alone.

Notation: n owners, b coalitions, m draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from dupre.errors import InputError
from dupre.typing import Floats, Ints, Members

NONE = np.empty(0, dtype=np.int64)

LEAST_DRAWS = 4
"""Below this the spread of the draws says next to nothing about their error."""


class Draws:
    """A random sequence of coalitions outside the first design, drawn with replacement.

    Attributes:
        chances: probability with which each coalition is drawn, (b,).
        sequence: indices of the coalitions drawn.
        held: the first distinct ones of them, which the predictor is not shown.

    Raises:
        InputError: there are too few coalitions to hold out that many.
    """

    def __init__(self, W: Floats, certain: Ints, holdout: int, rng: np.random.Generator):
        self.chances = draw_chances(W, certain)
        self.sequence = self.held = NONE
        if not holdout:
            return
        rest = np.count_nonzero(self.chances)
        if not LEAST_DRAWS <= holdout <= rest // 2:
            raise InputError(
                f"holdout must be 0 or a number from {LEAST_DRAWS} to {rest // 2}, half of the "
                f"{rest} coalitions outside the first design; got {holdout}"
            )
        count = 1_024 + 8 * len(self.chances)
        self.sequence = rng.choice(len(self.chances), count, p=self.chances)
        self.held = _distinct(self.sequence)[:holdout]

    def evaluated(self, recorded: Members, failed: Members) -> Ints:
        """Draws of which all before are evaluated too; failed ones left out."""
        missing = ~(recorded | failed)[self.sequence]
        end = int(np.argmax(missing)) if missing.any() else len(missing)
        return self.sequence[:end][recorded[self.sequence[:end]]]

    def following(self, still_open: Ints) -> Ints:
        """Open coalitions in the order of the sequence, then those it does not reach."""
        order = _distinct(np.concatenate([self.sequence, still_open]))
        return np.asarray(order[np.isin(order, still_open)])


def _distinct(draws: Ints) -> Ints:
    """The draws without repetitions, in their order."""
    _, first = np.unique(draws, return_index=True)
    return np.asarray(draws[np.sort(first)])


def draw_chances(W: Floats, certain: Ints) -> Floats:
    """Probability with which each coalition is drawn, (b,): by its weight, if not certain."""
    weight = np.linalg.norm(W, axis=0)
    weight[certain] = 0.0
    total = weight.sum()
    return np.asarray(weight / total if total else weight)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Values from certain and drawn coalitions.

    Attributes:
        mean: of W @ utilities, (n,).
        covariance: of the mean of the draws, (n, n), enlarged as Student's t is wider than the
            normal; what the guess may be wrong by for failed coalitions included.
        guess: utility of every coalition by its size alone, (b,).
        draws: how many there were.
    """

    mean: Floats
    covariance: Floats
    guess: Floats
    draws: int


def sampled_values(
    W: Floats,
    utilities: Floats,
    sizes: Ints,
    *,
    certain: Ints,
    draws: Ints,
    chances: Floats,
    failed: Ints = NONE,
) -> Sampled:
    """Values W @ utilities from coalitions that are certain and others drawn at random.

    Args:
        W: weights, (n, b).
        utilities: (b,); read at certain and drawn coalitions only.
        sizes: members of each coalition, (b,).
        certain: indices of coalitions that are evaluated in any case.
        draws: indices of coalitions drawn, (m,), repetitions included.
        chances: probability with which each was drawn, (b,).
        failed: indices of coalitions that cannot be evaluated: neither certain nor drawn, the
            guess stands for them.
    """
    m = len(draws)
    chances = chances.copy()
    chances[failed] = 0.0
    chances /= chances.sum()
    guess = _guess_by_size(sizes, utilities, certain)
    others = ~np.isin(np.arange(len(sizes)), certain)
    terms = W[:, draws] * ((utilities[draws] - guess[draws]) / chances[draws])
    mean = W[:, certain] @ utilities[certain] + W[:, others] @ guess[others] + terms.mean(axis=1)
    wider = student.ppf(0.975, m - 1) / student.ppf(0.975, np.inf)
    wrong = float(np.mean((utilities[draws] - guess[draws]) ** 2))
    covariance = np.cov(terms) / m * wider**2 + wrong * W[:, failed] @ W[:, failed].T
    return Sampled(mean, covariance, guess, m)


def _guess_by_size(sizes: Ints, utilities: Floats, certain: Ints) -> Floats:
    """Mean utility of the certain coalitions of each size, straight lines in between, (b,)."""
    known = np.unique(sizes[certain])
    means = [utilities[certain][sizes[certain] == size].mean() for size in known]
    return np.asarray(np.interp(sizes, known, means))
