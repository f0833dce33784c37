"""Values from coalitions drawn at random, valid however good or bad a predictor is.

They are unbiased, and their error is measured, not modelled. They replace a predictor that fails on
the check coalitions, and correct one on request. With few draws the intervals are wide.

A value is a sum over coalitions, W @ u. Some coalitions are certain to be evaluated and enter as
they are; of all others, m are drawn with replacement, C with probability q_C:

    W_certain u_certain + W_others g + mean over draws of W_C (u_C - g_C) / q_C

g is a guess of all utilities (a control variate). It removes most of the spread of the draws, and
adds no bias if it does not depend on the utility it is compared with. A simple guess uses the
certain coalitions only, a predictor's guess also the earlier draws.

Notation: n owners, b coalitions, m draws, f blocks of draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dupre._types import NOTHING, Floats, Ints, Members
from dupre.errors import InputError
from dupre.game.weights import column_norms, student_factor

LEAST_DRAWS = 4
"""With fewer draws their spread says almost nothing about their error."""


class Draws:
    """A random sequence of coalitions outside the first design, drawn with replacement.

    Attributes:
        chances: probability with which each coalition is drawn, (b,).
        sequence: indices of the coalitions drawn.
        held: the check coalitions, which are the first distinct ones of the sequence.

    Raises:
        InputError: there are too few coalitions for this many check coalitions.
    """

    def __init__(self, W: Floats, certain: Ints, check: int, rng: np.random.Generator):
        self.chances = draw_chances(W, certain)
        rest = np.count_nonzero(self.chances)
        if check and not LEAST_DRAWS <= check <= rest // 2:
            others = f"{rest} coalitions outside the first design"
            most = f"0, or a number from {LEAST_DRAWS} to {rest // 2}, half of the {others}"
            if rest // 2 < LEAST_DRAWS:
                most = f"0 here: it needs {2 * LEAST_DRAWS} or more of the {others}"
            raise InputError(f"check must be {most}; got {check}")
        # Long enough to meet nearly all coalitions; later ones follow in a fixed order.
        count = 1_024 + 8 * len(self.chances)
        self.sequence = rng.choice(len(self.chances), count, p=self.chances) if rest else NOTHING
        self.held = distinct_draws(self.sequence)[:check]

    def evaluated_draws(self, recorded: Members, failed: Members) -> Ints:
        """The draws before the first one not yet evaluated, without those that failed."""
        missing = ~(recorded | failed)[self.sequence]
        end = int(np.argmax(missing)) if missing.any() else len(missing)
        return self.sequence[:end][recorded[self.sequence[:end]]]

    def sort_by_draw(self, still_open: Ints) -> Ints:
        """Open coalitions in the order of the sequence, then those it does not reach."""
        order = distinct_draws(np.concatenate([self.sequence, still_open]))
        return np.asarray(order[np.isin(order, still_open)])


def distinct_draws(draws: Ints) -> Ints:
    """The draws without repetitions, in their order."""
    _, first = np.unique(draws, return_index=True)
    return np.asarray(draws[np.sort(first)])


def draw_chances(W: Floats, certain: Ints) -> Floats:
    """Probability with which each coalition is drawn, (b,): by its weight, if not certain."""
    weight = column_norms(W)
    weight[certain] = 0.0
    total = weight.sum()
    return np.asarray(weight / total if total else weight)


@dataclass(frozen=True, eq=False)
class SampledValues:
    """Values from certain and drawn coalitions.

    Attributes:
        mean: of W @ utilities, (n,).
        covariance: of the mean, (n, n), enlarged as Student's t is wider than the normal; it
            includes the error of the guess for failed coalitions.
        guess: utility of every coalition, (b,).
        draws: how many there were.
        squared_error: mean squared error of the guesses.
    """

    mean: Floats
    covariance: Floats
    guess: Floats
    draws: int
    squared_error: float


def estimate_from_draws(
    W: Floats,
    utilities: Floats,
    guesses: Floats,
    *,
    certain: Ints,
    draws: Ints,
    chances: Floats,
    failed: Ints = NOTHING,
) -> SampledValues:
    """Values W @ utilities from coalitions that are certain and others drawn at random.

    The draws are cut into f blocks, block j with its own guess. A guess may depend on utilities
    drawn in earlier blocks: given those, the estimate of a block is unbiased, so that blocks are
    uncorrelated and their variances add up. Later guesses know more: block j has the weight j.

    Args:
        W: weights, (n, b).
        utilities: (b,); read at certain and drawn coalitions only.
        guesses: of all utilities, one for each block, (f, b).
        certain: indices of coalitions that are evaluated in any case.
        draws: indices of coalitions drawn, (m,), repetitions included.
        chances: probability with which each was drawn, (b,).
        failed: indices of coalitions that are neither certain nor drawn, because they failed or
            are not evaluated yet; the guess is used for them.
    """
    m, blocks = len(draws), len(guesses)
    chances = chances.copy()
    chances[failed] = 0.0
    chances /= chances.sum()
    others = ~np.isin(np.arange(len(utilities)), certain)
    known = W[:, certain] @ utilities[certain]
    counted = np.arange(1, blocks + 1) / (blocks * (blocks + 1) / 2)
    mean, covariance, squares = np.zeros(len(W)), np.zeros((len(W), len(W))), 0.0
    parts = split_into_blocks(draws, blocks)
    sizes = np.array([len(part) for part in parts])
    shares = counted**2 / sizes
    freedom = shares.sum() ** 2 / np.sum(shares**2 / (sizes - 1))  # Satterthwaite 1946
    for j, (part, guess) in enumerate(zip(parts, guesses, strict=True)):
        errors = utilities[part] - guess[part]
        terms = W[:, part] * (errors / chances[part])
        mean += counted[j] * (known + W[:, others] @ guess[others] + terms.mean(axis=1))
        covariance += counted[j] ** 2 * np.cov(terms) / len(part)
        squares += counted[j] * float(np.mean(errors**2))
    wider = student_factor(freedom)
    covariance = covariance * wider**2 + squares * W[:, failed] @ W[:, failed].T
    # An owner on whom no draw has a weight is not certain: assume errors as large as elsewhere.
    unseen = np.flatnonzero(~W[:, draws].any(axis=1))
    possible = np.flatnonzero(chances)
    spread = squares * np.sum(W[np.ix_(unseen, possible)] ** 2 / chances[possible], axis=1)
    covariance[unseen, unseen] += spread / m
    return SampledValues(mean, covariance, guesses[-1], m, squares)


def split_into_blocks(draws: Ints, blocks: int) -> list[Ints]:
    """The draws in blocks of about equal length, in their order."""
    return np.array_split(draws, blocks)


def guess_by_size(sizes: Ints, utilities: Floats, certain: Ints) -> Floats:
    """Mean utility of the certain coalitions of each size, linear in between, (b,)."""
    known = np.unique(sizes[certain])
    means = [utilities[certain][sizes[certain] == size].mean() for size in known]
    return np.asarray(np.interp(sizes, known, means))


def error_by_size(sizes: Ints, utilities: Floats, certain: Ints, others: Ints) -> tuple[float, int]:
    """Root mean square error of `guess_by_size` and its degrees of freedom.

    If the few others happen to be equal, a good predictor would look bad. So the certain
    coalitions count too, and one degree of freedom is lost for the mean of each size.
    """
    both = np.concatenate([certain, others])
    errors = utilities[both] - guess_by_size(sizes, utilities, certain)[both]
    freedom = len(both) - len(np.unique(sizes[certain]))
    return float(np.sqrt(np.sum(errors**2) / freedom)), freedom
