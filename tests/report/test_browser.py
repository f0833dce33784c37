"""The report in a real browser, opened from disk."""

import os
import re
import shutil
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from dupre.notes import INFO, Code, note
from dupre.report.document import Heading
from dupre.report.page import page
from dupre.report.pdf import print_page
from dupre.report.statements import write_statements
from dupre.result.remarks import DERIVED
from reporting import HOSTILE, change, troubled, valuation

FIGURES = True
pytestmark = pytest.mark.slow  # a browser is started

EXECUTABLE = os.environ.get("DUPRE_BROWSER") or shutil.which("chromium")

if "DUPRE_BROWSER" not in os.environ:  # otherwise a missing browser is a failure
    pytest.importorskip("playwright", reason="playwright is not installed")
    if EXECUTABLE is None:
        pytest.skip("no Chromium was found", allow_module_level=True)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        yield browser
        browser.close()


HOSPITAL = "University Hospital of the Canton of Somewhere in the very Northern Part of the Country"

REPORTS = {
    "usual": lambda: [valuation(6), replace(valuation(6), semivalue="Banzhaf")],
    "hostile": lambda: [valuation(names=HOSTILE)],
    "many": lambda: [valuation(100)],
    "troubled": lambda: [troubled()],
    "two": lambda: [valuation(2)],
    "long": lambda: [valuation(names=[f"{HOSPITAL}, Department {i}" for i in range(12)])],
    "wide": lambda: [valuation(6, semivalue=f"semivalue {i}") for i in range(4)],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """callable(name) -> the file of a report, written when it is first asked for."""
    folder = tmp_path_factory.mktemp("reports")

    def file(name):
        path = folder / f"{name}.html"
        if not path.exists():
            valuations = REPORTS[name]()
            paid = valuations[0].payments(10_000, currency="EUR", anyway=True)
            path.write_text(page(valuations, paid=paid), encoding="utf-8")
        return path

    return file


@pytest.fixture
def opened(browser, files):
    """Opens a report; afterwards nothing may have gone wrong or out."""
    contexts, troubles, requests = [], [], []

    def open_page(name, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(files(name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
    assert all(url.startswith(("file:", "data:image/png")) for url in requests)
    assert len([url for url in requests if url.startswith("file:")]) == len(contexts)


COUNTED = (
    *("seen", "rows", "outside", "utilities", "count", "folds", "score", "coalitions", "without"),
    *("evaluations", "resamples", "needed"),
)
KNOWN = dict.fromkeys(COUNTED, 1_000) | {"part": 0.99, "column": "a column with a long name " * 2}
"""Facts of the notes of every code."""
FACTS = {Code.FEW_OF_A_CLASS: {"rows": {"a class with a long name": 3, "b": 4, "c": 5, "d": 6}}}
"""Facts of another kind in the notes of some codes."""


@pytest.fixture(scope="module")
def statement(tmp_path_factory):
    """As long a statement as there is: 12 sizes, payments, and more caveats than ever at once."""
    names = ["hospital of " + "many words " * 10, *(f"hospital {i}" for i in range(17))]
    sizes = [[name, s, -0.01, -0.02, 0.03] for name in names for s in range(0, 18, 3) for _ in "ab"]
    table = pd.DataFrame(sizes, columns=["owner", "others", "value", "low", "high"])
    grave = [code for code in Code if code.severity != INFO and code not in DERIVED][:20]
    marks = {"fingerprints": {f"rows of {name}": "0123456789abcdef" * 2 for name in names}}
    marks["rows held out"] = {names[0]: ", ".join(map(str, range(1_001, 1_101)))}
    settings = {"settings": {"metric": "accuracy"}, "utility": {"meaning": "a score " * 20}}
    told = {
        "validation_rows": 900,
        "validating": {names[0]: 0.12},
        "folds": 1,
        "provenance": settings | marks,
    }
    many = {
        "contributions": table,
        "validation": np.eye(18) / 1e9,
        "notes": tuple(note(code, "", **KNOWN | FACTS.get(code, {})) for code in grave),
    }
    found = change(valuation(names=names, rows=np.full(18, 12), **told, **many))
    paid = found.payments(1e9, currency="CHF", anyway=True)
    paid = replace(paid, paid=pd.Series(1e7, paid.frame.index))
    heading = Heading("What your data are worth to the consortium", "Ask the data office " * 5)
    to = tmp_path_factory.mktemp("statements")
    path, *_ = write_statements(found, to, only=names[:1], heading=heading, paid=paid)
    return path


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_a_statement_is_printed_on_one_sheet(browser, statement, paper):
    page = browser.new_page()
    page.goto(statement.as_uri())
    assert page.locator("li").count() >= 20
    assert b"/Count 1\n" in page.pdf(format=paper)
    page.close()


def test_a_browser_as_it_is_installed_prints_pages_and_statements(statement, files):
    for file, count in ((statement, 1), (files("usual"), 2)):
        found = print_page(file, EXECUTABLE).read_bytes()
        assert b"/Count %d\n" % count in found
        assert re.search(rb"/MediaBox \[0 0 59[45]\S* 84[12]", found)  # A4
    assert set(statement.parent.iterdir()) == {statement, statement.with_suffix(".pdf")}


@pytest.mark.parametrize("width", [1280, 390])
def test_a_statement_is_read_without_scrolling_sideways_and_nothing_covers_another(
    browser, statement, width
):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(statement.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.eval_on_selector_all(
        "dt, dd, p, li, h1, h2, h3",
        """all => all.map(e => {
          const range = document.createRange();
          range.selectNodeContents(e);
          const {left, right, top, bottom} = range.getBoundingClientRect();
          return [left, right, top, bottom];
        })""",
    )
    assert all(left >= 0 and right <= width for left, right, _, _ in boxes)
    for (a, b, c, d), (e, f, g, h) in combinations(boxes, 2):
        assert min(b, f) - max(a, e) <= 1 or min(d, h) - max(c, g) <= 1
    assert "Payment, 95 % for the population" in page.locator(
        ".facts >> nth=0"
    ).inner_text().replace("\u00a0", " ")
    lines = "all => all.map(e => e.offsetHeight / parseFloat(getComputedStyle(e).lineHeight))"
    assert max(page.eval_on_selector_all(".facts dd", lines)) < 1.5  # no interval is broken
    page.close()


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_a_usual_statement_is_printed_in_ten_points_and_the_payment_comes_first(
    browser, tmp_path, paper
):
    names = [f"{HOSPITAL}, Department {i}" for i in range(12)]
    sizes = [[name, s, -0.01, -0.02, 0.03] for name in names for s in range(12)]
    table = pd.DataFrame(sizes, columns=["owner", "others", "value", "low", "high"])
    parts = {"validation_rows": 900, "validating": {names[0]: 0.05}, "folds": 10}
    v = change(valuation(names=names), contributions=table, **parts)
    paid = v.payments(10_000, currency="EUR", anyway=True)
    path, *_ = write_statements(v, tmp_path, only=names[:1], paid=paid)
    page = browser.new_page()
    page.goto(path.as_uri())
    assert b"/Count 1\n" in page.pdf(format=paper)
    page.emulate_media(media="print")
    styles = "all => all.map(e => parseFloat(getComputedStyle(e).fontSize) * 0.75)"
    assert min(page.eval_on_selector_all("p:not(.small), dd, dt, li", styles)) > 9.99
    first, second = page.eval_on_selector_all(".facts dd", styles)[:2]
    assert first > second
    page.close()


TABLE = "#answer table >> nth=0"


def column(page, k):
    return page.eval_on_selector_all(
        "#answer table:first-of-type",
        f"t => [...t[0].tBodies[0].rows].map(r => r.cells[{k}].innerText)",
    )


def numbers(texts):
    return [float(text.replace("−", "-").replace(",", "")) for text in texts]


def test_tables_are_sorted_by_click_and_from_the_keyboard(opened):
    page = opened("usual")
    head = page.locator(TABLE).locator("thead th")
    for k, parse in ((1, numbers), (6, numbers), (0, list)):
        for _ in range(2):
            head.nth(k).locator("button").click()
            shown, order = parse(column(page, k)), head.nth(k).get_attribute("aria-sort")
            assert shown == sorted(shown, reverse=order == "descending")
        assert page.locator(TABLE).locator("th[aria-sort]").count() == 1
    assert page.locator(TABLE).locator("tbody tr").count() == 6
    head = head.nth(3)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "ascending"
    shown = numbers(column(page, 3))
    assert shown == sorted(shown)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(TABLE).locator("thead th").nth(4).get_attribute("aria-sort")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["usual", "long"])
def test_the_answer_is_seen_without_scrolling_sideways_and_names_take_few_lines(
    opened, name, width
):
    page = opened(name, width)
    boxes = "all => all.map(e => e.getBoundingClientRect()).map(b => [b.left, b.right, b.height])"
    sides = page.eval_on_selector_all("#answer td, #answer th", boxes)
    assert all(left >= 0 and right <= width for left, right, _ in sides)
    names = page.eval_on_selector_all("#answer th bdi", boxes)
    assert max(height for _, _, height in names) < 4 * 23  # of long names three lines


def test_the_chart_is_printed_below_the_answer_and_the_table_has_no_shades(opened):
    page = opened("usual")
    page.emulate_media(media="print")
    chart = page.locator("#answer figure").bounding_box()
    assert chart["y"] + chart["height"] < 265 * 96 / 25.4  # A4 without its margins
    image = "all => all.map(e => getComputedStyle(e).backgroundImage)"
    assert set(page.eval_on_selector_all(".wide", image)) == {"none"}


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["usual", "hostile", "many"])
def test_figures_are_seen_text_is_large_enough_and_nothing_scrolls_sideways(opened, name, width):
    page = opened(name, width)
    assert page.locator(TABLE).locator("tbody tr").first.bounding_box()["y"] < 800  # first screen
    page.evaluate(OPEN)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.eval_on_selector_all(
        "figure svg",
        "all => all.map(s => s.getBoundingClientRect()).map(b => [b.left, b.right, b.height])",
    )
    assert len(boxes) == 7
    for left, right, height in boxes:
        assert 0 <= left < right <= width
        assert height > 100
    size = "parseFloat(getComputedStyle(e).fontSize)"
    for selector, zoom, least in (("p, td, th, li, dd, figcaption, summary", "1", 16),
                                  ("svg text", "(e.getCTM().a || 1)", 8)):  # fmt: skip
        sizes = page.eval_on_selector_all(selector, f"all => all.map(e => {size} * {zoom})")
        assert min(sizes) >= least


def test_the_first_screen_has_few_words(opened):
    for name in ("two", "usual", "troubled", "hostile", "many"):
        texts = opened(name).eval_on_selector_all(
            "h1, main > p, header p, section > p, section > ul li, figcaption",
            "all => all.filter(e => e.getBoundingClientRect().top < 900).map(e => e.innerText)",
        )
        assert any("Values are within" in text for text in texts) or name in ("hostile", "many")
        words = [word for text in texts for word in text.split() if any(map(str.isalnum, word))]
        assert 20 < len(words) <= 80, texts


OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"


def luminance(colour):
    channels = np.array([int(c) for c in re.findall(r"\d+", colour)[:3]]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


COLOURS = """() => {
  const of = (selector, property) =>
    getComputedStyle(document.querySelector(selector))[property];
  return {
    paper: of("body", "backgroundColor"), ink: of("body", "color"),
    label: of("svg text", "fill"), caption: of("figcaption", "color"), link: of("summary", "color"),
    verdict: of(".verdict", "color"), box: of(".beware", "backgroundColor"),
    points: getComputedStyle(document.querySelector('svg [style*="--data"]')).stroke,
  };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_figures_stand_out_by_day_and_by_night(opened, scheme):
    colours = opened("usual", color_scheme=scheme).evaluate(COLOURS)
    assert (luminance(colours["paper"]) > 0.5) == (scheme == "light")
    for part in ("ink", "label", "caption", "link", "verdict"):
        assert contrast(colours[part], colours["paper"]) >= 4.5, part
    assert contrast(colours["ink"], colours["box"]) >= 4.5
    assert contrast(colours["points"], colours["paper"]) >= 3


def test_without_scripts_the_tables_are_plain_and_there(opened):
    page = opened("usual", java_script_enabled=False)
    assert page.locator("button").count() == 0
    assert page.locator(TABLE).locator("tbody tr").count() == 6


def test_hostile_names_stay_text(opened):
    page = opened("hostile")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, b, script:not(:last-child)").count() == 0
    shown = page.locator(TABLE).locator("tbody th").all_inner_texts()
    assert set(shown) >= {HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[4], "x" * 200}
    labels = page.locator("figure svg >> nth=0").locator("text").all_text_contents()
    assert "$x^2$ and $" in labels


def test_injected_scripts_would_not_run(opened, files, browser, tmp_path):
    bad = files("usual").read_text().replace("</h1>", "</h1><script>window.hacked = 1</script>")
    (tmp_path / "bad.html").write_text(bad)
    page = browser.new_page()
    page.goto((tmp_path / "bad.html").as_uri())
    assert page.evaluate("window.hacked") is None
    assert page.locator("th button").count() > 0  # ours did
    page.close()


def test_on_paper_there_is_the_answer_with_notes_and_payments_and_a_table_has_its_head(opened):
    page = opened("usual", color_scheme="dark")
    shown = {"#notes li": True, "#payments table": True, "#uncertainty table": False}
    for selector in shown:
        assert not page.locator(selector).first.is_visible()  # folded
    page.emulate_media(media="print")
    for selector, printed in shown.items():
        assert page.locator(selector).first.is_visible() == printed
    assert luminance(page.evaluate(COLOURS)["paper"]) == pytest.approx(1)
    page = opened("usual")
    page.evaluate(LINK_TABLES)
    for height in range(140, 220, 8):  # of the paper; some page ends after the head of each table
        paper = page.pdf(width="210mm", height=f"{height}mm")
        places = dict(re.findall(rb"/((?:head|row)\d) \[(\d+) 0 R /XYZ", paper))  # links to pages
        assert len(places) == 4
        assert all(places[b"head%d" % i] == places[b"row%d" % i] for i in range(2))


LINK_TABLES = """() => document.querySelectorAll("#answer, #payments").forEach((section, i) => {
  const table = section.querySelector("table");
  for (const [name, place] of [["head", table.tHead], ["row", table.tBodies[0]]]) {
    place.rows[0].cells[0].id = `${name}${i}`;
    document.body.insertAdjacentHTML("beforeend", `<a href="#${name}${i}">${name}</a>`);
  }
})"""


def test_a_wide_window_cuts_no_table(opened):
    page = opened("wide", width=1440)
    page.evaluate(OPEN)
    widths = "all => all.map(e => [e.clientWidth, e.scrollWidth])"
    ((shown, needed),) = page.locator("#comparison .wide").evaluate_all(widths)
    assert shown == needed > page.locator("main").evaluate("e => e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 1440


def test_the_line_that_counts_notes_opens_them(opened):
    page = opened("troubled")
    assert not page.locator("#notes li").first.is_visible()
    page.get_by_text("more below").click()
    assert page.locator("#notes li").first.is_visible()
    assert page.eval_on_selector("#notes", "e => e.getBoundingClientRect().top") < 900
