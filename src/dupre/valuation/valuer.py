"""Ask / tell: which coalitions to evaluate next, and what their utilities say of the owners.

`Valuer` is for trainings done anywhere; `dupre.value` runs them itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dupre._types import Names
from dupre.checks import UNBOUNDED, check_bounds, check_empty_within, finite, whole
from dupre.data.owners import Owners
from dupre.errors import InputError, Remedy
from dupre.game.coalitions import format_members, from_names, to_names
from dupre.game.estimators import Estimator, Sample
from dupre.game.observed import observe
from dupre.game.semivalues import Semivalue, shapley
from dupre.predictor.kernels import Kernel, Prior
from dupre.result.covariances import half_widths, total_covariance
from dupre.result.records import Z95, PredictorCheck, TrainingNoise
from dupre.result.remarks import with_notes
from dupre.result.valuation import Valuation
from dupre.training.threads import limit_threads
from dupre.utility.score import as_scored, check_score, resampled_of
from dupre.valuation.explain import contributions_by_size
from dupre.valuation.infer import expected_covariances, infer, training_noise
from dupre.valuation.question import LeastCore, ask
from dupre.valuation.state import State
from dupre.valuation.state_notes import has_middle_sizes, is_too_early
from dupre.valuation.strategies import (
    Strategy,
    check_strategy,
    order_by_size,
    suggest,
    suggest_ahead,
)


class Valuer:
    """Values of data owners from utilities evaluated elsewhere.

    Suggestions and values depend on what has been recorded and on `seed`, on nothing else.

    Args:
        owners: at least 2.
        empty: utility of no data, u(empty). It enters every value and is never predicted.
        semivalue: which values; this and the next three as for `dupre.value`.
        estimator: which coalitions enter the values.
        strategy: what to suggest.
        kernel: of the predictor.
        by_content: whether coalitions that hold the same rows have the same utility, as those of
            a ModelUtility do: one evaluation then serves all of them, and owners who hold the
            same rows have the same value. By default a coalition is known by its members.
        floor: lowest utility that counts: a lower one counts as this; None for none.
        bounds: between which utilities lie, (low, high), None for an end without one: so do
            predictions, and none is below the floor.
        seed: of directions, first design, everything drawn, and starts of the fit.
    """

    def __init__(
        self,
        owners: Owners,
        *,
        empty: float,
        semivalue: Semivalue | LeastCore | str = shapley,
        estimator: Estimator | Sample | None = None,
        strategy: Strategy | None = None,
        kernel: Kernel | Prior | None = None,
        by_content: bool = False,
        floor: float | None = None,
        bounds: tuple[float | None, float | None] | None = None,
        seed: int = 0,
    ):
        self.owners = owners
        self.floor = None if floor is None else finite(floor, "floor")
        low, high = UNBOUNDED if bounds is None else check_bounds(bounds)
        with _one_blas_thread():  # weights are products of matrices
            self.question = ask(
                owners,
                semivalue=semivalue,
                estimator=estimator,
                strategy=check_strategy(strategy),
                kernel=kernel,
                by_content=by_content,
                bounds=(low if self.floor is None else max(low, self.floor), high),
                seed=seed,
            )
        self._trainings: dict[Names, tuple[float, ...]] = {}
        self._failures: dict[Names, str] = {}
        self._left = self.question.counting
        self._evaluated: set[bytes] = set()
        self.empty = empty

    @property
    def empty(self) -> float:
        """Utility of no data."""
        return self.state.observed.empty

    @empty.setter
    def empty(self, utility: float) -> None:
        self._empty = check_score(utility, "the utility of the empty coalition")
        self._state: State | None = None

    @property
    def state(self) -> State:
        """What is known now; it is made anew once something was recorded."""
        if self._state is None:
            observed = observe(
                self.owners.names,
                self._trainings,
                self._failures,
                empty=self._empty,
                floor=self.floor,
                same=self.question.sameness.keys,
            )
            self._state = State(self.question, observed)
        return self._state

    def check_empty(self, *, begun: bool) -> None:
        """Raise InputError if no data have a utility outside the bounds.

        A run that has `begun` goes on: its bounds can no longer be corrected.
        """
        if not begun:
            check_empty_within(self.empty, self.question.bounds)

    @property
    def evaluations(self) -> dict[Names, float]:
        """Every recorded coalition and its utility, the mean of its trainings."""
        seen, rows = self.state.observed, self.state.row.values()
        return {names: float(seen.utilities[i]) for i in rows for names in seen.names[i]}

    @property
    def trainings(self) -> dict[Names, tuple[float, ...]]:
        """Every recorded coalition and what its trainings scored, before a floor raised it."""
        return as_scored({names: self._trainings[names] for names in self.evaluations})

    @property
    def failures(self) -> dict[Names, str]:
        """Every coalition that could not be evaluated, and why."""
        return self.state.failures if self._failures else {}

    @property
    def evaluated(self) -> int:
        """Coalitions recorded or failed; those that one evaluation serves count once."""
        return len(self._evaluated)

    def key(self, members: Iterable[str]) -> bytes:
        """A key that is equal for exactly those coalitions that one evaluation serves."""
        names = self.owners.names
        row = from_names(members, names) if members else np.zeros(len(names), dtype=bool)
        return self.question.sameness.keys(row[None])[0]

    def has(self, members: Names) -> bool:
        """Whether a coalition, or one that the same evaluation serves, has a utility."""
        row = from_names(members, self.owners.names)[None]
        return bool(np.isfinite(self.state.utilities_at(row)).all())

    @property
    def merges(self) -> bool:
        """Whether one evaluation serves several of the coalitions that enter the values."""
        return self.question.merged.changed

    @property
    def left(self) -> int:
        """Coalitions that have a weight and may still be evaluated."""
        return self._left

    @property
    def has_utility(self) -> bool:
        """Whether there is a utility to predict from."""
        return bool(self.state.shown.size)

    @property
    def first_left(self) -> int:
        """How many of them are to be evaluated before any is predicted."""
        return len(self.state.first_left)

    @property
    def designed(self) -> bool:
        """Whether the first design is finished, and there is a utility to predict from."""
        return not self.first_left and self.has_utility

    def is_too_early(self, *, limited: bool) -> bool:
        """Whether intervals are no reason to stop yet; `limited` if a budget ends the run."""
        return not self.designed or is_too_early(self.state, limited=limited)

    @property
    def knows_middle_sizes(self) -> bool:
        """Whether a group of 2 to n - 2 owners has a utility; without one, they are guessed."""
        return has_middle_sizes(self.state)

    @property
    def first_evaluated(self) -> list[Names]:
        """Evaluated coalitions of the first design, of each size one in turn."""
        return [self.state.names(i) for i in order_by_size(self.state)]

    def training_noise(self) -> TrainingNoise:
        """How much repeated trainings differ."""
        return training_noise(self.state.observed)

    @property
    def counting(self) -> int:
        """Coalitions that enter the values."""
        return self.question.counting

    def record(self, members: Iterable[str], utility: float | Sequence[float]) -> None:
        """Record the utility of a coalition, given by owner names in any order.

        Repeated trainings of a coalition are recorded as a sequence of utilities: their mean
        counts, and their spread is the noise of trainings. A `Score` instead of a number
        tells how much it depends on the validation rows.

        Raises:
            InputError: an unknown owner, the empty coalition, a number that is not finite or
                too large, or utilities that contradict those recorded before.
        """
        names = self._names(members)
        what = f"the utility of {format_members(names)}"
        several: Any = [utility] if np.ndim(utility) == 0 else utility
        numbers = tuple(check_score(number, what) for number in several)
        if not numbers:
            raise InputError(f"{what} must be a number or several, got {utility!r}")
        known = self._trainings.get(names, ())
        new, old = map(self._as_counted, (numbers, known))
        if old[: len(new)] == new:
            adds = len(old) == len(new) and resampled_of(known) is None
            if not adds or resampled_of(numbers) is None:
                return
        if new[: len(old)] != old:
            raise InputError(
                f"{format_members(names)} already has the utility {_format(old)}, got "
                f"{_format(new)}; record repeated trainings of a coalition together, as a list"
            )
        self._count(names)  # first: a run that Ctrl-C stops in between records it again
        self._trainings[names] = numbers
        self._failures.pop(names, None)

    def record_failure(self, members: Iterable[str], reason: str) -> None:
        """Record that a coalition cannot be evaluated: it is predicted, and not suggested again.

        Raises:
            InputError: an unknown owner, the empty coalition, or one that has a utility.
        """
        names = self._names(members)
        if names in self._trainings:
            raise InputError(f"{format_members(names)} has a utility already; it did not fail")
        self._count(names)
        self._failures[names] = str(reason)

    def _count(self, names: Names) -> None:
        """Count a coalition that was evaluated; the state is made anew when it is asked for."""
        self._state = None
        if (key := self.key(names)) not in self._evaluated:
            self._evaluated.add(key)
            column = self.question.columns.get(key)
            self._left -= column is not None and bool(self.question.counts[column])

    def _names(self, members: Iterable[str]) -> Names:
        """A coalition with its members in the order of the owners."""
        return to_names(from_names(members, self.owners.names), self.owners.names)

    def _as_counted(self, scores: Sequence[float]) -> tuple[float, ...]:
        """Scores, raised to the floor."""
        least = -math.inf if self.floor is None else self.floor
        return tuple(max(float(score), least) for score in scores)

    def suggest(self, k: int = 1, *, pending: Iterable[Iterable[str]] = ()) -> list[Names]:
        """Up to k coalitions to evaluate next; none when nothing is left to gain.

        The first design comes first, with the coalitions for the check (fewer than k where they
        end), then those that the strategy chooses. Asking again without recording gives the same
        answer.

        Args:
            k: how many.
            pending: coalitions that are being evaluated now. They are not suggested again, and
                the information they will bring is taken into account.
        """
        k = whole(k, "the number of coalitions to suggest", least=1)
        state, owners = self.state, self.owners.names
        rows = np.array([from_names(members, owners) for members in pending], dtype=bool)
        if rows.size:
            state = state.with_pending(np.intersect1d(state.positions(rows), state.open))
        with _one_blas_thread():
            picks = suggest(state, k)
        return [state.names(i) for i in picks]

    def forecast(self, k: int, *, now: Valuation | None = None) -> pd.DataFrame:
        """Expected widths of the intervals after up to k more evaluations.

        The widths depend on which coalitions are evaluated, not on their utilities. The index is
        the number of evaluations, the present one first. Each owner's column is half the width of
        its 95 % interval, "widest" the largest of them.

        Args:
            k: how many.
            now: what `values` returns now; computed by default.
        """
        k = whole(k, "the number of further evaluations", least=1)
        if self.question.least_core:
            raise InputError("there is no forecast for the least core, only for semivalues")
        now = now or self.values()
        covariances = [now.covariance]
        if (state := self.state).open.size:
            with _one_blas_thread():
                expected = expected_covariances(state, suggest_ahead(state, k), now.noise)
            parts = now.sampling, now.validation
            covariances += [total_covariance(covariance, *parts) for covariance in expected]
        widths = np.array([half_widths(covariance) for covariance in covariances])
        frame = pd.DataFrame(widths, columns=list(self.owners.names))
        frame.insert(0, "widest", widths.max(axis=1))
        frame.index = pd.RangeIndex(self.evaluated, self.evaluated + len(frame), name="evaluated")
        return frame

    def predict(self, coalitions: Iterable[Iterable[str]]) -> pd.DataFrame:
        """Predict the utilities of any coalitions.

        One row for each: `members`, `utility`, `std`, `low` and `high`, the bounds between which
        the utility of a training lies with 95 %, and whether it was `evaluated`: its utility is
        then the observed one. A plain posterior has no noise of trainings: see `kernels.Prior`.
        """
        self._check_any_recorded()
        owners = self.owners.names
        listed = [from_names(members, owners) for members in coalitions]
        rows = np.array(listed, dtype=bool).reshape(-1, self.owners.n)
        with _one_blas_thread():
            mean, std = self.state.beliefs.predict(rows)
        members = [to_names(row, owners) for row in rows]
        known = self.state.utilities_at(rows)
        evaluated = ~np.isnan(known)
        mean[evaluated], std[evaluated] = known[evaluated], 0.0
        columns = {"members": members, "utility": mean, "std": std}
        limits = self.state.beliefs.predictor.bounds
        low, high = (np.clip(mean + side * Z95 * std, *limits) for side in (-1, 1))
        return pd.DataFrame(columns | {"low": low, "high": high, "evaluated": evaluated})

    def check(self) -> PredictorCheck | None:
        """The predictor measured on the check coalitions; None until all are evaluated."""
        with _one_blas_thread():
            return self.state.beliefs.check

    def values(self) -> Valuation:
        """The values of all owners, from the utilities recorded so far."""
        return replace(self.interim_values(), contributions=self.contributions())

    def interim_values(self) -> Valuation:
        """The values without contributions by group size: for a look after every batch."""
        self._check_any_recorded()
        with _one_blas_thread():
            found = infer(self.state)
        return with_notes(found)

    def contributions(self) -> pd.DataFrame:
        """What each owner adds to groups of 0, 1, 2, ... others: `Valuation.contributions`."""
        self._check_any_recorded()
        with _one_blas_thread():
            return contributions_by_size(self.state)

    def _check_any_recorded(self) -> None:
        if not self.has_utility:
            raise InputError("no utility to learn from has been recorded; ", Remedy.EVALUATE)


def _one_blas_thread() -> Any:
    """Limit BLAS to one thread.

    More only slow down many products of small matrices. Their number would change the order of
    additions too, and so the last digits.
    """
    return limit_threads(1, user_api="blas")


def _format(numbers: tuple[float, ...]) -> str:
    return repr(numbers[0]) if len(numbers) == 1 else repr(list(numbers))
