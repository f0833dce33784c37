"""What the rows of an owner would be worth who has not joined: `dupre.quote`, `Valuer.quote`.

Utilities of coalitions without the newcomer stay what they are. Those with it are predicted, as any
coalition is that was not trained; `dupre.quote` trains a few of them, each chosen to reduce the
variance of the newcomer's value most, with everything known before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dupre.data.owners import Owners
from dupre.game.semivalues import shapley
from dupre.result.quotes import Quote
from dupre.store.store import Stored
from dupre.training.engines import Engine, check_engine
from dupre.utility.adapters import Known
from dupre.utility.protocol import Utility
from dupre.valuation.newcomer import Newcomer, alikeness, quote_of
from dupre.valuation.progress import Display, Progress, display
from dupre.valuation.question import AnyKernel, AnySemivalue, values_for
from dupre.valuation.run import run
from dupre.valuation.source import source_of
from dupre.valuation.stopping import RunSettings


def quote(
    owners: Owners,
    utility: Utility,
    name: str,
    X: Any,
    y: Any = None,
    *,
    spend: int = 3,
    store: str | Path | Stored | None = None,
    known: Known | None = None,
    semivalue: AnySemivalue = shapley,
    kernel: AnyKernel | None = None,
    empty: float | None = None,
    n_jobs: int = 1,
    engine: Engine | None = None,
    progress: bool | Callable[[Progress], object] | Display = True,
    seed: int = 0,
) -> Quote:
    """What an owner's rows would be worth, after a few trainings with them.

    The values of the present owners are not changed. Trainings are kept in the store, and count
    when the owner joins; with the same store the same quote costs nothing.

    Args:
        owners: who are there, without the newcomer.
        utility: of them. A ModelUtility keeps its validation rows: the newcomer's train only. A
            callable is asked for coalitions with the newcomer's name.
        name: of the newcomer.
        X: its rows; may have the target column, if the owners came with one.
        y: their targets.
        spend: coalitions with the newcomer to train, those trained before included; 0 for none.
        store: of the present owners' trainings.
        known: the same trainings, if they are not in a store: as for `dupre.value`.
        semivalue: of what kind the values are; this and the others as for `dupre.value`.
        kernel: of the predictor.
        empty: utility of no data.
        n_jobs: processes of this machine to train in.
        engine: where trainings run.
        progress: how progress is shown.
        seed: of everything random in dupre.

    Raises:
        InputError: nothing is known of the present owners, or the rows do not fit theirs.
        Others as `dupre.value`.
    """
    source = source_of(owners, utility, empty=empty, known=known, store=_stored(store, spend))
    source = source.with_owners(owners.with_owner(name, X, y))
    engine = check_engine(engine, n_jobs)
    valuer = source.valuer(
        semivalue=values_for(semivalue, source.owners),
        kernel=kernel,
        seed=seed,
        strategy=Newcomer(newcomer=name, spend=spend),
    )
    settings = RunSettings(
        stop=None,
        budget=None,  # the strategy ends the run
        repeats=1,
        skip=engine.on_error == "skip",
        ask_empty=source.empty is None,
        traits=source.traits,
    )
    after = run(valuer, source, settings, engine, display(progress))
    before = valuer.with_owners(owners)
    newcomer = Newcomer(newcomer=name, alike=alikeness(before.state))
    joined = valuer.with_owners(source.owners, strategy=newcomer)
    found = quote_of(before.state, joined.state, name)
    return found.with_provenance(after.facts.provenance)


def _stored(store: str | Path | Stored | None, spend: int) -> Stored | None:
    """The store with its options; what trains nothing checks nothing by training."""
    if store is None:
        return None
    stored = store if isinstance(store, Stored) else Stored(store)
    return replace(stored, check=stored.check and spend > 0)
