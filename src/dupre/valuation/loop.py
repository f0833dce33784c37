"""The loop: suggest a batch, evaluate it somewhere, store it, stop when there is a reason.

What is evaluated depends on what is known when a batch begins, never on when or where its
trainings finish. A batch is written to the store before it starts; a run that was interrupted
finishes it first. So the same call gives the same values for any workers and any interruption.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dupre._types import Names
from dupre.errors import EvaluationError, StoreError
from dupre.game.coalitions import canonical
from dupre.result.covariances import half_widths
from dupre.result.valuation import Valuation
from dupre.training.evaluation import Evaluation, Training
from dupre.training.frames import as_frame
from dupre.training.locks import Holder, find_holder
from dupre.training.store import Store
from dupre.training.workers import Workers
from dupre.utility.score import mean_score
from dupre.valuation.failures import evaluation_error, say_what_is_kept
from dupre.valuation.outcomes import Outcomes
from dupre.valuation.progress import Clock, Display, Progress
from dupre.valuation.second_trainings import SecondTrainings
from dupre.valuation.stopping import Rule, State
from dupre.valuation.valuer import Valuer

WATCHED_UP_TO = 4_096
"""Counting coalitions up to which intervals are computed after every batch, not only for rules."""

FORECAST = 10
"""Further evaluations that a result looks ahead."""

POLL_SECONDS = 0.2
"""Time between two looks at whether another process has finished its trainings."""


@dataclass(frozen=True)
class RunSettings:
    """How far a run goes, and what it does at a failure.

    Attributes:
        stop: the rule that ends it, or None.
        budget: coalitions to evaluate at most; None if only the rule ends the run.
        repeats: trainings of each coalition; None for one, and a second one of some.
        skip: whether to go on without a coalition whose training failed.
        ask_empty: whether the utility of no data is still to be asked for.
    """

    stop: Rule | None
    budget: int | None
    repeats: int | None
    skip: bool
    ask_empty: bool


class Loop:
    """One run; its arguments are checked before."""

    def __init__(
        self,
        valuer: Valuer,
        store: Store,
        key: str,
        *,
        workers: Workers,
        display: Display,
        settings: RunSettings,
    ):
        self.valuer = valuer
        self.store = store
        self.key = key
        self.workers = workers
        self.display = display
        self.settings = settings
        self.opened = False
        self.budget = 2**valuer.owners.n - 1 if settings.budget is None else settings.budget
        self.second = SecondTrainings(valuer, store, key) if settings.repeats is None else None
        self.outcomes = Outcomes(valuer, store, repeats=settings.repeats or 1, skip=settings.skip)
        self.clock = Clock()
        self.trained = 0
        self.found = 0
        self.unsaved: list[Evaluation] = []
        self.failed: Evaluation | None = None
        self.recorded: set[Names] = set()
        self.reported: set[Holder] = set()
        self.latest: tuple[int, Valuation] | None = None

    def run(self, begin: Callable[[], None]) -> tuple[Valuation, dict[str, Any]]:
        """Evaluate batch after batch until there is reason to stop.

        `begin` is called first: it refuses a store of another game. Returns the values, and what
        their `Valuation` says of this run.
        """
        with ExitStack() as stack:
            stack.push(self._save_finished)
            self._record_done(self.store.coalitions())
            begin()
            self.opened = True
            if hasattr(self.workers, "on_finished"):
                self.workers.on_finished = self.store.write_at_once
            return self._run()

    def _run(self) -> tuple[Valuation, dict[str, Any]]:
        self._record_done(self.store.coalitions())
        self.found = self.valuer.evaluated
        self._show()
        if self.settings.ask_empty:
            self._evaluate(self.outcomes.missing(()))
            self.valuer.empty = mean_score(self.outcomes.utilities(()))
        self.valuer.check_empty(begun=self.found > 0)
        while True:
            number, batch = self.store.batch(self.key)
            if missing := self._missing(batch):
                self._evaluate([t for members in missing for t in self.outcomes.missing(members)])
                continue
            self._give_up_if_all_failed()
            begun = number or not self.valuer.first_left or not self._affordable
            if self.second is not None and begun:
                self._train_again(self.second)
            self._save_progress()
            if reason := self._reason():
                return self._result(reason)
            if not (batch := self._next_batch()):
                return self._result("nothing is left to gain")
            # If another process has begun the next batch, nothing is written and we follow it.
            self.store.begin_batch(self.key, number + 1, batch)

    def _save_finished(self, _: object, error: BaseException | None, __: object) -> None:
        """When the loop ends by an error: save finished trainings, and say where everything is."""
        if isinstance(error, KeyboardInterrupt):
            for evaluation in self._unsaved_evaluations():
                self._save(evaluation)
        elif isinstance(error, Exception) and not isinstance(error, EvaluationError):
            self._record_unsaved(self._unsaved_evaluations())
        if error is not None:
            with suppress(StoreError):  # what threads of the workers have stored meanwhile
                self.store.refresh()
            self._record_done(self.store.coalitions())
            say_what_is_kept(error, self.valuer, self.store, opened=self.opened)

    def _missing(self, batch: Iterable[Names]) -> list[Names]:
        """What is left to do of a batch, as far as the budget allows."""
        self._record_done(self.store.coalitions())
        left = [members for members in batch if not self.outcomes.is_done(members)]
        return self.outcomes.largest_first(left[: self._affordable])

    @property
    def _affordable(self) -> int:
        """Coalitions that the budget still allows for."""
        return max(0, self.budget - self.valuer.evaluated)

    def _next_batch(self) -> list[Names]:
        """The next batch, larger where nothing is decided in between."""
        left = self._affordable
        no_choice = self.settings.stop is None and left >= self.valuer.left
        chosen = self.valuer.first_left or self.valuer.question.batch
        batch = self.valuer.left if no_choice else chosen
        self.clock.choices += not self.valuer.first_left
        return self.valuer.suggest(min(batch, left))

    def _reason(self) -> str:
        """Why to stop, empty to go on."""
        state = State(self.valuer.evaluated, self.clock.seconds, self._valuation)
        anything = self.valuer.evaluated > len(self.valuer.failures)
        stop, alone = self.settings.stop, self.settings.budget is None and self.valuer.left > 0
        if stop is not None and anything and (fired := stop.reasons(state, alone=alone)):
            return " and ".join(fired)
        if not self.valuer.left:
            if self.valuer.question.estimator is None:
                return "nothing is left to evaluate"
            return "all sampled coalitions are evaluated"
        if self.valuer.evaluated >= self.budget:
            known = self.valuer.evaluated
            if known > self.budget:
                return f"{known} evaluations are known, more than the budget of {self.budget}"
            return f"the budget of {self.budget} evaluations is spent"
        return ""

    def _train_again(self, second: SecondTrainings) -> None:
        """Train some coalitions a second time, as many as it takes to know the noise."""
        while True:
            chosen = second.coalitions()
            trainings = [self.outcomes.next_attempt(members, 1) for members in chosen]
            self._evaluate([t for t in trainings if not self.outcomes.is_answered(t)])
            if new := {self.valuer.key(members) for members in chosen} - self.outcomes.twice:
                self.outcomes.twice |= new
                self.latest = None
                self.recorded -= {same for names in chosen for same in self.store.same(names)}
                self._record_done(chosen)
            if not second.choose() and second.coalitions() == chosen:
                return

    def _evaluate(self, trainings: list[Training]) -> None:
        """Evaluate what no other process is evaluating, wait for what others are."""
        waiting = trainings
        while waiting:
            with self.clock.training():
                for evaluation in self.workers.run(self._lock_each(waiting)):
                    self._save(evaluation)
                    self.store.unlock(evaluation.training)
            if self.failed is not None:
                raise self._error(self.failed, every=False)
            waiting = [training for training in waiting if not self.outcomes.is_answered(training)]
            if waiting:
                self._wait()
                self.store.refresh()
                self._record_done(training.members for training in trainings)

    def _wait(self) -> None:
        """Wait a moment for another process, and say so if it is stopped."""
        time.sleep(POLL_SECONDS)
        holder = find_holder(self.store.path) if self.store.path is not None else None
        if holder is not None and holder.stopped and holder not in self.reported:
            self.reported.add(holder)
            warnings.warn(f"waiting for a training of {holder}", stacklevel=2)

    def _give_up_if_all_failed(self) -> None:
        """Raise if every evaluation so far has failed: there is nothing to predict from."""
        failures = self.valuer.failures
        if failures and len(failures) == self.valuer.evaluated:
            first = self.outcomes.failures(next(iter(failures)))[0]
            raise self._error(first, every=True)

    def _lock_each(self, trainings: list[Training]) -> Iterator[Training]:
        """Trainings that no other process is doing, until one fails that must not."""
        for training in trainings:
            if self.failed is not None:
                return
            if not self.outcomes.is_answered(training) and self.store.lock(training):
                self.store.refresh()
                if self.outcomes.is_answered(training):  # by another process, just before
                    self.store.unlock(training)
                else:
                    yield training

    def _save(self, evaluation: Evaluation) -> None:
        """Save an evaluation to the store, then record it."""
        self.unsaved.append(evaluation)
        self.store.save(evaluation)
        self.trained += bool(evaluation.training.members)
        if evaluation.utility is None and not (self.settings.skip and evaluation.training.members):
            self.failed = self.failed or evaluation
        self._record_done([evaluation.training.members])
        self.unsaved.remove(evaluation)
        self._show()

    def _record_unsaved(self, evaluations: list[Evaluation]) -> None:
        """Record evaluations that the store could not save."""
        for members in {evaluation.training.members for evaluation in evaluations}:
            new = {e.training.repeat: e for e in evaluations if e.training.members == members}
            found = self.store.utilities(members) | new
            wanted = [found[r] for r in range(self.outcomes.repeats) if r in found]
            done = len(wanted) == self.outcomes.repeats
            if members and done and all(e.utility is not None for e in wanted):
                self.valuer.record(members, [e.score for e in wanted])

    def _unsaved_evaluations(self) -> list[Evaluation]:
        """Evaluations that are finished but not in the store, each once."""
        found = [*self.unsaved, *self.workers.finished_evaluations()]
        return list({(e.training.members, e.training.repeat): e for e in found}.values())

    def _record_done(self, coalitions: Iterable[Names]) -> None:
        """Record those coalitions that are done, by this or another process."""
        for members in map(canonical, coalitions):
            if not members or members in self.recorded or not self.outcomes.is_done(members):
                continue
            if failures := self.outcomes.failures(members):
                self.valuer.record_failure(members, failures[0].failure)
            else:
                for names in self.store.same(members):
                    if utilities := self.outcomes.utilities(names):
                        self.valuer.record(names, utilities)
            self.recorded.update(self.store.same(members))

    def _valuation(self) -> Valuation | None:
        """What is known now; None while it is too early to tell: see `Valuer.is_too_early`."""
        if self.valuer.is_too_early(limited=self.settings.budget is not None):
            return None
        if self.latest is None or self.latest[0] != self.valuer.evaluated:
            self.latest = self.valuer.evaluated, self.valuer.interim_values()
        return self.latest[1]

    def _save_progress(self) -> None:
        """After a batch: note how much is known."""
        found = {}
        if self._is_watched() and (valuation := self._valuation()) is not None:
            found["widest"] = float(half_widths(valuation.covariance).max())
        if self.valuer.designed and (v := self.valuer.check()) is not None:
            found |= {"error": v.error, "by_size": v.by_size, "coverage": v.coverage}
        if found:
            self.store.save_round(self.key, self.valuer.evaluated, found)
        self._show()

    def _is_watched(self) -> bool:
        """Whether looking at the values costs little: a sum over not too many coalitions."""
        return self.valuer.question.least_core is None and self.valuer.counting <= WATCHED_UP_TO

    def _show(self) -> None:
        evaluated = self.valuer.evaluated
        left = min(self._affordable, self.valuer.left)
        each = self.clock.per_training(self.trained) * self.outcomes.repeats
        batches = math.ceil(left / self.valuer.question.batch)
        known = self.settings.budget is not None and self.trained > 0
        widest = None if self.latest is None else half_widths(self.latest[1].covariance).max()
        self.display.show(
            Progress(
                evaluated=evaluated,
                budget=evaluated + left if self.settings.budget is not None else None,
                failed=len(self.valuer.failures),
                seconds=self.clock.seconds,
                remaining=each * left + self.clock.per_choice * batches if known else None,
                widest=None if widest is None else float(widest),
                own=self.clock.own if self.clock.choices else None,
            )
        )

    def _result(self, reason: str) -> tuple[Valuation, dict[str, Any]]:
        evaluations = self.store.evaluations()
        rounds = [{"evaluated": n, **f} for n, f in self.store.rounds(self.key).items()]
        valuation = self._valuation() or self.valuer.interim_values()
        more = self.valuer.left and self._is_watched()
        forecast = self.valuer.forecast(FORECAST, now=valuation) if more else pd.DataFrame()
        return valuation, {
            "found": self.found,
            "checked": self.store.origin.checked,
            "stale": self.store.stale,
            "stopped": reason,
            "rounds": pd.DataFrame(rounds, columns=None if rounds else ["evaluated", "widest"]),
            "forecast": forecast,
            "contributions": self.valuer.contributions(),
            "evaluations": as_frame(evaluations),
        }

    def _error(self, failed: Evaluation, *, every: bool) -> EvaluationError:
        return evaluation_error(
            failed, self.valuer, self.store, skip=self.settings.skip, every=every
        )
