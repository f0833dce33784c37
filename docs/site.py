"""Pages of the site that are files elsewhere in the repository.

The README, CONTRIBUTING and others are written once, at the place where people look for them, with
links that work there. These hooks of mkdocs show them on the site and turn the links round.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/RESULTS.md": "results.md",
    "experiments/RESULTS.md": "paper-results.md",
    "examples": "examples.md",
}
"""Page of the site for each file or directory of the repository."""

ORIGINS = {page: origin for origin, page in PAGES.items()}

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages whose text lies elsewhere."""
    for origin, page in PAGES.items():
        text = _examples() if origin == "examples" else (ROOT / origin).read_text()
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links that work in the repository into links that work on the site."""
    here = page.file.src_uri
    origin = posixpath.dirname(ORIGINS.get(here, f"docs/{here}"))

    def turn(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(origin, match[1]))
        if "://" in match[1] or not (ROOT / target).exists():
            return match[0]
        directory, name = posixpath.split(target)
        if directory == "examples":
            target, anchor = "examples.md", f"#{name.replace('.', '')}"
        else:
            target, anchor = PAGES.get(target, target.removeprefix("docs/")), match[2] or ""
        return f"]({posixpath.relpath(target, posixpath.dirname(here) or '.')}{anchor})"

    return LINK.sub(turn, markdown)


def _examples() -> str:
    """All examples on one page, each under its name."""
    files = sorted((ROOT / "examples").glob("*.py"))
    parts = [f"## {path.name}\n\n```python\n{path.read_text()}```\n" for path in files]
    return "\n".join(["# Examples\n\nEach runs as it is: `python examples/NAME`.\n", *parts])
