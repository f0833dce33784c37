"""What is asked: which values of which owners, from which coalitions, by which strategy.

A question is checked when it is made, before anything is evaluated.

Notation: n owners, b coalitions that count, W (n, b) their weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from dupre._types import Bools, Floats, Ints, Members
from dupre.checks import UNBOUNDED, Bounds, check_bounds, check_empty_within, finite, whole
from dupre.data.owners import Owners
from dupre.data.sketch import COARSE, SketchCache
from dupre.errors import InputError
from dupre.game import estimators
from dupre.game.draws import Draws
from dupre.game.estimators import Estimator, Sample
from dupre.game.precedence import LISTED_UP_TO, Precedence, most_listed, weigh_in_turn
from dupre.game.semivalues import Semivalue, parse_semivalue, shapley
from dupre.game.weights import Weights, check_weights
from dupre.predictor.form import check_prior
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Kernel, Prior
from dupre.valuation.first_design import add_heaviest, design_in_turn, first_design
from dupre.valuation.sameness import (
    Merged,
    Sameness,
    distances,
    likeness,
    merge,
    shared_rows,
)

SAMPLES = 4_096
"""Coalitions drawn where not all enter the values, unless another number is asked for."""

# Of fewer owners fine sketches take a second each; of more owners a sample of coalitions counts.
COARSELY = range(15, 17)
"""Sizes of the largest cohort whose coalitions are compared at a coarse resolution."""

SAMPLES_OF_MEANS = 16_384
"""Coalitions over which expected values are summed then, at least; variances are those of fewer,
they cost the square of their number."""


@dataclass(frozen=True)
class LeastCore:
    """The least core (Yan & Procaccia 2021), asked for instead of a semivalue.

    Payments at which no coalition gains much by leaving; of all such payments the most equal ones.
    It is found on all coalitions for up to 16 owners, and for more on those that a search finds
    to bind.

    Args:
        draws: of all utilities from their posterior, whose least cores tell the uncertainty.
        guide: the semivalue whose uncertainty decides what is evaluated.
    """

    draws: int = 100
    guide: Semivalue = shapley
    name = "Least core"

    def __post_init__(self) -> None:
        whole(self.draws, "draws", least=2)
        if not isinstance(self.guide, Semivalue):
            raise InputError(f"guide must be a semivalue such as dupre.shapley, got {self.guide!r}")


AnySemivalue = Semivalue | Precedence | LeastCore | str
AnyEstimator = Estimator | Sample
AnyKernel = Kernel | Prior
"""How a semivalue, an estimator and a kernel may be asked for."""


@dataclass(frozen=True)
class Strategy(ABC):
    """What to evaluate next; to write one, inherit and define `choose`.

    The other attributes have defaults that suit most strategies.

    Attributes:
        batch: coalitions chosen at once after the first design, as many as there are owners by
            default. More keep more workers busy, fewer learn more often.
        first: coalitions of the first design; 2n + 1 by default: under Shapley all owners, every
            single one, and all but every single one. 0 where enough is known without.
        check: coalitions drawn at random that the predictor is never shown, so that it is checked
            on them after every batch; 0 for none, otherwise at least 4. They follow the first
            design and count in the values. If the check fails, the values do not rely on the
            predictor.
        uniform: whether the first design is drawn uniformly.
        in_order: whether the order of evaluation is known from the start.
        corrected: whether the predictor's values are corrected by random draws.
        ends: whether it may end a run while its budget has room.
        newcomer: the owner that is quoted, of whom little or nothing is known; "" for none.
        alike: part of the variance of what owners add that is taken to follow their data, if one
            is quoted.
    """

    batch: int | None = None
    first: int | None = None

    check: ClassVar[int] = 0
    uniform: ClassVar[bool] = False
    in_order: ClassVar[bool] = False
    corrected: ClassVar[bool] = False
    ends: ClassVar[bool] = False
    newcomer: ClassVar[str] = ""
    alike: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        for name, count, least in (("batch", self.batch, 1), ("first", self.first, 0)):
            if count is not None:
                whole(count, name, least=least)
        whole(self.check, "check", least=0)

    @abstractmethod
    def choose(self, state: Any, k: int, rng: np.random.Generator) -> Ints:
        """The next k coalitions after the first design, some of `state.open`, the best first.

        The same state must give the same answer: take chance from `rng` alone. None to end the run,
        if the strategy `ends` any.

        Args:
            state: what is known and believed, a `State`.
            k: how many, at most.
            rng: the same for the same number of evaluations.
        """

    def validate(self, question: Question) -> None:  # noqa: B027  # most can always be used
        """Raise InputError if the strategy cannot be used for this question."""

    def with_budget(self, n: int, limit: int, *, stated: bool) -> Strategy:  # noqa: ARG002
        """The same with as large a first design, and batches, as a budget has room for.

        Args:
            n: owners.
            limit: coalitions to evaluate at most.
            stated: whether the user chose this limit.
        """
        return replace(self, first=min(self.first_of(n), limit - self.check))

    def first_of(self, n: int) -> int:
        """Coalitions of the first design of n owners."""
        return self.design(n) if self.first is None else self.first

    def design(self, n: int) -> int:
        """How many coalitions of n owners must be evaluated before values are no first guess."""
        return 2 * n + 1


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, and all that is fixed for a run by it; `ask` makes one.

    Everything drawn here depends on the seed and on what is asked, never on utilities.

    Attributes:
        owners: whose data.
        semivalue: of which values, among the owners of a cohort; or which guides the search for a
            least core.
        precedence: the order in which owners joined, or None: they are one cohort.
        least_core: wanted instead of a semivalue, or None.
        estimator: draws the coalitions that enter the values; None if all do.
        samples: how many coalitions enter the values.
        by_default: whether the estimator is the default.
        strategy: what to evaluate next.
        kernel: of the predictor, or its prior, as it was given; None for dupre's.
        sameness: when two coalitions are one.
        bounds: between which utilities lie.
        seed: of everything random.
    """

    owners: Owners
    semivalue: Semivalue
    precedence: Precedence | None
    least_core: LeastCore | None
    estimator: Estimator | None
    samples: int
    by_default: bool
    strategy: Strategy
    kernel: Kernel | Prior | None
    sameness: Sameness
    bounds: Bounds
    seed: int

    def rng(self, *purpose: int) -> np.random.Generator:
        """A generator for this purpose alone."""
        # The numbers of purposes never change: a run that is resumed must draw what it has drawn.
        # 1 first design, 2 fit, 3 choice, 4 random draws, 5 correction, 6 estimator, 7 search for
        # a core, 8 draws of cores, 9 larger sample, 10 order, 11 group sizes, 12 sizes between,
        # 13 symmetric values.
        return np.random.default_rng([self.seed, *purpose])

    @property
    def prior(self) -> Prior:
        """What the predictor assumes."""
        return self.kernel if isinstance(self.kernel, Prior) else Prior(self.kernel)

    @property
    def batch(self) -> int:
        """Coalitions chosen at once after the first design."""
        return self.strategy.batch or self.owners.n

    @cached_property
    def _cohorts(self) -> tuple[Ints, ...]:
        """Positions of the owners who joined together, the first cohort first."""
        return cohorts_of(self.precedence, self.owners)

    @cached_property
    def merged(self) -> Merged:
        """The weights of the coalitions that enter the values; those that are one, once."""
        return self._weigh(self.samples, self.rng(6))

    def _weigh(self, samples: int, rng: np.random.Generator) -> Merged:
        """The weights, of so many coalitions if they are drawn."""
        sizes = list(map(len, self._cohorts))
        listed = most_listed(sizes) if self.by_default else 1  # of one there is nothing to draw
        drawn = sum(m for m in sizes if m > listed)

        def weigh(m: int) -> Weights:
            if self.estimator is None or m <= listed:
                return estimators.exact(self.semivalue, m)
            share = samples * m // drawn  # the same error for all owners
            return check_weights(self.estimator(self.semivalue, m, share, rng), m)

        return merge(weigh_in_turn(self._cohorts, weigh), self.sameness)

    @property
    def weights(self) -> Weights:
        """Of b different coalitions."""
        return self.merged.weights

    @property
    def b(self) -> int:
        """Coalitions with a column in W."""
        return len(self.weights.members)

    @cached_property
    def larger(self) -> Merged | None:
        """A larger sample, over which expected values are summed.

        Its covariance would cost the square of its size: that of the smaller sample is used. None
        unless the sample is the default, and if it is no smaller itself, as it is for more than 409
        owners.
        """
        if not self.by_default or self.estimator is None or self.samples >= SAMPLES_OF_MEANS:
            return None
        return self._weigh(SAMPLES_OF_MEANS, self.rng(9))

    @cached_property
    def counts(self) -> Bools:
        """Which of the b have a weight, (b,)."""
        return self.merged.counts

    @property
    def counting(self) -> int:
        """How many have one; those that hold the same rows count once."""
        return int(self.counts.sum())

    @cached_property
    def columns(self) -> dict[bytes, int]:
        """The column of each coalition by its key."""
        return {key: i for i, key in enumerate(self.sameness.keys(self.weights.members))}

    @cached_property
    def most_important(self) -> Ints:
        """What a first design of the default size has, whatever the strategy."""
        return self._design(2 * self.owners.n + 1)

    @cached_property
    def heaviest(self) -> Ints:
        """The first design: what is evaluated before anything is predicted."""
        usual = self.strategy.design(self.owners.n)
        count = self.strategy.first_of(self.owners.n)
        if self.strategy.in_order or self.strategy.uniform:
            return self.order[:count]
        # A design of the usual size is not drawn twice: values are no first guess once it is there.
        return self.most_important[:count] if count == usual else self._design(count)

    def _design(self, count: int) -> Ints:
        """Up to `count` coalitions to begin with."""
        rng = self.rng(1), self.rng(12)
        rows = self.owners.rows
        if len(self._cohorts) > 1:
            return design_in_turn(self.semivalue, self.merged, rows, count, rng)
        designed = self.sameness.keys(first_design(self.semivalue, rows, count, rng[0]))
        chosen = [self.columns[key] for key in designed if key in self.columns]
        return add_heaviest(chosen, self.merged, count, rng[1])

    @cached_property
    def order(self) -> Ints:
        """The coalitions that count, as the estimator drew them, or drawn uniformly."""
        counts = np.flatnonzero(self.counts)
        return self.rng(10).permutation(counts) if self.strategy.uniform else counts

    @cached_property
    def draws(self) -> Draws:
        """Coalitions drawn at random: for the check of the predictor, and to correct it."""
        return Draws(self.weights.W, self.heaviest, self.strategy.check, self.rng(4))

    @property
    def first(self) -> Ints:
        """Coalitions evaluated first: the heaviest, then those for the check."""
        return np.concatenate([self.heaviest, self.draws.held])

    @cached_property
    def _sketch(self) -> SketchCache | None:
        """Vectors of coalitions, kept from round to round; None if rows are not known."""
        if self.owners.points is None:
            return None
        resolution = COARSE if max(map(len, self._cohorts)) in COARSELY else None
        return SketchCache(self.owners, seed=self.seed, resolution=resolution)

    def describe(self, members: Members, *, keep: bool = True) -> Features:
        """What kernels compare of coalitions, (m, n); `keep` if they will be asked for again."""
        sketch = self._sketch
        # A search for a least core looks at 60,000 coalitions once: keeping them would fill memory.
        vectors = sketch if sketch is None or keep else sketch.compute
        return Features(members, self.owners.rows, vectors, self._mixing)

    @cached_property
    def _mixing(self) -> Floats | None:
        """What members are taken to be, (n, n): a newcomer is like those whose rows are like its.

        So what is known of them is expected of it; as a member like no other it would be expected
        to add nothing. None if there is no newcomer, or rows are not known.
        """
        newcomer, names = self.strategy.newcomer, self.owners.names
        if newcomer not in names or self.owners.points is None:
            return None
        at, alike = names.index(newcomer), self.strategy.alike
        return likeness(self.relations[0], self.owners.rows, at, alike)

    @cached_property
    def features(self) -> Features:
        """Of all b coalitions: what is computed of them is kept from round to round."""
        return self.describe(self.weights.members)

    @cached_property
    def relations(self) -> tuple[Floats, Floats]:
        """Distances between owners, and the rows they share, (n, n) each."""
        return distances(self._sketch, self.owners.n), shared_rows(self.owners)


def ask(
    owners: Owners,
    *,
    semivalue: AnySemivalue,
    estimator: Estimator | Sample | None,
    strategy: Strategy,
    kernel: Kernel | Prior | None,
    by_content: bool = False,
    bounds: Bounds = UNBOUNDED,
    seed: int,
) -> Question:
    """Check what is asked: the arguments of `Valuer`; InputError if they cannot be used."""
    check_owners(owners)
    if isinstance(semivalue, str):
        semivalue = parse_values(semivalue)
    among = _check_semivalue(semivalue, owners.n)
    precedence = semivalue if isinstance(semivalue, Precedence) else None
    cohorts = cohorts_of(precedence, owners)
    chosen, samples = _check_estimator(estimator, list(map(len, cohorts)))
    if kernel is not None and not isinstance(kernel, (Kernel, Prior)):
        raise InputError(f"kernel must be a Kernel or a Prior of dupre.kernels, got {kernel!r}")
    if not isinstance(by_content, bool):
        raise InputError(f"by_content must be True or False, got {by_content!r}")
    question = Question(
        owners,
        among,
        precedence,
        semivalue if isinstance(semivalue, LeastCore) else None,
        chosen,
        samples,
        estimator is None,
        strategy,
        kernel,
        Sameness(owners.n, owners.contents if by_content else None, cohorts),
        bounds,
        whole(seed, "seed", least=0),
    )
    # Everything that can be refused is refused here, before the first training is paid for.
    strategy.validate(question)
    _ = question.draws  # refuses a check of too many coalitions
    if kernel is not None or owners.points is None:
        check_prior(question.prior, question.describe(question.weights.members[question.counts]))
    return question


def check_limits(floor: float | None, bounds: Any) -> tuple[float | None, Bounds]:
    """The lowest utility that counts, and bounds of utilities, none of them below it."""
    lowest = None if floor is None else finite(floor, "floor")
    low, high = UNBOUNDED if bounds is None else check_bounds(bounds)
    return lowest, (low if lowest is None else max(low, lowest), high)


def check_empty(question: Question, utility: float) -> None:
    """Raise InputError if no data have a utility outside the bounds."""
    check_empty_within(utility, question.bounds)


def parse_values(text: str) -> Semivalue | LeastCore:
    """The semivalue of a name, or `LeastCore()` for "least-core"; InputError for others."""
    least_core = text.strip().lower().replace("_", "-") == "least-core"
    return LeastCore() if least_core else parse_semivalue(text)


def check_owners(owners: Owners) -> Owners:
    """The owners; InputError if they are something else."""
    if not isinstance(owners, Owners):
        raise InputError(
            f"expected dupre.Owners, got {type(owners).__name__}; "
            "build them with Owners.from_arrays, from_frame or from_mapping"
        )
    return owners


def ask_again(question: Question, owners: Owners, strategy: Strategy | None) -> dict[str, Any]:
    """The arguments by which a `Valuer` of other owners is asked the same."""
    drawn = None if question.by_default else question.estimator
    return {
        "semivalue": values_for(
            question.precedence or question.least_core or question.semivalue, owners
        ),
        "estimator": drawn and Sample(drawn, question.samples),
        "strategy": strategy or question.strategy,
        "kernel": question.kernel,
        "by_content": question.sameness.by_content,
        "bounds": question.bounds,
        "seed": question.seed,
    }


def values_for(asked: AnySemivalue, owners: Owners) -> AnySemivalue:
    """The same values of other owners: an order of joining has them in it."""
    return asked.for_owners(owners.names) if isinstance(asked, Precedence) else asked


def cohorts_of(precedence: Precedence | None, owners: Owners) -> tuple[Ints, ...]:
    """Positions of the owners who joined together; all of them if nothing is said of that."""
    return (np.arange(owners.n),) if precedence is None else precedence.positions(owners.names)


def _check_semivalue(asked: Semivalue | Precedence | LeastCore, n: int) -> Semivalue:
    """The semivalue that is computed, or that guides a search."""
    if isinstance(asked, Precedence):
        return shapley
    guide = asked.guide if isinstance(asked, LeastCore) else asked
    if not isinstance(guide, Semivalue):
        raise InputError(
            f"unknown semivalue {guide!r}; expected dupre.shapley, dupre.banzhaf, "
            "dupre.leave_one_out, dupre.beta_shapley(alpha, beta), a dupre.Semivalue, "
            "dupre.precedence(cohorts) or dupre.LeastCore()"
        )
    if isinstance(asked, LeastCore) and not guide.chances(n).all():
        raise InputError(
            f"every coalition counts in the least core, but {guide.name} leaves some out; take "
            "another guide"
        )
    return guide


def _check_estimator(
    asked: Estimator | Sample | None, sizes: Sequence[int]
) -> tuple[Estimator | None, int]:
    """The estimator, None if all coalitions of cohorts of these sizes enter; how many it draws."""
    n, listed = max(sizes), most_listed(sizes)
    estimator, count = (
        (asked.estimator, asked.count) if isinstance(asked, Sample) else (asked, None)
    )
    exact = cast("object", estimator) is estimators.exact
    every = sum(2**size - 1 for size in sizes)
    if exact and (count is not None or n > listed):
        raise InputError(
            f"estimator=exact predicts all {every:,} coalitions, for at most {LISTED_UP_TO} owners "
            "who joined together; leave it out to draw some"
        )
    if exact or (estimator is None and n <= listed):
        return None, every
    if estimator is not None and not callable(estimator):
        raise InputError(
            "estimator must be a function of dupre.estimators such as permutation, or a Sample of "
            f"one, got {estimator!r}"
        )
    return estimator or estimators.regression, count or max(SAMPLES, 40 * sum(sizes))
