"""Whether a table has the columns that a run was made with: names and order count in every row.

Without this check a renamed column looks like other rows of all owners.
"""

from __future__ import annotations

import json

from dupre.errors import InputError
from dupre.result.valuation import Valuation
from dupre.runs.job import Job
from dupre.wording import quote, quote_names


def check_columns(job: Job, earlier: Valuation) -> None:
    """Raise InputError if the columns are not those of an earlier result, as far as it tells."""
    then, now = _columns_of(earlier), job.column_names
    if then is None or then == now:
        return
    unused = dict(job.columns.left_out) if job.columns is not None else {}
    gone = [name for name in then if name not in now]
    lost = [f"{quote(name)} is left out ({unused[name]})" for name in gone if name in unused]
    lost += [f"{quote(name)} is missing" for name in gone if name not in unused]
    new = [f"{quote(name)} is new" for name in now if name not in then]
    what = ", ".join([*lost[:5], *new[:5]])
    remedy = "give the file its earlier columns"
    if not what:
        what = f"they are in another order; expected {quote_names(then)}, got {quote_names(now)}"
        remedy = "write them in that order"
    raise InputError(
        f"the columns of {job.config.data.path!r} are not those that the run was made with: "
        f"{what}; {remedy}, or begin another run with `dupre "
        f"{'init' if job.config.is_external else 'value'} ... --run OTHER`"
    )


def _columns_of(earlier: Valuation) -> list[str] | None:
    """The columns of an earlier result; None if it does not tell them, as those of 0.1."""
    try:
        found = json.loads(earlier.provenance.get("data", {}).get("columns", ""))
    except ValueError:
        return None
    return [str(name) for name in found] if isinstance(found, list) else None
