"""What to evaluate next: strategies as records that check themselves.

    dupre.value(owners, utility, budget=60, strategy=dupre.strategies.Active(focus=("A", "B")))

A strategy begins with a first design: the coalitions that weigh most, unless it draws them. Then
its `choose` is asked for batch after batch. One of your own is a frozen dataclass that inherits
from `Strategy` and has this method (docs/extend/strategy.md).

Notation: b coalitions with weights W (n, b), f functionals; positions as in `state`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from dupre._types import NOTHING, Floats, Ints, Names
from dupre.checks import whole
from dupre.errors import DupreError, InputError
from dupre.game.coalitions import unknown_owner
from dupre.game.ties import descending_order, first_largest
from dupre.game.weights import column_norms
from dupre.predictor.gp import EXACT_UP_TO, Posterior
from dupre.valuation.first_design import FEW_OWNERS
from dupre.valuation.question import Question, Strategy
from dupre.valuation.state import LEAST_CORRECTION, State

__all__ = ["Active", "Corrected", "Drawn", "State", "Strategy", "Uniform"]

MAX_CANDIDATES = 2_048
"""Coalitions among which an active batch is chosen; a weighted sample above that."""

Focus = str | tuple[str, str] | None


@dataclass(frozen=True)
class Active(Strategy):
    """Evaluate the coalitions that reduce the variance of the values most.

    Attributes:
        batch: as for all strategies, and so are `first` and `check`.
        focus: one owner, or a pair of owners, to spend the budget on; all owners by default.
        uniform: whether the first design is drawn uniformly, as in the paper's methods with the
            suffix -a. In `dupre.value` it is half of the budget by default, and the other half is
            one batch: DUPRE Alg. 2.
        per: "training", or "second" for the coalitions that reduce it most for the time they are
            expected to take. That is fitted to the seconds of the first design, once, which is of
            n + 1 coalitions then, for up to 12 owners: all of them together and each alone. Those
            of all but one take nearly as long as all, and come where they are worth it.
    """

    focus: Focus = None
    check: int = 0  # type: ignore[misc]  # a field here, fixed elsewhere
    uniform: bool = False  # type: ignore[misc]
    per: Literal["training", "second"] = "training"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per not in ("training", "second"):
            raise InputError(f'per must be "training" or "second", got {self.per!r}')
        focus = self.focus
        if focus is None or isinstance(focus, str):
            return
        if not isinstance(focus, (tuple, list)) or not 1 <= len(set(focus)) == len(focus) <= 2:
            raise InputError(
                f"focus must be one owner or a pair of different owners, got {focus!r}"
            )
        object.__setattr__(self, "focus", tuple(map(str, focus)))

    @property
    def _focus(self) -> tuple[str, ...]:
        """The owners that the budget is spent on; none for all."""
        focus = self.focus
        return () if focus is None else (focus,) if isinstance(focus, str) else focus

    def validate(self, question: Question) -> None:
        """Owners in focus must be there."""
        names = question.owners.names
        if unknown := [name for name in self._focus if name not in names]:
            raise unknown_owner(unknown[0], names, "as focus of the strategy")

    def design(self, n: int) -> int:
        """Per second as few as show what trainings cost: they cover the values as well."""
        # Of more owners groups of sizes between come first, which are not as dear.
        return n + 1 if self.per == "second" and n <= FEW_OWNERS else super().design(n)

    def with_budget(self, n: int, limit: int, *, stated: bool) -> Strategy:
        """A budget that was stated is divided into halves if the first is drawn uniformly."""
        if not (self.uniform and stated):
            return super().with_budget(n, limit, stated=stated)
        room = limit - self.check
        first = min((room + 1) // 2 if self.first is None else self.first, room)
        return replace(self, first=first, batch=self.batch or max(1, room - first))

    def choose(self, state: State, k: int, rng: np.random.Generator) -> Ints:
        """By DUPRE Alg. 2, from those of most weight."""
        W, unknown = state.question.weights.W, state.unknown
        if self._focus:
            rows = W[[state.question.owners.names.index(name) for name in self._focus]]
            W = rows if len(rows) == 1 else rows[:1] - rows[1:]
        beliefs = state.beliefs
        if len(unknown) > EXACT_UP_TO:
            some, W = _sample(W, unknown, state.pending, rng)
            posterior = beliefs.posterior_of_some(some, W)
            among = np.flatnonzero(np.isin(some, state.open))
        else:
            some = unknown
            # Without a focus the posterior is that of the values, computed once for both.
            posterior = beliefs.posterior_of(W) if self._focus else beliefs.posterior
            among = np.searchsorted(unknown, _candidates(W, state.open, rng))
        under_way = np.searchsorted(some, state.pending)
        seconds = _seconds(state, some) if self.per == "second" else None
        return some[active_batch(posterior, among, k, under_way, seconds)]


@dataclass(frozen=True)
class _InOrder(Strategy):
    """Strategies whose order of evaluation is known from the start."""

    check: int = 0  # type: ignore[misc]
    in_order: ClassVar[bool] = True

    def choose(self, state: State, k: int, rng: np.random.Generator) -> Ints:  # noqa: ARG002
        """The next in this order."""
        order = state.question.order
        return order[np.isin(order, state.open)][:k]


@dataclass(frozen=True)
class Drawn(_InOrder):
    """Evaluate the coalitions of the estimator in the order in which it drew them.

    This is the order of DUPRE App. "Complementing": coalitions that are not evaluated are
    predicted. It needs `estimator=`.

    Attributes:
        batch: coalitions between two looks at the values; as many as there are owners by default.
        first: coalitions before the first look; 2n + 1 by default.
        check: coalitions that the predictor is never shown, see `Strategy`.
    """

    def validate(self, question: Question) -> None:
        """An estimator must draw them."""
        if question.estimator is None:
            raise InputError(
                "Drawn() evaluates the coalitions of an estimator in its order: give estimator="
            )


@dataclass(frozen=True)
class Uniform(_InOrder):
    """Evaluate coalitions drawn uniformly from those that enter the values, none twice.

    This is how the paper chooses unless Alg. 2 does; it misses the coalitions that weigh most. The
    attributes are those of `Drawn`.
    """

    uniform: ClassVar[bool] = True


@dataclass(frozen=True)
class Corrected(Strategy):
    """Add to the predictor's values an unbiased estimate of their error.

    After the first design coalitions are drawn at random and predicted before they are evaluated.
    The values are right in the end even where the predictor never is, but their intervals are
    wider until then.

    Attributes:
        batch: coalitions between two looks at the values; as many as there are owners by default.
        first: coalitions of the first design; 2n + 1 by default.
    """

    corrected: ClassVar[bool] = True

    def validate(self, question: Question) -> None:
        """Only sums can be corrected."""
        if question.least_core:
            raise InputError("Corrected() is for semivalues; the least core is no sum to correct")

    def choose(self, state: State, k: int, rng: np.random.Generator) -> Ints:  # noqa: ARG002
        """The next draws: the same ones that correct the values."""
        return _next_draws(state, k)


def check_strategy(strategy: Strategy | None) -> Strategy:
    """The strategy, `Active()` by default; InputError if it is none."""
    strategy = Active() if strategy is None else strategy
    if not isinstance(strategy, Strategy):
        raise InputError(
            "strategy must be Active(), Drawn(), Uniform() or Corrected() of dupre.strategies, or "
            f"inherit from dupre.strategies.Strategy, got {strategy!r}"
        )
    return strategy


def suggest(state: State, k: int) -> Ints:
    """Up to k coalitions to evaluate next: the first design first, then what is chosen.

    Fewer than k where the first design ends; none when nothing is left to gain.
    """
    k, still_open = whole(k, "the number of coalitions to suggest", least=1), state.open
    if k >= len(still_open) and not state.question.strategy.ends:
        return still_open  # nothing to choose, so nothing to fit
    first = state.first_left[:k]
    return first if first.size else _choose(state, k)


def suggest_ahead(state: State, k: int) -> Ints:
    """The next k coalitions if no utility comes in between."""
    k = whole(k, "the number of further evaluations", least=1)
    if state.question.least_core:
        raise InputError("there is no forecast for the least core, only for semivalues")
    picks = state.first_left[:k]
    if len(picks) == min(k, len(state.open)):
        return picks
    return np.append(picks, _choose(state.with_pending(picks), k - len(picks)))


def _choose(state: State, k: int) -> Ints:
    """The next k coalitions after the first design."""
    known, strategy = bool(state.shown.size), state.question.strategy
    if known and state.beliefs.check_failed:
        # By chance, whatever the strategy: the values then rely on random draws alone.
        return _next_draws(state, k)
    if not known and strategy.newcomer:
        state.require_utility()  # of the present owners: a quote follows from what is known of them
    if not known and not strategy.in_order and not strategy.corrected:
        return _heaviest_first(state)[:k]  # all that was to come first is pending, or failed
    # By the number of evaluations: a run that is resumed chooses as it would have.
    rng = state.question.rng(3, len(state.observed))
    try:
        picks = np.asarray(strategy.choose(state, k, rng), dtype=np.int64)
    except DupreError:
        raise
    except Exception as cause:  # the user's code may raise anything
        raise InputError(
            f"the strategy {strategy!r} failed: {type(cause).__name__}: {cause}; correct its choose"
        ) from cause
    fine = picks.ndim == 1 and len(np.unique(picks)) == len(picks) <= k
    if not fine or not np.isin(picks, state.open).all():
        raise InputError(
            f"choose of {strategy!r} must return up to {k} different numbers of state.open, got "
            f"{picks!r:.80}"
        )
    return picks


def _next_draws(state: State, k: int) -> Ints:
    """The next coalitions of the random draws, then those of most weight."""
    return state.question.draws.sort_by_draw(_heaviest_first(state))[:k]


def _heaviest_first(state: State) -> Ints:
    """Open coalitions, those of most weight first."""
    still_open = state.open
    return still_open[descending_order(column_norms(state.question.weights.W)[still_open])]


def first_evaluated(state: State) -> list[Names]:
    """Evaluated coalitions of the first design: all owners, then one of each size in turn."""
    certain, W = state.beliefs.certain, state.question.weights.W
    heavy = certain[descending_order(column_norms(W[:, certain]))]
    size = state.sizes[heavy]
    turn = np.array([np.sum(size[:i] == size[i]) for i in range(len(size))])
    order = heavy[np.lexsort((size % len(W), turn))]  # of all owners first
    return [state.names(i) for i in order]


def _seconds(state: State, positions: Ints) -> Floats:
    """How long trainings of coalitions are expected to take, (m,).

    Raises:
        InputError: no training of the first design has told its seconds.
    """
    if state.cost is None:
        raise InputError(
            "it is not known how long trainings take: no seconds of a training of the first design "
            'are recorded; state them by Valuer.record_seconds, or take per="training"'
        )
    return state.cost.seconds(state.members[positions] @ state.question.owners.rows)


def _candidates(W: Floats, still_open: Ints, rng: np.random.Generator) -> Ints:
    """Open coalitions among which to choose: those of more weight are more likely."""
    weight = column_norms(W)[still_open]
    if np.count_nonzero(weight) <= MAX_CANDIDATES:
        return np.asarray(still_open[weight > 0])
    chosen = rng.choice(len(weight), MAX_CANDIDATES, replace=False, p=weight / weight.sum())
    return still_open[np.sort(chosen)]


def _sample(
    W: Floats, unknown: Ints, pending: Ints, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """MAX_CANDIDATES unknown coalitions, drawn by weight, that stand for all: who, and weights.

    Each one's weights are divided by the chance that it is drawn, so that sums over the sample are
    those over all coalitions without bias (Horvitz & Thompson 1952). What is chosen is to reduce
    the variance of all values, and means over all coalitions are not needed for that. So a round
    costs the same for any number of coalitions. Those pending are taken besides, without weight.

    Args:
        W: the functionals, (f, b).
        unknown: coalitions that are predicted.
        pending: some of them that are being evaluated.
        rng: of the draw.
    """
    weight = column_norms(W)[unknown]
    chance = inclusion_chances(weight, MAX_CANDIDATES)
    # Systematically, at equal steps: of coalitions in their order each size has its part.
    drawn = np.flatnonzero(np.diff(np.floor(np.cumsum(chance) + rng.random()), prepend=0.0))
    share = np.zeros(len(unknown))
    share[drawn] = 1 / chance[drawn]
    some = np.union1d(drawn, np.searchsorted(unknown, pending))
    return unknown[some], W[:, unknown[some]] * share[some]


def inclusion_chances(weight: Floats, count: int) -> Floats:
    """Chances proportional to weights, (m,), but at most 1, that add up to `count`.

    Those with a weight are certain if they are not more than that.
    """
    if np.count_nonzero(weight) <= count:
        return np.asarray(weight > 0, dtype=np.float64)
    heavy = np.sort(weight)[::-1]
    rest = np.cumsum(heavy[::-1])[::-1]  # from the smallest on: their sum is not a difference
    left = count - np.arange(count)
    # With the first k certain the others share what is left: the first k that leaves none above 1.
    k = int(np.argmax(heavy[:count] * left <= rest[:count]))
    return np.asarray(np.minimum(weight * (left[k] / rest[k]), 1.0))


def active_batch(
    posterior: Posterior,
    candidates: Ints,
    count: int,
    pending: Ints = NOTHING,
    seconds: Floats | None = None,
) -> Ints:
    """Up to `count` of the candidates that most reduce the summed variance of the functionals.

    Greedy (DUPRE Alg. 2) for all functionals at once. Evaluating g reduces the variance that is
    not noise by ||cov(z_g, functionals)||² / (var z_g + noise); after a pick the covariances lose a
    rank-one term. O(c (a + f)) per pick with c candidates, where Alg. 2 as printed pays O(c a²).

    Of candidates with equal gains (module `ties`) the first is picked.

    Args:
        posterior: of the coalitions not evaluated and of the functionals.
        candidates: indices into the predicted coalitions, (c,), in rising order.
        count: how many to pick.
        pending: indices of coalitions being evaluated: picked before all others, not returned.
        seconds: that each predicted coalition takes, (b,): what it reduces is divided by them.
    """
    if pending.size:
        candidates = np.concatenate([pending, np.setdiff1d(candidates, pending)])
    cross, variance = posterior.cross(candidates), posterior.variance_of(candidates)
    noise = posterior.gp.noise_of_next
    # Greedy by gain for its price, as for knapsacks; by 1 no digit changes.
    price = np.ones(len(candidates)) if seconds is None else seconds[candidates]
    gain = np.einsum("cf,cf->c", cross, cross) / ((variance + noise) * price)
    scale = float(gain.max(initial=0.0))  # rounding errors of later gains are relative to it
    count = min(count + len(pending), len(candidates))
    # Most picks are among the best of the start: their covariances in one matrix product.
    likely = np.argsort(-gain, kind="stable")[: 3 * count]
    rows = posterior.covariance(candidates[likely], candidates)
    covariances = dict(zip(likely.tolist(), rows, strict=True))
    picks: list[int] = []
    removed = np.empty((count, len(candidates)))  # square roots of the rank-one terms
    for step in range(count):
        g = step if step < len(pending) else first_largest(gain, scale)
        picks.append(g)
        if g not in covariances:
            covariances[g] = posterior.covariance(candidates[[g]], candidates)[0]
        root = np.sqrt(variance[g] + noise)
        removed[step] = (covariances[g] - removed[:step, g] @ removed[:step]) / root
        cross -= np.outer(removed[step], cross[g] / root)
        variance = np.maximum(variance - removed[step] ** 2, 0.0)
        gain = np.einsum("cf,cf->c", cross, cross) / ((variance + noise) * price)
        gain[picks] = -1.0
    return candidates[picks[len(pending) :]]


def check_correction(state: State, limit: int, first: int) -> None:
    """A correction needs random coalitions after the first ones, unless all are evaluated."""
    least, everything = LEAST_CORRECTION + first, len(state.open)
    if state.question.strategy.corrected and limit < min(least, everything):
        enough = f"{least}" if least < everything else f"{everything}, all coalitions"
        raise InputError(
            f"Corrected() needs {LEAST_CORRECTION} random coalitions after the first design: a "
            f"budget of at least {enough}, got {limit}"
        )
