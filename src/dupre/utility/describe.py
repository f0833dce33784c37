"""What a utility says of itself, asked once: `describe` makes the `Traits` that all others read.

A utility is any callable from owner names to a number. It may say more by attributes, each of them
optional; this module and `protocol` alone look for them:

| attribute | what it says |
|---|---|
| `bounds`, `floor` | between which numbers utilities lie, and the lowest one that counts |
| `owners` | whose rows it trains on |
| `training_seed(members, repeat)` | the seed of a training; calls then have `repeat=` |
| `seeded` | False: that seed changes nothing |
| `is_trained(members)` | False: the utility of these needs no model |
| `uses_validation` | False: there are no validation rows whose choice would matter |
| `fingerprint` | what it depends on besides the members' rows |
| `to_send()` | a smaller copy for other processes |

A `ModelUtility` knows more: the utility of no data, whether rows alone decide, its resamples.
"""

from __future__ import annotations

import inspect
import textwrap
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from dupre._types import Floats, Names
from dupre.checks import UNBOUNDED, Bounds, check_bounds, finite, takes
from dupre.data.digests import (
    digest,
    digests_of_owners,
    digests_of_rows,
    hash_json,
    stated_fingerprint,
)
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.metrics import Metric
from dupre.utility.folds import Folds, Holdout, Validating, decided_in_words
from dupre.utility.model import ModelUtility
from dupre.utility.protocol import takes_seed, training_seed
from dupre.utility.score import Score, check_score
from dupre.utility.validation import ValidationRows


@dataclass(frozen=True)
class Part:
    """One part of what a utility depends on besides the owners' rows."""

    description: str
    digest: str


@dataclass(frozen=True, eq=False)
class Traits:
    """What a utility says of itself.

    Attributes:
        utility: the callable itself.
        bounds: between which numbers utilities lie.
        floor: the lowest utility that counts; None if there is none.
        by_content: whether the members' rows alone decide, not their names.
        takes_seed: whether each training has a seed.
        seeded: whether that seed may change a utility.
        deterministic: whether trainings use no random numbers; None if it is not known.
        uses_validation: whether another choice of validation rows may change utilities.
        resamples: of the validation rows that a utility knows its score on; None if that is not
            known.
        validation: rows that models are scored on; None if they are not known.
        folds: trainings that one evaluation takes.
        deals: whether a repeat splits the owners' rows anew, the same way for all coalitions.
        deals_rows: whether it then scores on other rows, too.
        in_parts: whether a training for each fold gives a part of the utility.
        pooled: whether these parts are predictions, which tell the score on fewer rows.
        fixed: the owners' rows that may validate; None if others do.
    """

    utility: Any
    bounds: Bounds = UNBOUNDED
    floor: float | None = None
    by_content: bool = False
    takes_seed: bool = False
    seeded: bool = False
    deterministic: bool | None = None
    uses_validation: bool = True
    resamples: int | None = None
    validation: ValidationRows | None = None
    folds: int = 1
    deals: bool = False
    deals_rows: bool = False
    in_parts: bool = False
    pooled: bool = False
    fixed: Validating | None = None

    @property
    def validation_rows(self) -> int:
        """Validation rows that count, copies of a row as one; 0 if they are not known."""
        return 0 if self.validation is None else self.validation.counted

    @property
    def may_resample(self) -> bool:
        """Whether utilities may be known on resamples of the validation rows."""
        if self.resamples is None:
            return self.uses_validation
        return self.resamples > 0 and self.validation_rows > 1

    @property
    def usual_repeats(self) -> int | None:
        """Trainings of a coalition unless stated; None for one, and a second one of some."""
        chance = self.seeded or self.deterministic is False or self.deals
        return None if chance else 1

    def empty_unless(self, stated: float | None) -> float | None:
        """The stated utility of no data, or that of the utility; None if it must be asked for.

        Raises:
            InputError: it is no number, or below the floor. Raising it to the floor would change
                what was stated without a word.
        """
        if stated is None:
            return self.empty
        if self.floor is not None and check_score(stated, "empty") < self.floor:
            raise InputError(
                f"no data are stated to score {stated:g}, but the floor of the utility is "
                f"{self.floor:g}: lower scores count as that; state empty= to the ModelUtility, "
                "whose floor follows it, or give it another floor="
            )
        return check_score(stated, "empty")

    @cached_property
    def empty(self) -> Score | None:
        """The utility of no data; None if the utility must be asked for it."""
        known = isinstance(self.utility, ModelUtility)
        return self.utility.score_of_no_data() if known else None

    @cached_property
    def fingerprint(self) -> dict[str, Part]:
        """What the utility of a coalition depends on besides its rows, part by part."""
        return _fingerprint(self.utility)

    def for_owners(self, owners: Owners) -> Any:
        """The utility of other owners, on the same validation rows; a callable knows them all."""
        known = isinstance(self.utility, ModelUtility)
        return self.utility.with_owners(owners) if known else self.utility

    def is_trained(self, members: Names) -> bool:
        """Whether a coalition's utility comes from a model."""
        return not hasattr(self.utility, "is_trained") or self.utility.is_trained(members)

    def pool(self, parts: Sequence[Floats], repeat: int) -> Score:
        """The utility that follows from the trainings for all folds."""
        found: Score = self.utility.pool(parts, repeat=repeat)
        return found

    def training_seed(self, members: Names, repeat: int) -> int | None:
        """The seed of a training; None if it has none."""
        return training_seed(self.utility, members, repeat)


def describe(utility: object) -> Traits:
    """What a utility says of itself."""
    bounds, floor = (getattr(utility, name, None) for name in ("bounds", "floor"))
    has_seed = takes_seed(utility)
    found = Traits(
        utility,
        bounds=UNBOUNDED if bounds is None else check_bounds(bounds),
        floor=None if floor is None else finite(floor, "floor"),
        takes_seed=has_seed,
        seeded=has_seed and bool(getattr(utility, "seeded", True)),
        uses_validation=bool(getattr(utility, "uses_validation", True)),
    )
    return _describe_model(found, utility) if isinstance(utility, ModelUtility) else found


def _describe_model(found: Traits, utility: ModelUtility) -> Traits:
    dealt = utility.first_deal
    return replace(
        found,
        by_content=utility.by_content,
        deterministic=utility.deterministic,
        resamples=utility.resamples,
        validation=ValidationRows(
            *(dealt.X, dealt.y, utility.owners, utility.metric, utility.equal_rows),
            None if dealt.row is None else dealt,
        ),
        folds=len(dealt.tests),
        deals=utility.deals,
        deals_rows=isinstance(utility.validation, Holdout),
        in_parts=utility.in_parts,
        pooled=utility.in_parts and utility.metric.is_pooled,
        fixed=utility.validating if isinstance(utility.validation, (Folds, Holdout)) else None,
    )


def validate_by(utility: Any, rows: Validating) -> Any:
    """The utility with these of the owners' rows to score on; as it is if it does not split them.

    Raises:
        InputError: it keeps to other rows.
    """
    split = getattr(utility, "validation", None)
    if not (isinstance(utility, ModelUtility) and isinstance(split, (Folds, Holdout))):
        return utility
    if split.rows is None:
        return utility.with_validating(rows)
    if split.rows.key != rows.key:
        raise InputError(
            "the store was made for other validation rows than those that this utility keeps to; "
            "take the utility of then and its with_owners, or split anew with "
            "store=dupre.Stored(FILE, revalidate=True)"
        )
    return utility


def check_utility(traits: Traits, owners: Owners) -> Traits:
    """The same; InputError if every training would fail, or be of other rows than the owners'."""
    utility = traits.utility
    if not callable(utility):
        raise InputError(f"utility must be callable(members) -> float, got {utility!r}")
    theirs = getattr(utility, "owners", owners)
    # The same rows in another object will do: a notebook builds owners again.
    if theirs is not owners and isinstance(theirs, Owners) and _rows(theirs) != _rows(owners):
        raise InputError("the utility was built on other owners than those to be valued")
    if traits.takes_seed:
        _check_seeds(utility, owners)
    elif not takes(utility, owners.names):
        raise InputError(
            "utility must be callable(members) -> float with the tuple of owner names as its only "
            f"argument, but it takes {inspect.signature(utility)}; write def utility(members)"
        )
    return traits


def _rows(owners: Owners) -> tuple[Any, dict[str, Any]]:
    """What rows there are, and whose; computed anew, in case they were changed in place."""
    owners.renew_contents()
    held = zip(owners.rows.tolist(), owners.contents.tolist(), strict=True)
    names = None if owners.columns is None else list(map(repr, owners.columns))
    return names, dict(zip(owners.names, held, strict=True))


def _check_seeds(utility: Any, owners: Owners) -> None:
    """Raise InputError if a utility with seeds cannot be asked for one, or be told a repeat."""
    if not takes(utility, owners.names, repeat=0):
        raise InputError(
            "a utility with training_seed is called as utility(members, repeat=0), but it takes "
            f"{inspect.signature(utility)}; let it take repeat=, or remove training_seed"
        )
    expected = "training_seed(members, repeat) of the utility must return a whole number"
    try:
        seed = utility.training_seed(owners.names, 0)
    except Exception as cause:  # the user's code may raise anything
        raise InputError(f"{expected}, but it failed: {type(cause).__name__}: {cause}") from cause
    try:
        int(seed)
    except (TypeError, ValueError, OverflowError) as cause:
        raise InputError(f"{expected}, got {seed!r:.80}") from cause


def check_known_empty(known: Sequence[float], empty: float | None) -> None:
    """Raise InputError if no data have another utility among what is known than by `empty`.

    Args:
        known: utilities that `known=` has for no data; may be none.
        empty: that of the ModelUtility, or stated; None if the known ones count.
    """
    others = [utility for utility in known if utility != empty]
    if empty is not None and others:
        raise InputError(
            f"known= has the utility {others[0]!r} for no data, (), but it is {empty!r} by the "
            "ModelUtility or by empty=, which would count; leave () out of known=, or state that "
            "number as empty= to the ModelUtility, or to dupre.value for another utility"
        )


def _fingerprint(utility: Any) -> dict[str, Part]:
    """The parts of the utility's `fingerprint`: a text, or a mapping from names to parts.

    Without a fingerprint the utility counts by the source of its call; what it holds is its state,
    a hint: it may be a count of calls.
    """
    stated = stated_fingerprint(utility)
    if isinstance(stated, Mapping):  # a subclass may use the same parts differently
        parts = {"utility": type(utility), **stated}
        return {str(name): Part(_in_words(part), _digest(part)) for name, part in parts.items()}
    if stated is not None:
        return {"utility": Part(_in_words(stated), digest(stated))}
    # What a callable holds may be a count of its own calls: it is a hint, not a part to refuse by.
    code, state = _code_and_state(utility)
    held = Part("what the utility holds", digest(state))
    return {"utility": Part(_in_words(utility), digest(code)), "state": held}


def _code_and_state(utility: Any) -> tuple[Any, Any]:
    """What a callable does, by its source, and what it holds."""
    if isinstance(utility, types.FunctionType):
        held = []
        with suppress(ValueError):  # one is not assigned yet
            held = [cell.cell_contents for cell in utility.__closure__ or ()]
        return utility, [held, utility.__defaults__, utility.__kwdefaults__, vars(utility)]
    if isinstance(utility, types.MethodType):
        return [utility.__func__, type(utility.__self__)], utility.__self__
    if isinstance(utility, (partial, type)):
        return utility, None
    return [type(utility), type(utility).__call__], utility


def _digest(part: Any) -> str:
    """The digest of a part; rows and their targets count by value, in any order."""
    if not _is_rows(part):
        return digest(part)
    X, y = part
    rows = digests_of_rows(X, y)
    total = digests_of_owners(rows, np.zeros(len(y), dtype=np.int64), 1).tolist()
    names = list(map(repr, X.columns)) if isinstance(X, pd.DataFrame) else None
    return hash_json([names, len(y), total]).hex()[:32]


def _is_rows(part: Any) -> bool:
    """Whether a part is rows X with targets y."""
    return isinstance(part, tuple) and len(part) == 2 and isinstance(part[1], np.ndarray)


def _in_words(part: Any) -> str:
    """A part in words, for messages that say what differs."""
    if isinstance(part, str):
        text = part
    elif isinstance(part, Metric):
        text = part.name
    elif _is_rows(part):
        text = f"{len(part[1])} rows"
    elif isinstance(part, types.FunctionType):
        text = f"the function {part.__qualname__}"
    elif isinstance(part, list) and part[:1] in (["folds"], ["held out"]):
        text = decided_in_words(part)
    elif " at 0x" in repr(part):  # an address is another one in every process
        text = f"a {type(part).__qualname__}"
    elif isinstance(part, type):
        text = part.__qualname__
    else:
        text = repr(part)
    return textwrap.shorten(" ".join(text.split()), 300, placeholder=" …")
