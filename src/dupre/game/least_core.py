"""The least core: payments that no coalition would leave, at the smallest subsidy.

With gains g(S) = u(S) - u(empty), the least core holds the payments x with x(N) = g(N) for which
the subsidy e in x(S) + e >= g(S), for every proper coalition S, is smallest (Yan & Procaccia 2021,
"If You Like Shapley Then You'll Love the Core"). A negative e means that the core has slack. The
*egalitarian* point has the smallest ||x|| of them: it is unique, and equal for equal owners.

Shapes: members (m, n), gains (m,), payments (n,), working (k,) indices of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dupre._types import Floats, Ints, Members
from dupre.game.core_program import (
    TOLERANCE,
    coalition_payments,
    egalitarian_point,
    find_balanced_rows,
    scale_of,
)
from dupre.game.ties import descending_order, first_largest

DRAWN = 256
"""Coalitions of all sizes that each search draws at random."""

SEARCHES = 3
"""Searches in a row that must find no violation that matters."""

MATTERS = 1e-3
"""Violations up to this part of the largest gain do not matter."""

CLIMBS = 8
"""A search climbs from this many of its worst random coalitions, and from as many tight ones."""


@dataclass(frozen=True, eq=False)
class Core:
    """The egalitarian point of a least core.

    Attributes:
        payments: (n,), with the sum grand - empty.
        subsidy: e, the most by which the gain of a coalition exceeds its payments; negative if
            every coalition is paid more than it gains.
        tight: coalitions that are paid no more than their gain minus the subsidy, (k, n).
        looked: coalitions whose utility was looked at.
        violation: the most by which the gain of a coalition exceeds its payments and the subsidy:
            of all listed ones (a rounding error), or of those that searches found.
    """

    payments: Floats
    subsidy: float
    tight: Members
    looked: int
    violation: float


def least_core(members: Members, utilities: Floats, *, grand: float, empty: float = 0.0) -> Core:
    """The egalitarian point of the least core over the listed coalitions.

    Args:
        members: coalitions, (m, n), neither empty nor of all owners. If one is listed twice the
            higher utility counts.
        utilities: of these coalitions, (m,).
        grand: utility of all owners together.
        empty: utility of no data.
    """
    total = grand - empty
    equal = np.full(members.shape[1], total / members.shape[1])
    return _core(members, utilities - empty, total, find_balanced_rows(members), equal)


def draw_cores(
    members: Members, draws: Floats, *, grand: float | Floats, empty: float = 0.0
) -> tuple[Floats, Floats]:
    """Payments (d, n) and subsidies (d,), one least core for each draw of the utilities.

    Args:
        members: coalitions, (m, n), neither empty nor of all owners.
        draws: utilities of these coalitions, (d, m).
        grand: utility of all owners together, one for all draws or one each, (d,).
        empty: utility of no data.
    """
    totals, gains = np.broadcast_to(grand, len(draws)) - empty, draws - empty
    working, n = find_balanced_rows(members), members.shape[1]
    payments, subsidies = np.empty((len(draws), n)), np.empty(len(draws))
    guess = np.zeros(n)
    for d, total in enumerate(totals):
        guess = guess + (total - guess.sum()) / n  # the last draw suggests what may be tight
        guess, subsidies[d] = egalitarian_point(members, gains[d], total, working, guess)
        payments[d] = guess
    return payments, subsidies


def search_core(
    utility: Callable[[Members], Floats],
    *,
    start: Members,
    grand: float,
    empty: float = 0.0,
    rng: np.random.Generator,
    limit: int,
) -> Core:
    """The egalitarian point of the least core where there are too many coalitions to list.

    Begins with each owner alone, all but each, and the coalitions of `start`. Then it searches for
    coalitions that gain more than they are paid, and adds them, until `SEARCHES` searches in a row
    find none. This does not prove that there are none: `looked` and `violation` say how far it
    went, another `rng` how far off it may be. The subsidy is never above that of all coalitions.

    Args:
        utility: callable(coalitions (m, n)) -> utilities (m,); cheap, and always the same.
        start: coalitions to begin with, (m, n), neither empty nor of all owners; m may be 0.
        grand: utility of all owners together.
        empty: utility of no data.
        rng: draws coalitions.
        limit: no further search once this many coalitions were looked at.
    """
    n = start.shape[1]
    one = np.eye(n, dtype=bool)
    members, total = np.concatenate([one, ~one, start]), grand - empty

    def gain(coalitions: Members) -> Floats:
        return utility(coalitions) - empty

    gains, working = gain(members), find_balanced_rows(members)
    looked, payments = len(members), np.full(n, total / n)
    while True:
        core = _core(members, gains, total, working, payments)
        payments, scale, violation = core.payments, scale_of(gains, total), 0.0
        matters = scale * max(MATTERS, TOLERANCE)
        for _ in range(SEARCHES):
            seen, found = _search(gain, core, TOLERANCE * scale, rng)
            over = found - coalition_payments(seen, payments) - core.subsidy
            looked, violation = looked + len(seen), max(violation, float(over.max()))
            if violation > matters or looked >= limit:
                break
        if violation <= matters or looked >= limit:
            return replace(core, looked=looked, violation=violation)
        # All of them: adding the worst alone took ten times as many looks in a game of 60 owners.
        violated = over > TOLERANCE * scale
        fresh, first = np.unique(seen[violated], axis=0, return_index=True)
        members = np.concatenate([members, fresh])
        gains = np.concatenate([gains, found[violated][first]])


def _search(
    gain: Callable[[Members], Floats], core: Core, step: float, rng: np.random.Generator
) -> tuple[Members, Floats]:
    """Coalitions looked at, (m, n), and their gains: random ones, and the ways up from the worst.

    From the worst random ones and some tight ones it climbs: one owner enters, leaves or is
    swapped at a time. Each step gains at least `step`, so that rounding cannot lead in circles.
    """
    n = len(core.payments)
    seen: list[Members] = []
    gains: list[Floats] = []

    def excess(coalitions: Members) -> Floats:
        seen.append(coalitions.reshape(-1, n))
        gains.append(gain(seen[-1]))
        return np.reshape(
            gains[-1] - coalition_payments(seen[-1], core.payments), coalitions.shape[:-1]
        )

    at = rng.random((DRAWN, n)).argsort(axis=1) < rng.integers(1, n, size=(DRAWN, 1))
    worst = at[descending_order(excess(at))[:CLIMBS]]
    at = np.concatenate([worst, rng.permutation(core.tight)[:CLIMBS]])
    height = excess(at)
    few = int(np.ceil(np.sqrt(n)))
    while len(at):
        one = _flip(at, np.broadcast_to(np.arange(n)[:, None], (len(at), n, 1)))
        after_one = excess(one)
        # The best swap is nearly always among the owners that are best to leave and to enter.
        out = np.array([descending_order(row)[:few] for row in np.where(at, after_one, -np.inf)])
        into = np.array([descending_order(row)[:few] for row in np.where(at, -np.inf, after_one)])
        pairs = np.stack([np.repeat(out, few, axis=1), np.tile(into, few)], axis=2)
        two = _flip(at, pairs)
        ways, heights = np.hstack([one, two]), np.hstack([after_one, excess(two)])
        best = np.array([first_largest(row) for row in heights])
        rows = np.flatnonzero(heights.max(axis=1) > height + step)
        at, height = ways[rows, best[rows]], heights[rows, best[rows]]
    return np.concatenate(seen), np.concatenate(gains)


def _flip(at: Members, owners: Ints) -> Members:
    """Each coalition, (b, n), with k choices of j owners, (b, k, j), entered or left, (b, k, n).

    Unchanged where none or all would be left.
    """
    before = np.repeat(at[:, None, :], owners.shape[1], axis=1)
    after = before.copy()
    np.put_along_axis(after, owners, ~np.take_along_axis(before, owners, axis=2), axis=2)
    proper = after.any(axis=2, keepdims=True) & ~after.all(axis=2, keepdims=True)
    return np.asarray(np.where(proper, after, before))


def _core(members: Members, gains: Floats, total: float, working: Ints, guess: Floats) -> Core:
    payments, subsidy = egalitarian_point(members, gains, total, working, guess)
    excess = gains - coalition_payments(members, payments) - subsidy
    tight = np.flatnonzero(excess >= -TOLERANCE * scale_of(gains, total))
    return Core(payments, subsidy, members[tight], len(members), max(0.0, float(excess.max())))
