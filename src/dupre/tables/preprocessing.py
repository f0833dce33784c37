"""Columns of a table to numbers, as part of a pipeline that is fitted on each coalition's rows.

Every step works for small coalitions too: one row, a column without any value, a level that was not
seen before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from dupre._types import Floats
from dupre.data.encoding import MAX_LEVELS
from dupre.tables.features import Columns


def preprocessor(columns: Columns) -> ColumnTransformer:
    """A transformer of frames to dense arrays; it drops the columns left out."""
    blocks = [
        ("numbers", _number_steps(), list(columns.numbers)),
        ("dates", _number_steps(), list(columns.dates)),
        ("categories", _category_steps(), list(columns.categories)),
    ]
    # Dense, whatever the share of zeros: some models take no sparse matrices.
    return ColumnTransformer([block for block in blocks if block[2]], sparse_threshold=0.0)


def describe_steps(columns: Columns) -> tuple[str, ...]:
    """What is done to the columns, a line for each kind."""
    numbers, dates, categories = map(len, (columns.numbers, columns.dates, columns.categories))
    lines = {
        f"numbers ({numbers}): fill gaps with the median, scale": numbers,
        f"dates ({dates}): days since 1970, fill gaps with the median, scale": dates,
        f"categories ({categories}): one column per level, the rarest beyond {MAX_LEVELS} share "
        "one": categories,
    }
    left_out = (f"left out: {name} ({reason})" for name, reason in columns.left_out)
    return (*(line for line, count in lines.items() if count), *left_out)


def as_numbers(frame: Any) -> Floats:
    """Columns of numbers, truth values and dates as floats, (N, d): NaN for gaps, dates in days."""
    frame = pd.DataFrame(frame)
    if all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in frame.dtypes):
        # Column by column takes longer than many a training.
        return np.asarray(frame.to_numpy(np.float64))
    return np.column_stack([_floats(frame.iloc[:, j]) for j in range(frame.shape[1])])


def as_levels(frame: Any) -> NDArray[Any]:
    """Columns of categories as texts, (N, d); None where missing, which is a level too."""
    frame = pd.DataFrame(frame)
    text = frame.astype(object).map(str).to_numpy(dtype=object, copy=True)
    text[frame.isna().to_numpy()] = None
    return np.asarray(text)


def _floats(column: pd.Series) -> Floats:
    if pd.api.types.is_datetime64_any_dtype(column):
        # Microseconds: 9999-12-31, written for "never", does not fit into nanoseconds.
        moments = column.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
        return np.asarray((moments - np.datetime64(0, "us")) / np.timedelta64(1, "D"))
    return np.asarray(column.astype(np.float64), dtype=np.float64)


def _number_steps() -> Pipeline:
    return Pipeline(
        [
            ("number", FunctionTransformer(as_numbers)),
            # A column without any value in a coalition stays, as zeros: it may have some later.
            ("fill", SimpleImputer(strategy="median", keep_empty_features=True)),
            ("scale", StandardScaler()),
        ]
    )


def _category_steps() -> Pipeline:
    # As for distances, the rarest levels share a column: a wide table would not fit in memory.
    encoder = OneHotEncoder(
        handle_unknown="ignore", sparse_output=False, max_categories=MAX_LEVELS + 1
    )
    return Pipeline([("level", FunctionTransformer(as_levels)), ("encode", encoder)])
