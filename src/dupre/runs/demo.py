"""The demonstration: eight hospitals share handwritten digits, and two of them are odd.

One has shuffled its labels, one holds a copy of another's rows. The command values them from a few
trainings. Then all coalitions are trained, only to show the error.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dupre.errors import InputError
from dupre.files import replace_text
from dupre.result.valuation import Valuation
from dupre.runs.run import Run
from dupre.valuation.value import value

BUDGET = 40

STORY = """\
Eight hospitals want to train one model together that reads handwritten digits. What is the data of
each worth to the others? Two are odd: Gus has mixed up his labels, and "Eve's copy" sells Eve's
rows a second time. Which of 255 coalitions to train is decided on the way.
"""


def hospitals() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table of all hospitals, and the rows that models are scored on."""
    digits = load_digits(as_frame=True)
    frame = digits.frame.rename(columns={"target": "digit"})
    frame[list(digits.feature_names)] = frame[list(digits.feature_names)].astype(np.int64)
    frame, validation = train_test_split(
        frame, test_size=0.5, random_state=0, stratify=frame["digit"]
    )
    rng = np.random.default_rng(0)
    names = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Fay", "Gus"]
    cuts = np.split(rng.permutation(len(frame)), [40, 100, 180, 300, 440, 600, 750])
    parts = {name: frame.iloc[rows] for name, rows in zip(names, cuts[:7], strict=True)}
    parts["Gus"] = parts["Gus"].assign(digit=rng.permutation(parts["Gus"]["digit"]))
    parts["Eve's copy"] = parts["Eve"]
    everyone = [part.assign(hospital=name) for name, part in parts.items()]
    return pd.concat(everyone, ignore_index=True), validation


def write_tables(directory: Path) -> None:
    """Write both tables as CSV files; InputError if the directory holds something else."""
    if directory.exists() and not (directory / "run/config.toml").is_file():
        raise InputError(
            f"{str(directory)!r} exists and is no demonstration; choose another with --run DIR"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, frame in zip(("hospitals.csv", "validation.csv"), hospitals(), strict=True):
        replace_text(directory / name, frame.to_csv(index=False, lineterminator="\n"))


def exact_values(run: Run, valuation: Valuation) -> Valuation:
    """The values after training every coalition; none is trained twice."""
    return value(
        run.owners,
        run.trained,
        budget=2**run.owners.n - 1,
        known=valuation.evaluations,
        progress=False,
    )


def describe_error(valuation: Valuation, truth: Valuation) -> str:
    """The error of the values from a few trainings, in words."""
    error = (valuation.values - truth.values).abs()
    bounds = valuation.interval()
    inside = bounds["low"].le(truth.values) & bounds["high"].ge(truth.values)
    same = truth.facts.duplicates.saved if truth.facts.duplicates else 0
    every = truth.facts.evaluated + same
    saved = every - valuation.facts.evaluated
    why = f", {same} of them because coalitions hold the same rows" if same else ""
    return (
        f"Trainings saved: {saved} of {every} ({saved / every:.0%}){why}.\n"
        f"Largest error of a value: {error.max():.4f}, mean {error.mean():.4f}; the values range "
        f"from {truth.values.min():.3f} to {truth.values.max():.3f}.\n"
        f"Exact values inside their 95 % interval: {inside.sum()} of {len(error)}."
    )
