"""What the deal of the folds, or the choice of one split, adds to the uncertainty of the values.

Which rows fall into which fold is chance, and it is the same for all coalitions: it is not one more
noise for each training. So the values themselves are compared: some coalitions are evaluated under
further deals, the values that follow from these coalitions alone are computed for each deal, and
their covariance over deals is the part that is added.

The coalitions are those of the first design. They average over fewer trainings than the values do,
so what they show is too large rather than too small, by about a quarter of a standard deviation
(`benchmarks/folds.py`). That makes up for the few degrees of freedom that few deals have.

Notation: n owners, d deals, s coalitions evaluated under all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dupre._types import Floats, Names
from dupre.notes import Code, Note, note
from dupre.result.covariances import half_widths
from dupre.utility.describe import Traits
from dupre.valuation.state import State
from dupre.valuation.validation_rows import evaluation_weights

# Each costs as much as the first design; from three deals a variance has two degrees of freedom.
FURTHER = 2
"""Deals compared with the one that counts."""

COMMON = 2
"""Degrees of freedom that the mean variance of all owners counts for in that of each.

From three deals an owner's own variance is often near zero by accident; what owners have in common
steadies it (Smyth 2004), and counts as much as its own."""


def covariance(state: State, validation: Floats | None) -> Floats | None:
    """Covariance of the values over deals, (n, n); None if no coalition has several.

    Args:
        state: what is evaluated.
        validation: covariance over choices of the validation rows. If a deal scores on other rows,
            that is part of what deals show, and not counted twice.
    """
    seen = state.observed
    rows = [i for i, own in enumerate(seen.dealt) if len(own) > 1]
    if not rows:
        return None
    part = state if len(rows) == len(seen) else State(state.question, seen.take(rows))
    deals = min(len(seen.dealt[i]) for i in rows)
    utilities = np.array([part.observed.dealt[i][:deals] for i in part.row.values()])
    posterior = part.beliefs.averaged if part.unknown.size else None
    values = evaluation_weights(part, posterior)[:, list(part.row)] @ utilities  # (n, d)
    found = np.atleast_2d(np.cov(values))
    common = np.trace(found) / len(found) * np.eye(len(found))
    found = (COMMON * common + (deals - 1) * found) / (COMMON + deals - 1)
    found = found / (deals if seen.averaged else 1)
    if seen.deals_rows and validation is not None:
        # Both have many rows in common with nothing: what is left is the choice of training rows.
        whole = float(np.trace(found))
        found = found * (max(0.0, 1 - float(np.trace(validation)) / whole) if whole else 0.0)
    return state.question.sameness.equal_covariance(found)


def deal_notes(traits: Traits, deal: Floats | None, compared: Iterable[Names]) -> list[Note]:
    """How the rows were split, and what further deals showed."""
    if traits.validation is None or traits.validation.dealt is None:
        return []
    what = "split" if traits.folds == 1 else "deal of the folds"
    if deal is None:
        text = f"How much another {what} would change the values is in no interval."
        return [note(Code.ONE_SPLIT, text, folds=traits.folds)]
    widest = float(half_widths(deal).max())
    count = len(list(compared))
    text = (
        f"Another {what} would change values by up to ± {widest:.2g}; {count} coalitions were "
        f"evaluated under further ones to know it, and the intervals allow for it."
    )
    return [note(Code.DEAL, text, folds=traits.folds, widest=widest, coalitions=count)]
