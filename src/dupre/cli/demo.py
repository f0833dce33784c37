"""`dupre demo`: everything on data that come with dupre."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dupre.cli import options as o
from dupre.cli.compare import compare
from dupre.cli.output import Place
from dupre.cli.predict import predict
from dupre.cli.value import value


def demo(run: Annotated[Path, o.DEMO_RUN] = Path("dupre-demo")) -> None:
    """Show everything on data that come with dupre."""
    from dupre.runs import demo as d

    d.write_tables(run)
    print(d.STORY)
    data, checks, directory = run / "hospitals.csv", run / "validation.csv", run / "run"
    columns = "--owner hospital --target digit"
    limits = f"--budget {d.BUDGET} --run {directory}"
    print(f"$ dupre value {data} {columns} --validation {checks} {limits}\n", flush=True)
    value(
        data=str(data),
        owner="hospital",
        target="digit",
        validation=str(checks),
        budget=d.BUDGET,
        run=directory,
    )
    print(f"\n$ dupre compare {directory} Fay Dan", flush=True)
    compare(directory, "Fay", "Dan")
    print(f"\n$ dupre predict {directory} --members Ada,Ben,Cleo", flush=True)
    predict(run=directory, members=["Ada,Ben,Cleo"])
    print("\nTraining all 255 to see how far off that was ...", flush=True)
    run_directory, prepared = Place(directory).open()
    (valuation,) = run_directory.results()
    print(d.describe_error(valuation, d.exact_values(prepared, valuation)))
    print(f"\nThe whole story, to open in a browser: {run_directory.report}")
