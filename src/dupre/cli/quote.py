"""`dupre quote`: what the rows of an owner who has not joined would be worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dupre.cli import options as o
from dupre.cli.output import Place, about_a_run, print_json, redirect_stdout_to_stderr, say
from dupre.cli.signals import interrupt_on_signals
from dupre.errors import InputError

if TYPE_CHECKING:
    from dupre.result.quotes import Quote


@about_a_run
@o.states("amount currency negative minimum jobs dask timeout skip_failures")
def quote(
    place: Place,
    stated: dict[str, Any],
    file: Annotated[Path | None, o.NEW_ROWS] = None,
    name: Annotated[str | None, o.NEW_NAME] = None,
    like: Annotated[str | None, o.LIKE] = None,
    rows: Annotated[int | None, o.LIKE_ROWS] = None,
    spend: Annotated[int, o.SPEND] = 0,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """What the rows of an owner who has not joined would be worth, and to whom.

    The values of the run stay as they are. Trainings with the newcomer are kept, and count when
    it joins.
    """
    from dupre.runs import quote as quotes
    from dupre.runs.results import keep_quote
    from dupre.training.dask import connect
    from dupre.training.evaluation import now
    from dupre.valuation.progress import display

    if (file is None) == (like is None) or (like is None) != (rows is None):
        raise InputError("state a file of rows, or --like OWNER with --rows N for rows to come")
    if like is not None and spend:
        raise InputError("rows that do not exist cannot be trained on; leave out --spend")
    directory, run = place.open()
    if run.spec.is_external and spend:
        raise InputError("the trainings of this run are done elsewhere; leave out --spend")
    directory.check_store()
    newcomer = (
        quotes.read_newcomer(run, file, name)
        if file is not None
        else quotes.imagine_newcomer(run, like or "", rows or 0, name)
    )
    asked = run.with_spec(run.spec.change(**stated))
    with (
        interrupt_on_signals(),
        connect(asked.spec.machine.dask or "") as client,
        directory.lock(),
        redirect_stdout_to_stderr(),
    ):
        found = quotes.quote_newcomer(
            asked,
            directory.store,
            newcomer,
            spend=spend,
            screen=display(True),
            client=client,
        )
        keep_quote(directory.quotes, found.summary(now()))
        if directory.result.is_file():
            directory.write_report(directory.results())
    _print(found, stated, json=json)
    say(f"The quote is on the page: {directory.report}")


def _print(found: Quote, stated: dict[str, Any], *, json: bool) -> None:
    """The quote, and what would be paid of an amount if one is stated."""
    amount, terms = stated["amount"], ("currency", "negative", "minimum")
    how = {key: stated[key] for key in terms if stated[key] is not None}
    paid = None if amount is None else found.payments(amount, **how)
    if json:
        payments = None if paid is None else paid.reset_index().to_dict("records")
        print_json(found.as_plain() | {"payments": payments})
        return
    print(found)
    if paid is not None:
        from dupre.result.quotes import format_proposal

        print(f"\n{format_proposal(paid, amount, stated['currency'] or '')}")
