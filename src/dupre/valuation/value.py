"""The one call: `dupre.value` checks its arguments, opens the store, hires workers, and runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dupre._types import Names
from dupre.checks import finite, positive, whole
from dupre.data.digests import digest
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game.coalitions import format_members
from dupre.game.estimators import Estimator
from dupre.game.semivalues import Semivalue, shapley
from dupre.result.records import TrainingNoise
from dupre.result.valuation import Valuation
from dupre.training import identity
from dupre.training.evaluation import Evaluation, Training
from dupre.training.process import ProcessSettings
from dupre.training.store import Store, contents_of
from dupre.training.workers import start_workers
from dupre.utility.adapters import Known, as_trainings
from dupre.utility.model import ModelUtility, Utility
from dupre.valuation.core_payments import LeastCore
from dupre.valuation.inference import LEAST_CORRECTION
from dupre.valuation.loop import Loop, OnError
from dupre.valuation.progress import Display, Progress, display
from dupre.valuation.stopping import Rule
from dupre.valuation.valuer import Choose, Focus, Valuer, check_owners

if TYPE_CHECKING:
    from distributed import Client


def value(
    owners: Owners,
    utility: Utility,
    *,
    budget: int | None = None,
    stop: Rule | None = None,
    batch: int | None = None,
    semivalue: Semivalue | LeastCore = shapley,
    focus: Focus = None,
    empty: float | None = None,
    known: Known | None = None,
    store: str | Path | None = None,
    n_jobs: int = 1,
    client: Client | None = None,
    inner_threads: int = 1,
    timeout: float | None = None,
    retries: int = 2,
    on_error: OnError = "raise",
    repeats: int | None = None,
    holdout: int = 0,
    estimator: Estimator | None = None,
    samples: int | None = None,
    choose: Choose = "active",
    corrected: bool = False,
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
        stop: rules for stopping earlier, checked after every batch: dupre.within(0.01),
            ranking_settled(), settled("A", "B"), evaluated(60), wall_time(3600), combined with
            | and &.
        batch: coalitions chosen at once after the first design, as many as there are owners by
            default; more keep more workers busy, fewer learn more often. Decides what is evaluated.
        semivalue: shapley, banzhaf, beta_shapley(a, b), leave_one_out, a Semivalue of your own, or
            LeastCore() for payments that no coalition would leave.
        focus: one owner, or a pair of owners, to spend the budget on; all by default.
        empty: utility of no data; by default that of the ModelUtility, or `utility(())` is asked
            once, which is not counted.
        known: utilities already paid for elsewhere: {members: utility}, {members: [utilities]},
            or a frame from `dupre.read_evaluations`.
        store: an SQLite file where every evaluation is kept the moment it is finished. Call again
            with the same file to go on where a run was stopped, however it was stopped.
        n_jobs: processes of this machine to train in; -1 for one per core.
        client: a dask.distributed.Client to train on its cluster instead.
        inner_threads: threads of BLAS and OpenMP inside each training, the same everywhere: their
            number can change the last digit of a utility.
        timeout: seconds after which a training is given up as failed.
        retries: further attempts if the process of a training dies.
        on_error: "raise" to stop at a failed training once those running have finished, and try
            it again at the next call; "skip" to go on without it: its coalition is predicted.
        repeats: trainings per coalition, each with its own seed. Their mean counts, their spread
            is the noise of trainings. By default 1, but if the utility has seeds, a few coalitions
            are trained a second time, extra to the budget: three to see whether seeds matter, then
            one for every eight evaluated if they do. State 1 to spend nothing on it.
        holdout: coalitions to evaluate but never show to the predictor, so that it is checked on
            them after every batch; if it fails, the values do not rely on it.
        estimator: which coalitions enter the values: a function of `dupre.estimators`, such as
            permutation. By default all of them for up to 16 owners, `regression` on a sample for
            more; the error this adds is part of the intervals.
        samples: how many coalitions the estimator draws; by default 4,096 (40n if more) to choose
            from and for variances, and 16,384 for the expected values. More cost no training, and
            reduce the error of sampling.
        choose: "active" to evaluate those of most use, "drawn" to evaluate the coalitions of the
            estimator in the order in which it drew them, up to the budget, and predict the rest.
        corrected: add an unbiased estimate of what the predictor's values are wrong by: right in
            the end even where the predictor never is, but wider until then. After the first
            design coalitions are drawn at random.
        progress: True for a bar in a terminal and lines elsewhere, False for nothing, or a
            callable that is given a dupre.Progress, or an object with `show` and `close`.
        seed: of everything random in dupre; the trainings have their own in ModelUtility.

    Raises:
        InputError: an argument cannot be used; nothing was trained.
        StoreError: the store cannot be used, or the disk is full.
        EvaluationError: a training failed and on_error="raise".
        Interrupted: Ctrl-C.
    """
    limit = _checked_limits(check_owners(owners), budget, stop, holdout)
    size = owners.n if batch is None else whole(batch, "batch", least=1)
    first = min(2 * owners.n + 1, limit - holdout)  # those held out follow it
    valuer = Valuer(
        owners,
        semivalue=semivalue,
        focus=focus,
        first=first,
        holdout=holdout,
        estimator=estimator,
        samples=samples,
        choose=choose,
        corrected=corrected,
        by_content=isinstance(utility, ModelUtility) and utility.by_content,
        seed=seed,
    )
    _check_correction(valuer, limit)
    if on_error not in ("raise", "skip"):
        raise InputError(f"on_error must be 'raise' or 'skip', got {on_error!r}")
    if store is not None and not isinstance(store, (str, Path)):
        raise InputError(f"store must be the path of a file such as 'run.sqlite', got {store!r}")
    if repeats is not None:
        repeats = whole(repeats, "repeats", least=1)
    elif not _seeded(utility):
        repeats = 1
    rules = ProcessSettings(
        whole(inner_threads, "inner_threads", least=1),
        None if timeout is None else positive(timeout, "timeout"),
        whole(retries, "retries", least=0),
    )
    _check_utility(utility, owners)
    jobs = _checked_jobs(n_jobs, client)
    if empty is None and isinstance(utility, ModelUtility):
        empty = utility.empty
    if empty is not None:
        valuer.empty = finite(empty, "empty")
    given = as_trainings(known, _validity(owners))
    for members, utilities in given.items():
        if members:
            valuer.record(members, utilities)
    setting, contents, key = _identity(owners, utility, valuer, [focus, repeats, size], store)
    with (
        Store(store, setting, contents, valuer.key) as kept,
        closing(start_workers(utility, rules, n_jobs=jobs, client=client)) as workers,
        closing(display(progress)) as screen,
    ):
        _keep_known(kept, given)
        loop = Loop(
            valuer,
            kept,
            key,
            workers,
            screen,
            stop=stop,
            budget=None if budget is None else limit,
            batch=size,
            repeats=repeats,
            on_error=on_error,
            ask_empty=empty is None,
        )
        valuation = loop.run()
        caveats = _about_older_rule(utility, loop.taken, kept.evaluations())
    told = identity.provenance(valuer.seed, setting, contents)
    valuation = replace(
        valuation,
        provenance=told,
        caveats=(*valuation.caveats, *caveats),
        training_noise=_about_seeds(utility, valuer.training_noise()),
    )
    if valuation.sampled:
        warnings.warn(
            "on the coalitions held out the predictor was not clearly better than the mean of "
            "their size; the values do not rely on it",
            stacklevel=2,
        )
    return valuation


def _checked_limits(owners: Owners, budget: int | None, stop: Rule | None, holdout: int) -> int:
    """The budget as a number."""
    if budget is None and stop is None:
        raise InputError("state budget=, the number of coalitions to evaluate, or a stop= rule")
    if stop is not None and not isinstance(stop, Rule):
        raise InputError(
            f"stop must be a rule such as dupre.within(0.01) | dupre.wall_time(3600), got {stop!r}"
        )
    named = stop.owners if stop is not None else ()
    unknown = [name for name in named if name not in owners.names]
    if unknown:
        raise InputError(
            f"the stop rule names {unknown[0]!r}; the owners are {', '.join(owners.names)}"
        )
    limit = 2**owners.n - 1 if budget is None else whole(budget, "budget", least=1)
    if whole(holdout, "holdout", least=0) > limit // 2:
        raise InputError(f"holdout is {holdout}: at most half of the budget of {limit}")
    return limit


def _check_correction(valuer: Valuer, limit: int) -> None:
    """A correction needs random coalitions, unless all are evaluated anyway."""
    least = LEAST_CORRECTION + 2 * valuer.owners.n + 1
    if valuer.corrected and limit < min(least, valuer.left):
        raise InputError(
            f"corrected=True needs {LEAST_CORRECTION} random coalitions after the first design: a "
            f"budget of at least {least}, got {limit}"
        )


def _checked_jobs(n_jobs: int, client: Client | None) -> int:
    if n_jobs == 0 or isinstance(n_jobs, bool) or not isinstance(n_jobs, int):
        raise InputError(f"n_jobs must be a number of processes, or -1 for all, got {n_jobs!r}")
    if client is not None and n_jobs != 1:
        raise InputError("give n_jobs= for this machine or client= for a cluster, not both")
    return n_jobs


def _check_utility(utility: Utility, owners: Owners) -> None:
    if not callable(utility):
        raise InputError(f"utility must be callable(members) -> float, got {utility!r}")
    theirs = getattr(utility, "owners", owners)
    if theirs is owners or not isinstance(theirs, Owners):
        return
    if identity.of_owners(theirs) != identity.of_owners(owners):
        raise InputError("the utility was built on other owners than those to be valued")


def _identity(
    owners: Owners, utility: Utility, valuer: Valuer, more: list[object], store: str | Path | None
) -> tuple[dict[str, identity.Part], dict[str, str], str]:
    """What utilities depend on, each owner's contents, and what a run's decisions depend on."""
    if store is None:  # a store in memory is never opened again
        return {}, dict.fromkeys(owners.names, ""), ""
    setting = identity.of_utility(utility)
    contents = identity.of_owners(owners)
    digests = {name: part.digest for name, part in setting.items()}
    weights = valuer.semivalue.log_weights(owners.n)
    decides = [digests, contents, weights, valuer.first, valuer.holdout, valuer.seed, *more]
    decides += [valuer.estimator, valuer.samples, valuer.choose, valuer.corrected]
    decides.append(valuer.least_core and valuer.least_core.draws)
    if valuer.merges:  # where nothing is merged, runs begun by the older rule go on
        decides.append("by content")
    return setting, contents, digest(decides)


def _seeded(utility: Utility) -> bool:
    """Whether a utility takes a seed for each training that may change the result."""
    return hasattr(utility, "training_seed") and bool(getattr(utility, "seeded", True))


def _about_seeds(utility: Utility, found: TrainingNoise) -> TrainingNoise:
    """What repeated trainings say, with what is known of the utility itself."""
    known = isinstance(utility, ModelUtility) and utility.deterministic
    seeded, deterministic = _seeded(utility), found.deterministic or known
    return replace(found, seeded=seeded, deterministic=deterministic)


def _about_older_rule(
    utility: Utility, taken: Collection[Names], evaluations: Iterable[Evaluation]
) -> list[str]:
    """What is to be said if seeds and the order of rows followed owner names in some trainings."""
    if not isinstance(utility, ModelUtility):
        return []
    used = [e for e in evaluations if e.training.members in taken and e.utility is not None]
    older = [
        e for e in used if utility.is_older_seed(e.seed, e.training.members, e.training.repeat)
    ]
    if not older:
        return []
    return [
        f"{len(older):,} of {len(used):,} trainings are by the older rule, in which seeds and the "
        "order of rows followed owner names; equal owners may differ in them."
    ]


def _validity(owners: Owners) -> Callable[[Names, str], bool]:
    """Whether an evaluation that says of which contents it is, is of these owners' rows."""
    marks = cache(lambda: identity.of_owners(owners))

    def valid(members: Names, contents: str) -> bool:
        known = all(name in owners.names for name in members)
        return known and contents_of(members, marks()) == contents

    return valid


def _keep_known(store: Store, known: dict[Names, tuple[float, ...]]) -> None:
    """Put what is known into the store, unless the store knows otherwise."""
    new = []
    for members, utilities in known.items():
        if both := store.contradiction(members, utilities):
            raise InputError(
                f"{both[0]!r} is given for {format_members(members)}, but the store has {both[1]!r}; leave "
                "it out, or take another store"
            )
        stored, several = store.utilities(members), enumerate(utilities)
        new += [
            Evaluation(Training(members, r), u, worker="known")
            for r, u in several
            if r not in stored
        ]
    if new:
        store.record(new)
