import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dupre
from dupre import InputError
from dupre.checks import LARGEST, as_utility, finite, positive, takes, whole
from dupre.runs.external import read_results
from dupre.training.evaluation import Training, evaluate
from owners_and_games import make_owners


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_pass_unchanged(number):
    assert finite(number, "x").hex() == number.hex()


@pytest.mark.parametrize("number", [np.nan, np.inf, None, "1", [1], 10**400, 1j, np.complex128(1)])
def test_what_is_no_finite_number_is_named_with_what_came(number):
    for check in (finite, positive):
        with pytest.raises(InputError, match="timeout must be a finite number, got") as caught:
            check(number, "timeout")
        assert repr(number) in str(caught.value)


def test_a_utility_that_cannot_be_squared_is_refused_wherever_it_comes_from(tmp_path):
    assert as_utility(-LARGEST) ** 2 < np.inf
    valuer = dupre.Valuer(make_owners(2), empty=0.0)
    (tmp_path / "results.csv").write_text('coalition,utility\n"[""A""]",1e151\n')
    for pay in (
        lambda: as_utility(-1e151),
        lambda: valuer.record(("owner00",), 1e151),
        lambda: dupre.value(make_owners(2), len, budget=1, empty=1e151),
        lambda: read_results(tmp_path / "results.csv", ("A",)),
        lambda: dupre.Score(1e151),
    ):
        with pytest.raises(InputError, match="must lie between -1e"):
            pay()
    assert evaluate(lambda members: 1e151, Training(("A",))).failure.startswith("InputError")
    with pytest.raises(InputError, match=r"it is dupre.Score\(utility, resampled\)"):
        as_utility(np.full(200, 0.5))


def test_positive_and_whole_numbers_are_checked():
    assert [positive(number, "x") for number in (5e-324, 1, np.float32(0.5))] == [5e-324, 1, 0.5]
    for number in (0, -0.0, -1e-300, -3):
        with pytest.raises(InputError, match=f"timeout must be positive, got {number!r}"):
            positive(number, "timeout")

    assert type(whole(np.int64(3), "jobs", least=3)) is int
    for number in (2, 3.0, True, "3", None):
        with pytest.raises(InputError, match="jobs must be a whole number of at least 3, got"):
            whole(number, "jobs", least=3)


def test_what_a_callable_takes_is_told_by_its_signature_if_it_has_one():
    assert takes(lambda a, *, b=0: 0, 1)
    assert takes(lambda a, *, b=0: 0, 1, b=2)
    assert not takes(lambda a, *, b=0: 0)
    assert not takes(lambda a: 0, 1, b=2)
    assert takes(max, 1, b=2)  # it has none
