"""The least core: payments that no coalition would leave, at the smallest subsidy.

With gains g(S) = u(S) - u(empty), the least core holds the payments x with x(N) = g(N) for which
the subsidy e in x(S) + e >= g(S), for every proper coalition S, is smallest (Yan & Procaccia 2021,
"If You Like Shapley Then You'll Love the Core"). A negative e means that the core has slack. The
*egalitarian* point has the smallest ||x|| of them: it is unique, and equal for equal owners.

Everything is solved for y = (x - g(N) / n) / scale. It sums to 0, so it is orthogonal to the
equal split: the smallest ||y|| is the smallest ||x||. Constraints read y(S) >= floor(S) + t, with
t = -e / scale. A solver gets a working set of them; violated ones are added until there are none.

Shapes: members (m, n), gains and floor (m,), payments, x and y (n,), working (k,) indices of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lstsq, null_space, orth
from scipy.optimize import linprog, lsq_linear, nnls

from dupre._types import NOTHING, Floats, Ints, Members
from dupre.errors import DupreError
from dupre.game.blocks import split
from dupre.game.ties import descending_order, first_largest

DRAWN = 256
"""Coalitions of all sizes that each search draws at random."""

SEARCHES = 3
"""Searches in a row that must find no violation that matters."""

MATTERS = 1e-3
"""Violations up to this part of the largest gain do not matter."""

CLIMBS = 8
"""A search climbs from this many of its worst random coalitions, and from as many tight ones."""

ROUNDING = 1e-10
"""By how much a solver may violate a constraint, as a part of the largest gain."""

TOLERANCE = 1e-8
"""A slack below this part of the largest gain counts as zero; well above ROUNDING."""

BLOCK = 1 << 16
"""Coalitions multiplied at once: as floats they take eight times their memory."""


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
    return _core(members, utilities - empty, total, _find_balanced_rows(members), equal)


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
    working, n = _find_balanced_rows(members), members.shape[1]
    payments, subsidies = np.empty((len(draws), n)), np.empty(len(draws))
    guess = np.zeros(n)
    for d, total in enumerate(totals):
        guess = guess + (total - guess.sum()) / n  # the last draw suggests what may be tight
        guess, subsidies[d] = _egalitarian_point(members, gains[d], total, working, guess)
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

    gains, working = gain(members), _find_balanced_rows(members)
    looked, payments = len(members), np.full(n, total / n)
    while True:
        core = _core(members, gains, total, working, payments)
        payments, scale, violation = core.payments, _scale_of(gains, total), 0.0
        matters = scale * max(MATTERS, TOLERANCE)
        for _ in range(SEARCHES):
            seen, found = _search(gain, core, TOLERANCE * scale, rng)
            over = found - _coalition_payments(seen, payments) - core.subsidy
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
            gains[-1] - _coalition_payments(seen[-1], core.payments), coalitions.shape[:-1]
        )

    # All sizes alike: a uniform draw would hardly ever meet small or large ones.
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
    payments, subsidy = _egalitarian_point(members, gains, total, working, guess)
    excess = gains - _coalition_payments(members, payments) - subsidy
    tight = np.flatnonzero(excess >= -TOLERANCE * _scale_of(gains, total))
    return Core(payments, subsidy, members[tight], len(members), max(0.0, float(excess.max())))


def _egalitarian_point(
    members: Members, gains: Floats, total: float, working: Ints, guess: Floats
) -> tuple[Floats, float]:
    """Payments, (n,), and the subsidy; begins with `working` and the tightest rows at the guess."""
    n, scale = members.shape[1], _scale_of(gains, total)
    floor = (gains - members.sum(axis=1) * (total / n)) / scale
    slack = _coalition_payments(members, (guess - total / n) / scale) - floor
    working = np.union1d(working, np.argsort(slack)[: 4 * n])  # n rows are tight at a vertex
    E, f = np.ones((1, n)), np.zeros(1)
    t, _, tight = _largest_slack(members, floor, working, E, f)
    floor += t
    for _ in range(n):
        # A positive multiplier at one optimum means tight at every one (complementary slackness).
        # These rows become equations: as inequalities they leave the optima no interior.
        E, f = np.vstack([E, members[tight]]), np.append(f, floor[tight])
        centre = np.asarray(lstsq(E, f, cond=TOLERANCE)[0])
        Z = null_space(E, rcond=TOLERANCE)
        y = centre + _shortest_vector(members, floor - _coalition_payments(members, centre), Z)
        if (short := float(np.max(floor - _coalition_payments(members, y)))) <= TOLERANCE:
            return total / n + scale * y, -scale * t
        # Rarely, further rows are tight at every optimum and mislead `_shortest_vector`. The
        # largest slack that all rows not yet fixed can have at once is then 0, and finds them.
        free = np.flatnonzero(_lengths(members, Z) > TOLERANCE)
        if not len(free):
            break
        Q = orth(E.T, rcond=TOLERANCE).T  # independent rows, which rounding cannot make contradict
        rows = members[free]
        wide, _, tight = _largest_slack(rows, floor[free], free[:0], Q, Q @ centre, most=1.0)
        if wide > TOLERANCE:
            break
        tight = free[tight]
    raise DupreError(
        f"the least core was found only up to an error of {scale * short:g}; look for utilities of "
        f"very different magnitudes, and report this if there are none"
    )


def _find_balanced_rows(members: Members) -> Ints:
    """Rows that bound the subsidy: with suitable weights they cover every owner equally.

    Each owner alone, and all but each, are always such rows.
    """
    n, sizes = members.shape[1], members.sum(axis=1)
    start = np.flatnonzero((sizes == 1) | (sizes == n - 1))
    floor, E, f = np.zeros(len(members)), np.ones((1, n)), np.zeros(1)
    t, working, _ = _largest_slack(members, floor, start, E, f, most=1.0, box=1.0)
    if t <= TOLERANCE:
        return working
    raise DupreError(
        f"the {len(members)} listed coalitions do not bound the subsidy; please report this"
    )


def _scale_of(gains: Floats, total: float) -> float:
    """The largest gain; tolerances are parts of it."""
    return max(float(np.abs(gains).max()), abs(total)) or 1.0


def _coalition_payments(members: Members, x: Floats) -> Floats:
    """What each coalition is paid, (m,)."""
    return np.concatenate([rows @ x for rows in _blocks(members)])


def _largest_slack(
    members: Members,
    floor: Floats,
    working: Ints,
    E: Floats,
    f: Floats,
    *,
    most: float = np.inf,
    box: float = np.inf,
) -> tuple[float, Ints, Ints]:
    """The largest t <= most with y(S) >= floor(S) + t for every S, E y = f and |y| <= box.

    Returns:
        t, the grown working set, and the rows of it with a positive multiplier.
    """
    n = members.shape[1]
    while True:
        solved = linprog(
            np.append(np.zeros(n), -1.0),
            A_ub=np.column_stack([-members[working].astype(np.float64), np.ones(len(working))]),
            b_ub=-floor[working],
            A_eq=np.column_stack([E, np.zeros(len(E))]),
            b_eq=f,
            bounds=[*[(-box, box)] * n, (-np.inf, most)],
            method="highs-ds",  # a vertex, exact to rounding; an interior point would not be
            options={
                "primal_feasibility_tolerance": ROUNDING,
                "dual_feasibility_tolerance": ROUNDING,
            },
        )
        if solved.status != 0:
            raise DupreError(
                f"the linear program of the least core was not solved: {solved.message}; look for "
                f"utilities of very different magnitudes, and report this if there are none"
            )
        t = float(solved.x[n])
        slack = _coalition_payments(members, solved.x[:n]) - floor - t
        slack[working] = 0.0  # rounding errors of the solver
        worst = np.argsort(slack)[: 2 * n]
        worst = worst[slack[worst] < -ROUNDING]
        if not len(worst):
            return t, working, working[solved.ineqlin.marginals < -TOLERANCE]
        working = np.concatenate([working, worst])


def _shortest_vector(members: Members, need: Floats, Z: Floats) -> Floats:
    """The shortest v, (n,), in the space of Z, (n, r), with v(S) >= need(S) for every S.

    Least distance programming, Lawson & Hanson 1974, ch. 23, algorithm LDP.
    """
    v, working = np.zeros(len(Z)), NOTHING
    unit = np.append(np.zeros(Z.shape[1]), 1.0)
    while Z.shape[1]:
        short = need - _coalition_payments(members, v)
        short[working] = 0.0
        worst = np.argsort(-short)[: 2 * len(v)]
        worst = worst[short[worst] > ROUNDING]
        if not len(worst):
            break
        working = np.concatenate([working, worst])
        G, h = members[working] @ Z, need[working]
        u = _least_squares(np.vstack([G.T, h]), unit)
        v = Z @ lstsq(G[u > 0], h[u > 0], cond=TOLERANCE)[0]  # more exact than the residual
    return v


def _least_squares(A: Floats, b: Floats) -> Floats:
    """The x >= 0, (k,), with the smallest ||A x - b||."""
    try:
        x = np.asarray(nnls(A, b)[0])
        # SciPy 1.15 to 1.17 return another x now and then, on some processors (scipy #25389).
        found = _is_optimal(A, b, x)
    except RuntimeError:  # too many steps
        found = False
    if not found:  # ten times as slow: it solves the least squares of each step anew
        solved = lsq_linear(A, b, (0.0, np.inf), method="bvls", tol=1e-4 * ROUNDING)
        if not _is_optimal(A, b, solved.x):
            raise DupreError(
                f"the egalitarian point of the least core was not found: {solved.message}; please "
                f"report it"
            )
        x = np.asarray(solved.x)
    return x


def _is_optimal(A: Floats, b: Floats, x: Floats) -> bool:
    """Whether x solves `_least_squares` (Lawson & Hanson 1974, Theorem 23.4)."""
    slope = A.T @ (b - A @ x)
    return bool(slope.max() <= TOLERANCE and np.abs(slope[x > 0]).max(initial=0.0) <= TOLERANCE)


def _lengths(members: Members, Z: Floats) -> Floats:
    """Length of each row in the space of Z, (n, r)."""
    return np.concatenate([np.linalg.norm(rows @ Z, axis=1) for rows in _blocks(members)])


def _blocks(members: Members) -> Iterator[Floats]:
    for some in split(len(members), BLOCK):
        yield members[some].astype(np.float64)
