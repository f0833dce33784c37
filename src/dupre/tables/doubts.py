"""What in a table makes values less reliable than they seem, a note for each problem.

Everything here is cheap, and is reported before anything is trained. To compare a column with the
target, rows are sorted by the column. If the column determines the target, neighbouring rows have
equal targets. In regression, half the mean squared difference of neighbours estimates the variance
that the column does not explain (J. Rice, Ann. Statist. 12, 1984, p. 1220).
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dupre._types import Bools, Floats, Names, Task
from dupre.notes import Code, Note, note
from dupre.tables.columns import MAX_TEXTS, kind
from dupre.tables.features import Columns
from dupre.tables.formats import EMPTY
from dupre.tables.numbers import Forms, kept_as_text, looks_like
from dupre.tables.preprocessing import as_levels, as_numbers
from dupre.utility.model import ModelUtility
from dupre.wording import count_things, join_list, percent, printable, quote

LEAK = 0.94
"""Part of the differences between targets from which on a column nearly determines them.

The best columns of scikit-learn's tables and of California's houses are below 0.93."""

MOST_ROWS = 2_000
"""Rows that a column is compared with the target on."""

FEWEST_PAIRS = 30
"""Neighbouring rows below which nothing is said about a column."""

UNEQUAL = 0.7
"""Part of the rows in one class from which on accuracy says little about the others."""

OUTSIDE = 0.5
"""Part of the numbers of a validation column outside the range of the rows to train on from which
on the column is named."""

UNSEEN = 0.1
"""Part of the validation rows from which on texts that are in no row to train on are named."""

FAR = 30.0
"""Distance of a number from the median, in spans of the middle half of a column, from which on a
row is unlike the others."""

DIGITS = 12
"""Significant digits in which copies of numbers agree, whatever program has written them."""

SHORTEST, LONGEST = 5, 40
"""Letters of the words that are compared: shorter ones may differ by a letter on purpose."""


def columns_to_check(
    frame: pd.DataFrame, columns: Columns, target: str, forms: Forms = MappingProxyType({})
) -> list[Note]:
    """Columns that may hold something else than a model takes them for, read in these forms."""
    return [
        *texts_for_numbers(frame, (*columns.categories, *columns.free_texts, target), forms),
        *similar_classes(frame[target]),
        *identifiers(frame, columns),
        *near_copies(frame, columns, target),
    ]


def texts_for_numbers(frame: pd.DataFrame, names: Iterable[str], forms: Forms) -> list[Note]:
    """Columns of texts whose cells are mostly dates or numbers for people, a note for each."""
    notes = []
    asked = kept_as_text(forms)
    for name in names:
        if name not in asked and kind(frame[name]) == "text" and (like := looks_like(frame[name])):
            taken = f"{printable(name)} is taken for texts: {like}"
            text = f"{taken}. Write all alike, or leave cells empty."
            notes.append(note(Code.TEXTS_FOR_NUMBERS, text, column=name, kind=like.what))
    return notes


def similar_classes(target: pd.Series) -> list[Note]:
    """Classes whose names differ only in capital letters or blanks, a note for each group."""
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    texts = target.astype(str).value_counts() if kind(target) == "text" else pd.Series()
    for text, count in texts.items():
        groups[" ".join(str(text).split()).casefold()][str(text)] = int(count)
    return [_similar_group(str(target.name), rows) for rows in groups.values() if len(rows) > 1]


def _similar_group(target: str, rows: dict[str, int]) -> Note:
    """What to say of classes that look alike, with the rows of each."""
    told = [f"{quote(name)} ({count_things(count, 'row')})" for name, count in rows.items()]
    text = (
        f"{join_list(told)} in {printable(target)} differ only in capital letters or blanks, and "
        f"are taken for {len(rows)} classes; write them alike if they are one."
    )
    return note(Code.SIMILAR_CLASSES, text, column=target, rows=rows)


def identifiers(frame: pd.DataFrame, columns: Columns) -> list[Note]:
    """Columns of whole numbers, another one in each row: identifiers, but maybe amounts."""
    names = [
        name
        for name in columns.numbers
        if pd.api.types.is_integer_dtype(frame[name].dtype)
        and len(frame) > MAX_TEXTS  # as for texts: in fewer rows numbers are often all different
        and frame[name].nunique() > len(frame) / 2
    ]
    if names:  # a row that occurs twice keeps its number
        rows = frame.drop_duplicates(subset=list(columns.used))
        names = [name for name in names if rows[name].is_unique]
    if not names:
        return []
    text = (
        f"{join_list(map(printable, names))}: every row has another whole number. An identifier or "
        "a row number is of no use to a model and hides copies of rows: if it is one, leave it "
        "out."
    )
    return [note(Code.IDENTIFIERS, text, columns=names)]


def doubtful_columns(
    frame: pd.DataFrame, columns: Columns, *, target: str, task: Task
) -> list[Note]:
    """Columns that nearly determine the target, and those with numbers far from most others."""
    both = (leaks, far_rows)
    return [found for find in both for found in find(frame, columns, target=target, task=task)]


def leaks(frame: pd.DataFrame, columns: Columns, *, target: str, task: Task) -> list[Note]:
    """Columns each of which nearly determines the target; it may be known only with the target."""
    # Drawn, not the first rows: tables are often sorted by owner or target.
    rows = np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS]
    some = frame.iloc[rows]
    y = pd.factorize(some[target])[0] if task == "classification" else as_numbers(some[[target]])
    y = np.asarray(y, dtype=np.float64).ravel()
    parts = {
        name: _explained_part(as_numbers(some[[name]])[:, 0], y, task) for name in columns.numbers
    }
    for name in columns.categories:
        levels = pd.factorize(as_levels(some[[name]])[:, 0], use_na_sentinel=False)[0]
        parts[name] = _explained_part(levels, y, task, within=True)
    found = []
    for name, part in parts.items():
        if part >= LEAK:
            text = (
                f"the column {printable(name)} alone nearly determines {printable(target)} "
                f"({100 * part:.0f} % of its differences). If it is not known before the target "
                "is, leave it out."
            )
            found.append(note(Code.LEAK, text, column=name, part=part))
    return found


def _explained_part(x: NDArray[Any], y: Floats, task: Task, *, within: bool = False) -> float:
    """Part of the differences between targets y, (N,), that a column x, (N,), explains.

    Args:
        x: numbers, with NaN for gaps, or positions of levels; rows in random order.
        y: numbers, or positions of classes.
        task: what y are.
        within: whether only neighbours of the same x are compared, as for levels without an order.
    """
    known = ~np.isnan(x.astype(np.float64))
    order = np.argsort(x[known], kind="stable")
    x, y = x[known][order], y[known][order]
    pairs = x[1:] == x[:-1] if within else np.ones(max(len(x) - 1, 0), dtype=bool)
    if pairs.sum() < FEWEST_PAIRS:
        return 0.0
    if task == "classification":
        differ = float(np.mean((y[1:] != y[:-1])[pairs]))
        usual = 1 - float(((np.unique(y, return_counts=True)[1] / len(y)) ** 2).sum())
    else:
        differ, usual = float(np.mean(np.diff(y)[pairs] ** 2)) / 2, float(np.var(y))
    return 1 - differ / usual if usual > 0 else 0.0


def unequal_classes(utility: ModelUtility) -> list[Note]:
    """Accuracy where most validation rows are of one class, and what can be computed instead."""
    if utility.metric.name != "accuracy":
        return []
    counts = pd.Series(utility.y_val).value_counts()
    part, most = counts.iloc[0] / counts.sum(), printable(str(counts.index[0]))
    if part < UNEQUAL:
        return []
    if part == 1:
        text = (
            f"all validation rows are of class {most}, so no metric says anything about the "
            "others; score on rows of every class."
        )
        return [note(Code.ONE_CLASS, text, of=str(counts.index[0]))]
    better = "balanced_accuracy"
    if set(utility.owners.y) <= set(counts.index):  # areas need rows of each class
        if len(counts) == 2:
            better += " or roc_auc"
        elif hasattr(utility.estimator, "predict_proba"):
            better += " or roc_auc_ovr"
    text = (
        f"{percent(part)} % of validation rows are of class {most}, so accuracy says little about "
        f"the others; {better} does."
    )
    return [note(Code.UNEQUAL_CLASSES, text, of=str(counts.index[0]), part=float(part))]


def unlike_training(rows: pd.DataFrame, validation: pd.DataFrame, columns: Columns) -> list[Note]:
    """Columns of validation rows that are empty, or hold what no row to train on has."""
    found = []
    for name in columns.used:
        if validation[name].isna().all() and rows[name].notna().any():
            text = (
                f"{printable(name)} is empty in all validation rows, but not in the rows to train "
                "on; models are scored without it."
            )
            found.append(note(Code.EMPTY_COLUMN, text, column=name))
    for name in columns.numbers:
        trained, scored = (
            numbers[np.isfinite(numbers)]
            for numbers in (as_numbers(frame[[name]])[:, 0] for frame in (rows, validation))
        )
        if not (len(trained) and len(scored)):
            continue
        low, high = trained.min(), trained.max()
        outside = scored[(scored < low) | (scored > high)]
        if len(outside) > OUTSIDE * len(scored):
            text = (
                f"most validation rows have {printable(name)} outside of all rows to train on "
                f"({outside[0]:.4g} and the like, against {low:.4g} to {high:.4g}); is it in the "
                "same unit in both?"
            )
            ends = {"low": float(low), "high": float(high), "first": float(outside[0])}
            found.append(note(Code.OTHER_RANGE, text, column=name, **ends))
    for name in columns.categories:
        known = set(as_levels(rows[[name]])[:, 0])
        levels = [level for level in as_levels(validation[[name]])[:, 0] if level is not None]
        unseen = [level for level in levels if level not in known]
        if len(unseen) >= UNSEEN * len(validation):
            text = (
                f"in {len(unseen):,} of {len(validation):,} validation rows {printable(name)} is "
                f"a text that no row to train on has, such as {quote(unseen[0])}; models know "
                "nothing about it. Write texts alike in both."
            )
            counts = {"unseen": len(unseen), "rows": len(validation)}
            found.append(note(Code.UNSEEN_TEXTS, text, column=name, **counts))
    return found


def far_rows(frame: pd.DataFrame, columns: Columns, *, target: str, task: Task) -> list[Note]:
    """Columns of a regression in which some numbers lie very far from all others."""
    if task != "regression":
        return []
    found = {}
    for name in (*columns.numbers, target):
        x = as_numbers(frame[[name]])[:, 0]
        x = x[np.isfinite(x)]
        if len(x):
            low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
            # Without a span, as of a column that is mostly zero, no distance is unusual.
            if np.max(far := np.abs(x - middle)) > FAR * (high - low) > 0:
                found[name] = f"{x[np.argmax(far)]:.4g} beside {low:.4g} to {high:.4g}"
    if not found:
        return []
    text = (
        f"some numbers lie very far from most others in {join_list(map(printable, found), most=3)} "
        f"({next(iter(found.values()))} for half of the rows). Few such rows can decide R² or a "
        "squared error, and no interval knows how many more will come; correct them, or take a "
        "model that limits them."
    )
    return [note(Code.FAR_NUMBERS, text, columns=list(found))]


def near_copies(frame: pd.DataFrame, columns: Columns, target: str) -> list[Note]:
    """Rows that are equal but for the last digits of numbers, as another program writes them.

    Rows are the same if all their cells are. A copy that went through a spreadsheet can differ in
    the last digits of its numbers: then nobody is told that two owners hold the same rows.
    """
    rows = frame[[*columns.used, target]]
    broken = list(rows.select_dtypes("float"))
    if not broken:
        return []
    rows = rows[_have_neighbours(rows[broken].to_numpy())]
    rounded = rows.copy()
    for name in broken:
        rounded[name] = _round_digits(rows[name].to_numpy())
    count = int(rounded.duplicated().sum() - rows.duplicated().sum())
    if count <= 0:
        return []
    text = (
        f"{count_things(count, 'row')} differ from others only after the {DIGITS}th digit of a "
        "number, and count as other rows. If they are copies, as another program has written them, "
        "write all files with the same program."
    )
    return [note(Code.NEAR_COPIES, text, rows=count)]


def _have_neighbours(X: Floats) -> Bools:
    """Rows of X, (N, d), that may differ from another one by rounding alone, (N,).

    Such rows have nearly the same weighted sum: only rows next to each other in its order are
    compared, which takes O(N (d + log N)).
    """
    X = np.nan_to_num(X)
    scale = np.abs(X).max(axis=0, initial=1e-300)  # smaller numbers count as zero
    weights = np.random.default_rng(0).uniform(1, 2, X.shape[1]) / scale
    sums = X @ weights
    order = np.argsort(sums, kind="stable")
    close = np.diff(sums[order]) <= 10.0 ** (2 - DIGITS) * X.shape[1]
    found = np.zeros(len(X), dtype=bool)
    found[order[1:][close]] = found[order[:-1][close]] = True
    return found


def _round_digits(numbers: Floats) -> Floats:
    """Numbers, (N,), to DIGITS significant digits."""
    with np.errstate(divide="ignore"):  # of zero
        places = DIGITS - 1 - np.floor(np.log10(np.abs(numbers)))
    scale = 10.0 ** np.where(np.isfinite(places), np.clip(places, -280, 280), 0.0)
    return np.asarray(np.rint(numbers * scale) / scale)


def doubtful_names(names: Names) -> list[Note]:
    """Owners who may be none, and owners who may be one: by empty cells, numbers, spelling."""
    both = (*_same_letters(names), *misspelt_names(names))
    return [*_names_of_nobody(names), *_equal_numbers(names), *both]


def _names_of_nobody(names: Names) -> list[Note]:
    """Names that programs write into cells that are empty."""
    empty = {text.casefold() for text in EMPTY}
    found = [name for name in names if name.strip().casefold() in empty]
    if not found:
        return []
    text = (
        f"{join_list(map(quote, found))}: that is how empty cells are written, but it is taken for "
        "the name of an owner; leave these rows out if they have none."
    )
    return [note(Code.NAMES_OF_NOBODY, text, owners=found)]


def _equal_numbers(names: Names) -> list[Note]:
    """Owners whose names are the same number, written in different ways."""
    groups: dict[tuple[str, Decimal], list[str]] = defaultdict(list)
    for name in names:
        column, _, number = name.strip().rpartition(" ")  # "StoreID 7"
        if re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", number):
            groups[column, Decimal(number)].append(name)
    several = [group for group in groups.values() if len(group) > 1]
    taken = "are the same number, and are taken for {} owners; write them alike if they are one."
    return [
        note(
            Code.EQUAL_NUMBERS,
            f"{join_list(map(quote, group))} {taken.format(len(group))}",
            owners=group,
        )
        for group in several
    ]


def _same_letters(names: Names) -> list[Note]:
    """Owners whose names differ only in capital letters, forms of letters or invisible signs."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        shown = "".join(c for c in name if unicodedata.category(c) not in ("Cf", "Cc"))
        plain = unicodedata.normalize("NFKC", shown).casefold()
        groups[" ".join(plain.split())].append(name)
    return _similar_names(groups.values())


def _similar_names(groups: Iterable[list[str]]) -> list[Note]:
    """A note for each group of several owners."""
    several = dict.fromkeys(tuple(group) for group in groups if len(group) > 1)
    taken = "look like one owner, and are taken for {}; write them alike if they are."
    return [
        note(
            Code.SIMILAR_NAMES,
            f"{join_list(map(printable, group))} {taken.format(len(group))}",
            owners=list(group),
        )
        for group in several
    ]


def misspelt_names(names: Names) -> list[Note]:
    """Owners whose names differ by one letter, or by its position, in a long word."""
    groups: dict[Hashable, list[str]] = defaultdict(list)
    # Names that differ in capital letters alone are in another note.
    for name in {name.casefold(): name for name in names}.values():
        for key in dict.fromkeys(_with_one_letter_less(name)):
            groups[key].append(name)
    return _similar_names(groups.values())


def _with_one_letter_less(name: str) -> Iterator[Hashable]:
    """The words of a name, one long word as it is or without one of its letters.

    Two words that become equal in this way differ by one letter, or by its position.
    """
    words = re.findall(r"[^\W\d_]+|\d+", name.casefold())
    for i, word in enumerate(words):
        if not word.isdigit() and SHORTEST <= len(word) <= LONGEST:
            for j in range(len(word) + 1):
                yield i, (*words[:i], word[:j] + word[j + 1 :], *words[i + 1 :])
