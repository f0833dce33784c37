"""One run of `dupre.value`: open the store, start workers, loop, and complete the result."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

import pandas as pd

from dupre._types import Names
from dupre.result.valuation import Valuation
from dupre.store.frames import as_frame
from dupre.store.origin import Origin, origin_of
from dupre.store.spot_check import spot_check
from dupre.store.store import Store, Stored
from dupre.training.engines import Engine
from dupre.utility.describe import Traits
from dupre.valuation.loop import Loop, is_watched
from dupre.valuation.progress import Display
from dupre.valuation.stopping import RunSettings
from dupre.valuation.training_notes import (
    complete,
    cost_notes,
    unused_notes,
    warn_of_failed_predictor,
)
from dupre.valuation.trainings import new_evaluations
from dupre.valuation.validation_rows import check_resamples
from dupre.valuation.valuer import Valuer

FORECAST = 10
"""Further evaluations that a result looks ahead."""


@dataclass(frozen=True)
class Asked:
    """What one call of `dupre.value` asks for, checked.

    Attributes:
        valuer: of these owners and this question; it has what is known from elsewhere.
        traits: of the utility.
        known: what is known from elsewhere, scores by coalition.
        settings: how far the run goes.
        engine: where trainings run.
        stored: the store and its options; None for one in memory.
        contents: fingerprints of the owners' rows; nothing if there is no store.
        display: shows progress.
    """

    valuer: Valuer
    traits: Traits
    known: Mapping[Names, tuple[float, ...]]
    settings: RunSettings
    engine: Engine
    stored: Stored | None
    contents: Mapping[str, str]
    display: Display


def run(asked: Asked) -> Valuation:
    """Train what is asked for, and value the owners."""
    valuer, traits, settings, stored = asked.valuer, asked.traits, asked.settings, asked.stored
    made_from = _origin(asked)
    with (
        Store(made_from, stored, valuer.key) as store,
        closing(asked.engine.start(traits.utility)) as workers,
        closing(asked.display),
    ):
        store.hold()
        new = new_evaluations(store, asked.known)
        for some in (store.evaluations(), new):
            check_resamples(traits, some)

        def begin() -> None:
            if stored is not None:
                spot_check(store, traits, workers, stored, empty=settings.ask_empty)
            if new:
                store.record(new)

        key = _run_key(valuer, settings.repeats, made_from) if stored else ""
        loop = Loop(valuer, store, key, workers=workers, display=asked.display, settings=settings)
        valuation, why = loop.run(begin)
        every = store.evaluations()
        used = [e for e in every if loop.trainings.is_done(e.training.members)]
        valuation = replace(valuation, evaluations=as_frame(every)).with_facts(
            found=loop.found,
            stopped=why,
            checked=store.origin.checked,
            stale=store.stale,
            rounds=_rounds(store, key),
            forecast=_forecast(valuer, valuation),
            contributions=valuer.contributions(),
        )
        unused = {e.training.members for e in every if e.utility is not None}
        unused -= {e.training.members for e in used}
        notes = [*store.origin.notes(), *unused_notes(len(unused), settings.repeats)]
        notes += cost_notes(loop.seconds_each)
    valuation = complete(valuation, valuer, traits, origin=made_from, used=used, notes=notes)
    warn_of_failed_predictor(valuation)
    return valuation


def _rounds(store: Store, key: str) -> pd.DataFrame:
    rounds = [{"evaluated": n, **found} for n, found in store.rounds(key).items()]
    return pd.DataFrame(rounds, columns=None if rounds else ["evaluated", "widest"])


def _forecast(valuer: Valuer, now: Valuation) -> pd.DataFrame:
    more = valuer.left and is_watched(valuer)
    return valuer.forecast(FORECAST, now=now) if more else pd.DataFrame()


def _origin(asked: Asked) -> Origin:
    """What utilities come from; a store in memory needs the names of the owners only."""
    owners = asked.valuer.owners
    if asked.stored is None:
        return Origin({}, dict.fromkeys(owners.names, ""))
    return origin_of(owners, asked.traits, asked.contents, asked.stored.version)


def _run_key(valuer: Valuer, repeats: int | None, made_from: Origin) -> str:
    """A digest of what the decisions of a run depend on."""
    asked = valuer.question
    decides: list[object] = [asked.semivalue.log_weights(valuer.owners.n)]
    decides += [asked.strategy, asked.strategy.in_order, type(asked.strategy).choose]
    decides += [asked.batch, asked.estimator, asked.samples]
    decides += [asked.kernel, asked.least_core, asked.seed, repeats, asked.merged.changed]
    decides += [] if valuer.floor is None else ["floor", valuer.floor]
    return made_from.digest_with(decides)
