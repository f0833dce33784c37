"""Files that are replaced as a whole: readers see the old or the new one, never a part."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from dupre.errors import InputError


def replace_text(file: Path, text: str) -> None:
    """Write a file so that readers see the old or the new one, never a part.

    Raises:
        InputError: it cannot be written; the old one is kept.
    """
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, file)
    except OSError as cause:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
        raise InputError(
            f"{str(file)!r} cannot be written ({cause.strerror}); make room, or check who may "
            "write there"
        ) from cause


def _umask() -> int:
    """The permissions that new files of this process lack; the system tells by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
