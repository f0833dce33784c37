"""The loop: which coalitions to evaluate next, what their utilities say, what owners are worth.

`Valuer` is ask / tell, for trainings done anywhere; `value` is the short loop over it.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dupre import design, estimators, predictor
from dupre.coalitions import from_names, keys, to_names
from dupre.diagnostics import diagnose
from dupre.errors import EvaluationError, InputError, Interrupted
from dupre.gp import GaussianProcess, Posterior
from dupre.kernels import Features
from dupre.owners import Owners
from dupre.predictor import Predictor
from dupre.semivalues import Semivalue, shapley
from dupre.sketch import SketchCache
from dupre.typing import Floats, Ints, Members
from dupre.utility import Utility
from dupre.values import Valuation

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
        seed: of directions, first design and starts of the fit.
    """

    def __init__(
        self,
        owners: Owners,
        *,
        semivalue: Semivalue = shapley,
        empty: float = 0.0,
        focus: Focus = None,
        first: int | None = None,
        seed: int = 0,
    ):
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
        self.owners = owners
        self.semivalue = _checked_semivalue(semivalue)
        self.empty = _finite(empty, "the utility of the empty coalition")
        self.seed = _whole(seed, "seed", least=0)
        self.first = 2 * owners.n + 1 if first is None else _whole(first, "first", least=1)
        self._weights = estimators.exact(semivalue, owners.n)
        self._counts = self._weights.W.any(axis=0)
        self._functionals = _focused(self._weights.W, owners.names, focus)
        self._universe = Features(
            self._weights.members, owners.rows, SketchCache(owners, seed=seed)
        )
        self._position = {key: i for i, key in enumerate(keys(self._weights.members))}
        self._utilities = np.full(len(self._weights.members), np.nan)
        self._warnings: Counter[str] = Counter()
        self._memory: tuple[bytes, Predictor] | None = None

    @property
    def evaluations(self) -> dict[tuple[str, ...], float]:
        """Every recorded coalition and its utility."""
        recorded = np.flatnonzero(self._recorded)
        return {self._names(i): float(self._utilities[i]) for i in recorded}

    def record(self, members: Iterable[str], utility: float) -> None:
        """Take in the utility of a coalition, given by owner names in any order.

        Raises:
            InputError: an unknown owner, the empty coalition, a number that is not finite, or a
                second, different utility for the same coalition.
        """
        row = from_names(members, self.owners.names)
        names = to_names(row, self.owners.names)
        number = _finite(utility, f"the utility of {_shown(names)}")
        position = self._position[keys(row[None])[0]]
        known = self._utilities[position]
        if not np.isnan(known) and known != number:
            raise InputError(
                f"{_shown(names)} already has the utility {float(known)!r}, got {number!r}; "
                "a coalition has one utility: record the mean of repeated trainings"
            )
        self._utilities[position] = number

    def suggest(self, k: int = 1) -> list[tuple[str, ...]]:
        """Up to k coalitions whose utilities to find next; none when nothing is left to gain.

        First the heaviest coalitions of the semivalue (fewer than k where that design ends), then
        those that most reduce the variance of the values. Asking again without recording gives
        the same answer.
        """
        k = _whole(k, "the number of coalitions to suggest", least=1)
        picks = self._open if k >= self._open.size else self._first_design(k)
        if not picks.size and self._open.size:
            with _one_blas_thread():
                posterior = self._posterior(self._learned().gp, self._functionals)
                picks = self._open[design.active_batch(posterior, self._candidates(), k)]
        return [self._names(i) for i in picks]

    def values(self) -> Valuation:
        """What the utilities recorded so far say about every owner's value."""
        recorded = np.flatnonzero(self._recorded)
        if not recorded.size:
            raise InputError("no utility has been recorded yet; evaluate what suggest() returns")
        with _one_blas_thread():
            return self._valuation(recorded)

    def _valuation(self, recorded: Ints) -> Valuation:
        W = self._weights.W
        mean = W[:, recorded] @ self._utilities[recorded] + self._weights.empty * self.empty
        covariance = np.zeros((self.owners.n, self.owners.n))
        grand, diagnostics = float(self._utilities[-1]), None
        if self._open.size:
            predictor = self._learned()
            diagnostics = diagnose(predictor)
            posterior = self._posterior(predictor.gp, W)
            mean = mean + posterior.W @ posterior.mean
            covariance = posterior.functional_covariance() * diagnostics.widening**2
            covariance += predictor.stray_variance * posterior.W @ posterior.W.T
        if not self._recorded[-1]:
            alone = self._universe[-1:]
            grand = float(self._learned().gp.posterior(alone, np.zeros((0, 1))).mean[0])
        return Valuation(
            owners=self.owners.names,
            rows=self.owners.rows,
            semivalue=self.semivalue.name,
            mean=mean,
            covariance=covariance,
            grand=grand,
            empty=self.empty,
            evaluated=len(recorded),
            diagnostics=diagnostics,
            warnings=dict(self._warnings.most_common()),
        )

    def run(self, utility: Utility, *, budget: int) -> Valuation:
        """Evaluate until `budget` coalitions are recorded or nothing is left to gain.

        Raises:
            EvaluationError: the utility raised or returned no finite number. Everything recorded
                stays: mend the cause and call run again.
            Interrupted: Ctrl-C; the same holds.
        """
        budget = _whole(budget, "budget", least=1)
        _check_utility(utility, self.owners)
        try:
            while (left := budget - int(self._recorded.sum())) > 0:
                everything = left >= self._open.size  # no choice left to make
                suggested = self.suggest(left if everything else min(self.owners.n, left))
                if not suggested:
                    break
                for members in suggested:
                    self._evaluate(utility, members)
            return self.values()
        except KeyboardInterrupt as stop:
            raise Interrupted(
                f"stopped; {self._kept()}: continue with valuer.run(utility, budget=...)", self
            ) from stop

    @property
    def _recorded(self) -> Members:
        return np.asarray(~np.isnan(self._utilities))

    @property
    def _open(self) -> Ints:
        """Coalitions that have a weight and no utility yet."""
        return np.flatnonzero(~self._recorded & self._counts)

    def _names(self, position: int | np.integer[Any]) -> tuple[str, ...]:
        return to_names(self._weights.members[position], self.owners.names)

    def _first_design(self, k: int) -> Ints:
        """The next coalitions of the first design that are not recorded yet."""
        rng = np.random.default_rng([self.seed, 1])
        rows = design.first_design(self.semivalue, self.owners.n, self.first, rng)
        positions = np.array([self._position[key] for key in keys(rows)])
        return np.asarray(positions[~self._recorded[positions]][:k])

    def _kept(self) -> str:
        done = int(self._recorded.sum())
        return f"the {done} evaluations recorded are kept in the exception's .valuer"

    def _learned(self) -> Predictor:
        """The predictor of what is recorded now, learned once."""
        recorded = np.flatnonzero(self._recorded)
        key = self._utilities.tobytes()
        if self._memory is None or self._memory[0] != key:
            utilities = self._utilities[recorded]
            learned = predictor.learn(
                self._universe[recorded],
                utilities,
                spread=_spread(utilities, self.empty),
                choose_p=len(self._utilities) <= P_CHOSEN_UP_TO,
                rng=np.random.default_rng([self.seed, 2, len(recorded)]),
            )
            self._memory = key, learned
        return self._memory[1]

    def _posterior(self, gp: GaussianProcess, W: Floats) -> Posterior:
        still_open = self._open
        return gp.posterior(self._universe[still_open], W[:, still_open])

    def _candidates(self) -> Ints:
        """Indices into the open coalitions among which to choose, the heavier the likelier."""
        weight = np.linalg.norm(self._functionals[:, self._open], axis=0)
        if np.count_nonzero(weight) <= MAX_CANDIDATES:
            return np.flatnonzero(weight)
        rng = np.random.default_rng([self.seed, 3, int(self._recorded.sum())])
        chosen = rng.choice(len(weight), MAX_CANDIDATES, replace=False, p=weight / weight.sum())
        return np.sort(chosen)

    def _evaluate(self, utility: Utility, members: tuple[str, ...]) -> None:
        """Record one evaluation of the user's utility, or raise with everything kept."""
        try:
            number, raised = _number_from(utility, members)
        except Exception as cause:
            raise EvaluationError(
                f"evaluating {_shown(members)} failed: {type(cause).__name__}: {cause}; "
                f"{self._kept()}: mend the cause, then valuer.run(utility, budget=...)",
                members,
                self,
            ) from cause
        self.record(members, number)
        self._warnings.update(raised)


def value(
    owners: Owners,
    utility: Utility,
    *,
    budget: int,
    semivalue: Semivalue = shapley,
    focus: Focus = None,
    seed: int = 0,
) -> Valuation:
    """Values of owners with their uncertainty after at most `budget` evaluations.

    Args:
        owners: whose data.
        utility: a ModelUtility or any callable(tuple of owner names) -> float. Names are strings,
            whatever the owners' labels were. `utility(())` is asked once for the utility of no
            data, which is not counted.
        budget: evaluations of non-empty coalitions; with 2^n - 1 or more the values are exact.
        semivalue: shapley, banzhaf, beta_shapley(a, b), leave_one_out or a Semivalue of your own.
        focus: one owner, or a pair of owners, to spend the budget on; all by default.
        seed: of everything random in dupre; the trainings have their own in ModelUtility.
    """
    budget = _whole(budget, "budget", least=1)
    # Everything is checked before the utility is called for the first time. With few evaluations,
    # half of them are better spent where the first half points.
    valuer = Valuer(owners, semivalue=semivalue, focus=focus, seed=seed)
    valuer.first = min(valuer.first, max(2, budget // 2))
    _check_utility(utility, owners)
    try:
        valuer.empty, _ = _number_from(utility, ())
    except Exception as cause:
        raise EvaluationError(
            f"utility(()) must be the utility of no data, but it failed: {type(cause).__name__}: "
            f"{cause}. Let it return a constant for (), or use Valuer(owners, empty=...).run",
            (),
        ) from cause
    return valuer.run(utility, budget=budget)


def _one_blas_thread() -> threadpool_limits:
    """Many products of small matrices: threads would only get into each other's way."""
    return threadpool_limits(limits=1, user_api="blas")


def _number_from(utility: Utility, members: tuple[str, ...]) -> tuple[float, set[str]]:
    """A finite utility, and the warnings raised on the way, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        number = _finite(utility(members), "the utility")
    return number, {_warning_text(warning) for warning in caught}


def _check_utility(utility: Utility, owners: Owners) -> None:
    if not callable(utility):
        raise InputError(f"utility must be callable(members) -> float, got {utility!r}")
    theirs = getattr(utility, "owners", owners)
    if theirs.names != owners.names or not np.array_equal(theirs.rows, owners.rows):
        raise InputError("the utility was built on other owners than those to be valued")


def _whole(number: object, what: str, *, least: int) -> int:
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not whole or number < least:  # type: ignore[operator]  # a number by now
        raise InputError(f"{what} must be a whole number of at least {least}, got {number!r}")
    return int(number)  # type: ignore[call-overload, no-any-return]


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


def _finite(number: object, what: str) -> float:
    try:
        result = math.nan if isinstance(number, str) else float(number)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result):
        raise InputError(f"{what} must be a finite number, got {number!r}")
    return result


def _shown(members: tuple[str, ...]) -> str:
    return "the coalition {" + ", ".join(members) + "}"


def _warning_text(warning: warnings.WarningMessage) -> str:
    first_line = (str(warning.message).strip().splitlines() or [""])[0]
    return f"{warning.category.__name__}: {textwrap.shorten(first_line, 100)}"
