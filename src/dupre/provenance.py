"""How to get the same valuation again: versions, settings, fingerprints of what went in."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dupre.fingerprint import Part

PACKAGES = ("dupre", "numpy", "scipy", "scikit-learn", "pandas")
"""Whose versions can change a digit of a result."""


def provenance(
    seed: int, setting: Mapping[str, Part], contents: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Versions, settings and fingerprints, in words.

    Args:
        seed: of everything random in dupre.
        setting: what utilities depend on besides the owners' rows; empty if nobody asked.
        contents: fingerprint of each owner's rows; empty texts if nobody asked.
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
