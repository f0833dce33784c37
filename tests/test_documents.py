"""Everything a reader is told to run is run, and prints what the page says it prints."""

import ast
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from itertools import groupby
from pathlib import Path

import pytest

import commands
import dupre
from test_architecture import MAY_IMPORT

ALL_FORMS = FIGURES = True
ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/dupre"
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


END = "-- end of a snippet --\n"


def run(script: Path, place: Path = ROOT) -> str:
    """What a script prints, run in this process: importing everything again takes seconds."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(place), redirect_stdout(out), redirect_stderr(err):
        runpy.run_path(str(script), run_name="__main__")
    check_stderr(err.getvalue())
    return out.getvalue()


def run_elsewhere(script: Path, place: Path = ROOT) -> str:
    """What a script prints, run as a reader runs it."""
    command = [sys.executable, "-W", "error", script]
    result = subprocess.run(command, capture_output=True, text=True, cwd=place, check=False)
    assert result.returncode == 0, result.stderr
    check_stderr(result.stderr)
    return result.stdout


def check_stderr(text: str) -> None:
    # On a slow machine a run of more than a few seconds says how far it is.
    assert all(line.startswith("dupre: ") for line in text.splitlines()), text


def snippets(page: Path) -> list[tuple[str, str | None]]:
    """Python blocks of a page with the text block that follows each directly, if one does."""
    blocks = re.findall(
        r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", page.read_text(), flags=re.DOTALL
    )
    return [(code, output or None) for code, output in blocks]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=name)
def test_snippets_print_what_the_page_shows(page, tmp_path):
    blocks = snippets(page)  # they follow one another, as on the page
    script = tmp_path / "snippets.py"
    script.write_text("".join(f"{code}\nprint({END!r}, end='')\n" for code, _ in blocks))
    how = run_elsewhere if page == ROOT / "README.md" else run
    parts = how(script, tmp_path).split(END)
    for (_, expected), printed in zip(blocks, parts, strict=False):
        if expected is not None:
            assert_like(printed, expected)


def assert_like(printed: str, expected: str) -> None:
    """The same words and nearly the same numbers; owners of equal value in any order."""
    printed, expected = by_name_if_equal(printed), by_name_if_equal(expected)
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
    numbers = [float(number) for number in NUMBER.findall(expected)]
    # A model may round otherwise on another CPU; a stale page is off by far more.
    assert [float(n) for n in NUMBER.findall(printed)] == pytest.approx(numbers, abs=2e-3, rel=1e-4)


def by_name_if_equal(text: str) -> str:
    """The text with neighbouring rows of a table that show the same value sorted by name."""
    lines = text.splitlines()
    groups = groupby(enumerate(lines), lambda numbered: value_in(numbered[1]) or numbered[0])
    return "\n".join(line for _, group in groups for line in sorted(line for _, line in group))


def value_in(line: str) -> str | None:
    """The value in a row of a printed table: after two or more spaces, the second number."""
    cells = re.split(r"\s{2,}", line.strip())
    row = len(cells) >= 5 and NUMBER.fullmatch(cells[2]) and "…" in cells[3]
    return cells[2] if row else None


def test_only_owners_of_equal_value_may_change_places():
    head = "owner  rows  value  95 % interval"
    rows = ["a  1  0.5  0.4 … 0.6  9 %", "b  1  0.5  0.4 … 0.6  9 %"]
    low = "c  1  0.2  0.1 … 0.3  9 %"
    assert_like("\n".join([head, *rows, low]), "\n".join([head, *reversed(rows), low]))
    with pytest.raises(AssertionError):
        assert_like("\n".join([head, *rows, low]), "\n".join([head, low, *rows]))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ask_tell", "frame_with_categories", "own_scheduler"])
def test_examples_run_and_print_a_table(name):
    assert "95 % interval" in run(ROOT / f"examples/{name}.py")


@pytest.mark.slow
def test_examples_that_start_processes_or_tell_forty_sources_apart_run():
    assert "95 % interval" in run_elsewhere(ROOT / "examples/dask_cluster.py")
    printed = run(ROOT / "examples/many_owners.py")
    assert "95 % interval" in printed
    assert "Quote for Eve (100 rows), after 3 trainings" in run(ROOT / "examples/market.py")
    assert "least value: source 37, source 38, source 39, source 40." in printed


def type_command(command: str, place: Path) -> str:
    """What a terminal shows after a command, but for how long things took."""
    if re.fullmatch(r"dupre [^|<>]*", command):
        stream = commands.make_stream()
        commands.call(shlex.split(command)[1:], place, stream, stream)
        shown = commands.text_of(stream)
    else:  # the shell has to do something too
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
        how = {"shell": True, "cwd": place, "env": env, "text": True, "check": False}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        shown = subprocess.run(command, **how, **streams).stdout
    assert "Traceback" not in shown
    lines = shown.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("The first ", "dupre: ")))


def sessions(page: Path) -> list[tuple[str, str]]:
    """Commands of the console blocks of a page, each with what it is said to print."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.DOTALL)
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks), flags=re.MULTILINE)
    return [(command, output) for command, output in found]


@pytest.mark.slow
def test_commands_print_what_the_pages_show(tmp_path, monkeypatch):
    shown = type_command("dupre demo", tmp_path)  # one test: the demonstration runs once
    assert {path.name for path in tmp_path.iterdir()} == {"dupre-demo"}
    assert (tmp_path / "dupre-demo/run/report.html").is_file()
    check_demonstration(shown)
    monkeypatch.setattr(*commands.NO_FIGURES)
    for page in (page for page in PAGES if sessions(page)):
        place = tmp_path / page.stem
        shutil.copytree(tmp_path / "dupre-demo", place / "dupre-demo")
        for command, expected in sessions(page):
            if command == "dupre demo":
                continue
            if f"$ {command.removesuffix(' 2>/dev/null')} --run dupre-demo/run\n" in shown:
                # The demonstration has run it, and printed its plan before.
                start = shown.index(expected.splitlines()[0])
                printed = "".join(shown[start:].splitlines(keepends=True)[: expected.count("\n")])
                printed = printed.replace("dupre-demo/run", "dupre-hospitals")
            else:
                printed = type_command(command, place)
            assert_like(printed, expected)


def check_demonstration(shown: str) -> None:
    """It finds the mislabelled owner, and is close to exact."""
    rows = [line for line in shown.splitlines() if line.startswith("Gus ")]
    assert rows[0].endswith(" 8")
    assert "Trainings saved: 215 of 255 (84%)" in shown
    largest = re.search(r"Largest error of a value: (\S+),", shown)
    assert largest
    assert float(largest[1]) < 0.02
    assert Path(shown.rsplit(maxsplit=1)[-1]).name == "report.html"


def messages() -> set[str]:
    """Every text of the source, with … in the place of what is put into it."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(part, "value", "") for part in node.values]
                found.add("".join(part if isinstance(part, str) else "…" for part in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_messages_and_modules_named_on_pages_are_those_of_the_source():
    known = messages()
    quoted = re.findall(r"^### `(.*)`$", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)
    assert quoted
    assert [text for text in quoted if not any(text in message for message in known)] == []

    named = re.findall(r"`(\w+\.\w+)`", "".join(headings(DOCS / "numerics.md")))
    assert named
    assert [it for it in named if not (SOURCE / f"{it.replace('.', '/')}.py").is_file()] == []


def headings(page: Path) -> list[str]:
    """Headings of a page, and the words in bold that begin its paragraphs."""
    return re.findall(r"^(?:## |\*\*).*$", page.read_text(), flags=re.MULTILINE)


def test_packages_and_public_names_on_pages_are_those_of_the_source():
    table = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    assert [row[0] for row in table] == list(MAY_IMPORT)
    for package, modules in table:
        for module in re.findall(r"`(\w+)`", modules):
            assert (SOURCE / package / f"{module}.py").is_file(), (package, module)

    pages = [page.read_text() for page in (DOCS / "reference").glob("*.md")]
    shown = re.findall(r"^::: dupre\.(\w+)$", "\n".join(pages), flags=re.MULTILINE)
    assert sorted(shown) == sorted(dupre.__all__)
