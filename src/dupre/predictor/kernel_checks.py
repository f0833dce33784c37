"""Is a kernel of the user's own valid? Checked on some coalitions before anything is evaluated.

Kernels of dupre are valid by their proofs. Of a kernel made of several, each of the user's own is
checked by itself, so that the error names the right one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dupre._types import Floats
from dupre.errors import InputError
from dupre.predictor.fitting import BOUNDS
from dupre.predictor.form import Form
from dupre.predictor.kernel_algebra import Kernel, Product, Scaled, Sum
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Exponential
from dupre.predictor.prior import Prior

PROBES = 64
"""Coalitions at most on which a kernel is checked."""

ROUNDING = 1e-8
"""A negative eigenvalue that is smaller than this, relative to the largest entry, is rounding."""


def check_prior(prior: Prior, inputs: Features) -> None:
    """Try a kernel and a mean on up to PROBES of some coalitions.

    Raises:
        InputError: the kernel needs rows that are not there, or it or the mean is not valid.
    """
    spread = np.unique(np.linspace(0, len(inputs) - 1, PROBES).astype(np.int64))
    some = inputs[spread]
    prior.learn_mean(some, np.zeros(len(some))).expect(some)
    kernel = Form(given=prior.kernel).kernel()
    for part in _own_parts(kernel):
        _check_matrices(part, some)
    kernel.distances(some[:1], some[:1])


def _own_parts(kernel: Kernel) -> list[Kernel]:
    """The kernels that others are made of, as far as the user wrote them."""
    if isinstance(kernel, Scaled):
        return _own_parts(kernel.kernel)
    if isinstance(kernel, (Sum, Product)):
        return [own for part in kernel.kernels for own in _own_parts(part)]
    return [] if type(kernel).__module__.partition(".")[0] == "dupre" else [kernel]


def _check_matrices(kernel: Kernel, inputs: Features) -> None:
    """Check the matrix of a kernel for hyper-parameters all over their bounds."""
    name, distances = type(kernel).__name__, kernel.distances(inputs, inputs)
    if isinstance(kernel, Exponential):  # only then are they a matrix
        _check_numbers(name, distances, len(inputs))
    middle = kernel.at_median(distances)
    is_gamma = np.array([role == "gamma" for role in kernel.roles], dtype=bool)
    for shift in np.linspace(*BOUNDS["gamma"], 6):
        K = middle.with_theta(middle.theta + shift * is_gamma).evaluate(distances)
        K = _check_numbers(name, K, len(inputs))
        scale = float(np.abs(K).max())
        if not np.allclose(K, K.T, atol=ROUNDING * scale):
            raise InputError(
                f"the kernel {name} is not symmetric: k(A, B) must equal k(B, A); correct its "
                "`distance`"
            )
        if (smallest := _smallest_eigenvalue(K)) < -ROUNDING * scale:
            raise InputError(
                f"the kernel {name} is not positive semi-definite: the smallest eigenvalue of its "
                f"matrix of {len(inputs)} coalitions is {smallest:.3g}; `distance` must be the "
                "square of a Euclidean distance between descriptions of coalitions"
            )


def _check_numbers(name: str, found: Any, count: int) -> Floats:
    """A matrix of finite numbers, (count, count), as it is; else an InputError."""
    try:
        matrix = np.asarray(found, dtype=np.float64)
        got = f"shape {matrix.shape}" if matrix.shape != (count, count) else "NaN or infinity"
    except (TypeError, ValueError):
        matrix, got = np.empty(0), type(found).__name__
    if matrix.shape != (count, count) or not np.isfinite(matrix).all():
        raise InputError(
            f"the kernel {name} must give finite numbers of shape {(count, count)}, got {got}; "
            "correct its `distance`"
        )
    return matrix


def _smallest_eigenvalue(K: Floats) -> float:
    return float(np.linalg.eigvalsh((K + K.T) / 2)[0])
