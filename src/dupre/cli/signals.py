"""Signals that end a command like Ctrl-C: what is finished is stored, and workers end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP


@contextmanager
def interrupt_on_signals() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt at SIGTERM and SIGHUP; yields the signals that came.

    A signal that is ignored, as by nohup, stays ignored. After the first one both are, so that a
    second one does not interrupt what the first began.
    """
    came: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        came.append(number)
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    before = [one for one in numbers if signal.getsignal(one) is signal.SIG_DFL]
    for one in before:
        signal.signal(one, interrupt)
    try:
        yield came
    finally:
        for one in before:
            signal.signal(one, signal.SIG_DFL)
