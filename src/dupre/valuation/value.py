"""The one call: `dupre.value` checks its arguments before anything is trained, and runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dupre.data.owners import Owners
from dupre.game.semivalues import shapley
from dupre.result.valuation import Valuation
from dupre.store.store import Stored
from dupre.training.engines import Engine, check_engine
from dupre.utility.adapters import Known
from dupre.utility.protocol import Utility
from dupre.valuation.progress import Display, Progress, display
from dupre.valuation.question import (
    AnyEstimator,
    AnyKernel,
    AnySemivalue,
    Strategy,
    check_owners,
)
from dupre.valuation.run import run
from dupre.valuation.source import source_of
from dupre.valuation.stopping import Rule, RunSettings, check_limits
from dupre.valuation.strategies import check_correction, check_strategy


def value(
    owners: Owners,
    utility: Utility,
    *,
    budget: int | None = None,
    stop: Rule | None = None,
    semivalue: AnySemivalue = shapley,
    estimator: AnyEstimator | None = None,
    strategy: Strategy | None = None,
    kernel: AnyKernel | None = None,
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
            precedence([["A", "B"], ["C"]]) if who joined later is to be worth what its data add,
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
    engine = check_engine(engine, n_jobs)
    limit = check_limits(check_owners(owners), budget, stop, asked.check)
    source = source_of(owners, utility, empty=empty, known=known, store=store)
    if budget is None and stop is not None:
        stop.check_end(may_resample=source.traits.may_resample)
    valuer = source.valuer(
        semivalue=semivalue,
        estimator=estimator,
        strategy=asked.with_budget(owners.n, limit, stated=budget is not None),
        kernel=kernel,
        seed=seed,
    )
    check_correction(valuer.state, limit, asked.first_of(owners.n))
    settings = RunSettings(
        stop=stop,
        budget=None if budget is None else limit,
        repeats=source.traits.usual_repeats if repeats is None else repeats,
        skip=engine.on_error == "skip",
        ask_empty=source.empty is None,
        traits=source.traits,
    )
    return run(valuer, source, settings, engine, display(progress))
