"""Ask / tell: which coalitions to evaluate next, and what their utilities say of the owners.

`Valuer` is for trainings done anywhere; `dupre.value` runs them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dupre._types import Ints, Names
from dupre.checks import finite, whole
from dupre.data.owners import Owners
from dupre.errors import InputError, Remedy
from dupre.game.coalitions import from_names, to_names
from dupre.game.estimators import Estimator, Sample
from dupre.game.semivalues import Semivalue, shapley
from dupre.predictor.kernels import Kernel, Prior
from dupre.result.covariances import half_widths, total_covariance
from dupre.result.records import Z95, PredictorCheck, TrainingNoise
from dupre.result.valuation import Valuation
from dupre.training.threads import limit_threads
from dupre.utility.limits import UNBOUNDED, check_bounds, check_empty_within
from dupre.utility.score import as_scored, check_score, known_resamples
from dupre.valuation import evidence, next_batch
from dupre.valuation.contributions import contributions_by_size
from dupre.valuation.duplicates import Identity
from dupre.valuation.inference import Inference
from dupre.valuation.knowledge import Knowledge
from dupre.valuation.question import LeastCore, ask
from dupre.valuation.strategies import Strategy
from dupre.valuation.support import has_middle_sizes, is_too_early
from dupre.wording import look_alikes


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
        self.question = ask(
            owners,
            semivalue=semivalue,
            estimator=estimator,
            strategy=strategy,
            kernel=kernel,
            seed=seed,
        )
        self.owners = owners
        if not isinstance(by_content, bool):
            raise InputError(f"by_content must be True or False, got {by_content!r}")
        same = Identity(owners.n, owners.contents if by_content else None)
        with _one_blas_thread():  # weights are products of matrices
            self._knowledge = Knowledge(self.question, same)
        self._inference = Inference(self._knowledge, self.question)
        self.floor = self._knowledge.observations.floor = (
            None if floor is None else finite(floor, "floor")
        )
        low, high = UNBOUNDED if bounds is None else check_bounds(bounds)
        self._knowledge.bounds = low if self.floor is None else max(low, self.floor), high
        self.empty = empty

    @property
    def empty(self) -> float:
        """Utility of no data."""
        return self._knowledge.empty

    @empty.setter
    def empty(self, utility: float) -> None:
        score = check_score(utility, "the utility of the empty coalition")
        score = self._knowledge.observations.raise_to_floor(score)
        self._knowledge.empty = float(score)
        self._knowledge.empty_resampled = known_resamples(score)

    def check_empty(self, *, begun: bool) -> None:
        """Raise InputError if no data have a utility outside the bounds.

        A run that has `begun` goes on: its bounds can no longer be corrected.
        """
        if not begun:
            check_empty_within(self.empty, self._knowledge.bounds)

    @property
    def evaluations(self) -> dict[Names, float]:
        """Every recorded coalition and its utility, the mean of its trainings."""
        observations = self._knowledge.observations
        utilities, by_name = observations.utilities, observations.by_name
        return {names: float(utilities[i]) for i in sorted(by_name) for names in sorted(by_name[i])}

    @property
    def trainings(self) -> dict[Names, tuple[float, ...]]:
        """Every recorded coalition and what its trainings scored, before a floor raised it."""
        by_name = self._knowledge.observations.by_name
        found = {i: by_name[i] for i in sorted(by_name)}
        return as_scored({names: own[names] for own in found.values() for names in sorted(own)})

    @property
    def failures(self) -> dict[Names, str]:
        """Every coalition that could not be evaluated, and why."""
        return self._knowledge.failures

    @property
    def evaluated(self) -> int:
        """Coalitions recorded or failed; those that one evaluation serves count once."""
        return self._knowledge.evaluated

    def key(self, members: Iterable[str]) -> bytes:
        """A key that is equal for exactly those coalitions that one evaluation serves."""
        names = self.owners.names
        row = from_names(members, names) if members else np.zeros(len(names), dtype=bool)
        return self._knowledge.identity.keys(row[None])[0]

    def has(self, members: Names) -> bool:
        """Whether a coalition, or one that the same evaluation serves, has a utility."""
        row = from_names(members, self.owners.names)[None]
        return bool(np.isfinite(self._knowledge.observations.utilities_at(row)).all())

    @property
    def merges(self) -> bool:
        """Whether one evaluation serves several of the coalitions that enter the values."""
        return self._knowledge.merged.changed

    @property
    def left(self) -> int:
        """Coalitions that have a weight and may still be evaluated."""
        return len(self._knowledge.open)

    @property
    def has_utility(self) -> bool:
        """Whether there is a utility to predict from."""
        return bool(self._knowledge.shown.size)

    @property
    def first_left(self) -> int:
        """How many of them are to be evaluated before any is predicted."""
        return int(np.isin(self._knowledge.first, self._knowledge.open).sum())

    @property
    def designed(self) -> bool:
        """Whether the first design is finished, and there is a utility to predict from."""
        return not self.first_left and self.has_utility

    def is_too_early(self, *, limited: bool) -> bool:
        """Whether intervals are no reason to stop yet; `limited` if a budget ends the run."""
        return not self.designed or is_too_early(self._knowledge, limited=limited)

    @property
    def knows_middle_sizes(self) -> bool:
        """Whether a group of 2 to n - 2 owners has a utility; without one, they are guessed."""
        return has_middle_sizes(self._knowledge)

    @property
    def first_evaluated(self) -> list[Names]:
        """Evaluated coalitions of the first design, of each size one in turn."""
        return [self._knowledge.observations.names(i) for i in self._knowledge.by_size]

    def training_noise(self) -> TrainingNoise:
        """How much repeated trainings differ."""
        return self._inference.training_noise()

    @property
    def counting(self) -> int:
        """Coalitions that enter the values."""
        return self._knowledge.counting

    def record(self, members: Iterable[str], utility: float | Sequence[float]) -> None:
        """Record the utility of a coalition, given by owner names in any order.

        Repeated trainings of a coalition are recorded as a sequence of utilities: their mean
        counts, and their spread is the noise of trainings. A `Score` instead of a number
        tells how much it depends on the validation rows.

        Raises:
            InputError: an unknown owner, the empty coalition, a number that is not finite or
                too large, or utilities that contradict those recorded before.
        """
        self._knowledge.observations.record(members, utility)

    def record_failure(self, members: Iterable[str], reason: str) -> None:
        """Record that a coalition cannot be evaluated: it is predicted, and not suggested again.

        Raises:
            InputError: an unknown owner, the empty coalition, or one that has a utility.
        """
        self._knowledge.observations.record_failure(members, reason)

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
        observations = self._knowledge.observations
        under_way = observations.find(pending)
        still_open = self._knowledge.open
        if under_way.size:
            under_way = np.intersect1d(under_way, still_open)
            still_open = np.setdiff1d(still_open, under_way, assume_unique=True)
        picks = still_open
        if k < len(still_open):
            first = self._knowledge.first
            picks = first[np.isin(first, still_open)][:k]
        if not picks.size and still_open.size:
            with _one_blas_thread():
                picks = next_batch.choose(self._knowledge, k, still_open, under_way)
        return [observations.names(i) for i in picks]

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
        if self._knowledge.open.size:
            with _one_blas_thread():
                expected = self._inference.expected_covariances(self._next_picks(k), now.noise)
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
        rows = np.array([from_names(members, owners) for members in coalitions], dtype=bool)
        with _one_blas_thread():
            mean, std = evidence.predictions(self._knowledge, rows.reshape(-1, self.owners.n))
        members = [to_names(row, owners) for row in rows]
        known = self._knowledge.observations.utilities_at(rows.reshape(-1, self.owners.n))
        evaluated = ~np.isnan(known)
        mean[evaluated], std[evaluated] = known[evaluated], 0.0
        columns = {"members": members, "utility": mean, "std": std}
        limits = self._knowledge.predictor().bounds
        low, high = (np.clip(mean + side * Z95 * std, *limits) for side in (-1, 1))
        return pd.DataFrame(columns | {"low": low, "high": high, "evaluated": evaluated})

    def check(self) -> PredictorCheck | None:
        """The predictor measured on the check coalitions; None until all are evaluated."""
        with _one_blas_thread():
            return self._knowledge.check()

    def values(self) -> Valuation:
        """The values of all owners, from the utilities recorded so far."""
        return replace(self.interim_values(), contributions=self.contributions())

    def interim_values(self) -> Valuation:
        """The values without contributions by group size: for a look after every batch."""
        self._check_any_recorded()
        with _one_blas_thread():
            found = self._inference.valuation()
        return replace(found, caveats=(*found.caveats, *look_alikes(self.owners.names)))

    def contributions(self) -> pd.DataFrame:
        """What each owner adds to groups of 0, 1, 2, ... others: `Valuation.contributions`."""
        self._check_any_recorded()
        with _one_blas_thread():
            return contributions_by_size(self._knowledge)

    def _check_any_recorded(self) -> None:
        if not self._knowledge.shown.size:
            raise InputError("no utility to learn from has been recorded; ", Remedy.EVALUATE)

    def _next_picks(self, k: int) -> Ints:
        """The next k coalitions if no utility comes in between."""
        known = self._knowledge
        picks = known.first[np.isin(known.first, known.open)][:k]
        if len(picks) == min(k, len(known.open)):
            return picks
        rest = np.setdiff1d(known.open, picks)
        return np.append(picks, next_batch.choose(known, k - len(picks), rest, picks))


def _one_blas_thread() -> Any:
    """Limit BLAS to one thread.

    More only slow down many products of small matrices. Their number would change the order of
    additions too, and so the last digits.
    """
    return limit_threads(1, user_api="blas")
