import pickle
from itertools import combinations
from math import floor

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.datasets import load_diabetes, load_digits, load_iris

import dupre
from dupre import InputError, Owners
from dupre.utility.describe import describe
from dupre.utility.model_free import DataVolume, InformationGain


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return Owners.from_arrays(X, y, np.arange(150) % 7 % 5)


def coalitions(owners):
    return [c for size in range(owners.n + 1) for c in combinations(owners.names, size)]


def encoded(owners, members):
    """The encoded rows of a coalition, dense."""
    values = owners.points.values
    values = values.toarray() if sparse.issparse(values) else values
    inside = np.isin(owners.owner, [owners.names.index(name) for name in members])
    return values[owners.points.index][inside]


def robust_volume(X, width):
    """Xu et al. 2021, Definition 3, literally, with cells counted from 0."""
    cells = {}
    for x in X:
        cells.setdefault(tuple(floor(entry / width) for entry in x), []).append(x)
    means = np.array([np.mean(rows, axis=0) for rows in cells.values()])
    alpha = 1 / (10 * len(cells))
    factor = np.prod([sum(alpha**p for p in range(len(r) + 1)) for r in cells.values()])
    return np.sqrt(np.linalg.det(means.T @ means)) * factor


@pytest.mark.parametrize("width", [3, 10])
def test_information_gain_is_half_a_log_determinant_however_it_is_computed(width):
    X, y = load_diabetes(return_X_y=True)
    for rows in (20, 442):  # fewer and more than would fill the owners' Gram matrices
        owners = Owners.from_arrays(X[:rows, :width], y[:rows], np.arange(rows) % 4)
        gain = InformationGain(owners, noise=0.5, prior=2.0)
        for members in coalitions(owners):
            Z = encoded(owners, members)
            exact = np.linalg.slogdet(np.eye(width) + 2.0 / 0.5 * Z.T @ Z)[1] / 2
            assert gain(members) == pytest.approx(exact, abs=1e-11)


def test_more_columns_than_rows_cost_no_larger_matrix_than_the_rows():
    X, y = load_digits(return_X_y=True)
    wide = np.hstack([X[:30] ** power for power in range(1, 40)])
    owners = Owners.from_arrays(sparse.csr_array(wide), y[:30], np.arange(30) % 3)
    gain = InformationGain(owners)
    for members in coalitions(owners)[1:]:
        Z = encoded(owners, members)
        exact = np.linalg.slogdet(np.eye(len(Z)) + Z @ Z.T)[1] / 2
        assert gain(members) == pytest.approx(exact, rel=1e-9)
    assert len(pickle.dumps(gain.to_send())) < 3 * 30 * 30 * 8


numbers = st.integers(-3, 3).map(float)


@settings(deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(5, 9), st.integers(1, 3)), elements=numbers))
def test_information_gain_is_monotone_submodular_and_never_negative(X):
    owners = Owners.from_arrays(X, np.arange(len(X)) % 2, np.arange(len(X)) % 4)
    gain = InformationGain(owners, noise=0.3)
    table = {frozenset(members): gain(members) for members in coalitions(owners)}
    assert table[frozenset()] == 0
    for large in table:
        for name in set(owners.names) - large:
            added = table[large | {name}] - table[large]
            assert added >= -1e-12
            for other in large:  # this suffices for all smaller coalitions
                small = large - {other}
                assert table[small | {name}] - table[small] >= added - 1e-12


def test_only_the_ratio_of_prior_and_noise_counts_and_all_must_be_positive(iris):
    one, other = InformationGain(iris, noise=0.1), InformationGain(iris, noise=1, prior=10)
    assert one(iris.names) == pytest.approx(other(iris.names), rel=1e-12)
    for wrong in ({"noise": 0}, {"prior": -1.0}, {"noise": "1"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            InformationGain(iris, **wrong)
    for width in (0, -0.1, np.nan, "0.1"):
        with pytest.raises(InputError, match="width"):
            DataVolume(iris, width=width)


def test_the_plain_volume_is_the_root_of_the_determinant(iris):
    volume = DataVolume(iris, width=None, log=False)
    for members in coalitions(iris)[1:]:
        Z = encoded(iris, members)
        assert volume(members) == pytest.approx(np.sqrt(np.linalg.det(Z.T @ Z)), rel=1e-9)


def thin_rows():
    X, y = load_iris(return_X_y=True)
    thin = sparse.csr_array(np.where(X > 2, X - 3.0, 0.0))
    return Owners.from_arrays(thin, y, np.arange(150) % 3)


@pytest.mark.parametrize("width", [0.05, 0.1, 0.5, 0.7])
def test_the_robust_volume_is_that_of_its_definition(iris, width):
    for owners in (iris, thin_rows()):
        volume, logarithm = (DataVolume(owners, width=width, log=log) for log in (False, True))
        for members in coalitions(owners)[1:]:
            exact = robust_volume(encoded(owners, members), width)
            assert volume(members) == pytest.approx(exact, rel=1e-9)
            assert logarithm(members) == pytest.approx(np.log1p(exact), rel=1e-12)


@settings(deadline=None)
@given(
    arrays(np.float64, (12, 2), elements=st.integers(-50, 50).map(float)),
    st.integers(1, 4),
    st.floats(0.01, 2.0),
)
def test_copies_hardly_increase_the_robust_volume(X, times, width):
    assume(np.linalg.matrix_rank(X - X[0]) == 2)
    copies = np.vstack([X, np.repeat(X, times, axis=0), X + np.array([1.0, -2.0])])
    owner = ["a"] * 12 + ["copy"] * 12 * times + ["other"] * 12
    owners = Owners.from_arrays(copies, np.arange(len(copies)) % 2, owner)
    volume, plain = DataVolume(owners, width=width, log=False), DataVolume(owners, width=None)
    alone = volume(("a",))
    cells = len(np.unique(np.floor(encoded(owners, ["a"]) / width), axis=0))
    bound = (1 - (10 * cells) ** -2.0) ** -cells
    assert volume(("copy",)) <= volume(("a", "copy")) * (1 + 1e-12)
    assert alone * (1 - 1e-9) <= volume(("a", "copy")) <= alone * bound * (1 + 1e-9)
    grown = np.expm1(plain(("a", "copy"))) / np.expm1(plain(("a",)))
    assert grown == pytest.approx(1 + times, rel=1e-6)  # (1 + times)^(columns / 2)


def test_levels_and_constant_columns_do_not_make_volumes_zero_but_flat_rows_do():
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X[:, :2], columns=["length", "width"])
    frame["kind"] = pd.Categorical.from_codes(np.arange(150) % 3, ["a", "b", "c"])
    frame["same"] = 1.0
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(150) % 7, "D")
    frame["target"], frame["holder"] = y, np.arange(150) % 4
    owners = Owners.from_frame(frame, owner="holder", target="target")
    volume = DataVolume(owners, width=None, log=False)
    for members in coalitions(owners)[1:]:
        spread = np.linalg.svd(encoded(owners, members), compute_uv=False)
        assert volume(members) == pytest.approx(np.prod(spread[:5]), rel=1e-9)  # 2 + 3 - 1 + 1
        assert spread[5] < 1e-12

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X[:10, 2] = X[:10, 0] - X[:10, 1]  # the first owner's rows are flat
    X[12:] -= X.sum(axis=0) / 28  # centred already, so that flat rows stay flat
    owner = ["flat"] * 10 + ["few"] * 2 + ["full"] * 28
    owners = Owners.from_arrays(X, np.arange(40) % 2, owner)
    assert np.linalg.matrix_rank(encoded(owners, ["flat"])) == 2
    for width in (None, 1e-6):
        for log in (True, False):
            volume = DataVolume(owners, width=width, log=log)
            assert volume(("flat",)) == volume(("few",)) == volume(()) == 0
            assert volume(("full",)) > 0


def test_a_volume_beyond_floats_needs_the_logarithm_and_rows_all_alike_are_refused():
    X = np.random.default_rng(0).normal(size=(3000, 200))
    owners = Owners.from_arrays(X, X[:, 0], np.arange(3000) % 2)
    Z = encoded(owners, owners.names)
    expected = np.linalg.slogdet(Z.T @ Z)[1] / 2
    assert DataVolume(owners, width=None)(owners.names) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(InputError, match="log=True"):
        DataVolume(owners, width=None, log=False)(owners.names)
    owners = Owners.from_arrays(np.ones((6, 2)), np.arange(6) % 2, np.arange(6) % 3)
    with pytest.raises(InputError, match="constant"):
        DataVolume(owners)
    assert InformationGain(owners)(owners.names) == 0


@pytest.mark.parametrize("make", [DataVolume, InformationGain])
def test_utilities_survive_pickling_are_sent_without_the_rows_and_refuse_other_owners(make, iris):
    utility = make(iris)
    assert utility(()) == 0
    with pytest.raises(InputError, match="unknown owner 'z'"):
        utility(("0", "z"))
    for other in (pickle.loads(pickle.dumps(utility)), utility.to_send()):
        assert [other(c[::-1]) for c in coalitions(iris)] == [utility(c) for c in coalitions(iris)]
    assert utility.to_send().owners is None
    assert utility.owners is iris
    X, y = load_iris(return_X_y=True)
    others = Owners.from_arrays(X + 1.0, y, iris.owner)
    with pytest.raises(InputError, match="other owners"):
        dupre.value(others, utility, budget=8, progress=False)


def test_fingerprints_tell_settings_and_scales_apart(iris):
    def mark(utility):
        return {name: part.digest for name, part in describe(utility).fingerprint.items()}

    again = Owners.from_arrays(iris.X.copy(), iris.y, iris.owner)
    wider = Owners.from_arrays(np.vstack([iris.X, [[9.0] * 4]]), [*iris.y, 0], [*iris.owner, 9])
    base = mark(DataVolume(iris))
    assert mark(DataVolume(again)) == base
    others = [DataVolume(iris, width=0.2), DataVolume(iris, width=None), DataVolume(wider)]
    others += [DataVolume(iris, log=False), InformationGain(iris)]
    others += [InformationGain(iris, noise=2), InformationGain(iris, prior=2)]
    assert len({str(mark(utility)) for utility in others} | {str(base)}) == len(others) + 1
