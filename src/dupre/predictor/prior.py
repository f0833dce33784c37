"""What the predictor assumes of utilities before it has seen one: a kernel, a mean, a noise.

    dupre.value(owners, utility, budget=60, kernel=Prior(kernel, mean=LinearInSize()))

Utilities are divided by their standard deviation before a process is fitted, so variances of
kernels and the noise are relative to its square.

Notation: m coalitions, a of them evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dupre._types import Floats, Members
from dupre.errors import InputError
from dupre.predictor.kernel_algebra import Kernel
from dupre.predictor.kernel_inputs import Features

Mean = Callable[[Features], Floats]
"""The expected utilities, (m,), of m coalitions."""

ROLES = ("gamma", "variance")
"""Hyper-parameters of a kernel that can be held."""


@dataclass(frozen=True)
class Constant:
    """The same expected utility for all coalitions; `Constant(0.0)` is the paper's, as printed."""

    value: float

    def __call__(self, coalitions: Features) -> Floats:
        """Of m coalitions, (m,)."""
        return np.full(len(coalitions), float(self.value))


@dataclass(frozen=True)
class LinearInSize:
    """intercept + slope * log(1 + rows), by least squares on the evaluated coalitions."""

    intercept: float = 0.0
    slope: float = 0.0

    def __call__(self, coalitions: Features) -> Floats:
        """Of m coalitions, (m,)."""
        return np.asarray(self.intercept + self.slope * _size(coalitions))

    def learn(self, coalitions: Features, utilities: Floats) -> LinearInSize:
        """The line through these utilities, (a,)."""
        size = _size(coalitions)
        size = size - size.mean()
        slope = float(size @ utilities / (size @ size)) if np.ptp(size) > 0 else 0.0
        return LinearInSize(float(utilities.mean() - slope * _size(coalitions).mean()), slope)


@dataclass(frozen=True)
class Prior:
    """What `kernel=` takes where a kernel alone does not say enough.

    By default dupre does more than condition one process: it tries a curved scale of utilities,
    lets the spread depend on the number of rows, sets outliers aside, averages over
    hyper-parameters that explain the evaluations about as well, has weak priors on them, and widens
    intervals where left-out evaluations show them too narrow. With `plain=True` it does none of
    this. What is open is chosen by maximum marginal likelihood, and the posterior is that of DUPRE
    Prop. 3 as printed: the variance of predicted utilities does not contain the noise.

    Args:
        kernel: of `dupre.kernels`, or your own; None for dupre's. p, rho and eta that are None
            are chosen by the marginal likelihood.
        mean: expected utilities before any is seen: `Constant(0.5)`, `LinearInSize()`, or a
            callable that is given m coalitions as `Features` and returns (m,). If it has a method
            `learn(coalitions, utilities)`, what that returns is used. None for the mean of the
            evaluated utilities. No curved scale is tried around a stated mean.
        fixed: which hyper-parameters of the kernel keep their values: "gamma", "variance". All
            are learned by default.
        noise: variance of a utility around the process, held at this; None to learn it.
        plain: whether to condition one process and do nothing else.
    """

    kernel: Kernel | None = None
    mean: Mean | None = None
    fixed: tuple[str, ...] = ()
    noise: float | None = None
    plain: bool = False

    def __post_init__(self) -> None:
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise InputError(f"kernel must be a Kernel of dupre.kernels, got {self.kernel!r}")
        if self.mean is not None and not callable(self.mean):
            raise InputError(
                "mean must be Constant(...) or LinearInSize() of dupre.kernels, or a callable, got "
                f"{self.mean!r}"
            )
        names = (self.fixed,) if isinstance(self.fixed, str) else tuple(self.fixed)
        object.__setattr__(self, "fixed", names)
        if unknown := [name for name in names if name not in ROLES]:
            raise InputError(
                f"fixed can hold {' and '.join(map(repr, ROLES))}, got {unknown[0]!r}; p, rho and "
                "eta keep the values that a kernel states, noise= holds the noise"
            )
        if names and self.kernel is None:
            raise InputError("fixed= holds what a kernel states: give kernel= too")
        if self.noise is not None and not 0 < self.noise < np.inf:
            raise InputError(f"noise must be a positive number, got {self.noise!r}")

    def held(self, kernel: Kernel) -> Members:
        """Which of the hyper-parameters of a kernel, the noise and the decay keep their values."""
        noise = self.noise is not None
        return np.array([*(role in self.fixed for role in kernel.roles), noise, False], dtype=bool)

    def learn_mean(self, coalitions: Features, utilities: Floats) -> Prior:
        """With the mean that these utilities, (a,), suggest, if it is one that learns."""
        learn = getattr(self.mean, "learn", None)
        return self if learn is None else replace(self, mean=learn(coalitions, utilities))

    def expect(self, coalitions: Features) -> Floats:
        """The stated mean of m coalitions, (m,); zero if none is stated.

        Raises:
            InputError: the user's mean gives something else.
        """
        if self.mean is None:
            return np.zeros(len(coalitions))
        expected, asked = np.asarray(self.mean(coalitions), dtype=np.float64), (len(coalitions),)
        if expected.shape != asked or not np.isfinite(expected).all():
            got = "NaN or infinity" if expected.shape == asked else f"shape {expected.shape}"
            raise InputError(
                f"mean must give one finite number for each of {len(coalitions)} coalitions, got "
                f"{got}"
            )
        return expected

    @property
    def text(self) -> str:
        """What was asked for, in words; nothing if all is dupre's choice."""
        parts = [f"kernel {self.kernel.label}"] if self.kernel is not None else []
        if self.mean is not None:
            parts.append(f"prior mean {_describe(self.mean)}")
        parts += [f"{name} fixed" for name in self.fixed]
        if self.noise is not None:
            parts.append(f"noise {self.noise:g}")
        if self.plain:
            parts.append("plain posterior (one process, nothing averaged or widened)")
        return ", ".join(parts)


def _size(coalitions: Features) -> Floats:
    return np.asarray(np.log1p(coalitions.total_rows))


def _describe(mean: Mean) -> str:
    if isinstance(mean, Constant):
        return f"{mean.value:g}"
    if isinstance(mean, LinearInSize):
        return "linear in log(1 + rows)"
    return getattr(mean, "__name__", type(mean).__name__)
