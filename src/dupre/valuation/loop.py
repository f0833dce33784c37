"""The loop: suggest a batch, evaluate it somewhere, store it, stop when there is a reason.

A batch is chosen when the one before is finished, so never by when or where a training ends. It is
written to the store before it starts; a run that was interrupted goes on with it. So the same call
gives the same values for any workers and any interruption.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dupre._types import Names
from dupre.errors import EvaluationError, StoreError
from dupre.game.coalitions import canonical
from dupre.result.covariances import half_widths
from dupre.result.valuation import Valuation
from dupre.store.frames import as_frame
from dupre.store.store import Store
from dupre.training.evaluation import Evaluation, Training
from dupre.training.workers import Workers
from dupre.utility.score import mean_score
from dupre.valuation.execution import Execution
from dupre.valuation.failures import evaluation_error, say_what_is_kept
from dupre.valuation.outcomes import Outcomes
from dupre.valuation.progress import Clock, Display, Progress
from dupre.valuation.second_trainings import SecondTrainings
from dupre.valuation.stopping import Rule, State, reason_to_end
from dupre.valuation.valuer import Valuer

WATCHED_UP_TO = 4_096
"""Counting coalitions up to which intervals are computed after every batch, not only for rules."""

FORECAST = 10
"""Further evaluations that a result looks ahead."""


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
        self.execution = Execution(store, workers, self.outcomes, self.clock, self._is_over)
        self.found = 0
        self.recorded: set[Names] = set()
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
            number, coalitions = self.store.batch(self.key)
            if missing := self._missing(coalitions):
                self._evaluate(missing)
                if self._is_over():
                    self._save_progress()
                    return self._result(self._reason() or "its time is over")
                continue
            self._give_up_if_all_failed()
            if self.second is not None and (number or not self.valuer.first_left or not self._left):
                self._train_again(self.second)
            self._save_progress()
            if reason := self._reason():
                return self._result(reason)
            if not (batch := self._next_batch()):
                return self._result("nothing is left to gain")
            self.store.begin(self.key, self.outcomes.sort(batch))

    def _save_finished(self, _: object, error: BaseException | None, __: object) -> None:
        """When the loop ends by an error: save finished trainings, and say where everything is."""
        if isinstance(error, KeyboardInterrupt):
            for evaluation in self.execution.unsaved():
                self.execution.save(evaluation)
        elif isinstance(error, Exception) and not isinstance(error, EvaluationError):
            self._record_unsaved(self.execution.unsaved())
        if error is not None:
            with suppress(StoreError):  # what threads of the workers have stored meanwhile
                self.store.refresh()
            self._record_done(self.store.coalitions())
            say_what_is_kept(error, self.valuer, self.store, opened=self.opened)

    def _missing(self, coalitions: Iterable[Names]) -> list[Training]:
        """What is left to do of a batch, as far as the budget allows."""
        left = [members for members in coalitions if not self.outcomes.is_done(members)]
        return [t for members in left[: self._left] for t in self.outcomes.missing(members)]

    @property
    def _left(self) -> int:
        """Coalitions that the budget still allows for."""
        return max(0, self.budget - self.valuer.evaluated)

    def _next_batch(self) -> list[Names]:
        """The next batch, larger where nothing is decided in between."""
        no_choice = self.settings.stop is None and self._left >= self.valuer.left
        chosen = self.valuer.first_left or self.valuer.question.batch
        batch = self.valuer.left if no_choice else chosen
        self.clock.choices += not self.valuer.first_left
        return self.valuer.suggest(min(batch, self._left)) if batch else []

    def _reason(self) -> str:
        """Why to stop, empty to go on."""
        guessed = self.valuer.left and not self.valuer.knows_middle_sizes
        valuation = self._valuation if not guessed else lambda: None
        state = State(self.valuer.evaluated, self.clock.seconds, valuation)
        stop, alone = self.settings.stop, self.settings.budget is None and self.valuer.left > 0
        if stop is not None and self.valuer.has_utility and (r := stop.reasons(state, alone=alone)):
            return " and ".join(r)
        return reason_to_end(self.valuer, self.budget)

    def _is_over(self) -> bool:
        """Whether the time of the run is over, so that a batch is not finished."""
        limit = None if self.settings.stop is None else self.settings.stop.seconds
        return limit is not None and self.clock.seconds >= limit and self.valuer.has_utility

    def _train_again(self, second: SecondTrainings) -> None:
        """Train some coalitions a second time, as many as it takes to know the noise."""
        while True:
            chosen = second.coalitions()
            self._evaluate(self.outcomes.missing_again(chosen))
            self._count_again(chosen)
            if not second.choose() and second.coalitions() == chosen:
                return

    def _count_again(self, coalitions: list[Names]) -> None:
        """Let the second trainings of these coalitions count."""
        if new := {self.valuer.key(members) for members in coalitions} - self.outcomes.twice:
            self.outcomes.twice |= new
            self.latest = None
            self.recorded -= {same for names in coalitions for same in self.store.same(names)}
            self._record_done(coalitions)

    def _evaluate(self, trainings: list[Training]) -> None:
        """Do these trainings."""
        for evaluation in self.execution.run(trainings):
            self._record_done([evaluation.training.members])
            self._show()
        if self.execution.failed is not None:
            raise self._error(self.execution.failed, every=False)

    def _give_up_if_all_failed(self) -> None:
        """Raise if every evaluation so far has failed: there is nothing to predict from."""
        failures = self.valuer.failures
        if failures and not self.valuer.has_utility:
            first = self.outcomes.failures(next(iter(failures)))[0]
            raise self._error(first, every=True)

    def _record_unsaved(self, evaluations: list[Evaluation]) -> None:
        """Record evaluations that the store could not save."""
        for members in {evaluation.training.members for evaluation in evaluations}:
            new = {e.training.repeat: e for e in evaluations if e.training.members == members}
            found = self.store.utilities(members) | new
            wanted = [found[r] for r in range(self.outcomes.repeats) if r in found]
            done = len(wanted) == self.outcomes.repeats
            if members and done and all(e.utility is not None for e in wanted):
                self.valuer.record(members, [e.score for e in wanted])

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
        evaluated, left = self.valuer.evaluated, min(self._left, self.valuer.left)
        each = self.clock.per_training(self.execution.trained) * self.outcomes.repeats
        batches = math.ceil(left / self.valuer.question.batch)
        known = self.settings.budget is not None and self.execution.trained > 0
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
