"""From a spec to a run: the data are read, split and checked, the model is built.

Whatever can be wrong is found here, before anything is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from dupre._types import Task
from dupre.data.owners import Owners
from dupre.runs.parse import (
    Choices,
    check_cohorts,
    parse_bounds,
    parse_choices,
    parse_floor,
)
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
from dupre.valuation.validation_rows import not_validating, validation_notes
from dupre.valuation.valuer import Valuer

Validate = Callable[[ModelUtility], ModelUtility]


def prepare_new(spec: Spec, validate: Validate | None = None) -> Run:
    """The same for a run that begins: what it is asked can still be corrected.

    A sheet that no file has is refused, and a utility of no data outside the bounds; what is below
    the floor is raised to it.
    """
    check_sheet(spec.data, spec.utility.validation)
    check_cohorts(spec)
    run = prepare(spec, validate)
    run.check_empty()
    return run


def prepare(spec: Spec, validate: Validate | None = None) -> Run:
    """Read the data, build what is to be trained; InputError if trainings would fail.

    `validate` makes of the utility one that is scored on the rows that a run began with.
    """
    data, wanted, choices = spec.data, spec.utility, parse_choices(spec)
    frame = read_table(data, spec.history.forms)
    forms, joined = frame.attrs["forms"], frame.attrs["cohorts"]
    beside = {"groups": wanted.folds_by, "cohorts": data.cohorts}
    columns = columns_of(frame, owner=data.owner, target=data.target, drop=data.drop, **beside)
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
        return Run(spec, choices, owners, _external(wanted), joined, notes=advice, forms=forms)
    model = models.model(wanted.model, columns, task=task)
    # What is to be dropped is gone for every model; a pipeline gets all that is only of no use.
    dropped = [name for name in left_out if name in (*data.drop, *beside.values())]
    used = frame.drop(columns=dropped if model.raw else left_out)
    validation: Any
    if wanted.validation:
        validation = read_validation(wanted.validation, used, data)
        every = pd.concat([used, validation])
    else:
        validation, every = folds.split_of(frame, wanted, data), used
    owners = _owners(used, every, data, columns, task)
    _check_choices(owners, choices, spec)
    utility = _model_utility(spec, model.estimator, owners, validation)
    # With other columns no row would be as it was, which is refused later, and said better.
    if validate is not None and list(spec.history.columns) in ([], list(owners.columns or ())):
        utility = validate(utility)
    return Run(
        spec,
        choices,
        owners,
        utility,
        joined,
        model.description,
        notes=(
            *validation_notes((traits := describe(utility)).validation),
            *not_validating(traits),
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


def _model_utility(spec: Spec, estimator: Any, owners: Owners, validation: Any) -> ModelUtility:
    wanted = spec.utility
    return ModelUtility(
        estimator,
        owners,
        validation=validation,
        metric=models.metric(wanted.metric, task=owners.task),
        empty=wanted.empty,
        floor=parse_floor(wanted.floor),
        bounds=parse_bounds(wanted.bounds),
        seed=spec.values.seed,
    )


def _external(wanted: Utility) -> ExternalUtility:
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
