"""Tables for tests of the command, and what such tests do with them."""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

import dupre
from commands import run

WINE = ("wine.csv", "--owner", "winery", "--target", "cultivar")

FEW = (*WINE, "--folds", "2")
"""Two folds take a fifth of the time of the default, which plans are tested with."""

BOTH = ("--semivalue", "shapley", "--semivalue", "banzhaf")

ROLES = ("--owner", "who", "--target", "y")


def wine():
    """Five wineries of 178 bottles, with gaps, categories, dates and a column of no use."""
    frame = load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"})
    rng = np.random.default_rng(0)
    frame["winery"] = rng.choice(["Alba", "Barolo", "Chianti", "Dolce", "Etna"], len(frame))
    etna = frame["winery"] == "Etna"
    frame.loc[etna, "cultivar"] = rng.permutation(3).repeat(60)[: etna.sum()]
    frame["region"] = rng.choice(["north", "south", None], len(frame))
    frame.loc[::9, "ash"] = np.nan
    frame["picked"] = pd.date_range("2020-01-01", periods=len(frame)).astype(str)
    frame["note"] = [f"bottle {i}" for i in range(len(frame))]
    return frame


def result(finished):
    return dupre.Valuation.from_json((finished / "dupre-wine/result.json").read_text())


def good(rows=60):
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows)
    return pd.DataFrame(
        {
            "x": x.round(3),
            "z": rng.normal(size=rows).round(3),
            "who": [f"owner {i % 3}" for i in range(rows)],
            "y": np.where(x > 0, "yes", "no"),
        }
    )


def written(frame, name="data.csv", **how):
    frame.to_csv(name, index=False, **how)
    return name


def value(*options, data="good.csv", budget=4):
    """Run `dupre value` in the directory `run`."""
    return run("value", data, *ROLES, "--budget", budget, "--run", "run", *options)


def sheet(name, rows, columns=("coalition", "utility")):
    return written(pd.DataFrame(rows, columns=list(columns)), name)


def page(run="run"):
    """The page of a run."""
    return Path(run, "report.html").read_text()


def change_owner_1():
    frame = good()
    frame.loc[frame["who"] == "owner 1", "x"] += 1
    frame.to_csv("good.csv", index=False)
