import numpy as np
import pytest

from dupre.utility.score import Score, draw_resamples, find_equal_rows

RNG = np.random.default_rng(0)
DIFFERENT = RNG.integers(2**63, size=(100, 2), dtype=np.uint64)


@pytest.mark.parametrize("times", [np.full(100, 3), np.repeat([1, 2], 50)])
def test_rows_repeated_more_evenly_than_by_chance_are_drawn_together(times):
    contents = np.repeat(DIFFERENT, times, axis=0)[RNG.permutation(times.sum())]
    equal = find_equal_rows(contents)
    assert equal.repeated == times.sum() - 100
    assert equal.counted == 100
    once, often = draw_resamples(DIFFERENT, 20), draw_resamples(contents, 20)
    np.testing.assert_array_equal(often.counts, once.counts)
    same = (contents[:, None] == contents).all(axis=2)
    np.testing.assert_array_equal(often.group[:, None] == often.group, same)


@pytest.mark.parametrize(("kinds", "rows"), [(4, 50), (8, 1_000), (50, 100), (1_000, 100)])
def test_rows_that_are_equal_by_chance_are_drawn_one_by_one(kinds, rows):
    some = RNG.integers(2**63, size=(kinds, 2), dtype=np.uint64)
    together = 0
    for _ in range(200):
        contents = some[RNG.integers(kinds, size=rows)]
        equal = find_equal_rows(contents)
        assert equal.repeated == rows - len(np.unique(contents[:, 0]))
        together += equal.counted < rows
    assert together <= 0.03 * 200
    assert draw_resamples(contents, 2).counts.shape == (2, rows)


def test_rows_of_a_balanced_design_count_each():
    equal = find_equal_rows(np.tile(DIFFERENT[:8], (25, 1)))
    assert (equal.counted, equal.repeated) == (200, 192)


def test_a_row_repeated_alone_counts_as_one():
    assert find_equal_rows(np.tile(DIFFERENT[:1], (20, 1))).counted == 1
    assert find_equal_rows(np.tile(DIFFERENT[:2], (20, 1))).counted == 2
    assert find_equal_rows(DIFFERENT[:1]).counted == 1


def test_resamples_of_one_row_are_not_known():
    one, two = (Score.from_rows(np.arange(m) % 2) for m in (1, 2))
    assert np.isnan(one.resampled).all()
    assert len(one.resampled) == len(two.resampled) == 200
    assert np.isfinite(two.resampled).all()
    assert (one, two) == (0, 0.5)
