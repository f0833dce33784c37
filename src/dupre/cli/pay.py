"""`dupre pay`: share an amount by the values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import asdict, replace

from dupre.cli import options as o
from dupre.cli.output import last_results, print_json, say, say_kept
from dupre.cli.signals import interrupt_on_signals
from dupre.spec import Payment


@o.states("amount currency negative minimum anyway", required="amount")
def pay(
    run: Annotated[Path, o.DIR],
    stated: dict[str, Any],
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Share an amount by the values, to the cent: a table, payments.csv, a section of the page.

    Values that nobody should be paid by are refused, unless --anyway is stated.
    """
    from dupre.runs.directory import RunDirectory

    directory = RunDirectory(run)
    valuations = last_results(directory)
    # Terms are stated anew each time: what was said of another amount is not carried over.
    spec = replace(directory.spec(), payment=Payment()).change(**stated)
    payments = valuations[0].payments(**asdict(spec.payment))
    if json:
        found = {name: part for name, part in vars(payments).items() if name != "frame"}
        found["notes"] = [vars(one) for one in payments.notes]
        print_json(found | {"payments": payments.frame.reset_index().to_dict("records")})
    else:
        print(payments, flush=True)  # also if nothing can be written here
    with interrupt_on_signals(), directory.lock():
        kept = directory.write_payments(valuations, spec)
    if not json:
        say(f"The table is in {directory.payments}, the page in {directory.report}.")
    say_kept(kept)
