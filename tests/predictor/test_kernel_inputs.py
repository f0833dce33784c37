import numpy as np
import pytest

from dupre.game.coalitions import all_coalitions
from dupre.predictor import kernel_inputs as module
from dupre.predictor.kernel_inputs import Features

EVERY = all_coalitions(6)


def make_features():
    return Features(EVERY, np.arange(1, 7), turn_to_vectors)


def turn_to_vectors(_eta, _p, members):
    return members * np.pi


def apart(a, b):
    """A distance that is no whole number."""
    x, y = a.sketch(0.5, 2), b.sketch(0.5, 2)
    return np.abs(x[:, None] - y).sum(axis=2)


def note(asked):
    """The same distance, which notes the shapes it is asked for."""

    def compute(a, b):
        asked.append((len(a), len(b)))
        return apart(a, b)

    return compute


def test_distances_of_all_pairs_of_few_coalitions_are_computed_once():
    features, rng, asked = make_features(), np.random.default_rng(0), []
    for _ in range(3):
        some, others = (features[rng.permutation(len(EVERY))[:k]] for k in (8, 30))
        found = some.distances_to(others, "apart", note(asked))
        np.testing.assert_array_equal(found, apart(some, others))
    assert asked == [(len(EVERY), len(EVERY))]


def test_what_is_of_very_many_of_another_origin_or_without_a_hash_is_computed(monkeypatch):
    features, other = make_features(), make_features()
    some, foreign = features[np.arange(4)], other[np.arange(5)]
    np.testing.assert_array_equal(foreign.distances_to(some, "k", apart), apart(foreign, some))
    monkeypatch.setattr(module, "ALL_KEPT", 10)
    whole, asked = features[np.arange(len(EVERY))], []
    for _ in range(2):
        found = whole.distances_to(some, "k", note(asked))
        np.testing.assert_array_equal(found, apart(whole, some))
    assert asked == [(len(EVERY), 4)] * 2

    features, times = make_features(), []
    for _ in range(2):
        assert features.remember([], lambda: len(times)) == len(times)
        assert features.remember("known", lambda: len(times)) == 0
        times.append(1)


@pytest.mark.parametrize("many", [2, 1000])
def test_vectors_of_some_of_some_are_theirs(monkeypatch, many):
    monkeypatch.setattr(module, "MANY", many)
    features = make_features()
    some = features[np.arange(3, 40)][np.array([5, 1])][:1]
    np.testing.assert_array_equal(some.members, EVERY[[8]])
    np.testing.assert_array_equal(some.sketch(0.5, 2), EVERY[[8]] * np.pi)
    assert some.origin[1].tolist() == [8]
