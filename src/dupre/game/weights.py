"""Values as weighted sums of utilities, and what drawing the coalitions at random adds to them.

    values = W @ u(members) + empty * u(no data)

W is exact, or a Monte Carlo estimate of the exact weights. Then it is a sum of entries, each of one
independent draw (`unit`) and one stratum. The spread between the draws of a stratum gives the error
of the estimate (sigma_MC of DUPRE Remark 1) for any utilities.

Notation: n owners, b coalitions, d draws, t entries, r units.
Column b is the empty coalition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.stats import t as student

from dupre._types import Floats, Ints, Members
from dupre.errors import InputError, Remedy
from dupre.game.blocks import split
from dupre.game.coalitions import pack
from dupre.game.semivalues import Semivalue

CERTAIN = -1
"""Unit of coalitions that were not drawn at random."""

BLOCK = 2_048
"""Coalitions whose memberships are numbers of 64 bits at a time."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Random entries of W, (t,) each. Entries of one unit, owner and stratum count as one term.

    Terms add up to a sum over their units, or are parts of a mean: an owner's entries of a stratum
    have weights that add up to a constant, however many there are.

    Attributes:
        owner: whose value.
        coalition: column of W; b for the empty coalition.
        weight: what it adds to W[owner, coalition].
        unit: the draw it comes from; draws are independent.
        stratum: within which the terms of an owner have the same distribution.
        means: whether they are parts of means.
    """

    owner: Ints
    coalition: Ints
    weight: Floats
    unit: Ints
    stratum: Ints
    means: bool = False

    def __len__(self) -> int:
        return len(self.unit)

    def sums_of_squares(self, amount: Floats, n: int) -> Floats:
        """Sum of weight² * amount over the entries of each owner, (n,); amounts are (b + 1,)."""
        squares = self.weight**2 * amount[self.coalition]
        return np.asarray(np.bincount(self.owner, squares, minlength=n))

    def seen(self, n: int) -> Members:
        """Owners to whom an entry gives a weight other than zero, (n,)."""
        return np.asarray(np.bincount(self.owner, np.abs(self.weight), minlength=n) != 0)


@dataclass(frozen=True, eq=False)
class ColumnEntries:
    """Entries of all owners in d draws; `Entries` of one stratum, whose terms add up to a sum.

    Every draw enters the values of all owners. Of each two weights are kept, that of its members
    and that of the others: a list of the entries would be n times as long, and with a thousand
    owners fill gigabytes. What follows from them is computed for BLOCK coalitions at a time.

    Attributes:
        members: of the columns of W, (b, n).
        column: of W that each draw adds to, (d,).
        inside: what it adds to the weights of its members, (d,).
        outside: what it adds to those of the others, (d,).
        draw: the unit of each, (d,).
    """

    members: Members
    column: Ints
    inside: Floats
    outside: Floats
    draw: Ints

    def __len__(self) -> int:
        return int(self.members.shape[1]) * len(self.draw)

    @property
    def units(self) -> int:
        """How many independent draws, r."""
        return len(np.unique(self.draw))

    def terms(self, u: Floats) -> Floats:
        """Sum of weight * u over the entries of each unit and owner, (r, n)."""
        order = np.argsort(self.draw, kind="stable")
        _, first = np.unique(self.draw[order], return_index=True)
        ends = np.append(first, len(order))
        found = np.empty((len(first), self.members.shape[1]))
        for some in blocks(len(first)):
            these = order[ends[some.start] : ends[some.stop]]
            amount = u[self.column[these]]
            inside, outside = amount * self.inside[these], amount * self.outside[these]
            each = np.where(self.members[self.column[these]], inside[:, None], outside[:, None])
            found[some] = np.add.reduceat(each, first[some] - first[some.start], axis=0)
        return found

    def sums_of_squares(self, amount: Floats, n: int) -> Floats:
        """Sum of weight² * amount over the entries of each owner, (n,); amounts are (b + 1,)."""
        each = amount[self.column]
        inside, outside = (
            np.bincount(self.column, part**2 * each, minlength=len(self.members))
            for part in (self.inside, self.outside)
        )
        found = np.zeros(n)
        for some in blocks(len(self.members)):
            found += inside[some] @ self.members[some] + outside[some] @ ~self.members[some]
        return found

    def seen(self, n: int) -> Members:
        """Owners to whom an entry gives a weight other than zero, (n,)."""
        inside, outside = (self.column[part != 0] for part in (self.inside, self.outside))
        found = np.zeros(n, dtype=bool)
        for column, is_in in ((inside, True), (outside, False)):
            found |= np.any(self.members[np.unique(column)] == is_in, axis=0)
        return found


class Control(Protocol):
    """A linear map, such as a matrix."""

    def __matmul__(self, utilities: Floats, /) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of coalitions in the values of n owners.

    Attributes:
        members: distinct, non-empty coalitions in the order in which they were drawn, (b, n).
        W: weight of each in the value of each owner, (n, b).
        empty: weight of the empty coalition, (n,).
        entries: the random part of W; None if W is exact.
        control: for weights that are exact on additive games and on games of sizes, the map from
            utilities, (b + 1,), to the worths of owners and levels of sizes, (2n + 1,), of the
            game that is valued without an error; None otherwise.
        learned: how many numbers of that game were learned.
        parts: what they are put together of, if each part of the owners has weights of its own;
            the random entries are then in the parts.
    """

    members: Members
    W: Floats
    empty: Floats
    entries: Entries | ColumnEntries | None = None
    control: Control | None = None
    learned: int = 0
    parts: tuple[Cohort, ...] = ()

    @property
    def drawn(self) -> bool:
        """Whether any weight depends on a random draw."""
        if self.parts:
            return any(part.weights.drawn for part in self.parts)
        return self.entries is not None and len(self.entries) > 0

    def sampling_covariance(
        self, utilities: Floats, empty: float, rough: Floats | None = None
    ) -> Floats:
        """Covariance of the values, (n, n), because other draws would have given other weights.

        Args:
            utilities: of the members, (b,), evaluated or expected.
            empty: utility of no data.
            rough: variance, (b,), of each around its expectation, independent of the others:
                expected utilities are smoother than real ones, and their error would look small.
        """
        n, entries = len(self.W), self.entries
        u = np.append(utilities, empty)
        if self.parts:
            return self._covariance_of_parts(u, rough)
        if entries is None or not self.drawn:
            return np.zeros((n, n))
        if self.control is not None:
            u = u - additive_utilities(self.members, self.control @ u)
        covariance = _covariance_of_sum(entries, u, n, self.learned)
        if rough is not None:
            covariance[np.diag_indices(n)] += entries.sums_of_squares(np.append(rough, 0.0), n)
        return covariance

    def _covariance_of_parts(self, u: Floats, rough: Floats | None) -> Floats:
        """The same from those of the parts, whose draws are independent of each other."""
        found = np.zeros((len(self.W), len(self.W)))
        for part in self.parts:
            *at, empty = part.columns
            own = part.weights.sampling_covariance(
                u[at], float(u[empty]), None if rough is None else rough[at]
            )
            found[np.ix_(part.owners, part.owners)] = own
        return found


@dataclass(frozen=True, eq=False)
class Cohort:
    """Weights of m of the owners among themselves, in the presence of others.

    Attributes:
        owners: which, (m,).
        columns: of the whole that its coalitions are, and last the one that is its empty
            coalition, (b + 1,); the number of columns for no data.
        weights: of its b coalitions in the values of its owners.
    """

    owners: Ints
    columns: Ints
    weights: Weights


def _covariance_of_sum(entries: Entries | ColumnEntries, u: Floats, n: int, learned: int) -> Floats:
    """Covariance of the sums over terms, each the sum of its entries' weight * u.

    Within a cell (owner, stratum) of m terms the variance of their sum is m times the variance
    of a term. Enlarged as Student's t is wider than the normal, with the degrees of freedom of
    Satterthwaite (1946), less those that were used to learn an additive game.
    """
    if isinstance(entries, ColumnEntries):
        influence, count = entries.terms(u), np.full((n, 1), entries.units)
        freedom = np.maximum(count - 1 - learned, 1)
        influence -= influence.mean(axis=0)
        influence *= np.sqrt(count / freedom)[:, 0]
        variance = np.einsum("rn,rn->n", influence, influence)[:, None]
    else:
        influence, variance, count = _deviations(entries, u, n, learned)
        freedom = np.maximum(count - 1 - learned, 1)
    covariance: Floats = np.asarray(influence.T @ influence, dtype=np.float64)
    covariance[np.diag_indices(n)] += _hidden_variance(variance, count)
    square_over_freedom = (variance**2 / freedom).sum(axis=1)
    degrees = variance.sum(axis=1) ** 2 / np.where(square_over_freedom > 0, square_over_freedom, 1)
    wider = student_factor(np.maximum(degrees, 1.0))  # below 1 it would be infinite
    covariance *= np.outer(wider, wider)
    # An owner to whom no draw gave a weight is as uncertain as the most uncertain other.
    unseen = ~entries.seen(n)
    covariance[unseen, unseen] = np.diag(covariance).max()
    return np.asarray(covariance)


def _deviations(entries: Entries, u: Floats, n: int, learned: int) -> tuple[Floats, Floats, Ints]:
    """Deviations of terms from the means of their cells, summed over strata, (r, n).

    And the variance of the sum of each cell, and how many terms it has, (n, strata) each.
    """
    strata = int(entries.stratum.max()) + 1
    cells = n * strata
    units, unit = np.unique(entries.unit, return_inverse=True)
    cell = entries.owner * strata + entries.stratum
    amount = entries.weight * u[entries.coalition]
    if entries.means:
        weight = np.bincount(cell, entries.weight, minlength=cells)
        mean = np.bincount(cell, amount, minlength=cells) / np.where(weight, weight, 1.0)
        amount = amount - entries.weight * mean[cell]
    found, where = np.unique(unit * cells + cell, return_inverse=True)
    term = np.bincount(where, amount)
    unit, cell = np.divmod(found, cells)
    count = np.bincount(cell, minlength=cells)
    mean = np.bincount(cell, term, minlength=cells) / np.maximum(count, 1)
    freedom = np.maximum(count - 1 - learned, 1)
    deviation = (term - mean[cell]) * np.sqrt(count / freedom)[cell]
    variance = np.bincount(cell, deviation**2, minlength=cells).astype(np.float64)
    influence = np.bincount(unit * n + cell // strata, deviation, minlength=len(units) * n)
    summed = influence.astype(np.float64, copy=False).reshape(len(units), n)
    return summed, variance.reshape(n, strata), count.astype(np.int64).reshape(n, strata)


def student_factor(freedom: Floats | float) -> Floats:
    """How much wider a 95 % interval of Student's t is than that of the normal distribution."""
    return np.asarray(student.ppf(0.975, freedom) / student.ppf(0.975, np.inf))


def _hidden_variance(variance: Floats, count: Ints) -> Floats:
    """Variance of each owner, (n,), that cells, (n, strata), do not show.

    A cell of one term, or of a few equal ones, shows no variance although there may be some. The
    mean variance of the stratum then counts as if the next term had shown it.
    """
    several = count > 1
    usual = np.sum(variance * several, axis=0) / np.maximum(several.sum(axis=0), 1)
    usual = np.where(several.any(axis=0), usual, usual.max())
    silent = (count > 0) & (variance <= 1e-12 * usual)  # equal but for rounding
    return np.asarray(np.sum(np.where(silent, usual, 0.0) / np.maximum(count, 1), axis=1))


def collect_weights(
    drawn: Members,
    weight: Floats,
    unit: Ints,
    stratum: Ints,
    *,
    counts: Members | None = None,
    means: bool = False,
) -> Weights:
    """Weights from coalitions as they were drawn, including duplicates and empty ones.

    Args:
        drawn: the coalitions, (d, n).
        weight: of each in the value of each owner, (n, d).
        unit: which independent draw each belongs to, (d,); CERTAIN where nothing is random.
        stratum: of each, (d,).
        counts: which weights are entries of W, (n, d); by default those that are not zero.
        means: whether the entries of a stratum are parts of means.
    """
    owner, row = np.nonzero(weight if counts is None else counts)
    return collect_entries(drawn, (owner, row, weight[owner, row]), unit, stratum, means=means)


def collect_entries(
    drawn: Members,
    found: tuple[Ints, Ints, Floats],
    unit: Ints,
    stratum: Ints,
    *,
    means: bool = False,
) -> Weights:
    """Weights from the entries alone of what `collect_weights` takes: most weights may be zero.

    Args:
        drawn: the coalitions, (d, n).
        found: owner, row among those drawn, and weight of each entry, (t,) each.
        unit: of each coalition drawn, (d,).
        stratum: of each, (d,).
        means: whether the entries of a stratum are parts of means.
    """
    members, column = distinct_coalitions(drawn)
    n, b = drawn.shape[1], len(members)
    owner, row, weight = found
    coalition, size = column[row], n * (b + 1)
    W: Floats = np.asarray(np.bincount(owner * (b + 1) + coalition, weight, size), np.float64)
    W = W.reshape(n, b + 1)
    chosen = unit[row] != CERTAIN
    row = row[chosen]
    parts = owner[chosen], coalition[chosen], weight[chosen], unit[row], stratum[row]
    return Weights(members, W[:, :b], W[:, b], Entries(*parts, means))


def collect_columns(
    drawn: Members, weights: tuple[Floats, Floats], unit: Ints
) -> tuple[Weights, Ints]:
    """Weights from coalitions that enter the values of all owners, and which each drawn one is.

    Args:
        drawn: the coalitions, (d, n), including duplicates and empty ones.
        weights: of each in the values of its members, and in those of the others, (d,) each.
        unit: which independent draw each belongs to, (d,); CERTAIN where nothing is random.
    """
    members, column = distinct_coalitions(drawn)
    b = len(members)
    inside, outside = (np.bincount(column, part, minlength=b + 1) for part in weights)
    W = np.empty((drawn.shape[1], b + 1))
    for some in blocks(b):
        W[:, some] = np.where(members[some].T, inside[some], outside[some])
    W[:, b] = outside[b]
    chosen = unit != CERTAIN
    parts = column[chosen], *(part[chosen] for part in weights), unit[chosen]
    return Weights(members, W[:, :b], W[:, b], ColumnEntries(members, *parts)), column


def distinct_coalitions(drawn: Members) -> tuple[Members, Ints]:
    """Distinct non-empty coalitions in order of appearance, (b, n), and which each drawn one is.

    Empty ones are number b.
    """
    _, first, inverse = np.unique(pack(drawn), return_index=True, return_inverse=True)
    empty = ~drawn[first].any(axis=1)
    order = np.lexsort((first, empty))  # as they appeared, the empty one last
    position = np.empty(len(first), dtype=np.int64)
    position[order] = np.arange(len(first))
    b = len(first) - int(empty.sum())
    return drawn[first[order[:b]]], position[inverse.reshape(-1)]


def coalition_weights(semivalue: Semivalue, members: Members) -> Floats:
    """W, (n, b): omega_(|C| - 1) where i is in C, -omega_|C| where it is not."""
    n = members.shape[1]
    omega = np.exp(semivalue.log_weights(n))
    size = members.sum(axis=1)
    joining = omega[size - 1]
    staying_out = np.append(omega, 0.0)[size]  # nobody is outside the grand coalition
    return np.asarray(np.where(members.T, joining, -staying_out))


def column_norms(W: Floats) -> Floats:
    """How much each of b coalitions weighs in all values, (b,): norms of the columns of W."""
    norms = [np.linalg.norm(W[:, some], axis=0) for some in blocks(W.shape[1])]
    return np.concatenate([np.empty(0), *norms])


def check_samples(name: str, samples: int, least: int, n: int) -> int:
    """The number of samples, if they are enough for a value and its error."""
    if samples < least:
        other = [] if name == "regression" else [", or take regression, which needs fewer"]
        raise InputError(
            f"the estimator {name} needs at least {least:,} samples for {n} owners, got "
            f"{samples:,}; raise ",
            Remedy.SAMPLES,
            *other,
        )
    return samples


def check_weights(weights: object, n: int) -> Weights:
    """The weights that an estimator returned, if they can be used."""
    if not isinstance(weights, Weights) or weights.entries is None:
        raise InputError(
            "an estimator must return dupre.estimators.Weights with their random entries, as "
            f"dupre.estimators.collect_weights makes them, got {type(weights).__name__}"
        )
    members, b = weights.members, len(weights.members)
    shapes = members.shape, weights.W.shape, np.shape(weights.empty)
    if shapes != ((b, n), (n, b), (n,)) or members.dtype != np.bool_:
        raise InputError(
            f"an estimator must return boolean members (b, {n}), W ({n}, b) and empty ({n},), got "
            f"{members.dtype} {shapes[0]}, {shapes[1]} and {shapes[2]}"
        )
    if len(distinct_coalitions(members)[0]) < b or not np.isfinite(weights.W).all():
        raise InputError("an estimator must return distinct, non-empty members and finite weights")
    return weights


def blocks(count: int) -> list[slice]:
    """Slices of up to BLOCK that cover so many."""
    return split(count, BLOCK)


def additive_utilities(members: Members, game: Floats) -> Floats:
    """Utilities of coalitions, (b, n), and of the empty one in a simple game, (b + 1,).

    The game is a sum of worths of owners, its first n numbers, and of levels of sizes, the next
    n + 1.
    """
    n = members.shape[1]
    found = np.append(game[n:][members.sum(axis=1)], game[n])
    for some in blocks(len(members)):
        found[some] += members[some] @ game[:n]
    return found
