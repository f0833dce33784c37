"""The load that dupre stands: many rounds, evaluations, owners and rows; time, memory, store.

    python benchmarks/engine.py --load
    python benchmarks/engine.py --load rounds --size 500

2,000 evaluations of 16 owners, a store of 100,000 evaluations, 300 owners, and a million rows x 50
columns in Python and by the command, each in a process of its own. The second form is one of them
(rounds, opened, owners, rows, command) at another size. `tests/test_load.py` holds limits.
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
from dupre.training.evaluation import Evaluation, Training
from dupre.training.evaluation_rows import INSERT
from dupre.training.fingerprints import Origin
from dupre.training.spot_check import Stored
from dupre.training.store import Store

GIGABYTE = 2**30


def peak() -> float:
    """Most memory that this process has had so far, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGABYTE


def rounds(size: int) -> str:
    """Evaluations of 16 owners by a utility that costs nothing: all time is dupre's own."""
    rng = np.random.default_rng(0)
    X = rng.random((800, 8))
    owners = dupre.Owners.from_arrays(X, X[:, 0] > 0.5, np.arange(800) % 16)
    weight = dict(zip(owners.names, rng.random(16), strict=True))
    clock: dict[int, float] = {}

    def utility(members: tuple[str, ...]) -> float:
        return 1 - float(np.exp(-sum(weight[name] for name in members)))

    def note(progress: dupre.Progress) -> None:
        clock[progress.evaluated] = time.perf_counter()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        start = time.perf_counter()
        dupre.value(owners, utility, budget=size, store=path, progress=note)
        total, stored = time.perf_counter() - start, path.stat().st_size / 2**20
    parts = [64, 128, size - 64, size]
    early, late = (clock[b] - clock[a] for a, b in (parts[:2], parts[2:]))
    return (
        f"{total:.0f} s; for 64 evaluations {early:.0f} s after the first 64, {late:.0f} s at the "
        f"end; peak {peak():.2f} GB; store {stored:.1f} MB"
    )


def opened(size: int) -> str:
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
        before, start = peak(), time.perf_counter()
        with Store(Origin({}, marks), Stored(path)) as store:
            seconds = time.perf_counter() - start
            assert len(store.coalitions()) == size
        stored = path.stat().st_size / 2**20
    return f"{seconds:.1f} s; {peak() - before:.2f} GB; store {stored:.0f} MB"


def many(size: int) -> str:
    """So many owners, a few more trainings than the first design."""
    rng = np.random.default_rng(0)
    X = rng.random((20 * size, 5))
    owners = dupre.Owners.from_arrays(X, X[:, 0], np.arange(len(X)) % size, task="regression")
    weight = dict(zip(owners.names, rng.random(size), strict=True))
    start = time.perf_counter()
    valuation = dupre.value(
        owners,
        lambda m: float(np.sqrt(sum(weight[n] for n in m))),
        budget=2 * size + 33,
        progress=False,
    )
    seconds = time.perf_counter() - start
    return f"{seconds:.0f} s for {valuation.evaluated} evaluations; peak {peak():.2f} GB"


def table(size: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).random((size, 50))
    return X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0.65, "yes", "no")


def rows(size: int) -> str:
    """Rows x 50 columns of 8 owners, 9 trainings."""
    X, y = table(size)
    start, before = time.perf_counter(), peak()
    owners = dupre.Owners.from_arrays(X, y, np.arange(size) % 8)
    utility = dupre.ModelUtility(GaussianNB(), owners, validation=(X[:5000], y[:5000]))
    dupre.value(owners, utility, budget=9, progress=False)
    seconds, data = time.perf_counter() - start, X.nbytes / GIGABYTE
    return (
        f"{seconds:.0f} s; peak {peak():.2f} GB, of which {before:.2f} GB the rows ({data:.2f} GB)"
    )


def command(size: int) -> str:
    """The same rows as a CSV file, by the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        with path.open("w") as file:
            file.write(",".join([*(f"x{i}" for i in range(50)), "who", "y"]) + "\n")
            for first, (X, y) in enumerate(table(min(size, 10_000)) for _ in range(size // 10_000)):
                shifted = np.round((X + first * 0.618) % 1, 9)
                for i, (x, label) in enumerate(zip(shifted.tolist(), y, strict=True)):
                    file.write(",".join(map(repr, x)) + f",owner {i % 8},{label}\n")
        before, start = peak(), time.perf_counter()
        how = f"value {path} --owner who --target y --budget 9 --run {folder}/run"
        how += " --model sklearn.naive_bayes:GaussianNB"
        sys.argv = ["dupre", *how.split()]
        silent = io.TextIOWrapper(io.BytesIO())
        with suppress(SystemExit), redirect_stdout(silent), redirect_stderr(silent):
            app.main()
        assert (Path(folder) / "run/result.json").exists()
        seconds, length = time.perf_counter() - start, path.stat().st_size / GIGABYTE
    return f"{seconds:.0f} s; peak {peak():.2f} GB (before {before:.2f}); file {length:.2f} GB"


LOADS: dict[str, tuple[Callable[[int], str], int]] = {
    "rounds": (rounds, 2_000),
    "opened": (opened, 100_000),
    "owners": (many, 300),
    "rows": (rows, 1_000_000),
    "command": (command, 1_000_000),
}


def load(name: str, size: int | None) -> None:
    """Print one row of the table, or all of them, each measured in a process of its own."""
    if name in LOADS:
        measure, usual = LOADS[name]
        what = " ".join((measure.__doc__ or "").split())
        print(f"| {size or usual:,}: {what} | {measure(size or usual)} |")
        return
    print("\n## Load (`python benchmarks/engine.py --load`)\n\n| what | measured |\n|---|---|")
    for each in LOADS:
        sys.stdout.flush()
        subprocess.run([sys.executable, sys.argv[0], "--load", each], check=True)
