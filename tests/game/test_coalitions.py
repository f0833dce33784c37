from math import ceil, comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dupre.errors import InputError
from dupre.game import coalitions
from dupre.game.coalitions import every_of_size, keys, random_of_sizes, sample_of_size

NAMES = ("ada", "bob", "cy", "dee")

rows_of = st.integers(1, 130).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=8)
)


@pytest.mark.parametrize("n", [1, 3, 8])
def test_row_c_of_all_coalitions_holds_the_binary_digits_of_c_plus_one(n):
    every = coalitions.all_coalitions(n)
    assert every.dtype == bool
    assert every.shape == (2**n - 1, n)
    assert (every @ 2 ** np.arange(n)).tolist() == list(range(1, 2**n))
    most = coalitions.MAX_OWNERS_ENUMERATED
    with pytest.raises(InputError, match=f"{2 ** (most + 1) - 1:,} rows; expected at most {most}"):
        coalitions.all_coalitions(most + 1)


@settings(deadline=None, max_examples=20)
@given(rows_of)
def test_keys_are_equal_exactly_for_equal_rows(rows):
    members = np.array(rows, dtype=bool)
    of_row = keys(members)
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            assert (of_row[i] == of_row[j]) == (first == second)
    base = np.random.default_rng(0).random(100) < 0.5  # all single flips of 100 owners
    flipped = base ^ np.eye(100, dtype=bool)
    assert len(set(keys(np.vstack([base, flipped])))) == 101


@settings(deadline=None, max_examples=20)
@given(rows_of)
def test_packed_rows_sort_as_rows(rows):
    order = np.argsort(coalitions.pack(np.array(rows, dtype=bool)), kind="stable")
    assert [rows[i] for i in order] == sorted(rows)


def test_a_coalition_follows_its_complement_if_that_is_there():
    half = np.random.default_rng(0).random((50, 11)) < 0.5
    half = half[np.unique(half ^ half[:, :1], axis=0, return_index=True)[1]]
    members = np.random.default_rng(1).permutation(np.concatenate([half, ~half[:20]]))
    order = coalitions.order_by_complement(members)
    assert sorted(order.tolist()) == list(range(len(members)))
    pairs = np.all(members[order][1:] != members[order][:-1], axis=1)
    assert pairs.sum() == 20


def test_names_and_rows_are_inverse_to_each_other_and_shown_in_one_printable_line():
    for row in coalitions.all_coalitions(4):
        np.testing.assert_array_equal(
            coalitions.from_names(coalitions.to_names(row, NAMES), NAMES), row
        )
    assert coalitions.to_names(coalitions.from_names(["dee", "bob", "ada"], NAMES), NAMES) == (
        "ada",
        "bob",
        "dee",
    )
    format_members = coalitions.format_members

    assert format_members(("ada", "名前")) == "{ada, 名前}"
    assert format_members(()) == "{}"
    hostile = format_members(("two\nlines", "\x1b[31mred", "tab\there"))
    assert hostile.isprintable()
    assert hostile == r"{two\nlines, \x1b[31mred, tab\there}"
    assert all(coalitions.printable(name) == name for name in NAMES)


def test_a_coalition_that_names_no_set_of_owners_is_refused():
    for coalition, message in (
        (("ada", "eve"), "unknown owner 'eve'"),
        ((), "at least one owner, got none"),
        ("ada", r"write \('ada',\)"),
        (("ada", "bob", "ada"), "twice"),
    ):
        with pytest.raises(InputError, match=message):
            coalitions.from_names(coalition, NAMES)


@pytest.mark.parametrize(
    ("n", "size", "count"),
    [
        (6, 3, 20),  # enumerates: all of them
        (6, 3, 15),  # enumerates: most of them
        (6, 3, 4),  # draws
        (12, 1, 12),
        (30, 1, 30),  # draws all: too many owners to enumerate
        (30, 29, 20),
        (100, 50, 40),
    ],
)
def test_samples_are_distinct_of_the_asked_size_and_follow_the_generator(n, size, count):
    sample = sample_of_size(n, size, count, np.random.default_rng(3))
    assert sample.shape == (count, n)
    assert sample.dtype == bool
    assert (sample.sum(axis=1) == size).all()
    assert len(set(keys(sample))) == count
    if count in (4, 15):
        again, other = (sample_of_size(n, size, count, np.random.default_rng(s)) for s in (3, 1))
        np.testing.assert_array_equal(sample, again)
        assert keys(sample) != keys(other)


@pytest.mark.parametrize("count", [2, 7])  # draws, enumerates
def test_every_coalition_of_the_size_is_sampled_equally_often(count):
    rng = np.random.default_rng(0)
    repeats, total = 2000, comb(5, 2)
    samples = np.concatenate([sample_of_size(5, 2, count, rng) for _ in range(repeats)])
    _, seen = np.unique(samples, axis=0, return_counts=True)
    share = count / total
    assert len(seen) == total
    # Six standard deviations of a binomial count.
    assert np.abs(seen - repeats * share).max() < 6 * np.sqrt(repeats * share * (1 - share))


def test_samples_of_more_than_there_are_are_refused_and_of_none_boolean():
    with pytest.raises(InputError, match="there are 10 coalitions of 2 of 5 owners, asked for 11"):
        sample_of_size(5, 2, 11, np.random.default_rng(0))
    assert sample_of_size(5, 2, 0, np.random.default_rng(0)).dtype == bool


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_every_of_size_is_all_coalitions_of_that_size(n):
    every = coalitions.all_coalitions(n)
    for size in range(1, n + 1):
        rows = every_of_size(n, size)
        assert rows.dtype == bool
        assert rows.shape == (comb(n, size), n)
        assert set(keys(rows)) == set(keys(every[every.sum(axis=1) == size]))
    np.testing.assert_array_equal(every_of_size(4, 0), [[False] * 4])
    np.testing.assert_array_equal(every_of_size(300, 1), np.eye(300, dtype=bool))
    assert set(keys(every_of_size(300, 299))) == set(keys(~np.eye(300, dtype=bool)))


@settings(deadline=None, max_examples=40)
@given(n=st.integers(1, 70), draws=st.integers(0, 30), seed=st.integers(0, 10**6))
def test_random_coalitions_have_the_sizes_asked_for_and_leave_out_who_is_told(n, draws, seed):
    rng = np.random.default_rng(seed)
    sizes, but = rng.integers(0, n + 1, draws), rng.integers(0, n, draws)
    rows = random_of_sizes(n, sizes, rng)
    assert rows.shape == (draws, n)
    assert rows.dtype == bool
    np.testing.assert_array_equal(rows.sum(axis=1), sizes)
    fewer = np.minimum(sizes, n - 1)
    rows = random_of_sizes(n, fewer, rng, but=but)
    np.testing.assert_array_equal(rows.sum(axis=1), fewer)
    assert not rows[np.arange(draws), but].any()


def uniform(rows, total):
    """Whether each of `total` coalitions is seen as often as any other."""
    _, seen = np.unique(rows, axis=0, return_counts=True)
    assert len(seen) == total
    expected = len(rows) / total
    z = (seen - expected) / np.sqrt(expected * (1 - 1 / total))
    return np.abs(z).max() < norm.isf(1e-4 / 2 / total)


def test_random_coalitions_of_a_size_are_equally_likely():
    rng = np.random.default_rng(0)
    sizes = np.tile([2, 3, 5], 3000)
    rows = random_of_sizes(6, sizes, rng)
    for size in (2, 3, 5):
        assert uniform(rows[sizes == size], comb(6, size))
    without = random_of_sizes(6, sizes, rng, but=np.full(9000, 4))
    assert uniform(without[sizes == 2], comb(5, 2))
    assert uniform(without[sizes == 3], comb(5, 3))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_cover_has_every_owner_in_one_coalition_and_out_of_another(data):
    n = data.draw(st.integers(2, 60))
    size = data.draw(st.integers(1, n - 1))
    rows = coalitions.random_cover(n, size, np.random.default_rng(data.draw(st.integers(0, 10**6))))
    assert rows.dtype == bool
    assert rows.shape == (ceil(n / min(size, n - size)), n)
    assert (rows.sum(axis=1) == size).all()
    assert rows.any(axis=0).all()
    assert not rows.all(axis=0).any()


@pytest.mark.parametrize(("n", "size"), [(5, 2), (5, 3), (6, 2), (6, 4), (7, 3)])
def test_every_row_of_a_cover_is_any_coalition_of_its_size(n, size):
    rng = np.random.default_rng(0)
    covers = np.stack([coalitions.random_cover(n, size, rng) for _ in range(3000)])
    for row in range(covers.shape[1]):
        assert uniform(covers[:, row], comb(n, size))


def test_whoever_is_in_a_row_of_a_cover_meets_all_others_equally_often():
    # What means over a cover rest on, also where the last row starts over.
    rng = np.random.default_rng(1)
    covers = np.concatenate([coalitions.random_cover(7, 3, rng) for _ in range(4000)])
    met = covers[covers[:, 0]][:, 1:]
    share = 2 / 6
    z = (met.mean(axis=0) - share) / np.sqrt(share * (1 - share) / 4000)  # at least once a cover
    assert np.abs(z).max() < norm.isf(1e-4 / 2 / 6)


def test_an_owner_is_found_by_its_number_alone_unless_two_have_it():
    names = ("StoreID 7", "StoreID 17", "Shop 17", "8", "Store 8")
    assert coalitions.find_owner("7", names) == "StoreID 7"
    assert coalitions.find_owner(" 8", names) == "8"
    for name in ("17", "9", "StoreID"):
        with pytest.raises(InputError, match="unknown owner"):
            coalitions.find_owner(name, names)
