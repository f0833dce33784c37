"""What the paper claims, and whether the scores measured here bear it out.

A claim holds or it does not, by the means over seeds; how much by is in the numbers beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

Scores = dict[str, pd.DataFrame]
TABLES = ("exact", "imdb", "imdb-20", "sst2", "banzhaf")


def claims(scores: Scores) -> str:
    """A table of all claims that can be checked with these scores."""
    found = [*_ssw_above_binary(scores), *_active_above_random(scores)]
    found += [*_predictions_substitute(scores), *_small_eta(scores), *_intervals(scores)]
    lines = ["| claim of the paper | where | measured | holds |", "|---|---|---|---|"]
    lines += [
        f"| {c} | {where} | {text} | {'yes' if ok else 'no'} |" for c, where, text, ok in found
    ]
    return "\n".join(lines)


def summary(scores: Scores) -> str:
    """What dupre reaches against SSW and against the best of all others, by MSE of values."""
    rows = [row for name, frame in scores.items() for row in _ratios(name, frame)]
    table = pd.DataFrame(rows, columns=["experiment", "game", "trainings", "ssw", "best", "ratio"])
    lines = [
        "MSE of dupre's values divided by that of SSW, and by that of the best other method, at "
        "equally many trainings.\n",
        "| experiment | game | trainings | dupre / SSW | best other | dupre / best other |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.experiment} | {r.game} | {r.trainings} | {r.ssw:.3g} | {r.best} | {r.ratio:.3g} |"
        for r in table.itertuples()
    ]
    by_game = np.log(table["ssw"]).groupby([table["experiment"], table["game"]]).mean()
    lines.append(
        f"\nGeometric mean of dupre / SSW over the {len(by_game)} pairs of experiment and game: "
        f"{np.exp(by_game.mean()):.3g}. dupre is worse than the best other method in "
        f"{(table['ratio'] > 1).sum()} of {len(table)} rows."
    )
    return "\n".join(lines)


def _ratios(name: str, frame: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    if "game" not in frame:
        return
    usable = frame[~frame["method"].isin(["LAVA", "evaluated"])]  # no values, other trainings
    keys = ["game", "trainings", "method", "more", "eta"]
    means = usable.groupby(keys)["MSE"].mean()
    for (game, trainings), group in means.groupby(level=[0, 1]):
        best = group.groupby("method").min()  # over how many were predicted, and over eta
        others = best.drop("dupre")
        paper = group.xs("SSW", level="method").xs(0.5, level="eta").min()
        ours = best["dupre"]
        yield name, game, trainings, ours / paper, others.idxmin(), ours / others.min()


def _means(scores: Scores, name: str, measure: str) -> Iterator[tuple[str, int, pd.Series]]:
    """Of each game and number of trainings: the mean of a measure by method."""
    if name in scores:
        for (game, trainings), part in scores[name].groupby(["game", "trainings"], sort=False):
            yield game, trainings, part.groupby("method")[measure].mean()


def _ssw_above_binary(scores: Scores) -> Iterator[tuple[str, str, str, bool]]:
    for name in TABLES:
        for game, trainings, mean in _means(scores, name, "Pearson"):
            if {"SSW", "GP-binary", "NN-binary"} <= set(mean.index):
                a, b, c = mean["SSW"], mean["GP-binary"], mean["NN-binary"]
                text = f"Pearson SSW {a:.3f}, GP-binary {b:.3f}, NN-binary {c:.3f}"
                where = f"{name}, {game}, {trainings} trainings"
                yield "SSW above both binary methods", where, text, a > max(b, c)


def _active_above_random(scores: Scores) -> Iterator[tuple[str, str, str, bool]]:
    for name in ("utility-mnist", "utility-calih", "exact"):
        for game, trainings, mean in _means(scores, name, "MSE"):
            if {"SSW", "SSW-a"} <= set(mean.index):
                text = f"MSE SSW-a {mean['SSW-a']:.1e}, SSW {mean['SSW']:.1e}"
                where = f"{name}, {game}, {trainings} trainings"
                yield "active above random", where, text, mean["SSW-a"] < mean["SSW"]


def _predictions_substitute(scores: Scores) -> Iterator[tuple[str, str, str, bool]]:
    if "permutation" not in scores:
        return
    mean = scores["permutation"].groupby(["method", "more"])["MSE"].mean()
    none, most, trained = mean["SSW", 0], mean["SSW", 250], mean["evaluated", 250]
    text = f"MSE with 250 predicted {most:.1e}, trained {trained:.1e}, with neither {none:.1e}"
    where = "permutation, mnist-10"
    # At least half of what trainings gain is gained by predictions.
    yield "predictions substitute trainings", where, text, most < (none + trained) / 2


def _small_eta(scores: Scores) -> Iterator[tuple[str, str, str, bool]]:
    if "eta" not in scores:
        return
    frame = scores["eta"][scores["eta"]["method"] == "SSW"]
    for trainings, part in frame.groupby("trainings"):
        mean = part.groupby("eta")["utility MSE"].mean()
        text = (
            f"lowest utility MSE at eta {mean.idxmin():g}: {mean.min():.1e}; 0.5: {mean[0.5]:.1e}"
        )
        yield "eta below 0.5 is best", f"eta, {trainings} trainings", text, mean.idxmin() < 0.5


def _intervals(scores: Scores) -> Iterator[tuple[str, str, str, bool]]:
    if "uncertainty" not in scores:
        return
    mean = scores["uncertainty"].groupby("method")[["within 1 std", "within 95 %"]].mean()
    for method in ("SSW", "GP-binary", "dupre"):
        one, wide = mean.loc[method]
        text = f"{method}: {one:.0%} within one standard deviation, {wide:.0%} within 95 %"
        yield "intervals hold the truth", "uncertainty, mnist-5", text, wide >= 0.9
