from itertools import permutations

import numpy as np
import pytest

from dupre import Score
from dupre.game.coalitions import from_names
from dupre.game.observed import observe

NAMES = ("a", "b", "c")


def same_rows(rows):
    """Owner c holds the same rows as a and b together: {c} and {a, b} are one."""
    return [(row @ [1, 2, 3]).tobytes() for row in rows]


def rows(*coalitions):
    return [from_names(members, NAMES).tolist() for members in coalitions]


def test_the_order_of_arrival_is_forgotten():
    trainings = {("c",): [0.5], ("a",): [0.2], ("a", "b"): [0.4, 0.6], NAMES: [0.9]}
    failures = {("b", "c"): "late", ("b",): "memory"}
    found = [
        observe(NAMES, dict(some), dict(reversed(failures.items())), empty=0.1, same=same_rows)
        for some in permutations(trainings.items())
    ]
    for one in found:
        assert one.members.tolist() == found[0].members.tolist()
        assert one.utilities.tolist() == found[0].utilities.tolist()
        assert (one.scores, one.names) == (found[0].scores, found[0].names)
        assert one.failed.tolist() == rows(("b",), ("b", "c"))
        assert one.reasons == ("memory", "late")
        assert (len(one), one.evaluated, one.empty) == (3, 5, 0.1)


def test_one_evaluation_serves_coalitions_that_are_one_and_the_same_number_counts_once():
    def scores(trainings, failures=None):
        found = observe(NAMES, trainings, failures or {}, empty=0.0, same=same_rows)
        return found, dict(zip(found.names, found.scores, strict=True))

    both = (("a", "b"), ("c",))
    found, by_names = scores({("c",): [0.5], ("a", "b"): [0.4, 0.6]}, {("c",): "no"})
    assert by_names == {both: (0.4, 0.6, 0.5)}
    assert found.members.tolist() == rows(("c",))  # the fewest owners stand for all
    assert found.utilities == pytest.approx([0.5])
    assert not found.failed.size
    assert scores({("c",): [0.5], ("a", "b"): [0.5]})[1] == {both: (0.5,)}
    assert scores({("c",): [0.5], ("a", "b"): [0.5, 0.5]})[1] == {both: (0.5,) * 3}


def test_a_floor_raises_scores_resamples_and_no_data_and_what_was_scored_is_kept():
    low, fine = Score(-3.0, [-4.0, 2.0]), Score(0.5, [0.25, 0.75])
    trainings = {("a",): [low, fine], ("b",): [fine]}
    found = observe(NAMES, trainings, {}, empty=Score(-1.0, [-2.0, 1.0]), floor=0.0)
    assert found.members.tolist() == rows(("b",), ("a",))
    assert found.scores == ((0.5,), (0.0, 0.5))
    assert found.scored == ((0.5,), (-3.0, 0.5))
    assert found.utilities.tolist() == [0.5, 0.25]
    assert found.raised.tolist() == [False, True]
    assert found.empty == 0.0
    assert found.empty_resampled.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(found.deviations, [[-0.25, 0.25], [-0.125, 1.125]])
    raised = observe(NAMES, {("a",): [low.at_least(0.0)]}, {}, empty=0.0)  # by the utility itself
    assert (raised.scores, raised.scored) == (((0.0,),), ((-3.0,),))


@pytest.mark.parametrize("other", [0.5, Score(0.5, [0.1, 0.2, 0.3])])
def test_deviations_are_known_if_every_training_knows_the_same_resamples(other):
    fine = Score(0.5, [0.25, 0.75])
    for trainings in ({("a",): [fine], ("b",): [other]}, {("a",): [fine, other]}):
        found = observe(NAMES, trainings, {}, empty=0.0)
        assert found.deviations is None
    assert observe(NAMES, {}, {}, empty=0.0).deviations is None
