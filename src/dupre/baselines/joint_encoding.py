"""Owners' rows and validation rows as points of one space.

Levels of categories, means and scales are those of all these rows together: validation rows have
no place among `owners.points`, which were made without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dupre._types import Floats, Ints
from dupre.data.encoding import apply_embed, encode, standardise
from dupre.data.owners import Embed, Owners
from dupre.data.rows import check_finite, copy_rows, length, stack
from dupre.errors import InputError
from dupre.utility.model_checks import check_validation


@dataclass(frozen=True, eq=False)
class JointEncoding:
    """Encoded rows: row r of the owners is `values[held[r]]`, validation row v `values[asked[v]]`.

    Attributes:
        values: distinct points, (u, d), dense or CSR.
        held: which of them each of the owners' rows is, (N,).
        asked: which of them each validation row is, (m,).
        targets: of the validation rows, (m,).
    """

    values: Floats | sparse.csr_array
    held: Ints
    asked: Ints
    targets: NDArray[Any]


def encode_together(owners: Owners, validation: Any, embed: Embed | None) -> JointEncoding:
    """Check the validation rows and encode them with the owners' rows."""
    if owners.embedded and embed is None:
        raise InputError(
            "the owners' rows were embedded; pass the same embed= here for the validation rows"
        )
    X, y = check_validation(validation, owners)
    names = ("the owners", "the validation rows")
    rows = [len(owners.y), len(y)]
    both = stack(names, [owners.X, X])
    columns = encode(both) if embed is None else apply_embed(copy_rows(both), embed, length(both))
    check_finite(columns, names, np.repeat([0, 1], rows))
    points = standardise(columns)
    held, asked = np.split(points.index, rows[:1])
    return JointEncoding(points.values, held, asked, y)
