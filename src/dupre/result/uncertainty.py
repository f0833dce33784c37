"""Notes on where the uncertainty of values comes from, and what would reduce it.

There are four sources: coalitions not evaluated, coalitions not drawn, noise of trainings, and the
choice of the validation rows. More trainings, more draws, repeats and more validation rows reduce
one of them each.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from dupre.checks import positive
from dupre.result.covariances import check_level, half_widths
from dupre.result.valuation import Valuation
from dupre.wording import FEWEST_ROWS, TOO_NARROW, count_things

UNKNOWN_ROWS = (
    "How much other validation rows would change the values is not known, and in no interval."
)
"""Where utilities are plain numbers."""

HELD_OUT = "rows held out"
"""In the section "utility" of the provenance: which part of the rows, if they are held out."""

UNMOVED = "the same for all utilities that the predictions allow"
"""What payments of a least core are if predicted coalitions do not bind it: not exact."""

DOMINANT = 0.9
"""Share of the variance from which on nothing but more validation rows helps."""


def variance_shares(v: Valuation) -> dict[str, float]:
    """Parts of the variance of all values: validation rows, noise of trainings, and the rest.

    Of the rest more trainings or draws help: coalitions not evaluated, or not drawn.
    """
    whole = float(np.trace(v.covariance)) or 1.0
    rows = 0.0 if v.validation is None else float(np.trace(v.validation)) / whole
    noise = float(np.trace(v.noise)) / whole
    return {"rows": rows, "noise": noise, "not evaluated": max(0.0, 1 - rows - noise)}


def trainings_help(v: Valuation) -> bool:
    """Whether further trainings can still narrow the intervals by much."""
    return not v.complete and variance_shares(v)["rows"] < DOMINANT


def count_rows_for(v: Valuation, distance: float, level: float) -> int | None:
    """See `Valuation.validation_rows_for`."""
    check_level(level)
    if v.validation is None or not v.validation_rows:
        return None
    allowed = (positive(distance, "the distance") / float(ndtri((1 + level) / 2))) ** 2
    left = allowed - np.diag(v.covariance_for_these_rows)
    if (left <= 0).any():
        return None
    return int(np.ceil(v.validation_rows * np.max(np.diag(v.validation) / left)))


def uncertainty_notes(v: Valuation) -> list[str]:
    """All of them."""
    notes = [training_noise_notes, validation_notes, variance_notes, forecast_notes]
    return [note for kind in notes for note in kind(v)]


def exactness_condition(v: Valuation) -> str:
    """For what values are exact; other validation rows or seeds would give others."""
    known = v.training_noise
    # Equal second trainings of a model with seeds do not prove that no seed matters.
    fixed = known is not None and known.deterministic and not known.seeded
    seeds = "seeds" if known is not None and known.seeded else "utilities"
    if not v.validation_rows and (v.validation is None or not v.validation.any()):
        return "" if fixed else f" for these {seeds}"
    return f" for these validation rows{'' if fixed else f' and {seeds}'}"


def validation_notes(v: Valuation) -> list[str]:
    """For whom the intervals hold: for these validation rows, and for those they come from."""
    split = split_notes(v)
    if v.validation is None:
        return [UNKNOWN_ROWS, *split]
    if not v.validation.any():  # without any rows there is no choice
        return [unchanged_rows(v), *split] if v.validation_rows else []
    wide = float(half_widths(v.covariance).max())
    alone = width_for_these_rows(v) or ("exact" if v.complete else UNMOVED)
    return [
        f"Intervals are for the population that the {rows_in_words(v)} come from, up to "
        f"± {wide:.2g}; for these rows alone the {v.words.nouns} are {alone}.",
        *split,
    ]


def width_for_these_rows(v: Valuation) -> str:
    """How far values may be off for these validation rows alone, in words; "" if not at all."""
    wide, narrow = (
        float(half_widths(part).max()) for part in (v.covariance, v.covariance_for_these_rows)
    )
    return f"within ± {narrow:.2g}" if narrow > 1e-6 * wide else ""


def unknown_notes(v: Valuation) -> list[str]:
    """What is in no interval and in no probability."""
    known = v.validation is not None and v.validation.any()
    unmeasured = v.training_noise is not None and v.training_noise.unmeasured
    seeds = training_noise_notes(v) if unmeasured else []
    return [*seeds, *(split_notes(v) if known else validation_notes(v))]


def split_notes(v: Valuation) -> list[str]:
    """That another split into rows to train on and rows to score on is in no interval."""
    if not v.provenance.get("utility", {}).get(HELD_OUT):
        return []
    return [
        "Which rows are held out, and so not trained on, is in no interval; another seed chooses "
        "others."
    ]


def unchanged_rows(v: Valuation) -> str:
    """What is not known if all resamples of the validation rows give the same values.

    What happens in 3 of m rows of a population is missing in m rows of it with 5 % (Hanley and
    Lippman-Hand, JAMA 249, 1983).
    """
    return (
        f"No resample of the {rows_in_words(v)} changes the {v.words.nouns}. What is true of fewer "
        f"than about 3 in {v.validation_rows:,} rows of their population may be missing in them, "
        "and is in no interval."
    )


def rows_tell_little(v: Valuation) -> bool:
    """Whether validation rows are too few, or too unequal, to tell how far others would lead."""
    told = any(TOO_NARROW in caveat for caveat in v.caveats)
    return told or 0 < v.validation_rows < FEWEST_ROWS


def variance_notes(v: Valuation) -> list[str]:
    """Where the uncertainty comes from, and what would reduce it."""
    shares, notes = variance_shares(v), []
    other = f"coalitions not evaluated{'' if v.sampling is None else ' or not drawn'}"
    sources = [
        (shares["rows"], f"the choice of the {rows_in_words(v)}, which more of them reduce"),
        (shares["noise"], "noise of trainings, which repeats reduce"),
        (shares["not evaluated"], other),
    ]
    parts = [f"{100 * share:.0f} % is {what}" for share, what in sources if share >= 0.005]
    if len(parts) > 1 or shares["noise"] >= 0.005:
        notes.append(f"Of the variance of the values {'; '.join(parts)}.")
    if shares["rows"] >= DOMINANT:
        half = float(half_widths(v.covariance).max()) / 2
        needed = None if rows_tell_little(v) else v.validation_rows_for(half)
        more = f": about {float(f'{needed:.2g}'):,.0f} would halve the widest" if needed else ""
        first = "O" if v.complete else "More trainings can hardly narrow the intervals, o"
        rest = " narrow the intervals" if v.complete else ""
        notes.append(f"{first}nly more validation rows can{rest}{more}.")
    return notes


def rows_in_words(v: Valuation) -> str:
    """The validation rows, with their number if it is known."""
    rows = v.validation_rows
    return count_things(rows, "validation row") if rows else "validation rows"


def training_noise_notes(v: Valuation) -> list[str]:
    """What repeated trainings showed, or that there were none."""
    known = v.training_noise
    if known is not None and known.unmeasured:
        return ["The effect of training seeds was not measured and is in no interval."]
    if known is None or not known.further:
        return []
    trainings = f"{known.further:,} repeated training{'s' if known.further > 1 else ''}"
    if known.std:
        return [f"{trainings} measured the noise of trainings: standard deviation {known.std:.2g}."]
    return [f"{trainings} gave the same utilities as before."]


def forecast_notes(v: Valuation) -> list[str]:
    """What more evaluations would bring."""
    if len(v.forecast) <= 1:
        return []
    widths, succeed = v.forecast["widest"], ", if none fails" if v.failures else ""
    more, now, then = len(widths) - 1, widths.iloc[0], widths.iloc[-1]
    if then <= 1e-6 * now:
        return [f"After {more} more{succeed}, every coalition that counts is evaluated."]
    if f"{then:.2g}" == f"{now:.2g}":
        return [
            f"After {more} more{succeed}, the widest interval is expected to be ± {now:.2g} as now."
        ]
    return [
        f"After {more} more{succeed}, the widest interval is expected to be ± {then:.2g} instead "
        f"of ± {now:.2g}."
    ]
