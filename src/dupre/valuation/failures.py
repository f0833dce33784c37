"""Messages about failed trainings and warnings, and how to resume a run that was stopped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from dupre._types import Names
from dupre.errors import EngineError, EvaluationError, Interrupted, Remedy, StoreError
from dupre.game.coalitions import format_members
from dupre.store.store import Store
from dupre.training.evaluation import Evaluation
from dupre.valuation.valuer import Valuer
from dupre.wording import count_things


def evaluation_error(
    failed: Evaluation, valuer: Valuer, store: Store, *, skip: bool, every: bool
) -> EvaluationError:
    """The error that ends a run at a failed training; `every`, if all so far have failed."""
    names = failed.training.members
    if names:
        count = f"; all {len(valuer.failures)} evaluations so far failed" if every else ""
        error = EvaluationError(
            f"evaluating {format_members(names)} failed: {failed.failure}{count}; ",
            *(("allow more by ", Remedy.TIMEOUT) if failed.timed_out else ("remove the cause",)),
            *(() if skip else (", or go on without it by ", Remedy.SKIP)),
            "; ",
            *how_to_resume(valuer, store),
            members=names,
            valuer=valuer,
        )
    else:
        error = EvaluationError(
            f"utility(()) must be the utility of no data, but it failed: {failed.failure}. Let it "
            "return a constant for (), or state ",
            Remedy.EMPTY,
        )
    error.__cause__ = failed.cause
    if names and failed.traceback and failed.cause is None:
        error.add_note(f"Where it failed:\n{failed.traceback}")
    return error


def say_what_is_kept(error: BaseException, valuer: Valuer, store: Store, *, opened: bool) -> None:
    """Complete an error that ends a run; one that needs another message is raised here.

    The error of a failed training is complete. `opened` says whether the store is of this game.
    """
    kept = how_to_resume(valuer, store)
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted("stopped; ", *kept, valuer=valuer) from error
    if isinstance(error, EngineError):
        raise EngineError(*error.parts, "; ", *kept, valuer=valuer) from error
    if isinstance(error, Exception) and not isinstance(error, EvaluationError):
        error.valuer = valuer  # type: ignore[attr-defined]
        if opened:  # otherwise the store itself is refused
            error.add_note("".join(kept))


def how_to_resume(valuer: Valuer, store: Store) -> tuple[str, ...]:
    """Where all evaluations or trainings are, and how to go on, as parts of a message."""
    done = _are_kept(len(valuer.trainings), "evaluation")
    if store.path is None:
        return (f"{done} the exception's .valuer: go on with known=error.valuer.trainings",)
    with suppress(StoreError):  # what ends the run may be that the store cannot be read
        # Of a coalition that failed in one fold the other folds are kept too.
        done = _are_kept(folds, "training") if (folds := store.count_folds()) else done
    return f"{done} {str(store.path)!r}: ", Remedy.GO_ON


def _are_kept(count: int, thing: str) -> str:
    return f"{count_things(count, thing)} so far {'is' if count == 1 else 'are'} kept in"


def group_warnings(evaluations: Iterable[Evaluation]) -> dict[str, tuple[Names, ...]]:
    """Which coalitions raised which warning, the most frequent first."""
    found: dict[str, dict[Names, None]] = defaultdict(dict)
    for evaluation in evaluations:
        for message in evaluation.warnings:
            found[message][evaluation.training.members] = None
    frequent = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return {message: tuple(coalitions) for message, coalitions in frequent}
