"""Verbs that ask about a run: show, report, pay, compare, predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dupre.cli import options as o
from dupre.cli.output import open_run, print_json, print_values, say
from dupre.errors import InputError

if TYPE_CHECKING:
    from dupre.result.valuation import Valuation

UNFINISHED = "the run is not finished; these are the values so far."


def show(
    run: o.DirArgument,
    semivalue: o.MoreSemivalueOption = None,
    data: o.MovedOption = None,
    trust: o.TrustOption = False,
    json: o.JsonOption = False,
) -> None:
    """Print the values of a run again, or those so far if it is not finished.

    With --semivalue, the values by that name alone, from the trainings there are.
    """
    print_values(_results(run, data, semivalue, trust=trust), json=json)


def _results(
    run: Path, data: str | None, semivalue: list[str] | None = None, *, trust: bool
) -> list[Valuation]:
    """The last result; computed if trainings were stored since, or for other semivalues."""
    from dupre.runs.directory import RunDirectory

    directory = RunDirectory(run)
    if not (behind := directory.is_behind) and semivalue is None:
        return directory.results()
    directory, job = open_run(run, data, trust=trust)
    job = job if semivalue is None else job.with_semivalues(semivalue)
    with directory.name_errors():
        return job.values(directory.store, *[UNFINISHED] * behind)


def report(
    run: o.DirArgument,
    statements: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a page for each owner that names no other owner."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With --statements: this owner alone; repeatable."),
    ] = None,
    data: o.MovedOption = None,
    trust: o.TrustOption = False,
) -> None:
    """Write the page of a run again, of the values so far if it is not finished."""
    from dupre.runs.directory import RunDirectory

    if only and statements is None:
        raise InputError("--only chooses statements; state their directory by --statements DIR")
    directory = RunDirectory(run)
    valuations = _results(run, data, trust=trust)
    if statements is None:
        directory.write_report(valuations)
        print(directory.report)
    else:
        for path in directory.write_statements(valuations[0], statements, only or ()):
            print(path)


def pay(
    run: o.DirArgument,
    amount: Annotated[float, typer.Option(metavar="X", help="To share among the owners.")],
    currency: Annotated[str, typer.Option(metavar="CODE", help="Such as CHF.")] = "",
    negative: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="zero: who is at or below zero gets nothing; owe: who is below zero pays.",
        ),
    ] = "zero",
    minimum: Annotated[
        float, typer.Option(metavar="X", help="What everybody gets at least.")
    ] = 0.0,
    json: o.JsonOption = False,
) -> None:
    """Share an amount by the values, to the cent: a table, payments.csv, a section of the page."""
    from dupre.runs.config import PaymentSection
    from dupre.runs.directory import RunDirectory

    directory = RunDirectory(run)
    valuations = directory.results()
    terms = PaymentSection(amount, currency, negative, minimum)
    payments = valuations[0].payments(**asdict(terms))
    with directory.lock():
        directory.write_config(replace(directory.config(), payment=terms))
        path = directory.write_payments(payments)
        directory.write_report(valuations)
    if json:
        print_json(payments.frame.reset_index().to_dict("records"))
    else:
        print(payments)
        say(f"The table is in {path}, the page in {directory.report}.")


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
    trust: o.TrustOption = False,
    json: o.JsonOption = False,
) -> None:
    """Predict the utility of a coalition without training it."""
    from dupre.result.as_text import format_predictions
    from dupre.runs.parse import parse_members

    directory, job = open_run(run, data, trust=trust)
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
    pay: "pay dupre-patients --amount 10000 --currency CHF",
    compare: "compare dupre-patients Basel Bern",
    predict: "predict dupre-patients --members Basel,Bern",
}
"""With an example of each."""
