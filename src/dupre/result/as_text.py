"""A valuation as the text that `print` shows: a table, and notes on how far to trust it.

The report takes its phrases from here too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import numpy as np
import pandas as pd

from dupre.game.coalitions import format_members
from dupre.result.records import Comparison, Diagnostics, Duplicates, Subsidy
from dupre.result.table import align, table_headings, table_lines
from dupre.result.uncertainty import exactness_condition, uncertainty_notes
from dupre.result.valuation import Valuation
from dupre.wording import (
    LONGEST_LINE,
    MOST_NAMED,
    count_things,
    cut,
    escape_controls,
    exact_percent,
    join_list,
    plain_number,
    printable,
)


def format_valuation(v: Valuation) -> str:
    """Title, table and notes."""
    lines = [*title_of(v), "", *_table(v), "", *notes(v)]
    return "\n".join(cut(escape_controls(line), LONGEST_LINE) for line in lines)


def coalition_count(n: int) -> str:
    """How many coalitions of n owners there are."""
    every = 2**n - 1
    if n <= 30:
        return f"{every:,}"
    if n < 50:
        unit, size = ("trillion", 10**12) if n >= 40 else ("billion", 10**9)
        return f"about {every / size:.3g} {unit}"
    return "more than a thousand trillion"


def trained_part(v: Valuation) -> str:
    """How many of all coalitions were evaluated."""
    n = len(v.owners)
    if v.complete and v.evaluated == 2**n - 1:
        return f"all {v.evaluated:,} possible coalitions"
    return f"{v.evaluated:,} of {coalition_count(n)} possible coalitions"


def failed_part(v: Valuation) -> str:
    """How many of the evaluated coalitions failed; nothing if none did."""
    return f", {len(v.failures):,} of them failed" if v.failures else ""


def format_comparison(semivalue: str, c: Comparison) -> str:
    """Whether one owner is worth more than another, in a sentence."""
    if c.probability < 0.5:
        return format_comparison(semivalue, c.swap())
    one, other = printable(c.one), printable(c.other)
    if c.low == c.high == 0:
        return escape_controls(f"{semivalue}: {one} and {other} have the same value.")
    verdict = "" if c.probability >= 0.95 else " Not settled."
    if not verdict and c.low <= 0 <= c.high:
        verdict = (
            " Settled: the probability is at least 95 %. The interval holds zero, because it "
            "leaves out 2.5 % at each end."
        )
    bounds = "nothing predicted" if c.low == c.high else f"95 %: {c.low:z.3g} … {c.high:z.3g}"
    return escape_controls(
        f"{semivalue}: {one} is worth more than {other} with a probability of "
        f"{exact_percent(c.probability)}; difference {c.difference:z.3g} ({bounds}).{verdict}"
    )


def format_predictions(frame: pd.DataFrame) -> str:
    """The utilities that `Valuer.predict` returns, a line each."""
    lines = []
    for row in frame.itertuples():
        if row.evaluated:
            text = f"{row.utility:z.4g}, as evaluated"
        else:
            text = f"{row.utility:z.4g} (95 %: {row.low:z.4g} … {row.high:z.4g}), predicted"
        lines.append(f"{_short_members(cast('tuple[str, ...]', row.members))}: {text}")
    return "\n".join(lines)


def title_of(v: Valuation) -> list[str]:
    """What was valued, how many coalitions were evaluated, and why no more."""
    n = len(v.owners)
    trained = f"{trained_part(v)} evaluated{failed_part(v)}"
    grand = f"≈ {v.grand:z.4g} (predicted)" if v.grand_predicted else f"= {v.grand:z.4g}"
    ends = f"u(all owners) {grand}, u(no data) = {v.empty:z.4g}"
    lines = [f"{v.semivalue} {v.words.nouns} of {n} owners; {trained}", ends]
    return [*lines, f"Stopped: {v.stopped}."] if v.stopped else lines


def _table(v: Valuation) -> list[str]:
    """Owners from most to least valuable."""
    table = [table_headings(v)]
    for owner, *entries in table_lines(v, plain_number):
        table.append((printable(v.owners[owner]), *(entry.text for entry in entries)))
    return align(table)


def notes(v: Valuation) -> list[str]:
    """How far to trust the values, a sentence or two each."""
    notes = _predictor_notes(v, v.diagnostics) if v.diagnostics else []
    if v.complete:
        notes.append(f"Exact{exactness_condition(v)}: every coalition that counts was evaluated.")
    if v.duplicates is not None:
        notes.append(duplicates_note(v.duplicates))
    if v.sampling is not None:
        notes.append(sampling_note(v))
    if v.subsidy is not None:
        notes += subsidy_notes(v.subsidy, complete=v.complete)
    if v.first_left and v.diagnostics is not None:
        are = "is" if v.first_left == 1 else "are"
        notes.append(
            f"Beware: {v.first_left} of the {min(2 * len(v.owners) + 1, v.counting)} most "
            f"important coalitions {are} not evaluated; these values are a first guess."
        )
    notes += [*floor_notes(v), *uncertainty_notes(v)]
    if abs(v.efficiency_gap) > 1e-9 * max(1.0, abs(v.grand), abs(v.empty)):
        notes.append(
            f"The values add up to {v.mean.sum():z.4g}, "
            f"u(all owners) - u(no data) is {v.grand - v.empty:z.4g}."
        )
    return notes + _trouble_notes(v)


def floor_notes(v: Valuation) -> list[str]:
    """What the lowest utility is that counts, and how many are lower."""
    if v.floor is None:
        return []
    what = f"{v.floor:.4g}{', the score of no data,' if v.floor == v.empty else ''}"
    return [f"Utilities below {what} count as that: {v.floored:,} of {v.evaluated:,} coalitions."]


def _trouble_notes(v: Valuation) -> list[str]:
    """What is wrong with the data or the trainings, a sentence or two each."""
    notes = [f"Beware: {caveat}" for caveat in v.caveats]
    if v.floored and v.floored == v.evaluated - len(v.failures):
        notes.append("Beware: no group scores above the floor; is the model of any use here?")
    if v.grand < v.empty:
        notes.append(
            "Beware: all data together score worse than none; is greater better here, and are "
            "validation rows like those to train on (units, labels)?"
        )
    if v.failures:
        members, reason = next(iter(v.failures.items()))
        notes.append(
            f"Failed: {len(v.failures)} of {v.evaluated:,} evaluations, predicted instead: "
            f"{_coalition_list(v.failures)}. The first, {_short_members(members)}: "
            f"{reason}"
        )
    if v.stale:
        told = f"{count_things(v.stale, 'stored evaluation')}, repeats included"
        notes.append(f"Not used: {told}, of rows changed since then.")
    for message, coalitions in list(v.warnings.items())[:3]:
        notes.append(
            f"Warning in {len(coalitions):,} of {v.evaluated:,} evaluations "
            f"({_coalition_list(coalitions)}): {message}"
        )
    if len(v.warnings) > 3:
        notes.append(f"{len(v.warnings) - 3} more kinds of warning.")
    return notes


def beware_notes(v: Valuation) -> list[str]:
    """The notes that warn of something."""
    return [note for note in notes(v) if note.startswith("Beware")]


def duplicates_note(d: Duplicates) -> str:
    """Who holds the same rows, and how many trainings that saved."""
    groups = [join_list(map(printable, group), most=2) for group in d.owners[:2]]
    if len(d.owners) > 2:
        groups.append(f"{len(d.owners) - 2} more groups of owners")
    first, *others = groups or ["Some coalitions"]
    who = f"{first} hold the same rows{''.join(f'; so do {group}' for group in others)}"
    return (
        f"{who}: the {d.coalitions:,} coalitions that count are {d.different:,} different ones; "
        f"{d.saved:,} needed no training of their own."
    )


def subsidy_notes(s: Subsidy, *, complete: bool) -> list[str]:
    """What keeps coalitions from leaving, and how many of them were checked.

    `complete`: whether the gains of all of them are known, none of them predicted.
    """
    bounds = f" (95 %: {s.low:.3g} … {s.high:.3g})" if s.low < s.high else ""
    leaving = "gains" if complete and not bounds else "is expected to gain"
    least = (
        f"Subsidy e = {s.amount:.3g}{bounds}: no coalition {leaving} more than that by leaving. "
        f"Tightest: {_coalition_list(s.tight)}."
    )
    if s.proven:
        return [least]
    if s.violation > 0.01 * max(abs(s.amount), 1e-12):
        return [
            f"Beware: the search for coalitions that gain more than the subsidy e = "
            f"{s.amount:.3g}{bounds} was cut short after {s.looked:,}; one exceeds it by "
            f"{s.violation:.2g}."
        ]
    return [
        least,
        f"In {s.looked:,} looks at coalitions none was found that exceeds it by more than "
        f"{s.violation:.2g}.",
    ]


def sampling_note(v: Valuation) -> str:
    """What the choice of coalitions and the predictions add to the uncertainty."""
    drawn = f"The values are sums over {v.counting:,} sampled coalitions"
    if v.diagnostics is None:
        drawn += ", all of them evaluated"
    sampling, prediction = v.sampling_std.max(), v.prediction_std.max()
    text = (
        f"{drawn}: of the standard deviations up to {sampling:.2g} is due to their choice, up to "
        f"{prediction:.2g} to predictions."
    )
    if v.diagnostics is None and sampling <= 1e-12 * float(np.abs(v.mean).max()):
        return f"{text} All draws agree; how far others would be is not known."
    more = " More samples would help, and cost no training."
    return text + more if sampling > prediction else text


def _predictor_notes(v: Valuation, d: Diagnostics) -> list[str]:
    if np.isnan(d.r2):
        first = "Predictor not checked: the evaluated utilities are all equal."
    else:
        first = (
            f"Predictor, each evaluation left out in turn: error {d.error:.2g}, "
            f"R² {d.r2:z.2f}, 95 % intervals cover {100 * d.coverage:.0f} %."
        )
    scales = ", ".join(f"{label} {100 * part:.0f} %" for label, part in d.scales.items())
    measured = v.training_noise is not None and v.training_noise.std > 0
    besides = " besides that of trainings" if measured else ""
    alike = f"What made coalitions alike: {scales}; noise of a utility {d.noise:.2g}{besides}."
    asked = [f"The predictor is as asked for: {d.asked}."] if d.asked else []
    learned = [] if v.sampled else [*asked, alike, *fit_notes(v, d)]
    return [first, *check_notes(v), *learned]


def check_notes(v: Valuation) -> list[str]:
    """What check coalitions say about the predictor, and what follows."""
    notes, held = [], v.check
    if held is not None:
        notes.append(
            f"Predictor on {held.held_out} check coalitions: error {held.error:.2g}, that of the "
            f"mean of their size {held.by_size:.2g}, 95 % intervals cover "
            f"{100 * held.coverage:.0f} %."
        )
    beware = "Beware: on check coalitions the predictor is not clearly better than the mean of "
    beware += "their size"
    if v.sampled:
        alone = "they come from randomly drawn coalitions alone"
        return [*notes, f"{beware}, so the values above do not use it: {alone}."]
    if held is not None and held.failed:
        notes.append(f"{beware}; evaluate more.")
    if v.uncorrected:
        notes.append(
            "Beware: too few random coalitions are evaluated to estimate the error of the "
            "predictor; the values are not corrected."
        )
    if v.corrected:
        notes.append(
            "The error of the predictor was estimated from random coalitions and corrected."
        )
    return notes


def fit_notes(v: Valuation, d: Diagnostics) -> list[str]:
    """Doubts about a predictor that the values rely on."""
    notes = []
    if d.widening > 1.5:
        notes.append(
            f"Intervals are widened by a factor of {d.widening:.1f}: evaluations are few or hard "
            "to predict."
        )
    if d.strays:
        notes.append(
            f"Outliers: {d.strays} of {v.evaluated:,} evaluations, which count in the values but "
            "not in predictions, and widen the intervals."
        )
    if d.r2 <= 0:
        notes.append("Beware: the predictor is no better than a constant; evaluate more.")
    return notes


def _coalition_list(coalitions: Collection[tuple[str, ...]]) -> str:
    """The smallest coalitions by name, the others by number."""
    return join_list(map(_short_members, sorted(coalitions, key=len)), most=3)


def _short_members(members: tuple[str, ...]) -> str:
    """A coalition, a large one by its first members and its size."""
    if len(members) <= MOST_NAMED:
        return format_members(members)
    return format_members((*members[:3], f"… {len(members)} owners"))
