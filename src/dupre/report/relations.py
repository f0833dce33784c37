"""How the owners' data relate, in words: whose are the same or alike, and whose are different.

A copy must be reported and a random split must not, whatever the sizes. Between samples of the same
source, distances are about proportional to sqrt(1 / r_i + 1 / r_j) with r_i and r_j rows. So a
distance counts as small or large among all pairs only if it is so both as it is and divided by this
factor.

Notation: n owners; distances (n, n), shared (n, n) as in `records.Evidence`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dupre._types import Floats
from dupre.report.document import spell_name
from dupre.result.records import Evidence
from dupre.result.valuation import Valuation
from dupre.wording import percent

SHARED = 0.5
"""Part of an owner's rows that another holds too from which on it is reported."""

NEAR = 0.3
"""Part of a typical distance below which two owners hold data of a similar kind.

Random splits of real and made-up data stay above 0.38 with up to 150 owners; copies with noise
of a tenth of a standard deviation are below 0.27."""

FAR = 2.25
"""Multiple of a typical distance above which an owner is unlike the others.

Random splits stay below 1.95; owners whose features are all shifted by a standard deviation are
mostly above 2."""


@dataclass(frozen=True)
class Relation:
    """Something about the data of one owner or two.

    Attributes:
        owners: positions of the one owner that is unlike the others, or of two that are alike.
        text: a sentence.
    """

    owners: tuple[int, ...]
    text: str


def relations(v: Valuation) -> list[Relation]:
    """Pairs that share rows or hold similar data, then owners unlike all others."""
    if v.facts.evidence is None:
        return []
    shared = _sharing_pairs(v, v.facts.evidence)
    known = {relation.owners for relation in shared}
    near = [
        relation for relation in _near_pairs(v, v.facts.evidence) if relation.owners not in known
    ]
    return [*shared, *near, *_distant_owners(v, v.facts.evidence)]


def _sharing_pairs(v: Valuation, evidence: Evidence) -> list[Relation]:
    """If rows take few values, many are shared by chance: only more than usual is reported."""
    shared, found = evidence.shared, []
    # Of two owners there is one pair, and it would be its own usual.
    usual = _median_of_pairs(shared) if len(shared) > 2 else 0.0
    for i, j in _pairs(len(shared)):
        same = shared[i, j] == shared[j, i] == 1 and v.rows[i] == v.rows[j]
        # All rows shared both ways may still be chance if rows take few values.
        if same and (evidence.distances[i, j] <= 1e-9 or usual <= SHARED):
            both = f"{spell_name(v.owners[i])} and {spell_name(v.owners[j])}"
            found.append(Relation((i, j), f"{both} hold the same {v.rows[i]:,} rows."))
        elif max(shared[i, j], shared[j, i]) >= max(SHARED, 2 * usual):
            found.append(Relation((i, j), _shared_text(v, i, j, shared)))
    return found


def _shared_text(v: Valuation, i: int, j: int, shared: Floats) -> str:
    """Only training rows are compared: of other rows, held out for validation, nothing is known."""
    parts = [
        f"{_part_in_words(shared[a, b])} of the training rows of {spell_name(v.owners[a])} are "
        f"also training rows of {spell_name(v.owners[b])}"
        for a, b in sorted([(i, j), (j, i)], key=lambda pair: -shared[pair])
    ]
    return f"{parts[0]}; {parts[1][0].lower()}{parts[1][1:]}."


def _part_in_words(part: float) -> str:
    if part == 1:
        return "All"
    return f"{percent(part)} %" if part > 0 else "None"


def _near_pairs(v: Valuation, evidence: Evidence) -> list[Relation]:
    """Nearly the same data if rows are shared; otherwise owners are alike, and none copied."""
    distances, found = evidence.distances, []
    per_size, typical = distances / _size_factor(v), _median_of_pairs(distances)
    near = (distances < NEAR * typical) & (per_size < NEAR * _median_of_pairs(per_size))
    for i, j in _pairs(len(distances)):
        if near[i, j] or distances[i, j] == 0:
            shared = max(evidence.shared[i, j], evidence.shared[j, i]) > 0
            what = "nearly the same data" if shared else "data of a similar kind"
            text = (
                f"{spell_name(v.owners[i])} and {spell_name(v.owners[j])} hold {what}: their "
                f"distance is {distances[i, j]:.2g}, that of a typical pair {typical:.2g}."
            )
            found.append(Relation((i, j), text))
    return found


def _distant_owners(v: Valuation, evidence: Evidence) -> list[Relation]:
    """Owners at a large distance from most others; of two owners neither is the different one."""
    if len(v.owners) < 3:
        return []
    usual = _distance_to_others(evidence.distances)
    per_size = _distance_to_others(evidence.distances / _size_factor(v))
    far = (usual > FAR * np.median(usual)) & (per_size > FAR * np.median(per_size))
    return [
        Relation(
            (int(i),),
            f"The data of {spell_name(v.owners[i])} are unlike those of all others: their distance "
            f"to them is typically {usual[i]:.2g}, that of other owners {np.median(usual):.2g}.",
        )
        for i in np.flatnonzero(far)
    ]


def _size_factor(v: Valuation) -> Floats:
    """A factor, (n, n), that distances of samples of the same source are proportional to."""
    inverse = 1 / np.maximum(v.rows, 1)  # an owner may hold none
    return np.asarray(np.sqrt(inverse[:, None] + inverse))


def _distance_to_others(distances: Floats) -> Floats:
    """Median distance of each owner to the others, (n,); the smaller one of two."""
    n = len(distances)
    others = distances[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    return np.asarray(np.quantile(others, 0.5, axis=1, method="lower"))


def _median_of_pairs(matrix: Floats) -> float:
    """Median of all pairs."""
    return float(np.median(matrix[~np.eye(len(matrix), dtype=bool)]))


def _pairs(n: int) -> Iterable[tuple[int, int]]:
    return ((i, j) for i in range(n) for j in range(i + 1, n))
