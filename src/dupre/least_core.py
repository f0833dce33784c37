"""The least core: payments that no coalition would leave, at the smallest subsidy.

With gains g(S) = u(S) - u(empty), the least core holds the payments x with x(N) = g(N) for which
the subsidy e in x(S) + e >= g(S), for every proper coalition S, is smallest (Yan & Procaccia 2021,
"If You Like Shapley Then You'll Love the Core"). A negative e means that the core has slack. The
*egalitarian* point has the smallest ||x|| of them: it is unique, and equal for equal owners.

Everything is solved for y = (x - g(N) / n) / scale. It sums to 0 and is thus orthogonal to the
equal split: the smallest ||y|| is the smallest ||x||. Constraints read y(S) >= floor(S) + t, with
t = -e / scale. Only a working set of them, grown by those that are violated, is handed to a
solver; nothing is lost, as in the end all are checked.

Shapes: members (m, n), gains and floor (m,), x and y (n,), working (k,) indices of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lstsq, null_space, orth
from scipy.optimize import linprog, nnls

from dupre.checks import finite, whole
from dupre.errors import DupreError, InputError
from dupre.typing import Floats, Ints, Members

ROUNDING = 1e-10
"""By how much a solver may violate a constraint, as a part of the largest gain."""
TOLERANCE = 1e-8
"""A slack below this part of the largest gain counts as none; well above ROUNDING."""
CLIMBS = 8
"""Coalitions from which a search climbs at once: the worst drawn ones, and as many tight ones."""
BLOCK = 1 << 16
"""Coalitions multiplied at once: as floats they take eight times their memory."""


@dataclass(frozen=True, eq=False)
class Core:
    """The egalitarian point of a least core.

    Attributes:
        payments: (n,), with the sum grand - empty.
        subsidy: e, the most that a coalition gains without the others above its payments; negative
            if every coalition is paid more than it gains.
        tight: coalitions that are paid no more than their gain less the subsidy, (k, n).
        looked: coalitions whose utility was looked at.
        violation: the most that a coalition gains above its payments and the subsidy: of all that
            were listed (a rounding error), or that searches found at these payments (no proof for
            others).
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

    Raises:
        InputError: an argument cannot be used, or the coalitions do not bound the subsidy.
    """
    members, (total, empty) = _proper(members), _total(grand, empty)
    gains = _utilities(utilities, len(members)) - empty
    equal = np.full(members.shape[1], total / members.shape[1])
    return _core(members, gains, total, _balanced(members), equal)


def drawn_cores(
    members: Members, draws: Floats, *, grand: float | Floats, empty: float = 0.0
) -> tuple[Floats, Floats]:
    """Payments (d, n) and subsidies (d,), one least core for each draw of the utilities.

    Args:
        members: coalitions, (m, n), neither empty nor of all owners.
        draws: utilities of these coalitions, (d, m).
        grand: utility of all owners together, one for all draws or one each, (d,).
        empty: utility of no data.

    Raises:
        InputError: as `least_core`.
    """
    members = _proper(members)
    if np.ndim(draws) != 2 or not len(draws):
        raise InputError(
            f"draws must have one row for each draw and one column for each of the {len(members)} "
            f"coalitions, got an array of shape {np.shape(draws)}"
        )
    if np.shape(grand) not in ((), (len(draws),)):
        raise InputError(
            f"grand must be one number, or one for each of the {len(draws)} draws; got an array "
            f"of shape {np.shape(grand)}"
        )
    grands = np.broadcast_to(np.asarray(grand, dtype=object), len(draws))
    totals = [_total(one, empty)[0] for one in grands]
    gains = np.array([_utilities(draw, len(members)) for draw in draws]) - empty
    working, n = _balanced(members), members.shape[1]
    payments, subsidies = np.empty((len(draws), n)), np.empty(len(draws))
    guess = np.zeros(n)
    for d, total in enumerate(totals):
        guess = guess + (total - guess.sum()) / n  # the draw before tells what may be tight
        guess, subsidies[d] = _egalitarian(members, gains[d], total, working, guess)
        payments[d] = guess
    return payments, subsidies


def searched_core(
    utility: Callable[[Members], Floats],
    n: int,
    *,
    start: Members,
    grand: float,
    empty: float = 0.0,
    rng: np.random.Generator,
    drawn: int = 256,
    tolerance: float = 1e-3,
    searches: int = 3,
    limit: int = 300_000,
) -> Core:
    """The egalitarian point of the least core where there are too many coalitions to list.

    Begins with the coalitions of `start`, each owner alone and all but each; searches for others
    that gain more than they are paid, and adds them, until several searches in a row find none.
    That is no proof that there are none: `looked` and `violation` tell how far it went, another
    `rng` how far it may be off. The subsidy is never above that of all coalitions.

    Args:
        utility: callable(coalitions (m, n)) -> utilities (m,); cheap, and always the same.
        n: owners.
        start: coalitions to begin with, (m, n), neither empty nor of all owners; m may be 0.
        grand: utility of all owners together.
        empty: utility of no data.
        rng: draws coalitions.
        drawn: coalitions of all sizes that each search draws at random. From the worst of them
            and some tight ones it climbs, by one owner in, out or swapped at a time.
        tolerance: violations that do not matter, as a part of the largest gain.
        searches: in a row that must find none that matters.
        limit: no further search once this many coalitions were looked at.

    Raises:
        InputError: an argument cannot be used.
    """
    one = np.eye(whole(n, "n, the number of owners,", least=2), dtype=bool)
    drawn = whole(drawn, "drawn", least=1)
    searches = whole(searches, "searches", least=1)
    limit = whole(limit, "limit", least=1)
    if (tolerance := finite(tolerance, "tolerance")) < 0:
        raise InputError(f"tolerance must be at least 0, got {tolerance!r}")
    total, empty = _total(grand, empty)
    if np.ndim(start) != 2 or np.shape(start)[1] != n:
        raise InputError(
            f"start must have one column for each of the {n} owners, got an array of shape "
            f"{np.shape(start)}"
        )
    members = np.concatenate([one, ~one, _proper(start) if len(start) else one[:0]])

    def gain(coalitions: Members) -> Floats:
        return _utilities(utility(coalitions), len(coalitions)) - empty

    gains, working = gain(members), _balanced(members)
    looked, payments = len(members), np.full(n, total / n)
    while True:
        core = _core(members, gains, total, working, payments)
        payments, scale, violation = core.payments, _scale(gains, total), 0.0
        matters = scale * max(tolerance, TOLERANCE)
        for _ in range(searches):
            seen, found = _search(gain, core, drawn, TOLERANCE * scale, rng)
            over = found - _sums(seen, payments) - core.subsidy
            looked, violation = looked + len(seen), max(violation, float(over.max()))
            if violation > matters or looked >= limit:
                break
        if violation <= matters or looked >= limit:
            return replace(core, looked=looked, violation=violation)
        # All of them: with the worst alone a game of 60 owners took ten times the looks.
        violated = over > TOLERANCE * scale
        fresh, first = np.unique(seen[violated], axis=0, return_index=True)
        members = np.concatenate([members, fresh])
        gains = np.concatenate([gains, found[violated][first]])


def _search(
    gain: Callable[[Members], Floats],
    core: Core,
    drawn: int,
    step: float,
    rng: np.random.Generator,
) -> tuple[Members, Floats]:
    """Coalitions looked at, (m, n), and their gains: drawn ones, and the ways up from the worst.

    A step up is one of at least `step`, so that rounding cannot lead in circles.
    """
    n = len(core.payments)
    seen: list[Members] = []
    gains: list[Floats] = []

    def excess(coalitions: Members) -> Floats:
        seen.append(coalitions.reshape(-1, n))
        gains.append(gain(seen[-1]))
        return np.reshape(gains[-1] - _sums(seen[-1], core.payments), coalitions.shape[:-1])

    at = rng.random((drawn, n)).argsort(axis=1) < rng.integers(1, n, size=(drawn, 1))
    worst = at[np.argsort(-excess(at))[:CLIMBS]]
    at = np.concatenate([worst, rng.permutation(core.tight)[:CLIMBS]])
    height = excess(at)
    few = int(np.ceil(np.sqrt(n)))
    while len(at):
        one = _flipped(at, np.broadcast_to(np.arange(n)[:, None], (len(at), n, 1)))
        after_one = excess(one)
        # The best exchange is nearly always among the owners that are best to leave and to enter.
        out = np.argsort(np.where(at, -after_one, np.inf), axis=1)[:, :few]
        into = np.argsort(np.where(at, np.inf, -after_one), axis=1)[:, :few]
        pairs = np.stack([np.repeat(out, few, axis=1), np.tile(into, few)], axis=2)
        two = _flipped(at, pairs)
        ways, heights = np.hstack([one, two]), np.hstack([after_one, excess(two)])
        best = heights.argmax(axis=1)
        rows = np.flatnonzero(heights.max(axis=1) > height + step)
        at, height = ways[rows, best[rows]], heights[rows, best[rows]]
    return np.concatenate(seen), np.concatenate(gains)


def _flipped(at: Members, owners: Ints) -> Members:
    """Each coalition, (b, n), with k choices of j owners, (b, k, j), entered or left, (b, k, n).

    Unchanged where none or all would be left.
    """
    before = np.repeat(at[:, None, :], owners.shape[1], axis=1)
    after = before.copy()
    np.put_along_axis(after, owners, ~np.take_along_axis(before, owners, axis=2), axis=2)
    proper = after.any(axis=2, keepdims=True) & ~after.all(axis=2, keepdims=True)
    return np.asarray(np.where(proper, after, before))


def _core(members: Members, gains: Floats, total: float, working: Ints, guess: Floats) -> Core:
    payments, subsidy = _egalitarian(members, gains, total, working, guess)
    excess = gains - _sums(members, payments) - subsidy
    tight = np.flatnonzero(excess >= -TOLERANCE * _scale(gains, total))
    return Core(payments, subsidy, members[tight], len(members), max(0.0, float(excess.max())))


def _egalitarian(
    members: Members, gains: Floats, total: float, working: Ints, guess: Floats
) -> tuple[Floats, float]:
    """Payments, (n,), and the subsidy; begins with `working` and what is tight at the guess."""
    n, scale = members.shape[1], _scale(gains, total)
    floor = (gains - members.sum(axis=1) * (total / n)) / scale
    slack = _sums(members, (guess - total / n) / scale) - floor
    working = np.union1d(working, np.argsort(slack)[: 4 * n])
    E, f = np.ones((1, n)), np.zeros(1)
    t, _, tight = _widest(members, floor, working, E, f)
    floor += t
    for _ in range(n):
        # A positive multiplier at one optimum means tight at every one (complementary slackness).
        # These are equations, as between inequalities the optima would be a set without an inside.
        E, f = np.vstack([E, members[tight]]), np.append(f, floor[tight])
        centre = np.asarray(lstsq(E, f, cond=TOLERANCE)[0])
        Z = null_space(E, rcond=TOLERANCE)
        y = centre + _nearest(members, floor - _sums(members, centre), Z)
        if (short := float(np.max(floor - _sums(members, y)))) <= TOLERANCE:
            return total / n + scale * y, -scale * t
        # Seldom others are always tight as well, and mislead `_nearest`. They are found by the
        # most slack that all rows not yet fixed can have at once, which is none.
        free = np.flatnonzero(_lengths(members, Z) > TOLERANCE)
        if not len(free):
            break
        Q = orth(E.T, rcond=TOLERANCE).T  # independent, so never at odds by rounding
        rows = members[free]
        wide, _, tight = _widest(rows, floor[free], free[:0], Q, Q @ centre, most=1.0)
        if wide > TOLERANCE:
            break
        tight = free[tight]
    raise DupreError(
        f"the least core was not found to more than {scale * short:g}; look for utilities of very "
        f"different magnitudes, and report this if there are none"
    )


def _widest(
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
        slack = _sums(members, solved.x[:n]) - floor - t
        slack[working] = 0.0  # what the solver left there
        worst = np.argsort(slack)[: 2 * n]
        worst = worst[slack[worst] < -ROUNDING]
        if not len(worst):
            return t, working, working[solved.ineqlin.marginals < -TOLERANCE]
        working = np.concatenate([working, worst])


def _nearest(members: Members, need: Floats, Z: Floats) -> Floats:
    """The shortest v, (n,), in the space of Z, (n, r), with v(S) >= need(S) for every S.

    Least distance programming, Lawson & Hanson 1974, ch. 23, algorithm LDP.
    """
    v, working = np.zeros(len(Z)), np.empty(0, dtype=np.int64)
    unit = np.append(np.zeros(Z.shape[1]), 1.0)
    while Z.shape[1]:
        short = need - _sums(members, v)
        short[working] = 0.0
        worst = np.argsort(-short)[: 2 * len(v)]
        worst = worst[short[worst] > ROUNDING]
        if not len(worst):
            break
        working = np.concatenate([working, worst])
        G, h = members[working] @ Z, need[working]
        try:
            u, _ = nnls(np.vstack([G.T, h]), unit)
        except RuntimeError as error:
            raise DupreError(
                f"the egalitarian point of the least core was not found: {error}; please report it"
            ) from error
        v = Z @ lstsq(G[u > 0], h[u > 0], cond=TOLERANCE)[0]  # more digits than the residual has
    return v


def _balanced(members: Members) -> Ints:
    """Rows that bound the subsidy: some weights of them cover every owner equally.

    Raises:
        InputError: there are none, and payments could be moved to raise those of all coalitions.
    """
    n, sizes = members.shape[1], members.sum(axis=1)
    start = np.flatnonzero((sizes == 1) | (sizes == n - 1))
    floor, E, f = np.zeros(len(members)), np.ones((1, n)), np.zeros(1)
    t, working, _ = _widest(members, floor, start, E, f, most=1.0, box=1.0)
    if t <= TOLERANCE:
        return working
    why = "no weights of them cover every owner equally"
    for owner in np.flatnonzero(~members.any(axis=0))[:1]:
        why = f"owner {owner} is in none of them"
    for owner in np.flatnonzero(members.all(axis=0))[:1]:
        why = f"owner {owner} is in all of them"
    raise InputError(
        f"the {len(members)} listed coalitions do not bound the subsidy: {why}; list every owner "
        f"alone, or some coalitions together with those of all others"
    )


def _proper(members: Members) -> Members:
    rows = np.asarray(members)
    if rows.ndim != 2 or rows.dtype != np.bool_ or not len(rows):
        raise InputError(
            f"coalitions must be an array of booleans with one row each and one column for each "
            f"owner, got {rows.dtype} of shape {rows.shape}"
        )
    if rows.shape[1] < 2:
        raise InputError(
            f"a least core needs at least 2 owners, got {rows.shape[1]}; a single owner is paid "
            f"everything"
        )
    for bad, name, argument in (
        (~rows.any(axis=1), "empty", "empty"),
        (rows.all(axis=1), "that of all owners", "grand"),
    ):
        if bad.any():
            raise InputError(
                f"coalition {int(bad.argmax())} is {name}: leave it out, its utility is {argument}="
            )
    return rows


def _utilities(utilities: Floats, count: int) -> Floats:
    try:
        numbers = np.asarray(utilities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"utilities must be numbers, got {utilities!r}") from error
    if numbers.shape != (count,):
        raise InputError(
            f"expected one utility for each of the {count} coalitions, got an array of shape "
            f"{numbers.shape}"
        )
    if not (known := np.isfinite(numbers)).all():
        first = int(known.argmin())
        raise InputError(
            f"utilities must be finite, got {numbers[first]} for coalition {first}; leave out "
            f"coalitions of unknown utility"
        )
    return numbers


def _total(grand: object, empty: object) -> tuple[float, float]:
    """The gain of all owners, and the utility of no data."""
    nothing = finite(empty, "empty, the utility of no data,")
    return finite(grand, "grand, the utility of all owners,") - nothing, nothing


def _scale(gains: Floats, total: float) -> float:
    return max(float(np.abs(gains).max()), abs(total)) or 1.0


def _sums(members: Members, x: Floats) -> Floats:
    """What each coalition is paid, (m,)."""
    return np.concatenate([rows @ x for rows in _blocks(members)])


def _lengths(members: Members, Z: Floats) -> Floats:
    """Length of each row in the space of Z, (n, r)."""
    return np.concatenate([np.linalg.norm(rows @ Z, axis=1) for rows in _blocks(members)])


def _blocks(members: Members) -> Iterator[Floats]:
    for first in range(0, len(members), BLOCK):
        yield members[first : first + BLOCK].astype(np.float64)
