"""Everything a person must know of a result: one record, one list of codes, three severities.

A `Note` is made by whoever notices something. Its text is for people; whatever decides (what is
printed first, stop rules, words such as "surely", exit codes) asks for its code or its severity,
and for the numbers and names in its facts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import Formatter
from typing import Any, Self

from dupre.wording import join_list, percent, printable, quote

__all__ = ["Code", "Note", "Severity", "has", "note", "select", "warnings", "worst_first"]


class Severity(StrEnum):
    """How grave a note is, the gravest first."""

    STOP = "stop"
    """Nobody should be paid by these values before it is resolved."""

    BEWARE = "beware"
    """Values or intervals may be worse than they look."""

    INFO = "info"
    """Where the values come from and how certain they are, or advice."""


STOP, BEWARE, INFO = Severity

# One word for both: what a note of severity stop stops, its text says.
_PREFIX = {STOP: "Beware: ", BEWARE: "Beware: ", INFO: ""}
"""What a printed note begins with."""


class Code(StrEnum):
    """What a note is about; each code has one severity.

    Notes of a severity are printed in this order.
    """

    severity: Severity

    def __new__(cls, name: str, severity: Severity = INFO) -> Self:
        """A member that is its name."""
        # The severity belongs to the code, so that two makers of a note cannot differ in it.
        member = str.__new__(cls, name)
        member._value_ = name
        member.severity = severity
        return member

    # Values that nobody should be paid by: first what no further training repairs.
    UNFINISHED = "unfinished", STOP
    """A run is not finished; these are the values so far."""
    SEEN_ROWS = "seen_rows", STOP
    """Validation rows are also among the rows to train on."""
    ONE_CLASS = "one_class", STOP
    """All validation rows are of one class."""
    FEW_ROWS = "few_rows", STOP
    """There are too few validation rows."""
    OUTSIDE_BOUNDS = "outside_bounds", STOP
    """Utilities lie outside the bounds stated for them."""
    WORSE_THAN_NOTHING = "worse_than_nothing", STOP
    """All data together score worse than none."""
    NO_GAIN = "no_gain", STOP
    """All data together score the same as none."""
    NONE_ABOVE_FLOOR = "none_above_floor", STOP
    """No coalition scores above the floor."""
    FIRST_GUESS = "first_guess", STOP
    """Some of the most important coalitions are not evaluated."""
    GAIN_UNSURE = "gain_unsure", STOP
    """That all data together are worth more than none is not sure enough."""
    AMOUNT_UNDECIDED = "amount_undecided", STOP
    """By other possible values most of an amount would go to others."""

    # Values to pay by only with care.
    PART_UNDECIDED = "part_undecided", BEWARE
    """By other possible values much of an amount would go to others."""

    # Utilities that predictions rest on.
    EQUAL_UTILITIES = "equal_utilities", BEWARE
    """All utilities to predict from are equal."""
    TWO_UTILITIES = "two_utilities", BEWARE
    """The utilities to predict from are only two numbers."""
    FEW_UTILITIES = "few_utilities", BEWARE
    """The utilities to predict from are a few numbers, each of which came often."""
    NO_MIDDLE_SIZES = "no_middle_sizes", BEWARE
    """No group between single owners and nearly all of them is evaluated."""
    DECISIVE_TRAINING = "decisive_training", BEWARE
    """One training, far from others of its size, decides a value."""
    GRAND_BELOW_FLOOR = "grand_below_floor", BEWARE
    """All owners together score below the floor, which hides how bad that is."""
    FAILED_TRAININGS = "failed_trainings", BEWARE
    """Trainings failed; their utilities are predicted."""
    NOT_REPRODUCIBLE = "not_reproducible", BEWARE
    """The model scores differently on the same rows, and has no seed to set."""

    # The predictor.
    LEFT_OUT = "left_out"
    """How well the predictor does on evaluations that are left out in turn."""
    CHECK_COALITIONS = "check_coalitions"
    """How well it does on check coalitions."""
    PREDICTOR_FAILED = "predictor_failed", BEWARE
    """On check coalitions it is not clearly better than the mean of their size."""
    NO_BETTER_THAN_CONSTANT = "no_better_than_constant", BEWARE
    """On evaluations left out it is no better than a constant."""
    NOT_CORRECTED = "not_corrected", BEWARE
    """A correction was asked for, but too few random coalitions are evaluated."""
    CORRECTED = "corrected"
    """The error of the predictor was estimated and corrected."""
    ASKED_PREDICTOR = "asked_predictor"
    """What of the predictor the user asked for."""
    SIMILARITY = "similarity"
    """Which similarity of coalitions mattered, and the noise of a utility."""
    OUTLIERS = "outliers"
    """Evaluations that the predictor does not use."""

    # Which coalitions the values come from.
    EXACT = "exact"
    """Every coalition that counts was evaluated."""
    DUPLICATES = "duplicates"
    """Coalitions hold the same rows, and are evaluated once."""
    SAME_OWNERS = "same_owners", BEWARE
    """Owners hold the same rows, and are worth the same."""
    PRECEDENCE = "precedence"
    """Values depend on who joined first."""
    LATER_COPIES = "later_copies"
    """Owners hold the same rows and joined in turn: the later ones are worth what they add."""
    SAMPLED_COALITIONS = "sampled_coalitions"
    """Values are sums over a sample of the coalitions."""
    FLOOR = "floor"
    """The lowest utility that counts, and how many are lower."""
    SUBSIDY = "subsidy"
    """What keeps coalitions from leaving a least core."""
    SUBSIDY_SEARCHED = "subsidy_searched"
    """How many coalitions were searched for one that gains more."""
    SUBSIDY_CUT_SHORT = "subsidy_cut_short", BEWARE
    """The search was cut short: one gains more."""
    UNUSED_COALITIONS = "unused_coalitions", BEWARE
    """Stored coalitions are not used, because they lack repeats."""

    # Uncertainty, and what would reduce it.
    SEEDS_NOT_MEASURED = "seeds_not_measured"
    """The effect of training seeds is in no interval."""
    REPEATED_TRAININGS = "repeated_trainings"
    """What repeated trainings showed of the noise of trainings."""
    UNKNOWN_ROWS = "unknown_rows"
    """How much other validation rows would change the values is in no interval."""
    UNCHANGED_BY_ROWS = "unchanged_by_rows"
    """No resample of the validation rows changes the values."""
    POPULATION = "population"
    """Intervals are for the population that the validation rows come from."""
    ONE_SPLIT = "one_split"
    """Which rows validate and which train is in no interval."""
    DEAL = "deal"
    """How much another deal of the folds, or another split, would change the values."""
    VARIANCE = "variance"
    """Parts of the variance of the values."""
    MORE_ROWS = "more_rows"
    """Only more validation rows can narrow the intervals."""
    FORECAST = "forecast"
    """What more evaluations would bring."""
    COST = "cost"
    """How long more evaluations would take."""
    EFFICIENCY_GAP = "efficiency_gap"
    """The values do not add up to the gain of all owners."""
    STALE = "stale"
    """Stored evaluations are not used, because rows have changed."""
    SCORED_ELSEWHERE = "scored_elsewhere"
    """Stored evaluations are not used, because other rows validated then."""
    WARNINGS = "warnings"
    """A warning that trainings raised, or how many more kinds there are."""

    # Validation rows worth less than their number says.
    NOT_VALIDATING = "not_validating"
    """Rows of some owners train and do not validate, as those of a newcomer."""
    COPIED_ROWS = "copied_rows", BEWARE
    """Validation rows are copies of others and count once."""
    EQUAL_ROWS = "equal_rows", BEWARE
    """Validation rows are equal to others, and may be copies."""
    FEW_OF_A_CLASS = "few_of_a_class", BEWARE
    """There are too few validation rows of some class."""
    DOMINANT_OWNER = "dominant_owner", BEWARE
    """More than half of the validation rows are those of one owner."""
    FOLDS_WITHOUT_CLASS = "folds_without_class", BEWARE
    """Some folds lack a class, and count nothing."""
    DOMINANT_ROW = "dominant_row", BEWARE
    """One validation row outweighs the others."""
    HEAVY_TAIL = "heavy_tail", BEWARE
    """A few validation rows outweigh the others together."""
    MISSING_RESAMPLES = "missing_resamples", BEWARE
    """Some evaluations came without scores on resamples."""
    FEW_RESAMPLES = "few_resamples", BEWARE
    """Resamples are too few."""
    MIXED_RESAMPLES = "mixed_resamples", BEWARE
    """Trainings are scored on different numbers of resamples."""

    # What was accepted, or is not finished.
    ACCEPTED_MODEL = "accepted_model", BEWARE
    """A user accepted that the model of a store has changed."""
    ACCEPTED_ROWS = "accepted_rows", BEWARE
    """A user accepted that trainings of an earlier result are no longer valid."""

    # The table that the rows come from.
    LEAK = "leak", BEWARE
    """A column nearly determines the target."""
    FAR_NUMBERS = "far_numbers", BEWARE
    """Some numbers lie very far from most others."""
    UNEQUAL_CLASSES = "unequal_classes", BEWARE
    """Most validation rows are of one class, and the metric is accuracy."""
    EMPTY_COLUMN = "empty_column", BEWARE
    """A column is empty in all validation rows."""
    OTHER_RANGE = "other_range", BEWARE
    """Most validation rows lie outside the range of the rows to train on."""
    UNSEEN_TEXTS = "unseen_texts", BEWARE
    """Validation rows hold texts that no row to train on has."""
    TEXTS_FOR_NUMBERS = "texts_for_numbers", BEWARE
    """Most cells of a column are dates or numbers for people, but the column is texts."""
    NOT_READ = "not_read"
    """Files beside the data are not read."""
    OTHER_SHEETS = "other_sheets"
    """Only one of several sheets is read."""
    SIMILAR_CLASSES = "similar_classes"
    """Classes differ only in capital letters or blanks."""
    IDENTIFIERS = "identifiers"
    """Columns may be identifiers."""
    NEAR_COPIES = "near_copies"
    """Rows differ from others only in the last digits of numbers."""
    NAMES_OF_NOBODY = "names_of_nobody"
    """Owners have names that programs write into empty cells."""
    EQUAL_NUMBERS = "equal_numbers"
    """Names of owners are the same number."""
    SIMILAR_NAMES = "similar_names"
    """Names of owners differ by one letter."""

    # A plan and payments, not the values.
    ROWS_MAY_BE_FEW = "rows_may_be_few"
    """There may be too few validation rows for so many owners."""
    FEW_TRAININGS = "few_trainings"
    """The budget ends before the most important coalitions are evaluated."""
    PAID_OUTSIDE = "paid_outside", BEWARE
    """Payments are outside their own intervals."""
    PAID_ELSEWHERE = "paid_elsewhere", BEWARE
    """Payments go on in another run, and are booked there."""
    PAID_TO_FORMER = "paid_to_former"
    """What was paid to partners who have left."""
    JOINED_AGAIN = "joined_again"
    """What was paid to partners of the same names, who had left before."""
    PAID_IN_ALL = "paid_in_all"
    """What is paid together with what former partners got."""
    OTHER_CURRENCIES = "other_currencies"
    """What was paid in other currencies."""


ABOUT_PAYMENTS = (
    *(Code.PAID_OUTSIDE, Code.PAID_ELSEWHERE, Code.PAID_TO_FORMER, Code.JOINED_AGAIN),
    *(Code.PAID_IN_ALL, Code.OTHER_CURRENCIES),
)
"""Codes of what belongs to payments, not to the values they are by."""

_GRAVITY = {severity: place for place, severity in enumerate(Severity)}
_PLACE = {code: place for place, code in enumerate(Code)}

ABOUT_TABLE = (
    *(Code.NOT_READ, Code.OTHER_SHEETS, Code.SIMILAR_CLASSES, Code.IDENTIFIERS),
    *(Code.NEAR_COPIES, Code.NAMES_OF_NOBODY, Code.EQUAL_NUMBERS, Code.SIMILAR_NAMES),
)
"""Codes of what to look at in a table before anything is trained."""

GUESSED = frozenset({Code.EQUAL_UTILITIES, Code.TWO_UTILITIES, Code.NO_MIDDLE_SIZES})
"""Codes that say that utilities do not show how far those of other coalitions may lie."""

TOO_NARROW = frozenset({Code.FEW_ROWS, Code.FEW_OF_A_CLASS, Code.DOMINANT_ROW, Code.HEAVY_TAIL})
"""Codes that say that validation rows cannot tell how far others would lead."""

MOST_IN_GROUP = 2
"""Owners of a group up to which a short form names them."""

LONGEST_SHORT = 20
"""Words of the short form of a note: it stands on the first screen."""

SHORT: Mapping[Code, str] = {
    Code.UNFINISHED: "The run is not finished.",
    Code.FIRST_GUESS: "Missing trainings: {left} of the {first} most important.",
    Code.WORSE_THAN_NOTHING: "All data together score worse ({all:.4g}) than none ({none:.4g}).",
    Code.NO_GAIN: "No gain: all data together score {all:.4g}, the same as none.",
    Code.GAIN_UNSURE: "A gain has a probability of {probability:%}; {needed:%} is needed.",
    Code.NONE_ABOVE_FLOOR: "No group scores above {floor:.4g}, the least that counts.",
    Code.OUTSIDE_BOUNDS: "{outside:,} of {utilities:,} utilities lie outside their bounds.",
    Code.SEEN_ROWS: "Models have seen {seen:,} of the {rows:,} validation rows.",
    Code.ONE_CLASS: "All validation rows are of one class.",
    Code.AMOUNT_UNDECIDED: "{part:%} of an amount is undecided; at most {most:%} may be.",
    Code.PART_UNDECIDED: "{part:%} of an amount is undecided: by chance it may go to others.",
    Code.EQUAL_UTILITIES: "All {count:,} utilities known are equal; the others are guessed.",
    Code.TWO_UTILITIES: "The utilities known are only two numbers; the others are guessed.",
    Code.FEW_UTILITIES: "The utilities known are only {levels} numbers; jumps between are guessed.",
    Code.NO_MIDDLE_SIZES: "No group of middle size is trained; these are guessed.",
    Code.DECISIVE_TRAINING: (
        "{members:group} scored {utility:.3g}, others of this size about {typical:.3g}: check rows."
    ),
    Code.GRAND_BELOW_FLOOR: "All data together score {score:.3g}, which counts as {counted:.3g}.",
    Code.FAILED_TRAININGS: "Of {evaluated:,} coalitions {failed:,} failed, and are predicted.",
    Code.NOT_REPRODUCIBLE: "The same rows give other scores each time, and the model has no seed.",
    Code.PREDICTOR_FAILED: "The predictor is not clearly better than the mean of a size.",
    Code.NO_BETTER_THAN_CONSTANT: "The predictor is no better than a constant.",
    Code.NOT_CORRECTED: "The error of the predictor is not corrected: too few random coalitions.",
    Code.SUBSIDY_CUT_SHORT: "The search for coalitions that gain by leaving was cut short.",
    Code.UNUSED_COALITIONS: "{coalitions:,} stored coalitions lack repeats, and are not used.",
    Code.SEEDS_NOT_MEASURED: "The effect of training seeds is in no interval.",
    Code.UNKNOWN_ROWS: "The choice of the validation rows is in no interval.",
    Code.ONE_SPLIT: "How another split of the rows would change values is in no interval.",
    Code.COPIED_ROWS: "Some validation rows are copies of others, and count once.",
    Code.EQUAL_ROWS: "Some validation rows are equal to others, and may be copies.",
    Code.FEW_ROWS: "Too few validation rows ({rows:,}); {needed:,} are the least.",
    Code.FEW_OF_A_CLASS: "Too few validation rows of some class: {rows:counts}.",
    Code.DOMINANT_OWNER: "One owner holds {part:%} of the validation rows.",
    Code.FOLDS_WITHOUT_CLASS: "{folds:,} folds lack a class, and count nothing.",
    Code.DOMINANT_ROW: "One validation row outweighs the others.",
    Code.HEAVY_TAIL: "A few of the {rows:,} validation rows decide: they count as {effective:.0f}.",
    Code.MISSING_RESAMPLES: "{without:,} of {evaluations:,} evaluations have no resamples.",
    Code.FEW_RESAMPLES: "{resamples:,} resamples are too few; {needed:,} are the least.",
    Code.MIXED_RESAMPLES: "Trainings are scored on different numbers of resamples.",
    Code.ACCEPTED_MODEL: "It was accepted that the model has changed since some trainings.",
    Code.ACCEPTED_ROWS: "It was accepted that earlier trainings are no longer valid.",
    Code.FAR_NUMBERS: "Some numbers lie very far from most others.",
    Code.UNEQUAL_CLASSES: "Accuracy, and {part:%} of the validation rows are of one class.",
    Code.SAME_OWNERS: "Owners hold the same rows: a copy is worth as much as the original.",
    Code.TEXTS_FOR_NUMBERS: "Numbers are taken for texts, as not all are alike: {column}.",
    Code.LEAK: "A column nearly determines the target: {column}.",
    Code.EMPTY_COLUMN: "A column is empty in all validation rows: {column}.",
    Code.OTHER_RANGE: "Most validation rows lie outside the range trained on: {column}.",
    Code.PAID_TO_FORMER: "{names:names} left; {paid:,.2f} paid before is not counted.",
    Code.JOINED_AGAIN: "{names:names} joined again, as new; {paid:,.2f} paid before not counted.",
    Code.UNSEEN_TEXTS: "Validation rows hold texts that no row to train on has: {column}.",
}
"""The short form by code; `{fact}` is a fact of the note, in a form of `_Facts`. Of other codes it
is the first sentence of the text."""


class _Facts(Formatter):
    """Puts facts into a short form.

    `{part:%}` in per cent, never rounded to certainty; `{members:group}` a few owners by name, or
    their number; `{names:names}` some by name; `{rows:counts}` as many of each, `8 of 'yes'`.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "%":
            return f"{percent(value)} %"
        if format_spec == "group":
            few = 0 < len(value) <= MOST_IN_GROUP
            size = f"of {len(value)} owners" if value else "of owners"
            return " + ".join(map(printable, value)) if few else f"A group {size}"
        if format_spec == "names":
            return join_list(map(printable, value), most=MOST_IN_GROUP)
        if format_spec == "counts":
            return join_list([f"{count} of {quote(name)}" for name, count in value.items()], most=3)
        return str(super().format_field(value, format_spec))


_FACTS = _Facts()


@dataclass(frozen=True)
class Note:
    """One thing to know of a result.

    Attributes:
        code: what it is about.
        severity: how grave it is.
        facts: its numbers and names as plain data, as JSON has them.
        text: the same for people, a sentence or two.
    """

    code: Code
    severity: Severity
    facts: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    @property
    def short(self) -> str:
        """The same in one sentence of at most LONGEST_SHORT words."""
        found = SHORT.get(self.code, "")
        try:
            text = _FACTS.vformat(found, (), self.facts)
        except KeyError:  # a note without facts, made by hand
            text = ""
        text = text or f"{self.text[:1].upper()}{self.text[1:]}".partition(". ")[0]
        words = text.rstrip(".").split(" ")
        # A name may have any number of words.
        end = "." if len(words) <= LONGEST_SHORT else " …"
        return " ".join(words[:LONGEST_SHORT]).rstrip(".") + end

    def __str__(self) -> str:
        # Advice about a table often begins with a name, which must not be capitalised.
        prefix = "Check: " if self.code in ABOUT_TABLE else _PREFIX[self.severity]
        return f"{prefix}{self.text}"


def note(code: Code, text: str, **facts: Any) -> Note:
    """A note of the severity that its code has."""
    return Note(code, code.severity, facts, text)


def worst_first(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Each different note once, the gravest first; those of a severity in the order of codes.

    The order in which they were noticed decides only between notes of one code.
    """
    found: list[Note] = []
    for one in notes:
        if one not in found:  # facts have no hash
            found.append(one)
    return tuple(sorted(found, key=lambda one: (_GRAVITY[one.severity], _PLACE[one.code])))


def select(notes: Iterable[Note], codes: Collection[Code]) -> list[Note]:
    """The notes with one of these codes."""
    return [one for one in notes if one.code in codes]


def has(notes: Iterable[Note], *codes: Code) -> bool:
    """Whether there is a note with one of these codes."""
    return any(one.code in codes for one in notes)


def warnings(notes: Iterable[Note]) -> list[Note]:
    """The notes that warn of something."""
    return [one for one in notes if one.severity != INFO]
