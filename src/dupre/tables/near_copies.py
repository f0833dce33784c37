"""Copies of rows that another program has written, with other last digits.

Rows are the same if all their cells are. A copy that went through a spreadsheet can differ in the
last digits of its numbers: then nobody is told that two owners hold the same rows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dupre._types import Bools, Floats
from dupre.notes import Code, Note, note
from dupre.tables.columns import Columns
from dupre.wording import count_things

DIGITS = 12
"""Significant digits in which copies of numbers agree, whatever program has written them."""


def near_copies(frame: pd.DataFrame, columns: Columns, target: str) -> list[Note]:
    """Rows that are equal but for the last digits of numbers, as another program writes them."""
    rows = frame[[*columns.used, target]]
    broken = list(rows.select_dtypes("float"))
    if not broken:
        return []
    rows = rows[_have_neighbours(rows[broken].to_numpy())]
    rounded = rows.copy()
    for name in broken:
        rounded[name] = _round_digits(rows[name].to_numpy())
    count = int(rounded.duplicated().sum() - rows.duplicated().sum())
    if count <= 0:
        return []
    text = (
        f"{count_things(count, 'row')} differ from others only after the {DIGITS}th digit of a "
        "number, and count as other rows. If they are copies, as another program has written them, "
        "write all files with the same program."
    )
    return [note(Code.NEAR_COPIES, text, rows=count)]


def _have_neighbours(X: Floats) -> Bools:
    """Rows of X, (N, d), that may differ from another one by rounding alone, (N,).

    Such rows have nearly the same weighted sum: only rows next to each other in its order are
    compared, which takes O(N (d + log N)).
    """
    X = np.nan_to_num(X)
    scale = np.abs(X).max(axis=0, initial=1e-300)  # smaller numbers count as zero
    weights = np.random.default_rng(0).uniform(1, 2, X.shape[1]) / scale
    sums = X @ weights
    order = np.argsort(sums, kind="stable")
    close = np.diff(sums[order]) <= 10.0 ** (2 - DIGITS) * X.shape[1]
    found = np.zeros(len(X), dtype=bool)
    found[order[1:][close]] = found[order[:-1][close]] = True
    return found


def _round_digits(numbers: Floats) -> Floats:
    """Numbers, (N,), to DIGITS significant digits."""
    with np.errstate(divide="ignore"):  # of zero
        places = DIGITS - 1 - np.floor(np.log10(np.abs(numbers)))
    scale = 10.0 ** np.where(np.isfinite(places), np.clip(places, -280, 280), 0.0)
    return np.asarray(np.rint(numbers * scale) / scale)
