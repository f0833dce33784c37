"""Notes on where the uncertainty of values comes from, and what would reduce it.

There are four sources: coalitions not evaluated, coalitions not drawn, noise of trainings, and the
choice of the validation rows. More trainings, more draws, repeats and more validation rows reduce
one of them each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dupre.result.covariances import half_widths

if TYPE_CHECKING:
    from dupre.result.valuation import Valuation

UNKNOWN_ROWS = (
    "How much other validation rows would change the values is not known, and in no interval."
)
"""Where utilities are plain numbers."""

DOMINANT = 0.9
"""Share of the variance from which on nothing but more validation rows helps."""


def uncertainty_notes(v: Valuation) -> list[str]:
    """All of them."""
    notes = [training_noise_notes, validation_notes, variance_notes, forecast_notes]
    return [note for kind in notes for note in kind(v)]


def exactness_condition(v: Valuation) -> str:
    """For what values are exact; other validation rows or seeds would give others."""
    known = v.training_noise
    fixed = known is not None and known.deterministic
    seeds = "seeds" if known is not None and known.seeded else "utilities"
    if v.validation is None or not v.validation.any():
        return "" if fixed else f" for these {seeds}"
    return f" for these validation rows{'' if fixed else f' and {seeds}'}"


def validation_notes(v: Valuation) -> list[str]:
    """For whom the intervals hold: for these validation rows, and for those they come from."""
    if v.validation is None:
        return [UNKNOWN_ROWS]
    if not v.validation.any():  # no validation rows are used
        return []
    wide, narrow = (
        float(half_widths(part).max()) for part in (v.covariance, v.covariance_for_these_rows)
    )
    alone = f"up to ± {narrow:.2g}" if narrow > 1e-6 * wide else "exact"
    return [
        f"Intervals are for the population that the {_rows(v)} come from, up to ± {wide:.2g}; for "
        f"these rows alone the {v.words.nouns} are {alone}."
    ]


def variance_notes(v: Valuation) -> list[str]:
    """Where the uncertainty comes from, and what would reduce it."""
    shares, notes = v.variance_shares, []
    other = f"coalitions not evaluated{'' if v.sampling is None else ' or not drawn'}"
    sources = [
        (shares["rows"], f"the choice of the {_rows(v)}, which more of them reduce"),
        (shares["noise"], "noise of trainings, which repeats reduce"),
        (shares["not evaluated"], other),
    ]
    parts = [f"{100 * share:.0f} % is {what}" for share, what in sources if share >= 0.005]
    if len(parts) > 1 or shares["noise"] >= 0.005:
        notes.append(f"Of the variance of the values {'; '.join(parts)}.")
    if shares["rows"] >= DOMINANT:
        half = float(half_widths(v.covariance).max()) / 2
        needed = v.validation_rows_for(half)
        more = f"; about {needed:,} would halve the widest interval" if needed else ""
        trained = "" if v.complete else "More trainings can hardly narrow the intervals. "
        notes.append(f"{trained}Only more validation rows can{more}.")
    return notes


def _rows(v: Valuation) -> str:
    return f"{v.validation_rows:,} validation rows" if v.validation_rows else "validation rows"


def training_noise_notes(v: Valuation) -> list[str]:
    """What repeated trainings showed, or that there were none."""
    known = v.training_noise
    if known is None or not known.further:
        if known is None or not known.seeded:
            return []
        return ["The effect of training seeds was not measured and is in no interval."]
    trainings = f"{known.further:,} repeated training{'s' if known.further > 1 else ''}"
    if known.std:
        return [f"{trainings} measured the noise of trainings: standard deviation {known.std:.2g}."]
    return [f"{trainings} gave the same utilities as before."]


def forecast_notes(v: Valuation) -> list[str]:
    """What more evaluations would bring."""
    if len(v.forecast) <= 1:
        return []
    widths = v.forecast["widest"]
    more, now, then = len(widths) - 1, widths.iloc[0], widths.iloc[-1]
    if then <= 1e-6 * now:
        return [f"After {more} more, every coalition that counts is evaluated."]
    return [
        f"After {more} more, the widest interval is expected to be ± {then:.2g} instead of "
        f"± {now:.2g}."
    ]
