"""The spot check: before a stored game goes on, one of its trainings is done again and compared.

No list of what a utility depends on is complete: code, files, settings and packages change. So one
stored coalition is trained again before any stored utility is used: the cheapest, and another one
each time. If a hint has changed (module `origin`), the largest one is trained instead: more
owners are part of it. If its utility is another number, the store is refused.

The utility of no data enters every value, and a callable is asked for it. It is asked again each
time, too, as long as that costs next to nothing, and whenever a hint has changed. If it takes time,
it is the first in every turn.

A utility that changes from call to call is compared by its noise: the difference of the means of
its stored and its new trainings is tested by Student's t, with the variance of repeated trainings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from scipy import stats

from dupre.errors import Remedy, StoreError
from dupre.game.coalitions import format_members
from dupre.store.store import Store, Stored
from dupre.training.evaluation import Evaluation
from dupre.training.workers import Workers
from dupre.utility.describe import Traits

OF_SPREAD, OF_SIZE = 1e-6, 1e-9
"""How far two utilities may be apart and still be the same, relative to the spread of all stored
ones and to their size: another processor adds in another order."""

# Two tell that a utility changes from call to call, the third gives its noise a second degree.
NEW_TRAININGS = 3
"""New trainings of a coalition whose utility changes from call to call."""

FREE = 1.0
"""Seconds up to which the utility of no data is asked for again each time, besides a coalition."""

# A false alarm stops a paid run; a change that matters is far beyond this limit.
CHANCE = 1e-3
"""The chance to refuse such a utility although nothing has changed."""


def spot_check(
    store: Store, traits: Traits, workers: Workers, asked: Stored, *, empty: bool = False
) -> None:
    """Train a stored coalition again, and let the store go on if its utility is the same.

    `empty` says whether the stored utility of no data counts; if it is stated, it does not.

    Raises:
        StoreError: it is not, and the user does not accept it.
    """
    if not (store.path and store.coalitions()):
        return
    origin, checks, difference = store.origin, [], ""
    stored = store.to_check(empty=empty) if asked.check else []
    known = [e for e in stored if _is_comparable(traits, e)]
    for chosen in _choose(known, largest=origin.change.any):
        tolerance = _tolerance(known, chosen)
        again = _train_again(workers, chosen, tolerance)  # where trainings run: code differs there
        checks += [(chosen, evaluation) for evaluation in again]
        if not _are_same(store, chosen, again, tolerance):
            difference = _difference(chosen, again)
            break
    if difference and not asked.accept_model:
        raise StoreError(
            f"the store {str(store.path)!r} holds utilities of another game: {difference}. What "
            "they depend on has changed: code, data, a file, a setting or a package. ",
            Remedy.UNDO,
            Remedy.ACCEPT,
        )
    if not (asked.accept_model or asked.check):
        return
    origin.confirm([pair for pair in checks if pair[1].utility is not None])
    made_for = origin.change.text and f"it was made for {origin.change.text}"
    if reasons := [reason for reason in (made_for, difference) if reason]:
        count = len(store.evaluations())
        text = f"you accepted that {count:,} trainings are kept although {' and '.join(reasons)}"
        origin.note("model", text)


def _choose(known: Sequence[Evaluation], *, largest: bool) -> list[Evaluation]:
    """What to train again: one evaluation, and no data before it if that costs nothing."""
    empty = [e for e in known if not e.training.members]
    others = [e for e in known if e.training.members]
    if largest:  # more owners are part of it, so a change of any of them shows
        others.sort(key=lambda e: -len(e.training.members))
    if largest or (empty and empty[0].seconds <= FREE):
        return [*empty[:1], *others[:1]]
    return list(known[:1])


def _is_comparable(traits: Traits, evaluation: Evaluation) -> bool:
    """Whether a training done again must have the same utility, and says something of the model."""
    training, seed = evaluation.training, evaluation.seed
    if not traits.is_trained(training.members):
        return False
    if seed is None or (traits.takes_seed and not traits.seeded):
        return True
    return traits.training_seed(training.members, training.repeat) == seed  # not by another rule


def _train_again(workers: Workers, chosen: Evaluation, tolerance: float) -> list[Evaluation]:
    """New evaluations of a training: one if it has the same utility, more if it has not."""
    found: list[Evaluation] = []
    while len(found) < NEW_TRAININGS:
        found += workers.run(iter([replace(chosen.training, attempt=1)]))
        same = _is_close(found[0].utility, chosen.utility, tolerance)
        if same or found[-1].utility is None:
            break
        if len(found) > 1 and _is_close(found[0].utility, found[1].utility, tolerance):
            break  # it does not change from call to call
    return found


def _tolerance(known: Sequence[Evaluation], chosen: Evaluation) -> float:
    # That of no data may lie far from all others.
    utilities = [cast("float", e.utility) for e in known if e.training.members]
    spread = max(utilities) - min(utilities) if utilities else 0.0
    return max(OF_SPREAD * spread, OF_SIZE * abs(cast("float", chosen.utility)))


def _is_close(one: float | None, other: float | None, tolerance: float) -> bool:
    return one is not None and other is not None and abs(one - other) <= tolerance


def _are_same(
    store: Store, chosen: Evaluation, again: Sequence[Evaluation], tolerance: float
) -> bool:
    """Whether new utilities are the stored one, or differ from it by no more than their noise."""
    new = [e.utility for e in again if e.utility is not None]
    if len(new) < len(again):
        return False
    if _is_close(new[0], chosen.utility, tolerance):
        return True
    if len(new) < NEW_TRAININGS:
        return False
    members = chosen.training.members
    repeats = {
        names: [cast("float", e.utility) for e in store.utilities(names).values()]
        for names in store.coalitions()
        if bool(names) == bool(members)  # no data may have another noise
    }
    own = repeats[members]
    samples = [np.array(sample) for sample in (*repeats.values(), new) if len(sample) > 1]
    freedom = sum(len(sample) - 1 for sample in samples)
    variance = sum(float(np.sum((s - s.mean()) ** 2)) for s in samples) / freedom
    spread = np.sqrt(variance * (1 / len(own) + 1 / len(new)))
    limit = stats.t.ppf(1 - CHANCE / 2, freedom) * spread
    return bool(abs(np.mean(own) - np.mean(new)) <= limit)


def _difference(chosen: Evaluation, again: Sequence[Evaluation]) -> str:
    """The stored utility and the new ones, in words."""
    members = chosen.training.members
    who = format_members(members) if members else "no data"
    if failures := [e.failure for e in again if e.utility is None]:
        now = f"training it now fails: {failures[0]}"
        return f"{who} has the utility {chosen.utility!r} there, but {now}"
    new = ", ".join(repr(e.utility) for e in [*again[:1], *again[2:]])
    now = "when it is trained now" if members else "now"
    return f"{who} has the utility {chosen.utility!r} there, but {new} {now}"
