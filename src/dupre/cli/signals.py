"""Signals that end the command: at once while nothing can be lost, in order afterwards.

Modules written in C swallow an exception that is raised while they are imported, or make another
error of it. So nothing is raised until a run directory is locked: the process ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = ("SIGTERM", "SIGHUP")
"""They end a command like Ctrl-C. Windows has no SIGHUP."""


@contextmanager
def end_at_once() -> Iterator[None]:
    """End the process at SIGINT, SIGTERM and SIGHUP, with a line and 128 + the number as its code.

    A signal that is ignored, as by nohup, stays ignored.
    """
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, *_numbers())}
    usual = (signal.SIG_DFL, signal.default_int_handler)
    ours = [one for one, handler in before.items() if _in_main_thread() and handler in usual]
    for one in ours:
        signal.signal(one, _end)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, before[one])


def _end(number: int, _: FrameType | None) -> None:
    with suppress(OSError):  # nobody reads it
        os.write(2, b"\nstopped\n")
    os._exit(128 + number)


@contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGINT, SIGTERM and SIGHUP.

    What is done is stored then, and workers end; the exception has the `number` of the signal. A
    signal that is ignored stays ignored. After a SIGTERM or SIGHUP both are ignored, so that a
    second one does not interrupt what the first began.
    """
    came: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        for one in ours:
            signal.signal(one, signal.SIG_IGN)
        came.append(number)
        raise KeyboardInterrupt

    before = {one: signal.getsignal(one) for one in (signal.SIGINT, *_numbers())}
    usual = (signal.SIG_DFL, _end) if _in_main_thread() else ()
    ours = [one for one in _numbers() if before[one] in usual]
    for one in ours:
        signal.signal(one, interrupt)
    if before[signal.SIGINT] is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.number = (came or [signal.SIGINT])[0]  # type: ignore[attr-defined]
        raise
    finally:
        for one in ours:
            signal.signal(one, before[one])
        if before[signal.SIGINT] is _end:
            signal.signal(signal.SIGINT, _end)


def _numbers() -> list[int]:
    return [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]


def _in_main_thread() -> bool:
    """Only there may handlers be set."""
    return threading.current_thread() is threading.main_thread()
