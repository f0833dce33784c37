"""What is asked: which values of which owners, from which coalitions, by which strategy.

A question is checked when it is made, before anything is evaluated.

Notation: n owners, b coalitions that count, W (n, b) their weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from dupre._types import Floats
from dupre.checks import whole
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game import estimators
from dupre.game.coalitions import unknown_owner
from dupre.game.estimators import Estimator, Sample
from dupre.game.semivalues import Semivalue, parse_semivalue, shapley
from dupre.game.weights import Weights, check_weights
from dupre.predictor.kernels import Kernel, Prior
from dupre.valuation.strategies import Corrected, Drawn, Strategy, Uniform, check_strategy

ENUMERATED_UP_TO = 16
"""Owners up to which all coalitions enter the values, unless an estimator is asked for."""

SAMPLES = 4_096
"""Coalitions drawn where not all enter the values, unless another number is asked for."""

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


@dataclass(frozen=True, eq=False)
class Question:
    """A checked question; `ask` makes one.

    Attributes:
        owners: whose data.
        semivalue: of which values, or which guides the search for a least core.
        least_core: wanted instead of a semivalue, or None.
        estimator: draws the coalitions that enter the values; None if all do.
        samples: how many coalitions enter the values.
        by_default: whether the estimator is the default.
        strategy: what to evaluate next.
        kernel: of the predictor, or its prior, as it was given; None for dupre's.
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
    seed: int

    @property
    def prior(self) -> Prior:
        """What the predictor assumes."""
        return self.kernel if isinstance(self.kernel, Prior) else Prior(self.kernel)

    @property
    def first(self) -> int:
        """Coalitions of the first design."""
        return self.strategy.first or 2 * self.owners.n + 1

    @property
    def batch(self) -> int:
        """Coalitions chosen at once after it."""
        return self.strategy.batch or self.owners.n

    @property
    def check(self) -> int:
        """Coalitions that the predictor is never shown."""
        return self.strategy.check

    @property
    def in_order(self) -> bool:
        """Whether the order of evaluation is known from the start."""
        return isinstance(self.strategy, (Drawn, Uniform))

    @property
    def corrected(self) -> bool:
        """Whether the predictor's values are corrected by random draws."""
        return isinstance(self.strategy, Corrected)

    def weights(self) -> Weights:
        """The weights of the coalitions that enter the values."""
        n = self.owners.n
        if self.estimator is None:
            return estimators.exact(self.semivalue, n)
        rng = np.random.default_rng([self.seed, 6])
        return check_weights(self.estimator(self.semivalue, n, self.samples, rng), n)

    def more_weights(self) -> Weights | None:
        """Weights of a larger sample for expected values.

        None unless the sample is the default, and if it is no smaller itself, as it is for more
        than 409 owners.
        """
        if not self.by_default or self.estimator is None or self.samples >= SAMPLES_OF_MEANS:
            return None
        rng = np.random.default_rng([self.seed, 9])
        return estimators.regression(self.semivalue, self.owners.n, SAMPLES_OF_MEANS, rng)

    def functionals(self, W: Floats) -> Floats:
        """Sums of utilities whose variance active batches reduce, (f, b)."""
        names = _focus_names(self.strategy)
        if not names:
            return W
        rows = W[[self.owners.names.index(name) for name in names]]
        return rows if len(rows) == 1 else rows[:1] - rows[1:]


def ask(
    owners: Owners,
    *,
    semivalue: Semivalue | LeastCore | str,
    estimator: Estimator | Sample | None,
    strategy: Strategy | None,
    kernel: Kernel | Prior | None,
    seed: int,
) -> Question:
    """Check what is asked: the arguments of `Valuer`; InputError if they cannot be used."""
    check_owners(owners)
    if isinstance(semivalue, str):
        semivalue = parse_values(semivalue)
    least_core = semivalue if isinstance(semivalue, LeastCore) else None
    strategy = check_strategy(strategy)
    _check_focus(strategy, owners)
    chosen, samples = _check_estimator(estimator, owners.n)
    if isinstance(strategy, Drawn) and chosen is None:
        raise InputError(
            "Drawn() evaluates the coalitions of an estimator in its order: give estimator="
        )
    if isinstance(strategy, Corrected) and least_core:
        raise InputError("Corrected() is for semivalues; the least core is no sum to correct")
    if kernel is not None and not isinstance(kernel, (Kernel, Prior)):
        raise InputError(f"kernel must be a Kernel or a Prior of dupre.kernels, got {kernel!r}")
    return Question(
        owners,
        _check_semivalue(semivalue, owners.n),
        least_core,
        chosen,
        samples,
        estimator is None,
        strategy,
        kernel,
        whole(seed, "seed", least=0),
    )


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


def _focus_names(strategy: Strategy) -> tuple[str, ...]:
    """The owners that the budget is spent on; none for all."""
    focus = strategy.focus
    return () if focus is None else (focus,) if isinstance(focus, str) else focus


def _check_focus(strategy: Strategy, owners: Owners) -> None:
    if unknown := [name for name in _focus_names(strategy) if name not in owners.names]:
        raise unknown_owner(unknown[0], owners.names, "as focus of the strategy")


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
