"""Every exception dupre raises on purpose, under one root.

A message states what was expected, what came, and what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dupre.valuation.valuer import Valuer


class DupreError(Exception):
    """Root of all errors raised by dupre."""


class InputError(DupreError, ValueError):
    """The data or an argument cannot be used as given; nothing was trained because of it."""


class EvaluationError(DupreError, RuntimeError):
    """One coalition's utility could not be obtained.

    Attributes:
        members: owner names of the coalition that failed.
        valuer: the valuer with every evaluation recorded so far; once the cause is mended, go on
            with the same store, or with `known=error.valuer.trainings`.
    """

    def __init__(self, message: str, members: tuple[str, ...], valuer: Valuer | None = None):
        super().__init__(message)
        self.members = members
        self.valuer = valuer

    def __reduce__(self) -> tuple[Any, ...]:  # survives the way back from another process
        return type(self), (str(self), self.members, self.valuer)


class Interrupted(KeyboardInterrupt):
    """The run was stopped from the keyboard; `valuer` holds all that was evaluated.

    Not a DupreError: `except Exception` must not swallow Ctrl-C.
    """

    def __init__(self, message: str, valuer: Valuer):
        super().__init__(message)
        self.valuer = valuer

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.valuer)


class StoreError(DupreError, OSError):
    """The store cannot be used: not one of ours, damaged, of other trainings, or not writable.

    Attributes:
        valuer: the valuer with every evaluation recorded so far, if a run was under way.
    """

    def __init__(self, message: str, valuer: Valuer | None = None):
        super().__init__(message)
        self.valuer = valuer

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.valuer)
