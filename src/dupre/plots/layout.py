"""Where owners go on a map of their data, and where their labels go beside them.

Notation: n owners; points (n, 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dupre._types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""

WIDTH_OF_LETTER = 0.62
"""Largest width of a letter in most fonts, as a part of the font size."""

FEW = 12
"""Points up to which a label may cover others."""

DOT, GAP = 4.0, 6.0
"""Half the size of a point, and how far from its middle a label begins."""


def place_in_plane(distances: Floats) -> Floats:
    """Points whose distances come as near as they can to those given (Torgerson 1952)."""
    n = len(distances)
    centring = np.eye(n) - 1 / n
    roots, axes = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    points = axes[:, ::-1][:, :2] * np.sqrt(np.maximum(roots[::-1][:2], 0.0))
    # The sign of an axis is arbitrary: let its farthest point be on the positive side.
    farthest = points[np.abs(points).argmax(axis=0), [0, 1]]
    return np.asarray(points * np.where(farthest < 0, -1, 1))


def group_by_place(points: Floats, chosen: Ints, near: float) -> list[list[int]]:
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


def label_points(
    ax: Axes, points: Floats, labelled: Sequence[int], texts: Sequence[str], size: float
) -> bool:
    """Write texts of this font size beside points of a map whose two scales are the same.

    Returns:
        whether there was room for all of them; the others are left out.
    """
    left, right = ax.get_xlim()
    width = ax.get_window_extent().width * 72 / ax.figure.dpi
    shown = (points - [(left + right) / 2, 0.0]) * width / (right - left)
    wide = [WIDTH_OF_LETTER * size * len(text) for text in texts]
    spots = _label_places(shown, labelled, wide, 1.3 * size, half=width / 2)
    for text, i, spot in zip(texts, labelled, spots, strict=True):
        if spot is None:
            continue
        ha, offset = spot
        ax.annotate(text, points[i], offset, textcoords="offset points", ha=ha, va="center",
                    fontsize=size, parse_math=False)  # fmt: skip
    return None not in spots


def _label_places(
    points: Floats, labelled: Sequence[int], wide: Sequence[float], tall: float, *, half: float
) -> list[tuple[str, tuple[float, float]] | None]:
    """Alignment of each label and its offset from its point; None for one without room.

    One after the other, each in the best of eight spots around its point. A label may touch a
    point, but no other label.

    Args:
        points: all of them, (n, 2), in the unit of the other lengths.
        labelled: those with a label.
        wide: width of each label.
        tall: height of a label.
        half: half the width of the map, beyond which labels are cut.
    """
    dots: list[Box] = [(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in points]
    taken: list[Box] = []
    found: list[tuple[str, tuple[float, float]] | None] = []
    for i, width in zip(labelled, wide, strict=True):
        spots = _spots_around(width, tall)
        corners = [points[i] + at for _, at in spots]
        boxes: list[Box] = [(x, y, x + width, y + tall) for x, y in corners]
        cost = [
            sum(_overlap(box, other) for other in dots)
            + 1e6 * any(_overlap(box, other) for other in taken)
            + 20 * (max(0.0, -half - box[0]) + max(0.0, box[2] - half))
            for box in boxes
        ]
        best = int(np.argmin(cost))
        if cost[best] >= 1e6 or (cost[best] > (2 * DOT) ** 2 and len(points) > FEW):
            found.append(None)
            continue
        taken.append(boxes[best])
        side, (left, bottom) = spots[best]
        anchor = {"left": left, "center": left + width / 2, "right": left + width}[side]
        found.append((side, (anchor, bottom + tall / 2)))
    return found


def _spots_around(width: float, tall: float) -> list[tuple[str, tuple[float, float]]]:
    """Eight spots around a point: alignment, and the label's lower left corner."""
    near = GAP - 2
    return [
        ("left", (GAP, -tall / 2)),
        ("right", (-GAP - width, -tall / 2)),
        ("center", (-width / 2, GAP)),
        ("center", (-width / 2, -GAP - tall)),
        ("left", (near, near)),
        ("right", (-near - width, near)),
        ("left", (near, -near - tall)),
        ("right", (-near - width, -near - tall)),
    ]


def _overlap(a: Box, b: Box) -> float:
    """Area that two boxes have in common."""
    width, tall = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(0.0, width) * max(0.0, tall)
