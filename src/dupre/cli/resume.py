"""`dupre resume`: go on after an interruption, or with more trainings."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from dupre.cli import options as o
from dupre.cli import value
from dupre.cli.output import Place, about_a_run
from dupre.errors import InputError


@about_a_run
def resume(
    place: Place,
    budget: Annotated[str | None, o.MORE_BUDGET] = None,
    semivalue: Annotated[list[str] | None, o.MORE_SEMIVALUE] = None,
    until: Annotated[str | None, o.UNTIL] = None,
    time: Annotated[str | None, o.TIME] = None,
    jobs: Annotated[int | None, o.JOBS] = None,
    dask: Annotated[str | None, o.DASK] = None,
    skip_failures: Annotated[bool | None, o.SKIP] = None,
    timeout: Annotated[str | None, o.TIMEOUT] = None,
    validation: Annotated[str | None, o.MOVED_VALIDATION] = None,
    accept_rows: Annotated[bool, o.ACCEPT_ROWS] = False,
    accept_model: Annotated[bool, o.ACCEPT_MODEL] = False,
    spot_check: Annotated[bool, o.SPOT_CHECK] = True,
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Go on after an interruption, or with more trainings.

    Without --budget, --until and --time the limits are as before; with one of them, only that
    counts.
    """
    from dupre.runs.parse import parse_budget
    from dupre.runs.values import count_known

    directory, run = place.open(validation)
    if run.spec.is_external:
        raise InputError(
            f"the trainings of {str(directory)!r} are done elsewhere; use "
            f"`{directory.command('suggest')}` and `{directory.command('record', 'FILE')}`"
        )
    run = run.with_semivalues([*run.spec.values.semivalues, *(semivalue or ())])
    run = replace(run, check=spot_check, accept_model=accept_model)
    with directory.lock():
        known = count_known(run, directory.store)
    spec = run.spec.change(jobs=jobs, dask=dask, timeout=timeout, skip_failures=skip_failures)
    more = None if budget is None else parse_budget(budget, known)
    if any(limit is not None for limit in (more, until, time)):
        spec = spec.without_limits().change(budget=more, until=until, time=time)
    value.train(directory, run.with_spec(spec), json=json, accept=accept_rows)
