"""What the choice of the validation rows adds to the uncertainty of the values.

A utility is an average over the validation rows that happened to be taken. Values are linear in the
evaluated utilities, exactly so if every coalition is evaluated, otherwise at the learned
hyper-parameters (and to first order if utilities are warped):

    values = M @ u + constant          M = weights of the evaluated + weights of predictions of them

So the values on a resample of the validation rows differ by M @ (utilities on it - utilities), and
their covariance over all resamples is that of the values over choices of rows (docs/numerics.md).

Notation: n owners, p coalitions with a position, B resamples; M (n, p).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dupre._types import Floats
from dupre.errors import Remedy, StoreError
from dupre.notes import Code, Note, note
from dupre.predictor.averaging import AveragedPosterior
from dupre.training.evaluation import Evaluation
from dupre.utility.describe import Traits
from dupre.utility.validation import ValidationRows
from dupre.valuation.state import State
from dupre.wording import count_things, join_list, percent, printable, quote

FEWEST_ROWS = 10
"""Validation rows from which on resamples of them tell well how far others would be."""

ROUNDING = 1e-12
"""Part of the largest utility below which a difference is one of rounding."""

LEAST_PART = 0.02
"""Part of the rows from which on a class matters in a metric in which all rows count alike."""

COMMON = 2
"""Degrees of freedom that the mean variance of all owners counts for in that of each.

From three deals an owner's own variance is often near zero by accident; what owners have in common
steadies it (Smyth 2004), and counts as much as its own."""

SHOWN = 0.77
"""Part of the variance over deals that the coalitions of the first design show, which have none of
the middle sizes: 0.6 for five institutes of polls, 0.9 for four and for seven owners. Of 17 tables
96 % of the differences between two seeds were within 95 % intervals by it, of polls 93 % (without:
92 and 88 %). Tails are then normal, few deals or not: one of the three is the one that counts, so
that the variance is large where this one is far off."""

DOMINANT_OWNER = 0.5
"""Part of the validation rows from which on their owner is named."""

FEWEST_POSITIVES = 30
"""Rows of the class that alone counts in F1, precision and recall, below which intervals held 85 to
91 % instead of 95 %."""

DOMINANT_ROW = 1 / 3
"""Part of the squared differences of validation targets from which on a single row is named."""

FEWEST_EFFECTIVE = 30
"""Rows of equal squared differences that validation rows are worth, below which intervals of R²
held 92 to 93 % instead of 95 % where targets have a heavy tail."""

HEAVY_TAIL = 1 / 6
"""Part of the rows that they are worth, below which a tail is heavy: half of a normal one's."""

REPEATED = 0.1
"""Part of the validation rows from which on a note says that they are equal to others."""


def validation_notes(rows: ValidationRows | None) -> list[Note]:
    """What makes validation rows worth less than their number says."""
    if rows is None:
        return []
    return [
        *_seen_rows(rows),
        *_equal_rows(rows),
        *_dominant_owner(rows),
        *_folds_without_class(rows),
        *(_few_rows(rows) or _few_of_a_class(rows)),
        *_dominant_row(rows),
    ]


def not_validating(traits: Traits) -> list[Note]:
    """Owners none of whose rows validate: the rows that do are fixed when a run begins."""
    if traits.fixed is None or traits.validation is None:
        return []
    owners = traits.validation.owners
    validates = np.isin(owners.row_contents[:, 0], traits.fixed.rows)
    held = np.bincount(owners.owner[validates], minlength=owners.n)
    names = [name for name, count in zip(owners.names, held, strict=True) if not count]
    if not names:
        return []
    text = (
        f"rows of {join_list(map(printable, names))} train and do not validate: those that do are "
        "fixed when a run begins, unless they are split anew (revalidate)."
    )
    return [note(Code.NOT_VALIDATING, text, owners=names)]


def _seen_rows(scored: ValidationRows) -> list[Note]:
    """Rows that are trained on too."""
    if not (seen := scored.seen):
        return []
    rows = len(scored.targets)
    partly = "partly " if seen < rows else ""
    text = (
        f"{seen:,} of the {rows:,} validation rows are also among the rows to train on, so models "
        f"are {partly}scored on what they have seen."
    )
    return [note(Code.SEEN_ROWS, text, seen=seen, rows=rows)]


def _equal_rows(scored: ValidationRows) -> list[Note]:
    """Rows that are equal to others, by chance or as copies."""
    equal, m = scored.equal, len(scored.targets)
    if not equal.repeated:  # also of rows that a splitter scores several times
        return []
    which = f"{equal.repeated:,} of the {m:,} validation rows are"
    facts = {"repeated": equal.repeated, "rows": m, "counted": equal.counted}
    if equal.counted < m:
        text = (
            f"{which} copies of others, as a join makes them. Copies count as one row: "
            f"{equal.counted:,} in all; remove them."
        )
        return [note(Code.COPIED_ROWS, text, **facts)]
    if equal.repeated <= REPEATED * m:
        return []
    text = (
        f"{which} equal to others. Intervals count each as a row of its own, and are too narrow if "
        "they are copies, as a join makes them; remove copies."
    )
    return [note(Code.EQUAL_ROWS, text, **facts)]


def _dominant_owner(scored: ValidationRows) -> list[Note]:
    """An owner who alone decides what a good model is."""
    for name, part in scored.shares.items():
        if part > DOMINANT_OWNER and (scored.dealt is None or scored.dealt.weights is None):
            text = (
                f"{percent(part)} % of the validation rows are those of {printable(name)}, so it "
                "alone decides what a good model is; weigh all owners alike, or agree on "
                "validation rows."
            )
            return [note(Code.DOMINANT_OWNER, text, owner=name, part=part)]
    return []


def _folds_without_class(scored: ValidationRows) -> list[Note]:
    """Folds that a metric of pairs cannot score."""
    dealt, count = scored.dealt, len(scored.idle)
    if dealt is None or not count:
        return []
    text = (
        f"{count} of {len(dealt.tests)} folds have rows of one class only and count nothing; state "
        "fewer folds."
    )
    return [note(Code.FOLDS_WITHOUT_CLASS, text, folds=count)]


def _few_rows(scored: ValidationRows) -> list[Note]:
    """Rows too few to tell how far the values would be on others."""
    rows = scored.counted
    if rows >= FEWEST_ROWS:
        return []
    told = f"{count_things(rows, 'validation row')} cannot show how much others would change the "
    known = "that is in no interval" if rows < 2 else "intervals are too narrow"
    text = f"{told}values: {known}. Score on {FEWEST_ROWS} rows at least, better on hundreds."
    return [note(Code.FEW_ROWS, text, rows=rows, needed=FEWEST_ROWS)]


def _few_of_a_class(scored: ValidationRows) -> list[Note]:
    """Rare classes of which there are too few rows to tell how others of them would be scored."""
    if scored.owners.task != "classification":
        return []
    targets = scored.targets[scored.counts]
    of_class, m = Counter(targets.tolist()), len(targets)
    least = LEAST_PART * m if scored.metric.counts_rows else 0.0  # fewer hardly count there
    rare = min(FEWEST_ROWS, m / (2 * len(of_class)))  # half of an equal share
    few = {name: count for name, count in of_class.items() if least <= count < rare}
    if not few:
        return _few_positives(scored, of_class)
    fewest = sorted(few.items(), key=_by_count)
    told = [f"{count} of {quote(name)}" for name, count in fewest]
    text = (
        f"some classes have very few validation rows ({join_list(told, most=3)}): what others of "
        "them would score is hardly known, and intervals are too narrow. Score on "
        f"{FEWEST_ROWS} rows of every class at least."
    )
    rows = {str(name): count for name, count in fewest}
    return [note(Code.FEW_OF_A_CLASS, text, rows=rows, needed=FEWEST_ROWS)]


def _few_positives(scored: ValidationRows, of_class: Counter[object]) -> list[Note]:
    """Too few rows of the one class that a metric looks at."""
    if not (scored.metric.for_more and scored.metric.is_pooled):
        return []
    count = of_class[1]
    if not 0 < count < FEWEST_POSITIVES:
        return []
    text = (
        f"{scored.metric.words} rests on the {count} validation rows of class 1: intervals are too "
        f"narrow. Score on {FEWEST_POSITIVES} of them at least."
    )
    return [note(Code.FEW_OF_A_CLASS, text, rows={"1": count}, needed=FEWEST_POSITIVES)]


def _by_count(item: tuple[object, int]) -> tuple[int, str]:
    return item[1], str(item[0])


def _dominant_row(scored: ValidationRows) -> list[Note]:
    """Rows of a regression that outweigh others: another sample may have no such rows."""
    if not scored.metric.squares or len(scored.targets) < FEWEST_ROWS:
        return []
    off = np.abs(scored.targets - np.mean(scored.targets))
    squares = (off / (off.max() or 1.0)) ** 2
    part = 1 / float(squares.sum()) if off.any() else 0.0
    if part < DOMINANT_ROW:
        return _heavy_tail(squares)
    text = (
        f"one of the {len(scored.targets):,} validation rows has {percent(part)} % of the squared "
        "differences of the targets from their mean: scores rest on it, and intervals are too "
        "narrow. Score on more rows."
    )
    return [note(Code.DOMINANT_ROW, text, rows=len(scored.targets), part=part)]


def _heavy_tail(squares: Floats) -> list[Note]:
    """A few rows that outweigh the others together, by squared differences of targets, (m,)."""
    m = len(squares)
    effective = float(squares.sum() ** 2 / (squares**2).sum()) if squares.any() else m  # Kish 1965
    if effective >= min(FEWEST_EFFECTIVE, HEAVY_TAIL * m):
        return []
    text = (
        f"a few targets lie so far from the others that the {m:,} validation rows tell as much as "
        f"{effective:.0f} alike: intervals are too narrow. Score on more rows."
    )
    return [note(Code.HEAVY_TAIL, text, rows=m, effective=effective)]


def check_resamples(traits: Traits, known: Iterable[Evaluation]) -> None:
    """Raise StoreError if known utilities have another number of resamples than new ones would.

    Together they would know nothing of other validation rows, and the store could not be mended.
    """
    counts = _count_resamples(known)
    now = traits.resamples
    if now is not None and counts and now not in counts:
        raise StoreError(
            f"the known trainings are scored on {counts[-1]} resamples of the validation rows, but "
            f"resamples={now} is given to the ModelUtility; state resamples={counts[-1]}, or take ",
            Remedy.ANOTHER_STORE,
        )


def mixed_resamples(used: Iterable[Evaluation]) -> list[Note]:
    """A note if trainings are scored on several numbers of resamples."""
    counts = _count_resamples(used)
    if len(counts) < 2:
        return []
    text = (
        f"trainings are scored on {join_list(map(str, counts))} resamples of the validation rows, "
        "which cannot be used together; begin another store to know how far other rows would lead."
    )
    return [note(Code.MIXED_RESAMPLES, text, resamples=counts)]


def _count_resamples(evaluations: Iterable[Evaluation]) -> list[int]:
    """The numbers of resamples that evaluations are scored on, sorted; without those of none."""
    return sorted({len(e.resampled) for e in evaluations if e.resampled is not None})


@dataclass(frozen=True, eq=False)
class Deviations:
    """Utilities on B resamples of the validation rows minus those on all rows.

    Attributes:
        evaluated: of the coalitions by position, (p, B); zero where there is no utility.
        empty: of no data, (B,).
    """

    evaluated: Floats
    empty: Floats


def deviations(state: State) -> Deviations | None:
    """What is known of resamples; None unless every utility knows most of them.

    A resample that one utility cannot be computed on is left out for all.
    """
    found, empty = state.deviations, state.observed.empty_resampled
    if found is None or (empty is not None and len(empty) != found.shape[1]):
        return None
    of_empty = np.zeros(found.shape[1]) if empty is None else empty - state.observed.empty
    usable = np.isfinite(found).all(axis=0) & np.isfinite(of_empty)
    if 2 * usable.sum() < len(usable):
        return None  # the usable ones would be a choice of their own, by what the score needs
    size = _rounding(state)
    found, of_empty = (np.where(np.abs(off) > size, off, 0.0) for off in (found, of_empty))
    return Deviations(found[:, usable], of_empty[usable])


def evaluation_weights(state: State, posterior: AveragedPosterior | None) -> Floats:
    """How much each value changes with the utility of each evaluated coalition: M, (n, p).

    Args:
        state: what is evaluated.
        posterior: of the others; None if there are none.
    """
    W, b = state.question.weights.W, state.question.b
    recorded = np.flatnonzero(state.recorded[:b])
    M = np.zeros((len(W), len(state.members)))
    M[:, recorded] = W[:, recorded]
    if posterior is not None:
        M[:, state.beliefs.fitted] += posterior.observed_weights
    return M


def covariance(state: State, M: Floats, off: Deviations) -> Floats:
    """Covariance of the values over choices of the validation rows, (n, n)."""
    change = M @ off.evaluated + np.outer(state.question.weights.empty, off.empty)
    change[np.abs(change) <= _rounding(state)] = 0.0
    return state.question.sameness.equal_covariance(change @ change.T / len(off.empty))


def deal_covariance(state: State, validation: Floats | None) -> Floats | None:
    """Covariance of the values over deals of the folds, (n, n); None if nothing was dealt again.

    Values follow from the coalitions that were evaluated under several deals alone (`deals`).

    Args:
        state: what is evaluated.
        validation: covariance over choices of the validation rows. If a deal scores on other rows,
            that is part of what deals show, and not counted twice.
    """
    seen = state.observed
    rows = [i for i, own in enumerate(seen.dealt) if len(own) > 1]
    if not rows:
        return None
    part = state if len(rows) == len(seen) else State(state.question, seen.take(rows))
    deals = min(len(seen.dealt[i]) for i in rows)
    utilities = np.array([part.observed.dealt[i][:deals] for i in part.row.values()])
    posterior = part.beliefs.averaged if part.unknown.size else None
    values = evaluation_weights(part, posterior)[:, list(part.row)] @ utilities  # (n, d)
    found = np.atleast_2d(np.cov(values))
    # What owners have in common is a variance of shares: it leaves the sum of the values alone.
    n = len(found)
    common = np.trace(found) / n * (np.eye(n) * n - 1) / (n - 1)
    found = (COMMON * common + (deals - 1) * found) / (COMMON + deals - 1)
    found = found / SHOWN / (deals if seen.averaged else 1)
    if seen.deals_rows and validation is not None:
        # Both have many rows in common with nothing: what is left is the choice of training rows.
        whole = float(np.trace(found))
        found = found * (max(0.0, 1 - float(np.trace(validation)) / whole) if whole else 0.0)
    return state.question.sameness.equal_covariance(found)


def _rounding(state: State) -> float:
    """A difference of utilities that is not larger than this is one of rounding."""
    return ROUNDING * float(np.nanmax(np.abs(np.append(state.utilities, state.observed.empty))))
