"""Pages as PDF, printed by a Chromium, Chrome or Edge that is installed.

The browser sees a copy of the page in a directory of its own, with a new profile and no network.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dupre.errors import InputError
from dupre.files import replace_text

VARIABLE = "DUPRE_BROWSER"
"""Environment variable that names the browser."""

BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "microsoft-edge-stable", "msedge"),
)
"""What these browsers are called on PATH."""

SECONDS = 60
"""After which a browser is ended: a page takes it two seconds."""

# All names lead nowhere: a browser asks for updates and the like also if the page asks for nothing.
OPTIONS = (
    *("--headless=new", "--disable-gpu", "--no-first-run", "--no-default-browser-check"),
    *("--disable-extensions", "--disable-sync", "--disable-background-networking"),
    *("--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND"),
    *("--no-pdf-header-footer", "--print-to-pdf-no-header"),  # the second is what it was called
)

PAPER = "<style>@page { size: A4; }</style></head>"
"""Put into the copy alone: in the page itself it would decide for whoever prints it."""


def find_browser() -> str:
    """The browser to print with; InputError if there is none."""
    if stated := os.environ.get(VARIABLE):
        if found := shutil.which(stated):
            return found
        raise InputError(f"{VARIABLE} is {stated!r}, but that is no program; correct it")
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    raise InputError(
        "a PDF is printed by a browser, and none was found; install Chromium, Chrome or Edge, or "
        f"let the environment variable {VARIABLE} name it"
    )


def print_page(page: Path, browser: str) -> Path:
    """Print a page of ours to a PDF beside it, and say where that is.

    Raises:
        InputError: the browser made no PDF, or it cannot be written.
    """
    # Beside the page: a browser that was installed as a snap sees no other temporary directory.
    try:
        with TemporaryDirectory(dir=page.parent, ignore_cleanup_errors=True) as place:
            content = _print(page.read_text(encoding="utf-8"), Path(place), browser)
    except OSError as cause:
        raise InputError(f"{str(page)!r} cannot be printed: {cause}") from cause
    pdf = page.with_suffix(".pdf")
    replace_text(pdf, content)
    return pdf


def _print(page: str, place: Path, browser: str) -> bytes:
    """The PDF of a page, made in a directory that is empty."""
    copy, pdf = place.absolute() / "page.html", place.absolute() / "page.pdf"
    copy.write_text(page.replace("</head>", PAPER, 1), encoding="utf-8")
    command = [browser, *OPTIONS, f"--user-data-dir={copy.parent / 'profile'}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--no-sandbox")  # with its sandbox Chromium refuses to run as root
    ended = _run([*command, f"--print-to-pdf={pdf}", copy.as_uri()], place / "errors")
    found = pdf.read_bytes() if pdf.is_file() else b""
    if not found.rstrip().endswith(b"%%EOF"):
        why = "made no PDF" if ended else f"did not end within {SECONDS} seconds"
        said = (place / "errors").read_text(errors="replace").strip().rpartition("\n")[2]
        raise InputError(
            f"the browser {browser!r} {why}{f' ({said})' if said else ''}; let the environment "
            f"variable {VARIABLE} name another, or print the page from a browser"
        )
    return found


def _run(command: Sequence[str], errors: Path) -> bool:
    """Run a command, what it says going to a file; whether it ended in time."""
    with open(errors, "wb") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
    try:
        process.wait(SECONDS)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        # Also after Ctrl-C. The whole group: a browser is often started by a script, and has
        # processes of its own.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
            process.wait()
