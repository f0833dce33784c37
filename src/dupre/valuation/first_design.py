"""What is evaluated first, before anything is predicted: all owners, each alone, the heaviest.

Under Shapley every coalition size carries the same total weight, so the n single owners together
weigh as much as all C(n, n/2) middle coalitions. Coalitions drawn uniformly almost never are the
heavy ones; taking the heaviest first changes the result more than any kernel does.

The utilities of single owners lie farthest from all others: a predictor that has seen none of them
is overconfident about them. They are evaluated before anything is predicted under every semivalue
in which they count.
"""

from __future__ import annotations

from math import comb

import numpy as np
from scipy.special import gammaln, logsumexp

from dupre._types import Floats, Ints, Members
from dupre.game.coalitions import keys, sample_of_size
from dupre.game.semivalues import Semivalue
from dupre.game.ties import descending_order
from dupre.game.weights import column_norms
from dupre.valuation.sameness import Merged

SINGLES_COUNT = 0.008
"""Share of the weight of all coalitions from which on single owners are evaluated first."""

FEW_OWNERS = 12
"""Owners up to which single owners and all but one are enough for a first design."""

# With one of each, squared errors of 16 owners are as large as the variance that is stated.
SMALL_GROUPS = 3
"""Coalitions of each smaller size between: their utilities differ most from what is predicted."""


def first_design(semivalue: Semivalue, rows: Ints, count: int, rng: np.random.Generator) -> Members:
    """Up to `count` coalitions, (., n): all owners, every single owner, then the heaviest.

    Single owners come first as long as they carry SINGLES_COUNT of the weight of all coalitions
    (under Banzhaf up to 10 owners); the largest owners first. Then sizes are taken by the weight
    of one coalition in the values of all owners: under Shapley n - 1, first without the largest
    owners (so under leave-one-out, where nothing else counts), then 2 and n - 2. Among sizes of
    equal weight (under Banzhaf all of them) coalitions are drawn uniformly, each followed by its
    complement if that weighs the same. Coalitions without weight are never taken.

    Args:
        semivalue: whose weights.
        rows: of each owner, (n,).
        count: how many coalitions.
        rng: of the draws.
    """
    n, weight = len(rows), _weight_of_size(semivalue, len(rows))
    alone = np.eye(n, dtype=bool)[descending_order(rows.astype(np.float64))]
    first = np.ones((1, n), dtype=bool)
    if _singles_count(weight):
        first = np.append(first, alone, axis=0)
    # Only where they weigh most, as under Shapley: elsewhere all but one are like others.
    if weight[-2] >= weight[1] * (1 - 1e-9) and weight[-2] > weight[2:-2].max(initial=0):
        first = np.append(first, ~alone, axis=0)
    design = dict(zip(keys(first), first, strict=True))
    for sizes in _equal_sizes(weight):
        needed = count - len(design)
        if needed <= 0 or weight[sizes[0]] == 0:
            break
        totals = [comb(n, int(size)) for size in sizes]
        shares = np.array([float(total) for total in totals])
        if sum(totals) > needed:  # draw sizes as a uniform draw of coalitions would
            drawn = rng.choice(len(sizes), size=needed, p=shares / shares.sum())
            taken = [min(int(np.sum(drawn == i)), total) for i, total in enumerate(totals)]
        else:
            taken = totals
        some = [sample_of_size(n, int(s), t, rng) for s, t in zip(sizes, taken, strict=True)]
        for row in rng.permutation(np.concatenate(some)):
            pair = np.stack([row, ~row]) if n - row.sum() in sizes else row[None]
            design.update(zip(keys(pair), pair, strict=True))
    return np.array(list(design.values()))[:count]


def add_heaviest(design: list[int], merged: Merged, count: int, rng: np.random.Generator) -> Ints:
    """Up to `count` columns of W: a first design and sizes between, then the heaviest others.

    Args:
        design: columns of a first design, as far as it counts.
        merged: the weights.
        count: how many.
        rng: of the sizes between.
    """
    weight = _weight_of_columns(merged)
    chosen = list(dict.fromkeys(design))
    chosen = add_sizes_between(chosen, merged.weights.members, weight, rng)
    return _fill(chosen, weight, merged, count)


def design_in_turn(
    semivalue: Semivalue,
    merged: Merged,
    rows: Ints,
    count: int,
    rng: tuple[np.random.Generator, np.random.Generator],
) -> Ints:
    """Up to `count` columns of W, if owners joined in cohorts, the weights put together of theirs.

    The coalitions of the first cohorts, up to all owners: between these the values of cohorts are
    shared out. Then what each cohort has in a first design of its own, the heaviest first.

    Args:
        semivalue: among the owners of a cohort.
        merged: the weights.
        rows: of each owner, (n,).
        count: how many columns.
        rng: of the draws of a first design, and of the sizes between.
    """
    weight, up_to, own = _weight_of_columns(merged), [], []
    for part in merged.by_name.parts:
        among, m = part.weights, len(part.owners)
        at = dict(zip(keys(among.members), range(len(among.members)), strict=True))
        # Of one owner there is one coalition, and no design to choose.
        found = first_design(semivalue, rows[part.owners], min(2 * m + 1, 2**m - 1), rng[0])
        design = [at[key] for key in keys(found) if key in at]
        design = add_sizes_between(design, among.members, column_norms(among.W), rng[1])
        columns = merged.column[part.columns[design[: 2 * m + 1]]].tolist()
        up_to += columns[:1]
        own += columns[1:]
    own = [own[i] for i in descending_order(weight[own])]
    return _fill(list(dict.fromkeys([*up_to[::-1], *own])), weight, merged, count)


def _weight_of_columns(merged: Merged) -> Floats:
    """How much each column weighs in all values, 0 if it does not count, (b,)."""
    return np.where(merged.counts, column_norms(merged.weights.W), 0.0)


def _fill(chosen: list[int], weight: Floats, merged: Merged, count: int) -> Ints:
    """Up to `count` columns: those chosen, then the heaviest others."""
    heavy = descending_order(weight)
    others = heavy[~np.isin(heavy, chosen) & merged.counts[heavy]]
    return np.append(np.array(chosen, dtype=np.int64), others)[:count]


def add_sizes_between(
    design: list[int], members: Members, weight: Floats, rng: np.random.Generator
) -> list[int]:
    """A first design with coalitions of further sizes after the single owners.

    With more than FEW_OWNERS, all owners, single ones and all but one do not show how utilities
    grow in between, and a predictor that has seen nothing else is overconfident there. So
    SMALL_GROUPS coalitions are drawn of each size 2, 4, 8, ..., n / 2, and one of each of the same
    sizes counted from n: large groups are more like each other than small ones.

    A design of large coalitions alone, as under Beta(1, 4), shows nothing of smaller ones, which
    have a part of the weight. So two are drawn of each of up to four sizes below them, at equal
    steps from the first size with which coalitions up to it carry SINGLES_COUNT of the weight. Any
    other design without single owners has coalitions of all sizes.

    Args:
        design: indices of coalitions: all owners, single owners, others.
        members: the coalitions, (b, n).
        weight: of each in the values, (b,); 0 for those that must not be taken.
        rng: of the draws.
    """
    n = members.shape[1]
    sizes = np.where(weight > 0, members.sum(axis=1), 0)
    ends, smallest = np.isin(sizes[design], [1, n]), int(sizes[design].min(initial=n))
    further: dict[int, int] = {}
    if n > FEW_OWNERS and smallest == 1:
        small = [2**k for k in range(1, n.bit_length()) if 2 ** (k + 1) < n] + [n // 2]
        for size in small:
            further[size] = SMALL_GROUPS
            further.setdefault(n - size, 1)  # n / 2 is both
    elif smallest > n / 2:
        share = np.cumsum(np.bincount(sizes, weight)) / weight.sum()
        lowest = int(np.argmax(share >= SINGLES_COUNT))
        steps = np.linspace(lowest, smallest, 5)[:-1].astype(np.int64)
        further = dict.fromkeys(steps.tolist(), 2)
    drawn = []
    for size, count in further.items():
        found = np.flatnonzero(sizes == size)
        drawn.append(rng.choice(found, min(count, len(found)), replace=False).tolist())
    # One of each size first: a budget may end before all of them.
    turns = range(max(further.values(), default=0))
    between = [own[turn] for turn in turns for own in drawn if turn < len(own)]
    return list(dict.fromkeys([*design[: int(ends.sum())], *between, *design]))


def _singles_count(weight: Floats) -> bool:
    """Whether single owners carry enough of the weight of all coalitions."""
    n = len(weight) - 1
    log_count = gammaln(n + 1) - gammaln(np.arange(n + 1) + 1) - gammaln(n - np.arange(n + 1) + 1)
    with np.errstate(divide="ignore"):
        log_mass = log_count[1:] + np.log(weight[1:])
    return bool(log_mass[0] - logsumexp(log_mass) >= np.log(SINGLES_COUNT) - 1e-9)


def _equal_sizes(weight: Floats) -> list[Ints]:
    """Coalition sizes 1 .. n - 1 in groups of equal weight, heaviest first."""
    order = np.argsort(-weight[1:-1], kind="stable") + 1
    steps = ~np.isclose(weight[order[1:]], weight[order[:-1]], rtol=1e-9, atol=0.0)
    return np.split(order, np.flatnonzero(steps) + 1)


def _weight_of_size(semivalue: Semivalue, n: int) -> Floats:
    """Norm over owners of the weights of one coalition of size s = 0 .. n, (n + 1,)."""
    omega = np.exp(semivalue.log_weights(n))
    s = np.arange(n + 1)
    inside, outside = np.insert(omega, 0, 0.0), np.append(omega, 0.0)
    return np.asarray(np.sqrt(s * inside**2 + (n - s) * outside**2))
