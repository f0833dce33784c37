import numpy as np
import pytest

from dupre.game.coalitions import all_coalitions
from dupre.predictor import kernel_inputs
from dupre.predictor.kernel_inputs import Features

EVERY = all_coalitions(6)


def make_features():
    return Features(EVERY, np.arange(1, 7), lambda _eta, _p, members: members * np.pi)


def apart(a, b):
    """A distance that is no whole number."""
    x, y = a.sketch(0.5, 2), b.sketch(0.5, 2)
    return np.abs(x[:, None] - y).sum(axis=2)


def test_kept_distances_are_those_computed_whichever_were_kept_before(monkeypatch):
    monkeypatch.setattr(kernel_inputs, "TILE", 10)
    monkeypatch.setattr(kernel_inputs, "ALL_KEPT", 10)
    features, rng, asked = make_features(), np.random.default_rng(0), []

    def compute(a, b):
        asked.append(len(a))
        return apart(a, b)

    for _ in range(5):
        rows, columns = (np.sort(rng.permutation(len(EVERY))[:k]) for k in (8, 30))
        some, others = features[rows].keep(), features[columns]
        found = others.distances_to(some, "apart", compute)
        np.testing.assert_allclose(found, apart(others, some), rtol=1e-6)
    before = len(asked)
    features[rng.permutation(len(EVERY))[:5]].distances_to(some, "apart", compute)
    assert len(asked) == before


def test_distances_of_all_pairs_of_few_coalitions_are_computed_once():
    features, rng, asked = make_features(), np.random.default_rng(0), []

    def compute(a, b):
        asked.append(len(a))
        return apart(a, b)

    for _ in range(3):
        some, others = (features[rng.permutation(len(EVERY))[:k]] for k in (8, 30))
        found = some.distances_to(others, "apart", compute)
        np.testing.assert_array_equal(found, apart(some, others))
    assert asked == [len(EVERY)]


def test_what_is_not_kept_of_another_origin_or_without_a_hash_is_computed(monkeypatch):
    monkeypatch.setattr(kernel_inputs, "ALL_KEPT", 10)
    features, other = make_features(), make_features()
    some = features[np.arange(4)]
    np.testing.assert_array_equal(features.distances_to(some, "k", apart), apart(features, some))
    kept, foreign = some.keep(), other[np.arange(5)]
    np.testing.assert_array_equal(foreign.distances_to(kept, "k", apart), apart(foreign, kept))
    monkeypatch.setattr(kernel_inputs, "KEPT", 100)
    whole = features[np.arange(len(EVERY))]
    np.testing.assert_array_equal(whole.distances_to(kept, "k", apart), apart(whole, kept))

    features, times = make_features(), []
    for _ in range(2):
        assert features.remember([], lambda: len(times)) == len(times)
        assert features.remember("known", lambda: len(times)) == 0
        times.append(1)


@pytest.mark.parametrize("many", [2, 1000])
def test_vectors_of_some_of_some_are_theirs(monkeypatch, many):
    monkeypatch.setattr(kernel_inputs, "MANY", many)
    features = make_features()
    some = features[np.arange(3, 40)][np.array([5, 1])][:1]
    np.testing.assert_array_equal(some.members, EVERY[[8]])
    np.testing.assert_array_equal(some.sketch(0.5, 2), EVERY[[8]] * np.pi)
    assert some.origin[1].tolist() == [8]
