"""From a configuration to a job: the data are read, split and checked, the model is built.

Whatever can be wrong is found here, before anything is trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from dupre._types import Members, Task
from dupre.data.owners import Owners, task_of
from dupre.data.rows import as_targets
from dupre.errors import InputError
from dupre.game.regression import check_regression_samples
from dupre.runs.config import Config
from dupre.runs.job import ExternalUtility, Job
from dupre.runs.parse import Options, parse_bounds, parse_floor, parse_options
from dupre.tables import caveats, holdout, models
from dupre.tables.columns import Columns, columns_of
from dupre.tables.formats import has_sheets, sheet_names
from dupre.tables.read import files_of, names_not_read, read_table, read_validation
from dupre.utility.limits import UNBOUNDED, bounds_of_metric, check_empty_within
from dupre.utility.model import ModelUtility
from dupre.valuation.validation_rows import validation_caveats
from dupre.valuation.valuer import Valuer
from dupre.wording import look_alikes, quote, quote_names


def prepare_new_job(config: Config) -> Job:
    """The same for a run that begins: its bounds can still be corrected.

    A utility of no data outside them is refused; what is below the floor is raised to it.
    """
    job = prepare_job(config)
    utility, bounds = job.utility, parse_bounds(config.utility.bounds)
    if bounds is None and isinstance(utility, ModelUtility):
        bounds = bounds_of_metric(utility.metric)
    floor = utility.empty if utility.floor is None else utility.floor
    check_empty_within(max(utility.empty, floor), bounds or UNBOUNDED)
    return job


def prepare_job(config: Config) -> Job:
    """Read the data, build what is to be trained; InputError if trainings would fail."""
    data, wanted, options = config.data, config.utility, parse_options(config)
    frame = read_table(data.path, owner=data.owner, drop=data.drop, **_file_options(config))
    columns = columns_of(frame, owner=data.owner, target=data.target, drop=data.drop)
    targets = frame[data.target].to_numpy()
    task = task_of(as_targets(targets), cast("Task | None", data.task or None), data.target)
    left_out = [name for name, _ in columns.left_out]
    doubts = caveats.columns_to_check(frame, columns, data.target)
    advice = (*_not_read(config), *_other_sheets(config), *doubts)
    if config.is_external:
        used = frame.drop(columns=left_out)
        owners = _owners(used, used, config, columns, task)
        _check_choices(owners, options, config)
        return Job(config, options, owners, _external_utility(config), advice=advice)
    model = models.model(wanted.model or None, columns, task=task)
    # What is to be dropped is gone for every model; a pipeline gets all that is only of no use.
    used = frame.drop(columns=list(data.drop) if model.raw else left_out)
    copied = 0
    if wanted.validation:
        rows, without_held = used, tuple[str, ...]()
        validation = read_validation(
            wanted.validation, used, owner=data.owner, task=task, **_file_options(config)
        )
    else:
        held, scored = _held_rows(frame, used, config, task)
        rows, validation = used[~held], used[scored].drop(columns=data.owner)
        without_held = holdout.owners_without_held_rows(frame[data.owner].to_numpy(), held)
        copied = int((held & ~scored).sum())
    owners = _owners(rows, pd.concat([rows, validation]), config, columns, task)
    _check_choices(owners, options, config)
    utility = ModelUtility(
        model.estimator,
        owners,
        validation=validation,
        metric=models.metric(wanted.metric or None, task=task),
        empty=wanted.empty,
        floor=parse_floor(wanted.floor),
        bounds=parse_bounds(wanted.bounds),
        seed=config.values.seed,
    )
    return Job(
        config,
        options,
        owners,
        utility,
        model.description,
        without_held,
        caveats=(
            *look_alikes(owners.names),
            *validation_caveats(utility),
            *caveats.doubtful_columns(frame, columns, target=data.target, task=task),
            *caveats.unequal_classes(utility),
            *(caveats.unlike_training(rows, validation, columns) if wanted.validation else ()),
        ),
        advice=(*advice, *caveats.doubtful_names(owners.names)),
        columns=columns,
        skipped=_skipped_rows(frame, validation if wanted.validation else None, copied),
    )


def _held_rows(
    frame: pd.DataFrame, used: pd.DataFrame, config: Config, task: Task
) -> tuple[Members, Members]:
    """Which rows are held out, and which of them models are scored on, (N,) each.

    Those of a copy are scored once: they tell nothing new. `used` are the columns of the frame that
    the model is given, and the owner.
    """
    data, wanted, contents = config.data, config.utility, None
    owner, targets = frame[data.owner].to_numpy(), frame[data.target].to_numpy()
    if wanted.by_contents:
        known = used if wanted.used_only else frame.drop(columns=list(data.drop))
        contents = holdout.row_contents(known.drop(columns=data.owner))
    held = holdout.hold_out(
        owner,
        targets,
        wanted.holdout,
        contents=contents,
        alike=wanted.copies_alike,
        task=task,
        seed=config.values.seed,
    )
    again = False if contents is None else holdout.rows_of_copies(owner, contents)
    return held, held & ~np.asarray(again)


def _check_choices(owners: Owners, options: Options, config: Config) -> None:
    """Refuse a kernel, a strategy or samples that cannot be used with these owners."""
    asked = config.values
    if options.prior is not None or options.strategy is not None:
        Valuer(owners, empty=0.0, kernel=options.prior, strategy=options.strategy, seed=asked.seed)
    if asked.samples is not None:
        check_regression_samples(asked.samples, owners.n)


def _external_utility(config: Config) -> ExternalUtility:
    wanted = config.utility
    floor, bounds = parse_floor(wanted.floor), parse_bounds(wanted.bounds)
    return ExternalUtility(wanted.empty or 0.0, None if floor is False else floor, bounds)


def _file_options(config: Config) -> dict[str, Any]:
    """Arguments that reading the table and the validation rows have in common."""
    data = config.data
    stated = {"decimal": data.decimal, "encoding": data.encoding}
    return {
        "target": data.target,
        "delimiter": data.delimiter or None,
        "sheet": data.sheet or None,
        "skip_empty": data.skip_empty,
        **{name: text for name, text in stated.items() if text},
    }


def _files(config: Config) -> list[Path]:
    """The files of the owners' rows and of the validation rows."""
    return [*files_of(config.data.path), *map(Path, filter(None, [config.utility.validation]))]


def check_sheet(config: Config) -> None:
    """Raise InputError if a new run states a sheet, but no file has sheets.

    Earlier runs that did so can go on.
    """
    sheet, files = config.data.sheet, _files(config)
    if sheet and not any(map(has_sheets, files)):
        raise InputError(
            f"--sheet {quote(sheet)} is stated, but only .xlsx files have sheets, not "
            f"{quote_names(file.name for file in files)}; leave it out"
        )


def _not_read(config: Config) -> list[str]:
    """What is in the directory of the data, or fits their pattern, and holds no rows of owners."""
    names = names_not_read(config.data.path)
    if not names:
        return []
    return [
        f"not read: {quote_names(names)}. Directories inside are not searched, and only files with "
        "a known ending are tables (no README and the like); move or rename the data of owners."
    ]


def _other_sheets(config: Config) -> list[str]:
    """Excel files of which only the first of several sheets is read."""
    several = {} if config.data.sheet else {file: sheet_names(file) for file in _files(config)}
    return [
        f"of {len(names)} sheets in {file.name} only {names[0]!r} is read, not "
        f"{quote_names(names[1:])}; --sheet chooses another."
        for file, names in several.items()
        if len(names) > 1
    ]


def _skipped_rows(
    frame: pd.DataFrame, validation: pd.DataFrame | None, copied: int
) -> tuple[str, ...]:
    """Rows left out in words: without an owner or a target, or held out of copies."""
    of_validation = None if validation is None else validation.attrs.get("skipped")
    counts = {"": frame.attrs.get("skipped"), "of validation ": of_validation}
    found = [f"rows {whose}left out: {text}" for whose, text in counts.items() if text]
    again = f"rows held out of copies of an owner, and not scored again: {copied:,}"
    return (*found, again) if copied else tuple(found)


def _owners(
    rows: pd.DataFrame, every: pd.DataFrame, config: Config, columns: Columns, task: Task
) -> Owners:
    """The owners of some rows; `every` row, also for validation, decides how rows are compared."""
    return Owners.from_frame(
        rows,
        owner=config.data.owner,
        target=config.data.target,
        task=task,
        embed=models.embed_for(every, columns),
    )
