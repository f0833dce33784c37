"""What the paper claims, and whether the scores measured here bear it out.

Methods are compared run by run of the same seed, by differences or by ratios of errors. Each mean
stands with its 95 % interval over seeds (Student's t), and a claim is decided by that interval
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from experiments.games import AGAIN

Scores = dict[str, pd.DataFrame]
Claim = tuple[str, str, str, str, str]
TABLES = ("exact", "imdb", "imdb-20", "sst2", "banzhaf")


@dataclass(frozen=True)
class Mean:
    """A mean over seeds with its 95 % interval.

    Attributes:
        value: the mean.
        low: lower end of the interval; NaN from one run.
        high: upper end.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """The mean, then the interval."""
        shown = f"{self.value:.2g}"
        return shown if np.isnan(self.low) else f"{shown} ({self.low:.2g} to {self.high:.2g})"


def mean_of(numbers: pd.Series) -> Mean:
    """Of one number for each seed."""
    value, count = float(numbers.mean()), len(numbers)
    half = student.ppf(0.975, count - 1) * float(numbers.sem()) if count > 1 else np.nan
    return Mean(value, value - half, value + half)


def ratio_of(ours: pd.Series, others: pd.Series) -> Mean:
    """Geometric mean of the ratios of errors of the same seed."""
    found = mean_of(np.log(ours / others).dropna())
    return Mean(*(float(np.exp(x)) for x in (found.value, found.low, found.high)))


def claims(scores: Scores) -> str:
    """A table of all claims that can be checked with these scores."""
    found = [*_ssw_above_binary(scores), *_active_above_random(scores)]
    found += [*_predictions_substitute(scores), *_small_eta(scores), *_intervals(scores)]
    lines = ["| claim of the paper | where | measured | gain (95 %) | holds |"]
    lines += ["|---|---|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(claim)} |" for claim in found])


def summary(scores: Scores) -> str:
    """What dupre reaches against SSW and against the best of all others, by MSE of values."""
    of_paper = {name: frame for name, frame in scores.items() if name != "again"}
    rows = [row for name, frame in of_paper.items() for row in _ratios(name, frame)]
    table = pd.DataFrame(rows, columns=["experiment", "game", "trainings", "ssw", "best", "ratio"])
    lines = [
        "MSE of dupre's values divided by that of SSW, and by that of the best other method, at "
        "equally many trainings: geometric mean of the ratios of the same seed, with its 95 % "
        "interval.\n",
        "| experiment | game | trainings | dupre / SSW | best other | dupre / best other | dupre "
        "is |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.experiment} | {r.game} | {r.trainings} | {r.ssw} | {r.best} | {r.ratio} | "
        f"{_place(r.ratio)} |"
        for r in table.itertuples()
    ]
    of_ssw = table["ssw"].map(lambda ratio: np.log(ratio.value))
    by_game = of_ssw.groupby([table["experiment"], table["game"]]).mean()
    places = table["ratio"].map(_place).value_counts()
    counts = "; ".join(f"{place} in {count}" for place, count in places.items())
    lines.append(
        f"\nGeometric mean of dupre / SSW over the {len(by_game)} pairs of experiment and game: "
        f"{np.exp(by_game.mean()):.3g}. Against the best other method, of {len(table)} rows dupre "
        f"is {counts}."
    )
    return "\n".join(lines)


def show_new_trainings(scores: pd.DataFrame) -> str:
    """MSE of dupre and of another method in each table of the same game, and their mean ratio."""
    lines = ["| game | other method | its MSE | dupre | dupre / other |", "|---|---|---|---|---|"]
    means = []
    for original, again in AGAIN.items():
        of = scores[scores["game"].isin([original, *again])]
        other = next(method for method in of["method"] if method != "dupre")
        runs = of.pivot_table(index=["game", "seed"], columns="method", values="MSE", sort=False)
        ratio = np.log(runs["dupre"] / runs[other]).groupby("game", sort=False).mean()
        mse = runs.groupby("game", sort=False).mean()
        lines += [
            f"| {game} | {other} | {mse.at[game, other]:.1e} | {mse.at[game, 'dupre']:.1e} | "
            f"{np.exp(ratio[game]):.2f} |"
            for game in mse.index
        ]
        # Of the new ones alone: the first were the reason to train again.
        every = mean_of(ratio.drop(original))
        low, middle, high = np.exp([every.low, every.value, every.high])
        means.append(
            f"Over the {len(again)} new tables of {original}: dupre / {other} {middle:.2f} "
            f"({low:.2f} to {high:.2f})."
        )
    return "\n".join([*lines, "", *means])


def _place(ratio: Mean) -> str:
    if np.isnan(ratio.low):
        return "lower in one run" if ratio.value < 1 else "higher in one run"
    if ratio.low <= 1 <= ratio.high:
        return "undecided"
    return "better" if ratio.value < 1 else "worse"


def _ratios(name: str, frame: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    if "game" not in frame:
        return
    usable = frame[~frame["method"].isin(["LAVA", "evaluated"])]  # no values, other trainings
    for (game, trainings), part in usable.groupby(["game", "trainings"]):
        runs = part.pivot_table(index="seed", columns=["method", "more", "eta"], values="MSE")
        # The best over how many were predicted, and over eta.
        others = runs.mean().drop("dupre", level="method")
        best = others.idxmin()
        paper = others[others.index.isin(["SSW"], level=0) & others.index.isin([0.5], level=2)]
        ours = runs["dupre"].iloc[:, 0]
        to_paper, to_best = (ratio_of(ours, runs[key]) for key in (paper.idxmin(), best))
        yield name, game, trainings, to_paper, best[0], to_best


def _judge(gain: pd.Series) -> tuple[str, str]:
    """A gain, one number for each seed, as text, and whether it is above 0 or below it."""
    found = mean_of(gain)
    if np.isnan(found.low):
        return str(found), "in one run" if found.value > 0 else "not in one run"
    if found.low <= 0 <= found.high:
        return str(found), "undecided"
    return str(found), "yes" if found.value > 0 else "no"


def _by_seed(scores: Scores, name: str, measure: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Of each game and number of trainings: a measure by seed and method."""
    if name in scores:
        for (game, trainings), part in scores[name].groupby(["game", "trainings"], sort=False):
            methods = part.pivot_table(index="seed", columns="method", values=measure)
            yield f"{name}, {game}, {trainings} trainings", methods


def _ssw_above_binary(scores: Scores) -> Iterator[Claim]:
    for name in TABLES:
        for where, of in _by_seed(scores, name, "Pearson"):
            if {"SSW", "GP-binary", "NN-binary"} <= set(of):
                mean = of.mean()
                better = mean[["GP-binary", "NN-binary"]].idxmax()
                text = ", ".join(f"{m} {mean[m]:.3f}" for m in ("SSW", "GP-binary", "NN-binary"))
                gain = _judge(of["SSW"] - of[better])
                yield "SSW above both binary methods", where, f"Pearson {text}", *gain


def _active_above_random(scores: Scores) -> Iterator[Claim]:
    for name in ("utility-mnist", "utility-calih", "exact"):
        for where, of in _by_seed(scores, name, "MSE"):
            if {"SSW", "SSW-a"} <= set(of):
                text = f"MSE SSW-a {of['SSW-a'].mean():.1e}, SSW {of['SSW'].mean():.1e}"
                yield "active above random", where, text, *_judge(of["SSW"] - of["SSW-a"])


def _predictions_substitute(scores: Scores) -> Iterator[Claim]:
    if "permutation" not in scores:
        return
    of = scores["permutation"].pivot_table(index="seed", columns=["method", "more"], values="MSE")
    none, most, trained = of["SSW", 0], of["SSW", 250], of["evaluated", 250]
    text = (
        f"MSE with 250 predicted {most.mean():.1e}, trained {trained.mean():.1e}, "
        f"with neither {none.mean():.1e}"
    )
    # At least half of what trainings gain is gained by predictions.
    gain = _judge((none + trained) / 2 - most)
    yield "predictions substitute trainings", "permutation, mnist-10", text, *gain


def _small_eta(scores: Scores) -> Iterator[Claim]:
    if "eta" not in scores:
        return
    frame = scores["eta"][scores["eta"]["method"] == "SSW"]
    for trainings, part in frame.groupby("trainings"):
        of = part.pivot_table(index="seed", columns="eta", values="utility MSE")
        mean = of.mean()
        low, high = mean[mean.index < 0.5].idxmin(), mean[mean.index >= 0.5].idxmin()
        text = f"lowest utility MSE below 0.5 at eta {low:g}: {mean[low]:.1e}, from 0.5 on at "
        text += f"{high:g}: {mean[high]:.1e}"
        gain = _judge(of[high] - of[low])
        yield "eta below 0.5 is best", f"eta, {trainings} trainings", text, *gain


def _intervals(scores: Scores) -> Iterator[Claim]:
    if "uncertainty" not in scores:
        return
    for method, runs in scores["uncertainty"].groupby("method", sort=False):
        by_seed = runs.groupby("seed")[["within 1 std", "within 95 %"]].mean()
        one, wide = by_seed.mean()
        text = f"{method}: {one:.0%} within one standard deviation, {wide:.0%} within 95 %"
        beyond, short = _judge(by_seed["within 95 %"] - 0.95)
        holds = "no" if short == "no" else "yes"
        yield "intervals hold the truth", "uncertainty, mnist-5", text, beyond, holds
