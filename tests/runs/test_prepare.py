import sys

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from dupre.notes import warnings
from prepared_runs import ROWS, prepare, table


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


SPY = """
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline

SEEN = set()

class Spy(DummyClassifier):
    def fit(self, X, y):
        SEEN.add(tuple(X.columns) if hasattr(X, "columns") else X.shape[1])
        return super().fit(X, y)

    def predict(self, X):
        SEEN.add(tuple(X.columns) if hasattr(X, "columns") else X.shape[1])
        return super().predict(X)

pipeline = make_pipeline(Spy())
"""


@pytest.mark.parametrize("validation", ["", "validation.csv"])
@pytest.mark.parametrize("name", ["pipeline", "Spy"])
def test_no_model_sees_a_column_that_is_dropped(place, name, validation):
    (place / "spy_on_fit.py").write_text(SPY)
    frame = table(z=table()["y"] * 7.5, same=1)
    frame.to_csv("validation.csv", index=False)
    how = {"model": f"spy_on_fit:{name}", "validation": validation, "drop": ("z", "day", "k")}
    try:
        run = prepare(frame, **how)
        run.utility(("site 0", "site 2"))
        (seen,) = sys.modules["spy_on_fit"].SEEN
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules.pop("spy_on_fit"))
    assert seen == ("x", "same") if name == "pipeline" else seen == 1


def test_copies_keep_the_same_rows_and_are_scored_once():
    frame = table(day=np.arange(ROWS) % 7)
    copy = frame[frame["who"] == "site 0"].assign(who="copy").sample(frac=1, random_state=0)
    both = pd.concat([frame, copy], ignore_index=True)
    both["note"] = [f"free text {i}" for i in range(len(both))]  # no model is given it
    alone, run = prepare(frame), prepare(both)
    first, second = map(run.owners.names.index, ("site 0", "copy"))
    assert np.array_equal(run.owners.contents[first], run.owners.contents[second])
    assert len(run.utility.y_val) == len(alone.utility.y_val) == ROWS
    assert not warnings(run.notes)
