"""Figures as SVG inside a page, with the page's colours and fonts.

Matplotlib draws each figure of `plots`. Of its output the SVG element is kept; its ink becomes the
colour of the page's text, light or dark. Ids must be unique on a page: those that nothing refers to
are removed, and the others are hashes of what they name, salted with the name of the figure.
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
        name: of a function in `plots`.
        label: what it shows, for screen readers.
    """
    import matplotlib.style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    size = (plots.WIDTH, plots.height(name, len(valuation.owners)))
    # The user's own style of figures is not that of the page.
    style = _STYLE | {"svg.hashsalt": name}  # the same figure gets the same ids, others others
    with matplotlib.style.context(["default", style]), warnings.catch_warnings():
        # Matplotlib measures text by a font that may lack what the reader's font has.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=size, dpi=72, layout="constrained")  # dots of an SVG
        getattr(plots, name)(valuation, ax=figure.add_subplot())
        text = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)  # figure.savefig would draw twice
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})
    return _inline(text.getvalue(), label)


def _inline(svg: str, label: str) -> str:
    """The SVG element alone, without metadata and style sheets; its texts are unchanged."""
    root, used = ElementTree.fromstring(svg[svg.index("<svg") :]), set(_REFERENCE.findall(svg))
    for element in list(root.iter()):
        for child in [*element]:
            # A style sheet would style the whole page.
            if _local_name(child.tag) in ("metadata", "style"):
                element.remove(child)
    for element in root.iter():
        element.tag = _local_name(element.tag)
        kept = {_local_name(key): value for key, value in element.attrib.items()}
        if kept.get("id") not in used:
            kept.pop("id", None)
        element.attrib = {key: _page_attribute(key, value) for key, value in kept.items()}
        if _NO_TURN.match(element.get("transform", "")):
            del element.attrib["transform"]
        if element.tag != "text":  # white space counts in a text
            element.text = None
        element.tail = "\n"
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode").strip()


_NO_TURN = re.compile(r"rotate\(-?0 ")
_REFERENCE = re.compile(r"""(?:url\(|href=")#([^)"]*)""")


def _local_name(name: str) -> str:
    """A name without its namespace, which a page does not need."""
    return name.rpartition("}")[2]


def _page_attribute(key: str, value: str) -> str:
    """An attribute with the page's colours and fonts, and without needless digits."""
    if key == "style":
        value = re.sub(r"font: ([\d.]+px) [^;]*", r"font-size: \1", value)
        value = re.sub(r"font-family: [^;]*;? ?", "", value)
        for colour, ours in _COLOURS.items():
            value = value.replace(colour, ours)
    elif key in ("d", "x", "y"):
        value = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", value.strip())
    return value
