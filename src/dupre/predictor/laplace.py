"""Hyper-parameters around the most probable ones.

The second derivatives of their log density give a normal distribution around the most probable ones
(Laplace's approximation, RW06 Sec. 3.4.2 and 5.2). Processes with hyper-parameters drawn from it,
each with its importance weight, represent the uncertainty about them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dupre._types import Floats, Ints
from dupre.predictor import fitting
from dupre.predictor.fitting import Problem, condition_at_least, position
from dupre.predictor.gp import GaussianProcess
from dupre.predictor.search import second_derivatives

MOST_WEIGHT = 2.0
"""Largest logarithm of an importance weight."""


def sample_around(
    gp: GaussianProcess, *, pairs: int, least_noise: float = 0.0
) -> list[tuple[float, GaussianProcess]]:
    """Processes with hyper-parameters drawn around the learned ones, with weights that sum to 1.

    Draws are symmetric pairs, the same every time. With more than LEARN_ON evaluations the
    hyper-parameters are known well enough: the only process is the given one. So it is if the
    posterior is to be plain. `least_noise` is that of `fit`.
    """
    free = np.flatnonzero(~gp.prior.held(gp.kernel))
    if len(gp.utilities) > fitting.LEARN_ON or gp.prior.plain:
        return [(1.0, gp)]
    measured = gp.measured * gp.slope**2  # in units of utility
    reference = gp.amplitude.reference
    how: dict[str, Any] = {"warp": gp.warp, "reference": reference, "prior": gp.prior}
    problem = fitting.problem_of(gp.kernel, gp.inputs, gp.utilities, measured, **how)
    centre = position(gp)
    value, root = _curvature_root(problem, centre, free)
    normal = np.random.default_rng(0).standard_normal((pairs, len(free)))
    normal = np.concatenate([normal, -normal])
    slope, decays = gp.warp.slope(gp.utilities), gp.amplitude.decay != 0
    low, high = fitting.limits(gp.kernel, least_noise, slope, decays=decays)
    drawn = np.tile(centre, (len(normal), 1))
    drawn[:, free] = np.clip(centre[free] + normal @ root.T, low[free], high[free])
    how |= {"measured": measured, "distances": problem.distances}
    processes = [condition_at_least(problem.form, x, gp.inputs, gp.utilities, **how) for x in drawn]
    height = np.array([_height(problem, *each) for each in zip(drawn, processes, strict=True)])
    # Truncated: no single draw may dominate.
    log_weight = np.minimum(value - height + np.sum(normal**2, axis=1) / 2, MOST_WEIGHT)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    return list(zip(weight.tolist(), processes, strict=True))


def _curvature_root(problem: Problem, centre: Floats, free: Ints) -> tuple[float, Floats]:
    """The value at the minimum, and a root of the inverse of its second derivatives by free x."""
    value, gradient = problem(centre)
    scale, axes = np.linalg.eigh(second_derivatives(problem, centre, gradient, free))
    # At a bound, or by rounding, a direction can seem flat; with the prior it is not.
    scale = np.maximum(scale, 0.5 / float(problem.spread[free].max()) ** 2)
    return value, np.linalg.cholesky((axes / scale) @ axes.T)  # unique, whatever the axes


def _height(problem: Problem, x: Floats, gp: GaussianProcess) -> float:
    """The value of the problem at x, given the process with these hyper-parameters."""
    if gp.noise > 1.5 * float(np.exp(x[-2])):  # x itself is numerically impossible
        return 1e25
    residuals = gp.utilities - gp.prior.expect(gp.inputs)
    t = (x - problem.mean) / problem.spread
    return gp.warp.log_slope(residuals) - gp.log_likelihood + float(t @ t) / 2
