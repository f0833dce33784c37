"""Time to the same interval width: coalitions chosen per second against chosen per training.

    python benchmarks/cost.py [--games NAME ...] [--seeds N]

Nine owners hold rows of sizes that fall by a third from one to the next, so that trainings take
between a hundredth and all of the longest. All coalitions of a game are trained once, one after the
other on one core, and the seconds of the processor are measured: what else a machine does counts
little. Then both strategies are played on these tables: what they add up is the measured seconds of
the trainings that they ask for.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import joblib
import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

import dupre
from dupre.benchmark.trained import digits
from dupre.game.coalitions import all_coalitions, to_names
from dupre.valuation.cost import fit_cost
from dupre.valuation.strategies import Active
from games import housing

N = 9
RATIO = 0.65
"""Rows of an owner over those of the one before it."""

GOALS = (0.02, 0.01, 0.005, 0.0025)
"""Half widths of the widest interval, as of `--until ±0.01`."""

MOST = 20 * N
STRATEGIES = {
    "per training": Active(),
    "per training, first n + 1": Active(first=N + 1),
    "per second, first 2n + 1": Active(per="second", first=2 * N + 1),
    "per second": Active(per="second"),
}
"""The first is what others are compared with; the next two have one half of what the last has."""


def _owner(total: int) -> np.ndarray:
    share = RATIO ** np.arange(N)
    rows = np.round(total * share / share.sum()).astype(int)
    return np.repeat(np.arange(N), rows)[:total]


def _housing(model: object, total: int) -> dupre.ModelUtility:
    X, X_val, y, y_val = map(np.asarray, housing(train=total))
    owner = _owner(total)
    owners = dupre.Owners.from_arrays(X[: len(owner)], y[: len(owner)], owner)
    return dupre.ModelUtility(model, owners, validation=(X_val, y_val), metric="r2")


def boosting() -> dupre.ModelUtility:
    return _housing(GradientBoostingRegressor(n_estimators=50, random_state=0), 2_500)


def support_vectors() -> dupre.ModelUtility:
    scaled = TransformedTargetRegressor(SVR(C=10.0), transformer=StandardScaler())
    # arcsinh: the columns have very long tails.
    return _housing(make_pipeline(FunctionTransformer(np.arcsinh), StandardScaler(), scaled), 2_500)


def digits_support_vectors() -> dupre.ModelUtility:
    X, X_val, y, y_val = digits()
    order, owner = np.random.default_rng(0).permutation(len(y)), _owner(len(y))
    owners = dupre.Owners.from_arrays(X[order][: len(owner)], y[order][: len(owner)], owner)
    return dupre.ModelUtility(
        SVC(probability=True, random_state=0), owners, validation=(X_val, y_val)
    )


GAMES: dict[str, Callable[[], dupre.ModelUtility]] = {
    "housing-boosting-9": boosting,
    "housing-svr-9": support_vectors,
    "digits-svc-9": digits_support_vectors,
}


@dataclass(frozen=True)
class Table:
    """A game of which all coalitions were trained.

    Attributes:
        owners: who holds which rows.
        empty: utility of no data.
        utilities, seconds: of all coalitions by their names.
        values: the exact Shapley values.
    """

    owners: dupre.Owners
    empty: float
    utilities: dict[tuple[str, ...], float]
    seconds: dict[tuple[str, ...], float]
    values: np.ndarray


def train(name: str) -> Table:
    """Train every coalition of a game, in random order: what slows a machine down hits all."""
    utility = GAMES[name]()
    owners, members = utility.owners, all_coalitions(N)
    utility(owners.names)  # the first training of a process loads libraries
    utilities, seconds = {}, {}
    for code in np.random.default_rng(0).permutation(len(members)):
        names = to_names(members[code], owners.names)
        start = time.process_time()
        utilities[names] = float(utility(names))
        seconds[names] = time.process_time() - start
    W = dupre.estimators.exact(dupre.shapley, N)
    u = np.array([utilities[to_names(row, owners.names)] for row in W.members])
    return Table(owners, utility.empty, utilities, seconds, W.W @ u + W.empty * utility.empty)


@dataclass(frozen=True)
class Look:
    """What is known after a batch: trainings and seconds so far, and how well values are known."""

    trainings: int
    seconds: float
    widest: float
    covered: float


def play(table: Table, strategy: Active, seed: int) -> list[Look]:
    """Batch after batch of n coalitions, as `dupre.value` does, until the last goal is reached."""
    valuer = dupre.Valuer(
        table.owners,
        empty=table.empty,
        strategy=strategy,
        by_content=True,
        bounds=(None, 1.0),
        seed=seed,
    )
    spent, looks = 0.0, []
    while valuer.evaluated < MOST and not (looks and looks[-1].widest <= GOALS[-1]):
        for members in valuer.suggest(valuer.first_left or N):
            valuer.record(members, table.utilities[members])
            valuer.record_seconds(members, table.seconds[members])
            spent += table.seconds[members]
        valuation = valuer.interim_values()
        bounds = valuation.interval().to_numpy()
        inside = (bounds[:, 0] <= table.values) & (table.values <= bounds[:, 1])
        widest = float(valuation.uncertainty.widest)
        looks.append(Look(valuer.evaluated, spent, widest, float(inside.mean())))
    return looks


def first_within(looks: list[Look], goal: float) -> Look | None:
    """The first look at which every interval is that narrow, as a stop rule sees it."""
    return next((look for look in looks if look.widest <= goal), None)


def report(name: str, table: Table, seeds: int) -> None:
    """Print the rows of a game."""
    runs = joblib.Parallel(n_jobs=-1)(
        joblib.delayed(play)(table, strategy, seed)
        for strategy in STRATEGIES.values()
        for seed in range(seeds)
    )
    by_strategy = [runs[i : i + seeds] for i in range(0, len(runs), seeds)]
    held = dict(zip(table.owners.names, table.owners.rows.tolist(), strict=True))
    rows = np.array([sum(held[owner] for owner in names) for names in table.seconds])
    seconds = np.array(list(table.seconds.values()))
    cost = fit_cost(rows, seconds)
    off = np.median(np.abs(np.log(cost.seconds(rows) / seconds)))
    print(
        f"\n### {name}: {seconds.min():.2g} to {seconds.max():.2g} s, growing as "
        f"rows^{cost.power:g}, half of them within {100 * off:.0f} % of that\n"
    )
    print("| chosen | " + " | ".join(f"± {goal:g}" for goal in GOALS) + " | intervals cover |")
    print("|---|" + "---|" * (len(GOALS) + 1))
    for label, ours in zip(STRATEGIES, by_strategy, strict=True):
        cells = [cell(ours, by_strategy[0], goal) for goal in GOALS]
        covered = 100 * np.mean([look.covered for looks in ours for look in looks])
        print(f"| {label} | {' | '.join(cells)} | {covered:.0f} % |")


def cell(ours: list[list[Look]], base: list[list[Look]], goal: float) -> str:
    """Seconds and trainings to a width, and the ratio of seconds to those of the base, by seed."""
    pairs = [
        (first_within(a, goal), first_within(b, goal)) for a, b in zip(ours, base, strict=True)
    ]
    reached = [(a, b) for a, b in pairs if a is not None and b is not None]
    if len(reached) < len(pairs):
        return f"not by {MOST}"
    ratio = np.exp(np.mean([np.log(a.seconds / b.seconds) for a, b in reached]))
    seconds, trainings = np.mean([[a.seconds, a.trainings] for a, _ in reached], axis=0)
    return f"{seconds:.2g} s, {trainings:.0f}, **{ratio:.2f}**"


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="*", choices=GAMES, default=list(GAMES))
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"\n## Cost (`python benchmarks/cost.py`, {arguments.seeds} seeds)\n")
    print(
        "Seconds and number of trainings until every 95 % interval is that narrow, and in bold the "
        "seconds over those of choosing per training, geometric mean over seeds; coverage is that "
        "of all looks on the way."
    )
    for name in arguments.games:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = train(name)
        report(name, table, arguments.seeds)


if __name__ == "__main__":
    _main()
