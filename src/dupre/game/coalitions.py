"""Coalitions of n owners as boolean rows, shape (m, n).

A boolean matrix holds any number of owners and multiplies with per-owner arrays; shapiq uses it
too. The empty coalition is never a row: it holds no data, and its utility is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from dupre._types import Ints, Members
from dupre.errors import InputError, Remedy
from dupre.game.blocks import split
from dupre.wording import did_you_mean, printable, quote, quote_names

MAX_OWNERS_ENUMERATED = 20
"""Above this, 2^n rows no longer fit in memory with everything computed from them."""

BLOCK = 4_096
"""Coalitions that are drawn at a time, which limits memory."""


def all_coalitions(n: int) -> Members:
    """All 2^n - 1 non-empty coalitions, (2^n - 1, n); row c holds the binary digits of c + 1."""
    if n > MAX_OWNERS_ENUMERATED:
        raise InputError(
            f"all coalitions of {n} owners are 2^{n} - 1 = {2**n - 1:,} rows; "
            f"expected at most {MAX_OWNERS_ENUMERATED} owners here; for more, draw some of them "
            "with a function of dupre.estimators"
        )
    codes = np.arange(1, 2**n, dtype=np.int64)
    return np.asarray((codes[:, None] >> np.arange(n)) & 1, dtype=bool)


def keys(members: Members) -> list[bytes]:
    """One hashable key per row, (m,); equal rows and no others have equal keys."""
    return [row.tobytes() for row in np.packbits(members, axis=1)]


def pack(members: Members) -> NDArray[np.void]:
    """Each row as one thing, (m,), that NumPy can sort: as the rows, from the first owner on."""
    packed = np.ascontiguousarray(np.packbits(members, axis=1))
    return packed.view(f"V{packed.shape[1]}").ravel()


def rank(members: Members) -> Ints:
    """The place of each coalition by number of owners, then by the order of owners, (m,)."""
    _, place = np.unique(pack(~members), return_inverse=True)
    order = np.lexsort((place.reshape(-1), members.sum(axis=1)))
    found = np.empty(len(members), dtype=np.int64)
    found[order] = np.arange(len(members))
    return found


def order_by_complement(members: Members) -> Ints:
    """An order of coalitions, (m,), in which one follows its complement if that is among them."""
    return np.argsort(pack(members ^ members[:, :1]), kind="stable")


def from_names(coalition: Iterable[object], names: tuple[str, ...]) -> Members:
    """The boolean row, (n,), of a coalition given by owner names, or by labels with these names.

    Raises:
        InputError: a name is unknown or repeated, or the coalition is empty.
    """
    if isinstance(coalition, str) or not isinstance(coalition, Iterable):
        raise InputError(
            f"a coalition is a tuple of owner names, got {coalition!r}; "
            f"write ({coalition!r},) for a single owner"
        )
    given = tuple(str(name) for name in coalition)
    if not given:
        raise InputError(
            "a coalition names at least one owner, got none; for no data, ", Remedy.STATE_EMPTY
        )
    inside = set(given)
    if unknown := inside.difference(names):
        raise unknown_owner(next(name for name in given if name in unknown), names)
    check_named_once(given, given)
    return np.array([name in inside for name in names])


def check_named_once(names: Sequence[str], shown: object) -> None:
    """Raise InputError if an owner is named twice; `shown` is the coalition as it was given."""
    if len(set(names)) < len(names):
        again = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"the coalition {shown} names {quote(again)} twice; name it once")


def find_owner(name: str, names: tuple[str, ...]) -> str:
    """The owner of this name, or the only one whose name differs by blanks at its ends.

    People cannot see such blanks in a table. The number alone will do for "StoreID 7".
    """
    if name in names:
        return name
    near = [one for one in names if one.strip() == name.strip()]
    if not near and name.strip().isdecimal():
        near = [one for one in names if one.endswith(f" {name.strip()}")]
    if len(near) != 1:
        raise unknown_owner(name, names)
    return near[0]


def unknown_owner(name: str, names: tuple[str, ...], where: str = "") -> InputError:
    """The error that names the owners there are, and `where` the unknown one was named."""
    return InputError(
        f"unknown owner {quote(name)}{where and f' {where}'}{did_you_mean(name, names)}; the "
        f"owners are {quote_names(names)}"
    )


def to_names(row: Members, names: tuple[str, ...]) -> tuple[str, ...]:
    """The owner names of one boolean row, (n,), in the order of `names`."""
    return tuple(name for name, inside in zip(names, row, strict=True) if inside)


def format_members(members: tuple[str, ...]) -> str:
    """A coalition in messages."""
    return "{" + ", ".join(map(printable, members)) + "}"


def sample_of_size(n: int, size: int, count: int, rng: np.random.Generator) -> Members:
    """`count` distinct coalitions of `size` owners, (count, n), uniformly at random.

    Enumerates when count is a large part of all C(n, size), else draws until enough are distinct.
    """
    total = comb(n, size)
    if not 0 <= count <= total:
        raise InputError(f"there are {total} coalitions of {size} of {n} owners, asked for {count}")
    if 2 * count > total:  # drawing would repeat itself too often
        every = every_of_size(n, size)
        by_code = every[np.lexsort(every.T)]
        return np.asarray(by_code[rng.permutation(total)[:count]])
    chosen: dict[bytes, Members] = {}
    while len(chosen) < count:
        draws = rng.random((count - len(chosen), n)).argsort(axis=1) < size
        chosen.update(zip(keys(draws), draws, strict=True))
    return np.array(list(chosen.values()), dtype=bool).reshape(count, n)


def every_of_size(n: int, size: int) -> Members:
    """Every coalition of one size, (C(n, size), n)."""
    chosen = np.array(list(combinations(range(n), size)), dtype=np.int64)
    chosen = chosen.reshape(comb(n, size), size)
    rows = np.zeros((len(chosen), n), dtype=bool)
    np.put_along_axis(rows, chosen, True, axis=1)
    return rows


def random_of_sizes(
    n: int, sizes: Ints, rng: np.random.Generator, *, but: Ints | None = None
) -> Members:
    """Random coalitions of these sizes, (d, n), each without its owner `but`, (d,), if given."""
    rows = np.empty((len(sizes), n), dtype=bool)
    for some in split(len(sizes), BLOCK):  # the same numbers as at once, in less memory
        numbers = rng.random(rows[some].shape)
        if but is not None:
            numbers[np.arange(len(numbers)), but[some]] = 2.0
        first = np.arange(n) < np.asarray(sizes)[some, None]
        np.put_along_axis(rows[some], np.argsort(numbers, axis=1), first, axis=1)
    return rows


def random_cover(n: int, size: int, rng: np.random.Generator) -> Members:
    """Random coalitions of one size such that every owner is in one and out of another."""
    block = min(size, n - size)
    count = ceil(n / block)
    around = np.resize(rng.permutation(n), (count, block))  # the last block starts over
    rows = np.zeros((count, n), dtype=bool)
    np.put_along_axis(rows, around, True, axis=1)
    return rows if block == size else ~rows


def canonical(members: Iterable[str]) -> tuple[str, ...]:
    """A coalition with its members in the order in which it is stored."""
    return tuple(sorted(members))
