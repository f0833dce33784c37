"""From a spec to a run: the data are read, split and checked, the model is built.

Whatever can be wrong is found here, before anything is trained.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from dupre._types import Task
from dupre.checks import check_empty_within
from dupre.data.owners import Owners
from dupre.runs.parse import Choices, parse_bounds, parse_choices, parse_floor
from dupre.runs.run import ExternalUtility, Run
from dupre.spec import Data, Spec, Utility
from dupre.tables import doubts, folds, models
from dupre.tables.features import Columns, columns_of
from dupre.tables.read import (
    check_sheet,
    files_to_check,
    infer_task,
    read_table,
    read_validation,
)
from dupre.utility.describe import describe
from dupre.utility.model import ModelUtility
from dupre.valuation.validation_rows import validation_notes
from dupre.valuation.valuer import Valuer


def prepare_new(spec: Spec) -> Run:
    """The same for a run that begins: what it is asked can still be corrected.

    A sheet that no file has is refused, and a utility of no data outside the bounds; what is below
    the floor is raised to it.
    """
    check_sheet(spec.data, spec.utility.validation)
    run = prepare(spec)
    empty, floor = run.utility.empty, run.traits.floor
    check_empty_within(empty if floor is None else max(empty, floor), run.traits.bounds)
    return run


def prepare(spec: Spec) -> Run:
    """Read the data, build what is to be trained; InputError if trainings would fail."""
    data, wanted, choices = spec.data, spec.utility, parse_choices(spec)
    frame = read_table(data, spec.history.forms)
    forms = frame.attrs["forms"]
    columns = columns_of(
        frame, owner=data.owner, target=data.target, drop=data.drop, groups=wanted.folds_by
    )
    task = infer_task(frame, data)
    left_out = [name for name, _ in columns.left_out]
    advice = (
        *files_to_check(data, wanted.validation),
        *doubts.columns_to_check(frame, columns, data.target, forms),
    )
    if spec.is_external:
        used = frame.drop(columns=left_out)
        owners = _owners(used, used, data, columns, task)
        _check_choices(owners, choices, spec)
        advice = (*advice, *doubts.doubtful_names(owners.names))
        return Run(spec, choices, owners, _external_utility(wanted), notes=advice, forms=forms)
    model = models.model(wanted.model, columns, task=task)
    # What is to be dropped is gone for every model; a pipeline gets all that is only of no use.
    dropped = [name for name in left_out if name in (*data.drop, wanted.folds_by)]
    used = frame.drop(columns=dropped if model.raw else left_out)
    validation: Any
    if wanted.validation:
        validation = read_validation(wanted.validation, used, data)
        every = pd.concat([used, validation])
    else:
        validation, every = folds.split_of(frame, wanted, data), used
    owners = _owners(used, every, data, columns, task)
    _check_choices(owners, choices, spec)
    utility = ModelUtility(
        model.estimator,
        owners,
        validation=validation,
        metric=models.metric(wanted.metric, task=task),
        empty=wanted.empty,
        floor=parse_floor(wanted.floor),
        bounds=parse_bounds(wanted.bounds),
        seed=spec.values.seed,
    )
    return Run(
        spec,
        choices,
        owners,
        utility,
        model.description,
        notes=(
            *validation_notes(describe(utility).validation),
            *doubts.doubtful_columns(frame, columns, target=data.target, task=task),
            *doubts.unequal_classes(utility),
            *(doubts.unlike_training(used, validation, columns) if wanted.validation else ()),
            *advice,
            *doubts.doubtful_names(owners.names),
        ),
        columns=columns,
        forms=forms,
        skipped=_skipped_rows(frame, validation if wanted.validation else None),
    )


def _check_choices(owners: Owners, choices: Choices, spec: Spec) -> None:
    """Refuse a kernel, a strategy or samples that cannot be used with these owners."""
    if any((choices.prior, choices.strategy, choices.estimator)):  # it takes time
        Valuer(
            owners,
            empty=0.0,
            kernel=choices.prior,
            strategy=choices.strategy,
            estimator=choices.estimator,
            seed=spec.values.seed,
        )


def _external_utility(wanted: Utility) -> ExternalUtility:
    floor, bounds = parse_floor(wanted.floor), parse_bounds(wanted.bounds)
    return ExternalUtility(wanted.empty or 0.0, None if floor is False else floor, bounds)


def _skipped_rows(frame: pd.DataFrame, validation: pd.DataFrame | None) -> tuple[str, ...]:
    """Rows left out in words: without an owner or a target."""
    of_validation = None if validation is None else validation.attrs.get("skipped")
    counts = {"": frame.attrs.get("skipped"), "of validation ": of_validation}
    return tuple(f"rows {whose}left out: {text}" for whose, text in counts.items() if text)


def _owners(
    rows: pd.DataFrame, every: pd.DataFrame, data: Data, columns: Columns, task: Task
) -> Owners:
    """The owners of some rows; `every` row, also for validation, decides how rows are compared."""
    return Owners.from_frame(
        rows,
        owner=data.owner,
        target=data.target,
        task=task,
        embed=models.embed_for(every, columns),
    )
