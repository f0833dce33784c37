"""Digests: is this the same as last time, and do these hold the same rows?

Of data, models and functions 32 hexadecimal digits tell. Arrays are compared by their bytes, frames
by columns and values, objects by their class and by what pickle would save of them, estimators by
class, parameters and fitted state. A function counts by its own source without docstrings and
comments, a class by its name. What they call does not count: a training shows whether results have
changed (module `store.spot_check`).

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

import ast
import copyreg
import functools
import hashlib
import inspect
import json
import linecache
import struct
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from dupre._types import Digests, Ints, Members
from dupre.data.rows import take
from dupre.errors import InputError
from dupre.game.blocks import split

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_LIBRARIES = {"site-packages", "dist-packages"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


BLOCK = 65_536
"""Rows that are turned into bytes at once, which limits memory."""

COALITIONS = 4_096
"""Coalitions whose members are turned into whole numbers at once."""

_TEXT = (str, bytes)
_NUMBERS = (bool, int, float, complex, np.generic)
_WORD = np.dtype("<u8")


def digest(thing: Any, *, strict: bool = False) -> str:
    """32 hexadecimal digits from the contents of a thing.

    Args:
        thing: anything.
        strict: whether a thing without contents to compare (a lock, an open file) is an error;
            otherwise it counts by its class.

    Raises:
        InputError: there is such a thing.
    """
    try:
        return _Digests(strict).of(thing)
    except RecursionError as cause:
        if strict:
            raise InputError(f"this {type(thing).__name__} is nested too deeply") from cause
        return _Digests(strict).of(type(thing))


def hash_json(parts: Any) -> bytes:
    """SHA-256 of texts and numbers, or lists of these; fast, and the same in every version."""
    return hashlib.sha256(json.dumps(parts).encode()).digest()


class _Digests:
    """Digests of a thing and of everything it holds, each computed once."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._known: dict[int, tuple[str, Any]] = {}  # keeps the things alive: ids are not reused
        self._under_way: list[int] = []
        self._reach = 0  # outermost thing under way that the last digest refers to

    def of(self, thing: Any) -> str:
        """The digest of a thing. A thing inside itself counts by how many levels up it is."""
        if isinstance(thing, _PLAIN):
            return _hash_parts(f"{type(thing).__name__} {thing!r}".encode(errors="surrogatepass"))
        key = id(thing)
        if key in self._known:
            return self._known[key][0]
        depth = len(self._under_way)
        if key in self._under_way:
            above = self._under_way.index(key)
            self._reach = min(self._reach, above)
            return f"{depth - above} up"
        outer, self._reach = self._reach, depth
        self._under_way.append(key)
        try:
            result = _hash_parts(*self._contents(thing))
        finally:
            self._under_way.pop()
        if self._reach >= depth:  # it refers to nothing outside itself: the same everywhere
            self._known[key] = result, thing
        self._reach = min(outer, self._reach)
        return result

    def _parts(self, kind: str, things: Iterable[Any]) -> Iterator[bytes]:
        yield kind.encode(errors="surrogatepass")
        for thing in things:
            yield self.of(thing).encode()

    def _contents(self, thing: Any) -> Iterable[Any]:  # noqa: C901, PLR0912  # a table of kinds
        """The kind of a thing and its contents, as bytes."""
        if isinstance(thing, types.ModuleType):
            return self._parts("module", [thing.__name__])
        if isinstance(thing, type):
            ours = thing.__module__.partition(".")[0] == "dupre"  # dupre's own classes may move
            return self._parts("class", ["dupre" if ours else thing.__module__, thing.__qualname__])
        if isinstance(thing, np.ma.MaskedArray):
            return self._parts("masked", [np.asarray(thing), np.ma.getmaskarray(thing)])
        if isinstance(thing, (np.ndarray, np.generic)):
            return self._array(np.asarray(thing))
        if isinstance(thing, pd.DataFrame):
            plain = thing.reset_index(drop=True)
            values = [plain.iloc[:, i] for i in range(thing.shape[1])]
            return self._parts("frame", [list(thing.columns), *values, *_index(thing)])
        if isinstance(thing, pd.MultiIndex):
            return self._parts("index", thing.to_list())
        if isinstance(thing, pd.Series) and _index(thing):
            return self._parts("series", [thing.reset_index(drop=True), *_index(thing)])
        if isinstance(thing, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
            return self._column(pd.Series(thing))
        if sparse.issparse(thing):
            rows = thing.tocsr(copy=True)
            rows.sum_duplicates()
            where = [rows.indices.astype(np.int64), rows.indptr.astype(np.int64)]
            return self._parts("sparse", [rows.shape, rows.data, *where])
        if type(thing) in (list, tuple):
            return self._parts(type(thing).__name__, thing)
        if type(thing) is dict:
            keys = sorted(((self.of(key), key) for key in thing), key=itemgetter(0))
            return self._parts("dict", [[key, thing[name]] for key, name in keys])
        if isinstance(thing, (set, frozenset)):
            return self._parts("set", sorted(map(self.of, thing)))
        if isinstance(thing, types.FunctionType):
            return self._parts("function", [thing.__qualname__, _source(thing)])
        if isinstance(thing, types.MethodType):
            return self._parts("method", [thing.__func__, thing.__self__])
        if hasattr(thing, "detach") and hasattr(thing, "numpy"):  # a torch tensor
            return self._array(thing.detach().cpu().numpy())
        return self._object(thing)

    def _array(self, array: Any) -> Iterator[Any]:
        if array.dtype.kind in "US":  # as wide as its longest text, whatever others hold
            array = np.array(array.tolist(), dtype=array.dtype.kind)
        dtype = array.dtype.descr if array.dtype.names else array.dtype.str
        yield f"array {dtype} {array.shape}".encode()
        if array.dtype.hasobject:
            yield from self._parts("objects", array.ravel().tolist())
        elif array.size and array.itemsize:
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data

    def _column(self, column: pd.Series) -> Iterable[Any]:
        if isinstance(column.dtype, np.dtype) and not column.dtype.hasobject:
            return self._array(column.to_numpy())
        values = column.astype(object).mask(column.isna(), None).tolist()
        if isinstance(column.dtype, pd.CategoricalDtype):
            # Values and the order of categories count, not categories without a value here.
            order = column.cat.remove_unused_categories().cat.categories.tolist()
            return self._parts("categorical", [values, order, column.cat.ordered])
        return self._parts(f"column {column.dtype}", values)

    def _object(self, thing: Any) -> Iterable[bytes]:
        """Anything else by its class, its own call and what pickle would save of it."""
        kind = type(thing)
        if (stated := stated_fingerprint(thing)) is not None:
            return self._parts("stated", [kind, stated])
        if isinstance(wrapped := getattr(thing, "__wrapped__", None), types.FunctionType):
            return self._parts("wrapped", [wrapped])  # by numba, functools.cache, ...
        if hasattr(thing, "get_params") and hasattr(thing, "fit"):
            params = thing.get_params(deep=False)
            fitted = {k: v for k, v in vars(thing).items() if k not in params}
            return self._parts("estimator", [kind, params, fitted])
        try:
            reducer = copyreg.dispatch_table.get(kind)
            reduced = reducer(thing) if reducer else thing.__reduce_ex__(4)
        except Exception as cause:  # the user's objects reduce themselves by code of their own
            if self._strict:
                raise InputError(f"this {kind.__name__} cannot be compared ({cause})") from cause
            return self._parts("unknown", [kind])
        if isinstance(reduced, str):
            return self._parts("global", [getattr(thing, "__module__", ""), reduced])
        create, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        if isinstance(state, dict):  # cached properties can be computed again
            state = {k: v for k, v in state.items() if not _is_cached(kind, k)} or None
        call = [kind.__call__] if isinstance(kind.__call__, types.FunctionType) else []
        contents = [create, arguments, state, [*(items or ())], [*(pairs or ())]]
        return self._parts("object", [*contents, *call])


def _hash_parts(*parts: Any) -> str:
    """Digest of several bytes, each with its length, so that their borders count."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(struct.pack("<q", len(part)))
        hasher.update(part)
    return hasher.hexdigest()[:32]


def stated_fingerprint(thing: Any) -> Any:
    """The `fingerprint` that a thing states; None if it states none."""
    stated = getattr(thing, "fingerprint", None)
    return stated() if callable(stated) else stated


def _index(thing: pd.DataFrame | pd.Series) -> list[Any]:
    """The index of a frame or series, unless it only counts the rows."""
    index = thing.index
    counts = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index)))
    return [] if counts else [index]


def _is_cached(cls: type, name: object) -> bool:
    found = getattr(cls, name, None) if isinstance(name, str) else None
    return isinstance(found, functools.cached_property)


def _source(function: types.FunctionType) -> str:
    """The source of a function without docstrings and comments; empty if there is none.

    Functions of installed packages count by their names, which stay the same in other versions.
    """
    code = function.__code__
    parts = Path(code.co_filename).parts
    if _LIBRARIES & set(parts) or str(function.__module__).partition(".")[0] == "dupre":
        return ""
    try:
        lines = inspect.findsource(code)[0]
        tree = ast.parse("".join(lines))
    except (OSError, SyntaxError, ValueError):  # made by exec, or in a shell
        return ""
    finally:
        linecache.checkcache(code.co_filename)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    found = [node for node in ast.walk(tree) if _first_line(node) == code.co_firstlineno]
    return "\n".join(map(ast.unparse, found))


def _first_line(node: ast.AST) -> int:
    """The first line of a definition as its code object counts; 0 for anything else."""
    if not isinstance(node, _DEFINITIONS):
        return 0
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def digests_of_rows(X: Any, y: NDArray[Any]) -> Digests:
    """A digest of each row of X with its target, (N, 2).

    Zero is equal to minus zero, any NaN to any other. Cells of frames and of object arrays are
    compared by type and value, categories by value; all missing cells are equal. Rows whose
    contents cannot be compared (see `digest`) count as all different, each by its position.
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
