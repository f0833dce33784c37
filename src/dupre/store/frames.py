"""Evaluations as frames, and read from CSV files, Parquet files and stores.

A frame of evaluations has one row per training. To read one back, only the columns `coalition` (a
JSON list of owner names) and `utility` are needed; `valuation.evaluations` has all columns. The
column `resampled` is a JSON list of the utilities on resamples of the validation rows; it is empty
if they are not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dupre.errors import InputError, StoreError
from dupre.store.sqlite import read_stored, to_json
from dupre.training.evaluation import Evaluation
from dupre.utility.adapters import as_trainings
from dupre.utility.score import format_resampled

COLUMNS = ["coalition", "utility", "failure", "repeat", "attempt"]
COLUMNS += ["seed", "seconds", "warnings", "finished", "worker", "resampled"]


def as_frame(evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    """One row per evaluation, ready for `to_csv(path, index=False)` or `to_parquet(path)`."""
    rows = [
        (
            to_json(sorted(found.training.members)),
            np.nan if found.utility is None else found.utility,
            found.failure,
            found.training.repeat,
            found.training.attempt,
            found.seed,
            found.seconds,
            to_json(found.warnings),
            found.finished,
            found.worker,
            format_resampled(found.resampled),
        )
        for found in evaluations
    ]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    fits = all(found.seed is None or abs(found.seed) < 2**63 for found in evaluations)
    return frame.astype({"seed": "Int64"}) if fits else frame


def read_evaluations(path: str | Path) -> pd.DataFrame:
    """Evaluations from a store (.sqlite), a CSV or a Parquet file, to be passed as `known=`.

    Utilities are read to the last digit, those on resamples of the validation rows too.

    Raises:
        StoreError: the file is not there, or cannot be read.
        InputError: it holds something else.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind in (".csv", ".parquet", ".pq"):
        try:
            as_text = {"coalition": str, "utility": str, "resampled": str}
            frame = pd.read_csv(path, dtype=as_text) if kind == ".csv" else pd.read_parquet(path)
        except ImportError as cause:
            raise InputError("Parquet needs pyarrow: pip install 'dupre[parquet]'") from cause
        except FileNotFoundError as cause:
            raise StoreError(f"there is no file {str(path)!r}; correct the path") from cause
        except OSError as cause:
            raise StoreError(f"{str(path)!r} cannot be read: {cause}") from cause
        except ValueError as cause:  # errors of pandas and pyarrow are ValueErrors
            raise InputError(f"{str(path)!r} is no table of evaluations: {cause}") from cause
        if kind == ".csv" and "utility" in frame:  # older pandas lose the last digit of numbers
            frame["utility"] = [_parse_utility(text) for text in frame["utility"]]
    else:
        stored = read_stored(path)
        frame = as_frame([evaluation for evaluation, _ in stored])
        frame["contents"] = [contents for _, contents in stored]
    as_trainings(frame)
    return frame


def _parse_utility(text: Any) -> float:
    try:
        return float(text)
    except ValueError as cause:
        raise InputError(f"a utility is a number, or nothing if it failed; got {text!r}") from cause
