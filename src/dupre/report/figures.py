"""Figures as SVG inside a page, with the page's colours and fonts.

Matplotlib draws each figure of `plots`. Of its output the SVG element is kept; its ink becomes the
colour of the page's text, light or dark, and every id gets a prefix, because ids must be unique on
a page.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import Any
from xml.etree import ElementTree

from dupre.report import plots
from dupre.result.valuation import Valuation

_INK = "#010203"
"""A colour used nowhere else; the page's text colour replaces it."""

_COLOURS = {_INK: "currentColor", plots.DATA: "var(--data)", plots.ODD: "var(--odd)"}

_STYLE = {
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's font
    "svg.hashsalt": "dupre",  # the same figure gets the same ids
    "font.size": 9.5,
    "axes.linewidth": 0.8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK
    ),
}


def draw_figure(valuation: Valuation, name: str, *, label: str) -> str:
    """The figure of this name in `plots` as an SVG element.

    Args:
        valuation: to be drawn.
        name: of a function in `plots`; also the prefix of the ids.
        label: what it shows, for screen readers.
    """
    import matplotlib.style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    size = (plots.WIDTH, plots.height(name, len(valuation.owners)))
    # The user's own style of figures is not that of the page.
    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        # Matplotlib measures text by a font that may lack what the reader's font has.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=size, dpi=72, layout="constrained")  # dots of an SVG
        getattr(plots, name)(valuation, ax=figure.add_subplot())
        text = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)  # figure.savefig would draw twice
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})
    return _inline(text.getvalue(), name, label)


def _inline(svg: str, prefix: str, label: str) -> str:
    """The SVG element alone, without metadata and style sheets; its texts are unchanged."""
    root = ElementTree.fromstring(svg[svg.index("<svg") :])
    for parent in list(root.iter()):
        for child in [*parent]:
            # A style sheet would style the whole page.
            if _local_name(child.tag) in ("metadata", "style"):
                parent.remove(child)
    used = {name for element in root.iter() for name in _references(element)}
    for element in root.iter():
        element.tag = _local_name(element.tag)
        kept = {_local_name(key): value for key, value in element.attrib.items()}
        if kept.get("id") not in used:
            kept.pop("id", None)
        element.attrib = {key: _page_attribute(key, value, prefix) for key, value in kept.items()}
        if _NO_TURN.match(element.get("transform", "")):
            del element.attrib["transform"]
        if element.tag != "text":  # white space counts in a text
            element.text = None
        element.tail = "\n"
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode").strip()


_NO_TURN = re.compile(r"rotate\(-?0 ")
_REFERENCE = re.compile(r"url\(#([^)]*)\)")


def _local_name(name: str) -> str:
    """A name without its namespace, which a page does not need."""
    return name.rpartition("}")[2]


def _references(element: ElementTree.Element) -> list[str]:
    """Ids that an element points to."""
    values = element.attrib.items()
    linked = [value[1:] for key, value in values if _local_name(key) == "href" and value[0] == "#"]
    return linked + [name for _, value in values for name in _REFERENCE.findall(value)]


def _page_attribute(key: str, value: str, prefix: str) -> str:
    """An attribute with the page's ids, colours and fonts, and without needless digits."""
    if key == "id" or (key == "href" and value.startswith("#")):
        return f"{'#' * value.startswith('#')}{prefix}-{value.lstrip('#')}"
    if key == "href":
        return value
    value = _REFERENCE.sub(rf"url(#{prefix}-\1)", value)
    if key == "style":
        value = re.sub(r"font: ([\d.]+px) [^;]*", r"font-size: \1", value)
        value = re.sub(r"font-family: [^;]*;? ?", "", value)
        for colour, ours in _COLOURS.items():
            value = value.replace(colour, ours)
        return value
    if key in ("d", "x", "y"):
        return re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", value.strip())
    return value
