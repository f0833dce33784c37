import pytest

from dupre import InputError
from owners_and_games import Noisy, make_owners, smooth, value

THREE = make_owners(3)


class Seeded:
    """A utility with seeds that must not be trained."""

    def __init__(self, training_seed):
        self.training_seed = training_seed

    def __call__(self, members, *, repeat=0):
        pytest.fail(f"{members} was evaluated, repeat {repeat}")


class WithoutRepeat(Seeded):
    def __call__(self, members):
        pytest.fail(f"{members} was evaluated")


@pytest.mark.parametrize("empty", [None, 0.0])
@pytest.mark.parametrize(
    ("utility", "message"),
    [
        (3, r"utility must be callable\(members\) -> float, got 3"),
        (lambda: 1.0, r"the tuple of owner names as its only argument, but it takes \(\)"),
        (lambda one, other: 1.0, r"as its only argument, but it takes \(one, other\)"),
        (
            WithoutRepeat(lambda members, repeat: 1),
            r"utility\(members, repeat=0\), but it takes \(members\); let it take re",
        ),
        (
            Seeded(lambda members, repeat: "abc"),
            r"training_seed\(members, repeat\) of .* a whole number, got 'abc'",
        ),
        (
            Seeded(lambda members: 1),
            r"training_seed\(members, repeat\) of .*, but it failed: TypeError: ",
        ),
    ],
)
def test_a_utility_that_cannot_be_called_is_refused_before_a_training(utility, message, empty):
    with pytest.raises(InputError, match=message):
        value(THREE, utility, budget=7, empty=empty)


def test_any_callable_that_takes_the_names_can_be_used():
    for utility in (len, lambda members, weight=0.1: weight * len(members), lambda *names: 0.5):
        assert value(THREE, utility, budget=7).evaluated == 7
    assert value(THREE, Noisy(smooth(THREE), sigma=0.1), budget=7).evaluated == 7
