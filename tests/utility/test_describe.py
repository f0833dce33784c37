import math
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import dupre
from dupre import InputError
from dupre.utility.describe import describe
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
        assert value(THREE, utility, budget=7).facts.evaluated == 7
    assert value(THREE, Noisy(smooth(THREE), sigma=0.1), budget=7).facts.evaluated == 7


class Stated:
    """A utility that says all that a utility may say."""

    bounds, floor, uses_validation, seeded = (None, 1), 0.25, False, False

    def training_seed(self, members, repeat):
        return 10 * len(members) + repeat

    def is_trained(self, members):
        return len(members) > 1


def test_a_plain_callable_says_nothing_and_another_what_it_states():
    names = ("bounds", "floor", "takes_seed", "seeded", "uses_validation", "may_resample")
    plain, stated = describe(len), describe(Stated())
    found = [tuple(getattr(traits, name) for name in names) for traits in (plain, stated)]
    assert found[0] == ((-math.inf, math.inf), None, False, False, True, True)
    assert found[1] == ((-math.inf, 1.0), 0.25, True, False, False, False)
    assert plain.training_seed(("a",), 0) is plain.deterministic is plain.empty is None
    assert [traits.is_trained(("a",)) for traits in (plain, stated)] == [True, False]
    assert stated.training_seed(("a", "b"), 3) == 23


class ByName(dupre.ModelUtility):
    """A subclass whose seeds depend on names."""

    def training_seed(self, members, repeat=0):
        return len(members[0]) + repeat


class Called(dupre.ModelUtility):
    """A subclass that may score by names."""

    def __call__(self, members, *, repeat=0):
        return float("0" in members) + repeat


class Named(dupre.ModelUtility):
    name = "the same trainings"


@pytest.mark.parametrize(
    ("kind", "model", "expected"),
    [
        (dupre.ModelUtility, LinearRegression(), (True, False, True)),
        (dupre.ModelUtility, DecisionTreeRegressor(), (True, True, False)),
        (Named, LinearRegression(), (True, False, True)),
        (ByName, LinearRegression(), (False, False, False)),
        (Called, LinearRegression(), (False, False, False)),
    ],
)
def test_a_model_knows_more(kind, model, expected):
    rng = np.random.default_rng(0)
    validation = rng.normal(size=(40, 2)), rng.normal(size=40)
    utility = kind(model, THREE, validation=validation, resamples=30)
    found = describe(utility)
    assert (found.by_content, found.seeded, found.deterministic) == expected
    assert (found.resamples, found.validation_rows, found.may_resample) == (30, 40, True)
    assert found.empty == utility.empty
    np.testing.assert_array_equal(found.empty.resampled, utility.score_of_no_data().resampled)
    assert not describe(kind(model, THREE, validation=validation, resamples=0)).may_resample


def test_nobody_else_probes_a_utility():
    source = Path(dupre.__file__).parent
    probe = re.compile(
        r"(hasattr|getattr|isinstance)\((self\.|run\.|traits\.)?utility,(?! \(Mapping)"
    )
    found = {path for path in source.rglob("*.py") if probe.search(path.read_text())}
    assert {path.relative_to(source).parts[0] for path in found} == {"utility"}
