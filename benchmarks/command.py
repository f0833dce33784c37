"""What the command costs besides its trainings: CPU time of whole processes.

    python benchmarks/command.py

`dupre value` on the tables of `dupre demo` is compared with a script that does the same trainings
with scikit-learn alone, imports and reading included. Every process runs on one thread. Modules are
compiled once before anything is measured, as an installation does.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dupre.cli import app
from dupre.report import page
from dupre.runs import directory, plan, prepare
from dupre.store.frames import read_evaluations
from dupre.training import workers
from dupre.valuation.valuer import Valuer

_ = directory, plan, prepare  # `parts` takes the imports of this module for those of the command

BUDGET, RUNS = 40, 3
COMMAND = "from dupre.cli.app import main; main()"
BARE = """
import json, sys
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rows, checks = pd.read_csv("hospitals.csv"), pd.read_csv("validation.csv")
numbers = [name for name in checks if name != "digit" and rows[name].nunique() > 1]
scores = []
for members in json.load(open("coalitions.json")):
    own = rows[rows["hospital"].isin(members)]
    prepare = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    model = make_pipeline(
        make_column_transformer((prepare, numbers)), LogisticRegression(max_iter=1000)
    )
    model.fit(own[numbers], own["digit"])
    scores.append(model.score(checks[numbers], checks["digit"]))
json.dump(scores, open("scores.json", "w"))
"""


def cpu_seconds(folder: str, code: str, *arguments: str, runs: int = RUNS) -> float:
    """User and system time of a Python process, the least of some runs: others disturb it."""
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | one
    found = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def value_arguments(run: str) -> list[str]:
    tables = "hospitals.csv --owner hospital --target digit --validation validation.csv"
    return f"value {tables} --budget {BUDGET} --run {run}".split()


def measure(folder: str) -> tuple[float, float, int, dict[str, float]]:
    """CPU time of the command and of the script, trainings, and that of verbs after the command."""
    from dupre.runs import demo  # imports more than the command does

    for name, frame in zip(("hospitals.csv", "validation.csv"), demo.hospitals(), strict=True):
        frame.to_csv(Path(folder) / name, index=False)
    cpu_seconds(folder, COMMAND, *value_arguments("first"), runs=1)
    whole = min(
        cpu_seconds(folder, COMMAND, *value_arguments(f"run-{i}"), runs=1) for i in range(RUNS)
    )
    stored = read_evaluations(Path(folder) / "first/store.sqlite")
    coalitions = [json.loads(names) for names in stored["coalition"]]
    (Path(folder) / "coalitions.json").write_text(json.dumps(coalitions))
    bare = cpu_seconds(folder, BARE)
    scores = json.loads((Path(folder) / "scores.json").read_text())
    off = (stored["utility"] - scores).abs().max()
    assert off < 0.02, f"these are not the same trainings: a score differs by {off:.3f}"
    verbs = {"show": [], "compare": ["Fay", "Dan"], "predict": ["--members", "Ada,Ben"]}
    after = {
        verb: cpu_seconds(folder, COMMAND, verb, "first", *more)
        for verb, more in (verbs | {"report": []}).items()
    }
    return whole, bare, len(coalitions), after


def parts(folder: str) -> dict[str, float]:
    """CPU time of the parts of the command, from a run in this process."""
    clock, spent, open_parts = time.process_time, Counter[str](), [0.0]

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*arguments: Any, **named: Any) -> Any:
            start = clock()
            open_parts.append(0.0)
            try:
                return function(*arguments, **named)
            finally:
                seconds = clock() - start
                spent[part] += seconds - open_parts.pop()
                open_parts[-1] += seconds

        return run

    spent["imports"] = clock()
    workers.evaluate = timed("trainings", workers.evaluate)  # type: ignore[assignment]
    page.page = timed("page", page.page)
    for name in ("suggest", "interim_values", "check", "forecast", "contributions"):
        setattr(Valuer, name, timed("predictor", getattr(Valuer, name)))
    os.chdir(folder)
    sys.argv = ["dupre", *value_arguments("parts")]
    before = clock()
    with tempfile.TemporaryFile("w") as silent:
        sys.stdout = sys.stderr = silent
        try:
            app.main()
        except SystemExit:
            pass
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    spent["all else"] = clock() - before - open_parts[0]
    return dict(spent)


def main() -> None:
    if sys.argv[1:2] == ["--parts"]:
        found = parts(sys.argv[2])
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as folder:
        whole, bare, trainings, after = measure(folder)
        told = subprocess.run(
            [sys.executable, __file__, "--parts", folder],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
    print("\n## Command (`python benchmarks/command.py`)\n\n| what | against | measured | target |")
    print("|---|---|---|---|")
    print(
        f"| `dupre value`, 8 owners, {trainings} trainings, CPU time of the process | a script "
        f"that does these trainings with scikit-learn | {whole / bare:.1f} x | 2 x |"
    )
    for verb, seconds in after.items():
        print(f"| `dupre {verb}` after it | `dupre value` | {seconds / whole:.2f} x | – |")
    spent = json.loads(told.stdout.splitlines()[-1])
    every = sum(spent.values())
    shares = sorted(spent.items(), key=lambda item: -item[1])
    print("\nOf its CPU time: " + ", ".join(f"{k} {v / every:.0%}" for k, v in shares) + ".")


if __name__ == "__main__":
    main()
