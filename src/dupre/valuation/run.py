"""One run of `dupre.value`: open the store, start workers, loop, and complete the result."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pandas as pd

from dupre.result.valuation import Valuation
from dupre.store.frames import as_frame
from dupre.store.origin import Origin, of_owners, origin_of
from dupre.store.spot_check import spot_check
from dupre.store.store import Store
from dupre.training.engines import Engine
from dupre.valuation.loop import Loop, is_watched
from dupre.valuation.progress import Display
from dupre.valuation.source import Source
from dupre.valuation.stopping import RunSettings
from dupre.valuation.training_notes import (
    complete,
    cost_notes,
    elsewhere_notes,
    unused_notes,
    warn_of_failed_predictor,
)
from dupre.valuation.trainings import new_evaluations
from dupre.valuation.validation_rows import check_resamples
from dupre.valuation.valuer import Valuer

FORECAST = 10
"""Further evaluations that a result looks ahead."""


def run(
    valuer: Valuer, source: Source, settings: RunSettings, engine: Engine, screen: Display
) -> Valuation:
    """Train what is asked for, and value the owners.

    Args:
        valuer: of the source's owners and a question; it has what is known from elsewhere.
        source: of utilities.
        settings: how far the run goes.
        engine: where trainings run.
        screen: shows progress.
    """
    traits, stored, made_from = source.traits, source.stored, _origin(source)
    with (
        Store(made_from, stored, valuer.key) as store,
        closing(engine.start(traits.utility)) as workers,
        closing(screen),
    ):
        store.hold()
        store.score_again(traits)
        new = new_evaluations(store, source.known)
        for some in (store.evaluations(), new):
            check_resamples(traits, some)

        def begin() -> None:
            if stored is not None:
                spot_check(store, traits, workers, stored, empty=settings.ask_empty)
            if new:
                store.record(new)

        key = _run_key(valuer, settings.repeats, made_from) if stored else ""
        loop = Loop(valuer, store, key, workers=workers, display=screen, settings=settings)
        valuation, why = loop.run(begin)
        every = store.evaluations()
        used = [e for e in every if loop.trainings.is_done(e.training.members)]
        valuation = valuer.with_comparisons(valuation)
        valuation = replace(valuation, evaluations=as_frame(every)).with_facts(
            found=loop.found,
            stopped=why,
            checked=store.origin.checked,
            stale=store.stale,
            rounds=_rounds(store, key),
            forecast=_forecast(valuer, valuation),
        )
        unused = {e.training.members for e in every if e.utility is not None}
        unused -= {e.training.members for e in used}
        notes = [
            *store.origin.notes(),
            *unused_notes(len(unused), settings.repeats),
            *elsewhere_notes(len(store.scored_elsewhere())),
            *cost_notes(loop.seconds_each),
        ]
    valuation = complete(valuation, valuer, traits, origin=made_from, used=used, notes=notes)
    warn_of_failed_predictor(valuation)
    return valuation


def _rounds(store: Store, key: str) -> pd.DataFrame:
    rounds = [{"evaluated": n, **found} for n, found in store.rounds(key).items()]
    return pd.DataFrame(rounds, columns=None if rounds else ["evaluated", "widest"])


def _forecast(valuer: Valuer, now: Valuation) -> pd.DataFrame:
    more = valuer.left and is_watched(valuer)
    return valuer.forecast(FORECAST, now=now) if more else pd.DataFrame()


def _origin(source: Source) -> Origin:
    """What utilities come from; without digests of rows the names of the owners alone."""
    owners, traits, stored = source.owners, source.traits, source.stored
    if stored is not None:
        return origin_of(owners, traits, source.contents, stored.version)
    if traits.by_content:  # the valuer has the digests: results can be compared
        return origin_of(owners, traits, of_owners(owners, renew=False))
    return Origin({}, dict.fromkeys(owners.names, ""))


def _run_key(valuer: Valuer, repeats: int | None, made_from: Origin) -> str:
    """A digest of what the decisions of a run depend on."""
    asked = valuer.question
    decides: list[object] = [asked.semivalue.log_weights(valuer.owners.n)]
    decides += [asked.strategy, asked.strategy.in_order, type(asked.strategy).choose]
    decides += [asked.batch, asked.estimator, asked.samples]
    decides += [asked.kernel, asked.least_core, asked.seed, repeats, asked.merged.changed]
    decides += [] if asked.precedence is None else ["precedence", asked.precedence.cohorts]
    decides += [] if valuer.floor is None else ["floor", valuer.floor]
    return made_from.digest_with(decides)
