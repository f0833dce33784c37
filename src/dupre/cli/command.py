"""The command `dupre`: its verbs, its exit codes, and when a traceback is shown.

Answers go to stdout, everything else to stderr. Heavy modules are imported by the verbs that need
them, so that `dupre --help` is quick.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dupre.cli.compare import compare
from dupre.cli.demo import demo
from dupre.cli.history import history
from dupre.cli.init import init
from dupre.cli.output import command_message, open_streams, say, say_error
from dupre.cli.pay import pay
from dupre.cli.predict import predict
from dupre.cli.quote import quote
from dupre.cli.record import record
from dupre.cli.report import report
from dupre.cli.resume import resume
from dupre.cli.show import show
from dupre.cli.suggest import suggest
from dupre.cli.value import value
from dupre.cli.verify import verify


class Verbs(TyperGroup):
    """Verbs that say where everything is kept when they are interrupted."""

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; after Ctrl-C or a signal say how to go on, and end with 128 + its number."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            say(f"\n{command_message(stop) or 'stopped'}")
            raise typer.Exit(128 + getattr(stop, "number", signal.SIGINT)) from stop


app = typer.Typer(
    name="dupre",
    cls=Verbs,
    help="What is each data owner's data worth? Fair values with honest uncertainty, after "
    "training only a handful of models.\n\nBegin with `dupre demo`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXAMPLES: dict[Callable[..., None], str] = {
    value: "value patients.csv --owner hospital --target outcome",
    resume: "resume dupre-patients --budget +40",
    demo: "demo",
    show: "show dupre-patients",
    history: "history dupre-patients --figure history.png",
    report: "report dupre-patients",
    pay: "pay dupre-patients --amount 10000 --currency CHF",
    verify: "verify dupre-patients",
    compare: "compare dupre-patients Basel Bern",
    predict: "predict dupre-patients --members Basel,Bern",
    quote: "quote dupre-patients newcomer.csv --spend 3",
    init: "init patients.csv --owner hospital --target outcome --empty 0.5",
    suggest: "suggest dupre-patients -n 8 > next.csv",
    record: "record dupre-patients next.csv",
}
"""Every verb, in the order of the help."""

for verb, example in EXAMPLES.items():
    app.command(epilog=f"Example: dupre {example}")(verb)


def _print_version(wanted: bool) -> None:
    if wanted:
        from dupre import __version__

        print(f"dupre {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[  # answered before anything else
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[  # `run_command` reads it, before or after the verb
        bool, typer.Option("--debug", help="Show where an error comes from; also after a verb.")
    ] = False,
) -> None:
    """Verbs over run directories."""


OBJECTS = 10_000
"""New objects after which Python looks for cycles; by its default of 700 a tenth of a short run is
spent on looking through imported modules."""


def run_command() -> None:
    """Run the command. A traceback is shown with --debug only, before or after the verb."""
    gc.set_threshold(OBJECTS)
    debug = "--debug" in sys.argv
    open_streams()
    try:
        app([argument for argument in sys.argv[1:] if argument != "--debug"], prog_name="dupre")
    except Exception as error:  # also of models and metrics: the user sees a line, not a traceback
        if debug:
            raise
        sys.exit(say_error(error))
