"""Runs of a small table, prepared but not trained."""

import numpy as np
import pandas as pd

import dupre.runs.prepare
from dupre.spec import spec_of

ROWS = 240


def table(**columns):
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    frame = pd.DataFrame({"x": x, "k": rng.choice(["n", "s"], ROWS)})
    frame["day"] = pd.date_range("2024-01-01", periods=ROWS).astype(str)
    frame["who"] = [f"site {i % 4}" for i in range(ROWS)]
    return frame.assign(**{"y": x + rng.normal(size=ROWS) > 0, **columns})


def prepare(frame, **settings):
    frame.to_csv("t.csv", index=False)
    return prepare_from(path="t.csv", **settings)


def prepare_from(**settings):
    return dupre.runs.prepare.prepare(spec_of(owner="who", target="y", **settings))
