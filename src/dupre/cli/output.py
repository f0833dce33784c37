"""What verbs share: opening a run directory, printing an answer, errors in words of the command."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import IntEnum
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dupre.cli import options as o
from dupre.cli.options import absolute
from dupre.errors import DupreError, NotPayableError, Remedy
from dupre.files import open_closed_streams, open_lossy
from dupre.notes import warnings
from dupre.wording import LONGEST_LINE, cut, escape_controls, json_text

if TYPE_CHECKING:
    from dupre.result.valuation import Valuation
    from dupre.runs.directory import RunDirectory
    from dupre.runs.run import Run
    from dupre.spec import Spec


class ExitCode(IntEnum):
    """Why the command ended, as in docs/cli.md; after a signal the code is 128 + its number."""

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


@dataclass(frozen=True)
class Place:
    """The run that a verb is about, and what is said of it.

    Attributes:
        run: its directory.
        data: where its data are now, if they moved.
        trust: whether to do what the directory names although it was not made here.
    """

    run: Annotated[Path, o.DIR]
    data: Annotated[str | None, o.MOVED] = None
    trust: Annotated[bool, o.TRUST] = False

    def open(
        self, validation: str | None = None, *, revalidate: bool = False
    ) -> tuple[RunDirectory, Run]:
        """The directory, and the run with its data, whose rows may be split anew."""
        from dupre.runs.directory import RunDirectory
        from dupre.runs.resume import reopen

        self.check_trusted()
        store = None if revalidate else RunDirectory(self.run).store
        return reopen(self.run, *self.moved(validation), store=store)

    def check_trusted(self) -> None:
        """Raise InputError if the directory names what this user has neither made nor trusted."""
        from dupre.runs.directory import RunDirectory
        from dupre.runs.trust import check_made_here

        spec = RunDirectory(self.run).spec()
        if self.trust:
            remember_spec(spec)
        else:  # before anything that it names is read or imported
            check_made_here(spec, str(self.run))

    def moved(self, validation: str | None) -> list[str | None]:
        """Where the data and the validation rows are now, if they moved."""
        return [path and absolute(path) for path in (self.data, validation)]


def about_a_run(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb about an existing run, whose parameter `place` comes of DIR, --data and --trust."""
    options = signature(Place, eval_str=True).parameters
    return o.in_place_of("place", options, Place)(verb)


def write_spec(directory: RunDirectory, spec: Spec) -> None:
    """Write down what is asked for; from then on the directory is one made here."""
    directory.write_spec(spec)
    remember_spec(spec)


def remember_spec(spec: Spec) -> None:
    """Remember that settings were made or trusted here, or say that this is not possible."""
    from dupre.runs.trust import remember

    if not remember(spec):
        say(
            "Note: that this run is trusted cannot be kept, so later commands ask for --trust; let "
            "XDG_STATE_HOME name a directory that can be written to."
        )


@dataclass(frozen=True)
class Printing:
    """How a verb prints values, and when they are a reason to end with another code.

    Attributes:
        json: whether to print JSON.
        verbose: whether to print everything there is to know.
        quiet: whether to print nothing but the answer, and errors.
        strict: whether a note that warns makes the command end with `ExitCode.WARNED`.
    """

    json: Annotated[bool, o.JSON] = False
    verbose: Annotated[bool, o.VERBOSE] = False
    quiet: Annotated[bool, o.QUIET] = False
    strict: Annotated[bool, o.STRICT] = False

    def print(self, valuations: Sequence[Valuation], directory: RunDirectory) -> None:
        """Print the answer: the first screen, all of it, or JSON."""
        if self.json:
            from dupre.runs.results import result_text

            print(result_text(valuations))
        elif self.verbose:
            print("\n\n".join(v.explain() for v in valuations))
        else:
            from dupre.result.as_text import format_others, format_valuation

            first, *others = valuations
            details, go_on = directory.command("show", "--verbose"), directory.way_on(first)
            answer = format_valuation(first, details=details, go_on=go_on)
            print("\n\n".join([answer, *map(format_others, others)]))

    def end(self, valuations: Sequence[Valuation]) -> None:
        """End with another code if it is asked for and something warns; files are written."""
        if self.strict and any(warnings(v.notes) for v in valuations):
            raise typer.Exit(ExitCode.WARNED)


def prints_values(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that prints values, whose parameter `printing` comes of --json and the like."""

    @wraps(verb)
    def quiet_or_not(printing: Printing, **given: Any) -> None:
        with without_stderr() if printing.quiet else nullcontext():
            verb(printing=printing, **given)

    options = signature(Printing, eval_str=True).parameters
    return o.in_place_of("printing", options, Printing)(quiet_or_not)


def say_kept(kept: Path | None) -> None:
    """Say that the table of payments has changed, and where the one before is."""
    if kept is not None and (kept / "payments.csv").is_file():
        paid = (kept.parent.parent / "payments.csv").is_file()
        now = "payments.csv and the page have the new one" if paid else "the page says why"
        # The table: payments may be the same, and their intervals or what is already paid others.
        what = "The table of payments has changed" if paid else "There are no payments any more"
        say(f"{what}: {now}. Payments before: {kept / 'payments.csv'}")


def print_json(found: object) -> None:
    """Print anything as JSON."""
    print(json_text(found))


def last_results(directory: RunDirectory) -> list[Valuation]:
    """The last result; says so if trainings were stored since."""
    valuations = directory.results()
    if directory.has_newer(valuations[0]):
        say(
            "Note: trainings were stored after these values were computed; "
            f"`{directory.renewal}` takes them into account."
        )
    return valuations


def directory_for(run: Path | None, data: str) -> RunDirectory:
    """The run directory asked for, or the one named after the data."""
    from dupre.runs.directory import RunDirectory
    from dupre.tables.read import name_of

    return RunDirectory(Path(f"dupre-{name_of(data)}") if run is None else run.expanduser())


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["dupre", *sys.argv[1:]])


@contextmanager
def redirect_stdout_to_stderr() -> Iterator[None]:
    """Send to stderr what models print in this or another process: stdout is for the answer."""
    # The descriptor too: workers and code in C do not know Python's sys.stdout.
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def without_stderr() -> Iterator[None]:
    """Print nothing to stderr, in this or another process; errors are printed afterwards."""
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        with open(null, "w") as nowhere, redirect_stderr(nowhere):
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


ANOTHER_RUN = "another directory (`dupre value` or `dupre init` with --run OTHER)"
"""Also for verbs that have no --run."""

COMMAND_WORDS = {
    Remedy.ACCEPT: "; or keep the trainings so far by `dupre resume {run}` with --accept-model",
    Remedy.ANOTHER_STORE: ANOTHER_RUN,
    Remedy.ANYWAY: "state --anyway",
    Remedy.BEGIN_ANOTHER_STORE: f"begin again in {ANOTHER_RUN}",
    Remedy.CALL_AGAIN: "do it again",
    Remedy.DECIMAL: "--decimal ",
    Remedy.DELIMITER: "--delimiter ",
    Remedy.DROP: "--drop ",
    Remedy.EMPTY: "--empty",
    Remedy.ENCODING: "--encoding ",
    Remedy.EVALUATE: "see `dupre suggest {run}`",
    Remedy.GO_ON: "`dupre resume {run}` goes on",
    Remedy.NUMBERS: "--numbers ",
    Remedy.ONE_PROCESS: "--jobs 1",
    Remedy.SAMPLES: "--samples",
    Remedy.SHEET: "--sheet ",
    Remedy.SKIP: "--skip-failures",
    Remedy.SKIP_EMPTY: "--skip-empty",
    Remedy.STATE_EMPTY: "its utility is stated by --empty when the run is set up",
    Remedy.STATE_REGRESSION: "state --task regression",
    Remedy.STATE_TASK: "state --task",
    Remedy.TAKE_THE_SAME: f"take the same things as then, or {ANOTHER_RUN}",
    Remedy.TIMEOUT: "--timeout",
    Remedy.UNDO: f"Undo that, or take {ANOTHER_RUN}",
    Remedy.VALIDATION: "state validation rows of their own with --validation FILE",
}
"""What remedies are called on the command line."""


def command_message(error: BaseException) -> str:
    """The message of an error in the words of the command, about the run that it came from."""
    run = shlex.quote(getattr(error, "run", "") or "DIR")
    parts = getattr(error, "parts", (str(error),))
    return "".join(
        COMMAND_WORDS[part].format(run=run) if isinstance(part, Remedy) else part for part in parts
    )


def say_error(error: Exception) -> ExitCode:
    """Say what went wrong, and with what code the command ends."""
    if not isinstance(error, DupreError):  # of models and metrics, too
        say(f"Error: {type(error).__name__}: {error}\nAdd --debug to see where it comes from.")
        return ExitCode.WRONG
    say(f"Error: {command_message(error)}")
    return ExitCode.NOT_PAYABLE if isinstance(error, NotPayableError) else ExitCode.WRONG


def open_streams() -> None:
    """Open streams that are closed, and let whoever reads them go away."""
    open_closed_streams()
    if sys.stderr is sys.__stderr__:
        sys.stderr = open_lossy(2)
    # `dupre show | head` is no error: files are written before anything is printed.
    if sys.stdout is sys.__stdout__:
        sys.stdout = open_lossy(1, answers=True)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def say(text: str) -> None:
    """Print to stderr what is not an answer."""
    lines = [
        cut(escape_controls(line), LONGEST_LINE) for line in text.split("\n")
    ]  # names may hold anything
    print("\n".join(lines), file=sys.stderr, flush=True)
