"""The paper's largest experiment in size: 20 owners, 5,000 coalitions evaluated, 20,000 predicted.

    python benchmarks/scale.py

21,000 rows of 384 numbers, as many as its embedded IMDb reviews; utilities are made up, for what
they are costs no time. Time from the owners to their values with intervals, peak memory of the
process, and the parts of the time that go into each stage. Then dupre's own time for a run of 13,
16 and 20 owners, and the covariances of very many coalitions through landmarks against those by all
pairs. Seconds are those of the processor: what else runs on the machine hardly changes them.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import dupre
from dupre.data.sketch import SketchCache
from dupre.game.coalitions import to_names
from dupre.game.estimators import exact
from dupre.predictor import form, gp
from dupre.predictor.gp import GaussianProcess, Posterior
from dupre.predictor.kernel_inputs import Features
from games import quietly
from speed import synthetic

EVALUATED, SAMPLES = 5_000, 26_500
SECONDS, GIBIBYTES = 30, 6
STAGES = (
    ("sketches", SketchCache, "__init__"),
    ("sketches", SketchCache, "__call__"),
    ("fit", form, "learn"),
    ("predictions", GaussianProcess, "posterior"),
    ("variances", Posterior, "functional_covariance"),
)


def made_up(n: int) -> Callable[[np.ndarray], np.ndarray]:
    """Utilities of coalitions, (m, n): diminishing returns, who meets whom, and noise."""
    rng = np.random.default_rng(1)
    worth, pairs = rng.random(n), 0.003 * rng.normal(size=(n, n))

    def utility(members: np.ndarray) -> np.ndarray:
        smooth = 0.5 + 0.4 * (1 - np.exp(members @ (-worth / 3)))
        meeting = np.sum(members @ pairs * members, axis=1)
        return smooth + meeting + 0.003 * rng.normal(size=len(members))

    return utility


def watched() -> dict[str, float]:
    """Seconds spent in each stage from here on, not counting stages called by it."""
    spent: dict[str, float] = defaultdict(float)
    running = ["rest"]
    since = time.perf_counter()

    def switch() -> None:
        nonlocal since
        now = time.perf_counter()
        spent[running[-1]] += now - since
        since = now

    def timed(stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            switch()
            running.append(stage)
            try:
                return work(*args, **options)
            finally:
                switch()
                running.pop()

        return call

    for stage, place, name in STAGES:
        setattr(place, name, timed(stage, getattr(place, name)))
    return spent


def by_landmarks() -> None:
    """Standard deviations of values through landmarks against those by all pairs of coalitions."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    owners = dupre.Owners.from_arrays(X[:1000], y[:1000], rng.integers(13, size=1000))
    model = GaussianNB(var_smoothing=0.1)
    utility = dupre.ModelUtility(model, owners, validation=(X[1000:], y[1000:]))
    cache, ratios, seconds = SketchCache(owners, seed=0), [], []
    for semivalue, count in product((dupre.shapley, dupre.banzhaf), (40, 200)):
        weights = exact(semivalue, owners.n)
        known = np.isin(weights.members.sum(axis=1), [1, owners.n - 1, owners.n])
        known[rng.choice(np.flatnonzero(~known), count - known.sum(), replace=False)] = True
        evaluated = Features(weights.members[known], owners.rows, cache)
        names = [to_names(row, owners.names) for row in evaluated.members]
        learned = form.learn(
            evaluated,
            np.array([float(quietly(utility, coalition)) for coalition in names]),
            measured=np.zeros(count),
            empty=utility.empty,
            choose_p=False,
            rng=np.random.default_rng(0),
        )
        others = Features(weights.members[~known], owners.rows, cache)
        std = []
        for gp.EXACT_UP_TO in (0, len(others)):
            posterior = learned.gp.posterior(others, weights.W[:, ~known])
            start = time.perf_counter()
            std.append(np.sqrt(posterior.functional_variance()))
            seconds.append(time.perf_counter() - start)
        ratios.append(std[0] / std[1])
    print(
        f"\nThrough {gp.COUNT} landmarks of all predicted coalitions of {owners.n} owners "
        "(digits at random, naive Bayes, 40 and 200 evaluations, Shapley and Banzhaf) the standard "
        f"deviations of values are {np.min(ratios):.3f} to {np.max(ratios):.3f} of those by all "
        f"pairs, in {sum(seconds[::2]) / sum(seconds[1::2]):.2f} of the time."
    )


def value_twenty(owners: dupre.Owners) -> dupre.Valuation:
    """Values of 20 owners from 5,000 evaluations of coalitions in the order of the estimator."""
    utility = made_up(owners.n)
    valuer = dupre.Valuer(
        owners,
        empty=0.5,
        seed=0,
        estimator=dupre.estimators.Sample(dupre.estimators.regression, SAMPLES),
        strategy=dupre.strategies.Drawn(first=EVALUATED),
    )
    asked = valuer.suggest(EVALUATED)
    position = {name: i for i, name in enumerate(owners.names)}
    members = np.zeros((len(asked), owners.n), dtype=bool)
    for row, names in enumerate(asked):
        members[row, [position[name] for name in names]] = True
    for names, u in zip(asked, utility(members), strict=True):
        valuer.record(names, float(u))
    return valuer.values()


RUNS = ((13, 100), (16, 100), (20, 100), (16, 2_000))
"""Owners and evaluations of runs whose own time is measured."""


def own_time(n: int, evaluations: int) -> tuple[float, list[float], float]:
    """Seconds of all rounds and the values together, of each round, and of the values.

    Of many evaluations only the last two rounds are chosen; those before are drawn by size.
    """
    owners, utility = synthetic(n=n, rows=100 * n, columns=20), made_up(n)
    valuer = dupre.Valuer(owners, empty=0.5, seed=0)

    def evaluate(members: np.ndarray) -> None:
        for row, u in zip(members, utility(members), strict=True):
            valuer.record(to_names(row, owners.names), float(u))

    position = {name: i for i, name in enumerate(owners.names)}
    rounds: list[float] = []
    rng = np.random.default_rng(0)
    while valuer.evaluated < evaluations:
        start = time.process_time()
        asked = valuer.suggest(min(valuer.first_left or n, evaluations - valuer.evaluated))
        if valuer.designed:
            rounds.append(time.process_time() - start)
        members = np.zeros((len(asked), n), dtype=bool)
        for row, names in zip(members, asked, strict=True):
            row[[position[name] for name in names]] = True
        evaluate(members)
        while valuer.designed and valuer.evaluated < evaluations - 300:
            new = rng.random((evaluations - 2 * n - valuer.evaluated, n))
            rows = np.unique(new < rng.random((len(new), 1)), axis=0)
            known = valuer.state.positions(rows)
            evaluate(rows[rows.any(axis=1) & ~np.isin(known, list(valuer.state.row))])
    start = time.process_time()
    valuer.values()
    values = time.process_time() - start
    return sum(rounds) + values, rounds, values


def own_times() -> None:
    """How long dupre itself takes where trainings take no time, on one core."""
    print("\ndupre's own time on one core, in seconds of the processor:\n")
    print("| owners | evaluations | in all | longest round | median round | values |")
    print("|---|---|---|---|---|---|")
    for n, evaluations in RUNS:
        total, rounds, values = own_time(n, evaluations)
        # Of a run of which only the end was chosen the sum would say nothing.
        everything = f"{total:.1f}" if evaluations <= 300 else "–"
        parts = f"{max(rounds):.2f} | {np.median(rounds):.2f} | {values:.1f}"
        print(f"| {n} | {evaluations:,} | {everything} | {parts} |", flush=True)


def main() -> None:
    owners = synthetic(n=20, rows=21_000, columns=384)
    spent = watched()
    seconds = {}
    for cores in (2, 1):  # the parts are those of the last
        os.environ["OMP_NUM_THREADS"] = str(cores)
        spent.clear()
        start = time.perf_counter()
        valuation = value_twenty(owners)
        seconds[cores] = time.perf_counter() - start
    unit = 2**30 if sys.platform == "darwin" else 2**20  # bytes there, KiB elsewhere
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    predicted = valuation.facts.counting - valuation.facts.evaluated
    shares = {stage: spent[stage] / seconds[1] for stage in dict.fromkeys(s for s, _, _ in STAGES)}
    shares["all else"] = 1 - sum(shares.values())
    print("\n## Scale (`python benchmarks/scale.py`)\n")
    print(
        f"{owners.n} owners, {len(owners.y):,} rows of 384 numbers, {valuation.facts.evaluated:,} "
        f"coalitions evaluated, {predicted:,} predicted.\n"
    )
    print("| what | allowed | part of it used |")
    print("|---|---|---|")
    print(f"| time to the values, one core | {SECONDS} s | {seconds[1] / SECONDS:.0%} |")
    print(f"| time to the values, two cores | {SECONDS} s | {seconds[2] / SECONDS:.0%} |")
    print(f"| peak memory | {GIBIBYTES} GiB | {memory / GIBIBYTES:.0%} |")
    parts = ", ".join(f"{stage} {part:.0%}" for stage, part in shares.items())
    print(f"\nOf the time of one core: {parts}.")
    print(f"On this machine: {seconds[1]:.0f} s, {memory:.1f} GiB", file=sys.stderr)


if __name__ == "__main__":
    main()
    os.environ["OMP_NUM_THREADS"] = "1"
    own_times()
    by_landmarks()
