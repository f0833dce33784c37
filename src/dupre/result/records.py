"""Plain records: parts of a valuation, and answers to questions about one.

Notation: n owners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dupre._types import Floats
from dupre.predictor.calibration import Diagnostics, PredictorCheck


class ReadOnlyArrays:
    """A frozen record whose arrays are copies that nobody can write to."""

    def __post_init__(self) -> None:
        for name, thing in vars(self).items():
            if isinstance(thing, np.ndarray) and thing.flags.writeable:
                own = thing.copy()
                own.flags.writeable = False
                object.__setattr__(self, name, own)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Protect the arrays of a deep copy or of a pickle too: NumPy makes them writeable."""
        vars(self).update(state)
        self.__post_init__()


@dataclass(frozen=True)
class Words:
    """What the numbers of a valuation are called in sentences; `{who}` stands for owners.

    Attributes:
        noun, nouns: one of the numbers, and several.
        more, less: what follows "is" where one owner has a greater or smaller number.
        most: what the data of the first owner do.
        whose: the question who is first.
        nothing: a sentence about owners at zero.
        undecided: the question on which side of zero owners are.
    """

    noun: str
    nouns: str
    more: str
    less: str
    most: str
    whose: str
    nothing: str
    undecided: str


VALUES = Words(
    noun="value",
    nouns="values",
    more="worth more",
    less="worth less",
    most="are worth most",
    whose="whose data are worth most",
    nothing="The data of {who} make no difference{where}.",
    undecided="the data of {who} help or harm",
)

PAYMENTS = Words(
    noun="payment",
    nouns="payments",
    more="to get more",
    less="to get less",
    most="get the greatest payment",
    whose="who is to get the greatest payment",
    nothing="The payment of {who} is zero.",
    undecided="the payment of {who} is above zero",
)


@dataclass(frozen=True)
class Subsidy:
    """What keeps coalitions from leaving a least core.

    Attributes:
        amount: e, the most by which the gain of a coalition exceeds its payments; negative if
            every coalition is paid more than it gains.
        low, high: bounds between which it lies with a probability of about 95 %.
        tight: coalitions that are paid exactly their gain minus the subsidy, the smallest first.
        looked: coalitions whose utility was looked at.
        violation: the most by which a coalition was found to exceed the subsidy; a rounding error
            if all coalitions were listed.
        proven: whether all coalitions were listed, not only searched. Those not evaluated are
            listed at their predicted utilities; `low` and `high` allow for that.
    """

    amount: float
    low: float
    high: float
    tight: tuple[tuple[str, ...], ...]
    looked: int
    violation: float
    proven: bool


@dataclass(frozen=True, eq=False)
class Joining:
    """Who joined first, and what owners would be worth otherwise.

    Attributes:
        cohorts: owners who joined together, the first cohort first.
        symmetric: what they would be worth if nobody had come first: of each `owner` the Shapley
            `value`, `low` and `high`, mostly predicted. NaN if the predictor failed, and no rows
            in a look after a batch.
    """

    cohorts: tuple[tuple[str, ...], ...]
    symmetric: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True)
class Duplicates:
    """Coalitions that hold the same rows as others, so that one evaluation serves all of them.

    Attributes:
        owners: groups of owners who hold the same rows; none if only coalitions do, such as one
            owner who holds all rows of two others.
        coalitions: those that enter the values.
        different: how many different ones they are.
        saved: how many were not evaluated because another one with the same rows was.
    """

    owners: tuple[tuple[str, ...], ...]
    coalitions: int
    different: int
    saved: int


@dataclass(frozen=True)
class Comparison:
    """Is one owner worth more than another?

    Attributes:
        one, other: their names.
        probability: that `one` is worth more.
        difference: the expected value of `one` minus that of `other`.
        low, high: bounds between which the difference lies with 95 %.
    """

    one: str
    other: str
    probability: float
    difference: float
    low: float
    high: float

    def swap(self) -> Comparison:
        """The same question the other way round."""
        return Comparison(
            self.other, self.one, 1 - self.probability, -self.difference, -self.high, -self.low
        )


@dataclass(frozen=True, eq=False)
class Evidence(ReadOnlyArrays):
    """What a valuation rests on, for those who want to check it.

    Attributes:
        coalitions: one row for each evaluated coalition and for a sample of the others:
            `members` (a tuple of names), `size` (owners), `rows` (of data), `utility` (NaN if it
            was not evaluated), and `predicted` with `std`, the prediction without its own
            evaluation (NaN where nothing was predicted).
        distances: sliced Wasserstein distance SW_1 between the rows of any two owners, features
            and targets weighing alike, (n, n).
        shared: part of the row owner's rows that the column owner holds too, (n, n).
    """

    coalitions: pd.DataFrame
    distances: Floats
    shared: Floats


@dataclass(frozen=True)
class TrainingNoise:
    """What repeated trainings say about chance in utilities.

    Attributes:
        further: trainings beyond the first of each coalition.
        std: standard deviation of the score of one training, before any floor, pooled over the
            coalitions that were trained more than once; NaN if none was.
        seeded: whether trainings have seeds that may change their utilities.
        deterministic: whether utilities are known not to depend on chance: by the model, or
            because repeated trainings gave the same ones.
    """

    further: int
    std: float
    seeded: bool
    deterministic: bool

    @property
    def unmeasured(self) -> bool:
        """Whether seeds may matter, and no training was repeated to see how much."""
        return self.seeded and not self.further


@dataclass(frozen=True, eq=False)
class Facts:
    """What belongs to values besides their uncertainty: where they come from, and at what price.

    Attributes:
        grand: utility of all owners together.
        empty: utility of no owner.
        evaluated: number of coalitions evaluated, those that failed included.
        grand_predicted: whether `grand` was predicted, not evaluated.
        floor: lowest utility that counts; None if there is none.
        floored: how many evaluated coalitions have a lower one.
        counting: number of coalitions that enter the values; those that hold the same rows count
            once if one evaluation serves all of them.
        first_left: how many of the 2n + 1 heaviest coalitions are not evaluated, 0 if those are
            that the strategy needs; the values are a first guess until then.
        found: how many evaluations were known before the call; not printed, so that a resumed run
            prints the same as one that was never interrupted.
        checked: how many stored evaluations were done again, to see that they are still the same;
            extra to the budget, without that of no data, and not printed either.
        stale: evaluations in the store that were not used, because rows have changed since.
        stopped: why no more was evaluated.
        validation_rows: how many; 0 if that is not known.
        validating: part of the validation rows that each owner holds; empty if they come from
            elsewhere.
        folds: trainings that one evaluation takes.
        duplicates: what equal rows saved; None if no coalitions hold the same rows, or utilities
            depend on names.
        failures: coalitions whose training failed, with the reason; they are predicted.
        warnings: messages of warnings raised by trainings, with the coalitions that raised each.
        training_noise: what repeated trainings say about chance in utilities; None if not known.
        diagnostics: of the predictor; None when nothing had to be predicted.
        check: of the predictor on check coalitions; None when there are none.
        sampled: whether the values come from random coalitions alone, because the predictor
            failed on the check coalitions.
        corrected: whether the error of the predictor was estimated and corrected.
        subsidy: of the least core; None for semivalues.
        joining: who joined first, if the values depend on it.
        rounds: what was known after each batch: number evaluated, widest half interval (unless
            very many coalitions count) and, on check coalitions, the predictor's error, that of
            the mean of their size (by_size) and the coverage.
        contributions: what each `owner` adds to groups of so many `others` on average: `value`,
            `low` and `high`; of more than 12 owners for 12 sizes. Empty if the predictor failed,
            and if the values depend on who joined first.
        forecast: expected half widths of the 95 % intervals against further evaluations.
        evidence: utilities observed and predicted, and how the owners' data relate.
        provenance: how to reproduce the values, in sections such as "versions" and "settings",
            each a mapping of names to texts.
    """

    grand: float
    empty: float
    evaluated: int
    grand_predicted: bool = False
    floor: float | None = None
    floored: int = 0
    counting: int = 0
    first_left: int = 0
    found: int = 0
    checked: int = 0
    stale: int = 0
    stopped: str = ""
    validation_rows: int = 0
    validating: Mapping[str, float] = field(default_factory=dict)
    folds: int = 1
    duplicates: Duplicates | None = None
    failures: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    warnings: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    training_noise: TrainingNoise | None = None
    diagnostics: Diagnostics | None = None
    check: PredictorCheck | None = None
    sampled: bool = False
    corrected: bool = False
    subsidy: Subsidy | None = None
    joining: Joining | None = None
    rounds: pd.DataFrame = field(default_factory=pd.DataFrame)
    contributions: pd.DataFrame = field(default_factory=pd.DataFrame)
    forecast: pd.DataFrame = field(default_factory=pd.DataFrame)
    evidence: Evidence | None = None
    provenance: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def none_above_floor(f: Facts) -> bool:
    """Whether every coalition scores below the floor; failed ones have no score to be above."""
    return bool(f.floored) and f.floored == f.evaluated - len(f.failures)
