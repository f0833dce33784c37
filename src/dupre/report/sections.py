"""The sections of the report, each a function from a valuation to markup.

A section for which nothing was recorded says so in a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dupre.errors import InputError
from dupre.plots.charts import known_widths
from dupre.report import listings
from dupre.report.figures import draw_figure
from dupre.report.markup import (
    definitions,
    details,
    figure,
    items,
    paragraph,
    paragraphs,
    section,
    text,
)
from dupre.report.relations import Relation
from dupre.report.summary import (
    agreement,
    answer,
    open_neighbours,
    reservation,
    settled_pairs,
    surely,
)
from dupre.result import as_text
from dupre.result.payments import Payments
from dupre.result.records import Z95, Diagnostics
from dupre.result.uncertainty import forecast_notes, variance_notes
from dupre.result.valuation import Valuation
from dupre.wording import count_things, join_list, number, without_directories

MOST_LISTED = 20
"""Pairs, relations and the like listed at most; owners up to which a matrix is also a table."""

LONGEST = 1_000
"""Characters of a failure, a warning or a setting that are shown."""

SCALES = {
    "data": "what their data are like",
    "raw data": "what their data are like",
    "size": "how much data they hold",
    "data × size": "what their data are like and how much of them there is",
    "membership": "who takes part",
    "linear": "a fixed amount that each owner adds",
}
"""Terms of the predictor's kernel in words."""


CAPTIONS = {
    "ranking": "How probable it is that the owner of the row is worth more than the owner of the "
    "column; the stronger the colour, the more certain.",
    "predictions": "Each point is a trained coalition, predicted without its own training. The "
    "nearer to the line, the better; the bars are 95 % intervals.",
    "owner_map": "Owners as points: the nearer two points, the more alike the data, features and "
    "targets together. Directions have no meaning.",
    "distances": "Distance between the data of any two owners (sliced Wasserstein), in per cent of "
    "that of a typical pair.",
    "uncertainty": "Half the width of the widest 95 % interval after this many trained coalitions, "
    "and what is expected of more. Dotted, if it is known: the part that is due to the choice of "
    "the validation rows, which no training reduces.",
}
"""What figures show, in words."""


def answer_section(valuations: Sequence[Valuation]) -> str:
    """Who is worth how much."""
    v = valuations[0]
    first, *others = answer(v)
    beware = as_text.beware_notes(v)
    parts = [paragraph(first, "lead"), paragraph(" ".join(others)), items(beware, "beware")]
    if v.subsidy is not None:
        least = as_text.subsidy_notes(v.subsidy, complete=v.complete)
        parts.append(paragraphs(n for n in least if n not in beware))
    caption = (
        f"Each owner's {v.words.noun} with its 95 % interval. The upright line is zero; what is "
        f"{surely(v)} left of it is marked by a diamond."
        f"{'' if v.validation is None else ' Thick: for these validation rows alone.'}"
    )
    parts += [_figure(v, "values", caption), listings.values_table(v)]
    if len(valuations) > 1:
        parts += [paragraph(agreement(valuations)), listings.comparison_table(valuations)]
        parts.append(items(_further_notes(valuations[1:], beware)))
    return section("answer", "The answer", *parts)


def payments_section(v: Valuation, found: Payments | InputError) -> str:
    """What each owner is paid, or why nobody is."""
    if isinstance(found, InputError):
        return section("payments", "Payments", paragraph(f"No payments: {found}."))
    known = as_text.beware_notes(v)  # they are in the first section
    beware = items([note for note in found.beware if note not in known], "beware")
    table = listings.payments_table(found)
    return section("payments", "Payments", beware, paragraph(found.rule), table)


def _further_notes(valuations: Sequence[Valuation], known: Sequence[str]) -> list[str]:
    """Notes on further semivalues that were not made on the first."""
    found = []
    for v in valuations:
        notes = as_text.beware_notes(v)
        if v.subsidy is not None:
            notes += as_text.subsidy_notes(v.subsidy, complete=v.complete)
        found += [f"{v.semivalue}: {n}" for n in dict.fromkeys(notes) if n not in known]
    return found


def ranking_section(v: Valuation) -> str:
    """Which owners are in an order that is settled."""
    neighbours, (settled, pairs) = open_neighbours(v), settled_pairs(v)
    probably = f"a probability of at least 95 %{reservation(v)}"
    if neighbours:
        first = (
            f"The order of {settled:,} of {pairs:,} pairs of owners is settled: one of the two is "
            f"ahead with {probably}. Neighbours in the ranking whose order is not settled:"
        )
    else:
        first = f"Yes: each owner is ahead of the next with {probably}."
    parts = [paragraph(first), items(_first_lines(neighbours)), _figure(v, "ranking")]
    if len(v.owners) <= MOST_LISTED:
        parts.append(details("The same as a table", listings.probability_table(v)))
    return section("ranking", "Is the ranking settled?", *parts)


def trainings_section(v: Valuation) -> str:
    """Utilities observed and predicted, and the trainings themselves."""
    failed = f", of which {len(v.failures):,} failed" if v.failures else ""
    words = [
        "A coalition is a group of owners whose data are pooled to train one model; its utility "
        "says how good that model is. "
        f"{v.evaluated:,} coalitions were trained{failed}; {_counting_sentence(v)}",
    ]
    if v.duplicates is not None:
        words.append(as_text.duplicates_note(v.duplicates))
    if v.sampling is not None:
        words.append(as_text.sampling_note(v))
    if v.stopped:
        words.append(f"Training ended because {v.stopped}.")
    shown = ""
    if v.evidence is not None and v.evidence.coalitions["utility"].notna().any():
        predicted = v.evidence.coalitions["utility"].isna().sum()
        caption = "Each point is a coalition: how many owners it has and its utility"
        if predicted:
            caption += f", trained or predicted; of those not trained {predicted:,} are shown"
        shown = _figure(v, "utilities", f"{caption}.")
    title = "What was trained and what was predicted"
    return section("trained", title, paragraphs(words), shown, listings.trainings_table(v))


def predictor_section(v: Valuation) -> str:
    """The predictor on utilities it was not shown."""
    title = "Can the predictor be trusted?"
    if (d := v.diagnostics) is None:
        words = "Nothing was predicted, so nothing depends on it."
        return section("trust", title, paragraph(words))
    shown = ""
    if v.evidence is not None:
        both = v.evidence.coalitions[["utility", "predicted"]].notna().all(axis=1)
        if both.any():
            shown = _figure(v, "predictions")
    used = [] if v.sampled else [_similarity_sentence(d), *as_text.fit_notes(v, d)]
    parts = [paragraph(_left_out_sentences(v, d)), shown, paragraphs(as_text.check_notes(v))]
    return section("trust", title, *parts, paragraphs(used))


def data_section(v: Valuation, relations: Sequence[Relation]) -> str:
    """Distances between the owners' data."""
    title = "How the owners' data relate"
    if v.evidence is None:
        return section("data", title, paragraph("Distances between the data were not recorded."))
    words = "No two owners share many rows or hold data of an unusually similar kind, and no "
    words += "owner's data are unlike those of all others."
    lines = _first_lines([relation.text for relation in relations])
    listed = items(lines) if lines else paragraph(words)
    return section("data", title, listed, _figure(v, "owner_map"), _figure(v, "distances"))


def uncertainty_section(v: Valuation) -> str:
    """The widest interval against trainings."""
    known, ahead, words = known_widths(v), v.forecast, []
    if len(known) > 1:
        first, last = known.iloc[0], known.iloc[-1]
        words.append(
            f"After {first['evaluated']:,.0f} trained coalitions the widest 95 % interval was "
            f"± {first['widest']:.2g}, after {last['evaluated']:,.0f} it was "
            f"± {last['widest']:.2g}."
        )
    words += [*variance_notes(v), *forecast_notes(v)]
    if not words and v.complete:
        words.append("Nothing is left to train: every coalition that counts was trained.")
    elif not words:
        words.append("How the uncertainty fell was not recorded.")
    shown = _figure(v, "uncertainty") if len(known) > 1 or len(ahead) > 1 else ""
    title = "How uncertainty fell, and what more would bring"
    return section("uncertainty", title, paragraphs(words), shown)


def failures_section(v: Valuation) -> str:
    """What went wrong, with the coalitions it concerns."""
    parts = []
    if v.failures:
        failed = f"{len(v.failures):,} of {v.evaluated:,} trainings failed"
        lines = [
            f"{listings.member_list(names)}: {_shorten_text(why)}"
            for names, why in v.failures.items()
        ]
        words = f"{failed}; their utilities are predicted."
        parts += [paragraph(words), items(_first_lines(lines))]
    if v.warnings:
        lines = [
            f"{_shorten_text(message)} (in {len(coalitions):,} of {v.evaluated:,} trainings: "
            f"{join_list(map(listings.member_list, coalitions), most=3)})"
            for message, coalitions in v.warnings.items()
        ]
        parts += [paragraph("Warnings that trainings raised:"), items(_first_lines(lines))]
    if v.stale:
        told = f"Not used: {count_things(v.stale, 'stored training')}, repeats included"
        parts.append(paragraph(f"{told}. Rows have changed since."))
    parts = parts or [paragraph("None: no training failed or raised a warning.")]
    return section("failures", "Failures and warnings", *parts)


def reproduction_section(v: Valuation) -> str:
    """Versions, settings, the command."""
    title = "How to reproduce"
    if not v.provenance:
        words = "How this was computed was not recorded; the same call with the same seed and "
        return section("reproduce", title, paragraph(f"{words}the same data gives it again."))
    parts = []
    for name, texts in v.provenance.items():
        pairs = [(_shorten_text(key), _shorten_text(words)) for key, words in texts.items()]
        parts.append(f"<h3>{text(name[:1].upper() + name[1:])}</h3>")
        parts.append(definitions(pairs, "record"))
    return section("reproduce", title, *parts)


def _counting_sentence(v: Valuation) -> str:
    if v.complete:
        return "that is all that count in the values, so nothing had to be predicted."
    if v.diagnostics is None:
        return "they include all that were drawn for the values."
    return f"{v.counting:,} count in the values, and those not trained were predicted."


def _left_out_sentences(v: Valuation, d: Diagnostics) -> str:
    if np.isnan(d.r2):
        return "That could not be checked: the trained utilities are all equal."
    words = (
        "Each trained coalition was hidden in turn and predicted from the others. The predictions "
        f"were off by {d.error:.2g} (root mean square); they explain "
        f"{max(0.0, 100 * d.r2):.0f} % of the differences between utilities (R² "
        f"{number(d.r2, 2)}). Of the trained utilities {100 * d.coverage:.0f} % lay inside the "
        "predictor's own 95 % interval: "
        f"{'about as many as should' if d.coverage >= 0.9 else 'fewer than should'}."
    )
    if v.evidence is None:
        return words
    both = v.evidence.coalitions.dropna(subset=["utility", "predicted"])
    inside = (both["utility"] - both["predicted"]).abs() <= Z95 * both["std"]
    return (
        f"{words} The intervals shown here and used for the values are {d.widening:.2g} times as "
        f"wide, and hold {100 * inside.mean():.0f} %."
    )


def _similarity_sentence(d: Diagnostics) -> str:
    parts = [
        f"{100 * part:.0f} % by {SCALES.get(label, label)}" for label, part in d.scales.items()
    ]
    return (
        f"The predictor compares coalitions {join_list(parts)}. By chance, a training differs from "
        f"what can be predicted by about {d.noise:.2g}."
        f"{f' It is as asked for: {d.asked}.' if d.asked else ''}"
    )


def _figure(v: Valuation, name: str, caption: str = "") -> str:
    caption = caption or CAPTIONS[name]
    return figure(draw_figure(v, name, label=caption), caption)


def _shorten_text(words: str) -> str:
    """A text from outside, which may be very long and name files of this machine."""
    words = without_directories(words)
    return words if len(words) <= LONGEST else f"{words[:LONGEST]} …"


def _first_lines(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LISTED
    return [*lines[:MOST_LISTED], f"… and {more:,} more."] if more > 0 else lines
