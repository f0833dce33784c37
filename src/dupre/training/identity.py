"""What a store and a result depend on: fingerprints of owners and utilities, versions."""

from __future__ import annotations

import platform
import textwrap
import types
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dupre.data.digests import digest, stated_fingerprint
from dupre.data.owners import Owners

PACKAGES = ("dupre", "numpy", "scipy", "scikit-learn", "pandas")
"""Packages whose version can change a digit of a result."""


@dataclass(frozen=True)
class Part:
    """One part of what a utility depends on besides the owners' rows."""

    description: str
    digest: str


def of_owners(owners: Owners) -> dict[str, str]:
    """A digest of each owner's rows, by name; computed once for the same Owners."""
    return dict(owners.fingerprints)


def of_utility(utility: Any) -> dict[str, Part]:
    """What the utility of a coalition depends on besides its rows, part by part.

    The parts are those of the utility's `fingerprint`: a text, or a mapping from names to parts.
    Without a fingerprint the utility is one part.
    """
    stated = stated_fingerprint(utility)
    whole = utility if stated is None else stated
    parts = {"utility": whole}
    if isinstance(stated, Mapping):  # a subclass may use the same parts differently
        parts = {"utility": type(utility), **stated}
    return {str(name): Part(_describe(part), digest(part)) for name, part in parts.items()}


def provenance(
    seed: int, setting: Mapping[str, Part], contents: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Versions, settings and fingerprints, in words.

    Args:
        seed: of everything random in dupre.
        setting: what utilities depend on besides the owners' rows; empty if not known.
        contents: fingerprint of each owner's rows; empty texts if not known.
    """
    found = {
        "versions": {"Python": platform.python_version()} | {p: _version(p) for p in PACKAGES},
        "settings": {"seed": str(seed), **{k: part.description for k, part in setting.items()}},
        "fingerprints": {k: part.digest for k, part in setting.items()}
        | {f"rows of {name}": mark for name, mark in contents.items() if mark},
    }
    return {section: texts for section, texts in found.items() if texts}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its sources
        return "not installed"


def _describe(part: Any) -> str:
    """A part in words, for messages that say what differs."""
    if isinstance(part, str):
        text = part
    elif isinstance(part, tuple) and len(part) == 2 and hasattr(part[1], "__len__"):
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
