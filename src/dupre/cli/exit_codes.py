"""With which codes the command ends."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Why the command ended; after a signal the code is 128 + its number."""

    NOT_PAYABLE = 4
    """Nobody should be paid by these values, and --anyway is not stated."""

    DIFFERENCES = 5
    """What was recomputed differs from what is kept."""
