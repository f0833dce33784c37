"""Predictions averaged over several Gaussian processes, weighted by their marginal likelihood.

No single form of kernel and no single set of hyper-parameters is known to be right. Predictions of
all that explain the evaluations about equally well are averaged (Bayesian model averaging, Hoeting
et al. 1999). The mean is that of all; their differences are part of the variance.

The covariance of functionals costs O(b²) per process, the variances of single predictions only
O(b). So the covariance is computed for the best process alone, and multiplied by the ratio of the
average of the variances to those of the best process.

Notation: b predicted coalitions, W (f, b) functionals of their utilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dupre._types import Floats
from dupre.game.blocks import compute_blocks
from dupre.predictor.gp import GaussianProcess, Posterior
from dupre.predictor.kernel_inputs import tiles
from dupre.predictor.warp import NO_LATTICE, Lattice


@dataclass(frozen=True, eq=False)
class AveragedPosterior:
    """The prediction of b coalitions and of f linear functionals of them by several processes.

    Attributes:
        best: the posterior of the best process.
        means: of the utilities by each of k processes, (k, b).
        variances: of the utilities by each, noise included, (k, m): of the m that stand for all
            in sums, which are all of up to EXACT_UP_TO coalitions.
        weights: of the processes, (k,); they sum to 1.
        observed_weights: how much W @ mean changes with each evaluated utility, (f, a).
        bounds: between which the means lie.
        lattice: the only numbers that utilities can be.
    """

    best: Posterior
    means: Floats
    variances: Floats
    weights: Floats
    observed_weights: Floats
    bounds: tuple[float, float] = (-np.inf, np.inf)
    lattice: Lattice = NO_LATTICE

    @property
    def W(self) -> Floats:
        """The functionals, (f, b)."""
        return self.best.W

    @property
    def mean(self) -> Floats:
        """Of the utilities, (b,)."""
        return np.clip(self._average, *self.bounds)

    @property
    def _average(self) -> Floats:
        return np.asarray(self.weights @ self.means)

    @property
    def std(self) -> Floats:
        """Standard deviation of each of up to EXACT_UP_TO utilities, noise included, (b,)."""
        return np.sqrt(np.maximum(self._variance, self._least_variance))

    @property
    def _variance(self) -> Floats:
        """Of the m utilities that stand for all, by the processes, (m,)."""
        at, _ = self.best.sample
        between = (self.means[:, at] - self._average[at]) ** 2
        return np.asarray(self.weights @ (self.variances + between))

    @property
    def _least_variance(self) -> Floats:
        """Of each of the m, because of the lattice, (m,)."""
        at, _ = self.best.sample
        return self.lattice.least_variance(self.mean[at])

    def functional_covariance(self) -> Floats:
        """Covariance of W @ u, (f, f), noise of the predicted utilities included.

        What a lattice adds to variances counts as independent for each coalition.
        """
        covariance = self._covariance_by_processes()
        if not self.lattice.is_any:
            at, times = self.best.sample
            jumps = np.maximum(self._least_variance - self._variance, 0.0)
            covariance = covariance + (self.W[:, at] * (jumps * times)) @ self.W[:, at].T
        return covariance

    def _covariance_by_processes(self) -> Floats:
        if len(self.weights) == 1:
            return self.best.functional_covariance()
        at, times = self.best.sample
        counts = np.einsum("fb,fb->b", self.W, self.W)[at] * times
        own = self.best.variance_of_utilities(at)
        larger = self.weights @ self.variances @ counts / (own @ counts)
        apart = (self.means - self._average) @ self.W.T
        # The differences of means count in full: they are O(b) for each process.
        within = larger * self.best.functional_covariance()
        return np.asarray(within + (apart.T * self.weights) @ apart)


def average_posterior(
    best: Posterior, processes: Sequence[tuple[float, GaussianProcess]]
) -> AveragedPosterior:
    """The same prediction by several processes.

    Args:
        best: prediction of b coalitions and of functionals W, (f, b), whose covariance is used.
        processes: those whose means and variances are averaged, with their weights.
    """
    at, _ = best.sample
    count, b = len(processes), len(best.inputs)
    means, variances = np.empty((count, b)), np.empty((count, len(at)))
    observed = np.zeros((len(best.W), len(best.gp.utilities)))
    for i, (weight, gp) in enumerate(processes):
        if gp is best.gp:
            means[i], variances[i] = best.mean, best.variance_of_utilities(at)
            observed += weight * best.observed_weights()
        elif len(at) < b:
            variances[i] = gp.posterior(best.inputs[at]).std ** 2
    others = {i: gp for i, (_, gp) in enumerate(processes) if gp is not best.gp}
    inner = _predict_each(others, best, means, variances if len(at) == b else None)
    for i, gp in others.items():
        observed += processes[i][0] * gp.observed_weights(gp.explain(inner[i]), best.W)
    weights = np.array([weight for weight, _ in processes])
    return AveragedPosterior(best, means, variances, weights, observed)


def _predict_each(
    processes: dict[int, GaussianProcess],
    best: Posterior,
    means: Floats,
    variances: Floats | None,
) -> dict[int, Floats]:
    """K_AB (W du/dz)^T of each process, (a, f).

    Args:
        processes: those that predict, by their rows in `means` and `variances`.
        best: the prediction of the same coalitions by another process.
        means: is filled with the means of the utilities, (k, b).
        variances: is filled with their variances, noise included, (k, b); None if that is not
            needed.
    """
    forms = {i: _form(gp) for i, gp in processes.items()}

    def predict(columns: slice) -> dict[int, Floats]:
        some, distances, products = best.inputs[columns], {}, {}
        for i, gp in processes.items():
            if forms[i] not in distances:
                distances[forms[i]] = gp.kernel.distances(gp.inputs, some)
            K = gp.kernel.evaluate(distances[forms[i]])
            explained = None if variances is None else gp.explain(K)
            means[i, columns], slope = gp.back_from(K, some, explained)
            if variances is not None and explained is not None:
                variance = gp.remaining(explained, some) + gp.noise_of_predicted
                variances[i, columns] = variance * slope**2
            products[i] = K @ (best.W[:, columns] * slope).T
        return products

    inner = {i: np.zeros((len(gp.utilities), len(best.W))) for i, gp in processes.items()}
    for products in compute_blocks(predict, tiles(len(best.inputs), len(best.gp.inputs))):
        for i, product in products.items():
            inner[i] += product
    return inner


def _form(gp: GaussianProcess) -> tuple[int, str]:
    """Equal for processes that differ in hyper-parameters alone: their distances are the same."""
    return id(gp.inputs), repr(gp.kernel.with_theta(np.zeros_like(gp.kernel.theta)))
