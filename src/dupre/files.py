"""Files that are replaced as a whole: readers see the old or the new one, never a part."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from dupre.errors import InputError


def replace_text(file: Path, text: str) -> None:
    """Write a file so that readers see the old or the new one, never a part.

    Raises:
        InputError: it cannot be written; the old one is kept.
    """
    temporary = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "x", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
    except (OSError, UnicodeError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else cause
        raise InputError(
            f"{str(file)!r} cannot be written ({reason}); free some space, or check the permissions"
        ) from cause
    finally:
        with suppress(OSError):
            temporary.unlink()
