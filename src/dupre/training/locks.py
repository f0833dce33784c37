"""Who trains what, when several processes share a store: locks on bytes of a file beside it.

The system drops the locks of a process when it ends, however it ends, so a claim never outlives
its process. It also drops them when the process closes the file; therefore all claims of one
process on one file share a descriptor.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from dupre.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows: processes may train the same coalition, the first result counts
    fcntl = None  # type: ignore[assignment]

_open: dict[Path, tuple[int, list[FileLocks]]] = {}
"""Descriptor and users of each file of claims."""


class FileLocks:
    """What one store has claimed; for one in memory (no path) every claim is granted.

    Raises:
        StoreError: the file beside the store cannot be opened.
    """

    def __init__(self, store: Path | None):
        self._taken: set[int] = set()
        self._path: Path | None = None
        if store is None or fcntl is None:
            return
        path = Path(f"{store.resolve()}-claims")
        if path not in _open:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as cause:
                raise StoreError(
                    f"the claims of the store cannot be opened: {cause}; may this user write there?"
                ) from cause
            _open[path] = descriptor, []
        _open[path][1].append(self)
        self._path = path

    def take(self, byte: int) -> bool:
        """Whether the claim was free, and is now ours."""
        if self._path is None:
            return True
        descriptor, users = _open[self._path]
        if any(byte in other._taken for other in users if other is not self):
            return False
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError as cause:
            if cause.errno in (errno.EACCES, errno.EAGAIN):  # another process has it
                return False
            raise StoreError(
                f"nothing can be claimed in {str(self._path)!r}: {cause}; keep the store on a disk "
                "of this machine"
            ) from cause
        self._taken.add(byte)
        return True

    def give_back(self, byte: int) -> None:
        """Free a claim of ours."""
        if self._path is not None and byte in self._taken:
            self._taken.remove(byte)
            fcntl.lockf(_open[self._path][0], fcntl.LOCK_UN, 1, byte)

    def close(self) -> None:
        """Free all of ours."""
        for byte in list(self._taken):
            self.give_back(byte)
        if self._path is not None:
            descriptor, users = _open[self._path]
            users.remove(self)
            if not users:
                del _open[self._path]
                os.close(descriptor)
            self._path = None
