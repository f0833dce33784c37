"""Utilities from and for other tools: mappings, frames of evaluations, games of shapiq."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from dupre._types import Floats, Members, Names
from dupre.checks import as_utility
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game.coalitions import canonical, check_named_once, format_members, to_names
from dupre.utility.protocol import Utility
from dupre.utility.score import Score, as_scored, check_score, mean_score

Known = Mapping[Names, float | Sequence[float]] | pd.DataFrame


def as_trainings(
    known: Known | None, valid: Callable[[Names, str], bool] | None = None
) -> dict[Names, tuple[float, ...]]:
    """Utilities of each coalition from a mapping or a frame of evaluations, without failures.

    Args:
        known: a mapping or a frame.
        valid: callable(members, contents) -> bool, whether the contents of a coalition are those
            of its members' rows now; others are left out. Only frames of stores have contents.

    Raises:
        InputError: columns are missing, or a row is not an evaluation.
    """
    if known is None:
        return {}
    if isinstance(known, pd.DataFrame):
        if valid is not None and {"coalition", "contents"} <= set(known.columns):
            pairs = zip(known["coalition"], known["contents"], strict=True)
            known = known[[valid(names_in(text), contents) for text, contents in pairs]]
        return _from_frame(known)
    if not isinstance(known, Mapping):
        raise InputError(
            f"known must be a mapping {{members: utility}} or a frame, got {type(known).__name__}"
        )
    trainings: dict[Names, tuple[float, ...]] = {}
    for members, found in known.items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise InputError(f"a coalition is a tuple of owner names, got {members!r}")
        names = canonical(map(str, members))
        if names in trainings:
            raise InputError(
                f"{format_members(names)} has two entries; give repeated trainings as a list"
            )
        several = found if isinstance(found, Iterable) else (found,)
        trainings[names] = tuple(
            check_score(u, f"the utility of {format_members(names)}") for u in several
        )
    return trainings


def known_scores(
    known: Known | None, valid: Callable[[Names, str], bool]
) -> dict[Names, tuple[float, ...]]:
    """What is known of coalitions, before a floor raised it; as for `as_trainings`."""
    return as_scored(as_trainings(known, valid))


def _from_frame(frame: pd.DataFrame) -> dict[Names, tuple[float, ...]]:
    missing = {"coalition", "utility"} - set(frame.columns)
    if missing:
        raise InputError(
            f"evaluations need the columns coalition and utility; {', '.join(sorted(missing))} is "
            f"missing among {', '.join(map(str, frame.columns))}"
        )
    succeeded = frame[frame["utility"].notna()]
    nothing = [None] * len(succeeded)
    repeats, resampled = (
        succeeded[name] if name in frame.columns else nothing for name in ("repeat", "resampled")
    )
    trainings: dict[Names, dict[int, float]] = {}
    for text, utility, repeat, cell in zip(
        succeeded["coalition"], succeeded["utility"], repeats, resampled, strict=True
    ):
        names = names_in(text)
        ours = trainings.setdefault(names, {})
        which = len(ours) if repeat is None else int(repeat)
        number = as_utility(utility, f"the utility of {format_members(names)}")
        number = parse_score(number, cell, format_members(names))
        # The same training exported twice is one; two numbers under one repeat are a mistake.
        if ours.setdefault(which, number) != number:
            raise InputError(
                f"training {which} of {format_members(names)} has two utilities, {ours[which]!r} "
                f"and {number!r}; number repeated trainings in the column repeat"
            )
    return {
        names: tuple(ours[which] for which in sorted(ours)) for names, ours in trainings.items()
    }


def names_in(text: Any) -> Names:
    """The owner names in a JSON list."""
    try:
        names = json.loads(text)
    except (TypeError, ValueError):
        names = None
    labels = names if isinstance(names, list) else [None]
    names = [str(name) for name in labels if type(name) in (str, int)]
    if len(names) < len(labels):
        raise InputError(
            f'a coalition is a JSON list of owner names such as ["A", "B"], got {text!r}'
        )
    check_named_once(names, text)
    return canonical(names)


def to_game(utility: Utility, owners: Owners) -> Callable[[Members], Floats]:
    """A utility as a game of shapiq: boolean matrix (m, n) in, vector (m,) of utilities out.

    Every coalition is evaluated once. Pass the game to any approximator:
    `shapiq.KernelSHAP(n=owners.n).approximate(budget=100, game=dupre.to_game(utility, owners))`.
    """
    _check_callable(utility, "a utility")

    @cache
    def utility_of(names: Names) -> float:
        return as_utility(utility(names), f"the utility of {format_members(names)}")

    def game(coalitions: Members) -> Floats:
        rows = np.atleast_2d(np.asarray(coalitions, dtype=bool))
        if rows.shape[1] != owners.n:
            raise InputError(f"coalitions of {owners.n} owners expected, got {rows.shape[1]}")
        return np.array([utility_of(to_names(row, owners.names)) for row in rows])

    return game


def from_game(game: Any, owners: Owners) -> Utility:
    """A game of shapiq, or any callable on a boolean matrix, as a utility of these owners.

    Players are the owners in their order.
    """
    _check_callable(game, "a game")
    players = getattr(game, "n_players", owners.n)
    if players != owners.n:
        raise InputError(f"the game has {players} players, but there are {owners.n} owners")

    def utility(members: Names) -> float:
        row = np.isin(np.array(owners.names, dtype=object), np.array(members, dtype=object))
        return as_utility(
            np.asarray(game(row[None])).squeeze(), f"the utility of {format_members(members)}"
        )

    return utility


def from_table(table: Known) -> Utility:
    """A table of utilities as a utility: {members: utility} or a frame of evaluations.

    A coalition with several utilities has their mean. () is the coalition without data.
    """
    means = {names: mean_score(several) for names, several in as_trainings(table).items()}

    def utility(members: Names) -> float:
        key = canonical(members)
        if key not in means:
            raise InputError(f"the table has no utility of {format_members(members)}")
        return means[key]

    numbers = [(names, float(mean)) for names, mean in means.items()]
    utility.fingerprint = sorted(numbers)  # type: ignore[attr-defined]
    return utility


def _check_callable(thing: object, what: str) -> None:
    if not callable(thing):
        raise InputError(f"{what} must be callable, got {thing!r}")


def parse_score(utility: float, resampled: Any, who: str) -> float:
    """A utility with the cell of a table that holds what it is on resamples.

    Args:
        utility: a number.
        resampled: a JSON list as `format_resampled` writes it, or a list; the utility is a plain
            number if the cell is empty.
        who: whose utility it is, for errors.

    Raises:
        InputError: the cell holds something else.
    """
    if isinstance(resampled, str):
        text = resampled.strip() or None
    else:
        text = None if np.ndim(resampled) == 0 and pd.isna(resampled) else resampled
    if text is None:
        return utility
    try:
        return Score(utility, json.loads(text) if isinstance(text, str) else text)
    except ValueError as cause:  # the errors of JSON and of dupre are ValueErrors
        raise InputError(
            f"resampled of {who} must be a JSON list of utilities such as [0.91, 0.89], one for "
            f"each of the same resamples, got {text!r:.80}"
        ) from cause
