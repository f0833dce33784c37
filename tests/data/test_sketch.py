from itertools import combinations

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance
from sklearn.datasets import load_diabetes, load_iris, load_wine

from dupre.data import sketch as module
from dupre.data.owners import Owners
from dupre.data.sketch import (
    Resolution,
    _pass_levels,
    _type_up_to,
    count,
    label_coordinates,
    unit_directions,
)
from dupre.game.coalitions import all_coalitions

COARSE = Resolution(directions=12, levels=20, thresholds=64)


def raw(owners, *, seed, resolution=None):
    """callable(eta, members) -> uncompressed sketch vectors."""
    resolution = resolution or Resolution()
    projections = module.project(owners, seed=seed, resolution=resolution)

    def vectors(eta, members):
        return count(projections.along(eta), owners.owner, resolution=resolution)(members)

    return vectors


def skewed_owners(X, y, n=4):
    """Owners with overlapping stretches of the rows sorted by the first column, unequal sizes."""
    order = np.argsort(X[:, 0])
    owner = (np.arange(len(y)) / len(y)) ** 1.5 * n
    noise = np.random.default_rng(0).normal(scale=0.7, size=len(y))
    return Owners.from_arrays(X[order], y[order], np.clip(owner + noise, 0, n - 0.01).astype(int))


def random_owners(seed, *, task="regression", n=4, d=3, classes=3, sizes=(3, 12)):
    rng = np.random.default_rng(seed)
    rows = rng.integers(*sizes, size=n)
    N = rows.sum()
    y = rng.integers(0, classes, N) if task == "classification" else rng.normal(size=N)
    X = rng.normal(size=(N, d)) + np.repeat(rng.normal(size=(n, d)), rows, axis=0)
    return Owners.from_arrays(X, y, np.repeat(np.arange(n), rows), task=task)


def with_twin(task, seed=0, *, size=9):
    """Owners a and b hold the same rows in a different order; c and d others."""
    rng = np.random.default_rng(seed)
    N = 4 * size
    X = rng.normal(size=(N, 5))
    y = rng.integers(0, 4, N) if task == "classification" else rng.normal(size=N)
    order = rng.permutation(size)
    X[size : 2 * size], y[size : 2 * size] = X[order], y[order]
    return Owners.from_arrays(X, y, np.repeat(list("abcd"), size), task=task)


def exact(owners, first, second, *, eta, p, resolution, seed=0):
    """SW_p of two coalitions along the directions of the sketch, from their projected rows."""
    projections = module.project(owners, seed=seed, resolution=resolution)
    projected = np.array(list(projections.along(eta))).T
    A, B = (projected[coalition[owners.owner]] for coalition in (first, second))
    return ot.sliced_wasserstein_distance(A, B, projections=np.eye(resolution.directions), p=p)


def norm(first, second, p):
    """SW_p as it is read off two sketch vectors."""
    gap = np.abs(first.astype(np.float64) - second)
    return np.sqrt(np.sum(gap**2)) if p == 2 else np.sum(gap) / np.sqrt(len(gap))


def sketched_distance(A, B, p):
    """SW_p of two sets of numbers as a sketch with exact levels has it."""
    owner = np.repeat([0, 1], (len(A), len(B)))
    exact_levels = Resolution(1, levels=len(A) * len(B), thresholds=len(owner))
    sketch = count([np.append(A, B)], owner, resolution=exact_levels)
    return norm(*sketch(np.eye(2, dtype=bool)), p)


@pytest.mark.parametrize("p", [1, 2])
def test_one_direction_is_exact_optimal_transport(p):
    rng = np.random.default_rng(2)
    A, B = rng.normal(size=9), rng.normal(1.0, 3.0, size=9)
    cost = np.abs(A[:, None] - B) ** p
    optimal = cost[linear_sum_assignment(cost)].mean() ** (1 / p)
    assert sketched_distance(A, B, p) == pytest.approx(optimal, rel=1e-6)
    assert sketched_distance(A, A - 2.5, p) == pytest.approx(2.5, rel=1e-6)
    more = rng.normal(1.0, 3.0, size=17)
    assert sketched_distance(A, more, 1) == pytest.approx(wasserstein_distance(A, more), rel=1e-6)


def test_directions_have_unit_length_no_preference_and_follow_the_seed():
    theta = unit_directions(3, 20_000, seed=0)
    np.testing.assert_allclose(np.linalg.norm(theta, axis=0), 1)
    np.testing.assert_allclose(theta.mean(axis=1), 0, atol=0.02)
    np.testing.assert_allclose(theta @ theta.T / 20_000, np.eye(3) / 3, atol=0.02)
    np.testing.assert_array_equal(unit_directions(4, 5, 1), unit_directions(4, 5, 1))
    assert not np.allclose(unit_directions(4, 5, 1), unit_directions(4, 5, 2))


# --- the sketch against exact distances


@pytest.mark.parametrize("load", [load_iris, load_wine, load_diabetes])
@pytest.mark.parametrize("p", [1, 2])
def test_vectors_measure_sliced_wasserstein_within_three_percent(load, p):
    owners = skewed_owners(*load(return_X_y=True))
    members = np.eye(4, dtype=bool)
    vectors = raw(owners, seed=0)(0.5, members)
    for i, j in combinations(range(4), 2):
        expected = exact(owners, members[i], members[j], eta=0.5, p=p, resolution=Resolution())
        assert norm(vectors[i], vectors[j], p) == pytest.approx(expected, rel=0.03)


def relative_errors(owners, resolution, *, p):
    members = all_coalitions(4)
    vectors = raw(owners, seed=0, resolution=resolution)(0.5, members)
    pairs = [(0, 1), (0, 7), (1, 5), (2, 14), (4, 9), (10, 12)]
    errors = []
    for i, j in pairs:
        reference = exact(owners, members[i], members[j], eta=0.5, p=p, resolution=resolution)
        errors.append(norm(vectors[i], vectors[j], p) / reference - 1)
    return np.abs(errors)


@pytest.mark.parametrize("p", [1, 2])
def test_more_levels_and_thresholds_bring_the_sketch_closer_to_exact_distances(p):
    owners = skewed_owners(*load_diabetes(return_X_y=True))

    def error(levels, thresholds):
        return relative_errors(owners, Resolution(20, levels, thresholds), p=p).mean()

    coarse, middle, fine = (error(levels, 1000) for levels in (5, 50, 1000))
    assert fine < middle / 4 < coarse / 8
    assert fine < 0.002
    coarse, middle, fine = (error(1000, thresholds) for thresholds in (4, 32, 442))
    assert fine < middle / 2 < coarse / 4
    assert fine < 0.002


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("eta", [0.3, 1.0])
def test_the_sketch_is_exact_when_levels_are_a_multiple_of_the_sizes(p, task, eta):
    rng = np.random.default_rng(0)
    y = rng.normal(size=11) if task == "regression" else np.arange(11) % 3
    owner = np.repeat(list("abc"), (2, 3, 6))
    owners = Owners.from_arrays(rng.normal(size=(11, 2)), y, owner, task=task)
    resolution = Resolution(directions=15, levels=2 * 3 * 5 * 8 * 9 * 11, thresholds=11)
    members = all_coalitions(3)
    vectors = raw(owners, seed=0, resolution=resolution)(eta, members)
    for i, j in combinations(range(7), 2):
        expected = exact(owners, members[i], members[j], eta=eta, p=p, resolution=resolution)
        assert norm(vectors[i], vectors[j], p) == pytest.approx(expected, rel=1e-5)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9), st.integers(1, 12))
def test_a_quantile_is_the_first_row_whose_share_reaches_its_level(seed, small, large, levels):
    values = np.random.default_rng(seed).normal(size=small + large).round(1)
    owner = np.repeat([0, 1], (small, large))
    resolution = Resolution(directions=1, levels=levels, thresholds=small + large)
    sketch = count([values], owner, resolution=resolution)
    members = all_coalitions(2)
    for coalition, vector in zip(members, sketch(members), strict=True):
        rows = np.sort(values[coalition[owner]])
        # Row j has share (j + 1) / r; level k is (k + 1/2) / K. In whole numbers, without rounding:
        share, level = np.arange(1, len(rows) + 1), np.arange(levels)
        first = np.argmax(2 * levels * share >= len(rows) * (2 * level[:, None] + 1), axis=1)
        np.testing.assert_allclose(vector * np.sqrt(levels), rows[first], rtol=1e-6)


def test_rows_between_two_thresholds_are_their_mean_as_fine_for_a_small_owner():
    values = np.random.default_rng(0).gamma(1.0, size=12)
    resolution = Resolution(directions=1, levels=4, thresholds=4)
    sketch = count([values], np.zeros(12, dtype=np.int64), resolution=resolution)
    found = sketch(np.ones((1, 1), dtype=bool))[0] * np.sqrt(4)
    np.testing.assert_allclose(found, np.sort(values).reshape(4, 3).mean(axis=1), rtol=1e-6)

    rng = np.random.default_rng(0)
    small, large = rng.normal(100.0, 1.0, size=40), rng.normal(size=20_000)
    owner = np.repeat([0, 1], (40, 20_000))
    resolution = Resolution(directions=1, levels=40, thresholds=256)
    sketch = count([np.append(small, large)], owner, resolution=resolution)
    quantiles = sketch(np.eye(2, dtype=bool)[:1]) * np.sqrt(40)
    np.testing.assert_allclose(quantiles[0], np.sort(small), rtol=1e-6)


# --- identities that hold to the last bit


@pytest.fixture(params=[8, 512], ids=["grid", "every row"])
def sketched(request):
    """callable(owners) -> cache, with fewer and with more thresholds than rows."""
    resolution = Resolution(directions=10, levels=30, thresholds=request.param)
    return lambda owners: raw(owners, seed=0, resolution=resolution)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("eta", [0.2, 0.5, 1.0])
def test_owners_with_the_same_rows_can_be_swapped(sketched, task, eta):
    """Two copies have one vector, and the order of rows does not matter."""
    cache, members = sketched(with_twin(task)), all_coalitions(4)
    np.testing.assert_array_equal(cache(eta, members[:, [1, 0, 2, 3]]), cache(eta, members))
    once, twice = cache(eta, np.array([[1, 0, 0, 0], [1, 1, 0, 0]], dtype=bool))
    np.testing.assert_array_equal(once, twice)
    owners = with_twin(task, size=25)
    order = np.random.default_rng(1).permutation(len(owners.y))
    names = np.array(owners.names)[owners.owner]
    shuffled = Owners.from_arrays(owners.X[order], owners.y[order], names[order], task=task)
    np.testing.assert_array_equal(sketched(shuffled)(eta, members), sketched(owners)(eta, members))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(["regression", "classification"]))
def test_vectors_obey_the_triangle_inequality_and_separate_no_coalition_from_itself(seed, task):
    owners = random_owners(seed, task=task)
    cache = raw(owners, seed=seed, resolution=COARSE)
    vectors = cache(0.5, all_coalitions(4)).astype(np.float64)
    for metric in ("euclidean", "cityblock"):
        d = cdist(vectors, vectors, metric)
        np.testing.assert_array_equal(np.diag(d), 0)
        assert (d[:, None, :] <= d[:, :, None] + d[None] + 1e-9).all()


# --- labels


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_any_number_of_classes_can_be_sketched(classes):
    rng = np.random.default_rng(0)
    y = np.arange(40) % classes
    X = rng.normal(size=(40, 3)) + y[:, None]
    owners = Owners.from_arrays(X, y, np.repeat([0, 1, 2, 3], 10))
    coordinates, label = label_coordinates(owners, seed=0, resolution=COARSE)
    assert len(np.unique(coordinates, axis=0)) == classes
    np.testing.assert_array_equal(label, y)
    vectors = raw(owners, seed=0, resolution=COARSE)(0.5, all_coalitions(4))
    assert np.isfinite(vectors).all()
    assert len(np.unique(vectors, axis=0)) == 15
    own = Owners.from_arrays(X, y, np.minimum(y, classes - 1) + (np.arange(40) < 5) * 9)
    alone = raw(own, seed=0, resolution=COARSE)(0.5, np.eye(own.n, dtype=bool))
    assert (cdist(alone, alone)[~np.eye(own.n, dtype=bool)] > 0.01).all()  # a class of one owner


def test_classes_are_as_far_apart_as_their_rows():
    X, y = load_iris(return_X_y=True)
    owners = Owners.from_arrays(X, y, np.arange(150) % 3)
    resolution = Resolution(directions=30, levels=50, thresholds=512)
    places, _ = label_coordinates(owners, seed=4, resolution=resolution)
    theta = unit_directions(4, 30, seed=4)
    standard = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(4)
    for i, j in combinations(range(3), 2):
        classes = standard[y == i], standard[y == j]
        expected = ot.sliced_wasserstein_distance(*classes, projections=theta, p=2)
        assert np.linalg.norm(places[i] - places[j]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_raw_rows_are_compared_as_they_were_given(kind, task):
    X, y = load_wine(return_X_y=True)  # columns of very different units, and a constant one
    X, y = np.column_stack([X[1:, [0, 7, 12]], np.full(177, 3.0)]), y[1:]
    y = y if task == "classification" else X @ [0.3, 40.0, 0.01, 0.0]
    owner, resolution = np.arange(177) % 3, Resolution(directions=20, levels=4 * 59)
    given = X if kind == "dense" else sparse.csr_array(X)
    owners = Owners.from_arrays(given, y, owner, task=task)
    e, code = label_coordinates(owners, seed=0, resolution=resolution, raw=True)
    if task == "classification":  # embedded by SW_2 between the rows of the classes
        theta = unit_directions(4, 20, seed=0)
        for i, j in combinations(range(3), 2):
            expected = ot.sliced_wasserstein_distance(X[y == i], X[y == j], projections=theta, p=2)
            assert np.linalg.norm(e[i] - e[j]) == pytest.approx(expected, rel=1e-2)
    rows = np.column_stack([0.3 * X, 0.7 * e[code]])  # DUPRE Sec. 2.2
    theta = unit_directions(rows.shape[1], 20, seed=0)
    cache = module.SketchCache(owners, seed=0, resolution=resolution)
    vectors = cache(0.3, 2, np.eye(3, dtype=bool), (True, None))
    for i, j in combinations(range(3), 2):
        sets = rows[owner == i], rows[owner == j]
        expected = ot.sliced_wasserstein_distance(*sets, projections=theta, p=2)
        assert np.linalg.norm(vectors[i] - vectors[j]) == pytest.approx(expected, rel=1e-4)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 12))
def test_classical_scaling_keeps_all_distances_whatever_the_eigenvectors(seed, points, dimension):
    vectors = np.random.default_rng(seed).normal(size=(points, dimension))
    placed = module.classical_scaling(vectors)
    # An axis with less than 1e-9 of the largest variance is left out.
    np.testing.assert_allclose(cdist(placed, placed), cdist(vectors, vectors), atol=3e-4)
    assert not module.classical_scaling(np.ones((3, 4))).any()
    # The corners of a regular simplex: all eigenvalues are equal, any rotation is as good.
    np.testing.assert_allclose(module.classical_scaling(np.eye(4)), np.eye(4) - 1 / 4, atol=1e-12)


def test_labels_of_a_regression_are_its_targets_and_weigh_as_features_at_one_half():
    X, y = load_diabetes(return_X_y=True)
    owners = Owners.from_arrays(X, y, np.arange(442) % 3)
    distinct, label = label_coordinates(owners, seed=0, resolution=COARSE)
    coordinates = distinct[label]
    np.testing.assert_allclose(coordinates[:, 0] - coordinates[0, 0], y - y[0])

    owners = random_owners(0, n=4, d=7, sizes=(30, 40))
    many = Resolution(directions=4000)
    projections = module.project(owners, seed=0, resolution=many)
    features, labels = (np.array(list(projections.along(eta))).T for eta in (1.0, 0.0))
    # Each block has total variance 1 before it is projected on directions of d + 1 = 8 axes.
    ratio = features.var(axis=0).mean() / labels.var(axis=0).mean()
    assert ratio == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_the_unit_of_a_regression_target_does_not_matter(scale):
    owners = random_owners(0)
    scaled = Owners.from_arrays(owners.X, scale * owners.y + 7, owners.owner, task="regression")
    sketches = (raw(each, seed=0, resolution=COARSE) for each in (owners, scaled))
    both = (sketch(0.5, all_coalitions(4)) for sketch in sketches)
    expected, found = (cdist(vectors, vectors) for vectors in both)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_labels_are_ignored_at_eta_one_and_only_there(task):
    owners = random_owners(3, task=task)
    y = np.random.default_rng(0).permutation(owners.y)
    relabelled = Owners.from_arrays(owners.X, y, owners.owner, task=task)
    straight, found = (raw(each, seed=0, resolution=COARSE) for each in (owners, relabelled))
    members = all_coalitions(4)
    np.testing.assert_array_equal(found(1.0, members), straight(1.0, members))
    assert not np.allclose(found(0.5, members), straight(0.5, members), atol=1e-3)


# --- the cache


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.sampled_from([0.4, 1.0]), st.lists(st.integers(0, 30), min_size=1))))
def test_the_cache_gives_each_coalition_its_vector_whatever_is_asked_before(requests):
    owners = random_owners(1, n=5)
    members = all_coalitions(5)

    def cached():
        return module.SketchCache(owners, seed=0, resolution=COARSE)

    fresh = {eta: cached()(eta, 2, members) for eta in (0.4, 1.0)}
    cache = cached()
    for eta, asked in requests:
        np.testing.assert_array_equal(cache(eta, 2, members[asked]), fresh[eta][asked])


@pytest.mark.parametrize("load", [load_iris, load_wine, load_diabetes])
@pytest.mark.parametrize("n", [6, 11])
def test_principal_axes_keep_distances_to_a_few_percent(load, n):
    X, y = load(return_X_y=True)
    owners = Owners.from_arrays(X, y, np.random.default_rng(0).integers(n, size=len(y)))
    members = np.random.default_rng(1).random((200, n)) < 0.5
    members = members[members.any(axis=1)]
    full = raw(owners, seed=0)(0.5, members).astype(np.float64)
    short = module.SketchCache(owners, seed=0)(0.5, 2, members)
    assert short.shape[1] <= module.Resolution().axes
    far = cdist(full, full) > 0
    ratio = cdist(short, short)[far] / cdist(full, full)[far]
    assert np.all(ratio < 1 + 1e-6)
    assert np.median(ratio) > 0.9
    assert np.std(ratio) < 0.04


def test_vectors_of_order_one_have_sliced_wasserstein_of_order_one_as_their_distance():
    owners, members = random_owners(3), all_coalitions(4)
    full = raw(owners, seed=0, resolution=COARSE)(0.5, members).astype(np.float64)
    vectors = module.SketchCache(owners, seed=0, resolution=COARSE)(0.5, 1, members)
    quantiles = full * np.sqrt(12 * 20)
    expected = cdist(quantiles, quantiles, "cityblock") / (12 * 20)
    np.testing.assert_allclose(cdist(vectors, vectors, "cityblock"), expected, rtol=1e-6)


def test_a_coalition_after_its_complement_has_the_same_vector():
    sketch, half = raw(random_owners(2, n=7), seed=0, resolution=COARSE), all_coalitions(7)[:40]
    members = np.stack([half, ~half], axis=1).reshape(-1, 7)
    alone = np.concatenate([sketch(0.5, one[None]) for one in members])
    for order in (np.arange(80), np.arange(1, 80), np.resize([6, 7, 6, 7, 3, 2, 3], 80)):
        np.testing.assert_array_equal(sketch(0.5, members[order]), alone[order])


def test_vectors_are_float32_of_directions_times_levels_in_any_block_and_none_is_of_nobody():
    members, sketch = all_coalitions(10), raw(random_owners(2, n=10), seed=0, resolution=COARSE)
    assert len(members) > 3 * module.BLOCK
    together = sketch(0.5, members)
    alone = np.concatenate([sketch(0.5, one[None]) for one in members[::17]])
    np.testing.assert_array_equal(together[::17], alone)
    assert together.dtype == np.float32
    assert together.shape == (1023, 12 * 20)
    members[3] = False
    with pytest.raises(AssertionError, match="empty coalition"):
        sketch(0.5, members)


@settings(deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 600),
    st.sampled_from([1, 2, 50, 127, 128, 1_000, 32_767, 32_768]),
)
def test_the_same_numbers_are_counted_as_one_by_one(seed, count, levels):
    rng = np.random.default_rng(seed)
    reached = np.sort(rng.integers(0, levels + 1, size=(3, count)), axis=1)
    reached[:, -1] = levels
    found = _pass_levels(reached.astype(_type_up_to(levels)), levels)
    expected = [np.searchsorted(row, np.arange(levels), side="right") for row in reached]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("levels", "bits"), [(50, 8), (127, 8), (128, 16), (40_000, 32)])
def test_numbers_leave_their_highest_bit_free(levels, bits):
    assert 8 * _type_up_to(levels).itemsize == bits
    assert levels < 2 ** (bits - 1)
