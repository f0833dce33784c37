"""Every exception dupre raises on purpose, under one root.

A message states what was expected, what was found, and what to do next. Python and the command have
different words for what to do next: these words are a `Remedy`, not plain text.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from dupre.wording import LONGEST_LINE, cut


class Remedy(StrEnum):
    """What to do next, in the words of Python; the command has its own words for each."""

    ACCEPT = "; or keep the stored utilities with store=dupre.Stored(FILE, accept_model=True)"
    ANOTHER_STORE = "another file for store="
    ANYWAY = "anyway=True"
    BEGIN_ANOTHER_STORE = "call again with another file for store= and known=error.valuer.trainings"
    CALL_AGAIN = "call again"
    DECIMAL = "decimal="
    DELIMITER = "delimiter="
    DROP = "drop="
    EMPTY = "empty="
    ENCODING = "encoding="
    EVALUATE = "evaluate suggest()"
    GO_ON = "make the same call again to go on"
    ONE_PROCESS = "n_jobs=1"
    SAMPLES = "samples"
    SHEET = "sheet="
    SKIP = "on_error='skip' of the engine"
    SKIP_EMPTY = "skip_empty=True"
    STATE_EMPTY = "state its utility with empty="
    STATE_REGRESSION = "state task='regression'"
    STATE_TASK = "state task= when building the Owners"
    TAKE_THE_SAME = "take the same things as then, or another file for store="
    TIMEOUT = "timeout"
    UNDO = (
        "Undo that, or take another file, store=dupre.Stored(FILE, version=...), to begin with "
        "known=error.valuer.trainings, which are the stored utilities"
    )
    VALIDATION = "take validation rows from elsewhere"


class _Message(BaseException):
    """An exception whose message may hold remedies.

    Attributes:
        parts: of the message, in order: plain texts and remedies.
        run: the run directory that the command was working on; empty in Python.
    """

    run = ""

    def __init__(self, *parts: str):
        # A cell of a table may be megabytes long.
        self.parts = tuple(cut(part, LONGEST_LINE) for part in parts)
        super().__init__("".join(self.parts))


class DupreError(_Message, Exception):
    """Root of all errors raised by dupre."""


class InputError(DupreError, ValueError):
    """The data or an argument cannot be used as given; nothing was trained because of it."""


class _EndOfRun(_Message):
    """An exception that may end a run.

    Attributes:
        valuer: the `Valuer` with every evaluation recorded so far, if a run was under way.
    """

    def __init__(self, *parts: str, valuer: Any = None):
        super().__init__(*parts)
        self.valuer = valuer  # of no type here: everything imports errors, a valuer too


class EvaluationError(_EndOfRun, DupreError, RuntimeError):
    """One coalition's utility could not be obtained.

    Attributes:
        members: owner names of the coalition that failed.
        valuer: the valuer with every evaluation recorded so far. When the cause is removed, go on
            with the same store, or with `known=error.valuer.trainings`.
        known: what a baseline had evaluated before, {members: utility}; `dupre.value` takes it too.
    """

    def __init__(self, *parts: str, members: tuple[str, ...] = (), valuer: Any = None):
        super().__init__(*parts, valuer=valuer)
        self.members = members
        self.known: dict[tuple[str, ...], float] = {}


class EngineError(_EndOfRun, DupreError, RuntimeError):
    """Trainings can no longer run where they ran: the workers or their scheduler are gone.

    `valuer` holds all that was evaluated, if a run was under way.
    """


class Interrupted(_EndOfRun, KeyboardInterrupt):
    """The run was stopped from the keyboard; `valuer` holds all that was evaluated.

    Not a DupreError: `except Exception` must not swallow Ctrl-C.
    """


class StoreError(_EndOfRun, DupreError, OSError):
    """The store cannot be used: not one of ours, damaged, of other trainings, or not writable.

    `valuer` holds all that was evaluated, if a run was under way.
    """
