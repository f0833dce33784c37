"""A statement for each owner: what its data are worth, how certain that is, what it means.

Each is a file of its own, printed on one sheet, and names no other owner: its sentences are made of
numbers and of the short forms of notes, which hold no names of owners. The unit of every value is
that of the utility, never money; what an amount paid by the values gives an owner is a fact beside.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dupre.errors import InputError
from dupre.files import replace_text
from dupre.game.coalitions import find_owner
from dupre.game.precedence import Precedence
from dupre.notes import Code, Note, select
from dupre.report.document import Heading, full_name, render
from dupre.report.relations import Relation, relations
from dupre.report.summary import (
    LEVEL,
    PAID_ANYWAY,
    by_size,
    certainty_word,
    effect,
    grave_notes,
    harm_by_size,
    last_day,
    meaning,
    metric_of,
    reservation,
    surely,
)
from dupre.result.as_text import MOST_NOTES, decimals
from dupre.result.payments import Payments
from dupre.result.valuation import Valuation
from dupre.wording import ROWS_HELD_OUT, ROWS_OF, count_things, cut, join_list, number

FEW_ROWS = 30
"""Rows below which a statement says that they are few."""

HARDLY = 0.01
"""Part of the gain of all data, or of the greatest value, up to which an effect is hardly one."""

TITLE = "What your data are worth"

MOST_NUMBERS = 60
"""Numbers of validating rows on a statement, which take three lines; result.json has more."""

LONGEST_STEM = 60
"""Characters of an owner's name in the name of a file."""

SMALL_PRINT = (
    "{}; value and interval are about your present rows, not about other rows of the same kind."
)

SIZES = "What your data add to groups of so many other owners, on average{} (95 % intervals):"

MOST_IN_COLUMN = 7
"""Caveats up to which they are printed in one column."""

MOST_LINES = 38
"""Lines of a statement up to which it is printed in 10 points on one sheet, also of Letter; a
longer one is printed in smaller letters.

Where lines break is estimated: of statements of 42 such lines some take a second sheet."""

LOGO = 6
"""Lines that a logo takes."""

OF_DIGEST = (
    "It stays the same as long as no row is changed, added or left out; dupre verify computes it "
    "again from the table."
)
"""After the digest of an owner's rows; docs/cli.md says how."""

NOT_TOLD = "There is more to know: ask whoever sent this."
"""In place of a note that has no short form of its own: its text might name other owners."""

AVERAGES = {
    "Shapley": "The average is over groups of every size, each size counting alike.",
    "Banzhaf": "The average is over all possible groups, each counting alike.",
    Precedence.name: "Whoever joined before you is in every group; the average is over those who "
    "joined with you, groups of every size counting alike.",
}


@dataclass(frozen=True)
class Statement:
    """To one owner.

    Attributes:
        owner: position among the owners.
        name: the owner's, in full.
        effect: what its data do, in a sentence.
        facts: the numbers, each with its name.
        sizes: what the data add to groups of each size.
        paragraphs: what they mean; some may be empty.
        checks: what the owner can check, each with its name.
        caveats: what to keep in mind of all values, the gravest first, then of this one.
    """

    owner: int
    name: str
    effect: str
    facts: list[tuple[str, str]]
    sizes: list[tuple[str, str]]
    paragraphs: list[str]
    checks: list[tuple[str, str]]
    caveats: list[str]


def statements(
    v: Valuation, relations: list[Relation], payments: Payments | InputError | None = None
) -> list[Statement]:
    """One for each owner, the greatest value first."""
    writer = _StatementWriter(v, relations, payments)
    return [writer.write(int(i)) for i in v.order]


def shared_words(v: Valuation, paid: Payments | InputError | None = None) -> dict[str, Any]:
    """What all statements have in common: the verdict, what they are about, the small print."""
    unit = metric_of(v).unit.strip()
    verdict, against = [v.verdict.kind.capitalize()], [*map(_tell_owner, _against(v))]
    if isinstance(paid, Payments) and paid.anyway:
        verdict.append(PAID_ANYWAY)
    about = f"{v.semivalue} {v.words.nouns} of {len(v.owners):,} owners"
    day = last_day(v)
    return {
        "verdict": verdict,
        "kind": v.verdict.kind.replace(" ", "-"),
        "against": against,
        "about": " ".join([f"{about}, {day}." if day else f"{about}.", *meaning(v)]),
        "sizes": SIZES.format(f", in {unit}" if unit else ""),
        "small": SMALL_PRINT.format(certainty_word(v)),
    }


def write_statements(
    v: Valuation,
    directory: Path,
    *,
    only: Collection[str] = (),
    heading: Heading = Heading(),  # noqa: B008 (it is frozen)
    paid: Payments | InputError | None = None,
) -> list[Path]:
    """Write the statements of all owners, or of `only` some; return where they are.

    `heading` and `paid` are those of the page.
    """
    only = [find_owner(name, v.owners) for name in only]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise InputError(
            f"the directory {str(directory)!r} cannot be made ({cause.strerror}); choose another"
        ) from cause
    names, written = file_names(v.owners), []
    shared, least = shared_words(v, paid), LOGO if heading.logo else 0
    shown = {"heading": heading, "title": heading.title or TITLE, "shared": shared}
    for statement in statements(v, relations(v), paid):
        if not only or v.owners[statement.owner] in only:
            path = directory / names[statement.owner]
            dense = least + _count_lines(statement, shared) > MOST_LINES
            more = {"statement": statement, "dense": dense}
            replace_text(path, render("statement.html", shown | more))
            written.append(path)
    return written


def _count_lines(statement: Statement, shared: Mapping[str, Any]) -> int:
    """About how many lines a statement takes in 10 points, headings apart."""
    texts = [statement.effect, *statement.paragraphs, *shared["against"]]
    texts += [shared[name] for name in ("about", "sizes", "small")]
    wide = [textwrap.wrap(statement.name, 55), *(textwrap.wrap(text, 90) for text in texts)]
    wide += [textwrap.wrap(text, 70) for _, text in statement.checks]
    several = len(statement.caveats) > MOST_IN_COLUMN  # then they are in two columns
    narrow = [textwrap.wrap(text, 42 if several else 90) for text in statement.caveats]
    rows = -(-len(statement.facts) // 4) - (-len(statement.sizes) // 5)
    return sum(map(len, wide)) + sum(map(len, narrow)) // (1 + several) + 2 * rows


def file_names(owners: Collection[str]) -> list[str]:
    """A name for the file of each owner that every system allows, all different."""
    taken: set[str] = set()
    names = []
    for full in owners:
        # Without its middle: long names often differ at the end, as those of departments.
        stem = re.sub(r"[^\w.-]+", "-", cut(full, LONGEST_STEM)).strip(".-") or "owner"
        name, count = stem, 1
        while name.casefold() in taken:  # some systems do not tell upper from lower case
            count += 1
            name = f"{stem}-{count}"
        taken.add(name.casefold())
        names.append(f"statement-{name}.html")
    return names


class _StatementWriter:
    """Writes statements; what all of them need is computed once."""

    def __init__(
        self, v: Valuation, relations: list[Relation], payments: Payments | InputError | None
    ):
        self.v, self.relations = v, relations
        self.payments = payments if isinstance(payments, Payments) else None
        self.frame = v.to_frame()
        self.alone = v.interval(for_these_rows=True)
        self.places = decimals(v)
        self.number = partial(number, places=self.places)
        self.probability = v.probability_greater().to_numpy()
        self.trained = _trained_utilities(v)
        self.harm = harm_by_size(v)
        self.sizes = by_size(v)
        self.grave = [one for one in grave_notes(v) if one not in _against(v)]

    def write(self, i: int) -> Statement:
        return Statement(
            owner=i,
            name=full_name(self.v.owners[i]),
            effect=self._effect(i),
            facts=self._facts(i),
            sizes=self._sizes(i),
            paragraphs=[
                self._rule(i),
                self._meaning(i),
                self._share(i),
                self._comparison(i),
                self._trained_alone(i),
                self._data(i),
            ],
            checks=self._checks(i),
            caveats=[*dict.fromkeys(map(_tell_owner, self.grave)), *self._caveats(i)],
        )

    def _facts(self, i: int) -> list[tuple[str, str]]:
        v, row, n = self.v, self.frame.iloc[i], len(self.v.owners)
        best, worst = int(row["best"]), int(row["worst"])
        facts = [
            *self._payment(i),
            (value := f"{v.semivalue} {v.words.noun}", self.number(row["value"])),
        ]
        of_rows = v.uncertainty.varies_with_rows
        if row["std"]:
            interval = f"{self.number(row['low'])} to {self.number(row['high'])}"
            name = f"{value}, 95 % for the population" if of_rows else "95 % interval"
            facts.append((name, interval))
        if of_rows:
            low, high = map(self.number, self.alone.iloc[i])
            certain = "exact" if v.exact else low
            bounds = certain if low == high else f"{low} to {high}"
            facts.append((f"{value}, 95 % for these rows", bounds))
        if np.isfinite(row["share"]):
            facts.append(("Share", f"{number(100 * row['share'], 1)} %"))
        rank = f"{best} of {n}" if best == worst else f"{best} to {worst} of {n}"
        return [*facts, ("Rank (95 %)", rank), ("Rows", f"{row['rows']:,.0f}")]

    def _payment(self, i: int) -> list[tuple[str, str]]:
        if (all_paid := self.payments) is None:
            return []
        row = all_paid.table().loc[[self.v.owners[i]]].iloc[0]
        form = partial(number, places=all_paid.places)
        facts = [("Payment", f"{form(row['payment'])} {all_paid.currency}".strip())]
        for name, (low, high) in all_paid.intervals.items():
            if row[low] < row[high]:  # neither exact, nor too wide to share by
                facts.append((f"Payment, {name}", f"{form(row[low])} to {form(row[high])}"))
        if all_paid.paid is not None:
            facts.append(("Already paid", form(row["already_paid"])))
            facts.append(("Difference", form(row["difference"])))
        return [*facts, ("Amount shared by all", form(all_paid.amount))]

    def _rule(self, i: int) -> str:
        """How values become payments, which is also why somebody is paid nothing."""
        if self.payments is None:
            return ""
        rule = f"{self.payments.rule.partition('. ')[0].rstrip('.')}."  # then come the intervals
        if self.payments.frame["payment"][self.v.owners[i]]:
            return rule
        value = self.number(self.frame["value"].iloc[i])
        return f"Nothing is paid, as the {self.v.words.noun} is {value}. {rule}"

    def _checks(self, i: int) -> list[tuple[str, str]]:
        """What this owner can compare with its own rows, as far as it is known."""
        facts, who, found = self.v.facts, self.v.owners[i], []
        if facts.validation_rows:
            found.append(("Rows of yours that validated", self._validated(i)))
        if mark := facts.provenance.get("fingerprints", {}).get(f"{ROWS_OF}{who}"):
            found.append(("Digest of your rows", f"{mark}. {OF_DIGEST}"))
        return found

    def _validated(self, i: int) -> str:
        facts, rows = self.v.facts, int(self.v.rows[i])
        if not facts.validating:
            text = f"the {facts.validation_rows:,} validation rows are a file of their own"
            for one in select(self.v.notes, [Code.SEEN_ROWS]):
                text += f"; {one.facts['seen']:,} of them are also among the rows to train on"
            return text
        own = round(facts.validating.get(self.v.owners[i], 0.0) * facts.validation_rows)
        if facts.folds > 1:  # equal rows validate as one
            return (
                f"all {own:,}, each once" if own == rows else f"{own:,} different ones, each once"
            )
        numbers = facts.provenance.get(ROWS_HELD_OUT, {}).get(self.v.owners[i], "")
        if not own or not numbers:
            return f"{own:,} of {rows:,}"
        every = numbers.split(", ")
        copies = " different ones and their copies," if len(every) > own else ""
        text = f"{own:,}{copies} of {rows:,}, numbered from 1 in the order of your rows: "
        text += ", ".join(every[:MOST_NUMBERS])
        if len(every) > MOST_NUMBERS:
            text += f", …; all are in result.json of the run, under “{ROWS_HELD_OUT}”: ask for them"
        return text

    def _sizes(self, i: int) -> list[tuple[str, str]]:
        if self.sizes is None:
            return []
        score, found = metric_of(self.v), []
        for others, numbers in zip(self.sizes[0], self.sizes[1][i], strict=True):
            value, low, high = (score.number(part, self.places) for part in numbers)
            whom = f"to {count_things(int(others), 'other')}" if others else "alone"
            found.append((whom, value if low == high else f"{value} ({low} to {high})"))
        return found

    def _effect(self, i: int) -> str:
        v, row = self.v, self.frame.iloc[i]
        value = float(row["value"])
        if v.facts.subsidy:
            low, high = self.number(row["low"]), self.number(row["high"])
            bounds = f" We are 95 % sure that it is between {low} and {high}{reservation(v)}."
            paid = f"You are to be paid {self.number(value)} units of utility."
            return paid + bounds if row["std"] else paid
        alone = v.semivalue == "leave-one-out"
        added = f"your data to {'those of all' if alone else 'a group of'} other owners"
        score, average = metric_of(v), "" if alone else " on average"
        near = abs(value) < 0.5 * 10.0**-self.places  # it would be printed as zero
        ends = row[["low", "high"]].to_numpy(dtype=np.float64)
        # Where owners outweigh each other, all data together may gain less than one of them.
        gain = max(abs(v.facts.grand - v.facts.empty), np.abs(v.mean).max())
        if near and np.abs(ends).max() <= HARDLY * gain:
            return f"Adding {added} hardly changes {score.name}{average}."
        if not near or ends[0] > 0 or ends[1] < 0:
            return f"Adding {added} {effect(v, i)}{average}."
        low, high = (score.number(end, self.places) for end in ends)
        return (
            f"It is not known whether adding {added} raises or lowers {score.name}{average} "
            f"(95 %: {low} to {high}{score.unit})."
        )

    def _meaning(self, i: int) -> str:
        v, row = self.v, self.frame.iloc[i]
        if v.facts.subsidy:
            return (
                "The payments share out what all owners reach together in such a way that no group "
                "of owners has much reason to leave and train without the others."
            )
        sentences = []
        if v.semivalue != "leave-one-out":
            rule = AVERAGES.get(v.semivalue, "Some groups count more than others in the average.")
            sentences.append(rule)
        if row["high"] < 0:
            where = f", {self.harm[i]}" if self.harm[i] else ""
            sentences.append(
                "A negative value means that models trained with your data were worse than those "
                f"without, on average{where}."
            )
        elif row["low"] <= 0 and row["std"]:
            sentences.append("It is not settled whether your data help or harm.")
        return " ".join(sentences)

    def _share(self, i: int) -> str:
        facts, share = self.v.facts, self.frame["share"].iloc[i]
        if not share > 0:  # a share below zero, or of nothing, means nothing
            return ""
        score = metric_of(self.v)
        about = "is predicted to be" if facts.grand_predicted else "is"
        return (
            f"{score.name[:1].upper()}{score.name[1:]} {about} {score.level(facts.grand)} with the "
            f"data of all owners and {score.level(facts.empty)} without any; the share is a part "
            "of that difference."
        )

    def _comparison(self, i: int) -> str:
        """How many are surely above and below."""
        others = np.arange(len(self.v.owners)) != i
        above = int((self.probability[others, i] >= LEVEL).sum())
        below = int((self.probability[i, others] >= LEVEL).sum())
        sure, words, left = surely(self.v), self.v.words, int(others.sum()) - above - below
        if not above and not below:
            return "The order is settled with none of the other owners."
        parts = [f"{above:,} {_are(above)} {sure} {words.more}"] * (above > 0)
        parts += [f"{below:,} {'' if above else f'{_are(below)} '}{sure} {words.less}"] * (
            below > 0
        )
        rest = f"; with {left:,} the order is not settled" if left else ""
        return f"Of the other owners {join_list(parts)}{rest}."

    def _trained_alone(self, i: int) -> str:
        """What was trained on this owner's data alone, and on all but them."""
        v, who = self.v, self.v.owners[i]
        alone, rest = self.trained.get(frozenset([who])), frozenset(v.owners) - {who}
        score, sentences = metric_of(v), []
        if alone is not None:
            at_floor = v.facts.floor is not None and alone <= v.facts.floor
            reached = f"{score.level(alone)}{' or less' if at_floor else ''}"
            sentences.append(f"A model trained on your data alone reached {reached}.")
        # Without one of two owners the other is left: that is in its own statement.
        without = self.trained.get(rest) if len(v.owners) > 2 else None
        if without is not None and not v.facts.grand_predicted:
            added = v.facts.grand - without
            where = "" if v.semivalue == "leave-one-out" else "to this one group, the largest, "
            sentences.append(
                f"All other owners together reached {score.level(without)} without your data and "
                f"{score.level(v.facts.grand)} with them: {where}your data add "
                f"{score.difference(added)}."
            )
        return " ".join(sentences)

    def _data(self, i: int) -> str:
        found = [one.owners for one in self.relations if i in one.owners]
        texts = ["Your data are unlike those of all others."] if (i,) in found else []
        if len(texts) < len(found):
            in_turn = self.v.facts.joining is not None
            shared = "" if in_turn else ", so their owners share the value"
            texts.append(
                "Other owners hold data that are the same or alike. Data that others hold too add "
                f"little where the others take part{shared}."
            )
        return " ".join(texts)

    def _caveats(self, i: int) -> list[str]:
        """What concerns this owner alone."""
        v, caveats, who = self.v, [], self.v.owners[i]
        facts = v.facts
        for one in select(v.notes, [Code.DECISIVE_TRAINING]):
            if (change := one.facts.get("changes", {}).get(who)) is not None:
                caveats.append(f"That training alone changes your value by {self.number(change)}.")
        if facts.diagnostics is not None and facts.counting and not facts.sampled:
            left = max(facts.counting - (facts.evaluated - len(facts.failures)), 0)
            caveats += [
                f"Of the {facts.counting:,} coalitions behind the values, {left:,} "
                f"{'was' if left == 1 else 'were'} not trained but predicted; the interval allows "
                "for that."
            ] * (left > 0)
        if 0 < (rows := int(v.rows[i])) < FEW_ROWS:
            caveats.append(
                f"{rows} row{'s are' if rows > 1 else ' is'} few: other rows of the same kind "
                "might have a very different value."
            )
        if failed := sum(who in members for members in facts.failures):
            caveats.append(
                f"{count_things(failed, 'training')} with your data failed; "
                f"{'their utilities were' if failed > 1 else 'its utility was'} predicted."
            )
        if self.payments is not None and who in self.payments.outside:
            caveats.append(
                "The payment is outside its own 95 % interval: it depends on the values of all "
                "owners, and some of them are uncertain."
            )
        return caveats


def _against(v: Valuation) -> tuple[Note, ...]:
    """Why values are not payable, the gravest reasons: what stands beside the verdict."""
    return v.verdict.reasons[:MOST_NOTES] if v.verdict.kind == "not payable" else ()


def _tell_owner(one: Note) -> str:
    """The short form of a note by its facts alone, without members: they might be other owners."""
    facts = {name: [] if name == "members" else fact for name, fact in one.facts.items()}
    return replace(one, text=NOT_TOLD, facts=facts).short


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _trained_utilities(v: Valuation) -> Mapping[frozenset[str], float]:
    """Utilities of the trained coalitions of one owner and of all but one."""
    if v.facts.evidence is None:
        return {}
    every = v.facts.evidence.coalitions
    wanted = every[every["size"].isin([1, len(v.owners) - 1]) & every["utility"].notna()]
    return {
        frozenset(members): float(utility)
        for members, utility in zip(wanted["members"], wanted["utility"], strict=True)
    }
