"""Where utilities come from: what trains them, and what is known of them already.

`dupre.value` and `dupre.quote` begin with it: everything is checked before anything is trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from dupre._types import Names
from dupre.data.owners import Owners
from dupre.store.origin import has_contents, of_owners
from dupre.store.store import Stored
from dupre.utility.adapters import Known, known_scores
from dupre.utility.describe import Traits, check_known_empty, check_utility, describe
from dupre.utility.protocol import Utility
from dupre.valuation.valuer import Valuer


@dataclass(frozen=True)
class Source:
    """A utility of some owners, and what is known of it.

    Attributes:
        owners: whose rows.
        traits: of the utility.
        empty: utility of no data; None if the utility must be asked for it.
        stored: the store and its options; None for one in memory.
        given: what is known from elsewhere, as it was given.
    """

    owners: Owners
    traits: Traits
    empty: float | None
    stored: Stored | None
    given: Known | None

    @cached_property
    def contents(self) -> dict[str, str]:
        """Fingerprints of the owners' rows, computed once: rows may change between calls."""
        return of_owners(self.owners)

    @cached_property
    def known(self) -> Mapping[Names, tuple[float, ...]]:
        """What is known from elsewhere and is of these rows: scores by coalition."""
        found = known_scores(self.given, partial(has_contents, lambda: self.contents))
        check_known_empty(found.get((), ()), self.empty)
        return found

    def with_owners(self, owners: Owners) -> Source:
        """The same of other owners, on the same validation rows."""
        traits = check_utility(describe(self.traits.for_owners(owners)), owners)
        return Source(owners, traits, self.empty, self.stored, self.given)

    def valuer(self, **question: Any) -> Valuer:
        """A valuer of these owners that is asked this, and knows what is known from elsewhere."""
        if self.stored is not None:
            _ = self.contents  # the valuer needs the same digests
        valuer = Valuer(
            self.owners,
            empty=0.0 if self.empty is None else self.empty,
            by_content=self.traits.by_content,
            floor=self.traits.floor,
            bounds=self.traits.bounds,
            **question,
        )
        for members in filter(None, self.known):
            valuer.record(members, self.known[members])
        return valuer


def source_of(
    owners: Owners,
    utility: Utility,
    *,
    empty: float | None,
    known: Known | None,
    store: str | Path | Stored | None,
) -> Source:
    """The same, checked: the arguments of `dupre.value`."""
    stored = store if isinstance(store, Stored) or store is None else Stored(store)
    if stored is not None:
        utility = stored.validate(utility)
    traits = check_utility(describe(utility), owners)
    return Source(owners, traits, traits.empty_unless(empty), stored, known)
