"""Valuations as JSON and back: the documented, versioned form of a result (docs/result.md).

A document holds one or more valuations of the same trainings. Numbers keep every digit; NaN (an R²
of equal utilities) is null. Bounds, shares and ranks of owners are written for the reader; they
follow from the rest and are not read back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, get_type_hints

import numpy as np
import pandas as pd

from dupre._types import Floats
from dupre.errors import InputError
from dupre.result.records import (
    Diagnostics,
    Duplicates,
    Evidence,
    PredictorCheck,
    Subsidy,
    TrainingNoise,
)
from dupre.result.valuation import Valuation

Kind = TypeVar("Kind")

FORMAT = "dupre result"
VERSION = 2
READ = (1, 2)
"""Versions that are read; the first compares check coalitions with a constant."""

_COUNTS = ("evaluated", "counting", "found", "checked", "first_left", "stale")
_MATRICES = ("covariance", "prediction", "sampling", "noise", "validation")
_FLAGS = ("sampled", "corrected", "uncorrected")
_NUMBERS = frozenset({"utility", "predicted", "std", "seconds", "widest", "error", "coverage"})
"""Columns that stay numbers even if all are missing."""


def dumps(valuations: Sequence[Valuation]) -> str:
    """The JSON document of some valuations of the same trainings."""
    first = valuations[0]
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "valuations": [_document(valuation) for valuation in valuations],
        "evaluations": first.evaluations,
        "distances": first.evidence and first.evidence.distances,
        "shared": first.evidence and first.evidence.shared,
        "provenance": first.provenance,
    }
    return json.dumps(_to_plain(whole), allow_nan=False)


def loads(text: str) -> list[Valuation]:
    """The valuations in a JSON document.

    Raises:
        InputError: it is no such document, is damaged, or of a version not known here.
    """
    try:
        whole = json.loads(text)
    except (TypeError, ValueError, RecursionError) as cause:
        raise InputError(f"this is no JSON: {cause}") from cause
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise InputError(f'this is no result of dupre: expected JSON with "format": "{FORMAT}"')
    if (version := whole.get("version")) not in READ:
        raise InputError(
            f"the result has version {version} of the format, this dupre knows versions "
            f"{' and '.join(map(str, READ))}; read it with the dupre that made it"
        )
    try:
        valuations = [_valuation(document, whole) for document in whole["valuations"]]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as cause:
        raise InputError(f"the result is damaged: {type(cause).__name__} {cause}") from cause
    if not valuations:
        raise InputError("the result holds no valuation")
    return valuations


def _document(v: Valuation) -> dict[str, Any]:
    """One valuation, its parts in the order in which people ask for them."""
    return {
        "semivalue": v.semivalue,
        "owners": v.to_frame().rename_axis("name").reset_index().to_dict("records"),
        "utility": {"all": v.grand, "all_predicted": v.grand_predicted, "empty": v.empty}
        | {"floor": v.floor, "floored": v.floored},
        "validation_rows": v.validation_rows,
        "trainings": {name: getattr(v, name) for name in _COUNTS} | {"stopped": v.stopped},
        "duplicates": None if v.duplicates is None else asdict(v.duplicates),
        "caveats": v.caveats,
        "subsidy": None if v.subsidy is None else asdict(v.subsidy),
        "training_noise": None if v.training_noise is None else asdict(v.training_noise),
        "predictor": {
            "diagnostics": None if v.diagnostics is None else asdict(v.diagnostics),
            "validation": None if v.check is None else asdict(v.check),
            **{name: getattr(v, name) for name in _FLAGS},
        },
        "failures": [{"members": m, "reason": reason} for m, reason in v.failures.items()],
        "warnings": [{"message": text, "coalitions": of} for text, of in v.warnings.items()],
        **{name: getattr(v, name) for name in _MATRICES},
        "rounds": v.rounds,
        "contributions": v.contributions,
        "forecast": v.forecast.reset_index() if len(v.forecast) else v.forecast,
        "coalitions": v.evidence and v.evidence.coalitions,
    }


def _valuation(document: Mapping[str, Any], whole: Mapping[str, Any]) -> Valuation:
    d, owners = document, document["owners"]
    n, predictor, forecast = len(owners), d["predictor"], _frame(d["forecast"])
    counts = {"checked": 0, **d["trainings"]}  # older documents do not have it
    parts: dict[str, Any] = {name: _check_type(int, counts[name]) for name in _COUNTS}
    parts |= {name: _matrix(d.get(name), n) for name in _MATRICES}
    parts |= {name: _check_type(bool, predictor[name]) for name in _FLAGS}
    if parts["covariance"] is None or parts["noise"] is None:
        raise ValueError("values without a covariance")
    return Valuation(
        owners=_names(owner["name"] for owner in owners),
        rows=np.array([_check_type(int, owner["rows"]) for owner in owners], dtype=np.int64),
        mean=np.array([owner["value"] for owner in owners], dtype=np.float64),
        semivalue=_check_type(str, d["semivalue"]),
        grand=float(d["utility"]["all"]),
        grand_predicted=_check_type(bool, d["utility"]["all_predicted"]),
        empty=float(d["utility"]["empty"]),
        floor=None if d["utility"].get("floor") is None else float(d["utility"]["floor"]),
        floored=_check_type(int, d["utility"].get("floored", 0)),
        validation_rows=_check_type(int, d.get("validation_rows", 0)),  # older documents have none
        **parts,
        stopped=_check_type(str, d["trainings"]["stopped"]),
        duplicates=_record(Duplicates, d.get("duplicates")),  # older documents have none
        caveats=_names(d["caveats"]),
        subsidy=_record(Subsidy, d["subsidy"]),
        training_noise=_record(TrainingNoise, d.get("training_noise")),  # likewise
        diagnostics=_record(Diagnostics, predictor["diagnostics"]),
        check=_record(PredictorCheck, _add_limit(predictor["validation"])),
        failures={_names(f["members"]): _check_type(str, f["reason"]) for f in d["failures"]},
        warnings={
            _check_type(str, w["message"]): _coalitions(w["coalitions"]) for w in d["warnings"]
        },
        rounds=_frame(d["rounds"]),
        contributions=_frame(d.get("contributions", {"columns": [], "rows": []})),
        forecast=forecast.set_index("evaluated") if len(forecast) else forecast,
        evaluations=_frame(whole["evaluations"]),
        evidence=_evidence(d["coalitions"], whole, n),
        provenance={
            _check_type(str, section): {
                _check_type(str, name): _check_type(str, text) for name, text in texts.items()
            }
            for section, texts in whole["provenance"].items()
        },
    )


def _evidence(coalitions: Any, whole: Mapping[str, Any], n: int) -> Evidence | None:
    if coalitions is None:
        return None
    frame = _frame(coalitions)
    frame["members"] = list(_coalitions(frame["members"]))
    distances, shared = _matrix(whole["distances"], n), _matrix(whole["shared"], n)
    if distances is None or shared is None:
        raise ValueError("coalitions without distances")
    return Evidence(frame, distances, shared)


def _record(kind: type[Kind], document: Mapping[str, Any] | None) -> Kind | None:
    """A dataclass from its fields, each checked for its type; a null number is NaN."""
    if document is None:
        return None
    hints = get_type_hints(kind)
    parts: dict[str, Any] = {}
    for name, part in document.items():
        if hints[name] is float:
            parts[name] = np.nan if part is None else float(_check_type((int, float), part))
        elif hints[name] == Mapping[str, float]:
            parts[name] = {label: float(share) for label, share in part.items()}
        elif hints[name] in (int, bool, str):
            parts[name] = _check_type(hints[name], part)
        else:
            parts[name] = _coalitions(part)
    return kind(**parts)


def _add_limit(check: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The record of an older document, where the best constant was also the limit."""
    if check is None or "constant" not in check:
        return check
    constant = check["constant"]
    rest = {name: part for name, part in check.items() if name != "constant"}
    return {**rest, "by_size": constant, "limit": constant}


def _check_type(kind: Any, thing: Any) -> Any:
    if not isinstance(thing, kind) or (isinstance(thing, bool) and kind is not bool):
        raise TypeError(f"expected {kind}, got {thing!r:.50}")
    return thing


def _names(members: Iterable[Any]) -> tuple[str, ...]:
    return tuple(_check_type(str, name) for name in members)


def _coalitions(several: Iterable[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(_names(_check_type((list, tuple), members)) for members in several)


def _matrix(rows: Any, n: int) -> Floats | None:
    return None if rows is None else np.array(rows, dtype=np.float64).reshape(n, n)


def _frame(table: Mapping[str, Any]) -> pd.DataFrame:
    frame = pd.DataFrame(table["rows"], columns=_names(table["columns"]))
    numbers = {name: np.float64 for name in frame.columns if name in _NUMBERS}
    whole = {"seed": "Int64"} if "seed" in frame.columns else {}
    return frame.astype({**numbers, **whole})


def _to_plain(thing: Any) -> Any:
    """What JSON knows: lists, texts, numbers, null."""
    if isinstance(thing, pd.DataFrame):
        rows = thing.astype(object).to_numpy().tolist()
        return {"columns": list(thing.columns), "rows": _to_plain(rows)}
    if isinstance(thing, Mapping):
        return {str(key): _to_plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_to_plain(part) for part in thing]
    if isinstance(thing, np.ndarray):
        return _to_plain(thing.tolist())
    if thing is pd.NA or (isinstance(thing, (float, np.floating)) and not np.isfinite(thing)):
        return None
    return thing.item() if isinstance(thing, np.generic) else thing
