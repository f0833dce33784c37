"""The predictor of utilities: which form of Gaussian process, fitted to which evaluations.

The form is the warp of the utilities and the kernel's eta, rho and p. The form of the highest
marginal likelihood is searched for (DUPRE Sec. 3), one part after the other: a full grid would cost
more than it finds. Predictions are averaged over all forms tried, over simpler kernels and over
hyper-parameters around the learned ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dupre._types import NOTHING, Floats, Ints
from dupre.errors import InputError
from dupre.game.blocks import split
from dupre.game.ties import descending_order
from dupre.predictor.averaging import AveragedPosterior, average_posterior
from dupre.predictor.fitting import BOUNDS, LEARN_ON, Search, fit, sample_around
from dupre.predictor.gp import EXACT_UP_TO, GaussianProcess, Posterior, Scale, of_most_rows
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import (
    Exponential,
    Kernel,
    Linear,
    Membership,
    Minor,
    Prior,
    Product,
    Rows,
    Scaled,
    Size,
    SlicedWasserstein,
    Sum,
)
from dupre.predictor.warp import (
    NO_LATTICE,
    Lattice,
    Warp,
    curved_warp,
    find_lattice,
    robust_scale,
    straight_warp,
)

CHOICES: dict[str, tuple[Any, ...]] = {
    "curved": (False, True),
    "eta": (0.5, 0.2, 0.8),
    "rho": (1.0, 0.5),
    "p": (2, 1),
}
"""What is chosen, in this order; the search starts with the first of each."""

DATA = Scaled(SlicedWasserstein(p=None, rho=None, eta=None) * Size())
"""The first term of kernels: how alike the rows of two coalitions and their numbers are."""

DEFAULT = DATA + Scaled(Membership()) + Scaled(Linear())
"""Data x size + membership + linear, each with a variance of its own.

The data term alone (the paper's) does not depend on how many rows a coalition has. A term that does
not help gets a small variance.
"""

DEFAULT_WEIGHT = -4.0
"""Log prior weight of all forms of the default kernel together."""

OTHERS: tuple[tuple[Kernel, float], ...] = (
    (DATA + Minor(Membership()), 0.0),
    (Scaled(Rows()) + Minor(Linear() * Size()), -2.0),
    (Scaled(Rows()) + Scaled(Linear()), -2.0),
)
"""Further kernels that predictions are averaged over, each with its log prior weight.

Under the default kernel the differences of single owners are carried on to large coalitions, where
real ones shrink; after n + 1 evaluations that cannot be seen. The data say little in some games:
there every row is worth about the same, and owners differ in another way in each size, or in all
sizes alike. But what to evaluate next is decided by the default kernel: the others would not look
for what they hold to be improbable.
"""

CURVED_WEIGHT = -3.0
"""Log prior weight of each of them with a curved scale against a straight one."""

EVIDENCE = 0.5
"""Power of the marginal likelihoods in weights: no form is right, and they differ by more than what
forms predict bears out (Grünwald & van Ommen 2017)."""

BETTER_BY = 1e-3
"""Log likelihood by which one form must surpass another; less can be rounding."""

# Each form in the average has to predict all coalitions.
LEAST_WEIGHT = 0.05
"""Forms with less weight than this are left out of the average."""

# Its weight in the average is then e^-6, far below LEAST_WEIGHT.
FAR_BEHIND = 12.0
"""Log likelihood by which a form must be worse than another to be given up before its end."""

# Of normal errors one in 16,000 lies farther out.
OUTLIER_SCORE = 4.0
"""Robust leave-one-out score beyond which an evaluation may be an outlier."""

ROUNDING = 1e-6
"""A smaller error of a standardised utility is only rounding."""

OUTLIER_CHANCE = 0.01
"""Prior probability that an evaluation is an outlier."""

PROBES = 64
"""Coalitions at most on which a kernel is checked."""

MATRIX_ROUNDING = 1e-8
"""A negative eigenvalue that is smaller than this, relative to the largest entry, is rounding."""


@dataclass(frozen=True)
class Form:
    """The choices that are searched for, not learned by gradient."""

    curved: bool = False
    eta: float = 0.5
    rho: float = 1.0
    p: int = 2
    given: Kernel | None = None

    def kernel(self) -> Kernel:
        """The given one, or the default, with what it leaves open."""
        return (self.given or DEFAULT).choose(self.p, self.rho, self.eta)

    @property
    def text(self) -> str:
        """The kernel in words."""
        chosen = f"SW_{self.p}, rho {self.rho:g}, label weight {1 - self.eta:g}"
        if self.given is None:
            return chosen
        given = f"kernel given: {self.given.label}"
        return f"{given}; {chosen} where open" if self.given.open else given

    def warp(self, utilities: Floats, empty: float, centre: float | None = None) -> Warp:
        """The warp of these utilities; straight if they have no scale for a curved one."""
        bent = curved_warp(utilities) if self.curved else None
        return bent or straight_warp(utilities, empty=empty, centre=centre)

    def is_open(self, choice: str, prior: Prior, *, choose_p: bool) -> bool:
        """Whether something is to be chosen."""
        if choice == "curved":
            return prior.mean is None and not prior.plain
        asked = choice != "p" or choose_p or self.given is not None
        return asked and choice in (self.given or DEFAULT).open


@dataclass(frozen=True, eq=False)
class Predictor:
    """Fitted forms: the best one chooses what to evaluate, the average of all predicts.

    Attributes:
        form: the form of the highest marginal likelihood.
        gp: this form fitted to all evaluations except the outliers.
        fits: all forms that were tried, fitted to the same evaluations, `gp` among them.
        log_weights: of each of them before any evaluation was seen, (k,).
        utilities: of all evaluations, (a,).
        outliers: indices of the evaluations set aside, (s,).
        outlier_errors: their utilities minus the predictions of them, (s,).
        bounds: between which predicted utilities lie.
        least_noise: smallest variance of a utility around any of the processes.
        lattice: the only numbers that utilities can be.
    """

    form: Form
    gp: GaussianProcess
    fits: tuple[GaussianProcess, ...]
    log_weights: Floats
    utilities: Floats
    outliers: Ints
    outlier_errors: Floats
    bounds: tuple[float, float] = (-np.inf, np.inf)
    least_noise: float = 0.0
    lattice: Lattice = NO_LATTICE

    def predict(self, inputs: Features) -> tuple[Floats, Floats]:
        """Mean and standard deviation of b utilities, (b,) each, averaged over all processes."""
        mean, std = np.empty(len(inputs)), np.empty(len(inputs))
        for some in split(len(inputs), EXACT_UP_TO):
            posterior = self.posterior(inputs[some], np.empty((0, len(mean[some]))))
            mean[some], std[some] = posterior.mean, posterior.std
        return mean, std

    def posterior(self, inputs: Features, W: Floats) -> AveragedPosterior:
        """Prediction of b coalitions and of functionals W, (f, b), averaged over all processes."""
        return self.average(self.gp.posterior(inputs, W))

    def average(self, posterior: Posterior) -> AveragedPosterior:
        """The same, given the posterior of the best form."""
        averaged = average_posterior(posterior, self.processes)
        return replace(averaged, bounds=self.bounds, lattice=self.lattice)

    @cached_property
    def processes(self) -> tuple[tuple[float, GaussianProcess], ...]:
        """Processes to average, with weights that sum to 1: of each form, some around its fit."""
        height = EVIDENCE * np.array([gp.log_likelihood for gp in self.fits]) + self.log_weights
        weights = np.exp(height - height.max())
        weights[weights < LEAST_WEIGHT * weights.sum()] = 0.0
        weights /= weights.sum()
        found = []
        for share, fitted in zip(weights, self.fits, strict=True):
            if share > 0:
                # Eight draws in all: they are shared out, not multiplied by the forms. Without
                # draws, coverage at 2n + 1 falls from 97 to 95 %, of owners by feature to 89 %.
                pairs = max(1, round(4 * share))
                around = sample_around(fitted, pairs=pairs, least_noise=self.least_noise)
                found += [(float(share * weight), gp) for weight, gp in around]
        return tuple(found)

    @property
    def outlier_variance(self) -> float:
        """What the chance of further outliers adds to the variance of a predicted utility."""
        return float(np.sum(self.outlier_errors**2)) / len(self.utilities)


def learn(
    inputs: Features,
    utilities: Floats,
    *,
    measured: Floats,
    empty: float,
    choose_p: bool,
    rng: np.random.Generator,
    prior: Prior | None = None,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Predictor:
    """Fit the predictor; the result depends on the arguments alone.

    The form is chosen on up to LEARN_ON evaluations and fitted to all.

    Args:
        inputs: the evaluated coalitions.
        utilities: theirs, (a,).
        measured: variance of each as known from repeated trainings, (a,).
        empty: utility of no data.
        choose_p: try SW_1 too in the default kernel. It costs far more than SW_2, because it is no
            matrix product.
        rng: of the starts.
        prior: what was asked for in the place of the default.
        bounds: between which predicted utilities lie.
    """
    prior = prior or Prior()
    lattice = NO_LATTICE if prior.plain else find_lattice(utilities)

    everything, some, part = np.arange(len(utilities)), np.arange(len(utilities)), inputs
    if len(everything) > LEARN_ON:
        some = np.sort(rng.choice(everything, LEARN_ON, replace=False))
        part = inputs[some]
    fit_form = _Fitter(utilities, measured, empty, prior, rng)
    fit_part = partial(fit_form, index=some, some=part)
    how: dict[str, Any] = {"choose_p": choose_p, "least_noise": lattice.noise}
    least_noise, (form, gp, fits) = _choose_noise(fit_part, prior, **how)
    limits = bounds, least_noise, lattice
    fit_all = partial(fit_form, form, least_noise=least_noise)
    log_weights = np.zeros(len(fits))
    if len(some) < len(everything):
        gp = fit_all(everything, inputs, **_start(gp))
        fits, log_weights = [gp], np.zeros(1)
    elif prior.kernel is None and not prior.plain:
        # The forms of one kernel share its weight.
        log_weights += DEFAULT_WEIGHT - np.log(len(fits))
        further = _others(form, prior)
        worse = gp.log_likelihood - FAR_BEHIND
        fits += [fit_part(other, least_noise=least_noise, worse=worse) for other, _ in further]
        log_weights = np.append(log_weights, [weight for _, weight in further])
    outliers = NOTHING if prior.plain else suspected_outliers(gp, utilities)
    if outliers.size:
        others = np.delete(everything, outliers)
        without = fit_all(others, inputs[others], **_start(gp))
        likelihood = without.log_likelihood + log_density_of_outliers(utilities, outliers)
        if likelihood > gp.log_likelihood + BETTER_BY:
            errors = utilities[outliers] - without.posterior(inputs[outliers]).mean
            alone = np.zeros(1)
            return Predictor(form, without, (without,), alone, utilities, outliers, errors, *limits)
    if prior.plain:  # the best one alone
        fits, log_weights = [gp], np.zeros(1)
    every = tuple(fits)
    return Predictor(form, gp, every, log_weights, utilities, outliers[:0], np.empty(0), *limits)


@dataclass(frozen=True, eq=False)
class _Fitter:
    """Fits forms to evaluations: those arguments of `learn` that every fit has in common."""

    utilities: Floats
    measured: Floats
    empty: float
    prior: Prior
    rng: np.random.Generator

    def __call__(
        self, form: Form, index: Ints, some: Features, least_noise: float, **near: Any
    ) -> GaussianProcess:
        """A form fitted to some of the evaluations; `near` says where a search starts."""
        u, plain = self.utilities[index], self.prior.plain
        prior = self.prior.learn_mean(some, u)
        if prior.mean is None:
            # Utilities saturate: unseen large coalitions are like the largest one.
            warp = form.warp(u, self.empty, None if plain else float(of_most_rows(some) @ u))
        else:  # the mean is the centre
            warp = replace(straight_warp(u - prior.expect(some), empty=0.0), centre=0.0)
        return fit(
            form.kernel(),
            some,
            u,
            scale=Scale(warp, prior=prior),
            # Without a prior on hyper-parameters there are more local maxima.
            search=Search(1 if near else 4 if plain else 2, self.rng, **near),
            measured=self.measured[index],
            least_noise=least_noise,
            decays=not plain,
        )


def _choose_noise(
    fit_form: Callable[..., GaussianProcess], prior: Prior, *, least_noise: float, choose_p: bool
) -> tuple[float, tuple[Form, GaussianProcess, list[GaussianProcess]]]:
    """The least noise, and what `_choose` finds with it.

    Whole numbers can lie on a lattice without being rounded. If the fit without the least noise
    of a lattice is far ahead, there is none.
    """
    chosen = _choose(partial(fit_form, least_noise=least_noise), prior, choose_p=choose_p)
    form, gp, _ = chosen
    if least_noise == 0 or not _has_noise_of_at_most(gp, least_noise):
        return least_noise, chosen
    free = partial(fit_form, least_noise=0.0)
    if free(form, **_start(gp)).log_likelihood <= gp.log_likelihood + FAR_BEHIND:
        return least_noise, chosen
    return 0.0, _choose(free, prior, choose_p=choose_p)


def _choose(
    fit_form: Callable[..., GaussianProcess], prior: Prior, *, choose_p: bool
) -> tuple[Form, GaussianProcess, list[GaussianProcess]]:
    """The form of the highest likelihood, its fit, and the fits of all forms tried."""
    form = Form(given=prior.kernel)
    gp = fit_form(form)
    fits = [gp]
    for choice, options in CHOICES.items():
        near = _start(gp)
        if not form.is_open(choice, prior, choose_p=choose_p):
            continue
        for option in options[1:]:
            other = replace(form, **{choice: option})
            candidate = fit_form(other, worse=gp.log_likelihood - FAR_BEHIND, **near)
            fits.append(candidate)
            if candidate.log_likelihood > gp.log_likelihood + BETTER_BY:
                form, gp = other, candidate
    return form, gp, fits


def _others(form: Form, prior: Prior) -> list[tuple[Form, float]]:
    """The forms of the other kernels, given the best default one, and their log prior weights."""
    both = (False, True) if form.is_open("curved", prior, choose_p=False) else (False,)
    return [
        (replace(form, given=kernel, curved=curved), weight + CURVED_WEIGHT * curved)
        for kernel, weight in OTHERS
        for curved in both
    ]


def _has_noise_of_at_most(gp: GaussianProcess, variance: float) -> bool:
    """Whether the noise of a utility is not larger than this, but for rounding."""
    slope = float(np.median(gp.scale.warp.slope(gp.utilities)))
    return gp.noise * slope**2 <= variance * (1 + 1e-6)


def _start(gp: GaussianProcess) -> dict[str, Any]:
    """Where a fit much like another one starts."""
    return {"near": gp.learned, "curvature": gp.curvature}


def suspected_outliers(gp: GaussianProcess, utilities: Floats) -> Ints:
    """Evaluations far from their prediction by all others; at most a tenth, or one.

    They are real: they count in the values as they are, and more of their kind may come. But they
    must not bend the predictions. They are set aside when the marginal likelihood of the others,
    times their own density under a broad distribution, is higher than that of all.

    Far is relative to the scores of the other evaluations: an outlier makes the noise larger, and
    so its own standard deviation.
    """
    if robust_scale(utilities) == 0:
        return NOTHING
    mean, variance = gp.leave_one_out()
    error = np.abs(gp.z - mean)
    score = error / np.sqrt(variance)
    beyond = (score > OUTLIER_SCORE * 1.4826 * np.median(score)) & (error > ROUNDING)
    far = np.flatnonzero(beyond)
    worst_first = far[descending_order(score[far])]
    return np.sort(worst_first[: max(1, len(score) // 10)])


def log_density_of_outliers(utilities: Floats, outliers: Ints) -> float:
    """Log density of outliers under a Cauchy distribution around the utilities, chance included."""
    width = robust_scale(utilities)
    distance = (utilities[outliers] - np.median(utilities)) / width
    return float(np.sum(np.log(OUTLIER_CHANCE / (math.pi * width * (1 + distance**2)))))


def check_prior(prior: Prior, inputs: Features) -> None:
    """Try a kernel and a mean on up to PROBES of some coalitions, before anything is evaluated.

    Kernels of dupre are valid by their proofs. Of a kernel made of several, each of the user's own
    is checked by itself, so that the error names the right one.

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
    for shift in np.linspace(*BOUNDS["gamma"], 6):  # valid for one gamma need not be for all
        K = middle.with_theta(middle.theta + shift * is_gamma).evaluate(distances)
        K = _check_numbers(name, K, len(inputs))
        scale = float(np.abs(K).max())
        if not np.allclose(K, K.T, atol=MATRIX_ROUNDING * scale):
            raise InputError(
                f"the kernel {name} is not symmetric: k(A, B) must equal k(B, A); correct its "
                "`distance`"
            )
        if (smallest := _smallest_eigenvalue(K)) < -MATRIX_ROUNDING * scale:
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
