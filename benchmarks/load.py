"""The load that dupre stands: many rounds, evaluations, owners and rows; time, memory, store.

    python benchmarks/engine.py --load
    python benchmarks/engine.py --load rounds --size 500

2,000 evaluations of 16 owners, a store of 100,000 evaluations, 300 owners, and a million rows x 50
columns in Python, by the command and of 1,000 owners, each in a process of its own. The second form
is one of them at another size. Time is that of the CPU. `tests/test_load.py` limits the memory.
"""

from __future__ import annotations

import io
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np
from sklearn.naive_bayes import GaussianNB

import dupre
from dupre.cli import app
from dupre.store.origin import Origin
from dupre.store.sqlite import INSERT
from dupre.store.store import Store, Stored
from dupre.training.evaluation import Evaluation, Training

GIGABYTE = 2**30

Used = dict[str, tuple[str, float]]
"""What is measured, what is allowed, and the part of it that is used."""


def peak() -> float:
    """Most memory that this process has had so far, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGABYTE


def rounds(size: int) -> Used:
    """Evaluations of 16 owners by a utility that costs nothing: all time is dupre's own."""
    rng = np.random.default_rng(0)
    X = rng.random((800, 8))
    owners = dupre.Owners.from_arrays(X, X[:, 0] > 0.5, np.arange(800) % 16)
    weight = dict(zip(owners.names, rng.random(16), strict=True))
    clock: dict[int, float] = {}

    def utility(members: tuple[str, ...]) -> float:
        return 1 - float(np.exp(-sum(weight[name] for name in members)))

    def note(progress: dupre.Progress) -> None:
        clock[progress.evaluated] = time.process_time()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        dupre.value(owners, utility, budget=size, store=path, progress=note)
        stored = path.stat().st_size / size
    early, late = (clock[b] - clock[b - 64] for b in (128, size))
    return {
        "time of a round of 16 after the first 64": ("0.5 s", early / 4 / 0.5),
        "time of a round of 16 at the end": ("0.5 s", late / 4 / 0.5),
        "peak memory": ("2 GB", peak() / 2),
        "store, for each evaluation": ("4 kB", stored / 4096),
    }


def opened(size: int) -> Used:
    """A store of so many evaluations, each with 200 resamples."""
    names = [f"owner {i:02d}" for i in range(20)]
    marks = dict.fromkeys(names, "0" * 32)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        with Store(Origin({}, marks), Stored(path)) as store:
            for first in range(0, size, 1000):
                numbers = range(first + 1, min(first + 1000, size) + 1)
                groups = [tuple(n for i, n in enumerate(names) if k >> i & 1) for k in numbers]
                made = [Evaluation(Training(g), 0.5, resampled=rng.random(200)) for g in groups]
                store._db.execute("BEGIN")
                store._db.executemany(INSERT, [store._to_row(evaluation) for evaluation in made])
                store._db.execute("COMMIT")
        before, start = peak(), time.process_time()
        with Store(Origin({}, marks), Stored(path)) as store:
            seconds = time.process_time() - start
            assert len(store.coalitions()) == size
        numbers = size * 200 * 8 / GIGABYTE
        stored = path.stat().st_size / GIGABYTE
    return {
        "time to open it": ("0.1 ms for each evaluation", 10_000 * seconds / size),
        "memory of an open store": ("3 x the numbers kept", (peak() - before) / numbers / 3),
        "size of the file": ("2 x the numbers kept", stored / numbers / 2),
    }


def many(size: int) -> Used:
    """So many owners, a few more trainings than the first design."""
    rng = np.random.default_rng(0)
    X = rng.random((20 * size, 5))
    owners = dupre.Owners.from_arrays(X, X[:, 0], np.arange(len(X)) % size, task="regression")
    weight = dict(zip(owners.names, rng.random(size), strict=True))
    clock = [time.process_time()]
    valuation = dupre.value(
        owners,
        lambda m: float(np.sqrt(sum(weight[n] for n in m))),
        budget=2 * size + 33,
        progress=lambda _: clock.append(time.process_time()),
    )
    seconds = time.process_time() - clock[0]
    return {
        f"time for {valuation.facts.evaluated} evaluations": ("2 minutes", seconds / 120),
        "time after the last of them": ("10 s", (time.process_time() - clock[-1]) / 10),
        "peak memory": ("2 GB", peak() / 2),
        "`result.json`": ("2 MB", len(valuation.to_json()) / 2e6),
    }


def table(size: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).random((size, 50))
    return X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0.65, "yes", "no")


def rows(size: int) -> Used:
    """Rows x 50 columns of 8 owners, 9 trainings."""
    X, y = table(size)
    start, before = time.process_time(), peak()
    owners = dupre.Owners.from_arrays(X, y, np.arange(size) % 8)
    utility = dupre.ModelUtility(GaussianNB(), owners, validation=(X[:5000], y[:5000]))
    dupre.value(owners, utility, budget=9, progress=False)
    return _beside_rows(X, before, time.process_time() - start)


def suggestion(size: int) -> Used:
    """Rows x 50 columns of 1,000 owners, up to the first suggestion."""
    X, y = table(size)
    start, before = time.process_time(), peak()
    owners = dupre.Owners.from_arrays(X, y, np.arange(size) % 1000)
    dupre.Valuer(owners, empty=0.5, by_content=True).suggest()
    return _beside_rows(X, before, time.process_time() - start)


def _beside_rows(X: np.ndarray, before: float, seconds: float) -> Used:
    more = (peak() - before) * GIGABYTE / X.nbytes
    return {
        "time": ("1 minute for a million rows", seconds / 60 * 1e6 / len(X)),
        "peak memory beside the rows": ("3 x the rows", more / 3),
    }


def command(size: int) -> Used:
    """The same rows as a CSV file, by the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        with path.open("w") as file:
            file.write(",".join([*(f"x{i}" for i in range(50)), "who", "y"]) + "\n")
            for first, (X, y) in enumerate(table(min(size, 10_000)) for _ in range(size // 10_000)):
                shifted = np.round((X + first * 0.618) % 1, 9)
                for i, (x, label) in enumerate(zip(shifted.tolist(), y, strict=True)):
                    file.write(",".join(map(repr, x)) + f",owner {i % 8},{label}\n")
        before, start = peak(), time.process_time()
        how = f"value {path} --owner who --target y --budget 9 --run {folder}/run"
        how += " --model sklearn.naive_bayes:GaussianNB"
        sys.argv = ["dupre", *how.split()]
        silent = io.TextIOWrapper(io.BytesIO())
        with suppress(SystemExit), redirect_stdout(silent), redirect_stderr(silent):
            app.main()
        assert (Path(folder) / "run/result.json").exists()
        seconds, length = time.process_time() - start, path.stat().st_size / GIGABYTE
    return {
        "time": ("5 minutes for a million rows", seconds / 300 * 1e6 / size),
        "peak memory": ("5 x the file", (peak() - before) / length / 5),
    }


LOADS: dict[str, tuple[Callable[[int], Used], int]] = {
    "rounds": (rounds, 2_000),
    "opened": (opened, 100_000),
    "owners": (many, 300),
    "rows": (rows, 1_000_000),
    "suggestion": (suggestion, 1_000_000),
    "command": (command, 1_000_000),
}


def load(name: str, size: int | None) -> None:
    """Print the rows of one load, or of all, each measured in a process of its own."""
    if name in LOADS:
        measure, usual = LOADS[name]
        what = " ".join((measure.__doc__ or "").split())
        for measured, (allowed, part) in measure(size or usual).items():
            print(f"| {size or usual:,}: {what} | {measured} | {allowed} | {part:.0%} |")
        return
    print("# Load (`python benchmarks/engine.py --load`)\n")
    print("| what | measured | allowed | part of it used |\n|---|---|---|---|")
    for each in LOADS:
        sys.stdout.flush()
        subprocess.run([sys.executable, sys.argv[0], "--load", each], check=True)
