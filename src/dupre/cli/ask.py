"""Verbs that ask about a run: show, report, compare, predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

import typer

from dupre.cli import options as o
from dupre.cli.output import open_run, print_json, print_values


def show(run: o.DirArgument, json: o.JsonOption = False) -> None:
    """Print the values of a run again."""
    from dupre.runs.directory import RunDirectory

    print_values(RunDirectory(run).results(), json=json)


def report(run: o.DirArgument) -> None:
    """Write the page of a run again, and print where it is."""
    from dupre.runs.directory import RunDirectory

    directory = RunDirectory(run)
    directory.write_report(directory.results())
    print(directory.report)


def compare(
    run: o.DirArgument,
    a: Annotated[str, typer.Argument(metavar="A", help="An owner.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another owner.")],
    json: o.JsonOption = False,
) -> None:
    """Is A worth more than B, and with what probability?"""
    from dupre.result.as_text import format_comparison
    from dupre.runs.directory import RunDirectory

    found = [(v.semivalue, v.compare(a, b)) for v in RunDirectory(run).results()]
    if json:
        print_json([{"semivalue": name, **asdict(comparison)} for name, comparison in found])
    else:
        for name, comparison in found:
            print(format_comparison(name, comparison))


def predict(
    run: o.DirArgument,
    members: Annotated[
        list[str],
        typer.Option(
            metavar="A,B",
            help="Owners of a coalition, as a JSON list if names hold commas; repeatable.",
        ),
    ],
    data: o.MovedOption = None,
    json: o.JsonOption = False,
) -> None:
    """Predict the utility of a coalition without training it."""
    from dupre.result.as_text import format_predictions
    from dupre.runs.parse import parse_members

    directory, job = open_run(run, data)
    coalitions = [parse_members(text, job.owners.names) for text in members]
    with directory.name_errors():
        found = job.valuer(directory.store).predict(coalitions)
    if json:
        print_json(found.to_dict("records"))
    else:
        print(format_predictions(found))


VERBS: dict[Callable[..., None], str] = {
    show: "show dupre-patients",
    report: "report dupre-patients",
    compare: "compare dupre-patients Basel Bern",
    predict: "predict dupre-patients --members Basel,Bern",
}
"""With an example of each."""
