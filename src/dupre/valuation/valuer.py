"""Ask / tell: which coalitions to evaluate next, and what their utilities say of the owners.

`Valuer` is for trainings done anywhere; `dupre.value` (module `run`) runs them itself.

Notation: b coalitions that count, W (n, b) their weights; what is known of them is in the `pool`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, cast

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from dupre._types import Floats, Ints, Names
from dupre.checks import finite, whole
from dupre.data.owners import Owners
from dupre.errors import InputError, Remedy
from dupre.game import estimators
from dupre.game.coalitions import from_names, to_names
from dupre.game.estimators import Estimator
from dupre.game.semivalues import Semivalue, shapley
from dupre.game.ties import descending
from dupre.game.weights import Weights, check_weights
from dupre.result.records import Z95, TrainingNoise, Validation
from dupre.result.valuation import Valuation, bounded_sum, half_widths
from dupre.valuation import evidence, next_batch
from dupre.valuation.core_payments import LeastCore
from dupre.valuation.duplicates import Identity
from dupre.valuation.inference import Inference, has_failed
from dupre.valuation.knowledge import Knowledge

ENUMERATED_UP_TO = 16
"""Owners up to which all coalitions enter the values, unless an estimator is asked for."""

SAMPLES = 4_096
"""Coalitions drawn where not all enter the values, unless another number is asked for."""

SAMPLES_OF_MEANS = 16_384
"""Coalitions over which expected values are summed then; variances are those of fewer, they cost
the square of their number."""

MAX_CANDIDATES = 2_048
"""Coalitions among which an active batch is chosen; a weighted sample above that."""

Focus = str | tuple[str, str] | None
Choose = Literal["active", "drawn"]


class Valuer:
    """Values of data owners from utilities evaluated elsewhere.

    Suggestions and values depend on what has been recorded and on `seed`, on nothing else.

    Args:
        owners: at least 2.
        semivalue: shapley, banzhaf, beta_shapley(a, b), leave_one_out, a Semivalue of your own, or
            LeastCore().
        empty: utility of no data, u(empty). It enters every value and is never predicted.
        focus: whom active batches serve: None for all owners, a name for one owner, a pair of
            names for the question which of the two is worth more.
        first: coalitions suggested by their weight alone before active batches begin; 2n + 1 by
            default: under Shapley all owners, every single one, and all but every single one.
        holdout: coalitions drawn at random whose utilities the predictor is never shown, so that
            it can be checked on them; 0 for none, otherwise at least 4. They follow the first
            design and count in the values.
        estimator: which coalitions enter the values: a function of module `dupre.estimators`. By
            default all of them for up to 16 owners, `regression` on a sample for more.
        samples: how many coalitions the estimator draws; by default 4,096 (40n if more) to choose
            from and for variances, and 16,384 for the expected values.
        choose: "active" to evaluate those of most use, "drawn" to evaluate the coalitions of the
            estimator in the order in which it drew them (DUPRE App. "Complementing").
        corrected: add to the predictor's values an unbiased estimate of what they are wrong by,
            from coalitions drawn at random and predicted without being shown. After the first
            design all are drawn at random then.
        by_content: whether coalitions that hold the same rows have the same utility, as those of
            a ModelUtility do: one evaluation then serves all of them, and owners who hold the
            same rows have the same value. By default a coalition is known by its members.
        seed: of directions, first design, everything drawn, and starts of the fit.
    """

    def __init__(
        self,
        owners: Owners,
        *,
        semivalue: Semivalue | LeastCore = shapley,
        empty: float = 0.0,
        focus: Focus = None,
        first: int | None = None,
        holdout: int = 0,
        estimator: Estimator | None = None,
        samples: int | None = None,
        choose: Choose = "active",
        corrected: bool = False,
        by_content: bool = False,
        seed: int = 0,
    ):
        self.owners = check_owners(owners)
        self.least_core = semivalue if isinstance(semivalue, LeastCore) else None
        guide = semivalue.guide if isinstance(semivalue, LeastCore) else semivalue
        self.semivalue = _checked_semivalue(guide)
        if self.least_core and not self.semivalue.chances(owners.n).all():
            raise InputError(
                f"every coalition counts in the least core, but {guide.name} leaves some out; take "
                "another guide"
            )
        self.seed = whole(seed, "seed", least=0)
        self.first = 2 * owners.n + 1 if first is None else whole(first, "first", least=1)
        self.holdout = whole(holdout, "holdout", least=0)
        self.estimator, self.samples = _checked_estimator(estimator, samples, owners.n)
        self.choose = _checked_choice(choose, self.estimator, corrected, focus)
        self.corrected = corrected
        if not isinstance(corrected, bool):
            raise InputError(f"corrected must be True or False, got {corrected!r}")
        if not isinstance(by_content, bool):
            raise InputError(f"by_content must be True or False, got {by_content!r}")
        if corrected and self.least_core:
            raise InputError(
                "corrected=True is for semivalues; the least core is no sum to correct"
            )
        if corrected and holdout:
            raise InputError(
                "corrected=True checks the predictor on every random draw; leave out holdout="
            )
        self._knowledge = Knowledge(
            owners,
            self.semivalue,
            self._weights(),
            first=self.first,
            drawn=choose == "drawn",
            holdout=self.holdout,
            seed=self.seed,
            identity=Identity(owners.n, owners.contents if by_content else None),
        )
        by_default = estimator is None and samples is None and self.estimator is not None
        self._inference = Inference(
            self._knowledge,
            owners,
            self.semivalue.name,
            self.least_core,
            corrected,
            not self.estimator,
            self._draw_more if by_default else None,
        )
        self._functionals = _focused(self._knowledge.weights.W, owners.names, focus)
        self.empty = empty

    def _weights(self) -> Weights:
        n = self.owners.n
        if self.estimator is None:
            return estimators.exact(self.semivalue, n)
        rng = np.random.default_rng([self.seed, 6])
        return check_weights(self.estimator(self.semivalue, n, self.samples, rng), n)

    def _draw_more(self) -> Weights:
        rng = np.random.default_rng([self.seed, 9])
        return estimators.regression(self.semivalue, self.owners.n, SAMPLES_OF_MEANS, rng)

    @property
    def empty(self) -> float:
        """Utility of no data."""
        return self._knowledge.empty

    @empty.setter
    def empty(self, utility: float) -> None:
        self._knowledge.empty = finite(utility, "the utility of the empty coalition")

    @property
    def evaluations(self) -> dict[Names, float]:
        """Every recorded coalition and its utility, the mean of its trainings."""
        utilities, by_name = (
            self._knowledge.observations.utilities,
            self._knowledge.observations.by_name,
        )
        return {names: float(utilities[i]) for i in sorted(by_name) for names in sorted(by_name[i])}

    @property
    def trainings(self) -> dict[Names, tuple[float, ...]]:
        """Every recorded coalition and the utilities of its trainings."""
        by_name = self._knowledge.observations.by_name
        return {names: by_name[i][names] for i in sorted(by_name) for names in sorted(by_name[i])}

    @property
    def failures(self) -> dict[Names, str]:
        """Every coalition that could not be evaluated, and why."""
        return self._knowledge.failures

    @property
    def evaluated(self) -> int:
        """Coalitions paid for: recorded or failed; those that are one by contents count once."""
        return self._knowledge.evaluated

    def key(self, members: Iterable[str]) -> bytes:
        """The same for all coalitions that one evaluation serves, and for no others."""
        names = self.owners.names
        row = from_names(members, names) if members else np.zeros(len(names), dtype=bool)
        return self._knowledge.identity.keys(row[None])[0]

    @property
    def merges(self) -> bool:
        """Whether some coalitions that enter the values hold the same rows and are one."""
        return self._knowledge.merged.changed

    @property
    def left(self) -> int:
        """Coalitions that have a weight and may still be evaluated."""
        return len(self._knowledge.open)

    @property
    def first_left(self) -> int:
        """How many of them are to be evaluated before any is predicted."""
        return int(np.isin(self._knowledge.first, self._knowledge.open).sum())

    @property
    def designed(self) -> bool:
        """Whether the first design has been tried, and there is something to predict from."""
        return not self.first_left and bool(self._knowledge.shown.size)

    @property
    def first_evaluated(self) -> list[Names]:
        """Evaluated coalitions of the first design, of each size one in turn."""
        return [self._knowledge.observations.names(i) for i in self._knowledge.by_size]

    def training_noise(self) -> TrainingNoise:
        """What trainings that were repeated say about chance in utilities."""
        return self._inference.training_noise()

    @property
    def counting(self) -> int:
        """Coalitions that enter the values."""
        return self._knowledge.counting

    def record(self, members: Iterable[str], utility: float | Sequence[float]) -> None:
        """Take in the utility of a coalition, given by owner names in any order.

        Repeated trainings of a coalition are recorded as a sequence of utilities: their mean
        counts, and their spread says how noisy trainings are.

        Raises:
            InputError: an unknown owner, the empty coalition, a number that is not finite, or
                utilities that contradict those recorded before.
        """
        self._knowledge.observations.record(members, utility)

    def record_failure(self, members: Iterable[str], reason: str) -> None:
        """Take in that a coalition cannot be evaluated: it is predicted, and not asked for again.

        Raises:
            InputError: an unknown owner, the empty coalition, or one that has a utility.
        """
        self._knowledge.observations.record_failure(members, reason)

    def suggest(self, k: int = 1, *, pending: Iterable[Iterable[str]] = ()) -> list[Names]:
        """Up to k coalitions whose utilities to find next; none when nothing is left to gain.

        First the heaviest coalitions of the semivalue and those held out (fewer than k where they
        end), then those that most reduce the variance of the values. Asking again without
        recording gives the same answer.

        Args:
            k: how many.
            pending: coalitions being evaluated now, somewhere: they are not suggested again, and
                what they will tell is taken into account.
        """
        k = whole(k, "the number of coalitions to suggest", least=1)
        observations = self._knowledge.observations
        under_way = observations.find(pending)
        still_open = np.setdiff1d(self._knowledge.open, under_way)
        picks = still_open
        if k < len(still_open):
            first = self._knowledge.first
            picks = first[np.isin(first, still_open)][:k]
        if not picks.size and still_open.size:
            with _one_blas_thread():
                picks = self._next(k, still_open, np.intersect1d(under_way, self._knowledge.open))
        return [observations.names(i) for i in picks]

    def forecast(self, k: int) -> pd.DataFrame:
        """How wide the intervals are expected to be after up to k more evaluations.

        What further utilities will be does not matter for that, only where they are. Each row is
        a number of evaluations, the first the present one; each owner's column half the width of
        its 95 % interval, "widest" the largest of them.
        """
        k = whole(k, "the number of further evaluations", least=1)
        if self.least_core:
            raise InputError("there is no forecast for the least core, only for semivalues")
        now = self.values()
        covariances = [now.covariance]
        if self._knowledge.open.size:
            with _one_blas_thread():
                expected = self._inference.expected_covariances(self._following(k), now.noise)
            covariances += [bounded_sum(covariance, now.sampling) for covariance in expected]
        widths = np.array([half_widths(covariance) for covariance in covariances])
        frame = pd.DataFrame(widths, columns=list(self.owners.names))
        frame.insert(0, "widest", widths.max(axis=1))
        frame.index = pd.RangeIndex(self.evaluated, self.evaluated + len(frame), name="evaluated")
        return frame

    def predict(self, coalitions: Iterable[Iterable[str]]) -> pd.DataFrame:
        """What is known of the utility of any coalitions, without evaluating them.

        One row for each: `members`, `utility`, `std`, `low` and `high`, the bounds between which
        the utility of a training lies with 95 %, and whether it was `evaluated`: its utility is
        then the observed one.
        """
        self._check_informed()
        owners = self.owners.names
        rows = np.array([from_names(members, owners) for members in coalitions], dtype=bool)
        with _one_blas_thread():
            mean, std = evidence.predictions(self._knowledge, rows.reshape(-1, self.owners.n))
        members = [to_names(row, owners) for row in rows]
        known = self._knowledge.observations.utilities_at(rows.reshape(-1, self.owners.n))
        evaluated = ~np.isnan(known)
        mean[evaluated], std[evaluated] = known[evaluated], 0.0
        columns = {"members": members, "utility": mean, "std": std}
        bounds = {"low": mean - Z95 * std, "high": mean + Z95 * std, "evaluated": evaluated}
        return pd.DataFrame(columns | bounds)

    def validation(self) -> Validation | None:
        """The predictor measured on the coalitions held out; None until all are evaluated."""
        with _one_blas_thread():
            return self._knowledge.validation()

    def values(self) -> Valuation:
        """What the utilities recorded so far say about every owner's value."""
        self._check_informed()
        with _one_blas_thread():
            return self._inference.valuation()

    def _check_informed(self) -> None:
        if not self._knowledge.shown.size:
            raise InputError("no utility to learn from has been recorded; ", Remedy.EVALUATE)

    def _following(self, k: int) -> Ints:
        """The next k coalitions, whatever the first of them will tell."""
        pool = self._knowledge
        picks = pool.first[np.isin(pool.first, pool.open)][:k]
        if len(picks) == min(k, len(pool.open)):
            return picks
        rest = np.setdiff1d(pool.open, picks)
        return np.concatenate([picks, self._next(k - len(picks), rest, picks)])

    def _next(self, k: int, still_open: Ints, pending: Ints) -> Ints:
        """The next k coalitions after the first design."""
        pool = self._knowledge
        weight = np.linalg.norm(pool.weights.W[:, still_open], axis=0)
        heaviest = still_open[descending(weight)]
        if self.corrected or (pool.shown.size and has_failed(pool.validation())):
            return pool.draws.following(heaviest)[:k]
        if self.choose == "drawn":
            return still_open[:k]
        if not pool.shown.size:  # all that was to come first is pending, or failed
            return heaviest[:k]
        among = np.searchsorted(pool.unknown, self._candidates(still_open))
        under_way = np.searchsorted(pool.unknown, pending)
        picks = next_batch.active_batch(pool.posterior(self._functionals), among, k, under_way)
        return pool.unknown[picks]

    def _candidates(self, still_open: Ints) -> Ints:
        """Open coalitions among which to choose, the heavier the likelier."""
        weight = np.linalg.norm(self._functionals[:, still_open], axis=0)
        if np.count_nonzero(weight) <= MAX_CANDIDATES:
            return np.asarray(still_open[weight > 0])
        rng = self._knowledge.rng(3, len(self._knowledge.observations.trainings))
        chosen = rng.choice(len(weight), MAX_CANDIDATES, replace=False, p=weight / weight.sum())
        return still_open[np.sort(chosen)]


def check_owners(owners: Owners) -> Owners:
    """The owners, if they are owners."""
    if not isinstance(owners, Owners):
        raise InputError(
            f"expected dupre.Owners, got {type(owners).__name__}; "
            "build them with Owners.from_arrays, from_frame or from_mapping"
        )
    return owners


def _one_blas_thread() -> threadpool_limits:
    """Many products of small matrices: threads would only get into each other's way."""
    return threadpool_limits(limits=1, user_api="blas")


def _checked_semivalue(semivalue: Semivalue) -> Semivalue:
    if not isinstance(semivalue, Semivalue):
        raise InputError(
            f"unknown semivalue {semivalue!r}; expected dupre.shapley, dupre.banzhaf, "
            "dupre.leave_one_out, dupre.beta_shapley(alpha, beta), a dupre.Semivalue or "
            "dupre.LeastCore()"
        )
    return semivalue


def _checked_estimator(
    estimator: Estimator | None, samples: int | None, n: int
) -> tuple[Estimator | None, int]:
    """The estimator, None if all coalitions are to enter, and how many it draws."""
    everything = estimator is None and samples is None and n <= ENUMERATED_UP_TO
    if cast("object", estimator) is estimators.exact:
        if samples is not None or n > ENUMERATED_UP_TO:
            raise InputError(
                f"estimator=exact predicts all 2^{n} - 1 = {2**n - 1:,} coalitions, for at most "
                f"{ENUMERATED_UP_TO} owners and without samples=; leave it out to draw some"
            )
        everything = True
    if everything:
        return None, 2**n - 1
    if estimator is not None and not callable(estimator):
        raise InputError(
            f"estimator must be a function of dupre.estimators such as permutation, got "
            f"{estimator!r}"
        )
    count = max(SAMPLES, 40 * n) if samples is None else whole(samples, "samples", least=1)
    return estimator or estimators.regression, count


def _checked_choice(
    choose: Choose, estimator: Estimator | None, corrected: bool, focus: Focus
) -> Choose:
    if choose not in ("active", "drawn"):
        raise InputError(f"choose must be 'active' or 'drawn', got {choose!r}")
    if choose == "drawn" and (estimator is None or corrected):
        raise InputError(
            "choose='drawn' evaluates the coalitions of an estimator in its order: give "
            "estimator= or samples=, and not corrected=True, which draws its own"
        )
    if focus is not None and (choose == "drawn" or corrected):
        raise InputError(
            "focus= is for coalitions chosen by their use; choose='drawn' and corrected=True draw "
            "them for all owners alike"
        )
    return choose


def _focused(W: Floats, names: Names, focus: Focus) -> Floats:
    """The functionals whose variance active batches reduce, (f, b)."""
    if focus is None:
        return W
    wanted = tuple(map(str, focus)) if isinstance(focus, (tuple, list)) else (str(focus),)
    unknown = [name for name in wanted if name not in names]
    if unknown or not 1 <= len(set(wanted)) == len(wanted) <= 2:
        raise InputError(
            f"focus must be one owner or a pair of different owners, got {focus!r}; "
            f"the owners are {', '.join(names)}"
        )
    rows = W[[names.index(name) for name in wanted]]
    return rows if len(rows) == 1 else rows[:1] - rows[1:]
