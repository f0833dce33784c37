"""Who came first: Shapley values within cohorts, in the presence of all who joined before.

    value of i in cohort k = its Shapley value in the game  S -> u(P_k + S) - u(P_k),  S in cohort k

with P_k all owners of earlier cohorts. This is the asymmetric Shapley value over an ordered
partition (Frye, Rowat & Feige 2020; of data, arXiv 2511.12863): the mean contribution over all
orders of the owners in which no cohort comes before an earlier one. A copy that joins later is
worth what it adds. The values of cohort k add up to u(P_k+1) - u(P_k), all of them to u(all) - u(no
data).

No semivalue can say so, as it knows sizes only. But it is W @ u again, over sum_k 2^|cohort k|
coalitions.

Notation: n owners, m of them in a cohort, b coalitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dupre._types import Ints
from dupre.errors import InputError
from dupre.game.coalitions import unknown_owner
from dupre.game.weights import Cohort, Weights, distinct_coalitions
from dupre.wording import quote, quote_names

LISTED_UP_TO = 16
"""Owners up to which all coalitions of a cohort enter the values, if they are not too many."""

MOST_LISTED = 2**17
"""Coalitions of all cohorts together up to which they do: those of two cohorts of 16 owners, and
four times the time that 15 owners take."""


@dataclass(frozen=True)
class Precedence:
    """Owners in the order of joining, asked for instead of a semivalue; `precedence` makes one.

    Attributes:
        cohorts: names of the owners who joined together, the first cohort first.
    """

    cohorts: tuple[tuple[str, ...], ...]
    name: ClassVar[str] = "Asymmetric Shapley"

    def __post_init__(self) -> None:
        if not self.cohorts or not all(self.cohorts):
            which = f"cohort {self.cohorts.index(()) + 1}" if self.cohorts else "the order"
            raise InputError(f"{which} is empty; expected owners in every cohort: leave it out")
        every = [name for cohort in self.cohorts for name in cohort]
        again = next((name for i, name in enumerate(every) if name in every[:i]), None)
        if again is not None:
            raise InputError(
                f"{quote(again)} is named twice in the order of joining; every owner joins once: "
                "name it in one cohort"
            )

    def for_owners(self, owners: Iterable[str]) -> Precedence:
        """The same order of those who are there; who is not in it yet joined last, together."""
        present = list(owners)
        cohorts = [tuple(name for name in one if name in present) for one in self.cohorts]
        named = {name for one in cohorts for name in one}
        cohorts.append(tuple(name for name in present if name not in named))
        return Precedence(tuple(filter(None, cohorts)))

    def positions(self, owners: tuple[str, ...]) -> tuple[Ints, ...]:
        """The owners of each cohort by position; InputError if one is unknown or missing."""
        place = {name: k for k, cohort in enumerate(self.cohorts) for name in cohort}
        if unknown := [name for name in place if name not in owners]:
            raise unknown_owner(unknown[0], owners, "in the order of joining")
        if missing := [name for name in owners if name not in place]:
            raise InputError(
                f"the order of joining does not name {quote_names(missing)}; expected every owner "
                "in one cohort: add them, those who came last as a cohort at the end"
            )
        cohort = np.array([place[name] for name in owners])
        return tuple(np.flatnonzero(cohort == k) for k in range(len(self.cohorts)))


def precedence(cohorts: Iterable[Iterable[object]]) -> Precedence:
    """Asymmetric Shapley values: who joins later is worth what its data add to those before.

    Args:
        cohorts: owner names in the order of joining, such as [["A", "B"], ["C"]]: A and B joined
            together, C later. Among those of a cohort every order counts alike.

    Raises:
        InputError: a cohort is empty or no list of names, or an owner is named twice.
    """
    # A text is a sequence too: of letters, which might even be names of owners.
    if isinstance(cohorts, str) or not isinstance(cohorts, Iterable):
        raise InputError(_not_cohorts(cohorts))
    given = list(cohorts)
    for cohort in given:
        if isinstance(cohort, str) or not isinstance(cohort, Iterable):
            raise InputError(_not_cohorts(cohort))
    return Precedence(tuple(tuple(map(str, cohort)) for cohort in given))


def _not_cohorts(found: object) -> str:
    return (
        'the order of joining is a list of cohorts, each a list of owner names such as [["A", '
        f'"B"], ["C"]], got {found!r}; put an owner who joined alone into a list too'
    )


def most_listed(sizes: Sequence[int]) -> int:
    """Owners up to which a cohort is enumerated, of cohorts of these sizes.

    Cohorts of one size are treated alike. A cohort of one owner costs nothing.
    """
    small = sorted(size for size in sizes if size <= LISTED_UP_TO)
    fits = [size for size in small if sum(2**m - 1 for m in small if m <= size) <= MOST_LISTED]
    return max(fits, default=1)


def weigh_in_turn(cohorts: Sequence[Ints], weigh: Callable[[int], Weights]) -> Weights:
    """Weights of all owners, each in its cohort, in the presence of all cohorts before.

    Coalitions of all cohorts alternate in proportion: some users evaluate the first ones only.

    Args:
        cohorts: positions of their owners in rising order.
        weigh: the weights of so many owners among themselves.
    """
    parts = [weigh(len(owners)) for owners in cohorts]
    if len(parts) == 1:  # the value itself
        return parts[0]
    n, rows, present = sum(map(len, cohorts)), [], np.zeros(sum(map(len, cohorts)), dtype=bool)
    for owners, part in zip(cohorts, parts, strict=True):
        own = np.tile(present, (len(part.members) + 1, 1))  # last its empty coalition
        own[:-1, owners] = part.members
        rows.append(own)
        present = present.copy()
        present[owners] = True
    order = np.argsort(
        np.concatenate([np.arange(len(own)) / len(own) for own in rows]), kind="stable"
    )
    members, found = distinct_coalitions(np.concatenate(rows)[order])
    column = np.empty(len(order), dtype=np.int64)
    column[order] = found
    each = np.split(column, np.cumsum([len(own) for own in rows])[:-1])
    W = np.zeros((n, len(members) + 1))
    for owners, columns, part in zip(cohorts, each, parts, strict=True):
        W[np.ix_(owners, columns)] = np.append(part.W, part.empty[:, None], axis=1)
    every = (Cohort(*one) for one in zip(cohorts, each, parts, strict=True))
    return Weights(members, W[:, :-1], W[:, -1], parts=tuple(every))
