"""How the command speaks: to stderr, and in flags where the library speaks in arguments."""

from __future__ import annotations

import sys

from dupre.spelling import printable

FLAGS = {
    "on_error='skip'": "--skip-failures",
    "make the same call again to go on": "`dupre resume DIR` goes on",
    "take the same things as then, or another file for store=": "take the same things as then, or "
    "another directory for --run; or, if it cannot have changed the trainings so far, keep them by "
    "`dupre resume DIR` with --accept-changes",
    "another file for store=": "another directory for --run",
    "call again: everything": "do it again: everything",
    "state its utility with empty=": "its utility is stated by --empty when the run is set up",
    "state task= when building the Owners": "state --task",
    "or state task='regression'": "or state --task regression",
    "state a finite empty=": "state a finite --empty",
    "utility of no data with empty= if": "utility of no data with --empty if",
    "or state empty=": "or state --empty",
    "n_jobs=1 without timeout": "--jobs 1 without --timeout",
    "recorded; evaluate suggest()": "recorded; see `dupre suggest DIR`",
}
"""What messages of the library mean on the command line."""


def in_flags(error: BaseException) -> str:
    """A message of the library in the words of the command, about the run it came from."""
    message = str(error)
    for words, flags in FLAGS.items():
        message = message.replace(words, flags)
    return message.replace(" DIR`", f" {getattr(error, 'run', 'DIR')}`")


def say(text: str) -> None:
    """Print a line that is no answer."""
    lines = [printable(line) for line in text.split("\n")]  # names may hold anything
    print("\n".join(lines), file=sys.stderr, flush=True)
