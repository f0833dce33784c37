"""Valuations as JSON and back: the documented, versioned form of a result (docs/result.md).

A document holds one or more valuations of the same trainings. Numbers keep every digit; what is
not a number (an R² of equal utilities) is null. What is told per owner for the reader's
convenience (bounds, shares, ranks) follows from the rest and is not read back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from dupre.diagnostics import Diagnostics, Validation
from dupre.errors import InputError
from dupre.typing import Floats
from dupre.values import Evidence, Subsidy, Valuation

FORMAT = "dupre result"
VERSION = 1

_COUNTS = ("evaluated", "counting", "found", "first_left", "stale", "stopped")
_MATRICES = ("covariance", "prediction", "sampling", "noise")
_FLAGS = ("sampled", "corrected", "uncorrected")
_NUMBERS = frozenset({"utility", "predicted", "std", "seconds", "widest", "error", "coverage"})
"""Columns that stay numbers even if all are missing."""


def dumped(valuations: Sequence[Valuation]) -> str:
    """The JSON document of some valuations."""
    found = [_document(valuation) for valuation in valuations]
    whole = {"format": FORMAT, "version": VERSION, "valuations": found}
    return json.dumps(_plain(whole), allow_nan=False)


def loaded(text: str) -> list[Valuation]:
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
    if (version := whole.get("version")) != VERSION:
        raise InputError(
            f"the result has version {version} of the format, this dupre knows version {VERSION}; "
            "read it with the dupre that made it"
        )
    try:
        valuations = [_valuation(document) for document in whole["valuations"]]
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        raise InputError(f"the result is damaged: {type(cause).__name__} {cause}") from cause
    if not valuations:
        raise InputError("the result holds no valuation")
    return valuations


def _document(v: Valuation) -> dict[str, Any]:
    """One valuation, its parts in the order in which people ask for them."""
    return {
        "semivalue": v.semivalue,
        "owners": v.to_frame().rename_axis("name").reset_index().to_dict("records"),
        "utility": {"all": v.grand, "all_predicted": v.grand_predicted, "empty": v.empty},
        "trainings": {name: getattr(v, name) for name in _COUNTS},
        "subsidy": None if v.subsidy is None else asdict(v.subsidy),
        "predictor": {
            "diagnostics": None if v.diagnostics is None else asdict(v.diagnostics),
            "validation": None if v.validation is None else asdict(v.validation),
            **{name: getattr(v, name) for name in _FLAGS},
        },
        "failures": [{"members": m, "reason": reason} for m, reason in v.failures.items()],
        "warnings": [{"message": text, "coalitions": of} for text, of in v.warnings.items()],
        **{name: getattr(v, name) for name in _MATRICES},
        "rounds": v.rounds,
        "forecast": v.forecast.reset_index() if len(v.forecast) else v.forecast,
        "evaluations": v.evaluations,
        "evidence": None if v.evidence is None else vars(v.evidence),
        "provenance": v.provenance,
    }


def _valuation(document: Mapping[str, Any]) -> Valuation:
    d, owners = document, document["owners"]
    predictor, evidence, forecast = d["predictor"], d["evidence"], _frame(d["forecast"])
    parts: dict[str, Any] = {name: d["trainings"][name] for name in _COUNTS}
    parts |= {name: _matrix(d[name], len(owners)) for name in _MATRICES}
    parts |= {name: bool(predictor[name]) for name in _FLAGS}
    return Valuation(
        owners=tuple(str(owner["name"]) for owner in owners),
        rows=np.array([owner["rows"] for owner in owners], dtype=np.int64),
        mean=np.array([owner["value"] for owner in owners], dtype=np.float64),
        semivalue=str(d["semivalue"]),
        grand=float(d["utility"]["all"]),
        grand_predicted=bool(d["utility"]["all_predicted"]),
        empty=float(d["utility"]["empty"]),
        **parts,
        subsidy=None if d["subsidy"] is None else Subsidy(**_with_names(d["subsidy"], "tight")),
        diagnostics=_record(Diagnostics, predictor["diagnostics"]),
        validation=_record(Validation, predictor["validation"]),
        failures={_names(failure["members"]): failure["reason"] for failure in d["failures"]},
        warnings={w["message"]: tuple(map(_names, w["coalitions"])) for w in d["warnings"]},
        rounds=_frame(d["rounds"]),
        forecast=forecast.set_index("evaluated") if len(forecast) else forecast,
        evaluations=_frame(d["evaluations"]),
        evidence=evidence and _evidence(evidence, len(owners)),
        provenance=d["provenance"],
    )


def _evidence(document: Mapping[str, Any], n: int) -> Evidence:
    coalitions = _frame(document["coalitions"])
    coalitions["members"] = [_names(members) for members in coalitions["members"]]
    distances, shared = (_matrix(document[name], n) for name in ("distances", "shared"))
    if distances is None or shared is None:
        raise ValueError("evidence without distances")
    return Evidence(coalitions, distances, shared)


def _record(kind: Any, document: Mapping[str, Any] | None) -> Any:
    """A dataclass of numbers, where null is not a number."""
    if document is None:
        return None
    return kind(**{name: np.nan if x is None else x for name, x in document.items()})


def _with_names(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {**document, key: tuple(map(_names, document[key]))}


def _names(members: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in members)


def _matrix(rows: Any, n: int) -> Floats | None:
    return None if rows is None else np.array(rows, dtype=np.float64).reshape(n, n)


def _frame(table: Mapping[str, Any]) -> pd.DataFrame:
    frame = pd.DataFrame(table["rows"], columns=table["columns"])
    numbers = {name: np.float64 for name in frame.columns if name in _NUMBERS}
    whole = {"seed": "Int64"} if "seed" in frame.columns else {}
    return frame.astype({**numbers, **whole})


def _plain(thing: Any) -> Any:
    """What JSON knows: lists, texts, numbers, null."""
    if isinstance(thing, pd.DataFrame):
        rows = thing.astype(object).to_numpy().tolist()
        return {"columns": list(thing.columns), "rows": _plain(rows)}
    if isinstance(thing, Mapping):
        return {str(key): _plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_plain(part) for part in thing]
    if isinstance(thing, np.ndarray):
        return _plain(thing.tolist())
    if thing is pd.NA or (isinstance(thing, (float, np.floating)) and not np.isfinite(thing)):
        return None
    return thing.item() if isinstance(thing, np.generic) else thing
