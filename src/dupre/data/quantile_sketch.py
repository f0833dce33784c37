"""One vector per coalition, whose distances are sliced Wasserstein distances between data sets.

Why: the kernel compares coalitions by their pooled rows, and there are too many coalitions to read
the rows of each. Rows are sorted once along every direction. For each owner only the number of rows
below T thresholds is kept. The distribution function of a coalition is the sum of its owners'
counts, inverted at K levels. A coalition then costs O(L (n T + K)), whatever N is.

Notation: N rows, n owners, L directions, T thresholds, K quantile levels, m coalitions.

    q_C[l, k] = F^-1 of coalition C along direction l at level (k + 1/2) / K
    SW_2^2(A, B) = mean over l, k of (q_A - q_B)^2,  SW_1(A, B) = mean of |q_A - q_B|

DUPRE Alg. 1 as printed averages p-th roots over directions; Prop. 1 (a valid kernel) holds for the
average of p-th powers, which is used here. It is a Euclidean (L1) distance between vectors, so
Prop. 1 holds exactly for finite L, K and T. The outermost levels lie 1 / (2 K) from the ends:
thinner tails are not seen, and very long tails count for less than in the exact SW.

The supervised rows are [eta X / s_X, (1 - eta) e(y) / s_y], where columns of X are standardised and
s² is the total variance of a block. DUPRE Sec. 2.2 has rows as they were given and no s: a label
then has one part in d + 1 of the weight, so that the meaning of eta depends on the number of
columns. `raw` asks for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dupre._types import Floats, Ints, Members
from dupre.data.level_search import pass_levels, type_up_to
from dupre.data.owners import Owners
from dupre.data.projections import Projections, classical_scaling, spectrum, unit_directions
from dupre.data.vector_cache import VectorCache
from dupre.game.blocks import fill_blocks, split
from dupre.game.coalitions import all_coalitions, keys

BLOCK = 256
"""Coalitions sketched at a time: the counts of many owners are read once for all of them."""

TILE = 1_024
"""Coalitions times directions sketched at a time: (TILE, T) counts stay in the cache."""

PROJECTED = 64
"""Sketch vectors projected on principal axes at a time."""

SINGLE = 4_000_000
"""Rows times levels up to which 32-bit numbers give the same quantiles as 64-bit ones: counts are
exact, and a quotient of them is a whole number or farther from it than its rounding."""

MAX_AXES = 256
"""Coordinates of a coalition's vector after projection on principal axes."""


@dataclass(frozen=True)
class Resolution:
    """How exactly data sets are compared: L directions, K levels, T thresholds."""

    directions: int = 50
    levels: int = 50
    thresholds: int = 512


@dataclass(frozen=True, eq=False)
class Sketch:
    """Counts of every owner's projected rows; those of a coalition are their sum.

    Attributes:
        counts: 2 K times the rows of owner i at or below threshold t of direction l, plus all rows
            of the owner, (n, L, T), in 32 or 64 bits.
        rows: of each owner, (n,), in as many bits.
        values: the value a quantile takes in the bin below each threshold, (L, T).
        levels: K.
    """

    counts: NDArray[np.floating]
    rows: NDArray[np.floating]
    values: Floats
    levels: int

    def __call__(self, members: Members) -> NDArray[np.float32]:
        """Vectors of m non-empty coalitions, (m, L K), scaled so that SW_2 is their distance."""
        if not members.any(axis=1).all():
            raise AssertionError("the empty coalition has no data to sketch")
        vectors = np.empty((len(members), self.width), dtype=np.float32)
        blocks = split(len(members), BLOCK)
        fill_blocks(vectors, lambda block: self._sketch(members[block]), blocks)
        return vectors

    def _sketch(self, members: Members) -> NDArray[np.float32]:
        """Vectors of one block of coalitions, (m, L K)."""
        scaled = self.values.astype(np.float32) / np.float32(np.sqrt(self.width))
        vectors = np.empty((len(members), len(scaled), self.levels), dtype=np.float32)
        second = _follow_complements(members)
        for some in split(len(scaled), max(1, TILE // len(members))):
            vectors[:, some] = scaled[some].ravel().take(self._bins(members, second, some))
        return vectors.reshape(len(members), self.width)

    @property
    def width(self) -> int:
        """Numbers per vector, L K."""
        return int(self.values.shape[0]) * self.levels

    def _bins(self, members: Members, second: Ints, some: slice) -> Ints:
        """The bin of each quantile of m coalitions along some l directions, (m, l, K).

        It is the number of thresholds below its level, plus T for each direction before its own.
        Those in `second` follow their complement. Counts are whole numbers and exact: theirs are
        those of all owners minus those of the complement.
        """
        counts = self.counts[:, some]
        n, directions, T = counts.shape
        counts = counts.reshape(n, -1)
        own = np.delete(np.arange(len(members)), second)
        # BLAS can say "invalid" of finite numbers (numpy issue 24067).
        with np.errstate(invalid="ignore"):
            share, rows = members[own].astype(counts.dtype) @ counts, members @ self.rows
        if second.size:
            share, summed = np.empty((len(members), counts.shape[1]), counts.dtype), share
            share[own] = summed
            share[second] = counts.sum(axis=0) - share[second - 1]
        # With c of R rows at or below a threshold, (2 K c + R) // 2 R levels (k + 1/2) / K are
        # reached there. One correctly rounded division: equal fractions give equal numbers, so data
        # sets of the same distribution have the same vector to the last bit.
        share /= 2 * rows[:, None]
        reached = share.astype(type_up_to(self.levels)).reshape(-1, T)
        bins = pass_levels(reached, self.levels).reshape(-1, directions, self.levels)
        bins += np.arange(0, directions * T, T)[:, None]
        return bins


def _follow_complements(members: Members) -> Ints:
    """Which of m coalitions, (m, n), follow their complement, and are not followed by theirs."""
    found = np.flatnonzero(np.all(members[1:] != members[:-1], axis=1)) + 1
    return np.asarray(found[np.diff(found, prepend=-1) > 1])


class SketchCache:
    """Vectors of coalitions of these owners whose distances are SW_p, each computed once.

    Args:
        owners: whose rows.
        seed: of the directions, one fixed set for all coalitions and every eta.
        resolution: how exactly they are compared.
    """

    def __init__(self, owners: Owners, *, seed: int, resolution: Resolution | None = None):
        self.resolution = resolution or Resolution()
        self._owners, self._seed = owners, seed
        self._projected: dict[bool, Projections] = {}
        self._sketches: dict[tuple[float, bool], Sketch] = {}
        self._known: dict[tuple[float, int, bool], VectorCache] = {}

    def __call__(self, eta: float, p: int, members: Members, *, raw: bool = False) -> Floats:
        """Vectors of m coalitions, (m, r), whose distance in the p-norm is SW_p, p in {1, 2}.

        Args:
            eta: weight of features against labels in (0, 1]; 1 ignores the labels.
            p: order of the distance.
            members: the coalitions, (m, n).
            raw: whether rows are taken as they were given.
        """
        return self._cache(eta, p, raw)(members)

    def compute(self, eta: float, p: int, members: Members, *, raw: bool = False) -> Floats:
        """The same for coalitions that are needed only once: nothing is kept."""
        return self._cache(eta, p, raw).compute(members)

    def _cache(self, eta: float, p: int, raw: bool) -> VectorCache:
        if (eta, p, raw) not in self._known:
            self._known[eta, p, raw] = self._make_cache(eta, p, raw)
        return self._known[eta, p, raw]

    def _make_cache(self, eta: float, p: int, raw: bool) -> VectorCache:
        owners, resolution = self._owners, self.resolution
        if raw not in self._projected:
            self._projected[raw] = project(owners, seed=self._seed, resolution=resolution, raw=raw)
        if (eta, raw) not in self._sketches:
            projected = self._projected[raw].along(eta)
            self._sketches[eta, raw] = count(projected, owners.owner, resolution=resolution)
        sketch = self._sketches[eta, raw]
        if p == 1:
            return VectorCache(partial(_quantiles, sketch))
        sample = _choose_sample(owners.n, np.random.default_rng([self._seed, 4]))
        sketched = sketch(sample)
        axes = principal_axes(sketch, sketched)
        cache = VectorCache(axes)
        cache.add(keys(sample), axes.project(sketched))
        return cache


def _quantiles(sketch: Sketch, members: Members) -> Floats:
    """Sketch vectors rescaled so that SW_1 is their distance in the 1-norm."""
    return np.asarray(sketch(members) / np.sqrt(sketch.width), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """Sketch vectors in coordinates along a few axes: centre (L K,), basis (L K, r).

    Zeros are added to the basis until r is a multiple of 32.
    """

    sketch: Sketch
    centre: Floats
    basis: Floats

    def __call__(self, members: Members) -> Floats:
        """Coordinates of m coalitions, (m, r)."""
        vectors = np.empty((len(members), self.basis.shape[1]))
        blocks = split(len(members), BLOCK)
        fill_blocks(vectors, lambda block: self.project(self.sketch(members[block])), blocks)
        return vectors

    def project(self, sketched: NDArray[np.float32]) -> Floats:
        """Coordinates of sketch vectors, (m, L K), in one block, (m, r)."""
        vectors = np.empty((len(sketched), self.basis.shape[1]))
        # Products of one shape, whose sides are multiples of what any CPU takes at a time: the
        # vector of a coalition is the same to the last bit, whatever other ones are in its block.
        centred = np.zeros((PROJECTED, len(self.centre)))
        for some in split(len(sketched), PROJECTED):
            block = np.subtract(sketched[some], self.centre, out=centred[: some.stop - some.start])
            vectors[some] = (centred @ self.basis)[: len(block)]
        return vectors


def principal_axes(sketch: Sketch, sketched: NDArray[np.float32]) -> PrincipalAxes:
    """Principal axes of the sketch vectors of a sample of coalitions, (m, L K).

    Vectors of coalitions vary in few of their L K dimensions. A few axes keep distances well enough
    (the median to a percent or two, those between nearly equal coalitions less well) and a kernel
    entry costs a tenth. Another set of directions would change distances more. A projection of
    Euclidean vectors is Euclidean: the kernel stays valid.
    """
    vectors = sketched.astype(np.float64)
    centre = vectors.mean(axis=0)
    scale, axes = spectrum(vectors - centre, least=1e-6)
    longest = np.arange(len(scale))[::-1][:MAX_AXES]
    basis = (vectors - centre).T @ (axes[:, longest] / np.sqrt(scale[longest]))
    return PrincipalAxes(sketch, centre, np.pad(basis, ((0, 0), (0, -len(longest) % 32))))


def _choose_sample(n: int, rng: np.random.Generator) -> Members:
    """Up to 8 owners all coalitions; else single owners, all owners and 400 others, (., n)."""
    if n <= 8:
        return all_coalitions(n)
    drawn = rng.random((400, n)) < rng.random((400, 1))
    everyone = np.ones((1, n), dtype=bool)
    return np.concatenate([np.eye(n, dtype=bool), everyone, drawn[drawn.any(axis=1)]])


def project(owners: Owners, *, seed: int, resolution: Resolution, raw: bool = False) -> Projections:
    """Projections of the rows of all owners.

    Both blocks are divided by the square root of their total variance, unless they are raw.
    """
    labels, label = label_coordinates(owners, seed=seed, resolution=resolution, raw=raw)
    points, d = owners.points, len(owners.points.units)
    theta = unit_directions(d + labels.shape[1], resolution.directions, seed)
    variance = 1.0 if raw else float(np.sum(np.var(labels[label], axis=0)))
    labels = labels @ theta[d:] / np.sqrt(variance or 1.0)
    return Projections(points, theta[:d], labels, label, raw)


def count(projected: Iterable[Floats], owner: Ints, *, resolution: Resolution) -> Sketch:
    """The sketch of rows projected on each direction, (N,), under thresholds of all owners.

    One direction is needed at a time: all of them together may not fit into memory.
    """
    n, T, K = int(owner.max()) + 1, min(resolution.thresholds, len(owner)), resolution.levels
    bits = np.float32 if len(owner) * K <= SINGLE else np.float64
    rows: NDArray[np.floating] = np.bincount(owner, minlength=n).astype(bits)
    counts, values = [], []
    for row in projected:
        order = np.argsort(row)
        if np.any(row[order[1:]] == row[order[:-1]]):
            # Ties are ordered by owner, so the order in which rows were given does not matter.
            order = np.lexsort((owner, row))
        x, holder = row[order], owner[order]
        edges = _thresholds(x, holder, T)
        bins = np.searchsorted(edges, x, side="left")
        held = np.bincount(holder * T + bins, minlength=n * T).reshape(n, T)
        counts.append(2 * K * held.cumsum(axis=1, dtype=bits) + rows[:, None])
        # The mean of the rows of a bin: exact if it holds one distinct value.
        above = np.bincount(bins, weights=x - edges[bins], minlength=T)
        values.append(edges + above / np.maximum(held.sum(axis=0), 1))
    return Sketch(np.stack(counts, axis=1), rows, np.stack(values), K)


def _thresholds(x: Floats, holder: Ints, T: int) -> Floats:
    """T of the sorted values x, (N,), at equal steps of a distribution of equal owners.

    Owners have equal weights, not rows, so that the grid is as fine for a small owner as for a
    large one.
    """
    if len(x) <= T:
        return x
    mass = np.cumsum(1.0 / np.bincount(holder)[holder])
    steps = np.arange(1, T + 1) / T * mass[-1]
    at = np.searchsorted(mass, steps * (1 - 1e-12))
    at[-1] = len(x) - 1
    return np.asarray(x[at])


def label_coordinates(
    owners: Owners, *, seed: int, resolution: Resolution, raw: bool = False
) -> tuple[Floats, Ints]:
    """e(y) of every distinct label, (c, k), and which of them each row has, (N,).

    For regression e(y) is y itself. For classification it is a point for each class. The distance
    of two classes is SW_2 between all rows with these labels (DUPRE Sec. 2.2). Sketch vectors make
    it Euclidean, so multi-dimensional scaling keeps it exactly.
    """
    classes, code = np.unique(owners.y, return_inverse=True)
    code = code.reshape(-1)
    if owners.task == "regression":
        return np.asarray(classes, dtype=np.float64)[:, None] - float(np.median(owners.y)), code
    points = owners.points
    theta = unit_directions(len(points.units), resolution.directions, seed)
    features = Projections(points, theta, np.zeros((1, theta.shape[1])), np.zeros_like(code), raw)
    sketch = count(features.along(1.0), code, resolution=resolution)
    return classical_scaling(sketch(np.eye(len(classes), dtype=bool))), code
