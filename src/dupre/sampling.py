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

from dupre.typing import Floats, Ints

NONE = np.empty(0, dtype=np.int64)

LEAST_DRAWS = 4
"""Below this the spread of the draws says next to nothing about their error."""


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
    """

    mean: Floats
    covariance: Floats
    guess: Floats


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
    return Sampled(mean, covariance, guess)


def _guess_by_size(sizes: Ints, utilities: Floats, certain: Ints) -> Floats:
    """Mean utility of the certain coalitions of each size, straight lines in between, (b,)."""
    known = np.unique(sizes[certain])
    means = [utilities[certain][sizes[certain] == size].mean() for size in known]
    return np.asarray(np.interp(sizes, known, means))
