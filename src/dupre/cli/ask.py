"""Verbs that ask about a run: show, report, pay, compare, predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dupre.cli import options as o
from dupre.cli.output import open_run, print_json, print_values, say, say_kept
from dupre.cli.signals import interrupt_on_signals
from dupre.errors import InputError

if TYPE_CHECKING:
    from dupre.result.valuation import Valuation
    from dupre.runs.directory import RunDirectory

UNFINISHED = "the run is not finished; these are the values so far."


def show(
    run: Annotated[Path, o.DIR],
    semivalue: Annotated[list[str] | None, o.MORE_SEMIVALUE] = None,
    data: Annotated[str | None, o.MOVED] = None,
    trust: Annotated[bool, o.TRUST] = False,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Print the values of a run again, or those so far if it is not finished.

    With --semivalue, the values by that name alone, from the trainings there are.
    """
    valuations, _ = _results(run, data, semivalue, trust=trust)
    print_values(valuations, json=json)


def _results(
    run: Path, data: str | None, semivalue: list[str] | None = None, *, trust: bool
) -> tuple[list[Valuation], bool]:
    """The last result; computed if trainings were stored since, or for other semivalues.

    And whether it is final: nobody is paid by the values of a run that is not finished.
    """
    from dupre.runs.directory import RunDirectory

    directory = RunDirectory(run)
    if not (behind := directory.is_behind) and semivalue is None:
        return directory.results(), True
    directory.check_store()
    directory, job = open_run(run, data, trust=trust)
    job = job if semivalue is None else job.with_semivalues(semivalue)
    with directory.name_errors():
        return job.values(directory.store, *[UNFINISHED] * behind), not behind


def report(
    run: Annotated[Path, o.DIR],
    statements: Annotated[Path | None, o.STATEMENTS] = None,
    only: Annotated[list[str] | None, o.ONLY] = None,
    data: Annotated[str | None, o.MOVED] = None,
    trust: Annotated[bool, o.TRUST] = False,
) -> None:
    """Write the page of a run again, of the values so far if it is not finished."""
    from dupre.runs.directory import RunDirectory

    if only and statements is None:
        raise InputError("--only chooses statements; state their directory by --statements DIR")
    directory = RunDirectory(run)
    valuations, final = _results(run, data, trust=trust)
    if statements is None:
        say_kept(directory.write_report(valuations, final=final))
        print(directory.report)
    else:
        if final and directory.has_other_payments(valuations[0]):
            say_kept(directory.write_report(valuations))
        written = directory.write_statements(valuations[0], statements, only or (), final=final)
        for path in written:
            print(path)


def pay(
    run: Annotated[Path, o.DIR],
    amount: Annotated[float, o.AMOUNT],
    currency: Annotated[str, o.CURRENCY] = "",
    negative: Annotated[str, o.NEGATIVE] = "zero",
    minimum: Annotated[float, o.MINIMUM] = 0.0,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Share an amount by the values, to the cent: a table, payments.csv, a section of the page."""
    from dupre.runs.config import PaymentSection
    from dupre.runs.directory import RunDirectory

    directory = RunDirectory(run)
    valuations = _last_results(directory)
    terms = PaymentSection(amount, currency, negative, minimum)
    payments = valuations[0].payments(**asdict(terms))
    if json:
        found = {name: part for name, part in vars(payments).items() if name != "frame"}
        print_json(found | {"payments": payments.frame.reset_index().to_dict("records")})
    else:
        print(payments, flush=True)  # also if nothing can be written here
    with interrupt_on_signals(), directory.lock():
        kept = directory.write_payments(valuations, terms)
    if not json:
        say(f"The table is in {directory.payments}, the page in {directory.report}.")
    say_kept(kept)


def compare(
    run: Annotated[Path, o.DIR],
    a: Annotated[str, o.OWNER_A],
    b: Annotated[str, o.OWNER_B],
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Is A worth more than B, and with what probability?"""
    from dupre.result.as_text import beware_notes, format_comparison
    from dupre.result.uncertainty import unknown_notes
    from dupre.runs.directory import RunDirectory

    results = _last_results(RunDirectory(run))
    found = [(v.semivalue, v.compare(a, b)) for v in results]
    if json:
        print_json([{"semivalue": name, **asdict(comparison)} for name, comparison in found])
    else:
        told: set[str] = set()
        for v, (name, comparison) in zip(results, found, strict=True):
            notes = [*unknown_notes(v), *beware_notes(v)]
            new = [note for note in notes if note not in told]
            told.update(new)
            print("\n".join([format_comparison(name, comparison), *new]))


def predict(
    run: Annotated[Path, o.DIR],
    members: Annotated[list[str], o.MEMBERS],
    data: Annotated[str | None, o.MOVED] = None,
    trust: Annotated[bool, o.TRUST] = False,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Predict the utility of a coalition without training it."""
    from dupre.result.as_text import format_predictions
    from dupre.runs.parse import parse_members

    directory, job = open_run(run, data, trust=trust)
    directory.check_store()
    coalitions = [parse_members(text, job.owners.names) for text in members]
    with directory.name_errors():
        found = job.valuer(directory.store).predict(coalitions)
    if json:
        print_json(found.to_dict("records"))
    else:
        print(format_predictions(found))


def _last_results(directory: RunDirectory) -> list[Valuation]:
    """The last result; says so if trainings were stored since."""
    valuations = directory.results()
    if directory.has_newer(valuations[0]):
        say(
            "Note: trainings were stored after these values were computed; "
            f"`{directory.renewal}` takes them into account."
        )
    return valuations


VERBS: dict[Callable[..., None], str] = {
    show: "show dupre-patients",
    report: "report dupre-patients",
    pay: "pay dupre-patients --amount 10000 --currency CHF",
    compare: "compare dupre-patients Basel Bern",
    predict: "predict dupre-patients --members Basel,Bern",
}
"""With an example of each."""
