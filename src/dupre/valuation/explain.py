"""What is shown besides the values: predictions to compare, and contributions by group size.

Every prediction here is of a coalition that the predictor was not shown: each evaluated one is
predicted from the others, which follows from the Cholesky factor (RW06 Eq. 5.12).

What owners add to groups of 0, 1, 2, ... others is a semivalue for each size, whose coalitions are
few: all of them up to 12 owners, and a sample above that, whose error is part of the intervals. It
costs no training. Nor do Shapley values beside those that depend on who joined first.

Notation: n owners, b coalitions with weights W (n, b), p positions as in `state`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dupre._types import Floats, Ints, Members, Names
from dupre.errors import InputError
from dupre.game import estimators
from dupre.game.coalitions import to_names
from dupre.game.semivalues import MOST_SIZES, Semivalue, group_sizes, joining
from dupre.game.weights import Weights
from dupre.predictor.calibration import std_of_a_training, student
from dupre.predictor.gp import EXACT_UP_TO, GaussianProcess
from dupre.predictor.student import Spread
from dupre.predictor.warp import Warp
from dupre.result.covariances import roots
from dupre.result.records import Joining, ReadOnlyArrays
from dupre.valuation.sameness import merge
from dupre.valuation.state import State
from dupre.valuation.validation_rows import Deviations, deviations

MOST_PREDICTED = 256
"""Coalitions not evaluated that are shown as a sample of all."""

SAMPLES = 512
"""Coalitions drawn for each size if not all are taken; 10n if that is more."""

# A predictor that has seen no single owners is overconfident of them (`first_design`). In 168 games
# of 3 to 6 owners who joined in turn, 86 % of the intervals held the truth, and so wide 97 %.
UNSEEN_ALONE = 2.0
"""How much wider intervals of Shapley values are where some owner was never trained alone."""

SAMPLES_OF_VALUES = 4_096
"""Coalitions drawn for values of another rule: as many as for variances of the values."""


def evaluations_and_predictions(state: State) -> pd.DataFrame:
    """Every evaluated coalition and a sample of the others: see `records.Evidence`."""
    owners, sizes = state.question.owners, state.sizes
    known = np.flatnonzero(state.recorded)
    others = _some_of_each_size(state.unknown, sizes[state.unknown])
    index = np.append(known, others)
    predicted, std = np.full(len(index), np.nan), np.full(len(index), np.nan)
    if others.size:
        of_known, of_others = _predict_without(state, known), _predict(state, others)
        predicted, std = (np.append(a, b) for a, b in zip(of_known, of_others, strict=True))
    return pd.DataFrame(
        {
            "members": [to_names(row, owners.names) for row in state.members[index]],
            "size": sizes[index],
            "rows": state.members[index] @ owners.rows,
            "utility": state.utilities[index],
            "predicted": predicted,
            "std": std,
        }
    )


def predict_utilities(state: State, members: Members) -> pd.DataFrame:
    """Utilities of any coalitions, (m, n), as evaluated or predicted: see `Valuer.predict`."""
    mean, std = state.beliefs.predict(members)
    known = state.utilities_at(members)
    evaluated = ~np.isnan(known)
    mean[evaluated], std[evaluated] = known[evaluated], 0.0
    names = [to_names(row, state.question.owners.names) for row in members]
    limits = state.beliefs.predictor.bounds
    half = Spread(std, np.zeros_like(std), student(state.beliefs.predictor.gp).freedom).half_width()
    low, high = (np.clip(mean + side * half, *limits) for side in (-1, 1))
    columns = {"members": names, "utility": mean, "std": std, "low": low, "high": high}
    return pd.DataFrame(columns | {"evaluated": evaluated})


def _predict(state: State, index: Ints) -> tuple[Floats, Floats]:
    """Predictions of some unknown coalitions, (m,) each: those that the values are made of."""
    unknown, beliefs = state.unknown, state.beliefs
    if len(unknown) > EXACT_UP_TO:  # the posterior has variances of a sample only
        return beliefs.predict(state.members[index])
    posterior, at = beliefs.averaged, np.searchsorted(unknown, index)
    return posterior.mean[at], std_of_a_training(beliefs.predictor, posterior.std[at])


def _predict_without(state: State, known: Ints) -> tuple[Floats, Floats]:
    """Predictions of evaluated coalitions from the others, (m,) each."""
    learned, fitted = state.beliefs.predictor, state.beliefs.fitted
    mean, variance = learned.gp.leave_one_out()
    utility, slope = learned.gp.scale.back(mean, variance, learned.gp.inputs)
    std = std_of_a_training(learned, np.sqrt(variance) * slope)
    rest = np.setdiff1d(known, fitted)  # outliers, and check coalitions
    others = state.beliefs.predict(state.members[rest])
    order = np.argsort(np.append(fitted, rest))
    utility = np.clip(utility, *learned.bounds)
    return np.append(utility, others[0])[order], np.append(std, others[1])[order]


def _some_of_each_size(index: Ints, sizes: Ints) -> Ints:
    """At most MOST_PREDICTED of some coalitions, spread evenly over their sizes."""
    turn = np.zeros(len(index))
    for size in np.unique(sizes):
        ours = np.flatnonzero(sizes == size)
        # The golden ratio spreads any first few of them over all of their size.
        turn[ours[np.argsort(np.arange(len(ours)) * 0.6180339887498949 % 1)]] = np.arange(len(ours))
    return np.sort(index[np.argsort(turn, kind="stable")[:MOST_PREDICTED]])


@dataclass(frozen=True, eq=False)
class JointPosterior(ReadOnlyArrays):
    """What is believed of the utilities of m coalitions together.

    Attributes:
        coalitions: owner names of each, length m.
        mean: of their utilities, (m,).
        covariance: of a training of each, (m, m); the roots of its diagonal are the `std` of
            `Valuer.predict`. Zero where a coalition was evaluated.
    """

    coalitions: tuple[Names, ...]
    mean: Floats
    covariance: Floats


def joint_posterior(state: State, members: Members) -> JointPosterior:
    """Mean and covariance of the utilities of any coalitions, (m, n).

    Correlations are those of the mixture of all processes: each has a covariance of its own, and
    their means differ. Standard deviations are those of `predict_utilities`.
    """
    if len(members) > EXACT_UP_TO:
        raise InputError(
            f"the covariance of {len(members):,} coalitions was asked for; expected at most "
            f"{EXACT_UP_TO:,}; `predict` has standard deviations of any number"
        )
    inputs, each = state.features_of(members), np.eye(len(members))
    processes = state.beliefs.predictor.processes
    weights = np.array([weight for weight, _ in processes])
    found = [gp.posterior(inputs, each) for _, gp in processes]
    apart = np.array([of.mean for of in found])
    apart -= weights @ apart
    covariance = (apart.T * weights) @ apart
    for weight, of in zip(weights, found, strict=True):
        covariance += weight * of.functional_covariance()
    own, predicted = roots(np.diag(covariance)), predict_utilities(state, members)
    scale = predicted["std"].to_numpy() / np.where(own > 0, own, 1.0)
    mean = predicted["utility"].to_numpy()
    return JointPosterior(tuple(predicted["members"]), mean, covariance * np.outer(scale, scale))


def forms(state: State) -> pd.DataFrame:
    """The forms of predictor that were tried: see `Valuer.forms`."""
    predictor = state.beliefs.predictor
    weight = dict.fromkeys(map(_form, predictor.fits), 0.0)
    for share, gp in predictor.processes:  # drawn around the fit of their form
        weight[_form(gp)] += share
    rows = [
        {
            "kernel": gp.kernel,
            "curved": gp.scale.warp.curved,
            "noise": gp.noise,
            "decay": gp.scale.amplitude.decay,
            "log_likelihood": gp.log_likelihood,
            "weight": weight[_form(gp)],
        }
        for gp in predictor.fits
    ]
    return pd.DataFrame(rows).sort_values(
        ["weight", "log_likelihood"], ascending=False, kind="stable", ignore_index=True
    )


def _form(gp: GaussianProcess) -> tuple[str, Warp]:
    """Equal for processes that differ in learned hyper-parameters alone."""
    return repr(gp.kernel.with_theta(np.zeros_like(gp.kernel.theta))), gp.scale.warp


def contributions_by_size(state: State) -> pd.DataFrame:
    """Mean contribution of each owner to groups of each size.

    The columns are `owner`, `others` (in the group), `value`, and `low` and `high`, between which
    it lies with 95 %, all sources of uncertainty included. Of more than 12 owners 12 sizes are
    taken. Sizes below the smallest group that was evaluated are left out: nothing shows how
    utilities fall off there. Empty if values do without the predictor because it failed its check,
    and if owners joined in turn: those who came later meet no small groups.
    """
    names = state.question.owners.names
    # Below the smallest group that was evaluated nothing shows how utilities fall off.
    smallest = int(state.sizes[state.recorded].min())
    sizes = [s for s in group_sizes(len(names)) if s >= smallest or s + 1 == smallest == 1]
    if not sizes or state.question.precedence is not None or state.beliefs.check_failed:
        return pd.DataFrame(columns=["owner", "others", "value", "low", "high"])
    off = deviations(state)
    weighed = [_weights(state, joining(int(others)), SAMPLES, 11, int(others)) for others in sizes]
    found = [_values(state, weights, off) for weights in weighed]
    mean, half = np.array(found).transpose(1, 2, 0).reshape(2, -1)
    return pd.DataFrame(
        {
            "owner": [name for name in names for _ in sizes],
            "others": np.tile(sizes, len(names)),
            "value": mean,
            "low": mean - half,
            "high": mean + half,
        }
    )


def joining_of(state: State) -> Joining | None:
    """Who joined first, and Shapley values as if nobody had; None if values do not depend on it.

    They are mostly predicted: the values need no group without those who came first.
    """
    question = state.question
    if question.precedence is None:
        return None
    mean = half = np.full(question.owners.n, np.nan)
    if not state.beliefs.check_failed:
        weights = _weights(state, question.semivalue, SAMPLES_OF_VALUES, 13)
        mean, half = _values(state, weights, deviations(state))
        if np.isnan(state.utilities_at(np.eye(question.owners.n, dtype=bool))).any():
            half *= UNSEEN_ALONE
    columns = {"value": mean, "low": mean - half, "high": mean + half}
    symmetric = pd.DataFrame({"owner": question.owners.names} | columns)
    return Joining(question.precedence.cohorts, symmetric)


def _weights(state: State, semivalue: Semivalue, samples: int, *purpose: int) -> Weights:
    """Of the coalitions that enter a semivalue of all owners, as one cohort."""
    question, n = state.question, state.question.owners.n
    listed = question.estimator is None and question.precedence is None
    if n <= MOST_SIZES or (listed and not state.unknown.size):
        found = estimators.exact(semivalue, n)
        counts = found.W.any(axis=0)
        return Weights(found.members[counts], found.W[:, counts], found.empty)
    return estimators.regression(semivalue, n, max(samples, 10 * n), question.rng(*purpose))


def _values(state: State, weights: Weights, off: Deviations | None) -> tuple[Floats, Floats]:
    """Values by other weights, and half the widths of their intervals, (n,) each."""
    same = state.question.sameness.symmetric
    merged = merge(weights, same)
    mean, spread, utilities = estimate(state, merged.weights, off)
    sampling = merged.sampling_covariance(utilities, state.observed.empty, np.zeros(len(utilities)))
    student = spread.student + roots(np.diag(sampling))  # DUPRE Remark 1
    half = Spread(student, spread.normal, spread.freedom).half_width()
    return same.equal(mean), same.equal(half)


def estimate(
    state: State, weights: Weights, off: Deviations | None
) -> tuple[Floats, Spread, Floats]:
    """Sums of utilities with any weights, (f, m), and what they are made of.

    Returns:
        the sums as expected, (f,); the spread of their errors, but for the deal of the folds and
        the choice of the coalitions; and the utilities, (m,), those without a weight as zero.
    """
    beliefs, members, W, empty = state.beliefs, weights.members, weights.W, weights.empty
    at, counts = state.positions(members), W.any(axis=0)
    utilities = np.append(state.utilities, np.nan)[at]
    recorded = counts & ~np.isnan(utilities)
    unknown = np.flatnonzero(counts & ~recorded)
    M = np.zeros((len(W), len(state.members)))
    M[:, at[recorded]] = W[:, recorded]
    noise = M**2 @ state.widened_variances
    predicted, freedom = np.zeros_like(noise), None
    if unknown.size:
        learned = beliefs.predictor
        posterior = learned.posterior(state.features_of(members[unknown]), W[:, unknown])
        utilities[unknown] = posterior.mean
        tail = student(learned.gp)
        freedom, own = tail.freedom, np.diag(posterior.functional_covariance()) * tail.scale**2
        predicted = own + learned.outlier_variance * np.sum(posterior.W**2, axis=1)
        M[:, beliefs.fitted] += posterior.observed_weights
    utilities[~counts] = 0.0
    if off is not None:
        used = state.recorded
        change = M[:, used] @ off.evaluated[used] + np.outer(empty, off.empty)
        noise = noise + np.mean(change**2, axis=1)
    mean = W @ utilities + empty * state.observed.empty
    return mean, Spread(roots(predicted), roots(noise), freedom), utilities
