"""Influence functions: what removing an owner would do to the validation loss, to first order.

The heuristic of Jia et al. 2019, "Towards efficient data valuation based on the Shapley value";
Koh & Liang 2017 for the estimate, Koh et al. 2019 for groups of rows.

Notation: N rows x of d columns, the last a constant 1; C classes, or C = 1 in regression. The
model is X @ V with weights V, (d, C), trained to the minimum of

    J(V) = sum over rows of loss + regularisation / 2 |V|^2

where the loss of a row is the cross-entropy of the softmax, or half the squared error. With
residuals R, (N, C), its gradient is x r^T.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_softmax, softmax

from dupre._types import Floats, Names
from dupre.baselines.baseline import Baseline, encode_together, from_values
from dupre.checks import positive
from dupre.data.owners import Embed, Owners
from dupre.errors import EvaluationError

STEPS = 100
"""Newton steps at most; strongly convex losses need about ten."""


def influence(
    owners: Owners, *, validation: Any, regularisation: float = 1.0, embed: Embed | None = None
) -> Baseline:
    """First-order estimate of how much the validation loss would rise without each owner.

    One training on all rows, of logistic regression (softmax, also with two classes) or ridge on
    the standardised columns; then grad L_val^T H^-1 (sum of the gradients of the owner's rows)
    with the exact Hessian H. The loss is the mean cross-entropy, or the mean squared error.

    This assumes the linear model stands for the model of interest, and that an owner's rows are
    few: groups of rows are underestimated the more, the larger they are (Koh et al. 2019). Like
    leave-one-out, it sees the grand coalition only.

    All weights are regularised, the constant's too; y of a regression is measured from its mean
    over all owners. H is dense, (d C, d C).

    Args:
        owners: to be valued.
        validation: (X, y), or a frame with the owners' target column.
        regularisation: of the weights, against the sum over all rows of their losses.
        embed: the callable the owners were made with, if they were.
    """
    penalty = positive(regularisation, "regularisation")
    together = encode_together(owners, validation, embed)
    X, X_val = (_design(together.values[rows]) for rows in (together.held, together.asked))
    classes = owners.task == "classification"
    if classes:
        every = np.unique(np.concatenate([owners.y, together.targets]))
        Y, Y_val = ((y[:, None] == every) * 1.0 for y in (owners.y, together.targets))
    else:
        Y, Y_val = (y[:, None] - owners.y.mean() for y in (owners.y, together.targets))
    V = _train(X, Y, classes, penalty, owners.names)
    R, R_val = _residuals(X, V, Y, classes), _residuals(X_val, V, Y_val, classes)
    slope = X_val.T @ R_val * ((1.0 if classes else 2.0) / len(X_val))
    moved = _solve(_hessian(X, V, classes, penalty), slope)
    rise = np.bincount(owners.owner, np.sum((X @ moved) * R, axis=1), minlength=owners.n)
    return from_values(owners, np.asarray(rise, dtype=np.float64), trained=1)


def _train(X: Floats, Y: Floats, classes: bool, penalty: float, names: Names) -> Floats:
    """Weights, (d, C), at the minimum of J, by Newton's method with halved steps."""
    V = np.zeros((X.shape[1], Y.shape[1]))
    height = _objective(X, V, Y, classes, penalty)
    for _ in range(STEPS):
        slope = X.T @ _residuals(X, V, Y, classes) + penalty * V
        step = _solve(_hessian(X, V, classes, penalty), slope)
        gain = float(np.sum(step * slope))
        if gain <= 1e-12 * height:  # the next error is of the order of its square
            return np.asarray(V - step)
        length = 1.0
        while (lower := _objective(X, V - length * step, Y, classes, penalty)) > (
            height - 0.1 * length * gain
        ):
            length /= 2
        V, height = V - length * step, lower
    raise EvaluationError(
        f"the linear model did not converge in {STEPS} Newton steps; raise regularisation=",
        members=names,
    )


def _objective(X: Floats, V: Floats, Y: Floats, classes: bool, penalty: float) -> float:
    """J(V)."""
    Z = X @ V
    loss = -np.sum(Y * log_softmax(Z, axis=1)) if classes else np.sum((Z - Y) ** 2) / 2
    return float(loss + penalty / 2 * np.sum(V**2))


def _residuals(X: Floats, V: Floats, Y: Floats, classes: bool) -> Floats:
    """Prediction minus truth, (N, C)."""
    Z = X @ V
    return np.asarray((softmax(Z, axis=1) if classes else Z) - Y)


def _hessian(X: Floats, V: Floats, classes: bool, penalty: float) -> Floats:
    """Second derivatives of J at V, (d C, d C), for V.ravel()."""
    d, C = V.shape
    P = softmax(X @ V, axis=1) if classes else np.zeros((len(X), 1))
    H = np.empty((d, C, d, C))
    for c in range(C):
        for e in range(c + 1):
            curvature = P[:, c] * ((c == e) - P[:, e]) if classes else np.ones(len(X))
            H[:, c, :, e] = H[:, e, :, c] = X.T @ (curvature[:, None] * X)
    return H.reshape(d * C, d * C) + penalty * np.eye(d * C)


def _solve(H: Floats, slope: Floats) -> Floats:
    """H^-1 slope, in the shape of slope, (d, C)."""
    return np.asarray(cho_solve(cho_factor(H), slope.ravel())).reshape(slope.shape)


def _design(points: Floats | sparse.csr_array) -> Floats:
    """The points and a constant, (rows, d), dense."""
    dense = points.toarray() if isinstance(points, sparse.csr_array) else points
    return np.column_stack([dense, np.ones(dense.shape[0])])
