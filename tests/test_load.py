"""Memory is a small multiple of the data; `python benchmarks/engine.py --load` has large sizes."""

import tracemalloc

import numpy as np
import pytest

import dupre
from dupre.data.sketch import Resolution, count, project
from dupre.game.estimators import stratified, structured
from dupre.game.semivalues import shapley
from dupre.tables.formats import read_csv
from dupre.training.evaluation import Evaluation, Training
from stores import open_store

ROWS = 10_000
X = np.random.default_rng(0).random((ROWS, 50))
Y = np.where(X[:, 0] > 0.5, "yes", "no")


def peak(work):
    """The most memory that Python and NumPy held during work, in bytes, and what came of it."""
    tracemalloc.start()
    try:
        found = work()
        return tracemalloc.get_traced_memory()[1], found
    finally:
        tracemalloc.stop()


def test_owners_and_their_digests_take_a_few_copies_of_the_rows():
    most, owners = peak(lambda: dupre.Owners.from_arrays(X, Y, np.arange(ROWS) % 4))
    assert most < 1.5 * X.nbytes  # a few thousand rows at a time
    assert peak(lambda: owners.row_contents)[0] < 3.5 * X.nbytes
    resolution = Resolution(directions=50)

    def sketch():
        projections = project(owners, seed=0, resolution=resolution)
        return count(projections.along(0.5), owners.owner, resolution=resolution)

    projected = 8 * ROWS * resolution.directions
    assert peak(sketch)[0] < 2.5 * projected


@pytest.mark.parametrize("estimator", [stratified, structured])
def test_contributions_take_little_more_than_the_weights_they_become(estimator):
    n = 60
    rng = np.random.default_rng(0)
    most, weights = peak(lambda: estimator(shapley, n, 4 * n * n, rng))
    assert most < 3.5 * weights.W.nbytes


def test_a_csv_file_and_an_open_store_take_a_few_times_their_size(tmp_path):
    path = tmp_path / "rows.csv"
    np.savetxt(path, X, "%.9f", ",", header=",".join(f"x{i}" for i in range(50)), comments="")
    size = path.stat().st_size
    most, frame = peak(lambda: read_csv(path))
    assert frame.shape == X.shape
    assert most < 3 * size + frame.memory_usage().sum()

    path, resampled, repeats = tmp_path / "run.sqlite", np.zeros(200), 1_000
    trainings = [Training(("a",), repeat) for repeat in range(repeats)]
    with open_store(path) as store:
        store.record([Evaluation(t, 0.5, resampled=resampled) for t in trainings])
    assert path.stat().st_size < 1.5 * repeats * resampled.nbytes
    most, store = peak(lambda: open_store(path))
    store.close()
    assert most < 2 * repeats * resampled.nbytes
