"""One process at a time: a lock on a file, which the system drops however the process ends.

The file says who has the lock. It also keeps one number for the store beside it, the key of the
last evaluation that was written: a store that ends before it has lost what its log held.
"""

from __future__ import annotations

import json
import os
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from dupre.errors import StoreError
from dupre.training.evaluation import now

try:
    import fcntl
except ImportError:  # Windows: nobody is kept out; of two utilities of a training the first counts
    fcntl = None  # type: ignore[assignment]

_LENGTH = 128
"""Bytes of what a file says: always as many, so that a shorter text leaves nothing behind."""

_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """A lock on a file, which is made if it does not exist. It ends with `close` or the process."""

    def __init__(self, file: Path):
        self._file = file
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock; False if another process, or another user in this one, has it.

        Raises:
            StoreError: the file cannot be opened or locked.
        """
        try:
            found = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as cause:
            raise StoreError(
                f"the lock file cannot be opened: {cause}; may this user write there?"
            ) from cause
        try:
            # flock, not lockf: the file can be opened and closed again without losing the lock.
            if fcntl is not None:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(found)
            return False
        except OSError as cause:
            os.close(found)
            raise StoreError(
                f"{str(self._file)!r} cannot be locked: {cause}; keep it on a disk of this machine"
            ) from cause
        self._descriptor = found
        _held.add(self)
        self._write({"process": os.getpid(), "since": now(), "last": self.last})
        return True

    @property
    def holder(self) -> str:
        """Who has the lock and since when, in words; whether it is stopped (Ctrl-Z, SIGSTOP)."""
        found = self._read()
        process, since = found.get("process"), found.get("since")
        if process is None:
            return "another process"
        way = f", which is stopped: `kill -CONT {process}` lets it go on"
        return f"process {process}, since {since}{way if _is_stopped(process) else ''}"

    @property
    def last(self) -> int:
        """The number in the file; 0 if there is none."""
        number = self._read().get("last", 0)
        return number if isinstance(number, int) else 0

    @last.setter
    def last(self, number: int) -> None:
        if number != self.last:
            self._write(self._read() | {"last": number})

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._file.read_bytes())
        except (OSError, ValueError):  # it was never locked
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, what: dict[str, Any]) -> None:
        with suppress(OSError):  # the disk is full: a smaller number is right too
            file = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                os.write(file, json.dumps(what).ljust(_LENGTH).encode())
            finally:
                os.close(file)


def _is_stopped(process: int) -> bool:
    """Whether a process of this machine is stopped; only Linux tells."""
    if sys.platform != "linux":
        return False
    with suppress(OSError, IndexError):  # it has ended, or is not of this system
        stat = Path(f"/proc/{process}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] in ("T", "t")
    return False


def _close_in_child() -> None:
    """A fork shares the lock: a child that outlives a killed run would keep the next one out."""
    for lock in list(_held):
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
