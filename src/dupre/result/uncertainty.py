"""Notes on where the uncertainty of values comes from, and what would reduce it.

The sources: coalitions not evaluated, coalitions not drawn, noise of trainings, the deal of the
rows, and the choice of the validation rows. More trainings, more draws, repeats and more validation
rows reduce them.
"""

from __future__ import annotations

import numpy as np

from dupre.notes import TOO_NARROW, Code, Note, has, note
from dupre.result.covariances import roots
from dupre.result.sharing import share_parts
from dupre.result.values import Values
from dupre.wording import count_things, deal_in_words

OF_ROWS = (Code.UNKNOWN_ROWS, Code.UNCHANGED_BY_ROWS, Code.POPULATION, Code.ONE_SPLIT)
"""Codes of the notes that say for which validation rows the intervals hold."""

IN_NO_INTERVAL = (
    *(Code.SEEDS_NOT_MEASURED, Code.UNKNOWN_ROWS, Code.UNCHANGED_BY_ROWS, Code.ONE_SPLIT),
)
"""Codes of the notes that say what is in no interval and in no probability."""

UNMOVED = "the same for all utilities that the predictions allow"
"""What payments of a least core are if predicted coalitions do not bind it: not exact."""

DOMINANT = 0.9
"""Share of the variance from which on nothing but more validation rows helps."""

NEGLIGIBLE = 0.3
"""Part of the standard deviation of a value below which a source of it does not matter: an interval
would be narrower by less than 5 % without it."""

MOST_TIMES = 10
"""Times the validation rows up to which a number of them is a proposal: nobody has a hundred times
as many."""

MOVED = 0.25
"""Part of a payment that no trainings should still move before they are called of no use."""

SMALLEST = 0.1
"""Part of an equal share below which a payment is measured as if it were that: a quarter of nearly
nothing is no money."""


def trainings_help(v: Values) -> bool:
    """Whether further trainings can still change some owner's value, or payment, by much."""
    if v.complete:
        return False
    # The owner that gains most, not all together: one may be well known by rows of others.
    total, rows = v.uncertainty.std(), np.nan_to_num(v.uncertainty.std("validation"))
    known = rows**2 + v.uncertainty.std("noise") ** 2 + v.uncertainty.std("deal") ** 2
    rest = roots(total**2 - known)
    return bool(np.any((rest >= NEGLIGIBLE * total) & (rest > 0))) or _payments_may_move(v)


def _payments_may_move(v: Values) -> bool:
    """Whether coalitions not trained may still move some payment by a quarter, with 99 %.

    If validation rows are few, the doubt that they leave may be many times a small payment. What
    trainings leave is then a little part of the interval, and a great one of the payment: so it is
    measured by the payment. With 99 %, as intervals of 4n trainings may be too narrow by a fifth.
    Of 200 games of five owners 117 were judged not to move: in ten more trainings none did by a
    quarter (with 95 %: 3 of 143).
    """
    if (found := share_parts(v, v.uncertainty.untrained)) is None:
        return False
    paid, draws = found
    low, high = np.nanquantile(draws, [0.005, 0.995], axis=0)
    return bool(np.any((high - low) / 2 >= MOVED * np.maximum(paid, SMALLEST / len(paid))))


def uncertainty_notes(v: Values) -> list[Note]:
    """What is known of each source, and what would reduce it."""
    return [*_training_noise(v), *_validation(v), *_variance(v), *_forecast(v)]


def exactness_condition(v: Values) -> str:
    """For what values are exact; other validation rows or seeds would give others."""
    known = v.facts.training_noise
    # Equal second trainings of a model with seeds do not prove that no seed matters.
    fixed = known is not None and known.deterministic and not known.seeded
    seeds = "seeds" if known is not None and known.seeded else "utilities"
    if v.uncertainty.deal is not None or has(v.notes, Code.ONE_SPLIT):
        return f" for this {deal_in_words(v.facts.folds)}"
    if not v.facts.validation_rows and not v.uncertainty.varies_with_rows:
        return "" if fixed else f" for these {seeds}"
    return f" for these validation rows{'' if fixed else f' and {seeds}'}"


def _validation(v: Values) -> list[Note]:
    """For whom the intervals hold: for these validation rows, and for those they come from."""
    if v.uncertainty.validation is None:  # utilities are plain numbers
        text = "How much other validation rows would change the values is not known, and in no "
        return [note(Code.UNKNOWN_ROWS, f"{text}interval.")]
    if not v.uncertainty.varies_with_rows:  # without any rows there is no choice
        return [_unchanged_by_rows(v)] if v.facts.validation_rows else []
    wide = v.uncertainty.widest
    alone = width_for_these_rows(v) or ("exact" if v.complete else UNMOVED)
    text = (
        f"Intervals are for the population that the {rows_in_words(v)} come from, up to "
        f"± {wide:.2g}; for these rows alone the {v.words.nouns} are {alone}."
    )
    return [note(Code.POPULATION, text, rows=v.facts.validation_rows, widest=wide)]


def width_for_these_rows(v: Values) -> str:
    """How far values may be off for these validation rows alone, in words; "" if not at all."""
    narrow = float(v.uncertainty.spread(for_these_rows=True).half_width().max())
    return f"within ± {narrow:.2g}" if narrow > 1e-6 * v.uncertainty.widest else ""


def _unchanged_by_rows(v: Values) -> Note:
    """What is not known if all resamples of the validation rows give the same values.

    What happens in 3 of m rows of a population is missing in m rows of it with 5 % (Hanley and
    Lippman-Hand, JAMA 249, 1983).
    """
    rows = v.facts.validation_rows
    text = (
        f"No resample of the {rows_in_words(v)} changes the {v.words.nouns}. What is true of fewer "
        f"than about 3 in {rows:,} rows of their population may be missing in them, and is in no "
        "interval."
    )
    return note(Code.UNCHANGED_BY_ROWS, text, rows=rows)


def _variance(v: Values) -> list[Note]:
    """Where the uncertainty comes from, and what would reduce it."""
    shares, found = v.uncertainty.shares(), []
    other = f"coalitions not evaluated{'' if v.uncertainty.sampling is None else ' or not drawn'}"
    helps = "folds" if v.facts.folds == 1 else "repeats"  # of one split, folds cost less
    sources = [
        (shares["rows"], f"the choice of the {rows_in_words(v)}, which more of them reduce"),
        (shares["noise"], "noise of trainings, which repeats reduce"),
        (shares["deal"], f"the {deal_in_words(v.facts.folds)}, which {helps} reduce"),
        (shares["not_evaluated"], other),
    ]
    # Smaller shares would be printed as 0 %.
    parts = [f"{100 * share:.0f} % is {what}" for share, what in sources if share >= 0.005]
    if len(parts) > 1 or shares["noise"] >= 0.005:
        text = f"Of the variance of the values {'; '.join(parts)}."
        found.append(note(Code.VARIANCE, text, **shares))
    if shares["rows"] >= DOMINANT and not trainings_help(v):
        needed = rows_to_halve(v)
        more = f": about {needed:,} would halve the widest" if needed else ""
        first = "O" if v.complete else "More trainings can hardly narrow the intervals, o"
        rest = " narrow the intervals" if v.complete else ""
        text = f"{first}nly more validation rows can{rest}{more}."
        found.append(note(Code.MORE_ROWS, text, needed=needed, share=shares["rows"]))
    return found


def rows_to_halve(v: Values) -> int | None:
    """About how many validation rows would halve the widest interval; None if that is not known."""
    # From rows that tell too little, a number of rows would be a guess.
    half = v.uncertainty.widest / 2
    needed = None if has(v.notes, *TOO_NARROW) else v.validation_rows_for(half)
    if needed is None or needed > MOST_TIMES * v.facts.validation_rows:
        return None
    return int(float(f"{needed:.2g}"))


def rows_in_words(v: Values) -> str:
    """The validation rows, with their number if it is known."""
    rows = v.facts.validation_rows
    return count_things(rows, "validation row") if rows else "validation rows"


def _training_noise(v: Values) -> list[Note]:
    """What repeated trainings showed, or that there were none."""
    known = v.facts.training_noise
    if known is not None and known.unmeasured:
        text = "The effect of training seeds was not measured and is in no interval."
        return [note(Code.SEEDS_NOT_MEASURED, text)]
    if known is None or not known.further:
        return []
    text = f"{known.further:,} repeated training{'s' if known.further > 1 else ''}"
    if known.std:
        text += f" measured the noise of trainings: standard deviation {known.std:.2g}."
    else:
        text += " gave the same utilities as before."
    return [note(Code.REPEATED_TRAININGS, text, trainings=known.further, std=known.std)]


def _forecast(v: Values) -> list[Note]:
    """What more evaluations would bring."""
    if len(v.facts.forecast) <= 1:
        return []
    widths, succeed = v.facts.forecast["widest"], ", if none fails" if v.facts.failures else ""
    more, now, then = len(widths) - 1, float(widths.iloc[0]), float(widths.iloc[-1])
    # A posterior of known utilities is zero up to rounding.
    if then <= 1e-6 * now:
        text = "every coalition that counts is evaluated."
    elif f"{then:.2g}" == f"{now:.2g}":
        text = f"the widest interval is expected to be ± {now:.2g} as now."
    else:
        text = f"the widest interval is expected to be ± {then:.2g} instead of ± {now:.2g}."
    text = f"After {more} more{succeed}, {text}"
    return [note(Code.FORECAST, text, more=more, now=now, then=then)]
