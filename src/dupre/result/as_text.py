"""A valuation as text: the answer on one screen, and the long form with every note.

The report takes some of its phrases from here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import pandas as pd

from dupre.metrics import TABLE
from dupre.notes import Code, has, select, warnings, worst_first
from dupre.result.records import Comparison
from dupre.result.remarks import order_of_joining, short_members
from dupre.result.uncertainty import (
    UNMOVED,
    exactness_condition,
    rows_in_words,
    rows_to_halve,
    trainings_help,
)
from dupre.result.values import Values
from dupre.result.verdict import Verdict, verdict
from dupre.wording import LONGEST_LINE, cut, escape_controls, number, plain_number, printable

MOST_NOTES = 3
"""Notes on the first screen; the others are counted."""

MOST_OWNERS = 20
"""Owners up to which the first screen has all of them; of more, the first and the last half."""

SYMMETRIC = "If nobody had come first: Shapley values from the same trainings, the rest predicted"
SYMMETRIC_HEADINGS = ("owner", "cohort", "value", "Shapley value", "95 % interval")
"""Values beside those that depend on who joined first."""

_NO_GAIN = "another model, metric or columns: by these there is nothing to share."
NOT_BY_TRAINING = {
    Code.SEEN_ROWS: "validation rows that no model has seen.",
    Code.ONE_CLASS: "validation rows of every class.",
    Code.FEW_ROWS: "more validation rows.",
    Code.OUTSIDE_BOUNDS: "the right bounds of the utility.",
    **dict.fromkeys((Code.WORSE_THAN_NOTHING, Code.NO_GAIN, Code.NONE_ABOVE_FLOOR), _NO_GAIN),
}
"""What resolves what no further training repairs, by the code of a note."""


def format_valuation(v: Values, *, details: str = "valuation.explain()", go_on: str = "") -> str:
    """The answer on one screen: verdict, gain, gravest notes, table, how sure, what next.

    Args:
        v: the valuation.
        details: what shows the rest.
        go_on: what trains more; "" if nothing is to be named.
    """
    found = verdict(v)
    told = worst_first([*found.reasons, *warnings(v.notes)])[:MOST_NOTES]
    first, *others = [one.short for one in told] if found.kind == "not payable" else [""]
    others = others if first else [one.short for one in told]
    left = len([one for one in v.notes if one not in told])
    lines = [
        _verdict_line(found, first),
        f"{rule_in_words(v)}: {gain_in_words(v)}.",
        *(f"- {text}" for text in others),
        *([f"{left:,} {'more' if told else 'notes'}: {details}"] if left else []),
        "",
        *first_and_last(_table(v)),
        "",
        how_sure(v),
        f"Next: {what_next(v, go_on)}",
    ]
    return _join(lines)


def format_others(v: Values) -> str:
    """Verdict and table alone: of further semivalues, whose first one has the whole screen."""
    return _join([f"{v.semivalue}: {verdict(v).kind}.", "", *first_and_last(_table(v))])


def explain_valuation(v: Values) -> str:
    """The long form: verdict, title, table of all owners, and every note, the gravest first."""
    found = verdict(v)
    first = found.reasons[0].short if found.kind == "not payable" else ""
    lines = [_verdict_line(found, first), *title_of(v), "", *_table(v), *_symmetric(v), ""]
    return _join([*lines, *map(str, v.notes)])


def _join(lines: Sequence[str]) -> str:
    return "\n".join(cut(escape_controls(line), LONGEST_LINE) for line in lines)


def _verdict_line(found: Verdict, reason: str) -> str:
    kind = found.kind.capitalize()
    return f"{kind}: {reason[:1].lower()}{reason[1:]}" if reason else f"{kind}."


def metric_words(v: Values) -> Mapping[str, str]:
    """`words`, `unit` and `sentence` of the metric, as `Metric` has them; "" if not known."""
    metric = TABLE.get(v.facts.provenance.get("settings", {}).get("metric", ""))
    known = {name: getattr(metric, name, "") for name in ("words", "unit", "sentence")}
    return known | dict(v.facts.provenance.get("metric", {}))  # that of the user's own code


def gain_in_words(v: Values) -> str:
    """The utilities of all data and of none: `with everybody's data 84 % right, by guessing 10 %`.

    Scores that people read in per cent are given in it.
    """
    metric, scores = metric_words(v), {"all": v.facts.grand, "none": v.facts.empty}
    form = ":%" if metric["unit"] == "points" else ""
    called = metric["words"] or "utility"
    other = f"{called} {{all{form}}} with everybody's data, {{none{form}}} without"
    alike = len({f"{100 * score:.0f}" for score in scores.values()}) == 1

    def tell(place: re.Match[str]) -> str:
        whose, form = place.groups()
        about = "about " if whose == "all" and v.facts.grand_predicted else ""
        if form == "%":
            return f"{about}{number(100 * scores[whose], int(alike))} %"
        return f"{about}{-scores[whose] if form == 'loss' else scores[whose]:z.3g}"

    # No format string: a result that was read may hold any text.
    return re.sub("{(all|none)(?::(%|loss))?}", tell, metric["sentence"] or other)


def rule_in_words(v: Values) -> str:
    """Which values they are, with the order of joining if that decides."""
    if (joining := v.facts.joining) is None:
        return v.semivalue
    return f"{v.semivalue}, by order of joining ({order_of_joining(joining.cohorts)})"


def symmetric_lines(v: Values, form: Callable[[float, int], str] = number) -> list[list[str]]:
    """Each owner, the greatest value first, with its cohort, its value and its Shapley value.

    The last with its 95 % interval; "–" if that is not known.
    """
    joining, places, found = v.facts.joining, decimals(v), []
    if joining is None or joining.symmetric.empty:
        return []
    frame = joining.symmetric.set_index("owner")
    cohort = {name: k for k, names in enumerate(joining.cohorts, start=1) for name in names}
    for i in map(int, v.order):
        name = v.owners[i]
        value, low, high = (
            form(one, places) if np.isfinite(one) else "–" for one in map(float, frame.loc[name])
        )
        found.append([name, f"{cohort[name]}", form(v.mean[i], places), value, f"{low} … {high}"])
    return found


def _symmetric(v: Values) -> list[str]:
    """The values beside those that they would be if nobody had come first."""
    lines = [[printable(name), *rest] for name, *rest in symmetric_lines(v, plain_number)]
    return ["", f"{SYMMETRIC}:", *align([SYMMETRIC_HEADINGS, *lines])] if lines else []


def how_sure(v: Values) -> str:
    """The widest interval, for whom it holds, and how much was trained."""
    trained = f"{trained_part(v)} trained{failed_part(v)}"
    if not v.std.any():
        known = f"exact{exactness_condition(v)}" if v.complete else UNMOVED
        return f"{v.words.nouns.capitalize()} are {known}; {trained}."
    whom = ""
    if v.uncertainty.varies_with_rows:
        whom = f" for the population of the {rows_in_words(v)}"
    elif v.facts.validation_rows or v.uncertainty.validation is None:
        whom = " for these validation rows"
    wide = f"within ± {v.uncertainty.widest:.2g} (95 %){whom}"
    return f"{v.words.nouns.capitalize()} are {wide}; {trained}."


def what_next(v: Values, go_on: str = "") -> str:
    """What would make the values better: more trainings, more validation rows, or nothing."""
    notes, shares = verdict(v).reasons, v.uncertainty.shares()
    for one in select(notes, NOT_BY_TRAINING):
        return NOT_BY_TRAINING[one.code]  # for the gravest
    train = "train the failed ones again" if failed_alone_are_left(v) else "more trainings"
    train += f": {go_on}" if go_on else "."
    if has(notes, Code.FIRST_GUESS, Code.UNFINISHED):
        return train
    if not v.std.any():
        return "nothing is left to train." if v.complete else "nothing."
    greatest = max(shares, key=lambda source: shares[source])
    if greatest == "not_evaluated" and trainings_help(v):
        return _drawn_too_few(v) or train
    if greatest == "noise":
        return "a new run with more repeats: chance in trainings is most of the uncertainty."
    if greatest == "deal" and v.facts.folds == 1:
        return "a new run on folds: most of the uncertainty is which rows one split holds out."
    if greatest == "deal":
        return "a new run with more repeats: most of the uncertainty is which rows share a fold."
    needed = rows_to_halve(v)
    also = f"; or {train}" if trainings_help(v) else "."
    if v.facts.validating:  # nobody has a file of them; what so many do is a note
        enough = f" (about {needed:,})" if needed else ""
        return f"more rows of owners, or an agreed file{enough}{also}"
    enough = f" (about {needed:,} would halve the intervals)" if needed else ""
    return f"more validation rows{enough}{also}"


def _drawn_too_few(v: Values) -> str:
    """What helps if the choice of coalitions is most of the uncertainty; "" if it is not."""
    stds = [float(v.uncertainty.std(source).max()) for source in ("sampling", "prediction")]
    return "more samples, which cost no training." if stds[0] > stds[1] else ""


def coalition_count(n: int) -> str:
    """How many coalitions of n owners there are."""
    every = 2**n - 1
    if n <= 30:
        return f"{every:,}"
    if n < 50:
        unit, size = ("trillion", 10**12) if n >= 40 else ("billion", 10**9)
        return f"about {every / size:.3g} {unit}"
    return "more than a thousand trillion"


def trained_part(v: Values) -> str:
    """How many of all coalitions have a utility by training."""
    n, trained = len(v.owners), v.facts.evaluated - len(v.facts.failures)
    if v.complete and trained == 2**n - 1:
        return f"all {trained:,} possible coalitions"
    return f"{trained:,} of {coalition_count(n)} possible coalitions"


def failed_part(v: Values) -> str:
    """How many coalitions failed besides those trained; nothing if none did."""
    return f", {len(v.facts.failures):,} failed" if v.facts.failures else ""


def failed_alone_are_left(v: Values) -> bool:
    """Whether all coalitions that enter the values were tried, and some failed."""
    return bool(v.facts.failures) and v.facts.evaluated >= v.facts.counting


def seconds_each(v: Values) -> float:
    """How long a further training is expected to take; 0 if that is not told."""
    told = select(v.notes, [Code.COST])
    return float(told[0].facts["seconds"]) if told else 0.0


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
        lines.append(f"{short_members(cast('tuple[str, ...]', row.members))}: {text}")
    return "\n".join(lines)


def title_of(v: Values) -> list[str]:
    """What was valued, how many coalitions were evaluated, and why no more."""
    facts = v.facts
    n = len(v.owners)
    trained = f"{trained_part(v)} evaluated{failed_part(v)}"
    grand = (
        f"≈ {facts.grand:z.4g} (predicted)" if facts.grand_predicted else f"= {facts.grand:z.4g}"
    )
    ends = f"u(all owners) {grand}, u(no data) = {facts.empty:z.4g}"
    lines = [f"{v.semivalue} {v.words.nouns} of {n} owners; {trained}", ends]
    return [*lines, f"Stopped: {facts.stopped}."] if facts.stopped else lines


def first_and_last(table: Sequence[str]) -> list[str]:
    """A table with its head; of many owners the first and the last of them."""
    head, *lines = table
    if (left := len(lines) - MOST_OWNERS) <= 0:
        return [head, *lines]
    half = MOST_OWNERS // 2
    return [head, *lines[:half], f"… {left:,} more", *lines[-half:]]


def _table(v: Values) -> list[str]:
    """Owners from most to least valuable."""
    table = [table_headings(v)]
    for owner, *entries in table_lines(v, plain_number):
        table.append((printable(v.owners[owner]), *(entry.text for entry in entries)))
    return align(table)


def exact_percent(probability: float) -> str:
    """A probability to three digits, never rounded to certainty."""
    if probability == 1:
        return "100 %"
    return "more than 99.9 %" if probability > 0.999 else f"{100 * probability:.3g} %"


class Entry(NamedTuple):
    """A formatted cell, and the number by which its column is sorted."""

    text: str
    sort: float | None


class Line(NamedTuple):
    """The position of one owner among the owners, and its cells."""

    owner: int
    rows: Entry
    value: Entry
    interval: Entry
    share: Entry
    rank: Entry


def table_headings(v: Values) -> tuple[str, ...]:
    """One for each part of a `Line`."""
    return "owner", "rows", v.words.noun, "95 % interval", "share", "rank (95 %)"


def table_lines(v: Values, form: Callable[[float, int], str] = number) -> list[Line]:
    """One for each owner, from the greatest value to the smallest; `form` formats a number."""
    frame, places = v.to_frame(), decimals(v)
    found = []
    for i in map(int, v.order):
        row = frame.iloc[i]
        best, worst, share = int(row["best"]), int(row["worst"]), row["share"]
        low, high = form(row["low"], places), form(row["high"], places)
        found.append(
            Line(
                i,
                Entry(f"{row['rows']:,.0f}", row["rows"]),
                Entry(form(row["value"], places), row["value"]),
                Entry(f"{low} … {high}", row["low"]),
                Entry(f"{form(100 * share, 1)} %", share)
                if np.isfinite(share)
                else Entry("–", None),
                Entry(f"{best}" if best == worst else f"{best}–{worst}", best + worst / 1e4),
            )
        )
    return found


def align(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells as text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip()
        for name, *cells in lines
    ]


def decimals(v: Values) -> int:
    """As many decimals of a value as the intervals deserve."""
    # Of exact values as many as their size deserves, and none that are rounding errors.
    rounding = 1e-12 * (max(abs(v.facts.grand), abs(v.facts.empty)) or 1.0)
    size = max(float(v.std.median()), 3e-3 * float(np.abs(v.mean).max()), rounding)
    return max(0, int(1 - np.floor(np.log10(size))))
