"""The loop: choose a batch, evaluate it somewhere, store it, stop when there is a reason.

A batch is chosen when the one before is finished, so never by when or where a training ends. It is
written to the store before it starts; a run that was interrupted goes on with it. So the same call
gives the same values for any workers and any interruption.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from dupre._types import Names
from dupre.errors import EvaluationError, StoreError
from dupre.game.coalitions import canonical
from dupre.result.valuation import Valuation
from dupre.store.store import Store
from dupre.training.evaluation import Evaluation, Training
from dupre.training.workers import Workers
from dupre.utility.score import mean_score
from dupre.valuation import deals, second_trainings
from dupre.valuation.failures import evaluation_error, say_what_is_kept
from dupre.valuation.progress import SLOW, Clock, Display, Progress
from dupre.valuation.stopping import (
    RunSettings,
    State,
    is_too_early,
    knows_between,
    reason_to_end,
    seconds_each,
)
from dupre.valuation.trainings import Trainings
from dupre.valuation.valuer import Valuer

# Beyond, and for a least core, a look at the values could take longer than the batch.
WATCHED_UP_TO = 4_096
"""Counting coalitions up to which intervals are computed after every batch, not only for rules."""


class Loop:
    """One run on an open store; its arguments are checked before.

    Attributes:
        found: coalitions that were evaluated before it began.
        trainings: which are done, and which are missing.
        each: seconds that a training of one of the open coalitions is expected to take on average;
            None until the first design is finished.
    """

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
        self.budget = 2**valuer.owners.n - 1 if settings.budget is None else settings.budget
        self.trainings = Trainings(
            store,
            workers,
            settings.traits,
            valuer.owners.names,
            repeats=settings.repeats or 1,
            skip=settings.skip,
            is_over=self._is_over,
        )
        self.clock = Clock()
        self.found = 0
        self.latest: tuple[int, Valuation] | None = None
        self.slow: float | None = None
        self.each: float | None = None
        self._held = dict(zip(valuer.owners.names, valuer.owners.rows.tolist(), strict=True))

    def run(self, begin: Callable[[], None]) -> tuple[Valuation, str]:
        """Evaluate until there is reason to stop: the values, and the reason.

        `begin` is called first: it refuses a store of another game.
        """
        opened = False
        try:
            self._observe(self.store.coalitions())
            begin()
            opened = True
            if hasattr(self.workers, "on_finished"):
                self.workers.on_finished = self.store.write_at_once
            return self._run()
        except BaseException as error:
            self._keep_finished(error)
            say_what_is_kept(error, self.valuer, self.store, opened=opened)
            raise

    def _run(self) -> tuple[Valuation, str]:
        self._observe(self.store.coalitions())
        self.found = self.valuer.evaluated
        self.each = seconds_each(self.valuer)
        self._show()
        self._ask_empty()
        batch = self.store.batch(self.key)  # of a run that was interrupted; none at first
        while not (why := self._finish(batch) or self._reason()):
            if not (batch := self._choose()):
                why = "nothing is left to gain"
                break
            self.store.begin(self.key, batch)  # before it starts: a kill changes no choice
        return self._valuation() or self.valuer.interim_values(), why

    def _ask_empty(self) -> None:
        """Ask for the utility of no data unless it is known; refuse one outside the bounds."""
        if self.settings.ask_empty:
            self._train(self.trainings.missing(()))
            self.valuer.empty = mean_score(self.trainings.utilities(()))
        if not self.found:  # bounds of a run that has begun can no longer be corrected
            self.valuer.check_empty()

    def _finish(self, batch: list[Names]) -> str:
        """Evaluate what is left of a batch; why the run ends in the middle of it, or nothing."""
        while missing := self._missing(batch):
            self._train(missing)
            if self._is_over():
                self._save_round()
                return self._reason() or "its time is over"
        if self._undone(batch):
            self._save_round()
            return "no further training is expected to end in its time"
        self._give_up_if_all_failed()
        # Not before the first design is there: the three that are checked come from it.
        if batch or not self.valuer.first_left or not self._left:
            self._train_again()
        self._save_round()
        return ""

    def _missing(self, batch: Iterable[Names]) -> list[Training]:
        """What is left to do of a batch, as far as the budget allows."""
        left = self._in_time(self._undone(batch))
        return [t for members in left for t in self.trainings.missing(members)]

    def _undone(self, batch: Iterable[Names]) -> list[Names]:
        """The coalitions of a batch that are not evaluated, as far as the budget allows."""
        return [members for members in batch if not self.trainings.is_done(members)][: self._left]

    def _in_time(self, coalitions: list[Names]) -> list[Names]:
        """Those whose trainings are expected to end in the time of the run, in their order.

        The batch itself is as it would be without a limit: who resumes the run goes on with it, and
        chooses the same afterwards.
        """
        left, cost = self._time_left, self.valuer.state.cost
        if left is None or self.each is None or cost is None:
            return coalitions
        spent, found = 0.0, []
        for members in coalitions:
            seconds = float(cost.seconds(self._rows(members))) * self.trainings.repeats
            # No training is quicker for others beside it; those for folds are trainings of theirs.
            alone = seconds / (self.settings.traits.folds * self.trainings.repeats)
            if max(alone, self.clock.pace * (spent + seconds)) <= left:
                spent += seconds
                found.append(members)
        return found

    def _rows(self, members: Names) -> int:
        """Rows of a coalition."""
        return sum(self._held[name] for name in members)

    def expected_seconds(self, count: int) -> float | None:
        """How long this many further evaluations are expected to take, choosing them included.

        None if nothing is trained yet. From the end of the first design on by what coalitions cost,
        before by what those took that are done.
        """
        if not (trained := self.trainings.count):
            return None
        trainings = count * self.trainings.repeats + self._further_left
        own = self.clock.per_choice * math.ceil(count / self.valuer.question.batch)
        if self.each is not None:
            return self.clock.pace * self.each * trainings + own
        return self.clock.per_training(trained) * trainings * self.settings.traits.folds + own

    def _train(self, trainings: list[Training]) -> None:
        """Do these trainings."""
        with self.clock.training():
            for evaluation in self.trainings.run(trainings):
                self._observe([evaluation.training.members])
                self.clock.trained += evaluation.seconds
                self._note_time(evaluation)
                self._show()
        if self.trainings.failed is not None:
            raise self._error(self.trainings.failed, every=False)

    def _note_time(self, evaluation: Evaluation) -> None:
        """Note how long a training of all owners takes, if fewer folds would take much less."""
        training, folds = evaluation.training, self.settings.traits.folds
        if (
            folds > 1
            and training.fold is not None
            and len(training.members) == self.valuer.owners.n
        ):
            self.slow = evaluation.seconds if evaluation.seconds > SLOW else None

    def _train_again(self) -> None:
        """Train some coalitions a second time, as many as it takes to know the noise."""
        if self.settings.repeats is not None:
            return
        if self.settings.traits.deals:
            self._deal_again()
            return
        key = f"{self.key} second"
        chosen = self.store.batch(key)
        while True:
            self._train(self.trainings.missing_again(chosen))
            if new := set(map(self.store.key, chosen)) - self.trainings.twice:
                self.trainings.twice |= new
                self.latest = None  # as many evaluated as before, but other values
                self._observe(chosen)
            more = second_trainings.choose(self.valuer, self.store, chosen)
            if len(more) == len(chosen):
                return
            self.store.begin(key, chosen := more)

    def _deal_again(self) -> None:
        """Evaluate some coalitions under further deals of the folds, the same ones to the end."""
        key = f"{self.key} deals"
        if not (chosen := self.store.batch(key)):
            chosen = second_trainings.choose_dealt(self.valuer, self.store)
            self.store.begin(key, chosen)
        if missing := self.trainings.missing_again(chosen, deals.FURTHER):
            self._train(missing)
            self.latest = None
        self._observe(chosen)

    def _observe(self, coalitions: Iterable[Names]) -> None:
        """Record those coalitions that are done; to record one again changes nothing."""
        for members in filter(None, map(canonical, coalitions)):
            if not self.trainings.is_done(members):
                continue
            if failures := self.trainings.failures(members):
                self.valuer.record_failure(members, failures[0].failure)
            else:
                for names in self.store.same(members):
                    if utilities := self._counting_scores(names):
                        self._record(names, utilities)
                        if seconds := self.store.seconds(names):
                            self.valuer.record_seconds(names, seconds)

    def _counting_scores(self, members: Names) -> list[float]:
        """The scores of a coalition by repeat; those of further deals only tell of the deal."""
        dealt = self.settings.traits.deals
        return self.trainings.scores(members) if dealt else self.trainings.utilities(members)

    def _record(self, members: Names, scores: Sequence[float]) -> None:
        traits, repeats = self.settings.traits, self.settings.repeats
        second_trainings.record(self.valuer, members, scores, traits, repeats)

    @property
    def _left(self) -> int:
        """Coalitions that the budget still allows for."""
        return max(0, self.budget - self.valuer.evaluated)

    @property
    def _further_left(self) -> int:
        """Evaluations under further deals that are still to come."""
        if self.settings.repeats is not None or not self.settings.traits.deals:
            return 0
        asked = self.valuer.question
        first = min(asked.strategy.design(asked.owners.n), asked.counting, self.budget)
        done = sum(len(self.trainings.scores(members)) - 1 for members in self.valuer.dealt)
        return max(0, first * deals.FURTHER - done)

    @property
    def seconds_each(self) -> float:
        """How long a further evaluation is expected to take; 0 if that is not known."""
        count = min(self.valuer.left, self.valuer.question.batch)
        return (self.expected_seconds(count) or 0.0) / count if count else 0.0

    def _choose(self) -> list[Names]:
        """The next batch, larger where nothing is decided in between.

        The largest coalitions come first: workers then finish together. The first design keeps its
        order, for single owners are more likely to fail; so does a strategy that has one.
        """
        valuer = self.valuer
        # With room for all that is left there is nothing to choose, so workers need not wait.
        may_end = self.settings.stop is not None or valuer.question.strategy.ends
        no_choice = not may_end and self._left >= valuer.left
        size = valuer.left if no_choice else valuer.first_left or valuer.question.batch
        self.clock.choices += not valuer.first_left
        batch = valuer.suggest(min(size, self._left)) if size else []
        if valuer.first_left or valuer.question.strategy.in_order:
            return batch
        return sorted(batch, key=lambda members: -self._rows(members))

    def _reason(self) -> str:
        """Why to stop, empty to go on."""
        # Intervals about sizes of which none is known are a guess: no reason to stop.
        valuation = self._valuation if knows_between(self.valuer) else lambda: None
        state = State(self.valuer.evaluated, self.clock.seconds, valuation)
        stop, alone = self.settings.stop, self.settings.budget is None and self.valuer.left > 0
        if stop is not None and self.valuer.has_utility and (r := stop.reasons(state, alone=alone)):
            return " and ".join(r)
        return reason_to_end(self.valuer, self.budget)

    @property
    def _time_left(self) -> float | None:
        """Seconds until the run ends by time alone; None if it does not."""
        limit = None if self.settings.stop is None else self.settings.stop.seconds
        return None if limit is None else max(0.0, limit - self.clock.seconds)

    def _is_over(self) -> bool:
        """Whether the time of the run is over, so that a batch is not finished."""
        return self._time_left == 0 and self.valuer.has_utility

    def _valuation(self) -> Valuation | None:
        """What is known now; None while it is too early to tell."""
        if is_too_early(self.valuer, limited=self.settings.budget is not None):
            return None
        if self.latest is None or self.latest[0] != self.valuer.evaluated:
            self.latest = self.valuer.evaluated, self.valuer.interim_values()
        return self.latest[1]

    def _give_up_if_all_failed(self) -> None:
        """Raise if every evaluation so far has failed: there is nothing to predict from."""
        failures = self.valuer.failures
        if failures and not self.valuer.has_utility:
            first = self.trainings.failures(next(iter(failures)))[0]
            raise self._error(first, every=True)

    def _error(self, failed: Evaluation, *, every: bool) -> EvaluationError:
        return evaluation_error(
            failed, self.valuer, self.store, skip=self.settings.skip, every=every
        )

    def _keep_finished(self, error: BaseException) -> None:
        """When the loop ends by an error: save finished trainings, or record them at least."""
        if isinstance(error, KeyboardInterrupt):
            for evaluation in self.trainings.unsaved():
                self.trainings.save(evaluation)
        elif isinstance(error, Exception) and not isinstance(error, EvaluationError):
            self._record_unsaved(self.trainings.unsaved())
        with suppress(StoreError):  # what threads of the workers have stored meanwhile
            self.store.refresh()
        self._observe(self.store.coalitions())

    def _record_unsaved(self, evaluations: list[Evaluation]) -> None:
        """Record evaluations that the store could not save."""
        every = [e for e in evaluations if e.part is None]
        for members in {evaluation.training.members for evaluation in every}:
            new = {e.training.repeat: e for e in every if e.training.members == members}
            found = self.store.utilities(members) | new
            wanted = [found[r] for r in range(self.trainings.repeats) if r in found]
            done = len(wanted) == self.trainings.repeats
            if members and done and all(e.utility is not None for e in wanted):
                self._record(members, [e.score for e in wanted])

    def _save_round(self) -> None:
        """After a batch: note how much is known."""
        found = {}
        if is_watched(self.valuer) and (valuation := self._valuation()) is not None:
            found["widest"] = valuation.uncertainty.widest
        if self.valuer.designed and (v := self.valuer.check()) is not None:
            found |= {"error": v.error, "by_size": v.by_size, "coverage": v.coverage}
        if found:
            self.store.save_round(self.key, self.valuer.evaluated, found)
        self.each = seconds_each(self.valuer)  # once a batch: it looks at every coalition
        self._show()

    def _show(self) -> None:
        evaluated, left = self.valuer.evaluated, min(self._left, self.valuer.left)
        limited, remaining = self.settings.budget is not None, self.expected_seconds(left)
        if (time := self._time_left) is not None and self.each is not None:
            # What a single one takes on average says how many fit.
            if remaining is not None and remaining > time:
                left, remaining = int(left * time / remaining), time
            limited = True
        widest = None if self.latest is None else self.latest[1].uncertainty.widest
        self.display.show(
            Progress(
                evaluated=evaluated,
                budget=evaluated + left if limited else None,
                failed=len(self.valuer.failures),
                trainings=self.trainings.count,
                seconds=self.clock.seconds,
                remaining=remaining if limited else None,
                widest=None if widest is None else float(widest),
                own=self.clock.own if self.clock.choices else None,
                slow=self.slow,
                folds=self.settings.traits.folds,
                planned=self.each is not None,
            )
        )


def is_watched(valuer: Valuer) -> bool:
    """Whether looking at the values costs little: a sum over not too many coalitions."""
    return valuer.question.least_core is None and valuer.question.counting <= WATCHED_UP_TO
