import base64
import hashlib
import os
import re
from dataclasses import replace
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import dupre
from commands import NO_FIGURES
from dupre import InputError, NotPayableError
from dupre.errors import Remedy
from dupre.notes import Code, note
from dupre.report.document import escape_text, spell_name
from dupre.report.page import notebook_table, page, write
from dupre.report.summary import grave_notes
from reporting import HOSTILE, VARIANTS, bare, change, three_results, trainings, valuation

FIGURES = True
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Parses a page and refuses one that is not well nested."""

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.elements, self.words = [], [], [], [], []
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        attributes = dict(attrs)
        assert len(attributes) == len(attrs)
        self.elements.append((tag, attributes))
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if "href" in attributes else []
        for value in attributes.values():
            self.links += [f"#{name}" for name in re.findall(r"url\(#([^)]*)\)", value or "")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@cache
def page_of(kind):
    return page(VARIANTS[kind]())


@cache
def words_of(kind):
    return Page(without_figures(VARIANTS[kind]())).text


def without_figures(valuations, **more):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*NO_FIGURES)
        return page(valuations, **more)


FEW = ("usual", "exact", "least core", "bare", "hostile")  # the others have the same figures


@pytest.fixture(
    scope="module",
    params=[k if k in FEW else pytest.param(k, marks=pytest.mark.slow) for k in VARIANTS],
)
def markup(request):
    return page_of(request.param)


def test_pages_are_well_nested_and_every_part_says_what_it_is(markup):
    parsed = Page(markup)
    assert len(set(parsed.ids)) == len(parsed.ids)
    within = [link for link in parsed.links if link.startswith("#")]
    assert {link[1:] for link in within} <= set(parsed.ids)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in parsed.links)

    assert [len(parsed.all(tag)) for tag in ("h1", "main", "header")] == [1, 1, 1]
    assert parsed.all("html") == [{"lang": "en"}]
    answer, *folded = parsed.all("section")
    assert (answer["id"], answer["aria-label"]) == ("answer", "The answer")
    assert all(section["aria-labelledby"] in parsed.ids for section in folded)
    assert len(parsed.all("h2")) == len(folded)
    assert set(parsed.all("details")[0]) <= {"class"}  # closed

    figures = parsed.all("svg")
    assert len(figures) == len(parsed.all("figure")) == len(parsed.all("figcaption"))
    assert all(svg["role"] == "img" and len(svg["aria-label"]) > 20 for svg in figures)
    assert len(parsed.all("caption")) == len(parsed.all("table"))
    assert all(head["scope"] in ("row", "col") for head in parsed.all("th"))


def words_of_the_answer(valuations, paid=None):
    """What is to be read before the first section that folds, apart from table and figure."""
    markup = without_figures(valuations, paid=paid)
    answer = markup.split("<header>")[1].split("</section>")[0]
    answer = re.sub(r"<table.*?</table>|<figure>.*?</figure>", "", answer, flags=re.S)
    return unescape(re.sub(r"<[^>]*>", " ", answer)).split()


@pytest.mark.parametrize("kind", VARIANTS)
def test_the_answer_has_few_words_and_what_was_found_gravest_is_in_them(kind):
    first, *others = VARIANTS[kind]()
    many = [note(code, f"It is {code}.") for code in (Code.SEEN_ROWS, Code.LEAK, Code.FAR_NUMBERS)]
    long = note(Code.LEAK, "", column=" ".join(["a", "column", "of", "many", "words"] * 3))
    rows = 1e-6 * np.eye(len(first.owners))
    for notes, changes in (((), {}), (many, {}), ((long,), {"validation": rows})):
        v = change(first, notes=tuple(notes), **changes)
        for paid in (None, v.payments(10_000, anyway=True), NotPayableError("not payable: no")):
            words = words_of_the_answer([v, *others], paid)
            assert sum(any(map(str.isalnum, word)) for word in words) <= 80, " ".join(words)
            text = " ".join(words)
            assert text.startswith("What each owner's data are worth")
            assert v.verdict.kind.capitalize() in text
            told = [" ".join(one.short.split()) in text for one in grave_notes(v)]
            assert told == sorted(told, reverse=True)  # none before a graver one
            assert all(told[:1])
            assert ("Paid although not payable" in text) == getattr(paid, "anyway", False)
            assert ("No payments." in text) == isinstance(paid, InputError)


def test_the_first_table_has_payments_beside_the_names_and_no_standard_deviations():
    v = valuation(4)
    head = re.findall("<th scope=.col.>(.*?)</th>", page([v], paid=v.payments(1, currency="EUR")))
    first = ["Owner", "Payment (EUR)", "95 % interval", "Value", "Share", "Rank (95 %)", "Rows"]
    assert [cell.replace("\u00a0", " ") for cell in head[:7]] == first
    assert head[7:10] == ["Owner", "Payment (EUR)", "95\u00a0% interval"]
    markup = page([v], paid=(paid := v.payments(10_000)))
    low, high = paid.frame.loc[v.owners[v.order[0]], ["low", "high"]]
    (first, *_) = re.findall("<td[^>]*>([^<]* … [^<]*)</td>", markup)
    assert first == f"{low:,.2f} … {high:,.2f}"  # not that of the value


def test_what_is_only_very_probable_is_written_the_same_way_in_table_and_figure():
    v = valuation(4, mean=np.array([0.9, 0.2, 0.19, 0.1]), covariance=1e-5 * np.eye(4))
    assert (v.probability_greater().to_numpy() == 1).any()  # rounded by the computer
    shown = unescape(page([v]).split('id="ranking"')[1].split("</section>")[0])
    assert ">99" in re.findall(r"<text[^>]*>([<>\d]*)</text>", shown)
    cells = re.findall(r"<td>(.*?)\xa0%</td>", shown)
    assert {">99", "<1"} < set(cells)
    assert not {"100", "0"} & set(cells)


def test_it_says_why_nobody_is_paid_in_words_of_the_page():
    refused = NotPayableError("not payable: no gain; to pay all the same, ", Remedy.ANYWAY)
    changed = InputError("/home/me/run/ledger.jsonl was changed: entry 1 is missing")
    for why, words in (
        (refused, "No payments: the values are not payable."),
        (changed, "No payments: ledger.jsonl was changed: entry 1 is missing."),
    ):
        text = Page(without_figures([valuation(3)], paid=why)).text
        assert words in text
        assert "anyway" not in text


def test_nothing_is_missing_or_asked_of_the_network_and_only_our_script_may_run(markup):
    scripts = re.findall(r"<script>(.*?)</script>", markup, flags=re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    policies = [meta for meta in Page(markup).all("meta") if "http-equiv" in meta]
    assert f"script-src 'sha256-{digest}'" in policies[0]["content"]
    assert policies[0]["content"].startswith("default-src 'none'; ")
    assert not re.search(r"https?://|@import|src=\"(?!data:)", markup.replace(HOSTILE[1], ""))
    words = re.sub(r"<svg.*?</svg>", "", markup, flags=re.S)
    assert not re.search(r"\b(nan|inf|None(?!:))\b", words)


def test_hostile_names_and_texts_stay_text_isolated_from_its_direction():
    parsed = Page(page_of("hostile"))
    assert len(parsed.all("script")) == 1
    assert parsed.all("img") == parsed.all("b") == parsed.all("i") == []
    assert not any(key.startswith("on") for _, attributes in parsed.elements for key in attributes)
    for name in ("<script>window.hacked = 1</script>", "&amp; <b>bold</b>", "שלום עולם", "x" * 200):
        assert name in parsed.text
    assert "\\u202eright to left\\u2069" in parsed.text
    bad = "<script>1</script>\u2069\u2068</bdi>"
    told = {"failures": {("owner 0",): bad}, "warnings": {bad: (("owner 1",),)}, "stopped": bad}
    told["provenance"] = {bad: {bad: bad, "lines": f"{bad}\n{bad}"}}
    v = valuation(4, semivalue=bad, **told)
    parsed = Page(without_figures([v, replace(v, semivalue="Banzhaf")]))
    assert len(parsed.all("script")) == 1
    assert parsed.text.count("<script>1</script>") > 6
    assert escape_text(f"of {spell_name('שלום')} & co") == "of <bdi>שלום</bdi> &amp; co"
    assert escape_text("loose \u2068 mark") == "loose \\u2068 mark"


def test_a_history_has_a_section_with_table_lines_and_figure_if_there_is_more_than_one_result():
    results = three_results()
    found = replace(dupre.history(results), not_read=("history/2/result.json (/a/b <i>)",))
    shown = page(results[-1:], history=found)
    parsed = Page(shown)
    assert [one["id"] for one in parsed.all("section")].count("history") == 1
    section = re.search('<section id="history".*?</section>', shown, re.S)[0]
    assert "<details>" in section  # it opens on a click
    words = Page(section).text
    assert "Result 2: 2026-02-01, 26 coalitions trained (+6), sum" in words
    assert "Joined: new." in words
    assert "Left: owner 0. Other rows: owner 1." in words
    assert "Not read: history/2/result.json (b <i>)." in words
    columns = re.findall('<th scope="col">(.*?)</th>', section)
    assert columns == ["Owner", "Result 1", "Result 2", "Result 3"]
    cells = re.findall("<tr><th scope=.row.*?</tr>", section, re.S)
    assert len(cells) == len(found.owners)
    assert cells[-1].endswith("<td>left</td></tr>")
    assert len(re.findall("<svg", section)) == 1
    for none in (None, dupre.history(results[-1:])):
        assert 'id="history"' not in without_figures(results[-1:], history=none)
    hostile = dupre.history([valuation(names=HOSTILE)] * 2)
    parsed = Page(page([hostile.valuations[-1]], history=hostile))
    assert len(parsed.all("script")) == 1
    assert parsed.all("img") == parsed.all("b") == []


def test_owners_provenance_and_trainings_are_shown_in_order_and_alike_each_time():
    v, first = valuation(), page_of("usual").split("</table>")[0]
    order = [v.owners[i] for i in np.argsort(-v.mean)]
    assert re.findall('<th scope="row"><bdi>(.*?)</bdi>', first) == order
    cells = re.findall(r'data-value="([^"]*)">([^<]*)</td>', first)
    values = [float(sort) for sort, word in cells if re.fullmatch(r"−?0\.\d{4}", word)]
    assert np.allclose(values, np.sort(v.mean)[::-1])
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.hashsalt": None}):
        assert page([valuation()]) == page_of("usual")
    assert "<pre>dupre value \\\n  --budget 30</pre>" in page_of("usual")
    assert "<dt>Python</dt><dd>3.11</dd>" in page_of("usual")
    many = [("owner 0", "owner 1")] * 450 + [("owner 2",)]
    words = without_figures([valuation(4, evaluations=trainings(many, failed={("owner 2",)}))])
    assert "the first 200 are listed, 251 more are not" in words
    assert "All 451 evaluations" in words
    assert len(page([valuation(100)]).encode()) < 2e6


SAID = {
    "sampled": ["Choice of coalitions", "Standard deviations by their source"],
    "exact": [
        "Nothing was predicted, so nothing depends on it.",
        "The values are exact for these u",
    ],
    "bare": [
        "Distances between the data were not recorded.",
        "How the uncertainty fell was not recorded.",
        "How this was computed was not recorded",
        "None: no training failed or raised a warning.",
    ],
    "copied": [
        "owner 0 and owner 1 hold the same rows: a copy is worth as much as the original.",
        "the 15 that count are 11 different ones",
        "all that count in the values; nothing was predicted",
        "Noise of trainings",
    ],
    "least core": ["Subsidy e = 0.125", "get the greatest payment"],
    "troubled": [
        "owner 0: ValueError: <b>one class</b>",
        "owner 1 and owner 2: no",
        "<i>slow</i> (in 2 of 30 trainings: owner 0 and owner 1)",
        "Not used: 3 stored evaluations, repeats included",
    ],
    "several": [
        "The same trainings, valued in several ways",
        "settle the order of some owners in opposite ways: owner 0 and owner 1",
    ],
}


ALWAYS = ("Standard deviations by their source",)


@pytest.mark.parametrize("kind", SAID)
def test_what_is_particular_to_a_valuation_is_said_and_of_no_other(kind):
    words, usual = words_of(kind), words_of("usual")
    for said in SAID[kind]:
        assert said in words
        assert said not in usual or kind == "bare" or said in ALWAYS
    assert ("Not payable" in words) == (kind == "troubled")
    assert words.count("The predictor is no better than a constant") == 2 * (kind == "troubled")


def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "report.html"
    write([bare()], file)
    assert file.read_text(encoding="utf-8") == page_of("bare")
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "full")))
    before = file.read_bytes()
    with pytest.raises(InputError, match="cannot be written"):
        write([valuation(2)], file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(InputError, match="there is no directory"):
        write([bare()], tmp_path / "none" / "report.html")
    for directory in (tmp_path, Path()):
        with pytest.raises(InputError, match=r"is a directory; choose a file in it.*report\.html"):
            write([bare()], directory)

    with pytest.raises(InputError, match="at least one valuation"):
        page([])
    with pytest.raises(InputError, match="of other owners"):
        page([valuation(3), valuation(4)])


@pytest.mark.parametrize("kind", VARIANTS)
def test_notebooks_show_a_table_with_bars_inside_their_cells(kind):
    v = VARIANTS[kind]()[0]
    parsed = Page(notebook_table(v))
    assert len(parsed.all("tr")) == len(v.owners) + 1
    assert not {"script", "b", "img"} & {tag for tag, _ in parsed.elements}
    places = [
        float(found)
        for attributes in parsed.all("i")
        for found in re.findall(r"(?:left|width):(-?[\d.]+)%", attributes["style"])
    ]
    assert places
    assert all(0 <= place <= 100 for place in places)
