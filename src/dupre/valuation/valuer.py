"""Ask / tell: which coalitions to evaluate next, and what their utilities say of the owners.

`Valuer` is for trainings done anywhere; `dupre.value` runs them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dupre._types import Names
from dupre.data.owners import Owners
from dupre.game.semivalues import shapley
from dupre.predictor.calibration import PredictorCheck
from dupre.predictor.kernel_inputs import Features
from dupre.result.quotes import Quote
from dupre.result.valuation import Valuation
from dupre.training.threads import one_blas_thread
from dupre.valuation.explain import (
    JointPosterior,
    contributions_by_size,
    forms,
    joining_of,
    joint_posterior,
    predict_utilities,
)
from dupre.valuation.infer import forecast_widths, infer
from dupre.valuation.newcomer import Newcomer, alikeness, quote_of
from dupre.valuation.question import (
    AnyEstimator,
    AnyKernel,
    AnySemivalue,
    ask,
    ask_again,
    check_empty,
    check_limits,
)
from dupre.valuation.state import State
from dupre.valuation.strategies import (
    Strategy,
    check_strategy,
    suggest,
    suggest_ahead,
)
from dupre.valuation.tell import Recorded


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

    @one_blas_thread
    def __init__(
        self,
        owners: Owners,
        *,
        empty: float,
        semivalue: AnySemivalue = shapley,
        estimator: AnyEstimator | None = None,
        strategy: Strategy | None = None,
        kernel: AnyKernel | None = None,
        by_content: bool = False,
        floor: float | None = None,
        bounds: tuple[float | None, float | None] | None = None,
        seed: int = 0,
    ):
        self.owners = owners
        self.floor, limits = check_limits(floor, bounds)
        self.question = ask(
            owners,
            semivalue=semivalue,
            estimator=estimator,
            strategy=check_strategy(strategy),
            kernel=kernel,
            by_content=by_content,
            bounds=limits,
            seed=seed,
        )
        self._recorded = Recorded(self.question, self.floor, empty)
        self._state: State | None = None

    def with_owners(self, owners: Owners, *, strategy: Strategy | None = None) -> Valuer:
        """The same question about other owners, with all that is known of those still there.

        What was evaluated counts if the rows of all its members are the same as here.

        Args:
            owners: some of the same, and others.
            strategy: what to suggest; by default as here.
        """
        asked = ask_again(self.question, owners, strategy)
        found = Valuer(owners, empty=self._recorded.empty, floor=self.floor, **asked)
        contents = [
            dict(zip(o.names, o.contents.tolist(), strict=True)) for o in (self.owners, owners)
        ]
        same = [name for name, mark in contents[0].items() if contents[1].get(name) == mark]
        found._recorded.take(self._recorded, same)
        return found

    def quote(self, name: str, X: Any, y: Any = None) -> Quote:
        """What the rows of an owner who has not joined would be worth, by prediction alone.

        `dupre.quote` also trains; here `valuer.with_owners(...)` can be told what was trained.

        Args:
            name: of the newcomer.
            X: its rows; may have the target column, if the owners came with one.
            y: their targets.
        """
        owners = self.owners.with_owner(name, X, y)
        newcomer = Newcomer(newcomer=name, alike=alikeness(self.state))
        return quote_of(self.state, self.with_owners(owners, strategy=newcomer).state, name)

    @property
    def empty(self) -> float:
        """Utility of no data."""
        return self.state.observed.empty

    @empty.setter
    def empty(self, utility: float) -> None:
        self._recorded.tell_empty(utility)
        self._state = None

    def check_empty(self) -> None:
        """Raise InputError if no data have a utility outside the bounds."""
        check_empty(self.question, self.empty)

    @property
    def state(self) -> State:
        """What is known now; it is made anew once something was recorded."""
        if self._state is None:
            self._state = State(self.question, self._recorded.observe())
        return self._state

    @property
    def evaluations(self) -> dict[Names, float]:
        """Every recorded coalition and its utility, the mean of its trainings."""
        seen, rows = self.state.observed, self.state.row.values()
        return {names: float(seen.utilities[i]) for i in rows for names in seen.names[i]}

    @property
    def trainings(self) -> dict[Names, tuple[float, ...]]:
        """Every recorded coalition and what its trainings scored, before a floor raised it."""
        scored = self._recorded.scored
        return {names: scored[names] for names in self.evaluations}

    @property
    def failures(self) -> dict[Names, str]:
        """Every coalition that could not be evaluated, and why."""
        return self.state.failures if self._recorded.failures else {}

    @property
    def dealt(self) -> list[Names]:
        """Coalitions that were evaluated under several deals of the folds."""
        return [names for names, several in self._recorded.deals.items() if len(several) > 1]

    @property
    def evaluated(self) -> int:
        """Coalitions recorded or failed; those that one evaluation serves count once."""
        return self._recorded.evaluated

    def key(self, members: Iterable[str]) -> bytes:
        """A key that is equal for exactly those coalitions that one evaluation serves."""
        names = self.owners.names
        row = self.state.rows_of([members]) if members else np.zeros((1, len(names)), dtype=bool)
        return self.question.sameness.keys(row)[0]

    @property
    def left(self) -> int:
        """Coalitions that have a weight and may still be evaluated."""
        return self._recorded.left

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

    def record(self, members: Iterable[str], utility: float | Sequence[float]) -> None:
        """Record the utility of a coalition, given by owner names in any order.

        Repeated trainings of a coalition are recorded as a sequence of utilities: their mean
        counts, and their spread is the noise of trainings. A `Score` instead of a number
        tells how much it depends on the validation rows.

        Raises:
            InputError: an unknown owner, the empty coalition, a number that is not finite or
                too large, or utilities that contradict those recorded before.
        """
        before, self._state = self._state, None  # first: Ctrl-C in between leaves no old state
        if not self._recorded.record(members, utility):
            self._state = before

    def record_failure(self, members: Iterable[str], reason: str) -> None:
        """Record that a coalition cannot be evaluated: it is predicted, and not suggested again.

        Raises:
            InputError: an unknown owner, the empty coalition, or one that has a utility.
        """
        self._state = None
        self._recorded.record_failure(members, reason)

    def record_deals(
        self,
        members: Iterable[str],
        utilities: Sequence[float],
        *,
        averaged: bool = False,
        other_rows: bool = False,
    ) -> None:
        """Record what a coalition scores under several deals of the folds, or several splits.

        Give the same deals for every coalition, in the same order: how far the values depend on
        the deal follows from them.

        Args:
            members: owner names.
            utilities: one for each deal.
            averaged: whether the recorded utilities are means over all deals.
            other_rows: whether each deal scores on validation rows of its own.

        Raises:
            InputError: an unknown owner, the empty coalition, or a number that is not finite.
        """
        self._state = None
        self._recorded.record_deals(members, utilities)
        self._recorded.averaged, self._recorded.deals_rows = averaged, other_rows

    def record_seconds(self, members: Iterable[str], seconds: float) -> None:
        """Record how long one training of a coalition took; of several times the shortest counts.

        `Active(per="second")` needs them of the first design; nothing else depends on them.

        Raises:
            InputError: an unknown owner, the empty coalition, or a number that is not above zero.
        """
        before, self._state = self._state, None
        if not self._recorded.record_seconds(members, seconds):
            self._state = before

    @one_blas_thread
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
        state = self.state
        if (rows := state.rows_of(pending)).size:
            state = state.with_pending(np.intersect1d(state.positions(rows), state.open))
        return [state.names(i) for i in suggest(state, k)]

    @one_blas_thread
    def forecast(self, k: int, *, now: Valuation | None = None) -> pd.DataFrame:
        """Expected widths of the intervals after up to k more evaluations.

        The widths depend on which coalitions are evaluated, not on their utilities. The index is
        the number of evaluations, the present one first. Each owner's column is half the width of
        its 95 % interval, "widest" the largest of them.

        Args:
            k: how many.
            now: what `values` returns now; computed by default.
        """
        picks = suggest_ahead(self.state, k)
        return forecast_widths(self.state, picks, now or self.values())

    @one_blas_thread
    def predict(self, coalitions: Iterable[Iterable[str]]) -> pd.DataFrame:
        """Predict the utilities of any coalitions.

        One row for each: `members`, `utility`, `std`, `low` and `high`, the bounds between which
        the utility of a training lies with 95 %, and whether it was `evaluated`: its utility is
        then the observed one. A plain posterior has no noise of trainings: see `kernels.Prior`.
        """
        self.state.require_utility()
        return predict_utilities(self.state, self.state.rows_of(coalitions))

    @one_blas_thread
    def posterior(self, coalitions: Iterable[Iterable[str]]) -> JointPosterior:
        """The joint posterior of the utilities of up to 4,096 coalitions."""
        self.state.require_utility()
        return joint_posterior(self.state, self.state.rows_of(coalitions))

    @one_blas_thread
    def forms(self) -> pd.DataFrame:
        """The forms of predictor that were tried, the one of most weight first.

        One row for each: `kernel`, with its learned hyper-parameters; `curved`, whether utilities
        are bent; `noise`, the variance around the process, and `decay` of the spread with the
        number of rows, both of standardised utilities; `log_likelihood`, the log marginal
        likelihood of the utilities plus the log prior of hyper-parameters; and `weight` in the
        average that predicts.
        """
        self.state.require_utility()
        return forms(self.state)

    def features(self, coalitions: Iterable[Iterable[str]]) -> Features:
        """What kernels compare of coalitions, before anything is recorded.

        With `x = valuer.features(...)` a kernel gives `kernel.distance(x, x)`, the matrix of their
        distances, and `kernel(x, x)`, that of their covariances.
        """
        return self.question.describe(self.state.rows_of(coalitions))

    @one_blas_thread
    def check(self) -> PredictorCheck | None:
        """The predictor measured on the check coalitions; None until all are evaluated."""
        return self.state.beliefs.check

    def values(self) -> Valuation:
        """The values of all owners, from the utilities recorded so far."""
        return self.with_comparisons(self.interim_values())

    @one_blas_thread
    def interim_values(self) -> Valuation:
        """The values without what takes time beside them: for a look after every batch."""
        return infer(self.state)

    @one_blas_thread
    def contributions(self) -> pd.DataFrame:
        """What each owner adds to groups of 0, 1, 2, ... others: `Facts.contributions`."""
        self.state.require_utility()
        return contributions_by_size(self.state)

    @one_blas_thread
    def with_comparisons(self, found: Valuation) -> Valuation:
        """The values with what takes time: contributions, and values as if nobody came first."""
        joining = joining_of(self.state)
        return found.with_facts(contributions=self.contributions(), joining=joining)
