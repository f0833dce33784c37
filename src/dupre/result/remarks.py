"""What follows from the numbers of a result, as notes, and all notes of a result in their order.

`with_notes` is where the notes of a valuation are decided: those that others noticed stay, those of
this module and of `uncertainty` are made anew from the numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import numpy as np

from dupre.game.coalitions import format_members
from dupre.notes import Code, Note, has, note, worst_first
from dupre.predictor.calibration import Diagnostics
from dupre.result.records import Duplicates, Facts, Subsidy, none_above_floor
from dupre.result.uncertainty import exactness_condition, uncertainty_notes
from dupre.result.values import Values
from dupre.result.verdict import DECIDING, verdict_notes
from dupre.wording import MOST_NAMED, count_things, join_list, printable

Kind = TypeVar("Kind", bound=Values)

Cohorts: TypeAlias = Sequence[tuple[str, ...]]

MOST_JOINED = 3
"""Cohorts named, and owners of each."""

MOST_WARNINGS = 3
"""Kinds of warning told one by one; the others are counted."""

DERIVED = frozenset(
    {
        *(Code.LEFT_OUT, Code.CHECK_COALITIONS, Code.PREDICTOR_FAILED),
        *(Code.CORRECTED, Code.ASKED_PREDICTOR, Code.SIMILARITY, Code.OUTLIERS),
        *(Code.NO_BETTER_THAN_CONSTANT, Code.EXACT, Code.DUPLICATES, Code.SAMPLED_COALITIONS),
        *(Code.SAME_OWNERS, Code.PRECEDENCE, Code.LATER_COPIES),
        *(Code.SUBSIDY, Code.SUBSIDY_SEARCHED, Code.SUBSIDY_CUT_SHORT, Code.FIRST_GUESS),
        *(Code.FLOOR, Code.NONE_ABOVE_FLOOR, Code.WORSE_THAN_NOTHING, Code.EFFICIENCY_GAP),
        *(Code.FAILED_TRAININGS, Code.STALE, Code.WARNINGS, Code.SEEDS_NOT_MEASURED),
        *(Code.REPEATED_TRAININGS, Code.UNKNOWN_ROWS, Code.UNCHANGED_BY_ROWS, Code.POPULATION),
        *(Code.VARIANCE, Code.MORE_ROWS, Code.FORECAST, *DECIDING),
    }
)
"""Codes of the notes that follow from the numbers of a result."""


def with_notes(v: Kind, further: Iterable[Note] = ()) -> Kind:
    """The valuation with all its notes, the gravest first; `further` are added to those it has."""
    noticed = [*(one for one in v.notes if one.code not in DERIVED), *further]
    v = replace(v, notes=worst_first(noticed))  # some that follow depend on them
    return replace(v, notes=worst_first([*_derive(v), *v.notes]))


def _derive(v: Values) -> list[Note]:
    """The notes that follow from the numbers."""
    return [
        *(_predictor(v, v.facts.diagnostics) if v.facts.diagnostics is not None else ()),
        *_coalitions(v),
        *uncertainty_notes(v),
        *_sum(v),
        *_utilities(v.facts),
        *verdict_notes(v),
        *_trainings(v.facts, accepted=has(v.notes, Code.ACCEPTED_ROWS)),
    ]


def _predictor(v: Values, d: Diagnostics) -> list[Note]:
    facts = {"error": d.error, "coverage": d.coverage, "r2": d.r2}
    if np.isnan(d.r2):  # utilities without a variance, of which nothing can be explained
        first = "Predictor not checked: the evaluated utilities are all equal."
        facts = {}
    else:
        first = (
            f"Predictor, each evaluation left out in turn: error {d.error:.2g}, "
            f"R² {d.r2:z.2f}, 95 % intervals cover {100 * d.coverage:.0f} %."
        )
    found = [note(Code.LEFT_OUT, first, **facts), *_check(v)]
    return found if v.facts.sampled else [*found, *_learned(v, d)]  # then the values do not use it


def _learned(v: Values, d: Diagnostics) -> list[Note]:
    """What a predictor has learned that the values rely on, and doubts about it."""
    found = []
    if d.asked:
        text = f"The predictor is as asked for: {d.asked}."
        found.append(note(Code.ASKED_PREDICTOR, text, asked=d.asked))
    scales = ", ".join(f"{label} {100 * part:.0f} %" for label, part in d.scales.items())
    measured = v.facts.training_noise is not None and v.facts.training_noise.std > 0
    besides = " besides that of trainings" if measured else ""
    alike = f"What made coalitions alike: {scales}; noise of a utility {d.noise:.2g}{besides}."
    found.append(note(Code.SIMILARITY, alike, scales=dict(d.scales), noise=d.noise))
    if d.strays:
        text = (
            f"Outliers: {d.strays} of {v.facts.evaluated:,} evaluations, which count in the values "
            "but not in predictions, and widen the intervals."
        )
        found.append(note(Code.OUTLIERS, text, outliers=d.strays, evaluated=v.facts.evaluated))
    # A constant has an R² of zero by definition; left-out utilities can do worse. What is printed
    # as 0.00 is no better.
    if d.r2 < 0.005:
        text = "the predictor is no better than a constant; evaluate more."
        found.append(note(Code.NO_BETTER_THAN_CONSTANT, text, r2=d.r2))
    return found


def _check(v: Values) -> list[Note]:
    """What check coalitions say about the predictor, and what follows."""
    found, held = [], v.facts.check
    facts: dict[str, float] = {}
    if held is not None:
        facts = {"held_out": held.held_out, "error": held.error, "by_size": held.by_size}
        text = (
            f"Predictor on {held.held_out} check coalitions: error {held.error:.2g}, that of the "
            f"mean of their size {held.by_size:.2g}, 95 % intervals cover "
            f"{100 * held.coverage:.0f} %."
        )
        found.append(note(Code.CHECK_COALITIONS, text, **facts, coverage=held.coverage))
    failed = "on check coalitions the predictor is not clearly better than the mean of their size"
    if v.facts.sampled:
        alone = "so the values do not use it: they come from randomly drawn coalitions alone."
        return [*found, note(Code.PREDICTOR_FAILED, f"{failed}, {alone}", **facts, used=False)]
    if held is not None and held.failed:
        text = f"{failed}; evaluate more."
        found.append(note(Code.PREDICTOR_FAILED, text, **facts, used=True))
    if v.facts.corrected:
        text = "The error of the predictor was estimated from random coalitions and corrected."
        found.append(note(Code.CORRECTED, text))
    return found


def _coalitions(v: Values) -> list[Note]:
    """Which coalitions the values come from."""
    found = []
    if v.complete:
        text = f"Exact{exactness_condition(v)}: every coalition that counts was evaluated."
        found.append(note(Code.EXACT, text))
    cohorts = () if v.facts.joining is None else v.facts.joining.cohorts
    if cohorts:
        found.append(_precedence(cohorts))
    if v.facts.duplicates is not None:
        found += _duplicates(v.facts.duplicates, cohorts)
    if v.uncertainty.sampling is not None:
        found.append(_sampling(v))
    if v.facts.subsidy is not None:
        found += _subsidy(v.facts.subsidy, complete=v.complete)
    # Without diagnostics nothing is predicted: those left have no weight in these values.
    if (left := v.facts.first_left) and v.facts.diagnostics is not None:
        first = min(2 * len(v.owners) + 1, v.facts.counting)
        text = (
            f"{left} of the {first} most important coalitions {'is' if left == 1 else 'are'} not "
            "evaluated; these values are a first guess."
        )
        found.append(note(Code.FIRST_GUESS, text, left=left, first=first))
    return found


def _precedence(cohorts: Cohorts) -> Note:
    """By which rule owners who joined in turn are valued."""
    text = (
        f"Order of joining: {order_of_joining(cohorts)}. An owner's value is the mean of what its "
        "data add to those of all who joined before it and of some who joined with it: the Shapley "
        "value among these."
    )
    return note(Code.PRECEDENCE, text, cohorts=[list(cohort) for cohort in cohorts])


def order_of_joining(cohorts: Cohorts) -> str:
    """Who joined, in order: `A and B, then C`; of many the first, and how many more."""
    first = [join_list(map(printable, cohort), most=MOST_JOINED) for cohort in cohorts]
    if (left := len(first) - MOST_JOINED) > 1:
        owners = sum(map(len, cohorts[MOST_JOINED:]))
        first[MOST_JOINED:] = [f"{owners:,} more owners in {left:,} cohorts"]
    return "; then ".join(first)


def _duplicates(d: Duplicates, cohorts: Cohorts) -> list[Note]:
    """Who holds the same rows, and how many trainings that saved."""
    text = (
        f"Some coalitions hold the same rows: the {d.coalitions:,} that count are {d.different:,} "
        f"different ones; {d.saved:,} needed no training of their own."
    )
    counts = {"coalitions": d.coalitions, "different": d.different, "saved": d.saved}
    saved = note(Code.DUPLICATES, text, **counts)
    cohort = {name: k for k, names in enumerate(cohorts) for name in names}
    together, in_turn = [], []
    for group in d.owners:
        joined = [cohort.get(name, 0) for name in group]
        parts = [tuple(n for n in group if cohort.get(n, 0) == k) for k in dict.fromkeys(joined)]
        together += [part for part in parts if len(part) > 1]
        in_turn += [group] * (len(parts) > 1)
    found = []
    if together:
        text = f"{_same_rows(together)}: a copy is worth as much as the original."
        found.append(note(Code.SAME_OWNERS, text, owners=list(map(list, together))))
    if in_turn:
        text = f"{_same_rows(in_turn)}: who joined later is worth what a copy adds."
        found.append(note(Code.LATER_COPIES, text, owners=list(map(list, in_turn))))
    return [*found, saved]


def _same_rows(groups: Cohorts) -> str:
    """Groups of owners that each hold the same rows: the first, and how many more."""
    first, *others = (join_list(map(printable, group), most=2) for group in groups[:2])
    others += [f"{len(groups) - 2} more groups of owners"] * (len(groups) > 2)
    return f"{first} hold the same rows{''.join(f'; so do {group}' for group in others)}"


def _subsidy(s: Subsidy, *, complete: bool) -> list[Note]:
    """What keeps coalitions from leaving, and how many of them were checked.

    `complete`: whether the gains of all of them are known, none of them predicted.
    """
    bounds = f" (95 %: {s.low:.3g} … {s.high:.3g})" if s.low < s.high else ""
    leaving = "gains" if complete and not bounds else "is expected to gain"
    text = (
        f"Subsidy e = {s.amount:.3g}{bounds}: no coalition {leaving} more than that by leaving. "
        f"Tightest: {list_coalitions(s.tight)}."
    )
    facts = {"amount": s.amount, "low": s.low, "high": s.high}
    least = note(Code.SUBSIDY, text, **facts, tight=len(s.tight))
    if s.proven:
        return [least]
    looks = {"looked": s.looked, "violation": s.violation}
    # Up to a hundredth of the subsidy a violation changes none of the digits that are printed.
    if s.violation > 0.01 * max(abs(s.amount), 1e-12):
        text = (
            f"the search for coalitions that gain more than the subsidy e = {s.amount:.3g}{bounds} "
            f"was cut short after {s.looked:,}; one exceeds it by {s.violation:.2g}."
        )
        return [note(Code.SUBSIDY_CUT_SHORT, text, **facts, **looks)]
    text = (
        f"In {s.looked:,} looks at coalitions none was found that exceeds it by more than "
        f"{s.violation:.2g}."
    )
    return [least, note(Code.SUBSIDY_SEARCHED, text, **looks)]


def _sampling(v: Values) -> Note:
    """What the choice of coalitions and the predictions add to the uncertainty."""
    drawn = f"The values are sums over {v.facts.counting:,} sampled coalitions"
    if v.facts.diagnostics is None:
        drawn += ", all of them evaluated"
    sampling, prediction = (
        float(v.uncertainty.std("sampling").max()),
        float(v.uncertainty.std("prediction").max()),
    )
    text = (
        f"{drawn}: of the standard deviations up to {sampling:.2g} is due to their choice, up to "
        f"{prediction:.2g} to predictions."
    )
    # Equal draws say nothing about others; differences of this size are rounding.
    if v.facts.diagnostics is None and sampling <= 1e-12 * float(np.abs(v.mean).max()):
        text += " All draws agree; how far others would be is not known."
    elif sampling > prediction:
        text += " More samples would help, and cost no training."
    facts = {"counting": v.facts.counting, "sampling": sampling, "prediction": prediction}
    return note(Code.SAMPLED_COALITIONS, text, **facts)


def _sum(v: Values) -> list[Note]:
    """Whether the values add up to the gain of all owners."""
    # Sums over thousands of weights are exact to about this; Shapley values have no other gap.
    if abs(v.efficiency_gap) <= 1e-9 * max(1.0, abs(v.facts.grand), abs(v.facts.empty)):
        return []
    total, gain = float(v.mean.sum()), float(v.facts.grand - v.facts.empty)
    text = f"The values add up to {total:z.4g}, u(all owners) - u(no data) is {gain:z.4g}."
    return [note(Code.EFFICIENCY_GAP, text, sum=total, gain=gain)]


def _utilities(f: Facts) -> list[Note]:
    """Scores below the floor, or below that of no data."""
    found = []
    if f.floor is not None:
        what = f"{f.floor:.4g}{', the score of no data,' if f.floor == f.empty else ''}"
        text = f"Utilities below {what} count as that: {f.floored:,} of {f.evaluated:,} coalitions."
        counts = {"floored": f.floored, "evaluated": f.evaluated}
        found.append(note(Code.FLOOR, text, floor=f.floor, **counts))
    if none_above_floor(f):
        text = "no group scores above the floor; is the model of any use here?"
        found.append(note(Code.NONE_ABOVE_FLOOR, text, floor=f.floor))
    if f.grand < f.empty:
        text = (
            "all data together score worse than none; is greater better here, and are validation "
            "rows like those to train on (units, labels)?"
        )
        found.append(note(Code.WORSE_THAN_NOTHING, text, all=float(f.grand), none=float(f.empty)))
    return found


def _trainings(f: Facts, *, accepted: bool) -> list[Note]:
    """What went wrong with trainings; `accepted`: that a note says already which are not used."""
    found = []
    if f.failures:
        members, reason = next(iter(f.failures.items()))
        text = (
            f"{len(f.failures)} of {f.evaluated:,} evaluations failed; predicted instead: "
            f"{list_coalitions(f.failures)}. The first, {short_members(members)}: {reason}"
        )
        # All of them are in `failures`; of many owners the list is long.
        counts = {"failed": len(f.failures), "evaluated": f.evaluated}
        found.append(note(Code.FAILED_TRAININGS, text, **counts, first=list(members)))
    if f.stale and not accepted:
        told = f"{count_things(f.stale, 'stored evaluation')}, repeats included"
        text = f"Not used: {told}, of rows changed since then."
        found.append(note(Code.STALE, text, stale=f.stale))
    for message, coalitions in list(f.warnings.items())[:MOST_WARNINGS]:
        text = (
            f"Warning in {len(coalitions):,} of {f.evaluated:,} evaluations "
            f"({list_coalitions(coalitions)}): {message}"
        )
        counts = {"coalitions": len(coalitions), "evaluated": f.evaluated}
        found.append(note(Code.WARNINGS, text, message=message, **counts))
    if (more := len(f.warnings) - MOST_WARNINGS) > 0:
        found.append(note(Code.WARNINGS, f"{more} more kinds of warning.", more=more))
    return found


def list_coalitions(coalitions: Collection[tuple[str, ...]]) -> str:
    """The smallest coalitions by name, the others by number."""
    return join_list(map(short_members, sorted(coalitions, key=len)), most=3)


def short_members(members: tuple[str, ...]) -> str:
    """A coalition, a large one by its first members and its size."""
    if len(members) <= MOST_NAMED:
        return format_members(members)
    return format_members((*members[:3], f"… {len(members)} owners"))
