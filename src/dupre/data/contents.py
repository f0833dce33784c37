"""Digests of rows, owners and coalitions by contents, whatever owners are called.

A row (x, y) has a digest of 128 bits: BLAKE2b of its cells as the model sees them. It does not
depend on the row's position, its index, its owner or the machine. A coalition has the digest of
the multiset of its rows: the sum of their digests, modulo 2^64 in each of the two words. A sum does
not depend on the order, counts a row as often as it occurs, and is additive over owners: the
digests of m coalitions are one product of integer matrices, (m, n) @ (n, 2).

Sums are safe enough here. For given rows the digests behave like random numbers, so two different
multisets have the same sum with probability 2^-128; among a million coalitions a collision has
probability 10^-27. Rows that collide can be constructed (Wagner 2002, in fewer than 2^128 steps),
but then two coalitions share one training, no more.

Notation: N rows, n owners, m coalitions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dupre._types import Digests, Ints, Members
from dupre.data.digests import digest
from dupre.data.rows import take
from dupre.errors import InputError
from dupre.game.blocks import split

BLOCK = 65_536
"""Rows that are turned into bytes at once, which limits memory."""

COALITIONS = 4_096
"""Coalitions whose members are turned into whole numbers at once."""

_TEXT = (str, bytes)
_NUMBERS = (bool, int, float, complex, np.generic)
_WORD = np.dtype("<u8")


def digests_of_rows(X: Any, y: NDArray[Any]) -> Digests:
    """A digest of each row of X with its target, (N, 2).

    Zero is equal to minus zero, any NaN to any other. Cells of frames and of object arrays are
    compared by type and value, categories by value; all missing cells are equal. Rows whose
    contents cannot be compared (see module `digests`) count as all different, each by its position.
    """
    try:
        return digests_of_contents(X, y)
    except InputError:
        return _digests([_as_bytes(np.arange(len(y)))])


def digests_of_contents(X: Any, y: NDArray[Any]) -> Digests:
    """`digests_of_rows`; InputError if contents cannot be compared."""
    return _digests([_bytes_of(y), *_cells(X, len(y))])


def with_plain_types(X: Any, of_text: type) -> Any:
    """X with numbers as floats, and columns of texts as objects of a type: 1 and 1.0 are the same.

    However its columns are stored: the digests of rows depend on that.
    """
    if not isinstance(X, pd.DataFrame):
        number = getattr(getattr(X, "dtype", None), "kind", "") in tuple("biuf")
        return X.astype(np.float64) if number else X
    kinds: dict[Any, type] = {}
    for name, dtype in X.dtypes.items():
        dated = pd.api.types.is_datetime64_any_dtype(dtype)
        number = pd.api.types.is_numeric_dtype(dtype)
        kinds[name] = np.float64 if number else object if dated else of_text
    return X.astype(kinds)


def _digests(columns: list[NDArray[np.uint8]]) -> Digests:
    """The digest of each row of blocks of bytes, (N, .) each."""
    count = len(columns[0])
    digests = np.empty((count, 2), dtype=_WORD)
    for block in split(count, BLOCK):
        rows = np.concatenate([column[block] for column in columns], axis=1)
        digests[block] = _hash_each(memoryview(row) for row in rows)
    return digests.astype(np.uint64)


def digests_of_owners(rows: Digests, owner: Ints, n: int) -> Digests:
    """The digest of each owner's rows, (n, 2), from those of all rows and the owner of each."""
    found = np.zeros((n, 2), dtype=np.uint64)
    np.add.at(found, owner, rows)  # unsigned integers wrap around
    return found


def digests_of_coalitions(members: Members, owners: Digests) -> Digests:
    """The digest of each coalition's rows, (m, 2), from those of the owners, (n, 2)."""
    found = np.empty((len(members), 2), dtype=np.uint64)
    for block in split(len(members), COALITIONS):
        found[block] = members[block].astype(np.uint64) @ owners
    return found


def _cells(X: Any, count: int) -> list[NDArray[np.uint8]]:
    """The rows of X as blocks of bytes, (N, .) each."""
    if sparse.issparse(X):
        return [_digests_of_sparse_rows(X)]
    if isinstance(X, pd.DataFrame):
        return [_bytes_of_column(X.iloc[:, i]) for i in range(X.shape[1])]
    if isinstance(X, pd.Series):
        return [_bytes_of_column(X)]
    if isinstance(X, np.ma.MaskedArray):
        filled = np.ma.filled(X, X.dtype.type(0))
        return [_bytes_of(filled), _bytes_of(np.ma.getmaskarray(X))]
    if isinstance(X, np.ndarray):
        return [_bytes_of(X)]
    if not isinstance(X, list):
        X = [take(X, np.array([row])) for row in range(count)]
    return [_digests_of_things(X)]


def _bytes_of_column(column: pd.Series) -> NDArray[np.uint8]:
    """A column of a frame as bytes, (N, .)."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        # By value: codes depend on the categories of other owners. Objects have equal bytes.
        levels = pd.Series(column.cat.categories.to_numpy(), dtype=object)
        table = np.append(_digests_of_things([None]), _bytes_of_column(levels), axis=0)
        return np.asarray(table[column.cat.codes.to_numpy().astype(np.int64) + 1])
    if isinstance(dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    elif isinstance(dtype, pd.SparseDtype):
        return _bytes_of(np.asarray(column))
    elif not isinstance(dtype, np.dtype):
        return _bytes_of(_as_array(column, dtype))
    if column.dtype.kind in "mM":  # in nanoseconds, unless that overflows
        with suppress(pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
            column = column.dt.as_unit("ns")
    return _bytes_of(column.to_numpy())


def _as_array(column: pd.Series, dtype: Any) -> NDArray[Any]:
    """A column of a pandas dtype as the array that NumPy would hold if no cell were missing."""
    plain = getattr(dtype, "numpy_dtype", np.dtype(object))
    if plain.kind == "f":
        return column.to_numpy(plain, na_value=np.nan)
    if plain.kind in "iu":
        limits = np.iinfo(plain)
        return column.to_numpy(plain, na_value=limits.min or limits.max)
    if plain.kind == "b":
        return column.to_numpy(np.uint8, na_value=2)
    return column.astype(object).to_numpy()


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """An array of any dimension as bytes, (N, .)."""
    rows = array.reshape(len(array), int(np.prod(array.shape[1:])))
    kind = rows.dtype.kind
    if kind in "OUSV":
        columns = [_digests_of_things(rows[:, i].tolist()) for i in range(rows.shape[1])]
        return np.concatenate(columns, axis=1) if columns else _as_bytes(rows.astype(bool))
    if kind in "fc":
        rows = rows + rows.dtype.type(0)  # minus zero becomes zero
        rows[np.isnan(rows)] = np.nan
    return _as_bytes(rows)


def _as_bytes(rows: NDArray[Any]) -> NDArray[np.uint8]:
    """Plain numbers as bytes, least significant first, (N, .)."""
    little = np.ascontiguousarray(rows, dtype=rows.dtype.newbyteorder("<"))
    width = little.itemsize * int(np.prod(rows.shape[1:]))
    return little.reshape(-1).view(np.uint8).reshape(len(rows), width)


def _digests_of_things(things: Iterable[Any]) -> NDArray[np.uint8]:
    """The digest of each thing by type and value, (N, 16); all missing ones are equal."""
    known: dict[tuple[type, Any], bytes] = {}
    found = []
    for cell in things:
        thing = None if _is_missing(cell) else cell
        if isinstance(thing, (float, np.floating)):
            thing = thing + type(thing)(0)  # minus zero becomes zero
        elif isinstance(thing, pd.Timestamp):  # pickled differently by versions and units
            thing = thing.isoformat(), "a time"
        if thing is None or isinstance(thing, (*_TEXT, *_NUMBERS)):
            key = type(thing), thing
            if key not in known:
                known[key] = bytes.fromhex(digest(thing, strict=True))
            found.append(known[key])
        else:
            found.append(bytes.fromhex(digest(thing, strict=True)))
    return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(found), 16)


def _is_missing(thing: Any) -> bool:
    return thing is None or (pd.api.types.is_scalar(thing) and bool(pd.isna(thing)))


def _digests_of_sparse_rows(X: Any) -> NDArray[np.uint8]:
    """The digest of each row of a sparse matrix, (N, 16), by its entries that are not zero."""
    rows = X.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    where, what = _as_bytes(rows.indices.astype(np.int64)), _bytes_of(rows.data)
    spans = pairwise(rows.indptr.tolist())
    digests = _hash_each(where[a:b].tobytes() + what[a:b].tobytes() for a, b in spans)
    return digests.view(np.uint8).reshape(rows.shape[0], 16)


def _hash_each(rows: Iterator[Any]) -> NDArray[Any]:
    """128 bits from the bytes of each row, (., 2), the same on every machine."""
    found = b"".join(hashlib.blake2b(row, digest_size=16).digest() for row in rows)
    return np.frombuffer(found, dtype=_WORD).reshape(-1, 2)
