"""The results of a question in the order of time: values, who joined, who left, what was trained.

What changed from one result to the next is what `changes` says of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pandas as pd

from dupre.errors import InputError
from dupre.result.as_text import Entry, align, decimals, first_and_last
from dupre.result.changes import Changes, changes
from dupre.result.values import Values
from dupre.result.verdict import verdict
from dupre.wording import (
    LONGEST_LINE,
    count_things,
    cut,
    escape_controls,
    join_list,
    plain_number,
    printable,
)

MOST_RESULTS = 5
"""Results shown at most, the last ones: as many as fit beside each other on a screen."""

JOINED, LEFT, OTHER_ROWS = "joined", "left", "rows changed"
"""What can happen to an owner from one result to the next."""


@dataclass(frozen=True, eq=False)
class History:
    """Results of the same question in the order of time. `print` it.

    Attributes:
        valuations: from the first to the last.
        changes: of each since the one before; None for the first that is known.
        earlier: how many there are before these.
        not_read: results that are not in here because they are damaged, of another version or of
            another question, and why.
    """

    valuations: tuple[Values, ...]
    changes: tuple[Changes | None, ...]
    earlier: int = 0
    not_read: tuple[str, ...] = ()

    @property
    def numbers(self) -> range:
        """Of the results, from 1 for the very first there was."""
        return range(1 + self.earlier, 1 + self.earlier + len(self.valuations))

    @property
    def owners(self) -> tuple[str, ...]:
        """All owners there ever were: by the greatest value now, then who left, the last first."""
        found = [v.owners[i] for v in reversed(self.valuations) for i in v.order]
        return tuple(dict.fromkeys(found))

    def last(self, most: int = MOST_RESULTS) -> History:
        """The last results alone; those before are counted."""
        gone = max(0, len(self.valuations) - most)
        kept = self.valuations[gone:], self.changes[gone:]
        return replace(self, valuations=kept[0], changes=kept[1], earlier=self.earlier + gone)

    def to_frame(self) -> pd.DataFrame:
        """Everything per result and owner, in the order of time.

        The columns are `result` (its number), `finished` (when its last training was; "" if that
        is not known), `owner`, `value`, `low` and `high` (95 %), `share`, `event` since the result
        before ("joined", "left", "rows changed" or "") and `moved`, whether the value moved since
        by more than the intervals explain. Who left has one more row, without a value.
        """
        parts = []
        for number, v, change in self._numbered():
            found = v.to_frame()[["value", "low", "high", "share"]]
            found = found.reindex([*v.owners, *(change.left if change else ())])
            found = found.rename_axis("owner").reset_index()
            events = _events(change)
            found["event"] = [events.get(name, "") for name in found["owner"]]
            found["moved"] = found["owner"].isin(change.moved if change else ())
            found.insert(0, "finished", v.finished)
            found.insert(0, "result", number)
            parts.append(found)
        return pd.concat(parts, ignore_index=True)

    def results(self) -> pd.DataFrame:
        """Everything per result, by its number.

        The columns are `finished`, `trained` (coalitions), `more` (since the result before; 0 for
        the first), `sum` of the values, `verdict`, and tuples of names: `joined`, `left`,
        `rows_changed` and `moved`.
        """
        rows, trained = [], None
        for _, v, change in self._numbered():
            now = v.facts.evaluated - len(v.facts.failures)
            rows.append({
                "finished": v.finished,
                "trained": now,
                "more": 0 if trained is None else now - trained,
                "sum": float(v.mean.sum()),
                "verdict": verdict(v).kind,
                "joined": tuple(change.joined) if change else (),
                "left": tuple(change.left) if change else (),
                "rows_changed": change.other_rows if change else (),
                "moved": change.moved if change else (),
            })  # fmt: skip
            trained = now
        return pd.DataFrame(rows, index=pd.Index(self.numbers, name="result"))

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON has it; a number that is not known is null."""
        frame = self.to_frame().astype(object)
        return {
            "semivalue": self.valuations[-1].semivalue,
            "earlier": self.earlier,
            "results": self.results().reset_index().to_dict("records"),
            "owners": frame.where(frame.notna(), None).to_dict("records"),
            "not_read": list(self.not_read),
        }

    def __str__(self) -> str:
        shown = self.last()
        lines = [["owner", *history_headings(shown)]]
        for owner, entries in history_lines(shown, plain_number):
            lines.append([printable(owner), *(entry.text for entry in entries)])
        text = [
            title_of(shown),
            "",
            *first_and_last(align(lines)),
            "",
            *result_sentences(shown, plain_number, printable),
        ]
        text += [f"Not read: {one}." for one in self.not_read]
        return "\n".join(cut(escape_controls(line), LONGEST_LINE) for line in text)

    __repr__ = __str__

    def _numbered(self) -> Iterator[tuple[int, Values, Changes | None]]:
        return zip(self.numbers, self.valuations, self.changes, strict=True)


def history(valuations: Sequence[Values]) -> History:
    """The history of results of the same question, given in the order of time.

    Raises:
        InputError: there is none; or the semivalue, the metric or the target is another in the next
            one, or nobody is in both.
    """
    if not valuations:
        raise InputError("a history needs at least one valuation, got none")
    later = (changes(before, after) for before, after in pairwise(valuations))
    return History(tuple(valuations), (None, *later))


def title_of(shown: History) -> str:
    """What is shown of how many results."""
    last, some = shown.valuations[-1], ""
    if shown.earlier:
        some = f", the last {len(shown.valuations)} of them"
    total = count_things(shown.numbers[-1], "result")
    return f"{printable(last.semivalue)} {last.words.nouns} of {total}{some}"


def history_headings(shown: History) -> list[str]:
    """One for each result."""
    return [f"result {number}" for number in shown.numbers]


def history_lines(
    shown: History, form: Callable[[float, int], str]
) -> list[tuple[str, list[Entry]]]:
    """Every owner with a cell for each result; `form` formats a number."""
    places, frame = max(map(decimals, shown.valuations)), shown.to_frame()
    known = {(row["owner"], row["result"]): row for row in frame.to_dict("records")}
    return [
        (name, [_cell(known.get((name, number)), places, form) for number in shown.numbers])
        for name in shown.owners
    ]


def _cell(row: Any, places: int, form: Callable[[float, int], str]) -> Entry:
    """A value with half the width of its interval, and what happened to its owner before it."""
    if row is None:
        return Entry("–", None)
    if row["event"] == LEFT:
        return Entry(LEFT, None)
    half = (row["high"] - row["low"]) / 2
    text = form(row["value"], places) + (f" ± {form(half, places)}" if half else "")
    return Entry(f"{row['event']} {text}".lstrip(), row["value"])


def result_sentences(
    shown: History, form: Callable[[float, int], str], spell: Callable[[str], str]
) -> list[str]:
    """A line for each result: when, how much was trained, the sum, the verdict, what changed.

    `form` formats a number, `spell` a name.
    """
    places, found = max(map(decimals, shown.valuations)), []
    for number, row in shown.results().iterrows():
        day = [row["finished"][:10]] if row["finished"] else []
        more = f" ({row['more']:+,})" if row["more"] else ""
        facts = [
            *day,
            f"{count_things(row['trained'], 'coalition')} trained{more}",
            f"sum {form(row['sum'], places)}",
            row["verdict"],
        ]
        words = {
            "Joined": row["joined"],
            "Left": row["left"],
            "Other rows": row["rows_changed"],
            "Moved by more than the intervals explain": row["moved"],
        }
        told = [f" {word}: {join_list(map(spell, who))}." for word, who in words.items() if who]
        found.append(f"Result {number}: {', '.join(facts)}.{''.join(told)}")
    return found


def _events(change: Changes | None) -> dict[str, str]:
    """What happened to owners since the result before, by name."""
    if change is None:
        return {}
    return {
        **dict.fromkeys(change.joined, JOINED),
        **dict.fromkeys(change.left, LEFT),
        **dict.fromkeys(change.other_rows, OTHER_ROWS),
    }
