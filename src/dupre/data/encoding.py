"""The numeric view of rows, in which the sketch measures distances.

The model never sees this view: it is trained on the rows as the user gave them. Numbers are
standardised, so that no column dominates by its unit. Categories are one-hot: any two of the 50
most frequent levels are sqrt(2) apart, and all rarer levels are equal.

Notation: N rows, u distinct rows, d encoded columns.

Dense rows are first reduced to the distinct ones in a canonical order. Equal rows then have equal
projections to the last bit, whoever holds them and in whatever order they were given. So distances
are exactly zero where they should be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from dupre._types import Floats, Ints, Members
from dupre.errors import InputError
from dupre.game.blocks import split

MAX_LEVELS = 50
"""Levels of a category, the most frequent ones, that get a column; the others get none."""

BLOCK = 4_096
"""Rows that are compared at once, which limits memory."""

SUMMED = 2**18
"""Rows whose means are computed at once."""


@dataclass(frozen=True, eq=False)
class Points:
    """Encoded rows: row r is `values[index[r]]`.

    Dense ones are standardised anew each time they are asked for: a copy of the rows could fill
    much of the memory, and they are needed only to be projected.

    Attributes:
        matrix: numeric rows, (N, d): dense as they came, or CSR and already scaled.
        first: where each of the distinct rows is found in them, (u,).
        index: which of these each row is, (N,).
        mean: of each column, (d,); 0 if they are sparse.
        factor: by which each column is multiplied, (d,); 1 if they are sparse.
        variance: sum of the variances of the d columns over all rows.
        units: what each column was divided by, (d,).
    """

    matrix: Floats | sparse.csr_array
    first: Ints
    index: Ints
    mean: Floats
    factor: Floats
    variance: float
    units: Floats

    @property
    def values(self) -> Floats | sparse.csr_array:
        """Distinct standardised rows, (u, d), dense or CSR."""
        if isinstance(self.matrix, sparse.csr_array):
            return self.matrix
        return self._standardise(slice(None))

    def project(self, theta: Floats, *, raw: bool = False) -> Floats:
        """Distinct rows on directions (d, l), (u, l).

        They are standardised, or as they were given, up to a shift that is the same for all.
        """
        units = self.units[:, None] * theta if raw else theta
        if isinstance(self.matrix, sparse.csr_array):
            return np.asarray(self.matrix @ units)
        found = np.empty((len(self.first), theta.shape[1]))
        for some in split(len(found), BLOCK):
            found[some] = self._standardise(some) @ units
        return found

    def _standardise(self, some: slice) -> Floats:
        rows = self.matrix[self.first[some]] + 0.0  # -0.0 and 0.0 are the same number
        rows -= self.mean
        rows *= self.factor
        return np.asarray(rows)


@dataclass(frozen=True, eq=False)
class NumericColumns:
    """X as numbers, not yet scaled.

    Attributes:
        matrix: (N, d), dense or CSR.
        source: name of the column of X behind each encoded column, length d.
        one_hot: which encoded columns are levels of a category, (d,).
    """

    matrix: Floats | sparse.csr_array
    source: tuple[str, ...]
    one_hot: Members


def encode(X: Any) -> NumericColumns:
    """The numeric view of X: an array (N, d0) of any dtype, a pandas frame or a sparse matrix."""
    if sparse.issparse(X):
        matrix = sparse.csr_array(X, dtype=np.float64)
        matrix.sum_duplicates()
        return _numeric_columns(matrix)
    if isinstance(X, pd.DataFrame):
        return _encode_frame(X)
    array = np.asarray(X)
    if array.ndim != 2:
        raise InputError(
            f"X must have two dimensions (rows, columns), got shape {array.shape}; "
            "for images or text pass embed=, a callable that turns X into a numeric (rows, d) array"
        )
    if array.dtype.kind == "c":
        raise InputError("X holds complex numbers; pass real and imaginary parts as columns")
    if not array.shape[1]:
        raise InputError("X has no columns; expected at least one")
    if array.dtype.kind in "biuf":
        return _numeric_columns(array.astype(np.float64, copy=False))
    return _encode_frame(pd.DataFrame(array).infer_objects())


def apply_embed(X: Any, embed: Callable[[Any], Any], rows: int) -> NumericColumns:
    """The output of the user's `embed` callable, checked to be a numeric (rows, d) array.

    It may change X in place.
    """
    if not callable(embed):
        raise InputError(
            f"embed= must be a callable(X) -> numeric (rows, d) array, got {embed!r:.80}; leave it "
            "out if the columns of X are numbers or categories"
        )
    output = embed(X)
    if isinstance(output, NumericColumns):  # by `tables`, which knows what is one-hot
        return output
    try:
        if sparse.issparse(output):
            array = sparse.csr_array(output, dtype=np.float64)
        else:
            array = np.asarray(output, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise InputError(f"embed= must return a numeric (rows, d) array: {cause}") from cause
    if array.ndim != 2 or array.shape[0] != rows:
        raise InputError(
            f"embed= must return one numeric row for each of the {rows} rows, "
            f"got shape {array.shape}"
        )
    return _numeric_columns(array)


def standardise(columns: NumericColumns) -> Points:
    """Scale every numeric column to unit variance (constant ones to zero); find distinct rows.

    Sparse columns are scaled but not centred: a common shift moves all coalitions alike and
    cancels in every distance.
    """
    matrix = columns.matrix
    if isinstance(matrix, sparse.csr_array):
        mean, variance = mean_variance_axis(matrix, axis=0)
        scale = np.sqrt(variance)
        inverse = _inverse_scale(scale, np.abs(mean))
        scaled = sparse.csr_array(matrix @ sparse.diags_array(inverse))
        every, one = np.arange(matrix.shape[0]), np.ones(len(scale))
        return Points(scaled, every, every, 0 * one, one, float(np.count_nonzero(inverse)), scale)
    first, index, counts = _distinct_rows(matrix)
    weight = counts / counts.sum()
    # Sums over distinct rows in their order, so that the order of the rows does not matter.
    low, high, mean, square = np.zeros((4, matrix.shape[1]))
    room = np.empty((min(SUMMED, len(first)), matrix.shape[1]))
    blocks = split(len(first), SUMMED)
    for some in blocks:
        rows = _take(matrix, first[some], room)
        mean += weight[some] @ rows
        low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
    for some in blocks:
        rows = _take(matrix, first[some], room)
        rows -= mean
        rows *= rows
        square += weight[some] @ rows
    scale = np.sqrt(square)
    inverse = _inverse_scale(scale, np.maximum(high, -low))
    factor = np.where(columns.one_hot, 1.0, inverse)
    units = np.where(columns.one_hot, 1.0, scale)
    return Points(matrix, first, index, mean, factor, float(np.sum((scale * factor) ** 2)), units)


def _take(matrix: Floats, index: Ints, room: Floats) -> Floats:
    """Rows of a matrix, (len(index), d), in a place that is used again."""
    return np.take(matrix, index, axis=0, out=room[: len(index)], mode="clip")  # no other copy


def _numeric_columns(matrix: Floats | sparse.csr_array) -> NumericColumns:
    width = matrix.shape[1]
    return NumericColumns(matrix, tuple(str(j) for j in range(width)), np.zeros(width, dtype=bool))


def _encode_frame(frame: pd.DataFrame) -> NumericColumns:
    if not frame.shape[1]:
        raise InputError("X has no columns; expected at least one besides owner and target")
    series = [frame.iloc[:, j] for j in range(frame.shape[1])]
    numbers = [_as_number(column) for column in series]
    blocks = [
        _one_hot(column) if number is None else number[:, None]
        for column, number in zip(series, numbers, strict=True)
    ]
    widths = [block.shape[1] for block in blocks]
    source = np.repeat([str(name) for name in frame.columns], widths)
    one_hot = np.repeat([number is None for number in numbers], widths)
    return NumericColumns(np.hstack(blocks), tuple(source.tolist()), one_hot)


def _as_number(column: pd.Series) -> Floats | None:
    """A column of numbers, booleans or dates as floats, (N,), NaN where missing; else None."""
    kind = pd.api.types
    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    if kind.is_datetime64_any_dtype(column) or kind.is_timedelta64_dtype(column):
        return np.where(column.isna(), np.nan, column.astype("int64").to_numpy(np.float64))
    if kind.is_bool_dtype(column) or kind.is_numeric_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    return None


def _one_hot(column: pd.Series) -> Floats:
    """The most frequent levels of a category as 0/1 columns, (N, levels)."""
    # A missing category is a level of its own.
    text = column.astype(str).astype(object).where(column.notna(), None)
    code, _ = pd.factorize(text, sort=True, use_na_sentinel=True)
    code = np.where(code < 0, code.max() + 1, code)
    frequent = np.argsort(-np.bincount(code), kind="stable")[:MAX_LEVELS]
    return np.asarray(code.reshape(-1, 1) == frequent, dtype=np.float64)


def _distinct_rows(matrix: Floats) -> tuple[Ints, Ints, Ints]:
    """Where distinct rows are, in a canonical order, which one each row is, and their counts."""
    rows = np.ascontiguousarray(matrix)
    if _has_negative_zero(rows):
        rows = rows + 0.0  # -0.0 and 0.0 are the same number
    as_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    order = np.argsort(as_bytes, kind="stable")  # np.unique would copy them all three times
    new = np.ones(len(order), dtype=bool)
    for start in range(1, len(order), BLOCK):
        these, before = order[start : start + BLOCK], order[start - 1 : start + BLOCK - 1]
        new[start : start + BLOCK] = as_bytes[these] != as_bytes[before[: len(these)]]
    index = np.empty(len(order), dtype=np.int64)
    index[order] = np.cumsum(new) - 1
    return order[new], index, np.bincount(index)


def _has_negative_zero(rows: Floats) -> bool:
    blocks = (rows[some] for some in split(len(rows), BLOCK))
    return any(bool(np.any(np.signbit(block) & (block == 0))) for block in blocks)


def _inverse_scale(scale: Floats, size: Floats) -> Floats:
    """1 / scale, and 0 for columns that vary only by rounding."""
    varies = scale > 1e-12 * size
    return np.where(varies, 1.0, 0.0) / np.where(varies, scale, 1.0)
