"""Figures of a valuation, each as one function of it that draws into matplotlib Axes.

    dupre.plots.values(valuation)              # into a new pyplot figure
    dupre.plots.ranking(valuation, ax=ax)      # into axes of your own

The report draws the same figures. Owner names are shown as they are, never read as mathematics,
and a long one without its middle. With very many owners only some are drawn or labelled, and the
title says so.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from dupre._types import Floats, Ints
from dupre.errors import InputError
from dupre.files import replace_text
from dupre.predictor.calibration import Z95
from dupre.result.history import JOINED, LEFT, OTHER_ROWS, History
from dupre.result.records import Evidence
from dupre.result.valuation import Valuation
from dupre.result.values import Values
from dupre.wording import join_list, percent, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "distances",
    "history",
    "owner_map",
    "predictions",
    "ranking",
    "uncertainty",
    "utilities",
    "values",
]

DATA, ODD = "#2f7fc1", "#c9622a"
"""The colours of data: readable on white and on black, distinct for the colour-blind."""

WIDTH = 4.8
"""Inches: narrow enough for its text to be read on a phone."""

MOST_OWNERS = 40
"""Owners up to which each has a line of its own, or a label on the map."""

MOST_WITH_HISTORY = 20
"""Owners whose history is drawn at most: each takes a line for each result."""

PER_RESULT = 0.14
"""Inches between the results of an owner."""

MOST_LABELS = 25
"""Owners named at the side of a matrix."""

MOST_POINTS = 500
"""Coalitions drawn at most."""

MOST_IN_WORDS = 12
"""Owners up to which the cells of a matrix carry their numbers."""

SMALL = 8.5
"""Points of the smaller text."""

EARLIER = 0.5
"""How opaque earlier results are drawn: the present ones stand out."""

DOTS = 200
"""Per inch of a png."""

_LONGEST = 22

_MARKS = {"": "o", JOINED: "^", OTHER_ROWS: "s", LEFT: "X"}
"""Of values in a history, by what happened to the owner before."""

WIDTH_OF_LETTER = 0.62
"""Largest width of a letter in most fonts, as a part of the font size."""

FEW_POINTS = 12
"""Points up to which a label may cover others."""

DOT, GAP = 4.0, 6.0
"""Half the size of a point, and how far from its middle a label begins."""

_INK = "#010203"
"""A colour used nowhere else; the page's text colour replaces it."""

_COLOURS = {_INK: "currentColor", DATA: "var(--data)", ODD: "var(--odd)"}

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

_NO_TURN = re.compile(r"rotate\(-?0 ")
_REFERENCE = re.compile(r"""(?:url\(|href=")#([^)"]*)""")


def values(valuation: Valuation, ax: Axes | None = None) -> Axes:
    """Every owner's value with its 95 % interval, the greatest first.

    A thick line is the interval for these validation rows alone, if that is known.
    """
    alone = valuation.interval(for_these_rows=True).add_suffix(" alone")
    frame = valuation.to_frame().join(alone).iloc[valuation.order]
    n, title = len(frame), ""
    if n > MOST_OWNERS:
        half = MOST_OWNERS // 2
        frame = frame.take([*range(half), *range(n - half, n)])
        title = f"The {half} greatest and {half} smallest of {n} values"
    ax = _axes(ax, height("values", valuation), title)
    at = -np.arange(len(frame), dtype=float)
    if title:
        at[half:] -= 1
        ax.axhline(at[half - 1] - 1, color=_ink(), linestyle=":", linewidth=0.8)
    below = (frame["high"] < 0).to_numpy()  # by shape too: not all people tell the colours apart
    for chosen, colour, marker in ((~below, DATA, "o"), (below, ODD, "D")):
        if chosen.any():
            value, sides = frame["value"][chosen], frame[["low", "high"]][chosen].to_numpy().T
            width = np.abs(sides - value.to_numpy())
            ax.errorbar(value, at[chosen], xerr=width, fmt=marker, color=colour, capsize=3, ms=5)
            if valuation.uncertainty.validation is not None:
                sides = frame[["low alone", "high alone"]][chosen].to_numpy().T
                ax.hlines(at[chosen], *sides, color=colour, linewidth=4, alpha=0.6)
    ax.axvline(0, color=_ink(), linewidth=0.8)
    ax.set_yticks(at, labels=_labels(frame.index), parse_math=False)
    ax.set_ylim(at[-1] - 0.7, 0.7)
    ax.set_xlabel(_value_label(valuation), parse_math=False)
    # At least two numbers, few enough not to touch: long names leave them half of the width.
    ax.locator_params(axis="x", nbins=4)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return ax


def ranking(valuation: Valuation, ax: Axes | None = None) -> Axes:
    """How probable it is that the owner of a row is worth more than the owner of a column."""
    order = valuation.order
    probability = valuation.probability_greater().to_numpy()[np.ix_(order, order)]
    np.fill_diagonal(probability, 0.5)

    def shown(i: int, j: int) -> str:
        return in_per_cent(valuation, probability[i, j])

    title = "Is the row worth more than the column? Probability in %"
    return _matrix(valuation, ax, order, shade=2 * probability - 1, shown=shown, title=title)


def in_per_cent(valuation: Valuation, probability: float) -> str:
    """P(one owner is worth more than another): `97`, `>99`; `100` only if nothing is uncertain."""
    # The rounding of a computer makes certainties of what is only very probable.
    least = 1e-9 if valuation.std.any() else 0.0
    return percent(min(max(probability, least), 1 - least))


def distances(valuation: Valuation, ax: Axes | None = None) -> Axes:
    """Distances between the owners' data, in the order in which they are given."""
    matrix = _evidence(valuation).distances
    typical = float(np.median(matrix[~np.eye(len(matrix), dtype=bool)]) or matrix.max() or 1.0)
    order, shade = np.arange(len(matrix)), matrix / max(matrix.max(), typical)
    title = "Distance between the data; a typical pair is 100"

    def shown(i: int, j: int) -> str:
        return f"{100 * matrix[i, j] / typical:.0f}"

    return _matrix(valuation, ax, order, shade=shade, shown=shown, title=title)


def owner_map(valuation: Valuation, ax: Axes | None = None) -> Axes:
    """Owners as points; the nearer two are, the more alike their data (classical scaling)."""
    matrix = _evidence(valuation).distances
    points = _place_in_plane(matrix)
    n = len(points)
    labelled = np.arange(n)
    title = ""
    if n > MOST_OWNERS:
        # Those in the middle are alike, and their labels would cover each other.
        labelled = np.sort(np.argsort(-np.linalg.norm(points, axis=1), kind="stable")[:12])
        title = f"{n} owners; the 12 farthest out are named"
    ax = _axes(ax, height("owner_map", valuation), title)
    ax.plot(*points.T, "o", color=DATA, ms=6, alpha=0.85)
    box = ax.get_window_extent()
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    # The same scale both ways, with room for labels.
    span = np.ptp(points, axis=0) * (1.6, 1.25) / (box.width, box.height)
    reach = np.array([box.width, box.height]) / 2 * max(float(span.max()), 1e-9)
    (left, bottom), (right, top) = middle - reach, middle + reach
    ax.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[])
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    groups = _group_by_place(points, labelled, 0.01 * (right - left))
    texts = [join_list(_labels([valuation.owners[i] for i in group]), most=3) for group in groups]
    room = _label_points(ax, points, [group[0] for group in groups], texts, SMALL)
    if not room and not title:
        _set_title(ax, f"{n} owners; named where there is room")
    return ax


def utilities(valuation: Valuation, ax: Axes | None = None) -> Axes:
    """Utilities of coalitions against the number of owners in them, observed and predicted."""
    every = _evidence(valuation).coalitions
    seen = every[every["utility"].notna()]
    guessed = every[every["utility"].isna() & every["predicted"].notna()]
    if seen.empty:
        raise InputError("no utility was observed, so there is none to draw; evaluate some first")
    some, other = _thin_out(seen, "utility"), _thin_out(guessed, "predicted")
    left_out = len(seen) + len(guessed) - len(some) - len(other)
    title = f"{len(some) + len(other)} of {len(seen) + len(guessed)} points" if left_out else ""
    ax = _axes(ax, height("utilities", valuation), title)
    room = 0.16 if len(guessed) else 0.0  # trained and predicted ones side by side, not on top
    if len(other):
        x = other["size"] + room
        ax.plot(x, other["predicted"], "o", mfc="none", mec=ODD, ms=4, mew=0.9, label="predicted")
    ax.plot(some["size"] - room, some["utility"], "o", color=DATA, ms=4.5, label="trained")
    ax.axhline(valuation.facts.empty, color=_ink(), linestyle=":", linewidth=1, label="no data")
    ax.set(xlabel="owners in the coalition", ylabel="utility")
    _tick_whole_numbers(ax)
    _add_legend(ax)
    return ax


def predictions(valuation: Valuation, ax: Axes | None = None) -> Axes:
    """Utilities as trained against what was predicted without them, with 95 % intervals."""
    every = _evidence(valuation).coalitions
    both = every[every["utility"].notna() & every["predicted"].notna()]
    if both.empty:
        raise InputError("nothing was predicted, so there is nothing to compare with trainings")
    some = _thin_out(both, "utility")
    title = f"{len(some)} of {len(both)} trained coalitions" if len(some) < len(both) else ""
    ax = _axes(ax, height("predictions", valuation), title)
    actual, predicted = some["utility"], some["predicted"]
    half = some["std"] * valuation.uncertainty.half_of_one
    missed = ((actual - predicted).abs() > half).to_numpy()
    for chosen, colour, marker, label in (
        (~missed, DATA, "o", "inside the interval"),
        (missed, ODD, "D", "outside"),
    ):
        if chosen.any():
            ax.errorbar(predicted[chosen], actual[chosen], xerr=half[chosen], fmt=marker, ms=4,
                        color=colour, elinewidth=0.7, alpha=0.8, label=label)  # fmt: skip
    ends = np.array([actual.min(), actual.max()])
    ends += np.array([-0.05, 0.05]) * max(float(np.ptp(ends)), 1e-9)
    ax.plot(ends, ends, color=_ink(), linewidth=0.9, label="predicted = trained")
    # A few wide intervals must not squeeze the points: the axis follows the points.
    points = np.append(predicted, ends)
    room = 0.05 * max(float(np.ptp(points)), 1e-9)
    ax.set(xlim=(points.min() - room, points.max() + room))
    ax.set(xlabel="predicted utility", ylabel="utility as trained")
    _add_legend(ax)
    return ax


def uncertainty(valuation: Valuation, ax: Axes | None = None) -> Axes:
    """The widest 95 % interval after each batch of trainings, and as expected after more."""
    known, ahead = known_widths(valuation), valuation.facts.forecast
    if len(known) < 2 and len(ahead) < 2:
        raise InputError(
            "this valuation does not record how its uncertainty fell: it takes two batches of "
            "dupre.value, or a forecast"
        )
    ax = _axes(ax, height("uncertainty", valuation), "")
    if len(known):
        ax.plot(known["evaluated"], known["widest"], "o-", color=DATA, ms=5, label="reached")
    if len(ahead) > 1:
        ax.plot(ahead.index, ahead["widest"], "--", color=ODD, label="expected after more")
    if valuation.uncertainty.varies_with_rows:
        least = Z95 * valuation.uncertainty.std("validation").max()
        ax.axhline(least, color=_ink(), linestyle=":", linewidth=1, label="due to rows alone")
    ax.set(xlabel="coalitions trained", ylabel="widest interval, ±")
    ax.set_ylim(bottom=0)  # widths are compared by their height above zero
    _tick_whole_numbers(ax)
    _add_legend(ax)
    return ax


def history(found: History, ax: Axes | None = None) -> Axes:
    """Every owner's values with their 95 % intervals in the last results, from top to bottom.

    Who joined, who left and whose rows changed since the result before has another mark.
    """
    shown = found.last()
    names, results, who = [*shown.owners], len(shown.valuations), ""
    if (every := len(names)) > MOST_WITH_HISTORY:
        half = MOST_WITH_HISTORY // 2
        names = [*names[:half], *names[-half:]]
        who = f", {len(names)} of {every} owners"
    ax = _axes(ax, height("history", found), "")
    first, last = shown.numbers[0], shown.numbers[-1]
    frame, place = shown.to_frame(), {name: -i * (results + 1.0) for i, name in enumerate(names)}
    frame = frame[frame["owner"].isin(names)]
    at = frame["owner"].map(place) - (frame["result"] - first)
    frame = frame.assign(at=at, half=(frame["high"] - frame["low"]) / 2)
    for _, own in frame.groupby("owner"):
        ax.plot(own["value"], own["at"], color=DATA, linewidth=0.8, alpha=EARLIER)
    # Who left has no value any more: its mark is below the last one that it had.
    frame["value"] = frame.groupby("owner")["value"].ffill()
    for event, marker in _MARKS.items():  # by shape too: not all people tell the colours apart
        colour, some = ODD if event else DATA, frame[frame["event"] == event]
        if event and len(some):
            ax.plot([], [], marker, color=colour, ms=5, label=event)
        for now in (False, True):
            part = some[(some["result"] == last) == now]
            if len(part):
                ax.errorbar(part["value"], part["at"], xerr=part["half"], fmt=marker, color=colour,
                            capsize=2, ms=5, alpha=1.0 if now else EARLIER)  # fmt: skip
    ax.axvline(0, color=_ink(), linewidth=0.8)
    middles = [place[name] - (results - 1) / 2 for name in names]
    ax.set_yticks(middles, labels=_labels(names), parse_math=False)
    ax.set_ylim(middles[-1] - results / 2 - 0.3, 0.8)
    ax.set_xlabel(_value_label(shown.valuations[-1]), parse_math=False)
    ax.locator_params(axis="x", nbins=4)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    if ax.get_legend_handles_labels()[1]:
        _add_legend(ax)
    _set_title(ax, f"Results {first} to {last}, from top to bottom{who}")
    return ax


def save_history(found: History, path: Path) -> None:
    """Write the figure of a history to a file; the end of its name says in which format.

    Raises:
        InputError: that is no format known here, or the file cannot be written.
    """
    import matplotlib.style
    from matplotlib.figure import Figure

    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise InputError(f"a figure ends in .png, .svg or .pdf, got {str(path)!r}")
    # The user's own style of figures may hide what is drawn for white paper.
    with matplotlib.style.context("default"):
        size = (WIDTH, height("history", found))
        figure, file = Figure(figsize=size, layout="constrained"), io.BytesIO()
        history(found, ax=figure.add_subplot())
        figure.savefig(file, format=kind, dpi=DOTS)
    replace_text(path, file.getvalue())


def draw_figure(shown: Valuation | History, name: str, *, label: str) -> str:
    """The figure of this name as an SVG element inside a page, with the page's colours and fonts.

    Of what matplotlib writes the SVG element is kept; its ink becomes the colour of the page's
    text, light or dark. Ids must be unique on a page: those that nothing refers to are removed, and
    the others are hashes of what they name, salted with the name of the figure.

    Args:
        shown: what is drawn.
        name: of a function of this module.
        label: what it shows, for screen readers.
    """
    import matplotlib.style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    size = (WIDTH, height(name, shown))
    # The user's own style of figures is not that of the page.
    style = _STYLE | {"svg.hashsalt": name}  # the same figure gets the same ids, others others
    with matplotlib.style.context(["default", style]), warnings.catch_warnings():
        # Matplotlib measures text by a font that may lack what the reader's font has.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=size, dpi=72, layout="constrained")  # dots of an SVG
        globals()[name](shown, ax=figure.add_subplot())
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


def known_widths(valuation: Valuation) -> pd.DataFrame:
    """Rounds after which the widest interval is known."""
    rounds = valuation.facts.rounds
    return rounds.dropna(subset="widest") if "widest" in rounds else rounds.iloc[:0]


def height(figure: str, shown: Valuation | History) -> float:
    """Inches that a figure needs at the usual width."""
    if isinstance(shown, History):
        results = len(shown.last().valuations)
        return 1.3 + PER_RESULT * (results + 1) * min(len(shown.owners), MOST_WITH_HISTORY)
    lines = min(len(shown.owners), MOST_OWNERS + 1)
    if figure == "values":
        return 0.85 + 0.25 * lines
    return min(4.9, 2.2 + 0.25 * lines) if figure in ("ranking", "distances") else 3.4


def _axes(ax: Axes | None, tall: float, title: str) -> Axes:
    if ax is None:
        from matplotlib import pyplot  # pyplot shows figures that it has made

        ax = pyplot.subplots(figsize=(WIDTH, tall), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    if title:
        _set_title(ax, title)
    return ax


def _set_title(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize="medium", pad=20 if ax.get_legend() else None, parse_math=False)


def _value_label(v: Values) -> str:
    """What an axis of values shows."""
    return f"{shorten(v.semivalue)} {v.words.noun}, in units of utility"


def _ink() -> str:
    """The colour of axes, which a style may have made light."""
    from matplotlib import rcParams

    return str(rcParams["axes.edgecolor"])


def _add_legend(ax: Axes) -> None:
    """Above the axes, where it covers nothing."""
    ax.legend(frameon=False, fontsize=SMALL, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1),
              borderpad=0, columnspacing=1.2, handletextpad=0.4)  # fmt: skip


def _tick_whole_numbers(ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _labels(names: pd.Index | list[str]) -> list[str]:
    return [shorten(str(name), _LONGEST) for name in names]


def _evidence(valuation: Valuation) -> Evidence:
    if valuation.facts.evidence is None:
        raise InputError(
            "this valuation holds no evidence, so there is nothing to draw here; value the owners "
            "again with this version of dupre"
        )
    return valuation.facts.evidence


def _thin_out(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """At most MOST_POINTS rows, spread evenly over what they show."""
    if len(frame) <= MOST_POINTS:
        return frame
    order = np.argsort(frame[by].to_numpy(), kind="stable")
    return frame.iloc[np.sort(order[np.linspace(0, len(order) - 1, MOST_POINTS).astype(int)])]


def _matrix(
    valuation: Valuation,
    ax: Axes | None,
    order: Ints,
    *,
    shade: Floats,
    shown: Callable[[int, int], str],
    title: str,
) -> Axes:
    """Cells shaded by a number from -1 (ODD) over 0 (nothing) to 1 (DATA).

    What `shown` says of them is written into them if the owners are few. The title is another one
    if not all owners are named.
    """
    from matplotlib.colors import to_rgb

    n = len(order)
    step = -(-n // MOST_LABELS)  # every step-th owner is named
    thin = f"{n} owners, one in {step} named" if step > 1 else ""
    ax = _axes(ax, height("ranking", valuation), thin)
    if not ax.get_title():
        _set_title(ax, title)
    cells = np.empty((n, n, 4))
    cells[..., :3] = np.where((shade >= 0)[..., None], to_rgb(DATA), to_rgb(ODD))
    cells[..., 3] = 0.62 * np.abs(shade)  # text on top stays readable, on light and dark
    ax.imshow(cells, interpolation="none", aspect="auto")
    labels = _labels([valuation.owners[i] for i in order[::step]])
    at = np.arange(0, n, step)
    ax.set_yticks(at, labels=labels, parse_math=False, fontsize=SMALL)
    ax.set_xticks(at, labels=labels, parse_math=False, fontsize=SMALL, rotation=90)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for i, j in np.ndindex(n, n) if n <= MOST_IN_WORDS else ():
        if i != j:
            ax.text(j, i, shown(i, j), ha="center", va="center", fontsize=SMALL)
    return ax


def _place_in_plane(distances: Floats) -> Floats:
    """Points whose distances come as near as they can to those given (Torgerson 1952)."""
    n = len(distances)
    centring = np.eye(n) - 1 / n
    roots, axes = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    points = axes[:, ::-1][:, :2] * np.sqrt(np.maximum(roots[::-1][:2], 0.0))
    # The sign of an axis is arbitrary: let its farthest point be on the positive side.
    farthest = points[np.abs(points).argmax(axis=0), [0, 1]]
    return np.asarray(points * np.where(farthest < 0, -1, 1))


def _group_by_place(points: Floats, chosen: Ints, near: float) -> list[list[int]]:
    """Groups of chosen points, each of points within `near` of its first."""
    groups: list[list[int]] = []
    for i in chosen:
        for group in groups:
            if np.linalg.norm(points[i] - points[group[0]]) <= near:
                group.append(int(i))
                break
        else:
            groups.append([int(i)])
    return groups


def _label_points(
    ax: Axes, points: Floats, labelled: Sequence[int], texts: Sequence[str], size: float
) -> bool:
    """Write texts of this font size beside points of a map whose two scales are the same.

    One after the other, each in the best of eight spots around its point. A label may touch a
    point, but no other label. Boxes are left, bottom, right and top, in points of the figure.

    Returns:
        whether there was room for all of them; the others are left out.
    """
    left, right = ax.get_xlim()
    width = ax.get_window_extent().width * 72 / ax.figure.dpi
    shown = (points - [(left + right) / 2, 0.0]) * width / (right - left)
    dots, taken, room = np.hstack([shown - DOT, shown + DOT]), np.empty((0, 4)), True
    for text, i in zip(texts, labelled, strict=True):
        wide, tall = WIDTH_OF_LETTER * size * len(text), 1.3 * size
        sides, corners = _spots_around(wide, tall)
        boxes = np.hstack([shown[i] + corners, shown[i] + corners + (wide, tall)])
        # Another label under this one is out of the question; a point, or the edge, only bad.
        outside = np.maximum(np.abs(boxes[:, [0, 2]]) - width / 2, 0.0).sum(axis=1)
        cost = _overlaps(boxes, dots).sum(axis=1) + 20 * outside
        cost += 1e6 * (_overlaps(boxes, taken) > 0).any(axis=1)
        best = int(np.argmin(cost))
        if cost[best] >= 1e6 or (cost[best] > (2 * DOT) ** 2 and len(points) > FEW_POINTS):
            room = False
            continue
        taken = np.vstack([taken, boxes[best]])
        offset = corners[best] + (
            {"left": 0, "center": wide / 2, "right": wide}[sides[best]],
            tall / 2,
        )
        ax.annotate(text, points[i], offset, textcoords="offset points", ha=sides[best],
                    va="center", fontsize=size, parse_math=False)  # fmt: skip
    return room


def _spots_around(width: float, tall: float) -> tuple[list[str], Floats]:
    """Eight spots around a point: alignments, and the label's lower left corners, (8, 2)."""
    near = GAP - 2  # a corner is farther from the point than a side
    beside = [("left", (GAP, -tall / 2)), ("right", (-GAP - width, -tall / 2))]
    over = [("center", (-width / 2, bottom)) for bottom in (GAP, -GAP - tall)]
    corners = [
        (side, (left, bottom))
        for bottom in (near, -near - tall)
        for side, left in (("left", near), ("right", -near - width))
    ]
    sides, places = zip(*beside, *over, *corners, strict=True)
    return list(sides), np.array(places)


def _overlaps(boxes: Floats, others: Floats) -> Floats:
    """Areas that boxes, (a, 4), have in common with others, (b, 4), as (a, b)."""
    low = np.maximum(boxes[:, None, :2], others[:, :2])
    high = np.minimum(boxes[:, None, 2:], others[:, 2:])
    return np.asarray(np.maximum(high - low, 0.0).prod(axis=2))
