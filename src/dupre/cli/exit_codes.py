"""With which codes the command ends; docs/cli.md has the same table."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Why the command ended; after a signal the code is 128 + its number."""

    DONE = 0
    """All is done; also if who reads the answer went away."""

    WRONG = 2
    """Something is wrong; nothing that was trained is lost."""

    WARNED = 3
    """With --strict: done, and a note warns of something."""

    NOT_PAYABLE = 4
    """Nobody should be paid by these values, and --anyway is not stated."""

    DIFFERENCES = 5
    """What was recomputed differs from what is kept."""
