"""What is asked: which values of which owners, from which coalitions, by which strategy.

A question is checked when it is made, before anything is evaluated.

Notation: n owners, b coalitions that count, W (n, b) their weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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
from dupre.game.semivalues import Semivalue, parse_semivalue, shapley
from dupre.game.weights import Weights, check_weights
from dupre.predictor.form import check_prior
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Kernel, Prior
from dupre.valuation.first_design import add_heaviest, first_design
from dupre.valuation.sameness import Merged, Sameness, distances, merge, shared_rows

ENUMERATED_UP_TO = 16
"""Owners up to which all coalitions enter the values, unless an estimator is asked for."""

SAMPLES = 4_096
"""Coalitions drawn where not all enter the values, unless another number is asked for."""

# Of fewer owners fine sketches take a second each; of more owners a sample of coalitions counts.
COARSELY = range(15, 17)
"""Numbers of owners whose coalitions are compared at a coarse resolution."""

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


AnySemivalue = Semivalue | LeastCore | str
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
            single one, and all but every single one.
        check: coalitions drawn at random that the predictor is never shown, so that it is checked
            on them after every batch; 0 for none, otherwise at least 4. They follow the first
            design and count in the values. If the check fails, the values do not rely on the
            predictor.
        uniform: whether the first design is drawn uniformly.
        in_order: whether the order of evaluation is known from the start.
        corrected: whether the predictor's values are corrected by random draws.
    """

    batch: int | None = None
    first: int | None = None

    check: ClassVar[int] = 0
    uniform: ClassVar[bool] = False
    in_order: ClassVar[bool] = False
    corrected: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, count in (("batch", self.batch), ("first", self.first)):
            if count is not None:
                whole(count, name, least=1)
        whole(self.check, "check", least=0)

    @abstractmethod
    def choose(self, state: Any, k: int, rng: np.random.Generator) -> Ints:
        """The next k coalitions after the first design, some of `state.open`, the best first.

        The same state must give the same answer: take chance from `rng` alone. None to end the run.

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
        return replace(self, first=min(self.first or self.design(n), limit - self.check))

    def design(self, n: int) -> int:
        """How many coalitions of n owners must be evaluated before values are no first guess."""
        return 2 * n + 1


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, and all that is fixed for a run by it; `ask` makes one.

    Everything drawn here depends on the seed and on what is asked, never on utilities.

    Attributes:
        owners: whose data.
        semivalue: of which values, or which guides the search for a least core.
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
        # a core, 8 draws of cores, 9 larger sample, 10 order, 11 group sizes, 12 sizes between.
        return np.random.default_rng([self.seed, *purpose])

    def check_empty(self, utility: float) -> None:
        """Raise InputError if no data have a utility outside the bounds."""
        check_empty_within(utility, self.bounds)

    @property
    def prior(self) -> Prior:
        """What the predictor assumes."""
        return self.kernel if isinstance(self.kernel, Prior) else Prior(self.kernel)

    @property
    def batch(self) -> int:
        """Coalitions chosen at once after the first design."""
        return self.strategy.batch or self.owners.n

    @cached_property
    def merged(self) -> Merged:
        """The weights of the coalitions that enter the values; those that are one, once."""
        n = self.owners.n
        if self.estimator is None:
            return merge(estimators.exact(self.semivalue, n), self.sameness)
        drawn = self.estimator(self.semivalue, n, self.samples, self.rng(6))
        return merge(check_weights(drawn, n), self.sameness)

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
        n, rng = self.owners.n, self.rng(9)
        more = estimators.regression(self.semivalue, n, SAMPLES_OF_MEANS, rng)
        return merge(more, self.sameness)

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
        count = self.strategy.first or usual
        if self.strategy.in_order or self.strategy.uniform:
            return self.order[:count]
        # A design of the usual size is not drawn twice: values are no first guess once it is there.
        return self.most_important[:count] if count == usual else self._design(count)

    def _design(self, count: int) -> Ints:
        """Up to `count` coalitions to begin with."""
        rng = self.rng(1), self.rng(12)
        rows = self.owners.rows
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
        resolution = COARSE if self.owners.n in COARSELY else None
        return SketchCache(self.owners, seed=self.seed, resolution=resolution)

    def describe(self, members: Members, *, keep: bool = True) -> Features:
        """What kernels compare of coalitions, (m, n); `keep` if they will be asked for again."""
        sketch = self._sketch
        # A search for a least core looks at 60,000 coalitions once: keeping them would fill memory.
        vectors = sketch if sketch is None or keep else sketch.compute
        return Features(members, self.owners.rows, vectors)

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
    semivalue: Semivalue | LeastCore | str,
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
    chosen, samples = _check_estimator(estimator, owners.n)
    if kernel is not None and not isinstance(kernel, (Kernel, Prior)):
        raise InputError(f"kernel must be a Kernel or a Prior of dupre.kernels, got {kernel!r}")
    if not isinstance(by_content, bool):
        raise InputError(f"by_content must be True or False, got {by_content!r}")
    question = Question(
        owners,
        _check_semivalue(semivalue, owners.n),
        semivalue if isinstance(semivalue, LeastCore) else None,
        chosen,
        samples,
        estimator is None,
        strategy,
        kernel,
        Sameness(owners.n, owners.contents if by_content else None),
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


def _check_semivalue(asked: Semivalue | LeastCore, n: int) -> Semivalue:
    guide = asked.guide if isinstance(asked, LeastCore) else asked
    if not isinstance(guide, Semivalue):
        raise InputError(
            f"unknown semivalue {guide!r}; expected dupre.shapley, dupre.banzhaf, "
            "dupre.leave_one_out, dupre.beta_shapley(alpha, beta), a dupre.Semivalue or "
            "dupre.LeastCore()"
        )
    if isinstance(asked, LeastCore) and not guide.chances(n).all():
        raise InputError(
            f"every coalition counts in the least core, but {guide.name} leaves some out; take "
            "another guide"
        )
    return guide


def _check_estimator(asked: Estimator | Sample | None, n: int) -> tuple[Estimator | None, int]:
    """The estimator, None if all coalitions are to enter, and how many it draws."""
    estimator, count = (
        (asked.estimator, asked.count) if isinstance(asked, Sample) else (asked, None)
    )
    exact = cast("object", estimator) is estimators.exact
    if exact and (count is not None or n > ENUMERATED_UP_TO):
        raise InputError(
            f"estimator=exact predicts all 2^{n} - 1 = {2**n - 1:,} coalitions, for at most "
            f"{ENUMERATED_UP_TO} owners; leave it out to draw some"
        )
    if exact or (estimator is None and n <= ENUMERATED_UP_TO):
        return None, 2**n - 1
    if estimator is not None and not callable(estimator):
        raise InputError(
            "estimator must be a function of dupre.estimators such as permutation, or a Sample of "
            f"one, got {estimator!r}"
        )
    return estimator or estimators.regression, count or max(SAMPLES, 40 * n)
