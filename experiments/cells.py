"""What is run in each experiment, and what one run is measured by.

A cell is one run of a method on a game with one seed. An experiment is a list of cells; its scores
are a table with one row for each, or several where a run is measured more than once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import joblib
import numpy as np
import pandas as pd

import dupre
from experiments import methods
from experiments.games import AGAIN, ALL_UP_TO, Game, load, orders_until

SEEDS, TEXT_SEEDS = range(10), range(5)
TRAININGS = (10, 20, 30, 40, 50)
FEW = (4, 8, 12, 16, 20, 24, 28)
ETAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MORE = (0, 50, 100, 150, 200, 250)
SEMIVALUES = {"shapley": dupre.shapley, "banzhaf": dupre.banzhaf}


@dataclass(frozen=True)
class Cell:
    """One run.

    Attributes:
        game: its name.
        method: its name, with -a where coalitions are chosen by Algorithm 2.
        drawn: coalitions drawn uniformly, or of the first random orders if `more` is not empty.
        active: coalitions chosen by Algorithm 2.
        seed: of the drawn coalitions.
        semivalue: which values.
        eta: label weight of SSW.
        more: how many predicted coalitions further orders may bring.
    """

    game: str
    method: str
    drawn: int
    active: int = 0
    seed: int = 0
    semivalue: str = "shapley"
    eta: float = 0.5
    more: tuple[int, ...] = ()


def figure_of_predictions(game: str) -> list[Cell]:
    """MSE, time, Pearson and Kendall against the number of trainings (Fig. 3 and 4)."""
    kernels = ["SSW", "GP-binary"] + ["OTDD"] * (load(game).owners.task == "classification")
    cells = [Cell(game, m, t) for m in [*kernels, "NN-binary", "dupre"] for t in TRAININGS]
    cells += [Cell(game, f"{m}-a", t // 2, t // 2) for m in kernels for t in TRAININGS]
    return _with_seeds(cells, SEEDS)


def table_of_exact_values(semivalue: str) -> list[Cell]:
    """100 trainings (Tables 1 and 7), then 10 more (Table 1)."""
    cells = []
    for game in ("cifar-8", "calih-8"):
        kernels = ["SSW", "GP-binary"] + ["OTDD"] * (game == "cifar-8")
        cells += [Cell(game, m, 100) for m in [*kernels, "NN-binary", "LAVA", "dupre"]]
        if semivalue == "shapley":
            cells += [Cell(game, "SSW", 110), Cell(game, "SSW-a", 100, 10)]
            cells += [Cell(game, "GP-binary-a", 100, 10), Cell(game, "dupre", 110)]
    return _with_seeds([replace(cell, semivalue=semivalue) for cell in cells], SEEDS)


def figure_of_orders() -> list[Cell]:
    """512 trainings of random orders and up to 250 more, trained or predicted (Fig. 5)."""
    compared = ("evaluated", "SSW", "OTDD", "GP-binary", "NN-binary")
    cells = [Cell("mnist-10", method, 512, more=MORE) for method in compared]
    return _with_seeds([*cells, Cell("mnist-10", "dupre", 512)], SEEDS)


def figure_of_uncertainty() -> list[Cell]:
    """Values and their standard deviations against the number of trainings (Fig. 6)."""
    compared = ("SSW", "GP-binary", "dupre")
    return _with_seeds([Cell("mnist-5", m, t) for m in compared for t in FEW], SEEDS)


def figure_of_eta() -> list[Cell]:
    """Errors against the label weight (Fig. 7)."""
    cells = [Cell("moon-6", "SSW", t, eta=eta) for t in (10, 20, 30) for eta in ETAS]
    return _with_seeds([*cells, *(Cell("moon-6", "dupre", t) for t in (10, 20, 30))], SEEDS)


def table_of_texts(game: str) -> list[Cell]:
    """256 uniform trainings, then 512 of random orders with 100 predicted (Tables 2 and 6)."""
    compared = ("SSW", "GP-binary", "NN-binary")
    cells = [Cell(game, method, 256) for method in (*compared, "dupre")]
    cells += [Cell(game, method, 512, more=(100,)) for method in compared]
    return _with_seeds([*cells, Cell(game, "dupre", 512)], TEXT_SEEDS)


def table_of_many_owners() -> list[Cell]:
    """5,000 of the sampled coalitions trained, the others predicted (Table 3); one seed.

    The paper prints one number, and a run takes minutes.
    """
    compared = ("SSW", "GP-binary", "NN-binary", "dupre")
    return [Cell("imdb-20", method, 5_000) for method in compared]


def table_of_new_trainings() -> list[Cell]:
    """50 of 63 trainings of two games whose tables are trained again; not in the paper."""
    others = {"mnist-6": "GP-binary-a", "calih-6": "SSW-a"}  # the best besides dupre
    games = [(of, game) for of in others for game in (of, *AGAIN[of])]
    cells = [
        cell
        for of, game in games
        for cell in (Cell(game, others[of], 25, 25), Cell(game, "dupre", 50))
    ]
    return _with_seeds(cells, TEXT_SEEDS)


def measure_all(cells: list[Cell], jobs: int) -> pd.DataFrame:
    """Scores of all cells, one row for each or more."""
    groups: dict[object, list[Cell]] = {}
    for cell in sorted(set(cells), key=lambda cell: (cell.game, cell.method)):
        # Distances of OTDD take a minute or two: one process computes them once for all its cells.
        key = cell.game if cell.method.startswith("OTDD") else cell
        groups.setdefault(key, []).append(cell)
    longest_first = sorted(groups.values(), key=lambda g: (len(g), g[0].method == "dupre"))[::-1]
    runs = (joblib.delayed(_measure_group)(group) for group in longest_first)
    found = joblib.Parallel(n_jobs=jobs, batch_size=1)(runs)
    rows = {cell: scores for group in found for cell, scores in group.items()}
    return pd.DataFrame([row for cell in cells for row in rows[cell]])


def _measure_group(cells: list[Cell]) -> dict[Cell, list[dict[str, object]]]:
    return {cell: measure(cell) for cell in cells}


def measure(cell: Cell) -> list[dict[str, object]]:
    """The scores of one cell."""
    game, semivalue = load(cell.game), SEMIVALUES[cell.semivalue]
    about = {k: v for k, v in asdict(cell).items() if k != "more"} | {"more": 0}
    about["trainings"] = cell.drawn + cell.active
    if cell.more:
        return [about | row for row in _along_orders(game, cell)]
    if cell.method == "LAVA":
        result = methods.run_lava(game)
    else:
        kind = cell.method.removesuffix("-a")
        result = methods.run(
            kind, game, cell.drawn, cell.active, seed=cell.seed, semivalue=semivalue, eta=cell.eta
        )
    scores = about | methods.score(game, result, semivalue)
    truth = game.values(semivalue)
    if game.owners.n > ALL_UP_TO:
        errors = (result.values - truth) ** 2
        scores["size and error"] = methods.pearson(errors, game.owners.rows.astype(float))
    if cell.game == "mnist-5":
        for extreme, i in (("highest", np.argmax(truth)), ("lowest", np.argmin(truth))):
            scores |= {
                f"{extreme}": truth[i],
                f"{extreme} value": result.values[i],
                f"{extreme} std": result.std[i],
            }
    return [scores]


def _along_orders(game: Game, cell: Cell) -> list[dict[str, object]]:
    """Values by Algorithm 4 from trained and predicted utilities of 512 + beta coalitions.

    Those by which the last order exceeds that number count as further ones too.
    """
    n, truth = game.owners.n, game.values(dupre.shapley)
    longest = orders_until(dupre.shapley, n, cell.drawn + max(cell.more), cell.seed)
    position = {row.tobytes(): i for i, row in enumerate(game.members)}
    known = [position[row.tobytes()] for row in longest.members[: cell.drawn]]
    utilities, seconds = game.utilities, 0.0
    if cell.method != "evaluated":
        names = [game.names[i] for i in known]
        result = methods.predict(cell.method, game, names, seed=cell.seed)
        utilities, seconds = result.utilities, result.seconds
    rows: list[dict[str, object]] = []
    for more in cell.more:
        weights = orders_until(dupre.shapley, n, cell.drawn + more, cell.seed)
        used = [position[row.tobytes()] for row in weights.members]
        values = weights.W @ utilities[used] + weights.empty * game.empty
        evaluated = used if cell.method == "evaluated" else known
        spent = game.seconds[evaluated].sum() + seconds
        rows.append(
            {
                "more": more,
                "MSE": float(np.mean((values - truth) ** 2)),
                "Pearson": methods.pearson(values, truth),
                "time": float(spent / game.seconds.sum()),
            }
        )
    return rows


def _with_seeds(cells: list[Cell], seeds: range) -> list[Cell]:
    return [
        replace(cell, seed=seed)
        for cell in cells
        for seed in (seeds if cell.method != "LAVA" else seeds[:1])  # it draws nothing
    ]
