"""The job of a run: train through `dupre.value`, record trainings done elsewhere, return values.

`prepare` makes one from a configuration; the verbs of the command call it and print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from dupre._types import Names
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game.coalitions import format_members, from_names
from dupre.game.estimators import Sample, regression
from dupre.result.covariances import half_widths
from dupre.result.uncertainty import HELD_OUT
from dupre.result.valuation import Valuation
from dupre.runs.config import PER_OWNER, Config
from dupre.runs.parse import Options, parse_options
from dupre.runs.recorded import ExternalResult, check_resampled, check_within, read_results
from dupre.store import fingerprints
from dupre.store.frames import as_frame
from dupre.store.spot_check import Stored
from dupre.store.store import Store
from dupre.tables.columns import Columns
from dupre.training.engines import Dask, Local, OnError
from dupre.training.evaluation import Evaluation, Training, known_evaluations
from dupre.utility.describe import Traits, describe
from dupre.utility.limits import Bounds
from dupre.utility.model import ModelUtility
from dupre.valuation.completion import complete
from dupre.valuation.progress import Display
from dupre.valuation.sameness import Sameness
from dupre.valuation.value import value
from dupre.valuation.valuer import Valuer
from dupre.wording import count_things, join_list, json_text, quote

if TYPE_CHECKING:
    from distributed import Client


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
class Job:
    """A configuration with its data.

    Attributes:
        config: what is asked for.
        options: the same as objects.
        owners: with the rows to train on.
        utility: what is trained.
        model: the preprocessing and the model in words, a line each.
        without_held_rows: owners with too few rows to hold any out.
        caveats: why the values may be worth less than they seem; they stay with the values.
        advice: what to look at before anything is trained.
        columns: what the columns hold; None if trainings are done elsewhere.
        skipped: rows left out and why, in words.
        check: whether to train one stored coalition again before a run goes on.
        accept_model: whether to keep trainings although the model has changed.
    """

    config: Config
    options: Options
    owners: Owners
    utility: ModelUtility | ExternalUtility
    model: tuple[str, ...] = ()
    without_held_rows: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    columns: Columns | None = None
    skipped: tuple[str, ...] = ()
    check: bool = True
    accept_model: bool = False
    _known: dict[str, fingerprints.Origin] = field(default_factory=dict, repr=False)

    @cached_property
    def traits(self) -> Traits:
        """What the utility says of itself."""
        return describe(self.utility)

    @property
    def budget(self) -> int | None:
        """Coalitions to train at most; None if only stop rules end the run."""
        limits, every = self.config.limits, 2**self.owners.n - 1
        if limits.budget is not None:
            return int(min(limits.budget, every))
        return None if self.options.stop is not None else int(min(PER_OWNER * self.owners.n, every))

    def with_semivalues(self, names: Sequence[str]) -> Job:
        """The same trainings, valued in these ways."""
        wanted = replace(self.config.values, semivalues=tuple(dict.fromkeys(names)))
        return self.with_config(replace(self.config, values=wanted))

    def with_config(self, config: Config) -> Job:
        """The same data, with other limits or another machine."""
        return replace(self, config=config, options=parse_options(config))

    def count_trained(self, store: Path) -> int:
        """How many coalitions have a utility in the store, each counted by its members."""
        if not store.exists():
            return 0
        with self._open(store) as kept:
            return sum(bool(kept.utilities(members)) for members in _coalitions(kept))

    def count_known(self, store: Path) -> int:
        """How many coalitions need no training: they have a utility, or failed and are skipped.

        Coalitions that share one training count once, as they do in the budget.
        """
        if not store.exists():
            return 0
        skips = self.config.machine.skip_failures
        with self._open(store) as kept:
            done = [names for names in _coalitions(kept) if skips or kept.utilities(names)]
        identity = Sameness(self.owners.n, self.owners.contents if self.traits.by_content else None)
        rows = [from_names(names, self.owners.names) for names in done]
        return len(set(identity.keys(np.array(rows)))) if rows else 0

    def run(self, store: Path, screen: Display, client: Client | None) -> list[Valuation]:
        """Train until a limit is reached; return the values of all semivalues asked for.

        The first semivalue decides what is trained; the others use the same trainings.
        """
        limits = {"budget": self.budget, "stop": self.options.stop}
        first = self._value(0, store, **limits, engine=self._engine(client), progress=screen)
        known = {"budget": first.evaluated, "engine": Local(on_error=self._on_error)}
        again = replace(self, check=False)
        others = [
            again._value(which, store, **known, progress=False)
            for which in range(1, len(self.options.semivalues))
        ]
        return [self._explain(replace(v, stopped=first.stopped)) for v in (first, *others)]

    def _value(self, which: int, store: Path, **how: Any) -> Valuation:
        wanted = self.config.values
        return value(
            self.owners,
            cast("ModelUtility", self.utility),
            semivalue=self.options.semivalues[which],
            store=self._stored(store),
            estimator=self._estimator,
            kernel=self.options.prior,
            strategy=self.options.strategy,
            repeats=wanted.repeats,
            seed=wanted.seed,
            **how,
        )

    @property
    def _estimator(self) -> Sample | None:
        samples = self.config.values.samples
        return Sample(regression, samples) if samples else None

    @property
    def _on_error(self) -> OnError:
        return "skip" if self.config.machine.skip_failures else "raise"

    def _engine(self, client: Client | None) -> Dask | Local:
        timeout, on_error = self.options.timeout, self._on_error
        if client is not None:
            return Dask(client, timeout=timeout, on_error=on_error)
        return Local(jobs=self.config.machine.jobs, timeout=timeout, on_error=on_error)

    def valuer(self, store: Path) -> Valuer:
        """A valuer of the first semivalue that knows all that is stored."""
        with self._open(store) as kept:
            return self._valuer(kept, 0)

    def _valuer(self, kept: Store, which: int) -> Valuer:
        valuer = Valuer(
            self.owners,
            semivalue=self.options.semivalues[which],
            empty=self.utility.score_of_no_data(),
            estimator=self._estimator,
            kernel=self.options.prior,
            strategy=self.options.strategy,
            by_content=self.traits.by_content,
            floor=self.traits.floor,
            bounds=self.traits.bounds,
            seed=self.config.values.seed,
        )
        for members in _coalitions(kept):
            if utilities := [e.score for _, e in sorted(kept.utilities(members).items())]:
                valuer.record(members, utilities)
            else:
                first = next(iter(kept.failures(members).values()))
                valuer.record_failure(members, first.failure)
        return valuer

    def suggestions(self, store: Path, count: int, pending: Path | None) -> list[Names]:
        """Coalitions to train elsewhere next, without those in the table `pending`."""
        given = [] if pending is None else read_results(pending, self.owners.names)
        return self.valuer(store).suggest(count, pending=[row.members for row in given])

    def record(self, store: Path, given: Sequence[ExternalResult], *, replacing: bool) -> str:
        """Record trainings done elsewhere, all or none, and say in words what was recorded.

        Raises:
            InputError: an unknown owner, or a utility that contradicts a stored one or the bounds.
        """
        for row in given:
            from_names(row.members, self.owners.names)  # refuses unknown owners
            check_within(row, self.traits.bounds)
        failed = [row for row in given if not row.utilities]
        with self._open(store) as kept:
            kept.hold()
            before = set(_coalitions(kept))
            new = [e for row in given for e in _evaluations(row, kept, replacing)]
            kept.record(new, replacing=replacing)
            after = set(_coalitions(kept))
        again = len(before & {row.members for row in given})
        return (
            f"Read: {len(given)} coalition{'s' * (len(given) != 1)}, {len(failed)} failed. New: "
            f"{len(after - before)}. {'Replaced' if replacing else 'Known before'}: {again}. "
            f"In all: {len(after)}."
        )

    def values(self, store: Path, *caveats: str) -> list[Valuation]:
        """The values from what is recorded, without a training, with further caveats."""
        with self._open(store) as kept:
            used, notes, valuations = kept.evaluations(), kept.origin.notes(), []
            known: dict[str, Any] = {"evaluations": as_frame(used), "stale": kept.stale}
            for which in range(len(self.options.semivalues)):
                valuer = self._valuer(kept, which)
                valuation = valuer.values()
                if valuer.designed:
                    widest = float(half_widths(valuation.covariance).max())
                    kept.save_round(valuation.semivalue, valuer.evaluated, {"widest": widest})
                rounds = kept.rounds(valuation.semivalue).items()
                steps = pd.DataFrame([{"evaluated": n, **found} for n, found in rounds])
                valuation = replace(valuation, rounds=steps, **known)
                valuation = complete(
                    valuation,
                    valuer,
                    self.traits,
                    origin=self._origin,
                    used=used,
                    notes=(*notes, *caveats),
                )
                valuations.append(self._explain(valuation))
        return valuations

    def explain_loss(self, last: Valuation) -> str:
        """Why trainings of an earlier result are not valid now."""
        every = fingerprints.changed_owners(last.provenance, self._origin)
        gone = join_list(quote(name) for name in every if name not in self.owners.names)
        other = join_list(quote(name) for name in every if name in self.owners.names)
        found = [f"the data no longer hold {gone}"] * bool(gone)
        found += [f"the rows of {other} are no longer those of then"] * bool(other)
        return " and ".join(found) or "the store has changed"

    def accept_rows(self, store: Path, lost: int) -> None:
        """Note permanently that the user goes on without trainings whose rows have changed."""
        lost_ones = f"{count_things(lost, 'coalition')} of the result before"
        text = f"Accepted: without {lost_ones}, whose rows or whose store changed"
        with self._open(store) as kept:
            kept.origin.note("rows", text)

    def _explain(self, valuation: Valuation) -> Valuation:
        """Add the commands, what utility means, the model in words and the caveats."""
        before = valuation.provenance
        commands = {"commands": "\n".join(self.config.history.commands)}
        meaning = {"meaning": self.meaning}
        if self.held_out:
            meaning[HELD_OUT] = self.held_out
        provenance = {"history": commands, "utility": meaning, **before}
        provenance["data"] = {"columns": json_text(self.column_names)}
        if self.model:
            provenance["settings"] = {**before["settings"], "model": "; ".join(self.model)}
        caveats = tuple(dict.fromkeys((*valuation.caveats, *self.caveats)))
        return replace(valuation, provenance=provenance, caveats=caveats)

    @property
    def column_names(self) -> list[str]:
        """The columns of the rows to train on, in their order."""
        return [str(name) for name in self.owners.columns or ()]

    @property
    def meaning(self) -> str:
        """What a utility is."""
        target = self.config.data.target
        if isinstance(self.utility, ExternalUtility):
            return f"the score of a model for {target}, as recorded from trainings done elsewhere"
        rows = count_things(len(self.utility.y_val), "validation row")
        return f"the score ({self.metric}) on {rows} of a model that predicts {target}"

    @property
    def held_out(self) -> str:
        """Which part of the rows models are scored on, in words; "" if they are not held out."""
        wanted = self.config.utility
        if wanted.validation or isinstance(self.utility, ExternalUtility):
            return ""
        part = f"{100 * wanted.holdout:g} % of each owner's rows, stratified"
        return f"{part} (seed {self.config.values.seed})"

    @property
    def metric(self) -> str:
        """The metric by the name that was asked for, or the default."""
        return self.config.utility.metric or str(cast("ModelUtility", self.utility).metric)

    @property
    def _origin(self) -> fingerprints.Origin:
        """What utilities come from, computed once for all jobs with these data."""
        if not self._known:
            contents = fingerprints.of_owners(self.owners, renew=False)  # read just now
            self._known["origin"] = fingerprints.origin(self.owners, self.traits, contents)
        return self._known["origin"]

    def _stored(self, store: Path) -> Stored:
        return Stored(store, check=self.check, accept_model=self.accept_model)

    def _open(self, store: Path) -> Store:
        return Store(self._origin, self._stored(store))


def _evaluations(row: ExternalResult, store: Store, replacing: bool) -> list[Evaluation]:
    """What to store of a result."""
    if not replacing and (both := store.contradiction(row.members, row.utilities)):
        raise InputError(
            f"{both[0]!r} is given for {format_members(row.members)}, but {both[1]!r} is recorded; "
            "leave it out, or correct what is recorded with --replace"
        )
    if not replacing:
        check_resampled(row, store.utilities(row.members))
    if row.utilities:
        return known_evaluations(row.members, row.utilities)
    tried = [] if replacing else [e.training.attempt for e in store.failures(row.members).values()]
    training = Training(row.members, attempt=1 + max(tried, default=0))
    return [Evaluation(training, None, failure=row.failure, worker="known")]


def _coalitions(store: Store) -> list[Names]:
    return [members for members in store.coalitions() if members]
