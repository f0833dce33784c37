"""A run: what is asked for, with its data, what is trained, and both in words.

`prepare` makes one from a spec; `values` trains and values it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np

from dupre._types import Names
from dupre.checks import Bounds, check_empty_within
from dupre.data.owners import Owners
from dupre.notes import Note
from dupre.result.remarks import with_notes
from dupre.result.valuation import Valuation
from dupre.runs.parse import AnyRule, Choices, parse_choices
from dupre.spec import PER_OWNER, Spec
from dupre.store.origin import Origin, of_owners, origin_of
from dupre.store.store import Store, Stored
from dupre.tables.features import Columns
from dupre.tables.numbers import Forms, write_forms
from dupre.utility.describe import Traits, describe
from dupre.utility.model import ModelUtility
from dupre.wording import count_things, json_text

NEARLY_ALL = 0.9
"""Part of all coalitions from which on the default budget is all of them."""


@dataclass(frozen=True)
class ExternalUtility:
    """A utility whose trainings are done elsewhere; only that of no data is known."""

    empty: float
    floor: float | None = None
    bounds: Bounds | None = None
    fingerprint = "trained elsewhere"

    def score_of_no_data(self) -> float:
        """The utility of no data."""
        return self.empty


@dataclass(frozen=True)
class Run:
    """A spec with its data.

    Attributes:
        spec: what is asked for.
        choices: the objects that it names.
        owners: with the rows to train on.
        utility: what is trained.
        cohorts: owners who joined together, the first first; none if that is not stated.
        model: the preprocessing and the model in words, a line each.
        notes: what the data make worth knowing; they stay with the values.
        columns: what the columns hold; None if trainings are done elsewhere.
        forms: how numbers and dates are written, by column.
        skipped: rows left out and why, in words.
        spot_check: whether to train one stored coalition again before a run goes on.
        accept_model: whether to keep trainings although the model has changed.
        revalidate: whether the owners' rows are split anew for validation.
        cap: coalitions to train at most, whatever the spec says; None if that counts.
    """

    spec: Spec
    choices: Choices
    owners: Owners
    utility: ModelUtility | ExternalUtility
    cohorts: tuple[Names, ...] = ()
    model: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    columns: Columns | None = None
    forms: Forms = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    spot_check: bool = True
    accept_model: bool = False
    revalidate: bool = False
    cap: int | None = None
    _computed: dict[str, Origin] = field(default_factory=dict, repr=False)

    @cached_property
    def traits(self) -> Traits:
        """What the utility says of itself."""
        return describe(self.utility)

    @property
    def semivalues(self) -> tuple[AnyRule, ...]:
        """What is to be valued by: Shapley values by order of joining, if that is stated."""
        return self.choices.by_joining(self.cohorts)

    def check_empty(self) -> None:
        """Raise InputError if no data have a utility outside the bounds, raised to the floor."""
        empty, floor = self.utility.empty, self.traits.floor
        check_empty_within(empty if floor is None else max(empty, floor), self.traits.bounds)

    @property
    def budget(self) -> int | None:
        """Coalitions to train at most; None if only stop rules end the run."""
        limits = self.spec.limits
        if self.cap is not None:
            return self.cap
        if limits.budget is not None:
            return int(min(limits.budget, 2**self.owners.n - 1))
        return None if self.choices.stop is not None else usual_budget(self.owners.n)

    def with_semivalues(self, names: Sequence[str]) -> Run:
        """The same trainings, valued in these ways."""
        return self.with_spec(self.spec.change(semivalues=tuple(dict.fromkeys(names))))

    def with_spec(self, spec: Spec) -> Run:
        """The same data, with other limits or another machine."""
        return replace(self, spec=spec, choices=parse_choices(spec))

    def after(self, command: str) -> Run:
        """The same, with one more command in its history."""
        spec = self.spec.after(command, tuple(self.column_names), write_forms(self.forms))
        return replace(self, spec=spec)

    def explain(self, valuation: Valuation) -> Valuation:
        """Add the commands, what utility means, the model in words and the notes on the data."""
        before = valuation.facts.provenance
        commands = {"commands": "\n".join(self.spec.history.commands)}
        meaning = {"meaning": self.meaning}
        if self.split:
            meaning["validation"] = self.split
        provenance = {"history": commands, "utility": meaning, **before}
        columns = json_text(self.column_names)
        provenance["data"] = {"columns": columns, "target": self.spec.data.target}
        if self.model:
            provenance["settings"] = {**before["settings"], "model": "; ".join(self.model)}
        return with_notes(valuation.with_facts(provenance=provenance), self.notes)

    @property
    def column_names(self) -> list[str]:
        """The columns of the rows to train on, in their order."""
        return [str(name) for name in self.owners.columns or ()]

    @property
    def trained(self) -> ModelUtility:
        """The utility of a run whose models are trained here."""
        return cast("ModelUtility", self.utility)

    @property
    def meaning(self) -> str:
        """What a utility is."""
        target = self.spec.data.target
        if self.spec.is_external:
            return f"the score of a model for {target}, as recorded from trainings done elsewhere"
        rows = count_things(self.traits.validation_rows, "validation row")
        return f"the score ({self.metric}) on {rows} of a model that predicts {target}"

    @property
    def split(self) -> str:
        """How the owners' rows are split for validation, in words; "" if they are not."""
        wanted, seed = self.spec.utility, f"seed {self.spec.values.seed}"
        if wanted.validation or self.spec.is_external:
            return ""
        if wanted.holdout is not None:
            return f"{100 * wanted.holdout:g} % of the rows held out ({seed})"
        if wanted.folds_in_time:
            return f"{self.traits.folds} folds in time, by {wanted.folds_in_time}"
        by = f" by {wanted.folds_by}" if wanted.folds_by else ""
        counted, rows = self.traits.validation_rows, len(self.trained.y_val)
        every = "every row" if self._all_validate else "every row of the beginning"
        which = f"{every} validates" if counted == rows else f"{counted:,} of {rows:,} rows count"
        return f"{self.traits.folds} folds{by} ({seed}), {which} once"

    @property
    def _all_validate(self) -> bool:
        fixed, rows = self.traits.fixed, self.owners.row_contents[:, 0]
        return fixed is None or bool(np.isin(rows, fixed.rows).all())

    @property
    def metric(self) -> str:
        """The metric by the name that was asked for, or the default."""
        return self.spec.utility.metric or self.trained.metric.name

    @property
    def origin(self) -> Origin:
        """What utilities come from, computed once for all runs of these data."""
        if not self._computed:
            contents = of_owners(self.owners, renew=False)  # read just now
            self._computed["origin"] = origin_of(self.owners, self.traits, contents)
        return self._computed["origin"]

    def stored(self, store: Path) -> Stored:
        """The store of the run, with what may be done to it."""
        return Stored(
            store,
            check=self.spot_check,
            accept_model=self.accept_model,
            revalidate=self.revalidate,
        )

    def open(self, store: Path) -> Store:
        """The trainings of these data that are stored; who looks at them splits nothing anew."""
        kept = Store(self.origin, replace(self.stored(store), revalidate=False))
        kept.score_again(self.traits)
        return kept


def usual_budget(n: int) -> int:
    """Coalitions of n owners to train at most unless something else is stated."""
    every, usual = 2**n - 1, PER_OWNER * n
    # 30 of 31 would leave a predictor and its caveats for the sake of one training.
    return int(every if usual >= NEARLY_ALL * every else usual)
