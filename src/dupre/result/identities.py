"""Identities between the numbers that a result states, checked when it is read.

They find damage and contradictions: a value that is not in the middle of its interval, a share that
is not its part of the gain, Shapley values that do not add up to it, ranks that the values do not
have. They do not find a careful forgery, in which all of them hold: only training again shows that.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dupre.errors import InputError
from dupre.result.fields import Field
from dupre.result.valuation import Valuation

ROUNDING = 1e-6
"""Relative difference that counts as rounding; documents are read on other machines too."""

STDS = 6.0
"""Standard deviations by which sampled values may miss their sum."""


def check_identities(v: Valuation, document: Field) -> None:
    """Raise InputError if what a document states of its owners contradicts the rest of it.

    Args:
        v: the valuation that was read from it.
        document: the valuation as it is written. Numbers that older documents lack are not missed.
    """
    alone = v.interval(for_these_rows=True).add_suffix("_for_these_rows")
    follows = pd.concat([v.std, v.interval(), alone], axis=1)
    scales = np.abs(v.mean) + (follows["high"] - follows["low"]).to_numpy()
    for i, owner in enumerate(document["owners"]):
        for name, number in follows.iloc[i].items():
            _check(owner.get(str(name)), number, scales[i], "its value and the covariance")
        _check(owner.get("share"), v.share.iloc[i], 1.0, "its value and the utilities")
    _check_sum(v, document["owners"])
    _check_ranks(v, document["owners"])


def _check(stated: Field, number: float, scale: float, source: str) -> None:
    if stated.thing is None or math.isnan(number):
        return
    if abs(stated.number() - number) > ROUNDING * (scale + abs(number)):
        raise stated.error(f"{float(number)!r}, which follows from {source}")


def _check_ranks(v: Valuation, owners: Field) -> None:
    """Best and worst ranks are those of the level 0.95, up to rounding of probabilities."""
    ranges = [v.rank_range(0.95 + off) for off in (-ROUNDING, ROUNDING)]
    for i, owner in enumerate(owners):
        for name in ("best", "worst"):
            stated = owner.get(name)
            low, high = sorted(int(ranks[name].iloc[i]) for ranks in ranges)
            if stated.thing is not None and not low <= stated.of("a whole number") <= high:
                raise stated.error(f"{low}, which follows from the values and the covariance")


def _check_sum(v: Valuation, owners: Field) -> None:
    """Shapley values add up to u(all) - u(empty); if sampled, within their error."""
    if v.semivalue != "Shapley":
        return
    allowed = ROUNDING * (abs(v.grand) + abs(v.empty) + float(np.abs(v.mean).sum()))
    if v.sampling is not None or v.sampled or v.corrected:
        allowed += STDS * float(v.std.sum())
    if abs(v.efficiency_gap) > allowed:
        raise InputError(
            f"the result is damaged: the values in {owners.place.lstrip('.')} add up to "
            f"{v.mean.sum():.6g}, but Shapley values add up to utility.all - utility.empty = "
            f"{v.grand - v.empty:.6g}"
        )
