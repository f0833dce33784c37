"""What a store and a result were made from, and whether that is still the same.

Owners' rows and the parts of a utility have fingerprints. The setting of a store is all that its
utilities depend on besides the owners' rows, part by part: model, metric, validation data, seed,
and a version that the user states. Code that a part calls does not count. Some parts are hints: if
one has changed, results may have changed, and the spot check trains the largest stored coalition
(module `spot_check`).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pandas as pd

from dupre.data.digests import digest, hash_json
from dupre.data.owners import Owners
from dupre.utility.describe import Part, Traits

PACKAGES = ("dupre", "numpy", "scipy", "scikit-learn", "pandas")
"""Packages whose version can change a digit of a result."""

ROWS_OF = "rows of "
"""What the fingerprint of an owner's rows is called, before the name."""

HINTS = ("state", "categories", "packages")
"""Parts that may change without any change of a utility."""


@dataclass(frozen=True)
class Origin:
    """What stored utilities come from.

    Attributes:
        setting: what they depend on besides the owners' rows, part by part.
        owners: fingerprint of each owner's rows.
        by_content: whether they depend on the members' rows alone, not on their names.
    """

    setting: Mapping[str, Part]
    owners: Mapping[str, str]
    by_content: bool = False


def origin(owners: Owners, traits: Traits, contents: Mapping[str, str], stated: str = "") -> Origin:
    """What utilities come from; `stated` is the version that the user states.

    `contents` are the fingerprints of the owners' rows.
    """
    setting = dict(traits.fingerprint)
    if stated:
        setting["version"] = Part(stated, digest(stated))
    if levels := _levels(owners):
        setting["categories"] = Part("levels of categories", digest(levels))
    packages = ", ".join(f"{package} {_version(package)}" for package in PACKAGES)
    setting["packages"] = Part(packages, digest(packages))
    return Origin(setting, contents, traits.by_content)


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


def _levels(owners: Owners) -> list[Any]:
    """The levels of every categorical column, in their order: a model may see their codes."""
    columns = owners.X.items() if isinstance(owners.X, pd.DataFrame) else ()
    return [
        [repr(name), column.cat.categories.tolist()]
        for name, column in columns
        if isinstance(column.dtype, pd.CategoricalDtype)
    ]


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
    return [n for n, mark in then.items() if now.owners.get(n) != mark and mark not in held]


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its sources
        return "not installed"
