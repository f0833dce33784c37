"""From a configuration to a job: the data are read, split and checked, the model is built.

Whatever can be wrong is found here, before anything is trained.
"""

from __future__ import annotations

from typing import cast

import pandas as pd

from dupre._types import Names, Task
from dupre.data.owners import Owners, task_of
from dupre.data.rows import as_targets
from dupre.runs.config import Config
from dupre.runs.job import ExternalUtility, Job
from dupre.runs.parse import Options, parse_options
from dupre.tables import holdout, models
from dupre.tables.columns import Columns, columns_of
from dupre.tables.read import read_table, read_validation
from dupre.utility.model import ModelUtility
from dupre.valuation.valuer import Valuer


def prepare_job(config: Config) -> Job:
    """Read the data, build what is to be trained, and check both.

    Raises:
        InputError: anything that would make trainings fail or values meaningless.
    """
    data, wanted, options = config.data, config.utility, parse_options(config)
    delimiter = data.delimiter or None
    frame = read_table(
        data.path, owner=data.owner, target=data.target, delimiter=delimiter, drop=data.drop
    )
    columns = columns_of(frame, owner=data.owner, target=data.target, drop=data.drop)
    targets = frame[data.target].to_numpy()
    task = task_of(as_targets(targets), cast("Task | None", data.task or None))
    left_out = [name for name, _ in columns.left_out]
    if config.is_external:
        used = frame.drop(columns=left_out)
        owners = _owners(used, used, config, columns, task)
        _check_choices(owners, options, config.values.seed)
        return Job(config, options, owners, ExternalUtility(wanted.empty or 0.0))
    model = models.model(wanted.model or None, columns, task=task)
    used = frame if model.raw else frame.drop(columns=left_out)
    if wanted.validation:
        rows, without_held = used, tuple[str, ...]()
        validation = read_validation(
            wanted.validation,
            used,
            owner=data.owner,
            target=data.target,
            task=task,
            delimiter=delimiter,
        )
    else:
        owner, seed = frame[data.owner].to_numpy(), config.values.seed
        held = holdout.hold_out(owner, targets, wanted.holdout, task=task, seed=seed)
        rows, validation = used[~held], used[held].drop(columns=data.owner)
        without_held = holdout.owners_without_held_rows(owner, held)
    owners = _owners(rows, pd.concat([rows, validation]), config, columns, task)
    _check_choices(owners, options, config.values.seed)
    utility = ModelUtility(
        model.estimator,
        owners,
        validation=validation,
        metric=models.metric(wanted.metric or None, task=task),
        empty=wanted.empty,
        seed=config.values.seed,
    )
    caveats = (*_similar_names(owners.names), *_shared_rows(rows, validation))
    return Job(config, options, owners, utility, model.description, without_held, caveats)


def _check_choices(owners: Owners, options: Options, seed: int) -> None:
    """Refuse a kernel or a strategy that cannot be used with these owners."""
    if options.prior is not None or options.strategy is not None:
        Valuer(owners, empty=0.0, kernel=options.prior, strategy=options.strategy, seed=seed)


def _similar_names(names: Names) -> list[str]:
    """Caveats about owners that may be meant to be one."""
    known: dict[str, str] = {}
    found = [(known.setdefault(name.casefold(), name), name) for name in names]
    return [f"{one} and {other} are taken for two owners." for one, other in found if one != other]


def _shared_rows(rows: pd.DataFrame, validation: pd.DataFrame) -> tuple[str, ...]:
    """A caveat about validation rows that are trained on too."""
    seen = holdout.count_shared_rows(rows, validation)
    if not seen:
        return ()
    return (
        f"{seen:,} of the {len(validation):,} validation rows are also among the rows to train on, "
        "so models are partly scored on what they have seen.",
    )


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
