"""The one call: `dupre.value` checks its arguments, opens the store, starts workers, and runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from dupre._types import Names
from dupre.checks import whole
from dupre.data.digests import digest
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game.coalitions import unknown_owner
from dupre.game.estimators import Estimator, Sample
from dupre.game.semivalues import Semivalue, shapley
from dupre.notes import Code, Note, note, select
from dupre.predictor.kernels import Kernel, Prior
from dupre.result.valuation import Valuation
from dupre.store import fingerprints
from dupre.store.spot_check import Stored, spot_check
from dupre.store.store import Store
from dupre.store.store_origin import contents_of
from dupre.training.engines import Engine, Local
from dupre.training.threads import switch_quickly
from dupre.utility.adapters import Known, as_trainings
from dupre.utility.describe import (
    Traits,
    check_known_empty,
    check_stated_empty,
    check_utility,
    describe,
)
from dupre.utility.protocol import Utility
from dupre.utility.score import as_scored
from dupre.valuation import validation_rows
from dupre.valuation.completion import complete
from dupre.valuation.infer import LEAST_CORRECTION
from dupre.valuation.loop import Loop, RunSettings
from dupre.valuation.outcomes import new_evaluations
from dupre.valuation.progress import Display, Progress, display
from dupre.valuation.question import LeastCore, check_owners
from dupre.valuation.stopping import Rule
from dupre.valuation.strategies import Strategy, check_strategy
from dupre.valuation.valuer import Valuer
from dupre.wording import count_things

Contents = Callable[[], dict[str, str]]
"""Gives the fingerprint of each owner's rows, computed at the first call."""


def value(
    owners: Owners,
    utility: Utility,
    *,
    budget: int | None = None,
    stop: Rule | None = None,
    semivalue: Semivalue | LeastCore | str = shapley,
    estimator: Estimator | Sample | None = None,
    strategy: Strategy | None = None,
    kernel: Kernel | Prior | None = None,
    empty: float | None = None,
    known: Known | None = None,
    store: str | Path | Stored | None = None,
    n_jobs: int = 1,
    engine: Engine | None = None,
    repeats: int | None = None,
    progress: bool | Callable[[Progress], object] | Display = True,
    seed: int = 0,
) -> Valuation:
    """Values of owners with their uncertainty after as many trainings as there is reason for.

    Args:
        owners: whose data.
        utility: a ModelUtility or any callable(tuple of owner names) -> float. Names are strings,
            whatever the owners' labels were.
        budget: coalitions to evaluate at most, those in the store and those known included; with
            2^n - 1 the values of up to 16 owners are exact. May be left out if `stop` is given.
            Coalitions that hold the same rows are evaluated once if utility is a ModelUtility.
        stop: rules of `dupre.stopping` for stopping earlier, checked after every batch:
            within(0.01), ranking_settled(), settled("A", "B"), evaluated(60), wall_time(3600),
            combined with | and &.
        semivalue: shapley, banzhaf, beta_shapley(a, b), leave_one_out, a Semivalue of your own,
            or LeastCore() for payments that no coalition would leave. A name as the command takes
            it will do: "banzhaf", "beta:4,1", "least-core".
        estimator: which coalitions enter the values: a function of `dupre.estimators` such as
            permutation, or `Sample(permutation, 20_000)` to say how many it draws. By default all
            coalitions of up to 16 owners, `regression` on a sample for more; the error this adds
            is part of the intervals.
        strategy: what to evaluate next, a record of `dupre.strategies`: by default `Active()`, the
            coalitions of most use; `Drawn()`, those of the estimator in its order; `Uniform()`,
            any; `Corrected()`, random ones that correct the predictor.
        kernel: of the predictor, a kernel of `dupre.kernels` or your own, or a `Prior` with a
            mean; `dupre.kernels.paper()` is the paper's. By default the form of the highest
            marginal likelihood.
        empty: utility of no data, not below the floor of the utility; by default that of the
            ModelUtility, or `utility(())` is asked once, which is not counted.
        known: utilities already paid for elsewhere: {members: utility}, {members: [utilities]},
            or a frame from `dupre.read_evaluations`. That of no data, (), is used if `empty` and
            a ModelUtility do not say another one.
        store: an SQLite file where every evaluation is kept the moment it is finished. Call again
            with the same file to go on where a run was stopped, however it was stopped. One stored
            coalition is then trained again, to see that its utility is still the same;
            `Stored(path, ...)` has options.
        n_jobs: processes of this machine to train in, -1 for one per core: short for
            `engine=Local(jobs=n_jobs)`.
        engine: where trainings run, and what happens if one fails: `Local(...)` or `Dask(...)` of
            `dupre.engines`, or your own.
        repeats: trainings per coalition, each with its own seed. Their mean counts, their spread
            is the noise of trainings. By default 1, but unless a model is known to use no chance,
            a few coalitions are trained a second time, extra to the budget: three to see whether
            that changes anything, then one for every eight evaluated. State 1 to spend nothing.
        progress: True for a bar in a terminal and lines elsewhere, False for nothing, or a
            callable that is given a `Progress`, or an object with `show` and `close`.
        seed: of everything random in dupre; the trainings have their own in ModelUtility.

    Raises:
        InputError: an argument cannot be used; nothing was trained.
        StoreError: the store cannot be used, or the disk is full.
        EvaluationError: a training failed and the engine does not skip failures.
        EngineError: the workers, or the scheduler of a cluster, are gone.
        Interrupted: Ctrl-C.
    """
    asked = check_strategy(strategy)
    engine = _check_engine(engine, n_jobs)
    limit = _check_limits(check_owners(owners), budget, stop, asked.check)
    strategy = asked.with_budget(owners.n, limit, stated=budget is not None)
    stored = store if isinstance(store, Stored) or store is None else Stored(store)
    contents = cache(partial(fingerprints.of_owners, owners))  # once: rows may change between calls
    if stored is not None:
        contents()  # the valuer needs the same digests
    traits = check_utility(describe(utility), owners)
    if budget is None:
        _check_end(stop, traits)
    check_stated_empty(empty, traits.floor)
    empty = traits.empty if empty is None else empty
    valuer = Valuer(
        owners,
        empty=0.0 if empty is None else empty,
        semivalue=semivalue,
        estimator=estimator,
        strategy=strategy,
        kernel=kernel,
        by_content=traits.by_content,
        floor=traits.floor,
        bounds=traits.bounds,
        seed=seed,
    )
    _check_correction(valuer, limit, asked.first or 2 * owners.n + 1)
    given = as_scored(as_trainings(known, _contents_check(owners, contents)))
    check_known_empty(given.get((), ()), empty)
    for members in filter(None, given):
        valuer.record(members, given[members])
    settings = RunSettings(
        stop=stop,
        budget=None if budget is None else limit,
        repeats=_check_repeats(repeats, traits),
        skip=engine.on_error == "skip",
        ask_empty=empty is None,
    )
    origin, shown = _origin(owners, traits, contents, stored), display(progress)
    return _run(
        valuer, traits, origin, settings, engine=engine, given=given, stored=stored, shown=shown
    )


def _run(
    valuer: Valuer,
    traits: Traits,
    origin: fingerprints.Origin,
    settings: RunSettings,
    *,
    engine: Engine,
    given: dict[Names, tuple[float, ...]],
    stored: Stored | None,
    shown: Display,
) -> Valuation:
    """Open the store, start workers, run the loop, complete the result."""
    key = _run_key(valuer, settings.repeats, origin) if stored else ""
    with (
        Store(origin, stored, valuer.key) as kept,
        closing(engine.start(traits.utility)) as workers,
        closing(shown),
        switch_quickly(),
    ):
        kept.hold()
        new = new_evaluations(kept, given)
        for some in (kept.evaluations(), new):
            validation_rows.check_resamples(traits, some)

        def begin() -> None:
            if stored is not None:
                spot_check(kept, traits, workers, stored, empty=settings.ask_empty)
            if new:
                kept.record(new)

        loop = Loop(valuer, kept, key, workers=workers, display=shown, settings=settings)
        valuation, facts = loop.run(begin)
        used = [e for e in kept.evaluations() if e.training.members in loop.recorded]
        notes = [*kept.origin.notes(), *_unused_notes(kept, loop, settings.repeats)]
    valuation = complete(
        replace(valuation, **facts), valuer, traits, origin=origin, used=used, notes=notes
    )
    if valuation.sampled:
        for told in select(valuation.notes, [Code.PREDICTOR_FAILED]):
            warnings.warn(told.text, stacklevel=3)
    return valuation


def _unused_notes(store: Store, loop: Loop, repeats: int | None) -> list[Note]:
    """A note about stored coalitions that do not count, for they lack trainings."""
    if repeats is None or repeats == 1:
        return []
    trained = {e.training.members for e in store.evaluations() if e.utility is not None}
    if not (count := len(trained - loop.recorded - {()})):
        return []
    some = count_things(count, "stored coalition")
    text = f"not used: {some} with fewer than {repeats} trainings, the repeats asked for."
    return [note(Code.UNUSED_COALITIONS, text, coalitions=count, repeats=repeats)]


def _check_repeats(repeats: int | None, traits: Traits) -> int | None:
    """Trainings per coalition; None to train some twice, if chance may change the utility."""
    if repeats is not None:
        return whole(repeats, "repeats", least=1)
    return None if traits.seeded or traits.deterministic is False else 1


def _check_limits(owners: Owners, budget: int | None, stop: Rule | None, check: int) -> int:
    """The budget as a number."""
    if budget is None and stop is None:
        raise InputError("state budget=, the number of coalitions to evaluate, or a stop= rule")
    if stop is not None and not isinstance(stop, Rule):
        raise InputError(
            "stop must be a rule of dupre.stopping such as within(0.01) | wall_time(3600), got "
            f"{stop!r}"
        )
    named = stop.owners if stop is not None else ()
    unknown = [name for name in named if name not in owners.names]
    if unknown:
        raise unknown_owner(unknown[0], owners.names, "in the stop rule")
    limit = 2**owners.n - 1 if budget is None else whole(budget, "budget", least=1)
    if check > limit // 2:
        raise InputError(f"check is {check}: at most half of the budget of {limit}")
    return limit


def _check_end(stop: Rule | None, traits: Traits) -> None:
    """Raise InputError if a rule that nothing else ends needs what a utility cannot say."""
    if stop is not None and stop.resamples and not traits.may_resample:
        raise stop.error_without_resamples()


def _check_correction(valuer: Valuer, limit: int, first: int) -> None:
    """A correction needs random coalitions after the first ones, unless all are evaluated."""
    least, everything = LEAST_CORRECTION + first, valuer.left
    if valuer.question.strategy.corrected and limit < min(least, everything):
        enough = f"{least}" if least < everything else f"{everything}, all coalitions"
        raise InputError(
            f"Corrected() needs {LEAST_CORRECTION} random coalitions after the first design: a "
            f"budget of at least {enough}, got {limit}"
        )


def _check_engine(engine: Engine | None, n_jobs: int) -> Engine:
    if engine is None:
        return Local(jobs=n_jobs)
    if n_jobs != 1:
        raise InputError("give n_jobs=, or engine= with its own number of jobs, not both")
    if not isinstance(engine, Engine):
        raise InputError(
            f"engine must be Local() or Dask() of dupre.engines, or have `start` and `on_error`, "
            f"got {engine!r}"
        )
    return engine


def _origin(
    owners: Owners, traits: Traits, contents: Contents, stored: Stored | None
) -> fingerprints.Origin:
    """What utilities come from; a store in memory needs the names of the owners only."""
    if stored is None:
        return fingerprints.Origin({}, dict.fromkeys(owners.names, ""))
    return fingerprints.origin(owners, traits, contents(), stored.version)


def _run_key(valuer: Valuer, repeats: int | None, origin: fingerprints.Origin) -> str:
    """A digest of what the decisions of a run depend on."""
    asked, setting = valuer.question, origin.setting
    parts = {name: part.digest for name, part in setting.items() if name not in fingerprints.HINTS}
    decides: list[object] = [parts, dict(origin.owners)]
    decides += [asked.semivalue.log_weights(valuer.owners.n)]
    decides += [asked.strategy, asked.strategy.in_order, type(asked.strategy).choose]
    decides += [asked.batch, asked.estimator, asked.samples]
    decides += [asked.kernel, asked.least_core, asked.seed, repeats, valuer.merges]
    decides += [] if valuer.floor is None else ["floor", valuer.floor]
    return digest(decides)


def _contents_check(owners: Owners, contents: Contents) -> Callable[[Names, str], bool]:
    """A function that says whether an evaluation of some contents is of these owners' rows."""

    def is_valid(members: Names, given: str) -> bool:
        known = all(name in owners.names for name in members)
        return known and contents_of(members, contents()) == given

    return is_valid
