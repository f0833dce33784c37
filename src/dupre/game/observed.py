"""What has been evaluated, as one frozen record: the same whatever came first.

`fit`, `infer` and `choose` are functions of it. A store or a `Valuer` makes it with `observe`.

Notation: n owners, a coalitions with a utility, one per row of `members`; f that failed; B
resamples of the validation rows. Coalitions that `keys` holds for one share a row: what is recorded
of them are several trainings of the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from dupre._types import Bools, Floats, Members, Names
from dupre.game.coalitions import keys, rank

Keys = Callable[[Members], list[bytes]]
"""One key per coalition, (m, n): equal for those that one evaluation serves."""


@dataclass(frozen=True, eq=False)
class Observed:
    """Utilities of evaluated coalitions, in an order fixed by their members.

    Attributes:
        owners: names, one per column of `members`.
        members: the evaluated coalitions, (a, n).
        utilities: mean of the scores of each, (a,).
        scores: of the trainings of each, as they count: not below the floor.
        scored: the same, before the floor raised them.
        resampled: of each training, what it scores on resamples; None where that is not known.
        names: under which each was recorded, sorted.
        failed: coalitions that could not be evaluated, (f, n).
        reasons: why, one for each of these.
        empty: utility of no data.
        empty_resampled: the same on resamples, (B,), or None.
        floor: lowest utility that counts; None if there is none.
        dealt: utilities of each under several deals of the folds, the first one that counts; none
            where it was dealt once.
        averaged: whether each utility is the mean over its deals.
        deals_rows: whether a deal scores on other validation rows, too.
        seconds: that one training of each took; NaN where it is not known.
    """

    owners: Names
    members: Members
    utilities: Floats
    scores: tuple[tuple[float, ...], ...]
    scored: tuple[tuple[float, ...], ...]
    resampled: tuple[tuple[Floats | None, ...], ...]
    names: tuple[tuple[Names, ...], ...]
    failed: Members
    reasons: tuple[str, ...]
    empty: float
    empty_resampled: Floats | None
    floor: float | None
    dealt: tuple[tuple[float, ...], ...] = ()
    averaged: bool = False
    deals_rows: bool = False
    seconds: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.utilities)

    @property
    def evaluated(self) -> int:
        """Coalitions with a utility or failed."""
        return len(self.utilities) + len(self.failed)

    @property
    def raised(self) -> Bools:
        """Which have a training that scored below the floor, (a,)."""
        least = -np.inf if self.floor is None else self.floor
        return np.array([min(own) < least for own in self.scored], dtype=bool)

    def take(self, rows: Sequence[int]) -> Observed:
        """Only these coalitions, and no failures."""
        chosen: dict[str, Any] = {
            name: tuple(getattr(self, name)[i] for i in rows)
            for name in ("scores", "scored", "resampled", "names", "dealt", "seconds")
        }
        return replace(
            self,
            members=self.members[list(rows)],
            utilities=self.utilities[list(rows)],
            failed=self.failed[:0],
            reasons=(),
            **chosen,
        )

    @cached_property
    def deviations(self) -> Floats | None:
        """Each utility on B resamples less that on all rows, mean of its trainings, (a, B).

        None if a training does not know it, or knows another number of resamples.
        """
        every: list[Any] = [part for own in self.resampled for part in own]
        if any(part is None for part in every) or len({len(part) for part in every}) != 1:
            return None
        counts = np.array([len(own) for own in self.scores])
        off = np.array(every) - np.concatenate(self.scores)[:, None]
        return np.asarray(np.add.reduceat(off, np.cumsum(counts) - counts) / counts[:, None])


def observe(
    owners: Names,
    trainings: Mapping[Names, Sequence[float]],
    failures: Mapping[Names, str],
    *,
    empty: float,
    floor: float | None = None,
    same: Keys = keys,
    deals: Mapping[Names, Sequence[float]] = MappingProxyType({}),
    seconds: Mapping[Names, float] = MappingProxyType({}),
) -> Observed:
    """What has been evaluated, from the scores of trainings by the names of their owners.

    A coalition failed if it has no score, nor has one that the same evaluation serves. Of several
    that hold the same rows the one with the fewest owners stands for all.

    Args:
        owners: all names.
        trainings: scores of each coalition; a `Score` knows its resamples.
        failures: why a coalition could not be evaluated.
        empty: utility of no data, a `Score` or a number.
        floor: lowest utility that counts.
        same: keys that are equal for coalitions that one evaluation serves.
        deals: utilities of some coalitions under several deals of the folds.
        seconds: that one training of a coalition took, where that is known.
    """
    recorded, members = _group(owners, trainings, same)
    lost, failed = _group(owners, failures, same)
    still = [i for i, key in enumerate(lost) if key not in recorded]
    scored = [_combine([tuple(trainings[n]) for n in names], floor) for names in recorded.values()]
    scores = tuple(tuple(_raise(score, floor) for score in own) for own in scored)
    # The mean of one number is that number: NumPy takes microseconds to say so.
    means = [own[0] if len(own) == 1 else float(np.mean(own)) for own in scores]
    return Observed(
        owners=owners,
        members=members,
        utilities=np.array(means, dtype=np.float64),
        scores=scores,
        scored=tuple(tuple(map(_before_floor, own)) for own in scored),
        resampled=tuple(tuple(_resampled(score, floor) for score in own) for own in scored),
        names=tuple(map(tuple, recorded.values())),
        failed=failed[still],
        reasons=tuple(failures[list(lost.values())[i][0]] for i in still),
        empty=_raise(empty, floor),
        empty_resampled=_resampled(empty, floor),
        floor=floor,
        dealt=tuple(
            tuple(_raise(u, floor) for u in next((deals[n] for n in names if n in deals), ()))
            for names in recorded.values()
        ),
        seconds=tuple(
            min((seconds[n] for n in names if n in seconds), default=math.nan)
            for names in recorded.values()
        ),
    )


def _group(
    owners: Names, coalitions: Iterable[Names], same: Keys
) -> tuple[dict[bytes, list[Names]], Members]:
    """Names of coalitions by their keys, and the one that stands for each, (a, n)."""
    names = sorted(coalitions)  # whatever came first
    column, rows = (
        {name: i for i, name in enumerate(owners)},
        np.zeros((len(names), len(owners)), bool),
    )
    for row, members in zip(rows, names, strict=True):
        row[[column[name] for name in members]] = True
    groups: dict[bytes, list[int]] = {}
    for i, key in enumerate(same(rows)):
        groups.setdefault(key, []).append(i)
    place = rank(rows)
    first = {key: min(found, key=place.__getitem__) for key, found in groups.items()}
    packed = keys(rows)
    order = sorted(groups, key=lambda key: packed[first[key]])
    by_key = {key: [names[i] for i in groups[key]] for key in order}
    return by_key, rows[[first[key] for key in order]].reshape(-1, len(owners))


def _combine(by_name: list[tuple[float, ...]], floor: float | None) -> tuple[float, ...]:
    """Scores of the trainings of coalitions that hold the same rows, sorted by their names.

    The same numbers under several names are taken for one training that was recorded several
    times. Otherwise trainings would seem to have no noise.
    """
    if len({tuple(_raise(score, floor) for score in own) for own in by_name}) == 1:
        return by_name[0]
    return tuple(score for own in by_name for score in own)


def _raise(score: float, floor: float | None) -> float:
    """A score as it counts."""
    return float(score) if floor is None else max(float(score), floor)


def _before_floor(score: float) -> float:
    """What was scored; a `Score` that was raised already knows it."""
    found: float | None = getattr(score, "before_floor", None)
    return float(score if found is None else found)


def _resampled(score: float, floor: float | None) -> Floats | None:
    """A score on resamples, as it counts there; None for a plain number."""
    found: Floats | None = getattr(score, "resampled", None)
    return found if found is None or floor is None else np.maximum(found, floor)
