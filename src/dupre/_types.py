"""Array aliases used in signatures; shapes are stated in the docstrings."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Members: TypeAlias = NDArray[np.bool_]
"""Coalitions as boolean rows, (m, n): entry [c, i] says whether owner i is in coalition c."""

Digests: TypeAlias = NDArray[np.uint64]
"""Contents of rows, owners or coalitions, (m, 2): 128 bits each."""

Names: TypeAlias = tuple[str, ...]
"""A coalition by the names of its owners."""

NOTHING: Ints = np.empty(0, dtype=np.int64)
"""An empty index."""

Task: TypeAlias = Literal["classification", "regression"]
"""The learning task."""

View: TypeAlias = tuple[bool, tuple[int, int] | None]
"""How a kernel looks at rows: whether as they were given, and by how many directions and levels if
not by as many as dupre takes."""
