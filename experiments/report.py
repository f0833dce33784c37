"""Scores as tables and figures: RESULTS.md and docs/figures/paper-*.png.

Every experiment writes its scores to `experiments/scores/NAME.csv`, under the digest of the code
that made them; all that is shown is made from these files, so that one experiment can be run again
on its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
COLOURS = {
    "SSW": "tab:blue",
    "OTDD": "tab:green",
    "GP-binary": "tab:orange",
    "NN-binary": "tab:red",
    "evaluated": "tab:purple",
    "dupre": "black",
}
ORDER = ["evaluated", "SSW", "SSW-a", "OTDD", "OTDD-a", "GP-binary", "GP-binary-a"]
ORDER += ["NN-binary", "LAVA", "dupre"]
LOGARITHMIC = {"utility MSE", "MSE"}


def read_scores(path: Path) -> pd.DataFrame:
    """Scores by game, trainings and method, in the order in which methods are listed."""
    frame = pd.read_csv(path, comment="#")
    if "game" not in frame:
        return frame
    frame.loc[frame["method"] == "LAVA", "MSE"] = np.nan  # its values have another unit
    place = frame["method"].map(ORDER.index)
    return frame.assign(place=place).sort_values(["game", "trainings", "place"], kind="stable")


def write_scores(path: Path, scores: pd.DataFrame, digest: str) -> None:
    """Write scores under the digest of the code that made them."""
    path.write_text(f"# {digest}\n" + scores.to_csv(index=False, float_format="%.6g"))


def read_digest(path: Path) -> str:
    """Of the code that made these scores."""
    return path.read_text().partition("\n")[0].removeprefix("# ")


def table(scores: pd.DataFrame, by: list[str], measures: Iterable[str]) -> str:
    """Mean ± standard deviation over seeds, a row for each group, as Markdown."""
    columns = [m for m in measures if m in scores and scores[m].notna().any()]
    lines = ["| " + " | ".join([*by, *columns]) + " |", "|---" * (len(by) + len(columns)) + "|"]
    for key, rows in scores.groupby(by, sort=False):
        cells = [format_mean(rows[m].to_numpy()) for m in columns]
        lines.append("| " + " | ".join([*map(str, key), *cells]) + " |")
    return "\n".join(lines)


def format_mean(numbers: np.ndarray) -> str:
    """Mean ± standard deviation if there are several, with an exponent if it is small."""
    if np.isnan(numbers).all():
        return "–"
    mean, std = float(np.mean(numbers)), float(np.std(numbers))
    small = 0 < abs(mean) < 0.01
    if len(numbers) == 1:
        return f"{mean:.1e}" if small else f"{mean:.3f}"
    return f"{mean:.1e} ± {std:.0e}" if small else f"{mean:.3f} ± {std:.3f}"


def lines(scores: pd.DataFrame, x: str, measures: list[str], file: str) -> None:
    """One panel for each measure: means over seeds against x, bands of one standard deviation."""
    figure, axes = plt.subplots(
        1, len(measures), figsize=(3.4 * len(measures), 2.9), layout="constrained"
    )
    for axis, measure in zip(np.atleast_1d(axes), measures, strict=True):
        for method, rows in scores.groupby("method", sort=False):
            groups = rows.groupby(x)[measure]
            mean, std = groups.mean(), groups.std().fillna(0.0)
            style = {"color": COLOURS.get(method.removesuffix("-a")), "label": method}
            dashed = "--" if method.endswith("-a") else "-"
            if len(mean) == 1:  # a method that does not depend on x
                axis.axhline(mean.iloc[0], linestyle=":", **style)
                continue
            axis.plot(mean.index, mean, dashed, marker=".", **style)
            if measure not in LOGARITHMIC:
                axis.fill_between(
                    mean.index, mean - std, mean + std, alpha=0.08, **style | {"label": None}
                )
        axis.set(title=measure, xlabel=x, yscale="log" if measure in LOGARITHMIC else "linear")
    np.atleast_1d(axes)[0].legend(fontsize=6)
    _save(figure, file)


def bands(scores: pd.DataFrame, owners: list[str], file: str) -> None:
    """Value ± standard deviation of some owners against trainings, seed 0, one panel a method."""
    one = scores[scores["seed"] == 0]
    kinds = list(dict.fromkeys(one["method"]))
    figure, axes = plt.subplots(
        len(owners),
        len(kinds),
        figsize=(3.2 * len(kinds), 2.3 * len(owners)),
        sharex=True,
        sharey="row",
        layout="constrained",
    )
    for row, owner in zip(axes, owners, strict=True):
        for axis, method in zip(row, kinds, strict=True):
            rows = one[one["method"] == method].sort_values("trainings")
            x, mean, std = rows["trainings"], rows[f"{owner} value"], rows[f"{owner} std"]
            axis.plot(x, mean, color=COLOURS[method], marker=".")
            axis.fill_between(x, mean - std, mean + std, color=COLOURS[method], alpha=0.25)
            axis.axhline(rows[owner].iloc[0], color="grey", linestyle="--")
            axis.set_title(f"{method}, {owner} value", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("trainings")
    _save(figure, file)


def _save(figure: plt.Figure, file: str) -> None:
    figure.savefig(FIGURES / file, dpi=80, metadata={"Software": None})
    plt.close(figure)
