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


def test_kept_distances_are_those_computed_whichever_were_kept_before(monkeypatch):
    monkeypatch.setattr(module, "TILE", 10)
    monkeypatch.setattr(module, "ALL_KEPT", 10)
    features, rng, asked = make_features(), np.random.default_rng(0), []
    for few in (8, 8, 5, 11, 11):
        rows, columns = (np.sort(rng.permutation(len(EVERY))[:k]) for k in (few, 30))
        some, others = features[rows].keep(), features[columns]
        found = others.distances_to(some, "apart", note(asked))
        np.testing.assert_allclose(found, apart(others, some), rtol=1e-6)
    before = len(asked)
    features[rng.permutation(len(EVERY))[:5]].distances_to(some, "apart", note(asked))
    assert len(asked) == before


def test_distances_of_an_interrupted_computation_are_not_taken_as_known(monkeypatch):
    monkeypatch.setattr(module, "ALL_KEPT", 10)
    features, interrupted = make_features(), iter([True])

    def compute(a, b):
        if next(interrupted, False):
            raise KeyboardInterrupt
        return apart(a, b)

    whole, some = features[np.arange(len(EVERY))], features[np.arange(8)].keep()
    with pytest.raises(KeyboardInterrupt):
        whole.distances_to(some, "apart", compute)
    found = whole.distances_to(some, "apart", compute)
    np.testing.assert_allclose(found, apart(whole, some), rtol=1e-6)


def test_distances_of_two_kernels_that_are_asked_for_in_turn_are_computed_once(monkeypatch):
    monkeypatch.setattr(module, "ALL_KEPT", 10)
    features, asked = make_features(), []
    some = features[np.arange(8)].keep()
    for start in range(0, 60, 20):
        for key in ("one", "other"):
            features[np.arange(start, start + 20)].distances_to(some, key, note(asked))
    assert asked == [(len(EVERY), 8)] * 2
    monkeypatch.setattr(module, "KEPT", 16 * len(EVERY))
    features[np.arange(20)].distances_to(some, "third", note(asked))
    assert asked[2:] == [(20, 8)]  # there is no room for a third, and both others are in use
    features[np.arange(20)].distances_to(features[np.arange(1, 9)].keep(), "third", note(asked))
    assert asked[3:] == [(len(EVERY), 8)]  # the others served other coalitions


def test_distances_of_all_pairs_of_few_coalitions_are_computed_once():
    features, rng, asked = make_features(), np.random.default_rng(0), []
    for _ in range(3):
        some, others = (features[rng.permutation(len(EVERY))[:k]] for k in (8, 30))
        found = some.distances_to(others, "apart", note(asked))
        np.testing.assert_array_equal(found, apart(some, others))
    assert asked == [(len(EVERY), len(EVERY))]


def test_what_is_not_kept_of_another_origin_or_without_a_hash_is_computed(monkeypatch):
    monkeypatch.setattr(module, "ALL_KEPT", 10)
    features, other = make_features(), make_features()
    some = features[np.arange(4)]
    np.testing.assert_array_equal(features.distances_to(some, "k", apart), apart(features, some))
    kept, foreign = some.keep(), other[np.arange(5)]
    np.testing.assert_array_equal(foreign.distances_to(kept, "k", apart), apart(foreign, kept))
    monkeypatch.setattr(module, "KEPT", 100)
    whole = features[np.arange(len(EVERY))]
    np.testing.assert_array_equal(whole.distances_to(kept, "k", apart), apart(whole, kept))

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
