"""What a Gaussian process says of coalitions not evaluated, and of sums of their utilities.

Up to EXACT_UP_TO coalitions are compared with each other. For more, module `landmarks` needs fewer
entries of the kernel, and variances of single coalitions are computed where they are needed.

Notation (docs/notation.md): a evaluated coalitions A, b predicted ones B, W (f, b) functionals;
K = kernel matrix, L the Cholesky factor of the evaluated with noise on the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dupre._types import Floats, Ints
from dupre.predictor.kernel_inputs import Features, tiles
from dupre.predictor.kernel_products import multiply
from dupre.predictor.landmarks import SAMPLE, Landmarks, find_landmarks, sample_by_weight

if TYPE_CHECKING:
    from dupre.predictor.gp import GaussianProcess


@dataclass(frozen=True, eq=False)
class Posterior:
    """The prediction of b coalitions and of f linear functionals of them by one process.

    Attributes:
        gp: the process.
        inputs: the b coalitions.
        W: the functionals, (f, b).
        mean: of the utilities, (b,).
        slope: du/dz at the mean, (b,).
        inner: L^-1 K_AB (W slope)^T, (a, f).
        explained: L^-1 K_AB, (a, b); None for more than EXACT_UP_TO coalitions.
    """

    gp: GaussianProcess
    inputs: Features
    W: Floats
    mean: Floats
    slope: Floats
    inner: Floats
    explained: Floats | None

    @cached_property
    def variance(self) -> Floats:
        """Of the z of each coalition, without noise, (b,)."""
        every = np.arange(len(self.inputs))
        parts = [self.variance_of(every[columns]) for columns in tiles(len(every))]
        return np.concatenate([np.empty(0), *parts])

    def variance_of(self, index: Ints) -> Floats:
        """Of the z of some coalitions, without noise, (len(index),)."""
        return self.gp.remaining(self.explain(index), self.inputs[index])

    def explain(self, index: Ints) -> Floats:
        """L^-1 K_AB of some coalitions, (a, len(index))."""
        if self.explained is not None:
            every = np.array_equal(index, np.arange(len(self.inputs)))
            return self.explained if every else np.asarray(self.explained[:, index])
        key = index.tobytes()
        if key not in self._latest:
            self._latest.clear()
            self._latest[key] = self.gp.explain(self.gp.kernel(self.gp.inputs, self.inputs[index]))
        return self._latest[key]

    @cached_property
    def _latest(self) -> dict[bytes, Floats]:
        """What `explain` was asked for last, for it is asked several times in a row."""
        return {}

    @property
    def std(self) -> Floats:
        """Standard deviation of each utility if it were evaluated, noise included, (b,)."""
        return np.asarray(np.sqrt(self.variance + self.gp.noise_of_predicted) * self.slope)

    def variance_of_utilities(self, index: Ints) -> Floats:
        """Of some utilities if they were evaluated, noise included, (len(index),)."""
        z = self.variance_of(index) + self.gp.noise_of_predicted
        return np.asarray(z * self.slope[index] ** 2)

    def functional_covariance(self) -> Floats:
        """Covariance of W @ u, (f, f), noise of the predicted utilities included.

        Of more than EXACT_UP_TO coalitions by `Landmarks`.
        """
        WJ, noise = self.W * self.slope, self.gp.noise_of_predicted
        if self.landmarks is not None:
            product, rest = self.landmarks.product, self.landmarks.covariance_of_rest(self)
            return np.asarray(product.T @ product + rest + noise * WJ @ WJ.T)
        covariance = WJ @ self._prior_product + noise * WJ @ WJ.T - self.inner.T @ self.inner
        return np.asarray((covariance + covariance.T) / 2)

    @cached_property
    def _prior_product(self) -> Floats:
        """K_BB (W slope)^T, (b, f)."""
        return multiply(self.gp.kernel, self.inputs, self.inputs, (self.W * self.slope).T)

    def observed_weights(self) -> Floats:
        """How much W @ mean changes with each evaluated utility, (f, a), to first order."""
        return self.gp.observed_weights(self.inner, self.W)

    def functional_variance(self) -> Floats:
        """Variance of each of the functionals, (f,)."""
        return np.maximum(np.diag(self.functional_covariance()), 0.0)

    def cross(self, index: Ints) -> Floats:
        """Posterior covariance of the z of some coalitions with the functionals, (m, f)."""
        if self.landmarks is not None:
            return self.landmarks.cross(self, index)
        return np.asarray(self._prior_product[index] - self.explain(index).T @ self.inner)

    @cached_property
    def landmarks(self) -> Landmarks | None:
        """For more than EXACT_UP_TO coalitions."""
        return find_landmarks(self) if self.explained is None else None

    @cached_property
    def sample(self) -> tuple[Ints, Floats]:
        """Coalitions that stand for all in sums, and for how many each stands, (m,) each."""
        if self.explained is not None:
            return np.arange(len(self.inputs)), np.ones(len(self.inputs))
        return sample_by_weight(np.einsum("fb,fb->b", self.W, self.W), SAMPLE)

    def covariance(self, rows: Ints, columns: Ints) -> Floats:
        """Posterior covariance of the z of some coalitions with those of others."""
        prior = self.gp.kernel(self.inputs[rows], self.inputs[columns])
        explained = self.explain(columns)
        return np.asarray(prior - self.explain(rows).T @ explained)
