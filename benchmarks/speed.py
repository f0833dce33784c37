"""Speed as ratios measured in one run, against the obvious way of doing the same.

    python benchmarks/speed.py

Kernel entries against POT per pair of coalitions; learning hyper-parameters against scikit-learn's
regressor with the same kernel; active picks against a literal Algorithm 2 of the paper; and what
dupre itself costs on top of the trainings. Everything on one and on two threads. Choices and values
take one thread of BLAS; blocks of coalitions are computed by as many threads as there may be.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import ot
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel
from threadpoolctl import threadpool_limits

import dupre
from dupre.data.sketch import SketchCache
from dupre.game.estimators import exact
from dupre.predictor.fitting import Search, fit
from dupre.predictor.form import DEFAULT
from dupre.predictor.gp import GaussianProcess, Posterior, Scale, condition
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Kernel, Membership, Prior, Scaled, SlicedWasserstein
from dupre.predictor.warp import straight_warp
from dupre.valuation.strategies import active_batch

Result = TypeVar("Result")
Row = tuple[str, str, str, str]
"""What was measured, against what, the result, and its target."""

SHAPLEIG = 26.0
"""Seconds that ShaplEIG of shapiq takes for 100 evaluations of 10 owners: benchmarks/README.md."""


def timed(work: Callable[[], Result], repeats: int = 1) -> tuple[float, Result]:
    """Best time in seconds of several repeats, and the last result."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def synthetic(n: int, rows: int, columns: int) -> dupre.Owners:
    rng = np.random.default_rng(0)
    owner = rng.integers(n, size=rows)
    X = rng.normal(size=(rows, columns)) + 0.3 * rng.normal(size=(n, columns))[owner]
    return dupre.Owners.from_arrays(X, (X[:, 0] > 0).astype(int), owner)


def kernel_entries() -> Iterator[Row]:
    """All 1,000 x 1,000 entries, sorting and sketching included, against single pairs by POT."""
    owners = synthetic(n=20, rows=21_000, columns=384)
    members = np.random.default_rng(1).random((1_000, owners.n)) < 0.5
    kernel = SlicedWasserstein()

    def ours() -> np.ndarray:
        features = Features(members, owners.rows, SketchCache(owners, seed=0))
        return kernel(features, features)

    def pot() -> None:
        for a, b in zip(members[:3], members[3:6], strict=True):
            A, B = owners.data_of(a)[0], owners.data_of(b)[0]
            ot.sliced_wasserstein_distance(A, B, n_projections=50, seed=0)

    all_entries, _ = timed(ours)
    three_pairs, _ = timed(pot)
    ratio = (three_pairs / 3) / (all_entries / len(members) ** 2)
    what = "kernel entry, 1,000 coalitions of 21,000 x 384 rows, sorting included"
    yield what, "POT per pair", f"{ratio:,.0f} x", "200,000 x"


class Columns(SklearnKernel):
    """A kernel of scikit-learn on some columns."""

    def __init__(self, kernel: SklearnKernel, first: int, last: int):
        self.kernel, self.first, self.last = kernel, first, last

    theta = property(
        lambda self: self.kernel.theta, lambda self, theta: setattr(self.kernel, "theta", theta)
    )
    bounds = property(lambda self: self.kernel.bounds)

    def __call__(self, X: np.ndarray, Y: None = None, eval_gradient: bool = False) -> object:
        return self.kernel(X[:, self.first : self.last], Y, eval_gradient)

    def diag(self, X: np.ndarray) -> np.ndarray:
        return self.kernel.diag(X[:, self.first : self.last])

    def is_stationary(self) -> bool:
        return False


def gp_fit() -> Iterator[Row]:
    """One start of 500 evaluations, both from the same hyper-parameters to convergence.

    The paper's kernel, which has the data term alone, with dupre's weak priors on hyper-parameters;
    and dupre's kernel of three terms without them, for with them it ends elsewhere.
    """
    owners = synthetic(n=10, rows=2_000, columns=20)
    rng = np.random.default_rng(2)
    members = exact(dupre.shapley, owners.n).members[rng.permutation(1023)[:500]]
    utilities = np.sqrt(members @ rng.random(owners.n)) + 0.01 * rng.normal(size=500)
    features = Features(members, owners.rows, SketchCache(owners, seed=0))
    warp = straight_warp(utilities, empty=0.0)
    vectors, size = features.sketch(0.5, 2), np.log1p(features.total_rows)[:, None]
    X, d, n = np.hstack([vectors, size, members]), vectors.shape[1], owners.n

    def rbf(gamma: float, first: int, last: int) -> SklearnKernel:
        return Columns(RBF(1 / np.sqrt(2 * gamma), (1e-6, 1e6)), first, last)

    def by_ours(form: Kernel, prior: Prior) -> GaussianProcess:
        # variances and gammas relative to the median, noise, decay
        near = np.append(np.zeros(len(form.theta)), [np.log(0.01), 0.0])
        forgetful = Features(members, owners.rows, features.vectors)  # distances are computed anew
        how = {"scale": Scale(warp, prior=prior), "search": Search(1, rng, near)}
        return fit(form, forgetful, utilities, **how)

    white = WhiteKernel(0.01, (1e-7, 2.0))
    data, plain = Scaled(SlicedWasserstein()), Prior(plain=True)
    for name, form, prior in (("data kernel", data, Prior()), ("dupre's kernel", DEFAULT, plain)):
        ours = form.choose(2, 1.0, 0.5)
        gamma = np.exp(ours.at_median(ours.distances(features, features)).theta)
        if name == "data kernel":
            theirs = ConstantKernel(1.0) * rbf(gamma[1], 0, d) + white
        else:
            dot = Columns(DotProduct(1.0, "fixed"), d + 1, d + 1 + n)
            theirs = ConstantKernel(1.0) * rbf(gamma[1], 0, d) * rbf(gamma[2], d, d + 1)
            theirs += ConstantKernel(1.0) * rbf(gamma[4], d + 1, d + 1 + n)
            theirs += ConstantKernel(1 / (1 + n)) * dot + white
        with threadpool_limits(1, "blas"):  # as dupre does
            our_time, gp = timed(partial(by_ours, ours, prior), repeats=5)
        regressor = GaussianProcessRegressor(theirs, alpha=0.0)
        with warnings.catch_warnings():  # the noise may end at its bound, for both
            warnings.simplefilter("ignore")
            their_time, _ = timed(partial(regressor.fit, X, warp.forward(utilities)), repeats=2)
        alone = condition(gp.kernel, gp.inputs, utilities, noise=gp.noise, scale=Scale(warp))
        density = alone.log_likelihood - warp.log_slope(utilities)
        gap = regressor.log_marginal_likelihood_value_ - density
        what = f"learning hyper-parameters, 500 evaluations, {name} (their log likelihood less ours"
        yield f"{what}: {gap:.2f})", "scikit-learn", f"{their_time / our_time:.1f} x", "12 x"


def literal_algorithm_2(
    K: np.ndarray, noise: float, A: list[int], B: np.ndarray, W: np.ndarray, *, picks: int
) -> list[int]:
    """DUPRE Alg. 2 as printed, for the summed reduction over owners, kernel matrix given."""
    KW = K[:, B] @ W.T  # K_{., B} w of every owner
    inverse = np.linalg.inv(K[np.ix_(A, A)] + noise * np.eye(len(A)))
    chosen: list[int] = []
    for _ in range(picks):
        best, best_reduction, best_inverse = -1, -1.0, inverse
        have = A + chosen
        for g in B:
            if g in chosen:
                continue
            k = K[g, have]
            half = inverse @ k
            schur = K[g, g] + noise - k @ half
            updated = np.empty((len(have) + 1, len(have) + 1))
            updated[:-1, :-1] = inverse + np.outer(half, half) / schur
            updated[:-1, -1] = updated[-1, :-1] = -half / schur
            updated[-1, -1] = 1 / schur
            v = KW[[*have, g]]
            reduction = np.einsum("af,ab,bf->", v, updated, v, optimize=True)
            if reduction >= best_reduction:
                best, best_reduction, best_inverse = int(g), reduction, updated
        chosen.append(best)
        inverse = best_inverse
    return chosen


def active_picks() -> Iterator[Row]:
    """Ten picks among 1,024 candidates after 200 evaluations, eleven owners, kernel included."""
    owners = synthetic(n=11, rows=2_000, columns=20)
    weights = exact(dupre.shapley, owners.n)
    rng = np.random.default_rng(3)
    universe = Features(weights.members, owners.rows, SketchCache(owners, seed=0))
    order = rng.permutation(len(universe))
    A, B = np.sort(order[:200]), np.sort(order[200 : 200 + 1024])
    utilities = np.sqrt(weights.members[A] @ rng.random(owners.n)) + 0.01 * rng.normal(size=200)
    warp = straight_warp(utilities, empty=0.0)
    for kernel in (Scaled(Membership()), Scaled(SlicedWasserstein())):
        gp = fit(kernel, universe[A], utilities, scale=Scale(warp), search=Search(1, rng))
        posterior = gp.posterior(universe[B], weights.W[:, B])

        def literal(posterior: Posterior = posterior) -> list[int]:
            both = universe[np.concatenate([A, B])]
            K = posterior.gp.kernel(both, both)
            W = posterior.W * posterior.slope
            have, others = list(range(len(A))), len(A) + np.arange(len(B))
            return literal_algorithm_2(K, posterior.gp.noise, have, others, W, picks=10)

        def ours(posterior: Posterior = posterior) -> np.ndarray:
            forgetful = replace(posterior)  # what values have computed is computed anew
            return active_batch(forgetful, np.arange(len(B)), 10)

        def first(posterior: Posterior = posterior) -> np.ndarray:
            fresh = Features(weights.members[B], owners.rows, universe.vectors)[: len(B)]
            return active_batch(replace(posterior, inputs=fresh), np.arange(len(B)), 10)

        with threadpool_limits(1, "blas"):  # as dupre does
            first_time, _ = timed(first, repeats=5)
            our_time, our_picks = timed(ours, repeats=5)
        their_time, their_picks = timed(literal)
        same = "same picks" if (our_picks + len(A)).tolist() == their_picks else "OTHER PICKS"
        what = f"10 active picks of 1,024 candidates, {kernel.label} kernel ({same})"
        yield what, "literal Algorithm 2", f"{their_time / our_time:.0f} x", "500 x"
        what = f"the same in the first round, distances included, {kernel.label} kernel"
        yield what, "literal Algorithm 2", f"{their_time / first_time:.0f} x", "–"


def overhead() -> Iterator[Row]:
    """What dupre costs on top of trainings that cost nothing."""
    owners = synthetic(n=10, rows=2_000, columns=20)
    worth = dict(zip(owners.names, np.random.default_rng(4).random(owners.n), strict=True))

    def utility(members: tuple[str, ...]) -> float:
        return float(np.sqrt(sum(worth[name] for name in members)))

    dupre.value(owners, utility, budget=20, progress=False)  # imports
    times = {
        budget: timed(
            lambda b=budget: dupre.value(owners, utility, budget=b, progress=False), repeats=3
        )[0]
        for budget in (60, 100, 140, 180)
    }
    growth = (times[180] - times[140]) / (times[100] - times[60])
    what = f"dupre's own time for 100 evaluations, 10 owners ({times[100]:.2f} s)"
    yield what, f"ShaplEIG, {SHAPLEIG:.0f} s", f"{SHAPLEIG / times[100]:.0f} x", "20 x"
    yield "cost of rounds 140 to 180 / of rounds 60 to 100", "linear is 1", f"{growth:.1f}", "–"


def sixteen_owners() -> Iterator[Row]:
    """Rounds in which all 65,535 coalitions count. A new eta means new sketches, once for each."""
    owners = synthetic(n=16, rows=800, columns=8)
    worth = dict(zip(owners.names, np.random.default_rng(4).random(owners.n), strict=True))
    valuer = dupre.Valuer(owners, empty=0.0, seed=0)

    def choose() -> None:
        for members in valuer.suggest(owners.n):
            valuer.record(members, 1 - float(np.exp(-sum(worth[name] for name in members))))

    while valuer.first_left:
        choose()
    rounds = [timed(choose)[0] for _ in range(7)]
    values, _ = timed(valuer.interim_values)
    what = "16 owners, all 65,535 coalitions: "
    yield what + "the longest of 7 rounds, sketches included", "–", f"{max(rounds):.1f} s", "–"
    yield what + "the median of 7 rounds", "–", f"{np.median(rounds):.2f} s", "0.5 s"
    yield what + "values with intervals", "–", f"{values:.2f} s", "–"


def main() -> None:
    print("\n## Speed (`python benchmarks/speed.py`)\n")
    print("| what | against | one thread | two threads | target |")
    print("|---|---|---|---|---|")
    for measure in (kernel_entries, gp_fit, active_picks, overhead, sixteen_owners):
        found = []
        for threads in (1, 2):
            os.environ["OMP_NUM_THREADS"] = str(threads)  # of dupre's own blocks
            with threadpool_limits(threads):
                found.append(list(measure()))
        for (what, against, one, target), (_, _, two, _) in zip(*found, strict=True):
            print(f"| {what} | {against} | {one} | {two} | {target} |", flush=True)


if __name__ == "__main__":
    main()
