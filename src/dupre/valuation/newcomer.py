"""The values with an owner who has not joined, beside those without it.

Utilities of coalitions without the newcomer stay what they are; those with it are predicted, as any
coalition is that was not evaluated.

Values of the present owners before and after are sums over the same uncertain utilities. So their
difference is estimated as one sum, with weights W after less W before: much of the doubt cancels.

Notation: n present owners, the newcomer is one more; f sums of utilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from dupre._types import NOTHING, Floats, Ints
from dupre.checks import whole
from dupre.errors import InputError
from dupre.game.weights import Weights
from dupre.predictor.student import Spread
from dupre.result.quotes import Quote
from dupre.valuation.explain import estimate
from dupre.valuation.infer import infer
from dupre.valuation.question import Strategy
from dupre.valuation.sameness import learn_alikeness
from dupre.valuation.state import State
from dupre.valuation.strategies import Active
from dupre.valuation.validation_rows import deviations


@dataclass(frozen=True)
class Newcomer(Strategy):
    """Evaluate up to `spend` coalitions with the newcomer, one after the other.

    Those that were evaluated before count, so that the same quote asked again costs nothing.
    """

    batch: int | None = 1  # each is chosen by what the one before has shown
    first: int | None = 0  # the present owners' trainings take the place of a first design
    newcomer: str = ""  # type: ignore[misc]  # a field here, fixed elsewhere
    spend: int = 0
    # Half, as long as the values of the present owners do not tell: see `alikeness`.
    alike: float = 0.5  # type: ignore[misc]

    ends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self.spend, "spend, the number of trainings for a quote", least=0)

    def choose(self, state: State, k: int, rng: np.random.Generator) -> Ints:
        """As `Active` does for the newcomer alone."""
        left = min(k, self.spend - len(_tried(state, self.newcomer)))
        return Active(focus=self.newcomer).choose(state, left, rng) if left > 0 else NOTHING


def _tried(state: State, name: str) -> Ints:
    """Positions of the coalitions with an owner that were evaluated, or failed."""
    inside = state.members[:, state.question.owners.names.index(name)]
    return np.flatnonzero((state.recorded | state.failed) & inside)


def alikeness(state: State) -> float:
    """How far the values of the present owners follow their data; 1/2 without their rows."""
    question = state.question
    if question.owners.points is None:
        return Newcomer.alike
    return learn_alikeness(infer(state).mean, question.relations[0], question.owners.rows)


def quote_of(before: State, after: State, name: str) -> Quote:
    """What the newcomer would be worth, and what it would change.

    Args:
        before: what is known of the present owners.
        after: the same with the newcomer; it may know coalitions with it.
        name: of the newcomer.

    Raises:
        InputError: a least core is asked for: its payments are no sums of utilities.
    """
    if before.question.least_core is not None:
        raise InputError(
            "a quote needs values that are sums of utilities, such as Shapley; the least core has "
            "none: value all owners with the newcomer instead"
        )
    now, then = infer(before), infer(after)
    at = [then.owners.index(owner) for owner in now.owners]
    mean, spread = _difference(before, after, at)
    drawn = [v.uncertainty.std("sampling") for v in (now, then)]
    deal = then.uncertainty.std("deal")[at]
    # Both samples of coalitions err, with what is predicted of them: DUPRE Remark 1.
    student = spread.student + drawn[0] + drawn[1][at]
    half = Spread(student, np.hypot(spread.normal, deal), spread.freedom).half_width()
    changes = {
        "before": now.mean,
        "after": then.mean[at],
        "change": mean,
        "low": mean - half,
        "high": mean + half,
    }
    return Quote(
        name=name,
        rows=int(then.rows[then.owners.index(name)]),
        before=now,
        after=then,
        changes=pd.DataFrame(changes, pd.Index(now.owners, name="owner")),
        spent=tuple(after.names(i) for i in _tried(after, name)),
    )


def _difference(before: State, after: State, at: list[int]) -> tuple[Floats, Spread]:
    """The present owners' values after less those before, (n,); `at` is their place after."""
    old, new = before.question.weights, after.question.weights
    members = np.zeros((len(old.members), new.members.shape[1]), dtype=bool)
    members[:, at] = old.members
    every = np.append(new.members, members, axis=0)
    keys = after.question.sameness.keys(every)
    first: dict[bytes, int] = {}
    column = np.array([first.setdefault(key, len(first)) for key in keys], dtype=np.int64)
    W = np.zeros((len(at), len(first)))
    b = len(new.members)
    np.add.at(W.T, column[:b], new.W[at].T)
    np.add.at(W.T, column[b:], -old.W.T)
    chosen = np.unique(column, return_index=True)[1]
    weights = Weights(every[chosen], W, new.empty[at] - old.empty)
    mean, spread, _ = estimate(after, weights, deviations(after))
    return mean, spread
