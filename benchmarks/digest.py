"""By which code a section of results was made: a digest of the files that state its experiment.

    python benchmarks/digest.py benchmarks/accuracy.py

These are the script, what it imports from `benchmarks` and `experiments`, and the definition of the
paper's setting. dupre itself is left out: it changes with every commit, mostly by nothing that a
table shows, and a check that always fails is not read.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from dupre import kernels

ROOT = Path(__file__).parents[1]
SETTING = (kernels.paper, kernels.paper_process, kernels.RawSlicedWasserstein)


def digest_of(script: Path) -> str:
    """Twelve hexadecimal digits that change with the code of a script."""
    sources = [file.read_text() for file in files_of(script)]
    sources += [inspect.getsource(part) for part in SETTING]
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()[:12]


def mark(digest: str, of: str) -> str:
    """What stands in a page; a reader does not see it."""
    return f"<!-- {of} was made by code {digest} -->"


def files_of(script: Path) -> list[Path]:
    """The script and what it imports from this repository's scripts, sorted."""
    found: set[Path] = set()
    waiting = {script.resolve()}
    while waiting:
        file = waiting.pop()
        found.add(file)
        waiting |= set(_imported(file)) - found
    return sorted(found)


def _imported(file: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(file.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            path = Path(*name.split(".")).with_suffix(".py")
            yield from (
                place for folder in (file.parent, ROOT) if (place := folder / path).exists()
            )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print("\n" + mark(digest_of(Path(argument)), argument))
