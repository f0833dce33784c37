"""The egalitarian point of a least core over listed coalitions: linear programs and a projection.

Everything is solved for y = (x - g(N) / n) / scale. It sums to 0, so it is orthogonal to the
equal split: the smallest ||y|| is the smallest ||x||. Constraints read y(S) >= floor(S) + t, with
t = -e / scale. A solver gets a working set of them; violated ones are added until there are none.

Shapes: members (m, n), gains and floor (m,), x and y (n,), working (k,) indices of rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lstsq, null_space, orth
from scipy.optimize import linprog, lsq_linear, nnls

from dupre._types import NOTHING, Floats, Ints, Members
from dupre.errors import DupreError
from dupre.game.blocks import split

ROUNDING = 1e-10
"""By how much a solver may violate a constraint, as a part of the largest gain."""

TOLERANCE = 1e-8
"""A slack below this part of the largest gain counts as zero; well above ROUNDING."""

BLOCK = 1 << 16
"""Coalitions multiplied at once: as floats they take eight times their memory."""


def egalitarian_point(
    members: Members, gains: Floats, total: float, working: Ints, guess: Floats
) -> tuple[Floats, float]:
    """Payments, (n,), and the subsidy; begins with `working` and the tightest rows at the guess."""
    n, scale = members.shape[1], scale_of(gains, total)
    floor = (gains - members.sum(axis=1) * (total / n)) / scale
    slack = coalition_payments(members, (guess - total / n) / scale) - floor
    working = np.union1d(working, np.argsort(slack)[: 4 * n])
    E, f = np.ones((1, n)), np.zeros(1)
    t, _, tight = _largest_slack(members, floor, working, E, f)
    floor += t
    for _ in range(n):
        # A positive multiplier at one optimum means tight at every one (complementary slackness).
        # These rows become equations: as inequalities they leave the optima no interior.
        E, f = np.vstack([E, members[tight]]), np.append(f, floor[tight])
        centre = np.asarray(lstsq(E, f, cond=TOLERANCE)[0])
        Z = null_space(E, rcond=TOLERANCE)
        y = centre + _shortest_vector(members, floor - coalition_payments(members, centre), Z)
        if (short := float(np.max(floor - coalition_payments(members, y)))) <= TOLERANCE:
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


def find_balanced_rows(members: Members) -> Ints:
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


def scale_of(gains: Floats, total: float) -> float:
    """The largest gain; tolerances are parts of it."""
    return max(float(np.abs(gains).max()), abs(total)) or 1.0


def coalition_payments(members: Members, x: Floats) -> Floats:
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
        slack = coalition_payments(members, solved.x[:n]) - floor - t
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
        short = need - coalition_payments(members, v)
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
