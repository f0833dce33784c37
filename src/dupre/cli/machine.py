"""Where trainings run, and what they print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from dupre.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 5
"""Seconds to wait for a scheduler to answer."""


@contextmanager
def connected(address: str) -> Iterator[Client | None]:
    """A Dask cluster by the address of its scheduler; none for none.

    Raises:
        InputError: Dask is not installed, or nobody answers there.
    """
    if not address:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as cause:
        raise InputError("--dask needs distributed: pip install 'dupre[dask]'") from cause
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as cause:
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({cause}); start one with `dask scheduler` "
            "and give its address, such as tcp://localhost:8786"
        ) from cause
    try:
        yield client
    finally:
        client.close()


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """What models print, in this process or another, goes to stderr: stdout is for the answer."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
