"""Whether one owner is worth more than another."""

from __future__ import annotations

from scipy.special import ndtri

from dupre.errors import InputError
from dupre.game.coalitions import unknown_owner
from dupre.result.records import Comparison
from dupre.result.valuation import Valuation


def compare_owners(v: Valuation, one: str, other: str) -> Comparison:
    """See `Valuation.compare`."""
    for name in (one, other):
        if name not in v.owners:
            raise unknown_owner(name, v.owners)
    if one == other:
        raise InputError(f"two different owners can be compared, got {one!r} twice")
    i, j = v.owners.index(one), v.owners.index(other)
    difference = float(v.mean[i] - v.mean[j])
    half = float(ndtri(0.975) * v.spread_of_differences()[i, j])
    probability = float(v.probability_greater().to_numpy()[i, j])
    return Comparison(one, other, probability, difference, difference - half, difference + half)
