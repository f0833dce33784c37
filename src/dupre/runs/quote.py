"""A quote for rows that are no part of a run yet, or that do not exist yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dupre.data.rows import take
from dupre.errors import InputError
from dupre.game.coalitions import find_owner
from dupre.result.quotes import Quote
from dupre.runs.run import Run
from dupre.runs.values import engine_of, stored_valuer
from dupre.tables.formats import stem
from dupre.tables.read import read_further
from dupre.valuation.progress import Display
from dupre.valuation.quote import quote
from dupre.wording import quote_names

if TYPE_CHECKING:
    from distributed import Client

MOST_TIMES = 100
"""Times an owner's rows that a quote for more of its kind may have: a typing error has more."""


class Newcomer(NamedTuple):
    """Who is to be quoted; if the rows do not `exist`, they are repeated ones of another owner."""

    name: str
    X: Any
    y: Any
    exist: bool = True


def read_newcomer(run: Run, path: Path, name: str | None) -> Newcomer:
    """The rows of one owner in a file with the columns of the run's data.

    Args:
        run: of the present owners.
        path: of the file. If it has the run's owner column, that names the owner.
        name: of the owner; by default as the file has it, or the file's own name.

    Raises:
        InputError: the rows do not fit the data of the run, or are of several owners.
    """
    owners, data = run.owners, run.spec.data
    present = owners.X.assign(**{data.target: owners.y})
    present.insert(0, data.owner, np.array(owners.names)[owners.owner])
    present.attrs["forms"] = run.forms
    rows = read_further(path, present, data, whose="new")  # it joins last, whatever a file says
    inside = rows.pop(data.owner).dropna().astype(str) if data.owner in rows else ()
    if len(names := list(dict.fromkeys(inside))) > 1 and name is None:
        raise InputError(
            f"{path.name} has rows of {len(names)} owners, {quote_names(names)}; a quote is for "
            "one: give it a file of its own, or say by --name that all rows are one owner's"
        )
    found = name or next(iter(names), stem(path))
    return Newcomer(found, rows.drop(columns=data.target), rows[data.target].to_numpy())


def imagine_newcomer(run: Run, like: str, rows: int, name: str | None) -> Newcomer:
    """So many rows of the kind that an owner holds: drawn from its own, with replacement.

    So they are as far from its own as new ones would be; its own again would be a known copy.
    """
    owners = run.owners
    like = find_owner(like, owners.names)
    own = np.flatnonzero(owners.owner == owners.names.index(like))
    if not 1 <= rows <= MOST_TIMES * len(own):
        raise InputError(
            f"{rows:,} rows like those of {like!r} are asked for; expected 1 to "
            f"{MOST_TIMES * len(own):,}, {MOST_TIMES} times the {len(own):,} it has"
        )
    index = own[np.random.default_rng(run.spec.values.seed).integers(len(own), size=rows)]
    called = name or f"{rows:,} rows like {like}"
    return Newcomer(called, take(owners.X, index), owners.y[index], exist=False)


def quote_newcomer(
    run: Run, store: Path, newcomer: Newcomer, *, spend: int, screen: Display, client: Client | None
) -> Quote:
    """What the rows would be worth, after so many trainings with them."""
    name, X, y, exist = newcomer
    if run.spec.is_external:
        return replace(stored_valuer(run, store).quote(name, X, y), exists=exist)
    found = quote(
        run.owners,
        run.trained,
        name,
        X,
        y,
        spend=spend,
        store=run.stored(store),
        semivalue=run.semivalues[0],
        kernel=run.choices.prior,
        engine=engine_of(run, client),
        progress=screen,
        seed=run.spec.values.seed,
    )
    return replace(found, exists=exist)
