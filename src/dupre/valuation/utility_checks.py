"""Checks of a utility before its first training: how it is called, whose rows it trains on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dupre.checks import takes
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.store import fingerprints
from dupre.utility.model import ModelUtility, Utility
from dupre.valuation.stopping import Rule


def check_utility(
    utility: Utility,
    owners: Owners,
    contents: Callable[[], dict[str, str]],
    alone: Rule | None,
) -> None:
    """Raise InputError if every training would fail, be of other rows, or lead to no end.

    Args:
        utility: what is to be trained.
        owners: to be valued.
        contents: gives the fingerprint of each owner's rows.
        alone: the stop rule, if nothing else ends the run.
    """
    if not callable(utility):
        raise InputError(f"utility must be callable(members) -> float, got {utility!r}")
    theirs = getattr(utility, "owners", owners)
    other = theirs is not owners and isinstance(theirs, Owners)
    if other and fingerprints.of_owners(theirs) != contents():
        raise InputError("the utility was built on other owners than those to be valued")
    if hasattr(utility, "training_seed"):
        _check_seeds(utility, owners)
    elif not takes(utility, owners.names):
        raise InputError(
            "utility must be callable(members) -> float with the tuple of owner names as its only "
            f"argument, but it takes {inspect.signature(utility)}; write def utility(members)"
        )
    if alone is not None and alone.resamples and not _has_resamples(utility):
        raise alone.error_without_resamples()


def _has_resamples(utility: object) -> bool:
    """Whether utilities may be known on resamples of the validation rows."""
    if isinstance(utility, ModelUtility):
        return utility.resamples > 0 and utility.equal_rows.counted > 1
    return bool(getattr(utility, "uses_validation", True))


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
