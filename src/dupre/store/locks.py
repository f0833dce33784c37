"""Locks for processes that share a store: one byte of a file beside it stands for each training.

The system drops the locks of a process when it ends for any reason. It also drops them when the
process closes the file; so all locks of one process on one file share a descriptor.

The file itself holds one number, the key of the last evaluation that was written to the store. A
store that ends before it has lost what its log held.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dupre.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows: processes may train the same coalition, the first result counts
    fcntl = None  # type: ignore[assignment]

_FLOCK = "hhqqi"
"""The record of a lock on Linux: kind, origin, start, length, process."""

_open: dict[Path, tuple[int, list[FileLocks]]] = {}
"""Descriptor and users of each lock file."""


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock, and whether it is stopped (Ctrl-Z, SIGSTOP)."""

    process: int
    stopped: bool

    def __str__(self) -> str:
        way = f", which is stopped: `kill -CONT {self.process}` lets it go on"
        return f"process {self.process}{way if self.stopped else ''}"


def find_holder(store: Path) -> Holder | None:
    """Another process that holds a lock of a store open here; None if the system does not say."""
    users = _open.get(lock_file(store))
    if users is None or sys.platform != "linux":
        return None
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(users[0], fcntl.F_GETLK, asked))
    if kind == fcntl.F_UNLCK or process <= 0:
        return None
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):  # it has ended, or is not of this system
        return None
    return Holder(process, state in ("T", "t"))


def lock_file(store: Path) -> Path:
    """The file beside a store."""
    return Path(f"{store.resolve()}-claims")


class FileLocks:
    """The locks that one store holds. A store in memory (no path) gets every lock.

    Raises:
        StoreError: the file beside the store cannot be opened.
    """

    def __init__(self, store: Path | None):
        self._held: set[int] = set()
        self._path: Path | None = None
        if store is None or fcntl is None:
            return
        path = lock_file(store)
        if path not in _open:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as cause:
                raise StoreError(
                    f"the lock file of the store cannot be opened: {cause}; may this user write "
                    "there?"
                ) from cause
            _open[path] = descriptor, []
        _open[path][1].append(self)
        self._path = path

    def acquire(self, byte: int) -> bool:
        """Lock a byte; False if another store or process holds it."""
        if self._path is None:
            return True
        descriptor, users = _open[self._path]
        if any(byte in other._held for other in users if other is not self):
            return False
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError as cause:
            if cause.errno in (errno.EACCES, errno.EAGAIN):  # another process has it
                return False
            raise StoreError(
                f"{str(self._path)!r} cannot be locked: {cause}; keep the store on a disk "
                "of this machine"
            ) from cause
        self._held.add(byte)
        return True

    def release(self, byte: int) -> None:
        """Unlock a byte if this store holds it."""
        if self._path is not None and byte in self._held:
            self._held.remove(byte)
            fcntl.lockf(_open[self._path][0], fcntl.LOCK_UN, 1, byte)

    @property
    def last(self) -> int:
        """The number in the file; 0 if there is none."""
        if self._path is None:
            return 0
        return int.from_bytes(os.pread(_open[self._path][0], 8, 0), "little")

    @last.setter
    def last(self, key: int) -> None:
        if self._path is not None:
            with suppress(OSError):  # the disk is full: a smaller number is right too
                os.pwrite(_open[self._path][0], key.to_bytes(8, "little"), 0)

    def close(self) -> None:
        """Release all locks."""
        for byte in list(self._held):
            self.release(byte)
        if self._path is not None:
            descriptor, users = _open[self._path]
            users.remove(self)
            if not users:
                del _open[self._path]
                os.close(descriptor)
            self._path = None
