"""A utility packed for other processes: its pickle, and its large arrays in one file.

All children of a machine map the file into their memory: they share one copy of the rows. The
process that writes the file locks it. The system drops the lock when that process ends for any
reason. A file that nobody has locked is abandoned, and the next run deletes it.
"""

from __future__ import annotations

import importlib
import mmap
import os
import pickle
import stat
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import cloudpickle
import numpy as np

from dupre.errors import InputError, Remedy
from dupre.utility.protocol import Utility, to_send

try:
    import fcntl
except ImportError:  # Windows: abandoned files stay in the temporary directory
    fcntl = None  # type: ignore[assignment]

_PREFIX = "dupre-rows-"
_ALIGNED = 64  # bytes of a cache line, which vector instructions need at most


@dataclass(frozen=True)
class RowsFile:
    """A temporary file that is locked until it is deleted or this process ends."""

    path: Path
    file: IO[bytes]

    @classmethod
    def make(cls) -> RowsFile:
        """A new file, empty."""
        while True:
            descriptor, name = tempfile.mkstemp(prefix=_PREFIX)
            new = cls(Path(name), os.fdopen(descriptor, "wb"))
            if fcntl is None:
                return new
            with suppress(OSError):  # a disk without locks: nobody can lock it to delete it either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                return new
            new.delete()  # another process has deleted it before it was locked

    def delete(self) -> None:
        """Delete the file; a second time does no harm."""
        with suppress(OSError):  # Windows keeps a file that is in use
            self.path.unlink()
        with suppress(OSError):  # the disk is full
            self.file.close()


def delete_abandoned_rows() -> None:
    """Delete the files of this user that no living process has locked."""
    if fcntl is None:
        return
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it is locked, or just deleted by another process
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid():
                with path.open("r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


@dataclass(frozen=True)
class PackedUtility:
    """A utility to be sent to other processes: its pickle, and its large arrays as bytes."""

    pickled: bytes
    buffers: tuple[Any, ...]

    def to_file(self) -> RowsFile:
        """Write it to a temporary file that processes can share; InputError if the disk is full."""
        with ExitStack() as stack:
            try:
                rows = RowsFile.make()
                stack.callback(rows.delete)
                sizes = [len(buffer) for buffer in self.buffers]
                pickle.dump((self.pickled, sizes), rows.file)
                for buffer in self.buffers:
                    rows.file.write(b"\0" * (-rows.file.tell() % _ALIGNED))
                    rows.file.write(buffer)
                rows.file.flush()
            except OSError as cause:
                raise InputError(
                    f"the rows for the workers do not fit into {tempfile.gettempdir()} ({cause}); "
                    "set the environment variable TMPDIR to a directory with more room"
                ) from cause
            stack.pop_all()
        return rows

    @staticmethod
    def from_file(path: Path) -> Utility:
        """The utility. Its large arrays stay in the file; pages are read when they are used.

        A process can write to the arrays; no other process sees it.
        """
        with path.open("rb") as file:
            pickled, sizes = pickle.load(file)  # written by our parent
            start = file.tell()
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        buffers = []
        for size in sizes:
            start += -start % _ALIGNED
            buffers.append(whole[start : start + size])
            start += size
        config, utility = pickle.loads(pickled, buffers=buffers)
        if config is not None:
            importlib.import_module("sklearn").set_config(**config)
        loaded: Utility = utility
        return loaded


def _sklearn_config() -> Any:
    """The configuration of scikit-learn, which other processes must have too; None if default.

    To set it a process must import scikit-learn, which takes longer than all else at its start.
    """
    if (sklearn := sys.modules.get("sklearn")) is None:
        return None
    with ThreadPoolExecutor(1) as new_thread:  # a new thread has the default
        default = new_thread.submit(sklearn.get_config).result()
    return None if sklearn.get_config() == default else sklearn.get_config()


def pack(utility: Utility) -> PackedUtility:
    """Pack a utility, also one of a script or a notebook; InputError if it cannot be sent."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = cloudpickle.dumps(
            (_sklearn_config(), to_send(utility)), protocol=5, buffer_callback=buffers.append
        )
    except Exception as cause:  # the user's objects pickle themselves by code of their own
        raise InputError(
            f"the utility cannot be sent to worker processes: {cause}; open files, connections and "
            "locks inside the call instead of keeping them in the model or utility, or use ",
            Remedy.ONE_PROCESS,
            " without ",
            Remedy.TIMEOUT,
        ) from cause
    return PackedUtility(data, tuple(np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers))
