"""What a store and a result were made from, and whether that is still the same.

Owners' rows and the parts of a utility have fingerprints. The setting of a store is all that its
utilities depend on besides the owners' rows, part by part: model, metric, validation data, seed,
and a version that the user states. Code that a part calls does not count. Some parts are hints: if
one has changed, results may have changed, and the spot check trains the largest stored coalition
(module `spot_check`).
"""

from __future__ import annotations

import platform
import textwrap
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd

from dupre.data.contents import digests_of_owners, digests_of_rows
from dupre.data.digests import digest, hash_json, stated_fingerprint
from dupre.data.owners import Owners
from dupre.data.rows import take
from dupre.utility.model import ModelUtility

PACKAGES = ("dupre", "numpy", "scipy", "scikit-learn", "pandas")
"""Packages whose version can change a digit of a result."""

ROWS_OF = "rows of "
"""What the fingerprint of an owner's rows is called, before the name."""

HINTS = ("state", "categories", "packages")
"""Parts that may change without any change of a utility."""


@dataclass(frozen=True)
class Part:
    """One part of what a utility depends on besides the owners' rows."""

    description: str
    digest: str


@dataclass(frozen=True)
class Origin:
    """What stored utilities come from.

    Attributes:
        setting: what they depend on besides the owners' rows, part by part.
        owners: fingerprint of each owner's rows.
        older: gives the fingerprints by the rule of versions up to 0.1.
        by_content: whether they depend on the members' rows alone, not on their names.
    """

    setting: Mapping[str, Part]
    owners: Mapping[str, str]
    older: Callable[[], Mapping[str, str]] = dict
    by_content: bool = False


def origin(owners: Owners, utility: Any, contents: Mapping[str, str], stated: str = "") -> Origin:
    """What utilities come from; `stated` is the version that the user states.

    `contents` are the fingerprints of the owners' rows.
    """
    setting = of_utility(utility)
    if stated:
        setting["version"] = Part(stated, digest(stated))
    if levels := _levels(owners):
        setting["categories"] = Part("levels of categories", digest(levels))
    packages = ", ".join(f"{package} {_version(package)}" for package in PACKAGES)
    setting["packages"] = Part(packages, digest(packages))
    by_content = isinstance(utility, ModelUtility) and utility.by_content
    return Origin(setting, contents, cache(partial(_older_digests, owners)), by_content)


def of_owners(owners: Owners, *, renew: bool = True) -> dict[str, str]:
    """A digest of each owner's rows, by name.

    Cells count by value, and the names of columns do; the order and the index of rows do not.
    Digests are computed anew, in case rows were changed in place, unless `renew` is False.
    """
    names = None if owners.columns is None else list(map(repr, owners.columns))
    if renew:
        owners.renew_contents()
    counts, contents = owners.rows.tolist(), owners.contents.tolist()
    return {
        name: hash_json([names, count, words]).hex()[:32]
        for name, count, words in zip(owners.names, counts, contents, strict=True)
    }


def _older_digests(owners: Owners) -> dict[str, str]:
    """A digest of each owner's rows by the rule of versions up to 0.1: their order counted."""
    held = [np.flatnonzero(owners.owner == index) for index in range(owners.n)]
    parts = [take(owners.X, rows) for rows in held]
    parts = [p.reset_index(drop=True) if isinstance(p, pd.DataFrame) else p for p in parts]
    digests = [digest((X, owners.y[rows])) for X, rows in zip(parts, held, strict=True)]
    return dict(zip(owners.names, digests, strict=True))


def _levels(owners: Owners) -> list[Any]:
    """The levels of every categorical column, in their order: a model may see their codes."""
    columns = owners.X.items() if isinstance(owners.X, pd.DataFrame) else ()
    return [
        [repr(name), column.cat.categories.tolist()]
        for name, column in columns
        if isinstance(column.dtype, pd.CategoricalDtype)
    ]


def of_utility(utility: Any) -> dict[str, Part]:
    """What the utility of a coalition depends on besides its rows, part by part.

    The parts are those of the utility's `fingerprint`: a text, or a mapping from names to parts.
    Without a fingerprint the utility counts by the source of its call; what it holds is its state,
    a hint: it may be a count of calls.
    """
    stated = stated_fingerprint(utility)
    if isinstance(stated, Mapping):  # a subclass may use the same parts differently
        parts = {"utility": type(utility), **stated}
        return {str(name): Part(_describe(part), _digest(part)) for name, part in parts.items()}
    if stated is not None:
        return {"utility": Part(_describe(stated), digest(stated))}
    code, state = _code_and_state(utility)
    held = Part("what the utility holds", digest(state))
    return {"utility": Part(_describe(utility), digest(code)), "state": held}


def _code_and_state(utility: Any) -> tuple[Any, Any]:
    """What a callable does, by its source, and what it holds."""
    if isinstance(utility, types.FunctionType):
        held = []
        with suppress(ValueError):  # one is not assigned yet
            held = [cell.cell_contents for cell in utility.__closure__ or ()]
        return utility, [held, utility.__defaults__, utility.__kwdefaults__, vars(utility)]
    if isinstance(utility, types.MethodType):
        return [utility.__func__, type(utility.__self__)], utility.__self__
    if isinstance(utility, (partial, type)):
        return utility, None
    return [type(utility), type(utility).__call__], utility


def _digest(part: Any) -> str:
    """The digest of a part; rows and their targets count by value, in any order."""
    if not _is_rows(part):
        return digest(part)
    X, y = part
    rows = digests_of_rows(X, y)
    total = digests_of_owners(rows, np.zeros(len(y), dtype=np.int64), 1).tolist()
    names = list(map(repr, X.columns)) if isinstance(X, pd.DataFrame) else None
    return hash_json([names, len(y), total]).hex()[:32]


def _is_rows(part: Any) -> bool:
    """Whether a part is rows X with targets y."""
    return isinstance(part, tuple) and len(part) == 2 and isinstance(part[1], np.ndarray)


def provenance(
    seed: int, setting: Mapping[str, Part], contents: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Versions, settings and fingerprints in words; empty settings and texts are not known."""
    parts = {name: part for name, part in setting.items() if name not in HINTS}
    found = {
        "versions": {"Python": platform.python_version()} | {p: _version(p) for p in PACKAGES},
        "settings": {"seed": str(seed), **{k: part.description for k, part in parts.items()}},
        "fingerprints": {k: part.digest for k, part in parts.items()}
        | {f"{ROWS_OF}{name}": mark for name, mark in contents.items() if mark},
    }
    return {section: texts for section, texts in found.items() if texts}


def changed_owners(provenance: Mapping[str, Mapping[str, str]], now: Origin) -> list[str]:
    """Owners of an earlier result whose rows are others now, or who are gone."""
    marks = provenance.get("fingerprints", {})
    then = {k.removeprefix(ROWS_OF): mark for k, mark in marks.items() if k.startswith(ROWS_OF)}
    held = set(now.owners.values()) if now.by_content else set()  # by any name
    differ = [n for n, mark in then.items() if now.owners.get(n) != mark and mark not in held]
    older = now.older() if differ else {}
    return [name for name in differ if older.get(name) != then[name]]


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its sources
        return "not installed"


def _describe(part: Any) -> str:
    """A part in words, for messages that say what differs."""
    if isinstance(part, str):
        text = part
    elif _is_rows(part):
        text = f"{len(part[1])} rows"
    elif isinstance(part, types.FunctionType):
        text = f"the function {part.__qualname__}"
    elif " at 0x" in repr(part):
        text = f"a {type(part).__qualname__}"
    elif isinstance(part, type):
        text = part.__qualname__
    else:
        text = repr(part)
    return textwrap.shorten(" ".join(text.split()), 300, placeholder=" …")
