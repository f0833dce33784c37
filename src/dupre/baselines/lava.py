"""LAVA: rows by how they move the training data away from, or towards, the validation rows.

Just et al. 2023, "LAVA: data valuation without pre-specified learning algorithms".

The distance is optimal transport between N rows (x, y) and m validation rows (x', y') at the cost

    classification   |x - x'| + W_1(rows of class y, validation rows of class y')
    regression       |[x, y] - [x', y']|

With f the potentials of the rows, the derivative of the distance by the weight of row i, taken
evenly from all others, is its calibrated gradient f_i - mean of f_j over j != i (their Eq. 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from dupre._types import Floats
from dupre.baselines.joint_encoding import encode_together
from dupre.baselines.result import Baseline, from_values
from dupre.baselines.transport import entropic_potentials, load_pot, transport_cost
from dupre.checks import positive
from dupre.data.owners import Embed, Owners


def lava(
    owners: Owners, *, validation: Any, entropy: float = 0.05, embed: Embed | None = None
) -> Baseline:
    """Minus the calibrated gradients of an owner's rows, summed: more is better.

    An owner above zero brings the distribution of all rows nearer to that of the validation rows,
    one below zero moves it away. The values of all owners add up to zero, and are in units of
    distance, not of utility: compare their order. No model is trained, so that a model which does
    not care about this distance is not described.

    Columns are standardised; in a regression y is one more of them. Needs the extra `baselines`,
    and memory for N m distances.

    Args:
        owners: to be valued.
        validation: (X, y), or a frame with the owners' target column.
        entropy: weight of the entropy, as a part of the mean cost. Without it, the potentials are
            not unique.
        embed: the callable the owners were made with, if they were.
    """
    part = positive(entropy, "entropy")
    load_pot()
    together = encode_together(owners, validation, embed)
    asked = together.values[together.asked]
    M = np.ascontiguousarray(euclidean_distances(asked, together.values)[:, together.held].T)
    if owners.task == "classification":
        M += _class_distances(M, owners.y, together.targets)
    else:
        spread = np.concatenate([owners.y, together.targets]).std() or 1.0
        M = np.hypot(M, (owners.y[:, None] - together.targets) / spread)
    f, _ = entropic_potentials(M, part * float(M.mean()) or 1.0)
    gradient = f - (f.sum() - f) / (len(f) - 1)
    totals = np.bincount(owners.owner, -gradient, minlength=owners.n)
    return from_values(owners, np.asarray(totals, dtype=np.float64), trained=0)


def _class_distances(M: Floats, y: Any, t: Any) -> Floats:
    """W_1 between the rows of class y and the validation rows of class t, for all pairs, (N, m)."""
    classes, code = np.unique(y, return_inverse=True)
    others, other = np.unique(t, return_inverse=True)
    table = [
        [transport_cost(M[np.ix_(code == i, other == j)], None) for j in range(len(others))]
        for i in range(len(classes))
    ]
    return np.array(table)[np.ix_(code, other)]
