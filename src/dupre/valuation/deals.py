"""What the deal of the folds, or the choice of one split, adds to the uncertainty of the values.

Which rows fall into which fold is chance, and it is the same for all coalitions: it is not one more
noise for each training. So the values themselves are compared: some coalitions are evaluated under
further deals, the values that follow from these coalitions alone are computed for each deal, and
their covariance over deals is the part that is added.

The coalitions are those of the first design. Those of middle sizes are not among them, and the part
is widened for what they would show (`benchmarks/folds.py`).

`validation_rows.deal_covariance` computes it; `second_trainings` chooses the coalitions.

Notation: n owners.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dupre._types import Floats, Names
from dupre.notes import Code, Note, note
from dupre.predictor.student import Spread
from dupre.result.covariances import roots
from dupre.utility.describe import Traits
from dupre.wording import deal_in_words

# Each costs as much as the first design; from three deals a variance has two degrees of freedom.
FURTHER = 2
"""Deals compared with the one that counts."""


def deal_notes(traits: Traits, deal: Floats | None, compared: Iterable[Names]) -> list[Note]:
    """How the rows were split, and what further deals showed."""
    dealt = None if traits.validation is None else traits.validation.dealt
    if dealt is None or not dealt.by_chance:  # time leaves one split, and nothing to doubt
        return []
    what = deal_in_words(traits.folds)
    if deal is None:
        text = f"How much another {what} would change the values is in no interval."
        return [note(Code.ONE_SPLIT, text, folds=traits.folds)]
    widest = float(Spread(np.zeros(len(deal)), roots(np.diag(deal))).half_width().max())
    count = len(list(compared))
    text = (
        f"Another {what} would change values by up to ± {widest:.2g}; {count} coalitions were "
        f"evaluated under further ones to know it, and the intervals allow for it."
    )
    return [note(Code.DEAL, text, folds=traits.folds, widest=widest, coalitions=count)]
