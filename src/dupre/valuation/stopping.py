"""When to stop: rules in the mediator's terms, combined with `|` and `&`.

    stop=stopping.within(0.01) | stopping.wall_time(3600)
    stop=stopping.ranking_settled() & stopping.evaluated(40)

Rules are checked after every batch, which is finished before the next is chosen; time also ends a
batch. The first form stops when one of the two holds, the second when both do; the result says
which it was. Rules about values wait for the first design, for a group of 2 to n - 2 owners and for
three different utilities: intervals from one or two have no scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dupre.checks import finite, positive, takes, whole
from dupre.data.owners import Owners
from dupre.errors import DupreError, InputError
from dupre.game.coalitions import unknown_owner
from dupre.predictor.student import Spread
from dupre.result.uncertainty import DOMINANT
from dupre.result.valuation import Valuation
from dupre.utility.describe import Traits
from dupre.valuation.state_notes import first_levels, has_middle_sizes
from dupre.valuation.valuer import Valuer
from dupre.wording import count_things

__all__ = [
    "Rule",
    "State",
    "evaluated",
    "ranking_settled",
    "rows_dominate",
    "settled",
    "wall_time",
    "within",
]


EQUAL_UP_TO = 100
"""Evaluations after which a run without a budget may stop although utilities show no scale.

If all of so many are equal, fewer than 3 in 100 others differ, with 95 %.
"""


@dataclass(frozen=True)
class State:
    """What a rule can look at.

    Attributes:
        evaluated: coalitions evaluated so far, those found in the store included.
        seconds: since the store was open and the workers were started.
        valuation: returns the present values; None while it is too early to tell: before the first
            design is complete and a group of 2 to n - 2 owners is evaluated, and as long as
            utilities are all equal or only two numbers (`is_too_early`).
    """

    evaluated: int
    seconds: float
    valuation: Callable[[], Valuation | None]


@dataclass(frozen=True)
class Rule:
    """A reason to stop.

    Attributes:
        text: the reason in words.
        fired: from a state, the reasons that hold and suffice to stop; empty to go on. It is
            called once when the rule is made, to see what it returns.
        owners: names that the rule mentions.
        resamples: whether it can only hold if utilities are known on resamples of the validation
            rows.
        seconds: after which it holds, whatever else is known; a batch is not finished then. None
            for a rule that does not depend on time alone.

    Raises:
        InputError: `fired` takes or returns something else, or uses a name that is not there.
    """

    text: str
    fired: Callable[[State], tuple[str, ...]]
    owners: tuple[str, ...] = ()
    resamples: bool = False
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            positive(self.seconds, "seconds")
        if not callable(self.fired) or not takes(self.fired, None):
            raise InputError(
                f"fired must be a callable(state) -> tuple of reasons to stop, got {self.fired!r}"
            )
        try:
            self.reasons(State(0, 0.0, lambda: None))
        except InputError as error:
            if not _needs_evaluations(error.__cause__):
                raise

    def reasons(self, state: State, *, alone: bool = False) -> tuple[str, ...]:
        """The reasons that hold and suffice to stop; empty to go on.

        Args:
            state: what is known.
            alone: whether nothing else ends the run; a rule that can never hold is an InputError.
        """
        if (
            alone
            and self.resamples
            and (known := state.valuation())
            and known.uncertainty.validation is None
        ):
            raise self.error_without_resamples()
        try:
            found = self.fired(state)
        except DupreError:  # of a rule that this one is made of, or of the values
            raise
        except Exception as cause:  # the user's code may raise anything
            raise InputError(
                f"the stop rule {self.text!r} failed: {type(cause).__name__}: {cause}; correct it "
                "(a rule is given a state with evaluated, seconds and valuation())"
            ) from cause
        reasons = () if found is None else found
        if not isinstance(reasons, (tuple, list)) or not all(isinstance(r, str) for r in reasons):
            raise InputError(
                f"a stop rule returns a tuple of reasons, () to go on; {self.text!r} returned "
                f"{found!r:.80}; write: return (text,) if it holds else ()"
            )
        return tuple(reasons)

    def check_end(self, *, may_resample: bool) -> None:
        """Raise InputError if the rule cannot end a run that has no budget."""
        if self.resamples and not may_resample:
            raise self.error_without_resamples()

    def error_without_resamples(self) -> InputError:
        """The error of a run without a budget that the rule cannot end."""
        return InputError(
            f"the stop rule {self.text!r} can never hold, and there is no budget: utilities are "
            "not known on resamples of the validation rows. State a budget, combine the rule with "
            "another by |, or have resamples: resamples= of a ModelUtility, or a dupre.Score as "
            "the utility"
        )

    def __or__(self, other: Rule) -> Rule:
        if not isinstance(other, Rule):
            return NotImplemented
        return Rule(
            f"({self.text} or {other.text})",
            lambda state: self.reasons(state) + other.reasons(state),
            self.owners + other.owners,
            self.resamples and other.resamples,
            min((s for s in (self.seconds, other.seconds) if s is not None), default=None),
        )

    def __and__(self, other: Rule) -> Rule:
        if not isinstance(other, Rule):
            return NotImplemented

        limits = self.seconds, other.seconds

        def both(state: State) -> tuple[str, ...]:
            first = self.reasons(state)
            second = other.reasons(state) if first else ()
            return first + second if second else ()

        return Rule(
            f"({self.text} and {other.text})",
            both,
            self.owners + other.owners,
            self.resamples or other.resamples,
            None if None in limits else max(filter(None, limits)),
        )

    def __bool__(self) -> bool:
        raise TypeError("combine stop rules with | and &; the words or and and would drop one")

    def __repr__(self) -> str:
        return f"<stop when {self.text}>"


def _needs_evaluations(cause: BaseException | None) -> bool:
    """Whether a rule that fails while nothing is evaluated may work later."""
    misspelt = isinstance(cause, AttributeError) and isinstance(cause.obj, State)
    return cause is not None and not misspelt and not isinstance(cause, NameError)


def _rule(text: str, holds: Callable[[State], bool]) -> Rule:
    return Rule(text, lambda state: (text,) if holds(state) else ())


def _about_values(text: str, holds: Callable[[Valuation], bool]) -> Rule:
    def enough(state: State) -> bool:
        valuation = state.valuation()
        return valuation is not None and holds(valuation)

    return _rule(text, enough)


@dataclass(frozen=True)
class RunSettings:
    """How far a run goes, and what it does at a failure.

    Attributes:
        stop: the rule that ends it, or None.
        budget: coalitions to evaluate at most; None if only the rule ends the run.
        repeats: trainings of each coalition; None for one, and a second one of some.
        skip: whether to go on without a coalition whose training failed.
        ask_empty: whether the utility of no data is still to be asked for.
        traits: of the utility.
    """

    stop: Rule | None
    budget: int | None
    repeats: int | None
    skip: bool
    ask_empty: bool
    traits: Traits

    def __post_init__(self) -> None:
        if self.repeats is not None:
            whole(self.repeats, "repeats", least=1)


def check_limits(owners: Owners, budget: int | None, stop: Rule | None, check: int) -> int:
    """The budget as a number; `check` coalitions of it are for the check of the predictor."""
    if budget is None and stop is None:
        raise InputError("state budget=, the number of coalitions to evaluate, or a stop= rule")
    if stop is not None and not isinstance(stop, Rule):
        raise InputError(
            "stop must be a rule of dupre.stopping such as within(0.01) | wall_time(3600), got "
            f"{stop!r}"
        )
    named = stop.owners if stop is not None else ()
    unknown = [name for name in named if name not in owners.names]
    if unknown:
        raise unknown_owner(unknown[0], owners.names, "in the stop rule")
    limit = 2**owners.n - 1 if budget is None else whole(budget, "budget", least=1)
    if check > limit // 2:
        raise InputError(f"check is {check}: at most half of the budget of {limit}")
    return limit


def is_too_early(valuer: Valuer, *, limited: bool) -> bool:
    """Whether intervals are no reason to stop yet; `limited` if a budget ends the run.

    They are none before the first design is finished, nor while utilities have no scale: intervals
    can be far too narrow then. A game may really have no more than two utilities: without a limit
    of the run, intervals count again after twice the first design and at least EQUAL_UP_TO
    evaluations.
    """
    if not valuer.designed:
        return True
    most = max(EQUAL_UP_TO, 2 * len(valuer.question.first))
    going = valuer.left > 0 and (limited or valuer.evaluated < most)
    return going and len(first_levels(valuer.state)) < 3


def knows_between(valuer: Valuer) -> bool:
    """Whether a group of 2 to n - 2 owners has a utility, or nothing is left to evaluate."""
    return not valuer.left or has_middle_sizes(valuer.state)


def seconds_each(valuer: Valuer) -> float | None:
    """How long a training of a coalition that is still open is expected to take on average.

    None before the end of the first design, which shows it, and where nothing is open.
    """
    state = valuer.state
    if state.cost is None or state.first_left.size or not state.open.size:
        return None
    return float(state.cost.seconds(state.members[state.open] @ valuer.owners.rows).mean())


def reason_to_end(valuer: Valuer, budget: int) -> str:
    """Why nothing is left to do, or to pay for; empty if something is."""
    if not valuer.left:
        if valuer.question.estimator is None:
            return "nothing is left to evaluate"
        return "all sampled coalitions are evaluated"
    known = valuer.evaluated
    if known < budget:
        return ""
    if known > budget:
        return f"{known} evaluations are known, more than the budget of {budget}"
    return f"the budget of {count_things(budget, 'evaluation')} is spent"


def evaluated(count: int) -> Rule:
    """This many coalitions are evaluated, those found in the store included."""
    least = whole(count, "the number of evaluations", least=1)
    text = f"at least {count} coalitions are evaluated"
    return _rule(text, lambda state: state.evaluated >= least)


def wall_time(seconds: float) -> Rule:
    """This many seconds have passed since the store was open and the workers were started.

    No further training is started then; those under way are finished.
    """
    limit = positive(seconds, "seconds")
    rule = _rule(f"{seconds:g} seconds have passed", lambda state: state.seconds >= limit)
    return replace(rule, seconds=limit)


def within(distance: float, *, level: float = 0.95) -> Rule:
    """Every value is known to within ± distance: each interval at this level is that narrow.

    It also stops when only more validation rows could still narrow an interval that is too wide;
    the reason says how many.
    """
    limit = positive(distance, "the distance")
    _check_probability(level)
    text = f"every value is within ± {distance:g} with {100 * level:g} %"

    def fired(state: State) -> tuple[str, ...]:
        if (valuation := state.valuation()) is None:
            return ()
        if np.all(valuation.uncertainty.spread().half_width(level) <= limit):
            return (text,)
        rows = np.nan_to_num(valuation.uncertainty.std("validation"))
        alone = Spread(np.zeros_like(rows), rows).half_width(level)
        if np.any(alone > limit) and valuation.uncertainty.shares()["rows"] >= DOMINANT:
            times = float(np.max(alone / limit)) ** 2
            return (f"± {distance:g} takes about {times:,.1f} times as many validation rows",)
        return ()

    return Rule(text, fired)


def rows_dominate(share: float = DOMINANT) -> Rule:
    """This share of the variance of the values is due to the choice of the validation rows.

    Further trainings cannot make the intervals much narrower then; more validation rows can. It can
    only hold if utilities are known on resamples of these rows; without a budget, a run in which
    they are not is refused, or ends with an InputError after the first design.
    """
    if not 0 < finite(share, "share") < 1:
        raise InputError(f"share must lie between 0 and 1, got {share!r}")
    rule = _about_values(
        f"validation rows are {100 * share:g} % of the variance of the values",
        lambda valuation: valuation.uncertainty.shares()["rows"] >= share,
    )
    return replace(rule, resamples=True)


def ranking_settled(*, level: float = 0.95) -> Rule:
    """The whole ranking is right with this probability.

    The probability that any two neighbours are the wrong way round is at most the sum over all
    pairs of neighbours. Owners of equal worth are never settled, unless it is known that they hold
    the same rows: combine with another rule.
    """
    _check_probability(level)

    def is_settled(valuation: Valuation) -> bool:
        order = valuation.order
        wrong = 1 - valuation.probability_greater().to_numpy()
        unsure = [pair for pair in pairwise(order) if not _equal(valuation, *pair)]
        return float(sum(wrong[pair] for pair in unsure)) <= 1 - level

    return _about_values(f"the ranking is settled with {100 * level:g} %", is_settled)


def settled(one: str, other: str, *, level: float = 0.95) -> Rule:
    """Which of two owners is worth more is known with this probability, or that neither is."""
    _check_probability(level)
    names = str(one), str(other)
    if names[0] == names[1]:
        raise InputError(f"two different owners can be settled, got {one!r} twice")

    def is_known(valuation: Valuation) -> bool:
        first, second = (valuation.owners.index(name) for name in names)
        greater = valuation.probability_greater().to_numpy()
        surest = max(greater[first, second], greater[second, first])
        return bool(surest >= level or _equal(valuation, first, second))

    text = f"{one} against {other} is settled with {100 * level:g} %"
    return replace(_about_values(text, is_known), owners=names)


def _equal(valuation: Valuation, i: int, j: int) -> bool:
    """Whether two owners are known to be worth the same, because they hold the same rows."""
    groups = valuation.facts.duplicates.owners if valuation.facts.duplicates else ()
    return any({valuation.owners[i], valuation.owners[j]} <= set(group) for group in groups)


def _check_probability(level: float) -> None:
    if not 0.5 < finite(level, "level") < 1:
        raise InputError(f"level must lie between 0.5 and 1, got {level!r}")
