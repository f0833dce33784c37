"""The job of a run: train through `dupre.value`, take in trainings done elsewhere, tell values.

`prepare` makes one from a configuration; verbs only call it and print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from dupre._types import Names
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game.coalitions import format_members, from_names, to_names
from dupre.result.valuation import Valuation, half_widths
from dupre.runs import parse, recorded
from dupre.runs.config import Config
from dupre.runs.recorded import Result
from dupre.training import identity
from dupre.training.evaluation import Evaluation, Training
from dupre.training.frames import as_frame
from dupre.training.settings import restate
from dupre.training.store import Store
from dupre.utility.adapters import names_in
from dupre.utility.model import ModelUtility
from dupre.valuation.duplicates import Identity
from dupre.valuation.progress import Display
from dupre.valuation.value import value
from dupre.valuation.valuer import Valuer

if TYPE_CHECKING:
    from distributed import Client

PER_OWNER = 6
"""Trainings per owner if no limit is asked for."""


@dataclass(frozen=True)
class Elsewhere:
    """In the place of a utility whose trainings are done elsewhere: that of no data is known."""

    empty: float
    fingerprint = "trained elsewhere"


@dataclass(frozen=True)
class Job:
    """A configuration with its data.

    Attributes:
        config: what is asked for.
        owners: whose rows, those held out left out.
        utility: what is trained.
        model: the preprocessing and the model in words, a line each.
        keeping: owners with too few rows to hold any out.
        caveats: what makes the values less than they seem.
    """

    config: Config
    owners: Owners
    utility: ModelUtility | Elsewhere
    model: tuple[str, ...] = ()
    keeping: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def budget(self) -> int | None:
        """Coalitions to train at most; None if only rules end the run."""
        limits, every = self.config.limits, 2**self.owners.n - 1
        if limits.budget is not None:
            return int(min(limits.budget, every))
        return None if limits.until or limits.time else int(min(PER_OWNER * self.owners.n, every))

    def members(self, text: str) -> Names:
        """The owners in a text such as "A,C", or in a JSON list if their names hold commas."""
        if text in self.owners.names:
            return (text,)
        if text.startswith("["):
            names = names_in(text)
        else:
            names = tuple(filter(None, map(str.strip, text.split(","))))
        if not names:
            raise InputError(f"--members {text!r} names no owner; expected such as A,C")
        return to_names(from_names(names, self.owners.names), self.owners.names)

    def trained(self, store: Path) -> int:
        """Coalitions that have a utility already, each by its members."""
        if not store.exists():
            return 0
        with self._opened(store) as kept:
            return sum(bool(kept.utilities(members)) for members in _coalitions(kept))

    def evaluated(self, store: Path) -> int:
        """Coalitions that need no training: they have a utility, or failed and are skipped.

        Those that one training serves count once, as they do in the budget.
        """
        if not store.exists():
            return 0
        skips = self.config.machine.skip_failures
        identity = Identity(self.owners.n, self.owners.contents if self._by_content else None)
        with self._opened(store) as kept:
            done = [names for names in _coalitions(kept) if skips or kept.utilities(names)]
        rows = [from_names(names, self.owners.names) for names in done]
        return len(set(identity.keys(np.array(rows)))) if rows else 0

    def run(self, store: Path, screen: Display, client: Client | None) -> list[Valuation]:
        """Train until a limit is reached; values of all semivalues asked for.

        The first semivalue decides what is trained; the others are found from the same trainings.
        """
        limits, machine = self.config.limits, self.config.machine
        first = self._valued(
            0,
            store,
            budget=self.budget,
            stop=parse.rule(limits.until, limits.time),
            n_jobs=machine.jobs,
            client=client,
            timeout=parse.seconds(machine.timeout, "--timeout") if machine.timeout else None,
            progress=screen,
        )
        count = len(self.config.values.semivalues)
        others = [
            replace(
                self._valued(which, store, budget=first.evaluated, progress=False),
                stopped=first.stopped,
            )
            for which in range(1, count)
        ]
        return [self._told(v) for v in (first, *others)]

    def _valued(self, which: int, store: Path, **how: Any) -> Valuation:
        wanted = self.config.values
        return value(
            self.owners,
            cast("ModelUtility", self.utility),
            semivalue=parse.semivalue(wanted.semivalues[which]),
            store=store,
            on_error="skip" if self.config.machine.skip_failures else "raise",
            samples=wanted.samples,
            repeats=wanted.repeats,
            seed=wanted.seed,
            **how,
        )

    def valuer(self, store: Path) -> Valuer:
        """Ask / tell for the first semivalue, with all that is stored."""
        with self._opened(store) as kept:
            return self._informed(kept, 0)

    def _informed(self, kept: Store, which: int) -> Valuer:
        wanted = self.config.values
        valuer = Valuer(
            self.owners,
            semivalue=parse.semivalue(wanted.semivalues[which]),
            empty=self.utility.empty,
            samples=wanted.samples,
            by_content=self._by_content,
            seed=wanted.seed,
        )
        for members in _coalitions(kept):
            if utilities := [e.utility for _, e in sorted(kept.utilities(members).items())]:
                valuer.record(members, cast("list[float]", utilities))
            else:
                failures = list(kept.failures(members).values())
                valuer.record_failure(members, failures[0].failure)
        return valuer

    def suggestions(self, store: Path, count: int, pending: Path | None) -> list[Names]:
        """Coalitions to train elsewhere, but for those `pending` in a table made before."""
        given = [] if pending is None else recorded.read(pending)
        return self.valuer(store).suggest(count, pending=[row.members for row in given])

    def record(self, store: Path, given: Sequence[Result], *, replacing: bool) -> str:
        """Take in trainings done elsewhere, all or none; what was taken, in words.

        Raises:
            InputError: an unknown owner, or a utility that contradicts a stored one.
        """
        for row in given:
            from_names(row.members, self.owners.names)  # refuses what is no coalition of ours
        failed = [row for row in given if not row.utilities]
        with self._opened(store) as kept:
            before = set(_coalitions(kept))
            new = [e for row in given for e in _evaluations(row, kept, replacing)]
            kept.record(new, replacing=replacing)
            after = set(_coalitions(kept))
        again = len(before & {row.members for row in given})
        return (
            f"Read: {len(given)} coalitions, {len(failed)} of them failed. New: "
            f"{len(after - before)}. {'Replaced' if replacing else 'Known before'}: {again}. "
            f"In all: {len(after)}."
        )

    def values(self, store: Path) -> list[Valuation]:
        """Values from what is recorded, without a training."""
        with self._opened(store) as kept:
            known: dict[str, Any] = {
                "evaluations": as_frame(kept.evaluations()),
                "stale": kept.stale,
                "provenance": identity.provenance(self.config.values.seed, *self._identity),
            }
            found = []
            for which in range(len(self.config.values.semivalues)):
                valuer = self._informed(kept, which)
                valuation = valuer.values()
                if valuer.designed:
                    widest = float(half_widths(valuation.covariance).max())
                    kept.save_round(valuation.semivalue, valuer.evaluated, {"widest": widest})
                rounds = kept.rounds(valuation.semivalue).items()
                steps = pd.DataFrame([{"evaluated": n, **told} for n, told in rounds])
                found.append(self._told(replace(valuation, rounds=steps, **known)))
        return found

    def accept(self, store: Path) -> None:
        """Keep the stored trainings although the code of the model or the metric has changed."""
        if store.exists():
            restate(store, self._identity[0], ("utility", "model", "metric"))

    def _told(self, valuation: Valuation) -> Valuation:
        """With the commands, and what utility means in the words of the mediator."""
        commands = {"commands": "\n".join(self.config.history.commands)}
        told = {"history": commands, "utility": {"meaning": self.meaning}, **valuation.provenance}
        if self.model:
            told["settings"] = {**valuation.provenance["settings"], "model": "; ".join(self.model)}
        return replace(valuation, provenance=told, caveats=(*valuation.caveats, *self.caveats))

    @property
    def meaning(self) -> str:
        """What a utility is."""
        target = self.config.data.target
        if isinstance(self.utility, Elsewhere):
            return f"the score of a model for {target}, as recorded from trainings done elsewhere"
        rows = f"{len(self.utility.y_val):,} validation rows"
        return f"the score ({self.metric}) on {rows} of a model that predicts {target}"

    @property
    def metric(self) -> str:
        """What models are scored by, as it was asked for or by default."""
        return self.config.utility.metric or str(cast("ModelUtility", self.utility).metric)

    @property
    def _by_content(self) -> bool:
        """Whether coalitions that hold the same rows are one; those trained elsewhere are not."""
        return isinstance(self.utility, ModelUtility) and self.utility.by_content

    @cached_property
    def _identity(self) -> tuple[dict[str, identity.Part], dict[str, str]]:
        return identity.of_utility(self.utility), identity.of_owners(self.owners)

    def _opened(self, store: Path) -> Store:
        return Store(store, *self._identity)


def _evaluations(row: Result, store: Store, replacing: bool) -> list[Evaluation]:
    """What is to be kept of a result."""
    if not replacing and (both := store.contradiction(row.members, row.utilities)):
        raise InputError(
            f"{both[0]!r} is given for {format_members(row.members)}, but {both[1]!r} is recorded; leave it "
            "out, or put right what was wrong with --replace"
        )
    if row.utilities:
        several = enumerate(row.utilities)
        return [Evaluation(Training(row.members, r), u, worker="known") for r, u in several]
    tried = [] if replacing else [e.training.attempt for e in store.failures(row.members).values()]
    training = Training(row.members, attempt=1 + max(tried, default=0))
    return [Evaluation(training, None, failure=row.failure, worker="known")]


def _coalitions(store: Store) -> list[Names]:
    return [members for members in store.coalitions() if members]
