"""A long test of faults: kills at random moments, a full disk, side files removed.

    make soak
    python benchmarks/soak.py --kills 1000 --minutes 60

A game is played with a store from its beginning to its result. Again and again something is killed,
and the game goes on. Local games and games on a Dask cluster run at the same time. Counted are

- lost: evaluations that were in the store and are not any more, and trainings that had ended a
  second before the kill and are not stored;
- repeated: trainings that began although they were stored before the run, or a second before;
- different: games whose values, covariance, rounds or evaluations are not those of a game that
  nothing happens to, to the last digit, and runs that ended in an unexpected way;
- left: games that left a process, or a file of rows, ten seconds after their end.

A disk of its own (a tmpfs of four megabytes) is filled if this user may mount one. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import cycle
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from clusters import Cluster
from faults import Run, Runner, assert_same, start_runner, stored
from workers import children_of, is_gone, stat_of, wait_for

GRACE = 1.0
COUNTS = ("lost", "repeated", "different", "left")
LOCAL = ("main process", "worker", "main process, side files removed", "worker", "disk filled")
ON_DASK = ("Dask client", "Dask worker", "Dask client", "Dask worker", "Dask scheduler")
EXPECTED = {"disk filled": "StoreError", "Dask scheduler": "EngineError"}


@dataclass
class Soak:
    """What two threads share: when to end, and what was counted."""

    kills: int
    end: float
    folder: Path
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    games: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, kind: str, what: str, number: int = 1) -> None:
        with self.lock:
            self.counts[kind, what] += number
            if number and what in COUNTS:
                print(f"{kind}: {number} {what}", file=sys.stderr, flush=True)

    @property
    def goes_on(self) -> bool:
        done = sum(number for (_, what), number in self.counts.items() if what == "times")
        return done < self.kills and time.monotonic() < self.end


class Game:
    """One store, from the first training to the result."""

    def __init__(self, soak: Soak, kind: str, runner: Runner, rng: random.Random, **plan: Any):
        self.soak, self.kind, self.runner, self.rng = soak, kind, runner, rng
        self.name = f"game {soak.games}"
        self.rows = runner.folder / f"{self.name} rows"
        self.rows.mkdir()
        self.plan = {**plan, "rows": str(self.rows)}
        self.store = Path(plan.get("store", runner.folder / f"{self.name}.sqlite"))
        self.kept: set[str] = set()
        self.strikes = [0.0]
        soak.games += 1

    def play(self, strike: Callable[[Game, Run], None], expected: dict[str, Any]) -> None:
        """Start the run again and again, until it ends by itself."""
        while True:
            run = self.runner(self.name, **self.plan)
            if self.soak.goes_on:
                strike(self, run)
            wait_for(lambda run=run: run.ended)
            self.look(run)
            if not Path(run.plan["out"]).exists():
                continue  # it was killed
            found = run.result()
            if found.get("error") != EXPECTED.get(self.kind, "none"):
                break
        try:
            assert_same(found, expected)
        except AssertionError as problem:
            self.soak.count(self.kind, "different")
            print(problem, found.get("message"), file=sys.stderr)
        self.count_repeated()
        try:  # what a kill has left, the next run has deleted
            wait_for(lambda: not list(self.rows.iterdir()), seconds=10)
        except TimeoutError:
            self.soak.count(self.kind, "left")

    def wait(self, run: Run, least: int = 0) -> bool:
        """Wait for a random moment of a run; whether it is still alive."""
        more = len(run.trained()) + max(least, self.rng.choice([0, 1, 1, 2, 3, 5, 8]))
        wait_for(lambda: run.ended or len(run.trained()) >= more)
        time.sleep(self.rng.uniform(0, 0.05))
        return not run.ended

    def hit(self, pid: int) -> None:
        """Kill a process and count it."""
        self.strikes.append(time.time())
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.soak.count(self.kind, "times")

    def look(self, run: Run) -> None:
        """Count what is no longer in the store, or should be.

        What ends while the disk is full is in the exception of that run only.
        """
        now = set(stored(self.store))
        self.soak.count(self.kind, "repeated", len(self.kept.intersection(run.coalitions())))
        ended = [(at, x) for what, at, tag, x in self.times() if (what, tag) == ("end", run.tag)]
        due = {text for at, text in ended if self.kind != "disk filled" and self.is_due(at)}
        self.soak.count(self.kind, "lost", len((self.kept | due) - now))
        self.kept = now

    def is_due(self, at: float) -> bool:
        """Whether a training that ended then must be stored: no kill was near, but one came."""
        near = any(abs(strike - at) < GRACE for strike in self.strikes)
        return at < self.strikes[-1] and not near

    def times(self) -> list[tuple[str, float, str, str]]:
        """Beginning or end of each training: when, of which run, of which coalition."""
        path = self.runner.folder / f"{self.name}.times"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(what, float(at), tag, text) for what, at, tag, text in lines]

    def count_repeated(self) -> None:
        """Count trainings that began although they were stored long before, by the same run."""
        query = "SELECT coalition, finished FROM evaluations WHERE utility IS NOT NULL"
        with closing(sqlite3.connect(self.store)) as db:
            finished = {
                "+".join(json.loads(names)): datetime.fromisoformat(at).timestamp()
                for names, at in db.execute(query)
            }
        begun = [(at, text) for what, at, _, text in self.times() if what == "begin"]
        late = [text for at, text in begun if at > finished.get(text, at) + GRACE]
        self.soak.count(self.kind, "repeated", len(late))


def kill_main(game: Game, run: Run) -> None:
    if game.wait(run):
        game.hit(run.pid)


def kill_main_and_remove(game: Game, run: Run) -> None:
    """Nobody has looked at the store since the kill: SQLite has repaired nothing."""
    if game.wait(run):
        game.hit(run.pid)
        wait_for(lambda: run.ended)
        for side in ("-wal", "-shm"):
            Path(f"{game.store}{side}").unlink(missing_ok=True)


def kill_worker(game: Game, run: Run) -> None:
    while game.soak.goes_on and game.wait(run):
        pid = run.trained()[-1][0] if run.trained() else 0
        if stat_of(pid)[1] == run.pid:
            game.hit(pid)


def fill_disk(game: Game, run: Run) -> None:
    if game.wait(run):
        filler = game.store.parent / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        game.soak.count(game.kind, "times")
        wait_for(lambda: run.ended)
        filler.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A directory on a disk of four megabytes; None if this user may not mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def play_here(soak: Soak, rng: random.Random) -> None:
    """Games on this machine, until it is enough."""
    folder = soak.folder / "here"
    folder.mkdir()
    strikes = {
        "main process": kill_main,
        "main process, side files removed": kill_main_and_remove,
        "worker": kill_worker,
        "disk filled": fill_disk,
    }
    with start_runner(folder) as runner, small_disk(soak.folder / "disk") as disk:
        expected = runner("undisturbed", store=None).result()
        for number, kind in enumerate(cycle(LOCAL)):
            if not soak.goes_on:
                return
            options: dict[str, Any] = {"n_jobs": rng.choice([1, 2])}
            plan: dict[str, Any] = {"options": options}
            if kind == "worker":
                options |= {"n_jobs": 2, "retries": 1_000}
            if kind == "disk filled":
                if disk is None:
                    continue
                plan["store"] = str(disk / f"{number}.sqlite")
            game = Game(soak, kind, runner, rng, **plan)
            game.play(strikes[kind], expected)
            if disk is not None:
                for path in disk.iterdir():
                    path.unlink()


class Clusters:
    """A cluster of two workers, and what is done to it."""

    def __init__(self, folder: Path):
        self.folder, self.number = folder, 0
        self.start()

    def start(self) -> None:
        self.number += 1
        self.cluster = Cluster(self.folder / str(self.number))
        for _ in range(2):
            self.cluster.start_worker()

    def kill_worker(self, game: Game, run: Run) -> None:
        least = 1  # a cluster without workers is refused at the beginning
        while game.soak.goes_on and game.wait(run, least):
            victim = self.cluster.workers.pop(0)
            game.hit(victim.pid)
            victim.wait()
            self.cluster.start_worker()
            least = 0

    def kill_scheduler(self, game: Game, run: Run) -> None:
        if game.wait(run, least=1):  # its client is connected
            game.hit(self.cluster.scheduler.pid)
            wait_for(lambda: run.ended)
            self.cluster.close()
            self.start()
            game.plan["scheduler"] = str(self.cluster.file)

    def count_left(self, soak: Soak, kind: str) -> None:
        def left() -> list[object]:
            alive = [worker.pid for worker in self.cluster.workers if not is_gone(worker.pid)]
            children = [child for pid in alive for child in children_of(pid)]
            return [*self.cluster.folder.glob("dupre-rows-*"), *children]

        try:
            wait_for(lambda: not left(), seconds=10)
        except TimeoutError:
            soak.count(kind, "left")
            print("left:", *left(), file=sys.stderr)


def play_on_dask(soak: Soak, rng: random.Random) -> None:
    """Games on a cluster, until it is enough."""
    folder = soak.folder / "dask"
    folder.mkdir()
    with start_runner(folder, "dask") as runner:
        expected = runner("undisturbed", store=None).result()
        clusters = Clusters(folder)
        strikes = {
            "Dask client": kill_main,
            "Dask worker": clusters.kill_worker,
            "Dask scheduler": clusters.kill_scheduler,
        }
        try:
            for kind in cycle(ON_DASK):
                if not soak.goes_on:
                    return
                wait = 1 if kind == "Dask scheduler" else 60
                plan = {"scheduler": str(clusters.cluster.file), "options": {"wait": wait}}
                plan["options"]["retries"] = 1_000
                game = Game(soak, kind, runner, rng, **plan)
                game.play(strikes[kind], expected)
                clusters.count_left(soak, kind)
        finally:
            clusters.cluster.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill runs at random; count what is lost.")
    parser.add_argument("--kills", type=int, default=1_000, help="how many faults")
    parser.add_argument("--minutes", type=float, default=60.0, help="end after this time at last")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] = str(asked.kills)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        soak = Soak(asked.kills, start + 60 * asked.minutes, Path(folder))
        plays = (play_here, play_on_dask)
        with ThreadPoolExecutor(len(plays)) as threads:
            futures = [
                threads.submit(play, soak, random.Random(f"{asked.seed} {play.__name__}"))
                for play in plays
            ]
            try:
                wait(futures)
            except KeyboardInterrupt:  # count what was done
                soak.end = 0.0
        for future in futures:
            if (problem := future.exception()) is not None:
                soak.count("soak", "different")
                traceback.print_exception(problem)
    kinds = list(dict.fromkeys(LOCAL + ON_DASK))
    print("| what was killed or done | times |", *(f"{what} |" for what in COUNTS))
    print("|---|" + "---|" * (1 + len(COUNTS)))
    for kind in kinds:
        print(f"| {kind} |", *(f"{soak.counts[kind, what]} |" for what in ("times", *COUNTS)))
    total = {
        what: sum(soak.counts[k, what] for k in [*kinds, "soak"]) for what in ("times", *COUNTS)
    }
    print("| all |", *(f"{number} |" for number in total.values()))
    print(f"\n{soak.games} games in {(time.monotonic() - start) / 60:.0f} minutes.")
    return int(any(total[what] for what in COUNTS))


if __name__ == "__main__":
    sys.exit(main())
