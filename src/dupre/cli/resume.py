"""`dupre resume`: go on after an interruption, or with more trainings."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from dupre.cli import options as o
from dupre.cli import value
from dupre.cli.output import Place, Printing, about_a_run, prints_values
from dupre.errors import InputError


@about_a_run
@prints_values
@o.states("until time jobs dask skip_failures timeout price")
def resume(
    place: Place,
    printing: Printing,
    stated: dict[str, Any],
    budget: Annotated[str | None, o.MORE_BUDGET] = None,
    semivalue: Annotated[list[str] | None, o.MORE_SEMIVALUE] = None,
    validation: Annotated[str | None, o.MOVED_VALIDATION] = None,
    accept_rows: Annotated[bool, o.ACCEPT_ROWS] = False,
    accept_model: Annotated[bool, o.ACCEPT_MODEL] = False,
    revalidate: Annotated[bool, o.REVALIDATE] = False,
    spot_check: Annotated[bool, o.SPOT_CHECK] = True,
) -> None:
    """Go on after an interruption, with more trainings, or with owners who joined, left or changed.

    Without --budget, --until and --time the limits are as before; with one of them, only that
    counts. If owners have changed, it trains until intervals are as narrow as before.
    """
    from dupre.runs.parse import parse_budget
    from dupre.runs.values import count_known

    directory, run = place.open(validation, revalidate=revalidate)
    if run.spec.is_external:
        raise InputError(
            f"the trainings of {str(directory)!r} are done elsewhere; use "
            f"`{directory.command('suggest')}` and `{directory.command('record', 'FILE')}`"
        )
    run = run.with_semivalues([*run.spec.values.semivalues, *(semivalue or ())])
    run = replace(run, spot_check=spot_check, accept_model=accept_model, revalidate=revalidate)
    with directory.lock():  # +N counts from what no other run is adding to
        known = count_known(run, directory.store)
    more = None if budget is None else parse_budget(budget, known)
    limits = (more, stated["until"], stated["time"])
    spec = run.spec if limits == (None, None, None) else run.spec.without_limits()
    run = run.with_spec(spec.change(budget=more, **stated))
    as_wide = limits == (None, None, None)
    value.train(directory, run, printing, accept=accept_rows, as_wide=as_wide)
