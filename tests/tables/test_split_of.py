"""A column of a table as times, however they are written and whether models are given it or not."""

import numpy as np
import pandas as pd
import pytest

from dupre import InputError
from dupre.spec import Data, Utility
from dupre.tables.folds import split_of

DAYS = pd.date_range("2023-11-20", periods=40, freq="3D")


def times(cells, *, numbers=()):
    data = Data("t.csv", owner="o", target="y", drop=("day",), numbers=numbers)
    frame = pd.DataFrame({"o": "A", "y": 1, "day": cells})
    return split_of(frame, Utility(folds_in_time="day"), data).in_time


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])
def test_times_are_read_however_they_are_written(form):
    shuffled = np.random.default_rng(0).permutation(40)
    found = times(DAYS.strftime(form).to_numpy()[shuffled])
    np.testing.assert_array_equal(np.argsort(found), np.argsort(shuffled))


def test_numbers_and_dates_stay():
    np.testing.assert_array_equal(times(np.arange(40)), np.arange(40))
    np.testing.assert_array_equal(times(DAYS), DAYS.to_numpy())


def test_what_has_no_order_or_two_is_refused():
    with pytest.raises(InputError, match="column 'day' holds texts such as 'Mar 2024'"):
        times(["Mar 2024", "Apr 2024"] * 20)
    unclear = ["03/04/2024", "05/06/2024"] * 20
    with pytest.raises(InputError, match="'day=day-first'"):
        times(unclear)
    first = times(unclear, numbers=("day=day-first",))
    assert pd.Timestamp(first[0]) == pd.Timestamp("2024-04-03")
