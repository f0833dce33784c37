"""A statement for each owner: what its data are worth, how certain that is, what it means.

Sentences are plain text; names in them come from `wording.spell_name`. The unit of every value is
that of the utility, never money; what an amount paid by the values gives an owner is a fact beside.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from dupre.errors import InputError
from dupre.files import replace_text
from dupre.game.coalitions import find_owner
from dupre.notes import Code, has, warnings
from dupre.report.document import Heading, full_name, list_names, render, spell_name
from dupre.report.relations import Relation, relations
from dupre.report.summary import (
    LEVEL,
    by_size,
    effect,
    harm_by_size,
    meaning,
    metric_of,
    odds,
    reservation,
    surely,
    texts,
)
from dupre.result.as_text import decimals
from dupre.result.payments import Payments, explain_outside
from dupre.result.uncertainty import OF_ROWS
from dupre.result.valuation import Valuation
from dupre.wording import join_list, number, printable

FEW_ROWS = 30
"""Rows below which a statement says that they are few."""

_TOLD = (Code.FIRST_GUESS, Code.PREDICTOR_FAILED, Code.FAILED_TRAININGS)
"""Codes of notes that a statement puts in words of its own, about its owner."""

MOST_COMPARED = 5
"""Other owners named in each comparison."""

HARDLY = 0.01
"""Part of the gain of all data, or of the greatest value, up to which an effect is hardly one."""

TITLE = "What your data are worth"

LONGEST_STEM = 60
"""Characters of an owner's name in the name of a file."""

SURELY = (
    "{} means with a probability of at least 95 %{}. An interval says how well the value of the "
    "owner's present rows is known{}, not what other rows of the same owner would be worth{}."
)

SIZES = "What these data add to groups of so many other owners, on average (95 % intervals):"

AVERAGES = {
    "Shapley": "The average is over groups of every size, each size counting alike.",
    "Banzhaf": "The average is over all possible groups, each counting alike.",
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
        caveats: what to keep in mind.
    """

    owner: int
    name: str
    effect: str
    facts: list[tuple[str, str]]
    sizes: list[tuple[str, str]]
    paragraphs: list[str]
    caveats: list[str]


def statements(
    v: Valuation,
    relations: list[Relation],
    payments: Payments | InputError | None = None,
    *,
    to_owner_alone: bool = False,
) -> list[Statement]:
    """One for each owner, the greatest value first; `to_owner_alone`: each names no other owner."""
    writer = (_SingleOwnerWriter if to_owner_alone else _StatementWriter)(v, relations, payments)
    return [writer.write(int(i)) for i in v.order]


def shared_words(v: Valuation) -> dict[str, str]:
    """What all statements have in common: what they are about, what "surely" means."""
    others = ", if models are scored on other validation rows of the same population too"
    known = others if v.uncertainty.varies_with_rows else ""
    held_out = ", nor what the value is if other rows are held out"
    split = held_out if has(v.notes, Code.ONE_SPLIT) else ""
    sure = SURELY.format(surely(v).capitalize(), reservation(v), known, split)
    about = f"Statement on the {v.semivalue} {v.words.nouns} of {len(v.owners):,} owners."
    return {"surely": sure, "context": " ".join([about, *meaning(v), sure]), "sizes": SIZES}


def write_statements(
    v: Valuation,
    directory: Path,
    *,
    only: Collection[str] = (),
    heading: Heading = Heading(),  # noqa: B008 (it is frozen)
    paid: Payments | InputError | None = None,
) -> list[Path]:
    """Write the statements of all owners, or of `only` some; return where they are.

    Each is a file of its own that names no other owner. `heading` and `paid` are those of the page.
    """
    only = [find_owner(name, v.owners) for name in only]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise InputError(
            f"the directory {str(directory)!r} cannot be made ({cause.strerror}); choose another"
        ) from cause
    names, written = file_names(v.owners), []
    shown = {"heading": heading, "title": heading.title or TITLE, "shared": shared_words(v)}
    for statement in statements(v, relations(v), paid, to_owner_alone=True):
        if not only or v.owners[statement.owner] in only:
            path = directory / names[statement.owner]
            replace_text(path, render("statement.html", shown | {"statement": statement}))
            written.append(path)
    return written


def file_names(owners: Collection[str]) -> list[str]:
    """A name for the file of each owner that every system allows, all different."""
    taken: set[str] = set()
    names = []
    for full in owners:
        stem = re.sub(r"[^\w.-]+", "-", full)[:LONGEST_STEM].strip(".-") or "owner"
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

    def write(self, i: int) -> Statement:
        return Statement(
            owner=i,
            name=full_name(self.v.owners[i]),
            effect=self._effect(i),
            facts=self._facts(i),
            sizes=self._sizes(i),
            paragraphs=[
                self._meaning(i),
                self._share(i),
                self._comparison(i),
                self._trained_alone(i),
                self._data(i),
            ],
            caveats=self._caveats(i),
        )

    def _facts(self, i: int) -> list[tuple[str, str]]:
        v, row, n = self.v, self.frame.iloc[i], len(self.v.owners)
        best, worst = int(row["best"]), int(row["worst"])
        facts = [
            ("Rows", f"{row['rows']:,.0f}"),
            (f"{v.semivalue} {v.words.noun}", self.number(row["value"])),
        ]
        if row["std"]:
            interval = f"{self.number(row['low'])} to {self.number(row['high'])}"
            facts.append(("95 % interval", interval))
        if v.uncertainty.varies_with_rows:
            low, high = map(self.number, self.alone.iloc[i])
            certain = "exact" if v.exact else low
            bounds = certain if low == high else f"{low} to {high}"
            facts.append(("For these validation rows alone", bounds))
        if np.isfinite(row["share"]):
            facts.append(("Share", f"{number(100 * row['share'], 1)} %"))
        rank = f"{best} of {n}" if best == worst else f"{best} to {worst} of {n}"
        return [*facts, ("Rank (95 %)", rank), *self._payment(i)]

    def _payment(self, i: int) -> list[tuple[str, str]]:
        if (all_paid := self.payments) is None:
            return []
        row = all_paid.frame.loc[[self.v.owners[i]]].iloc[0]
        form = partial(number, places=all_paid.places)
        words = f"{form(row['payment'])} of {form(all_paid.amount)} {all_paid.currency}".strip()
        low, high = form(row["low"]), form(row["high"])
        return [("Payment", words if low == high else f"{words} (95 %: {low} to {high})")]

    def _sizes(self, i: int) -> list[tuple[str, str]]:
        if self.sizes is None:
            return []
        score, found = metric_of(self.v), []
        for others, numbers in zip(self.sizes[0], self.sizes[1][i], strict=True):
            value, low, high = (score.number(part, self.places) for part in numbers)
            change = f"{value} ({low} to {high}){score.unit}"
            whom = f"{others} other{'s' if others > 1 else ''}" if others else "nobody"
            found.append((f"to {whom}", score.with_unit(value) if low == high else change))
        return found

    def _effect(self, i: int) -> str:
        v, row = self.v, self.frame.iloc[i]
        who, value = spell_name(v.owners[i]), float(row["value"])
        if v.facts.subsidy:
            low, high = self.number(row["low"]), self.number(row["high"])
            bounds = f" We are 95 % sure that it is between {low} and {high}{reservation(v)}."
            paid = f"{who} is to be paid {self.number(value)} units of utility."
            return paid + bounds if row["std"] else paid
        alone = v.semivalue == "leave-one-out"
        added = f"the data of {who} to {'those of all' if alone else 'a group of'} other owners"
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
                "A negative value means that models trained with these data were worse than those "
                f"without, on average{where}."
            )
        elif row["low"] <= 0 and row["std"]:
            sentences.append("It is not settled whether these data help or harm.")
        return " ".join(sentences)

    def _share(self, i: int) -> str:
        facts, share = self.v.facts, self.frame["share"].iloc[i]
        if not share > 0:  # a share below zero, or of nothing, means nothing
            return ""
        about = "are predicted to reach" if facts.grand_predicted else "reach"
        return (
            f"All owners together {about} a utility of {facts.grand:.4g}, no data "
            f"{facts.empty:.4g}. Of the difference of {facts.grand - facts.empty:.4g} that is "
            f"{number(100 * share, 1)} %."
        )

    def _comparison(self, i: int) -> str:
        """Who is surely above and below, and with whom the order is not settled."""
        v, P = self.v, self.probability
        others = [int(j) for j in v.order if j != i]
        above = [j for j in others if P[j, i] >= LEVEL][::-1]  # the nearest first
        below = [j for j in others if P[i, j] >= LEVEL]
        apart = [j for j in others if P[i, j] < LEVEL and P[j, i] < LEVEL]
        apart.sort(key=lambda j: abs(P[i, j] - 0.5))  # the most open first: few are named
        sentences = []
        for group, what in ((above, v.words.more), (below, v.words.less)):
            if len(group) == len(others) and len(others) > 1:
                sentences.append(f"All other owners are {surely(v)} {what}.")
            elif group:
                verb = "are" if len(group) > 1 else "is"
                names = list_names((v.owners[j] for j in group), most=MOST_COMPARED)
                sentences.append(f"{names} {verb} {surely(v)} {what}.")
        if apart:
            texts = [f"{spell_name(v.owners[j])} ({odds(v, i, j, P[i, j])})" for j in apart]
            sentences.append(
                f"The order is not settled with {join_list(texts, most=MOST_COMPARED)}."
            )
        return " ".join(sentences)

    def _trained_alone(self, i: int) -> str:
        """What was trained on this owner's data alone, and on all but them."""
        v, who = self.v, self.v.owners[i]
        alone, rest = self.trained.get(frozenset([who])), frozenset(v.owners) - {who}
        sentences = []
        if alone is not None:
            at_floor = v.facts.floor is not None and alone <= v.facts.floor
            reached = f"scored {alone:.4g} or less" if at_floor else f"reached {alone:.4g}"
            sentences.append(
                f"A model trained on these data alone {reached}; without any data it is "
                f"{v.facts.empty:.4g}."
            )
        # Without one of two owners the other is left: that is in its own statement.
        without = self.trained.get(rest) if len(v.owners) > 2 else None
        if without is not None and not v.facts.grand_predicted:
            turn = "lost" if without <= v.facts.grand else "gained"
            off = abs(v.facts.grand - without)
            sentences.append(
                f"All owners together reached {v.facts.grand:.4g}, without these data "
                f"{without:.4g}: {off:.2g} {turn} by leaving them out."
            )
            if v.semivalue != "leave-one-out":
                sentences.append("That is not the value: it is about the largest group only.")
        return " ".join(sentences)

    def _data(self, i: int) -> str:
        found = [relation for relation in self.relations if i in relation.owners]
        texts = [relation.text for relation in found[:MOST_COMPARED]]
        if len(found) > len(texts):
            texts.append(f"{len(found) - len(texts):,} more such relations are not listed.")
        if any(len(relation.owners) > 1 for relation in found):
            texts.append(
                "Data like those of others add little where the others take part, so their "
                "owners share the value."
            )
        return " ".join(texts)

    def _caveats(self, i: int) -> list[str]:
        v, caveats = self.v, []
        facts = v.facts
        if facts.diagnostics is not None and facts.counting and not facts.sampled:
            left = max(facts.counting - (facts.evaluated - len(facts.failures)), 0)
            caveats += [
                f"Of the {facts.counting:,} coalitions behind the values, about {left:,} were not "
                "trained but predicted. The interval allows for that."
            ] * (left > 0)
        if facts.sampled:
            caveats.append(
                "Predictions were of no use, so the values come from randomly drawn groups alone."
            )
        if not v.uncertainty.varies_with_rows:
            caveats += texts(v, *OF_ROWS)
        if has(v.notes, Code.FIRST_GUESS):
            caveats.append("Important coalitions are not trained yet: this value is a first guess.")
        if 0 < (rows := int(v.rows[i])) < FEW_ROWS:
            caveats.append(
                f"{rows} row{'s are' if rows > 1 else ' is'} few: other rows of the same kind "
                "might have a very different value."
            )
        if failed := sum(v.owners[i] in members for members in facts.failures):
            caveats.append(
                f"{failed} training{'s' if failed > 1 else ''} with these data failed; "
                f"{'their utilities were' if failed > 1 else 'its utility was'} predicted."
            )
        if self.payments is not None and self.payments.anyway:
            caveats.append("Paid although the values are not payable.")
        if self.payments is not None and v.owners[i] in self.payments.outside:
            caveats.append(f"The payment is outside its own 95 % interval. {explain_outside(v)}")
        return [*caveats, *self._caveats_of_all(i)]

    def _caveats_of_all(self, _: int) -> list[str]:
        """Reasons not to trust the values; they may name owners."""
        return [one.text for one in warnings(self.v.notes) if one.code not in _TOLD]


class _SingleOwnerWriter(_StatementWriter):
    """Writes statements that name no other owner."""

    def _comparison(self, i: int) -> str:
        others = np.arange(len(self.v.owners)) != i
        above = int((self.probability[others, i] >= LEVEL).sum())
        below = int((self.probability[i, others] >= LEVEL).sum())
        sure, words = surely(self.v), self.v.words
        return (
            f"Of the {others.sum():,} other owners {above:,} are {sure} {words.more} and "
            f"{below:,} {sure} {words.less}; with {others.sum() - above - below:,} the "
            "order is not settled."
        )

    def _data(self, i: int) -> str:
        found = [one for one in self.relations if i in one.owners]
        texts = [one.text for one in found if one.owners == (i,)]
        if len(texts) < len(found):
            texts.append(
                "Other owners hold data that are the same or alike. Data that others hold too add "
                "little where the others take part, so their owners share the value."
            )
        return " ".join(texts)

    def _caveats_of_all(self, i: int) -> list[str]:
        others = [name for name in self.v.owners if name != self.v.owners[i]]
        forms = {form for name in others for form in (name, printable(name))}
        names = "|".join(map(re.escape, sorted(forms, key=len, reverse=True))) or "(?!)"
        # Names where notes put them; elsewhere a name may be a word or a number of the sentence.
        member = re.compile(rf"(?:(?<={{)|(?<=, )|(?<=that of ))(?:{names})(?=, |}}| by )")
        named = re.compile(rf"(?<!\w)(?<!\d[.,])(?:{names})(?!\w|[.,]\d)")
        every = [member.sub("another owner", text) for text in super()._caveats_of_all(i)]
        # To be safe, a note that may name another owner is left out, even if it is a mere word.
        kept = [caveat for caveat in every if not named.search(caveat)]
        if hidden := len(every) - len(kept):
            kept.append(
                f"{hidden} more to keep in mind: not stated here, as other owners are named."
            )
        return kept


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
