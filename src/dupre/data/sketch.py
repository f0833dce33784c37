"""One vector per coalition, whose distances are sliced Wasserstein distances between data sets.

Why: the kernel compares coalitions by their pooled rows, and there are too many coalitions to read
the rows of each. Rows are sorted once along every direction. For each owner only the number of rows
below T thresholds is kept. The distribution function of a coalition is the sum of its owners'
counts, inverted at K levels. A coalition then costs O(L (n T + K)), whatever N is.

Notation: N rows of d columns, n owners, L directions, T thresholds, K quantile levels, m
coalitions, c distinct labels.

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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dupre._types import Floats, Ints, Members, View
from dupre.data.encoding import Points
from dupre.data.owners import Owners
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

AT_ONCE = 8
"""Directions that all rows are projected on at a time, or half as many as there are columns if that
is more: all of them may not fit into memory."""


@dataclass(frozen=True)
class Resolution:
    """How exactly data sets are compared: L directions, K levels, T thresholds.

    `axes` is how many coordinates a vector has after projection on principal axes.
    """

    directions: int = 50
    levels: int = 50
    thresholds: int = 512
    axes: int = 256


# A tenth of the time, for squared errors of values about a tenth larger: docs/numerics.md.
COARSE = Resolution(levels=8, thresholds=64, axes=64)
"""Where tens of thousands of coalitions are compared."""


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
        reached = share.astype(_type_up_to(self.levels)).reshape(-1, T)
        bins = _pass_levels(reached, self.levels).reshape(-1, directions, self.levels)
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
        self._projected: dict[View, Projections] = {}
        self._sketches: dict[tuple[float, View], Sketch] = {}
        self._known: dict[tuple[float, int, View], VectorCache] = {}

    def __call__(self, eta: float, p: int, members: Members, view: View = (False, None)) -> Floats:
        """Vectors of m coalitions, (m, r), whose distance in the p-norm is SW_p, p in {1, 2}.

        Args:
            eta: weight of features against labels in (0, 1]; 1 ignores the labels.
            p: order of the distance.
            members: the coalitions, (m, n).
            view: whether their rows are taken as they were given; other (L, K), if asked for.
        """
        return self._cache(eta, p, view)(members)

    def compute(self, eta: float, p: int, members: Members, view: View = (False, None)) -> Floats:
        """The same for coalitions that are needed only once: nothing is kept."""
        return self._cache(eta, p, view).compute(members)

    def _cache(self, eta: float, p: int, view: View) -> VectorCache:
        if (eta, p, view) not in self._known:
            self._known[eta, p, view] = self._make_cache(eta, p, view)
        return self._known[eta, p, view]

    def _make_cache(self, eta: float, p: int, view: View) -> VectorCache:
        owners, resolution, (raw, grid) = self._owners, self.resolution, view
        if grid is not None:
            resolution = replace(resolution, directions=grid[0], levels=grid[1])
        if view not in self._projected:
            self._projected[view] = project(owners, seed=self._seed, resolution=resolution, raw=raw)
        if (eta, view) not in self._sketches:
            projected = self._projected[view].along(eta)
            self._sketches[eta, view] = count(projected, owners.owner, resolution=resolution)
        sketch = self._sketches[eta, view]
        if p == 1:
            return VectorCache(partial(_quantiles, sketch))
        sample = _choose_sample(owners.n, np.random.default_rng([self._seed, 4]))
        sketched = sketch(sample)
        axes = principal_axes(sketch, sketched, resolution.axes)
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


def principal_axes(sketch: Sketch, sketched: NDArray[np.float32], most: int) -> PrincipalAxes:
    """Up to `most` principal axes of the sketch vectors of a sample of coalitions, (m, L K).

    Vectors of coalitions vary in few of their L K dimensions. A few axes keep distances well enough
    (the median to a percent or two, those between nearly equal coalitions less well) and a kernel
    entry costs a tenth. Another set of directions would change distances more. A projection of
    Euclidean vectors is Euclidean: the kernel stays valid.
    """
    vectors = sketched.astype(np.float64)
    centre = vectors.mean(axis=0)
    scale, axes = spectrum(vectors - centre, least=1e-6)
    longest = np.arange(len(scale))[::-1][:most]  # eigh sorts them rising
    basis = (vectors - centre).T @ (axes[:, longest] / np.sqrt(scale[longest]))
    return PrincipalAxes(sketch, centre, np.pad(basis, ((0, 0), (0, -len(longest) % 32))))


def _choose_sample(n: int, rng: np.random.Generator) -> Members:
    """Up to 8 owners all coalitions; else single owners, all owners and 400 others, (., n)."""
    if n <= 8:
        return all_coalitions(n)
    drawn = rng.random((400, n)) < rng.random((400, 1))  # all sizes alike, as Shapley has it
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
    mass = np.cumsum(1.0 / np.bincount(holder)[holder])  # an owner weighs 1 in all
    steps = np.arange(1, T + 1) / T * mass[-1]
    at = np.searchsorted(mass, steps * (1 - 1e-12))  # rounding must not skip a step
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


@dataclass(frozen=True, eq=False)
class Projections:
    """Rows of owners on L directions, their features and labels apart.

    Features are divided by the square root of their total variance, unless they are raw.

    Attributes:
        points: of the owners.
        theta: directions of features, (d, L).
        labels: projections of the c distinct labels, (c, L).
        label: which of them each row has, (N,).
        raw: whether features are taken as they were given.
    """

    points: Points
    theta: Floats
    labels: Floats
    label: Ints
    raw: bool = False

    def along(self, eta: float) -> Iterator[Floats]:
        """Rows on one direction after the other, (N,) each, under feature weight eta.

        All of them together may not fit into memory.
        """
        columns, directions = self.theta.shape
        step = max(AT_ONCE, columns // 2)
        for some in split(directions, step):
            # Distinct rows only: within one product, equal rows can be rounded differently.
            features = self.points.project(self.theta[:, some], raw=self.raw)
            features /= 1.0 if self.raw else np.sqrt(self.points.variance or 1.0)
            for x, part in zip(features.T, self.labels.T[some], strict=True):
                yield (eta * x)[self.points.index] + ((1 - eta) * part)[self.label]


def classical_scaling(vectors: NDArray[np.floating]) -> Floats:
    """Coordinates, (c, c), that keep the Euclidean distances of c vectors.

    They are the symmetric root of the Gram matrix, which is unique. Eigenvectors are not: their
    sign, and their direction if eigenvalues are equal, depend on the rounding of a CPU.
    """
    centred = np.asarray(vectors - vectors.mean(axis=0), dtype=np.float64)
    scale, axes = spectrum(centred, least=1e-9)
    return np.asarray((axes * np.sqrt(scale)) @ axes.T)


def spectrum(centred: Floats, *, least: float) -> tuple[Floats, Floats]:
    """Eigenvalues above `least` of the largest, rising, and eigenvectors of the Gram matrix."""
    scale, axes = np.linalg.eigh(centred @ centred.T)
    keep = scale > least * max(scale[-1], 0.0)
    return scale[keep], axes[:, keep]


def unit_directions(dimension: int, count: int, seed: int) -> Floats:
    """Directions uniform on the unit sphere, (dimension, count)."""
    theta = np.random.default_rng([seed, 0]).standard_normal((dimension, count))
    return np.asarray(theta / np.linalg.norm(theta, axis=0))


def _pass_levels(reached: NDArray[np.unsignedinteger], levels: int) -> Ints:
    """How many numbers of each row do not exceed each level, (r, K).

    A histogram of what the thresholds have reached would read them one by one. Here as many as fit
    into a 64-bit word are compared with a level at once: first the last ones of all words, then
    those of the word in which the level is passed.

    Args:
        reached: rising within a row, (r, T), and K at its end, of the `_type_up_to` K.
        levels: K.
    """
    bits = 8 * reached.itemsize
    count = 64 // bits  # numbers in a word
    ones, top = np.uint64(sum(1 << bits * i for i in range(count))), np.uint64(1 << bits - 1)
    # The highest bit of level + top - number is set if the number does not exceed the level.
    marks, tops = (np.arange(levels, dtype=np.uint64) + top) * ones, top * ones
    words = [_words(reached, levels)]
    while (numbers := words[-1].view(reached.dtype)).shape[1] > count:
        words.append(_words(numbers[:, count - 1 :: count], levels))
    row = np.arange(len(reached))[:, None]
    found = np.zeros((len(reached), levels), dtype=np.int64)
    for some in reversed(words):
        below = np.subtract(marks, some.ravel().take(found + row * some.shape[1]))
        below &= tops
        found *= count
        found += np.bitwise_count(below)
    return found


def _type_up_to(levels: int) -> np.dtype[np.unsignedinteger]:
    """The smallest type of numbers up to K that leaves their highest bit free."""
    return np.dtype(np.min_scalar_type(2 * levels + 1))


def _words(numbers: NDArray[np.unsignedinteger], levels: int) -> NDArray[np.uint64]:
    """The numbers of each row, (r, T), in 64-bit words; rows are filled up with K."""
    if missing := -numbers.shape[1] % (8 // numbers.itemsize):
        filling = np.full((len(numbers), missing), levels, dtype=numbers.dtype)
        numbers = np.concatenate([numbers, filling], axis=1)
    return np.ascontiguousarray(numbers).view(np.uint64)


class VectorCache:
    """A map from coalitions to vectors that computes each of them once."""

    def __init__(self, compute: Callable[[Members], Floats]):
        self.compute = compute
        self._position: dict[bytes, int] = {}
        self._count = 0
        self._vectors: Floats | None = None  # with room for more: they are not copied each time
        self._latest: tuple[bytes, Ints] | None = None

    def __call__(self, members: Members) -> Floats:
        """Vectors of m coalitions, (m, r)."""
        content = members.tobytes()
        if self._latest is None or self._latest[0] != content:
            self._latest = content, self._find(members)
        return np.asarray(self._vectors[self._latest[1]])  # type: ignore[index]  # found

    def _find(self, members: Members) -> Ints:
        """Where the vectors are; those of new coalitions are computed."""
        wanted = keys(members)
        new = {key: row for row, key in enumerate(wanted) if key not in self._position}
        if new or self._vectors is None:
            self.add(list(new), self.compute(members[list(new.values())]))
        return np.array([self._position[key] for key in wanted], dtype=np.int64)

    def add(self, new: list[bytes], vectors: Floats) -> None:
        """Keep the vectors, (m, r), of coalitions with these keys, of which some may be equal."""
        before, self._count = self._count, self._count + len(new)
        if self._vectors is None:
            self._vectors = vectors
        elif self._count > len(self._vectors):
            room = np.empty((2 * self._count, vectors.shape[1]))
            room[:before] = self._vectors[:before]
            self._vectors = room
        self._vectors[before : self._count] = vectors
        self._position.update({key: before + i for i, key in enumerate(new)})
