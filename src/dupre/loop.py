"""The loop: suggest a batch, evaluate it somewhere, keep it, stop when there is reason to.

What is evaluated depends on what is known when a batch begins, never on when or where its
trainings finish. A batch is written to the store before it starts; a run that was interrupted
finishes it first. So the same call gives the same values for any workers and any interruption.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import pandas as pd

from dupre import fingerprint, interchange
from dupre.checks import finite, positive, whole
from dupre.coalitions import shown
from dupre.errors import EvaluationError, InputError, Interrupted
from dupre.evaluation import Evaluation, Task, evaluate
from dupre.owners import Owners
from dupre.progress import Display, Progress, display
from dupre.semivalues import Semivalue, shapley
from dupre.stopping import Rule, State
from dupre.store import Store, canonical
from dupre.utility import Utility
from dupre.valuer import Focus, Valuer, checked_owners
from dupre.values import Valuation, half_widths
from dupre.workers import Rules, Workers, hire

if TYPE_CHECKING:
    from distributed import Client

WATCHED_UP_TO = 12
"""Owners up to which intervals are computed after every batch, not only when a rule asks."""

FORECAST = 10
"""Further evaluations that a result looks ahead."""

POLL_SECONDS = 0.2
"""How often to look whether another process has finished what it claimed."""

Members = tuple[str, ...]
OnError = Literal["raise", "skip"]


def value(
    owners: Owners,
    utility: Utility,
    *,
    budget: int | None = None,
    stop: Rule | None = None,
    semivalue: Semivalue = shapley,
    focus: Focus = None,
    empty: float | None = None,
    known: interchange.Known | None = None,
    store: str | Path | None = None,
    n_jobs: int = 1,
    client: Client | None = None,
    inner_threads: int = 1,
    timeout: float | None = None,
    retries: int = 2,
    on_error: OnError = "raise",
    repeats: int = 1,
    holdout: int = 0,
    progress: bool | Callable[[Progress], object] = True,
    seed: int = 0,
) -> Valuation:
    """Values of owners with their uncertainty after as many trainings as there is reason for.

    Args:
        owners: whose data.
        utility: a ModelUtility or any callable(tuple of owner names) -> float. Names are strings,
            whatever the owners' labels were.
        budget: coalitions to evaluate at most, those in the store and those known included; with
            2^n - 1 or more the values are exact. May be left out if `stop` is given.
        stop: rules for stopping earlier, checked after every batch: dupre.within(0.01),
            ranking_settled(), settled("A", "B"), evaluated(60), wall_time(3600), combined with
            | and &.
        semivalue: shapley, banzhaf, beta_shapley(a, b), leave_one_out or a Semivalue of your own.
        focus: one owner, or a pair of owners, to spend the budget on; all by default.
        empty: utility of no data; by default `utility(())` is asked once, which is not counted.
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
            is the noise of trainings.
        holdout: coalitions to evaluate but never show to the predictor, so that it is checked on
            them after every batch; if it fails, the values do not rely on it.
        progress: True for a bar in a terminal and lines elsewhere, False for nothing, or a
            callable that is given a dupre.Progress.
        seed: of everything random in dupre; the trainings have their own in ModelUtility.

    Raises:
        InputError: an argument cannot be used; nothing was trained.
        StoreError: the store cannot be used, or the disk is full.
        EvaluationError: a training failed and on_error="raise".
        Interrupted: Ctrl-C.
    """
    limit = _checked_limits(checked_owners(owners), budget, stop, holdout)
    # With few evaluations, half of them are better spent where the first half points.
    first = min(2 * owners.n + 1, max(2, limit // 2))
    valuer = Valuer(
        owners, semivalue=semivalue, focus=focus, first=first, holdout=holdout, seed=seed
    )
    if on_error not in ("raise", "skip"):
        raise InputError(f"on_error must be 'raise' or 'skip', got {on_error!r}")
    if store is not None and not isinstance(store, (str, Path)):
        raise InputError(f"store must be the path of a file such as 'run.sqlite', got {store!r}")
    repeats = whole(repeats, "repeats", least=1)
    rules = Rules(
        whole(inner_threads, "inner_threads", least=1),
        None if timeout is None else positive(timeout, "timeout"),
        whole(retries, "retries", least=0),
    )
    _check_utility(utility, owners)
    jobs = _checked_jobs(n_jobs, client)
    if empty is not None:
        valuer.empty = finite(empty, "empty")
    for members, utilities in (given := interchange.as_trainings(known)).items():
        valuer.record(members, utilities)
    setting, contents, key = _identity(owners, utility, valuer, [focus, repeats], store)
    with (
        Store(store, setting, contents) as kept,
        closing(hire(utility, rules, n_jobs=jobs, client=client)) as workers,
        closing(display(progress)) as screen,
    ):
        _keep_known(kept, given)
        if empty is None:
            valuer.empty = _utility_of_nothing(utility, rules)
        loop = _Loop(
            valuer,
            kept,
            key,
            workers,
            screen,
            stop=stop,
            budget=limit,
            repeats=repeats,
            on_error=on_error,
        )
        return loop.run()


class _Loop:
    """One call of `value`, everything checked."""

    def __init__(
        self,
        valuer: Valuer,
        store: Store,
        key: str,
        workers: Workers,
        screen: Display,
        *,
        stop: Rule | None,
        budget: int,
        repeats: int,
        on_error: OnError,
    ):
        self.valuer = valuer
        self.store = store
        self.key = key
        self.workers = workers
        self.screen = screen
        self.stop = stop
        self.budget = budget
        self.repeats = repeats
        self.on_error = on_error
        self.begun = time.monotonic()
        self.trained = 0
        self.unsaved: list[Evaluation] = []
        self.failed: Evaluation | None = None
        self.taken: set[Members] = set()
        self.latest: tuple[int, Valuation] | None = None

    def run(self) -> Valuation:
        """Batch after batch until there is reason to stop."""
        try:
            while True:
                number, batch = self.store.batch(self.key)
                if unfinished := self._unfinished(batch):
                    self._evaluate(unfinished)
                    continue
                self._look()
                if reason := self._reason():
                    return self._result(reason)
                if not (suggested := self._suggested()):
                    return self._result("nothing is left to gain")
                # If another process has gone ahead, nothing is begun and we follow it.
                self.store.begin_batch(self.key, number + 1, suggested)
        except KeyboardInterrupt as stop:
            for evaluation in [*self.unsaved, *self.workers.finished()]:
                self._keep(evaluation)
            raise Interrupted(f"stopped; {self._kept()}", self.valuer) from stop
        except EvaluationError:
            raise
        except Exception as error:  # a full disk, or anything in a callback
            self._rescue([*self.unsaved, *self.workers.finished()])
            error.valuer = self.valuer  # type: ignore[attr-defined]
            error.add_note(self._kept())
            raise

    def _unfinished(self, batch: Iterable[Members]) -> list[Members]:
        """What is left to do of a batch, as far as the budget goes."""
        self._take_in(self.store.coalitions())
        self._check_hope()
        left = [members for members in batch if not self._done(members)]
        return left[: max(0, self.budget - self.valuer.evaluated)]

    def _suggested(self) -> list[Members]:
        """The next batch: n coalitions, or more where nothing is decided in between."""
        left = self.budget - self.valuer.evaluated
        no_choice = self.stop is None and left >= self.valuer.left
        batch = self.valuer.left if no_choice else self.valuer.first_left or self.valuer.owners.n
        return self.valuer.suggest(min(batch, left))

    def _reason(self) -> str:
        """Why to stop, empty to go on."""
        state = State(self.valuer.evaluated, self._seconds(), self._valuation)
        anything = self.valuer.evaluated > len(self.valuer.failures)
        if self.stop is not None and anything and (fired := self.stop.fired(state)):
            return " and ".join(fired)
        if self.valuer.evaluated >= self.budget:
            return f"the budget of {self.budget} evaluations is spent"
        return "" if self.valuer.left else "nothing is left to evaluate"

    def _evaluate(self, batch: list[Members]) -> None:
        """Evaluate what no other process is evaluating, wait for what others are."""
        waiting = [task for members in batch for task in self._tasks(members)]
        while waiting:
            for evaluation in self.workers.run(self._claimed(waiting)):
                self._keep(evaluation)
                self.store.release(evaluation.task)
            self._check_hope()
            waiting = [task for task in waiting if not self._answered(task)]
            if waiting:
                time.sleep(POLL_SECONDS)
                self.store.refresh()
                self._take_in(batch)

    @property
    def _hopeless(self) -> bool:
        """Whether to give up: at a failure that is not to be skipped, or if nothing succeeds."""
        enough = min(self.valuer.owners.n, self.budget)
        failed = len(self.valuer.failures)
        return self.failed is not None or self.valuer.evaluated == failed >= enough

    def _check_hope(self) -> None:
        if self._hopeless:
            failed = self.failed or self._failures(next(iter(self.valuer.failures)))[0]
            raise self._evaluation_error(failed)

    def _tasks(self, members: Members) -> list[Task]:
        """The trainings of a coalition still to be done."""
        tried = self.store.failures(members)
        every = range(self.repeats)
        attempts = {r: tried[r].task.attempt + 1 if r in tried else 1 for r in every}
        names = tuple(name for name in self.valuer.owners.names if name in members)
        tasks = [Task(names, repeat, attempts[repeat]) for repeat in every]
        return [task for task in tasks if not self._answered(task)]

    def _claimed(self, tasks: list[Task]) -> Iterator[Task]:
        """Tasks that fall to this process, as long as there is hope."""
        for task in tasks:
            if self._hopeless:
                return
            if not self._answered(task) and self.store.claim(task):
                self.store.refresh()
                if self._answered(task):  # by another process, just before
                    self.store.release(task)
                else:
                    yield task

    def _keep(self, evaluation: Evaluation) -> None:
        """First to the disk, then to everything else."""
        self.unsaved.append(evaluation)
        self.store.save(evaluation)
        self.trained += 1
        if evaluation.utility is None and self.on_error == "raise":
            self.failed = self.failed or evaluation
        self._take_in([evaluation.task.members])
        self.unsaved.remove(evaluation)
        self._show()

    def _rescue(self, evaluations: list[Evaluation]) -> None:
        """Record what the store could not take."""
        for members in {evaluation.task.members for evaluation in evaluations}:
            found = {**self.store.utilities(members)}
            found |= {e.task.repeat: e for e in evaluations if e.task.members == members}
            utilities = [found[repeat].utility for repeat in sorted(found)]
            if len(utilities) >= self.repeats and None not in utilities:
                self.valuer.record(members, cast("list[float]", utilities))

    def _answered(self, task: Task) -> bool:
        """Whether a training need not be done: it has been, or its coalition has failed."""
        given_up = self.on_error == "skip" and self._failures(task.members)
        return bool(given_up) or task.repeat in self.store.utilities(task.members)

    def _done(self, members: Members) -> bool:
        return all(self._answered(Task(members, repeat)) for repeat in range(self.repeats))

    def _take_in(self, coalitions: Iterable[Members]) -> None:
        """Record those coalitions that are done, whoever did it."""
        for members in map(canonical, coalitions):
            if members in self.taken or not self._done(members):
                continue
            if failures := self._failures(members):
                self.valuer.record_failure(members, failures[0].failure)
            else:
                found = self.store.utilities(members)
                utilities = [found[repeat].utility for repeat in sorted(found)]
                self.valuer.record(members, cast("list[float]", utilities))
            self.taken.add(members)

    def _failures(self, members: Members) -> list[Evaluation]:
        """Failed trainings of a coalition among those that count."""
        failed = self.store.failures(members)
        return [failed[repeat] for repeat in sorted(failed) if repeat < self.repeats]

    def _valuation(self) -> Valuation | None:
        """What is known now; None before the first design is complete: too early to tell."""
        if not self.valuer.designed:
            return None
        if self.latest is None or self.latest[0] != self.valuer.evaluated:
            self.latest = self.valuer.evaluated, self.valuer.values()
        return self.latest[1]

    def _look(self) -> None:
        """After a batch: note how much is known."""
        if self.valuer.owners.n <= WATCHED_UP_TO and (valuation := self._valuation()) is not None:
            found = {"widest": float(half_widths(valuation.covariance).max())}
            if (v := valuation.validation) is not None:
                found |= {"error": v.error, "r2": v.r2, "coverage": v.coverage}
            self.store.save_round(self.key, self.valuer.evaluated, found)
        self._show()

    def _show(self) -> None:
        seconds, evaluated = self._seconds(), self.valuer.evaluated
        budget = max(evaluated, min(self.budget, evaluated + self.valuer.left))
        left = (budget - evaluated) * self.repeats
        widest = None if self.latest is None else half_widths(self.latest[1].covariance).max()
        self.screen.show(
            Progress(
                evaluated=evaluated,
                budget=budget,
                failed=len(self.valuer.failures),
                seconds=seconds,
                remaining=seconds / self.trained * left if self.trained else None,
                widest=None if widest is None else float(widest),
            )
        )

    def _seconds(self) -> float:
        return time.monotonic() - self.begun

    def _result(self, reason: str) -> Valuation:
        evaluations = self.store.evaluations()
        rounds = [{"evaluated": n, **f} for n, f in self.store.rounds(self.key).items()]
        few = self.valuer.left and self.valuer.owners.n <= WATCHED_UP_TO
        return replace(
            self.valuer.values(),
            warnings=_by_message(
                found for found in evaluations if found.task.members in self.taken
            ),
            stale=self.store.stale,
            stopped=reason,
            rounds=pd.DataFrame(rounds, columns=None if rounds else ["evaluated", "widest"]),
            forecast=self.valuer.forecast(FORECAST) if few else pd.DataFrame(),
            evaluations=interchange.as_frame(evaluations),
        )

    def _evaluation_error(self, failed: Evaluation) -> EvaluationError:
        names = failed.task.members
        tried = len(self.valuer.failures)
        advice = f"; all {tried} evaluations so far failed" if tried and not self.failed else ""
        error = EvaluationError(
            f"evaluating {shown(names)} failed: {failed.failure}{advice}; {self._kept()}",
            names,
            self.valuer,
        )
        error.__cause__ = failed.cause
        if failed.traceback and failed.cause is None:
            error.add_note(f"Where it failed:\n{failed.traceback}")
        return error

    def _kept(self) -> str:
        """Where everything is, and how to go on."""
        done = f"the {len(self.valuer.trainings)} evaluations so far are kept in"
        if self.store.path is None:
            return f"{done} the exception's .valuer: go on with known=error.valuer.trainings"
        return f"{done} {str(self.store.path)!r}: make the same call again to go on"


def _by_message(evaluations: Iterable[Evaluation]) -> dict[str, tuple[Members, ...]]:
    """Which coalitions raised which warning, the most frequent first."""
    found: dict[str, dict[Members, None]] = defaultdict(dict)
    for evaluation in evaluations:
        for message in evaluation.warnings:
            found[message][evaluation.task.members] = None
    frequent = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return {message: tuple(coalitions) for message, coalitions in frequent}


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


def _checked_jobs(n_jobs: int, client: Client | None) -> int:
    jobs = whole(abs(n_jobs) if isinstance(n_jobs, int) else n_jobs, "n_jobs", least=1)
    if client is not None and n_jobs != 1:
        raise InputError("give n_jobs= for this machine or client= for a cluster, not both")
    return jobs if n_jobs > 0 else n_jobs


def _check_utility(utility: Utility, owners: Owners) -> None:
    if not callable(utility):
        raise InputError(f"utility must be callable(members) -> float, got {utility!r}")
    theirs = getattr(utility, "owners", owners)
    if theirs is owners or not isinstance(theirs, Owners):
        return
    if fingerprint.of_owners(theirs) != fingerprint.of_owners(owners):
        raise InputError("the utility was built on other owners than those to be valued")


def _utility_of_nothing(utility: Utility, rules: Rules) -> float:
    found = evaluate(utility, Task(()), inner_threads=rules.inner_threads)
    if found.utility is None:
        raise EvaluationError(
            f"utility(()) must be the utility of no data, but it failed: {found.failure}. Let it "
            "return a constant for (), or state empty=",
            (),
        ) from found.cause
    return found.utility


def _identity(
    owners: Owners, utility: Utility, valuer: Valuer, more: list[object], store: str | Path | None
) -> tuple[dict[str, fingerprint.Part], dict[str, str], str]:
    """What utilities depend on, each owner's contents, and what a run's decisions depend on."""
    if store is None:  # a store in memory is never opened again
        return {}, dict.fromkeys(owners.names, ""), ""
    setting = fingerprint.of_utility(utility)
    contents = fingerprint.of_owners(owners)
    digests = {name: part.digest for name, part in setting.items()}
    weights = valuer.semivalue.log_weights(owners.n)
    decides = [digests, contents, weights, valuer.first, valuer.holdout, valuer.seed, *more]
    return setting, contents, fingerprint.digest(decides)


def _keep_known(store: Store, known: dict[Members, tuple[float, ...]]) -> None:
    """Put what is known into the store, unless the store knows otherwise."""
    new = []
    for members, utilities in known.items():
        stored = store.utilities(members)
        for repeat, utility in enumerate(utilities):
            if repeat not in stored:
                new.append(Evaluation(Task(members, repeat), utility, worker="known"))
            elif stored[repeat].utility != utility:
                raise InputError(
                    f"known= has {utility!r} for {shown(members)}, the store "
                    f"{stored[repeat].utility!r}; leave it out, or take another store"
                )
    for evaluation in new:
        store.save(evaluation)
