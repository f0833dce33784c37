"""Short digests of data, models and functions: is this the same as last time?

Arrays are compared by their bytes, frames by columns and values, objects by their class and by what
pickle would save of them, estimators by class, parameters and fitted state. A function counts by
its own source without docstrings and comments, a class by its name. What they call does not count:
a training shows whether results have changed (module `store.spot_check`).
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
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from dupre.errors import InputError

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_LIBRARIES = {"site-packages", "dist-packages"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


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
