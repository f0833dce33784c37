"""Valuations as JSON and back: the documented, versioned form of a result (docs/result.md).

A document holds one or more valuations of the same trainings. Numbers keep every digit; NaN (an R²
of equal utilities) is null. Bounds, shares and ranks of owners are written for the reader; they
follow from the rest and must not contradict it when they are read (`identities`). Matrices and
coalitions of many owners are packed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from dupre._types import Floats
from dupre.checks import LARGEST
from dupre.errors import InputError
from dupre.result import records
from dupre.result.covariances import total_covariance
from dupre.result.fields import Field
from dupre.result.identities import check_identities
from dupre.result.packed import (
    pack_coalitions,
    pack_list,
    pack_matrix,
    unpack_coalition,
    unpack_list,
)
from dupre.result.valuation import Valuation

FORMAT = "dupre result"
VERSION = 3
READ = (1, 2, 3)
"""Versions that are read; the first compares check coalitions with a constant, and the first two
pack nothing."""

PACKED_FROM = 51
"""Owners from which on matrices and coalitions are packed."""

_COUNTS = ("evaluated", "counting", "found", "checked", "first_left", "stale")
_MATRICES = ("covariance", "prediction", "sampling", "noise", "validation")
_FLAGS = ("sampled", "corrected", "uncorrected")
_NEEDED = ("covariance", "noise")
_EVALUATIONS = {
    "coalition": "a JSON list of texts",
    "utility": "a number or null",
    "failure": "a text",
    "repeat": "a whole number",
    "attempt": "a whole number",
    "seed": "a whole number or null",
    "seconds": "a number from 0 on or null",
    "warnings": "a JSON list of texts",
    "finished": "a text",
    "worker": "a text",
}
_COALITIONS = {
    "members": "a list of texts",
    "size": "a whole number",
    "rows": "a whole number",
    "utility": "a number or null",
    "predicted": "a number or null",
    "std": "a number from 0 on or null",
}
_ROUNDS = {"evaluated": "a whole number", "": "a number or null"}
_CONTRIBUTIONS = {"owner": "a text", "others": "a whole number"}
_CONTRIBUTIONS |= dict.fromkeys(("value", "low", "high"), "a number")
_FORECAST = {"evaluated": "a whole number", "widest": "a number", "": "a number"}
"""Kinds of the columns of tables; that of others under ""."""


NO_ROWS: dict[str, list[Any]] = {"columns": [], "rows": []}
"""A table that older documents do not have."""


def dumps(valuations: Sequence[Valuation]) -> str:
    """The JSON document of some valuations of the same trainings."""
    first = valuations[0]
    matrix = _writer(len(first.owners))
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "valuations": [_document(valuation) for valuation in valuations],
        "evaluations": _pack_evaluations(first.evaluations, first.owners),
        "distances": first.evidence and matrix(first.evidence.distances),
        "shared": first.evidence and matrix(first.evidence.shared),
        "provenance": first.provenance,
    }
    return json.dumps(_to_plain(whole), allow_nan=False, separators=(",", ":"))


def loads(text: str) -> list[Valuation]:
    """The valuations in a JSON document.

    Raises:
        InputError: it is damaged, contradicts itself, or is of a version not known here.
    """
    try:
        whole = json.loads(text)
    except (TypeError, ValueError, RecursionError) as cause:
        raise InputError(f"this is no JSON: {cause}") from cause
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise InputError(f'this is no result of dupre: expected JSON with "format": "{FORMAT}"')
    if (version := whole.get("version")) not in READ:
        raise InputError(
            f"the result has version {version!r} of the format, this dupre knows versions "
            f"{', '.join(map(str, READ[:-1]))} and {READ[-1]}; read it with the dupre that made it"
        )
    document = Field(whole)
    valuations = [_valuation(part, document) for part in document["valuations"]]
    if not valuations:
        raise InputError("the result holds no valuation")
    return valuations


def _document(v: Valuation) -> dict[str, Any]:
    """One valuation, its parts in the order in which people ask for them."""
    alone = v.interval(for_these_rows=True).add_suffix("_for_these_rows")
    return {
        "semivalue": v.semivalue,
        "owners": v.to_frame().join(alone).rename_axis("name").reset_index().to_dict("records"),
        "utility": {"all": v.grand, "all_predicted": v.grand_predicted, "empty": v.empty}
        | {"floor": v.floor, "floored": v.floored},
        "validation_rows": v.validation_rows,
        "trainings": {name: getattr(v, name) for name in _COUNTS} | {"stopped": v.stopped},
        "duplicates": v.duplicates,
        "caveats": v.caveats,
        "subsidy": v.subsidy,
        "training_noise": v.training_noise,
        "predictor": {"diagnostics": v.diagnostics, "validation": v.check}
        | {name: getattr(v, name) for name in _FLAGS},
        "failures": [{"members": m, "reason": reason} for m, reason in v.failures.items()],
        "warnings": [{"message": text, "coalitions": of} for text, of in v.warnings.items()],
        **_matrices(v),
        "rounds": v.rounds,
        "contributions": v.contributions,
        "forecast": v.forecast.reset_index() if len(v.forecast) else v.forecast,
        "coalitions": v.evidence and _pack_column(v.evidence.coalitions, "members", v.owners),
    }


def _writer(n: int) -> Callable[[Floats], Floats | str]:
    """How a matrix of n owners is written."""
    return pack_matrix if n >= PACKED_FROM else np.asarray


def _matrices(v: Valuation) -> dict[str, Floats | str | None]:
    """The covariances; of many owners without their sum, if it follows from them."""
    found = {name: getattr(v, name) for name in _MATRICES}
    matrix, whole = _writer(len(v.owners)), _sum_of_parts(found)
    if matrix is pack_matrix and whole is not None and np.array_equal(v.covariance, whole):
        found["covariance"] = None
    return {name: None if part is None else matrix(part) for name, part in found.items()}


def _read_matrices(d: Field, n: int) -> dict[str, Any]:
    needed = _NEEDED if n < PACKED_FROM else _NEEDED[1:]
    found = {
        name: None if part.thing is None and name not in needed else part.covariance(n)
        for name in _MATRICES
        for part in [d.get(name)]
    }
    if found["covariance"] is None:
        found["covariance"] = _sum_of_parts(found)
    if found["covariance"] is None:
        raise d.get("covariance").error(f"a covariance of {n} values")
    return found


def _sum_of_parts(parts: Mapping[str, Floats | None]) -> Floats | None:
    """The covariance that follows from its parts; None if they are not known."""
    own = parts["prediction"]
    if own is None:
        return None
    return total_covariance(own, parts["sampling"], parts["validation"])


def _pack_column(frame: pd.DataFrame, column: str, owners: tuple[str, ...]) -> pd.DataFrame:
    """A table of coalitions, which are packed if owners are many."""
    if len(owners) < PACKED_FROM or column not in frame:
        return frame
    cells = pack_coalitions(frame[column], owners)
    return frame.assign(**{column: pd.Series(cells, index=frame.index, dtype=object)})


def _pack_evaluations(frame: pd.DataFrame, owners: tuple[str, ...]) -> pd.DataFrame:
    """All trainings; their coalitions and scores on resamples are packed if owners are many."""
    packed = _pack_column(frame, "coalition", owners)
    if len(owners) < PACKED_FROM or "resampled" not in frame:
        return packed
    return packed.assign(resampled=packed["resampled"].astype(object).map(pack_list))


def _unpack_column(table: Field, column: str, owners: tuple[str, ...]) -> Field:
    """A table with the names of its coalitions; what is damaged is left for others to find."""
    columns, rows = table["columns"].of("a list"), table["rows"].of("a list")
    for row in rows if column in columns else ():
        if isinstance(row, list) and len(row) == len(columns):
            at = columns.index(column)
            row[at] = unpack_coalition(row[at], owners, as_text=column == "coalition")
    return table


def _valuation(d: Field, whole: Field) -> Valuation:
    utility, trainings, predictor = d["utility"], d["trainings"], d["predictor"]
    names = _owner_names(d["owners"])
    n, owners = len(names), list(d["owners"])
    trainings.of("an object").setdefault("checked", 0)  # older documents do not have it
    forecast = d["forecast"].table(_FORECAST)
    valuation = Valuation(
        owners=names,
        rows=np.array([owner["rows"].of("a whole number") for owner in owners], dtype=np.int64),
        mean=np.array([owner["value"].number() for owner in owners]),
        semivalue=d["semivalue"].of("a text"),
        grand=utility["all"].number(),
        grand_predicted=utility["all_predicted"].of("true or false"),
        empty=utility["empty"].number(),
        floor=None if utility.get("floor").thing is None else utility["floor"].number(),
        floored=utility.get("floored", 0).of("a whole number"),
        validation_rows=d.get("validation_rows", 0).of("a whole number"),
        **{name: trainings[name].of("a whole number") for name in _COUNTS},
        **_read_matrices(d, n),
        **{name: predictor[name].of("true or false") for name in _FLAGS},
        stopped=trainings["stopped"].of("a text"),
        duplicates=d.get("duplicates").record(records.Duplicates),
        caveats=d["caveats"].names(),
        subsidy=d["subsidy"].record(records.Subsidy),
        training_noise=d.get("training_noise").record(records.TrainingNoise),
        diagnostics=predictor["diagnostics"].record(records.Diagnostics),
        check=_add_limit(predictor["validation"]).record(records.PredictorCheck),
        failures={f["members"].names(): f["reason"].of("a text") for f in d["failures"]},
        warnings={w["message"].of("a text"): w["coalitions"].coalitions() for w in d["warnings"]},
        rounds=d["rounds"].table(_ROUNDS),
        contributions=d.get("contributions", NO_ROWS).table(_CONTRIBUTIONS),
        forecast=forecast.set_index("evaluated") if len(forecast) else forecast,
        evaluations=_evaluations(_unpack_column(whole["evaluations"], "coalition", names)),
        evidence=_evidence(d["coalitions"], whole, names),
        provenance={
            section: {name: texts[name].of("a text") for name in texts.of("an object")}
            for section in whole["provenance"].of("an object")
            for texts in [whole["provenance"][section]]
        },
    )
    check_identities(valuation, d)
    return valuation


def _owner_names(owners: Field) -> tuple[str, ...]:
    names = tuple(owner["name"].of("a text") for owner in owners)
    if len(set(names)) < max(2, len(names)):
        raise owners.error("at least two owners with different names")
    return names


def _evaluations(table: Field) -> pd.DataFrame:
    frame = table.table(_EVALUATIONS)
    if "resampled" in frame:
        frame["resampled"] = frame["resampled"].map(unpack_list)
    fits = all(pd.isna(seed) or abs(seed) < 2**63 for seed in frame.get("seed", ()))
    return frame.astype({"seed": "Int64"}) if "seed" in frame and fits else frame


def _evidence(coalitions: Field, whole: Field, owners: tuple[str, ...]) -> records.Evidence | None:
    if coalitions.thing is None:
        return None
    frame, n = _unpack_column(coalitions, "members", owners).table(_COALITIONS), len(owners)
    frame["members"] = list(map(tuple, frame["members"]))
    return records.Evidence(
        frame, whole["distances"].matrix(n, 0.0, LARGEST), whole["shared"].matrix(n, 0.0, 1.0)
    )


def _add_limit(check: Field) -> Field:
    """The record of an older document, where the best constant was also the limit."""
    if not isinstance(check.thing, dict) or "constant" not in check.thing:
        return check
    rest = {name: part for name, part in check.thing.items() if name != "constant"}
    limits = dict.fromkeys(("by_size", "limit"), check.thing["constant"])
    return Field(rest | limits, check.place)


def _to_plain(thing: Any) -> Any:
    """What JSON knows: lists, texts, numbers, null."""
    if isinstance(thing, pd.DataFrame):
        rows = thing.astype(object).to_numpy().tolist()
        return {"columns": list(thing.columns), "rows": _to_plain(rows)}
    if is_dataclass(thing):
        return {part.name: _to_plain(getattr(thing, part.name)) for part in fields(thing)}
    if isinstance(thing, Mapping):
        return {str(key): _to_plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_to_plain(part) for part in thing]
    if isinstance(thing, np.ndarray):
        return _to_plain(thing.tolist())
    if thing is pd.NA or (isinstance(thing, (float, np.floating)) and not np.isfinite(thing)):
        return None
    return thing.item() if isinstance(thing, np.generic) else thing
