"""The experiments by name: which cells they run, and how their scores are shown in RESULTS.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
from benchmarks.digest import digest_of, mark

from experiments import cells, complexity, intuition
from experiments.cells import Cell
from experiments.claims import claims, show_new_trainings, summary
from experiments.page import compare, write_page
from experiments.report import ROOT, bands, format_mean, lines, read_digest, read_scores, table

FOLDER = ROOT / "experiments"
SCORES = FOLDER / "scores"
OF_VALUES = ["MSE", "Pearson", "Kendall", "within 95 %", "time"]
OF_UTILITIES = ["utility MSE", "utility Pearson"]
BY = ["game", "trainings", "method"]
PRINTED = {"exact", "banzhaf", "imdb", "sst2", "imdb-20"}
"""Tables, of which the paper prints numbers."""

ON_THE_PAGE = {
    "utility-mnist": (20, 40),
    "utility-calih": (20, 40),
    "uncertainty": (8, 16, 24),
    "eta": (20,),
}
"""Numbers of trainings that docs/paper.md shows beside a figure; RESULTS.md has all."""


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Attributes:
        title: where it is in the paper, and what it is.
        measure: its scores, by so many processes.
        show: scores to Markdown.
        draw: scores to a figure.
        script: where it is measured.
    """

    title: str
    measure: Callable[[int], pd.DataFrame]
    show: Callable[[pd.DataFrame], str]
    draw: Callable[[pd.DataFrame], None] | None = None
    script: ModuleType = cells

    @property
    def code(self) -> str:
        """Digest of the code that measures it."""
        return digest_of(Path(str(self.script.__file__)))


def cells_of(make: Callable[[], list[Cell]]) -> Callable[[int], pd.DataFrame]:
    """What measures the runs that `make` lists."""
    return lambda jobs: cells.measure_all(make(), jobs)


def show_intuition(scores: pd.DataFrame) -> str:
    """Fig. 2."""
    found = format_mean(scores["l and l'"].to_numpy())
    return (
        "| | paper | ours |\n|---|---|---|\n"
        f"| k(C + l, C + j) | {intuition.PRINTED} | {intuition.PRINTED}, by the choice of gamma |\n"
        f"| k(C + l, C + l') | 0.99 | {found} |"
    )


def draw_predictions(scores: pd.DataFrame) -> None:
    """Fig. 3 and 4."""
    measures = ["utility MSE", "time", "utility Pearson", "Kendall"]
    lines(scores, "trainings", measures, f"paper-utility-{scores['game'].iloc[0]}.png")


def show_predictions(scores: pd.DataFrame) -> str:
    """Fig. 3 and 4."""
    return table(scores, BY, [*OF_UTILITIES, *OF_VALUES])


def show_values(scores: pd.DataFrame) -> str:
    """Tables 1 and 7."""
    return table(scores, BY, OF_VALUES)


def show_orders(scores: pd.DataFrame) -> str:
    """Fig. 5."""
    shown = scores[scores["more"].isin([0, 100, 250])]
    return table(shown, ["game", "trainings", "method", "more"], ["MSE", "Pearson", "time"])


def show_uncertainty(scores: pd.DataFrame) -> str:
    """Fig. 6."""
    return table(scores, BY, ["MSE", "within 1 std", "within 95 %"])


def draw_eta(scores: pd.DataFrame) -> None:
    """Fig. 7."""
    named = scores[scores["method"] == "SSW"]
    labelled = named.assign(method=[f"{t} trainings" for t in named["trainings"]])
    lines(labelled, "eta", ["utility MSE", "MSE", "utility Pearson", "Pearson"], "paper-eta.png")


def show_eta(scores: pd.DataFrame) -> str:
    """Fig. 7."""
    return table(scores, ["game", "trainings", "method", "eta"], [*OF_UTILITIES, "MSE", "Pearson"])


def show_texts(scores: pd.DataFrame) -> str:
    """Tables 2 and 6."""
    first = table(scores[scores["trainings"] == 256], BY, [*OF_UTILITIES, *OF_VALUES])
    second = table(scores[scores["trainings"] == 512], [*BY, "more"], ["MSE", "Pearson", "time"])
    return f"Setup 1:\n\n{first}\n\nSetup 2:\n\n{second}"


def show_many_owners(scores: pd.DataFrame) -> str:
    """Table 3."""
    return table(scores, BY, ["MSE", "Pearson", "Kendall", "size and error", "time"])


def show_complexity(scores: pd.DataFrame) -> str:
    """Table 4."""
    wide = scores.pivot_table(index="rows", columns="method", values="multiple")
    names = ["OTDD", "SW", "SSW"]
    head = f"| rows of a coalition | {' | '.join(names)} |\n|---|---|---|---|"
    body = [
        f"| {rows:,} | "
        + " | ".join(
            "–" if np.isnan(wide.at[rows, m]) else f"{wide.at[rows, m]:,.0f}" for m in names
        )
        + " |"
        for rows in wide.index
    ]
    powers = "; ".join(f"{m} {complexity.growth(scores, m):.2f}" for m in names)
    return "\n".join([head, *body]) + f"\n\nPower of the rows with which the cost grows: {powers}."


EXPERIMENTS: dict[str, Experiment] = {
    "intuition": Experiment(
        "Figure 2: similarity of coalitions on a circle, 5 owners",
        lambda _: intuition.measure(),
        show_intuition,
        script=intuition,
    ),
    "utility-mnist": Experiment(
        "Figure 3: utility prediction, MNIST, 6 owners",
        cells_of(partial(cells.figure_of_predictions, "mnist-6")),
        show_predictions,
        draw_predictions,
    ),
    "utility-calih": Experiment(
        "Figure 4: utility prediction, California housing, 6 owners",
        cells_of(partial(cells.figure_of_predictions, "calih-6")),
        show_predictions,
        draw_predictions,
    ),
    "again": Experiment(
        "MNIST and California housing, 6 owners, trained again; not in the paper",
        cells_of(cells.table_of_new_trainings),
        show_new_trainings,
    ),
    "exact": Experiment(
        "Table 1: exact Shapley values, CIFAR-10 and California housing, 8 owners",
        cells_of(partial(cells.table_of_exact_values, "shapley")),
        show_values,
    ),
    "permutation": Experiment(
        "Figure 5: permutation sampling, MNIST, 10 owners",
        cells_of(cells.figure_of_orders),
        show_orders,
        partial(lines, x="more", measures=["MSE", "Pearson"], file="paper-permutation.png"),
    ),
    "uncertainty": Experiment(
        "Figure 6: uncertainty, MNIST, 5 owners",
        cells_of(cells.figure_of_uncertainty),
        show_uncertainty,
        partial(bands, owners=["highest", "lowest"], file="paper-uncertainty.png"),
    ),
    "eta": Experiment(
        "Figure 7: label weight, Moon, 6 owners", cells_of(cells.figure_of_eta), show_eta, draw_eta
    ),
    "imdb": Experiment(
        "Table 2: IMDb, 10 owners", cells_of(partial(cells.table_of_texts, "imdb-10")), show_texts
    ),
    "imdb-20": Experiment(
        "Table 3: IMDb, 20 heterogeneous owners",
        cells_of(cells.table_of_many_owners),
        show_many_owners,
    ),
    "complexity": Experiment(
        "Table 4: cost of a distance, as multiples of SSW's",
        lambda _: complexity.measure(),
        show_complexity,
        script=complexity,
    ),
    "sst2": Experiment(
        "Table 6: SST-2, 10 owners", cells_of(partial(cells.table_of_texts, "sst2-10")), show_texts
    ),
    "banzhaf": Experiment(
        "Table 7: exact Banzhaf values, CIFAR-10 and California housing, 8 owners",
        cells_of(partial(cells.table_of_exact_values, "banzhaf")),
        show_values,
    ),
}


def write_results() -> None:
    """RESULTS.md, the tables of docs/paper.md and the figures, from all scores there are."""
    scores = read_all()
    (FOLDER / "RESULTS.md").write_text(results(scores))
    write_page(tables_of_the_page(scores))
    for name, frame in scores.items():
        draw = EXPERIMENTS[name].draw
        if draw is not None:
            draw(frame)


def read_all() -> dict[str, pd.DataFrame]:
    """The scores of each experiment that was run."""
    found = {name: SCORES / f"{name}.csv" for name in EXPERIMENTS}
    return {name: read_scores(path) for name, path in found.items() if path.exists()}


def results(scores: dict[str, pd.DataFrame]) -> str:
    """The text of RESULTS.md."""
    parts = [
        "# The paper's experiments\n",
        "Made by `python -m experiments all` from the tables in `experiments/tables/`; beside the "
        "paper's numbers they are in [docs/paper.md](../docs/paper.md). Mean ± standard deviation "
        "over seeds. MSE, Pearson and Kendall are of values, `utility` ones of predicted "
        "utilities; time is trainings and method as a part of training all coalitions.\n",
        f"## What holds\n\n{claims(scores)}\n",
        f"## dupre against the paper's setting\n\n{summary(scores)}\n",
    ]
    for name, frame in scores.items():
        experiment = EXPERIMENTS[name]
        parts.append(f"## {experiment.title}\n\n`python -m experiments {name}`\n")
        parts.append(experiment.show(frame) + "\n")
    return "\n".join(parts)


def tables_of_the_page(scores: dict[str, pd.DataFrame]) -> dict[str, str]:
    """What stands between the comments of docs/paper.md."""
    shown = {"claims": claims(scores), "summary": summary(scores)}
    for name, frame in scores.items():
        if name in PRINTED:
            shown[name] = compare(name, frame)
            continue
        some = frame["trainings"].isin(ON_THE_PAGE[name]) if name in ON_THE_PAGE else slice(None)
        shown[name] = EXPERIMENTS[name].show(frame[some])
    made = {name: mark(read_digest(SCORES / f"{name}.csv"), name) for name in scores}
    return {
        name: text.strip() + (f"\n\n{made[name]}" if name in made else "")
        for name, text in shown.items()
    }
