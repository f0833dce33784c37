import pytest

from commands import refuse, run
from reporting import BROWSER

RUN = "dupre-wine"


@pytest.fixture
def browser(tmp_path, monkeypatch):
    program = tmp_path / "browser"
    program.write_text(BROWSER)
    program.chmod(0o755)
    monkeypatch.setenv("DUPRE_BROWSER", str(program))
    return program


@pytest.mark.slow
def test_a_page_is_also_a_pdf_and_a_workbook_which_never_say_something_older(copy, browser):
    done = run("report", RUN, "--pdf", "--excel", cwd=copy)
    files = ["report.html", "report.pdf", "values.xlsx"]
    assert done.stdout.split() == [f"{RUN}/{name}" for name in files]
    page, *copies = (copy / RUN / name for name in files)
    assert copies[0].read_text().startswith("%PDF-1.4\n<!DOCTYPE html>")
    run("report", RUN, cwd=copy)
    assert all(file.is_file() for file in copies)  # the page is the same
    page.write_text("an older one")
    run("report", RUN, cwd=copy)
    assert not any(file.exists() for file in copies)


def test_statements_are_also_printed(copy, browser):
    names = run("report", RUN, "--statements", "st", "--pdf", cwd=copy).stdout.split()
    assert [name.rpartition(".")[2] for name in names] == ["html"] * 5 + ["pdf"] * 5
    assert {f"st/{file.name}" for file in (copy / "st").iterdir()} == set(names)
    one = run("report", RUN, "--statements", "one", "--only", "Alba", "--pdf", cwd=copy).stdout
    assert one == "one/statement-Alba.html\none/statement-Alba.pdf\n"


def test_without_a_browser_nothing_is_written(copy, monkeypatch):
    monkeypatch.setenv("DUPRE_BROWSER", "nothing-of-this-name")
    asked = ("report", RUN, "--statements", "st", "--pdf")
    assert "is no program; correct it" in refuse(*asked, cwd=copy)
    assert not (copy / "st").exists()
