"""Runs of `dupre.value` in processes of their own, to be killed by tests and `benchmarks/soak.py`.

Every training of a run leaves lines in files: what was trained, when, and by which process.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

from workers import is_gone, wait_for

BUDGET = 22

RUNNER = r'''
"""Runs of `dupre.value`, each in a process forked off this one once everything is imported."""

import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
import dupre
import dupre.valuation.loop
import dupre.training.workers

if "dask" in sys.argv:
    import distributed
if "one form" in sys.argv:  # of the predictor: searching several takes time
    dupre.predictor.form.CHOICES, dupre.predictor.form.OTHERS = {}, ()

NAMES = [f"owner{i}" for i in range(5)]
rng = np.random.default_rng(5)
X = rng.normal(size=(40, 2)) + np.repeat(rng.normal(size=(5, 2)), 8, axis=0)
owners = dupre.Owners.from_arrays(X, X @ [1.0, -1.0] + rng.normal(size=40), np.repeat(NAMES, 8))
worth = dict(zip(NAMES, [0.3, 0.8, 0.2, 0.5, 0.45]))


class Game:
    """Diminishing returns; every training leaves a line in a log, and may go wrong."""

    fingerprint = "diminishing returns"

    def __init__(self, plan):
        self.plan = plan

    def __call__(self, members):
        if not members:
            return 0.1
        plan, text = self.plan, "+".join(members)
        note(plan["log"], f"{plan['tag']} {os.getpid()} {text}\n")
        note(plan["times"], f"begin {time.time()} {plan['tag']} {text}\n")
        time.sleep(plan.get("seconds", 0.01))
        if text in plan.get("hanging", ()) and not Path(plan["go"]).exists():
            time.sleep(600)
        while text in plan.get("waiting", ()) and not Path(plan["go"]).exists():
            time.sleep(0.002)
        if text in plan.get("failing", ()) or plan.get("all_failing"):
            raise ValueError(f"no luck with {text}")
        note(plan["times"], f"end {time.time()} {plan['tag']} {text}\n")
        return float(0.9 - 0.8 * np.exp(-sum(worth[name] for name in members)))


def note(path, line):
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line.encode())
    os.close(log)


def numbers(plan):
    """What comes of a run, as lists and texts."""
    try:
        options = dict(plan.get("options", {}))
        names = ("on_error", "timeout", "retries", "wait")
        of_engine = {k: options.pop(k) for k in names if k in options}
        if plan.get("scheduler"):
            client = distributed.Client(scheduler_file=plan["scheduler"], timeout=5)
            client.wait_for_workers(1, timeout=60)
            options["engine"] = dupre.engines.Dask(client, **of_engine)
        elif of_engine:
            jobs = options.pop("n_jobs", 1)
            options["engine"] = dupre.engines.Local(jobs=jobs, **of_engine)
        kept = plan["store"] and dupre.Stored(plan["store"], check=False)  # trainings are counted
        places = {"store": kept, "progress": shown(plan)}
        result = dupre.value(owners, Game(plan), **places, **options)
    except (dupre.DupreError, dupre.Interrupted) as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, resource.getrlimit(resource.RLIMIT_FSIZE)[1:] * 2)
        valuer = getattr(error, "valuer", None)
        found = {
            "error": type(error).__name__,
            "message": str(error),
            "notes": getattr(error, "__notes__", []),
            "members": getattr(error, "members", None),
            "known": {"+".join(m): u for m, u in valuer.evaluations.items()} if valuer else {},
        }
        if plan.get("go_on_with_known"):
            options = {**options, "known": valuer.trainings}
            found["then"] = numbers({**plan, "options": options, "full_at": 0})
        return found
    evaluations = result.evaluations.sort_values("coalition")
    return {
        "mean": result.mean.tolist(),
        "covariance": result.uncertainty.total.tolist(),
        "rounds": result.facts.rounds.to_numpy().tolist(),
        "evaluations": dict(zip(evaluations["coalition"], evaluations["utility"].tolist())),
        "attempts": dict(zip(evaluations["coalition"], evaluations["attempt"].tolist())),
        "failures": {"+".join(members): why for members, why in result.facts.failures.items()},
        "evaluated": result.facts.evaluated,
        "shown": result.explain(),
    }


def shown(plan):
    """Progress that at some point leaves no more room on the disk."""

    def show(progress):
        if progress.evaluated == plan.get("full_at"):
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            # Less than a page: there is room in the files of this test, but not in the store.
            resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))

    return show if plan.get("full_at") else False


def killing(function, at):
    """A trace that kills this process before the given line of a function is run."""
    lines = sorted({line for _, _, line in function.__code__.co_lines() if line})[1:]

    def trace(frame, event, arg):
        if frame.f_code is function.__code__:
            if event == "line" and frame.f_lineno == lines[at]:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

    return trace


def main():
    for line in sys.stdin:
        plan = json.loads(line)
        if pid := os.fork():
            print(pid, flush=True)
            continue
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tempfile.tempdir = plan["rows"]
        if "killed_in_close" in plan:
            close = dupre.training.workers.LocalProcesses.close
            sys.settrace(killing(close, plan["killed_in_close"]))
        os.dup2(os.open(plan["err"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        os.dup2(2, 1)
        try:
            found = numbers(plan)
        except BaseException:
            found = {"error": "unexpected", "message": traceback.format_exc()}
        part = Path(plan["out"] + ".part")
        part.write_text(json.dumps(found))
        part.rename(plan["out"])
        os._exit(0)


main()
'''


class Runner:
    """Starts runs; what they leave is in one folder."""

    def __init__(self, process, folder):
        self.process, self.folder, self.count = process, folder, 0

    def __call__(self, name="run", **plan):
        """Start a run on the store of this name; its log is shared by all runs on that store."""
        self.count += 1
        tag = f"run{self.count}"
        options = {"budget": BUDGET, **plan.pop("options", {})}
        paths = {
            "store": str(self.folder / f"{name}.sqlite"),
            "log": str(self.folder / f"{name}.log"),
            "times": str(self.folder / f"{name}.times"),
            "go": str(self.folder / f"{name}.go"),
            "out": str(self.folder / f"{tag}.json"),
            "err": str(self.folder / f"{tag}.err"),
            "rows": str(self.folder / tag),
        }
        Path(paths["rows"]).mkdir()
        plan = {**paths, "tag": tag, "options": options, **plan}
        self.process.stdin.write(json.dumps(plan) + "\n")
        self.process.stdin.flush()
        return Run(int(self.process.stdout.readline()), plan)


class Run:
    """One process in which `dupre.value` runs."""

    def __init__(self, pid, plan):
        self.pid, self.plan, self.tag = pid, plan, plan["tag"]

    def signal(self, number):
        os.kill(self.pid, number)  # its number is not given away before the runner ends

    def kill(self):
        self.signal(signal.SIGKILL)
        self.join()

    @property
    def ended(self):
        return is_gone(self.pid)

    def join(self):
        """Wait for the end of the process and of what it has started."""
        wait_for(lambda: self.ended)
        wait_for(lambda: not list(Path(self.plan["rows"]).iterdir()))

    def result(self):
        self.join()
        out = Path(self.plan["out"])
        assert out.exists(), Path(self.plan["err"]).read_text()
        return json.loads(out.read_text())

    def trained(self):
        """Process and coalition of every training this run has begun."""
        lines = [line.split() for line in log_of(self.plan)]
        return [(int(pid), coalition) for tag, pid, coalition in lines if tag == self.tag]

    def coalitions(self):
        return [coalition for _, coalition in self.trained()]


def log_of(plan):
    path = Path(plan["log"])
    return path.read_text().splitlines() if path.exists() else []


def stored(store, where="utility IS NOT NULL"):
    """Coalitions in a store as any SQLite client reads them."""
    if not Path(store).exists():
        return []
    query = f"SELECT coalition FROM evaluations WHERE coalition <> '[]' AND {where}"
    with closing(sqlite3.connect(store, timeout=60)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'evaluations'").fetchone():
            return []
        rows = db.execute(query).fetchall()
    return ["+".join(json.loads(text)) for (text,) in rows]


def first_batch(run):
    """How many coalitions a run has evaluated before it decides on more."""
    with closing(sqlite3.connect(run.plan["store"], timeout=60)) as db:
        return db.execute("SELECT count(*) FROM batches WHERE number = 1").fetchone()[0]


@contextmanager
def start_runner(folder, *options):
    """A process that starts runs quickly; options: "dask" for a cluster, "one form"."""
    script = folder / "runner.py"
    script.write_text(RUNNER)
    command, env = [sys.executable, str(script), *options], {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=env, **pipes)
    yield Runner(process, folder)
    process.stdin.close()
    process.stdout.close()
    assert process.wait() == 0


def assert_same(found, expected):
    assert "error" not in found, found["message"]
    for what in ("mean", "covariance", "rounds", "evaluations", "evaluated", "failures"):
        assert found[what] == expected[what], what
