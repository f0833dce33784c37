"""The methods that the paper compares, each as one run on a game with a table.

SSW         `kernel=dupre.kernels.paper(eta)`: the paper's setting
OTDD        `kernel=dupre.kernels.paper_process(dupre.baselines.otdd_kernel(owners))`
GP-binary   `kernel=dupre.kernels.paper_process(Membership())`
NN-binary   `dupre.baselines.utility_learning`
LAVA        `dupre.baselines.lava`: no trainings
dupre       `dupre.value(owners, utility, budget=...)`: dupre as it is

The first three are the paper's Gaussian process and differ in their kernel alone.
Coalitions are drawn uniformly, and a seed draws the same ones for every method; those that a method
with the suffix -a chooses itself follow by Algorithm 2. `dupre` chooses all of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import kendalltau

import dupre
from dupre.game.semivalues import Semivalue
from dupre.utility.adapters import as_trainings
from experiments.games import ALL_UP_TO, Game, estimator_of, load

BATCHES = 4
"""Batches of dupre beyond 128 trainings, where its own smaller ones would take too long."""


@dataclass(frozen=True, eq=False)
class Run:
    """What a method says of a game.

    Attributes:
        evaluated: which coalitions were evaluated, (b,).
        utilities: of all, observed or predicted, (b,); NaN if the method predicts none.
        values: of the owners, (n,).
        std: of the values, (n,), or NaN.
        seconds: of the method alone, without trainings.
    """

    evaluated: np.ndarray
    utilities: np.ndarray
    values: np.ndarray
    std: np.ndarray
    seconds: float


def paper_kernel(name: str, eta: float) -> dupre.kernels.Prior:
    """The paper's kernel."""
    del name  # the same for every game
    return dupre.kernels.paper(eta)


def membership_kernel(name: str, eta: float) -> dupre.kernels.Prior:
    """GP-binary's kernel."""
    del name, eta
    return dupre.kernels.paper_process(dupre.kernels.Membership())


@cache  # all distances are computed when it is made
def otdd_kernel(name: str, eta: float) -> dupre.kernels.Prior:
    """OTDD's kernel; above 8 owners with 100 landmarks, which take a minute."""
    del eta
    owners = load(name).owners
    landmarks = 255 if owners.n <= 8 else 100
    kernel = dupre.baselines.otdd_kernel(owners, landmarks=landmarks)
    return dupre.kernels.paper_process(kernel)


KERNELS: dict[str, Callable[[str, float], dupre.kernels.Prior]] = {
    "SSW": paper_kernel,
    "OTDD": otdd_kernel,
    "GP-binary": membership_kernel,
}


def run(
    method: str,
    game: Game,
    drawn: int,
    active: int = 0,
    *,
    seed: int,
    semivalue: Semivalue = dupre.shapley,
    eta: float = 0.5,
) -> Run:
    """Evaluate so many coalitions drawn uniformly and chosen by Algorithm 2, predict the others."""
    start = time.process_time()
    if method == "dupre":
        valuer, values, std = _run_dupre(game, drawn + active, seed, semivalue)
    else:
        valuer = _valuer(method, game, drawn, seed=seed, semivalue=semivalue, eta=eta)
        for count in filter(None, (drawn, active)):
            for members in valuer.suggest(count):
                valuer.record(members, game.table[members])
        if method == "NN-binary":
            return learn_network(game, list(valuer.evaluations), seed, semivalue)
        valuation = valuer.values()
        values, std = valuation.mean, valuation.std.to_numpy()
    evaluated, utilities = _predictions(valuer, game)
    return Run(evaluated, utilities, values, std, time.process_time() - start)


def predict(method: str, game: Game, known: Iterable[tuple[str, ...]], *, seed: int) -> Run:
    """Predict all utilities from those of known coalitions."""
    if method == "NN-binary":
        return learn_network(game, list(known), seed, dupre.shapley)
    start = time.process_time()
    valuer = _valuer(method, game, 1, seed=seed, semivalue=dupre.shapley, eta=0.5)
    for members in known:
        valuer.record(members, game.table[members])
    evaluated, utilities = _predictions(valuer, game)
    nothing = np.full(game.owners.n, np.nan)
    return Run(evaluated, utilities, nothing, nothing, time.process_time() - start)


def learn_network(game: Game, known: list[tuple[str, ...]], seed: int, semivalue: Semivalue) -> Run:
    """NN-binary from these coalitions."""
    start = time.process_time()
    learned = dupre.baselines.utility_learning(
        game.table,
        game.owners,
        evaluated=known,
        semivalue=semivalue,
        estimator=estimator_of(game.owners.n),
        seed=seed,
    )
    table = learned.predictions
    return Run(
        table["evaluated"].to_numpy(),
        table["utility"].to_numpy(),
        learned.values.to_numpy(),
        np.full(game.owners.n, np.nan),
        time.process_time() - start,
    )


def run_lava(game: Game) -> Run:
    """Values without trainings."""
    start = time.process_time()
    utility = game.utility
    values = dupre.baselines.lava(game.owners, validation=(utility.X_val, utility.y_val)).values
    nothing = np.full(len(game.members), np.nan)
    seconds = time.process_time() - start
    return Run(nothing == 0, nothing, values.to_numpy(), nothing[: game.owners.n], seconds)


def score(game: Game, result: Run, semivalue: Semivalue = dupre.shapley) -> dict[str, float]:
    """Errors of predicted utilities and of values, and the time as a part of training all.

    Utilities are compared where they were predicted, values with those of the complete table.
    """
    u, predicted = (x[~result.evaluated] for x in (game.utilities, result.utilities))
    truth = game.values(semivalue)
    error, std = result.values - truth, result.std
    spent = game.seconds[result.evaluated].sum() + result.seconds
    return {
        "utility MSE": float(np.mean((predicted - u) ** 2)),
        "utility Pearson": pearson(predicted, u),
        "MSE": float(np.mean(error**2)),
        "Pearson": pearson(result.values, truth),
        "Kendall": float(kendalltau(result.values, truth).statistic),
        "time": float(spent / game.seconds.sum()),
        "within 1 std": float(np.mean(np.abs(error) <= std)) if np.isfinite(std).all() else np.nan,
        "within 95 %": (
            float(np.mean(np.abs(error) <= 1.959964 * std)) if np.isfinite(std).all() else np.nan
        ),
    }


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation; 0 for a constant, which says nothing, NaN without numbers."""
    if not len(a) or np.isnan(a).any():
        return np.nan
    return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) > 0 and np.ptp(b) > 0 else 0.0


def _valuer(
    method: str, game: Game, first: int, *, seed: int, semivalue: Semivalue, eta: float
) -> dupre.Valuer:
    kernel = None if method == "NN-binary" else KERNELS[method](game.name, eta)
    return dupre.Valuer(
        game.owners,
        empty=game.empty,
        semivalue=semivalue,
        estimator=estimator_of(game.owners.n),
        strategy=dupre.strategies.Active(first=first, uniform=True),
        kernel=kernel,
        seed=seed,
    )


def _run_dupre(
    game: Game, budget: int, seed: int, semivalue: Semivalue
) -> tuple[dupre.Valuer, np.ndarray, np.ndarray]:
    n = game.owners.n
    batch = None if budget <= 128 else budget // BATCHES
    how = {"semivalue": semivalue, "estimator": estimator_of(n), "seed": seed}
    valuation = dupre.value(
        game.owners,
        game.table.__getitem__,
        budget=budget,
        strategy=dupre.strategies.Active(batch=batch),
        progress=False,
        **how,
    )
    valuer = dupre.Valuer(game.owners, empty=game.empty, **how)
    for members, utilities in as_trainings(valuation.evaluations).items():
        valuer.record(members, utilities)
    return valuer, valuation.mean, valuation.std.to_numpy()


def _predictions(valuer: dupre.Valuer, game: Game) -> tuple[np.ndarray, np.ndarray]:
    if game.owners.n > ALL_UP_TO:  # the values need only sums, not every prediction
        known = valuer.evaluations
        utilities = np.array([known.get(members, np.nan) for members in game.names])
        return ~np.isnan(utilities), utilities
    frame = valuer.predict(game.names)
    return frame["evaluated"].to_numpy(), frame["utility"].to_numpy()
