"""What happens when a run goes on: is it ours, are its data and its trainings still the same?

Settings name code, so a directory from elsewhere must be trusted first. Names and order of columns
count in every row: without their check, a renamed column looks like other rows of all owners.
"""

from __future__ import annotations

import os
from glob import has_magic
from pathlib import Path

from msgspec.structs import replace

from dupre.errors import InputError
from dupre.result.valuation import Valuation
from dupre.runs.directory import RunDirectory
from dupre.runs.owner_changes import OwnerChanges
from dupre.runs.prepare import prepare
from dupre.runs.run import Run
from dupre.spec import Spec
from dupre.store.origin import changed_owners
from dupre.store.store import Stored
from dupre.wording import count_things, join_list, quote, quote_names


def reopen(
    path: Path, data: str | None, validation: str | None, *, store: Path | None = None
) -> tuple[RunDirectory, Run]:
    """The run of a directory that is trusted, with its data, which may have moved.

    Args:
        path: of the directory.
        data: where the data are now, an absolute path; None if they have not moved.
        validation: the same of the validation rows.
        store: that says which of the owners' rows validate; None to split all of them.

    Raises:
        InputError: its data are gone or have other columns.
    """
    directory = RunDirectory(path)
    spec = directory.spec().change(path=data)
    if not has_magic(spec.data.path) and not os.path.exists(spec.data.path):
        raise InputError(
            f"the data of {str(path)!r} are no longer in {spec.data.path!r}; say where they are "
            "with --data"
        )
    if validation is not None:
        moved = replace(
            spec.utility,
            validation=validation,
            folds=None,
            folds_by=None,
            folds_in_time=None,
            holdout=None,
            equal_owners=False,
        )
        spec = replace(spec, utility=moved)
    run = prepare(spec, None if store is None else Stored(store).validate)
    _check_columns(run, spec)
    return directory, run


def _check_columns(run: Run, spec: Spec) -> None:
    """Raise InputError if the columns are not those that the run has seen before."""
    then, now = list(spec.history.columns), run.column_names
    if then == now:
        return
    unused = dict(run.columns.left_out) if run.columns is not None else {}
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
        f"the columns of {spec.data.path!r} are not those that the run was made with: "
        f"{what}; {remedy}, or begin another run with `dupre {_first_verb(spec)} ... --run OTHER`"
    )


def accept_loss(directory: RunDirectory, run: Run, changes: OwnerChanges, *, accept: bool) -> None:
    """Note permanently that a result is replaced by one of fewer trainings.

    Not if only owners joined or left: then nothing is lost that could be used.

    Raises:
        InputError: trainings of the last result are no longer valid, and this is not accepted.
    """
    if (last := directory.last_result) is None or not changes.lost:
        return  # there is no result to lose, or nothing of it
    if not accept:
        raise InputError(
            f"the result in {str(directory)!r} is of {changes.of:,} trainings, of which "
            f"{changes.valid:,} are valid now: {_explain_loss(run, last)}. To replace it anyway "
            "add --accept-rows; to keep it, begin a run in another directory with "
            f"`dupre {_first_verb(run.spec)} ... --run OTHER`"
        )
    lost = f"{count_things(changes.lost, 'coalition')} of the result before"
    with run.open(directory.store) as kept:
        kept.origin.note(
            "rows", f"you accepted to go on without {lost}, whose rows or whose store changed"
        )


def _explain_loss(run: Run, last: Valuation) -> str:
    """Why trainings of an earlier result are not valid now."""
    every = changed_owners(last.facts.provenance, run.origin)
    gone = join_list(quote(name) for name in every if name not in run.owners.names)
    other = join_list(quote(name) for name in every if name in run.owners.names)
    found = [f"the data no longer hold {gone}"] * bool(gone)
    found += [f"the rows of {other} are no longer those of then"] * bool(other)
    return " and ".join(found) or "the store has changed"


def _first_verb(spec: Spec) -> str:
    return "init" if spec.is_external else "value"
