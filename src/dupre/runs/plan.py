"""What a run is about to do, in words, before anything is trained."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from math import comb

import numpy as np

from dupre.game.precedence import Precedence
from dupre.notes import INFO, Code, Note, note, worst_first
from dupre.predictor.calibration import Z95
from dupre.result.as_text import coalition_count
from dupre.result.remarks import order_of_joining
from dupre.runs.run import Run
from dupre.tables.numbers import explain_forms
from dupre.utility.estimator import uses_torch
from dupre.valuation.deals import FURTHER
from dupre.valuation.question import LeastCore
from dupre.valuation.second_trainings import CHECKED, count_needed
from dupre.valuation.validation_rows import FEWEST_ROWS
from dupre.wording import count_things, in_minutes, join_list, printable, quote, write_apart

MOST_LISTED = 12
"""Owners up to which each is named with its rows, and classes up to which each is named."""


def plan(
    run: Run,
    directory: str,
    known: int,
    changes: Sequence[str] = (),
    elsewhere: int = 0,
    *,
    each: float | None = None,
) -> str:
    """Owners, model, metric and trainings of a run in this directory.

    Args:
        run: what is to be done.
        directory: where.
        known: coalitions that are stored already.
        changes: what has changed of the owners since the result before, in words.
        elsewhere: coalitions that are stored, but scored on other validation rows.
        each: seconds that one more coalition is expected to take; None if that is not known.
    """
    utility = run.trained
    found = {
        "data": _data(run),
        "changes": list(changes),
        "target": [_target(run)],
        "validation": [
            *_validation(run, len(utility.y_val)),
            *_scored_elsewhere(run, elsewhere),
        ],
        "columns": _columns(run),
        "model": list(run.model),
        "metric": [
            f"{run.metric}; without data {utility.empty:z.4g}{_floor(run)}",
            *_many_calls(run),
        ],
        "values": [_values(run)],
        "joined": [order_of_joining(run.cohorts)] if run.cohorts else [],
        "predictor": [run.choices.prior.text] if run.choices.prior is not None else [],
        "coalitions": [
            _trainings(run, known),
            *_second_trainings(run),
            *_count_trainings(run, known),
            *_time(run, known, each),
        ],
        "where": [_where(run)],
        "run": [directory],
        **_notes([*run.notes, *_few_validation_rows(run), *_few_trainings(run, known)]),
    }
    lines = [
        f"  {label if not i else '':<11} {text}".rstrip()
        for label, texts in found.items()
        for i, text in enumerate(texts)
    ]
    return "\n".join(["Plan", *lines])


OPTIONS = {
    Code.IDENTIFIERS: "--drop",
    Code.LEAK: "--drop",
    Code.OTHER_SHEETS: "--sheet",
    Code.TEXTS_FOR_NUMBERS: "--numbers",
    Code.UNEQUAL_CLASSES: "--metric",
}
"""What to state of a note; the note itself is also on the page, where there are no options."""


def _notes(notes: Iterable[Note]) -> dict[str, list[str]]:
    """What to check, and what to beware of, which is printed last: it scrolls away last."""
    found: dict[str, list[str]] = {"check": [], "beware": []}
    for one in worst_first(notes):
        option = f" ({OPTIONS[one.code]})" if one.code in OPTIONS else ""
        found["check" if one.severity == INFO else "beware"].append(f"{one.text}{option}")
    return found


def _floor(run: Run) -> str:
    if (floor := run.trained.floor) is None:
        return ""
    return f"; lower scores than {floor:.4g} count as that (--floor changes it)"


def _many_calls(run: Run) -> list[str]:
    utility = run.trained
    if not utility.resamples or not utility.metric.is_called_for_each:
        return []
    return [f"called {utility.resamples} times more for each model, on resamples of these rows"]


def _data(run: Run) -> list[str]:
    owners = run.owners
    rows = owners.rows
    total = f"{owners.n} owners, {len(owners.y):,} rows to train on"
    if owners.n <= MOST_LISTED:
        held = [f"{printable(n)} {r:,}" for n, r in zip(owners.names, rows, strict=True)]
        return [f"{total}: {', '.join(held)}", *run.skipped]
    spread = f"{rows.max():,} each"
    if (least := rows.min()) < rows.max():
        spread = f"{least:,} to {spread}, half of them at least {int(np.median(rows)):,}"
    single = int((rows == 1).sum())
    few = [f"{single} owners have a single row"] if single else []
    return [f"{total}, {spread}", *few, *run.skipped]


def _scored_elsewhere(run: Run, coalitions: int) -> list[str]:
    """How many coalitions have to be trained again, since other rows validate now."""
    if not coalitions:
        return []
    times = "" if run.traits.folds == 1 else f": {coalitions * run.traits.folds:,} trainings"
    told = count_things(coalitions, "coalition")
    return [f"{told} scored on other rows so far would be trained again{times}"]


def _columns(run: Run) -> list[str]:
    """The names of the columns that are used, by kind."""
    found = run.columns
    if found is None:
        return []
    kinds = {"numbers": found.numbers, "categories": found.categories, "dates": found.dates}
    lines = [
        f"{kind}: {join_list(map(printable, names))}" for kind, names in kinds.items() if names
    ]
    used = (*found.used, run.spec.data.target)
    read = {name: form for name, form in run.forms.items() if name in used}
    return [*lines, f"read: {explain_forms(read)}"] if read else lines


def _few_validation_rows(run: Run) -> list[Note]:
    """Whether there may be too few validation rows to tell the value of an average owner from zero.

    Values v add up to at most best - empty. If an owner's data change the outcome of a part v of
    m rows, v is known to about ± 1.96 sqrt(v / m): less than v only if m > 3.84 / v. If all owners
    change the outcome of the same rows, fewer will do.
    """
    utility, n = run.trained, run.owners.n
    best = utility.metric.bounds[1]
    average = (best - utility.empty) / n if best == 1 else 0.0
    rows, needed = len(utility.y_val), Z95**2 / average if average > 0 else 0.0
    if rows >= needed or rows < FEWEST_ROWS:  # of so few rows other notes say more
        return []
    text = (
        f"{rows:,} validation rows may be too few: of {n} owners the average one is worth at most "
        f"{average:.2g}, which may take up to {np.ceil(needed):,.0f} rows to be told from chance."
    )
    return [note(Code.ROWS_MAY_BE_FEW, text, rows=rows, needed=math.ceil(needed))]


def _few_trainings(run: Run, known: int) -> list[Note]:
    """Whether the budget ends before the first design does."""
    first = _count_first(run)
    if run.budget is None or max(run.budget, known) >= first:
        return []
    text = (
        f"{run.budget:,} trainings are fewer than the {first:,} most important ones, with which a "
        "run begins; the values will be a first guess."
    )
    return [note(Code.FEW_TRAININGS, text, budget=run.budget, first=first)]


def _target(run: Run) -> str:
    owners, name = run.owners, run.spec.data.target
    if owners.task == "regression":
        low, high = write_apart(owners.y.min(), owners.y.max())
        return f"{name}, a number from {low} to {high} (regression)"
    classes = np.unique(owners.y).tolist()
    told = f"{name}, {len(classes)} classes (classification)"
    if len(classes) > MOST_LISTED:
        return told
    return f"{told}: {', '.join(quote(one) for one in classes)}"


def _validation(run: Run, rows: int) -> list[str]:
    wanted = run.spec.utility
    if wanted.validation:
        return [f"{count_things(rows, 'row')} of {wanted.validation}"]
    lines = [f"{count_things(rows, 'row')}: {run.split}"]
    if run.traits.folds > 1:
        times = f"{run.traits.folds} trainings, {run.traits.folds} times as long as one"
        lines.append(f"each coalition takes {times} (--folds changes it)")
    if run.columns is not None and wanted.folds_in_time in run.columns.used:
        lines.append(f"models are given {printable(str(wanted.folds_in_time))}, too (or --drop it)")
    return lines


def _values(run: Run) -> str:
    names = [semivalue.name for semivalue in run.semivalues]
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names)}: all from the same trainings, chosen for {names[0]}"


def _count_weighted(run: Run) -> int:
    """Coalitions that have a weight in the values for which trainings are chosen."""
    n, first = run.owners.n, run.semivalues[0]
    if isinstance(first, Precedence):
        return sum(2 ** len(cohort) - 1 for cohort in first.cohorts)
    if isinstance(first, LeastCore):
        return int(2**n - 1)
    joined = np.isfinite(first.log_weights(n))  # coalitions of 0 to n - 1 others
    counts = np.append(joined, False) | np.append(False, joined)  # those of 0 to n owners
    return sum(comb(n, size) for size in range(1, n + 1) if counts[size])


def _count_first(run: Run) -> int:
    """Coalitions with which a run begins."""
    return min(run.choices.design(run.owners.n), _count_weighted(run))


def _trainings(run: Run, known: int) -> str:
    n, budget, stop = run.owners.n, run.budget, run.choices.stop
    counting, possible = _count_weighted(run), f"{coalition_count(n)} possible"
    if counting < 2**n - 1:
        possible = f"{counting:,} that count"
    every = budget is not None and budget >= counting and stop is None
    if every:
        which = "" if counting == 2**n - 1 else " that count"
        text = f"all {counting:,}{which}, so that nothing is predicted"
    elif budget is None:
        text = f"as many of {possible.removesuffix(' possible')} as it takes"
    else:
        text = f"{min(budget, counting):,} of {possible}"
    if stop is not None:
        text += f", until {stop.text}"
    elif run.spec.limits.budget is None and not every:
        text += " (--budget changes it)"
    if run.choices.strategy is not None:
        text += f", strategy {run.spec.values.strategy}"
    if (repeats := run.spec.values.repeats) is not None and repeats > 1:
        text += f", {repeats} times each"
    if budget is not None and budget < known < counting:
        more = min(n, counting - known)
        return f"none, {known:,} are known already; resume with --budget +{more} adds {more}"
    return f"{text}; known already: {known:,}" if known else text


def _second_trainings(run: Run) -> list[str]:
    """Whether a few coalitions are trained twice."""
    utility = run.trained
    if run.spec.values.repeats is None and run.traits.deals:
        first = min(_count_first(run), run.budget or 2**run.owners.n)
        what = "splits" if run.traits.folds == 1 else "deals of the folds"
        return [f"{first} of them under {FURTHER} further {what}, to know what these change"]
    if run.spec.values.repeats is not None or utility.deterministic:
        return []
    count = "more"
    if run.budget is not None:
        trained = min(run.budget, _count_weighted(run))
        if trained <= CHECKED:
            return ["each of them twice (--repeats)"]
        count = f"{min(trained, count_needed(trained))}"
    if not utility.seeded:
        why = "the model is not reproducible: it has no random_state"
    elif uses_torch(utility.estimator):
        why = "the seed of the model matters, which is set in torch too"
    else:
        why = "the seed of the model matters"
    return [f"{CHECKED} of them twice, or {count} if {why} (--repeats)"]


def _count_trainings(run: Run, known: int) -> list[str]:
    """How many models are trained, if that is more than coalitions."""
    folds, repeats = run.traits.folds, run.spec.values.repeats
    if run.budget is None or folds == 1:
        return []
    left = max(0, min(run.budget, _count_weighted(run)) - known)
    least = most = 0
    if repeats is None and run.traits.deals and not known:
        least = most = FURTHER * min(_count_first(run), left)
    elif repeats is None and not run.trained.deterministic and not known:
        least, most = (min(left, count) for count in (CHECKED, count_needed(left)))
    models = [folds * (left * (repeats or 1) + again) for again in (least, most)]
    if not models[1]:
        return []
    range_ = f"{models[0]:,} to " if models[0] < models[1] else ""
    return [f"{range_}{count_things(models[1], 'training')} in all"]


def _time(run: Run, known: int, each: float | None) -> list[str]:
    """How long the trainings that are left take, or how many fit into the time of the run."""
    # How many workers a cluster has is not known here; the progress of the run counts them in.
    if each is None or run.spec.machine.dask:
        return []
    jobs, stop, price = run.spec.machine.jobs, run.choices.stop, run.spec.machine.hourly
    pace = each / (jobs if jobs > 0 else os.cpu_count() or 1)
    every = _count_weighted(run)
    left = max(0, min(every if run.budget is None else run.budget, every) - known)
    limit = None if stop is None else stop.seconds
    if run.budget is None and limit is None:
        return []  # as many as it takes
    fits = left if limit is None else min(left, int(limit / pace))
    if not (minutes := in_minutes(fits * pace)):
        return []
    cost = "" if price is None else f", {price.of(fits * pace)}"
    if fits < left:
        return [f"about {fits:,} more are expected to fit into the time{cost}"]
    return [f"{fits:,} more are expected to take {minutes}{cost}"]


def _where(run: Run) -> str:
    machine = run.spec.machine
    if machine.dask:
        return f"on the Dask cluster at {machine.dask}"
    if machine.jobs == 1:
        return "in this process"
    return f"in {machine.jobs} processes" if machine.jobs > 1 else "on every core"
