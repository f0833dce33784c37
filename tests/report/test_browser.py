"""The report in a real browser, opened from disk."""

import os
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dupre.report.document import Heading
from dupre.report.page import page
from dupre.report.statements import write_statements
from reporting import HOSTILE, valuation

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


SAMPLED = {"mean": np.array([0.3, 0.2, 0.1, 0.05]), "covariance": np.eye(4) / 1e9}
REPORTS = {
    "usual": lambda: [valuation(6), replace(valuation(6), semivalue="Banzhaf")],
    "hostile": lambda: [valuation(names=HOSTILE)],
    "many": lambda: [valuation(100)],
    "sampled": lambda: [valuation(4, sampling=np.eye(4) / 1e9, **SAMPLED)],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """callable(name) -> the file of a report, written when it is first asked for."""
    folder = tmp_path_factory.mktemp("reports")

    def file(name):
        path = folder / f"{name}.html"
        if not path.exists():
            valuations = REPORTS[name]()
            paid = None if name == "sampled" else valuations[0].payments(10_000, currency="EUR")
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


def test_a_statement_is_printed_on_one_page(browser, tmp_path):
    names = [f"hospital {i}" for i in range(12)]
    sizes = [[name, s, 0.01, -0.02, 0.03] for name in names for s in range(12)]
    table = pd.DataFrame(sizes, columns=["owner", "others", "value", "low", "high"])
    found = valuation(names=names, contributions=table, validation=np.eye(12) / 1e9)
    path, *_ = write_statements(found, tmp_path, heading=Heading())
    page = browser.new_page()
    page.goto(path.as_uri())
    assert b"/Count 1\n" in page.pdf(format="A4")
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
    for k, parse in ((1, numbers), (2, numbers), (0, list)):
        for _ in range(2):
            head.nth(k).locator("button").click()
            shown, order = parse(column(page, k)), head.nth(k).get_attribute("aria-sort")
            assert shown == sorted(shown, reverse=order == "descending")
        assert page.locator(TABLE).locator("th[aria-sort]").count() == 1
    assert page.locator(TABLE).locator("tbody tr").count() == 6
    head = head.nth(2)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "ascending"
    shown = numbers(column(page, 2))
    assert shown == sorted(shown)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(TABLE).locator("thead th").nth(3).get_attribute("aria-sort")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["usual", "hostile", "many"])
def test_figures_are_seen_text_is_large_enough_and_nothing_scrolls_sideways(opened, name, width):
    page = opened(name, width)
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
    for selector, zoom, least in (("p, td, th, li, dd, figcaption, a", "1", 16),
                                  ("svg text", "(e.getCTM().a || 1)", 8)):  # fmt: skip
        sizes = page.eval_on_selector_all(selector, f"all => all.map(e => {size} * {zoom})")
        assert min(sizes) >= least


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
    label: of("svg text", "fill"), caption: of("figcaption", "color"), link: of("th a", "color"),
    points: getComputedStyle(document.querySelector('svg [style*="--data"]')).stroke,
  };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_figures_stand_out_by_day_and_by_night(opened, scheme):
    colours = opened("usual", color_scheme=scheme).evaluate(COLOURS)
    assert (luminance(colours["paper"]) > 0.5) == (scheme == "light")
    for part in ("ink", "label", "caption", "link"):
        assert contrast(colours[part], colours["paper"]) >= 4.5, part
    assert contrast(colours["points"], colours["paper"]) >= 3


def test_without_scripts_the_tables_are_plain_and_there(opened):
    page = opened("usual", java_script_enabled=False)
    assert page.locator("button").count() == 0
    assert page.locator(TABLE).locator("tbody tr").count() == 6


def test_hostile_names_stay_text(opened):
    page = opened("hostile")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, b, script:not(:last-child)").count() == 0
    shown = page.locator("article h3").all_inner_texts()
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


def test_on_paper_each_statement_has_a_page_and_a_table_its_head(opened):
    page = opened("usual", color_scheme="dark")
    assert page.locator("nav").is_visible()
    assert not page.locator(".context").first.is_visible()
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.locator(".context").first.is_visible()
    assert luminance(page.evaluate(COLOURS)["paper"]) == pytest.approx(1)
    articles = page.locator("article")
    assert articles.count() == 6
    breaks = articles.evaluate_all("all => all.map(a => getComputedStyle(a).breakBefore)")
    assert breaks == ["page"] * 6
    page = opened("usual")
    page.evaluate(LINK_TABLES)
    for height in range(140, 220, 8):  # of the paper; some page ends after the head of each table
        paper = page.pdf(width="210mm", height=f"{height}mm")
        places = dict(re.findall(rb"/((?:head|row)\d) \[(\d+) 0 R /XYZ", paper))  # links to pages
        assert len(places) == 6
        assert all(places[b"head%d" % i] == places[b"row%d" % i] for i in range(3))


LINK_TABLES = """() => document.querySelectorAll("section > .wide table").forEach((table, i) => {
  for (const [name, place] of [["head", table.tHead], ["row", table.tBodies[0]]]) {
    place.rows[0].cells[0].id = `${name}${i}`;
    document.body.insertAdjacentHTML("beforeend", `<a href="#${name}${i}">${name}</a>`);
  }
})"""


def test_a_wide_window_cuts_no_table(opened):
    page = opened("sampled", width=1280)
    widths = "all => all.map(e => [e.clientWidth, e.scrollWidth])"
    ((shown, needed),) = page.locator("section > .wide").evaluate_all(widths)
    assert shown == needed > page.locator("main").evaluate("e => e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 1280


def test_links_lead_to_statements(opened):
    page = opened("usual")
    page.locator(TABLE).locator("tbody a").nth(2).click()
    target = page.evaluate("location.hash")
    assert page.locator(f"{target} h3").is_visible()
    top = page.eval_on_selector(target, "e => e.getBoundingClientRect().top")
    nav = page.eval_on_selector("nav", "e => e.getBoundingClientRect().bottom")
    assert nav - 1 <= top < 900
