"""Files that are replaced as a whole, and standard streams whose reader may be gone.

Readers of a file see the old or the new one, never a part. A run goes on when nobody reads what it
prints.
"""

from __future__ import annotations

import io
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import copyfile
from typing import Any, TextIO

from dupre.errors import InputError


def replace_text(file: Path, text: str | bytes) -> None:
    """Replace a file as a whole, never a part of it; InputError if it cannot be written.

    Bytes are written as they are.
    """
    replace_texts({file: text})


def replace_texts(texts: Mapping[Path, str | bytes]) -> None:
    """Replace several files; InputError if one cannot be written, and all old ones stay.

    All new files are written beside the old ones before the first takes its place. If a later one
    cannot take its place, the old ones are put back. A process that is killed at that moment may
    leave new files beside old ones, each of them whole.
    """
    ending = secrets.token_hex(4)
    new = {file: file.with_name(f".{file.name}-{ending}") for file in texts}
    old = {file: file.with_name(f".{file.name}-{ending}-old") for file in texts}
    try:
        for file, text in texts.items():
            with _explain_failure(file), open(new[file], "xb") as out:
                out.write(text.encode() if isinstance(text, str) else text)
                out.flush()
                os.fsync(out.fileno())
        with ExitStack() as undo:
            for file in texts:
                with _explain_failure(file):
                    if len(texts) > 1:
                        _keep(file, old[file])
                        undo.callback(_put_back, file, old[file])
                    os.replace(new[file], file)
            undo.pop_all()
    finally:
        for left in (*new.values(), *old.values()):
            with suppress(OSError):
                left.unlink()


def _keep(file: Path, kept: Path) -> None:
    """Keep a file by another name, if there is one."""
    if not file.is_file():
        return
    try:
        os.link(file, kept)
    except OSError:  # not every file system has links
        copyfile(file, kept)


def _put_back(file: Path, kept: Path) -> None:
    """Put a file back that was kept; without one there was none."""
    with suppress(OSError):
        if kept.exists():
            os.replace(kept, file)
        else:
            file.unlink()


@contextmanager
def _explain_failure(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else cause
        raise InputError(
            f"{str(file)!r} cannot be written ({reason}); free some space, or check the permissions"
        ) from cause


class _Lossy(io.FileIO):
    """A descriptor that ignores what can no longer be written."""

    ignored: type[OSError] = OSError

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except self.ignored:  # the reader has gone, or the terminal
            return len(data)


class _Unread(_Lossy):
    """A descriptor that ignores that its reader has gone; a full disk stays an error."""

    ignored = BrokenPipeError


def open_lossy(descriptor: int, *, answers: bool = False) -> TextIO:
    """A text stream to a descriptor whose reader may go away.

    If it is for answers, nothing but that is ignored: one that cannot be written is an error.
    """
    kind = _Unread if answers else _Lossy
    raw = io.BufferedWriter(kind(descriptor, "w", closefd=False))
    stream = sys.__stdout__ if answers else sys.__stderr__
    encoding = getattr(stream, "encoding", None)
    return io.TextIOWrapper(raw, encoding, errors="backslashreplace", line_buffering=True)


def open_closed_streams() -> None:
    """Open the null device in place of closed standard streams; the next file would take it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
