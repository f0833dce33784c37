"""Everything a reader is told to run is run, and prints what the page says it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


END = "-- end of a snippet --\n"


def run(script: str, *arguments: str, cwd: Path = ROOT) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", script, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    # On a slow machine a run of more than a few seconds says how far it is.
    assert all(line.startswith("dupre: ") for line in result.stderr.splitlines()), result.stderr
    return result.stdout


def snippets(page: Path) -> list[tuple[str, str | None]]:
    """Python blocks of a page with the text block that follows each directly, if one does."""
    blocks = re.findall(
        r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", page.read_text(), flags=re.DOTALL
    )
    return [(code, output or None) for code, output in blocks]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_print_what_the_page_shows(page, tmp_path):
    blocks = snippets(page)  # they follow one another, as on the page
    script = tmp_path / "snippets.py"
    script.write_text("".join(f"{code}\nprint({END!r}, end='')\n" for code, _ in blocks))
    parts = run(str(script), cwd=tmp_path).split(END)
    for (_, expected), printed in zip(blocks, parts, strict=False):
        if expected is not None:
            assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
            numbers = [float(number) for number in NUMBER.findall(expected)]
            # Other BLAS libraries round otherwise; a stale page is off by far more.
            assert [float(n) for n in NUMBER.findall(printed)] == pytest.approx(numbers, abs=2e-3)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "name", ["ask_tell", "dask_cluster", "frame_with_categories", "own_scheduler"]
)
def test_examples_run_and_print_a_table(name):
    assert "95 % interval" in run(f"examples/{name}.py")


def test_forty_sources_are_told_apart():
    printed = run("examples/many_owners.py")
    assert "95 % interval" in printed
    assert "least value: source 37, source 38, source 39, source 40." in printed


def test_demo_finds_the_mislabelled_owner_and_is_close_to_exact(tmp_path):
    figure = tmp_path / "demo.png"
    printed = run("examples/demo.py", "--figure", str(figure))
    table = printed.split("\n\n")[2].splitlines()
    assert table[-1].startswith("Gus (mislabelled)")
    assert "Trainings saved: 215 of 255" in printed
    largest = re.search(r"Largest error of a value: (\S+),", printed)
    assert largest
    assert float(largest[1]) < 0.02
    assert figure.read_bytes().startswith(b"\x89PNG")
