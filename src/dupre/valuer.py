"""Ask / tell: which coalitions to evaluate next, and what their utilities say of the owners.

`Valuer` is for trainings done anywhere; `dupre.value` (module `run`) runs them itself.

Notation: b coalitions in all, W (n, b) their weights; what is known of each is in the `ledger`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from dupre import design, estimators, predictor
from dupre.checks import finite, whole
from dupre.diagnostics import Validation, diagnose, validate, widening
from dupre.errors import InputError
from dupre.gp import Posterior
from dupre.kernels import Features
from dupre.ledger import Ledger
from dupre.owners import Owners
from dupre.predictor import Predictor
from dupre.sampling import LEAST_DRAWS, Draws, Sampled, sampled_values
from dupre.semivalues import Semivalue, shapley
from dupre.sketch import SketchCache
from dupre.typing import Floats, Ints, Members
from dupre.values import Valuation, half_widths

MAX_OWNERS = 16
"""Owners up to which all coalitions are enumerated and predicted."""

MAX_CANDIDATES = 2_048
"""Coalitions among which an active batch is chosen; a weighted sample above that."""

P_CHOSEN_UP_TO = 255
"""Coalitions up to which the order p of the distance is chosen too."""

Focus = str | tuple[str, str] | None


class Valuer:
    """Values of data owners from utilities evaluated elsewhere.

    Suggestions and values depend on what has been recorded and on `seed`, on nothing else.

    Args:
        owners: at least 2, at most 16.
        semivalue: shapley, banzhaf, beta_shapley(a, b), leave_one_out or a Semivalue of your own.
        empty: utility of no data, u(empty). It enters every value and is never predicted.
        focus: whom active batches serve: None for all owners, a name for one owner, a pair of
            names for the question which of the two is worth more.
        first: coalitions suggested by their weight alone before active batches begin; 2n + 1 by
            default: under Shapley all owners, every single one, and all but every single one.
        holdout: coalitions drawn at random whose utilities the predictor is never shown, so that
            it can be checked on them; 0 for none, otherwise at least 4. They follow the first
            design and count in the values.
        seed: of directions, first design, held-out coalitions and starts of the fit.
    """

    def __init__(
        self,
        owners: Owners,
        *,
        semivalue: Semivalue = shapley,
        empty: float = 0.0,
        focus: Focus = None,
        first: int | None = None,
        holdout: int = 0,
        seed: int = 0,
    ):
        self.owners = checked_owners(owners)
        self.semivalue = _checked_semivalue(semivalue)
        self.empty = finite(empty, "the utility of the empty coalition")
        self.seed = whole(seed, "seed", least=0)
        self.first = 2 * owners.n + 1 if first is None else whole(first, "first", least=1)
        self.holdout = whole(holdout, "holdout", least=0)
        self._weights = estimators.exact(semivalue, owners.n)
        self._counts = self._weights.W.any(axis=0)
        self._functionals = _focused(self._weights.W, owners.names, focus)
        self._universe = Features(
            self._weights.members, owners.rows, SketchCache(owners, seed=seed)
        )
        self._ledger = Ledger(self._weights.members, owners.names)
        self._memory: tuple[bytes, Predictor] | None = None
        rows = design.first_design(semivalue, owners.n, self.first, self._rng(1))
        self._heaviest = self._ledger.positions(rows)
        rows = design.first_design(semivalue, owners.n, 2 * owners.n + 1, self._rng(1))
        self._most_important = self._ledger.positions(rows)
        self._draws = Draws(self._weights.W, self._heaviest, self.holdout, self._rng(4))

    @property
    def evaluations(self) -> dict[tuple[str, ...], float]:
        """Every recorded coalition and its utility, the mean of its trainings."""
        ledger = self._ledger
        return {ledger.names(i): float(ledger.utilities[i]) for i in sorted(ledger.trainings)}

    @property
    def trainings(self) -> dict[tuple[str, ...], tuple[float, ...]]:
        """Every recorded coalition and the utilities of its trainings."""
        ledger = self._ledger
        return {ledger.names(i): ledger.trainings[i] for i in sorted(ledger.trainings)}

    @property
    def failures(self) -> dict[tuple[str, ...], str]:
        """Every coalition that could not be evaluated, and why."""
        ledger = self._ledger
        return {ledger.names(i): ledger.failures[i] for i in sorted(ledger.failures)}

    @property
    def evaluated(self) -> int:
        """Coalitions paid for: recorded or failed."""
        return len(self._ledger.trainings) + len(self._ledger.failures)

    @property
    def left(self) -> int:
        """Coalitions that have a weight and may still be evaluated."""
        return len(self._open)

    @property
    def first_left(self) -> int:
        """How many of them are to be evaluated before any is predicted."""
        return int(np.isin(self._first_design(), self._open).sum())

    @property
    def designed(self) -> bool:
        """Whether the first design has been tried, and there is something to predict from."""
        return not self.first_left and bool(self._shown.any())

    def record(self, members: Iterable[str], utility: float | Sequence[float]) -> None:
        """Take in the utility of a coalition, given by owner names in any order.

        Repeated trainings of a coalition are recorded as a sequence of utilities: their mean
        counts, and their spread says how noisy trainings are.

        Raises:
            InputError: an unknown owner, the empty coalition, a number that is not finite, or
                utilities that contradict those recorded before.
        """
        self._ledger.record(members, utility)

    def record_failure(self, members: Iterable[str], reason: str) -> None:
        """Take in that a coalition cannot be evaluated: it is predicted, and not asked for again.

        Raises:
            InputError: an unknown owner, the empty coalition, or one that has a utility.
        """
        self._ledger.record_failure(members, reason)

    def suggest(
        self, k: int = 1, *, pending: Iterable[Iterable[str]] = ()
    ) -> list[tuple[str, ...]]:
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
        under_way = np.array([self._ledger.at(members)[0] for members in pending], dtype=np.int64)
        still_open = np.setdiff1d(self._open, under_way)
        picks = still_open
        if k < len(still_open):
            first = self._first_design()
            picks = first[np.isin(first, still_open)][:k]
        if not picks.size and still_open.size:
            with _one_blas_thread():
                picks = self._active(k, still_open, np.intersect1d(under_way, self._open))
        return [self._ledger.names(i) for i in picks]

    def forecast(self, k: int) -> pd.DataFrame:
        """How wide the intervals are expected to be after up to k more evaluations.

        What further utilities will be does not matter for that, only where they are. Each row is
        a number of evaluations, the first the present one; each owner's column half the width of
        its 95 % interval, "widest" the largest of them.
        """
        k = whole(k, "the number of further evaluations", least=1)
        now = self.values()
        covariances = [now.covariance]
        if self._open.size:
            with _one_blas_thread():
                covariances.extend(self._expected_covariances(k, now.noise))
        widths = np.array([half_widths(covariance) for covariance in covariances])
        frame = pd.DataFrame(widths, columns=list(self.owners.names))
        frame.insert(0, "widest", widths.max(axis=1))
        frame.index = pd.RangeIndex(self.evaluated, self.evaluated + len(frame), name="evaluated")
        return frame

    def validation(self) -> Validation | None:
        """The predictor measured on the coalitions held out; None until all are evaluated."""
        held = self._draws.held
        found = held[self._ledger.recorded[held]]
        if len(found) < LEAST_DRAWS or not np.all(
            self._ledger.recorded[held] | self._ledger.failed[held]
        ):
            return None
        measured = self._measured()
        with _one_blas_thread():
            return validate(
                self._learned(),
                self._universe[found],
                self._ledger.utilities[found],
                measured[found],
            )

    def values(self) -> Valuation:
        """What the utilities recorded so far say about every owner's value."""
        if not self._shown.any():
            raise InputError("no utility to learn from has been recorded; evaluate suggest()")
        with _one_blas_thread():
            return self._valuation()

    def _valuation(self) -> Valuation:
        W, recorded = self._weights.W, self._ledger.recorded
        of_nothing = self._weights.empty * self.empty
        noise = (W[:, recorded] * self._measured()[recorded]) @ W[:, recorded].T
        validation = self.validation()
        diagnostics = diagnose(self._learned()) if self._unknown.size else None
        sampled = None
        if diagnostics is None:
            mean, covariance = W[:, recorded] @ self._ledger.utilities[recorded], noise
        elif validation is not None and validation.failed:
            sampled = self._sampled()
            certain = np.isin(np.arange(len(recorded)), self._heaviest) & recorded
            noise = (W[:, certain] * self._measured()[certain]) @ W[:, certain].T
            mean, covariance = sampled.mean, sampled.covariance + noise
        else:
            posterior = self._posterior(W)
            mean = W[:, recorded] @ self._ledger.utilities[recorded] + posterior.W @ posterior.mean
            own = posterior.functional_covariance()
            covariance = noise + self._widened(own, posterior.W, diagnostics.widening)
        return Valuation(
            owners=self.owners.names,
            rows=self.owners.rows,
            semivalue=self.semivalue.name,
            mean=mean + of_nothing,
            covariance=covariance,
            noise=noise,
            grand=self._grand(sampled),
            grand_predicted=not self._ledger.recorded[-1],
            first_left=int((~self._ledger.recorded[self._most_important]).sum()),
            empty=self.empty,
            evaluated=self.evaluated,
            failures=self.failures,
            diagnostics=diagnostics,
            validation=validation,
            sampled=sampled is not None,
        )

    def _widened(self, covariance: Floats, W: Floats, wider: float) -> Floats:
        """Covariance of predicted values as it is reported: over-sureness and strays included."""
        return np.asarray(covariance * wider**2 + self._learned().stray_variance * W @ W.T)

    def _grand(self, sampled: Sampled | None) -> float:
        """Utility of all owners, predicted or guessed if it is not recorded."""
        if self._ledger.recorded[-1]:
            return float(self._ledger.utilities[-1])
        if sampled is not None:
            return float(sampled.guess[-1])
        alone = self._universe[-1:]
        return float(self._learned().gp.posterior(alone, np.zeros((0, 1))).mean[0])

    @property
    def _shown(self) -> Members:
        """Recorded coalitions that the predictor learns from."""
        return self._ledger.recorded & ~np.isin(np.arange(len(self._ledger)), self._draws.held)

    @property
    def _unknown(self) -> Ints:
        """Coalitions that have a weight and no utility: their utilities are predicted."""
        return np.flatnonzero(~self._ledger.recorded & self._counts)

    @property
    def _open(self) -> Ints:
        """Unknown coalitions that may still be evaluated."""
        return np.flatnonzero(~self._ledger.recorded & ~self._ledger.failed & self._counts)

    def _rng(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *purpose])

    def _first_design(self) -> Ints:
        """What is evaluated before anything is predicted: the heaviest, and those held out."""
        return np.concatenate([self._heaviest, self._draws.held])

    def _sampled(self) -> Sampled:
        """The values from random coalitions, without the predictor."""
        recorded, failed = self._ledger.recorded, self._ledger.failed
        return sampled_values(
            self._weights.W,
            self._ledger.utilities,
            self._weights.members.sum(axis=1),
            certain=self._heaviest[recorded[self._heaviest]],
            draws=self._draws.evaluated(recorded, failed),
            chances=self._draws.chances,
            failed=np.flatnonzero(failed),
        )

    def _measured(self) -> Floats:
        """Variance of each utility that repeated trainings have shown, (b,)."""
        return self._ledger.measured(self._draws.held)

    def _learned(self) -> Predictor:
        """The predictor of what is recorded now, learned once."""
        visible = np.flatnonzero(self._shown)
        utilities, measured = self._ledger.utilities[visible], self._measured()[visible]
        key = b"".join([visible.tobytes(), utilities.tobytes(), measured.tobytes()])
        if self._memory is None or self._memory[0] != key:
            learned = predictor.learn(
                self._universe[visible],
                utilities,
                measured=measured,
                spread=_spread(utilities, self.empty),
                choose_p=len(self._ledger) <= P_CHOSEN_UP_TO,
                rng=self._rng(2, len(visible)),
            )
            self._memory = key, learned
        return self._memory[1]

    def _posterior(self, W: Floats) -> Posterior:
        unknown = self._unknown
        return self._learned().gp.posterior(self._universe[unknown], W[:, unknown])

    def _active(self, k: int, still_open: Ints, pending: Ints) -> Ints:
        """The next k coalitions after the first design."""
        weight = np.linalg.norm(self._weights.W[:, still_open], axis=0)
        heaviest = still_open[np.argsort(-weight, kind="stable")]
        if not self._shown.any():  # all that was to come first is pending, or failed
            return heaviest[:k]
        validation = self.validation()
        if validation is not None and validation.failed:
            return self._draws.following(heaviest)[:k]
        unknown = self._unknown
        among = np.searchsorted(unknown, self._candidates(still_open))
        picks = design.active_batch(
            self._posterior(self._functionals), among, k, np.searchsorted(unknown, pending)
        )
        return unknown[picks]

    def _candidates(self, still_open: Ints) -> Ints:
        """Open coalitions among which to choose, the heavier the likelier."""
        weight = np.linalg.norm(self._functionals[:, still_open], axis=0)
        if np.count_nonzero(weight) <= MAX_CANDIDATES:
            return np.asarray(still_open[weight > 0])
        rng = self._rng(3, int(self._ledger.recorded.sum()))
        chosen = rng.choice(len(weight), MAX_CANDIDATES, replace=False, p=weight / weight.sum())
        return still_open[np.sort(chosen)]

    def _expected_covariances(self, k: int, noise: Floats) -> list[Floats]:
        """Covariance of the values after 1 .. k more evaluations."""
        validation = self.validation()
        if validation is not None and validation.failed:
            sampled = self._sampled()
            covariance, m = sampled.covariance, sampled.draws
            count = min(k, len(self._open))
            return [noise + covariance * m / (m + more) for more in range(1, count + 1)]
        first = self._first_design()
        picks = first[np.isin(first, self._open)][:k]
        if len(picks) < min(k, len(self._open)):
            rest = np.setdiff1d(self._open, picks)
            picks = np.concatenate([picks, self._active(k - len(picks), rest, picks)])
        posterior = self._posterior(self._weights.W)
        index = np.searchsorted(self._unknown, picks)
        expected = []
        for more, covariance in enumerate(design.forecast(posterior, index), start=1):
            W = np.delete(posterior.W, index[:more], axis=1)
            wider = widening(self._learned().gp, more)
            expected.append(noise + self._widened(covariance, W, wider))
        return expected


def checked_owners(owners: Owners) -> Owners:
    """The owners, if they are owners and not too many."""
    if not isinstance(owners, Owners):
        raise InputError(
            f"expected dupre.Owners, got {type(owners).__name__}; "
            "build them with Owners.from_arrays, from_frame or from_mapping"
        )
    if owners.n > MAX_OWNERS:
        raise InputError(
            f"{owners.n} owners have 2^{owners.n} - 1 coalitions; at most {MAX_OWNERS} owners "
            "can be valued by enumerating them: merge the smallest owners"
        )
    return owners


def _one_blas_thread() -> threadpool_limits:
    """Many products of small matrices: threads would only get into each other's way."""
    return threadpool_limits(limits=1, user_api="blas")


def _checked_semivalue(semivalue: Semivalue) -> Semivalue:
    if not isinstance(semivalue, Semivalue):
        raise InputError(
            f"unknown semivalue {semivalue!r}; expected dupre.shapley, dupre.banzhaf, "
            "dupre.leave_one_out, dupre.beta_shapley(alpha, beta) or a dupre.Semivalue"
        )
    return semivalue


def _spread(utilities: Floats, empty: float) -> float:
    """How far utilities may lie apart, for the case that those evaluated are all equal."""
    from_nothing = float(np.abs(utilities - empty).max())
    return from_nothing or 0.1 * float(np.abs(utilities).max()) or 1.0


def _focused(W: Floats, names: tuple[str, ...], focus: Focus) -> Floats:
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
