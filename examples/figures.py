"""The pictures of the README, from the data of `dupre demo`.

    python examples/figures.py DIRECTORY

demo.png: values after 40 of 255 trainings, and the exact ones. report.png: the top of the report as
a browser shows it, which needs Playwright and Chromium (DUPRE_BROWSER, or on the path).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
from playwright.sync_api import sync_playwright

import dupre
from dupre.runs import demo
from dupre.runs.directory import RunDirectory
from dupre.runs.prepare import prepare


def main(directory: Path) -> None:
    """Run the demonstration somewhere else, draw its values, photograph its page."""
    matplotlib.use("Agg")
    with tempfile.TemporaryDirectory() as place:
        command = Path(sys.executable).parent / "dupre"
        subprocess.run([command, "demo"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        run = RunDirectory(Path(place, "dupre-demo/run"))
        (valuation,) = run.results()
        truth = demo.exact_values(prepare(run.spec()), valuation)
        draw(valuation, truth, directory / "demo.png")
        photograph(run.report, directory / "report.png")


def draw(valuation: dupre.Valuation, exact: dupre.Valuation, file: Path) -> None:
    """Values with intervals, and the exact values as crosses."""
    ax = valuation.plot()
    names = [label.get_text() for label in ax.get_yticklabels()]
    trained = f"exact, all {exact.facts.evaluated} trainings"
    ax.plot(exact.values[names], ax.get_yticks(), "kx", markersize=8, label=trained)
    ax.legend(frameon=False, loc="upper left")
    ax.set_title(f"{valuation.facts.evaluated} of {exact.facts.evaluated} trainings")
    ax.figure.set_size_inches(7, 3.4)
    ax.figure.savefig(file, dpi=130, bbox_inches="tight", metadata={"Software": None})


def photograph(page: Path, file: Path) -> None:
    """The first screen of a page."""
    browser = os.environ.get("DUPRE_BROWSER") or shutil.which("chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = chromium.new_page(viewport={"width": 900, "height": 1150})
        tab.goto(page.resolve().as_uri())
        tab.screenshot(path=file)
        chromium.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
