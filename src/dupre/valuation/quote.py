"""What the rows of an owner would be worth who has not joined: `dupre.quote`, `Valuer.quote`.

Utilities of coalitions without the newcomer stay what they are. Those with it are predicted, as any
coalition is that was not trained; `dupre.quote` trains a few of them, each chosen to reduce the
variance of the newcomer's value most, with everything known before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dupre._types import NOTHING, Ints
from dupre.checks import whole
from dupre.data.owners import Owners
from dupre.game.semivalues import shapley
from dupre.result.quotes import Quote
from dupre.store.store import Stored
from dupre.training.engines import Engine, check_engine
from dupre.utility.adapters import Known
from dupre.utility.describe import describe
from dupre.utility.protocol import Utility
from dupre.valuation.newcomer import has, quote_of
from dupre.valuation.progress import Display, Progress, display
from dupre.valuation.question import AnyKernel, AnySemivalue, Strategy
from dupre.valuation.run import run
from dupre.valuation.source import source_of
from dupre.valuation.state import State
from dupre.valuation.stopping import RunSettings
from dupre.valuation.strategies import Active


@dataclass(frozen=True)
class Newcomer(Strategy):
    """Evaluate up to `spend` coalitions with the newcomer, one after the other.

    Those that were evaluated before count, so that the same quote asked again costs nothing.
    """

    batch: int | None = 1  # each is chosen by what the one before has shown
    first: int | None = 0  # the present owners' trainings take the place of a first design
    name: str = ""
    spend: int = 0

    ends: ClassVar[bool] = True

    def choose(self, state: State, k: int, rng: np.random.Generator) -> Ints:
        """As `Active` does for the newcomer alone."""
        tried = (state.recorded | state.failed) & has(state, self.name)
        left = min(k, self.spend - int(tried.sum()))
        return Active(focus=self.name).choose(state, left, rng) if left > 0 else NOTHING


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
        semivalue, kernel, empty, n_jobs, engine, progress, seed: as for `dupre.value`.

    Raises:
        InputError: nothing is known of the present owners, or the rows do not fit theirs.
        Others as `dupre.value`.
    """
    whole(spend, "spend, the number of trainings for a quote", least=0)
    asked = {"semivalue": semivalue, "kernel": kernel, "seed": seed}
    given: dict[str, Any] = {"empty": empty, "known": known, "store": store}
    engine = check_engine(engine, n_jobs)
    joined = owners.with_owner(name, X, y)
    source = source_of(joined, describe(utility).for_owners(joined), **given)
    valuer = source.valuer(**asked, strategy=Newcomer(name=name, spend=spend))
    settings = RunSettings(
        stop=None,
        budget=2**joined.n - 1,
        repeats=1,
        skip=engine.on_error == "skip",
        ask_empty=source.empty is None,
        traits=source.traits,
    )
    run(valuer, source, settings, engine, display(progress))
    return quote_of(valuer.with_owners(owners).state, valuer.state, name)
