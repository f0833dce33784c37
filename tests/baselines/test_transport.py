import sys
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance
from sklearn.preprocessing import StandardScaler

import dupre
from dupre import InputError, Owners
from dupre.baselines import lava, otdd_kernel, transport
from dupre.baselines.transport import Embedding, OTDDistances, entropic_potentials, transport_cost
from dupre.data.digests import digest
from dupre.data.sketch import Resolution, unit_directions
from dupre.game.coalitions import all_coalitions
from dupre.predictor.kernel_inputs import Features
from owners_and_games import make_owners, record, smooth


def least_cost(M, a=None, b=None):
    """Optimal transport as a linear program of its plan."""
    N, m = M.shape
    a = np.full(N, 1 / N) if a is None else a
    b = np.full(m, 1 / m) if b is None else b
    margins = np.vstack([np.kron(np.eye(N), np.ones(m)), np.kron(np.ones(N), np.eye(m))])
    return linprog(M.ravel(), A_eq=margins[:-1], b_eq=np.append(a, b)[:-1]).fun


@pytest.fixture(scope="module")
def owners():
    rng = np.random.default_rng(1)
    return Owners.from_arrays(rng.normal(size=(8, 2)), np.arange(8) % 2, np.arange(8) // 2)


def features(owners):
    return Features(all_coalitions(owners.n), owners.rows)


@pytest.mark.parametrize("p", [1, 2])
def test_the_kernel_is_that_of_linear_programs_with_a_clipped_spectrum(owners, p, monkeypatch):
    # Levels that any number of rows of a class divides: quantiles are exact.
    monkeypatch.setattr(transport, "LABELS", Resolution(directions=5, levels=12))
    rows, y = owners.points.values[owners.points.index], owners.y
    projected = rows @ unit_directions(2, 5, 0)
    held = [np.flatnonzero(members[owners.owner]) for members in all_coalitions(4)]

    def label_distance(A, B):
        return np.mean([wasserstein_distance(*pair) for pair in zip(A.T, B.T, strict=True)])

    def distance(A, B):
        one, other = ([projected[C[y[C] == label]] for label in (0, 1)] for C in (A, B))
        labels = np.array([[label_distance(a, b) for b in other] for a in one])
        return least_cost(cdist(rows[A], rows[B]) ** p + labels[np.ix_(y[A], y[B])] ** p)

    D = np.zeros((15, 15))
    for i, j in combinations(range(15), 2):
        D[i, j] = D[j, i] = distance(held[i], held[j])
    J = np.eye(15) - 1 / 15
    scale, axes = np.linalg.eigh(-J @ D @ J / 2)
    gram = (axes * np.maximum(scale, 0)) @ axes.T
    expected = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram
    kernel, inputs = otdd_kernel(owners, p=p), features(owners)
    np.testing.assert_allclose(kernel.distance(inputs, inputs), expected, atol=1e-5)
    assert kernel.clipped == pytest.approx(-scale[scale < 0].sum() / np.abs(scale).sum(), abs=1e-5)
    assert (kernel.clipped > 1e-3) == (p == 2)
    assert f"{kernel.clipped:.1%}" in kernel.label


def test_entropic_transport_maximises_its_dual():
    rng = np.random.default_rng(0)
    M, entropy = rng.random((4, 3)), 0.1

    def dual(z):
        fg = z[:4, None] + z[4:]
        return -(z[:4].mean() + z[4:].mean() + entropy * (1 - np.exp((fg - M) / entropy).mean()))

    best = minimize(dual, np.zeros(7), tol=1e-12)
    assert transport_cost(M, entropy) == pytest.approx(-best.fun, abs=1e-6)
    f, _ = entropic_potentials(M, entropy)
    np.testing.assert_allclose(f - f.mean(), best.x[:4] - best.x[:4].mean(), atol=1e-4)
    far = M + np.array([[1e4], [0], [0], [0]])  # no plan can avoid the costs of a row
    assert transport_cost(far, entropy) == pytest.approx(-best.fun + 2500)
    with pytest.raises(InputError, match="raise entropy="):
        entropic_potentials(rng.random((30, 30)), 1e-6)


def test_a_divergence_is_near_the_exact_distance_and_equal_data_are_at_none(owners):
    def distance(entropy):
        otdd = OTDDistances(owners, p=1, rows=8, entropy=entropy, seed=0)
        one, other = (
            otdd.data_set(np.array(row, dtype=bool)) for row in ([1, 1, 0, 0], [0, 1, 1, 1])
        )
        return otdd(one, [one, other])

    np.testing.assert_allclose(distance(0.05), distance(None), rtol=0.03, atol=1e-6)

    X, y = owners.X[[0, 1, 2, 0, 1, 2, 4]], [0, 1, 0, 0, 1, 0, 1]
    twice = Owners.from_arrays(X, y, [0, 0, 0, 1, 1, 1, 2])
    pair = Features(np.eye(3, dtype=bool)[:2], twice.rows)
    for kernel in (otdd_kernel(twice, rows=2), otdd_kernel(twice, rows=2, entropy=0.1)):
        assert kernel.distance(pair, pair)[0, 1] == pytest.approx(0, abs=1e-6)


def test_coalitions_are_placed_by_distances_to_landmarks_and_what_is_clipped_is_said(owners):
    point = np.random.default_rng(1).normal(size=(5, 2))

    class Plane:
        owners = make_owners(5)

        def data_set(self, row):
            return row @ point

        def __call__(self, one, others):
            return np.array([np.sum((one - other) ** 2) for other in others])

    members = all_coalitions(5)
    embedding = Embedding(Plane(), members[::4])
    placed = embedding(features(Plane.owners))
    expected = cdist(members @ point, members @ point, "sqeuclidean")
    np.testing.assert_allclose(cdist(placed, placed, "sqeuclidean"), expected, atol=1e-6)
    assert embedding.clipped == pytest.approx(0, abs=1e-9)

    kernel = otdd_kernel(owners, landmarks=4)
    inputs = features(owners)
    K = kernel(inputs, inputs)
    assert np.linalg.eigvalsh(K).min() > -1e-9
    assert len(kernel.embedding._landmarks) == 4

    kernel = otdd_kernel(owners)
    mark = digest(kernel)
    valuer = dupre.Valuer(owners, empty=0.0, kernel=1.0 * kernel)
    record(valuer, dict(list(smooth(owners).table.items())[::2]))
    assert "of its spectrum clipped" in valuer.values().facts.diagnostics.form
    assert digest(kernel) == mark != digest(otdd_kernel(owners, p=2))


def test_what_cannot_be_computed_is_refused(owners):
    for method, match in (
        (lambda o: otdd_kernel(make_owners(3)), "regression"),
        (partial(otdd_kernel, p=3), "p must be 1 or 2"),
        (partial(otdd_kernel, rows=0), "rows"),
        (partial(otdd_kernel, entropy=0), "entropy"),
        (partial(otdd_kernel, landmarks=1), "landmarks"),
        (lambda o: otdd_kernel(o)(features(make_owners(3)), features(o)), "other owners"),
        (partial(lava, validation=None), r"validation must be \(X, y\)"),
        (partial(lava, validation=(np.empty((0, 2)), [])), "no validation rows"),
        (partial(lava, validation=None, entropy=-1), "entropy"),
    ):
        with pytest.raises(InputError, match=match):
            method(owners)


@pytest.mark.parametrize("method", [otdd_kernel, partial(lava, validation=None)])
def test_a_missing_extra_is_named(owners, method, monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(InputError, match=r"pip install 'dupre\[baselines\]'"):
        method(owners)


def gradients_of_weights(M):
    """Derivative of the transport cost by the weight of each row, taken evenly from the others."""
    N, h = len(M), 1e-6
    shifts = h * (np.eye(N) - (1 - np.eye(N)) / (N - 1))
    return np.array(
        [(least_cost(M, 1 / N + s) - least_cost(M, 1 / N - s)) / (2 * h) for s in shifts]
    )


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_lava_is_the_derivative_of_exact_transport(task):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(18, 2)), np.arange(18) % 2
    if task == "regression":
        y = rng.normal(size=18)
    owners = Owners.from_arrays(X[:11], y[:11], np.arange(11) % 3, task=task)
    rows = StandardScaler().fit_transform(X)
    M = cdist(rows[:11], rows[11:])
    if task == "regression":
        M = np.hypot(M, (y[:11, None] - y[11:]) / y.std())
    else:
        classes = [[least_cost(M[y[:11] == i][:, y[11:] == j]) for j in (0, 1)] for i in (0, 1)]
        M = M + np.array(classes)[np.ix_(y[:11], y[11:])]
    expected = -np.bincount(owners.owner, gradients_of_weights(M))
    found = lava(owners, validation=(X[11:], y[11:]), entropy=0.003)
    np.testing.assert_allclose(found.values, expected, atol=0.02 * np.abs(expected).max())
    assert found.trained == 0
    assert not found.std.any()
    assert found.values.sum() == pytest.approx(0, abs=1e-9)


def test_wrong_labels_are_worth_least_to_lava_and_copies_as_much_as_their_rows():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 4 * y[:, None]
    owner = np.arange(40) // 10
    labels = np.where(owner == 2, 1 - y[:40], y[:40])
    X[:10], labels[:10] = X[10:20], labels[10:20]
    values = lava(Owners.from_arrays(X[:40], labels, owner), validation=(X[40:], y[40:])).values
    assert values.idxmin() == "2"
    assert values["0"] == pytest.approx(values["1"], abs=1e-9)
