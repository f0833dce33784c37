"""How values moved from one result to a later one, and whether their intervals explain it.

Notation: k owners in both results, d = after - before their changes, (k,); V_1 and V_2 covariances
of the values, C that between the two, all (k, k). Var(d) = V_1 + V_2 - C - Cᵀ.

C is not known: two results are two files. So each source of doubt is either in both in the same
way, and then not in d, or taken as independent, C = 0:

- Validation rows: of the same rows, by their digest, other ones would change both results. d is
  then what moved for these rows, and this part is left out. Different rows are independent; if some
  are in both, C is positive and the interval of d rather too wide.
- Deal of the folds, or one split: if rows, folds and seed are the same it is the same deal, and
  left out as well.
- Coalitions not trained or not drawn, and noise: independent. The same trainings and the same
  predictor err alike, so that C is positive there too: cautious.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dupre.errors import InputError
from dupre.notes import Note, select, warnings, worst_first
from dupre.predictor.student import Spread
from dupre.result.as_text import align, decimals
from dupre.result.covariances import Uncertainty
from dupre.result.remarks import order_of_joining
from dupre.result.uncertainty import IN_NO_INTERVAL
from dupre.result.values import Values
from dupre.wording import (
    LONGEST_LINE,
    ROWS_OF,
    count_things,
    cut,
    escape_controls,
    join_list,
    plain_number,
    printable,
)

ROUNDING = 1e-9
"""Part of the greatest number up to which a change is a rounding error, as for a tie of owners."""

MOST_NOTES = 3
"""Notes that are printed; the others are counted."""

VALIDATION = "validation data"
DEAL = (VALIDATION, "folds", "seed")
"""Fingerprints: of the validation rows, and of all that decides how rows are dealt."""

SCORED_ON = {
    True: "Both are scored on the same validation rows: the intervals are for these.",
    False: "They are scored on other validation rows: the intervals allow for both choices.",
    None: "Whether both are scored on the same validation rows is not known: the intervals allow "
    "for two choices of them.",
}
"""What is said of the validation rows of two results."""

CHANGED = {"model": "the model", "folds": "the folds", "seed": "the seed"}
"""Fingerprints of what may differ and is said then."""


@dataclass(frozen=True, eq=False)
class Changes:
    """How the values of owners moved from one result to a later one. `print` it.

    Attributes:
        frame: `before`, `after`, `change`, `low` and `high`, bounds between which the change lies
            with 95 %, `moved`, whether it is more than the intervals explain, `share_before` and
            `share_after`, by owner, from the greatest value to the smallest.
        semivalue: which values they are.
        nouns: what they are called.
        places: decimals that are printed.
        joined, left: values of owners who are in the later result alone, and in the earlier one.
        same_rows: whether both are scored on the same validation rows; None if that is not known.
        scored_on: what that means for the intervals; "" if it means nothing.
        other_rows: owners whose rows to train on have changed.
        changed: what else has changed, in words.
        notes: of what either result warns, and what is in no interval, the gravest first.
    """

    frame: pd.DataFrame
    semivalue: str
    nouns: str
    places: int
    joined: Mapping[str, float]
    left: Mapping[str, float]
    same_rows: bool | None
    scored_on: str
    other_rows: tuple[str, ...]
    changed: tuple[str, ...]
    notes: tuple[Note, ...]

    @property
    def moved(self) -> tuple[str, ...]:
        """Owners who moved by more than the intervals explain."""
        return tuple(map(str, self.frame.index[self.frame["moved"]]))

    @property
    def verdict(self) -> str:
        """Who moved, in words."""
        count = count_things(len(self.frame), "owner")
        if not self.moved:
            return f"None of {count} moved by more than the intervals explain."
        who = join_list(map(printable, self.moved))
        return f"{len(self.moved):,} of {count} moved by more than the intervals explain: {who}."

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON has it; a share that is not known is null."""
        known = self.frame.reset_index().astype(object)
        plain = known.where(known.notna(), None).to_dict("records")
        others = {name: one for name, one in vars(self).items() if name not in ("frame", "notes")}
        return {
            **others,
            "owners": plain,
            "moved": list(self.moved),
            "verdict": self.verdict,
            "notes": [vars(one) for one in self.notes],
        }

    def __str__(self) -> str:
        lines = [["owner", "before", "after", "change", "95 % interval", "moved", "share"]]
        for name, row in self.frame.iterrows():
            number = {key: self._number(row[key]) for key in ("before", "after", "low", "high")}
            lines.append([
                printable(str(name)),
                number["before"],
                number["after"],
                f"{row['change']:+z.{self.places}f}",
                f"{number['low']} … {number['high']}",
                "yes" if row["moved"] else "no",
                f"{_percent(row['share_before'])} → {_percent(row['share_after'])}",
            ])  # fmt: skip
        # Both results may say the same, of nearly the same numbers.
        shorts = dict.fromkeys(f"- {one.short}" for one in self.notes)
        told, more = list(shorts)[:MOST_NOTES], len(shorts) - MOST_NOTES
        told += [f"{more} more: `notes`, which --json has"] if more > 0 else []
        text = [
            f"{self.semivalue} {self.nouns} of two results",
            "",
            *align(lines),
            "",
            *self._circumstances(),
            *told,
        ]
        every = [*text, self.verdict]
        return "\n".join(cut(escape_controls(line), LONGEST_LINE) for line in every)

    def _number(self, value: float) -> str:
        return plain_number(value, self.places)

    def _circumstances(self) -> list[str]:
        """Who came and went, and what else has changed."""
        found = []
        for word, who in (("Joined", self.joined), ("Left", self.left)):
            each = [f"{printable(name)} ({self._number(one)})" for name, one in who.items()]
            found += [f"{word}: {join_list(each)}."] * bool(each)
        if self.other_rows:
            found.append(f"Other rows than before: {join_list(map(printable, self.other_rows))}.")
        if self.changed:
            found.append(f"Changed too: {join_list(self.changed)}.")
        return [*found, self.scored_on] if self.scored_on else found


def changes(before: Values, after: Values) -> Changes:
    """How the values moved from one result to a later one.

    Raises:
        InputError: the semivalue, the metric or the target is another, or nobody is in both.
    """
    check_comparable(before, after)
    both = [name for name in np.array(after.owners)[after.order] if name in before.owners]
    first, second = (np.array([v.owners.index(name) for name in both]) for v in (before, after))
    change = after.mean[second] - before.mean[first]
    one, other = (_left_over(before, after, v).spread() for v in (before, after))
    # Of two Student distributions the one with the heavier tail stands for both.
    half = Spread(
        np.hypot(one.student[first], other.student[second]),
        np.hypot(one.normal[first], other.normal[second]),
        min(filter(None, (one.freedom, other.freedom)), default=None),
    ).half_width()
    numbers = [*before.mean, *after.mean, before.facts.grand, after.facts.grand]
    rounding = ROUNDING * float(np.nanmax(np.abs(numbers)))
    columns = {
        "before": before.mean[first],
        "after": after.mean[second],
        "change": change,
        "low": change - half,
        "high": change + half,
        "moved": np.abs(change) > half + rounding,
        "share_before": before.share.to_numpy()[first],
        "share_after": after.share.to_numpy()[second],
    }
    marks, now = _fingerprints(before), _fingerprints(after)
    same_rows = _are_same(before, after, [VALIDATION])
    rows_matter = same_rows is not None or before.uncertainty.varies_with_rows
    return Changes(
        pd.DataFrame(columns, index=pd.Index(both, name="owner")),
        semivalue=after.semivalue,
        nouns=after.words.nouns,
        places=max(decimals(before), decimals(after)),
        joined=_apart(after, before),
        left=_apart(before, after),
        same_rows=same_rows,
        scored_on=SCORED_ON[same_rows] if rows_matter else "",
        other_rows=tuple(n for n in both if _differs(marks, now, f"{ROWS_OF}{n}")),
        changed=tuple(word for name, word in CHANGED.items() if _differs(marks, now, name)),
        notes=_notes(before, after),
    )


def _left_over(before: Values, after: Values, v: Values) -> Uncertainty:
    """Uncertainty of the values of one of the two without what is the same in both."""
    return replace(
        v.uncertainty,
        validation=None if _are_same(before, after, [VALIDATION]) else v.uncertainty.validation,
        deal=None if _are_same(before, after, DEAL) else v.uncertainty.deal,
    )


def check_comparable(before: Values, after: Values) -> None:
    """Raise InputError if the numbers of the two do not mean the same, or nobody is in both."""
    then, now = before.facts.provenance, after.facts.provenance
    places = {"metric": ("settings", "metric"), "target": ("data", "target")}
    stated = {"semivalue": (before.semivalue, after.semivalue)} | {
        what: (then.get(section, {}).get(name), now.get(section, {}).get(name))
        for what, (section, name) in places.items()
    }
    for what, (one, other) in stated.items():
        if one is not None and other is not None and one != other:
            raise InputError(
                f"these results cannot be compared: the {what} was {one}, now {other}; compare "
                f"results of the same {what}"
            )
    both = set(before.owners) & set(after.owners)
    if not both:
        raise InputError("no owner is in both results; compare results of the same owners")
    first, second = (_order_of_joining(v, both) for v in (before, after))
    if first != second:
        raise InputError(
            "these results cannot be compared: owners in both joined in the order "
            f"{order_of_joining(first)}, now {order_of_joining(second)}; compare results of the "
            "same order"
        )


def _order_of_joining(v: Values, some: set[str]) -> list[tuple[str, ...]]:
    """Cohorts of some of the owners: who came or left changes nothing in the order of others."""
    every = () if v.facts.joining is None else v.facts.joining.cohorts
    cohorts = [tuple(sorted(some.intersection(cohort))) for cohort in every]
    return [cohort for cohort in cohorts if cohort]


def _fingerprints(v: Values) -> Mapping[str, str]:
    return v.facts.provenance.get("fingerprints", {})


def _are_same(before: Values, after: Values, names: list[str] | tuple[str, ...]) -> bool | None:
    """Whether all these fingerprints are the same; None if some are not known."""
    then, now = _fingerprints(before), _fingerprints(after)
    if any(name not in marks for name in names for marks in (then, now)):
        return None
    return all(then[name] == now[name] for name in names)


def _differs(then: Mapping[str, str], now: Mapping[str, str], name: str) -> bool:
    return name in then and name in now and then[name] != now[name]


def _apart(v: Values, other: Values) -> dict[str, float]:
    """Values of those who are not in the other result."""
    named = zip(v.owners, v.mean.tolist(), strict=True)
    return {name: value for name, value in named if name not in other.owners}


def _notes(*results: Values) -> tuple[Note, ...]:
    every = [[*select(v.notes, IN_NO_INTERVAL), *warnings(v.notes)] for v in results]
    return worst_first([one for notes in every for one in notes])


def _percent(share: float) -> str:
    return f"{plain_number(100 * share, 1)} %" if np.isfinite(share) else "–"
