"""Printing with programs that stand in for a browser; `test_browser` prints with a real one."""

import os
import time

import pytest

from dupre import InputError
from dupre.report import pdf
from reporting import BROWSER


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """callable(script) -> a program that is found as the browser."""

    def write(script=BROWSER):
        program = tmp_path / "browser"
        program.write_text(script)
        program.chmod(0o755)
        monkeypatch.setenv("DUPRE_BROWSER", str(program))
        return pdf.find_browser()

    return write


@pytest.fixture
def page(tmp_path):
    place = tmp_path / "St. Gallen, pages"
    place.mkdir()
    page = place / "statement-St.-Gallen.html"
    page.write_text("<html><head><title>Ü</title></head></html>", encoding="utf-8")
    return page


def test_a_pdf_stands_beside_its_page_on_a4_paper_and_nothing_else_is_left(browser, page):
    written = pdf.print_page(page, browser())
    assert written == page.parent / "statement-St.-Gallen.pdf"
    assert "<title>Ü</title><style>@page { size: A4; }</style></head>" in written.read_text()
    assert set(page.parent.iterdir()) == {page, written}
    assert "A4" not in page.read_text()
    asked = (page.parent.parent / "browser.asked").read_text()
    assert "--host-resolver-rules=MAP * ~NOTFOUND" in asked
    assert f"--user-data-dir={page.parent}" in asked


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there is no root")
def test_the_sandbox_is_left_out_for_root_alone(browser, page, monkeypatch):
    for user in (0, 1000):
        program = browser()
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        pdf.print_page(page, program)
        asked = page.parent.parent / "browser.asked"
        assert ("--no-sandbox" in asked.read_text()) == (user == 0)
        asked.unlink()


def test_a_browser_that_fails_is_an_error_and_the_pdf_of_before_stays(browser, page):
    old = page.with_suffix(".pdf")
    old.write_text("old")
    program = browser("#!/bin/sh\necho first >&2; echo no display >&2; exit 1\n")
    with pytest.raises(InputError, match=r"made no PDF \(no display\); let .* DUPRE_BROWSER name"):
        pdf.print_page(page, program)
    assert old.read_text() == "old"
    assert set(page.parent.iterdir()) == {page, old}


def test_a_browser_that_hangs_is_ended_with_all_that_it_started(browser, page, monkeypatch):
    monkeypatch.setattr(pdf, "SECONDS", 0.3)
    program = browser('#!/bin/sh\nsleep 60 &\necho $! > "$0.child"\nwait\n')
    begun = time.monotonic()
    with pytest.raises(InputError, match="did not end within"):
        pdf.print_page(page, program)
    assert time.monotonic() - begun < 10
    child = int((page.parent.parent / "browser.child").read_text())
    for _ in range(100):  # whoever inherits it takes a moment to notice
        if not is_running(child):
            break
        time.sleep(0.05)
    assert not is_running(child)


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_without_a_browser_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("DUPRE_BROWSER", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"none', but that is no program; correct it"):
        pdf.find_browser()
    monkeypatch.delenv("DUPRE_BROWSER")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="install Chromium, Chrome or Edge, or"):
        pdf.find_browser()
    program = tmp_path / "google-chrome"
    program.write_text(BROWSER)
    program.chmod(0o755)
    assert pdf.find_browser() == str(program)
