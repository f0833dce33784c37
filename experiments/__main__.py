"""Run experiments of the paper, or train the tables they need.

python -m experiments NAME ...          measure, then write RESULTS.md and the figures anew
python -m experiments all               every experiment
python -m experiments report            RESULTS.md and the figures from the scores there are
python -m experiments train [GAME ...]  train tables; it goes on where it was stopped
"""

from __future__ import annotations

import argparse
import time

from experiments.games import GAMES, train
from experiments.report import read_scores, write_scores
from experiments.sections import EXPERIMENTS, SCORES, write_results


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help=", ".join(EXPERIMENTS))
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    arguments = parser.parse_args()
    first, *others = arguments.names
    if first == "train":
        if unknown := [name for name in others if name not in GAMES]:
            parser.error(f"no game {unknown[0]!r}; there are {', '.join(GAMES)}")
        for game in others or GAMES:
            train(game, arguments.jobs)
        return
    names = {"all": list(EXPERIMENTS), "report": []}.get(first, arguments.names)
    if unknown := [name for name in names if name not in EXPERIMENTS]:
        parser.error(f"no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}, all")
    SCORES.mkdir(exist_ok=True)
    for name in names:
        start = time.monotonic()
        experiment, path = EXPERIMENTS[name], SCORES / f"{name}.csv"
        write_scores(path, experiment.measure(arguments.jobs), experiment.code)
        print(experiment.show(read_scores(path)))
        print(f"\n{name}: {time.monotonic() - start:.0f} s", flush=True)
    write_results()


if __name__ == "__main__":
    main()
