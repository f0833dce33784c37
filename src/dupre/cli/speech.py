"""How the command speaks: to stderr, and in flags where the library speaks in arguments."""

from __future__ import annotations

import sys

FLAGS = {
    "on_error='skip'": "--skip-failures",
    "make the same call again to go on": "`dupre resume DIR` goes on",
    "take the same things as then, or another file for store=": "take the same things as then, or "
    "another directory for --run",
    "another file for store=": "another directory for --run",
    "call again: everything": "go on with `dupre resume DIR`: everything",
    "state task= when building the Owners": "state --task",
    "task='regression'": "--task regression",
    "empty=": "--empty",
    "metric=": "--metric",
    "budget=": "--budget",
    "evaluate suggest()": "see `dupre suggest DIR`",
}
"""What messages of the library mean on the command line."""


def in_flags(message: str) -> str:
    """A message of the library in the words of the command."""
    for words, flags in FLAGS.items():
        message = message.replace(words, flags)
    return message


def say(text: str) -> None:
    """Print a line that is no answer."""
    print(text, file=sys.stderr, flush=True)
