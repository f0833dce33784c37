"""What to evaluate next: strategies as records that check themselves.

    dupre.value(owners, utility, budget=60, strategy=dupre.strategies.Active(focus=("A", "B")))

A strategy begins with a first design: the coalitions that weigh most, unless it draws them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dupre.checks import whole
from dupre.errors import InputError

__all__ = ["Active", "Corrected", "Drawn", "Strategy", "Uniform"]

Focus = str | tuple[str, str] | None


@dataclass(frozen=True)
class _Batches:
    """What all strategies have."""

    batch: int | None = None
    first: int | None = None

    def __post_init__(self) -> None:
        for name, count in (("batch", self.batch), ("first", self.first)):
            if count is not None:
                whole(count, name, least=1)


@dataclass(frozen=True)
class Active(_Batches):
    """Evaluate the coalitions that reduce the variance of the values most.

    Attributes:
        batch: coalitions chosen at once after the first design, as many as there are owners by
            default. More keep more workers busy, fewer learn more often.
        first: coalitions of the first design; 2n + 1 by default: under Shapley all owners, every
            single one, and all but every single one.
        focus: one owner, or a pair of owners, to spend the budget on; all owners by default.
        check: coalitions drawn at random that the predictor is never shown, so that it is checked
            on them after every batch; 0 for none, otherwise at least 4. They follow the first
            design and count in the values. If the check fails, the values do not rely on the
            predictor.
        uniform: whether the first design is drawn uniformly, as in the paper's methods with the
            suffix -a. In `dupre.value` it is half of the budget by default, and the other half is
            one batch: DUPRE Alg. 2.
    """

    focus: Focus = None
    check: int = 0
    uniform: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self.check, "check", least=0)
        focus = self.focus
        if focus is None or isinstance(focus, str):
            return
        if not isinstance(focus, (tuple, list)) or not 1 <= len(set(focus)) == len(focus) <= 2:
            raise InputError(
                f"focus must be one owner or a pair of different owners, got {focus!r}"
            )
        object.__setattr__(self, "focus", tuple(map(str, focus)))


@dataclass(frozen=True)
class _InOrder(_Batches):
    """Strategies whose order of evaluation is known from the start."""

    check: int = 0
    focus: ClassVar[None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self.check, "check", least=0)


@dataclass(frozen=True)
class Drawn(_InOrder):
    """Evaluate the coalitions of the estimator in the order in which it drew them.

    This is the order of DUPRE App. "Complementing": coalitions that are not evaluated are
    predicted. It needs `estimator=`.

    Attributes:
        batch: coalitions between two looks at the values; as many as there are owners by default.
        first: coalitions before the first look; 2n + 1 by default.
        check: coalitions that the predictor is never shown, see `Active`.
    """

    uniform: ClassVar[bool] = False


@dataclass(frozen=True)
class Uniform(_InOrder):
    """Evaluate coalitions drawn uniformly from those that enter the values, none twice.

    This is how the paper chooses unless Alg. 2 does; it misses the coalitions that weigh most. The
    attributes are those of `Drawn`.
    """

    uniform: ClassVar[bool] = True


@dataclass(frozen=True)
class Corrected(_Batches):
    """Add to the predictor's values an unbiased estimate of their error.

    After the first design coalitions are drawn at random and predicted before they are evaluated.
    The values are right in the end even where the predictor never is, but their intervals are
    wider until then.

    Attributes:
        batch: coalitions between two looks at the values; as many as there are owners by default.
        first: coalitions of the first design; 2n + 1 by default.
    """

    check: ClassVar[int] = 0
    focus: ClassVar[None] = None
    uniform: ClassVar[bool] = False


Strategy = Active | Drawn | Uniform | Corrected


def with_budget(strategy: Strategy, n: int, limit: int, *, stated: bool) -> Strategy:
    """The strategy with as large a first design, and batches, as a budget has room for.

    Args:
        strategy: what was asked for.
        n: owners.
        limit: coalitions to evaluate at most.
        stated: whether the user chose this limit; only then it is divided into two halves.
    """
    room = limit - strategy.check
    if not (isinstance(strategy, Active) and strategy.uniform and stated):
        return replace(strategy, first=min(strategy.first or 2 * n + 1, room))
    first = min(strategy.first or (room + 1) // 2, room)
    return replace(strategy, first=first, batch=strategy.batch or max(1, room - first))


def check_strategy(strategy: Strategy | None) -> Strategy:
    """The strategy, `Active()` by default; InputError if it is none of them."""
    strategy = Active() if strategy is None else strategy
    if not isinstance(strategy, Strategy):
        raise InputError(
            "strategy must be Active(), Drawn(), Uniform() or Corrected() of dupre.strategies, "
            f"got {strategy!r}"
        )
    return strategy
