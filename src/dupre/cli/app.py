"""The entry point of the command `dupre`.

It imports nothing that takes time before signals are provided for.
"""

from __future__ import annotations

from dupre.cli.signals import end_at_once


def main() -> None:
    """Run the command; a signal ends it with a line and no traceback, however early."""
    with end_at_once():
        from dupre.cli.command import run_command

        run_command()


if __name__ == "__main__":
    main()
