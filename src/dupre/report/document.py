"""A whole HTML document: style, script and pictures are inside, nothing is loaded.

Its policy allows only its own script, so that a hostile name could do nothing even if it were not
escaped.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from dupre.errors import InputError
from dupre.report.markup import paragraph, text

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
}
"""Kinds of logos by the end of the file's name."""

LARGEST_LOGO = 500_000
"""Bytes of a logo: it is part of every page."""


@dataclass(frozen=True)
class Heading:
    """Title, contact and logo of the page and of every statement.

    Attributes:
        title: in place of the usual one; "" for that.
        contact: whom to ask, such as a name and an address; "" for nobody.
        logo: a picture as a data URI; "" for none.
    """

    title: str = ""
    contact: str = ""
    logo: str = ""


def read_logo(path: str) -> str:
    """A picture as a data URI, "" for no path; InputError if it is no picture, or too large."""
    if not path:
        return ""
    kind = PICTURES.get(Path(path).suffix.lower())
    if kind is None:
        raise InputError(f"the logo must be one of {', '.join(PICTURES)}, got {path!r}")
    try:
        content = Path(path).read_bytes()
    except OSError as cause:
        raise InputError(f"the logo {path!r} cannot be read: {cause.strerror}") from cause
    if len(content) > LARGEST_LOGO:
        raise InputError(
            f"the logo {path!r} has {len(content):,} bytes; take one of at most {LARGEST_LOGO:,}"
        )
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def document(title: str, heading: Heading, *content: str, sortable: bool = False) -> str:
    """An HTML document of this title and heading, with markup as its content.

    If `sortable`, it has the script that sorts tables.
    """
    style, script = _read_resource("page.css"), _read_resource("page.js") if sortable else ""
    logo = f'<img class="logo" src="{heading.logo}" alt="">\n' if heading.logo else ""
    contact = paragraph(heading.contact, "contact") if heading.contact else ""
    body = "\n".join(part for part in content if part)
    element = f"<script>{script}</script>\n" if script else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<style>{style}</style>
</head>
<body>
{logo}{body}
{contact}{element}</body>
</html>
"""


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; " if script else ""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; {allowed}"
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _read_resource(name: str) -> str:
    return files("dupre.report").joinpath(name).read_text(encoding="utf-8")
