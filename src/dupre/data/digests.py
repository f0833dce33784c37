"""Short digests of data, models and functions: is this the same as last time?

Two things have the same digest if and only if they cannot make a difference to a training. Arrays
are compared by their bytes, frames by columns and values, estimators by class and parameters,
functions by their code and by everything that it refers to. Some things have no contents that can
be compared (an open file, a lock). They are refused, and the message says what to do: state a
`fingerprint`, any text that changes when the results would.
"""

from __future__ import annotations

import ast
import copyreg
import dis
import functools
import hashlib
import inspect
import struct
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from dupre.data.stable_modules import stable_module
from dupre.errors import InputError

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_OF_CODE = (
    "co_code",
    "co_consts",
    "co_names",
    "co_varnames",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_exceptiontable",
)
_IN_SOURCE = (types.ModuleType, types.FunctionType, type)
_OF_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_LIBRARIES = {"site-packages", "dist-packages"}
_STANDARD = Path(sysconfig.get_paths()["stdlib"]).resolve()


def digest(thing: Any) -> str:
    """32 hexadecimal digits from the contents of a thing.

    Raises:
        InputError: it holds something that has no contents to compare.
    """
    try:
        return _Digests().of(thing)
    except RecursionError as cause:
        raise _unknown_contents(thing, "too much depends on each other") from cause


class _Digests:
    """Digests of a thing and of everything it holds, each computed once."""

    def __init__(self) -> None:
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
            return self._module(thing)
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, np.ma.MaskedArray):
            return self._parts("masked", [np.asarray(thing), np.ma.getmaskarray(thing)])
        if isinstance(thing, (np.ndarray, np.generic)):
            return self._array(np.asarray(thing))
        if isinstance(thing, pd.DataFrame):
            columns = [thing.iloc[:, i] for i in range(thing.shape[1])]
            return self._parts("frame", [list(thing.columns), *columns])
        if isinstance(thing, pd.MultiIndex):
            return self._parts("index", thing.to_list())
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
        if isinstance(thing, functools.partial):
            return self._parts("partial", [thing.func, thing.args, thing.keywords])
        if isinstance(thing, types.FunctionType):
            return self._function(thing)
        if isinstance(thing, types.CodeType):
            stars = thing.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
            return self._parts("code", [stars, *(getattr(thing, name) for name in _OF_CODE)])
        if isinstance(thing, functools.cached_property):
            return self._parts("cached property", [thing.func])
        if isinstance(thing, functools._lru_cache_wrapper):
            return self._parts("cached", [thing.__wrapped__])
        if hasattr(thing, "detach") and hasattr(thing, "numpy"):  # a torch tensor
            return self._array(thing.detach().cpu().numpy())
        return self._object(thing)

    def _array(self, array: Any) -> Iterator[Any]:
        if array.dtype.kind in "US":  # as wide as its longest text, whatever others hold
            array = np.array(array.tolist(), dtype=array.dtype.kind)
        yield f"array {array.dtype.str} {array.shape}".encode()
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

    def _module(self, module: types.ModuleType) -> Iterator[bytes]:
        yield from self._parts("module", [module.__name__])
        file = getattr(module, "__file__", None)
        if file is not None and not _is_installed(module.__name__):
            inner = [
                thing for thing in vars(module).values() if isinstance(thing, types.ModuleType)
            ]
            source = ast.dump(ast.parse(Path(file).read_bytes()))  # comments do not matter
            yield from self._parts("source", [source, *inner])
            for name, value in sorted(vars(module).items()):  # settings can change at run time
                if not name.startswith("__") and not isinstance(value, _IN_SOURCE):
                    with suppress(InputError):  # a lock has no influence on results
                        yield from self._parts(name, [value])

    def _class(self, cls: type) -> Iterator[bytes]:
        yield from self._parts("class", [stable_module(cls), cls.__qualname__])
        if not _is_installed(cls.__module__, cls):
            members = [
                [name, member]
                for name, member in vars(cls).items()
                if _is_user_member(name, member)
            ]
            yield from self._parts("members", [list(cls.__bases__), dict(members)])

    def _function(self, function: types.FunctionType) -> Iterator[bytes]:
        yield from self._parts("function", [stable_module(function), function.__qualname__])
        # What inner functions of a library remember counts too.
        yield from self._parts("closure", map(_cell_contents, function.__closure__ or ()))
        if not _is_installed(function.__module__, function):
            used = sorted(_global_names(function.__code__) & set(function.__globals__))
            data = {name: function.__globals__[name] for name in used}
            defaults = [function.__defaults__, function.__kwdefaults__]
            yield from self._parts("body", [function.__code__, *defaults, data])

    def _object(self, thing: Any) -> Iterable[bytes]:
        """Anything else by what pickle would save of it."""
        if (stated := stated_fingerprint(thing)) is not None:
            return self._parts("stated", [type(thing), stated])
        if thing is np.random.mtrand._rand:
            return self._parts("global random state", [])
        if isinstance(thing, property):
            return self._parts("property", [thing.fget, thing.fset])
        if isinstance(thing, (staticmethod, classmethod)):
            return self._parts(type(thing).__name__, [thing.__func__])
        if hasattr(thing, "get_params") and hasattr(thing, "fit"):
            if type(thing).__qualname__ == "FrozenEstimator":  # it is used as fitted
                return self._parts("frozen", [type(thing.estimator), vars(thing.estimator)])
            return self._parts("estimator", [type(thing), thing.get_params(deep=False)])
        try:
            reducer = copyreg.dispatch_table.get(type(thing))
            reduced = reducer(thing) if reducer else thing.__reduce_ex__(4)
        except Exception as cause:  # the user's objects reduce themselves by code of their own
            raise _unknown_contents(thing, cause) from cause
        if isinstance(reduced, str):
            return self._parts("global", [getattr(thing, "__module__", ""), reduced])
        create, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        if isinstance(state, dict):  # cached properties can be computed again
            state = {k: v for k, v in state.items() if not _is_cached(type(thing), k)} or None
        return self._parts("object", [create, arguments, state, [*(items or ())], [*(pairs or ())]])


def _unknown_contents(thing: Any, cause: object) -> InputError:
    return InputError(
        f"cannot tell whether this {type(thing).__name__} will be the same next time ({cause}), so "
        "a store cannot rely on it; give the utility an attribute `fingerprint`, any text that "
        "changes when its results would"
    )


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


def _is_user_member(name: str, member: Any) -> bool:
    """Whether a member of a class was written by the user, not added by Python."""
    if isinstance(member, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        return False
    own = not (name.startswith("__") and name.endswith("__")) and name != "_abc_impl"
    return own or isinstance(member, (types.FunctionType, functools.partialmethod))


def _is_cached(cls: type, name: object) -> bool:
    found = getattr(cls, name, None) if isinstance(name, str) else None
    return isinstance(found, functools.cached_property)


def _cell_contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _global_names(code: types.CodeType) -> set[str]:
    """Every global name a function refers to, also inside the functions it defines."""
    inner = [_global_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    loads = (step for step in dis.get_instructions(code) if step.opname in _OF_GLOBALS)
    return {str(step.argval) for step in loads}.union(*inner)


def _is_installed(name: str | None, thing: Any = None) -> bool:
    """Whether a module belongs to Python or to an installed package, not to the user.

    If a thing is given, it must be found in that module.
    """
    module = sys.modules.get(name or "")
    if module is None or name == "__main__":
        return False
    place = getattr(thing, "__qualname__", "<locals>").partition(".")[0]
    if "<locals>" not in place and not hasattr(module, place):  # made by exec
        return False
    file = getattr(module, "__file__", None)
    if file is None or (name or "").partition(".")[0] == "dupre":
        return True
    path = Path(file).resolve()
    return path.is_relative_to(_STANDARD) or bool(_LIBRARIES & set(path.parts))
