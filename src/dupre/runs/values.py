"""The values of a run: by training through `dupre.value`, or from what is stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dupre._types import Names
from dupre.game.coalitions import from_names
from dupre.notes import Note
from dupre.result.valuation import Valuation
from dupre.runs.run import Run
from dupre.store.frames import as_frame
from dupre.store.store import Store
from dupre.training.engines import Dask, Local, OnError
from dupre.valuation.progress import Display
from dupre.valuation.sameness import Sameness
from dupre.valuation.second_trainings import record
from dupre.valuation.stopping import seconds_each
from dupre.valuation.training_notes import complete
from dupre.valuation.value import value
from dupre.valuation.valuer import Valuer

if TYPE_CHECKING:
    from distributed import Client


def train(run: Run, store: Path, screen: Display, client: Client | None) -> list[Valuation]:
    """Train until a limit is reached; return the values of all semivalues asked for.

    The first semivalue decides what is trained; the others use the same trainings.
    """
    limits = {"budget": run.budget, "stop": run.choices.stop}
    first = _value(run, 0, store, **limits, engine=engine_of(run, client), progress=screen)
    known = {"budget": first.facts.evaluated, "engine": Local(on_error=_on_error(run))}
    again = replace(run, spot_check=False)  # one spot check a command is enough
    others = [
        _value(again, which, store, **known, progress=False)
        for which in range(1, len(run.semivalues))
    ]
    return [run.explain(v.with_facts(stopped=first.facts.stopped)) for v in (first, *others)]


def _value(run: Run, which: int, store: Path, **how: Any) -> Valuation:
    return value(
        run.owners,
        run.trained,
        store=run.stored(store),
        repeats=run.spec.values.repeats,
        **_question(run, which),
        **how,
    )


def _question(run: Run, which: int) -> dict[str, Any]:
    """What `value` and `Valuer` are both asked, by the names of their arguments."""
    return {
        "semivalue": run.semivalues[which],
        "estimator": run.choices.estimator,
        "kernel": run.choices.prior,
        "strategy": run.choices.strategy,
        "seed": run.spec.values.seed,
    }


def _on_error(run: Run) -> OnError:
    return "skip" if run.spec.machine.skip_failures else "raise"


def engine_of(run: Run, client: Client | None) -> Dask | Local:
    """Where the trainings of a run are done."""
    timeout, on_error = run.choices.timeout, _on_error(run)
    if client is not None:
        return Dask(client, timeout=timeout, on_error=on_error)
    return Local(jobs=run.spec.machine.jobs, timeout=timeout, on_error=on_error)


def stored_valuer(run: Run, store: Path) -> Valuer:
    """A valuer of the first semivalue that knows all that is stored."""
    with run.open(store) as kept:
        return _valuer(run, kept, 0)


def _valuer(run: Run, kept: Store, which: int) -> Valuer:
    valuer = Valuer(
        run.owners,
        empty=run.utility.score_of_no_data(),
        by_content=run.traits.by_content,
        floor=run.traits.floor,
        bounds=run.traits.bounds,
        **_question(run, which),
    )
    for members in stored_coalitions(kept):
        if utilities := [e.score for _, e in sorted(kept.utilities(members).items())]:
            record(valuer, members, utilities, run.traits, run.spec.values.repeats)
            if seconds := kept.seconds(members):
                valuer.record_seconds(members, seconds)
        else:
            first = next(iter(kept.failures(members).values()))
            valuer.record_failure(members, first.failure)
    return valuer


def stored_values(run: Run, store: Path, *further: Note) -> list[Valuation]:
    """The values from what is stored, without a training, with further notes."""
    with run.open(store) as kept:
        used, notes, valuations = kept.evaluations(), kept.origin.notes(), []
        frame = as_frame(used)
        for which in range(len(run.semivalues)):
            valuer = _valuer(run, kept, which)
            valuation = valuer.values()
            if valuer.designed:  # before that, an interval says little of the next ones
                widest = valuation.uncertainty.widest
                kept.save_round(valuation.semivalue, valuer.evaluated, {"widest": widest})
            rounds = kept.rounds(valuation.semivalue).items()
            steps = pd.DataFrame([{"evaluated": n, **found} for n, found in rounds])
            valuation = replace(valuation, evaluations=frame)
            valuation = valuation.with_facts(rounds=steps, stale=kept.stale)
            valuation = complete(
                valuation,
                valuer,
                run.traits,
                origin=run.origin,
                used=used,
                notes=(*notes, *further),
            )
            valuations.append(run.explain(valuation))
    return valuations


def expected_seconds(run: Run, store: Path) -> float | None:
    """How long the trainings of one more coalition take on average, one after the other.

    None unless the first design is stored: it shows what trainings cost.
    """
    each = seconds_each(stored_valuer(run, store)) if store.exists() else None
    return None if each is None else each * (run.spec.values.repeats or 1)


def count_valid(run: Run, store: Path) -> int:
    """How many coalitions are trained on the rows that their members hold now, by members.

    Also those that were scored on other validation rows, and are trained again.
    """
    if not store.exists():  # opening it would make one
        return 0
    with run.open(store) as kept:
        scored = {names for names in stored_coalitions(kept) if kept.utilities(names)}
        return len(scored | {one.members for one in kept.scored_elsewhere() if one.members})


def count_scored_elsewhere(run: Run, store: Path) -> int:
    """How many coalitions are trained, but scored on other validation rows, and have to be again.

    If a run is to split the rows anew, these are all of them unless nothing has changed by that.
    """
    if not store.exists():
        return 0
    with run.open(store) as kept:
        return len({one.members for one in kept.scored_elsewhere() if one.members})


def count_known(run: Run, store: Path) -> int:
    """How many coalitions need no training: they have a utility, or failed and are skipped.

    Coalitions that share one training count once, as they do in the budget.
    """
    if not store.exists():
        return 0
    skips = run.spec.machine.skip_failures
    with run.open(store) as kept:
        done = [names for names in stored_coalitions(kept) if skips or kept.utilities(names)]
    sameness = Sameness(run.owners.n, run.owners.contents if run.traits.by_content else None)
    rows = [from_names(names, run.owners.names) for names in done]
    return len(set(sameness.keys(np.array(rows)))) if rows else 0


def stored_coalitions(store: Store) -> list[Names]:
    """The coalitions of which something is stored; no data are not trained."""
    return [members for members in store.coalitions() if members]
