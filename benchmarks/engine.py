"""What running trainings costs: speed-up of workers, the store, bytes per task, memory.

    python benchmarks/engine.py
    python benchmarks/engine.py --load    # what it stands: see load.py

Every figure is measured in this run, with whole calls of `dupre.value` where that is what a user
waits for: starting the workers and choosing what to train are included.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

import dupre
from dupre.game.coalitions import all_coalitions, to_names
from dupre.store.origin import Origin
from dupre.store.store import Store, Stored
from dupre.training import dask, worker_process, workers
from dupre.training.evaluation import Evaluation, Training
from load import LOADS, load

GIGABYTE = 2**30


def digits(n: int) -> tuple[dupre.Owners, tuple[np.ndarray, np.ndarray]]:
    X, y = load_digits(return_X_y=True)
    owners = dupre.Owners.from_arrays(X[:900], y[:900], np.arange(900) % n)
    return owners, (X[900:], y[900:])


def forest() -> tuple[dupre.Owners, dupre.ModelUtility]:
    """Real trainings of roughly a quarter of a second each."""
    owners, validation = digits(8)
    return owners, dupre.ModelUtility(RandomForestClassifier(180), owners, validation=validation)


def spinning(seconds: float) -> tuple[dupre.Owners, Callable[[tuple[str, ...]], float]]:
    """A training that needs this much time of a core, whatever else runs."""
    owners, _ = digits(8)

    def utility(members: tuple[str, ...]) -> float:
        end = time.thread_time() + (seconds if members else 0.0)
        while time.thread_time() < end:
            pass
        return 1 - 0.5 ** len(members) + 0.01 * len("".join(members)) % 0.1

    return owners, utility


def speed_up(
    owners: dupre.Owners, utility: dupre.utility.protocol.Utility, budget: int
) -> tuple[float, float, float]:
    """Time of `value` with one worker and in this process, each over that with two workers.

    And seconds per training. A limit of time makes n_jobs=1 a worker process of its own.
    """

    def timed(n_jobs: int, timeout: float | None) -> tuple[float, dupre.Valuation]:
        start = time.perf_counter()
        valuation = dupre.value(
            owners,
            utility,
            budget=budget,
            progress=False,
            engine=dupre.engines.Local(jobs=n_jobs, timeout=timeout),
        )
        return time.perf_counter() - start, valuation

    (here, alone), (one, _), (two, together) = timed(1, None), timed(1, 3600), timed(2, None)
    assert np.array_equal(alone.mean, together.mean), (
        "the values must be the same to the last digit"
    )
    return one / two, here / two, float(alone.evaluations["seconds"].median())


def train_plainly(part: int, parts: int, count: int) -> None:
    """Train every `parts`-th of `count` forests, one after the other, without dupre's engine."""
    owners, utility = forest()
    rows = np.random.default_rng(0).permutation(all_coalitions(owners.n))[:count]
    with threadpool_limits(1):
        for row in rows[part::parts]:
            utility(to_names(row, owners.names))


def plain_speed_up(count: int) -> float:
    """The speed-up of two plain Python processes that share these forests: what the machine has."""

    def timed(parts: int) -> float:
        command = [sys.executable, __file__, "--plainly"]
        start = time.perf_counter()
        shares = [
            subprocess.Popen([*command, str(part), str(parts), str(count)]) for part in range(parts)
        ]
        ends = [share.wait() for share in shares]
        assert not any(ends)
        return time.perf_counter() - start

    return timed(1) / timed(2)


def waiting() -> dict[str, float]:
    """What two workers do with their time while forests are trained, in parts of it."""
    owners, utility = forest()
    start = time.time()
    valuation = dupre.value(owners, utility, budget=64, progress=False, n_jobs=2)
    whole = time.time() - start
    found = valuation.evaluations
    found["end"] = [datetime.fromisoformat(text).timestamp() - start for text in found["finished"]]
    found["begin"] = found["end"] - found["seconds"]
    nobody = reached = found["begin"].min()
    for begin, end in found.sort_values("begin")[["begin", "end"]].to_numpy():
        nobody += max(0.0, begin - reached)
        reached = max(reached, end)
    own = found.groupby("worker")
    parts = {
        "trainings": found["seconds"].sum(),
        "starting": own["begin"].min().sum(),
        "choosing the next batch": 2 * (nobody - found["begin"].min()),
        "results": (whole - own["end"].max()).sum(),
    }
    parts["one idle while the other trains"] = 2 * whole - sum(parts.values())
    return {what: seconds / (2 * whole) for what, seconds in parts.items()}


def store_overhead() -> float:
    """Milliseconds to keep one evaluation, the wait for the disk included."""
    owners = {f"owner {i:02d}": f"{i:032x}" for i in range(10)}
    names = np.array(list(owners))
    rng = np.random.default_rng(0)
    times = []
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as folder,
        Store(Origin({}, owners), Stored(Path(folder) / "run.sqlite")) as store,
    ):
        for row in dict.fromkeys(map(tuple, rng.random((600, 10)) < 0.5)):
            task = Training(tuple(names[list(row)]))
            evaluation = Evaluation(task, rng.random(), warnings=("Warning: slow",), seed=1)
            start = time.perf_counter()
            store.save(evaluation)
            times.append(time.perf_counter() - start)
    return 1000 * statistics.mean(times)


def finished_to_stored() -> tuple[float, float]:
    """Milliseconds from the end of a training to its commit, the main process busy: median, most.

    The main process computes for half a second after every training; two children go on.
    """
    owners, utility = spinning(0.02)
    waits: list[float] = []
    write = Store.write_at_once

    def timed(store: Store, evaluation: Evaluation) -> None:
        write(store, evaluation)
        waits.append(time.time() - datetime.fromisoformat(evaluation.finished).timestamp())

    def busy(_: object) -> None:
        end = time.perf_counter() + 0.5
        while time.perf_counter() < end:
            np.linalg.eigvalsh(np.eye(100))

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        Store.write_at_once = timed  # type: ignore[method-assign]
        try:
            path = Path(folder) / "run.sqlite"
            dupre.value(owners, utility, budget=24, n_jobs=2, store=path, progress=busy)
        finally:
            Store.write_at_once = write  # type: ignore[method-assign]
    return 1000 * statistics.median(waits), 1000 * max(waits)


def bytes_per_task() -> tuple[int, int]:
    """Largest message to a child after the utility itself, and the largest for a Dask cluster."""
    owners, utility = forest()
    sent = []
    original = worker_process._send

    def counting(stream: object, thing: object) -> None:
        sent.append(len(pickle.dumps(thing)))
        original(stream, thing)

    worker_process._send = counting
    try:
        dupre.value(owners, utility, budget=20, n_jobs=2, progress=False)
    finally:
        worker_process._send = original
    everyone = Training(owners.names)
    for_dask = (
        dask.evaluate_on_worker,
        "f" * 32,
        worker_process.ProcessSettings(timeout=60.0),
        everyone,
    )
    return max(sent), len(pickle.dumps(for_dask))


class Rows:
    """A utility on a gigabyte of rows that touches those of its members, as a training would."""

    def __init__(self, n: int):
        self.X = np.random.default_rng(0).random((GIGABYTE // 8 // 128, 128))
        self.n = n

    def __call__(self, members: tuple[str, ...]) -> float:
        if not members:
            return 0.0
        return sum(float(self.X[int(name) :: self.n].mean()) for name in members)


def private_bytes(process: int) -> int:
    """Memory of a process that no other process shares (Linux)."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def memory() -> tuple[float, float]:
    """Private memory of each worker in gigabytes, once it has read every row; of an idle one."""
    rows = Rows(8)
    names = tuple(map(str, range(8)))

    def busiest(utility: dupre.utility.protocol.Utility) -> float:
        hired = workers.LocalProcesses(utility, worker_process.ProcessSettings(), jobs=2)
        try:
            list(hired.run(Training(names, repeat) for repeat in range(4)))
            children = [child._child.pid for child in hired._children]
            return max(private_bytes(child) for child in children) / GIGABYTE
        finally:
            hired.close()

    return busiest(rows), busiest(lambda _: 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--load", nargs="?", const="all", choices=["all", *LOADS])
    parser.add_argument("--size", type=int)
    parser.add_argument("--plainly", nargs=3, type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.plainly:
        train_plainly(*asked.plainly)
        return
    if asked.load:
        load(asked.load, asked.size)
        return
    print("\n## Engine (`python benchmarks/engine.py`)\n")
    print("| what | measured | target |\n|---|---|---|")
    for name, (owners, utility), budget in (
        ("busy loop", spinning(0.25), 64),
        ("random forest", forest(), 64),
        ("random forest", forest(), 160),
    ):
        ratio, without, seconds = speed_up(owners, utility, budget)
        print(
            f"| two local workers against one, {budget} evaluations of {seconds:.2f} s ({name}), "
            f"same values to the last digit | {ratio:.2f} x ({without:.2f} x against no worker "
            "process) | 1.9 x |"
        )
        sys.stdout.flush()
    for count in (64, 160):
        print(
            f"| two plain Python processes against one, {count} of these forests, no choice and no "
            f"store | {plain_speed_up(count):.2f} x | – |"
        )
        sys.stdout.flush()
    parts = ", ".join(f"{what} {part:.0%}" for what, part in waiting().items())
    print(f"| time of two workers, 64 evaluations (random forest) | {parts} | – |")
    print(f"| keeping one evaluation in the store | {store_overhead():.1f} ms | under 5 ms |")
    middle, most = finished_to_stored()
    print(
        "| from the end of a training to its commit while the main process computes, the last of "
        f"24 (median) | {most:.0f} ms ({middle:.0f} ms) | under 50 ms |"
    )
    to_child, to_dask = bytes_per_task()
    print(f"| largest message per task to a local worker | {to_child} bytes | under 10 kB |")
    print(f"| task for a Dask cluster, 8 owners | {to_dask} bytes | under 10 kB |")
    reading, idle = memory()
    print(
        "| private memory of each of two workers that have read 1 GB of rows, beyond that of a "
        f"worker without rows | {reading - idle:.2f} GB | rows are shared |"
    )


if __name__ == "__main__":
    main()
