"""Methods by optimal transport between sets of rows of equal weights (POT, extra `baselines`).

LAVA (Just et al. 2023, "LAVA: data valuation without pre-specified learning algorithms") values
rows by how they move the training data away from, or towards, the validation rows. The distance is
optimal transport between N rows (x, y) and m validation rows (x', y') at the cost

    classification   |x - x'| + W_1(rows of class y, validation rows of class y')
    regression       |[x, y] - [x', y']|

With f the potentials of the rows, the derivative of the distance by the weight of row i, taken
evenly from all others, is its calibrated gradient f_i - mean of f_j over j != i (their Eq. 1).

OTDD (Alvarez-Melis & Fusi 2020, "Geometric dataset distances via optimal transport") is a kernel of
coalitions; the distance between labels is SW_1 as in DUPRE, Sec. 4 (footnote) and App. A.2:

    OTDD(A, B) = min over plans of the mean of |x - x'|^p + SW_1(rows of A with y, of B with y')^p

p = 1 is the case in which all formulas of the paper agree. exp(-gamma OTDD) is no valid kernel,
because OTDD is no squared Hilbertian distance. So the Gram matrix of l landmark coalitions,
-1/2 J D J with D their distances and J = I - 1/l, has negative eigenvalues. They are clipped, once
for every gamma: a coalition becomes a vector by classical scaling with the positive eigenvalues,
any further coalition by its distances to the landmarks (de Silva & Tenenbaum 2004), and
exp(-gamma |e_A - e_B|^2) is valid.

Notation: M (N, m) costs between N rows and m others; f (N,) and g (m,) the dual potentials.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances

from dupre._types import Floats, Ints, Members
from dupre.baselines.baseline import Baseline, encode_together, from_values
from dupre.checks import positive, whole
from dupre.data.owners import Embed, Owners
from dupre.data.sketch import Resolution, count, unit_directions
from dupre.errors import InputError
from dupre.game.coalitions import all_coalitions, keys, random_of_sizes
from dupre.game.weights import distinct_coalitions
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Exponential, squared_euclidean

ITERATIONS = 10_000
"""Of Sinkhorn's algorithm at most."""


def load_pot() -> Any:
    """The module `ot`; InputError if the extra is not installed."""
    try:
        import ot
    except ImportError as cause:
        raise InputError(
            "optimal transport needs the package POT; pip install 'dupre[baselines]'"
        ) from cause
    return ot


def transport_cost(M: Floats, entropy: float | None) -> float:
    """Least <P, M> of all plans P; with entropy, of <P, M> + entropy KL(P | independence)."""
    if entropy is None:
        return float(load_pot().emd2([], [], M, numItermax=10**7))
    f, g = entropic_potentials(M, entropy)
    return float(f.mean() + g.mean())


def entropic_potentials(M: Floats, entropy: float) -> tuple[Floats, Floats]:
    """The dual potentials f, (N,), and g, (m,), unique up to a constant (Sinkhorn; Cuturi 2013).

    Raises:
        InputError: the entropy is too small for the algorithm to converge.
    """
    # Subtracted here and added to the potentials below: no row of exp(-M / entropy) is all zero.
    low = M.min(axis=1, keepdims=True)
    left = (M - low).min(axis=0, keepdims=True)
    N, m = M.shape
    a, b = np.full(N, 1 / N), np.full(m, 1 / m)
    options = {"numItermax": ITERATIONS, "stopThr": 1e-7, "log": True, "warn": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows, which the check below finds
        plan, log = load_pot().sinkhorn(a, b, M - low - left, entropy, **options)
    off = np.abs(plan.sum(axis=0) / b - 1).max()
    if not off < 1e-3:
        raise InputError(
            f"optimal transport did not converge in {ITERATIONS:,} iterations; raise entropy="
        )
    f = entropy * np.log(log["u"] / a) + low[:, 0]
    return np.asarray(f), np.asarray(entropy * np.log(log["v"] / b) + left[0])


def lava(
    owners: Owners, *, validation: Any, entropy: float = 0.05, embed: Embed | None = None
) -> Baseline:
    """Minus the calibrated gradients of an owner's rows, summed: more is better.

    An owner above zero brings the distribution of all rows nearer to that of the validation rows,
    one below zero moves it away. The values of all owners add up to zero, and are in units of
    distance, not of utility: compare their order. No model is trained, so that a model which does
    not care about this distance is not described.

    Columns are standardised; in a regression y is one more of them. Needs the extra `baselines`,
    and memory for N m distances.

    Args:
        owners: to be valued.
        validation: (X, y), or a frame with the owners' target column.
        entropy: weight of the entropy, as a part of the mean cost. Without it, the potentials are
            not unique.
        embed: the callable the owners were made with, if they were.
    """
    part = positive(entropy, "entropy")
    load_pot()
    together = encode_together(owners, validation, embed)
    asked = together.values[together.asked]
    M = np.ascontiguousarray(euclidean_distances(asked, together.values)[:, together.held].T)
    if owners.task == "classification":
        M += _class_distances(M, owners.y, together.targets)
    else:
        spread = np.concatenate([owners.y, together.targets]).std() or 1.0
        M = np.hypot(M, (owners.y[:, None] - together.targets) / spread)
    f, _ = entropic_potentials(M, part * float(M.mean()) or 1.0)
    gradient = f - (f.sum() - f) / (len(f) - 1)
    totals = np.bincount(owners.owner, -gradient, minlength=owners.n)
    return from_values(owners, np.asarray(totals, dtype=np.float64), trained=0)


def _class_distances(M: Floats, y: Any, t: Any) -> Floats:
    """W_1 between the rows of class y and the validation rows of class t, for all pairs, (N, m)."""
    classes, code = np.unique(y, return_inverse=True)
    others, other = np.unique(t, return_inverse=True)
    table = [
        [transport_cost(M[np.ix_(code == i, other == j)], None) for j in range(len(others))]
        for i in range(len(classes))
    ]
    return np.array(table)[np.ix_(code, other)]


LABELS = Resolution(levels=20)
"""How exactly rows of two classes are compared."""


def otdd_kernel(
    owners: Owners,
    *,
    p: int = 1,
    rows: int = 100,
    entropy: float | None = None,
    landmarks: int = 255,
    seed: int = 0,
) -> OTDDKernel:
    """The kernel exp(-gamma OTDD) with a clipped spectrum, for `kernel=` and these owners.

    `kernel.clipped` is the part of the spectrum that was clipped; results say it too. All
    distances between landmarks are computed here, once: about a millisecond for each of the
    32,385 pairs of all 255 coalitions of 8 owners. A coalition that is no landmark costs its
    distances to all landmarks. Needs the extra `baselines`.

    Args:
        owners: of a classification.
        p: power of the distances, 1 or 2.
        rows: of a coalition with more, as many are drawn. Coalitions draw in one common order, so
            that those with common owners have common rows. Labels are compared on all rows.
        entropy: None for exact transport; or the weight of the entropy as a part of the mean cost
            between rows. The result is then the Sinkhorn divergence (Feydy et al. 2019).
        landmarks: how many coalitions are drawn as landmarks if there are more than that; else
            all coalitions are.
        seed: of rows, landmarks and directions.
    """
    if owners.task != "classification":
        raise InputError(
            "OTDD compares the rows of classes, but these owners hold a regression; take "
            "kernel=dupre.kernels.SlicedWasserstein() or another kernel"
        )
    if p not in (1, 2):
        raise InputError(f"p must be 1 or 2, got {p!r}")
    most = whole(rows, "rows", least=1)
    part = None if entropy is None else positive(entropy, "entropy")
    marks = whole(landmarks, "landmarks", least=2)
    seed = whole(seed, "seed", least=0)
    load_pot()
    distances = OTDDistances(owners, p=p, rows=most, entropy=part, seed=seed)
    embedding = Embedding(distances, _landmarks(owners.n, marks, seed))
    return OTDDKernel(embedding=embedding, setting=(p, most, part, marks, seed))


def _landmarks(n: int, count: int, seed: int) -> Members:
    """All coalitions if there are not more than `count`, else `count` of random sizes."""
    if 2**n - 1 <= count:
        return all_coalitions(n)
    rng = np.random.default_rng([seed, 2])
    sizes = np.append(n, rng.integers(1, n, 8 * count))
    return distinct_coalitions(random_of_sizes(n, sizes, rng))[0][:count]


@dataclass(frozen=True)
class OTDDKernel(Exponential):
    """exp(-gamma OTDD) with a clipped spectrum; make one with `otdd_kernel`."""

    embedding: Embedding = field(kw_only=True, repr=False)
    setting: tuple[object, ...] = field(kw_only=True, repr=False)

    @property
    def clipped(self) -> float:
        """The part of the landmarks' spectrum, by absolute value, that is negative."""
        return self.embedding.clipped

    @property
    def label(self) -> str:
        """What it compares, and how much of its spectrum was clipped."""
        return f"OTDD ({self.clipped:.1%} of its spectrum clipped)"

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """All that it depends on besides the owners' rows."""
        return (self.gamma, *self.setting)

    def distance(self, a: Features, b: Features) -> Floats:
        """Squared distances of the embedded coalitions, (ma, mb)."""
        return squared_euclidean(self.embedding(a), self.embedding(b))


class Embedding:
    """Coalitions as vectors whose squared distances are OTDD, as far as vectors can have them.

    Args:
        distances: between coalitions.
        landmarks: coalitions, (l, n), with respect to which all others are placed.

    Attributes:
        clipped: the negative part of the spectrum, by absolute value.
    """

    def __init__(self, distances: OTDDistances, landmarks: Members):
        self._distances = distances
        self._landmarks = [distances.data_set(row) for row in landmarks]
        D = np.zeros((len(landmarks), len(landmarks)))
        for i, data in enumerate(self._landmarks):
            D[i, :i] = D[:i, i] = distances(data, self._landmarks[:i])
        self._mean = D.mean(axis=0)
        centred = D - self._mean
        scale, axes = np.linalg.eigh(-(centred - centred.mean(axis=1, keepdims=True)) / 2)
        total = np.abs(scale).sum()
        self.clipped = float(np.abs(scale[scale < 0]).sum() / total) if total else 0.0
        # Of coalitions that are no landmarks, only what exceeds the clipped part can be trusted.
        complete = len(landmarks) == 2 ** landmarks.shape[1] - 1
        keep = scale > max(1e-9 * scale[-1], 0.0 if complete else -scale[0])
        self._axes = axes[:, keep] / (2 * np.sqrt(scale[keep]))
        self._known = dict(zip(keys(landmarks), self._place(D), strict=True))

    def __call__(self, inputs: Features) -> Floats:
        """Vectors of m coalitions, (m, r), each computed once."""
        if not np.array_equal(inputs.rows, self._distances.owners.rows):
            raise InputError("this OTDD kernel was made for other owners; make one for these")
        wanted = keys(inputs.members)
        for key, row in zip(wanted, inputs.members, strict=True):
            if key not in self._known:
                data = self._distances.data_set(row)
                self._known[key] = self._place(self._distances(data, self._landmarks))
        return np.array([self._known[key] for key in wanted]).reshape(len(wanted), -1)

    def _place(self, distances: Floats) -> Floats:
        """Vectors of coalitions at these distances from the landmarks, (..., l)."""
        return np.asarray((self._mean - distances) @ self._axes)


@dataclass(frozen=True, eq=False)
class DataSet:
    """What is compared of a coalition.

    Attributes:
        rows: indices of k sampled rows, (k,).
        label: which of its c classes each of them has, (k,).
        classes: vectors of all rows of each class, (c, w), whose distance in the 1-norm is SW_1.
        own: entropic transport cost to itself.
    """

    rows: Ints
    label: Ints
    classes: Floats
    own: float = 0.0


class OTDDistances:
    """OTDD between coalitions; see `otdd_kernel` for the arguments."""

    def __init__(self, owners: Owners, *, p: int, rows: int, entropy: float | None, seed: int):
        self.owners = owners
        self._p, self._rows = p, rows
        points = owners.points
        # Equal rows have the same place in the order, whoever holds them.
        distinct, which = np.unique(owners.row_contents, axis=0, return_inverse=True)
        place = np.random.default_rng([seed, 1]).permutation(len(distinct))[which.ravel()]
        order = np.argsort(place, kind="stable")
        first = [order[owners.owner[order] == i][:rows] for i in range(owners.n)]
        self._sampled = order[np.isin(order, np.concatenate(first))]
        used, index = np.unique(points.index[self._sampled], return_inverse=True)
        between = euclidean_distances(points.values[used]) ** p
        self._costs = between[np.ix_(index, index)]
        self._entropy = entropy and entropy * (float(self._costs.mean()) or 1.0)
        # Rows of one owner and class are a cell; those of a coalition and class several cells.
        labels, self._label = np.unique(owners.y, return_inverse=True)
        cells, cell = np.unique(owners.owner * len(labels) + self._label, return_inverse=True)
        self._cell_owner, self._cell_label = np.divmod(cells, len(labels))
        theta = unit_directions(len(points.units), LABELS.directions, seed)
        self._sketch = count(points.project(theta)[points.index].T, cell, resolution=LABELS)

    def data_set(self, row: Members) -> DataSet:
        """The data of one coalition, (n,)."""
        rows = np.flatnonzero(row[self.owners.owner[self._sampled]])[: self._rows]
        inside = row[self._cell_owner]
        labels = np.unique(self._cell_label[inside])
        vectors = self._sketch(inside & (self._cell_label == labels[:, None]))
        label = np.searchsorted(labels, self._label[self._sampled[rows]])
        data = DataSet(rows, label, vectors / np.sqrt(self._sketch.width, dtype=np.float64))
        return data if self._entropy is None else replace(data, own=self._cost(data, data))

    def __call__(self, data: DataSet, others: list[DataSet]) -> Floats:
        """Distances of one data set to others, (len(others),)."""
        return np.array([self._cost(data, other) - (data.own + other.own) / 2 for other in others])

    def _cost(self, a: DataSet, b: DataSet) -> float:
        labels = cdist(a.classes, b.classes, "cityblock") ** self._p
        M = self._costs[np.ix_(a.rows, b.rows)] + labels[np.ix_(a.label, b.label)]
        return transport_cost(M, self._entropy)
