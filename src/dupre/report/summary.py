"""A valuation in a few plain sentences: who is worth most, who harms, how certain that is.

Values are put in the words of an owner: by how much its data raise or lower a score. Scores between
0 and 1 that people read in per cent change by points. A value is an average over groups: what the
data add to groups of each size may be of another sign.

Sentences are plain text; names in them come from `wording.spell_name`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from dupre._types import Bools, Floats, Ints
from dupre.game.semivalues import group_sizes
from dupre.notes import GUESSED, TOO_NARROW, Code, Note, has, select, warnings, worst_first
from dupre.report.document import list_names, spell_name, without_directories
from dupre.result.as_text import decimals, failed_part, metric_words, trained_part
from dupre.result.uncertainty import (
    OF_ROWS,
    UNMOVED,
    exactness_condition,
    rows_in_words,
    width_for_these_rows,
)
from dupre.result.valuation import Valuation
from dupre.wording import join_list, number, percent

LEVEL = 0.95
"""Probability from which on something is called settled."""

PAID_ANYWAY = "Paid although not payable"
"""What stands for good on everything that shows payments by values that are not payable."""

MOST = "in groups of most sizes"
FEW = "though not in groups of most sizes"
OPEN = "but whether in groups of most sizes is not settled"


@dataclass(frozen=True)
class MetricName:
    """What a metric is called, and the unit of its changes.

    Attributes:
        name: within a sentence.
        unit: after a change; "" if it has none.
        factor: of a change in this unit, 1 or 100.
    """

    name: str
    unit: str = ""
    factor: float = 1.0

    def number(self, change: float, places: int) -> str:
        """A change in this unit; `places` are the decimals of a change without a unit."""
        # A point has two decimals less, and one more is left out: 19.8 points, not 19.80.
        return number(self.factor * change, places if self.factor == 1 else max(places - 3, 0))

    def level(self, score: float) -> str:
        """A score in this unit: `81.4 %`, or `0.8139` if it has none."""
        return f"{number(100 * score, 1)} %" if self.factor == 100 else f"{score:.4g}"

    def difference(self, change: float) -> str:
        """A difference of two of these: `3.8 points`, `0.038`."""
        return self.with_unit(number(100 * change, 1)) if self.factor == 100 else f"{change:.2g}"

    def with_unit(self, change: str) -> str:
        """A change from `number` with its unit: `2 points`, `1 point`."""
        return change + (self.unit.removesuffix("s") if change in ("1", "−1") else self.unit)


def surely(v: Valuation) -> str:
    """The word for a probability of at least `LEVEL`."""
    return "apparently" if reservation(v) else "surely"


def reservation(v: Valuation) -> str:
    """What no probability allows for, to follow it in a sentence; "" if there is nothing."""
    # The gravest alone is said: a sentence has room for one.
    if has(v.notes, Code.SEEN_ROWS):
        return ", apart from the effect of validation rows that models have seen"
    if has(v.notes, *GUESSED, Code.FIRST_GUESS, Code.NO_BETTER_THAN_CONSTANT):
        return ", apart from groups that were not trained and are only guessed"
    if has(v.notes, Code.SEEDS_NOT_MEASURED):
        return ", apart from the effect of training seeds, which was not measured"
    if has(v.notes, Code.UNKNOWN_ROWS, *TOO_NARROW):
        return ", apart from the choice of the validation rows"
    if has(v.notes, Code.ONE_SPLIT):
        return ", apart from how the rows were split for validation"
    return ""


def certainty_word(v: Valuation) -> str:
    """What that word means: a sentence without its end."""
    return f"{surely(v).capitalize()} means with a probability of at least 95 %{reservation(v)}"


def texts(v: Valuation, *codes: Code) -> list[str]:
    """What the notes of these codes say."""
    return [one.text for one in select(v.notes, codes)]


def metric_of(v: Valuation) -> MetricName:
    """What the utility of a valuation is called."""
    metric = metric_words(v)
    words, unit = metric["words"], metric["unit"]
    if words:
        return MetricName(words, f" {unit}".rstrip(), 100.0 if unit == "points" else 1.0)
    name = v.facts.provenance.get("settings", {}).get("metric", "")
    return MetricName(f"the score {name}" if name.isidentifier() else "the utility of the model")


def effect(
    v: Valuation, i: int, verbs: tuple[str, str, str] = ("raises", "lowers", "changes")
) -> str:
    """How the data of owner i change the score: `raises accuracy by 16.1 points (15 to 17)`.

    It is raised or lowered by a positive number if the interval is on one side of zero.
    """
    score, places, value = metric_of(v), decimals(v), v.mean[i]
    bounds = v.interval().iloc[i].to_numpy()
    if bounds[0] < 0 < bounds[1] or not score.number(value, places).strip("0."):
        sign, turn = 1, verbs[2]
    else:
        sign, turn = (1, verbs[0]) if value > 0 else (-1, verbs[1])
    text = f"{turn} {score.name} by {score.with_unit(score.number(sign * value, places))}"
    if not v.std.iloc[i]:
        return text
    low, high = (score.number(bound, places) for bound in np.sort(sign * bounds))
    return f"{text} (95 %: {low} to {high})"


def by_size(v: Valuation) -> tuple[Ints, Floats] | None:
    """How many others are in the groups, (s,), and value, low and high by owner, (n, s, 3).

    None if nothing is known of sizes.
    """
    n, table = len(v.owners), v.facts.contributions
    if not len(table) or len(table) % n:  # not the same sizes for every owner
        return None
    numbers = table[["value", "low", "high"]].to_numpy(dtype=np.float64)
    others = table["others"].to_numpy(dtype=np.int64)[: len(table) // n]
    return others, numbers.reshape(n, -1, 3)


def harm_by_size(v: Valuation) -> list[str]:
    """Of each owner: whether it lowers utilities in groups of most sizes, or "" if not known.

    A value below zero may be due to a single size.
    """
    found = by_size(v)
    if found is None or len(found[0]) < len(group_sizes(len(v.owners))):
        return [""] * len(v.owners)
    _, numbers = found
    surely = np.mean(numbers[:, :, 2] < 0, axis=1) > 0.5
    possibly = np.mean(numbers[:, :, 1] < 0, axis=1) > 0.5
    return [
        MOST if yes else OPEN if may else FEW for yes, may in zip(surely, possibly, strict=True)
    ]


def value_with_interval(v: Valuation, i: int) -> str:
    """What an owner's data do, then its value: `they raise accuracy by 16 points (95 %: …)`."""
    places = decimals(v)
    value = number(v.mean[i], places)
    if v.facts.subsidy is None:
        verbs = ("they raise", "they lower", "they change")
        return f"{effect(v, i, verbs)} on average; {v.semivalue} {v.words.noun} {value}"
    if not v.std.iloc[i]:
        return value
    low, high = v.interval().iloc[i]
    return f"{value} (95 %: {number(low, places)} to {number(high, places)})"


def grave_notes(v: Valuation) -> tuple[Note, ...]:
    """What the verdict rests on, and all that warns of something; the gravest first."""
    return worst_first([*v.verdict.reasons, *warnings(v.notes)])


def meaning(v: Valuation) -> list[str]:
    """What utility means here, and its floor."""
    words = v.facts.provenance.get("utility", {}).get("meaning", "")
    found = [f"Utility is {without_directories(words)}."] if words else []
    return found + texts(v, Code.FLOOR)


def last_day(v: Valuation) -> str:
    """The day of the last training, as 2026-05-31; "" if it is not known."""
    return v.finished[:10]


def best_owner(v: Valuation) -> str:
    """Who is worth most, in few words; "" if all are below zero, where nobody is worth much."""
    best = v.rank_range()["best"].to_numpy()
    first = [i for i in v.order if best[i] == 1]
    if _all_below_zero(v):
        return ""
    if len(first) == 1:
        return f"The data of {spell_name(v.owners[first[0]])} {v.words.most}."
    if not v.std.any():
        return f"{len(first):,} owners share the first place."
    return f"{v.words.whose[:1].upper()}{v.words.whose[1:]} is not settled."


def harmed_by(v: Valuation) -> str:
    """Whose numbers are below zero, in few words; "" if nobody's are."""
    below = [i for i in v.order[::-1] if v.interval()["high"].iloc[i] < 0]
    if not below:
        return ""
    who = spell_name(v.owners[below[0]]) if len(below) == 1 else f"{len(below):,} owners"
    who = "all owners" if _all_below_zero(v) else who
    return f"{surely(v).capitalize()} below zero: {who}."


def _all_below_zero(v: Valuation) -> bool:
    return bool((v.interval()["high"] < 0).all())


def answer(v: Valuation) -> list[str]:
    """The answer: who is worth most, who is harmful or worth nothing, how much was trained."""
    first = [] if _all_below_zero(v) else [_best_sentence(v)]
    return [*first, *_harm_sentences(v), _trained_sentence(v), _certainty_sentence(v)]


def _best_sentence(v: Valuation) -> str:
    best = v.rank_range()["best"].to_numpy()
    first = [i for i in v.order if best[i] == 1]
    top = first[0]
    value, names = value_with_interval(v, top), list_names(v.owners[i] for i in first)
    if len(first) == 1:
        return f"The data of {names} {v.words.most}: {value}."
    if not v.std.any() and len(first) == len(v.owners):
        return f"No difference between the owners was found, for each of them: {value}."
    if not v.std.any():
        return f"The data of {names} {v.words.most}, all equally: {value}."
    among = "any of the owners" if len(first) == len(v.owners) else names
    return (
        f"It is not settled {v.words.whose}: between {among} the order is open. The greatest "
        f"expected {v.words.noun} is that of {spell_name(v.owners[top])}: {value}."
    )


def _harm_sentences(v: Valuation) -> list[str]:
    """Who is surely below zero, who may be, who is at zero."""
    bounds = v.interval()
    low, high = bounds["low"].to_numpy(), bounds["high"].to_numpy()
    # Sums over thousands of coalitions are zero only up to rounding.
    rounding = 1e-12 * max(np.abs(v.mean).max(), abs(v.facts.grand), abs(v.facts.empty), 1e-300)
    nothing = (np.abs(low) <= rounding) & (np.abs(high) <= rounding)
    harmful = (high < 0) & ~nothing
    either = (low <= 0) & (high >= 0) & ~nothing
    found = []
    if harmful.any() and v.facts.subsidy:
        found.append(f"The payment of {_names(v, harmful)} is below zero.")
    elif harmful.any():
        where = np.array(harm_by_size(v))
        for sizes in (MOST, OPEN, FEW, ""):  # who harms most surely comes first
            what = "harm the model" if sizes == MOST else "make models worse on average"
            found += _below_zero(v, harmful & (where == sizes), what + f", {sizes}" * bool(sizes))
    if nothing.any():
        rows = f" on the {rows_in_words(v)}" if v.facts.validation_rows else ""
        found.append(v.words.nothing.format(who=_names(v, nothing), where=rows))
    if either.any():
        what = v.words.undecided.format(who=_names(v, either))
        found.append(f"Whether {what} is not settled: zero lies inside the interval.")
    if not found and not v.facts.subsidy:
        found.append(f"Everybody's data help: all {v.semivalue} values are {surely(v)} above zero.")
    return found


def _below_zero(v: Valuation, chosen: Bools, what: str) -> list[str]:
    if not chosen.any():
        return []
    which = "their values are"
    if chosen.sum() == 1:
        which = f"{value_with_interval(v, int(np.flatnonzero(chosen)[0]))},"
    return [f"The data of {_names(v, chosen)} {what}: {which} {surely(v)} below zero."]


def _names(v: Valuation, chosen: Bools) -> str:
    return list_names(v.owners[i] for i in v.order[::-1] if chosen[i])


def _trained_sentence(v: Valuation) -> str:
    done = f"{trained_part(v)} were trained{failed_part(v)}"
    if v.complete and v.facts.evaluated == 2 ** len(v.owners) - 1:
        return f"{done[0].upper()}{done[1:]}; nothing was predicted."
    if v.complete:
        return f"{done}, all that count in the values; nothing was predicted."
    if v.facts.sampled:
        return f"{done}; the values come from those drawn at random alone."
    if v.facts.diagnostics is None:
        return f"{done}; the values are a sum over a sample of them, all of it trained."
    return f"{done}; the utilities of the others were predicted."


def _certainty_sentence(v: Valuation) -> str:
    if not v.std.any():
        rows = " ".join(texts(v, *OF_ROWS))
        known = f"exact{exactness_condition(v)}" if v.complete else UNMOVED
        return f"The {v.words.nouns} are {known}. {rows}".strip()
    widest = v.uncertainty.widest
    settled, pairs = settled_pairs(v)
    order = f"the order of {settled:,} of the {pairs:,} pairs of owners is settled"
    if settled == pairs:
        order = "the order of all owners is settled"
    elif not settled:
        order = "the order of no two owners is settled"
    sure = f"With 95 % certainty each of the {v.words.nouns} is within ± {widest:.2g}, and {order}"
    return f"{sure}{reservation(v)}. {_population_sentence(v)}".strip()


def _population_sentence(v: Valuation) -> str:
    """For which validation rows that holds."""
    if not v.uncertainty.varies_with_rows:
        return " ".join(texts(v, *OF_ROWS))
    known = f"exact{exactness_condition(v)}"
    if not v.exact:
        known = f"{width_for_these_rows(v) or UNMOVED} for these rows"
    return (
        f"That holds for the population that the {rows_in_words(v)} come from; the "
        f"{v.words.nouns} are {known}."
    )


def settled_pairs(v: Valuation) -> tuple[int, int]:
    """How many pairs of owners are in an order that is settled, and how many there are."""
    probability = v.probability_greater().to_numpy()
    n = len(v.owners)
    return int(((probability >= LEVEL) & ~np.eye(n, dtype=bool)).sum()), n * (n - 1) // 2


def open_neighbours(v: Valuation) -> list[str]:
    """Owners next to each other in the ranking whose order is not settled, with the odds."""
    probability = v.probability_greater().to_numpy()
    return [
        f"{spell_name(v.owners[i])} and {spell_name(v.owners[j])}: "
        f"{odds(v, i, j, probability[i, j])}."
        for i, j in pairwise(v.order)
        if probability[i, j] < LEVEL
    ]


def odds(v: Valuation, i: int, j: int, probability: float) -> str:
    """Which of two owners is probably worth more, and how probable that is."""
    if probability == 0.5:  # a tie, or nothing is known either way
        return "equal, or as likely one way as the other"
    more, sure = (i, probability) if probability > 0.5 else (j, 1 - probability)
    return f"{percent(sure)} % that {spell_name(v.owners[more])} is {v.words.more}"


def agreement(valuations: Sequence[Valuation]) -> str:
    """Whether several semivalues agree about the order of the owners."""
    P = [v.probability_greater().to_numpy() for v in valuations]
    pairs = list(combinations(range(len(valuations[0].owners)), 2))
    names = join_list([v.semivalue for v in valuations])
    # A tie (sign 0) contradicts nobody.
    differ = [(i, j) for i, j in pairs if len({np.sign(p[i, j] - 0.5) for p in P} - {0}) > 1]
    opposed = [
        (i, j)
        for i, j in differ
        if any(p[i, j] >= LEVEL for p in P) and any(p[j, i] >= LEVEL for p in P)
    ]
    if not differ:
        return f"{names} agree about the order of all owners."
    if not opposed:
        return (
            f"{names} differ about the order of {len(differ):,} of {len(pairs):,} pairs of owners, "
            "but only where at least one of them does not settle it."
        )
    owners = valuations[0].owners
    couples = [f"{spell_name(owners[i])} and {spell_name(owners[j])}" for i, j in opposed]
    listed = join_list(couples, most=5)
    return f"{names} settle the order of some owners in opposite ways: {listed}."
